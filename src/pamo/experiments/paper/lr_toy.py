"""Study 1, `lr-toy`: does a dominated arm tell more about a preference than a Pareto-optimal one? (Fig. lr_1)"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.estimators import preferences
from pamo.experiments.figures import label, note, panels, write_at
from pamo.experiments.paper.estimation import PLAIN, TOY, errors, sample
from pamo.experiments.study import Claim, Drawing, Finding, Study, Verdict
from pamo.experiments.tables import Table, Tables
from pamo.progress import Progress
from pamo.simulation import summarize
from pamo.simulation.plot import BLACK, BLUE, VERMILION

_COLOURS = dict(zip(TOY["arms"], (BLUE, VERMILION), strict=True))


def _measure(settings: Mapping[str, Any], seed: int, progress: Progress) -> Tables:
    toy, parts = settings["toy"], []
    for place, (arm, mean) in enumerate(toy["arms"].items()):
        rng = np.random.default_rng([seed, place])
        found = preferences(sample(rng, [mean], settings["samples"], settings["repetitions"], toy), PLAIN)
        columns = {"first": found[:, 0], "second": found[:, 1], "error": errors(found, toy)}
        parts.append(Table({"arm": arm, "repetition": np.arange(len(found))} | columns))
        progress(0.5)
    return {"estimates": Table.stack(parts)}


def _by_arm(tables: Tables) -> dict[str, Floats]:
    return {arm: tables["estimates"].where(arm=arm)["error"] for arm in tables["estimates"].distinct("arm")}


def _judge(tables: Tables) -> Finding:
    by_arm = _by_arm(tables)
    (first, low_arm), (second, high_arm) = by_arm.items()
    difference = summarize(low_arm - high_arm)
    share = float((low_arm < high_arm).mean())
    if difference.high < 0:
        verdict = Verdict.CONFIRMED
    elif difference.low > 0:
        verdict = Verdict.NOT
    else:
        verdict = Verdict.PARTLY
    return Finding(
        verdict,
        f"Mean error {low_arm.mean():.3f} from {first} against {high_arm.mean():.3f} from {second}; the former was the "
        f"smaller in {share:.1%} of {len(low_arm):,} repetitions.",
        {"dominated": float(low_arm.mean()), "optimal": float(high_arm.mean()), "share": share},
    )


def _draw(tables: Tables) -> Any:
    figure, axes = panels(3, columns=3, height=3.0, legend=0.1)
    rows = tables["estimates"]
    limit = float(np.quantile(np.abs(np.concatenate([rows["first"], rows["second"]]) - 0.5), 0.999))
    for each, arm in zip(axes, rows.distinct("arm"), strict=False):
        some = rows.where(arm=arm)
        each.scatter(some["first"][:500], some["second"][:500], s=7, color=_COLOURS[arm], alpha=0.45, linewidths=0)
        each.plot([0.5], [0.5], marker="+", markersize=13, markeredgewidth=2, color=BLACK)
        each.set_xlim(0.5 - limit, 0.5 + limit)
        each.set_ylim(0.5 - limit, 0.5 + limit)
        title = f"ĉ from {arm}\n(first 500 repetitions; + is the truth)"
        label(each, title, "weight of objective 1", "weight of objective 2")
    last = axes[2]
    bins = np.linspace(0, float(np.quantile(rows["error"], 0.995)), 60)
    for arm, values in _by_arm(tables).items():
        last.hist(values, bins=bins.tolist(), density=True, color=_COLOURS[arm], alpha=0.6)
        peak = float(np.histogram(values, bins=bins, density=True)[0].max())
        write_at(
            last,
            f"{arm}\nmean {values.mean():.3f}",
            (float(values.mean()), 0.55 * peak),
            (34, 0),
            fontsize=8.5,
            color=_COLOURS[arm],
            arrowprops={"arrowstyle": "-", "color": _COLOURS[arm], "linewidth": 0.8},
        )
    label(last, "How far off, over all repetitions", "error ‖ĉ − c̄‖₂", "density")
    note(figure, f"K=2, D=2; {len(rows.where(arm=arm)):,} repetitions")
    return figure


def _describe(tables: Tables) -> str:
    parts = [f"{arm}: mean error {values.mean():.3f}" for arm, values in _by_arm(tables).items()]
    return (
        "Scatter of the preference estimates from samples of each arm alone, and histograms of their errors. The "
        f"estimates from the dominated arm lie closer around the truth. {'; '.join(parts)}."
    )


def _twin(tables: Tables) -> Table:
    rows = []
    for arm, values in _by_arm(tables).items():
        quantiles = np.quantile(values, [0.1, 0.5, 0.9, 0.99])
        rows.append(
            {"arm": arm, "repetitions": len(values), "mean error": round(float(values.mean()), 4)}
            | {name: round(float(q), 4) for name, q in zip(("10 %", "median", "90 %", "99 %"), quantiles, strict=True)}
        )
    return Table.from_rows(rows)


STUDY = Study(
    name="lr-toy",
    title="Which arm tells more about a preference?",
    about="Two objectives, one user who weighs both by one half on average, and 80 samples of one arm alone. Linear "
    "regression of the overall score on the reward estimates the preference; the paper shows one draw, here are many.",
    source="Section “Unique challenges”, figure of the 2-D toy",
    settings={"toy": TOY, "samples": 80, "repetitions": 10_000},
    quick={"repetitions": 1_000},
    weight=1.5,
    measure=_measure,
    claims=(
        Claim(
            id="dominated-arm-tells-more",
            paper="Samples of the dominated arm estimate the preference significantly better than samples of the "
            "Pareto-optimal arm, because noise grows with the reward.",
            source="Section “Unique challenges”",
            rule="Confirmed if the 95 % interval of the mean paired difference of errors lies below zero; not "
            "confirmed if it lies above; partly if it holds zero.",
            refuted_by="A mean error from the dominated arm's samples that is above that from the other's.",
            judge=_judge,
        ),
    ),
    drawings=(Drawing("lr-toy", "Preference estimates from 80 samples of one arm", _draw, _describe, _twin),),
)
