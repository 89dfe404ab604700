"""The paper's and the design's twelve policies once more, slow and plain: from a full history, by their formulas.

Nothing here reads pamo's sums, estimators or kernels. A witness is given every pull so far and answers with the arms
of the offer that the policy may pull now. It takes its random numbers, where its policy draws, from the same stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats
from pamo.streams import Stream, normal, uniform

Mask = npt.NDArray[np.bool_]

TOLERANCE = 1e-9
"""Scores nearer than this to the highest, relative to it where it is above 1, may be the highest."""


class Pull(NamedTuple):
    """One pull: by whom, of what, and all that was seen of it."""

    user: int
    arm: int
    reward: Floats
    overall: float
    stated: Floats


class Question(NamedTuple):
    """One decision to make."""

    user: int
    t: int
    offer: list[int]
    earlier: list[Pull]
    """All users' pulls of the rounds before this one."""
    settings: Mapping[str, Any]
    """The policy's hyperparameters."""
    users: int
    arms: int
    objectives: int
    horizon: int
    truth: Floats
    """The true mean preferences, (users, D)."""
    stream: Stream
    memory: dict[Any, Any]
    """Of a trial: what a witness worked out of a whole round, for those that would work it out once more."""


class Verdict(NamedTuple):
    """What may be pulled: `certain` ⊆ the arms that the policy's kernel puts highest ⊆ `possible`.

    The two differ only where rounding decides: near-ties of arms that are not alike. `scores` is None where the rule
    is a set and not a score.
    """

    scores: Floats | None
    certain: Mask
    possible: Mask
    tolerance: float = TOLERANCE

    @property
    def settled(self) -> bool:
        """Whether rounding has no say in this decision."""
        return bool((self.certain == self.possible).all())


# ---- what a history says


def pulls_of(q: Question, arm: int, *, user: int | None = None) -> list[Pull]:
    return [pull for pull in q.earlier if pull.arm == arm and user in (None, pull.user)]


def reward_mean(q: Question, arm: int) -> Floats:
    rewards = [pull.reward for pull in pulls_of(q, arm)]
    return np.mean(rewards, axis=0) if rewards else np.zeros(q.objectives)


def weights(q: Question) -> list[float]:
    """w = ω/‖r‖² for each of the user's pulls, and 0 where the reward is 0 (to a float), and so has no direction."""
    omega = q.settings["omega"] or q.objectives
    lengths = [float(pull.reward @ pull.reward) for pull in q.earlier if pull.user == q.user]
    return [omega / length if length > 1e-300 else 0.0 for length in lengths]


def gram(q: Question, ws: list[float]) -> Floats:
    """V = λI + Σ w·r·rᵀ."""
    own = [pull for pull in q.earlier if pull.user == q.user]
    total: Floats = q.settings["ridge"] * np.eye(q.objectives)
    for w, pull in zip(ws, own, strict=True):
        total = total + w * np.outer(pull.reward, pull.reward)
    return total


def regression(q: Question, ws: list[float]) -> Floats:
    """argmin_c λ‖c‖² + Σ w·(c·r − g)², as one least-squares problem in place of the normal equations."""
    own = [pull for pull in q.earlier if pull.user == q.user]
    rows = [np.sqrt(w) * pull.reward for w, pull in zip(ws, own, strict=True)]
    right = [np.sqrt(w) * pull.overall for w, pull in zip(ws, own, strict=True)]
    rows.extend(np.sqrt(q.settings["ridge"]) * np.eye(q.objectives))
    right.extend([0.0] * q.objectives)
    solution: Floats = np.linalg.lstsq(np.array(rows), np.array(right), rcond=None)[0]
    return solution


def rho(q: Question, arm: int) -> float:
    """ρ = √(log(t/α)/max{N, 1}); while t < α there is no bonus."""
    return float(np.sqrt(max(np.log(q.t / q.settings["alpha"]), 0.0) / max(len(pulls_of(q, arm)), 1)))


# ---- from scores or sets to verdicts


def alike(q: Question, i: int, j: int) -> bool:
    """Whether all that was seen of two arms is the same, so that no formula can tell them apart."""
    evidence = []
    for arm in (i, j):
        pulls = pulls_of(q, arm)
        overall = np.sum([pull.overall for pull in pulls])
        evidence.append((len(pulls), *reward_mean(q, arm), overall, len(pulls_of(q, arm, user=q.user))))
    return evidence[0] == evidence[1]


def highest(q: Question, scores: list[float]) -> Verdict:
    values = np.array(scores)
    possible = values >= values.max() - TOLERANCE * max(1.0, abs(values.max()))
    best = [arm for arm, may in zip(q.offer, possible, strict=True) if may]
    same = all(alike(q, best[0], other) for other in best)
    return Verdict(values, possible if same else np.zeros_like(possible), possible)


def any_of(mask: list[bool]) -> Verdict:
    return Verdict(None, np.array(mask), np.array(mask))


def front(points: list[Floats]) -> Verdict:
    """The points that no other exceeds in every objective."""
    count = len(points)
    margins = np.array([[float(np.min(points[j] - points[i])) for j in range(count)] for i in range(count)])
    tolerance = TOLERANCE * max(1.0, float(np.max(np.abs(points))))
    np.fill_diagonal(margins, -np.inf)
    # A margin of exactly 0 is a tie in some objective, and rounding can turn it either way unless the points coincide.
    coincide = np.array([[bool(np.array_equal(points[j], points[i])) for j in range(count)] for i in range(count)])
    margins[coincide] = -np.inf
    certain, possible = (margins < -tolerance).all(axis=1), (margins <= tolerance).all(axis=1)
    return Verdict(None, np.asarray(certain), np.asarray(possible))


def unpulled_first(q: Question, *, user: int | None = None) -> Verdict | None:
    fresh = [not pulls_of(q, arm, user=user) for arm in q.offer]
    return any_of(fresh) if any(fresh) else None


# ---- the twelve


def prucb_hp(q: Question) -> Verdict:
    """Algorithm 1, and what it becomes where each arm is pulled once first."""
    first = unpulled_first(q) if q.settings["first_pulls"] else None
    if first is not None:
        return first
    own = [pull for pull in q.earlier if pull.user == q.user]
    ws = weights(q) if q.settings["weighted"] else [1.0] * len(own)
    c = regression(q, ws) if q.t > 1 else np.full(q.objectives, 1.0 / q.objectives)
    v = gram(q, ws)
    if q.settings["radius"] == "theory":
        omega, ridge = q.settings["omega"] or q.objectives, q.settings["ridge"]
        inside = omega * q.objectives * np.log((1 + omega * q.t / ridge) / q.settings["failure"])
        radius = q.settings["beta"] * (q.settings["sub_gaussian"] * np.sqrt(inside) + np.sqrt(ridge))
    else:
        radius = q.settings["beta"] * np.sqrt(q.objectives * np.log(q.t))
    scores = []
    for arm in q.offer:
        x = reward_mean(q, arm) + rho(q, arm)
        reward_bonus = q.settings["reward_bonus"] * np.abs(c).sum() * rho(q, arm)
        preference_bonus = radius * np.sqrt(x @ np.linalg.solve(v, x))
        scores.append(float(c @ reward_mean(q, arm) + reward_bonus + preference_bonus))
    return highest(q, scores)


def prucb_up(q: Question) -> Verdict:
    """Algorithm 2."""
    stated = [pull.stated for pull in q.earlier if pull.user == q.user]
    c = np.mean(stated, axis=0) if stated else np.zeros(q.objectives)
    return highest(q, [float(c @ (reward_mean(q, arm) + rho(q, arm))) for arm in q.offer])


def prucb_kp(q: Question) -> Verdict:
    """Algorithm 3."""
    return highest(q, [float(q.truth[q.user] @ (reward_mean(q, arm) + rho(q, arm))) for arm in q.offer])


def ucb_bonus(q: Question, pulls: int) -> float:
    return float(np.sqrt(2 * np.log(q.t) / pulls))


def moss_bonus(q: Question, pulls: int) -> float:
    return float(np.sqrt(max(np.log(q.horizon * q.users / (q.arms * pulls)), 0.0) / pulls))


def scalarised(bonus: Callable[[Question, int], float]) -> Callable[[Question], Verdict]:
    def witness(q: Question) -> Verdict:
        return unpulled_first(q) or highest(
            q, [float(reward_mean(q, arm).mean()) + bonus(q, len(pulls_of(q, arm))) for arm in q.offer]
        )

    return witness


def on_overall(bonus: Callable[[Question, int], float], *, own: bool = False) -> Callable[[Question], Verdict]:
    def witness(q: Question) -> Verdict:
        user = q.user if own else None
        first = unpulled_first(q, user=user)
        if first is not None:
            return first
        seen = [[pull.overall for pull in pulls_of(q, arm, user=user)] for arm in q.offer]
        return highest(q, [float(np.mean(overalls)) + bonus(q, len(overalls)) for overalls in seen])

    return witness


def pareto_ucb(q: Question) -> Verdict:
    """Drugan & Nowé (2013)."""

    def upper(arm: int) -> Floats:
        log = math.log(q.t * (q.objectives * len(q.offer)) ** 0.25)
        return reward_mean(q, arm) + math.sqrt(2 * log / len(pulls_of(q, arm)))

    return unpulled_first(q) or front([upper(arm) for arm in q.offer])


def pareto_ts(q: Question) -> Verdict:
    """Yahyaa & Manderick (2015), drawn arm by arm and objective by objective."""

    def drawn(arm: int) -> Floats:
        noise = np.array([normal(q.stream) for _ in range(q.objectives)])
        return reward_mean(q, arm) + noise * math.sqrt(1 / (4 * len(pulls_of(q, arm))))

    return unpulled_first(q) or front([drawn(arm) for arm in q.offer])


def oful(q: Question) -> Verdict:
    """The paper's variant: ε is its only exploration, and an arm never pulled has the reward mean 0."""
    if uniform(q.stream) < q.settings["epsilon"]:
        return any_of([True] * len(q.offer))
    c = regression(q, [1.0 for pull in q.earlier if pull.user == q.user])
    return highest(q, [float(c @ reward_mean(q, arm)) for arm in q.offer])


def greedy(q: Question) -> Verdict:
    first = unpulled_first(q)
    if first is not None:
        return first
    c = regression(q, weights(q))
    return highest(q, [float(c @ reward_mean(q, arm)) for arm in q.offer])


WITNESSES: dict[str, Callable[[Question], Verdict]] = {
    "prucb-hp": prucb_hp,
    "prucb-up": prucb_up,
    "prucb-kp": prucb_kp,
    "s-ucb": scalarised(ucb_bonus),
    "s-moss": scalarised(moss_bonus),
    "pareto-ucb": pareto_ucb,
    "pareto-ts": pareto_ts,
    "oful": oful,
    "ucb": on_overall(ucb_bonus),
    "moss": on_overall(moss_bonus),
    "ucb-per-user": on_overall(ucb_bonus, own=True),
    "greedy": greedy,
}
