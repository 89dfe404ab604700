"""coba: learners with `predict` and `learn`, and experiments on synthetic environments."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import coba
import numpy as np

from benchmarks.race import field


class Own:
    """A learner without contexts, which is given the arms on offer by name."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._learner = coba.SafeLearner(make())

    def choose(self, context: np.ndarray, offer: Sequence[int]) -> int:
        """Return one of the arms on offer."""
        action, self._chance, self._more = self._learner.predict(None, [str(arm) for arm in offer])
        return int(action)

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        """Learn from what came of it."""
        self._learner.learn(None, str(arm), reward, self._chance, **self._more)


class Linear:
    """LinUCB: an arm is a 1 at its place, so that each has a model of its own."""

    def __init__(self, alpha: float, arms: int, dims: int, seed: int) -> None:
        self._learner = coba.SafeLearner(coba.LinUCBLearner(alpha=alpha, features=["a", "ax"], seed=seed))
        self._arms = [tuple(row) for row in np.eye(arms).tolist()]

    def choose(self, context: np.ndarray, offer: Sequence[int]) -> int:
        """Return one of the arms on offer."""
        self._context = tuple(context.tolist())
        given = [self._arms[arm] for arm in offer]
        action, self._chance, self._more = self._learner.predict(self._context, given)
        return self._arms.index(tuple(action))

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        """Learn from what came of it."""
        self._learner.learn(self._context, self._arms[arm], reward, self._chance, **self._more)


def plain(make: Callable[[], Any], arms: int, dims: int, seed: int) -> field.Player:
    """Return a learner for each user."""
    return field.PerUser(dims, partial(Own, make))


def simulation() -> tuple[str, int, float]:
    """Time an experiment: one user, ten arms, one number a reward."""
    steps = 4_000
    environments = coba.Environments.from_linear_synthetic(steps, n_actions=10, n_action_features=0, seed=1)
    begun = time.perf_counter()
    coba.Experiment(environments, [coba.BanditUCBLearner()]).run(quiet=True)
    return "Experiment, UCB, 1 user, 10 arms, D=1", steps, time.perf_counter() - begun


if __name__ == "__main__":
    field.main(
        {
            "LinUCB, alpha 1": partial(Linear, 1.0),
            "LinUCB, alpha 0.3": partial(Linear, 0.3),
            "UCB": partial(plain, coba.BanditUCBLearner),
            "epsilon-greedy": partial(plain, partial(coba.BanditEpsilonLearner, epsilon=0.05)),
        },
        simulation=simulation,
    )
