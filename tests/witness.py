"""The policies of the paper, the design and the families once more, slow and plain: from a full history, by formula.

Nothing here reads pamo's sums, estimators or kernels. A witness is given every pull so far and answers with the arms
of the offer that the policy may pull now. It takes its random numbers, where its policy draws, from the same stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from statistics import NormalDist
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


# ---- those that keep rows of their own: what counts of a history, and how much


def weighed(q: Question, pulls: list[tuple[float, Pull]], arm: int) -> tuple[float, Floats, float]:
    """N, Σr and Σg of an arm, with a weight for each pull."""
    own = [(weight, pull) for weight, pull in pulls if pull.arm == arm]
    rewards: Floats = np.sum([weight * pull.reward for weight, pull in own], axis=0) if own else np.zeros(q.objectives)
    return sum(weight for weight, _ in own), rewards, sum(weight * pull.overall for weight, pull in own)


def newest(q: Question, pulls: list[Pull], each: int) -> list[tuple[float, Pull]]:
    """Those in the window, with weight 1: `each` pulls make a round."""
    return [(1.0, pull) for pull in pulls[-int(q.settings["window"]) * each :]]


def discounted(q: Question, pulls: list[Pull], each: int) -> list[tuple[float, Pull]]:
    """All of them, with γ to the power of the rounds since."""
    rounds = len(pulls) // each
    return [(q.settings["discount"] ** (rounds - 1 - place // each), pull) for place, pull in enumerate(pulls)]


def changing_ucb(counting: Callable[..., list[tuple[float, Pull]]]) -> Callable[[Question], Verdict]:
    def witness(q: Question) -> Verdict:
        pulls = counting(q, [pull for pull in q.earlier if pull.user == q.user], 1)
        rounds = 1 + sum(weight for weight, _ in pulls) if "discount" in q.settings else min(q.t, q.settings["window"])
        seen = [weighed(q, pulls, arm) for arm in q.offer]
        if any(count < 1e-12 for count, _, _ in seen):
            return any_of([count < 1e-12 for count, _, _ in seen])
        return highest(q, [total / count + math.sqrt(2 * math.log(rounds) / count) for count, _, total in seen])

    return witness


def changing_pareto(counting: Callable[..., list[tuple[float, Pull]]]) -> Callable[[Question], Verdict]:
    def witness(q: Question) -> Verdict:
        pulls = counting(q, q.earlier, q.users)
        weights_of_all = sum(weight for weight, _ in pulls) / q.users
        rounds = 1 + weights_of_all if "discount" in q.settings else min(q.t, q.settings["window"])
        seen = [weighed(q, pulls, arm) for arm in q.offer]
        if any(count < 1e-12 for count, _, _ in seen):
            return any_of([count < 1e-12 for count, _, _ in seen])
        log = math.log(rounds * (q.objectives * len(q.offer)) ** 0.25)
        return front([rewards / count + math.sqrt(2 * log / count) for count, rewards, _ in seen])

    return witness


def exp3(q: Question) -> Verdict:
    """Auer et al. (2002): the weights from the user's pulls, each with the chance that it had."""
    mix, weights_of = q.settings["mix"], np.zeros(q.arms)
    own = [pull for pull in q.earlier if pull.user == q.user]
    for place, pull in enumerate(own):
        chance, offered = q.memory[q.user, place + 1]
        given = [before.overall for before in own[: place + 1]]
        if max(given) > min(given):
            scaled = (pull.overall - min(given)) / (max(given) - min(given))
            weights_of[pull.arm] += mix / offered * scaled / chance[pull.arm]
    of_offer = np.exp(weights_of[q.offer] - weights_of[q.offer].max())
    chances = (1 - mix) * of_offer / of_offer.sum() + mix / len(q.offer)
    q.memory[q.user, q.t] = dict(zip(q.offer, chances, strict=True)), len(q.offer)
    drawn, edges = uniform(q.stream), np.cumsum(chances)
    place = min(int(np.searchsorted(edges, drawn, side="right")), len(q.offer) - 1)
    near = np.abs(edges - drawn).min() < TOLERANCE
    chosen = np.arange(len(q.offer)) == place
    return Verdict(None, np.zeros_like(chosen) if near else chosen, np.ones_like(chosen) if near else chosen)


# ---- those of the cited families


def pareto_kg(q: Question) -> Verdict:
    """Yahyaa, Drugan & Manderick (2014), with the normal distribution of the standard library."""
    first = unpulled_first(q)
    if first is not None:
        return first
    normal_law, left = NormalDist(), max(q.horizon - q.t, 0) * q.objectives * len(q.offer)
    means, points = [reward_mean(q, arm) for arm in q.offer], []
    for place, arm in enumerate(q.offer):
        others = [mean for other, mean in enumerate(means) if other != place]
        pulls, point = len(pulls_of(q, arm)), np.array(means[place])
        sigma = q.settings["noise"] * math.sqrt(1 / pulls - 1 / (pulls + 1))
        for d in range(q.objectives if others else 0):
            z = -abs(means[place][d] - max(mean[d] for mean in others)) / sigma
            point[d] += left * sigma * (normal_law.pdf(z) + z * normal_law.cdf(z))
        points.append(point)
    return front(points)


def lex(q: Question) -> Verdict:
    """Hüyük & Tekin (2021), the sets: certain and possible differ where an interval's end is rounding's to place."""
    first = unpulled_first(q)
    if first is not None:
        return first
    counts = {arm: len(pulls_of(q, arm)) for arm in q.offer}
    log = math.log(q.t * (q.objectives * len(q.offer)) ** 0.25)
    wide = {arm: math.sqrt(q.settings["scale"] * log / counts[arm]) for arm in q.offer}
    left, doubtful = list(q.offer), False
    for d in range(q.objectives):
        best = max(reward_mean(q, arm)[d] - wide[arm] for arm in left)
        margins = {arm: reward_mean(q, arm)[d] + wide[arm] - best + q.settings["near"] for arm in left}
        doubtful |= any(abs(margin) < TOLERANCE for margin in margins.values())
        left = [arm for arm in left if margins[arm] >= 0]
        doubtful |= any(abs(wide[arm] - q.settings["near"]) < TOLERANCE for arm in left)
        if len(left) == 1 or max(wide[arm] for arm in left) > q.settings["near"]:
            break
    chosen = np.array([arm in left and counts[arm] == min(counts[one] for one in left) for arm in q.offer])
    return Verdict(None, np.zeros_like(chosen), np.ones_like(chosen)) if doubtful else any_of(chosen.tolist())


def mo_ogde(q: Question) -> Verdict:
    """Busa-Fekete et al. (2017): the user's mix is what earlier steps made of it, so they are kept."""
    first = unpulled_first(q)
    if first is not None:
        return first
    mix = q.memory.setdefault(("mix", q.user), np.zeros(q.arms))
    shares = mix[q.offer] / mix[q.offer].sum() if mix[q.offer].sum() > 0 else np.full(len(q.offer), 1 / len(q.offer))
    means = np.array([reward_mean(q, arm) for arm in q.offer])
    mixed = shares @ means
    weights_of = 0.5 ** np.argsort(np.argsort(mixed, kind="stable"), kind="stable")
    step = q.settings["step"] / math.sqrt(q.t)
    wanted, least = shares + step * means @ weights_of, min(step, 1.0) * 0.1 / len(q.offer)
    low, high = wanted.min() - 2.0, wanted.max()  # the shift after which what is above the least adds up to 1
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(wanted - middle, least).sum() > 1 else (low, middle)
    shares = np.maximum(wanted - high, least)
    mix[q.offer] = shares
    drawn, edges = uniform(q.stream), np.cumsum(shares)
    chosen = np.arange(len(q.offer)) == min(int(np.searchsorted(edges, drawn, side="right")), len(q.offer) - 1)
    near = np.abs(edges - drawn).min() < TOLERANCE or np.abs(np.diff(np.sort(mixed))).min(initial=1.0) < TOLERANCE
    return Verdict(None, np.zeros_like(chosen) if near else chosen, np.ones_like(chosen) if near else chosen)


def pareto_ts_cov(q: Question) -> Verdict:
    """Kone, Jourdan & Kaufmann (2024), with the covariance of all arms' rewards around their means."""
    first = unpulled_first(q)
    if first is not None:
        return first
    kappa, seen = q.settings["prior_pulls"], sorted({pull.arm for pull in q.earlier})
    apart = [pull.reward - reward_mean(q, pull.arm) for pull in q.earlier]
    scatter = np.array(apart).T @ np.array(apart)
    if not q.settings["together"]:
        scatter = np.diag(np.diag(scatter))
    sigma = (scatter + kappa * np.eye(q.objectives) / 4) / (len(q.earlier) - len(seen) + kappa)
    factor, points = np.linalg.cholesky(sigma), []
    for arm in q.offer:
        noise = np.array([normal(q.stream) for _ in range(q.objectives)])
        points.append(reward_mean(q, arm) + factor @ noise / math.sqrt(len(pulls_of(q, arm))))
    return front(points)


def pareto_linucb(q: Question) -> Verdict:
    """Lu, Wang, Hu & Zhang (2019): a ridge of an arm's rewards on the contexts, which are the users' preferences."""
    context, points = q.truth[q.user], []
    for arm in q.offer:
        pulls = pulls_of(q, arm)
        contexts = np.array([q.truth[pull.user] for pull in pulls]).reshape(-1, q.objectives)
        rewards = np.array([pull.reward for pull in pulls]).reshape(-1, q.objectives)
        gram_of = contexts.T @ contexts + q.settings["ridge"] * np.eye(q.objectives)
        width = q.settings["width"] * math.sqrt(context @ np.linalg.solve(gram_of, context))
        points.append(np.linalg.solve(gram_of, contexts.T @ rewards).T @ context + width)
    return front(points)


def its(q: Question) -> Verdict:
    """Roijers, Zintgraf & Nowé (2017): of the user's pulls those count that the user was asked about."""
    first = unpulled_first(q)
    q.memory["asked", q.user, q.t] = True
    if first is not None:
        return first
    own = [pull for pull in q.earlier if pull.user == q.user]
    asked = [pull for place, pull in enumerate(own) if q.memory["asked", q.user, place + 1]]
    prior, v = np.full(q.objectives, 1 / q.objectives), q.settings["ridge"] * np.eye(q.objectives)
    b = v @ prior
    for pull in asked:
        length = float(pull.reward @ pull.reward)
        if length > 1e-300:
            v = v + np.outer(pull.reward, pull.reward) / length
            b = b + pull.reward * pull.overall / length
    factor, draws = np.linalg.cholesky(np.linalg.inv(v)), []
    for _ in range(2):
        z = np.array([normal(q.stream) for _ in range(q.objectives)])
        c = np.linalg.solve(v, b) + q.settings["preference_noise"] * factor @ z
        spread = q.settings["noise"] * float(np.linalg.norm(c))
        draws.append(
            [c @ reward_mean(q, arm) + spread * normal(q.stream) / math.sqrt(len(pulls_of(q, arm))) for arm in q.offer]
        )
    q.memory["asked", q.user, q.t] = q.settings["always"] or int(np.argmax(draws[0])) != int(np.argmax(draws[1]))
    return highest(q, draws[1])


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
    "sw-ucb": changing_ucb(newest),
    "d-ucb": changing_ucb(discounted),
    "sw-pareto-ucb": changing_pareto(newest),
    "d-pareto-ucb": changing_pareto(discounted),
    "exp3": exp3,
    "pareto-kg": pareto_kg,
    "mo-ogde": mo_ogde,
    "lex": lex,
    "pareto-ts-cov": pareto_ts_cov,
    "pareto-linucb": pareto_linucb,
    "its": its,
}
