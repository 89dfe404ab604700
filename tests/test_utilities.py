"""Utilities that are not linear: what rewards and mixes are worth, and the regret of environments that declare one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pamo import InputError, environments, policies, simulate
from pamo.arrays import Floats
from pamo.cli import main
from pamo.compiling import dimensions
from pamo.environments.utilities import UTILITIES, best_mix, regret_of_mix, utility_of, worth
from pamo.experiments.instances import lower_bound_of
from pamo.simulation.stepping import Player

KINDS = list(UTILITIES)


def plainly(reward: Floats, weights: Floats, utility: str) -> float:
    """What a reward is worth, as the formulas are printed."""
    weighed = sorted(float(one) for one in reward * weights)
    if utility == "linear":
        return sum(weighed)
    return weighed[0] if utility == "chebyshev" else sum(one / 2**k for k, one in enumerate(weighed))


@pytest.mark.parametrize("utility", KINDS)
def test_a_reward_is_worth_what_the_formula_says(utility: str) -> None:
    rng = np.random.default_rng(1)
    for objectives in (1, 3, 4):
        for _ in range(20):
            reward, weights = rng.normal(size=objectives).round(1), rng.uniform(0, 2, objectives).round(1)
            wanted = pytest.approx(plainly(reward, weights, utility))
            assert worth(weights, reward, UTILITIES[utility], dimensions(objectives)) == wanted
            assert utility_of(reward, weights, utility) == wanted


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 3), st.sampled_from(KINDS))
def test_no_mix_is_better_than_the_best(seed: int, arms: int, objectives: int, utility: str) -> None:
    """The value is reached by the shares, and by no other mix: of arms, of pairs of them, or at random."""
    rng = np.random.default_rng(seed)
    means, weights = rng.uniform(-1, 1, (arms, objectives)).round(1), rng.uniform(0, 2, objectives).round(1)
    value, shares = best_mix(means, weights, utility)
    assert shares.min() >= -1e-9
    assert shares.sum() == pytest.approx(1.0)
    assert utility_of(shares @ means, weights, utility) == pytest.approx(value, abs=1e-9)
    others = np.vstack([np.eye(arms), rng.dirichlet(np.full(arms, 0.5), 300)])
    assert utility_of(others @ means, weights, utility).max() <= value + 1e-9
    pulls = rng.integers(1, 50, (3, arms))
    assert regret_of_mix(pulls, means, weights, utility).min() >= -1e-6


def test_a_mix_by_too_many_orders_is_refused() -> None:
    with pytest.raises(InputError, match="at most 7 objectives"):
        best_mix(np.eye(8), np.ones(8), "gini")


MEANS = [[1.0, 0.0, 0.5], [0.2, 0.8, 0.1], [0.35, 0.9, 0.6]]
WEIGHTS = [2.0, 0.5, 1.0]


@pytest.mark.parametrize("utility", KINDS)
def test_regret_is_against_the_best_arm_by_the_utility(utility: str) -> None:
    """Of what was pulled, as counted; and who learns from the overall scores finds that arm."""
    environment = environments.Fixed.of(means=MEANS, preferences=[WEIGHTS], utility=utility, preference_variance=0.01)
    values = np.array([plainly(np.array(mean), np.array(WEIGHTS), utility) for mean in MEANS])
    assert environment.start(1).pull(1).regret == pytest.approx(values.max() - values[1])
    outcome = simulate(["ucb-per-user"], environment, rounds=1000, trials=3, seed=2)["ucb-per-user"]
    np.testing.assert_allclose(outcome.final_regret, outcome.pulls @ (values.max() - values), rtol=1e-9)
    assert outcome.pulls.sum(axis=0).argmax() == values.argmax() == (0 if utility == "linear" else 2)


@pytest.mark.parametrize("utility", ["chebyshev", "gini"])
@pytest.mark.parametrize("kind", ["blocks", "subset"])
def test_the_loop_and_a_trial_step_by_step_agree(kind: str, utility: str) -> None:
    """The policy learns from overall scores, so that these have to agree as well for its choices to do so."""
    sizes: dict[str, Any] = {"users": 2, "arms": 6, "block_size": 3, "utility": utility}
    environment = environments.Gaussian(protocol="subset" if kind == "subset" else "random", **sizes)
    (result,) = simulate(["ucb-per-user"], environment, rounds=25, trials=1, seed=3).values()
    player = Player(policies.create("ucb-per-user"), environment, rounds=25, seed=3)
    episode, regret, overall = environment.start(seed=3), np.zeros(2), 0.0
    while episode.round <= 25:
        pulled = episode.pull(player.choose(episode.user, episode.offer))
        player.learn(pulled.user, pulled.arm, pulled.reward, pulled.overall)
        regret[pulled.user] += pulled.regret
        overall += pulled.overall
    np.testing.assert_allclose(result.regret_by_user[0, -1], regret, rtol=1e-9)
    assert result.overall[0, -1] == pytest.approx(overall)
    (linear,) = simulate(["ucb-per-user"], replace(environment, utility="linear"), rounds=25, trials=1, seed=3).values()
    assert regret.min() > 0.0
    assert (linear.overall > result.overall).all()


def test_the_command_line_takes_a_utility(capsys: pytest.CaptureFixture[str]) -> None:
    run = ["simulate", "--policy", "s-ucb", "--rounds", "50", "--trials", "2", "--utility"]
    assert main([*run, "chebyshev", "--format", "json"]) == 0
    assert '"utility": "chebyshev"' in capsys.readouterr().out
    assert main([*run, "nash"]) == 2
    assert "chebyshev" in capsys.readouterr().err


def test_no_lower_bound_is_claimed_where_utility_is_not_linear() -> None:
    assert lower_bound_of(environments.Gaussian(utility="gini"), 1, 0) is None
    assert lower_bound_of(environments.Gaussian(), 1, 0) is not None
