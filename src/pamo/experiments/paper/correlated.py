"""An instance for policies that know which objectives go together: the noise of rewards is correlated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pamo.arrays import Floats
from pamo.compiling import count_of, kernel
from pamo.environments import Fixed
from pamo.streams import Stream, normal


@kernel
def _draw_together(
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
    shared, overall, correlation = normal(stream), 0.0, numbers[len(numbers) - 1]
    for d in range(count_of(dims)):
        noise = math.sqrt(correlation) * shared + math.sqrt(1.0 - correlation) * normal(stream)
        reward[d], stated[d] = means[arm, d] + numbers[0] * noise, preferences[n, d]
        overall += stated[d] * reward[d]
    return overall


@dataclass(frozen=True, kw_only=True)
class Together(Fixed):
    """`Fixed` with objectives whose noise is correlated, and preferences that do not vary."""

    id: ClassVar[str] = "together"
    draw: ClassVar[Any] = _draw_together

    correlation: float = 0.95

    def numbers(self) -> Floats:
        """As those of `Fixed`, and then the correlation."""
        return np.append(super().numbers(), self.correlation)
