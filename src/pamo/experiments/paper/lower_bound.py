"""Study 5, `lower-bound`: Proposition 1 seen. No policy that treats all users alike can avoid linear regret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pamo.environments import conflict
from pamo.experiments.figures import draw_bars, draw_curves, label, note, panels
from pamo.experiments.grid import exponent, prepare_grid, run_grid, slopes
from pamo.experiments.paper.regret import PREFERENCE_FREE, cells_of, interval_text, regret_drawing
from pamo.experiments.study import Claim, Drawing, Finding, Study, judge_share
from pamo.experiments.tables import Table, Tables
from pamo.progress import Progress
from pamo.simulation import summarize
from pamo.simulation.plot import STYLES, printed
from pamo.theory import preference_free_slope

AWARE = ("prucb-hp", "prucb-up", "prucb-kp")
POLICIES = (*AWARE, *PREFERENCE_FREE, "oful", "ucb", "moss", "ucb-per-user", "greedy")
"""The paper's, its competitors, and the two that it leaves out."""
_EXACT, _NOISY = "N=2, K=2, D=2, fixed rewards and preferences", "N=2, K=2, D=2, with the experiments' noise"

_NOISE = {_EXACT: {}, _NOISY: {"reward_variance": 0.01, "preference_variance": 0.5}}
CELLS = [
    {"cell": name, "environment": conflict().settings | noise, "policies": list(POLICIES)}
    for name, noise in _NOISE.items()
]


def _measure(settings: Mapping[str, Any], seed: int, progress: Progress) -> Tables:
    tables = run_grid(settings, seed, progress)
    rows = []
    for name in cells_of(tables):
        for policy in tables["finals"].where(cell=name).distinct("policy"):
            mean, _, low, high = summarize(slopes(tables, name, policy, settings["rounds"]))
            power = exponent(tables, name, policy)
            rows.append({"cell": name, "policy": policy, "slope": mean, "low": low, "high": high, "exponent": power})
    tables["growth"] = Table.from_rows(rows)
    return tables


def _judge_linear(tables: Tables) -> Finding:
    bound = preference_free_slope()
    rows = [row for row in tables["growth"].rows() if row["policy"] in PREFERENCE_FREE]
    good = sum(row["low"] >= 0.9 * bound and row["exponent"] >= 0.9 for row in rows)
    slowest = min(rows, key=lambda row: float(row["slope"]))
    powers = [row["exponent"] for row in rows]
    return Finding(
        judge_share(good, len(rows)),
        f"Regret a round over the second half at least {slowest['slope']:.3f} ({slowest['policy']}, 95 % interval "
        f"{slowest['low']:.3f} … {slowest['high']:.3f}), where the proof's instance allows no less than {bound:.1f}; "
        f"growth like t^p with p from {min(powers):.2f} to {max(powers):.2f}.",
        {"lowest slope": slowest["slope"], "lowest exponent": min(powers)},
    )


def _judge_aware(tables: Tables) -> Finding:
    rows = [row for row in tables["growth"].rows() if row["policy"] in AWARE]
    good = sum(row["high"] < 0.1 and row["exponent"] < 0.9 for row in rows)
    steepest = max(rows, key=lambda row: float(row["slope"]))
    powers = [row["exponent"] for row in rows]
    return Finding(
        judge_share(good, len(rows)),
        f"Regret a round over the second half at most {steepest['slope']:.4f} ({steepest['policy']}, "
        f"{steepest['cell']}); growth like t^p with p at most {max(powers):.2f}.",
        {"highest slope": steepest["slope"], "highest exponent": max(powers)},
    )


def _draw_slopes(tables: Tables) -> Any:
    names = cells_of(tables)
    figure, axes = panels(len(names), columns=2, height=3.6, legend=0.05)
    for each, name in zip(axes, names, strict=True):
        rows = sorted(tables["growth"].where(cell=name).rows(), key=lambda row: -float(row["slope"]))
        policies = [row["policy"] for row in rows]
        intervals = [(row["slope"], row["low"], row["high"]) for row in rows]
        draw_bars(
            each,
            list(map(printed, policies)),
            intervals,
            colours=[STYLES[policy][0] for policy in policies],
            form="{:.3f}",
        )
        each.axvline(preference_free_slope(), color="#222222", linewidth=1, linestyle=(0, (4, 2)))
        label(
            each,
            f"{name}\n(dashed: Proposition 1's instance allows no less)",
            "regret a round, both users, over the second half",
        )
    note(figure, f"mean of {len(set(tables['finals']['trial'].tolist()))} trials, 95 % interval")
    return figure


def _describe_slopes(tables: Tables) -> str:
    parts = [f"{row['policy']} {row['slope']:.3f}" for row in tables["growth"].where(cell=_EXACT).rows()]
    return f"Bars of the regret a round over the second half, a bar a policy. With {_EXACT}: {', '.join(parts)}."


def _twin(tables: Tables) -> Table:
    return tables["growth"].told(
        {
            "instance": "cell",
            "policy": "policy",
            "regret a round": ("slope", 4),
            "95 % interval": lambda row: interval_text(row["low"], row["high"], ".4f"),
            "grows like t^p, p": ("exponent", 2),
        }
    )


STUDY = Study(
    name="lower-bound",
    title="Nobody who treats all users alike can win",
    about="The instance of Proposition 1's proof: two arms with rewards (1, 0) and (0, 1), two users who want one "
    "objective each, both arms on offer to both. A policy that does not look at preferences serves one of them badly.",
    source="Proposition 1 and its proof",
    settings={"cells": CELLS, "rounds": 5000, "trials": 100},
    quick={"rounds": 1000, "trials": 10},
    weight=5.0,
    measure=_measure,
    prepare=prepare_grid,
    claims=(
        Claim(
            id="preference-free-linear",
            paper="With conflicting arms on the front, any preference-free policy has regret that grows linearly.",
            source="Proposition 1",
            rule="A preference-free policy grows linearly if the 95 % interval of its regret a round over the second "
            "half lies above 0.9 of the proof's slope and its growth exponent is at least 0.9. Confirmed if all do on "
            "both instances, partly if more than half.",
            refuted_by="A policy that does not look at preferences and whose regret a round falls towards 0.",
            judge=_judge_linear,
        ),
        Claim(
            id="preference-aware-sublinear",
            paper="Preference-aware policies (PRUCB-HP, -UP, -KP) achieve sub-linear regret.",
            source="Section “A lower bound”, Theorems 1 and 2",
            rule="Sub-linear here: regret a round over the second half below 0.1 and growth exponent below 0.9. "
            "Confirmed if so for all three on both instances, partly if in more than half of the cases.",
            refuted_by="A preference-aware policy that goes on losing as much a round.",
            judge=_judge_aware,
        ),
    ),
    drawings=(
        regret_drawing(
            "lower-bound",
            "Regret on the conflicting-arms instance, both axes logarithmic: linear growth is a straight rise",
            POLICIES,
            draw=lambda tables: draw_curves(
                tables, cells_of(tables), (*AWARE, "ucb-per-user", "oful", "ucb", *PREFERENCE_FREE), columns=2, log=True
            ),
            twin=_twin,
        ),
        Drawing("lower-bound-slopes", "Regret a round, late in the run", _draw_slopes, _describe_slopes, _twin),
    ),
)
