"""The policies that read the spread once more, slow and plain, and the prior that their users share.

From full histories, in whole matrices, by the formulas in the docstrings of `pamo.policies.variance` and
`pamo.priors`, of which nothing is called here. A user's bias is one more coordinate of the preference, that of a
constant 1 in the reward; in pamo it is integrated out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from pamo.arrays import Floats
from pamo.streams import gamma, normal
from tests.witness import TOLERANCE, Pull, Question, Verdict, pulls_of, reward_mean


class Rounds(NamedTuple):
    """One user's rounds: what the regression is of."""

    reward: Floats
    """(rounds, D)."""
    overall: Floats
    """(rounds,)."""

    @property
    def lengths(self) -> Floats:
        return np.asarray(np.sum(self.reward**2, axis=1))

    @property
    def inverse_lengths(self) -> Floats:
        """1/‖r‖², and 0 where the reward is 0 (to a float), and so has no direction."""
        known = self.lengths > 1e-300
        return np.where(known, 1.0 / np.where(known, self.lengths, 1.0), 0.0)


class Prior(NamedTuple):
    """What users have in common: m, τ² and σ² (as λ = σ²/τ²), the bias's mean and strength, and the two weights."""

    mean: Floats
    ridge: float
    noise: float
    plain: float
    paper: float
    bias_mean: float = 0.0
    bias_ridge: float | None = None
    """None where users have no bias."""
    prior_rounds: float = 3.0
    phi: float = math.nan
    signal: float = 1.0
    """The most that Σŵg² was of the noise while it was fitted: rounding of the one is seen in the other."""

    def weights(self, rounds: Rounds) -> Floats:
        """ŵ(r)."""
        return self.plain + self.paper * rounds.inverse_lengths


class Belief(NamedTuple):
    """What one user's rounds and the prior say of the user: the whole posterior, the bias first where there is one."""

    center: Floats
    factor: Floats
    """R, upper triangular: the posterior's precision is RᵀR/σ²."""
    squares: float
    """The least of Σŵ(g − b − c·r)² + λ‖c − m‖² + λ_b(b − b̄)²."""
    biased: bool

    @property
    def preference(self) -> Floats:
        return self.center[int(self.biased) :]

    @property
    def bias(self) -> float:
        return float(self.center[0]) if self.biased else 0.0

    @property
    def gram_factor(self) -> Floats:
        """Of V, with the bias integrated out: it comes first, so that it is the factor's other rows and columns."""
        return self.factor[int(self.biased) :, int(self.biased) :]

    @property
    def variances(self) -> Floats:
        """The diagonal of the posterior's covariance over σ², the bias's first where there is one."""
        inverse = np.linalg.inv(self.factor)
        return np.asarray(np.sum(inverse**2, axis=1))

    def length(self, x: Floats) -> float:
        """‖x‖ in V⁻¹."""
        return float(np.linalg.norm(np.linalg.solve(self.gram_factor.T, x)))

    def draw(self, z: Floats) -> Floats:
        """Lz, L lower triangular with V⁻¹ = LLᵀ."""
        upper = np.linalg.qr(np.linalg.inv(self.gram_factor).T)[1]
        return np.asarray((upper.T * np.sign(np.diag(upper))) @ z)


def rounds_of(pulls: Sequence[Pull], user: int, objectives: int) -> Rounds:
    own = [pull for pull in pulls if pull.user == user]
    reward = np.array([pull.reward for pull in own]).reshape(len(own), objectives)
    return Rounds(reward, np.array([pull.overall for pull in own]))


def believe(rounds: Rounds, prior: Prior) -> Belief:
    """The ridge towards the prior, as one regression with the constant in front where there is a bias."""
    biased = prior.bias_ridge is not None
    regressors, center, strength = rounds.reward, prior.mean, np.full(len(prior.mean), prior.ridge)
    if prior.bias_ridge is not None:
        regressors = np.column_stack([np.ones(len(rounds.overall)), rounds.reward])
        center = np.concatenate([[prior.bias_mean], prior.mean])
        strength = np.concatenate([[prior.bias_ridge], strength])
    # One least-squares problem: the normal equations would square its condition number.
    root = np.sqrt(prior.weights(rounds))
    rows = np.vstack([root[:, None] * regressors, np.diag(np.sqrt(strength))])
    right = np.concatenate([root * rounds.overall, np.sqrt(strength) * center])
    orthogonal, factor = np.linalg.qr(rows)
    solution = np.linalg.solve(factor, orthogonal.T @ right)
    return Belief(solution, factor, float(np.sum((right - rows @ solution) ** 2)), biased)


def non_negative(belief: Belief) -> Floats:
    """The c ≥ 0 nearest to ĉ in V."""
    nearest: Floats = nnls(belief.gram_factor, belief.gram_factor @ belief.preference)[0]
    return nearest


def fit(users: Sequence[Rounds], objectives: int, *, bias: bool, elasticity: float | None) -> Prior | None:
    """Ten of Newton's and MacKay's steps over all users; None where no round says anything."""
    lengths = np.concatenate([rounds.lengths for rounds in users])
    inverses = np.concatenate([rounds.inverse_lengths for rounds in users])
    count, directed = len(lengths), int(np.sum(inverses > 0.0))
    if directed == 0:
        return None
    typical = lengths.sum() / count
    phi = 0.5 if elasticity is None else elasticity
    reward = np.concatenate([rounds.reward for rounds in users])
    overall = np.concatenate([rounds.overall for rounds in users])
    # The start: all objectives weighing alike.
    w = (1.0 - phi) + phi * typical * inverses
    along = reward.sum(axis=1)
    size, total = float(np.sum(w * lengths)), float(np.sum(w * along**2))
    level = float(np.sum(w * along * overall)) / total if total > 1e-12 * size else 0.0
    squares = float(np.sum(w * overall**2))
    scale = max(squares / size, 1e-300)
    first = scale / objectives
    left = squares - level * float(np.sum(w * along * overall))
    most = max(len(rounds.overall) for rounds in users)
    least = 1e-12 * most * (1.0 + 1e-3 * most)
    around_level = max(left, least * squares + 1e-300) / count
    noise, spread = around_level, scale
    mean, bias_mean, bias_spread = np.full(objectives, level), 0.0, first * typical
    signal = squares / (noise * count)
    active = [rounds for rounds in users if len(rounds.overall)]

    def prior() -> Prior:
        bias_ridge = noise / bias_spread if bias else None
        return Prior(
            mean,
            noise / spread,
            noise,
            1.0 - phi,
            phi * typical,
            bias_mean=bias_mean,
            bias_ridge=bias_ridge,
            phi=phi,
            signal=signal,
        )

    for _ in range(10):
        now = prior()
        beliefs = [believe(rounds, now) for rounds in active]
        residuals = [
            rounds.overall - belief.bias - rounds.reward @ belief.preference
            for rounds, belief in zip(active, beliefs, strict=True)
        ]
        plain = sum(float(np.sum(e**2)) for e in residuals)
        paper = sum(float(np.sum(rounds.inverse_lengths * e**2)) for rounds, e in zip(active, residuals, strict=True))
        centers = np.array([belief.preference for belief in beliefs])
        trace = sum(float(belief.variances[int(bias) :].sum()) for belief in beliefs)
        freedom = len(active) * objectives - now.ridge * trace
        # m and τ²: half a user's worth of `level`, one user's worth of `first`.
        away = float(np.sum((centers - mean) ** 2) + 0.5 * np.sum((mean - level) ** 2))
        curve = 0.5 * np.eye(objectives) + sum(
            np.eye(objectives) - now.ridge * np.linalg.inv(belief.gram_factor.T @ belief.gram_factor)
            for belief in beliefs
        )
        mean = mean + np.linalg.solve(curve, np.sum(centers - mean, axis=0) + 0.5 * (level - mean))
        determined = max(len(active) * objectives - now.ridge * trace, 0.0) / objectives
        spread = (away / objectives + first) / (determined + 1.0)
        if now.bias_ridge is not None:
            biases = np.array([belief.bias for belief in beliefs])
            corner = sum(float(belief.variances[0]) for belief in beliefs)
            freedom += len(active) - now.bias_ridge * corner
            bias_mean = float(biases.sum()) / (0.5 + len(active))
            away = float(np.sum((biases - bias_mean) ** 2)) + 0.5 * bias_mean**2
            bias_spread = (away + first * typical) / (max(len(active) - now.bias_ridge * corner, 0.0) + 1.0)
        misfit = now.plain * plain + now.paper * paper
        counted = (1.0 - phi) * count + phi * directed
        noise = (misfit + around_level) / (max(counted - freedom, 0.0) + 1.0)
        noise = max(noise, least * scale * typical + 1e-300)
        signal = max(signal, squares / (noise * count))
        # φ: the two misfits' expectations are linear in a variance of α + β‖r‖².
        system = np.array([[count, lengths.sum()], [inverses.sum(), directed]])
        determinant = system[0, 0] * system[1, 1] - system[0, 1] * system[1, 0]
        if elasticity is None and -determinant > 1e-9 * count * directed and misfit > 1e-9 * squares:
            signal = max(signal, squares / misfit)
            alpha = (system[1, 1] * plain - system[0, 1] * paper) / determinant
            beta = (system[0, 0] * paper - system[1, 0] * plain) / determinant
            constant, slope = max(alpha, 0.0), max(beta, 0.0) * typical
            if constant + slope > 0.0:
                phi = (count * slope / (constant + slope) + 10.0 * 0.5) / (count + 10.0)
    return prior()


# ---- what a question's history says


def fitted_after(t: int) -> int:
    """The last round before t after which the prior was fitted, and 0 where there is none: 1, 2, 4, 7, 11, 17 …"""
    last, due = 0, 1
    while due < t:
        last, due = due, due + 1 + due // 2
    return last


def prior_of(q: Question) -> Prior:
    """The prior as it stands at the question."""
    start = Prior(
        np.full(q.objectives, 1.0 / q.objectives),
        q.settings["ridge"],
        noise=0.0,
        plain=0.0,
        paper=float(q.objectives),
        prior_rounds=0.0,
    )
    last = fitted_after(q.t)
    if not q.settings["shared"] or last == 0:
        return start
    if last not in q.memory:
        seen = q.earlier[: last * q.users]  # a round is one pull of every user
        users = [rounds_of(seen, user, q.objectives) for user in range(q.users)]
        q.memory[last] = fit(users, q.objectives, bias=q.settings["bias"], elasticity=q.settings["elasticity"])
    return q.memory[last] or start


def hidden(q: Question) -> tuple[Floats, Belief, float]:
    """ĉ, what it is formed from, and σ̂² of the user."""
    prior = prior_of(q)
    rounds = rounds_of(q.earlier, q.user, q.objectives)
    belief = believe(rounds, prior)
    noise = (belief.squares + prior.prior_rounds * prior.noise) / max(len(rounds.overall) + prior.prior_rounds, 1.0)
    preference = non_negative(belief) if q.settings["non_negative"] else belief.preference
    if q.t == 1:
        noise = 0.0  # nothing was seen
    return preference, belief, noise


def rounding(q: Question) -> float:
    """How far rounding may move a user's ĉ: with one round of one user alone, noise and λ are as good as 0."""
    prior = prior_of(q)
    rounds = rounds_of(q.earlier, q.user, q.objectives)
    belief = believe(rounds, prior)
    conditioning = 1e-14 * max(float(np.linalg.cond(belief.factor)) ** 2, prior.signal)
    # Where a regression leaves nothing over, what is kept of it is rounding, and a score has its root.
    signal = float(np.sum(prior.weights(rounds) * rounds.overall**2) + prior.ridge * np.sum(prior.mean**2))
    nothing_left = belief.squares <= 1e-12 * signal
    return conditioning + (1e-7 * math.sqrt(signal) if nothing_left else 0.0)


def variance_along(q: Question, arm: int, c: Floats) -> float:
    """ŝ_i² of c·r: the arm's own, with κ pulls' worth of what all arms have in common."""

    def squares(one: int) -> tuple[float, int]:
        values = np.array([c @ pull.reward for pull in pulls_of(q, one)])
        return (float(np.sum((values - values.mean()) ** 2)), len(values) - 1) if len(values) else (0.0, 0)

    parts = [squares(one) for one in range(q.arms)]
    freedom = sum(part[1] for part in parts)
    common = sum(part[0] for part in parts) / freedom if freedom else 0.0
    kappa = q.settings["prior_pulls"]
    own, own_freedom = parts[arm]
    return float((own + kappa * common) / (own_freedom + kappa))


def reward_bonus(q: Question, arm: int, c: Floats) -> float:
    """ζ·log(N/N_i)·√((1 + ν/N_i)·ŝ²/N_i)."""
    count, total = len(pulls_of(q, arm)), sum(len(pulls_of(q, other)) for other in q.offer)
    error = math.sqrt((1.0 + q.settings["few_pulls"] / count) * variance_along(q, arm, c) / count)
    return float(q.settings["reward_scale"] * math.log(total / count) * error)


def same_history(q: Question, i: int, j: int) -> bool:
    """Whether two arms were given the same rewards in the same order, so that all sums are the same to the bit."""
    one, other = ([pull.reward.tolist() for pull in pulls_of(q, arm)] for arm in (i, j))
    return one == other


def verdict(q: Question, scores: Sequence[float], margin: float = 0.0) -> Verdict:
    """The highest, unpulled arms (whose scores are infinite) first; margin: what rounding may add to the tolerance."""
    tolerance = TOLERANCE + margin
    values = np.array(scores)
    if np.isinf(values).any():
        return Verdict(values, np.isinf(values), np.isinf(values), tolerance)
    possible = values >= values.max() - tolerance * max(1.0, abs(values.max()))
    best = [arm for arm, may in zip(q.offer, possible, strict=True) if may]
    same = all(same_history(q, best[0], other) for other in best)
    return Verdict(values, possible if same else np.zeros_like(possible), possible, tolerance)


# ---- the four


def prucb_hp_v(q: Question) -> Verdict:
    c, belief, noise = hidden(q)

    def score(arm: int) -> float:
        if not pulls_of(q, arm):
            return math.inf
        mean = reward_mean(q, arm)
        length = belief.length(mean)
        bonus = q.settings["preference_scale"] * math.log(1.0 + q.t * length**2) * math.sqrt(noise) * length
        return float(c @ mean + reward_bonus(q, arm, c) + bonus)

    return verdict(q, [score(arm) for arm in q.offer], rounding(q))


def on(preference: Callable[[Question], Floats]) -> Callable[[Question], Verdict]:
    def witness(q: Question) -> Verdict:
        c = preference(q)
        return verdict(
            q,
            [
                float(c @ reward_mean(q, arm)) + reward_bonus(q, arm, c) if pulls_of(q, arm) else math.inf
                for arm in q.offer
            ],
        )

    return witness


def stated(q: Question) -> Floats:
    own = [pull.stated for pull in q.earlier if pull.user == q.user]
    return np.mean(own, axis=0) if own else np.zeros(q.objectives)


def prts(q: Question) -> Verdict:
    """A preference first, then each pulled arm's variance and mean, arm by arm."""
    center, belief, noise = hidden(q)
    z = np.array([normal(q.stream) for _ in range(q.objectives)])
    c = center + math.sqrt(q.settings["preference_scale"] * noise) * belief.draw(z)
    scores = []
    for arm in q.offer:
        count = len(pulls_of(q, arm))
        if count == 0:
            scores.append(math.inf)
            continue
        shape = (count - 1 + q.settings["prior_pulls"]) / 2.0
        drawn = q.settings["reward_scale"] * variance_along(q, arm, c) * shape / gamma(q.stream, shape)
        scores.append(float(c @ reward_mean(q, arm)) + math.sqrt(drawn / count) * normal(q.stream))
    return verdict(q, scores, rounding(q))


WITNESSES: dict[str, Callable[[Question], Verdict]] = {
    "prucb-hp-v": prucb_hp_v,
    "prucb-up-v": on(stated),
    "prucb-kp-v": on(lambda q: q.truth[q.user]),
    "prts": prts,
}
