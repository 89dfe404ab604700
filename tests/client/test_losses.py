"""Both clients against the real service while answers are lost, others ask as well, and the service is killed."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.servers import served
from pamo import AsyncClient, Client, Engine
from pamo.service import create_app
from tests.client.faces import Kind, answered
from tests.client.service import Process


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine(["price: 0..500, lower is better", "taste: 1..5"], overall="overall: 1..5", seed=1) as engine:
        engine.add_arm("A", "Anchor Inn")
        engine.add_arm("B")
        yield engine


class Lossy(httpx.HTTPTransport):
    """Loses a quarter of the requests, and a quarter of the answers."""

    chance = random.Random(5)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.chance.random() < 0.25:
            raise httpx.ConnectError("lost on the way there", request=request)
        response = super().handle_request(request)
        response.read()
        if self.chance.random() < 0.25:
            raise httpx.ReadError("lost on the way back", request=request)
        return response


class AsyncLossy(httpx.AsyncHTTPTransport):
    """The same, for asyncio."""

    chance = random.Random(5)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.chance.random() < 0.25:
            raise httpx.ConnectError("lost on the way there", request=request)
        response = await super().handle_async_request(request)
        await response.aread()
        if self.chance.random() < 0.25:
            raise httpx.ReadError("lost on the way back", request=request)
        return response


async def _no_time(seconds: float) -> None:
    """Let no time go by."""


def test_over_a_network_that_loses_half_nothing_is_decided_or_counted_twice(kind: Kind, engine: Engine) -> None:
    async def visit(client: Any) -> list[str]:
        statuses = []
        for number in range(60):
            decision = await answered(client.decide(f"user {number}"))
            answer = await answered(client.feedback(decision.id, {"price": 100, "taste": 3}, overall=3))
            statuses.append(answer.status)
        many = await answered(client.decide_many([f"user {number}" for number in range(20)]))
        items = [{"decision_id": one.id, "rewards": {"price": 100, "taste": 3}, "overall": 3} for one in many]
        results = await answered(client.feedback_many(items))
        assert all(one.error is None for one in results)
        return statuses

    with served(create_app(engine)) as url:
        client: Any
        if kind is Client:
            client = Client(url, retries=50, transport=Lossy(), sleep=lambda seconds: None)
        else:
            client = AsyncClient(url, retries=50, transport=AsyncLossy(), sleep=_no_time)

        async def run() -> list[str]:
            try:
                return await visit(client)
            finally:
                await answered(client.close())

        statuses = asyncio.run(run())
    assert set(statuses) == {"recorded", "duplicate"}
    assert engine.store.pending() == 0
    assert sum(arm.pulls for arm in engine.arms()) == 80


def test_a_client_serves_many_threads(engine: Engine) -> None:
    failures: list[BaseException] = []

    def visit(user: str) -> None:
        try:
            for _ in range(10):
                decision = client.decide(user)
                assert decision.user == user
                client.feedback(decision.id, {"price": 100, "taste": 3}, overall=3)
        except BaseException as error:
            failures.append(error)

    with served(create_app(engine)) as url, Client(url) as client:
        threads = [threading.Thread(target=visit, args=(f"user {number}",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert sum(arm.pulls for arm in engine.arms()) == 80


def test_a_client_serves_many_tasks_in_process(engine: Engine) -> None:
    async def visit(client: AsyncClient, user: str) -> str:
        decision = await client.decide(user)
        assert decision.user == user
        return (await client.feedback(decision.id, {"price": 100, "taste": 3}, overall=3)).status

    async def run() -> list[str]:
        transport = httpx.ASGITransport(app=create_app(engine))
        async with AsyncClient(transport=transport) as client:
            return await asyncio.gather(*(visit(client, f"user {number}") for number in range(80)))

    assert asyncio.run(run()) == ["recorded"] * 80
    assert sum(arm.pulls for arm in engine.arms()) == 80


def test_calls_outlast_a_service_that_is_killed_and_started_again(kind: Kind, tmp_path: Path) -> None:
    service = Process(tmp_path / "store.db")
    service.start()
    restarts = 0

    def restart(seconds: float) -> None:
        nonlocal restarts
        restarts += 1
        service.start()

    async def restart_too(seconds: float) -> None:
        restart(seconds)

    async def visit() -> None:
        client: Any = (
            Client(service.url, sleep=restart) if kind is Client else AsyncClient(service.url, sleep=restart_too)
        )
        try:
            decision = await answered(client.decide("ann", key="request-17"))
            service.kill()
            answer = await answered(client.feedback(decision.id, {"taste": 4}, overall=0.5))
            assert answer.status == "recorded"
            service.kill()
            assert await answered(client.decide("ann", key="request-17")) == decision
            assert (await answered(client.feedback(decision.id, {"taste": 4}, overall=0.5))).status == "duplicate"
            assert (await answered(client.statistics()))["complete_feedbacks"] == 1
        finally:
            await answered(client.close())

    try:
        asyncio.run(visit())
    finally:
        service.kill()
    assert restarts == 2
