"""How regret grows with T, K, D and N, and how the theorems' bounds do: exponents fitted alike to both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pamo import environments
from pamo.arrays import Floats
from pamo.environments.base import Environment
from pamo.experiments.paper.theorems import gaps_of, hidden_settings, prescribed
from pamo.experiments.tables import Table
from pamo.policies import Policy, PrucbHp, PrucbKp, PrucbUp
from pamo.progress import Progress
from pamo.simulation import simulate, summarize
from pamo.theory import Gaps, prucb_hp_bound, prucb_kp_bound, prucb_up_bound

PRESCRIBED, HIDDEN, STATED, KNOWN = "prucb-hp, Theorem 1's settings", "prucb-hp", "prucb-up", "prucb-kp"
POLICIES = (PRESCRIBED, HIDDEN, STATED, KNOWN)
ALL, CLEAR = "all instances", "instances with clear gaps"
DELTA = 1.0
"""δ: the most that ‖c‖₁ can be in the bounded environment."""

AXES = {"arms": "K", "objectives": "D", "users": "N"}
_RESAMPLES = 1000


def policies_for(environment: Environment, failure: float) -> list[Policy]:
    """Return the policies in the order of `POLICIES`; Theorem 1 sets the first one's α and β by the sizes."""
    return [prescribed(hidden_settings(environment, failure)), PrucbHp(), PrucbUp(), PrucbKp()]


def bounds_of(found: Gaps, rounds: npt.ArrayLike) -> dict[str, Floats]:
    """Return an instance's bounds: Theorem 2's for PRUCB-UP, the corollary's for PRUCB-KP."""
    return {
        STATED: np.asarray(prucb_up_bound(rounds, gaps=found, delta=DELTA).total),
        KNOWN: np.asarray(prucb_kp_bound(rounds, gaps=found, delta=DELTA).total),
    }


def shape_of(environment: Environment, rounds: npt.ArrayLike, failure: float) -> Floats:
    """Return Theorem 1's bound as if its M were 0: the rates that it states, and no bound."""
    settings = hidden_settings(environment, failure)
    return np.asarray(prucb_hp_bound(rounds, settings=settings, reward_variance=0.25, warm_up=0).total)


def exponent(sizes: Sequence[float], regret: Floats) -> float:
    """Return p of regret ∝ size^p, by least squares on logarithms.

    >>> round(exponent([1, 2, 4], np.array([3.0, 6.0, 12.0])), 3)
    1.0
    """
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(regret, 1e-12)), 1)[0])


def gains(regret: Floats) -> Floats:
    """Return how much regret each doubling of T adds, from its values at T, 2T, 4T, …

    Of regret ∝ T^p it grows like T^p, whatever constant comes on top; of regret ∝ log T it stays the same (p = 0).
    """
    return np.diff(regret, axis=-1)


def with_interval(sizes: Sequence[float], regret: Floats, seed: int) -> tuple[float, float, float]:
    """Return the exponent of the mean over trials, (trials, sizes), and its 95 % interval by resampling trials."""
    rng = np.random.default_rng([seed, *regret.shape])
    chosen = rng.integers(0, len(regret), (_RESAMPLES, len(regret)))
    powers = [exponent(sizes, regret[rows].mean(axis=0)) for rows in chosen]
    low, high = np.quantile(powers, [0.025, 0.975])
    return exponent(sizes, regret.mean(axis=0)), float(low), float(high)


def exponent_row(
    axis: str, policy: str, instances: str, sizes: Sequence[float], regret: Floats, bound: Floats | None, seed: int
) -> dict[str, Any]:
    """Return a row of the table of exponents; bound: the theorem's, at the same sizes, or None where there is none."""
    power, low, high = with_interval(sizes, regret, seed)
    row = {"axis": axis, "policy": policy, "instances": instances, "trials": len(regret)}
    stated = np.nan if bound is None else exponent(sizes, bound)
    return row | {"exponent": power, "low": low, "high": high, "bound": stated}


def run_scaling(settings: Mapping[str, Any], seed: int, progress: Progress) -> tuple[list[dict[str, Any]], Table]:
    """Run all policies at each size of each axis; return the rows of exponents, and regret and bound by size.

    settings: `environment`, and for each axis the list of its sizes; `rounds`, `trials`, `failure`. Everybody is
    offered all arms, so that K, D and N can be varied one by one.
    """
    rounds, trials = settings["rounds"], settings["trials"]
    exponents: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    works = {(axis, size): _work(settings["environment"] | {axis: size}) for axis in AXES for size in settings[axis]}
    for axis, letter in AXES.items():
        regrets: dict[str, list[Floats]] = {policy: [] for policy in POLICIES}
        bounds: dict[str, list[float]] = {policy: [] for policy in POLICIES}
        for size in settings[axis]:
            given = settings["environment"] | {axis: size}
            environment = environments.from_settings(given | {"block_size": given["arms"], "protocol": "all"})
            policies = policies_for(environment, settings["failure"])
            result = simulate(policies, environment, rounds=rounds, trials=trials, seed=seed, checkpoints=1)
            typical = _typical_bounds(environment, rounds, trials, seed, settings["failure"])
            for policy, outcome in zip(POLICIES, result.values(), strict=True):
                mean, _, low, high = summarize(outcome.final_regret)
                regrets[policy].append(outcome.final_regret)
                bounds[policy].append(typical[policy])
                where = {"axis": letter, "size": size, "policy": policy}
                rows.append(where | {"mean": mean, "low": low, "high": high, "bound": typical[policy]})
            progress(works[axis, size] / sum(works.values()))
        for policy in POLICIES:
            bound = None if policy == HIDDEN else np.array(bounds[policy])
            found = np.stack(regrets[policy], axis=1)
            exponents.append(exponent_row(letter, policy, ALL, settings[axis], found, bound, seed))
    return exponents, Table.from_rows(rows)


def _typical_bounds(environment: Environment, rounds: int, trials: int, seed: int, failure: float) -> dict[str, float]:
    """Return each policy's bound; where it depends on the instance, the geometric mean over those of the trials."""
    found = [bounds_of(gaps_of(environment, seed, trial), rounds) for trial in range(trials)]
    typical = {policy: float(np.exp(np.mean([np.log(each[policy]) for each in found]))) for policy in (STATED, KNOWN)}
    return typical | {PRESCRIBED: float(shape_of(environment, rounds, failure)), HIDDEN: np.nan}


def _work(environment: Mapping[str, Any]) -> float:
    """Return about how long a size takes, next to others."""
    return float(environment["users"] * (10 + environment["arms"] + environment["objectives"]))
