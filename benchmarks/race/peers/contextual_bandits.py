"""contextualbandits: linear policies with `partial_fit`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from contextualbandits.online import LinTS, LinUCB

from benchmarks.race import field


class Own:
    """A policy. It chooses among all of its arms; where there are fewer on offer, by its scores."""

    def __init__(self, make: Callable[..., Any], arms: int, dims: int, seed: int) -> None:
        self._policy, self._arms = make(nchoices=arms, random_state=seed), arms
        self._draw = np.random.default_rng(seed)
        # It has to have seen something before it is asked: a context of zeros, which says nothing.
        self._policy.fit(np.zeros((arms, dims)), np.arange(arms), np.zeros(arms))

    def choose(self, context: np.ndarray, offer: Sequence[int]) -> int:
        """Return one of the arms on offer."""
        if len(offer) == self._arms:
            return int(self._policy.predict(context[None, :])[0])
        return field.best_of(self._policy.decision_function(context[None, :])[0], offer, self._draw)

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        """Learn from what came of it."""
        self._policy.partial_fit(context[None, :], np.array([arm]), np.array([reward]))


_OPTIONS = {"beta_prior": None, "fit_intercept": False}

if __name__ == "__main__":
    field.main(
        {
            "LinUCB, alpha 1": partial(Own, partial(LinUCB, alpha=1.0, **_OPTIONS)),
            "LinUCB, alpha 0.3": partial(Own, partial(LinUCB, alpha=0.3, **_OPTIONS)),
            "LinTS": partial(Own, partial(LinTS, v_sq=0.1, **_OPTIONS)),
        },
        first="LinUCB, alpha 1",
    )
