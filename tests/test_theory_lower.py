"""The lower bound against a solver on the whole programme, a search over alternatives, and cases done by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from pamo import environments
from pamo.arrays import Floats
from pamo.environments import Environment
from pamo.errors import InputError
from pamo.experiments.instances import lower_bound_of, mean_lower_bound
from pamo.theory import LowerBound, graves_lai
from tests.replica import instance_of

# Two users, one offer of three arms, 2σ² = 1. Scores: (8, 0, 4) and (0, 2, 0). Nobody's best is arm 2, whose gaps are 4
# and 2. The first user needs 64/16 = 4 pulls of it for each unit of log T, the second 4/4 = 1. So the second, who loses
# less by it, pulls it four times, at 2 each: C = 8.
HAND: dict[str, Any] = {
    "means": [[1.0, 0.0], [0.0, 1.0], [0.5, 0.0]],
    "preferences": [[8.0, 0.0], [0.0, 2.0]],
    "offers": [[0, 1, 2]],
    "reward_variance": 0.5,
}


def drawn(seed: int, *, users: int, arms: int, objectives: int) -> tuple[Floats, Floats]:
    generator = np.random.default_rng(seed)
    return generator.uniform(size=(arms, objectives)), generator.normal(0.5, 1.0, size=(users, objectives))


def solved(means: Floats, preferences: Floats, offers: list[list[int]], reward_variance: float) -> float:
    """The whole programme, for a solver: a variable for each user, offer and arm; no arm is left out for being free."""
    places = [(n, o, i) for n in range(len(preferences)) for o in range(len(offers)) for i in offers[o]]
    gap = {
        (n, o, i): max(float(preferences[n] @ means[j]) for j in offers[o]) - float(preferences[n] @ means[i])
        for n, o, i in places
    }
    demands, rows = [], []
    for n, o, i in places:
        if gap[n, o, i] > 0:
            rows.append([-1.0 if arm == i else 0.0 for _, _, arm in places])
            demands.append(-2 * reward_variance * float(preferences[n] @ preferences[n]) / gap[n, o, i] ** 2)
    if not rows:
        return 0.0
    answer = linprog([gap[place] for place in places], A_ub=rows, b_ub=demands, bounds=(0, None), method="highs")
    assert answer.success
    return float(answer.fun)


def test_the_instance_done_by_hand() -> None:
    bound = graves_lai(**HAND)
    np.testing.assert_allclose(bound.pulls, [[0, 0, 0], [0, 0, 4]])
    np.testing.assert_allclose(bound.price, [0, 0, 2])
    assert bound.constant == pytest.approx(8.0)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("offers", [[[0, 1, 2, 3, 4, 5]], [[0, 1, 2], [3, 4, 5]], [[0, 1, 2, 3], [2, 3, 4, 5], [5]]])
def test_it_is_the_solution_of_the_whole_programme(seed: int, offers: list[list[int]]) -> None:
    means, preferences = drawn(seed, users=1 + seed % 4, arms=6, objectives=1 + seed % 3)
    bound = graves_lai(means=means, preferences=preferences, offers=offers, reward_variance=0.3)
    assert bound.constant == pytest.approx(solved(means, preferences, offers, 0.3), rel=1e-6, abs=1e-9)


def test_some_of_these_have_free_arms_and_some_have_none() -> None:
    counts = []
    for seed in range(12):
        means, preferences = drawn(seed, users=1 + seed % 4, arms=6, objectives=1 + seed % 3)
        bound = graves_lai(means=means, preferences=preferences, offers=[range(6)], reward_variance=0.3)
        counts.append(np.count_nonzero(bound.pulls.sum(axis=0) == 0))
    assert set(counts) >= {1, 2}


@pytest.mark.parametrize("objectives", [1, 2, 5])
def test_one_user_and_one_offer_give_lai_and_robbins(objectives: int) -> None:
    means, preferences = drawn(3, users=1, arms=7, objectives=objectives)
    scores = means @ preferences[0]
    variance = 0.2 * float(preferences[0] @ preferences[0])  # that of an arm's score
    others = np.delete(scores.max() - scores, scores.argmax())
    bound = graves_lai(means=means, preferences=preferences, offers=[range(7)], reward_variance=0.2)
    assert bound.constant == pytest.approx(np.sum(2 * variance / others))


@pytest.mark.parametrize("seed", range(5))
def test_alternatives_flip_an_optimum_at_the_pulls_asked_for_and_none_with_less(seed: int) -> None:
    """With 1/η of information a pull, some move of an arm's mean makes it somebody's best; with a little less, none."""
    means, preferences = drawn(seed, users=3, arms=8, objectives=2)
    blocks = np.arange(8).reshape(2, 4)
    variance = 0.1
    bound = graves_lai(means=means, preferences=preferences, offers=blocks, reward_variance=variance)
    angles = np.linspace(0, 2 * math.pi, 5000)
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    asked = np.flatnonzero(bound.pulls.sum(axis=0))
    assert asked.size > 0
    for arm in asked:
        information = 1 / bound.pulls[:, arm].sum()
        rivals = [other for other in blocks[arm // 4] if other != arm]
        best = (preferences @ means[rivals].T).max(axis=1)
        for factor, flips in ((0.999, False), (1.001, True)):
            # A Gaussian of variance σ² moved by a distance x: its divergence from the true one is x²/2σ².
            moved = means[arm] + math.sqrt(2 * variance * information * factor) * directions
            assert (moved @ preferences.T > best).any() == flips


def test_the_order_of_arms_and_users_does_not_matter() -> None:
    means, preferences = drawn(5, users=3, arms=6, objectives=3)
    arms, users = [3, 1, 5, 0, 2, 4], [2, 0, 1]
    bound = graves_lai(means=means, preferences=preferences, offers=[[0, 1, 2], [3, 4, 5]], reward_variance=0.1)
    place = {arm: new for new, arm in enumerate(arms)}
    offers = [[place[arm] for arm in offer] for offer in ([5, 4, 3], [1, 0, 2])]
    turned = graves_lai(means=means[arms], preferences=preferences[users], offers=offers, reward_variance=0.1)
    np.testing.assert_allclose(turned.pulls, bound.pulls[users][:, arms])
    assert turned.constant == pytest.approx(bound.constant)


@pytest.mark.parametrize("scale", [1e-14, 0.5, 3.0, 1e9])
def test_preferences_scale_the_regret_and_not_the_pulls(scale: float) -> None:
    means, preferences = drawn(6, users=3, arms=5, objectives=3)
    one, other = (
        graves_lai(means=means, preferences=factor * preferences, offers=[range(5)], reward_variance=0.1)
        for factor in (1.0, scale)
    )
    np.testing.assert_allclose(other.pulls, one.pulls)
    assert other.constant == pytest.approx(scale * one.constant, rel=1e-9, abs=0)
    assert one.constant > 0


def test_the_variance_scales_it_and_a_shift_of_all_means_does_not() -> None:
    bound = graves_lai(**HAND).constant
    assert graves_lai(**HAND | {"reward_variance": 1.5}).constant == pytest.approx(3 * bound)
    shifted = np.asarray(HAND["means"]) - 7.0
    assert graves_lai(**HAND | {"means": shifted}).constant == pytest.approx(bound)


@pytest.mark.parametrize(
    "changes",
    [
        {"means": [[0.5, 0.5]] * 3},  # all tied
        {"offers": [[0], [1], [2]]},  # one arm in each block
        {"offers": [[0, 1]]},  # arm 2 is never offered, and the others are somebody's best
        {"preferences": [[4.0, 2.0], [0.0, 0.0], [2.0, 4.0]]},  # one who does not mind can look at everything
        {"means": [[0.1, 0.2], [0.3, 0.0], [0.1 + 0.2, 0.0]], "preferences": [[1.0, 0.0], [0.0, 1.0]]},  # by rounding
    ],
)
def test_what_costs_nothing(changes: dict[str, Any]) -> None:
    bound = graves_lai(**HAND | changes)
    assert bound.constant == 0.0
    assert bound.at([1, 5000]).tolist() == [0.0, 0.0]  # type: ignore[union-attr]


def test_an_offer_in_which_an_arm_is_best_makes_it_free_in_the_others() -> None:
    chain: dict[str, Any] = {"means": [[0.8], [0.5], [0.4]], "preferences": [[1.0]], "reward_variance": 0.5}
    assert graves_lai(offers=[[0, 1], [1, 2]], **chain).constant == pytest.approx(1 / 0.1)
    assert graves_lai(offers=[[0, 1, 2]], **chain).constant == pytest.approx(1 / 0.3 + 1 / 0.4)


def test_one_objective_and_several_users_pay_as_the_one_who_cares_least() -> None:
    bound = graves_lai(means=[[0.9], [0.4]], preferences=[[3.0], [0.5]], offers=[[0, 1]], reward_variance=0.1)
    np.testing.assert_allclose(bound.pulls, [[0.0, 0.0], [0.0, 0.2 / 0.25]])
    assert bound.constant == pytest.approx(0.2 / 0.25 * 0.25)


def test_at_a_horizon_it_is_the_constant_times_the_logarithm_less_a_constant() -> None:
    bound = graves_lai(**HAND)
    assert bound.at(5000) == pytest.approx(8.0 * math.log(5000 / 4))
    far = np.asarray(bound.at([1e100, 1e200]))
    assert far[1] - far[0] == pytest.approx(8.0 * math.log(1e100))
    assert bound.at(3) == 0.0
    easy = graves_lai(**HAND | {"reward_variance": 0.01})
    assert easy.at(5000) == pytest.approx(easy.constant * math.log(5000))


def test_a_vanishing_gap_does_not_make_it_large_at_a_horizon() -> None:
    gaps = 10.0 ** -np.arange(1, 9)
    bounds = [
        graves_lai(means=[[1.0], [1.0 - gap]], preferences=[[1.0]], offers=[[0, 1]], reward_variance=0.01)
        for gap in gaps
    ]
    for gap, bound in zip(gaps, bounds, strict=True):
        assert bound.at(5000) <= min(bound.constant * math.log(5000), gap * 5000)
    assert bounds[-1].constant > 1e5


def test_a_policy_made_for_the_variance_comes_near_it_and_not_under_it() -> None:
    """One user, one objective: an index with log(t/N) has 1.15 times the bound, ± 0.02 from seed to seed."""
    generator = np.random.default_rng(1)
    trials, arms, rounds, variance = 600, 5, 5000, 0.01
    means = generator.uniform(size=(trials, arms))
    pulls, sums, each, regret = np.zeros((trials, arms)), np.zeros((trials, arms)), np.arange(trials), 0.0
    for t in range(rounds):
        if t < arms:
            chosen = np.full(trials, t)
        else:
            width = np.sqrt(2 * variance * np.maximum(np.log((t + 1) / pulls), 0.0) / pulls)
            chosen = (sums / pulls + width).argmax(axis=1)
        pulls[each, chosen] += 1
        sums[each, chosen] += generator.normal(means[each, chosen], math.sqrt(variance))
        regret += float((means.max(axis=1) - means[each, chosen]).sum())
    bounds = [
        graves_lai(means=row[:, None], preferences=[[1.0]], offers=[range(arms)], reward_variance=variance).at(rounds)
        for row in means
    ]
    assert 1.05 < regret / float(np.sum(np.asarray(bounds))) < 1.27


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"reward_variance": 0.0}, "expected reward_variance > 0, got 0.0; without noise"),
        ({"reward_variance": math.nan}, "expected reward_variance > 0"),
        ({"means": [1.0, 2.0]}, r"expected means \(arms, D\), preferences \(users, D\), got \(2,\)"),
        ({"preferences": [[1.0]]}, r"got \(3, 2\) and \(1, 1\)"),
        ({"preferences": [[1.0, math.nan]]}, "expected finite means and preferences"),
        ({"offers": []}, "expected at least one offer"),
        ({"offers": [[0, 3]]}, "expected offers of different arms from 0 to 2, got"),
    ],
)
def test_bad_input_is_a_sentence(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        graves_lai(**HAND | changes)


def test_a_horizon_under_one_is_refused() -> None:
    with pytest.raises(InputError, match="numbers of at least 1"):
        graves_lai(**HAND).at(0)


# ---- a trial's


@pytest.mark.parametrize(
    "environment",
    [
        environments.Gaussian(users=3, block_size=4, objectives=2, preference="random"),
        environments.Gaussian(users=2, block_size=3, arms=12, protocol="rotate", reward_variance=0.3),
        environments.Gaussian(users=3, block_size=2, protocol="all"),
    ],
)
def test_a_trials_bound_is_that_of_its_means_and_offers(environment: environments.Gaussian) -> None:
    means, preferences = instance_of(environment, 4, 7)
    size = environment.arm_count if environment.protocol == "all" else environment.block_size
    offers = [list(range(first, first + size)) for first in range(0, environment.arm_count, size)]
    bound = lower_bound_of(environment, 4, 7)
    assert isinstance(bound, LowerBound)
    assert bound.constant == pytest.approx(solved(means, preferences, offers, environment.reward_variance), rel=1e-6)
    assert bound.constant > 0


def test_the_variance_of_preferences_does_not_matter() -> None:
    bounds = [
        lower_bound_of(environments.Gaussian(preference_variance=variance), 1, 0) for variance in (0.0, 0.5, 100.0)
    ]
    assert len({bound.constant for bound in bounds if bound is not None}) == 1


def test_the_mean_bound_is_the_mean_over_the_trials() -> None:
    environment = environments.Gaussian(users=2, block_size=5)
    each = [lower_bound_of(environment, 3, trial) for trial in range(6)]
    expected = np.mean([bound.at(700) for bound in each if bound is not None])
    assert mean_lower_bound(environment, rounds=700, trials=6, seed=3) == pytest.approx(expected)


@pytest.mark.parametrize(
    "environment", [environments.Bounded(), environments.Gaussian(reward_variance=0.0), environments.conflict()]
)
def test_no_bound_is_nan(environment: Environment) -> None:
    assert lower_bound_of(environment, 1, 0) is None
    assert math.isnan(mean_lower_bound(environment, rounds=100, trials=2, seed=1))
