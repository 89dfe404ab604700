"""Study 2, `wls-vs-lr`: is the paper's weighted estimator better than plain linear regression? (Fig. lr_exp_2)"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pamo.estimators import Estimate, Kind, preferences
from pamo.experiments.figures import label, legend_above, note, panels
from pamo.experiments.paper.estimation import PLAIN, TOY, errors, sample
from pamo.experiments.study import Claim, Drawing, Finding, Study, judge_share
from pamo.experiments.tables import Table, Tables
from pamo.progress import Progress
from pamo.simulation import summarize
from pamo.simulation.plot import AMBER, BLUE, DASHED, DOTTED, MIXED, SKY, VERMILION, draw_line

_PAPER = Estimate(kind=Kind.RIDGE, weighted=True, omega=float(len(TOY["preference"])), ridge=1.0)
ESTIMATORS: Mapping[str, Estimate] = {
    "WLS": _PAPER,
    "WLS, λ→0": replace(_PAPER, ridge=0.0),
    "LR": PLAIN,
    "LR, λ=1": replace(PLAIN, ridge=1.0),
}
"""The paper's estimator (ω = D, λ = 1) and plain linear regression; the other two tell weights from ridge."""

_STYLES = dict(zip(ESTIMATORS, ((BLUE, "-"), (SKY, DASHED), (VERMILION, DOTTED), (AMBER, MIXED)), strict=True))
_MARKS = dict(zip(ESTIMATORS, "os^D", strict=True))


def _measure(settings: Mapping[str, Any], seed: int, progress: Progress) -> Tables:
    toy, rows = settings["toy"], []
    for count in settings["samples"]:
        rng = np.random.default_rng([seed, count])
        means = list(toy["arms"].values())
        sums = sample(rng, means, count // len(means), settings["repetitions"], toy)
        found = {name: errors(preferences(sums, how), toy) for name, how in ESTIMATORS.items()}
        for name, values in found.items():
            mean, _, low, high = summarize(values)
            median, high90 = np.quantile(values, [0.5, 0.9]).tolist()
            rows.append(
                {"samples": count, "estimator": name, "mean": mean, "low": low, "high": high}
                | {"median": median, "high90": high90, "repetitions": len(values)}
                | {f"above {other}": summarize(values - found[other]).high for other in ("LR", "LR, λ=1")}
                | {"better": float((values < found["LR"]).mean())}
            )
        progress(1.0 / len(settings["samples"]))
    return {"errors": Table.from_rows(rows)}


def _judge(estimator: str, other: str) -> Callable[[Tables], Finding]:
    def judge(tables: Tables) -> Finding:
        rows = list(tables["errors"].where(estimator=estimator).rows())
        theirs = tables["errors"].where(estimator=other)["mean"].tolist()
        good = sum(row[f"above {other}"] < 0 for row in rows)
        pairs = list(zip(rows, theirs, strict=True))
        seen = "; ".join(f"{row['samples']} samples: {row['mean']:.3f} against {mean:.3f}" for row, mean in pairs)
        ratios = {f"ratio at {row['samples']} samples": row["mean"] / mean for row, mean in pairs}
        return Finding(judge_share(good, len(rows)), f"Mean error of ĉ, {estimator} against {other}: {seen}.", ratios)

    return judge


def _draw(tables: Tables) -> Any:
    figure, (left, right) = panels(2, columns=2, height=3.2, legend=0.35)
    rows = tables["errors"]
    for name, style in _STYLES.items():
        some = rows.where(estimator=name)
        draw_line(left, some["samples"], some["mean"], style, marker=_MARKS[name], markersize=4)
        left.fill_between(some["samples"], some["low"], some["high"], color=style[0], alpha=0.2, linewidth=0)
        if name != "LR":
            draw_line(right, some["samples"], 100 * some["better"], style, marker=_MARKS[name], markersize=4)
    for each in (left, right):
        each.set_xscale("log")
        ticks = rows.distinct("samples")
        each.set_xticks(ticks, [str(tick) for tick in ticks])
        each.set_xticks([], minor=True)
        label(each, x="samples, half from each arm")
    left.set_yscale("log")
    left.set_yticks([0.05, 0.1, 0.2, 0.4], ["0.05", "0.1", "0.2", "0.4"])
    left.set_yticks([], minor=True)
    label(left, "How far off", y="mean error ‖ĉ − c̄‖₂ (log scale)")
    right.axhline(50, color="#888888", linewidth=0.8)
    right.set_ylim(0, 100)
    label(
        right,
        "How often better than plain linear regression (50 % is even)",
        y="repetitions in which closer than LR, %",
    )
    legend_above(figure, list(_STYLES), list(_STYLES.values()), markers=list(_MARKS.values()))
    note(figure, f"K=2, D=2; mean of {rows['repetitions'][0]:,} repetitions, 95 % band")
    return figure


def _describe(tables: Tables) -> str:
    rows = tables["errors"]
    first, last = rows.distinct("samples")[0], rows.distinct("samples")[-1]
    parts = []
    for name in ESTIMATORS:
        values = [float(rows.where(estimator=name, samples=count)["mean"][0]) for count in (first, last)]
        parts.append(f"{name} from {values[0]:.3f} to {values[1]:.3f}")
    return f"Mean estimation error against the number of samples, from {first} to {last} samples: {'; '.join(parts)}."


def _twin(tables: Tables) -> Table:
    return tables["errors"].told(
        {
            "samples": "samples",
            "estimator": "estimator",
            "mean error": ("mean", 4),
            "median": ("median", 4),
            "90 %": ("high90", 4),
            "better than LR": lambda row: "–" if row["estimator"] == "LR" else f"{row['better']:.1%}",
        }
    )


_RULE = (
    "For each number of samples, the 95 % interval of the mean paired difference of errors must lie below zero. "
    "Confirmed if it does for all, partly if for more than half, else not confirmed."
)
_REFUTED = "A mean error that is no lower, at half of the numbers of samples."

STUDY = Study(
    name="wls-vs-lr",
    title="The weighted estimator against linear regression",
    about="The same toy with both arms sampled equally often. The paper's weighted ridge (w = ω/‖r‖², ω = D, λ = 1) "
    "against plain linear regression. Because the two differ in weights and in the ridge, both are also shown with the "
    "other's ridge.",
    source="Appendix, “Analysis on WLS estimator”",
    settings={"toy": TOY, "samples": [20, 50, 80, 200], "repetitions": 10_000},
    quick={"repetitions": 1_000},
    weight=1.5,
    measure=_measure,
    claims=(
        Claim(
            id="wls-beats-lr",
            paper="The weighted estimator has a lower error than linear regression at every number of samples.",
            source="Appendix, “Analysis on WLS estimator”",
            rule=_RULE,
            refuted_by=_REFUTED,
            judge=_judge("WLS", "LR"),
        ),
        Claim(
            id="weights-alone-beat-lr",
            paper="It is the weights that do it: they lower the error without the ridge, too.",
            source="implied in the same place",
            rule=_RULE,
            refuted_by=_REFUTED,
            judge=_judge("WLS, λ→0", "LR"),
            ours=True,
        ),
        Claim(
            id="wls-beats-lr-with-its-ridge",
            paper="The weighted estimator is also better than linear regression with the same ridge, λ = 1.",
            source="not in the paper, which gives the ridge to its own estimator alone",
            rule=_RULE,
            refuted_by=_REFUTED,
            judge=_judge("WLS", "LR, λ=1"),
            ours=True,
        ),
    ),
    drawings=(Drawing("wls-vs-lr", "Error of the preference estimate against samples", _draw, _describe, _twin),),
)
