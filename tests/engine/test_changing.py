"""Scores that are missing, tastes and arms that change: what an engine makes of them, in small worlds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pamo import Engine
from pamo.store import ArmChanged, TasteChanged
from pamo.store.maintenance import verify
from tests.engine.worlds import World

OBJECTIVES = 3


def told(
    world: World, engine: Engine, rounds: int, missing: Callable[[], Any], users: list[str] | None = None
) -> tuple[float, float]:
    """Play, leaving scores out of feedback; return the share of what could be won over a random arm, and in the end."""
    won = []
    for _ in range(rounds):
        total = best = 0.0
        for user in users or world.users:
            decision = engine.decide(user)
            i, weights = world.arms.index(decision.arm), world.weights[world.users.index(user)]
            reward = np.clip(world.means[i] + world.noise * world.numbers.standard_normal(OBJECTIVES), 0.0, 1.0)
            overall = float(np.clip(weights @ reward + 0.03 * world.numbers.standard_normal(), 0.0, 1.0))
            given = {n: float(r) for n, r, gone in zip(world.names, reward, missing(), strict=True) if not gone}
            engine.feedback(decision.id, given, overall=overall)
            values = world.means @ weights
            total += values[i] - values.mean()
            best += values.max() - values.mean()
        won.append(total / best)
    return float(np.mean(won)), float(np.mean(won[-5:]))


@pytest.mark.parametrize(
    ("missing", "least"),
    [
        (lambda draw: np.arange(OBJECTIVES) == 1, 0.85),
        (lambda draw: draw.random(OBJECTIVES) < 0.5, 0.85),
        (lambda draw: np.ones(OBJECTIVES, dtype=bool), 0.6),
    ],
    ids=["one is never given", "half are missing", "only the overall score"],
)
def test_incomplete_feedback_teaches_what_arms_are_worth_to_whom(missing: Callable[[Any], Any], least: float) -> None:
    """A random arm is worth 0, everybody's best 1; each was about 0 where only complete rounds taught anything."""
    world = World(arms=10, users=40, objectives=OBJECTIVES, seed=3)
    with world.engine() as engine:
        _, end = told(world, engine, 20, lambda: missing(world.numbers))
        assert end > least
        assert verify(engine.store).ok
        weights = engine.preference("u0").objectives
        assert engine.preference("u0").source == "overall"
        assert set(weights) == set(world.names)


def test_a_taste_that_changes_is_found_and_told() -> None:
    world, now = World(arms=8, users=10, objectives=OBJECTIVES, seed=5), [1000.0]
    with world.engine(clock=lambda: now[0]) as engine:
        world.play(engine, 40)
        assert engine.preference("u0").changed is None
        world.weights[0] = np.roll(world.weights[0], 1)
        now[0] = 2000.0
        regrets = world.play(engine, 30)
        changes = [event for _, event in engine.store.events() if isinstance(event, TasteChanged)]
        assert [event.user for event in changes] == ["u0"]  # and nobody else
        assert 4 <= len(changes[0].kept) <= 24
        assert engine.preference("u0").changed == 2000.0
        assert engine.preference("u0").rounds == 70
        assert np.mean(regrets[-5:]) < 0.25 * np.mean(regrets[:3])
        weights = engine.preference("u0").objectives
        assert max(weights, key=lambda name: weights[name].weight) == world.names[int(world.weights[0].argmax())]
        assert verify(engine.store).ok
        assert any(one["event"] == "TasteChanged" for one in engine.export_user("u0")["history"])


def test_an_arm_that_changes_is_found() -> None:
    world = World(arms=6, users=10, objectives=OBJECTIVES, seed=7)
    with world.engine() as engine:
        world.play(engine, 40)
        world.means = 1.0 - world.means
        regrets = world.play(engine, 40)
        changed = {event.arm for _, event in engine.store.events() if isinstance(event, ArmChanged)}
        assert changed  # those that nobody is given any more may stay as they were
        assert all(arm.pulls >= 3 for arm in engine.arms() if arm.id in changed)  # and do not look as if untried
        assert np.mean(regrets[-5:]) < 0.2 * np.mean(regrets[:3])
        assert not [event for _, event in engine.store.events() if isinstance(event, TasteChanged)]
        assert verify(engine.store).ok


@pytest.mark.parametrize("kind", ["normal", "yes or no"])
def test_where_nothing_changes_nothing_is_found(kind: str) -> None:
    """A few thousand rounds; longer ones, with forty users and 5,000 rounds each, are in docs/decisions/0026."""
    world = World(arms=6, users=10, objectives=OBJECTIVES, seed=9)
    with world.engine() as engine:
        for _ in range(250):
            for n, user in enumerate(world.users):
                decision = engine.decide(user)
                mean = world.means[world.arms.index(decision.arm)]
                if kind == "normal":
                    reward = np.clip(mean + 0.1 * world.numbers.standard_normal(OBJECTIVES), 0.0, 1.0)
                    overall = float(
                        np.clip(world.weights[n] @ reward + 0.1 * world.numbers.standard_normal(), 0.0, 1.0)
                    )
                else:
                    reward = (world.numbers.random(OBJECTIVES) < mean).astype(float)
                    overall = float(world.numbers.random() < world.weights[n] @ mean)
                engine.feedback(decision.id, dict(zip(world.names, reward.tolist(), strict=True)), overall=overall)
        assert not [e for _, e in engine.store.events() if isinstance(e, TasteChanged | ArmChanged)]


def test_what_is_kept_of_an_arm_that_changed_is_what_came_since() -> None:
    """An arm that all pulls go to has more of them between two looks than there were when it changed."""
    draw = np.random.default_rng(1)
    with Engine(["taste", "price"], seed=1) as engine:
        engine.add_arm("A")
        for n in range(1200):
            taste, price = (0.2, 0.9) if n >= 66 else (0.9, 0.2)
            noise = 0.02 * draw.standard_normal(2)
            engine.feedback(engine.decide("ann"), {"taste": taste + noise[0], "price": price + noise[1]}, 0.5)
        changes = [event for _, event in engine.store.events() if isinstance(event, ArmChanged)]
        assert len(changes) == 1
        for name, expected in (("taste", 0.2), ("price", 0.9)):
            count, total, squares = changes[0].kept[name]
            assert total / count == pytest.approx(expected, abs=0.05)
            assert squares * count >= total * total
        arms = engine.store.arms().statistics
        assert np.all(arms.objective_square * arms.objective_count >= arms.objective_sum**2)


@pytest.mark.parametrize("scores", [0.0, 1.0])
def test_scores_that_never_vary_are_no_trouble(scores: float) -> None:
    """Each arm's overall score is its own, whoever gives it: what varies by nothing may seem to vary by less."""
    draw, names = np.random.default_rng(3), ["a", "b", "c", "d", "e"]
    overalls = draw.uniform(size=30).tolist()
    with Engine(names, seed=3) as engine:
        engine.add_arms([f"arm {k}" for k in range(30)])
        for _ in range(600):
            decision = engine.decide(f"u{draw.integers(3)}")
            rewards = {name: scores for name in names if draw.random() < 0.7}
            engine.feedback(decision, rewards, overalls[int(decision.arm.removeprefix("arm "))])
