"""Many simulations as one table: cells of an environment, each with its policies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from pamo import environments
from pamo.arrays import Floats
from pamo.environments import Environment
from pamo.experiments.tables import Table, Tables
from pamo.policies import parse
from pamo.progress import Progress
from pamo.simulation import Summary, simulate, summarize
from pamo.simulation.preparing import Job, job_for
from pamo.simulation.result import band_of

PAPER_TRIALS = 10
"""The number of trials in the paper's figures; ours show these and, for the tight band, all."""


def run_grid(settings: Mapping[str, Any], seed: int, progress: Progress) -> Tables:
    """Simulate every cell, {"cell": name, "environment": settings, "policies": […]}, on the same trials.

    settings: `cells`, `rounds` and `trials`, and `pairs` of policies where their difference is of interest. Returns
    `curves` (cell, policy, trials, round, mean, low, high: for all trials and for the first ten), `finals` (cell,
    policy, trial, regret, half: the regret at the end and half-way), and with pairs `paired`: curves of the first
    one's regret less the other's, trial by trial.
    """
    curves: list[Table] = []
    finals: list[Table] = []
    differences: list[Table] = []
    cells, rounds, trials = settings["cells"], settings["rounds"], settings["trials"]
    evenly, early = np.linspace(rounds / 100, rounds, 100), np.geomspace(1, rounds, 40)
    noted = np.unique(np.maximum(np.append(evenly, early), 1).astype(np.int64)).tolist()
    works = [len(cell["policies"]) * int(cell["environment"].get("users", 1)) for cell in cells]
    for cell, work in zip(cells, works, strict=True):
        environment = environments.from_settings(dict(cell["environment"]))
        by_name = {
            policy: _regret(policy, environment, rounds, trials, seed, tuple(noted)) for policy in cell["policies"]
        }
        for one, other in settings.get("pairs", ()):
            mean, low, high = band_of(by_name[one] - by_name[other])
            here = {"cell": cell["cell"], "policy": one, "other": other, "round": noted}
            differences.append(Table(here | {"mean": mean, "low": low, "high": high}))
        for policy, regret in by_name.items():
            here = {"cell": cell["cell"], "policy": policy}
            for count in sorted({min(PAPER_TRIALS, trials), trials}):
                mean, low, high = band_of(regret[:count])
                curves.append(Table(here | {"trials": count, "round": noted, "mean": mean, "low": low, "high": high}))
            half = regret[:, int(np.searchsorted(noted, rounds / 2))]
            finals.append(Table(here | {"trial": np.arange(trials), "regret": regret[:, -1], "half": half}))
        progress(work / sum(works))
    tables = {"curves": Table.stack(curves), "finals": Table.stack(finals)}
    return tables | ({"paired": Table.stack(differences)} if differences else {})


@lru_cache(maxsize=256)  # 120 of `hidden`, of which `stated` has 60, and what comes between
def _regret(
    policy: str, environment: Environment, rounds: int, trials: int, seed: int, marks: tuple[int, ...]
) -> Floats:
    """Return a policy's regret, (trials, marks); what another study has played is not played again."""
    (outcome,) = simulate([policy], environment, rounds=rounds, trials=trials, seed=seed, checkpoints=marks).values()
    regret = outcome.regret
    regret.flags.writeable = False
    return regret


def prepare_grid(settings: Mapping[str, Any]) -> Iterator[Job]:
    """Yield what `run_grid` needs compiled."""
    for cell in settings["cells"]:
        environment = environments.from_settings(dict(cell["environment"]))
        for policy in cell["policies"]:
            yield job_for(parse(policy), environment)


def final(tables: Tables, cell: str, policy: str) -> Floats:
    """Return the final regrets of a policy in a cell, a trial each."""
    return tables["finals"].where(cell=cell, policy=policy)["regret"]


def mean_final(tables: Tables, cell: str, policy: str) -> float:
    """Return the mean of a policy's final regrets in a cell."""
    return float(final(tables, cell, policy).mean())


def curve(tables: Tables, cell: str, policy: str, trials: int | None = None) -> Table:
    """Return a policy's mean curve in a cell, of all trials unless told otherwise."""
    rows = tables["curves"].where(cell=cell, policy=policy)
    return rows.where(trials=max(rows["trials"]) if trials is None else trials)


def paired(tables: Tables, cell: str, policy: str, other: str) -> Summary:
    """Return the mean of policy − other over the trials that both met, with its 95 % interval."""
    return summarize(final(tables, cell, policy) - final(tables, cell, other))


def beats(tables: Tables, cell: str, policy: str, other: str) -> bool:
    """Tell whether the policy's regret is lower, the whole 95 % interval of the paired difference below zero."""
    difference = paired(tables, cell, policy, other)
    return (difference.high if math.isfinite(difference.high) else difference.mean) < 0.0


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
