"""What an engine forgets, and what it goes by once its objectives are declared anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pamo import Engine
from pamo.engine import Lookout
from pamo.errors import InputError
from pamo.store.maintenance import verify


def play(engine: Engine, means: Any, tastes: Any, rounds: int, draws: Any) -> float:
    """Let users come, and return the share of rounds in which each got the arm that is best for them."""
    right = []
    names = [one.name for one in engine.objectives]
    for _ in range(rounds):
        for user, taste in enumerate(tastes):
            decision = engine.decide(f"user-{user}")
            arm = int(decision.arm)
            scores = np.clip(means[arm] + 0.05 * draws.standard_normal(len(names)), 0.0, 1.0)
            engine.feedback(decision, dict(zip(names, scores.tolist(), strict=True)), float(taste @ scores))
            right.append(arm == int(np.argmax(means @ taste)))
    return float(np.mean(right))


MEANS = np.array([[0.9, 0.2], [0.2, 0.9], [0.5, 0.5]])


@pytest.mark.parametrize("lives", ["arms: 8 rounds", "arms: 0.01 days", "users: 5 rounds, arms: 0.02 days"])
def test_an_engine_that_forgets_follows_arms_that_change(lives: str) -> None:
    draws, tastes, seconds = np.random.default_rng(1), np.array([[0.9, 0.1], [0.1, 0.9], [0.8, 0.2]]), [0.0]

    def clock() -> float:
        seconds[0] += 10.0
        return seconds[0]

    with Engine(["a", "b"], half_life=lives, seed=1, clock=clock) as engine:
        engine.add_arms(["0", "1", "2"])
        play(engine, MEANS, tastes, 40, draws)
        play(engine, MEANS[::-1], tastes, 25, draws)
        assert play(engine, MEANS[::-1], tastes, 10, draws) > 0.85
        assert not [event for _, event in engine.store.events() if type(event).__name__.endswith("Changed")]
        assert verify(engine.store).ok
        assert engine.preference("user-0").rounds == 75


def test_half_lives_are_the_stores_and_outlive_the_engine(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with Engine(["a", "b"], store=path, half_life="users: 2 rounds", seed=1) as engine:
        engine.add_arms(["0", "1"])
        for _ in range(6):
            engine.feedback(engine.decide("ann"), {"a": 0.5, "b": 0.5}, 0.5)
        faded = engine.store.users(["ann"]).plain[0, 0, 0]
        assert faded == pytest.approx(sum(2.0 ** (-n / 2) for n in range(6)))
    with Engine(store=path) as engine:
        assert engine.store.users(["ann"]).plain[0, 0, 0] == pytest.approx(faded)
        events = len(list(engine.store.events()))
    with Engine(store=path, half_life={"users": "2 rounds"}) as engine:
        assert len(list(engine.store.events())) == events  # the same again is nothing new
    with pytest.raises(InputError) as caught:
        Engine(store=path, half_life="0 days")
    assert caught.value.field == "half_life.users"
    with Engine(store=path, half_life="none") as engine:
        assert engine.store.users(["ann"]).plain[0, 0, 0] == 6.0


def test_objectives_may_change_under_an_engine(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with Engine(["price: 0..100, lower is better", "taste"], store=path, seed=1) as engine:
        engine.add_arms(["A", "B"])
        for _ in range(5):
            decision = engine.decide("ann")
            engine.feedback(decision, {"price": 50, "taste": 0.5}, 0.5)
        old = engine.explain(decision)
    new = ["price: 0..400, lower is better", "taste", "quiet"]
    with pytest.raises(InputError, match="redeclare"):
        Engine(new, store=path)
    with Engine(new, store=path, redeclare=True, seed=1) as engine:
        assert engine.explain(decision) == old  # in the words of its day
        assert Lookout(engine).decision(decision.id).explanation == old
        assert engine.front()[0].objectives["price"].mean == pytest.approx(0.875)
        later = engine.decide("ann")
        assert set(engine.explain(later).preference) == {"price", "taste", "quiet"}
        assert engine.feedback(later, {"price": 300, "quiet": 0.1}, 0.4).not_learned == ("arm: taste",)
        assert verify(engine.store).ok
    with Engine(store=path) as engine:
        assert [one.name for one in engine.objectives] == ["price", "taste", "quiet"]
        assert Lookout(engine).decisions("ann", 10).decisions[0].explanation == engine.explain(later)
