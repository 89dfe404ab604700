"""Inputs at the edge: every policy of the registry survives them, and where the answer is known, gives it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pamo import Result, environments, policies, simulate
from pamo.arrays import Floats
from pamo.compiling import dimensions, kernel
from pamo.environments import PROTOCOLS, Environment, Fixed
from pamo.estimators import Estimate, Kind, preferences, ridge_gram
from pamo.policies.base import pick
from pamo.reading import PREFERENCE, inverse_at, step_user, user_numbers
from pamo.rows import LEAST_SQUARE, square_of, whole
from pamo.statistics import ArmStatistics, UserStatistics
from pamo.streams import POLICY, stream_for
from tests.looped import LOOPED

ALL = LOOPED
# Everything is compiled for each number of objectives below nine: one, three as elsewhere, and nine are enough.


def run(environment: Environment, *, rounds: int = 60) -> Result:
    """Run every policy, and see that nothing in its records is NaN or infinite that should not be."""
    result = simulate(ALL, environment, rounds=rounds, trials=3, seed=12)
    for name, outcome in result.items():
        for array in (outcome.regret_by_user, outcome.pareto_regret, outcome.overall, outcome.optimal_share):
            assert np.isfinite(array).all(), name
        estimates = policies.create(name).estimate(environment.objectives).kind != Kind.NONE
        assert np.isfinite(outcome.preference_error).all() == estimates, name
        assert outcome.pulls.sum(axis=1).tolist() == [rounds * environment.users] * 3
    return result


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_rewards_of_zero(protocol: str) -> None:
    environment = Fixed.of(
        means=np.zeros((4, 3)),
        preferences=np.ones((2, 3)),
        reward_variance=0.0,
        block_size=2 if protocol != "all" else None,
        protocol=protocol,
    )
    for outcome in run(environment).values():
        assert not outcome.regret_by_user.any()
        assert not outcome.overall.any()
        assert (outcome.optimal_share == 1.0).all()


@pytest.mark.parametrize("size", [1e-200, 1e-160, 1e-154, 1e-100, 1e-8, 1e8, 1e100])
def test_rewards_of_any_size(size: float) -> None:
    """‖r‖² leaves a float's range where r is still well within it."""
    environment = Fixed.of(
        means=np.array([[0.9, 0.1, 0.2], [0.1, 0.9, 0.6], [0.5, 0.5, 0.1]]) * size,
        preferences=[[2.0, 0.5, 0.1]],
        reward_variance=0.0,
        preference_variance=0.01,
    )
    result = run(environment)
    if size > 1e-150:  # a direction can be told, so the preference is learned whatever the size
        assert result["prucb-hp"].preference_error[:, -1].mean() < 1.0


def test_betas_that_are_all_but_coins() -> None:
    """They come as small as 1e-300; one of them must not poison a user's estimate for ever."""
    for objectives in (1, 3):
        environment = environments.Bounded(users=2, block_size=3, objectives=objectives, reward_variance=0.25)
        result = run(environment, rounds=2000)
        assert result["prucb-hp"].preference_error[:, -1].max() < 0.05


def test_identical_arms() -> None:
    environment = Fixed.of(means=[[0.3, 0.7, 0.5]] * 5, preferences=[[2.0, 0.5, 1.0]] * 2, reward_variance=0.0)
    for outcome in run(environment).values():
        assert not outcome.regret_by_user.any()
        assert (outcome.optimal_share == 1.0).all()


@pytest.mark.parametrize("name", ["greedy", "oful"])
@pytest.mark.parametrize("arms", [3, 7])
def test_ties_are_settled_evenly(name: str, arms: int) -> None:
    environment = Fixed.of(means=np.zeros((arms, 3)), preferences=[[2.0, 0.5, 1.0]], reward_variance=0.0)
    pulls = simulate([name], environment, rounds=4000, trials=1, seed=3)[name].pulls[0]
    assert stats.chisquare(pulls).pvalue > 1e-3


def test_a_pick_among_ties_is_uniform() -> None:
    stream, scores = stream_for(1, 0, POLICY), np.array([0.5, 1.0, 1.0, -np.inf, 1.0, 7.0])
    counts = np.bincount([pick(scores, 5, stream) for _ in range(30_000)], minlength=5)  # of the first five
    assert counts[[0, 3]].tolist() == [0, 0]
    assert stats.chisquare(counts[[1, 2, 4]]).pvalue > 1e-3


def test_a_pick_of_infinities() -> None:
    stream = stream_for(1, 0, POLICY)
    assert {int(pick(np.array([np.inf, 0.0, np.inf]), 3, stream)) for _ in range(50)} == {0, 2}
    assert int(pick(np.array([-np.inf, -1e300]), 2, stream)) == 1


@pytest.mark.parametrize(
    ("users", "block_size", "objectives", "protocol"),
    [
        (1, 1, 1, "random"),
        (1, 1, 9, "all"),
        (1, 6, 3, "rotate"),
        (6, 1, 3, "rotate"),
        (1, 4, 1, "all"),
        (5, 2, 12, "random"),
    ],
)
@pytest.mark.parametrize("kind", ["gaussian", "bounded"])
def test_one_of_everything(kind: str, users: int, block_size: int, objectives: int, protocol: str) -> None:
    environment = environments.create(
        kind, users=users, block_size=block_size, objectives=objectives, protocol=protocol
    )
    result = run(environment)
    if environment.offer_size == 1:
        assert all(not outcome.regret_by_user.any() for outcome in result.values())


def test_one_round() -> None:
    for protocol in PROTOCOLS:
        run(environments.Gaussian(users=3, block_size=2, protocol=protocol), rounds=1)


def test_more_blocks_than_users_are_all_offered_in_turn() -> None:
    environment = environments.Gaussian(users=2, block_size=2, arms=10, protocol="random")
    for outcome in run(environment, rounds=200).values():
        assert (outcome.pulls.reshape(3, 5, 2).sum(axis=2) > 40).all()  # each block is offered in 80 of 400 decisions


def test_no_noise_at_all() -> None:
    environment = environments.Gaussian(users=2, block_size=3, reward_variance=0.0, preference_variance=0.0)
    result = run(environment, rounds=300)
    assert result["prucb-hp"].preference_error[:, -1].max() < 0.5
    assert not result["prucb-kp"].preference_error.any()


@pytest.mark.parametrize("name", ALL)
def test_a_policy_scores_an_offer_before_anything_was_seen(name: str) -> None:
    arms, users = ArmStatistics.zeros(arms=3, objectives=3), UserStatistics.zeros(users=1, objectives=3)
    policy, shape = policies.create(name), policies.Shape(users=1, arms=3, objectives=3, horizon=10)
    kept = policies.kept_for(policy.keeps(shape), shape)
    scores = policies.scores(
        policy, arms=arms, users=users, horizon=10, known=[[0.5, 0.5, 0.2]], own=arms.copy(), kept=kept
    )
    assert not np.isnan(scores).any()
    if name not in ("prts", "exp3"):  # which draw
        assert len(set(scores.tolist())) == 1  # nothing speaks for any of them


@pytest.mark.parametrize("name", ["prucb-hp", "prucb-hp-v", "prucb-up", "s-ucb", "greedy"])
def test_arms_of_which_the_same_was_seen_tie_whatever_their_place(name: str) -> None:
    """In an offer of 20 some arms were once scored eight at a time and the rest one by one, rounded otherwise."""
    generator, objectives = np.random.default_rng(5), 7
    for _ in range(100):
        arms = ArmStatistics.zeros(arms=21, objectives=objectives)
        users = UserStatistics.zeros(users=1, objectives=objectives)
        arms.observe(np.zeros(9, dtype=np.int64), generator.random((9, objectives)), generator.random(9))
        same = generator.random(objectives)
        for arm in range(1, 21):
            arms.observe([arm] * 2, [same, same], [0.3, 0.3])
        rewards = generator.random((30, objectives))
        users.observe(np.zeros(30, dtype=np.int64), rewards, generator.random(30), rewards)
        scores = policies.scores(policies.create(name), arms=arms, users=users, offer=np.arange(1, 21))
        assert len(set(scores.tolist())) == 1


# ---- V⁻¹ and ĉ by rank-one updates


@kernel
def take_in(user: Floats, values: Floats, omega: float, dims: Any) -> None:
    """As the trial loop takes samples in; omega 0 stands for a plain ridge."""
    room = np.empty(values.shape[1] - 1)
    for k in range(len(values)):
        square = square_of(values[k], values.shape[1] - 1)
        step_user(user, values[k], square, LEAST_SQUARE, 0.0 if omega > 0.0 else 1.0, omega, room, dims)


def by_updates(rewards: Floats, overalls: Floats, omega: float, ridge: float) -> tuple[Floats, Floats]:
    """Return V⁻¹ and ĉ after all samples; of V⁻¹ the loop keeps the lower triangle."""
    objectives = rewards.shape[1]
    user, places = np.zeros(user_numbers(objectives)), inverse_at(objectives) + whole(objectives)
    user[np.diag(places)] = 1.0 / ridge
    take_in(user, np.column_stack([rewards, overalls]), omega, dimensions(objectives))
    return user[places], user[PREFERENCE : PREFERENCE + objectives]


def by_sums(rewards: Floats, overalls: Floats, omega: float, ridge: float) -> tuple[Floats, Floats]:
    users = UserStatistics.zeros(users=1, objectives=rewards.shape[1])
    users.observe(np.zeros(len(rewards), dtype=np.int64), rewards, overalls)
    estimate = Estimate(kind=Kind.RIDGE, weighted=omega > 0.0, omega=omega or 1.0, ridge=ridge)
    return np.linalg.inv(ridge_gram(users, estimate)[0]), preferences(users, estimate)[0]


ROUNDS = 100_000


@pytest.mark.parametrize("omega", [0.0, 3.0], ids=["plain", "weighted"])
@pytest.mark.parametrize("norm", [1e-6, 1e-3, 1.0])
def test_the_inverse_kept_by_updates_is_that_of_the_sums(norm: float, omega: float) -> None:
    """10⁵ rounds of the same reward."""
    reward = np.array([0.6, 0.5, 0.2]) * norm
    rewards, overalls = np.tile(reward, (ROUNDS, 1)), np.full(ROUNDS, reward @ [2.0, 0.5, 0.5])
    inverse, preference = by_updates(rewards, overalls, omega, ridge=1.0)
    expected, solved = by_sums(rewards, overalls, omega, ridge=1.0)
    np.testing.assert_allclose(inverse, expected, rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(preference, solved, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("omega", [0.0, 4.0], ids=["plain", "weighted"])
@pytest.mark.parametrize(("norm", "ridge"), list(itertools.product([1e-100, 1e-6, 1.0, 1e3, 1e6], [0.01, 1.0])))
@pytest.mark.parametrize("objectives", [3, 9])
def test_the_inverse_kept_by_updates_is_exact_for_any_size_of_reward(
    objectives: int, norm: float, ridge: float, omega: float
) -> None:
    """The same reward every time has an inverse in closed form: λ⁻¹(I − s/(1+s)·uuᵀ), s = Σw‖r‖²/λ.

    The inverse of the sums is no yardstick for large plain rewards: beside Σr·rᵀ ~ 10¹⁷ a float has no room for λ.
    """
    direction = np.linspace(1.0, 2.0, objectives)
    direction /= np.linalg.norm(direction)
    reward = norm * direction
    along = 0.7  # g/‖r‖
    rewards, overalls = np.tile(reward, (ROUNDS, 1)), np.full(ROUNDS, along * norm)
    inverse, preference = by_updates(rewards, overalls, omega, ridge)
    s = ROUNDS * (omega if omega > 0.0 else norm * norm) / ridge
    exact = (np.eye(objectives) - s / (1.0 + s) * np.outer(direction, direction)) / ridge
    np.testing.assert_allclose(inverse, exact, rtol=0.0, atol=1e-9 / ridge)
    np.testing.assert_allclose(preference, s / (1.0 + s) * along * direction, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(("name", "weight"), [("prucb-hp", 3.0), ("greedy", 3.0), ("oful", 0.65)])
def test_a_hundred_thousand_rounds_of_the_same_reward(name: str, weight: float) -> None:
    """In the loop itself: what can be known of the preference is known, and nothing else is made up."""
    reward, truth = np.array([0.6, 0.5, 0.2]), np.array([2.0, 0.5, 0.5])  # ‖r‖² = 0.65: a plain ridge's w‖r‖²
    environment = Fixed.of(means=[reward], preferences=[truth], reward_variance=0.0, preference_variance=0.0)
    error = simulate([name], environment, rounds=ROUNDS, trials=1)[name].preference_error[0, -1]
    direction = reward / np.linalg.norm(reward)
    estimate = ROUNDS * weight / (1.0 + ROUNDS * weight) * (truth @ direction) * direction
    assert error == pytest.approx(np.linalg.norm(estimate - truth), rel=1e-9)


@pytest.mark.parametrize("omega", [0.0, 3.0], ids=["plain", "weighted"])
def test_many_different_rewards_too(omega: float) -> None:
    generator = np.random.default_rng(3)
    rewards = generator.normal(0.5, 0.3, (ROUNDS, 3))
    overalls = rewards @ [2.0, 0.5, 0.5] + generator.normal(0.0, 0.1, ROUNDS)
    updated, summed = (by(rewards, overalls, omega, ridge=1.0) for by in (by_updates, by_sums))
    for ours, theirs in zip(updated, summed, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-12)
