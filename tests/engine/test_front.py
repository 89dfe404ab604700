"""Confidence in the Pareto front: the fast way gives what drawing all means and comparing all arms gives."""

from __future__ import annotations

import numpy as np
import pytest

from pamo import Engine
from pamo.engine import Leaderboard, Lookout
from pamo.engine.estimates import known_of
from pamo.engine.front import DRAWS, confidence_of
from pamo.errors import InputError
from pamo.pareto import front


def by_hand(means: np.ndarray, errors: np.ndarray, draws: int = DRAWS) -> np.ndarray:
    numbers = np.random.default_rng(0)
    marks = [front(means + errors * numbers.standard_normal(means.shape)) for _ in range(draws)]
    return np.asarray(np.mean(marks, axis=0))


@pytest.mark.parametrize("objectives", [1, 2, 4])
def test_the_confidence_is_the_share_of_draws(objectives: int) -> None:
    numbers = np.random.default_rng(objectives)
    means, errors = numbers.random((12, objectives)), 0.5 * numbers.random((12, objectives))
    errors += 0.3  # so wide that no arm is left out
    on_front, chance = confidence_of(means, errors)
    assert np.array_equal(on_front, front(means))
    assert np.array_equal(chance, by_hand(means, errors))


def test_arms_that_surely_lose_are_left_out_and_nobody_else_notices() -> None:
    numbers = np.random.default_rng(5)
    means, errors = numbers.random((60, 2)), 0.02 + 0.02 * numbers.random((60, 2))
    on_front, chance = confidence_of(means, errors)
    expected = by_hand(means, errors)
    assert np.array_equal(on_front, front(means))
    assert (chance > 0).sum() < 40
    assert np.abs(chance - expected).max() < 0.05  # other draws of the same: three standard deviations
    assert (chance[expected == 0.0] < 0.005).all()


def test_many_arms_are_drawn_less_often_and_not_less_truly() -> None:
    numbers = np.random.default_rng(6)
    means, errors = 0.5 + 0.12 * numbers.standard_normal((3000, 3)), np.full((3000, 3), 0.05)
    on_front, chance = confidence_of(means, errors)
    again = confidence_of(means, errors)
    assert np.array_equal(chance, again[1])  # the same numbers, the same answer
    assert np.array_equal(on_front, front(means))
    expected = by_hand(means, errors, draws=60)
    assert abs(chance.sum() - expected.sum()) < 0.05 * expected.sum()


def engine_with_scores() -> Engine:
    engine = Engine(["price", "taste", "quiet"], seed=3)
    truth = {"A": (0.9, 0.1, 0.5), "B": (0.5, 0.5, 0.9), "C": (0.4, 0.4, 0.4), "D": (0.1, 0.9, 0.1)}
    for arm in (*truth, "untried"):
        engine.add_arm(arm)
    numbers = np.random.default_rng(1)
    for _ in range(10):
        for arm, means in truth.items():
            made = engine.decide("ann", arms=[arm])
            got = np.clip(np.array(means) + 0.02 * numbers.standard_normal(3), 0, 1).tolist()
            engine.feedback(made.id, dict(zip(("price", "taste", "quiet"), got, strict=True)), overall=got[0])
    return engine


def test_a_front_of_two_objectives_knows_only_these() -> None:
    with engine_with_scores() as engine:
        lookout = Lookout(engine)
        assert {arm.arm for arm in lookout.front() if arm.on_front} == {"A", "B", "D"}
        assert {arm.arm for arm in lookout.front(["price", "quiet"]) if arm.on_front} == {"A", "B"}
        assert [arm.arm for arm in lookout.front()][-1] == "untried"
        assert lookout.front() == engine.front()
        assert lookout.front(limit=2) == lookout.front()[:2]
        with pytest.raises(InputError, match="unknown objective 'loud'"):
            lookout.front(["price", "loud"])
        engine.retire_arm("B")
        assert {arm.arm for arm in lookout.front() if arm.on_front} == {"A", "C", "D"}


def test_the_leaderboard_sorts_searches_and_pages() -> None:
    with engine_with_scores() as engine:
        engine.add_arm("B", "Bären-Wirt")
        lookout = Lookout(engine)

        def ids(**how: object) -> list[str]:
            return [one.arm for one in lookout.leaderboard(**how).arms]  # type: ignore[arg-type]

        assert ids() == ["A", "B", "C", "D", "untried"]  # the overall score is the price here
        assert ids(objective="taste") == ["D", "B", "C", "A", "untried"]
        assert ids(objective="taste", descending=False) == ["A", "C", "B", "D", "untried"]
        assert ids(sort="name", descending=False) == ["A", "B", "C", "D", "untried"]
        assert ids(sort="pulls")[-1] == "untried"
        assert ids(objective="taste", offset=1, limit=2) == ["B", "C"]
        found = lookout.leaderboard(search="BÄREN")
        assert ([one.arm for one in found.arms], found.total) == (["B"], 1)
        assert lookout.leaderboard(offset=99) == Leaderboard(5, [])
        best = lookout.leaderboard(objective="taste").arms[0]
        assert best.objectives["taste"].low < best.objectives["taste"].mean < best.objectives["taste"].high
        assert best.overall is not None
        assert best.overall.mean == pytest.approx(best.objectives["price"].mean)
        assert lookout.leaderboard(search="untried").arms[0].objectives == {}


def test_for_the_average_taste_arms_are_compared_whoever_was_given_them() -> None:
    """A, which is better in all, was given only to who is never content; by overall scores B would be ahead."""
    draw = np.random.default_rng(1)
    with Engine(["price", "taste"], seed=1) as engine:
        engine.add_arms(["A", "B", "new"])
        for n in range(200):
            arm, mean = ("A", 0.7) if n % 2 else ("B", 0.5)
            price, taste = np.clip(mean + 0.1 * draw.standard_normal(2), 0.0, 1.0).tolist()
            liked = 0.5 * price + 0.5 * taste - (0.3 if arm == "A" else 0.0)
            decision = engine.decide(f"{arm}-{n % 20}", arms=[arm])
            engine.feedback(decision, {"price": price, "taste": taste}, overall=max(liked, 0.0))
        lookout = Lookout(engine)
        assert [one.arm for one in lookout.leaderboard().arms] == ["B", "A", "new"]
        board = lookout.leaderboard(sort="typical").arms
        assert [one.arm for one in board] == ["A", "B", "new"]
        best, second, untried = (one.typical for one in board)
        assert best is not None
        assert second is not None
        assert best.low > second.high
        assert untried is None
        (one,) = lookout.find_users("A-1", 1)
        assert one.weights is not None
        assert set(one.weights) == {"price", "taste"}


def test_a_ranking_weighs_what_is_known() -> None:
    with engine_with_scores() as engine:
        lookout = Lookout(engine)
        ranking = lookout.ranking({"price": 0, "taste": 5, "quiet": 5})
        ranked = ranking.arms
        assert ([one.arm for one in ranked], ranking.untried) == (["B", "D", "C", "A"], 1)
        known, row = known_of(engine.store.arms().statistics), engine.store.arms().rows["B"]
        assert ranked[0].value.mean == pytest.approx((known.means[row, 1] + known.means[row, 2]) / 2)
        assert sum(ranked[0].values.values()) == pytest.approx(ranked[0].value.mean)
        assert ranked[0].value.low < ranked[0].value.mean < ranked[0].value.high
        assert [one.value.mean for one in lookout.ranking(dict.fromkeys(lookout.names, 0)).arms] == [0.0] * 4
        assert len(lookout.ranking({"price": 1, "taste": 0, "quiet": 0}, limit=2).arms) == 2


def test_a_preference_is_followed_from_feedback_to_feedback() -> None:
    with engine_with_scores() as engine:
        lookout = Lookout(engine)
        whole = lookout.preference_history("ann", points=100).points
        assert [one.rounds for one in whole] == list(range(1, 41))
        assert whole[-1].objectives == engine.preference("ann").objectives
        few = lookout.preference_history("ann", points=5).points
        assert [one.rounds for one in few] == [1, 11, 21, 30, 40]
        assert [one.at for one in few] == sorted(one.at for one in few)
        assert lookout.preference_history("nobody").points == []
