"""Pulls under way, and limits on exploring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pamo import Engine
from pamo.contract.requests import Request
from pamo.engine import under_way
from pamo.engine.changing import SCAN
from pamo.errors import InputError
from pamo.store.base import Arms

from .worlds import World


class Clock:
    """Seconds since 1970, as a test wants them."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


def pending(engine: Engine) -> list[float]:
    counted: list[float] = engine.core.decider.under_way.line.round(6).tolist()
    return counted


def test_a_decision_counts_as_a_pull_until_its_feedback_is_there_or_not_to_be_expected(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "shop.db"
    with Engine(["taste"], store=path, seed=1, clock=clock) as engine:
        engine.add_arms(["A", "B"])
        answered = engine.decide("ann", arms=["A"])
        waiting = engine.decide("ann", arms=["A"], key="k")
        engine.decide("ann", arms=["A"], key="k")  # the same again
        engine.decide_many([{"user": "bob", "arms": ["B"], "k": 1}])
        assert pending(engine) == [2.0, 1.0]
        clock.now += 10.0
        engine.feedback(answered, {"taste": 0.5})
        engine.feedback(answered, {"taste": 0.5})
        assert pending(engine) == [1.0, 1.0]
        engine.add_arm("C")
        assert engine.decide("ann", arms=["C"]).arm == "C"
        assert pending(engine) == [1.0, 1.0, 1.0]
    with Engine(store=path, seed=1, clock=clock) as engine:  # from the journal's end
        engine.decide("ann", arms=["C"])
        assert pending(engine) == [1.0, 1.0, 2.0]
        clock.now += under_way.LEAST_PATIENCE + 1.0
        engine.decide("ann", arms=["C"])
        assert pending(engine)[:2] == [under_way.GIVEN_UP, under_way.GIVEN_UP]
        assert engine.feedback(waiting, {"taste": 0.5}).status == "recorded", "late feedback counts"
        # It has gone on waiting for as long as feedback takes, and counts for less where most never comes.
        for _ in range(400):
            late, never = engine.decide("ann", arms=["A"]), engine.decide("ann", arms=["B"])
            assert never.arm == "B"
            clock.now += 5 * under_way.LEAST_PATIENCE
            engine.feedback(late, {"taste": 0.5})
        found = engine.core.decider.under_way
        assert 5 * under_way.LEAST_PATIENCE < found.patience < 40 * under_way.LEAST_PATIENCE
        assert 0.4 < found.weight < 0.65


def test_what_is_kept_in_mind_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_way, "MOST", 10)
    with Engine(["taste"], seed=1) as engine:
        engine.add_arm("A")
        for _ in range(35):
            engine.decide("ann")
        assert len(engine.core.decider.under_way) == 10
        assert pending(engine) == pytest.approx([10 + 25 * under_way.GIVEN_UP])


def test_what_all_count_for_is_written_without_a_look_at_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the share that gets feedback is learned, that is every few requests, with up to 50,000 of them open."""
    monkeypatch.setattr(under_way, "MOST", 300)
    waiting, line = under_way.UnderWay(), np.zeros(4)
    waiting.attach(line, {f"arm-{row}": row for row in range(4)})
    opened, weights = list(range(2000)), set()
    for number in opened:
        waiting.begin(str(number), f"arm-{number * 7 % 5}", float(number))  # one of the arms has no row yet
    waiting._open.values = None  # type: ignore[assignment]  # whoever looks at each fails
    for number in opened[-300::2]:
        waiting.end(str(number), 2000.0)
        weights.add(waiting.weight)
    assert len(weights) > 2
    left, given_up = opened[-299::2], opened[:-300]
    for row in range(4):
        mine = [sum(one * 7 % 5 == row for one in some) for some in (left, given_up)]
        assert line[row] == pytest.approx(waiting.weight * mine[0] + under_way.GIVEN_UP * mine[1])


@pytest.mark.parametrize("policy", ["prucb-hp", "prts"])
def test_at_most_so_many_decisions_explore(policy: str) -> None:
    world = World(arms=8, users=5, noise=0.3, seed=3)
    shares = {}
    for share in (1.0, 0.1, 0.0):
        with world.engine(policy=policy, explore_at_most=share, draws=20) as engine:
            for arm in world.arms:
                world.answer(engine, engine.decide("u0", arms=[arm]))
            explored = []
            for _ in range(60):
                for user in world.users:
                    decision = engine.decide(user)
                    explored.append(engine.explain(decision).explored)
                    assert share > 0.0 or not explored[-1]
                    assert share > 0.0 or decision.propensity == 1.0
                    world.answer(engine, decision)
            shares[share] = np.mean(explored)
    assert shares[1.0] > 0.2 > 0.1 + 11 / 300 >= shares[0.1] > 0.05 > shares[0.0] == 0.0


@pytest.mark.parametrize("policy", ["prucb-hp", "prts"])
def test_an_arm_that_looks_much_worse_is_not_explored(policy: str) -> None:
    world = World(arms=8, users=5, noise=0.3, seed=3)
    worst = {}
    for within in (None, 0.1):
        with world.engine(policy=policy, explore_within=within, draws=20) as engine:
            for arm in world.arms:
                world.answer(engine, engine.decide("u0", arms=[arm]))
            least = 1.0
            for _ in range(40):
                for user in world.users:
                    decision = engine.decide(user, k=3)
                    why = engine.explain(decision)
                    assert why.chosen is not None
                    assert why.without_exploration is not None
                    least = min(least, why.chosen.value / why.without_exploration.value)
                    assert 0.0 < decision.propensity <= 1.0
                    world.answer(engine, decision)
            worst[within] = least
    assert worst[None] < 0.8 < 0.9 - 1e-9 <= worst[0.1] < 1.0


@pytest.mark.parametrize("limit", [{"explore_within": 0.0}, {"explore_at_most": 0.0}])
def test_arms_that_are_held_back_come_in_their_own_order(limit: dict[str, float]) -> None:
    world = World(arms=8, users=5, noise=0.1, seed=3)
    with world.engine(policy="prucb-hp", **limit) as engine:
        for arm in world.arms:
            world.answer(engine, engine.decide("u0", arms=[arm]))
        for user in world.users:
            means = {one.arm: one.objectives for one in engine.front()}
            decision = engine.decide(user, k=8)
            weights = engine.explain(decision).preference
            worth = [sum(weights[name] * means[arm][name].mean for name in weights) for arm in decision.arms]
            assert worth == pytest.approx(sorted(worth, reverse=True))
            assert len(set(worth)) == 8
            world.answer(engine, decision)


@pytest.mark.parametrize(
    "options",
    [{"explore_at_most": value} for value in (-0.1, 1.1, "all", True, float("nan"))]
    + [{"explore_within": value} for value in (-0.1, "near", float("inf"))],
)
def test_limits_that_make_no_sense_are_refused_by_name(options: Any) -> None:
    with pytest.raises(InputError, match=next(iter(options))) as caught:
        Engine(["taste"], **options)
    assert caught.value.field == next(iter(options))


def test_arms_that_another_worker_adds_while_a_batch_is_decided_are_there_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a database two workers share the arms, and the second looks at them between two requests of a batch."""
    with Engine(["price", "taste"], seed=1) as engine:
        for arm in "ABC":
            engine.add_arm(arm)
        decider = engine._decider
        newest = decider._store.arms
        asked: list[int] = []

        def with_another() -> Arms:
            asked.append(len(asked))
            if len(asked) == 2:
                engine.add_arm("late")
            return newest()

        monkeypatch.setattr(decider._store, "arms", with_another)
        decider.watch.turns = SCAN
        made = engine.decide_many([Request("ann"), Request("bob", k=2)])  # one after the other
        assert [len(one.arms) for one in made] == [1, 2]
        monkeypatch.undo()
        engine.add_arm("D")
        assert len(engine.decide("ann", k=4).arms) == 4
