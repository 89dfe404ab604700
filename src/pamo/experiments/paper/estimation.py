"""What the two estimation studies share: samples of the 2-D toy, and regressions of overall on reward, many at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pamo.arrays import Floats

TOY: Mapping[str, Any] = {
    "preference": [0.5, 0.5],
    "preference_variance": 0.05,
    "arms": {"arm 1, dominated": [0.2, 0.2], "arm 2, Pareto-optimal": [0.8, 0.8]},
    "reward_variance": 0.01,
}
"""The paper gives all of this but the rewards' variance, for which we take that of its experiments."""


def sample(
    rng: np.random.Generator, means: Sequence[Sequence[float]], count: int, repetitions: int, toy: Mapping[str, Any]
) -> tuple[Floats, Floats]:
    """Draw `count` pulls of each arm in each repetition: rewards (repetitions, arms·count, D), overall scores."""
    center = np.repeat(np.asarray(means, dtype=float), count, axis=0)
    shape = (repetitions, *center.shape)
    rewards = center + np.sqrt(toy["reward_variance"]) * rng.standard_normal(shape)
    weights = np.asarray(toy["preference"]) + np.sqrt(toy["preference_variance"]) * rng.standard_normal(shape)
    return rewards, (weights * rewards).sum(axis=2)


def least_squares(rewards: Floats, overall: Floats, *, weighted: bool, ridge: float = 0.0) -> Floats:
    """Return ĉ of each repetition: Σ w·g·r over λI + Σ w·r·rᵀ, with w = 1, or w = D/‖r‖² (the paper's, ω = D)."""
    objectives = rewards.shape[2]
    weights = objectives / (rewards**2).sum(axis=2) if weighted else np.ones(overall.shape)
    scaled = rewards * weights[:, :, None]
    gram = np.einsum("kij,kil->kjl", scaled, rewards) + ridge * np.eye(objectives)
    moment = np.einsum("kij,ki->kj", scaled, overall)
    return np.linalg.solve(gram, moment[:, :, None])[:, :, 0].astype(np.float64)


def errors(estimates: Floats, toy: Mapping[str, Any]) -> Floats:
    """Return ‖ĉ − c̄‖₂ of each repetition."""
    differences: Floats = estimates - np.asarray(toy["preference"])
    squares: Floats = (differences**2).sum(axis=1)
    return np.sqrt(squares)
