"""One long run in the bounded environment with the theorems' bounds beside it, as tables of the study `bounds`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pamo import environments
from pamo.arrays import Floats, Ints
from pamo.environments.base import Environment
from pamo.experiments.paper.scaling import (
    ALL,
    CLEAR,
    HIDDEN,
    KNOWN,
    POLICIES,
    PRESCRIBED,
    STATED,
    bounds_of,
    exponent_row,
    gains,
    policies_for,
    shape_of,
)
from pamo.experiments.paper.theorems import gaps_of, hidden_settings
from pamo.experiments.tables import Table, Tables
from pamo.progress import Progress
from pamo.simulation import PolicyResult, simulate
from pamo.theory import Gaps, prucb_hp_bound, warm_up_rounds

THEOREMS = {PRESCRIBED: "Theorem 1", STATED: "Theorem 2", KNOWN: "Corollary"}
"""The policies that a theorem covers, and which one."""


def doublings_of(rounds: int) -> list[int]:
    """Return the rounds at which growth in T is looked at: an eighth, a quarter, half, and all of them.

    >>> doublings_of(40_000)
    [5000, 10000, 20000, 40000]
    """
    return [rounds // part for part in (8, 4, 2, 1)]


def run_long(settings: Mapping[str, Any], seed: int, progress: Progress) -> tuple[list[dict[str, Any]], Tables]:
    """Run all policies for many rounds; return the rows of exponents in T, and regret and bounds.

    settings: `environment`, `rounds`, `paper_rounds` (to compare at), `trials`, `failure`, and `clear_gap`, from which
    on an instance's gaps count as clear. Tables: `curves` (over rounds), `trials` (at the paper's horizon), `horizon`
    (the bounds alone, far beyond what can be run).
    """
    environment = environments.from_settings(dict(settings["environment"]))
    rounds, trials = settings["rounds"], settings["trials"]
    doublings = doublings_of(rounds)
    marks = np.unique([*np.geomspace(10, rounds, 45).astype(np.int64), *doublings, settings["paper_rounds"]])
    outcomes: dict[str, PolicyResult] = {}
    for name, policy in zip(POLICIES, policies_for(environment, settings["failure"]), strict=True):
        result = simulate([policy], environment, rounds=rounds, trials=trials, seed=seed, checkpoints=marks.tolist())
        (outcomes[name],) = result.values()
        progress(1 / len(POLICIES))
    instances = [gaps_of(environment, seed, trial) for trial in range(trials)]
    bounds = _bounds(environment, marks, instances, settings["failure"])
    paper = int(np.searchsorted(marks, settings["paper_rounds"]))
    clear = np.array([found.low.min() >= settings["clear_gap"] for found in instances])
    shape = {PRESCRIBED: shape_of(environment, marks, settings["failure"])}
    tables = {
        "curves": Table.stack([_curve(name, outcomes[name], bounds.get(name), shape.get(name)) for name in POLICIES]),
        "trials": Table.stack([_trials(name, outcomes[name], paper, bounds[name], instances) for name in THEOREMS]),
        "horizon": _horizon(environment, instances, settings["failure"]),
    }
    rows = []
    for name in POLICIES:
        added = gains(outcomes[name].regret[:, np.searchsorted(marks, doublings)])
        bound = _bound_gains(name, environment, doublings, settings["failure"])
        rows.append(exponent_row("T", name, ALL, doublings[1:], added, bound, seed))
        if clear.sum() >= 2:
            rows.append(exponent_row("T", name, CLEAR, doublings[1:], added[clear], bound, seed))
    return rows, tables


def _bound_gains(name: str, environment: Environment, doublings: list[int], failure: float) -> Floats | None:
    """Return what each doubling of T adds to the bound, up to a factor."""
    if name == HIDDEN:
        return None
    if name == PRESCRIBED:
        return gains(shape_of(environment, doublings, failure))
    return np.ones(len(doublings) - 1)  # a bound of A·log T + B: A·log 2 each time


def _hidden_bound(environment: Environment, rounds: npt.ArrayLike, failure: float) -> tuple[Floats, int]:
    """Return Theorem 1's bound and its M."""
    settings = hidden_settings(environment, failure)
    # The nominal variance is the most that the least one of an instance can be, and so makes the least of M.
    variance = float(environment.settings["reward_variance"])
    bound = prucb_hp_bound(rounds, settings=settings, reward_variance=variance).total
    return np.asarray(bound), warm_up_rounds(settings=settings, reward_variance=variance)


def _bounds(environment: Environment, marks: Ints, instances: list[Gaps], failure: float) -> dict[str, Floats]:
    """Return the bounds at the marks, each (trials, marks); Theorem 1's is the same for all instances."""
    hidden, _ = _hidden_bound(environment, marks, failure)
    by_trial = [bounds_of(found, marks) for found in instances]
    return {PRESCRIBED: np.tile(hidden, (len(instances), 1))} | {
        name: np.array([each[name] for each in by_trial]) for name in (STATED, KNOWN)
    }


def _curve(name: str, outcome: PolicyResult, bound: Floats | None, shape: Floats | None) -> Table:
    """Return regret and bound over rounds; shape: the bound as if M were 0. NaN where there is none."""
    marks, regret = outcome.rounds, outcome.regret
    mean, low, high = outcome.band()
    limits = np.full_like(regret, np.nan) if bound is None else bound
    tenth, half, most = np.quantile(limits, [0.1, 0.5, 0.9], axis=0)
    return Table(
        {"policy": name, "round": marks, "mean": mean, "low": low, "high": high}
        | {"bound": half, "bound, 10 %": tenth, "bound, 90 %": most, "mean bound": limits.mean(axis=0)}
        | {"without M": np.nan if shape is None else shape}
        | {"ratio": np.median(_ratio(limits, regret), axis=0)}
    )


def _trials(name: str, outcome: PolicyResult, paper: int, bound: Floats, instances: list[Gaps]) -> Table:
    """Return trial by trial regret and bounds at the paper's horizon, and the least bound/regret of all rounds.

    trivial: the rounds times the most that the users can lose in one: 1 each for Theorem 1, which knows no more, and
    the instance's largest gaps for the others.
    """
    count, rounds, regret = len(instances), int(outcome.rounds[paper]), outcome.regret
    users = float(outcome.regret_by_user.shape[2])
    lost = [users if name == PRESCRIBED else float(found.high.max(axis=1).sum()) for found in instances]
    return Table(
        {"policy": name, "trial": np.arange(count), "rounds": rounds}
        | {"least gap": [float(found.low.min()) for found in instances]}
        | {"regret": regret[:, paper], "bound": bound[:, paper], "trivial": rounds * np.array(lost)}
        | {"least ratio": _ratio(bound, regret).min(axis=1)}
    )


def _ratio(bound: Floats, regret: Floats) -> Floats:
    return bound / np.maximum(regret, 1e-12)


def _horizon(environment: Environment, instances: list[Gaps], failure: float) -> Table:
    """Return the bounds on the regret of one decision, the median instance's, with what is trivial, and M.

    stated: the probability with which the bound is to hold; Theorem 2 and the corollary bound a mean.
    """
    rounds = np.geomspace(1e2, 1e12, 401)
    hidden, warm_up = _hidden_bound(environment, rounds, failure)
    by_trial = [bounds_of(found, rounds) for found in instances]
    lines = {PRESCRIBED: hidden} | {
        name: np.median([each[name] for each in by_trial], axis=0) for name in (STATED, KNOWN)
    }
    lost = float(np.median([found.high.max(axis=1).mean() for found in instances]))
    parts = []
    for name, line in lines.items():
        first = name == PRESCRIBED
        parts.append(
            Table(
                {"policy": name, "round": rounds, "bound": line / (environment.users * rounds)}
                | {"trivial": 1.0 if first else lost, "M": float(warm_up) if first else 0.0}
                | {"stated": 1 - 2 * failure if first else np.nan}
            )
        )
    return Table.stack(parts)
