"""What the study `bounds` runs: one long run with the theorems' bounds beside it, and T, K, D and N varied one by one.

Exponents of growth are fitted alike to the regret and to the bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from pamo import environments
from pamo.arrays import Floats, Ints
from pamo.environments.base import Environment
from pamo.experiments.paper.theorems import gaps_of, hidden_settings, prescribed
from pamo.experiments.tables import Table, Tables
from pamo.policies import Policy, PrucbHp, PrucbKp, PrucbUp
from pamo.progress import Progress
from pamo.simulation import PolicyResult, simulate, summarize
from pamo.simulation.preparing import Job, job_for
from pamo.theory import Gaps, prucb_hp_bound, prucb_kp_bound, prucb_up_bound, warm_up_rounds

PRESCRIBED, HIDDEN, STATED, KNOWN = "prucb-hp, Theorem 1's settings", "prucb-hp", "prucb-up", "prucb-kp"
POLICIES = (PRESCRIBED, HIDDEN, STATED, KNOWN)
ALL, CLEAR = "all instances", "instances with clear gaps"
DELTA = 1.0
"""δ: the most that ‖c‖₁ can be in the bounded environment."""

THEOREMS = {PRESCRIBED: "Theorem 1", STATED: "Theorem 2", KNOWN: "Corollary"}
"""The policies that a theorem covers, and which one."""

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


def exponent(sizes: Sequence[float], regret: Floats) -> Any:
    """Return p of regret ∝ size^p, by least squares on logarithms; regret: (…, sizes), a p for each row.

    >>> round(float(exponent([1, 2, 4], np.array([3.0, 6.0, 12.0]))), 3)
    1.0
    """
    apart = np.log(sizes) - np.log(sizes).mean()
    return np.log(np.maximum(regret, 1e-12)) @ apart / (apart @ apart)


def gains(regret: Floats) -> Floats:
    """Return how much regret each doubling of T adds, from its values at T, 2T, 4T, …

    Of regret ∝ T^p it grows like T^p, whatever constant comes on top; of regret ∝ log T it stays the same (p = 0).
    """
    return np.diff(regret, axis=-1)


def with_interval(sizes: Sequence[float], regret: Floats, seed: int) -> tuple[float, float, float]:
    """Return the exponent of the mean over trials, (trials, sizes), and its 95 % interval by resampling trials."""
    rng = np.random.default_rng([seed, *regret.shape])
    chosen = rng.integers(0, len(regret), (_RESAMPLES, len(regret)))
    low, high = np.quantile(exponent(sizes, regret[chosen].mean(axis=1)), [0.025, 0.975])
    return float(exponent(sizes, regret.mean(axis=0))), float(low), float(high)


def exponent_row(
    axis: str,
    policy: str,
    instances: str,
    sizes: Sequence[float],
    regret: Floats,
    bound: Floats | None,
    seed: int,
    monotone: bool = True,
) -> dict[str, Any]:
    """Return a row of the table of exponents; bound: the theorem's, at the same sizes, or None where there is none.

    monotone: whether the regret follows anything like a power law.
    """
    power, low, high = with_interval(sizes, regret, seed)
    row = {"axis": axis, "policy": policy, "instances": instances, "trials": len(regret)}
    stated = np.nan if bound is None else float(exponent(sizes, bound))
    return row | {"exponent": power, "low": low, "high": high, "bound": stated, "monotone": monotone}


def bends(regret: Floats) -> bool:
    """Tell whether the mean over trials, (trials, sizes), rises somewhere and falls elsewhere by more than chance.

    >>> rise, fall = [[1.0, 2.0, 4.0], [1.1, 2.1, 4.1]], [[1.0, 4.0, 2.0], [1.1, 4.1, 2.1]]
    >>> bends(np.array(rise)), bends(np.array(fall))
    (False, True)
    """
    steps = [
        (one.low > 0, one.high < 0)
        for first, second in combinations(range(regret.shape[1]), 2)
        for one in [summarize(regret[:, second] - regret[:, first])]
    ]
    return any(rises for rises, _ in steps) and any(falls for _, falls in steps)


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
            exponents.append(exponent_row(letter, policy, ALL, settings[axis], found, bound, seed, not bends(found)))
    return exponents, Table.from_rows(rows)


def prepare_bounds(settings: Mapping[str, Any]) -> Iterator[Job]:
    """Yield what `run_long` and `run_scaling` need compiled."""
    given = settings["scaling"]["environment"]
    sizes = [dict(settings["environment"])]
    sizes += [
        given | {"objectives": count, "block_size": given["arms"], "protocol": "all"}
        for count in settings["scaling"]["objectives"]
    ]
    for each in sizes:
        environment = environments.from_settings(each)
        for policy in policies_for(environment, settings["failure"]):
            yield job_for(policy, environment)


def _typical_bounds(environment: Environment, rounds: int, trials: int, seed: int, failure: float) -> dict[str, float]:
    """Return each policy's bound; where it depends on the instance, the geometric mean over those of the trials."""
    found = [bounds_of(gaps_of(environment, seed, trial), rounds) for trial in range(trials)]
    typical = {policy: float(np.exp(np.mean([np.log(each[policy]) for each in found]))) for policy in (STATED, KNOWN)}
    return typical | {PRESCRIBED: float(shape_of(environment, rounds, failure)), HIDDEN: np.nan}


def _work(environment: Mapping[str, Any]) -> float:
    """Return about how long a size takes, next to others."""
    return float(environment["users"] * (10 + environment["arms"] + environment["objectives"]))


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
    marks = np.unique([*np.geomspace(1, rounds, 50).astype(np.int64), *doublings, settings["paper_rounds"]])
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
        "far": _far(environment, settings["far"], seed, instances),
    }
    rows = []
    for name in POLICIES:
        added = gains(outcomes[name].regret[:, np.searchsorted(marks, doublings)])
        bound = _bound_gains(name, environment, doublings, settings["failure"])
        rows.append(exponent_row("T", name, ALL, doublings[1:], added, bound, seed))
        if clear.sum() >= 2:
            rows.append(exponent_row("T", name, CLEAR, doublings[1:], added[clear], bound, seed))
    return rows, tables


def _far(environment: Environment, settings: Mapping[str, Any], seed: int, instances: list[Gaps]) -> Table:
    """Return trial by trial what the bounds of Theorem 2 and the corollary are worth where a policy could exceed them.

    The instances of the first few trials, for many times as many rounds: below the trivial bound at last. Rewards are
    0 or 1, with the most noise that there is, of which the bounds know nothing.
    """
    trials, rounds = min(settings["trials"], len(instances)), settings["rounds"]
    environment = environments.from_settings(environment.settings | {"reward": "bernoulli"})
    marks = np.unique(np.geomspace(10, rounds, 60).astype(np.int64))
    result = simulate(
        [PrucbUp(), PrucbKp()], environment, rounds=rounds, trials=trials, seed=seed, checkpoints=marks.tolist()
    )
    bounds = [bounds_of(found, marks) for found in instances[:trials]]
    return Table.stack(
        [
            _trials(name, outcome, -1, np.array([each[name] for each in bounds]), instances[:trials])
            for name, outcome in zip((STATED, KNOWN), result.values(), strict=True)
        ]
    )


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


def _bounds(environment: Environment, marks: Ints | Floats, instances: list[Gaps], failure: float) -> dict[str, Floats]:
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
    """Return trial by trial regret and bounds at the paper's horizon, the least bound/regret of all rounds noted, and
    whether in any of them the bound is below the trivial one, so that a policy could exceed it.

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
        | {"could fail": (bound < (1 - 1e-9) * outcome.rounds * np.array(lost)[:, None]).any(axis=1)}
    )


def _ratio(bound: Floats, regret: Floats) -> Floats:
    return bound / np.maximum(regret, 1e-12)


def _horizon(environment: Environment, instances: list[Gaps], failure: float) -> Table:
    """Return the bounds on the regret of one decision, the median instance's, with what is trivial, and M.

    stated: the probability with which the bound is to hold; Theorem 2 and the corollary bound a mean.
    """
    rounds = np.geomspace(1e2, 1e12, 401)
    _, warm_up = _hidden_bound(environment, rounds, failure)
    lost = float(np.median([found.high.max(axis=1).mean() for found in instances]))
    parts = []
    for name, bounds in _bounds(environment, rounds, instances, failure).items():
        first, decisions = name == PRESCRIBED, environment.users * rounds
        parts.append(
            Table(
                {"policy": name, "round": rounds, "bound": np.median(bounds, axis=0) / decisions}
                | {"trivial": 1.0 if first else lost, "M": float(warm_up) if first else 0.0}
                | {"stated": 1 - 2 * failure if first else np.nan}
            )
        )
    return Table.stack(parts)
