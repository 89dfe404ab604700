"""The prior that users share: laws, recovery of what is true, sums at the edge, and the non-negative estimate."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pamo import environments, policies, simulate
from pamo.arrays import Floats
from pamo.errors import InputError
from pamo.estimators import Estimate, Kind, common_to, preferences, regress, reward_scatters
from pamo.priors import (
    BIAS_MEAN,
    BIAS_RIDGE,
    COUNT,
    LEVELS,
    NOISE,
    PAPER,
    PLAIN,
    PRIOR_ROUNDS,
    RIDGE,
    SHARE,
    SUM_RIDGE,
    Population,
    empty_population,
    population_of,
)
from pamo.statistics import ArmStatistics, UserStatistics
from tests import witness_spread
from tests.feedback import Feedback, batches, users_of
from tests.replica import play

SHARED = Estimate(kind=Kind.RIDGE, weighted=True, centred=True, shared=True, first=0.5, omega=2.0)


@dataclasses.dataclass(frozen=True)
class Society:
    """Users drawn from the model, and their feedback."""

    users: UserStatistics
    preference: Floats
    bias: Floats


def society(
    *,
    users: int = 300,
    rounds: int = 30,
    mean: tuple[float, ...] = (2.0, 0.5, 1.0),
    spread: float = 0.3,
    noise: float = 0.2,
    phi: float = 1.0,
    bias: float = 0.0,
    scale: float = 1.0,
    seed: int = 5,
) -> Society:
    """Rewards uniform on [0, 2]; noise of variance noise²·‖r‖²/x̄ (φ = 1) or noise² (φ = 0)."""
    generator = np.random.default_rng(seed)
    preference = np.array(mean) + spread * generator.standard_normal((users, len(mean)))
    shift = bias * generator.standard_normal(users)
    reward = 2.0 * generator.random((users, rounds, len(mean)))
    lengths = (reward**2).sum(axis=2)
    width = noise * np.sqrt(lengths / lengths.mean()) if phi == 1.0 else np.full(lengths.shape, noise)
    overall = shift[:, None] + np.einsum("nd,nkd->nk", preference, reward)
    overall = scale * (overall + width * generator.standard_normal(lengths.shape))
    sums = UserStatistics.zeros(users=users, objectives=len(mean))
    sums.observe(np.repeat(np.arange(users), rounds), reward.reshape(-1, len(mean)), overall.ravel())
    return Society(sums, preference, shift)


def phi_of(population: Population) -> float:
    return 1.0 - float(population.numbers[PLAIN])


def spread_of(population: Population) -> float:
    """τ²."""
    return float(population.numbers[NOISE] / population.numbers[RIDGE])


def permuted(users: UserStatistics, order: npt.NDArray[np.int64]) -> UserStatistics:
    return UserStatistics(**{field.name: getattr(users, field.name)[order] for field in dataclasses.fields(users)})


# ---- against the plain fit


def rounds_of(batch: Feedback) -> list[witness_spread.Rounds]:
    return [
        witness_spread.Rounds(batch.reward[batch.row == user], batch.overall[batch.row == user])
        for user in range(batch.rows)
    ]


@settings(max_examples=60)
@given(
    batch=batches(missing=False, most=30),
    bias=st.booleans(),
    elasticity=st.sampled_from([None, 0.0, 0.3, 1.0]),
    levels=st.booleans(),
)
def test_the_fit_is_the_plain_one(batch: Feedback, bias: bool, elasticity: float | None, levels: bool) -> None:
    population = population_of(users_of(batch), bias=bias, elasticity=elasticity, levels=levels, ridge=3.0)
    rounds = rounds_of(batch)
    expected = (
        witness_spread.fit(rounds, batch.objectives, bias=bias, elasticity=elasticity, levels=levels)
        if len(batch.row)
        else None
    )
    if expected is None:
        start = empty_population(batch.objectives, ridge=3.0)
        np.testing.assert_array_equal(population.numbers, start.numbers)
        np.testing.assert_array_equal(population.mean, start.mean)
        return
    beliefs = [witness_spread.believe(own, expected, witness_spread.find_sites(own, expected)) for own in rounds]
    shaky = max(expected.signal, *(float(np.linalg.cond(belief.factor)) ** 2 for belief in beliefs))
    if shaky > 1e7 or expected.doubtful:
        return  # rounding decides: as good as one round in all
    tolerance = 1e-9 + 1e-14 * shaky
    numbers = population.numbers
    np.testing.assert_allclose(population.mean, expected.mean, rtol=tolerance, atol=tolerance)
    assert numbers[NOISE] == pytest.approx(expected.noise, rel=tolerance)
    assert numbers[RIDGE] == pytest.approx(expected.ridge, rel=tolerance)
    assert numbers[PLAIN] == pytest.approx(expected.plain, rel=tolerance, abs=tolerance)
    assert numbers[PAPER] == pytest.approx(expected.paper, rel=tolerance)
    assert numbers[PRIOR_ROUNDS] == expected.prior_rounds
    assert numbers[COUNT] == len(batch.row)
    assert numbers[SUM_RIDGE] == pytest.approx(expected.sum_ridge, rel=1e3 * tolerance, abs=tolerance)
    assert (numbers[SHARE] > 0.0) == (expected.levels is not None)
    if expected.bias_ridge is None:
        assert numbers[BIAS_RIDGE] < 0.0
    else:
        assert numbers[BIAS_RIDGE] == pytest.approx(expected.bias_ridge, rel=tolerance)
        assert numbers[BIAS_MEAN] == pytest.approx(expected.bias_mean, rel=tolerance, abs=tolerance)
    # And what the users are then estimated to be, from the same sums.
    estimate = dataclasses.replace(SHARED, bias=bias, elasticity=elasticity)
    center, inverse, noise = regress(users_of(batch), estimate, population)
    for user, (own, belief) in enumerate(zip(rounds, beliefs, strict=True)):
        np.testing.assert_allclose(center[user], belief.preference, rtol=100 * tolerance, atol=100 * tolerance)
        gram = belief.gram_factor.T @ belief.gram_factor
        np.testing.assert_allclose(inverse[user] @ gram, np.eye(batch.objectives), atol=1e3 * tolerance)
        counted = (belief.squares + 3.0 * expected.noise) / (len(own.overall) + 3.0)
        assert noise[user] == pytest.approx(counted, rel=100 * tolerance)


# ---- laws


@pytest.mark.parametrize("bias", [False, True])
def test_the_order_of_the_users_is_nothing(bias: bool) -> None:
    users = society(users=40, rounds=5, bias=0.5).users
    order = np.random.default_rng(1).permutation(40)
    one, other = population_of(users, bias=bias), population_of(permuted(users, order), bias=bias)
    np.testing.assert_allclose(other.mean, one.mean, rtol=1e-9)
    np.testing.assert_allclose(other.numbers, one.numbers, rtol=1e-9, atol=1e-12)


def test_sums_of_two_machines_fit_as_those_of_one() -> None:
    whole = society(users=10, rounds=8).users
    half = dataclasses.replace(whole, **{f.name: 0.5 * getattr(whole, f.name) for f in dataclasses.fields(whole)})
    np.testing.assert_allclose(population_of(half + half).numbers, population_of(whole).numbers, rtol=1e-9)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("scale", [1e-6, 1e-3, 7.0, 1e6])
def test_the_scale_of_overall_scores_scales_the_prior(scale: float, bias: bool) -> None:
    one = population_of(society(users=20, rounds=6, bias=0.4).users, bias=bias)
    other = population_of(society(users=20, rounds=6, bias=0.4, scale=scale).users, bias=bias)
    np.testing.assert_allclose(other.mean, scale * one.mean, rtol=1e-7)
    assert other.numbers[NOISE] == pytest.approx(scale**2 * one.numbers[NOISE], rel=1e-7)
    assert other.numbers[BIAS_MEAN] == pytest.approx(scale * one.numbers[BIAS_MEAN], rel=1e-6, abs=1e-9 * scale)
    same = [RIDGE, PLAIN, PAPER, BIAS_RIDGE, COUNT]
    np.testing.assert_allclose(other.numbers[same], one.numbers[same], rtol=1e-7)


def test_the_scale_of_rewards_scales_the_prior_the_other_way() -> None:
    generator = np.random.default_rng(3)
    reward, overall, row = generator.random((60, 2)), generator.random(60), np.repeat(np.arange(6), 10)
    fits = []
    for scale in (1.0, 1e-6, 1e6):
        users = UserStatistics.zeros(users=6, objectives=2)
        users.observe(row, scale * reward, overall)
        fits.append((scale, population_of(users)))
    one = fits[0][1]
    for scale, other in fits[1:]:
        np.testing.assert_allclose(scale * other.mean, one.mean, rtol=1e-7)
        assert other.numbers[NOISE] == pytest.approx(one.numbers[NOISE], rel=1e-7)
        assert phi_of(other) == pytest.approx(phi_of(one), rel=1e-7)
        assert spread_of(other) * scale**2 == pytest.approx(spread_of(one), rel=1e-7)


def test_a_user_without_rounds_gets_the_mean_and_changes_nothing() -> None:
    known = society(users=12, rounds=6).users
    more = UserStatistics.zeros(users=14, objectives=3)
    for field in dataclasses.fields(known):
        getattr(more, field.name)[1:13] = getattr(known, field.name)
    one, other = population_of(known), population_of(more)
    np.testing.assert_allclose(other.numbers, one.numbers, rtol=1e-12)
    center, inverse, noise = regress(more, SHARED)
    for new in (0, 13):
        np.testing.assert_allclose(center[new], other.mean, rtol=1e-9)
        gram = other.numbers[RIDGE] * np.eye(3) + other.numbers[SUM_RIDGE]
        np.testing.assert_allclose(inverse[new] @ gram, np.eye(3), rtol=1e-9, atol=1e-9)
        assert noise[new] == pytest.approx(other.numbers[NOISE])


def test_nothing_seen_is_the_start() -> None:
    users = UserStatistics.zeros(users=2, objectives=4)
    population = population_of(users, ridge=2.5)
    assert population.mean.tolist() == [0.25] * 4
    assert population.numbers.tolist() == empty_population(4, ridge=2.5).numbers.tolist()
    assert (population.numbers[RIDGE], population.numbers[PLAIN], population.numbers[PAPER]) == (2.5, 0.0, 4.0)
    assert preferences(users, dataclasses.replace(SHARED, first=0.25)).tolist() == [[0.25] * 4] * 2


def test_one_user_alone_does_not_collapse() -> None:
    """τ² cannot be learned from one user: it stays of the order of ‖c‖²/D, and the user's own rounds decide."""
    alone = society(users=1, rounds=200, noise=0.1)
    population = population_of(alone.users)
    assert 0.05 < spread_of(population) < 5.0
    np.testing.assert_allclose(regress(alone.users, SHARED)[0], alone.preference, atol=0.05)


# ---- recovery


@pytest.mark.parametrize("phi", [0.0, 1.0])
def test_what_users_have_in_common_is_found(phi: float) -> None:
    """300 users: m is known to τ/√300 ≈ 0.02, τ² and σ² to a few per cent."""
    population = population_of(society(phi=phi).users)
    np.testing.assert_allclose(population.mean, [2.0, 0.5, 1.0], atol=0.08)
    assert spread_of(population) == pytest.approx(0.09, rel=0.15)
    assert population.numbers[NOISE] == pytest.approx(0.04, rel=0.1)
    assert phi_of(population) == pytest.approx(phi, abs=0.1)


def test_an_elasticity_that_is_given_is_kept() -> None:
    users = society(phi=1.0, users=20).users
    for elasticity in (0.0, 0.25, 1.0):
        assert phi_of(population_of(users, elasticity=elasticity)) == pytest.approx(elasticity, abs=1e-12)


def test_a_bias_is_found_where_it_is_looked_for() -> None:
    with_bias = society(bias=1.0, phi=0.0)
    population = population_of(with_bias.users, bias=True)
    assert population.numbers[NOISE] / population.numbers[BIAS_RIDGE] == pytest.approx(1.0, rel=0.25)
    assert population.numbers[NOISE] == pytest.approx(0.04, rel=0.3)  # ten iterations do not quite get there
    biased = regress(with_bias.users, dataclasses.replace(SHARED, bias=True))[0]
    blind = regress(with_bias.users, SHARED)[0]
    errors = [float(np.linalg.norm(c - with_bias.preference, axis=1).mean()) for c in (biased, blind)]
    assert errors[0] < 0.5 * errors[1]


def test_sharing_helps_those_of_whom_little_is_known() -> None:
    few = society(rounds=2, users=200)
    alone = dataclasses.replace(SHARED, shared=False, omega=3.0, first=1.0 / 3.0)
    errors = [float(np.linalg.norm(regress(few.users, e)[0] - few.preference, axis=1).mean()) for e in (SHARED, alone)]
    assert errors[0] < 0.6 * errors[1]


# ---- two levels, and a sum


def visits(tastes: Floats, rounds: int, seed: int, around: float = 0.25) -> UserStatistics:
    """Return users of these tastes who each saw rewards at random, around ½ by so much."""
    generator, (count, objectives) = np.random.default_rng(seed), tastes.shape
    users, row = UserStatistics.zeros(users=count, objectives=objectives), np.repeat(np.arange(count), rounds)
    reward = 0.5 + around * generator.standard_normal((len(row), objectives))
    users.observe(row, reward, np.sum(tastes[row] * reward, axis=1) + 0.3 * generator.standard_normal(len(row)))
    return users


def test_two_levels_are_found_where_there_are_two_and_nowhere_else() -> None:
    generator = np.random.default_rng(5)
    two = np.where(generator.random((60, 5)) < 0.3, 2.0, 0.5)
    users = visits(two, 6, seed=1)
    population = population_of(users, levels=True)
    assert population.numbers[SHARE] == pytest.approx(0.7, abs=0.1)
    np.testing.assert_allclose(np.sort(population.numbers[LEVELS : LEVELS + 2]), [0.5, 2.0], atol=0.25)
    levels, alike = (regress(users, dataclasses.replace(SHARED, levels=on))[0] for on in (True, False))
    assert np.linalg.norm(levels - two) < 0.85 * np.linalg.norm(alike - two)
    one = 1.0 + 0.5 * generator.standard_normal((60, 5))
    assert population_of(visits(one, 6, seed=2), levels=True).numbers[SHARE] == 0.0


def test_a_sum_that_does_not_vary_is_no_sign_that_nothing_does() -> None:
    """Rewards that are all alike show 1·c alone, and tastes that add up to one are then all the same."""
    tastes = np.random.default_rng(7).dirichlet(np.full(5, 0.6), 80)
    users = visits(tastes, 8, seed=3, around=0.02)
    assert population_of(users).numbers[SUM_RIDGE] > 0.0
    assert spread_of(population_of(visits(tastes, 8, seed=3))) == pytest.approx(np.var(tastes), rel=0.5)
    varied = np.random.default_rng(8).normal(1.0, 0.5, (80, 5))
    held = population_of(visits(varied, 20, seed=4)).numbers
    assert held[SUM_RIDGE] < held[RIDGE]  # their sum varies as their differences do


# ---- the edge


def check_finite(users: UserStatistics) -> None:
    for bias, elasticity, positive in itertools.product((False, True), (None, 0.0, 1.0), (False, True)):
        estimate = dataclasses.replace(SHARED, bias=bias, elasticity=elasticity, non_negative=positive)
        population = common_to(users, estimate)
        assert np.isfinite(population.mean).all()
        assert np.isfinite(population.numbers).all()
        assert population.numbers[RIDGE] > 0.0
        assert population.numbers[NOISE] >= 0.0
        for array in regress(users, estimate, population):
            assert np.isfinite(array).all()


@pytest.mark.parametrize("objectives", [1, 3, 9])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("kind", ["zero", "zero scores", "equal", "one sample", "one direction", "two users"])
def test_sums_at_the_edge(kind: str, objectives: int, scale: float) -> None:
    users = UserStatistics.zeros(users=2, objectives=objectives)
    ones, axis = np.ones(objectives), np.eye(objectives)[0]
    generator = np.random.default_rng(2)
    given: dict[str, tuple[list[int], Any, Any]] = {
        "zero": ([0, 1, 1], np.zeros((3, objectives)), np.zeros(3)),
        "zero scores": ([0, 1, 1], generator.random((3, objectives)), np.zeros(3)),
        "equal": ([0] * 5 + [1] * 5, np.tile(0.5 * ones, (10, 1)), np.full(10, 0.7)),
        "one sample": ([1], ones[None, :], [0.4]),
        "one direction": ([0, 0, 1], np.array([[1.0], [2.0], [3.0]]) * axis, [0.1, 0.3, 0.2]),
        "two users": ([0, 1], generator.random((2, objectives)), [0.2, -0.1]),
    }
    row, reward, overall = given[kind]
    users.observe(row, scale * np.asarray(reward), overall)
    check_finite(users)


def test_a_hundred_thousand_equal_rounds() -> None:
    users = UserStatistics.zeros(users=2, objectives=2)
    users.observe(np.zeros(100_000, dtype=int), np.tile([0.3, 0.4], (100_000, 1)), np.full(100_000, 0.25))
    check_finite(users)
    center, _, noise = regress(users, SHARED)
    assert center[0] @ [0.3, 0.4] == pytest.approx(0.25, rel=1e-5)
    assert noise[0] < 1e-5


def test_rewards_of_one_direction_leave_the_gram_above_its_ridge() -> None:
    """V ⪰ λI, however the rounding of its factor falls: V⁻¹ is never more than 1/λ."""
    generator = np.random.default_rng(7)
    users = UserStatistics.zeros(users=2, objectives=3)
    lengths = 10.0 ** generator.uniform(-8, 8, 200)
    users.observe(np.arange(200) % 2, lengths[:, None] * np.array([1.0, 1e-9, 1.0]), lengths)
    for elasticity in (None, 0.0, 1.0):
        population = population_of(users, elasticity=elasticity)
        inverse = regress(users, SHARED, population)[1]
        assert np.linalg.eigvalsh(inverse).max() <= 3.0 / population.numbers[RIDGE]


def test_a_regression_through_all_points_says_nothing_of_the_elasticity() -> None:
    users = UserStatistics.zeros(users=3, objectives=2)
    reward = np.random.default_rng(6).random((9, 2))
    users.observe(np.arange(9) % 3, reward, reward @ [0.3, 0.3])  # all objectives alike, and no noise: the start is it
    assert phi_of(population_of(users)) == 0.5


# ---- preferences that are held at 0 or above


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("objectives", [1, 2, 3, 9])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_the_non_negative_estimate_is_the_constrained_optimum(objectives: int, bias: bool, scale: float) -> None:
    """By the conditions of Karush, Kuhn and Tucker: c ≥ 0, slope ≥ 0, and one of the two 0 in each objective."""
    mean = tuple(np.resize([1.0, -0.3, 0.0, 0.05], objectives))
    users = society(users=60, rounds=4, mean=mean, noise=0.5, bias=0.3, scale=scale).users
    free = dataclasses.replace(SHARED, bias=bias)
    held = dataclasses.replace(free, non_negative=True)
    population = common_to(users, free)
    center, inverse, noise = regress(users, free, population)
    nearest, same_inverse, same_noise = regress(users, held, population)
    np.testing.assert_array_equal(same_inverse, inverse)
    np.testing.assert_array_equal(same_noise, noise)
    assert (nearest >= 0.0).all()
    moved = 0
    for user in range(60):
        gram = np.linalg.inv(inverse[user])
        slope = gram @ (nearest[user] - center[user])
        unit = scale * float(np.linalg.norm(gram))
        assert (slope >= -1e-9 * unit).all()
        assert np.abs(slope * nearest[user]).max() <= 1e-9 * unit * scale
        moved += not np.allclose(nearest[user], center[user], rtol=1e-12, atol=0.0)
    assert moved > 5 or objectives == 1


# ---- from sums, by updates, and by NumPy


@pytest.mark.parametrize("weights", [(0.0, 3.0), (1.0, 0.0), (0.4, 0.7)])
@pytest.mark.parametrize("bias", [False, True])
def test_regress_is_numpys(weights: tuple[float, float], bias: bool) -> None:
    users = society(users=5, rounds=7).users
    population = empty_population(3, ridge=0.7)
    population.mean[:] = [0.5, 1.0, -0.5]
    population.numbers[[PLAIN, PAPER]] = weights
    population.numbers[[NOISE, PRIOR_ROUNDS]] = 0.3, 3.0
    if bias:
        population.numbers[[BIAS_RIDGE, BIAS_MEAN]] = 2.0, 0.4
    center, inverse, noise = regress(users, SHARED, population)
    strength = np.array([2.0, 0.7, 0.7, 0.7])[0 if bias else 1 :]
    prior = np.concatenate([[0.4], population.mean])[0 if bias else 1 :]
    for user in range(5):
        moments = weights[0] * users.plain[user] + weights[1] * users.weighted[user]
        part = moments[:-1, :-1] if bias else moments[1:-1, 1:-1]
        right = moments[:-1, -1] if bias else moments[1:-1, -1]
        full = np.linalg.inv(part + np.diag(strength))
        solution = full @ (right + strength * prior)
        left = moments[-1, -1] + np.sum(strength * prior**2) - solution @ (right + strength * prior)
        np.testing.assert_allclose(center[user], solution[-3:], rtol=1e-9)
        np.testing.assert_allclose(inverse[user], full[-3:, -3:], rtol=1e-9, atol=1e-12)
        assert noise[user] == pytest.approx((left + 0.9) / 10.0, rel=1e-8)


@pytest.mark.parametrize("objectives", [1, 3, 9])
@pytest.mark.parametrize("settings_", [{}, {"elasticity": 0.0}, {"shared": False}, {"bias": True}], ids=str)
def test_steps_of_the_loop_end_where_the_sums_do(objectives: int, settings_: dict[str, Any]) -> None:
    """In round 300 the last fit is 91 rounds ago: the loop's ĉ, as its preference error shows it, is `regress`'s."""
    environment = environments.Gaussian(users=3, block_size=2, objectives=objectives)
    policy = policies.create("prucb-hp-v", **settings_)
    result = simulate([policy], environment, rounds=300, trials=1, seed=4, checkpoints=300, threads=1)
    totals = [totals for _, totals in play(policy, environment, rounds=300, seed=4, trial=0)]
    errors = [total.preference_error for total in totals]
    np.testing.assert_allclose(result[policy.id].preference_error[0, 20:], errors[20:], rtol=1e-8)
    np.testing.assert_array_equal(result[policy.id].pulls[0], totals[-1].pulls)


# ---- what arms have in common


def test_scatters_by_hand() -> None:
    generator = np.random.default_rng(9)
    arms, reward, arm = ArmStatistics.zeros(arms=4, objectives=2), generator.random((30, 2)), np.arange(30) % 3
    arms.observe(arm, reward)
    scatters = reward_scatters(arms)
    for i in range(3):
        own = reward[arm == i] - reward[arm == i].mean(axis=0)
        np.testing.assert_allclose(scatters[i], own.T @ own, atol=1e-12)
    assert not scatters[3].any()
    np.testing.assert_allclose(scatters[4], scatters[:4].sum(axis=0))


# ---- bad input


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: empty_population(0), "expected at least one objective and ridge > 0, got 0 and 1.0"),
        (lambda: empty_population(2, ridge=0.0), "expected at least one objective and ridge > 0, got 2 and 0.0"),
        (
            lambda: population_of(UserStatistics.zeros(users=1, objectives=1), elasticity=1.5),
            "expected elasticity between 0 and 1, or none to fit it, got 1.5",
        ),
        (
            lambda: population_of(UserStatistics.zeros(users=1, objectives=1), elasticity=math.nan),
            "expected elasticity between 0 and 1, or none to fit it, got nan",
        ),
    ],
)
def test_bad_input_meets_a_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call()
