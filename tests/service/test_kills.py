"""The campaign of kills, in short; and that it would see what it looks for."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from campaigns import kills
from campaigns.checking import check
from campaigns.kills import Plan, campaign
from campaigns.ledger import Delivery, Ledger, Visit
from pamo.store import ArmAdded, DecisionMade, FeedbackGiven, MemoryStore, Objective, Setup


def test_kills_of_a_server_on_sqlite(tmp_path: Path) -> None:
    tally = campaign(Plan("sqlite", kills=5, seed=3, clients=8, check_every=2), tmp_path, silent=True)
    assert tally.ok, f"{tally}\n{tally.findings.examples}\n{tally.ledger.wrong[:5]}\n{tally.wrong[:5]}"
    assert (tally.kills, tally.checks, tally.stops) == (5, 3, 2)
    assert tally.ledger.feedbacks > 30
    assert tally.ledger.unanswered > 0  # they were under load, and requests were cut off
    assert tally.findings.events >= 2 * tally.ledger.feedbacks
    assert tally.findings.deviation < 1e-9
    assert tally.declared == 2
    assert any(tally.ledger.features.values())


def test_kills_of_workers_and_of_the_database() -> None:
    with kills._folder(None) as folder:
        tally = campaign(Plan("postgresql", kills=3, seed=3, workers=2, clients=8), folder, silent=True)
    assert tally.ok, f"{tally}\n{tally.findings.examples}\n{tally.ledger.wrong[:5]}\n{tally.wrong[:5]}"
    assert (tally.kills, tally.checks, tally.stops) == (3, 1, 2)
    assert tally.database_kills >= 1
    assert tally.ledger.feedbacks > 30


def test_an_acknowledgement_before_the_commit_is_found(tmp_path: Path) -> None:
    tally = campaign(Plan("sqlite", kills=8, seed=3, clients=8, fault="acknowledge-early"), tmp_path, silent=True)
    assert not tally.ok
    assert tally.findings.lost_decisions + tally.findings.lost_feedbacks > 0


def test_a_retry_that_counts_is_found(tmp_path: Path) -> None:
    tally = campaign(Plan("sqlite", kills=1, seed=3, clients=8, fault="count-twice"), tmp_path, silent=True)
    assert not tally.ok
    assert tally.findings.twice > 0
    assert tally.findings.differing > 0
    assert tally.findings.lost_feedbacks == 0


def test_the_command_says_how_it_went(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def pretend(plan: Plan, folder: Path) -> kills.Tally:
        assert folder.is_dir()
        tally = kills.Tally(plan, Ledger(), kills=plan.kills - (plan.minutes is not None))
        tally.findings.lost_feedbacks = int(plan.fault is not None)
        return tally

    monkeypatch.setattr(kills, "campaign", pretend)
    assert kills.main(["--kills", "20"]) == 0
    assert "nothing was counted twice." in capsys.readouterr().out
    assert kills.main(["--kills", "20", "--minutes", "1"]) == 0
    assert "only 19 of 20 kills" in capsys.readouterr().out
    assert kills.main(["--fault", "acknowledge-early"]) == 1
    assert "FAILED" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        kills.main(["--workers", "2"])


SETUP = Setup((Objective("price", 0, 500, lower_is_better=True), Objective("taste", 1, 5), Objective("service")))
REWARDS = {"price": 100.0, "taste": 3.0, "service": 0.5}
BODY = {"rewards": REWARDS, "overall": 0.5}


def told(number: int, *, acknowledged: bool = True) -> Visit:
    """Return a visit as a client remembers it."""
    answer = {"id": f"d{number}", "user": "ann", "arm": "A", "arms": ["A"], "propensity": 1.0, "policy": "p"}
    visit = Visit(f"k{number}", "ann", {"user": "ann"}, answer, dict(BODY))
    visit.recorded = int(acknowledged)
    names = frozenset({*REWARDS, "overall"})
    visit.deliveries.append(
        Delivery(names, 1, 2 if acknowledged else None, "recorded" if acknowledged else "", attempts=1)
    )
    return visit


def kept(*numbers: int, fed: tuple[int, ...] | None = None) -> MemoryStore:
    """Return a store with these decisions, and feedback to them."""
    store = MemoryStore(SETUP)
    store.append(ArmAdded("A", "A", 0.0))
    for number in numbers:
        store.append(DecisionMade(f"d{number}", "ann", ("A",), 1.0, "p", 0.0, key=f"k{number}"))
    for number in numbers if fed is None else fed:
        store.append(FeedbackGiven(f"d{number}", REWARDS, 1.0, 0.5))
    return store


def ledger_of(*visits: Visit) -> Ledger:
    return Ledger({visit.key: visit for visit in visits})


def test_the_check_is_content_with_what_is_right() -> None:
    found = check(
        kept(1, 2, 3, fed=(1, 2)), ledger_of(told(1), told(2, acknowledged=False), told(3, acknowledged=False))
    )
    assert found.ok, found
    assert (found.events, found.deviation < 1e-12) == (7, True)


def test_the_check_sees_each_kind_of_fault() -> None:
    assert check(kept(1, 2, fed=(1,)), ledger_of(told(1), told(2))).lost_feedbacks == 1
    assert check(kept(1), ledger_of(told(1), told(2))).lost_decisions == 1
    assert check(kept(1, 2), ledger_of(told(1))).changed == 2  # decision and feedback that nobody sent
    stated = dict.fromkeys(REWARDS, 1.0)
    others: list[dict[str, Any]] = [{"overall": 0.25}, {"rewards": {"price": 100.0}}, {"preference": stated}]
    for other in others:
        visit = told(1)
        assert visit.feedback is not None
        visit.feedback |= other
        found = check(kept(1), ledger_of(visit))
        assert found.changed == 1
        assert found.differing > 0
    for other in ({"arm": "B"}, {"propensity": 0.5}, {"id": "d9"}):
        visit = told(1)
        assert visit.decision is not None
        visit.decision |= other
        assert not check(kept(1), ledger_of(visit)).ok
    store = kept(1, 2)
    store._fold.apply(FeedbackGiven("d1", REWARDS, 1.0, 0.5, arm="A", user="ann"))
    found = check(store, ledger_of(told(1), told(2)))
    assert found.twice == 1
    assert found.differing > 2
    ledger = ledger_of(told(1))
    ledger.features |= {"A": {}, "ann": {}, "bob": None}
    assert check(kept(1), ledger).ok
    ledger.features |= {"A": {"stars": 5}, "ann": {"age": 40}}
    assert check(kept(1), ledger).changed == 2
    store = kept(1, 2)
    store._fold.block[0, 1] *= 1.0 + 1e-8
    assert check(store, ledger_of(told(1), told(2))).differing > 0


def in_parts(*, lost: bool, statuses: tuple[str, str] = ("recorded", "recorded")) -> tuple[MemoryStore, Visit]:
    """Return a store and a visit whose taste came first, and was acknowledged before the rest was sent."""
    store, visit = kept(1, fed=()), told(1)
    whole = dataclasses.replace(visit.deliveries[0], begun=3, done=4, status=statuses[1])
    visit.deliveries = [Delivery(frozenset({"taste"}), 1, 2, statuses[0], attempts=1), whole]
    if not lost:
        store.append(FeedbackGiven("d1", {"taste": 3.0}, 1.0))
    store.append(FeedbackGiven("d1", REWARDS, 1.0, 0.5))
    return store, visit


def test_the_check_sees_a_part_that_was_lost_and_came_again_with_the_rest() -> None:
    store, visit = in_parts(lost=False)
    assert check(store, ledger_of(visit)).ok
    found = check(in_parts(lost=True)[0], ledger_of(visit))
    assert (found.lost_feedbacks, found.changed) == (1, 1)
    store, visit = in_parts(lost=False, statuses=("duplicate", "recorded"))
    assert check(store, ledger_of(visit)).changed == 1  # a record more than anybody was told of
    assert check(store, ledger_of(visit), exact=False).ok
    visit.deliveries[0].attempts = 2  # or nobody was told, and it was sent again
    assert check(store, ledger_of(visit)).ok
    visit.deliveries[0].names |= {"service"}
    assert check(store, ledger_of(visit)).lost_feedbacks == 1


def test_the_ledger_sees_answers_that_are_wrong() -> None:
    ledger = ledger_of(visit := told(1))
    ledger.moment = 2

    def answered(status: str) -> None:
        ledger.fed(visit, ledger.deliver(visit, BODY), {"id": "d1", "status": status})

    answered("duplicate")
    assert visit.decision is not None
    ledger.decided(visit, dict(visit.decision))
    assert ledger.wrong == []
    visit.recorded = 0
    answered("recorded")
    visit.deliveries.clear()
    answered("recorded")
    answered("unknown")
    ledger.decided(visit, {**visit.decision, "arm": "B"})
    ledger.decided(visit, {**visit.decision, "user": "bob"})
    assert len(ledger.wrong) == 6
