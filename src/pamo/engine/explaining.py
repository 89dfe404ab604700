"""Puts the numbers behind a decision into words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

from pamo.contract.answers import ArmScore, ExplainedDecision, Explanation, Given
from pamo.contract.events import OVERALL, DecisionMade, Made, scores_of, together
from pamo.contract.experiments import TREATED
from pamo.engine.kernels import (
    GREEDY,
    GREEDY_PREFERENCE,
    GREEDY_REWARD,
    PREFERENCE_BONUS,
    REWARD_BONUS,
    UNSEEN,
    WEIGHTS,
)
from pamo.store import Arms


def details(
    row: Sequence[float], chosen: str, ids: Sequence[str], names: Sequence[str], named: bool
) -> dict[str, Any] | None:
    """Return what the journal keeps of the numbers behind a decision: plain, and without infinities.

    Means are those of the arms, from 0 to 1; an arm's value is weights times means. A bonus of None is infinite. names:
    of the objectives; named: whether they are kept as well, since they are others than those the journal began with.
    """
    objectives = len(names)
    first = WEIGHTS + objectives
    weights = row[WEIGHTS:first]
    if weights[0] != weights[0]:  # NaN: the policy forms no preference
        return None
    bonus = row[REWARD_BONUS]
    kept: dict[str, Any] = {
        "preference": weights,
        "means": row[first : first + objectives],
        "reward_bonus": bonus if isfinite(bonus) else None,
        "preference_bonus": row[PREFERENCE_BONUS],
    }
    if named:
        kept["objectives"] = list(names)
    if row[UNSEEN] > 0.0:
        kept["foretold"] = [name for d, name in enumerate(names) if int(row[UNSEEN]) >> d & 1]
    greedy = int(row[GREEDY])
    if greedy < 0:
        kept["nothing_seen"] = True
    elif ids[greedy] != chosen:
        bonus = row[GREEDY_REWARD]
        kept["without_exploration"] = {
            "arm": ids[greedy],
            "means": row[first + objectives : first + 2 * objectives],
            "reward_bonus": bonus if isfinite(bonus) else None,
            "preference_bonus": row[GREEDY_PREFERENCE],
        }
    return kept


def names_in(decision: DecisionMade, table: Arms) -> dict[str, str]:
    """Return the names of the arms that an explanation is about."""
    arms = [decision.arms[0]]
    if decision.explanation is not None and "without_exploration" in decision.explanation:
        arms.append(decision.explanation["without_exploration"]["arm"])
    return {arm: table.names[table.rows[arm]] for arm in arms if arm in table.rows}


Like = Callable[[str, Mapping[str, float]], Sequence[str]]
"""What of an arm's features speaks for it, to somebody with these weights: in words."""


def explained(
    decision: DecisionMade, names: Sequence[str], arm_names: Mapping[str, str], like: Like | None = None
) -> Explanation:
    """Return the explanation of a decision from what the journal keeps of it.

    names: of the objectives that the journal began with; a decision by others has kept theirs.
    """
    kept, arm = decision.explanation, decision.arms[0]

    def called(one: str) -> str:
        name = arm_names.get(one, one)
        return one if name == one else f"{one} ({name})"

    group = ""
    if decision.group is not None and decision.group[1] != TREATED:
        group = f"its user is in the group {decision.group[1]!r} of the experiment {decision.group[0]!r}"
    if kept is None:
        why = "the numbers behind it are not kept, since its user was erased"
        if group:
            why = f"{group}: {decision.policy}"
        elif decision.user is not None:
            why = f"{decision.policy} scores arms without weighing objectives by the user's preference"
        return Explanation(decision.id, decision.policy, {}, None, None, f"{called(arm)} was chosen; {why}.")
    weights = dict(zip(kept.get("objectives", names), kept["preference"], strict=True))
    chosen = _score(arm, kept, weights)
    other = kept.get("without_exploration")
    best: ArmScore | None = chosen if other is None else _score(other["arm"], other, weights)
    if math.isinf(chosen.reward_bonus) or "nothing_seen" in kept:
        # Not "has not been tried": there may be ratings of it in part, by which a policy cannot rank it yet.
        sentence = f"{called(arm)} was chosen because no complete feedback to it has come yet"
        if other is None:
            best = None  # there is none to any arm
        elif best is not None:
            sentence += f"; of those that have some, {called(best.arm)} is worth most to this user ({best.value:.3g})"
    elif best is None or best is chosen:
        most = max(chosen.values, key=lambda name: chosen.values[name])
        sentence = (
            f"{called(arm)} was chosen because it is worth most to this user: {chosen.value:.3g}, "
            f"of which {chosen.values[most]:.3g} for {most}"
        )
    else:
        worth = f"it is worth {chosen.value:.3g} to this user by what is known, and {called(best.arm)} {best.value:.3g}"
        why = _why(chosen, best)
        if why:
            sentence = (
                f"{called(arm)} was chosen to learn more: {worth}, but {why}: its bonuses are "
                f"{chosen.reward_bonus:.3g} (rewards) and {chosen.preference_bonus:.3g} (preference), against "
                f"{best.reward_bonus:.3g} and {best.preference_bonus:.3g}"
            )
        else:
            sentence = f"{called(arm)} was chosen by chance, as this policy tries others now and then: {worth}"
    known = {} if decision.given is None else decision.given.get(arm, {})
    if known:
        told = ", ".join(f"{name} {value:g}" for name, value in known.items())
        sentence += f"; known beforehand, and not foretold: {told}"
    foretold = kept.get("foretold", ())
    if foretold and not math.isinf(chosen.reward_bonus):
        if len(foretold) + len(known) < len(weights):
            sentence += f"; never seen of it, and foretold: {', '.join(foretold)}"
        elif alike := [] if like is None else like(arm, weights):
            sentence += f"; it is new, but like others with {' and '.join(alike)}"
        else:
            sentence += "; it is new, and taken to be like others"
    if group:
        sentence += f"; {group}"
    sources = {name: "given" if name in known else "foretold" if name in foretold else "seen" for name in weights}
    return Explanation(decision.id, decision.policy, weights, chosen, best, f"{sentence}.", sources)


def explained_decision(
    one: Made,
    names: Sequence[str],
    began: Sequence[str],
    arm_names: Mapping[str, str],
    like: Like,
    *,
    awaited: bool = True,
) -> ExplainedDecision:
    """Return a decision with its explanation and its feedback.

    names, began: of the objectives now, and as the journal began. awaited: whether more feedback may come.
    """
    made, rated = one.decision, together(one.parts)
    arm = made.arms[0]
    told = [Given(part.at, part.arm, part.rewards, part.overall, part.preference) for part in rated.values()]
    told.sort(key=lambda given: given.arm != arm)
    known: set[str] = set() if made.given is None else set(made.given.get(arm, ()))
    if arm in rated:
        known |= scores_of(rated[arm]).keys()
    missing = tuple(name for name in (*names, OVERALL) if awaited and name not in known)
    why = explained(made, began, arm_names, like)
    return ExplainedDecision(
        made.id,
        made.user,
        arm,
        made.arms,
        made.propensity,
        made.policy,
        made.at,
        why,
        told[0] if told else None,
        told[1:],
        missing,
    )


def _why(chosen: ArmScore, best: ArmScore) -> str:
    """Return what speaks for an arm that is worth less: a bonus, where it has the larger one."""
    reasons = []
    if chosen.reward_bonus > max(best.reward_bonus, 0.0):
        reasons.append("less is known of it")
    if chosen.preference_bonus > max(best.preference_bonus, 0.0):
        reasons.append("it would tell more of what this user cares about")
    return " and ".join(reasons)


def _score(arm: str, kept: Mapping[str, Any], weights: Mapping[str, float]) -> ArmScore:
    values = {name: weight * mean for (name, weight), mean in zip(weights.items(), kept["means"], strict=True)}
    return ArmScore(arm, values, kept["reward_bonus"], kept["preference_bonus"])
