"""Study 12, `events`: how often the events A and B, on which the proof of Theorem 1 stands, hold."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.experiments.figures import INK, label, legend_above, log_rounds, note, panels
from pamo.experiments.paper.theorems import wilson
from pamo.experiments.study import Claim, Drawing, Finding, Study, judge_stated, worst_of
from pamo.experiments.tables import Table, Tables
from pamo.progress import Progress
from pamo.simulation.plot import BLUE, DASHED, VERMILION, Style, draw_line
from pamo.theory import HiddenSettings, uniform_failure

THEORY, EXPERIMENTS = "Theorem 1's α", "the experiments' α = 1"
MEANS, GRAM = "event A: means", "event B: Gram matrices"
BETA, COINS = "moderate noise", "most noise"
_STYLES: dict[tuple[str, str], Style] = {
    (COINS, THEORY): (BLUE, "-"),
    (BETA, THEORY): (BLUE, DASHED),
    (COINS, EXPERIMENTS): (VERMILION, "-"),
    (BETA, EXPERIMENTS): (VERMILION, DASHED),
}


def _rewards(law: str, means: Floats, shape: tuple[int, int], draw: np.random.Generator) -> Floats:
    """Return (trials, pulls, D): coins, the noisiest rewards in [0, 1], or betas of variance 0.01 at most."""
    size = (*shape, len(means))
    if law == COINS:
        return (draw.random(size) < means).astype(np.float64)
    strength = np.maximum(means * (1.0 - means) / 0.01 - 1.0, 1.0)
    return draw.beta(means * strength, (1.0 - means) * strength, size)


def directions(rewards: Floats) -> Floats:
    """Return r·rᵀ/‖r‖² of each reward, its entries (m, n ≥ m) in a row; 0 where r is.

    >>> directions(np.array([[1.0, 1.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.5, 0.5], [0.0, 0.0, 0.0]]
    """
    first, second = np.triu_indices(rewards.shape[-1])
    square = np.maximum((rewards**2).sum(axis=-1, keepdims=True), 1e-300)
    return np.asarray(rewards[..., first] * rewards[..., second] / square)


def _expected(law: str, means: Floats, seen: Floats) -> Floats:
    """Return E[r·rᵀ/‖r‖²]: of coins exactly, of betas by the mean of all that was drawn."""
    if law == BETA:
        return np.asarray(seen.mean(axis=(0, 1)))
    outcomes = np.array(list(product((0.0, 1.0), repeat=len(means))))
    chances = np.prod(np.where(outcomes > 0, means, 1.0 - means), axis=1)
    return np.asarray(chances @ directions(outcomes))


def _measure(settings: Mapping[str, Any], seed: int, progress: Progress) -> Tables:
    arms, objectives, users = (settings[name] for name in ("arms", "objectives", "users"))
    rounds, trials = settings["rounds"], settings["trials"]
    theory = HiddenSettings(arms=arms, objectives=objectives, users=users, failure=settings["failure"])
    printed = uniform_failure(arms=arms, objectives=objectives, alpha=theory.alpha, as_printed=True).terms
    pulls = np.arange(1, users * (rounds - 1) + 1)
    soonest = 1 + -(-pulls // users)  # the round at whose start so many pulls can be known, and no sooner
    wide = {name: np.sqrt(np.log(soonest / a)) for name, a in ((THEORY, theory.alpha), (EXPERIMENTS, 1.0))}
    marks = np.unique(np.geomspace(1, len(pulls), 40).astype(np.int64))
    worst, by_pulls = [], []
    for law in (BETA, COINS):
        most: dict[str, Floats] = {name: np.full((trials, len(pulls)), -np.inf) for name in (MEANS, GRAM)}
        for arm in range(arms):
            draw = np.random.default_rng([seed, arm, law == COINS])
            means = draw.random(objectives)
            rewards = _rewards(law, means, (trials, len(pulls)), draw)
            apart = np.abs(np.cumsum(rewards, axis=1) - pulls[:, None] * means).max(axis=2)
            seen = directions(rewards)
            short = pulls[:, None] * _expected(law, means, seen) - np.cumsum(seen, axis=1)
            for name, found in ((MEANS, apart), (GRAM, short.max(axis=2))):
                most[name] = np.maximum(most[name], found / np.sqrt(pulls))
            progress(0.5 / arms)
        for event, (which, width) in product((MEANS, GRAM), wide.items()):
            ratio, here = most[event] / width, {"noise": law, "settings": which, "event": event}
            stated = 1.0 - printed["reward" if event == MEANS else "gram"]
            worst.append(Table(here | {"trial": np.arange(trials), "worst": ratio.max(axis=1), "stated": stated}))
            high = np.quantile(ratio[:, marks - 1], 0.99, axis=0)
            by_pulls.append(Table(here | {"pulls": marks, "99 %": high, "worst": ratio[:, marks - 1].max(axis=0)}))
    return {"trials": Table.stack(worst), "pulls": Table.stack(by_pulls)}


def _shares(tables: Tables, **which: str) -> Table:
    """Return in how many trials an event holds for all arms, entries and pulls, a row for each noise."""
    rows = []
    for law in tables["trials"].distinct("noise"):
        for event in tables["trials"].distinct("event"):
            for settings in tables["trials"].distinct("settings"):
                found = tables["trials"].where(noise=law, event=event, settings=settings)
                held = int((found["worst"] <= 1.0).sum())
                low, high = wilson(held, len(found))
                row = {"event": event, "settings": settings, "noise": law, "held": held, "trials": len(found)}
                row |= {"share": held / len(found), "low": low, "high": high, "stated": float(found["stated"][0])}
                rows.append(row | {"99 %": float(np.quantile(found["worst"], 0.99))})
    return Table.from_rows(rows).where(**which)


def _judge(tables: Tables, **which: str) -> Finding:
    rows = list(_shares(tables, **which).rows())
    told = [
        f"{row['event'].split(':')[0]}, {row['noise']}: {row['share']:.2%} of {row['trials']:,} trials, promised "
        f"{row['stated']:.2%}; 99 % of trials need {row['99 %']:.2f} times the width"
        for row in rows
    ]
    verdicts = [judge_stated(row["share"], row["high"], row["stated"]) for row in rows]
    figures = {f"{row['event']}, {row['noise']}": row["share"] for row in rows}
    return Finding(worst_of(verdicts), "Held at every number of pulls: " + "; ".join(told) + ".", figures)


def _draw(tables: Tables) -> Any:
    figure, axes = panels(2, columns=2, height=3.0, legend=0.55)
    count = len(tables["trials"].where(event=MEANS, noise=BETA, settings=THEORY))
    for each, event in zip(axes, (MEANS, GRAM), strict=True):
        for (law, settings), style in _STYLES.items():
            some = tables["pulls"].where(event=event, noise=law, settings=settings)
            draw_line(each, some["pulls"], some["99 %"], style, linewidth=1.6)
        each.axhline(1.0, color=INK, linewidth=1.0)
        log_rounds(each, max(tables["pulls"]["pulls"]))
        each.set_ylim(0.0, 1.6)
        label(each, event, "pulls of the arm", "farthest arm and entry / width")
    legend_above(figure, [f"{settings}, {law}" for law, settings in _STYLES], list(_STYLES.values()), columns=2)
    note(figure, f"K={_SIZES['arms']}, D={_SIZES['objectives']}; the 99 % quantile of {count:,} trials")
    return figure


def _twin(tables: Tables) -> Table:
    return _shares(tables).told(
        {
            "event": "event",
            "run with": "settings",
            "noise": "noise",
            "trials in which it holds": lambda row: f"{row['held']:,} of {row['trials']:,}",
            "promised": lambda row: f"{row['stated']:.2%}",
            "width needed by 99 %": ("99 %", 3),
        }
    )


_RULE = (
    "A trial is good if the event holds for all arms and entries at every number of pulls. The share of good trials is "
    "held against what the proof promises: confirmed if it is at least that, partly if only the upper end of its 95 % "
    "interval (Wilson's) is, else not. The worse of the two noises counts."
)
_REFUTED = "More trials in which some arm ever leaves its interval than the proof allows, beyond chance."

_SIZES = {"arms": 10, "objectives": 3, "users": 2}

STUDY = Study(
    name="events",
    title="The events that Theorem 1 stands on",
    about="The proof of Theorem 1 needs that, in all rounds and for all arms, the mean rewards (event A) and the "
    "weighted Gram matrices (event B) are within √(log(t/α)/N) of what is expected. Intervals grow with t, and s pulls "
    "of an arm are known in round 1 + ⌈s/N⌉ at the soonest: rewards are drawn arm by arm and looked at as if each arm "
    "were pulled as soon as can be. What holds there holds for any policy. Rewards are coins, the noisiest in [0, 1], "
    "or betas of a variance of 0.01 at most.",
    source="Appendix, proposition “uniform confidence bound”",
    settings=_SIZES | {"rounds": 500, "trials": 400, "failure": 0.05},
    quick={"rounds": 100, "trials": 100},
    weight=4.0,
    measure=_measure,
    claims=(
        Claim(
            id="event-a",
            paper="With Theorem 1's α, all reward means stay in their intervals with probability 1 − KDα²π²/3.",
            source="Appendix, proposition “uniform confidence bound”, event A",
            rule=_RULE,
            refuted_by=_REFUTED,
            judge=partial(_judge, event=MEANS, settings=THEORY),
        ),
        Claim(
            id="event-b",
            paper="So do all entries of the arms' Gram matrices, with probability 1 − KD(D−1)α²π²/12.",
            source="Appendix, proposition “uniform confidence bound”, event B",
            rule=_RULE + " The proof counts D(D−1)/2 entries where there are D(D+1)/2: the promise is held to.",
            refuted_by=_REFUTED,
            judge=partial(_judge, event=GRAM, settings=THEORY),
        ),
        Claim(
            id="events-with-the-experiments-alpha",
            paper="With the experiments' α = 1 the events hold as surely.",
            source="not in the paper, which proves the one and runs the other",
            rule=_RULE + " Both events count, against what is promised with Theorem 1's α.",
            refuted_by=_REFUTED,
            judge=partial(_judge, settings=EXPERIMENTS),
            ours=True,
        ),
    ),
    drawings=(
        Drawing(
            "events",
            "How far means and Gram matrices stray, over what the proof allows",
            _draw,
            lambda tables: _judge(tables, settings=THEORY).seen,
            _twin,
        ),
    ),
)
