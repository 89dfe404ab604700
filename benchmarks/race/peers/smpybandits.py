"""SMPyBandits: context-free policies and an `Evaluator` that simulates them."""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.race import field

with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
    warnings.simplefilter("ignore")
    from SMPyBandits.Arms import Gaussian
    from SMPyBandits.Environment import Evaluator
    from SMPyBandits.Policies import MOSS, UCB, UCBV, Thompson, UCBalpha, klUCB
    from SMPyBandits.Policies.Posterior import Gauss


class Own:
    """A policy, asked for one of a subset of its arms."""

    def __init__(self, make: Callable[..., Any], arms: int) -> None:
        self._policy = make(arms)
        self._policy.startGame()

    def choose(self, context: np.ndarray, offer: Sequence[int]) -> int:
        """Return one of the arms on offer."""
        return int(self._policy.choiceFromSubSet(list(offer)))

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        """Learn from what came of it."""
        self._policy.getReward(arm, reward)


def player(make: Callable[..., Any], arms: int, dims: int, seed: int) -> field.Player:
    """Return a policy for each user."""
    np.random.seed(seed)  # noqa: NPY002  # what the library draws from
    return field.PerUser(dims, partial(Own, make, arms))


def simulation() -> tuple[str, int, float]:
    """Time the Evaluator: one user, ten arms, one number a reward."""
    rounds, trials = 2_000, 3
    configuration = {
        "horizon": rounds,
        "repetitions": trials,
        "n_jobs": 1,
        "verbosity": 0,
        "environment": [{"arm_type": Gaussian, "params": [(k / 10, 0.1) for k in range(10)]}],
        "policies": [{"archtype": UCB, "params": {}}],
    }
    with contextlib.redirect_stdout(io.StringIO()):
        evaluator = Evaluator(configuration)
        begun = time.perf_counter()
        evaluator.startOneEnv(0, evaluator.envs[0])
    return "Evaluator, UCB, 1 user, 10 arms, D=1", rounds * trials, time.perf_counter() - begun


if __name__ == "__main__":
    field.main(
        {
            "UCB": partial(player, UCB),
            "UCB, alpha 0.1": partial(player, partial(UCBalpha, alpha=0.1)),
            "UCB-V": partial(player, UCBV),
            "kl-UCB": partial(player, klUCB),
            "MOSS": partial(player, MOSS),
            "Thompson, Gaussian": partial(player, partial(Thompson, posterior=Gauss)),
        },
        simulation=simulation,
    )
