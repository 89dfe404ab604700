"""The coverage study: in what share of trials does the variance-aware bound hold, for all arms, users and rounds?

It plays the bounded environment, in which the truth is known, and holds the bound of `pamo.theory.variance` against it
in every round; beside it the paper's bound, and the recommended policy's score with its smaller constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pamo.environments import Bounded
from pamo.errors import InputError, unknown_name
from pamo.experiments.coverage_observer import ByBound, ByChance, Rules, Seen, look, notes_width, seen_in
from pamo.experiments.paper.theorems import prescribed, wilson
from pamo.experiments.tables import Table
from pamo.policies import Greedy, Policy, PrucbHpV, Shape
from pamo.simulation.cpu import Observer, observe
from pamo.theory import HiddenSettings
from pamo.theory.variance import ELLIPSOID, RESIDUALS, most_noise, prior_bias

CHOICES = ("recommended", "bound", "greedy", "random")
"""Who chooses the arms: the recommended policy's score, the hidden bound itself, ĉ·r̂ alone, or chance."""
KINDS = ("hidden", "stated", "known", "paper", "smaller")
"""The bounds, in the loop's order."""
POLICY = PrucbHpV(shared=False)
"""Whose score "smaller" is: the recommended policy, with a prior fixed beforehand as the derivation has it."""
DELTA = 1.0
"""‖c‖₁ ≤ 1 in the bounded environment."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Coverage:
    """What `coverage` found.

    settings: what was run. statements: a row a statement: stated (the share of trials it promises, NaN for "smaller",
    the policy's score, which promises none), held, its 95 % interval (low, high), derived (whether it is the
    derivation's), and shrink, the factor on the bonus with which it would still have held in the share stated, for arms
    pulled twice or more (in 1 − failure of the trials where no share is stated).
    rounds: a row a bound and marked round: pairs, the share of pairs of user and arm for which the bound held then, and
    all, the share of trials in which it held for all pairs then. tightness: a row a bound, marked round and arm (the
    user's best, or any): bonus and error, their medians; ratio, the median of bonus over error; width, the median of
    the bonus over that of the hidden bound.
    """

    settings: dict[str, Any]
    statements: Table
    rounds: Table
    tightness: Table

    @property
    def holds(self) -> bool:
        """Whether every statement of the derivation held in the share of trials that it promises."""
        ours = [row for row in self.statements.rows() if row["derived"]]
        return all(row["held"] >= row["stated"] for row in ours)


def kappa_of(environment: Bounded) -> float:
    """Return κ, the largest variance of a preference in any direction over the smallest, for every user.

    An entry is uniform, √(3·variance) to each side of its mean but never below 0, and independent of the others. The
    predefined means are 4:1:…:1, scaled to ½ in all. Random means may come as near to 0 as they like: κ is infinite.

    >>> round(kappa_of(Bounded(objectives=3)), 2), kappa_of(Bounded(objectives=3, preference_variance=0.002))
    (4.32, 1.0)
    """
    half, objectives = math.sqrt(3.0 * environment.preference_variance), environment.objectives
    if objectives == 1 or half == 0.0:
        return 1.0
    if environment.preference == "random":
        return math.inf
    least = 0.5 / (objectives + 3)  # ½·(4, 1, …, 1)/(D + 3)
    return (min(half, 4.0 * least) / min(half, least)) ** 2


def coverage(
    environment: Bounded,
    *,
    rounds: int = 2000,
    trials: int = 10_000,
    seed: int = 1,
    failure: float = 0.05,
    choice: str = "recommended",
    marks: npt.ArrayLike | None = None,
    kappa: float | None = None,
    scale: float = 1.0,
    threads: int | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Coverage:
    """Play trials of the bounded environment and return how often the variance-aware bound held.

    failure: ϑ; the bound is to hold, for all arms, users and rounds at once, in 1 − ϑ of the trials. choice: who
    chooses the arms, one of `CHOICES`. marks: rounds to look into, by default a hundredth, a tenth and the last of
    them. kappa: by default the environment's own, `kappa_of`. scale: a factor on the bound's bonuses; below 1 it is not
    the bound that was derived, and a small one is seen to fail. threads: by default one a core; they change only the
    time. progress: called with the share of the work done since the last call.

    >>> found = coverage(Bounded(users=1, block_size=2, objectives=2), rounds=20, trials=40)
    >>> found.holds, found.statements["statement"].tolist()[0]
    (True, 'hidden: every upper bound')
    """
    noted = _marks(rounds, marks)
    if choice not in CHOICES:
        raise unknown_name("choice", choice, CHOICES)
    if not (trials >= 1 and seed >= 0 and 0 < failure < 1 and 0 < scale < math.inf):
        raise InputError(
            f"expected trials ≥ 1, seed ≥ 0, 0 < failure < 1, scale > 0, got {trials=}, {seed=}, {failure=}, {scale=}"
        )
    if environment.objectives < 2:
        raise InputError("expected at least 2 objectives: the paper's bound, the contrast, is shown for no fewer")
    directional = kappa_of(environment) if kappa is None else float(kappa)
    if not directional >= 1:
        raise InputError(f"expected kappa ≥ 1, got {kappa}")
    rules = _rules(environment, failure, directional, scale)
    seen = _watch(environment, rounds, trials, seed, choice, noted, rules, threads, progress)
    return Coverage(
        settings={
            "environment": environment.settings,
            "rounds": rounds,
            "trials": trials,
            "seed": seed,
            "failure": failure,
            "choice": choice,
            "kappa": directional,
            "scale": scale,
        },
        statements=_statements(seen, failure, scale),
        rounds=_rounds(seen, noted, environment.users * environment.arm_count),
        tightness=_tightness(seen, noted),
    )


def _marks(rounds: int, marks: npt.ArrayLike | None) -> npt.NDArray[np.int64]:
    if rounds < 1:
        raise InputError(f"expected at least one round, got {rounds}")
    chosen = [max(rounds // 100, 1), max(rounds // 10, 1), rounds] if marks is None else marks
    noted = np.unique(np.asarray(chosen, dtype=np.int64))
    if noted.size == 0 or noted[0] < 1 or noted[-1] > rounds:
        raise InputError(f"expected marks from 1 to {rounds}, got {noted.tolist()}")
    return noted


def _paper(environment: Bounded, failure: float) -> HiddenSettings:
    """Return Theorem 1's settings; it holds with probability 1 − 2ϑ, so with half of our ϑ it promises what we do."""
    return HiddenSettings(
        arms=environment.arm_count, objectives=environment.objectives, users=environment.users, failure=failure / 2
    )


def _rules(environment: Bounded, failure: float, kappa: float, scale: float) -> Rules:
    paper = _paper(environment, failure)
    return Rules(
        failure=float(failure),
        delta=DELTA,
        kappa=kappa,
        ridge=paper.ridge,
        omega=paper.omega,
        bias=float(prior_bias(DELTA, paper.ridge, np.zeros(environment.objectives))[0]),
        most_noise=most_noise(DELTA, paper.omega),
        scale=float(scale),
        users=float(environment.users),
        pairs=float(environment.users * environment.arm_count),
        level=POLICY.estimate(environment.objectives).first,
    )


def _watch(
    environment: Bounded,
    rounds: int,
    trials: int,
    seed: int,
    choice: str,
    marks: npt.NDArray[np.int64],
    rules: Rules,
    threads: int | None,
    progress: Callable[[float], None],
) -> Seen:
    shape = Shape(environment.users, environment.arm_count, environment.objectives, rounds)
    paper = prescribed(_paper(environment, rules.failure)).hyperparameters(shape)
    policy = POLICY.hyperparameters(shape)
    half_width = float(environment.numbers()[1])
    numbers = [*rules, len(paper), len(policy), len(marks), *paper, *policy, *marks, half_width]
    observer = Observer(kernel=look, numbers=np.array(numbers, dtype=np.float64), width=notes_width(len(marks)), room=1)
    chooser: dict[str, Policy] = {
        "recommended": POLICY,
        "bound": ByBound(rules),
        "greedy": Greedy(ridge=rules.ridge, omega=rules.omega),
        "random": ByChance(),
    }
    notes, _ = observe(
        chooser[choice],
        environment,
        observer,
        rounds=rounds,
        trials=trials,
        seed=seed,
        stated=True,
        threads=threads,
        progress=progress,
    )
    return seen_in(notes, len(marks))


def _statements(seen: Seen, failure: float, scale: float) -> Table:
    half = 1.0 - (ELLIPSOID + RESIDUALS) * failure
    whole = 1.0 - failure
    named = [
        ("hidden: every upper bound", whole, seen.worst[:, 0], scale * seen.used[:, 0], True),
        ("hidden: every ellipsoid holds c̄", half, seen.worst_radius, seen.worst_radius, True),
        ("hidden: σ is within its bound", half, seen.worst_noise, seen.worst_noise, True),
        ("stated: every upper bound", whole, seen.worst[:, 1], scale * seen.used[:, 1], True),
        ("known: every upper bound", whole, seen.worst[:, 2], scale * seen.used[:, 2], True),
        ("paper: every upper bound", whole, seen.worst[:, 3], seen.used[:, 3], False),
        ("smaller: every upper bound", math.nan, seen.worst[:, 4], seen.used[:, 4], False),
    ]
    rows = []
    for statement, stated, worst, used, derived in named:
        held = int((worst <= 1.0).sum())
        low, high = wilson(held, len(worst))
        share = whole if math.isnan(stated) else stated
        rows.append(
            {
                "statement": statement,
                "derived": derived,
                "stated": stated,
                "held": held / len(worst),
                "low": low,
                "high": high,
                "shrink": float(np.quantile(used, share, method="higher")),
            }
        )
    return Table.from_rows(rows)


def _rounds(seen: Seen, marks: npt.NDArray[np.int64], pairs: int) -> Table:
    rows = [
        {
            "bound": kind,
            "round": int(mark),
            "pairs": float(1.0 - seen.failed[:, place, number].mean() / pairs),
            "all": float((seen.failed[:, place, number] == 0).mean()),
        }
        for number, kind in enumerate(KINDS)
        for place, mark in enumerate(marks)
    ]
    return Table.from_rows(rows)


def _tightness(seen: Seen, marks: npt.NDArray[np.int64]) -> Table:
    rows = []
    for number, kind in enumerate(KINDS):
        for place, mark in enumerate(marks):
            for which, arm in enumerate(("best", "any")):
                bonus, error = seen.bonus[:, place, which, number], seen.error[:, place, which, number]
                rows.append(
                    {
                        "bound": kind,
                        "round": int(mark),
                        "arm": arm,
                        "bonus": float(np.median(bonus)),
                        "error": float(np.median(error)),
                        "ratio": float(np.median(bonus / np.maximum(error, 1e-300))),
                        "width": float(np.median(bonus / seen.bonus[:, place, which, 0])),
                    }
                )
    return Table.from_rows(rows)


def text_of(found: Coverage) -> str:
    """Return what was found as lines of text: the statements, then single rounds, then how tight."""
    settings, environment = found.settings, found.settings["environment"]
    lines = [
        f"bounded environment, {environment['reward']} rewards: {environment['users']} users, "
        f"{environment['arms']} arms ({environment['protocol']}), {environment['objectives']} objectives; "
        f"{settings['rounds']} rounds, {settings['trials']} trials, seed {settings['seed']}",
        f"arms chosen by: {settings['choice']}; ϑ = {settings['failure']:g}, κ = {settings['kappa']:.3g}"
        + ("" if settings["scale"] == 1.0 else f", bonuses × {settings['scale']:g}"),
        "",
        f"{'statement, over all rounds':<34}{'promised':>10}{'held':>10}{'95 % interval':>20}{'could shrink to':>17}",
    ]
    for row in found.statements.rows():
        promised = "–" if math.isnan(row["stated"]) else f"{row['stated']:.2%}"
        interval = f"{row['low']:.2%} … {row['high']:.2%}"
        lines.append(f"{row['statement']:<34}{promised:>10}{row['held']:>10.2%}{interval:>20}{row['shrink']:>17.3f}")
    lines += [
        "",
        f"{'bound':<9}{'round':>7}{'held, a pair':>14}{'held, all':>11}   best arm: bonus, error, ratio, width",
    ]
    best = found.tightness.where(arm="best")
    for row, tight in zip(found.rounds.rows(), best.rows(), strict=True):
        lines.append(
            f"{row['bound']:<9}{row['round']:>7}{row['pairs']:>14.3%}{row['all']:>11.2%}"
            f"{tight['bonus']:>16.4f}{tight['error']:>9.4f}{tight['ratio']:>8.1f}{tight['width']:>8.2f}"
        )
    return "\n".join(lines)
