"""What it costs that workers merge only now and then: `python -m benchmarks.staleness`.

Sixteen workers serve four users each. Of the arms a worker knows what its own users gave at once, and what the others'
gave by the last merge. Each line is the regret of the same trials, with what it is more than at a merge in every round.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pamo import environments, simulate
from pamo.arrays import Floats
from pamo.rows import arm_width

EVERY = (1, 10, 100, 1000)
SETTINGS: dict[str, dict[str, Any]] = {
    "blocks of 5 of 320 arms": {"block_size": 5},
    "all of 20 arms": {"arms": 20, "block_size": 20, "protocol": "all"},
}
POLICIES = {"prucb-hp": "prucb-hp", "recommended": "prucb-hp-v"}


def regrets(options: argparse.Namespace, setting: dict[str, Any], every: int) -> dict[str, Floats]:
    """Return the final regret of each trial by policy."""
    environment = environments.Gaussian(users=options.users, workers=options.workers, merge_every=every, **setting)
    run: dict[str, Any] = {"rounds": options.rounds, "trials": options.trials, "seed": options.seed, "checkpoints": 1}
    result = simulate(list(POLICIES), environment, **run)
    return {name: result[label].final_regret for name, label in POLICIES.items()}


def error(values: Floats) -> float:
    """Return the standard error of a mean."""
    return float(values.std(ddof=1)) / math.sqrt(len(values))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, and draw it where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--users", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", metavar="FILE", help="draw the figure too")
    options = parser.parse_args(arguments)
    lines: dict[tuple[str, str], list[tuple[float, float]]] = {}
    print(
        f"{options.users} users, {options.workers} workers, {options.rounds} rounds, {options.trials} trials, seed "
        f"{options.seed}; D=3, where an arm's row is {8 * arm_width(3)} bytes; regret ± its standard error"
    )
    for name, setting in SETTINGS.items():
        arms = environments.Gaussian(users=options.users, **setting).arm_count
        print(f"\n{name}: a merge takes {8 * arm_width(3) * arms / 1e3:.1f} kB from each worker, and as much to it")
        print(f"{'merge every':>12}" + "".join(f"{policy:>20}{'more':>18}" for policy in POLICIES))
        first: dict[str, Floats] = {}
        for every in EVERY:
            found, line = regrets(options, setting, every), f"{every:>12,}"
            for policy, values in found.items():
                more = values - first.setdefault(policy, values)
                share, spread = 100 * more.mean() / first[policy].mean(), 100 * error(more) / first[policy].mean()
                line += f"{values.mean():>13,.0f} ± {error(values):<4.0f}{share:>10.1f} ± {spread:.1f} %"
                lines.setdefault((name, policy), []).append((float(values.mean()), error(values)))
            print(line)
    if options.plot:
        draw(options.plot, lines)


def draw(path: str, lines: dict[tuple[str, str], list[tuple[float, float]]]) -> None:
    """Draw the regret against the rounds between merges."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.subplots()
    for (setting, policy), found in lines.items():
        means, errors = np.array(found).T
        style: dict[str, Any] = {"marker": "o", "linestyle": "-" if policy == "recommended" else "--"}
        axes.errorbar(EVERY, means, yerr=2 * errors, label=f"{policy}, {setting}", capsize=3, **style)
    axes.set(xscale="log", yscale="log", xlabel="rounds from one merge to the next", ylabel="regret")
    axes.legend(frameon=False, bbox_to_anchor=(1.0, 0.5), loc="center left")
    figure.savefig(path)


if __name__ == "__main__":
    main()
