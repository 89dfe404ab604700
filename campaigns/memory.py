"""Whether a process's memory stays flat: how it is judged, from samples over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SHARE = 0.02
"""Of the memory in use: what it may grow by in the second half of the samples."""
LEAST = 2 * 2**20
"""Bytes that it may grow by however small it is: allocators take memory by the megabyte."""
POINTS = 300
"""Samples that a slope is taken from at most."""


@dataclass(frozen=True)
class Verdict:
    """How much the memory grew in the second half, in bytes, and whether that is little enough to be called flat."""

    memory: float
    grown: float
    seconds: float

    @property
    def allowed(self) -> float:
        """What it may have grown by."""
        return max(SHARE * self.memory, LEAST)

    @property
    def flat(self) -> bool:
        """Whether it grew by less than that."""
        return self.grown < self.allowed

    def __str__(self) -> str:
        word = "flat" if self.flat else "NOT FLAT"
        return (
            f"memory is {word}: {self.grown / 1e6:+.1f} MB in the last {self.seconds:.0f} s "
            f"of {self.memory / 1e6:.0f} MB, and {self.allowed / 1e6:.1f} MB are allowed"
        )


def judge(samples: Sequence[tuple[float, int]]) -> Verdict:
    """Judge samples of (seconds, bytes). Only the second half counts: in the first, caches fill.

    The growth is the median of the slopes between any two samples (Theil and Sen), times the seconds, so that a peak
    that comes and goes does not count and a step counts once it stays.

    >>> judge([(t, 10**8 + 10**5 * t) for t in range(100)]).flat
    False
    """
    if len(samples) < 4:
        return Verdict(0.0, math.inf, 0.0)  # nobody knows
    middle = (samples[0][0] + samples[-1][0]) / 2
    half = np.array([one for one in samples if one[0] >= middle], dtype=np.float64)
    half = half[np.linspace(0, len(half) - 1, min(len(half), POINTS)).round().astype(int)]
    first, second = np.triu_indices(len(half), 1)
    times, bytes_ = half[:, 0], half[:, 1]
    slopes = (bytes_[second] - bytes_[first]) / (times[second] - times[first])
    seconds = float(times[-1] - times[0])
    return Verdict(float(np.median(bytes_)), float(np.median(slopes)) * seconds, seconds)
