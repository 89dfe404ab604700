"""MABWiser: `predict`, `predict_expectations` and `partial_fit`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from mabwiser.mab import MAB, LearningPolicy

from benchmarks.race import field


class Own:
    """A MAB. It chooses among all of its arms; where there are fewer on offer, by its expectations."""

    def __init__(self, policy: Any, contextual: bool, arms: int, dims: int, seed: int) -> None:
        self._draw, self._contextual, self._arms = np.random.default_rng(seed), contextual, arms
        self._mab = MAB(arms=list(range(arms)), learning_policy=policy, seed=seed)
        first = {"contexts": np.zeros((arms, dims))} if contextual else {}
        self._mab.fit(decisions=list(range(arms)), rewards=[0.5] * arms, **first)

    def choose(self, context: np.ndarray, offer: Sequence[int]) -> int:
        """Return one of the arms on offer."""
        given = (context[None, :],) if self._contextual else ()
        if len(offer) == self._arms:
            return int(self._mab.predict(*given))
        return field.best_of(self._mab.predict_expectations(*given), offer, self._draw)

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        """Learn from what came of it."""
        given = {"contexts": context[None, :]} if self._contextual else {}
        self._mab.partial_fit(decisions=[arm], rewards=[reward], **given)


def plain(policy: Any, arms: int, dims: int, seed: int) -> field.Player:
    """Return a MAB for each user."""
    return field.PerUser(dims, partial(Own, policy, False, arms, dims, seed))


def simulation() -> tuple[str, int, float]:
    """Time a loop by hand, one user, ten arms, one number a reward: its own simulator takes longer, and needs a log."""
    draw, steps = np.random.default_rng(1), 2_000
    rewards, own = draw.random(steps).tolist(), Own(LearningPolicy.UCB1(alpha=1.0), False, 10, 0, 1)
    every, none = list(range(10)), np.empty(0)
    begun = time.perf_counter()
    for reward in rewards:
        own.learn(none, own.choose(none, every), reward)
    return "loop of predict and partial_fit, UCB1, 1 user, 10 arms, D=1", steps, time.perf_counter() - begun


if __name__ == "__main__":
    field.main(
        {
            "LinUCB, alpha 1": partial(Own, LearningPolicy.LinUCB(alpha=1.0), True),
            "LinUCB, alpha 0.3": partial(Own, LearningPolicy.LinUCB(alpha=0.3), True),
            "LinTS, alpha 0.3": partial(Own, LearningPolicy.LinTS(alpha=0.3), True),
            "UCB1, alpha 1": partial(plain, LearningPolicy.UCB1(alpha=1.0)),
            "UCB1, alpha 0.1": partial(plain, LearningPolicy.UCB1(alpha=0.1)),
            "epsilon-greedy": partial(plain, LearningPolicy.EpsilonGreedy(epsilon=0.05)),
        },
        first="LinUCB, alpha 1",
        simulation=simulation,
    )
