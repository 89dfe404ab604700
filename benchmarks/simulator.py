"""Nanoseconds a decision of PRUCB-HP: a plain NumPy loop, NumPy batched over trials, and pamo on one thread.

All three do the same work in the same run of this command; what counts is the ratio.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.yardsticks import numpy_batched, numpy_loop
from pamo import environments, simulate

SIZES = ((10, 5, 5, 200.0), (2, 5, 3, 300.0), (50, 20, 8, 100.0))
"""(users, arms in a block, objectives, the ratio to the loop that we hold ourselves to)."""


def best_of(run: Callable[[], int], repeats: int = 3) -> float:
    """Return the nanoseconds a decision of the fastest of several runs: the one least disturbed by the machine."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        decisions = run()
        times.append((time.perf_counter() - started) / decisions * 1e9)
    return min(times)


def measure(users: int, block: int, objectives: int) -> tuple[float, float, float]:
    """Return nanoseconds a decision: loop, batched, pamo."""
    decisions = 8_000

    def loop() -> int:
        rounds = max(decisions // users, 20)
        numpy_loop(users=users, block=block, objectives=objectives, rounds=rounds, seed=1)
        return rounds * users

    def batched() -> int:
        trials = 100
        rounds = max(decisions // users // 4, 5)
        numpy_batched(users=users, block=block, objectives=objectives, rounds=rounds, trials=trials, seed=1)
        return rounds * users * trials

    environment = environments.Gaussian(users=users, block_size=block, objectives=objectives)

    def compiled() -> int:
        rounds = 2_000
        trials = max(1_000_000 // (rounds * users), 1)
        simulate(["prucb-hp"], environment, rounds=rounds, trials=trials, seed=1, threads=1)
        return rounds * trials * users

    compiled()  # the first call compiles
    return best_of(loop), best_of(batched), best_of(compiled)


def start_up() -> float:
    """Return the seconds of the typical experiment in a new process: 10 users, T = 5000, 10 trials, one policy."""
    command = [sys.executable, "-m", "pamo", "simulate", "--policy", "prucb-hp", "--users", "10"]
    times = []
    for _ in range(4):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return min(times[1:])  # the first may have compiled


def main() -> None:
    """Print the table."""
    print("PRUCB-HP, nanoseconds a decision on one thread (fastest of 3 runs)\n")
    print(f"{'users, block, D':<18}{'NumPy loop':>12}{'NumPy batched':>15}{'pamo':>9}{'loop/pamo':>12}{'goal':>8}")
    missed = []
    for users, block, objectives, goal in SIZES:
        loop, batched, compiled = measure(users, block, objectives)
        ratio = loop / compiled
        size = f"{users}, {block}, {objectives}"
        print(f"{size:<18}{loop:>12,.0f}{batched:>15,.0f}{compiled:>9,.0f}{ratio:>11,.0f}×{goal:>7,.0f}×", flush=True)
        if ratio < goal:
            missed.append(size)
    seconds = start_up()
    print(f"\nThe typical experiment in a new process (10 users, T = 5000, 10 trials): {seconds:.2f} s in all")
    if missed or seconds >= 1.0:
        print(f"MISSED: {'; '.join(missed) or 'start-up'}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
