"""Study 6, `confidence`: how often Lemma 2's ellipsoid and Lemma 3's upper bound hold, against what is promised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from pamo.experiments.figures import INK, label, legend_above, log_rounds, note, panels
from pamo.experiments.paper.regret import interval_text
from pamo.experiments.paper.statements import (
    BOUND,
    EXPERIMENTS,
    HALF,
    LEMMA,
    SMALL,
    THEORY,
    prepare_statements,
    watch_statements,
)
from pamo.experiments.study import Claim, Drawing, Finding, Study, Verdict, judge_stated, worst_of
from pamo.experiments.tables import Table, Tables
from pamo.simulation.plot import BLUE, DASHED, DOTTED, GREY, MIXED, Style, draw_line

_LINES: dict[str, Style] = {LEMMA: (INK, "-"), HALF: (GREY, DASHED), SMALL: (INK, MIXED)}
_TICKS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]


def _chosen(tables: Tables, statement: str, settings: str | None, since: int) -> list[dict[str, Any]]:
    """Return the rows of `shares` for a statement; since: 1, 2, or 0 for the latest of the three."""
    table = tables["shares"].where(statement=statement)
    if settings is not None:
        table = table.where(settings=settings)
    return list(table.where(since=since or max(table["since"])).rows())


def _against(rows: Sequence[Mapping[str, Any]]) -> Verdict:
    """Hold each share against what is stated for it; the worst counts."""
    return worst_of(judge_stated(row["share"], row["high"], row["stated"]) for row in rows)


def _by_environment(rows: Sequence[Mapping[str, Any]], column: str = "share") -> str:
    return ", ".join(f"{row[column]:.1%} ({row['environment']})" for row in rows)


def _needed(tables: Tables) -> dict[str, float]:
    """Return by environment the 99 % quantile over trials of the largest distance/β_t, β_t being Lemma 2's."""
    ratios = {}
    for environment in tables["trials"].distinct("environment"):
        rows = tables["trials"].where(environment=environment, settings=THEORY)
        ratios[environment] = float(np.quantile(rows[f"worst ratio, {LEMMA}"], 0.99))
    return ratios


def _judge_ellipsoid(tables: Tables) -> Finding:
    rows, needed = _chosen(tables, LEMMA, None, 1), _needed(tables)
    held, total = sum(row["held"] for row in rows), sum(row["trials"] for row in rows)
    lowest, stated = min(row["share"] for row in rows), rows[0]["stated"]
    spare = ", ".join(f"{1 / ratio:.0f} times as wide ({name})" for name, ratio in needed.items())
    return Finding(
        _against(rows),
        f"c̄ was in every user's ellipsoid in every round in {held:,} of {total:,} trials, and in {lowest:.2%} of those "
        f"with the settings where it was least; {stated:.1%} is promised. The radius is {spare} as 99 % of trials ever "
        "need.",
        {"lowest share": lowest, "stated": stated}
        | {f"share of the radius needed, {name}": ratio for name, ratio in needed.items()},
    )


def _judge_upper_bound(tables: Tables) -> Finding:
    rows, noted = _chosen(tables, BOUND, THEORY, 1), tables["rounds"].where(settings=THEORY)
    verdict = _against(rows)
    if (noted[f"share now, {BOUND}"] < noted["stated now"]).any():
        verdict = worst_of([verdict, Verdict.PARTLY])
    lowest, stated = float(noted[f"share now, {BOUND}"].min()), rows[0]["stated"]
    return Finding(
        verdict,
        f"Every score of every arm was an upper bound for every user in every round in {_by_environment(rows)} of "
        f"{rows[0]['trials']:,} trials each; {stated:.1%} is promised. In the worst round alone: {lowest:.2%}.",
        {"lowest share": min(row["share"] for row in rows), "stated": stated, "worst round": lowest},
    )


def _judge_experiments(tables: Tables, *, statement: str, what: str) -> Finding:
    early, late = (_chosen(tables, statement, EXPERIMENTS, since) for since in (2, 0))
    verdict = _against(early)
    if verdict != Verdict.CONFIRMED:
        verdict = Verdict.PARTLY if _against(late) == Verdict.CONFIRMED else Verdict.NOT
    noted = tables["rounds"].where(settings=EXPERIMENTS)
    last = list(noted.where(round=max(noted["round"])).rows())
    return Finding(
        verdict,
        f"{what} in every round from 2 on in {_by_environment(early)} of trials; in every round from "
        f"{late[0]['since']} on in {_by_environment(late)}; in round {last[0]['round']:,} alone in "
        f"{_by_environment(last, f'share now, {statement}')}. The lemma promises {early[0]['stated']:.1%}.",
        {f"share from 2 on, {row['environment']}": row["share"] for row in early}
        | {f"share from {row['since']} on, {row['environment']}": row["share"] for row in late},
    )


def _size(tables: Tables) -> str:
    return f"PRUCB-HP, N=2, K=10, D=3; {len(set(tables['trials']['trial'].tolist())):,} trials"


def _draw_radius(tables: Tables) -> Any:
    rows = tables["rounds"].where(settings=THEORY)
    names = rows.distinct("environment")
    figure, axes = panels(len(names), columns=2, height=3.2, legend=0.4)
    for each, name in zip(axes, names, strict=True):
        some = rows.where(environment=name)
        each.fill_between(some["round"], some["distance, median"], some["distance, 99 %"], color=BLUE, alpha=0.3, lw=0)
        each.plot(some["round"], some["distance, median"], color=BLUE, lw=1.6)
        for radius, style in _LINES.items():
            positive = some[radius] > 0.0  # the experiments' is 0 in round 1
            draw_line(each, some["round"][positive], some[radius][positive], style, linewidth=1.5)
        each.set_yscale("log")
        each.set_ylim(0.08, 20)
        each.set_yticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
        log_rounds(each, max(some["round"]))
        label(each, name, "round t", "‖ĉ − c̄‖ in V, the farthest user")
    distance = "distance: median, up to 99 % of trials"
    names = ["Lemma 2's radius β", "the same with R = ½", "the experiments' β", distance]
    legend_above(figure, names, [*_LINES.values(), (BLUE, "-")])
    note(figure, _size(tables))
    return figure


def _describe_radius(tables: Tables) -> str:
    noted = tables["rounds"].where(settings=THEORY)
    last = noted.where(round=max(noted["round"]))
    parts = [
        f"{row['environment']}: median {row['distance, median']:.2f}, 99 % of trials below {row['distance, 99 %']:.2f}"
        for row in last.rows()
    ]
    radii = next(iter(last.rows()))
    return (
        "Distance of the estimated from the true preference, in the norm of V, against the rounds, on logarithmic "
        f"axes. Distances stay level, radii grow slowly. In round {radii['round']:,}, {'; '.join(parts)}; the radii "
        f"are {radii[LEMMA]:.1f} (Lemma 2), {radii[HALF]:.1f} (with R = ½) and {radii[SMALL]:.2f} (the experiments')."
    )


def _twin_radius(tables: Tables) -> Table:
    rows = [row for row in tables["rounds"].rows() if row["round"] in _TICKS]
    return Table.from_rows(rows).told(
        {"environment": "environment", "run with": "settings", "round": "round"}
        | {f"distance, {q}": (f"distance, {q}", 3) for q in ("median", "95 %", "99 %")}
        | {"Lemma 2's β": (LEMMA, 2), "with R = ½": (HALF, 2), "the experiments' β": (SMALL, 3)}
    )


def _draw_shares(tables: Tables) -> Any:
    names = tables["rounds"].distinct("environment")
    figure, axes = panels(2, columns=2, height=3.0, legend=0.4)
    styles: list[Style] = [(BLUE, "-"), (BLUE, DASHED), (BLUE, DOTTED)]
    panes = (
        (LEMMA, SMALL, "c̄ is in the ellipsoid: all users", 0.02, "left"),
        (BOUND, BOUND, "scores are upper bounds: all users, all arms", 0.98, "right"),
    )
    for each, (first, second, title, x, side) in zip(axes, panes, strict=True):
        stated = float(tables["shares"].where(statement=first)["stated"][0])
        each.axhline(100 * stated, color=GREY, linewidth=1.0)
        look: dict[str, Any] = {"fontsize": 8, "va": "top", "ha": side, "color": GREY}
        said = f"promised for all rounds: {stated:.1%}"
        each.text(x, 100 * stated - 3, said, transform=each.get_yaxis_transform(), **look)
        for name, style in zip(names, styles[1:], strict=True):
            for settings, statement, drawn in ((THEORY, first, styles[0]), (EXPERIMENTS, second, style)):
                rows = tables["rounds"].where(environment=name, settings=settings)
                draw_line(each, rows["round"], 100 * rows[f"share from here on, {statement}"], drawn, linewidth=1.8)
        each.set_ylim(-3, 104)
        log_rounds(each, max(tables["rounds"]["round"]))
        label(each, title, "round t", "trials in which it holds from t to the end, %")
    legend_above(figure, [f"{THEORY}, any noise", *(f"{EXPERIMENTS}, {name}" for name in names)], styles, columns=3)
    note(figure, _size(tables))
    return figure


def _describe_shares(tables: Tables) -> str:
    parts = []
    for statement, settings, what in (
        (LEMMA, THEORY, "the ellipsoid with Theorem 1's settings"),
        (SMALL, EXPERIMENTS, "the ellipsoid with the experiments' settings"),
        (BOUND, THEORY, "the upper bound with Theorem 1's settings"),
        (BOUND, EXPERIMENTS, "the upper bound with the experiments' settings"),
    ):
        early, late = (_chosen(tables, statement, settings, since) for since in (2, 0))
        parts.append(
            f"{what}: {_by_environment(early)} from round 2 on, {_by_environment(late)} from {late[0]['since']} on"
        )
    return "Share of trials in which a statement holds in every round from t on, against t. " + "; ".join(parts) + "."


def _claims_of(row: Mapping[str, Any]) -> bool:
    """Tell whether a row is about rounds that are claimed: of round 1, the experiments' settings claim nothing."""
    small = row["statement"] == SMALL or (row["statement"] == BOUND and row["settings"] == EXPERIMENTS)
    return bool((row["since"] > 1) == small)


def _twin_shares(tables: Tables) -> Table:
    return Table.from_rows([row for row in tables["shares"].rows() if _claims_of(row)]).told(
        {
            "statement": "statement",
            "environment": "environment",
            "run with": "settings",
            "from round": "since",
            "trials in which it holds": lambda row: f"{row['held']:,} of {row['trials']:,}",
            "share": lambda row: f"{row['share']:.2%}",
            "95 % interval": lambda row: interval_text(row["low"], row["high"], ".2%"),
            "promised": lambda row: f"{row['stated']:.1%}",
        }
    )


_SHARE_RULE = (
    "A share of trials is held against the stated probability: confirmed if it is at least that, partly if only the "
    "upper end of its 95 % interval (Wilson's) is, else not. "
)
_SIZES = {"id": "bounded", "users": 2, "block_size": 5, "objectives": 3}

STUDY = Study(
    name="confidence",
    title="Do the confidence statements hold?",
    about="PRUCB-HP runs in the bounded environment, where the assumptions hold, and we look at the truth that it "
    "cannot see: is the mean preference in Lemma 2's ellipsoid, is every score an upper bound as Lemma 3 says? Once "
    "with the α and β that Theorem 1 asks for (failure ϑ = 0.05 for both users together, so that α, and the ϑ in β, "
    "are 0.013; R = 1), once with those of the paper's experiments (α = 1, β = 0.1·√(D·log t)). Once with moderate "
    "noise (variances of 0.01), once with as much as this environment has: rewards of 0 or 1, weights uniform between "
    "0 and twice their mean.",
    source="Lemmas 2 and 3; Theorem 1",
    settings={
        "environments": {
            "moderate noise": dict(_SIZES),
            "most noise": _SIZES | {"reward": "bernoulli", "preference_variance": 0.25},
        },
        "rounds": 1000,
        "trials": 4000,
        "failure": 0.05,
    },
    quick={"rounds": 300, "trials": 500},
    weight=14.0,
    measure=watch_statements,
    prepare=prepare_statements,
    claims=(
        Claim(
            id="lemma-2",
            paper="With probability 1 − ϑ, a user's mean preference is in the estimate's ellipsoid in every round.",
            source="Lemma 2",
            rule=_SHARE_RULE
            + "The share is that of trials in which it holds for all users and rounds, the probability "
            "1 − N·ϑ with the ϑ that is in β's logarithm. The worst of all environments and settings counts.",
            refuted_by="More trials outside an ellipsoid at some time than the lemma allows, beyond chance.",
            judge=_judge_ellipsoid,
        ),
        Claim(
            id="lemma-3",
            paper="With probability 1 − ϑ − Dα²/t², an arm's score is at least its true expected overall score.",
            source="Lemma 3",
            rule=_SHARE_RULE + "The share is that of trials in which it holds for all users, arms and rounds at once, "
            "with Theorem 1's settings; the probability is the lemma's, summed over them. The worst environment "
            "counts. At most partly if in some round all scores hold together less often than is stated for one.",
            refuted_by="More trials with a score below the truth at some time than the lemma allows, beyond chance.",
            judge=_judge_upper_bound,
        ),
        Claim(
            id="experiments-radius",
            paper="The radius of the paper's experiments, 0.1·√(D·log t), is a confidence radius as Lemma 2's is.",
            source="not in the paper, which proves the one and runs the other",
            rule=_SHARE_RULE + "The share is that of trials in which it holds for all users and rounds from 2 on (in "
            "round 1 the radius is 0). Partly, too, if it is confirmed after the first tenth of the rounds. The worst "
            "environment counts.",
            refuted_by="More trials outside this smaller ellipsoid than Lemma 2 allows for its own, early and late.",
            judge=partial(_judge_experiments, statement=SMALL, what="c̄ was in every user's ellipsoid"),
            ours=True,
        ),
        Claim(
            id="experiments-upper-bound",
            paper="With the settings of the paper's experiments, scores are upper bounds as in Lemma 3.",
            source="not in the paper: with α = 1 the lemma promises next to nothing in the first rounds",
            rule="As for the radius, against the probability that Lemma 3 states with Theorem 1's settings.",
            refuted_by="More trials with a score below the truth than Lemma 3 allows, early and late.",
            judge=partial(_judge_experiments, statement=BOUND, what="Every score was an upper bound for every user"),
            ours=True,
        ),
    ),
    drawings=(
        Drawing(
            "confidence-radius",
            "Distance of the estimated from the true preference, and the radii that are to hold it",
            _draw_radius,
            _describe_radius,
            _twin_radius,
        ),
        Drawing(
            "confidence-shares",
            "Share of trials in which the statements hold from a round on",
            _draw_shares,
            _describe_shares,
            _twin_shares,
        ),
    ),
)
