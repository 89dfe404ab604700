"""A service that is told to stop closes its store before it ends."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from benchmarks.servers import Caller, Server, serving


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_stop_closes_the_store(tmp_path: Path, number: signal.Signals) -> None:
    with Server(serving("stop.db"), tmp_path) as server:
        caller = Caller(server)
        decision = caller.ask("POST", "/v1/decisions", {"user": "ann"})
        caller.ask("POST", f"/v1/decisions/{decision['id']}/feedback", {"rewards": {"taste": 4}})
        caller.close()
        assert server.stop(number) == 0
    assert {path.name for path in tmp_path.glob("stop.db*")} >= {"stop.db", "stop.db.snapshot.npz"}
    assert not (tmp_path / "stop.db-wal").exists()
