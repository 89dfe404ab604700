"""Work without a limit: what a request may cost, what is remembered, and that long work lets others have their turn."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from pamo import Engine
from pamo.engine import AsyncEngine
from pamo.engine import deciding as deciding_module
from pamo.errors import InputError
from tests.service.calling import Serve, check_problem, engine_of

OBJECTIVES = ("price: 0..500, lower is better", "taste: 1..5")


def many(count: int, **options: Any) -> Engine:
    engine = engine_of("", **options)
    engine.add_arms([f"arm-{n}" for n in range(count)])
    return engine


def test_what_a_request_may_cost_is_arms_times_k(serve: Serve) -> None:
    service = serve(many(50), max_cost=1000)
    assert len(service.decide(k=20)["arms"]) == 20
    refused = service.ask("POST", "/v1/decisions", {"user": "ann", "k": 21})
    assert refused.status_code == 422
    check_problem(refused, "k")
    assert "at most 1000, got 1050" in refused.json()["detail"]
    service.decide(k=1_000_000, arms=[f"arm-{n}" for n in range(31)])  # 31 of 31 are ranked
    batch = {"requests": [{"user": "ann", "k": 5}] * 4}
    assert service.ask("POST", "/v1/decisions/batch", batch).status_code == 200
    batch["requests"].append({"user": "bob"})
    before = len(service.journal())
    refused = service.ask("POST", "/v1/decisions/batch", batch)
    assert refused.status_code == 422
    check_problem(refused, "requests")
    assert "ask for less at once" in refused.json()["detail"]
    assert len(service.journal()) == before


def test_a_request_adds_so_many_arms_and_not_more(serve: Serve) -> None:
    service = serve(engine_of("", accept_new_arms=True, max_new_arms=10))
    service.decide(arms=[f"a{n}" for n in range(10)])
    refused = service.ask("POST", "/v1/decisions", {"user": "ann", "arms": [f"b{n}" for n in range(11)]})
    assert refused.status_code == 422
    check_problem(refused, "arms")
    assert "at most 10 new arms" in refused.json()["detail"]
    requests = [{"user": "ann", "arms": [f"c{n}"]} for n in range(11)]
    assert service.ask("POST", "/v1/decisions/batch", {"requests": requests}).status_code == 422
    assert len(service.get("/v1/arms")["arms"]) == 10


def test_a_long_batch_lets_others_have_their_turn() -> None:
    """The event loop is never held for longer than a few of its requests take."""

    async def ask(engine: Engine) -> tuple[float, float]:
        live = AsyncEngine(engine)
        await live.decide("ann", k=2)
        longest, done = 0.0, False

        async def watch() -> None:
            nonlocal longest
            while not done:
                since = time.perf_counter()
                await asyncio.sleep(0)
                longest = max(longest, time.perf_counter() - since)

        watching = asyncio.create_task(watch())
        began = time.perf_counter()
        made = await live.decide_many([{"user": f"user-{n}", "k": 200} for n in range(600)])
        took = time.perf_counter() - began
        done = True
        await watching
        assert [one.user for one in made] == [f"user-{n}" for n in range(600)]
        return longest, took

    with many(2000) as engine:
        longest, took = asyncio.run(ask(engine))
    assert longest < took / 4


def test_a_batch_that_takes_too_long_is_given_up(serve: Serve) -> None:
    engine = many(10)
    service = serve(engine, timeout_seconds=0.2)
    choose_many = engine.core.decider.choose_many

    def slowly(requests: Any) -> Any:
        time.sleep(0.02 * len(requests))
        return choose_many(requests)

    engine.core.decider.choose_many = slowly  # type: ignore[method-assign]
    refused = service.ask("POST", "/v1/decisions/batch", {"requests": [{"user": "ann"}] * 100})
    assert refused.status_code == 503
    assert "nothing is decided" in refused.json()["detail"]
    assert not any(type(event).__name__ == "DecisionMade" for event in service.journal())


def test_offers_are_remembered_up_to_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding_module, "REMEMBERED", 10_000)
    with many(400) as engine:
        decider: Any = engine.core.decider
        for n in range(200):
            arms = [f"arm-{(n + m) % 400}" for m in range(300)]
            engine.decide("ann", arms)
            assert sum(len(rows) for _, rows, _ in decider._offers.values()) <= 10_000
        kept = next(iter(decider._offers))
        table = engine.store.arms()
        assert all(any(arm is one for one in table.ids) for arm in kept[:3])  # and not copies of what was sent
        for k in range(1, 400):
            engine.decide("ann", k=k)
        assert sum(picks.nbytes for _, picks, *_ in decider._rooms.values()) < 100_000


def test_a_k_that_is_none_is_refused_before_it_is_reckoned_with() -> None:
    async def ask(engine: Engine) -> None:
        live = AsyncEngine(engine, max_cost=10)
        for k in (0, -3, "2", None, 10**30):
            with pytest.raises(InputError, match="expected k to be"):
                await live.decide_many([{"user": "ann", "k": k}])

    with many(3) as engine:
        asyncio.run(ask(engine))
