"""A server that is stopped finishes what it was asked, and one that is started goes on where the last one was."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from campaigns.checking import check
from campaigns.ledger import Ledger
from campaigns.processes import Server
from campaigns.visitors import Visitor
from campaigns.wire import Line
from pamo.store import open_store

FEEDBACK = {"rewards": {"price": 120.0, "taste": 4.0, "service": 0.25}, "overall": 4.5}
OTHERS = [
    {"rewards": {"price": 35.0 * n, "taste": 1.0 + n % 5, "service": n % 7 / 7}, "overall": 1.0 + n % 4}
    for n in range(12)
]


async def known(server: Server, paths: list[str]) -> list[Any]:
    """Return what the server answers to each of these."""
    assert server.address is not None
    line = Line()
    answers = [await line.ask(server.address, "GET", path) for path in paths]
    line.close()
    assert {status for status, _ in answers} == {200}, answers
    return [answer for _, answer in answers]


async def recorded(server: Server, decision: str, feedback: Any = FEEDBACK) -> str:
    """Give the feedback to a decision, and return the status."""
    assert server.address is not None
    line = Line()
    status, answer = await line.ask(server.address, "POST", f"/v1/decisions/{decision}/feedback", feedback)
    line.close()
    assert status == 200, answer
    return str(answer["status"])


async def decided(server: Server, user: str) -> str:
    assert server.address is not None
    line = Line()
    status, answer = await line.ask(server.address, "POST", "/v1/decisions", {"user": user})
    line.close()
    assert status == 201, answer
    return str(answer["id"])


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_it_goes_on_where_it_was(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    address = str(tmp_path / "journal.db")
    if kind == "postgresql":
        new: Callable[[], str] = request.getfixturevalue("postgres_url")
        address = new()

    async def run() -> None:
        server = Server(address, tmp_path)
        await server.start()
        fed = [await decided(server, f"user {number % 3}") for number in range(12)]
        for decision, feedback in zip(fed, OTHERS, strict=True):
            assert await recorded(server, decision, feedback) == "recorded"
        waiting = await decided(server, "user 0")
        paths = ["/v1/arms", "/v1/statistics", *(f"/v1/users/user%20{number}" for number in range(3))]
        paths += [f"/v1/users/user%20{number}/preference" for number in range(4)]
        paths += [f"/v1/decisions/{waiting}", f"/v1/decisions/{fed[0]}"]
        before = await known(server, paths)
        assert before[1]["pending_decisions"] == 1
        assert before[1]["complete_feedbacks"] == 12
        for number in (signal.SIGTERM, signal.SIGKILL):
            code = await server.end(number)
            assert code == (0 if number is signal.SIGTERM else -signal.SIGKILL)
            await server.start()
            assert await known(server, paths) == before
        assert await recorded(server, fed[5], OTHERS[5]) == "duplicate"
        assert await recorded(server, waiting) == "recorded"
        (after,) = await known(server, ["/v1/statistics"])
        assert (after["pending_decisions"], after["complete_feedbacks"]) == (0, 13)
        assert await server.end(signal.SIGTERM) == 0

    asyncio.run(run())


def test_a_request_under_way_is_finished_and_acknowledged(tmp_path: Path) -> None:
    """Its body comes only after the server was told to stop, and has closed its door."""

    async def run() -> str:
        server = Server(str(tmp_path / "journal.db"), tmp_path)
        await server.start()
        decision = await decided(server, "ann")
        assert server.address is not None
        host, port = server.address
        reader, writer = await asyncio.open_connection(host, port)
        body = json.dumps(FEEDBACK).encode()
        head = [f"POST /v1/decisions/{decision}/feedback HTTP/1.1", f"host: {host}:{port}", "expect: 100-continue"]
        head += ["content-type: application/json", f"content-length: {len(body)}", "", ""]
        writer.write("\r\n".join(head).encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")  # the application waits for the body
        stopping = asyncio.create_task(server.end(signal.SIGTERM))
        while True:
            try:
                _, other = await asyncio.open_connection(host, port)
            except ConnectionError:
                break
            other.transport.abort()
        assert not stopping.done()
        writer.write(body)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 200")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["status"] == "recorded"
        writer.close()
        assert await stopping == 0
        return decision

    decision = asyncio.run(run())
    with open_store(tmp_path / "journal.db") as store:
        kept = store.feedback(decision)
        assert kept is not None
        assert kept.rewards == FEEDBACK["rewards"]


def test_nothing_acknowledged_is_lost_by_stops_under_load(tmp_path: Path) -> None:
    ledger = Ledger()

    async def run() -> None:
        server = Server(str(tmp_path / "journal.db"), tmp_path)
        await server.start()
        stop = asyncio.Event()
        clients = [asyncio.create_task(Visitor(n, 5, [server], ledger, stop).run()) for n in range(8)]
        for _ in range(2):
            enough = ledger.answers + 60
            while ledger.answers < enough:
                await asyncio.sleep(0.005)
            assert await server.end(signal.SIGTERM) == 0
            with open_store(tmp_path / "journal.db") as store:
                found = check(store, ledger)
                assert found.ok, found
            await server.start()
        stop.set()
        await asyncio.gather(*clients)
        assert await server.end(signal.SIGTERM) == 0

    asyncio.run(run())
    assert ledger.wrong == []
    with open_store(tmp_path / "journal.db") as store:
        found = check(store, ledger)
        assert found.ok, found
        # Somebody who was erased may have left before giving feedback.
        assert store.pending() == sum(not visit.acknowledged for visit in ledger.visits.values())
