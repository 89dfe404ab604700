"""A disk that is full, or fails to sync, behind HTTP: 503, no acknowledgement, and nothing is tried again."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

from benchmarks.servers import address_of, served
from campaigns.wire import Line
from pamo.engine import Engine
from pamo.service import create_app
from pamo.store import Objective, Setup
from pamo.store.maintenance import verify
from pamo.store.sqlite import SqliteStore
from tests.store.test_sqlite import FullDisk

SETUP = Setup((Objective("price", 0, 500, lower_is_better=True), Objective("taste", 1, 5), Objective("service")))
FEEDBACK = {"rewards": {"price": 120.0, "taste": 4.0, "service": 0.5}, "overall": 0.75}


@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError])
def test_a_disk_that_fails(tmp_path: Path, error: type[apsw.Error], monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"http-{error.__name__}"
    disk = FullDisk(name, error)
    path = tmp_path / "journal.db"
    # Where apsw tells of errors in callbacks.
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)

    async def fail() -> tuple[list[str], list[str]]:
        with SqliteStore(path, SETUP, vfs=name) as store, Engine(store=store, seed=1) as engine:
            for arm in "ABC":
                engine.add_arm(arm)
            with served(create_app(engine)) as url:
                address = address_of(url)
                lines = [Line() for _ in range(6)]

                async def post(line: Line, path: str, body: Any) -> tuple[int, Any]:
                    return await line.ask(address, "POST", path, body)

                ids = [(await post(lines[0], "/v1/decisions", {"user": f"user {n}"}))[1]["id"] for n in range(12)]
                for one in ids[:6]:
                    assert (await post(lines[0], f"/v1/decisions/{one}/feedback", FEEDBACK))[0] == 200
                assert (await lines[0].ask(address, "GET", "/readyz"))[0] == 200
                disk.full = True
                paths = [f"/v1/decisions/{one}/feedback" for one in ids[6:]]
                asked = [post(line, path, FEEDBACK) for line, path in zip(lines, paths, strict=True)]
                refused = list(await asyncio.gather(*asked))
                syncs = disk.syncs
                disk.full = False  # room again, and still nobody knows what is on the disk
                refused += [await post(lines[0], path, FEEDBACK) for path in paths[:2]]
                refused.append(await post(lines[0], "/v1/decisions", {"user": "ann"}))
                refused.append(await post(lines[0], "/v1/decisions/batch", {"requests": [{"user": "ann"}]}))
                batch = {"feedback": [{"id": ids[6], **FEEDBACK}]}
                refused.append(await post(lines[0], "/v1/feedback/batch", batch))
                refused.append(await lines[0].ask(address, "PUT", "/v1/arms/D", {}))
                refused.append(await lines[0].ask(address, "GET", "/readyz"))
                for status, problem in refused:
                    assert status == 503
                    assert "has stopped" in problem["detail"]
                assert disk.syncs == syncs
                assert (await lines[0].ask(address, "GET", "/healthz"))[0] == 503  # only a new start helps
                status, user = await lines[0].ask(address, "GET", "/v1/users/user%200/preference")
                assert (status, user["rounds"]) == (200, 1)  # what was acknowledged can still be read
                status, arms = await lines[0].ask(address, "GET", "/v1/arms")
                assert sum(arm["pulls"] for arm in arms["arms"]) == 6
                for line in lines:
                    line.close()
        return ids[:6], ids[6:]

    async def go_on(acknowledged: list[str], refused: list[str]) -> None:
        with SqliteStore(path) as store, Engine(store=store) as engine:
            assert verify(store).ok
            with served(create_app(engine)) as url:
                line, address = Line(), address_of(url)
                assert (await line.ask(address, "GET", "/readyz"))[0] == 200
                for one in acknowledged:
                    _, answer = await line.ask(address, "POST", f"/v1/decisions/{one}/feedback", FEEDBACK)
                    assert answer["status"] == "duplicate"
                for one in refused:  # what got no acknowledgement may be there, or not, and is sent again
                    status, answer = await line.ask(address, "POST", f"/v1/decisions/{one}/feedback", FEEDBACK)
                    assert status == 200, answer
                line.close()
            assert verify(store).ok
            assert store.pending() == 0
            assert store.arms().statistics.pulls.sum() == len(acknowledged) + len(refused)

    acknowledged, refused = asyncio.run(fail())
    asyncio.run(go_on(acknowledged, refused))
