"""Each feedback delivered one to five times, in any order, by many clients at once: the same state as once each."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from dataclasses import fields
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from benchmarks.servers import address_of, served
from campaigns.wire import Line
from campaigns.world import feedback
from pamo.contract.events import FeaturesDeclared
from pamo.engine import Engine
from pamo.service import create_app
from pamo.store import (
    ArmAdded,
    DecisionMade,
    Event,
    FeedbackGiven,
    MemoryStore,
    Objective,
    Setup,
    Store,
    UserKnown,
    open_store,
)
from pamo.store.maintenance import verify

SETUP = Setup(
    (Objective("price", 0, 500, lower_is_better=True), Objective("taste", 1, 5), Objective("service")),
    Objective("overall", 1, 5),
)
DECISIONS, CLIENTS, USERS = 150, 12, 9
Address = tuple[str, int]


async def deliver(addresses: list[Address], random: Random) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Decide, and deliver each feedback one to five times; return the bodies and the answers by decision."""
    lines = [Line() for _ in range(CLIENTS)]
    bodies: dict[str, Any] = {}
    for number in range(DECISIONS):
        request: dict[str, Any] = {"user": f"user {number % USERS}"}
        if number % 3 == 0:
            request["features"] = {"age": random.randint(20, 70)}
        if number % 4 == 0:
            request["arms"] = {arm: {"price": random.uniform(0, 500)} for arm in "ABC"}
        ask, keyed = ("POST", "/v1/decisions", request), {"idempotency-key": f"key {number}"}
        status, decision = await lines[0].ask(random.choice(addresses), *ask, keyed)
        assert status == 201, decision
        assert (await lines[0].ask(random.choice(addresses), *ask, keyed))[1] == decision
        bodies[decision["id"]] = feedback(random)
        if "arms" in request:
            bodies[decision["id"]]["rewards"]["price"] = request["arms"][decision["arm"]]["price"]
    deliveries = [one for one in bodies for _ in range(random.randint(1, 5))]
    random.shuffle(deliveries)
    answers: dict[str, list[Any]] = defaultdict(list)

    async def client(line: Line) -> None:
        while deliveries:
            some = [deliveries.pop() for _ in range(min(len(deliveries), random.choice([1, 1, 1, 4])))]
            address = random.choice(addresses)
            if len(some) > 1:
                batch = {"feedback": [{"id": one, **bodies[one]} for one in some]}
                status, answer = await line.ask(address, "POST", "/v1/feedback/batch", batch)
                assert status == 200, answer
                for one, result in zip(some, answer["results"], strict=True):
                    answers[one].append(result)
            for one in some if len(some) == 1 else ():
                status, answer = await line.ask(address, "POST", f"/v1/decisions/{one}/feedback", bodies[one])
                assert status == 200, answer
                answers[one].append(answer)

    await asyncio.gather(*map(client, lines))
    await at_once(addresses, lines, random, bodies, answers)
    for line in lines:
        line.close()
    return bodies, answers


async def at_once(addresses: list[Address], lines: list[Line], random: Random, bodies: Any, answers: Any) -> None:
    """Deliver feedbacks that nobody has delivered yet from all clients at once."""
    for number in range(10):
        request = {"user": f"user {number % USERS}"}
        _, decision = await lines[0].ask(random.choice(addresses), "POST", "/v1/decisions", request)
        one = decision["id"]
        bodies[one] = feedback(random)
        path = f"/v1/decisions/{one}/feedback"
        asked = [line.ask(random.choice(addresses), "POST", path, bodies[one]) for line in lines]
        answers[one] += [answer for _, answer in await asyncio.gather(*asked)]


def once_each(store: Store, bodies: dict[str, Any]) -> MemoryStore:
    """Return a store in memory with the same decisions, fed once each."""
    plain = MemoryStore(SETUP)
    events: list[Event] = []
    for _, event in store.events():
        if isinstance(event, ArmAdded | DecisionMade | FeaturesDeclared | UserKnown):
            events.append(event)
    for one, body in bodies.items():
        at = next(event.at for event in events if isinstance(event, DecisionMade) and event.id == one)
        events.append(FeedbackGiven(one, body["rewards"], at, body.get("overall"), body.get("preference")))
    for event in events:  # each by what those before it have declared
        plain.append(event)
    return plain


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgresql"])
def test_any_number_of_deliveries_is_one(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    addresses = {
        "memory": lambda: "memory:",
        "sqlite": lambda: str(tmp_path / "journal.db"),
        "postgresql": lambda: str(request.getfixturevalue("postgres_url")()),
    }

    async def run(stores: list[Store]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
        with contextlib.ExitStack() as stack:
            listening = []
            for number, store in enumerate(stores):
                engine = stack.enter_context(Engine(store=store, seed=number, user_features=["age"]))
                for arm in "ABC":
                    engine.add_arm(arm)
                listening.append(address_of(stack.enter_context(served(create_app(engine)))))
            return await deliver(listening, Random(f"retries {kind}"))

    with contextlib.ExitStack() as stack:
        address, workers = addresses[kind](), 2 if kind == "postgresql" else 1
        stores = [stack.enter_context(open_store(address, SETUP)) for _ in range(workers)]
        bodies, answers = asyncio.run(run(stores))
        for one, given in answers.items():
            assert Counter(answer["status"] for answer in given)["recorded"] == 1, (one, given)
            assert {answer["status"] for answer in given} <= {"recorded", "duplicate"}
            assert len({(tuple(answer["learned"]), tuple(answer["not_learned"])) for answer in given}) == 1
        assert answers.keys() == bodies.keys()
        assert sum(map(len, answers.values())) > 2.5 * DECISIONS
        store, plain = stores[0], once_each(stores[0], bodies)
        if kind == "postgresql":
            store._arms.forget()  # type: ignore[attr-defined]
        assert store.pending() == plain.pending() == 0
        users = [f"user {number}" for number in range(USERS)]
        assert store.known_of(users) == plain.known_of(users)
        assert all(store.known_of(users[::3]))
        pairs: list[tuple[Any, Any]] = [(store.users(users), plain.users(users))]
        ours, theirs = store.arms(), plain.arms()
        assert ours.ids == theirs.ids
        pairs.append((ours.statistics, theirs.statistics))
        for mine, yours in pairs:
            for field in fields(mine):
                np.testing.assert_allclose(getattr(mine, field.name), getattr(yours, field.name), rtol=1e-9, atol=1e-9)
        assert verify(store).differences == ()
