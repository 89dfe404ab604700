"""Decisions a second on this machine's GPU, and whether its trials are those of the processor.

`python -m benchmarks.cuda` prints the table and the tail that a million trials show; `--policy` chooses rows. Each row
compiles for ten seconds or more before it is timed.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from pamo import environments, policies, simulate
from pamo.environments import Gaussian

MAIN, LARGER = "2, 5, 3", "10, 5, 5"
SETTINGS = {
    MAIN: (Gaussian(), 5000, 1 << 18),
    LARGER: (Gaussian(users=10, block_size=5, objectives=5), 500, 1 << 18),
    "50, 20, 8": (Gaussian(users=50, block_size=20, objectives=8), 100, 1 << 13),
    "1,000 arms": (Gaussian(users=10, block_size=100, objectives=5, protocol="all"), 100, 1 << 13),
}
"""By its users, arms in a block and objectives, or by all the arms that everybody is offered: what is played, and in
how many rounds and trials. The last two are too large for tables of a thread's own."""
GOALS = {
    ("prucb-hp", MAIN, "double"): 2.5,
    ("prucb-hp", LARGER, "double"): 0.8,
    ("prucb-hp", MAIN, "single"): 4.0,
    ("prucb-hp", LARGER, "single"): 1.5,
    ("prucb-hp-v", LARGER, "double"): 0.3,
}
"""Billions of decisions a second on an H200; any other policy's is 0.25 in the larger of the paper's settings."""
COMPARED = 1000
"""Trials that the processor plays as well."""
SHARES = (0.0001, 0.01, 0.25, 0.5, 0.75, 0.99, 0.999, 0.9999, 0.99999, 1.0)


def measure(policy: str, setting: str, precision: str) -> tuple[float, float]:
    """Return billions of decisions a second, and the most by which a trial's final regret is not the processor's."""
    environment, rounds, trials = SETTINGS[setting]
    (here,) = simulate([policy], environment, rounds=rounds, trials=COMPARED, checkpoints=1).policies.values()
    (there,) = simulate(
        [policy], environment, rounds=rounds, trials=trials, checkpoints=1, device="cuda", precision=precision
    ).policies.values()
    apart = np.abs(there.final_regret[:COMPARED] - here.final_regret).max()
    return there.decisions_per_second / 1e9, float(apart)


def million(policy: str) -> None:
    """Print what a million trials of the paper's main setting take, from the call to the result, and their tail."""
    simulate([policy], environments.Gaussian(), trials=1000, checkpoints=10, device="cuda")  # compiles
    started = time.perf_counter()
    regret = simulate([policy], Gaussian(), trials=1_000_000, checkpoints=10, device="cuda")[policy].final_regret
    seconds = time.perf_counter() - started
    print(
        f"\n{policy}, a million trials of ({MAIN}), T = 5000: {seconds:.2f} s; final regret: mean {regret.mean():,.1f}"
    )
    for share, value in zip(SHARES, np.quantile(regret, SHARES), strict=True):
        print(f"  {100 * share:>8.4f} % of trials at most {value:>8,.1f}")


def rows(policy: str) -> list[tuple[str, str]]:
    """Return the settings and precisions in which a policy is measured."""
    if policy == "prucb-hp":
        return [(MAIN, "double"), (MAIN, "single"), (LARGER, "double"), (LARGER, "single")] + [
            (setting, "double") for setting in list(SETTINGS)[2:]
        ]
    return [(LARGER, "double")]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="decisions a second on the GPU")
    parser.add_argument("--policy", action="append", help="repeat for several (default: all)")
    wanted = parser.parse_args().policy or policies.available()
    print(f"{'policy':<14}{'users, block, D':<17}{'precision':<11}{'G decisions/s':>14}{'goal':>7}{'from the CPU':>14}")
    missed = []
    for policy in wanted:
        for setting, precision in rows(policy):
            goal = GOALS.get((policy, setting, precision), 0.25 if setting == LARGER else 0.0)
            speed, apart = measure(policy, setting, precision)
            name = f"{policy:<14}{setting:<17}{precision:<11}"
            print(f"{name}{speed:>14.3f}{goal:>7.2f}{apart:>14.1e}", flush=True)
            if speed < goal or (precision == "double" and apart > 1e-6):
                missed.append(name)
    for policy in ("prucb-hp", "prucb-hp-v"):
        if policy in wanted:
            million(policy)
    if missed:
        print("MISSED:\n" + "\n".join(missed), file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
