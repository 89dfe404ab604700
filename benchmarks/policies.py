"""Nanoseconds a decision of the recommended policy in the simulator, over PRUCB-HP's in the same run."""

from __future__ import annotations

import sys

from benchmarks.simulator import best_of
from pamo import environments, simulate

SIZES = ((2, 5, 3), (10, 3, 5), (10, 5, 5), (10, 5, 8), (20, 3, 5))
"""(users, arms in a block, objectives): the settings of `pamo compare`, and one more."""
MOST = 2.4
"""Times PRUCB-HP's time, which the recommended policy may take."""


def measure(policy: str, users: int, block: int, objectives: int) -> float:
    """Return nanoseconds a decision on one thread."""
    environment = environments.Gaussian(users=users, block_size=block, objectives=objectives)

    def run() -> int:
        rounds = 5_000
        trials = max(1_000_000 // (rounds * users), 1)
        simulate([policy], environment, rounds=rounds, trials=trials, seed=1, threads=1)
        return rounds * trials * users

    run()  # the first call compiles
    return best_of(run, repeats=5)


def main() -> None:
    """Print the table."""
    print("\nThe recommended policy, nanoseconds a decision on one thread (fastest of 5 runs)\n")
    print(f"{'users, block, D':<18}{'prucb-hp':>10}{'recommended':>13}{'ratio':>9}{'at most':>9}")
    missed = []
    for users, block, objectives in SIZES:
        paper, ours = (measure(policy, users, block, objectives) for policy in ("prucb-hp", "recommended"))
        size = f"{users}, {block}, {objectives}"
        print(f"{size:<18}{paper:>10,.0f}{ours:>13,.0f}{ours / paper:>8.2f}×{MOST:>8.1f}×", flush=True)
        if ours / paper > MOST:
            missed.append(size)
    if missed:
        print(f"MISSED: {'; '.join(missed)}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
