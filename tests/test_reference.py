"""The design's reference line: mean final regrets that an independent implementation gave."""

from __future__ import annotations

import math

import pytest

from pamo import Result, environments, simulate

TRIALS = 400

# 2 users, blocks of 5, D=3, predefined preference, random assignment, T=5000: mean ± standard error of 400 trials.
REFERENCE = {
    "prucb-hp": (549.0, 5.0),
    "prucb-up": (533.0, 5.0),
    "prucb-kp": (531.0, 5.0),
    "s-ucb": (2287.0, 55.0),
    "s-moss": (1628.0, 64.0),
    "pareto-ucb": (5428.0, 70.0),
    "pareto-ts": (4689.0, 77.0),
    "oful": (473.0, 6.0),
    "ucb": (790.0, 43.0),
    "moss": (677.0, 43.0),
    "ucb-per-user": (319.0, 3.0),
    "greedy": (85.0, 9.0),
}


@pytest.fixture(scope="module")
def result() -> Result:
    environment = environments.Gaussian(users=2, block_size=5, objectives=3, preference="predefined", protocol="random")
    return simulate(list(REFERENCE), environment, rounds=5000, trials=TRIALS, seed=1, checkpoints=1)


@pytest.mark.parametrize("policy", REFERENCE)
def test_mean_final_regret_is_the_references_within_three_standard_errors(result: Result, policy: str) -> None:
    """Both means are of a sample, so the standard error is that of their difference."""
    regret = result[policy].final_regret
    ours, error = float(regret.mean()), float(regret.std(ddof=1)) / math.sqrt(TRIALS)
    theirs, their_error = REFERENCE[policy]
    assert abs(ours - theirs) <= 3.0 * math.hypot(error, their_error)
