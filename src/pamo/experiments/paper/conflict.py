"""Study 13, `conflict`: Proposition 1 in general, on random instances of several sizes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.environments import Fixed
from pamo.experiments.figures import INK, label, legend_above, note, panels
from pamo.experiments.grid import exponent, mean_final, prepare_grid, run_grid, slopes
from pamo.experiments.paper.regret import PREFERENCE_FREE, cells_of, interval_text
from pamo.experiments.study import Claim, Drawing, Finding, Study, Verdict, judge_share
from pamo.experiments.tables import Table, Tables
from pamo.pareto import front
from pamo.progress import Progress
from pamo.simulation import summarize
from pamo.simulation.plot import MARKERS, STYLES, printed
from pamo.theory import preference_free_slope

AWARE = "prucb-kp"
POLICIES = (*PREFERENCE_FREE, AWARE)
TIED = "a front of two, one arm as good for everybody"
_SLACK = 0.95
"""The share of the least slope that the lower end of an interval has to reach: the samples' own error."""


def conflicting(arms: int, objectives: int, seed: int, place: int) -> Floats:
    """Return means uniform on [0, 1] of which no arm is the best in every objective: the first such draw.

    >>> means = conflicting(2, 2, 1, 0)
    >>> len(set(means.argmax(axis=0).tolist()))
    2
    """
    for attempt in count():
        means = np.random.default_rng([seed, arms, objectives, place, attempt]).random((arms, objectives))
        if len(set(means.argmax(axis=0).tolist())) > 1:
            return means
    raise AssertionError


def _cells(settings: Mapping[str, Any], seed: int) -> dict[str, tuple[Floats, Floats]]:
    """Return each instance's means and preferences: one user for each objective, who wants nothing else."""
    cells = {
        f"K={arms}, D={objectives}, instance {place + 1}": (
            conflicting(arms, objectives, seed, place),
            np.eye(objectives),
        )
        for arms, objectives in settings["sizes"]
        for place in range(settings["instances"])
    }
    return cells | {TIED: (np.array([[1.0, 0.5], [0.5, 0.5]]), np.eye(2))}


def _as_grid(settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
    cells = [
        {"cell": name, "environment": Fixed.of(means=means, preferences=users).settings, "policies": list(POLICIES)}
        for name, (means, users) in _cells(settings, seed).items()
    ]
    return {"cells": cells, "rounds": settings["rounds"], "trials": settings["trials"]}


def _measure(settings: Mapping[str, Any], seed: int, progress: Progress) -> Tables:
    found, rows = run_grid(_as_grid(settings, seed), seed, progress), []
    for name, (means, users) in _cells(settings, seed).items():
        least = preference_free_slope(means=means, preferences=users)
        for policy in POLICIES:
            mean, _, low, high = summarize(slopes(found, name, policy, settings["rounds"]))
            row = {"cell": name, "front": int(front(means).sum()), "least": least, "policy": policy}
            row |= {"slope": mean, "low": low, "high": high, "exponent": exponent(found, name, policy)}
            rows.append(row | {"regret": mean_final(found, name, policy)})
    return {"growth": Table.from_rows(rows), "finals": found["finals"]}


def _random(tables: Tables) -> list[dict[str, Any]]:
    return [row for row in tables["growth"].rows() if row["cell"] != TIED]


def _judge_linear(tables: Tables) -> Finding:
    rows = [row for row in _random(tables) if row["policy"] in PREFERENCE_FREE]
    ratios = [row["slope"] / row["least"] for row in rows]
    good = sum(row["low"] >= _SLACK * row["least"] > 0.0 for row in rows)
    return Finding(
        judge_share(good, len(rows)),
        f"On {len(rows) // len(PREFERENCE_FREE)} random instances the regret a round over the second half is "
        f"{min(ratios):.2f} to {max(ratios):.2f} times the least that the instance allows to a policy that treats all "
        f"users alike; that is {min(row['least'] for row in rows):.3f} to {max(row['least'] for row in rows):.3f}.",
        {"lowest": min(ratios), "highest": max(ratios), "good": good, "cases": len(rows)},
    )


def _judge_aware(tables: Tables) -> Finding:
    rows = [row for row in _random(tables) if row["policy"] == AWARE]
    ratios = [row["slope"] / row["least"] for row in rows]
    return Finding(
        judge_share(sum(row["high"] < row["least"] for row in rows), len(rows)),
        f"PRUCB-KP's regret a round over the second half is {min(ratios):.2f} to {max(ratios):.2f} times that least.",
        {"lowest": min(ratios), "highest": max(ratios)},
    )


def _judge_tied(tables: Tables) -> Finding:
    rows = list(tables["growth"].where(cell=TIED).rows())
    free = [row for row in rows if row["policy"] in PREFERENCE_FREE]
    told = ", ".join(f"{printed(row['policy'])} t^{row['exponent']:.2f}" for row in free)
    return Finding(
        Verdict.CONFIRMED if all(row["exponent"] >= 0.9 for row in free) else Verdict.NOT,
        f"With arms (1, ½) and (½, ½), both on the front as the paper defines it ({rows[0]['front']} arms), the first "
        f"is as good as any for everybody: the least slope is {rows[0]['least']:.1f}, and regret grows like {told}.",
        {row["policy"]: row["exponent"] for row in free},
    )


def _draw(tables: Tables) -> Any:
    names = [name for name in cells_of(tables) if name != TIED]
    figure, (axes,) = panels(1, columns=1, height=3.4, legend=0.4)
    for number, policy in enumerate(POLICIES):
        rows = [tables["growth"].where(cell=name, policy=policy) for name in names]
        values = [float(row["slope"][0] / row["least"][0]) for row in rows]
        places = np.arange(len(names)) + 0.15 * (number - 2)  # so that marks that meet do not
        look: dict[str, Any] = {
            "marker": MARKERS[policy],
            "color": STYLES[policy][0],
            "markersize": 6,
            "clip_on": False,
        }
        axes.plot(places, values, linestyle="", **look)
    axes.axhline(1.0, color=INK, linewidth=1.0)
    axes.set_yscale("symlog", linthresh=0.1)
    axes.set_ylim(0.0, 10.0)
    axes.set_yticks([0.0, 0.05, 0.1, 1.0, 10.0], ["0", "0.05", "0.1", "1", "10"])
    axes.set_xticks(range(len(names)), [name.replace(", instance ", "\n#") for name in names], fontsize=7.5)
    trials = len(set(tables["finals"]["trial"].tolist()))
    label(axes, "each instance; line: the least that it allows", "", "regret a round / least, linear below 0.1")
    note(figure, f"N=2; mean of {trials} trials each")
    styles = [(STYLES[policy][0], "None") for policy in POLICIES]
    legend_above(figure, list(map(printed, POLICIES)), styles, markers=[MARKERS[policy] for policy in POLICIES])
    return figure


def _twin(tables: Tables) -> Table:
    return tables["growth"].told(
        {
            "instance": "cell",
            "arms on the front": "front",
            "least slope": ("least", 3),
            "policy": "policy",
            "regret a round": ("slope", 4),
            "95 % interval": lambda row: interval_text(row["low"], row["high"], ".4f"),
        }
    )


STUDY = Study(
    name="conflict",
    title="Proposition 1 with any number of arms and objectives",
    about="Random arms, of which none is the best in every objective, and for each objective a user who wants it "
    "alone. A policy that does not look at preferences gives all users the same law over arms, so that it loses at "
    "least min_i Σ_n max_j c̄ⁿ·(μ_j − μ_i) a round: worked out for each instance, and held against what is lost. And "
    "one instance at the edge of the definition: dominating means better in every objective, so that a front may hold "
    "two arms of which one suits everybody.",
    source="Proposition 1, and its general proof in the appendix",
    settings={"sizes": [[2, 2], [5, 3], [20, 5]], "instances": 4, "rounds": 5000, "trials": 10},
    quick={"sizes": [[2, 2], [5, 3]], "instances": 2, "rounds": 2000, "trials": 5},
    weight=6.0,
    measure=_measure,
    prepare=lambda settings: prepare_grid(_as_grid(settings, 1)),
    claims=(
        Claim(
            id="any-instance",
            paper="Whatever the arms, if some are in conflict, there are users with whom every preference-free policy "
            "has linear regret.",
            source="Proposition 1, general version",
            rule="A (instance, policy) pair is good if the 95 % interval of the regret a round over the second half "
            f"lies above {_SLACK} of the least slope. Confirmed if all are, partly if more than half, else not.",
            refuted_by="A preference-free policy below the least slope.",
            judge=_judge_linear,
        ),
        Claim(
            id="looking-is-enough",
            paper="Who looks at preferences does better on each of them than any preference-free policy can.",
            source="Section “A lower bound”",
            rule="Confirmed if the 95 % interval of PRUCB-KP's regret a round over the second half lies below the "
            "least slope in all instances, partly if in more than half, else not.",
            refuted_by="A slope of PRUCB-KP as high as the least of those who do not look.",
            judge=_judge_aware,
        ),
        Claim(
            id="a-front-of-two",
            paper="A front of two arms, as the paper defines it, is enough for that.",
            source="Proposition 1, |O*| ≥ 2, dominance being “greater in every objective”",
            rule="On an instance whose front has two arms, one of them as good as any for everybody: confirmed if the "
            "regret of every preference-free policy grows like t^p with p ≥ 0.9, else not.",
            refuted_by="A preference-free policy with sub-linear regret, although the front has two arms.",
            judge=_judge_tied,
        ),
    ),
    drawings=(
        Drawing(
            "conflict",
            "Regret a round, late in the run, over the least that each instance allows",
            _draw,
            lambda tables: _judge_linear(tables).seen,
            _twin,
        ),
    ),
)
