"""Many simulations as one table: cells of an environment, each with its policies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pamo import environments
from pamo.arrays import Floats
from pamo.experiments.study import Progress
from pamo.experiments.tables import Table, Tables
from pamo.simulation import simulate, summarize

PAPER_TRIALS = 10
"""The number of trials in the paper's figures; ours show these and, for the tight band, all."""


def run_grid(
    cells: Sequence[Mapping[str, Any]],
    *,
    rounds: int,
    trials: int,
    seed: int,
    progress: Progress,
    checkpoints: int = 100,
) -> Tables:
    """Simulate each cell, {"cell": name, "environment": settings, "policies": […]}, on the same trials.

    Returns `curves` (cell, policy, trials, round, mean, low, high: for all trials and for the first ten) and
    `finals` (cell, policy, trial, regret, half: the regret at the end and half-way).
    """
    curves: list[Table] = []
    finals: list[Table] = []
    works = [len(cell["policies"]) * _users(cell) for cell in cells]
    for cell, work in zip(cells, works, strict=True):
        environment = environments.from_settings(dict(cell["environment"]))
        length = int(cell.get("rounds", rounds))
        result = simulate(
            cell["policies"], environment, rounds=length, trials=trials, seed=seed, checkpoints=checkpoints
        )
        for policy, outcome in zip(cell["policies"], result.values(), strict=True):
            regret, marks = outcome.regret, outcome.rounds
            for count in sorted({min(PAPER_TRIALS, trials), trials}):
                mean, low, high = _band(regret[:count])
                curves.append(
                    Table(
                        {
                            "cell": [cell["cell"]] * len(marks),
                            "policy": [policy] * len(marks),
                            "trials": [count] * len(marks),
                            "round": marks,
                            "mean": mean,
                            "low": low,
                            "high": high,
                        }
                    )
                )
            half = int(np.searchsorted(marks, length / 2))
            finals.append(
                Table(
                    {
                        "cell": [cell["cell"]] * trials,
                        "policy": [policy] * trials,
                        "trial": np.arange(trials),
                        "regret": regret[:, -1],
                        "half": regret[:, half],
                    }
                )
            )
        progress(work / sum(works))
    return {"curves": stack(curves), "finals": stack(finals)}


def stack(tables: Sequence[Table]) -> Table:
    """Return the tables' rows one after the other."""
    return Table({name: np.concatenate([table[name] for table in tables]) for name in tables[0].columns})


def final(tables: Tables, cell: str, policy: str) -> Floats:
    """Return the final regrets of a policy in a cell, a trial each."""
    return tables["finals"].where(cell=cell, policy=policy)["regret"]


def curve(tables: Tables, cell: str, policy: str, trials: int | None = None) -> Table:
    """Return a policy's mean curve in a cell, of all trials unless told otherwise."""
    rows = tables["curves"].where(cell=cell, policy=policy)
    return rows.where(trials=max(rows["trials"]) if trials is None else trials)


def paired(tables: Tables, cell: str, policy: str, other: str) -> tuple[float, float, float]:
    """Return the mean of policy − other over the trials that both met, with its 95 % interval."""
    mean, _, low, high = summarize(final(tables, cell, policy) - final(tables, cell, other))
    return mean, low, high


def beats(tables: Tables, cell: str, policy: str, other: str) -> bool:
    """Tell whether the policy's regret is lower, the whole 95 % interval of the paired difference below zero."""
    mean, _, high = paired(tables, cell, policy, other)
    return high < 0.0 if math.isfinite(high) else mean < 0.0


def exponent(tables: Tables, cell: str, policy: str) -> float:
    """Return p of regret growing like t^p late in the run: 1 is linear growth, 0 logarithmic or none.

    It compares the mean regret a round in the third and in the last quarter, so that what was lost in learning at the
    start does not count: fitted to the whole curve, a linear growth on top of that would look like less.
    """
    rows = curve(tables, cell, policy)
    last = float(rows["round"][-1])
    half, three, end = np.interp([0.5 * last, 0.75 * last, last], rows["round"], rows["mean"])
    if end - three <= 1e-9 * max(end, 1.0):
        return 0.0  # it grows no more
    third, fourth = max(three - half, 1e-12), end - three
    return float(1.0 + np.log(fourth / third) / np.log(0.875 / 0.625))


def slopes(tables: Tables, cell: str, policy: str, rounds: int) -> Floats:
    """Return each trial's regret a round over the second half."""
    rows = tables["finals"].where(cell=cell, policy=policy)
    result: Floats = (rows["regret"] - rows["half"]) / (rounds - rounds / 2)
    return result


def _band(values: Floats) -> tuple[Floats, Floats, Floats]:
    summaries = [summarize(column) for column in values.T]
    mean = np.array([summary.mean for summary in summaries])
    low, high = (np.array([getattr(summary, name) for summary in summaries]) for name in ("low", "high"))
    return mean, np.where(np.isnan(low), mean, low), np.where(np.isnan(high), mean, high)


def _users(cell: Mapping[str, Any]) -> int:
    return int(cell["environment"].get("users", 1))
