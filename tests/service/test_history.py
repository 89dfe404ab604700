"""What went on, from the journal: over restarts, several workers, and a journal that is counted piece by piece."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.page import after_restart
from pamo import Engine
from pamo.contract.events import HISTORY
from pamo.service import dashboard, history
from pamo.service.activity import Activity
from pamo.service.history import History
from pamo.store import DecisionMade, Event, FeedbackGiven, Store
from tests.store.homes import HOMES
from tests.store.test_conformance import begun, decision, feedback

DAY = 86_400.0
NOW = 20_000 * DAY + 1000.0
KEPT = {"preference": [0.2, 0.3, 0.5], "means": [0.5, 0.5, 0.5], "reward_bonus": 0.1, "preference_bonus": 0.0}
LEARNED = {**KEPT, "without_exploration": {"arm": "A", "means": [0.8, 0.8, 0.8]}}


def month(days: int = 30) -> list[Event]:
    """A decision every seven hours, each fifth to learn, and feedback a day later to all but each third."""
    found: list[tuple[float, Event]] = []
    for number in range(int(days * DAY / 25_200)):
        at = NOW - days * DAY + 25_200.0 * number
        kept = LEARNED if number % 5 == 0 else KEPT
        made = replace(decision(number, user=f"u{number % 9}", arms=("A",)), at=at, explanation=kept)
        found.append((at, replace(made, policy=HISTORY) if number % 50 == 7 else made))
        if number % 3 and at + DAY < NOW:
            found.append((at + DAY, feedback(number, at=at + DAY, overall=number % 11)))
    return [event for _, event in sorted(found, key=lambda one: one[0])]


def witness(events: list[Event], span: int) -> dict[float, tuple[int, int, int, float]]:
    """Decisions, explored ones, feedbacks and the sum of what came back, by a plain loop over all events."""
    rows: dict[float, list[Any]] = {}
    left_out = {event.id for event in events if isinstance(event, DecisionMade) and event.policy == HISTORY}
    for event in events:
        if isinstance(event, DecisionMade | FeedbackGiven):
            row = rows.setdefault(event.at // span * span, [0, 0, 0, 0.0])
            if isinstance(event, DecisionMade) and event.id not in left_out:
                row[0] += 1
                row[1] += event.explanation is LEARNED
            elif isinstance(event, FeedbackGiven) and event.decision not in left_out:
                row[2] += 1
                row[3] += (event.overall or 0.0) / 10.0
    return {at: tuple(row) for at, row in rows.items() if any(row)}


def told(counting: History, resolution: str, limit: int) -> dict[float, Any]:
    found = counting.buckets(resolution, limit, NOW)
    return {
        one.at: (one.decisions, one.explored, one.feedbacks, pytest.approx((one.got or 0.0) * one.scored))
        for one in found
    }


def counting_on(store: Store) -> History:
    return History(store, Activity(Engine(store=store, seed=1), lambda: NOW))


@pytest.mark.parametrize("home", HOMES)
def test_what_went_on_is_the_journals(
    home: str, tmp_path: Path, postgres_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "PIECE", 40)
    house, events = HOMES[home](tmp_path, postgres_url), month()
    store = begun(house)
    for start in range(0, len(events), 50):  # each is counted together with events from before, or without
        store.append_many(events[start : start + 50])
        if start == 50:
            counting_on(store).advance()
    first, second = counting_on(store), counting_on(store)
    while first.advance() | second.advance():  # two workers, by turns
        pass
    wanted = {name: witness(events, span) for name, span in history.SPANS.items()}
    assert told(first, "hour", 721) == wanted["hour"]
    assert told(second, "day", 31) == wanted["day"]
    assert told(first, "quarter-hour", 1000) == {
        at: row for at, row in wanted["quarter-hour"].items() if at > NOW - 1000 * 900
    }
    if house.durable:
        house.close()
        store = house.open()
        monkeypatch.setattr(store, "events", None)  # nothing is counted again
        assert told(counting_on(store), "hour", 721) == wanted["hour"]
        monkeypatch.delattr(store, "events")
    store.rebuild()
    assert store.counted() == 0
    monkeypatch.setattr(history, "PIECE", 1000)
    assert told(counting_on(store), "day", 31) == wanted["day"]
    house.close()


def test_nothing_is_counted_twice(tmp_path: Path, postgres_url: Callable[[], str]) -> None:
    """Whoever counted the same events at the same time is told so, and adds nothing."""
    for home in HOMES.values():
        house = home(tmp_path, postgres_url)
        store = begun(house)
        assert store.count(0, 2, {900: [1.0, 2.0]})
        assert not store.count(0, 3, {900: [1.0, 2.0]})
        assert not store.count(1, 3, {900: [1.0, 2.0]})
        assert store.count(2, 4, {900: [0.5, 1.0], 1800: [1.0, 1.0]})
        assert store.activity(0) == {900: [1.5, 3.0], 1800: [1.0, 1.0]}
        assert store.activity(901) == {1800: [1.0, 1.0]}
        assert store.counted() == 4
        house.close()


@pytest.mark.parametrize(("share", "rests"), [(0.1, [3.0, 3.0, 3.0]), (0.9, [3.0, 40.0, 40.0])])
def test_counting_gives_way_to_a_busy_process(
    monkeypatch: pytest.MonkeyPatch, share: float, rests: list[float]
) -> None:
    """Of three pieces that take a second each; share: of a processor that others use while it rests."""
    wall, spent, slept = 0.0, 0.0, list[float]()

    def count(_: History) -> bool:
        nonlocal wall
        wall += 1.0
        return True

    async def sleep(seconds: float) -> None:
        nonlocal wall, spent
        if len(slept) == len(rests):
            raise asyncio.CancelledError
        slept.append(seconds)
        wall, spent = wall + seconds, spent + share * seconds

    async def at_once(work: Callable[[], bool]) -> bool:
        return work()

    monkeypatch.setattr(History, "advance", count)
    monkeypatch.setattr(history, "time", SimpleNamespace(monotonic=lambda: wall, process_time=lambda: spent))
    monkeypatch.setattr(history, "asyncio", SimpleNamespace(to_thread=at_once, sleep=sleep))
    with Engine(["a"]) as engine, pytest.raises(asyncio.CancelledError):
        asyncio.run(History(engine.store, Activity(engine)).keep())
    assert slept == rests


def test_every_view_is_asked_for_after_a_restart_with_a_month_behind_it(capsys: pytest.CaptureFixture[str]) -> None:
    after_restart(2_000, None)  # how long that takes is told, and not judged here
    told = capsys.readouterr().out
    assert re.search(r"^6\d\d hours with (999|1,000) decisions$", told, re.MULTILINE)  # the first is a month ago
    shown = (Path(dashboard.__file__).parent / "static" / "overview.js").read_text(encoding="utf-8")
    for path in re.findall(r'get\("(/v1/\w+)"', shown):
        assert f"/           {path}" in told or path == "/v1/objectives", path
    assert "/           /v1/experiment" in told
