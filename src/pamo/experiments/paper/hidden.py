"""Study 3, `hidden`: regret when the preference is hidden (Fig. experiment_3, and exp1_sample a)."""

from __future__ import annotations

from functools import partial

from pamo.experiments.grid import PAPER_TRIALS, exponent, mean_final, prepare_grid, run_grid
from pamo.experiments.paper.regret import (
    PREFERENCE_FREE,
    SUPERIOR_REFUTED,
    SUPERIOR_RULE,
    cell,
    cells_of,
    count_beaten,
    judge_superior,
    regret_drawing,
)
from pamo.experiments.study import Claim, Finding, Study, judge_share
from pamo.experiments.tables import Tables

OURS = "prucb-hp"
COMPETITORS = (*PREFERENCE_FREE, "oful", "ucb", "moss")
LEFT_OUT = ("ucb-per-user", "greedy")
_SIZES = ((2, 3), (2, 8), (10, 5))

CELLS = [
    cell(users, block, objectives, preference, (OURS, *COMPETITORS, *LEFT_OUT))
    for preference in ("predefined", "random")
    for block in (3, 5)
    for users, objectives in _SIZES
]


def _judge_sublinear(tables: Tables) -> Finding:
    powers = [exponent(tables, name, OURS) for name in cells_of(tables)]
    good = sum(power < 0.9 for power in powers)
    return Finding(
        judge_share(good, len(powers)),
        f"Late growth of regret like t^p, with p from {min(powers):.2f} to {max(powers):.2f} across settings.",
        {"lowest": min(powers), "highest": max(powers)},
    )


def _judge_left_out(tables: Tables) -> Finding:
    names = cells_of(tables)
    won, total, _ = count_beaten(tables, names, OURS, LEFT_OUT)
    ratios = {
        other: [mean_final(tables, name, other) / mean_final(tables, name, OURS) for name in names]
        for other in LEFT_OUT
    }
    first = next((name for name in names if "blocks of 5" in name), names[0])
    example = ", ".join(f"{policy} {mean_final(tables, first, policy):,.0f}" for policy in (OURS, *LEFT_OUT))
    spans = "; ".join(
        f"{other} has {min(r):.2f} to {max(r):.2f} times PRUCB-HP's regret" for other, r in ratios.items()
    )
    return Finding(
        judge_share(won, total),
        f"PRUCB-HP is lower in {won} of {total} comparisons: {spans}. With {first}: {example}.",
        {"won": won, "comparisons": total} | {f"{other}, lowest ratio": min(r) for other, r in ratios.items()},
    )


_PAPER = (OURS, *COMPETITORS)
_RULE = f"PRUCB-HP wins a comparison {SUPERIOR_RULE}"

STUDY = Study(
    name="hidden",
    title="Regret when the preference is hidden",
    about="Users never say what they want; reward and overall score are seen. Gaussian rewards (variance 0.01) and "
    "preferences (variance 0.5); a user is offered a random block of arms each round. The paper's figures do not say "
    "which (users, D) they use: these are ours. Beside the paper's competitors run two that it leaves out: one UCB a "
    "user, and greed on PRUCB-HP's own estimates. Who is ahead depends on T: the study `horizon` follows the contested "
    "ones further.",
    source="Appendix, “Experiments in hidden preferences environment”",
    settings={"cells": CELLS, "rounds": 5000, "trials": 100},
    quick={"cells": [CELLS[3], CELLS[9]], "rounds": 1000, "trials": 10},
    weight=55.0,
    measure=run_grid,
    prepare=prepare_grid,
    claims=(
        Claim(
            id="superior",
            paper="PRUCB-HP has less regret than every competitor in every setting, at the paper's T = 5000.",
            source="Numerical analysis; Appendix, “Regret results”",
            rule=_RULE,
            refuted_by=SUPERIOR_REFUTED,
            judge=partial(judge_superior, policy=OURS, others=COMPETITORS),
        ),
        Claim(
            id="sublinear",
            paper="PRUCB-HP has sub-linear regret.",
            source="Theorem 1 and its remark",
            rule="The mean regret a round in the third and in the last quarter give p of growth like t^p; below 0.9 "
            "counts as sub-linear. Confirmed if in all settings, partly if in most.",
            refuted_by="p of 0.9 or more in half of the settings.",
            judge=_judge_sublinear,
        ),
        Claim(
            id="left-out-baselines",
            paper="PRUCB-HP significantly outperforms one UCB a user (ucb-per-user) and plain greed (greedy), too.",
            source="not in the paper, which leaves these baselines out",
            rule=_RULE,
            refuted_by=SUPERIOR_REFUTED,
            judge=_judge_left_out,
            ours=True,
        ),
    ),
    drawings=(
        regret_drawing("hidden-predefined", "Predefined preferences, mean of all trials", _PAPER, keep="predefined"),
        regret_drawing("hidden-random", "Random preferences, mean of all trials", _PAPER, keep="random"),
        regret_drawing(
            "hidden-ten-trials",
            "Blocks of 5 at the paper's size, ten trials",
            _PAPER,
            keep="blocks of 5",
            trials=PAPER_TRIALS,
        ),
        regret_drawing(
            "hidden-left-out",
            "Against the baselines that the paper leaves out",
            (OURS, "oful", *LEFT_OUT),
            keep="blocks of 5",
        ),
    ),
)
