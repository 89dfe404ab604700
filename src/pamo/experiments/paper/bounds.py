"""Study 7, `bounds`: Theorems 1 and 2 and the corollary, with all constants, over the regret that was measured."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from pamo.experiments.paper.bounds_figures import DRAWINGS, axis_of, rounded, says_more, says_more_from, warm_up_of
from pamo.experiments.paper.bounds_runs import (
    KNOWN,
    PRESCRIBED,
    STATED,
    THEOREMS,
    prepare_bounds,
    run_long,
    run_scaling,
)
from pamo.experiments.paper.theorems import wilson
from pamo.experiments.study import Claim, Finding, Study, Verdict, judge_share, judge_stated
from pamo.experiments.tables import Table, Tables
from pamo.progress import Progress, scaled

TOLERANCE = 0.05
"""By how much a fitted exponent may exceed the bound's before it counts as more."""

_LONG = 0.45
"""The share of the time that the long run takes."""


def _measure(settings: Mapping[str, Any], seed: int, progress: Progress) -> Tables:
    long, tables = run_long(settings, seed, scaled(progress, _LONG))
    scaling = dict(settings["scaling"]) | {"failure": settings["failure"]}
    scaling["trials"] = min(scaling["trials"], settings["trials"])
    sizes, by_size = run_scaling(scaling, seed, scaled(progress, 1 - _LONG))
    return tables | {"exponents": Table.from_rows(long + sizes), "sizes": by_size}


def _below(rows: Table) -> tuple[int, int]:
    """Return in how many trials the regret stayed below the bound in all rounds noted, and of how many."""
    return int((rows["least ratio"] >= 1).sum()), len(rows)


def _could_fail(rows: Table) -> Table:
    """Return the trials in which the bound comes to lie below the trivial one, so that a policy could exceed it."""
    return rows.where(**{"could fail": True})


def _judge_theorem_1(tables: Tables) -> Finding:
    rows = tables["trials"].where(policy=PRESCRIBED)
    counted = _could_fail(rows)
    held, total = _below(rows)
    stated = float(tables["horizon"].where(policy=PRESCRIBED)["stated"][0])
    ratio = float(np.median(rows["bound"] / rows["regret"]))
    verdict, since = Verdict.CANNOT, says_more_from(tables, PRESCRIBED)
    if len(counted):
        below, of = _below(counted)
        verdict = judge_stated(below / of, wilson(below, of)[1], stated)
    reach = f"from about T = {rounded(since)} on" if np.isfinite(since) else "at no T up to 10¹²"
    return Finding(
        verdict,
        f"Below the bound in all rounds noted in {held} of {total} trials; {stated:.0%} is promised. At "
        f"T = {rows['rounds'][0]:,} the bound is {rows['bound'][0]:,.0f} and the regret {rows['regret'].mean():,.0f} "
        f"on average: a ratio of {ratio:,.0f}.{_vacuous(rows)} A policy could exceed it {reach}"
        f"{', which is out of reach' if not len(counted) else ''}.",
        {"share": held / total, "stated": stated, "bound/regret": ratio, "could fail": len(counted)},
    )


def _vacuous(rows: Table) -> str:
    """Say in how many instances nothing could have exceeded the bound, because it is no lower than the trivial one."""
    count = len(rows) - len(_could_fail(rows))
    return (
        f" In {count} of {len(rows)} instances no policy could exceed it in the rounds that were run." if count else ""
    )


def _judge_by_instance(tables: Tables, *, policy: str) -> Finding:
    rows, curve = tables["trials"].where(policy=policy), tables["curves"].where(policy=policy)
    far = tables["far"].where(policy=policy)
    counted = _could_fail(far)
    held, total = _below(rows)
    if held < total or _below(far)[0] < len(far):
        verdict = Verdict.PARTLY if (curve["mean"] <= curve["mean bound"]).all() else Verdict.NOT
    else:
        verdict = Verdict.CONFIRMED if len(counted) else Verdict.CANNOT
    ratios = rows["bound"] / rows["regret"]
    return Finding(
        verdict,
        f"Below its instance's bound in all rounds noted in {held} of {total} trials. At T = {rows['rounds'][0]:,} the "
        f"bound is {np.median(ratios):,.0f} times the regret in the median trial, from {ratios.min():,.0f} to "
        f"{ratios.max():,.0f} times.{_vacuous(rows)} At T = {far['rounds'][0]:,}, in {len(far)} of these instances, a "
        f"policy could exceed it in {len(counted)}: the regret stays below it in {_below(counted)[0]} of them, the "
        f"bound being {np.median(far['bound'] / far['regret']):,.0f} times the regret.",
        {"share": held / total, "median bound/regret": float(np.median(ratios)), "lowest": float(ratios.min())}
        | {"could fail": len(counted)},
    )


def _judge_rates(tables: Tables, *, policy: str) -> Finding:
    rows = [row for row in tables["exponents"].where(policy=policy).rows() if row["monotone"]]
    bent = [axis_of(row) for row in tables["exponents"].where(policy=policy).rows() if not row["monotone"]]
    good = [row["low"] <= row["bound"] + TOLERANCE for row in rows]
    parts = [
        f"{axis_of(row)} {row['exponent']:z.2f} [{row['low']:z.2f}, {row['high']:z.2f}], bound {row['bound']:.2f}"
        f"{'' if fine else ': more'}"
        for row, fine in zip(rows, good, strict=True)
    ]
    return Finding(
        judge_share(sum(good), len(good)),
        f"Exponents of the regret with 95 % intervals, and those of the bound: {'; '.join(parts)}."
        + (f" In {', '.join(bent)} the regret rises and falls, so that it has no exponent." if bent else ""),
        {axis_of(row): row["exponent"] for row in rows} | {f"{axis_of(row)}, bound": row["bound"] for row in rows},
    )


def _judge_informative(tables: Tables, *, policies: tuple[str, ...]) -> Finding:
    parts, good, total = [], 0, 0
    figures: dict[str, float] = {}
    for policy in policies:
        rows, since = tables["trials"].where(policy=policy), says_more_from(tables, policy)
        less = int(says_more(rows).sum())
        parts.append(
            f"{THEOREMS[policy]} at T = {rows['rounds'][0]:,}: {np.median(rows['bound']):,.0f} against a trivial "
            f"{np.median(rows['trivial']):,.0f} (median instance), less in {less} of {len(rows)} instances; less "
            f"{f'from about T = {rounded(since)} on' if np.isfinite(since) else 'at no T up to 10¹²'}"
        )
        if policy == PRESCRIBED:
            warm_up = warm_up_of(tables)
            shape = tables["curves"].where(policy=policy, round=rows["rounds"][0])["without M"][0]
            parts[-1] += f", since M = {rounded(warm_up)}; were M 0, its terms would come to {shape:,.0f}"
            figures["M"] = warm_up
        good, total = good + less, total + len(rows)
        figures[f"{THEOREMS[policy]}, share of instances"] = less / len(rows)
        if np.isfinite(since):
            figures[f"{THEOREMS[policy]}, says more from"] = since
    return Finding(judge_share(good, total), ". ".join(parts) + ".", figures)


_RATE_RULE = (
    "On each axis the exponent of the mean regret is fitted, in T that of what each doubling adds, and in the same way "
    "that of the bound itself, at the same sizes and on the same instances. An axis is good if the lower end of the "
    f"exponent's 95 % interval (trials resampled) is at most the bound's + {TOLERANCE}. Confirmed if all axes are "
    "good, partly if more than half, else not. T counts twice: over all instances, and over those without near-ties "
    "(all gaps at least 0.02), the others being far from the large T that a rate is about. An axis along which the "
    "mean regret both rises and falls, by more than chance, follows no power law and is left out."
)
_RATE_REFUTED = "A regret that grows faster than the bound on half of the axes that have an exponent."
_INSTANCE_RULE = (
    "Each instance is rebuilt and its bound worked out. Confirmed if the regret is below its instance's bound in every "
    "trial and round noted, partly if at least its mean is below the mean bound, else not; if no instance's bound ever "
    "comes below the trivial one (the largest gap in every round), it cannot fail here."
)
_INSTANCE_REFUTED = "A trial above its instance's bound, among those whose bound is below the trivial one."

_SIZES = {"id": "bounded", "users": 2, "arms": 10, "objectives": 3}

STUDY = Study(
    name="bounds",
    title="The regret bounds over the regret",
    about="The paper states its bounds up to O(·); here they have the constants that its proofs carry, and are drawn "
    "over the regret in the bounded environment, where they apply: PRUCB-HP with the α and β that Theorem 1 prescribes "
    "(ϑ = 0.05), PRUCB-UP and PRUCB-KP with α = 1. Then T, K, D and N are varied one at a time (K, D and N with all "
    "arms offered to everybody), and the growth of regret is held against that of the bounds. An upper bound is "
    "confirmed by not being exceeded; how much it says is another question, and asked as well. With many objectives, "
    "5000 rounds are too few for Theorem 1's settings to learn much: regret is then not far below what pulling at "
    "random costs, which itself falls with D. A bound that no policy could exceed says nothing when it is not "
    "exceeded: PRUCB-UP and PRUCB-KP play the instances of the first trials for a million rounds, where theirs come "
    "below the trivial one, and with rewards of 0 or 1, the noisiest that there are.",
    source="Theorems 1 and 2; the corollary in the appendix",
    settings={
        "environment": {"id": "bounded", "users": 2, "block_size": 5, "objectives": 3, "reward_variance": 0.01},
        "rounds": 40_000,
        "paper_rounds": 5000,
        "trials": 100,
        "failure": 0.05,
        "clear_gap": 0.02,
        "far": {"rounds": 1_000_000, "trials": 20},
        "scaling": {
            "environment": _SIZES,
            "arms": [4, 8, 16, 32, 64],
            "objectives": [3, 5, 8, 16],
            "users": [1, 2, 4, 8, 16],
            "rounds": 5000,
            "trials": 30,
        },
    },
    quick={
        "rounds": 4000,
        "paper_rounds": 1000,
        "trials": 10,
        "far": {"rounds": 100_000, "trials": 3},
        "scaling": {
            "environment": _SIZES,
            "arms": [4, 16],
            "objectives": [2, 3],
            "users": [1, 4],
            "rounds": 500,
            "trials": 10,
        },
    },
    weight=17.0,
    measure=_measure,
    prepare=prepare_bounds,
    claims=(
        Claim(
            id="theorem-1",
            paper="With probability 1 − 2ϑ, PRUCB-HP's regret, with the prescribed α and β, is below the bound.",
            source="Theorem 1",
            rule="The share of trials that stay below the bound in all rounds noted: confirmed if it is at least "
            "1 − 2ϑ, partly if only the upper end of its 95 % interval (Wilson's) is, else not. Trials count in which "
            "the bound comes below the trivial one, 1 a round and user; if there are none, it cannot fail here.",
            refuted_by="More than 2ϑ of the trials above a bound that is below the trivial one.",
            judge=_judge_theorem_1,
        ),
        Claim(
            id="theorem-2",
            paper="The regret of PRUCB-UP is below Theorem 2's bound.",
            source="Theorem 2",
            rule=_INSTANCE_RULE,
            refuted_by=_INSTANCE_REFUTED,
            judge=partial(_judge_by_instance, policy=STATED),
        ),
        Claim(
            id="corollary",
            paper="The regret of PRUCB-KP is below the corollary's bound.",
            source="Appendix, the corollary for known preferences",
            rule=_INSTANCE_RULE,
            refuted_by=_INSTANCE_REFUTED,
            judge=partial(_judge_by_instance, policy=KNOWN),
        ),
        Claim(
            id="theorem-1-rates",
            paper="PRUCB-HP's regret grows no faster than √T, √K, D² and N, up to logarithms.",
            source="Theorem 1, without M, which does not depend on T",
            rule=_RATE_RULE,
            refuted_by=_RATE_REFUTED,
            judge=partial(_judge_rates, policy=PRESCRIBED),
        ),
        Claim(
            id="theorem-2-rates",
            paper="PRUCB-UP's regret grows no faster than log T, K, D² and N.",
            source="Theorem 2 and its remark",
            rule=_RATE_RULE,
            refuted_by=_RATE_REFUTED,
            judge=partial(_judge_rates, policy=STATED),
        ),
        Claim(
            id="corollary-rates",
            paper="PRUCB-KP's regret grows no faster than log T and K, and for each user anew.",
            source="Theorem 2's remark; the corollary",
            rule=_RATE_RULE,
            refuted_by=_RATE_REFUTED,
            judge=partial(_judge_rates, policy=KNOWN),
        ),
        Claim(
            id="theorem-1-says-more",
            paper="At the paper's size, Theorem 1's bound says more than that a round costs each user at most 1.",
            source="not in the paper, which gives no constants",
            rule="Confirmed if at the paper's T the bound is below N·T in all instances, partly if in more than half.",
            refuted_by="A bound above the trivial one in half of the instances.",
            judge=partial(_judge_informative, policies=(PRESCRIBED,)),
            ours=True,
        ),
        Claim(
            id="theorem-2-says-more",
            paper="At the paper's size, the bounds of Theorem 2 and of the corollary say more than that no round costs "
            "a user more than the instance's largest gap.",
            source="not in the paper, which gives no constants",
            rule="Confirmed if at the paper's T the bounds are below T times the users' largest gaps in all instances, "
            "partly if in more than half of them, else not.",
            refuted_by="Bounds above the trivial one in half of the instances.",
            judge=partial(_judge_informative, policies=(STATED, KNOWN)),
            ours=True,
        ),
    ),
    drawings=DRAWINGS,
)
