"""Compare a few policies and draw their regret.

    python examples/compare.py regret.svg [--rounds 5000] [--trials 20]

All policies meet the same arms, the same users and, as far as they choose alike, the same draws: a difference between
them is theirs, and not luck's.
"""

from __future__ import annotations

import argparse

from pamo import environments, policies, simulate
from pamo.simulation import summarize


def main(arguments: list[str] | None = None) -> None:
    """Run the policies, print how each compares with PRUCB-HP trial by trial, and draw the figure."""
    parser = argparse.ArgumentParser(description="Compare a few policies and draw their regret.")
    parser.add_argument("figure", help="where to draw: .svg, .png or .pdf")
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--trials", type=int, default=20)
    options = parser.parse_args(arguments)
    result = simulate(
        policies=["prucb-hp", "prucb-kp", policies.create("oful", epsilon=0.1), "ucb-per-user", "ucb"],
        environment=environments.Gaussian(users=2, block_size=5, objectives=3, preference="predefined"),
        rounds=options.rounds,
        trials=options.trials,
        seed=1,
    )
    base = result["prucb-hp"].final_regret
    print(f"{'policy':<14}{'final regret':>14}{'less prucb-hp (95 %)':>28}")
    for name, outcome in result.items():
        difference = summarize(outcome.final_regret - base)  # trial by trial: the luck that they share drops out
        interval = "" if name == "prucb-hp" else f"{difference.low:+.0f} … {difference.high:+.0f}"
        print(f"{name:<14}{outcome.final_regret.mean():>14.0f}{interval:>28}")
    print(f"figure: {result.plot(options.figure)}")


if __name__ == "__main__":
    main()
