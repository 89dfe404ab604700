"""Study 2, `wls-vs-lr`: is the paper's weighted estimator better than plain linear regression? (Fig. lr_exp_2)"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pamo.experiments.figures import legend_above, panels
from pamo.experiments.paper.estimation import TOY, errors, least_squares, sample
from pamo.experiments.study import Claim, Drawing, Finding, Progress, Study, judge_share
from pamo.experiments.tables import Table, Tables
from pamo.simulation import summarize

ESTIMATORS: Mapping[str, Mapping[str, Any]] = {
    "WLS": {"weighted": True, "ridge": 1.0},
    "WLS, λ→0": {"weighted": True, "ridge": 0.0},
    "LR": {"weighted": False, "ridge": 0.0},
    "LR, λ=1": {"weighted": False, "ridge": 1.0},
}
"""The paper's estimator (ω = D, λ = 1) and plain linear regression; the other two tell weights from ridge."""

_STYLES = {
    "WLS": ("#0072B2", "-"),
    "WLS, λ→0": ("#56B4E9", (0, (5, 1.5))),
    "LR": ("#D55E00", "-"),
    "LR, λ=1": ("#E69F00", (0, (5, 1.5))),
}


def _measure(settings: Mapping[str, Any], seed: int, progress: Progress) -> Tables:
    toy, rows = settings["toy"], []
    for count in settings["samples"]:
        rng = np.random.default_rng([seed, count])
        means = list(toy["arms"].values())
        rewards, overall = sample(rng, means, count // len(means), settings["repetitions"], toy)
        found = {name: errors(least_squares(rewards, overall, **how), toy) for name, how in ESTIMATORS.items()}
        for name, values in found.items():
            against = {other: summarize(values - found[other]) for other in ("LR", "LR, λ=1")}
            rows.append(
                {
                    "samples": count,
                    "estimator": name,
                    "mean": float(values.mean()),
                    "low": summarize(values).low,
                    "high": summarize(values).high,
                    "median": float(np.median(values)),
                    "high90": float(np.quantile(values, 0.9)),
                    "above LR": against["LR"].high,
                    "above LR, λ=1": against["LR, λ=1"].high,
                    "better": float((values < found["LR"]).mean()),
                }
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
    for name, (colour, line) in _STYLES.items():
        some = rows.where(estimator=name)
        left.plot(some["samples"], some["mean"], color=colour, linestyle=line, marker="o", markersize=4)
        left.fill_between(some["samples"], some["low"], some["high"], color=colour, alpha=0.2, linewidth=0)
        if name != "LR":
            right.plot(some["samples"], 100 * some["better"], color=colour, linestyle=line, marker="o", markersize=4)
    for each in (left, right):
        each.set_xscale("log")
        ticks = rows.distinct("samples")
        each.set_xticks(ticks, [str(tick) for tick in ticks])
        each.set_xticks([], minor=True)
        each.set_xlabel("samples, half from each arm", fontsize=8.5)
    left.set_yscale("log")
    left.set_yticks([0.05, 0.1, 0.2, 0.4], ["0.05", "0.1", "0.2", "0.4"])
    left.set_yticks([], minor=True)
    left.set_ylabel("mean error ‖ĉ − c̄‖₂ (log scale)", fontsize=8.5)
    left.set_title("How far off", fontsize=9, loc="left")
    right.axhline(50, color="#888888", linewidth=0.8)
    right.set_ylim(0, 100)
    right.set_ylabel("repetitions in which closer than LR, %", fontsize=8.5)
    right.set_title("How often better than plain linear regression (50 % is even)", fontsize=9, loc="left")
    legend_above(figure, list(_STYLES), list(_STYLES.values()))
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
    return Table.from_rows(
        [
            {
                "samples": row["samples"],
                "estimator": row["estimator"],
                "mean error": round(row["mean"], 4),
                "median": round(row["median"], 4),
                "90 %": round(row["high90"], 4),
                "better than LR": "–" if row["estimator"] == "LR" else f"{row['better']:.1%}",
            }
            for row in tables["errors"].rows()
        ]
    )


_RULE = (
    "For each number of samples, the 95 % interval of the mean paired difference of errors must lie below zero. "
    "Confirmed if it does for all, partly if for more than half, else not confirmed."
)

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
            judge=_judge("WLS", "LR"),
        ),
        Claim(
            id="weights-alone-beat-lr",
            paper="It is the weights that do it: they lower the error without the ridge, too.",
            source="implied in the same place",
            rule=_RULE,
            judge=_judge("WLS, λ→0", "LR"),
            ours=True,
        ),
        Claim(
            id="wls-beats-lr-with-its-ridge",
            paper="The weighted estimator is also better than linear regression with the same ridge, λ = 1.",
            source="not in the paper, which gives the ridge to its own estimator alone",
            rule=_RULE,
            judge=_judge("WLS", "LR, λ=1"),
            ours=True,
        ),
    ),
    drawings=(
        Drawing(
            id="wls-vs-lr",
            title="Error of the preference estimate against samples",
            draw=_draw,
            describe=_describe,
            twin=_twin,
        ),
    ),
)
