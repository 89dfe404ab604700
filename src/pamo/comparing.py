"""The difference of two means, with an interval that stays valid however often one looks.

Asymptotic confidence sequences: Waudby-Smith, Arbour, Sinha, Kennedy, Ramdas, *Time-uniform central limit theory and
asymptotic confidence sequences*, 2021. All is a function of sums: how many values each group has, their sum, and that
of their squares. The values of a group are to be independent of each other: where people come back, one value for each
of them, such as the mean of their scores, and not each score.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from statistics import NormalDist
from typing import NamedTuple

ALPHA = 0.05
"""The chance that an interval ever leaves the true difference out; of several at once, each has its part of it."""
SMALLEST = 0.2
"""The smallest difference worth finding, in standard deviations of a value, unless another is given."""
FEWEST = 20
"""Values of each group before which nothing is said: what holds for many says little of so few."""


class Sums(NamedTuple):
    """How many values there are, their sum, and the sum of their squares: what is added up is additive."""

    number: float = 0.0
    total: float = 0.0
    squares: float = 0.0

    def plus(self, other: Sums) -> Sums:
        """Return the sums of both."""
        return Sums(self.number + other.number, self.total + other.total, self.squares + other.squares)

    @property
    def mean(self) -> float:
        """The mean of the values, NaN where there is none."""
        return self.total / self.number if self.number else math.nan

    @property
    def variance(self) -> float:
        """The variance of the values, without bias; NaN below two of them."""
        if self.number < 2:
            return math.nan
        return max(self.squares - self.total * self.total / self.number, 0.0) / (self.number - 1.0)


class Difference(NamedTuple):
    """The difference of two means: how much more the first is, and from where to where that may be.

    deviation: the standard deviation of a value, by both groups.
    """

    estimate: float
    low: float
    high: float
    deviation: float

    @property
    def excludes_zero(self) -> bool:
        """Whether there is a difference, as far as 95 % of such experiments are never wrong about it."""
        return self.low > 0.0 or self.high < 0.0


def difference(first: Sums, second: Sums, smallest: float = SMALLEST, alpha: float = ALPHA) -> Difference | None:
    """Return the difference of the means, None while there are too few values, or all are the same.

    smallest: the smallest difference worth finding, in standard deviations: about when that shows, the interval is as
    narrow as such an interval can be. It is chosen beforehand; any other difference is found as well, only later.
    alpha: the chance that the interval ever errs; that any of m does is at most 5 % where each has 5 % / m.

    >>> [round(one, 3) for one in difference(Sums(400, 240, 160), Sums(400, 200, 120))]
    [0.1, 0.054, 0.146, 0.212]
    """
    if min(first.number, second.number) < FEWEST:
        return None
    freedom = first.number + second.number - 2.0
    pooled = ((first.number - 1.0) * first.variance + (second.number - 1.0) * second.variance) / freedom
    # The larger of the two: a small group in which nothing rare has happened yet does not know how it varies, and where
    # one group truly varies more, the two together do not.
    variance = max(
        first.variance / first.number + second.variance / second.number,
        pooled / first.number + pooled / second.number,
    )
    if not variance > 0.0:
        return None
    room = math.sqrt(variance) * boundary(pooled / variance, smallest, alpha)
    estimate = first.mean - second.mean
    return Difference(estimate, estimate - room, estimate + room, math.sqrt(pooled))


def boundary(size: float, smallest: float = SMALLEST, alpha: float = ALPHA) -> float:
    """Return how many standard errors wide an interval is to either side, at an effective sample size.

    size: the variance of a value over that of the difference: n₁n₂ / (n₁ + n₂) for groups of n₁ and n₂.

    >>> round(boundary(fixed_size(0.2)), 2), round(boundary(100 * fixed_size(0.2)), 2)
    (3.04, 3.56)
    """
    tightest = -2.0 * math.log(alpha) + math.log1p(-2.0 * math.log(alpha))  # in units of 1/ρ²: the paper's choice of ρ
    time = size * tightest / fixed_size(smallest, alpha)
    return math.sqrt((1.0 + 1.0 / time) * math.log((1.0 + time) / alpha**2))


@functools.cache
def fixed_size(smallest: float = SMALLEST, alpha: float = ALPHA) -> float:
    """Return the effective sample size at which a test of a fixed sample finds that difference in 80 % of cases."""
    normal = NormalDist()
    return ((normal.inv_cdf(1.0 - alpha / 2.0) + normal.inv_cdf(0.8)) / smallest) ** 2


def enough(smallest: float = SMALLEST, alpha: float = ALPHA) -> float:
    """Return the effective sample size from which on an interval excludes 0 by a difference of exactly that much.

    >>> round(enough(0.2)), round(fixed_size(0.2))
    (230, 196)
    """
    low, high = 0.0, 100.0 * fixed_size(smallest, alpha)
    while high - low > 1e-6 * high:
        size = (low + high) / 2.0
        low, high = (size, high) if boundary(size, smallest, alpha) > smallest * math.sqrt(size) else (low, size)
    return high


def still_needed(first: Sums, second: Sums, share: float, smallest: float = SMALLEST, alpha: float = ALPHA) -> int:
    """Return how many more values there have to be, of both groups together, until the smallest difference shows.

    share: of the second group among those to come. 0 is that it would have shown, were it there.

    >>> still_needed(Sums(400, 240, 160), Sums(400, 200, 120), share=0.5), still_needed(Sums(), Sums(), share=0.05)
    (122, 4853)
    """
    wanted, counts = enough(smallest, alpha), (first.number, second.number)

    def reached(more: int) -> bool:
        n, m = counts[0] + (1.0 - share) * more, counts[1] + share * more
        return n * m >= wanted * (n + m) > 0.0 and min(n, m) >= FEWEST

    return bisect_left(range(1 << 60), True, key=reached)
