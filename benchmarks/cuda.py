"""Decisions a second on this machine's GPU, and whether its trials are those of the processor.

`python -m benchmarks.cuda` prints the table; `--policy` and `--size` choose rows of it. Each row compiles for ten
seconds or more before it is timed.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from pamo import environments, policies, simulate

SIZES = {(2, 5, 3): 5000, (10, 5, 5): 1000}
"""(users, arms in a block, objectives), and the rounds that are timed."""
GOALS = {
    ("prucb-hp", (2, 5, 3), "double"): 2.5,
    ("prucb-hp", (10, 5, 5), "double"): 0.8,
    ("prucb-hp", (2, 5, 3), "single"): 4.0,
    ("prucb-hp", (10, 5, 5), "single"): 1.5,
    ("prucb-hp-v", (10, 5, 5), "double"): 0.3,
}
"""Billions of decisions a second on an H200; any other policy's is 0.25 at (10, 5, 5)."""
TRIALS, COMPARED = 1 << 18, 1000


def measure(policy: str, size: tuple[int, int, int], precision: str) -> tuple[float, float]:
    """Return billions of decisions a second, and the most by which a trial's final regret is not the processor's."""
    users, block, objectives = size
    environment, rounds = environments.Gaussian(users=users, block_size=block, objectives=objectives), SIZES[size]
    here = simulate([policy], environment, rounds=rounds, trials=COMPARED, checkpoints=1)[policy]
    there = simulate(
        [policy], environment, rounds=rounds, trials=TRIALS, checkpoints=1, device="cuda", precision=precision
    )[policy]
    apart = np.abs(there.final_regret[:COMPARED] - here.final_regret).max()
    return there.decisions_per_second / 1e9, float(apart)


def million() -> float:
    """Return the seconds of a million trials of the paper's main setting, from the call to the result."""
    simulate(["prucb-hp"], environments.Gaussian(), trials=1000, checkpoints=10, device="cuda")  # compiles
    started = time.perf_counter()
    result = simulate(["prucb-hp"], environments.Gaussian(), trials=1_000_000, checkpoints=10, device="cuda")
    seconds = time.perf_counter() - started
    regret = np.quantile(result["prucb-hp"].final_regret, (0.5, 0.99, 0.999, 0.9999, 1.0))
    print("\nfinal regret of a million trials: " + ", ".join(f"{value:,.0f}" for value in regret), end=" ")
    print("(median, 99 %, 99.9 %, 99.99 %, largest)")
    return seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="decisions a second on the GPU")
    parser.add_argument("--policy", action="append", help="repeat for several (default: all)")
    wanted = parser.parse_args().policy or policies.available()
    print(f"{'policy':<14}{'users, block, D':<17}{'precision':<11}{'G decisions/s':>14}{'goal':>7}{'from the CPU':>14}")
    missed = []
    for policy in wanted:
        for size in SIZES:
            for precision in ("double", "single"):
                goal = GOALS.get((policy, size, precision), 0.25 if size == (10, 5, 5) else 0.0)
                if policy != "prucb-hp" and (precision == "single" or not goal):
                    continue
                speed, apart = measure(policy, size, precision)
                name = f"{policy:<14}{', '.join(map(str, size)):<17}{precision:<11}"
                print(f"{name}{speed:>14.3f}{goal:>7.2f}{apart:>14.1e}", flush=True)
                if speed < goal or (precision == "double" and apart > 1e-6):
                    missed.append(name)
    if "prucb-hp" in wanted:
        print(f"a million trials of (2, 5, 3), T = 5000: {million():.2f} s")
    if missed:
        print("MISSED:\n" + "\n".join(missed), file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
