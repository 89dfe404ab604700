"""The soak, in short: it finds a leak, it finds wrong answers, and it calls flat only what is."""

from __future__ import annotations

import io
from pathlib import Path
from random import Random

import pytest

from campaigns import soak, world
from campaigns.memory import LEAST, SHARE, judge
from campaigns.soak import Plan, Tally

MEGABYTE = 2**20


def test_a_server_that_leaks_is_found(tmp_path: Path) -> None:
    said = io.StringIO()
    tally = soak.campaign(Plan(minutes=0.08, rate=300, users=300, fault="leak", row_seconds=2.0), tmp_path, said)
    assert not tally.wrong
    assert not tally.verdict.flat
    assert not tally.ok
    assert len(said.getvalue().splitlines()) >= 3
    assert set(tally.statuses) >= {200, 201, 404, 422}  # it asks for everything, and the wrong things too


def test_a_wrong_answer_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = world.feedback
    monkeypatch.setattr(soak, "feedback", lambda random: honest(random) | {"overall": 6.0})  # the scale ends at 5
    tally = soak.campaign(Plan(minutes=0.02, rate=200, users=50), tmp_path, io.StringIO())
    assert not tally.ok
    assert "was answered 422, not 200" in tally.wrong[0]


@pytest.mark.parametrize(
    ("growth", "flat"),
    [
        (lambda t: 0, True),
        (lambda t: 30 * MEGABYTE * min(t, 100) / 100, True),  # caches fill in the first half
        (lambda t: 40 * MEGABYTE if 200 <= t < 220 else 0, True),  # a snapshot comes and goes
        (lambda t: -MEGABYTE * t / 10, True),
        (lambda t: 0.5 * SHARE * 100 * MEGABYTE * t / 150, True),
        (lambda t: 2.0 * SHARE * 100 * MEGABYTE * t / 150, False),  # a slow leak
        (lambda t: 2 * MEGABYTE * (t // 20), False),  # a leak by the chunk, as allocators take memory
    ],
)
def test_flat_is_what_does_not_grow(growth: object, flat: bool) -> None:
    random = Random(1)
    samples = [(float(t), int(100 * MEGABYTE + growth(t) + random.uniform(-1, 1) * MEGABYTE / 4)) for t in range(300)]  # type: ignore[operator]
    verdict = judge(samples)
    assert verdict.flat is flat
    assert ("NOT FLAT" in str(verdict)) is not flat


def test_too_few_samples_are_not_called_flat() -> None:
    assert not judge([]).flat
    assert not judge([(0.0, 1), (1.0, 1)]).flat


def test_a_small_process_may_grow_by_what_an_allocator_takes() -> None:
    assert judge([(float(t), int(5 * MEGABYTE + 0.9 * LEAST * t / 50)) for t in range(101)]).flat
    assert not judge([(float(t), int(5 * MEGABYTE + 1.2 * LEAST * t / 50)) for t in range(101)]).flat


def test_the_command_says_how_it_went(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def pretend(plan: Plan, folder: Path) -> Tally:
        assert folder.is_dir()
        slope = MEGABYTE if plan.fault else 0
        return Tally(samples=[(float(t), 100 * MEGABYTE + slope * t) for t in range(100)])

    monkeypatch.setattr(soak, "campaign", pretend)
    assert soak.main(["--minutes", "1"]) == 0
    assert "memory is flat" in capsys.readouterr().out
    assert soak.main(["--fault", "leak"]) == 1
    assert "FAILED" in capsys.readouterr().out
