"""ParetoBandit: the LinUCB with which it routes prompts to language models, without its router around it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from pareto_bandit.policy import DisjointLinUCBPolicy

from benchmarks.race import field


class Own:
    """Its policy, with arms for models and no costs."""

    def __init__(self, alpha: float, arms: int, dims: int, seed: int) -> None:
        self._names = [f"arm-{arm}" for arm in range(arms)]
        self._policy = DisjointLinUCBPolicy(self._names, dim=dims, alpha=alpha, seed=seed)

    def choose(self, context: np.ndarray, offer: Sequence[int]) -> int:
        """Return one of the arms on offer."""
        name, _ = self._policy.select_arm(context, candidates=[self._names[arm] for arm in offer])
        self._policy.mark_selected(name)
        return int(name[4:])

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        """Learn from what came of it."""
        self._policy.update(self._names[arm], context, reward)


if __name__ == "__main__":
    field.main(
        {f"LinUCB, alpha {alpha}": partial(Own, alpha) for alpha in (0.01, 0.1, 0.3, 1.0)}, first="LinUCB, alpha 0.1"
    )
