"""Study 8, `ablation`: what each part of PRUCB-HP is worth, and what its four parameters do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pamo.experiments.figures import draw_bars, label, legend_above, panels
from pamo.experiments.grid import final, mean_final, paired, run_grid
from pamo.experiments.paper.regret import cell, cells_of, final_row
from pamo.experiments.study import Claim, Drawing, Finding, Study, judge_share
from pamo.experiments.tables import Table, Tables
from pamo.policies import create
from pamo.progress import Progress
from pamo.simulation import summarize
from pamo.simulation.plot import BLUE, VERMILION

BASE = "prucb-hp"
_THEORY = f"{BASE}:beta=1.0,radius=theory"
PARTS = {
    BASE: "PRUCB-HP as in the experiments",
    f"{BASE}:beta=0.0": "without the preference bonus",
    f"{BASE}:reward_bonus=0.0": "without the reward bonus",
    f"{BASE}:beta=0.0,reward_bonus=0.0": "without either bonus",
    "greedy": "without either, each arm pulled once first",
    f"{BASE}:weighted=false": "with unweighted ridge",
    _THEORY: "with the theory's β",
}
SWEEPS: Mapping[str, tuple[str, tuple[float, ...], float]] = {
    "alpha": ("α", (0.01, 0.1, 1.0, 10.0, 100.0), 1.0),
    "ridge": ("λ", (0.01, 0.1, 1.0, 10.0, 100.0), 1.0),
    "omega": ("ω", (0.1, 0.3, 1.0, 3.0, 10.0, 30.0), 3.0),
    "beta": ("β", (0.01, 0.03, 0.1, 0.3, 1.0, 3.0), 0.1),
}
_COLOURS = (BLUE, VERMILION)


def _variant(name: str, value: float) -> str:
    at_default = value == create(BASE).settings[name]
    return BASE if at_default else f"{BASE}:{name}={value}"


_SWEPT = [_variant(name, value) for name, (_, values, _) in SWEEPS.items() for value in values]
_ALL = list(dict.fromkeys([*PARTS, *_SWEPT]))
CELLS = [cell(2, 5, 3, "predefined", _ALL), cell(5, 5, 3, "random", _ALL)]


def _measure(settings: Mapping[str, Any], seed: int, progress: Progress) -> Tables:
    return {"finals": run_grid(settings, seed, progress)["finals"]}  # only the ends are judged and drawn


def _share(tables: Tables, name: str, policy: str) -> float:
    """Return a variant's mean regret over PRUCB-HP's."""
    return mean_final(tables, name, policy) / mean_final(tables, name, BASE)


def _worth(without: str) -> Callable[[Tables], Finding]:
    """Judge whether PRUCB-HP has less regret than it has without a part."""

    def judge(tables: Tables) -> Finding:
        names = cells_of(tables)
        better = sum(paired(tables, name, BASE, without).high < 0 for name in names)
        parts = [
            f"{name}: {mean_final(tables, name, BASE):,.0f} with, {mean_final(tables, name, without):,.0f} "
            f"{PARTS[without]}"
            for name in names
        ]
        figures = {f"{name}, without/with": _share(tables, name, without) for name in names}
        return Finding(judge_share(better, len(names), partly=0), f"Final regret, {'; '.join(parts)}.", figures)

    return judge


def _judge_theory(tables: Tables) -> Finding:
    ratios = {name: _share(tables, name, _THEORY) for name in cells_of(tables)}
    good = sum(ratio <= 1.1 for ratio in ratios.values())
    seen = "; ".join(f"{name}: {ratio:.1f} times the regret" for name, ratio in ratios.items())
    return Finding(
        judge_share(good, len(ratios), partly=0),
        f"With the theory's β in place of the experiments', {seen}.",
        ratios,
    )


def _draw_parts(tables: Tables) -> Any:
    names = cells_of(tables)
    figure, axes = panels(len(names), columns=1, height=2.3, legend=0.1)
    for each, name in zip(axes, names, strict=True):
        summaries = [summarize(final(tables, name, policy)) for policy in PARTS]
        intervals = [(mean, low, high) for mean, _, low, high in summaries]
        draw_bars(each, list(PARTS.values()), intervals, colours=[BLUE] + ["#9DB8CC"] * (len(PARTS) - 1))
        label(each, name, "final regret, mean and 95 % interval")
    return figure


def _shares(tables: Tables, name: str, key: str) -> list[float]:
    """Return the regret with each value of a parameter over that with the experiments'."""
    return [_share(tables, name, _variant(key, value)) for value in SWEEPS[key][1]]


def _draw_sweeps(tables: Tables) -> Any:
    names = cells_of(tables)
    figure, axes = panels(len(SWEEPS), columns=4, height=2.9, legend=0.35)
    for each, (key, (symbol, values, used)) in zip(axes, SWEEPS.items(), strict=True):
        for name, colour in zip(names, _COLOURS, strict=False):
            each.plot(values, _shares(tables, name, key), marker="o", markersize=3.5, color=colour, linewidth=1.4)
        each.set_xscale("log")
        each.axvline(used, color="#888888", linewidth=0.9, linestyle=(0, (4, 2)))
        each.axhline(1.0, color="#888888", linewidth=0.9)
        each.set_ylim(0, 1.5)
        label(each, x=f"{symbol} (dashed: as in the experiments)", size=8)
    label(axes[0], y="regret over PRUCB-HP's")
    legend_above(figure, names, [(colour, "-") for colour in _COLOURS[: len(names)]])
    return figure


def _describe_parts(tables: Tables) -> str:
    name = cells_of(tables)[0]
    ends = [f"{words} {mean_final(tables, name, policy):,.0f}" for policy, words in PARTS.items()]
    return f"Bars of final regret for PRUCB-HP and for PRUCB-HP with one part changed. {name}: {'; '.join(ends)}."


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
            {"setting": name, "variant": words}
            | final_row(final(tables, name, policy))
            | {"over PRUCB-HP's": round(_share(tables, name, policy), 2)}
            for name in cells_of(tables)
            for policy, words in PARTS.items()
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
    "Confirmed if in every setting the 95 % interval of the paired difference (with − without) lies below zero, partly "
    "if in some, else not confirmed."
)

STUDY = Study(
    name="ablation",
    title="What each part of PRUCB-HP is worth",
    about="PRUCB-HP with one part taken away or changed, and with each of its four parameters varied alone.",
    source="Section “Our algorithm”; the paper has no ablation",
    settings={"cells": CELLS, "rounds": 5000, "trials": 100},
    quick={"cells": CELLS[:1], "rounds": 1000, "trials": 10},
    weight=25.0,
    measure=_measure,
    claims=(
        Claim(
            id="preference-bonus",
            paper="Exploring for the preference (the pseudo information gain) is needed.",
            source="Section “Our algorithm”, key design II",
            rule=_RULE,
            judge=_worth(f"{BASE}:beta=0.0"),
        ),
        Claim(
            id="reward-bonus",
            paper="Exploring the arms' rewards (the Hoeffding bonus) is needed.",
            source="Section “Our algorithm”, key design II",
            rule=_RULE,
            judge=_worth(f"{BASE}:reward_bonus=0.0"),
        ),
        Claim(
            id="weights",
            paper="The weights ω/‖r‖² are needed, because standard regression is not fit for this noise.",
            source="Section “Our algorithm”, key design I",
            rule=_RULE,
            judge=_worth(f"{BASE}:weighted=false"),
        ),
        Claim(
            id="theory-radius",
            paper="The theory's confidence radius is as good in practice as the experiments' smaller one.",
            source="not in the paper, whose experiments use β = 0.1·√(D·log t)",
            rule="Confirmed if in every setting the regret with the theory's β is at most 1.1 times that with the "
            "experiments', partly if in some, else not confirmed.",
            judge=_judge_theory,
            ours=True,
        ),
    ),
    drawings=(
        Drawing("ablation-parts", "PRUCB-HP with one part changed", _draw_parts, _describe_parts, _twin_parts),
        Drawing(
            "ablation-parameters", "The four parameters, one at a time", _draw_sweeps, _describe_sweeps, _twin_sweeps
        ),
    ),
)
