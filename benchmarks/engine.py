"""Speed of the engine: `python -m benchmarks.engine`.

One decision and its feedback, with the memory store, 10 arms and 5 objectives. The yardstick, in the same run, is
MABWiser's LinUCB: `predict` for a user's context and `partial_fit` with the reward that came of it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from mabwiser.mab import MAB, LearningPolicy

from pamo import Engine

ARMS = [f"arm-{k}" for k in range(10)]
NAMES = ("price", "taste", "service", "comfort", "noise")
USERS = 5000


def median_microseconds(call: Callable[[int], object], count: int) -> float:
    """Return the median microseconds of one call, each timed on its own."""
    times = []
    for number in range(count):
        started = time.perf_counter()
        call(number)
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e6


def engine_calls() -> tuple[Callable[[int], object], Callable[[int], object]]:
    """Return a decision with its feedback, and decisions for a thousand users in one call."""
    engine = Engine(NAMES, seed=1)
    for arm in ARMS:
        engine.add_arm(arm)
    numbers = np.random.default_rng(1)
    rewards = [dict(zip(NAMES, row, strict=True)) for row in numbers.uniform(size=(1000, 5)).tolist()]
    overall = numbers.uniform(size=1000).tolist()
    users = [f"user-{n}" for n in range(USERS)]

    def both(number: int) -> None:
        decision = engine.decide(users[number % USERS])
        engine.feedback(decision.id, rewards[number % 1000], overall[number % 1000])

    def many(number: int) -> None:
        engine.decide_many(users[:1000])

    for number in range(USERS):  # compiles, and makes every user known
        both(number)
    many(0)
    return both, many


def yardstick_call() -> Callable[[int], object]:
    """Return a prediction of MABWiser's LinUCB with its update."""
    numbers = np.random.default_rng(1)
    contexts, rewards = numbers.uniform(size=(1000, 5)), numbers.uniform(size=1000)
    mab = MAB(arms=ARMS, learning_policy=LearningPolicy.LinUCB(alpha=1.0), seed=1)
    first = [ARMS[n % 10] for n in range(1000)]
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
    parser.add_argument("--count", type=int, default=20_000)
    options = parser.parse_args()
    both, many = engine_calls()
    theirs = median_microseconds(yardstick_call(), max(options.count // 20, 10))
    ours = median_microseconds(both, options.count)
    each = median_microseconds(many, max(options.count // 1000, 3)) / 1000
    print("in process, memory store, 10 arms, 5 objectives: µs (median)")
    print(f"  MABWiser's LinUCB, predict + partial_fit (yardstick)  {theirs:9.1f}")
    print(f"  decide + feedback                                     {ours:9.1f}   {theirs / ours:.0f}× as fast")
    print(f"  decide, a thousand users in one call, for each        {each:9.1f}")


if __name__ == "__main__":
    main()
