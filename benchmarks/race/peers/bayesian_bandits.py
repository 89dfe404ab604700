"""bayesianbandits: agents of Bayesian regressions, an arm each, with Thompson sampling or upper bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import bayesianbandits as bb
import numpy as np

from benchmarks.race import field


class Own:
    """An agent. It chooses among all of its arms; where there are fewer on offer, the first of its order that is."""

    def __init__(self, policy: Callable[[], Any], beta: float, arms: int, dims: int, seed: int) -> None:
        every = [bb.Arm(arm, learner=bb.NormalRegressor(alpha=1.0, beta=beta)) for arm in range(arms)]
        self._agent, self._arms = bb.ContextualAgent(every, policy(), random_seed=seed), arms

    def choose(self, context: np.ndarray, offer: Sequence[int]) -> int:
        """Return one of the arms on offer."""
        if len(offer) == self._arms:
            return int(self._agent.pull(context[None, :])[0])
        allowed = set(offer)
        (order,) = self._agent.pull(context[None, :], top_k=self._arms)
        return next(int(arm) for arm in order if arm in allowed)

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        """Learn from what came of it."""
        self._agent.select_for_update(arm).update(context[None, :], np.array([reward]))


if __name__ == "__main__":
    field.main(
        {
            "Thompson, precision 10": partial(Own, bb.ThompsonSampling, 10.0),
            "Thompson, precision 1": partial(Own, bb.ThompsonSampling, 1.0),
            "upper bound, precision 10": partial(Own, bb.UpperConfidenceBound, 10.0),
        },
        first="Thompson, precision 10",
    )
