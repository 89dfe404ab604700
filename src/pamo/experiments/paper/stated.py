"""Study 4, `stated`: regret when users state their preference afterwards (Fig. experiments_1, and exp1_sample b)."""

from __future__ import annotations

from functools import partial
from typing import Any

from pamo.experiments.figures import draw_curve, label, legend_above, panels
from pamo.experiments.grid import mean_final, paired, prepare_grid, run_grid
from pamo.experiments.paper.regret import (
    PREFERENCE_FREE,
    SUPERIOR_REFUTED,
    SUPERIOR_RULE,
    cell,
    cells_of,
    judge_superior,
    regret_drawing,
)
from pamo.experiments.study import Claim, Finding, Study, judge_share
from pamo.experiments.tables import Tables
from pamo.simulation.plot import printed, styles_for

OURS, REFERENCE = "prucb-up", "prucb-kp"
COMPETITORS = (*PREFERENCE_FREE, "ucb", "moss", "oful")
LEFT_OUT = ("ucb-per-user", "greedy", "prucb-hp")
_POLICIES = (OURS, REFERENCE, *COMPETITORS)
_SLIGHT = 0.05
_ZOOM = 0.8

CELLS = [
    cell(2, block, objectives, preference, (*_POLICIES, *LEFT_OUT))
    for preference in ("predefined", "random")
    for objectives, block in ((3, 3), (3, 5), (8, 5))
]


def _judge_superior(others: tuple[str, ...], tables: Tables) -> Finding:
    return judge_superior(tables, OURS, others)


def _judge_close(tables: Tables) -> Finding:
    excess = {}
    for name in cells_of(tables):
        reference, difference = mean_final(tables, name, REFERENCE), paired(tables, name, OURS, REFERENCE)
        excess[name] = (difference.mean / reference, difference.high / reference)
    good = sum(high <= _SLIGHT for _, high in excess.values())
    means = [mean for mean, _ in excess.values()]
    return Finding(
        judge_share(good, len(excess)),
        f"PRUCB-UP's regret exceeds that of GT (PRUCB-KP) by {min(means):.2%} to {max(means):.2%} across settings.",
        {"lowest excess": min(means), "highest excess": max(means)},
    )


def _draw_zoom(tables: Tables) -> Any:
    names = cells_of(tables)
    figure, axes = panels(len(names), columns=3, legend=0.35)
    styles = styles_for((OURS, REFERENCE))
    for each, name in zip(axes, names, strict=True):
        for policy, style in styles.items():
            draw_curve(each, tables, name, policy, style)
        last = float(max(tables["curves"]["round"]))
        rows = tables["curves"].where(cell=name)
        late = (rows["round"] >= _ZOOM * last) & ((rows["policy"] == OURS) | (rows["policy"] == REFERENCE))
        late &= rows["trials"] == max(rows["trials"])
        low, high = float(rows["low"][late].min()), float(rows["high"][late].max())
        margin = 0.1 * (high - low)
        each.set_xlim(_ZOOM * last, last)
        each.set_ylim(low - margin, high + margin)
        label(each, name, "round t", "regret, all users")
    legend_above(figure, [printed(OURS), printed(REFERENCE)], list(styles.values()))
    return figure


_RULE = f"PRUCB-UP wins a comparison {SUPERIOR_RULE}"

STUDY = Study(
    name="stated",
    title="Regret when users state their preference",
    about="After each round the user states the round's preference. PRUCB-UP averages what was stated; PRUCB-KP, the "
    "paper's reference GT, knows the mean beforehand. Two users, as in the paper. The figure in the appendix shows the "
    "preference-free competitors alone; the main text names UCB, MOSS and OFUL as well, which learn from overall "
    "scores.",
    source="Appendix, “Experiments in unknown preference environment”",
    settings={"cells": CELLS, "rounds": 5000, "trials": 100},
    quick={"cells": CELLS[:2], "rounds": 1000, "trials": 10},
    weight=14.0,
    measure=run_grid,
    prepare=prepare_grid,
    claims=(
        Claim(
            id="superior",
            paper="PRUCB-UP has significantly less regret than all competitors in all experiments.",
            source="Numerical analysis, which names all seven; Appendix, “Regret results”",
            rule=_RULE,
            refuted_by=SUPERIOR_REFUTED,
            judge=partial(_judge_superior, COMPETITORS),
        ),
        Claim(
            id="superior-to-preference-free",
            paper="PRUCB-UP has significantly less regret than the preference-free competitors in all experiments.",
            source="Appendix, “Regret results”, whose figure shows these four",
            rule=_RULE,
            refuted_by=SUPERIOR_REFUTED,
            judge=partial(_judge_superior, PREFERENCE_FREE),
        ),
        Claim(
            id="left-out-baselines",
            paper="PRUCB-UP has less regret, too, than one UCB a user, than plain greed, and than PRUCB-HP, which are "
            "told less: the overall scores, and no preference.",
            source="not in the paper, which leaves these out",
            rule=_RULE,
            refuted_by=SUPERIOR_REFUTED,
            judge=partial(_judge_superior, LEFT_OUT),
            ours=True,
        ),
        Claim(
            id="close-to-known",
            paper="PRUCB-UP is only very slightly worse than GT, which knows the preference.",
            source="Appendix, “Regret results”, the zoomed window",
            rule=f"Confirmed if in every setting the upper end of the 95 % interval of the excess is at most "
            f"{_SLIGHT:.0%} of GT's regret; partly if in more than half.",
            refuted_by=f"An excess of more than {_SLIGHT:.0%} in half of the settings.",
            judge=_judge_close,
        ),
    ),
    drawings=(
        regret_drawing("stated", "Regret with stated preferences, mean of all trials", _POLICIES),
        regret_drawing(
            "stated-zoom", "The last fifth, magnified: PRUCB-UP beside GT", (OURS, REFERENCE), draw=_draw_zoom
        ),
    ),
)
