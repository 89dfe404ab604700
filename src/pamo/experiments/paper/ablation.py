"""Study 8, `ablation`: what each part of PRUCB-HP is worth, and what its four parameters do."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

from pamo.experiments.figures import label, legend_above, note, panels
from pamo.experiments.grid import final, mean_final, paired, prepare_grid, run_grid
from pamo.experiments.paper.regret import cell, cells_of, final_row
from pamo.experiments.study import Claim, Drawing, Finding, Study, Verdict, judge_share
from pamo.experiments.tables import Table, Tables
from pamo.policies import create
from pamo.progress import Progress
from pamo.simulation import summarize
from pamo.simulation.plot import BLUE, DASHED, VERMILION, draw_line

BASE = "prucb-hp"
_THEORY = f"{BASE}:beta=1.0,radius=theory"
PARTS = {
    "first_pulls": "first pulls",
    "reward_bonus": "reward bonus",
    "beta": "preference bonus",
    "weighted": "weights",
}
"""What PRUCB-HP can be taken apart into, by the hyperparameter that switches it; the paper has all but the first."""
Parts = tuple[bool, ...]
"""Which of them there are."""
PAPER: Parts = (False, True, True, True)
CROSS: tuple[Parts, ...] = tuple(product((False, True), repeat=len(PARTS)))
MATTERS = 0.05
"""The share of the regret from which on a difference counts: 16 comparisons a part show smaller ones by chance."""


def variant(parts: Parts) -> str:
    """Return the policy that has these parts.

    >>> variant((True, True, False, True))
    'prucb-hp:first_pulls=True,beta=0.0'
    """
    there = {name: value for name, value, paper in zip(PARTS, parts, PAPER, strict=True) if value != paper}
    off = {"first_pulls": False, "reward_bonus": 0.0, "beta": 0.0, "weighted": False}
    changed = ",".join(f"{name}={value or off[name]}" for name, value in there.items())
    return f"{BASE}:{changed}" if changed else BASE


SWEEPS: Mapping[str, tuple[str, tuple[float, ...], float]] = {
    "alpha": ("α", (0.01, 0.1, 1.0, 10.0, 100.0), 1.0),
    "ridge": ("λ", (0.01, 0.1, 1.0, 10.0, 100.0), 1.0),
    "omega": ("ω", (0.1, 0.3, 1.0, 3.0, 10.0, 30.0), 3.0),
    "beta": ("β", (0.01, 0.03, 0.1, 0.3, 1.0, 3.0), 0.1),
}
_LOOKS, _MARKS = ((BLUE, "-"), (VERMILION, DASHED)), ("o", "s")


def _variant(name: str, value: float) -> str:
    at_default = value == create(BASE).settings[name]
    return BASE if at_default else f"{BASE}:{name}={value}"


_SWEPT = [_variant(name, value) for name, (_, values, _) in SWEEPS.items() for value in values]
_ALL = list(dict.fromkeys([*map(variant, CROSS), _THEORY, *_SWEPT]))
CELLS = [cell(2, 5, 3, "predefined", _ALL), cell(5, 5, 3, "random", _ALL)]


def _measure(settings: Mapping[str, Any], seed: int, progress: Progress) -> Tables:
    return {"finals": run_grid(settings, seed, progress)["finals"]}  # only the ends are judged and drawn


def _share(tables: Tables, name: str, policy: str) -> float:
    """Return a variant's mean regret over PRUCB-HP's."""
    return mean_final(tables, name, policy) / mean_final(tables, name, BASE)


def _contexts(part: str) -> list[tuple[Parts, Parts]]:
    """Return each choice of the other parts, (with, without) the part."""
    place = list(PARTS).index(part)
    return [(parts, (*parts[:place], False, *parts[place + 1 :])) for parts in CROSS if parts[place]]


def effect(tables: Tables, name: str, have: Parts, lack: Parts) -> int:
    """Return 1 if a part lowers the regret in a setting by more than chance and by what matters, −1 if it raises it."""
    difference = paired(tables, name, variant(have), variant(lack))
    means = [mean_final(tables, name, variant(parts)) for parts in (have, lack)]
    if abs(difference.mean) < MATTERS * max(means):
        return 0
    return int(difference.high < 0) - int(difference.low > 0)


_SHOWN: dict[str, Parts] = {
    "As the paper has it": PAPER,
    "With each arm pulled once first": (True, True, True, True),
    "With first pulls in place of the reward bonus": (True, False, True, True),
}


def _worth(part: str, tables: Tables) -> Finding:
    """Judge whether PRUCB-HP needs a part, whatever the other parts are."""
    names, contexts = cells_of(tables), _contexts(part)
    found = {(name, have): effect(tables, name, have, lack) for name in names for have, lack in contexts}
    helps, hurts = (sum(one == sign for one in found.values()) for sign in (1, -1))
    verdict = judge_share(helps, len(found), partly=0) if not hurts else Verdict.NOT
    seen = [
        f"Of {len(found)} pairs (settings × the other parts) it lowers the regret in {helps} and raises it in {hurts}."
    ]
    for words, have in _SHOWN.items():
        lack = dict(contexts).get(have)
        if lack is not None:
            ends = [[f"{mean_final(tables, name, variant(each)):,.0f}" for each in (have, lack)] for name in names]
            told = [f"{name}: {one} with, {other} without" for name, (one, other) in zip(names, ends, strict=True)]
            seen.append(f"{words}, {'; '.join(told)}.")
    return Finding(verdict, " ".join(seen), {"pairs": len(found), "lowers": helps, "raises": hurts})


def _judge_theory(tables: Tables) -> Finding:
    ratios = {name: _share(tables, name, _THEORY) for name in cells_of(tables)}
    good = sum(ratio <= 1.1 for ratio in ratios.values())
    seen = "; ".join(f"{name}: {ratio:.1f} times the regret" for name, ratio in ratios.items())
    return Finding(
        judge_share(good, len(ratios), partly=0),
        f"With the theory's β in place of the experiments', {seen}.",
        ratios,
    )


def _named(parts: Parts) -> str:
    """Return what there is besides first pulls, in words."""
    there = [words for words, has in list(zip(PARTS.values(), parts, strict=True))[1:] if has]
    return " + ".join(there) or "none of the three"


_ROWS = [parts for parts in CROSS if not parts[0]][::-1]


def _size(tables: Tables) -> str:
    return f"mean of {len(set(tables['finals']['trial'].tolist()))} trials"


def _draw_parts(tables: Tables) -> Any:
    names = cells_of(tables)
    figure, axes = panels(len(names), columns=2, height=3.4, legend=0.35)
    places = range(len(_ROWS))[::-1]
    for each, name in zip(axes, names, strict=True):
        for first, colour, marker in ((False, BLUE, "o"), (True, VERMILION, "s")):
            summaries = [summarize(final(tables, name, variant((first, *parts[1:])))) for parts in _ROWS]
            means = [one.mean for one in summaries]
            room = [[one.mean - one.low for one in summaries], [one.high - one.mean for one in summaries]]
            heights = [place + (0.14 if first else -0.14) for place in places]
            each.errorbar(means, heights, xerr=room, fmt=marker, color=colour, markersize=5, elinewidth=1, capsize=2)
        each.set_xscale("log")
        each.set_yticks(
            places, [_named(parts) for parts in _ROWS] if each is axes[0] else [""] * len(_ROWS), fontsize=8
        )
        label(each, name, "final regret, mean and 95 % interval")
    names = ["as the paper has it: no first pulls", "each arm pulled once first"]
    legend_above(figure, names, [(BLUE, "None"), (VERMILION, "None")], markers=("o", "s"))
    note(figure, _size(tables))
    return figure


def _shares(tables: Tables, name: str, key: str) -> list[float]:
    """Return the regret with each value of a parameter over that with the experiments'."""
    return [_share(tables, name, _variant(key, value)) for value in SWEEPS[key][1]]


def _draw_sweeps(tables: Tables) -> Any:
    names = cells_of(tables)
    figure, axes = panels(len(SWEEPS), columns=4, height=2.9, legend=0.35)
    for each, (key, (symbol, values, used)) in zip(axes, SWEEPS.items(), strict=True):
        for name, style, mark in zip(names, _LOOKS, _MARKS, strict=False):
            draw_line(each, values, _shares(tables, name, key), style, marker=mark, markersize=4, linewidth=1.4)
        each.set_xscale("log")
        each.axvline(used, color="#888888", linewidth=0.9, linestyle=(0, (4, 2)))
        each.axhline(1.0, color="#888888", linewidth=0.9)
        each.set_ylim(0.7, 1.5)
        label(each, x=symbol)
    label(axes[0], y="regret over PRUCB-HP's")
    legend_above(figure, names, _LOOKS[: len(names)], markers=_MARKS[: len(names)])
    note(figure, f"dashed: the value of the experiments; {_size(tables)}")
    return figure


def _describe_parts(tables: Tables) -> str:
    name = cells_of(tables)[0]
    ends = [
        f"{_named(parts)} {mean_final(tables, name, variant(parts)):,.0f} and "
        f"{mean_final(tables, name, variant((True, *parts[1:]))):,.0f}"
        for parts in _ROWS
    ]
    return (
        "Final regret of PRUCB-HP with any of its parts, without and with each arm pulled once first, on a logarithmic "
        f"axis. {name}: {'; '.join(ends)}."
    )


def _describe_sweeps(tables: Tables) -> str:
    name = cells_of(tables)[0]
    parts = []
    for key, (symbol, values, _) in SWEEPS.items():
        first, *_, last = _shares(tables, name, key)
        parts.append(f"{symbol} from {values[0]} to {values[-1]}: {first:.2f} to {last:.2f} times")
    return f"Final regret relative to the experiments' setting, one parameter varied. {name}: {'; '.join(parts)}."


def _twin_parts(tables: Tables) -> Table:
    return Table.from_rows(
        [
            {"setting": name}
            | {words: "yes" if has else "no" for words, has in zip(PARTS.values(), parts, strict=True)}
            | final_row(final(tables, name, variant(parts)))
            | {"over PRUCB-HP's": round(_share(tables, name, variant(parts)), 2)}
            for name in cells_of(tables)
            for parts in CROSS
        ]
    )


def _twin_sweeps(tables: Tables) -> Table:
    return Table.from_rows(
        [
            {"parameter": symbol, "value": value}
            | {name: round(mean_final(tables, name, _variant(key, value)), 1) for name in cells_of(tables)}
            for key, (symbol, values, _) in SWEEPS.items()
            for value in values
        ]
    )


_RULE = (
    "All sixteen choices of the four parts are run on the same trials. In a setting, and for each choice of the other "
    "three, the part lowers (raises) the regret if the 95 % interval of the paired difference lies below (above) zero "
    f"and the difference is at least {MATTERS:.0%}. Confirmed if it lowers it always, partly if sometimes and it never "
    "raises it, else not confirmed."
)
_REFUTED = "A choice of the other parts with which the policy is better without it."

STUDY = Study(
    name="ablation",
    title="What each part of PRUCB-HP is worth",
    about="PRUCB-HP with any of its parts and without, each arm pulled once first and not, and with each of its four "
    "parameters varied alone. First pulls belong into it: without them and without the reward bonus nothing makes the "
    "policy try an arm, so that what looks like the bonus's worth is that of one pull.",
    source="Section “Our algorithm”; the paper has no ablation",
    settings={"cells": CELLS, "rounds": 5000, "trials": 100},
    quick={"cells": CELLS[:1], "rounds": 1000, "trials": 10},
    weight=25.0,
    measure=_measure,
    prepare=prepare_grid,
    claims=(
        Claim(
            id="preference-bonus",
            paper="Exploring for the preference (the pseudo information gain) is needed.",
            source="Section “Our algorithm”, key design II",
            rule=_RULE,
            refuted_by=_REFUTED,
            judge=partial(_worth, "beta"),
        ),
        Claim(
            id="reward-bonus",
            paper="Exploring the arms' rewards (the Hoeffding bonus) is needed.",
            source="Section “Our algorithm”, key design II",
            rule=_RULE,
            refuted_by=_REFUTED,
            judge=partial(_worth, "reward_bonus"),
        ),
        Claim(
            id="weights",
            paper="The weights ω/‖r‖² are needed, because standard regression is not fit for this noise.",
            source="Section “Our algorithm”, key design I",
            rule=_RULE,
            refuted_by=_REFUTED,
            judge=partial(_worth, "weighted"),
        ),
        Claim(
            id="theory-radius",
            paper="The theory's confidence radius is as good in practice as the experiments' smaller one.",
            source="not in the paper, whose experiments use β = 0.1·√(D·log t)",
            rule="Confirmed if in every setting the regret with the theory's β is at most 1.1 times that with the "
            "experiments', partly if in some, else not confirmed.",
            refuted_by="More than 1.1 times the regret in every setting.",
            judge=_judge_theory,
            ours=True,
        ),
    ),
    drawings=(
        Drawing("ablation-parts", "PRUCB-HP with any of its parts", _draw_parts, _describe_parts, _twin_parts),
        Drawing(
            "ablation-parameters", "The four parameters, one at a time", _draw_sweeps, _describe_sweeps, _twin_sweeps
        ),
    ),
)
