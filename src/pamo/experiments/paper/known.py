"""Study 10, `known`: Algorithm 3 as its analysis has it, the preference of each round being given before the choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pamo import environments
from pamo.arrays import Floats
from pamo.environments import Environment
from pamo.experiments.figures import draw_rows, label, legend_above, note, panels
from pamo.experiments.grid import beats, exponent, mean_final
from pamo.experiments.paper.regret import cell, cells_of, describe_finals, twin_of_finals
from pamo.experiments.study import Claim, Drawing, Finding, Study, Verdict, judge_share
from pamo.experiments.tables import Table, Tables
from pamo.policies import create
from pamo.progress import Progress
from pamo.simulation.plot import BLUE, DASHED, VERMILION, Style
from pamo.simulation.result import band_of
from pamo.simulation.stepping import Player
from pamo.theory import Gaps, prucb_kp_bound

GIVEN, MEAN = "each round's preference", "its mean alone"
_STYLES: dict[str, Style] = {GIVEN: (BLUE, "-"), MEAN: (VERMILION, DASHED)}
CELLS = [cell(2, 5, 3, "predefined", (GIVEN, MEAN)), cell(2, 5, 3, "random", (GIVEN, MEAN))]
_MARKS = 40


def play(environment: Environment, told: str, rounds: int, seed: int, trial: int) -> tuple[Floats, float, float]:
    """Return PRUCB-KP's regret by rounds, held against c_t; the corollary's bound; and what is trivial.

    The gaps of the corollary are the least and the largest over all rounds, of c_t·(μ_best − μ_i).
    """
    episode, draw = environment.start(seed, trial), np.random.default_rng([seed, trial])
    player = Player(create("prucb-kp"), environment, rounds=rounds, known=episode.preferences, seed=seed, trial=trial)
    spread = float(np.sqrt(environment.settings["preference_variance"]))
    regret, shape = np.zeros(rounds), (environment.users, environment.arm_count)
    low, high, longest, trivial = np.full(shape, np.inf), np.zeros(shape), 0.0, 0.0
    while episode.round <= rounds:
        t, user, offer = episode.round, episode.user, episode.offer
        preference = draw.normal(episode.preferences[user], spread)
        arm = player.choose(user, offer, preference if told == GIVEN else None)
        values = episode.means[offer] @ preference
        short = values.max() - values
        regret[t - 1] += short[offer == arm][0]
        low[user, offer] = np.minimum(low[user, offer], np.where(short > 0, short, np.inf))
        high[user, offer] = np.maximum(high[user, offer], short)
        longest, trivial = max(longest, float(np.abs(preference).sum())), trivial + float(short.max())
        pulled = episode.pull(arm)
        player.learn(user, arm, pulled.reward, pulled.overall)
    gaps = Gaps(low=low, high=high, spread=high, objectives=environment.objectives, norm=longest)
    return regret.cumsum(), float(prucb_kp_bound(rounds, gaps=gaps, delta=longest).total), trivial


def _measure(settings: Mapping[str, Any], seed: int, progress: Progress) -> Tables:
    curves, finals, bounds = [], [], []
    rounds, trials = settings["rounds"], settings["trials"]
    marks = np.unique(np.linspace(rounds / _MARKS, rounds, _MARKS).astype(np.int64))
    for one in settings["cells"]:
        environment = environments.from_settings(dict(one["environment"]))
        for told in one["policies"]:
            here = {"cell": one["cell"], "policy": told}
            played = [play(environment, told, rounds, seed, trial) for trial in range(trials)]
            regret = np.array([curve for curve, _, _ in played])[:, marks - 1]
            mean, low, high = band_of(regret)
            curves.append(Table(here | {"trials": trials, "round": marks, "mean": mean, "low": low, "high": high}))
            half = regret[:, int(np.searchsorted(marks, rounds / 2))]
            finals.append(Table(here | {"trial": np.arange(trials), "regret": regret[:, -1], "half": half}))
            if told == GIVEN:
                columns = {"bound": [bound for _, bound, _ in played], "trivial": [most for _, _, most in played]}
                bounds.append(Table(here | columns | {"regret": regret[:, -1]}))
            progress(1.0 / len(settings["cells"]) / len(one["policies"]))
    return {"curves": Table.stack(curves), "finals": Table.stack(finals), "bounds": Table.stack(bounds)}


def _judge_sublinear(tables: Tables) -> Finding:
    powers = [exponent(tables, name, GIVEN) for name in cells_of(tables)]
    return Finding(
        judge_share(sum(power < 0.9 for power in powers), len(powers)),
        f"Late growth of regret like t^p, with p from {min(powers):.2f} to {max(powers):.2f} across settings.",
        {"lowest": min(powers), "highest": max(powers)},
    )


def _judge_better(tables: Tables) -> Finding:
    names = cells_of(tables)
    ratios = [mean_final(tables, name, GIVEN) / mean_final(tables, name, MEAN) for name in names]
    return Finding(
        judge_share(sum(beats(tables, name, GIVEN, MEAN) for name in names), len(names)),
        f"Told each round's preference it has {min(ratios):.2f} to {max(ratios):.2f} times the regret.",
        {"lowest": min(ratios), "highest": max(ratios)},
    )


def _judge_bound(tables: Tables) -> Finding:
    rows = tables["bounds"]
    could, held = rows["bound"] < rows["trivial"], rows["regret"] <= rows["bound"]
    verdict = Verdict.CANNOT if not could.any() else judge_share(int(held[could].sum()), int(could.sum()))
    ratio = float(np.median(rows["bound"] / rows["trivial"]))
    return Finding(
        verdict if held.all() else Verdict.NOT,
        f"Below the bound in {held.sum()} of {len(rows)} trials. The least gap is the least over all rounds, and "
        "preferences that vary make that as small as one likes: the bound is "
        f"{ratio:.1e} times what the worst arm in every round would cost (median), and below that in {could.sum()}.",
        {"held": int(held.sum()), "could fail": int(could.sum()), "bound/trivial": ratio},
    )


def _draw(tables: Tables) -> Any:
    names = cells_of(tables)
    figure, axes = panels(len(names), columns=2, height=3.2)
    for each, name in zip(axes, names, strict=True):
        for told, style in _STYLES.items():
            draw_rows(each, tables["curves"].where(cell=name, policy=told), "round", style)
        label(each, name, "round t", "regret against cₜ, all users")
    legend_above(figure, [f"told {told}" for told in _STYLES], list(_STYLES.values()))
    note(figure, f"PRUCB-KP, the same {len(set(tables['finals']['trial'].tolist()))} trials for both; mean, 95 % band")
    return figure


STUDY = Study(
    name="known",
    title="Algorithm 3 with each round's preference",
    about="The other studies run PRUCB-KP with the mean preference, as the paper's experiments do (GT). The analysis "
    "of Algorithm 3 is about the preference of each round, c_t, given before the choice, and regret is then held "
    "against the best arm for c_t. PRUCB-KP told c_t, and for comparison told the mean alone, step by step.",
    source="Appendix, “Known preference as a special case”",
    settings={"cells": CELLS, "rounds": 500, "trials": 10},
    quick={"cells": CELLS[:1], "rounds": 200, "trials": 3},
    weight=6.0,
    measure=_measure,
    claims=(
        Claim(
            id="given-sublinear",
            paper="With the preference of each round given, Algorithm 3 has sub-linear regret.",
            source="Corollary in the appendix",
            rule="The mean regret a round in the third and in the last quarter give p of growth like t^p; below 0.9 "
            "counts as sub-linear. Confirmed if in all settings, partly if in most.",
            refuted_by="p of 0.9 or more in half of the settings.",
            judge=_judge_sublinear,
        ),
        Claim(
            id="given-is-better",
            paper="Who is told each round's preference loses less against it than who knows the mean alone.",
            source="not in the paper, whose experiments know the mean",
            rule="Confirmed if the 95 % interval of the paired difference lies below zero in all settings, partly if "
            "in most.",
            refuted_by="No less regret in half of the settings.",
            judge=_judge_better,
            ours=True,
        ),
        Claim(
            id="given-bound",
            paper="The regret is below the corollary's bound, its gaps being those of c_t over all rounds.",
            source="Corollary in the appendix",
            rule="Confirmed if the regret is below its trial's bound wherever that is below what the worst arm in "
            "every round would cost; if that is nowhere, it cannot fail here.",
            refuted_by="A trial above its bound.",
            judge=_judge_bound,
        ),
    ),
    drawings=(
        Drawing(
            "known",
            "Regret against each round's preference",
            _draw,
            lambda tables: describe_finals(tables, cells_of(tables), (GIVEN, MEAN)),
            lambda tables: twin_of_finals(tables, cells_of(tables), (GIVEN, MEAN)),
        ),
    ),
)
