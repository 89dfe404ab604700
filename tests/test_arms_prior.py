"""What arms have in common: fitted to their rows, with features and without, and what policies make of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pamo import InputError, policies
from pamo.arrays import Floats
from pamo.policies.variance import deviations_squared
from pamo.priors import arms_prior_of, prepared
from pamo.statistics import ArmStatistics, UserStatistics

NAN = math.nan


def seen(means: Floats, pulls: int, noise: float, seed: int, missing: float = 0.0) -> ArmStatistics:
    """Return arms of which the last tenth was never pulled; scores are missing by this chance."""
    generator, (count, objectives) = np.random.default_rng(seed), means.shape
    arms = ArmStatistics.zeros(arms=count, objectives=objectives)
    for arm in range(count - count // 10):
        rewards = means[arm] + noise * generator.standard_normal((pulls, objectives))
        arms.observe([arm] * pulls, np.where(generator.random(rewards.shape) < missing, NAN, rewards))
    return arms


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_what_arms_have_in_common_is_found(missing: float) -> None:
    """From 900 arms: means to v/30, variances to a tenth."""
    means = np.random.default_rng(1).normal([0.3, 0.6], [0.2, 0.1], (1000, 2))
    prior = arms_prior_of(seen(means, 6, 0.1, seed=2, missing=missing))
    np.testing.assert_allclose(prior.mean[[0, 999]], [[0.3, 0.6]] * 2, atol=0.03)
    np.testing.assert_allclose(prior.between, [0.04, 0.01], rtol=0.15)
    np.testing.assert_allclose(prior.within, 0.01, rtol=0.1)


def test_features_tell_what_is_expected_of_an_arm_that_nobody_has_pulled() -> None:
    generator = np.random.default_rng(3)
    features = generator.standard_normal((300, 4)) * [1.0, 50.0, 1.0, 1.0] + [0.0, 1000.0, 0.0, 0.0]
    means = (
        0.5 + 0.2 * features[:, :1] + 0.003 * (features[:, 1:2] - 1000.0) + 0.05 * generator.standard_normal((300, 1))
    )
    arms, new = seen(means, 3, 0.1, seed=4), slice(270, 300)
    told, blind = arms_prior_of(arms, features), arms_prior_of(arms)
    assert np.std(told.mean[new] - means[new]) < 0.3 * np.std(blind.mean[new] - means[new])
    assert told.between[0] < 0.2 * blind.between[0]
    useless = arms_prior_of(arms, generator.standard_normal((300, 4)))
    assert np.std(useless.mean[new] - means[new]) < 1.1 * np.std(blind.mean[new] - means[new])
    some = np.where(generator.random(features.shape) < 0.2, NAN, features)
    assert np.std(arms_prior_of(arms, some).mean[new] - means[new]) < 0.8 * np.std(blind.mean[new] - means[new])


def test_features_that_are_none_get_a_sentence() -> None:
    assert prepared(None, 3).shape == (3, 0)
    np.testing.assert_array_equal(prepared([[2.0], [2.0], [NAN]], 3), 0.0)  # it tells no arm from another
    for wrong in ([1.0, 2.0], [[1.0]], [[1.0], [math.inf]]):
        with pytest.raises(InputError, match="expected finite features of 2 arms"):
            prepared(wrong, 2)


def test_features_of_any_size_are_compared() -> None:
    """Their squares leave a float's range; an arm with such a number must not make all arms' estimates unknown."""
    table = np.array([[1e308, 1e-300], [-1e308, 3e-300], [1e308, 2e-300], [np.nan, np.nan]])
    assert prepared(table, arms=4) == pytest.approx(prepared(table / [1e308, 1e-300], arms=4))
    assert np.isfinite(arms_prior_of(seen(np.full((4, 2), 0.5), 5, 0.1, 1), table).mean).all()


def test_the_optimism_grows_to_what_the_long_run_asks_for() -> None:
    """There it takes √(2L) standard errors; for any number of rounds that is played less is better, the less noise."""
    levels = np.linspace(0.0, 50.0, 500)
    for noisy, share in ((0.0, 0.2), (1.0, 0.45)):
        squares = np.array([deviations_squared(level, noisy) for level in levels])
        assert (np.diff(squares) > 0.0).all()
        assert (np.diff(squares[1:] / levels[1:]) > 0.0).all()
        assert deviations_squared(1e-3, noisy) == pytest.approx(2e-3 * share, rel=1e-3)
        assert deviations_squared(30.0, noisy) >= 60.0
        assert deviations_squared(-1.0, noisy) == 0.0


def test_no_arm_is_pulled_for_being_new_where_others_are_good_and_known() -> None:
    """Thirty arms of 200 pulls each, all alike but one that is far better, and one that nobody has pulled."""
    means = np.full((31, 2), 0.4)
    means[7] = 0.9
    arms = ArmStatistics.zeros(arms=31, objectives=2)
    generator, users = np.random.default_rng(6), UserStatistics.zeros(users=1, objectives=2)
    for arm in range(30):
        arms.observe([arm] * 200, means[arm] + 0.05 * generator.standard_normal((200, 2)))
    for name in ("prucb-kp-v", "prucb-up-v", "prucb-hp-v"):
        scores = policies.scores(policies.create(name), arms=arms, users=users, known=[[1.0, 1.0]])
        assert np.isfinite(scores).all()
        if name == "prucb-kp-v":
            assert scores.argmax() == 7
    assert policies.propensities(policies.create("prts"), arms=arms, users=users, draws=300)[30] < 0.3
