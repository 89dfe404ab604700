"""An environment that meets the theory's assumptions: everything bounded, entries independent (Assumptions 1 to 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from pamo.arrays import Floats
from pamo.compiling import count_of, kernel
from pamo.environments.base import Environment, setting, variance
from pamo.environments.gaussian import KINDS, PREFERENCES, write_preference
from pamo.streams import Stream, beta, next_word, start, uniform

LEAST_CONCENTRATION = 0.02
"""A beta reward cannot have more variance than a coin of its mean: where more is asked for, it is all but that coin."""


@kernel
def _bounded_instance(means: Floats, preferences: Floats, numbers: Floats, stream: Stream, dims: Any) -> None:
    objectives = count_of(dims)
    for i in range(len(means)):
        for d in range(objectives):
            means[i, d] = uniform(stream)
    for n in range(len(preferences)):
        write_preference(preferences, n, numbers[2], stream, dims)
        total = 0.0
        for d in range(objectives):
            total += preferences[n, d]
        for d in range(objectives):
            # ‖c̄‖₁ = ½: an entry varies by at most its mean to each side, so ‖c‖₁ ≤ 1 always.
            preferences[n, d] *= 0.5 / total


@kernel
def _draw_bounded(
    reward: Floats,
    stated: Floats,
    arm: int,
    n: int,
    means: Floats,
    preferences: Floats,
    numbers: Floats,
    wants_stated: bool,
    stream: Stream,
    spare: Stream,
    dims: Any,
) -> float:
    # A beta takes as many draws as it takes: they come from a stream of this decision's own.
    start(spare, next_word(stream))
    overall = 0.0
    for d in range(count_of(dims)):
        half_width = min(numbers[1], preferences[n, d])
        stated[d] = preferences[n, d] + half_width * (2.0 * uniform(spare) - 1.0)
    for d in range(count_of(dims)):
        mean = means[arm, d]
        if numbers[3] > 0.0:
            reward[d] = 1.0 if uniform(spare) < mean else 0.0
        elif numbers[0] > 0.0:
            concentration = max(mean * (1.0 - mean) / numbers[0] - 1.0, numbers[4])
            reward[d] = beta(spare, concentration * mean, concentration * (1.0 - mean))
        else:
            reward[d] = mean
        overall += stated[d] * reward[d]
    return overall


@dataclass(frozen=True, kw_only=True)
class Bounded(Environment):
    """Rewards in [0, 1], preferences c ≥ 0 with ‖c‖₁ ≤ 1, overall scores in [0, 1]: where the theorems apply.

    Reward means are uniform on [0, 1]; a reward entry is `beta` with the given variance (or as much of it as a beta of
    that mean can have), or `bernoulli`. Mean preferences have the shapes of `Gaussian`'s, scaled to ‖c̄‖₁ = ½; an
    entry is uniform around its mean with the given variance, or as much of it as keeps it at 0 or above.

    >>> Bounded(users=1, block_size=2, objectives=2).arm_count
    2

    Reference: the paper's Assumptions 1 to 5.
    """

    id: ClassVar[str] = "bounded"
    summary: ClassVar[str] = "meets the theory's assumptions: rewards in [0, 1], c ≥ 0, ‖c‖₁ ≤ 1, overall in [0, 1]"
    reference: ClassVar[str] = "the paper's Assumptions 1 to 5"
    instance: ClassVar[Any] = _bounded_instance
    draw: ClassVar[Any] = _draw_bounded

    preference: Literal["predefined", "random", "common"] = setting("predefined", PREFERENCES, "KIND")
    reward: Literal["beta", "bernoulli"] = setting("beta", "rewards: beta or bernoulli", "KIND")
    reward_variance: float = variance(0.01, "reward")
    preference_variance: float = variance(0.01, "preference")

    def numbers(self) -> Floats:
        """A beta's variance, a preference entry's half-width, and three switches."""
        return np.array(
            [
                self.reward_variance,
                math.sqrt(3.0 * self.preference_variance),  # a uniform of half-width h has variance h²/3
                KINDS[self.preference],
                float(self.reward == "bernoulli"),
                LEAST_CONCENTRATION,
            ]
        )
