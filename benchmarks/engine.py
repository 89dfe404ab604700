"""Speed of the engine: `python -m benchmarks.engine`.

A decision and its feedback with the memory store and 5 objectives: with 10 and with 1,000 arms, with half-lives, and a
decision among 10,000 arms with ten features each; the least of several medians, beside what it may be. The yardstick in
the same run, is MABWiser's LinUCB with 10 arms: `predict` for a user's context and `partial_fit` with the reward that
came of it.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable

import numpy as np
from mabwiser.mab import MAB, LearningPolicy

from pamo import Engine

NAMES = ("price", "taste", "service", "comfort", "noise")
USERS, FEATURES = 5000, 10


def median_microseconds(call: Callable[[int], object], count: int) -> float:
    """Return the median microseconds of one call, each timed on its own."""
    times = []
    for number in range(count):
        started = time.perf_counter()
        call(number)
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e6


class Shop:
    """An engine with so many arms, and users who have all come once."""

    def __init__(self, arms: int, *, users: int = USERS, features: int = 0, half_life: str | None = None) -> None:
        names, numbers = [f"feature-{k}" for k in range(features)], np.random.default_rng(1)
        self.engine = Engine(NAMES, seed=1, features=names, half_life=half_life)
        ids = [f"arm-{k}" for k in range(arms)]
        table = numbers.standard_normal((arms, features)).tolist()
        known = {arm: dict(zip(names, row, strict=True)) for arm, row in zip(ids, table, strict=True)}
        self.engine.add_arms(ids, features=known if features else None)
        self._rewards = [dict(zip(NAMES, row, strict=True)) for row in numbers.uniform(size=(1000, 5)).tolist()]
        self._overall = numbers.uniform(size=1000).tolist()
        self._users = [f"user-{n}" for n in range(users)]
        for number in range(users):  # compiles, and makes every user known
            self.both(number)

    def both(self, number: int) -> None:
        """Decide for a user, and give feedback."""
        decision = self.engine.decide(self._users[number % len(self._users)])
        self.engine.feedback(decision.id, self._rewards[number % 1000], self._overall[number % 1000])

    def decide(self, number: int) -> None:
        """Decide for a user."""
        self.engine.decide(self._users[number % len(self._users)])

    def many(self, number: int) -> None:
        """Decide for a thousand users in one call."""
        self.engine.decide_many(self._users[:1000])


def yardstick_call() -> Callable[[int], object]:
    """Return a prediction of MABWiser's LinUCB with its update."""
    numbers, names = np.random.default_rng(1), [f"arm-{k}" for k in range(10)]
    contexts, rewards = numbers.uniform(size=(1000, 5)), numbers.uniform(size=1000)
    mab = MAB(arms=names, learning_policy=LearningPolicy.LinUCB(alpha=1.0), seed=1)
    first = [names[n % 10] for n in range(1000)]
    mab.fit(decisions=first, rewards=rewards, contexts=contexts)

    def both(number: int) -> None:
        context = contexts[number % 1000 : number % 1000 + 1]
        arm = mab.predict(context)
        mab.partial_fit(decisions=[arm], rewards=rewards[number % 1000 : number % 1000 + 1], contexts=context)

    both(0)
    return both


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5_000, help="calls of a decision with its feedback at a time")
    parser.add_argument("--repeats", type=int, default=5, help="how often; the least median counts")
    options = parser.parse_args()
    small, wide = Shop(10), Shop(10_000, users=500, features=FEATURES)
    calls: dict[str, tuple[Callable[[int], object], int, float]] = {
        "MABWiser's LinUCB, predict + partial_fit (yardstick)": (yardstick_call(), 20, 0.0),
        "decide + feedback, 10 arms": (small.both, 1, 20.0),
        "the same, half-lives in days": (Shop(10, half_life="30 days").both, 1, 0.0),
        "the same, half-lives in rounds": (Shop(10, half_life="users: 40 rounds, arms: 400 rounds").both, 1, 0.0),
        "decide, a thousand users in one call": (small.many, 1000, 0.0),
        "decide + feedback, 1,000 arms": (Shop(1000).both, 2, 150.0),
        "decide, 10,000 arms with ten features each": (wide.decide, 20, 2000.0),
    }
    found = dict.fromkeys(calls, math.inf)
    for _ in range(options.repeats):  # by turns, so that a machine's busy moments are everybody's
        for what, (call, share, _) in calls.items():
            found[what] = min(found[what], median_microseconds(call, max(options.count // share, 3)))
    print("in process, memory store, 5 objectives: µs, and what it may be")
    for what, (_, _, most) in calls.items():
        limit = f"   at most {most:,.0f}{'' if found[what] <= most else '  MISSED'}" if most else ""
        print(f"  {what:<56}{found[what]:10,.1f}{limit}")


if __name__ == "__main__":
    main()
