"""The variance-aware bound against hand-computed cases, a plain recomputation from the history, and its own laws."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from pamo import policies
from pamo.arrays import Floats
from pamo.errors import InputError
from pamo.estimators import Estimate, Kind, preferences
from pamo.statistics import ArmStatistics, UserStatistics
from pamo.theory import most_noise, prior_bias, variance_bound
from pamo.theory.variance import (
    ELLIPSOID,
    RESIDUALS,
    REWARDS,
    SPAN,
    STATED,
    bernstein_width,
    information,
    noise_limit,
    reward_log,
)

RIDGE = Estimate(kind=Kind.RIDGE, weighted=True, ridge=1.0, omega=3.0)
PLAIN = Estimate(kind=Kind.RIDGE, weighted=False, ridge=0.5)
ASKED, KNOWN = Estimate(kind=Kind.STATED), Estimate(kind=Kind.KNOWN)


class History(NamedTuple):
    """Pulls one after the other, and the sums that they come to."""

    user: npt.NDArray[np.int64]
    arm: npt.NDArray[np.int64]
    reward: Floats
    overall: Floats
    stated: Floats
    arms: ArmStatistics
    users: UserStatistics


def played(rounds: int, *, seed: int, coins: bool = False, correlated: bool = False) -> History:
    """Two users, three arms, three objectives: preferences uniform around their mean, rewards in [0, 1]."""
    rng = np.random.default_rng(seed)
    user, arm = rng.integers(2, size=rounds), rng.integers(3, size=rounds)
    means = np.array([[0.3, 0.5, 0.7], [0.6, 0.2, 0.4], [0.5, 0.5, 0.5]])
    spread = rng.random((rounds, 1)) if correlated else rng.random((rounds, 3))
    reward = (spread < means[arm]).astype(float) if coins else means[arm] + 0.4 * (spread - 0.5)
    truth = np.array([[0.3, 0.1, 0.1], [0.1, 0.2, 0.2]])
    stated = truth[user] + 0.1 * (2 * rng.random((rounds, 3)) - 1)
    overall = (stated * reward).sum(axis=1)
    arms, users = ArmStatistics.zeros(arms=3, objectives=3), UserStatistics.zeros(users=2, objectives=3)
    arms.observe(arm, reward, overall)
    users.observe(user, reward, overall, stated)
    return History(user, arm, reward, overall, stated, arms, users)


# ---- the parts, by hand


def test_a_width_by_hand() -> None:
    # N = 5, 4 pairs, ϑ = 0.1: L = log(2·4·5·4/0.1) = log 1600.
    log_term = reward_log(5.0, 4.0, 0.1)
    assert log_term == pytest.approx(math.log(1600))
    expected = math.sqrt(2 * math.log(1600) / 5) * 0.01 + 7 * 0.001 * math.log(1600) / 12
    assert bernstein_width(5.0, 0.01, 0.001, log_term) == 0.001  # never more than the interval's length
    assert bernstein_width(5.0, 0.01, 0.001, log_term) < expected
    many = reward_log(1e4, 4.0, 0.1)
    assert bernstein_width(1e4, 0.2, 0.5, many) == pytest.approx(
        math.sqrt(2 * many / 1e4) * 0.2 + 7 * 0.5 * many / (3 * 9999)
    )


@pytest.mark.parametrize("pulls", [0.0, 1.0])
def test_before_the_second_pull_only_the_interval_is_known(pulls: float) -> None:
    assert bernstein_width(pulls, 0.0, 0.7, 0.0) == 0.7


def test_the_shares_of_the_failure_add_up_to_one() -> None:
    assert REWARDS + ELLIPSOID + RESIDUALS == 1.0 == REWARDS + STATED
    assert sum(1 / (n * (n - 1)) for n in range(2, 200_000)) == pytest.approx(1.0, abs=1e-5)
    assert sum(1 / ((k + 1) * (k + 2)) for k in range(200_000)) == pytest.approx(1.0, abs=1e-5)


def test_the_information_by_hand() -> None:
    # One user, ϑ = 0.05; V = diag(4, 1) over I.
    assert information(math.log(4.0), 1.0, 0.05) == pytest.approx(2 * math.log(20) + math.log(4))


def test_the_noise_limit_is_the_root_of_its_inequality() -> None:
    rounds, residual, square, bias, kappa, users, failure = 3000.0, 40.0, 25.0, 0.8, 2.0, 3.0, 0.01
    sigma = noise_limit(rounds, residual, square, bias, kappa, users, failure, math.inf)
    log_term = math.log(3 * 12 * 13 / 0.01)  # 2048 ≤ 3000 < 4096: k = 11
    left = 1500 - SPAN * math.sqrt(6 * 1500 * log_term) - 25
    assert left * sigma**2 - 2 * 5 * 0.8 * sigma - 40 == pytest.approx(0.0, abs=1e-9)
    assert pytest.approx(1.0150518, abs=1e-7) == SPAN


def test_the_span_covers_every_number_of_rounds_between_two_powers() -> None:
    """One exponent φ for 2ᵏ ≤ n < 2ᵏ⁺¹ costs 1.5φn + L/φ, at most C·√(6nL)."""
    log_term = 7.0
    for k in range(4, 12):
        phi = math.sqrt(2 * log_term / (3 * math.sqrt(2) * 2**k))
        for n in range(2**k, 2 ** (k + 1)):
            assert 1.5 * phi * n + log_term / phi <= SPAN * math.sqrt(6 * n * log_term) * (1 + 1e-12)


@pytest.mark.parametrize(("rounds", "kappa"), [(0.0, 1.0), (1.0, 1.0), (60.0, 1.0), (3000.0, 200.0), (1e9, math.inf)])
def test_too_few_rounds_leave_the_range(rounds: float, kappa: float) -> None:
    assert noise_limit(rounds, 0.0, 10.0, 1.0, kappa, 1.0, 0.05, 0.9) == 0.9


def test_the_noise_limit_nears_the_truth() -> None:
    sigma = noise_limit(1e8, 1e8 * 0.04, 60.0, 1.0, 1.0, 1.0, 0.05, 1.0)
    assert 0.2 < sigma < 0.2003


def test_the_farthest_preference_is_a_corner() -> None:
    rng = np.random.default_rng(0)
    prior = rng.random((4, 3)) * 0.6
    inside = rng.dirichlet(np.ones(4), size=5000)[:, :3] * 0.9  # c ≥ 0, ‖c‖₁ ≤ 0.9
    farthest = np.linalg.norm(inside[:, None] - prior, axis=2).max(axis=0)
    bias = prior_bias(0.9, 4.0, prior)
    assert (2 * farthest <= bias).all()
    assert (2 * farthest >= 0.7 * bias).all()


def test_most_noise_is_half_of_the_range() -> None:
    assert most_noise(0.5, 9.0) == 0.75


# ---- the whole, from sums and from the history


def recomputed(
    history: History, estimate: Estimate, failure: float, delta: float, kappa: float, prior: Floats
) -> Floats:
    """The bound written out again, from single pulls, with NumPy."""
    total = np.empty((2, 3))
    for n in range(2):
        mine = history.user == n
        rewards, overalls = history.reward[mine], history.overall[mine]
        carries = (rewards**2).sum(axis=1) > 0
        if estimate.weighted:
            scale = np.sqrt(estimate.omega) / np.linalg.norm(rewards[carries], axis=1)
            rewards, overalls = rewards[carries] * scale[:, None], overalls[carries] * scale
        gram = estimate.ridge * np.eye(3) + rewards.T @ rewards
        estimated = np.linalg.solve(gram, rewards.T @ overalls + estimate.ridge * prior)
        residual = ((overalls - rewards @ estimated) ** 2).sum() + estimate.ridge * ((estimated - prior) ** 2).sum()
        square = 2 * math.log(2 / (failure / 4)) + math.log(np.linalg.det(gram) / estimate.ridge**3)
        corners = [np.zeros(3), *(delta * np.eye(3))]
        bias = math.sqrt(estimate.ridge) * max(float(np.linalg.norm(corner - prior)) for corner in corners)
        noise = delta / 2 * math.sqrt(estimate.omega if estimate.weighted else 1.0)
        if len(overalls):
            k = int(math.log2(len(overalls)))
            log_rounds = math.log(2 * (k + 1) * (k + 2) / (failure / 4))
            left = len(overalls) / kappa - 1.0150518 * math.sqrt(6 * len(overalls) / kappa * log_rounds) - square
            if left > 0:
                largest = np.roots([left, -2 * math.sqrt(square) * bias, -residual]).max()
                noise = min(noise, float(largest))
        radius = noise * math.sqrt(square) + bias
        inverse = np.linalg.inv(gram)
        length = min(delta, np.abs(estimated).sum() + radius * np.sqrt(np.diag(inverse)).sum())
        for i in range(3):
            pulled = history.reward[history.arm == i]
            width = length
            if len(pulled) >= 2:
                covariance = np.cov(pulled, rowvar=False)
                log_term = math.log(2 * 6 * len(pulled) * (len(pulled) - 1) / (failure / 2))
                deviation = (pulled @ estimated).std(ddof=1) + radius * math.sqrt(np.trace(inverse @ covariance))
                over = 7 * length * log_term / (3 * (len(pulled) - 1))
                width = min(length, math.sqrt(2 * log_term / len(pulled)) * deviation + over)
            mean = pulled.mean(axis=0) if len(pulled) else np.zeros(3)
            total[n, i] = estimated @ mean + width + radius * math.sqrt(mean @ inverse @ mean)
    return total


@pytest.mark.parametrize("estimate", [RIDGE, PLAIN], ids=["weighted", "plain"])
@pytest.mark.parametrize(("coins", "correlated"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("rounds", [0, 1, 2, 7, 300, 20_000])
def test_the_bound_from_the_sums_is_that_from_the_history(
    rounds: int, coins: bool, correlated: bool, estimate: Estimate
) -> None:
    history = played(rounds, seed=rounds, coins=coins, correlated=correlated)
    for prior in (np.zeros(3), np.array([0.2, 0.1, 0.2])):
        bound = variance_bound(
            history.arms, history.users, estimate=estimate, failure=0.1, delta=0.9, kappa=1.5, prior_mean=prior
        )
        expected = recomputed(history, estimate, 0.1, 0.9, 1.5, prior)
        np.testing.assert_allclose(bound.total, expected, rtol=1e-6)
    if rounds == 20_000:
        assert (bound.noise < most_noise(0.9, estimate.omega)).all(), "the estimated noise is to be in this test"


def test_the_value_is_the_estimators_preference_times_the_reward_mean() -> None:
    history = played(500, seed=5)
    bound = variance_bound(history.arms, history.users, estimate=RIDGE)
    means = np.array([history.reward[history.arm == i].mean(axis=0) for i in range(3)])
    np.testing.assert_allclose(bound.value, preferences(history.users, RIDGE) @ means.T, rtol=1e-9)


def test_it_bounds_what_the_recommended_policy_estimates_with_a_prior_fixed_beforehand() -> None:
    """Without a shared prior, the policy's ĉ·r̂ is the bound's with m = 1/D; its bonuses are by far the smaller."""
    history, policy = played(5000, seed=6), policies.PrucbHpV(shared=False)
    estimate = policy.estimate(objectives=3)
    bound = variance_bound(history.arms, history.users, estimate=estimate, prior_mean=[estimate.first] * 3)
    greedy = policies.PrucbHpV(shared=False, reward_scale=0.0, preference_scale=0.0)
    for n in range(2):
        bare = policies.scores(greedy, arms=history.arms, users=history.users, user=n)
        np.testing.assert_allclose(bound.value[n], bare, rtol=1e-9)
        score = policies.scores(policy, arms=history.arms, users=history.users, user=n)
        assert (score > bare).all()
        assert (score - bare < 0.2 * (bound.total[n] - bare)).all()


def test_a_stated_preference_by_hand() -> None:
    arms, users = ArmStatistics.zeros(arms=1, objectives=2), UserStatistics.zeros(users=1, objectives=2)
    rng = np.random.default_rng(1)
    rewards, said = rng.random((400, 2)), np.column_stack([rng.random(5000) * 0.4, np.full(5000, 0.3)])
    arms.observe([0] * 400, rewards)
    users.observe([0] * 5000, np.full((5000, 2), np.nan), preference=said)
    bound = variance_bound(arms, users, estimate=ASKED, failure=0.04)
    log_stated = math.log(2 * 2 * 2 * 5000 * 4999 / 0.02)
    half = np.array([math.sqrt(2 * log_stated / 5000) * s for s in (said[:, 0].std(ddof=1), 0.0)])
    half += 7 * log_stated / (3 * 4999)
    center, mean = said.mean(axis=0), rewards.mean(axis=0)
    assert bound.value[0, 0] == pytest.approx(center @ mean)
    assert bound.preference_bonus[0, 0] == pytest.approx(half @ mean)
    log_term = math.log(2 * 400 * 399 / 0.02)
    deviation = (rewards @ center).std(ddof=1) + half @ rewards.std(axis=0, ddof=1)
    length = center.sum() + half.sum()
    assert bound.reward_bonus[0, 0] == pytest.approx(
        math.sqrt(2 * log_term / 400) * deviation + 7 * length * log_term / (3 * 399)
    )


def test_a_known_preference_by_hand() -> None:
    history = played(900, seed=3, correlated=True)
    known = np.array([[0.6, 0.1, 0.3], [0.0, 0.0, 2.0]])
    bound = variance_bound(history.arms, history.users, estimate=KNOWN, known=known, failure=0.02)
    for n in range(2):
        for i in range(3):
            seen = history.reward[history.arm == i] @ known[n]
            log_term = math.log(2 * 6 * len(seen) * (len(seen) - 1) / 0.02)
            over = 7 * known[n].sum() * log_term / (3 * (len(seen) - 1))
            assert bound.reward_bonus[n, i] == pytest.approx(
                math.sqrt(2 * seen.var(ddof=1) * log_term / len(seen)) + over
            )
            assert bound.total[n, i] == pytest.approx(seen.mean() + bound.reward_bonus[n, i])
    assert not bound.preference_bonus.any()
    assert not bound.radius.any()


def test_objectives_that_cancel_out_need_no_bonus_for_their_variance() -> None:
    """The bound sees the correlation: r₁ + r₂ is constant, so that its value to an even-handed user is certain."""
    arms, users = ArmStatistics.zeros(arms=2, objectives=2), UserStatistics.zeros(users=1, objectives=2)
    first = np.random.default_rng(2).random(5000)
    arms.observe([0] * 5000, np.column_stack([first, 1 - first]))
    arms.observe([1] * 5000, np.column_stack([first, first]))
    bonus = variance_bound(arms, users, estimate=KNOWN, known=[[0.5, 0.5]]).reward_bonus[0]
    assert bonus[0] < 0.01
    assert bonus[1] > 0.02


# ---- what it is to be like


def test_more_confidence_more_users_and_more_anisotropy_never_narrow_it() -> None:
    history = played(20_000, seed=8)
    base = variance_bound(history.arms, history.users, estimate=RIDGE).total
    changes: list[dict[str, Any]] = [{"failure": 0.001}, {"kappa": 3.0}, {"delta": 2.0}]
    for changed in changes:
        assert (variance_bound(history.arms, history.users, estimate=RIDGE, **changed).total > base).all(), changed
    more = UserStatistics.zeros(users=5, objectives=3)
    for name, array in history.users._arrays().items():
        getattr(more, name)[:2] = array
    assert (variance_bound(history.arms, more, estimate=RIDGE).total[:2] > base).all()


def test_without_feedback_it_is_what_the_range_allows() -> None:
    arms, users = ArmStatistics.zeros(arms=2, objectives=3), UserStatistics.zeros(users=1, objectives=3)
    for estimate in (RIDGE, ASKED):
        assert variance_bound(arms, users, estimate=estimate, delta=0.8).total.tolist() == [[0.8, 0.8]]


def test_an_infinite_kappa_takes_the_range_for_the_noise() -> None:
    history = played(20_000, seed=9)
    bound = variance_bound(history.arms, history.users, estimate=RIDGE, kappa=math.inf)
    assert bound.noise.tolist() == [most_noise(1.0, 3.0)] * 2


# ---- bad input


@pytest.mark.parametrize(
    "wrong",
    [
        {"failure": 0.0},
        {"failure": 1.0},
        {"delta": 0.0},
        {"delta": math.inf},
        {"kappa": 0.9},
        {"kappa": math.nan},
        {"estimate": Estimate(kind=Kind.NONE)},
        {"estimate": Estimate(kind=Kind.RIDGE, ridge=0.0)},
        {"estimate": KNOWN},
        {"estimate": KNOWN, "known": [[0.5, 0.5]]},
        {"estimate": KNOWN, "known": [[0.5, 0.5, math.nan]] * 2},
        {"prior_mean": [0.5, 0.5]},
        {"prior_mean": [0.5, 0.5, math.inf]},
    ],
    ids=repr,
)
def test_bad_settings_are_refused(wrong: dict[str, Any]) -> None:
    history = played(10, seed=1)
    with pytest.raises(InputError):
        variance_bound(history.arms, history.users, **({"estimate": RIDGE} | wrong))


def test_arms_and_users_of_other_objectives_are_refused() -> None:
    with pytest.raises(InputError, match="one number of objectives"):
        variance_bound(
            ArmStatistics.zeros(arms=1, objectives=2), UserStatistics.zeros(users=1, objectives=3), estimate=RIDGE
        )


@pytest.mark.parametrize("reward", [[1.5, 0.2, 0.2], [0.2, -0.1, 0.3]])
def test_rewards_out_of_their_range_are_refused(reward: list[float]) -> None:
    arms, users = ArmStatistics.zeros(arms=1, objectives=3), UserStatistics.zeros(users=1, objectives=3)
    arms.observe(0, reward)
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        variance_bound(arms, users, estimate=RIDGE)
