"""What the two estimation studies share: samples of the 2-D toy, and how far off an estimate from them is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.environments import toy
from pamo.estimators import Estimate, Kind
from pamo.statistics import UserStatistics

TOY: Mapping[str, Any] = {
    "preference": list(toy().preferences[0]),
    "preference_variance": toy().preference_variance,
    "arms": dict(zip(("arm 1, dominated", "arm 2, Pareto-optimal"), map(list, toy().means), strict=True)),
    "reward_variance": toy().reward_variance,
}
"""The paper gives all of this but the rewards' variance, for which we take that of its experiments."""

PLAIN = Estimate(kind=Kind.RIDGE, ridge=0.0)
"""Linear regression of the overall score on the reward."""


def sample(
    rng: np.random.Generator, means: Sequence[Sequence[float]], count: int, repetitions: int, toy: Mapping[str, Any]
) -> UserStatistics:
    """Draw `count` pulls of each arm in each repetition; return the sums, a repetition a user."""
    center = np.repeat(np.asarray(means, dtype=float), count, axis=0)
    shape = (repetitions, *center.shape)
    rewards = center + np.sqrt(toy["reward_variance"]) * rng.standard_normal(shape)
    weights = np.asarray(toy["preference"]) + np.sqrt(toy["preference_variance"]) * rng.standard_normal(shape)
    sums = UserStatistics.zeros(users=repetitions, objectives=shape[2])
    rows = np.repeat(np.arange(repetitions), len(center))
    sums.observe(rows, rewards.reshape(len(rows), -1), (weights * rewards).sum(axis=2).ravel())
    return sums


def errors(estimates: Floats, toy: Mapping[str, Any]) -> Floats:
    """Return ‖ĉ − c̄‖₂ of each repetition."""
    return np.asarray(np.linalg.norm(estimates - np.asarray(toy["preference"]), axis=1))
