"""Policies that keep rows of their own: what they come to where they keep everything, and where the world changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pamo import InputError, environments, policies, simulate
from pamo.engine import Engine
from pamo.environments import Environment
from pamo.policies import Keeps, Shape, Ucb
from pamo.simulation.stepping import Player

KEEPERS = policies.available("changing")


@pytest.mark.parametrize(
    ("policy", "all_of_it"),
    [
        ("sw-ucb:window=60", "ucb-per-user"),
        ("d-ucb:discount=1.0", "ucb-per-user"),
        ("sw-pareto-ucb:window=60", "pareto-ucb"),
        ("d-pareto-ucb:discount=1.0", "pareto-ucb"),
    ],
)
def test_one_that_forgets_nothing_is_the_one_it_comes_from(policy: str, all_of_it: str) -> None:
    # The last one's rounds count all users, there or not.
    late: dict[str, Any] = {} if "d-pareto" in policy else {"newcomers": 1, "arrival": 9}
    environment = environments.Gaussian(users=3, block_size=3, **late)
    result = simulate([policy, all_of_it], environment, rounds=60, trials=4, seed=3)
    kept, whole = result.values()
    np.testing.assert_allclose(kept.regret_by_user, whole.regret_by_user)
    np.testing.assert_array_equal(kept.pulls, whole.pulls)


def share_of_the_new_best(policy: str, seed: int) -> float:
    """Return how often arm 1 is pulled in the last 50 rounds; it is best for 100, having been poor for 900."""
    sizes = Environment(users=1, arms=3, block_size=1, objectives=2, protocol="all")
    player, generator = Player(policies.parse(policy), sizes, rounds=1000, seed=seed), np.random.default_rng(seed)
    chosen = []
    for t in range(1000):
        means = [1.0, 0.0 if t < 900 else 2.0, -0.5]
        arm = player.choose(0, [0, 1, 2])
        reward = means[arm] + generator.normal(0.0, 0.1, 2)
        player.learn(0, arm, reward, float(reward.mean()))
        chosen.append(arm)
    return chosen[-50:].count(1) / 50


@pytest.mark.parametrize(
    ("policy", "stationary"),
    [
        ("sw-ucb:window=100", "ucb-per-user"),
        ("d-ucb:discount=0.98", "ucb-per-user"),
        ("sw-pareto-ucb:window=100", "pareto-ucb"),
        ("d-pareto-ucb:discount=0.98", "pareto-ucb"),
    ],
)
def test_one_that_forgets_finds_what_is_best_now(policy: str, stationary: str) -> None:
    here, there = ([share_of_the_new_best(name, seed) for seed in range(3)] for name in (policy, stationary))
    assert min(here) > 0.5
    assert np.median(there) < 0.3


def test_exp3_ends_on_what_gives_most_and_goes_on_looking() -> None:
    environment = environments.Fixed.of(means=[[0.2, 0.1], [0.9, 0.8], [0.3, 0.4]], preferences=[[1.0, 1.0]])
    pulls = simulate(["exp3:mix=0.1"], environment, rounds=2000, trials=4, seed=1)["exp3"].pulls
    assert (pulls[:, 1] > 1500).all()
    assert (pulls > 40).all()  # a tenth of the rounds is spread evenly


def test_what_keeps_rows_has_to_say_how() -> None:
    class Forgetful(Ucb):
        id = "forgetful"

        def keeps(self, shape: Shape) -> Keeps:
            return Keeps(by_arm=1)

    with pytest.raises(InputError, match="forgetful: expected rows of its own"):
        simulate([Forgetful()], environments.Gaussian(), rounds=2, trials=1)


@pytest.mark.parametrize("name", KEEPERS)
def test_the_engine_refuses_what_no_store_keeps(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} keeps rows of its own"):
        Engine(objectives=["taste", "price"], policy=name)


def test_scores_from_sums_need_the_rows() -> None:
    from pamo.statistics import ArmStatistics, UserStatistics

    arms, users = ArmStatistics.zeros(arms=2, objectives=2), UserStatistics.zeros(users=1, objectives=2)
    ask: Callable[..., Any] = policies.scores
    with pytest.raises(InputError, match="kept="):
        ask(policies.create("sw-ucb"), arms=arms, users=users)
