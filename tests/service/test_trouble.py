"""Bodies that are too large, too slow or of another kind; stores that are stuck or stopped; too many at once."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks import servers
from pamo import Engine
from pamo.contract.objectives import objectives
from pamo.store import Event, MemoryStore, Receipt, Setup
from tests.service.calling import KEYS, OBJECTIVES, SCORES, Serve, Service, check_problem, engine_of


class StuckStore(MemoryStore):
    """Records nothing until it is let go."""

    def __init__(self) -> None:
        super().__init__(Setup(objectives(OBJECTIVES)))
        self.stuck = False
        self.held: list[tuple[Sequence[Event], Future[list[Receipt]]]] = []

    def submit_many(self, events: Sequence[Event]) -> Future[list[Receipt]]:
        if not self.stuck:
            return super().submit_many(events)
        for event in events:
            self.check(event)
        self.held.append((events, Future()))
        return self.held[-1][1]

    def let_go(self) -> None:
        self.stuck = False
        for events, done in self.held:
            if done.set_running_or_notify_cancel():
                done.set_result(super().submit_many(events).result())
        self.held.clear()


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_large_body(serve: Serve, method: str) -> None:
    service = serve(max_body_bytes=100)
    path = "/v1/decisions" if method == "POST" else "/v1/arms/D"
    before = service.journal()
    for body in (b"x" * 101, pieces(b"x" * 60, b"x" * 60), pieces(b"x" * 101), pieces(b"", b"x" * 1000, b"x")):
        response = service.send(method, path, body)
        assert response.status_code == 413
        check_problem(response)
        assert "100 bytes" in response.json()["detail"]
        assert response.headers["connection"] == "close"
    assert service.journal() == before
    exact = b'{"user": "ann"}'.ljust(100)
    assert service.send("POST", "/v1/decisions", exact).status_code == 201
    assert (
        service.send("POST", "/v1/decisions", pieces(*(exact[n : n + 7] for n in range(0, 100, 7)))).status_code == 201
    )


def test_a_declared_length_is_believed_before_anything_is_read(serve: Serve) -> None:
    service = serve(max_body_bytes=100)

    async def endless() -> AsyncIterator[bytes]:
        raise AssertionError("the body was read")
        yield b""

    assert service.send("POST", "/v1/decisions", endless(), content_length="101").status_code == 413


def test_a_slow_body(serve: Serve) -> None:
    service = serve(timeout_seconds=0.05)

    async def slow() -> AsyncIterator[bytes]:
        yield b'{"user":'
        await asyncio.Event().wait()

    response = service.send("POST", "/v1/decisions", slow())
    assert response.status_code == 408
    check_problem(response)
    assert response.headers["connection"] == "close"


def hand(service: Service, *messages: dict[str, Any]) -> int:
    """Hand the application a request for a decision piece by piece, and return the status of its answer."""
    left, sent = list(messages), []
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/decisions",
        "raw_path": b"/v1/decisions",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        "query_string": b"",
    }

    async def receive() -> Any:
        return left.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    service.run(service.app(scope, receive, send))
    status: int = sent[0]["status"]
    return status


def test_a_connection_that_ends_within_the_body(service: Service) -> None:
    """Half a body may be valid JSON, and was not meant."""
    before = service.journal()
    begun = {"type": "http.request", "body": b'{"user": "ann"}', "more_body": True}
    assert hand(service, begun, {"type": "http.disconnect"}) == 400
    assert service.journal() == before
    assert hand(service, {**begun, "more_body": False}) == 201


def test_a_large_body_in_one_piece_of_unknown_length(serve: Serve) -> None:
    service = serve(max_body_bytes=100)
    exact = {"type": "http.request", "body": b'{"user": "ann"}'.ljust(100), "more_body": False}
    assert hand(service, exact) == 201
    assert hand(service, {**exact, "body": b'{"user": "ann"}'.ljust(101)}) == 413


KINDS = {
    "application/json": True,
    "application/json; charset=utf-8": True,
    "Application/JSON ;charset=utf-8": True,
    "text/plain": False,
    "application/x-www-form-urlencoded": False,
    "application/jsonlines": False,
    "application/json-patch+json": False,
    "": False,
}


@pytest.mark.parametrize(("kind", "taken"), KINDS.items())
def test_the_kind_of_a_body(service: Service, kind: str, taken: bool) -> None:
    for method, path in (("POST", "/v1/decisions"), ("PUT", "/v1/arms/D")):
        body = b'{"user": "ann"}' if method == "POST" else b"{}"
        response = service.send(method, path, body, content_type=kind)
        assert response.status_code == ((201 if method == "POST" else 200) if taken else 415)
        if not taken:
            check_problem(response)


def test_a_body_without_a_kind(service: Service) -> None:
    response = service.run(service.client.post("/v1/decisions", content=b'{"user": "ann"}'))
    assert response.status_code == 415
    assert service.run(service.client.put("/v1/arms/D")).status_code == 200  # nothing was sent


def test_a_stuck_store(serve: Serve) -> None:
    """After the time limit there is an answer and no acknowledgement; the same may be sent again."""
    store = StuckStore()
    engine = Engine(store=store, seed=1)
    engine.add_arm("A")
    service = serve(engine, timeout_seconds=0.05)
    made = service.decide()
    store.stuck = True
    before = service.journal()
    attempts: list[tuple[str, str, Any]] = [
        ("POST", "/v1/decisions", {"user": "ann"}),
        ("POST", "/v1/decisions/batch", {"requests": [{"user": "ann"}]}),
        ("POST", f"/v1/decisions/{made['id']}/feedback", {"rewards": SCORES}),
        ("POST", "/v1/feedback/batch", {"feedback": [{"id": made["id"], "rewards": SCORES}]}),
        ("PUT", "/v1/arms/D", {}),
        ("DELETE", "/v1/arms/A", None),
        ("DELETE", "/v1/users/ann", None),
    ]
    for method, path, body in attempts:
        response = service.ask(method, path, body)
        assert response.status_code == 503, path
        check_problem(response)
        assert int(response.headers["retry-after"]) >= 1
    assert service.get("/healthz") == {"status": "ok"}
    assert service.journal() == before
    store.let_go()
    again = service.feedback(made["id"], rewards=SCORES)
    assert again["status"] in {"recorded", "duplicate"}
    assert service.get("/v1/statistics")["complete_feedbacks"] == 1


def test_reading_that_takes_too_long(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    service = serve(timeout_seconds=0.05)
    over = threading.Event()
    try:
        for name, path in (("arms", "/v1/arms"), ("preference", "/v1/users/ann/preference"), ("arm", "/v1/arms/A")):
            monkeypatch.setattr(service.engine, name, lambda *arguments: over.wait())
            response = service.ask("GET", path)
            assert response.status_code == 503
            check_problem(response)
    finally:
        over.set()


def test_a_stopped_store(serve: Serve, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails stops the store: 503 and no acknowledgement, not ready, and still alive."""
    service = serve(engine_of(store=f"{tmp_path}/journal.db"))
    made = service.decide()
    store: Any = service.engine.store

    def full(records: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(store, "_insert", full)
        assert "No space left" in service.feedback(made["id"], 503, rewards=SCORES)["detail"]
    # The disk is well again, but nobody knows what is on it.
    response = service.ask("POST", f"/v1/decisions/{made['id']}/feedback", {"rewards": SCORES})
    assert response.status_code == 503
    check_problem(response)
    assert int(response.headers["retry-after"]) >= 1
    service.decide(status=503)
    for path in ("/readyz", "/healthz"):  # only a new start helps
        assert "stopped" in service.get(path, 503)["detail"]
    assert service.get(f"/v1/decisions/{made['id']}")["feedback"] is None
    assert service.get("/v1/arms")["arms"][0]["pulls"] == 0
    assert "pamo_ready 0.0" in service.ask("GET", "/metrics").text


def test_a_disk_that_takes_no_writes(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not ready, and says so without naming files to whom it does not know."""
    with engine_of(store=tmp_path / "journal.db") as engine:
        service, keyed = serve(engine), serve(engine, keys=KEYS)
        service.get("/readyz")
        monkeypatch.setattr(os, "access", lambda path, mode: False)
        assert "journal.db cannot be written to" in service.get("/readyz", 503)["detail"]
        assert service.get("/healthz") == {"status": "ok"}  # a new start would not help
        assert "journal.db" not in str(keyed.get("/readyz", 503))


SERVE = """
import sys
from pamo.cli import main
from pamo.store.sqlite import SqliteStore

append = SqliteStore._append

def fail(self, events):
    if any(getattr(event, "user", None) == "mal" for event in events):
        raise self._fail(OSError(28, "No space left on device"))
    return append(self, events)

SqliteStore._append = fail
sys.exit(main(sys.argv[1:]))
"""


def test_a_server_whose_store_has_stopped_says_so_when_it_ends(tmp_path: Path) -> None:
    flags = ["serve", "--port", "0", "--store", str(tmp_path / "journal.db"), "--objectives", "taste", "--arms", "A,B"]
    server = servers.Server([sys.executable, "-c", SERVE, *flags])
    try:
        assert httpx.post(f"{server.url}/v1/decisions", json={"user": "ann"}).status_code == 201
        assert httpx.post(f"{server.url}/v1/decisions", json={"user": "mal"}).status_code == 503
        assert httpx.get(f"{server.url}/healthz").status_code == 503
        assert server.stop() == 4
    finally:
        server.end()


def test_a_closed_store(service: Service) -> None:
    service.engine.store.close()
    service.decide(status=503)
    assert "closed" in service.get("/readyz", 503)["detail"]


def test_too_many_at_once(serve: Serve) -> None:
    store = StuckStore()
    engine = Engine(store=store, seed=1)
    engine.add_arm("A")
    service = serve(engine, max_waiting=3)

    async def rush() -> list[int]:
        store.stuck = True
        tasks = [asyncio.ensure_future(service.client.post("/v1/decisions", json={"user": "ann"})) for _ in range(8)]
        while sum(task.done() for task in tasks) < 5:
            await asyncio.sleep(0)
        healthy = await service.client.get("/healthz")
        assert healthy.status_code == 200
        store.let_go()
        answers = [await task for task in tasks]
        for one in answers:
            if one.status_code == 503:
                check_problem(one)
                assert int(one.headers["retry-after"]) >= 1
        return sorted(one.status_code for one in answers)

    assert service.run(rush()) == [201] * 3 + [503] * 5
    service.decide()  # and then there is room again


def test_a_failure_that_nobody_foresaw(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(service.engine.core.decider, "choose", fail)
    problem = service.decide(status=500)
    assert "secret" not in str(problem)
    monkeypatch.undo()
    service.decide()
