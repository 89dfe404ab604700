"""Study 9, `horizon`: what becomes of the contested comparisons when the rounds go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pamo.experiments.figures import draw_curves
from pamo.experiments.grid import curve, exponent, prepare_grid, run_grid
from pamo.experiments.paper.regret import (
    PREFERENCE_FREE,
    SUPERIOR_REFUTED,
    SUPERIOR_RULE,
    cell,
    cells_of,
    describe_finals,
    judge_superior,
    twin_of_finals,
)
from pamo.experiments.study import Claim, Drawing, Finding, Study, judge_share
from pamo.experiments.tables import Tables
from pamo.progress import Progress, scaled

OURS = "prucb-hp"
COMPETITORS = ("oful", "ucb", "moss")
LEFT_OUT = ("ucb-per-user", "greedy")
_CONTESTED = (OURS, *COMPETITORS, *LEFT_OUT)
LINEAR = 0.9
"""The exponent from which on growth counts as linear."""

CELLS = [
    cell(2, 5, 3, "predefined", _CONTESTED),
    cell(2, 5, 8, "random", _CONTESTED),
    cell(10, 5, 5, "predefined", _CONTESTED),
]
LONG = [cell(2, 5, 3, "predefined", PREFERENCE_FREE), cell(2, 5, 8, "random", PREFERENCE_FREE)]
_SHARE = 0.5
"""The share of the time that the contested comparisons take."""


def _measure(settings: Mapping[str, Any], seed: int, progress: Progress) -> Tables:
    contested = run_grid(settings, seed, scaled(progress, _SHARE))
    long = dict(settings["long"]) | {"trials": min(settings["long"]["trials"], settings["trials"])}
    linear = run_grid(long, seed, scaled(progress, 1 - _SHARE))
    return contested | {f"long {name}": table for name, table in linear.items()}


def _long(tables: Tables) -> Tables:
    return {name: tables[f"long {name}"] for name in ("curves", "finals")}


def overtakes(tables: Tables, name: str, policy: str, other: str) -> float:
    """Return the round from which on a policy's mean regret stays below another's, infinity if it does not."""
    one, two = curve(tables, name, policy), curve(tables, name, other)
    behind = np.flatnonzero(one["mean"] >= two["mean"])
    place = behind[-1] + 1 if len(behind) else 0
    return float(one["round"][place]) if place < len(one) else np.inf


def _judge_ahead(tables: Tables) -> Finding:
    found = judge_superior(tables, OURS, COMPETITORS)
    rounds = {name: overtakes(tables, name, OURS, "oful") for name in cells_of(tables)}
    told = [
        f"{name}: {curve(tables, name, OURS)['mean'][-1]:,.0f} against {curve(tables, name, 'oful')['mean'][-1]:,.0f}, "
        + (f"ahead from round {at:,.0f} on" if np.isfinite(at) else "not ahead")
        for name, at in rounds.items()
    ]
    last = max(tables["curves"]["round"])
    seen = f"At T = {last:,}: {found.seen} Against OFUL, {'; '.join(told)}."
    return Finding(
        found.verdict, seen, dict(found.figures) | {f"{name}, ahead from": at for name, at in rounds.items()}
    )


def _judge_linear(tables: Tables) -> Finding:
    long = _long(tables)
    powers = {policy: [exponent(long, name, policy) for name in cells_of(long)] for policy in PREFERENCE_FREE}
    good = sum(power >= LINEAR for several in powers.values() for power in several)
    ranges = "; ".join(f"{policy} {min(p):.2f} to {max(p):.2f}" for policy, p in powers.items())
    return Finding(
        judge_share(good, sum(map(len, powers.values()))),
        f"Over {max(long['curves']['round']):,} rounds regret grows in the end like t^p, p across settings: {ranges}.",
        {policy: min(p) for policy, p in powers.items()},
    )


STUDY = Study(
    name="horizon",
    title="Who is ahead depends on how long one waits",
    about="The paper stops at T = 5000. OFUL's bonus there is a constant, so that it stops exploring: it is ahead "
    "early, and pays for it later. S-UCB and S-MOSS explore so much at first that their regret looks sub-linear for "
    "thousands of rounds. Here the same settings go on for ten and for a hundred times as long.",
    source="Numerical analysis; Appendix, “Experiments in hidden preferences environment”",
    settings={
        "cells": CELLS,
        "rounds": 50_000,
        "trials": 20,
        "long": {"cells": LONG, "rounds": 500_000, "trials": 10},
    },
    quick={
        "cells": CELLS[:1],
        "rounds": 5000,
        "trials": 10,
        "long": {"cells": LONG[:1], "rounds": 20_000, "trials": 3},
    },
    weight=30.0,
    measure=_measure,
    prepare=lambda settings: [*prepare_grid(settings), *prepare_grid(settings["long"])],
    claims=(
        Claim(
            id="ahead-in-the-long-run",
            paper="PRUCB-HP has less regret than the competitors that learn from overall scores: OFUL, UCB and MOSS.",
            source="Numerical analysis, here at ten times its T",
            rule=f"PRUCB-HP wins a comparison {SUPERIOR_RULE}",
            refuted_by=SUPERIOR_REFUTED,
            judge=_judge_ahead,
        ),
        Claim(
            id="preference-free-linear",
            paper="The preference-free competitors have linear regret.",
            source="Numerical analysis; Proposition 1",
            rule="The mean regret a round in the third and in the last quarter give p of growth like t^p; p ≥ "
            f"{LINEAR} counts as linear. Confirmed if all (setting, policy) pairs are, partly if more than half, else "
            "not.",
            refuted_by=f"p below {LINEAR} after so many rounds for half of the pairs.",
            judge=_judge_linear,
        ),
    ),
    drawings=(
        Drawing(
            "horizon",
            "Regret over the horizon, both axes logarithmic",
            lambda tables: draw_curves(tables, cells_of(tables), _CONTESTED, log=True),
            lambda tables: describe_finals(tables, cells_of(tables), _CONTESTED),
            lambda tables: twin_of_finals(tables, cells_of(tables), _CONTESTED),
        ),
        Drawing(
            "horizon-preference-free",
            "The preference-free policies, both axes logarithmic: linear growth rises at 45 degrees",
            lambda tables: draw_curves(_long(tables), cells_of(_long(tables)), PREFERENCE_FREE, columns=2, log=True),
            lambda tables: describe_finals(_long(tables), cells_of(_long(tables)), PREFERENCE_FREE),
            lambda tables: twin_of_finals(_long(tables), cells_of(_long(tables)), PREFERENCE_FREE),
        ),
    ),
)
