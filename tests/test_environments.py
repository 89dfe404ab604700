"""Environments against what they promise: moments, bounds, feedback that fits together, and who is offered what."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from pamo import environments
from pamo.arrays import Floats
from pamo.compiling import dimensions
from pamo.environments import PROTOCOLS, Bounded, Environment, Fixed, Gaussian
from pamo.environments.protocols import assign
from pamo.errors import InputError
from pamo.streams import ENVIRONMENT, STATED, stream_for
from tests.replica import instance_of

LEAST_P = 1e-3
COUNT = 40_000


class Draws(NamedTuple):
    """Many pulls of one arm by one user."""

    reward: Floats
    stated: Floats
    overall: Floats


def draws(environment: Environment, means: Floats, truth: Floats, *, stated: bool = True, count: int = COUNT) -> Draws:
    """Pull arm 0 for user 0, again and again."""
    stream, spare = stream_for(4, 0, ENVIRONMENT), stream_for(4, 0, STATED)
    objectives, numbers = environment.objectives, environment.numbers()
    room, wanted = np.empty((count, objectives + 1)), np.full((count, objectives), np.nan)
    draw, dims = type(environment).draw, dimensions(objectives)
    overall = [draw(room[k], wanted[k], 0, 0, means, truth, numbers, stated, stream, spare, dims) for k in range(count)]
    return Draws(room[:, :objectives].copy(), wanted, np.array(overall))


def assert_mean(values: Floats, mean: float) -> None:
    """Within four and a half standard errors of what it should be."""
    assert abs(values.mean() - mean) <= 4.5 * values.std() / math.sqrt(len(values)) + 1e-12


def assert_moments(values: Floats, mean: float, variance: float) -> None:
    assert_mean(values, mean)
    assert_mean((values - mean) ** 2, variance)


# ---- the paper's Gaussian environment

MEANS, TRUTH = np.array([[0.9, 0.1, 0.4]]), np.array([[0.5, 2.0, 0.5]])


def test_gaussian_rewards_and_preferences_have_the_moments_asked_for() -> None:
    environment = Gaussian(users=1, block_size=1, objectives=3, reward_variance=0.04, preference_variance=0.3)
    seen = draws(environment, MEANS, TRUTH)
    for d in range(3):
        assert_moments(seen.reward[:, d], MEANS[0, d], 0.04)
        assert_moments(seen.stated[:, d], TRUTH[0, d], 0.3)
        assert stats.kstest((seen.reward[:, d] - MEANS[0, d]) / 0.2, "norm").pvalue > LEAST_P
        assert stats.kstest((seen.stated[:, d] - TRUTH[0, d]) / math.sqrt(0.3), "norm").pvalue > LEAST_P
    together = np.corrcoef(np.hstack([seen.reward, seen.stated]).T)
    assert np.abs(together - np.eye(6)).max() < 4.5 / math.sqrt(COUNT)  # all six entries independent
    assert seen.reward.min() < 0.0  # and not clipped


def test_the_defaults_are_the_papers() -> None:
    environment = Gaussian()
    assert (environment.reward_variance, environment.preference_variance) == (0.01, 0.5)
    np.testing.assert_allclose(environment.numbers()[:2] ** 2, [0.01, 0.5])


@pytest.mark.parametrize("environment", [Gaussian(users=1, block_size=1), Bounded(users=1, block_size=1)])
def test_the_overall_score_is_the_stated_preference_times_the_reward(environment: Environment) -> None:
    means, truth = instance_of(environment, seed=3, trial=0)
    seen = draws(environment, means, truth, count=2000)
    np.testing.assert_allclose(seen.overall, (seen.stated * seen.reward).sum(axis=1), rtol=0.0, atol=1e-12)


def test_given_the_reward_the_overall_score_has_the_right_mean_and_spread() -> None:
    environment = Gaussian(users=1, block_size=1, preference_variance=0.3)
    seen = draws(environment, MEANS, TRUTH, stated=False)
    lengths = np.linalg.norm(seen.reward, axis=1)
    standard = (seen.overall - seen.reward @ TRUTH[0]) / (math.sqrt(0.3) * lengths)
    assert stats.kstest(standard, "norm").pvalue > LEAST_P
    assert abs(np.corrcoef(standard, lengths)[0, 1]) < 4.5 / math.sqrt(COUNT)


@pytest.mark.parametrize("environment", [Gaussian(users=1, block_size=1), Bounded(users=1, block_size=1)])
def test_asking_for_the_stated_preference_changes_nothing_else(environment: Environment) -> None:
    means, truth = instance_of(environment, seed=3, trial=0)
    asked, unasked = (draws(environment, means, truth, stated=stated, count=500) for stated in (True, False))
    np.testing.assert_array_equal(asked.reward, unasked.reward)
    np.testing.assert_array_equal(asked.overall, unasked.overall)


@pytest.mark.parametrize("kind", [Gaussian, Bounded])
def test_draws_leave_the_stream_at_the_same_place_whatever_the_arm(kind: type[Environment]) -> None:
    environment = kind(users=1, block_size=2)
    means, truth = np.array([[0.9, 0.5, 0.1], [0.01, 0.02, 0.03]]), np.array([[0.2, 0.2, 0.1]])
    numbers, dims = environment.numbers(), dimensions(3)
    places = []
    for arm in (0, 1):
        stream, spare = stream_for(1, 1, ENVIRONMENT), stream_for(1, 1, STATED)
        room, stated = np.empty(4), np.empty(3)
        for _ in range(200):
            type(environment).draw(room, stated, arm, 0, means, truth, numbers, True, stream, spare, dims)
        places.append(stream.tolist())
    assert places[0] == places[1]


def test_a_reward_of_zero_has_a_stated_preference_and_the_overall_score_zero() -> None:
    environment = Gaussian(users=1, block_size=1, reward_variance=0.0)
    seen = draws(environment, np.zeros((1, 3)), TRUTH, count=5000)
    assert not seen.reward.any()
    assert not seen.overall.any()
    for d in range(3):
        assert_moments(seen.stated[:, d], TRUTH[0, d], 0.5)


@pytest.mark.parametrize("kind", [Gaussian, Bounded])
def test_instances_are_as_the_paper_draws_them(kind: Callable[..., Environment]) -> None:
    scale = 1.0
    favourites, means = np.zeros(3), []
    for trial in range(600):
        mu, truth = instance_of(kind(users=2, block_size=2, objectives=3), seed=1, trial=trial)
        means.append(mu.ravel())
        scale = 3.0 if kind is Gaussian else 0.5
        for row in truth:
            assert row.sum() == pytest.approx(scale)
            assert sorted((row / row.min()).round(9)) == [1.0, 1.0, 4.0]  # 2.0 on one, 0.5 on the rest
            favourites[row.argmax()] += 1
    assert stats.kstest(np.concatenate(means), "uniform").pvalue > LEAST_P
    assert stats.chisquare(favourites).pvalue > LEAST_P


def test_random_preferences_are_uniform_up_to_five() -> None:
    environment = Gaussian(users=4, block_size=1, preference="random")
    entries = np.concatenate([instance_of(environment, seed=1, trial=trial)[1].ravel() for trial in range(400)])
    assert stats.kstest(entries / 5.0, "uniform").pvalue > LEAST_P


def test_trials_have_instances_of_their_own_and_keep_them() -> None:
    environment = Gaussian()
    first, again, other, elsewhere = (
        instance_of(environment, seed=seed, trial=trial)[0] for seed, trial in ((1, 0), (1, 0), (1, 1), (2, 0))
    )
    np.testing.assert_array_equal(first, again)
    assert not np.isclose(first, other).any()
    assert not np.isclose(first, elsewhere).any()


# ---- the bounded environment


@pytest.mark.parametrize("preference", ["predefined", "random"])
@pytest.mark.parametrize("reward", ["beta", "bernoulli"])
@pytest.mark.parametrize("variance", [0.0, 0.01, 10.0])
def test_the_bounded_environment_keeps_its_bounds(preference: Any, reward: Any, variance: float) -> None:
    """Assumptions 1 and 2, and so 0 ≤ g ≤ 1, however much variance is asked for."""
    environment = Bounded(
        users=1,
        block_size=1,
        objectives=4,
        preference=preference,
        reward=reward,
        reward_variance=variance,
        preference_variance=variance,
    )
    for trial in range(5):
        means, truth = instance_of(environment, seed=9, trial=trial)
        seen = draws(environment, means, truth, count=1000)
        assert truth.sum() == pytest.approx(0.5)
        for values in seen:
            assert values.min() >= 0.0
            assert values.max() <= 1.0
        assert (seen.stated.sum(axis=1) <= 1.0 + 1e-12).all()
        if reward == "bernoulli":
            assert set(np.unique(seen.reward)) <= {0.0, 1.0}


def test_bounded_rewards_and_preferences_have_the_moments_promised() -> None:
    environment = Bounded(users=1, block_size=1, objectives=3, reward_variance=0.02, preference_variance=0.003)
    means, truth = np.array([[0.3, 0.8, 0.5]]), np.array([[0.3, 0.15, 0.05]])
    seen = draws(environment, means, truth)
    for d in range(3):
        assert_moments(seen.reward[:, d], means[0, d], 0.02)
        half_width = min(math.sqrt(3 * 0.003), truth[0, d])  # an entry stays at 0 or above
        assert_moments(seen.stated[:, d], truth[0, d], half_width**2 / 3)
        spread = stats.uniform(truth[0, d] - half_width, 2 * half_width)
        assert stats.kstest(seen.stated[:, d], spread.cdf).pvalue > LEAST_P
        concentration = means[0, d] * (1 - means[0, d]) / 0.02 - 1
        shape = stats.beta(concentration * means[0, d], concentration * (1 - means[0, d]))
        assert stats.kstest(seen.reward[:, d], shape.cdf).pvalue > LEAST_P
    together = np.corrcoef(np.hstack([seen.reward, seen.stated]).T)
    assert np.abs(together - np.eye(6)).max() < 4.5 / math.sqrt(COUNT)


@pytest.mark.parametrize("variance", [0.2, 5.0])
def test_a_beta_asked_for_too_much_variance_has_as_much_as_it_can(variance: float) -> None:
    environment = Bounded(users=1, block_size=1, objectives=1, reward_variance=variance)
    seen = draws(environment, np.array([[0.2]]), np.array([[0.5]]), count=20_000)
    assert_mean(seen.reward[:, 0], 0.2)
    assert 0.95 * 0.16 < seen.reward.var() < 1.02 * 0.16  # that of a coin is 0.2·0.8


def test_bernoulli_rewards_have_their_means() -> None:
    environment = Bounded(users=1, block_size=1, objectives=2, reward="bernoulli")
    means = np.array([[0.3, 0.95]])
    seen = draws(environment, means, np.array([[0.25, 0.25]]))
    for d in range(2):
        assert_moments(seen.reward[:, d], means[0, d], means[0, d] * (1 - means[0, d]))


# ---- instances that are given


def test_a_fixed_environment_has_the_means_it_was_given() -> None:
    environment = Fixed.of(means=[[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], preferences=[[1.0, 2.0]])
    means, truth = instance_of(environment, seed=77, trial=5)
    assert means.tolist() == [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]
    assert truth.tolist() == [[1.0, 2.0]]
    assert (environment.users, environment.arm_count, environment.offer_size, environment.objectives) == (1, 3, 3, 2)


def test_the_toy_is_the_papers() -> None:
    toy = environments.toy()
    assert toy.means == ((0.2, 0.2), (0.8, 0.8))
    assert toy.preferences == ((0.5, 0.5),)
    assert toy.preference_variance == 0.05


@pytest.mark.parametrize(
    "environment",
    [
        Gaussian(users=3, block_size=2, objectives=4, preference="random", protocol="rotate", reward_variance=0.2),
        Bounded(users=1, block_size=4, arms=8, reward="bernoulli"),
        environments.toy(),
        environments.conflict(),
    ],
)
def test_an_environment_can_be_made_again_from_its_settings(environment: Environment) -> None:
    again = environments.from_settings(environment.settings)
    assert again.settings == environment.settings
    assert type(again) is type(environment)


# ---- who is offered what


def rounds_of(protocol: str, blocks: int, rounds: int) -> npt.NDArray[np.int64]:
    stream, now, seen = stream_for(2, 0, ENVIRONMENT), np.arange(blocks), []
    for _ in range(rounds):
        assign(now, PROTOCOLS[protocol], stream)
        seen.append(now.copy())
    return np.array(seen)


def test_random_blocks_are_given_out_without_replacement_and_evenly() -> None:
    seen = rounds_of("random", blocks=4, rounds=8000)
    assert (np.sort(seen, axis=1) == np.arange(4)).all()
    for user in range(4):
        assert stats.chisquare(np.bincount(seen[:, user])).pvalue > LEAST_P
    pairs = np.bincount(seen[:-1, 0] * 4 + seen[1:, 0], minlength=16)  # the last round says nothing of the next
    assert stats.chisquare(pairs).pvalue > LEAST_P


def test_rotation_moves_every_block_to_the_next_user() -> None:
    seen = rounds_of("rotate", blocks=5, rounds=23)
    for before, after in itertools.pairwise(seen):
        assert after.tolist() == [before[-1], *before[:-1]]
    for user in range(5):
        assert set(seen[:5, user]) == set(range(5))


def test_all_to_all_draws_nothing_and_moves_nothing() -> None:
    stream = stream_for(2, 0, ENVIRONMENT)
    before, blocks = stream.copy(), np.arange(1)
    assign(blocks, PROTOCOLS["all"], stream)
    assert blocks.tolist() == [0]
    assert stream.tolist() == before.tolist()
    assert Gaussian(users=2, block_size=3, protocol="all").offer_size == 6


# ---- bad input


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Gaussian(users=0), "expected users to be at least 1, got 0"),
        (lambda: Gaussian(block_size=-2), "expected block_size to be at least 1, got -2"),
        (lambda: environments.create("gaussian", objectives=2.5), "expected objectives as a whole number, got 2.5"),
        (lambda: Gaussian(users=True), "expected users as a whole number, got True"),
        (lambda: environments.create("gaussian", reward_variance="high"), "reward_variance as a number, got 'high'"),
        (lambda: environments.create("gaussian", protocol=3), "expected protocol as a word, got 3"),
        (lambda: Gaussian(arms=4, block_size=5), "an offer of 5 arms is larger than the 4 arms there are"),
        (lambda: Gaussian(users=2, arms=9, block_size=2), "expected arms to fill blocks of 2, got 9"),
        (lambda: Gaussian(users=3, arms=4, block_size=2), r"a block of 2 arms for each of 3 users \(at least 6"),
        (lambda: Gaussian(protocol="rotation"), "unknown protocol 'rotation'; did you mean 'rotate'"),
        (
            lambda: environments.create("gaussian", preference="fixed"),
            "preference 'predefined', 'random' or 'common', got 'fixed'",
        ),
        (lambda: Gaussian(reward_variance=-0.1), "expected reward_variance to be a finite number, 0 or more, got -0.1"),
        (lambda: Gaussian(preference_variance=math.nan), "expected preference_variance to be a finite number"),
        (
            lambda: environments.create("bounded", reward="uniform"),
            "reward 'beta' or 'bernoulli', got 'uniform'",
        ),
        (lambda: Bounded(reward_variance=math.inf), "expected reward_variance to be a finite number"),
        (lambda: Fixed.of(means=[[1.0]], preferences=[[1.0, 2.0]]), "of one width, got 1 and 2 objectives"),
        (lambda: Fixed.of(means=[1.0, 2.0], preferences=[[1.0]]), "expected means as a table of finite numbers"),
        (lambda: Fixed.of(means=[[math.nan]], preferences=[[1.0]]), "expected means as a table of finite numbers"),
        (
            lambda: Fixed(means=((1.0,),), preferences=((1.0,),), users=1, block_size=1, objectives=2),
            r"expected means of shape \(1, 2\), got \(1, 1\); use Fixed.of",
        ),
        (lambda: environments.create("gausian"), "unknown environment 'gausian'; did you mean 'gaussian'"),
        (lambda: environments.create("gaussian", rewards=1), "the gaussian environment has no setting 'rewards'"),
        (lambda: environments.create("fixed"), "the fixed environment needs means and preferences"),
    ],
)
def test_bad_input_meets_a_sentence(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call()
