"""The load benchmark notices what would make its figures worthless; and wrk is found, or said to be missing."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import load
from benchmarks.load import Measured, Tally, measure
from benchmarks.servers import Caller, Server, serving
from pamo.store import ArmAdded, DecisionMade, FeedbackGiven, Objective, Setup, open_store
from scripts import wrk

SEEN = {"answers": 1000, "refused": 0, "lost": 0, "missing": 0, "decided": 0, "recorded": 0, "seconds": 2.0}
SEEN |= {"p50": 1.0, "p90": 2.0, "p99": 3.0, "p99.9": 4.0, "worst": 5.0}


@pytest.fixture
def pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what makes a program that says it is wrk, and has seen this."""

    def pretend(**seen: float) -> None:
        path = tmp_path / "wrk"
        path.write_text(f"#!/bin/sh\necho 'wrk 4'\necho '{json.dumps(SEEN | seen)}'\n", encoding="utf-8")
        path.chmod(0o755)
        monkeypatch.setenv("PAMO_WRK", str(path))

    return pretend


def this_process() -> Server:
    server = Server.__new__(Server)
    server.url, server.pid = "http://127.0.0.1:9", os.getpid()
    return server


def test_what_wrk_saw_is_read(pretended: Any) -> None:
    pretended(decided=400, recorded=600)
    seen = measure("mix", this_process(), 32, 0.1)
    assert (seen.rate, seen.p99, seen.p999, seen.decided, seen.recorded) == (500.0, 3.0, 4.0, 400, 600)
    pretended()
    assert measure("feedback", this_process(), 32, 0.1).recorded == 1000
    assert measure("decide", this_process(), 32, 0.1).decided == 1000


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ({"missing": 1}, "ran out"),
        ({"refused": 3}, "3 refused"),
        ({"lost": 2}, "2 lost"),
        ({"answers": 0}, "of 0 answers"),
        ({"decided": 400, "recorded": 599}, "not all"),
    ],
)
def test_what_makes_a_figure_worthless_is_an_error(pretended: Any, seen: dict[str, int], said: str) -> None:
    pretended(**({"recorded": 1000} | seen))
    with pytest.raises(RuntimeError, match=said):
        measure("mix", this_process(), 32, 0.1)


def test_the_journal_has_to_hold_what_was_answered(tmp_path: Path) -> None:
    path = str(tmp_path / "load.db")
    with open_store(path, Setup((Objective("taste"),))) as store:
        store.append(ArmAdded("A", "A", 0.0))
        store.append_many([DecisionMade(f"d{n}", "ann", ("A",), 1.0, "p", 0.0) for n in range(5)])
        store.append_many([FeedbackGiven(f"d{n}", {"taste": 0.5}, 1.0) for n in range(3)])
    assert load.check(path, Tally(decisions=5, feedbacks=3)) == []
    assert "4 feedbacks were answered, and 3 are" in load.check(path, Tally(decisions=5, feedbacks=4))[0]
    assert "4 decisions were answered, and 5 are" in load.check(path, Tally(decisions=4, feedbacks=3))[0]


def tally_of(*rates: tuple[float, float, float]) -> Tally:
    """Return rounds of these rates of the echo and of feedback, and its p99."""

    def seen(what: str, rate: float, p99: float = 1.0) -> Measured:
        return Measured(what, int(rate), 1.0, 1.0, p99, 5.0, 9.0, 50.0)

    several = [
        {
            "echo": seen("echo", a),
            "feedback": seen("feedback", b, c),
            "decide": seen("decide", b),
            "mix": seen("mix", b),
        }
        for a, b, c in rates
    ]
    return Tally(several, [0.1] * len(several))


def test_goals_are_held_against_the_medians_of_the_rounds() -> None:
    options = argparse.Namespace(connections=32, users=5, rounds=3, seconds=1.0)
    slow = tally_of((100, 60, 20), (200, 90, 16), (400, 160, 1))
    assert slow.ratio("feedback") == 0.45  # of the ratios, not the ratio of medians
    assert [met for _, _, met in load.goals(slow, "load.db")] == [False, False]
    assert load.table(slow, options, "load.db", []).count("MISSED") == 2
    fast = tally_of((100, 60, 14), (200, 100, 16), (400, 160, 1))
    assert [met for _, _, met in load.goals(fast, "load.db")] == [True, True]
    assert "MISSED" not in load.table(fast, options, "load.db", [])
    assert load.goals(slow, "postgresql://…") == []
    assert "one is missing" in load.table(fast, options, "load.db", ["one is missing"])
    assert json.loads(load.as_json(fast, options, "load.db", []))["ratio"]["feedback"] == 0.5


def test_decisions_are_made_ahead_and_each_is_there_once(tmp_path: Path) -> None:
    with Server(serving("load.db"), tmp_path) as server:
        made = load.decide_ahead(server, 1500, 40, tmp_path / "ids")
        ids = (tmp_path / "ids").read_text(encoding="utf-8").split()
        assert made == len(ids) == len(set(ids)) == 2000
        caller = Caller(server)
        assert caller.ask("GET", "/v1/statistics")["pending_decisions"] == 2000
        with pytest.raises(RuntimeError, match="answered 404"):
            caller.ask("GET", "/v1/decisions/none")
        caller.close()
        assert server.cpu_seconds() > 0
        assert server.memory() > 10**7


def test_wrk_is_found_or_the_sentence_says_what_to_do(pretended: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pretended()
    assert wrk.find().endswith("/wrk")
    monkeypatch.setenv("PAMO_WRK", sys.executable)
    with pytest.raises(LookupError, match="PAMO_WRK should be a wrk that starts"):
        wrk.find()
    monkeypatch.delenv("PAMO_WRK")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(LookupError, match="apt-get install wrk"):
        wrk.find()
    assert load.main(["--seconds", "1"]) == 1


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pamo", "serve", "--store", "new.db", "--port", "0"]  # without objectives
    with pytest.raises(RuntimeError, match="objectives"), Server(command, tmp_path):
        pass
