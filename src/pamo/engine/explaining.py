"""Puts the numbers behind a decision into words, and tells what is known of the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pamo.compiling import dimensions
from pamo.engine.answers import ArmScore, Estimate, Explanation, FrontArm
from pamo.engine.kernels import (
    GREEDY,
    GREEDY_PREFERENCE,
    GREEDY_REWARD,
    PREFERENCE_BONUS,
    REWARD_BONUS,
    WEIGHTS,
)
from pamo.estimators import reward_means
from pamo.pareto import mark_front
from pamo.store import Arms, DecisionMade

NORMAL_95 = 1.959963984540054
"""Standard deviations to either side that hold 95 % of a normal distribution."""
PRIOR_PULLS = 10.0
"""How many pulls' worth the variance that all arms have in common counts for one of them, as in the policies."""
DRAWS = 2000


def details(row: Sequence[float], chosen: str, ids: Sequence[str], objectives: int) -> dict[str, Any] | None:
    """Return what the journal keeps of the numbers behind a decision: plain, and without infinities.

    Means are those of the arms, from 0 to 1; an arm's value is weights times means. A bonus of None is infinite.
    """
    first = WEIGHTS + objectives
    weights = row[WEIGHTS:first]
    if weights[0] != weights[0]:  # NaN: the policy forms no preference
        return None
    bonus = row[REWARD_BONUS]
    kept: dict[str, Any] = {
        "preference": weights,
        "means": row[first : first + objectives],
        "reward_bonus": bonus if bonus < math.inf else None,
        "preference_bonus": row[PREFERENCE_BONUS],
    }
    greedy = int(row[GREEDY])
    if greedy >= 0 and ids[greedy] != chosen:
        bonus = row[GREEDY_REWARD]
        kept["without_exploration"] = {
            "arm": ids[greedy],
            "means": row[first + objectives : first + 2 * objectives],
            "reward_bonus": bonus if bonus < math.inf else None,
            "preference_bonus": row[GREEDY_PREFERENCE],
        }
    return kept


def explained(decision: DecisionMade, names: Sequence[str], arm_names: Mapping[str, str]) -> Explanation:
    """Return the explanation of a decision from what the journal keeps of it."""
    kept, arm = decision.explanation, decision.arms[0]

    def called(one: str) -> str:
        name = arm_names.get(one, one)
        return one if name == one else f"{one} ({name})"

    if kept is None:
        why = "the numbers behind it are not kept, since its user was erased"
        if decision.user is not None:
            why = f"{decision.policy} scores arms without weighing objectives by the user's preference"
        return Explanation(decision.id, decision.policy, {}, None, None, f"{called(arm)} was chosen; {why}.")
    weights = dict(zip(names, kept["preference"], strict=True))
    chosen = _score(arm, kept, weights)
    other = kept.get("without_exploration")
    best = _score(other["arm"], other, weights) if other is not None else chosen
    if math.isinf(chosen.reward_bonus):
        sentence = f"{called(arm)} was chosen because it has not been tried yet"
        if other is not None:
            sentence += f"; of the arms that have, {called(best.arm)} is worth most to this user ({best.value:.3g})"
        else:
            best = None  # type: ignore[assignment]  # nothing was tried
    elif other is None:
        most = max(chosen.values, key=lambda name: chosen.values[name])
        sentence = (
            f"{called(arm)} was chosen because it is worth most to this user: {chosen.value:.3g}, "
            f"of which {chosen.values[most]:.3g} for {most}"
        )
    else:
        sentence = (
            f"{called(arm)} was chosen to learn more: it is worth {chosen.value:.3g} to this user by what is known, "
            f"and {called(best.arm)} {best.value:.3g}, but less is known of it: its bonuses are "
            f"{chosen.reward_bonus:.3g} (rewards) and {chosen.preference_bonus:.3g} (preference), against "
            f"{best.reward_bonus:.3g} and {best.preference_bonus:.3g}"
        )
    return Explanation(decision.id, decision.policy, weights, chosen, best, f"{sentence}.")


def _score(arm: str, kept: Mapping[str, Any], weights: Mapping[str, float]) -> ArmScore:
    values = {name: weight * mean for (name, weight), mean in zip(weights.items(), kept["means"], strict=True)}
    bonus = kept["reward_bonus"]
    return ArmScore(arm, values, math.inf if bonus is None else bonus, kept["preference_bonus"])


def front_of(table: Arms, names: Sequence[str]) -> list[FrontArm]:
    """Return the active arms, those on the Pareto front first.

    Means are taken to vary normally around what was seen, as much as the arm's rewards do (with ten pulls' worth of
    what all arms have in common); the confidence is the share of draws of all means in which the arm is on the front.
    """
    sums = table.statistics
    means, counts = reward_means(sums), sums.objective_count
    scatter = np.maximum(sums.objective_square - counts * means**2, 0.0)
    common = scatter.sum(axis=0) / np.maximum(np.maximum(counts - 1.0, 0.0).sum(axis=0), 1.0)
    variance = (scatter + PRIOR_PULLS * common) / (np.maximum(counts - 1.0, 0.0) + PRIOR_PULLS)
    errors = np.sqrt(variance / np.maximum(counts, 1.0))
    active = np.flatnonzero(table.active)
    tried = active[(counts[active] > 0).all(axis=1)]
    on_front, confidence = dict.fromkeys(active.tolist(), False), dict.fromkeys(active.tolist(), None)
    if len(tried):
        dims, marks = dimensions(len(names)), np.empty(len(tried))
        mark_front(np.ascontiguousarray(means[tried]), marks, dims)
        on_front.update(zip(tried.tolist(), (marks > 0).tolist(), strict=True))
        numbers, total = np.random.default_rng(0), np.zeros(len(tried))  # a fixed seed: the same sums, the same answer
        for _ in range(DRAWS):
            mark_front(means[tried] + errors[tried] * numbers.standard_normal((len(tried), len(names))), marks, dims)
            total += marks
        confidence.update(zip(tried.tolist(), (total / DRAWS).tolist(), strict=True))
    found = [
        FrontArm(
            table.ids[i],
            table.names[i],
            int(sums.pulls[i]),
            on_front[i],
            confidence[i],
            {
                name: Estimate(
                    float(means[i, d]),
                    float(means[i, d] - NORMAL_95 * errors[i, d]),
                    float(means[i, d] + NORMAL_95 * errors[i, d]),
                )
                for d, name in enumerate(names)
                if counts[i, d] > 0
            },
        )
        for i in active.tolist()
    ]
    return sorted(found, key=lambda one: (not one.on_front, -(one.confidence or 0.0)))
