"""Study 8, `ablation`: what each part of PRUCB-HP is worth, and what its four parameters do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pamo.experiments.figures import draw_bars, legend_above, panels
from pamo.experiments.grid import final, paired, run_grid
from pamo.experiments.paper.regret import cell, cells_of
from pamo.experiments.study import Claim, Drawing, Finding, Progress, Study, Verdict
from pamo.experiments.tables import Table, Tables
from pamo.policies import create
from pamo.simulation import summarize

BASE = "prucb-hp"
PARTS = {
    BASE: "PRUCB-HP as in the experiments",
    f"{BASE}:beta=0.0": "without the preference bonus",
    f"{BASE}:reward_bonus=0.0": "without the reward bonus",
    f"{BASE}:beta=0.0,reward_bonus=0.0": "without either bonus",
    "greedy": "without either, each arm pulled once first",
    f"{BASE}:weighted=false": "with unweighted ridge",
    f"{BASE}:beta=1.0,radius=theory": "with the theory's β",
}
SWEEPS: Mapping[str, tuple[str, tuple[float, ...], float]] = {
    "alpha": ("α", (0.01, 0.1, 1.0, 10.0, 100.0), 1.0),
    "ridge": ("λ", (0.01, 0.1, 1.0, 10.0, 100.0), 1.0),
    "omega": ("ω", (0.1, 0.3, 1.0, 3.0, 10.0, 30.0), 3.0),
    "beta": ("β", (0.01, 0.03, 0.1, 0.3, 1.0, 3.0), 0.1),
}
_COLOURS = ("#0072B2", "#D55E00")


def _variant(name: str, value: float) -> str:
    at_default = value == create(BASE).settings[name]
    return BASE if at_default else f"{BASE}:{name}={value}"


_SWEPT = [_variant(name, value) for name, (_, values, _) in SWEEPS.items() for value in values]
_ALL = list(dict.fromkeys([*PARTS, *_SWEPT]))
CELLS = [cell(2, 5, 3, "predefined", _ALL), cell(5, 5, 3, "random", _ALL)]


def _measure(settings: Mapping[str, Any], seed: int, progress: Progress) -> Tables:
    tables = run_grid(
        settings["cells"], rounds=settings["rounds"], trials=settings["trials"], seed=seed, progress=progress
    )
    del tables["curves"]  # only the ends are judged and drawn
    return tables


def _worth(without: str, what: str) -> Callable[[Tables], Finding]:
    """Judge whether PRUCB-HP has less regret than it has without a part."""

    def judge(tables: Tables) -> Finding:
        parts, better, worse = [], 0, 0
        figures = {}
        for name in cells_of(tables):
            _, low, high = paired(tables, name, BASE, without)
            better += high < 0
            worse += low > 0
            whole, reduced = (float(final(tables, name, policy).mean()) for policy in (BASE, without))
            parts.append(f"{name}: {whole:,.0f} with, {reduced:,.0f} {what}")
            figures[f"{name}, without/with"] = reduced / whole
        total = len(parts)
        verdict = Verdict.CONFIRMED if better == total else Verdict.PARTLY if better else Verdict.NOT
        return Finding(verdict, "Final regret, " + "; ".join(parts) + ".", figures)

    return judge


def _judge_theory(tables: Tables) -> Finding:
    policy = f"{BASE}:beta=1.0,radius=theory"
    ratios = {
        name: float(final(tables, name, policy).mean() / final(tables, name, BASE).mean()) for name in cells_of(tables)
    }
    good = sum(ratio <= 1.1 for ratio in ratios.values())
    verdict = Verdict.CONFIRMED if good == len(ratios) else Verdict.PARTLY if good else Verdict.NOT
    seen = "; ".join(f"{name}: {ratio:.1f} times the regret" for name, ratio in ratios.items())
    return Finding(verdict, f"With the theory's β in place of the experiments', {seen}.", ratios)


def _draw_parts(tables: Tables) -> Any:
    names = cells_of(tables)
    figure, axes = panels(len(names), columns=1, height=2.3, legend=0.1)
    for each, name in zip(axes, names, strict=True):
        summaries = [summarize(final(tables, name, policy)) for policy in PARTS]
        colours = ["#0072B2"] + ["#9DB8CC"] * (len(PARTS) - 1)
        draw_bars(
            each,
            list(PARTS.values()),
            [s.mean for s in summaries],
            [s.low for s in summaries],
            [s.high for s in summaries],
            colours=colours,
        )
        each.set_title(name, fontsize=9, loc="left")
        each.set_xlabel("final regret, mean and 95 % interval", fontsize=8.5)
    return figure


def _draw_sweeps(tables: Tables) -> Any:
    names = cells_of(tables)
    figure, axes = panels(len(SWEEPS), columns=4, height=2.9, legend=0.35)
    for each, (key, (symbol, values, used)) in zip(axes, SWEEPS.items(), strict=True):
        for name, colour in zip(names, _COLOURS, strict=False):
            base = float(final(tables, name, BASE).mean())
            shares = [float(final(tables, name, _variant(key, value)).mean()) / base for value in values]
            each.plot(values, shares, marker="o", markersize=3.5, color=colour, linewidth=1.4)
        each.set_xscale("log")
        each.axvline(used, color="#888888", linewidth=0.9, linestyle=(0, (4, 2)))
        each.axhline(1.0, color="#888888", linewidth=0.9)
        each.set_ylim(0, 1.5)
        each.set_xlabel(f"{symbol} (dashed: as in the experiments)", fontsize=8)
    axes[0].set_ylabel("regret over PRUCB-HP's", fontsize=8.5)
    legend_above(figure, names, [(colour, "-") for colour in _COLOURS[: len(names)]])
    return figure


def _describe_parts(tables: Tables) -> str:
    name = cells_of(tables)[0]
    ends = [f"{words} {final(tables, name, policy).mean():,.0f}" for policy, words in PARTS.items()]
    return f"Bars of final regret for PRUCB-HP and for PRUCB-HP with one part changed. {name}: {'; '.join(ends)}."


def _describe_sweeps(tables: Tables) -> str:
    name = cells_of(tables)[0]
    base = float(final(tables, name, BASE).mean())
    parts = []
    for key, (symbol, values, _) in SWEEPS.items():
        shares = [float(final(tables, name, _variant(key, value)).mean()) / base for value in values]
        parts.append(f"{symbol} from {values[0]} to {values[-1]}: {shares[0]:.2f} to {shares[-1]:.2f} times")
    return f"Final regret relative to the experiments' setting, one parameter varied. {name}: {'; '.join(parts)}."


def _twin_parts(tables: Tables) -> Table:
    rows = []
    for name in cells_of(tables):
        base = float(final(tables, name, BASE).mean())
        for policy, words in PARTS.items():
            mean, _, low, high = summarize(final(tables, name, policy))
            rows.append(
                {
                    "setting": name,
                    "variant": words,
                    "final regret": round(mean, 1),
                    "95 % interval": f"{low:.0f} … {high:.0f}",
                    "over PRUCB-HP's": round(mean / base, 2),
                }
            )
    return Table.from_rows(rows)


def _twin_sweeps(tables: Tables) -> Table:
    rows = []
    for key, (symbol, values, _) in SWEEPS.items():
        for value in values:
            means = {name: float(final(tables, name, _variant(key, value)).mean()) for name in cells_of(tables)}
            rows.append({"parameter": symbol, "value": value} | {k: round(v, 1) for k, v in means.items()})
    return Table.from_rows(rows)


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
            judge=_worth(f"{BASE}:beta=0.0", "without the preference bonus"),
        ),
        Claim(
            id="reward-bonus",
            paper="Exploring the arms' rewards (the Hoeffding bonus) is needed.",
            source="Section “Our algorithm”, key design II",
            rule=_RULE,
            judge=_worth(f"{BASE}:reward_bonus=0.0", "without the reward bonus"),
        ),
        Claim(
            id="weights",
            paper="The weights ω/‖r‖² are needed, because standard regression is not fit for this noise.",
            source="Section “Our algorithm”, key design I",
            rule=_RULE,
            judge=_worth(f"{BASE}:weighted=false", "with unweighted ridge"),
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
        Drawing(
            id="ablation-parts",
            title="PRUCB-HP with one part changed",
            draw=_draw_parts,
            describe=_describe_parts,
            twin=_twin_parts,
        ),
        Drawing(
            id="ablation-parameters",
            title="The four parameters, one at a time",
            draw=_draw_sweeps,
            describe=_describe_sweeps,
            twin=_twin_sweeps,
        ),
    ),
)
