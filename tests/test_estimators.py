"""What estimators read from the sums against direct formulas, and confidence sets by hand and by counting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pamo import environments
from pamo.arrays import Floats
from pamo.compiling import dimensions
from pamo.errors import InputError
from pamo.estimators import (
    NO_ESTIMATE,
    ConfidenceSet,
    Estimate,
    Kind,
    biases,
    common_to,
    confidence_set,
    experiments_radius,
    lemma2_radius,
    overall_means,
    preferences,
    reward_means,
    reward_widths,
    ridge_gram,
)
from pamo.priors import BIAS_MEAN, BIAS_RIDGE, PAPER, PLAIN, SUM_RIDGE
from pamo.priors import RIDGE as RIDGE_PLACE
from pamo.statistics import ArmStatistics, UserStatistics
from pamo.streams import ENVIRONMENT, stream_for
from tests.feedback import Feedback, arms_of, batches, users_of
from tests.replica import instance_of

# ---- against direct formulas


@given(batch=batches())
def test_means_are_those_of_what_was_given(batch: Feedback) -> None:
    arms = arms_of(batch)
    for arm in range(batch.rows):
        mine = batch.part(np.flatnonzero(batch.row == arm))
        for d in range(batch.objectives):
            seen = mine.reward[~np.isnan(mine.reward[:, d]), d]
            expected = seen.mean() if len(seen) else 0.0
            assert reward_means(arms)[arm, d] == pytest.approx(expected, rel=1e-9, abs=1e-9)
        scored = mine.overall[~np.isnan(mine.reward).any(axis=1) & ~np.isnan(mine.overall)]
        expected = scored.mean() if len(scored) else 0.0
        assert overall_means(arms)[arm] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("t", "alpha", "expected"), [(1, 1.0, 0.0), (8, 1.0, 3.0), (8, 2.0, 2.0), (1, 2.0, 0.0)])
def test_reward_widths_by_hand(t: int, alpha: float, expected: float) -> None:
    arms = ArmStatistics.zeros(arms=2, objectives=1)
    arms.observe([1, 1, 1, 1], [[0.5]] * 4)
    squares = reward_widths(arms, t, alpha=alpha) ** 2 / math.log(2)  # log(t/α) in powers of two
    np.testing.assert_allclose(squares, [expected, expected / 4.0], atol=1e-12)


@settings(max_examples=50)
@given(
    batch=batches(missing=False),
    ridge=st.floats(0.1, 10.0),
    omega=st.floats(0.1, 10.0),
    weighted=st.booleans(),
)
def test_the_ridge_estimate_minimises_its_loss(batch: Feedback, ridge: float, omega: float, weighted: bool) -> None:
    users = users_of(batch)
    estimate = Estimate(kind=Kind.RIDGE, weighted=weighted, ridge=ridge, omega=omega, first=7.0)
    estimated, grams = preferences(users, estimate), ridge_gram(users, estimate)
    for user in range(batch.rows):
        mine = batch.part(np.flatnonzero(batch.row == user))
        if len(mine.row) == 0:
            assert estimated[user].tolist() == [7.0] * batch.objectives
            continue
        squares = (mine.reward**2).sum(axis=1)
        w = (
            np.divide(omega, squares, out=np.zeros_like(squares), where=squares > 0)
            if weighted
            else np.ones(len(squares))
        )
        gram = ridge * np.eye(batch.objectives) + (mine.reward.T * w) @ mine.reward
        np.testing.assert_allclose(grams[user], gram, rtol=1e-9, atol=1e-9)
        rows = np.vstack([np.sqrt(w)[:, None] * mine.reward, math.sqrt(ridge) * np.eye(batch.objectives)])
        right = np.concatenate([np.sqrt(w) * mine.overall, np.zeros(batch.objectives)])
        expected = np.linalg.lstsq(rows, right, rcond=None)[0]
        np.testing.assert_allclose(estimated[user], expected, rtol=1e-6, atol=1e-6)


def test_stated_known_and_absent_estimates() -> None:
    users = UserStatistics.zeros(users=2, objectives=2)
    users.observe([0, 0, 0], [[1.0, 1.0]] * 3, preference=[[0.2, 0.4], [0.4, 0.8], [math.nan, 0.1]])
    stated = preferences(users, Estimate(kind=Kind.STATED, first=0.5))
    np.testing.assert_allclose(stated, [[0.3, 0.6], [0.5, 0.5]])
    known = [[1.0, 2.0], [3.0, 4.0]]
    assert preferences(users, Estimate(kind=Kind.KNOWN), known).tolist() == known
    assert np.isnan(preferences(users, NO_ESTIMATE)).all()


# ---- confidence sets


def test_lemma_2_by_hand() -> None:
    # R·√(ω·D·log((1 + ω·t/λ)/ϑ)) + √λ with R=2, ω=3, D=2, t=4, λ=4, ϑ=0.1: (1 + 3)/0.1 = 40.
    expected = 2.0 * math.sqrt(6.0 * math.log(40.0)) + 2.0
    assert lemma2_radius(4, objectives=2, omega=3.0, ridge=4.0, failure=0.1, sub_gaussian=2.0) == pytest.approx(
        expected
    )


def test_the_radius_of_the_experiments_by_hand() -> None:
    assert experiments_radius(100, objectives=4, beta=0.1) == pytest.approx(0.2 * math.sqrt(math.log(100)))


def test_a_confidence_set_by_hand() -> None:
    sets = ConfidenceSet(
        center=np.array([[1.0, 2.0]]), gram=np.array([[[4.0, 0.0], [0.0, 1.0]]]), radius=np.array([2.0])
    )
    assert sets.distance([1.5, 2.0]).tolist() == [1.0]
    assert sets.contains([2.0, 2.0]).tolist() == [True]
    assert sets.contains([2.01, 2.0]).tolist() == [False]
    assert sets.contains([1.0, 3.99]).tolist() == [True]
    assert sets.width([1.0, 0.0]).tolist() == [1.0]
    assert sets.width([[3.0, 4.0]]) == pytest.approx(2.0 * math.sqrt(9.0 / 4.0 + 16.0))
    low, high = sets.interval()
    assert low.tolist() == [[0.0, 0.0]]
    assert high.tolist() == [[2.0, 4.0]]


@settings(max_examples=40)
@given(batch=batches(missing=False), direction=st.lists(st.floats(-1.0, 1.0), min_size=4, max_size=4))
def test_the_width_is_reached_on_the_sets_edge(batch: Feedback, direction: list[float]) -> None:
    sets = confidence_set(users_of(batch), Estimate(kind=Kind.RIDGE, weighted=True, omega=2.0))
    x = np.array(direction[: batch.objectives])
    length = math.sqrt(float(x @ np.linalg.solve(sets.gram[0], x)))
    if length < 1e-6:
        return
    furthest = sets.center + sets.radius[0] * np.linalg.solve(sets.gram[0], x) / length
    assert sets.distance(furthest)[0] == pytest.approx(sets.radius[0], rel=1e-6)
    assert (furthest[0] - sets.center[0]) @ x == pytest.approx(sets.width(x)[0], rel=1e-6)
    low, high = sets.interval()
    assert (low[0] <= furthest[0] + 1e-9).all()
    assert (furthest[0] <= high[0] + 1e-9).all()


def test_a_set_uses_its_users_own_round_and_the_estimates_numbers() -> None:
    users = UserStatistics.zeros(users=2, objectives=2)
    users.observe([0, 0, 0], [[1.0, 0.5]] * 3, overall=[0.4] * 3)
    estimate = Estimate(kind=Kind.RIDGE, weighted=True, ridge=2.0, omega=3.0)
    theory = confidence_set(users, estimate, failure=0.2, sub_gaussian=0.5)
    same = {"objectives": 2, "omega": 3.0, "ridge": 2.0, "failure": 0.2, "sub_gaussian": 0.5}
    assert theory.radius.tolist() == [lemma2_radius(4, **same), lemma2_radius(1, **same)]  # type: ignore[arg-type]
    small = confidence_set(users, estimate, radius="experiments", beta=0.3)
    assert small.radius.tolist() == [experiments_radius(4, objectives=2, beta=0.3), 0.0]
    np.testing.assert_array_equal(theory.gram, ridge_gram(users, estimate))


def test_sets_of_stated_and_known_preferences() -> None:
    users = UserStatistics.zeros(users=2, objectives=2)
    users.observe([0] * 9, [[1.0, 1.0]] * 9, preference=[[0.4, 0.6]] * 9)
    stated = confidence_set(users, Estimate(kind=Kind.STATED), failure=0.1, sub_gaussian=0.5)
    box = 0.5 * math.sqrt(2.0 * math.log(4.0 / 0.1) / 9.0)  # Hoeffding, both sides of both objectives
    corner = [0.4 + 0.999 * box, 0.6 - 0.999 * box]
    assert stated.contains(corner).tolist() == [True, True]  # of the second user nothing is known
    assert not stated.contains([0.4 + 1.001 * math.sqrt(2.0) * box, 0.6])[0]
    low, high = stated.interval()
    np.testing.assert_allclose(high[0] - low[0], 2.0 * math.sqrt(2.0) * box)  # the ball around the box
    assert (low[1].tolist(), high[1].tolist()) == ([-math.inf] * 2, [math.inf] * 2)
    known = confidence_set(users, Estimate(kind=Kind.KNOWN), known=[[0.1, 0.2], [0.3, 0.4]])
    assert known.contains([[0.1, 0.2], [0.3, 0.5]]).tolist() == [True, False]
    assert known.width([1.0, 1.0]).tolist() == [0.0, 0.0]


def drawn_feedback(environment: environments.Environment, trial: int, rounds: int) -> tuple[Floats, Floats, Floats]:
    """Pull arms in turn for user 0; return the true mean preference, rewards and overall scores."""
    means, truth = instance_of(environment, seed=8, trial=trial)
    stream, spare = stream_for(8, trial, ENVIRONMENT), stream_for(8, trial, ENVIRONMENT)
    rewards, overalls = np.empty((rounds, environment.objectives)), np.empty(rounds)
    room, stated = np.empty(environment.objectives + 1), np.empty(environment.objectives)
    dims, settings_ = dimensions(environment.objectives), environment.numbers()
    for k in range(rounds):
        arm = k % environment.arm_count
        overalls[k] = type(environment).draw(room, stated, arm, 0, means, truth, settings_, False, stream, spare, dims)
        rewards[k] = room[: environment.objectives]
    return truth, rewards, overalls


def test_lemma_2_covers_the_truth_in_all_rounds() -> None:
    """In the bounded environment c − c̄ lies in an interval of width at most 2·h, so it is h-sub-Gaussian.

    With the failure probability ϑ = 0.5 at most half of the trials may miss; the lemma is loose, and few do.
    """
    environment = environments.Bounded(users=1, block_size=3, objectives=3, preference_variance=0.01)
    half_width = math.sqrt(3 * 0.01)
    estimate = Estimate(kind=Kind.RIDGE, weighted=True, ridge=0.01, omega=3.0)
    covered, too_small = 0, 0
    for trial in range(60):
        truth, rewards, overalls = drawn_feedback(environment, trial, rounds=40)
        users = UserStatistics.zeros(users=1, objectives=3)
        inside, inside_small = True, True
        for reward, overall in zip(rewards, overalls, strict=True):
            users.observe(0, reward, overall)
            sets = confidence_set(users, estimate, failure=0.5, sub_gaussian=half_width)
            inside = inside and bool(sets.contains(truth)[0])
            tight = ConfidenceSet(center=sets.center, gram=sets.gram, radius=sets.radius * 0.1)
            inside_small = inside_small and bool(tight.contains(truth)[0])
        covered += inside
        too_small += inside_small
    assert covered >= 30
    assert too_small < 30  # a tenth of the radius is not enough: the test can fail


def test_stated_preferences_are_covered() -> None:
    """600 users state 25 preferences each, uniform on [0, 1]²; 30 may miss at ϑ = 0.05, and Hoeffding is loose."""
    stream = np.random.default_rng(5)
    users = UserStatistics.zeros(users=600, objectives=2)
    rows = np.repeat(np.arange(600), 25)
    users.observe(rows, np.ones((len(rows), 2)), preference=stream.random((len(rows), 2)))
    sets = confidence_set(users, Estimate(kind=Kind.STATED), failure=0.05, sub_gaussian=0.5)
    assert sets.contains([0.5, 0.5]).mean() >= 0.95
    assert sets.contains([1.0, 1.0]).mean() < 0.05


# ---- bad input


ARMS = ArmStatistics.zeros(arms=2, objectives=3)
USERS = UserStatistics.zeros(users=2, objectives=3)
RIDGE = Estimate(kind=Kind.RIDGE)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: preferences(USERS, Estimate(kind=Kind.KNOWN)), r"expected the known preferences with shape \(2, 3\)"),
        (lambda: reward_widths(ARMS, 0), "expected t > 0 and alpha > 0, got t=0"),
        (lambda: lemma2_radius(1, objectives=1, omega=1, ridge=0, failure=0.1), "expected .*ridge > 0.* got .*ridge=0"),
        (lambda: lemma2_radius(1, objectives=1, omega=1, ridge=1, failure=1.0), "expected .*0 < failure < 1.* got"),
        (lambda: lemma2_radius(math.nan, objectives=1, omega=1, ridge=1, failure=0.1), "expected t ≥ 0.* got t=nan"),
        (lambda: experiments_radius(0.5, objectives=1), "expected t ≥ 1.* got t=0.5"),
        (lambda: confidence_set(USERS, RIDGE, radius="small"), "expected radius 'theory' or 'experiments', got 'sm"),
        (lambda: confidence_set(USERS, NO_ESTIMATE), "forms no preference estimate"),
        (lambda: confidence_set(USERS, Estimate(kind=Kind.STATED), failure=2.0), "expected failure between 0 and 1"),
    ],
)
def test_bad_input_meets_a_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call()


# ---- a bias of each user's own


@pytest.mark.parametrize("elasticity", [0.0, 1.0, None])
def test_the_bias_is_that_of_one_regression_on_the_constant_and_the_reward(elasticity: float | None) -> None:
    """Both at once, by the normal equations of each user's rounds, towards the prior's means."""
    draw = np.random.default_rng(8)
    users = UserStatistics.zeros(users=4, objectives=2)  # the last is new
    user, reward = np.repeat([0, 1, 2], 7), draw.uniform(0.1, 1.0, (21, 2))
    overall = reward @ [0.7, 0.2] + 0.2 + 0.1 * user + 0.05 * draw.normal(size=21)
    users.observe(user, reward, overall)
    estimate = Estimate(kind=Kind.RIDGE, shared=True, bias=True, elasticity=elasticity)
    common = common_to(users, estimate)
    preference = preferences(users, estimate, population=common)
    numbers = common.numbers
    pull = np.diag([numbers[BIAS_RIDGE], numbers[RIDGE_PLACE], numbers[RIDGE_PLACE]])
    pull[1:, 1:] += numbers[SUM_RIDGE]  # what is known of the sum of the weights
    middle = np.array([numbers[BIAS_MEAN], *common.mean])
    for n in range(4):
        mine = user == n
        z = np.column_stack([np.ones(mine.sum()), reward[mine]])
        weight = numbers[PLAIN] + numbers[PAPER] / (reward[mine] ** 2).sum(axis=1)
        both = np.linalg.solve(pull + (weight[:, None] * z).T @ z, pull @ middle + z.T @ (weight * overall[mine]))
        assert preference[n] == pytest.approx(both[1:])
        assert biases(users, preference, common)[n] == pytest.approx(both[0])


def test_there_is_no_bias_where_the_population_has_none() -> None:
    users = UserStatistics.zeros(users=2, objectives=1)
    users.observe([0, 1], [[0.5], [0.5]], overall=[0.9, 0.8])
    shared = Estimate(kind=Kind.RIDGE, shared=True)
    assert biases(users, [[0.1], [0.1]], common_to(users, shared)).tolist() == [0.0, 0.0]
    with pytest.raises(InputError, match="expected preference of shape"):
        biases(users, [0.1, 0.1], common_to(users, shared))
