"""Study 4, `stated`: regret when users state their preference afterwards (Fig. experiments_1, and exp1_sample b)."""

from __future__ import annotations

from functools import partial
from typing import Any

from pamo.experiments.figures import draw_rows, label, note, panels, titled
from pamo.experiments.grid import mean_final, paired, prepare_grid, run_grid
from pamo.experiments.paper.regret import (
    PREFERENCE_FREE,
    SUPERIOR_REFUTED,
    SUPERIOR_RULE,
    cell,
    cells_of,
    interval_text,
    judge_superior,
    regret_drawing,
)
from pamo.experiments.study import Claim, Drawing, Finding, Study, judge_share
from pamo.experiments.tables import Table, Tables
from pamo.simulation.plot import STYLES

OURS, REFERENCE = "prucb-up", "prucb-kp"
COMPETITORS = (*PREFERENCE_FREE, "ucb", "moss", "oful")
LEFT_OUT = ("ucb-per-user", "greedy", "prucb-hp")
_POLICIES = (OURS, REFERENCE, *COMPETITORS)
_SLIGHT = 0.05

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


def _draw_excess(tables: Tables) -> Any:
    names = cells_of(tables)
    figure, axes = panels(len(names), columns=3, legend=0.1)
    for each, name in zip(axes, names, strict=True):
        draw_rows(each, tables["paired"].where(cell=name), "round", (STYLES[OURS][0], "-"), linewidth=1.5)
        each.axhline(0.0, color="#888888", linewidth=0.9)
        each.set_xlim(left=0)
        label(each, titled(name), "round t", "PRUCB-UP's regret less GT's")
    note(figure, f"mean of {len(set(tables['finals']['trial'].tolist()))} trials, both on the same ones, 95 % band")
    return figure


def _last(tables: Tables) -> Table:
    return tables["paired"].where(round=max(tables["paired"]["round"]))


def _describe_excess(tables: Tables) -> str:
    ends = [
        f"{row['cell']}: {row['mean']:.1f} ({interval_text(row['low'], row['high'])})" for row in _last(tables).rows()
    ]
    return f"PRUCB-UP's regret less GT's on the same trials, against the rounds. In the end {'; '.join(ends)}."


def _twin_excess(tables: Tables) -> Table:
    kept: dict[str, Any] = {"setting": "cell", "regret of PRUCB-UP less GT": ("mean", 2)}
    kept |= {"GT's regret": lambda row: round(mean_final(tables, row["cell"], REFERENCE), 1)}
    return _last(tables).told(kept | {"95 % interval": lambda row: interval_text(row["low"], row["high"], ".2f")})


_RULE = f"PRUCB-UP wins a comparison {SUPERIOR_RULE}"

STUDY = Study(
    name="stated",
    title="Regret when users state their preference",
    about="After each round the user states the round's preference. PRUCB-UP averages what was stated; PRUCB-KP, the "
    "paper's reference GT, knows the mean beforehand. Two users, as in the paper. The figure in the appendix shows the "
    "preference-free competitors alone; the main text names UCB, MOSS and OFUL as well, which learn from overall "
    "scores.",
    source="Appendix, “Experiments in unknown preference environment”",
    settings={"cells": CELLS, "rounds": 5000, "trials": 100, "pairs": [[OURS, REFERENCE]]},
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
        Drawing(
            "stated-excess",
            "What not knowing the preference costs: PRUCB-UP less GT, trial by trial",
            _draw_excess,
            _describe_excess,
            _twin_excess,
        ),
    ),
)
