"""How many requests a second each name may make."""

from __future__ import annotations

import time
from collections.abc import Callable

MOST_NAMES = 100_000
"""How many names are remembered: some ten megabytes."""


_ROUNDING = 1e-9  # who waits as long as was said should not be refused for a rounding


class RateLimiter:
    """A token bucket for each name: `burst` requests at once, and `rate` a second in the long run; 0 is no limit.

    Kept of a name is one number, the time at which its bucket is full again. Names whose buckets are full are
    forgotten, and beyond `most_names` the one that asked longest ago, so that strangers cannot fill the memory. Not for
    several threads at once.

    >>> now = 0.0
    >>> limiter = RateLimiter(rate=2, burst=2, clock=lambda: now)
    >>> [limiter.wait_for("ann") for _ in range(4)]
    [0.0, 0.0, 0.5, 0.5]
    >>> now = 0.5
    >>> limiter.wait_for("ann")
    0.0
    """

    def __init__(
        self,
        rate: float,
        burst: int = 1,
        clock: Callable[[], float] = time.monotonic,
        most_names: int = MOST_NAMES,
    ) -> None:
        self._interval = 1.0 / rate if rate > 0 else 0.0
        self._slack = (burst - 1) * self._interval
        self._clock = clock
        self._most_names = max(most_names, 1)  # the name that asks now always stays
        self._full_at: dict[str, float] = {}  # in the order in which they asked last

    def __len__(self) -> int:
        return len(self._full_at)

    def wait_for(self, name: str) -> float:
        """Take a token if there is one and return 0; otherwise return the seconds until there is one."""
        if not self._interval:
            return 0.0
        now, buckets = self._clock(), self._full_at
        full_at = max(buckets.pop(name, now), now)
        wait = full_at - now - self._slack
        granted = wait < _ROUNDING
        buckets[name] = full_at + self._interval if granted else full_at
        self._forget(now)
        return 0.0 if granted else wait

    def _forget(self, now: float) -> None:
        """Let go of two names at most: as one is added at a time, that is enough, and no request pays for all."""
        buckets = self._full_at
        for _ in range(2):
            oldest = next(iter(buckets))
            if buckets[oldest] > now and len(buckets) <= self._most_names:
                return
            del buckets[oldest]
