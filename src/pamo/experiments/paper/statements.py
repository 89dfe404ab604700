"""Lemma 2's and Lemma 3's statements, watched over many trials, as the tables of the study `confidence`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pamo import environments
from pamo.arrays import Floats, Ints
from pamo.estimators import experiments_radius
from pamo.experiments.paper.coverage import Seen, watch
from pamo.experiments.paper.theorems import hidden_settings, prescribed, wilson
from pamo.experiments.tables import Table, Tables
from pamo.policies import PrucbHp
from pamo.progress import Progress, scaled, unseen
from pamo.simulation.preparing import Job
from pamo.theory import HiddenSettings, lemma3_probability, lemma3_uniform_probability

THEORY, EXPERIMENTS = "Theorem 1's settings", "the experiments' settings"
LEMMA, HALF, SMALL = "ellipsoid, Lemma 2's radius", "ellipsoid, Lemma 2's with R = ½", "ellipsoid, experiments' radius"
BOUND = "upper bound"
RADII = (LEMMA, HALF, SMALL)


def watch_statements(settings: Mapping[str, Any], seed: int, progress: Progress) -> Tables:
    """Run PRUCB-HP with both settings in each environment; return the tables `trials`, `rounds` and `shares`."""
    rounds, trials = settings["rounds"], settings["trials"]
    marks = _marks(rounds)
    tables: dict[str, list[Table]] = {"trials": [], "rounds": [], "shares": []}
    cells = 2 * len(settings["environments"])
    for name, given in settings["environments"].items():
        environment = environments.from_settings(dict(given))
        theory = hidden_settings(environment, settings["failure"])
        radii = _radii(theory, rounds)
        for run, policy in ((THEORY, prescribed(theory)), (EXPERIMENTS, PrucbHp())):
            seen = watch(
                policy,
                environment,
                rounds=rounds,
                trials=trials,
                seed=seed,
                radii=radii,
                marks=marks,
                progress=scaled(progress, 1 / cells),
            )
            here = {"environment": name, "settings": run}
            tables["trials"].append(_trials(here, seen))
            tables["rounds"].append(_rounds(here, seen, marks, radii, theory, policy.alpha))
            tables["shares"].append(_shares(here, seen, rounds, theory))
    return {name: Table.stack(parts) for name, parts in tables.items()}


def prepare_statements(settings: Mapping[str, Any]) -> list[Job]:
    """Return what `watch_statements` needs compiled: the same, as small as can be."""
    small = dict(settings) | {"rounds": 5, "trials": 2}
    return [Job("statements", watch_statements, (small, 1, unseen))]


def _marks(rounds: int) -> Ints:
    """Return rounds to look at, even on a logarithmic axis, with 1, 2, 5, 10, 20, 50 … and the last among them."""
    spread = np.geomspace(1, rounds, 50).round()
    plain = [step * 10.0**power for power in range(6) for step in (1, 2, 5) if step * 10**power <= rounds]
    return np.unique(np.append(spread, plain)).astype(np.int64)


def _radii(theory: HiddenSettings, rounds: int) -> Floats:
    """Return β_t in every round: Lemma 2's as printed, with R = ½ (enough for c ≥ 0, ‖c‖₁ ≤ 1), the experiments'."""
    in_experiments = partial(experiments_radius, objectives=theory.objectives)
    radii = (theory.beta, replace(theory, sub_gaussian=0.5).beta, in_experiments)
    return np.array([[radius(t) for t in range(1, rounds + 1)] for radius in radii])


def _trials(here: Mapping[str, str], seen: Seen) -> Table:
    """Return what became of each trial: the worst ratios distance/β_t, and the last rounds that failed."""
    columns: dict[str, Any] = dict(here) | {"trial": np.arange(len(seen.worst))}
    for place, radius in enumerate(RADII):
        columns[f"worst ratio, {radius}"] = seen.worst[:, place]
        columns[f"last failure, {radius}"] = seen.last_outside[:, place]
    return Table(columns | {f"last failure, {BOUND}": seen.last_below, "regret": seen.regret_by_user.sum(axis=1)})


def _rounds(
    here: Mapping[str, str], seen: Seen, marks: Ints, radii: Floats, theory: HiddenSettings, alpha: float
) -> Table:
    """Return round by round how far ĉ is from c̄, how large the radii are, and in which share of trials things hold."""
    columns: dict[str, Any] = dict(here) | {"round": marks}
    for name, quantile in (("median", 0.5), ("95 %", 0.95), ("99 %", 0.99)):
        columns[f"distance, {name}"] = np.quantile(seen.distance, quantile, axis=0)
    for place, radius in enumerate(RADII):
        columns[radius] = radii[place, marks - 1]
        columns[f"share now, {radius}"] = (seen.distance <= radii[place, marks - 1]).mean(axis=0)
        columns[f"share from here on, {radius}"] = (seen.last_outside[:, place, None] < marks).mean(axis=0)
    columns[f"share now, {BOUND}"] = (seen.margin >= 0.0).mean(axis=0)
    columns[f"share from here on, {BOUND}"] = (seen.last_below[:, None] < marks).mean(axis=0)
    columns["stated now"] = lemma3_probability(
        marks, objectives=theory.objectives, alpha=alpha, failure=theory.own_failure
    )
    return Table(columns)


def _shares(here: Mapping[str, str], seen: Seen, rounds: int, theory: HiddenSettings) -> Table:
    """Return the shares of trials in which each statement holds in all rounds from `since` on, for all users."""
    failure = theory.own_failure
    uniform = lemma3_uniform_probability(
        arms=theory.arms, objectives=theory.objectives, users=theory.users, alpha=theory.alpha, failure=failure
    )
    last = dict(zip(RADII, seen.last_outside.T, strict=True)) | {BOUND: seen.last_below}
    rows = []
    for statement, failed in last.items():
        for since in (1, 2, max(rounds // 10, 3)):
            held = int((failed < since).sum())
            low, high = wilson(held, len(failed))
            rows.append(
                dict(here)
                | {"statement": statement, "since": since, "held": held, "trials": len(failed)}
                | {"share": held / len(failed), "low": low, "high": high}
                | {"stated": uniform if statement == BOUND else 1 - theory.users * failure}
            )
    return Table.from_rows(rows)
