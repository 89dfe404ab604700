"""A service that finds nothing compiled answers at once, the same as ever, and switches over when the code is there."""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.first_start import ask, requests
from benchmarks.servers import Caller, Server, serving
from pamo import Engine, interpreting
from pamo.service import server, warming
from pamo.service.settings import Settings
from pamo.service.warming import COMPILED, UNCOMPILED, Need, Warming


def answered(running: Server, count: int = 25) -> list[Any]:
    caller = Caller(running)
    answers = [ask(caller, request) for request in itertools.islice(requests(), count)]
    caller.close()
    return answers


def children_of(pid: int) -> list[int]:
    by_thread = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(one) for children in by_thread for one in children.read_text(encoding="utf-8").split()]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="Linux tells what a process has taken")
def test_from_an_empty_cache_it_answers_at_once_what_it_always_answers(tmp_path: Path) -> None:
    command, empty = serving("memory:", "--seed", "1"), {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    with Server(command, tmp_path, empty, compiled=False) as first:
        answers = answered(first)
        # Three seconds until the first answer on a quiet machine, see `benchmarks.first_start`; tests crowd each other.
        assert first.cpu_seconds() < 10.0
        assert first.log.count(UNCOMPILED) == 1
        (child,) = children_of(first.pid)
        assert first.stop() == 0
    assert not Path(f"/proc/{child}").exists(), "what compiled for it is left behind"
    assert not [*tmp_path.rglob("choose_hidden*.nbc")], "something was compiled before it answered"
    with Server(command, tmp_path) as usual:
        assert UNCOMPILED not in usual.log or COMPILED in usual.log
        assert answered(usual) == answers


@pytest.fixture
def standing_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Has Python stand in, where the cache is taken to have nothing; gives what is loaded by whom."""
    loaded: list[str] = []

    def warm(need: Need) -> None:
        if interpreting.refusing():
            raise interpreting.NotCompiledError
        loaded.append(f"{need.policy} {interpreting.standing_in()}")

    monkeypatch.setattr(warming, "warm", warm)
    interpreting.stand_in()
    yield loaded
    interpreting.compile_again()


def run_instead(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(Need, "command", [sys.executable, "-c", program])


def wait_for(log: Any, sentence: str) -> str:
    told, until = "", time.monotonic() + 60
    while sentence not in told and time.monotonic() < until:
        time.sleep(0.02)
        told += log.readouterr().err
    return told


@pytest.mark.parametrize(("program", "failed"), [("", False), ("raise SystemExit('no room')", True)])
def test_it_switches_when_the_code_is_there_and_tells_of_it(
    program: str,
    failed: bool,
    monkeypatch: pytest.MonkeyPatch,
    standing_in: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_instead(monkeypatch, program)
    with Engine(["price", "taste", "service"], "prts", seed=1) as engine:
        begun = Warming()
        begun.begin([engine])
        assert interpreting.standing_in()
        begun.follow()
        told = wait_for(capsys, COMPILED)
        begun.stop()
    assert (told.count(UNCOMPILED), told.count(COMPILED), "no room" in told) == (1, 1, failed)
    assert standing_in == ["prts False"]
    assert not interpreting.standing_in()


def test_one_that_is_stopped_before_ends_what_compiles_for_it(
    monkeypatch: pytest.MonkeyPatch, standing_in: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run_instead(monkeypatch, "import time; time.sleep(600)")
    with Engine(["price", "taste", "service"], seed=1) as engine:
        begun = Warming()
        begun.begin([engine])
        begun.follow()
        begun.stop()
    assert not [one for one in threading.enumerate() if one.name == "pamo-warming"]
    assert (standing_in, COMPILED in capsys.readouterr().err) == ([], False)
    assert not interpreting.standing_in()


def test_a_store_that_holds_much_waits_for_compiled_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = str(tmp_path / "pamo.db")
    settings = Settings(store=address, objectives=("price", "taste", "service"), arms=("A", "B"))
    assert not server._holds_much(settings)  # there is none yet
    engine = server.open_engine(settings)
    engine.close()
    engine.store.close()
    assert not server._holds_much(settings)
    monkeypatch.setattr(server, "MUCH", 8)
    assert server._holds_much(settings)
    assert os.path.exists(address)
