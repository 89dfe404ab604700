"""river: bandits with `pull` and `update`, and `bandit.evaluate` on an environment of Gymnasium's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from river import bandit

from benchmarks.race import field


class Plain:
    """A policy without contexts."""

    def __init__(self, make: Callable[..., Any], seed: int) -> None:
        self._policy = make(seed=seed)

    def choose(self, context: np.ndarray, offer: Sequence[int]) -> int:
        """Return one of the arms on offer."""
        return int(self._policy.pull(offer))

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        """Learn from what came of it."""
        self._policy.update(arm, reward)


class Linear:
    """LinUCB, a model an arm."""

    def __init__(self, alpha: float, arms: int, dims: int, seed: int) -> None:
        self._policy = bandit.LinUCBDisjoint(alpha=alpha, seed=seed)
        self._names = [f"x{d}" for d in range(dims)]

    def choose(self, context: np.ndarray, offer: Sequence[int]) -> int:
        """Return one of the arms on offer."""
        self._context = dict(zip(self._names, context.tolist(), strict=True))
        return int(self._policy.pull(list(offer), context=self._context))

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        """Learn from what came of it."""
        self._policy.update(arm, self._context, reward)


def player(make: Callable[..., Any], arms: int, dims: int, seed: int) -> field.Player:
    """Return a policy for each user."""
    return field.PerUser(dims, partial(Plain, make, seed))


def simulation() -> tuple[str, int, float]:
    """Time `bandit.evaluate`: one user, ten arms, one number a reward."""
    import gymnasium

    environment = gymnasium.make("river_bandits/KArmedTestbed-v0", max_episode_steps=1_000)
    begun = time.perf_counter()
    steps = sum(1 for _ in bandit.evaluate([bandit.UCB(delta=1, seed=1)], environment, n_episodes=2, seed=1))
    return "bandit.evaluate, UCB, 1 user, 10 arms, D=1", steps, time.perf_counter() - begun


if __name__ == "__main__":
    field.main(
        {
            "LinUCB, alpha 1": partial(Linear, 1.0),
            "LinUCB, alpha 0.3": partial(Linear, 0.3),
            "UCB, delta 1": partial(player, partial(bandit.UCB, delta=1.0)),
            "UCB, delta 0.1": partial(player, partial(bandit.UCB, delta=0.1)),
            "epsilon-greedy, falling": partial(player, partial(bandit.EpsilonGreedy, epsilon=0.5, decay=0.005)),
            "Bayes-UCB": partial(player, bandit.BayesUCB),
        },
        first="LinUCB, alpha 1",
        simulation=simulation,
    )
