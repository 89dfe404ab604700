"""The policies that read the spread once more, slow and plain, and the prior that their users share.

From full histories, in whole matrices, by the formulas in the docstrings of `pamo.policies.variance` and
`pamo.priors`, of which nothing is called here. A user's bias is one more coordinate of the preference, that of a
constant 1 in the reward; in pamo it is integrated out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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


class Levels(NamedTuple):
    """Two levels of an entry of a preference: their shares, means and variances, each (2,)."""

    share: Floats
    mean: Floats
    variance: Floats

    @property
    def moments(self) -> tuple[float, float]:
        """The mean and the variance of an entry at either."""
        mean = float(self.share @ self.mean)
        return mean, float(self.share @ (self.variance + (self.mean - mean) ** 2))


class Sites(NamedTuple):
    """A Gaussian that stands in for an entry's two levels: precision times mean, and precision, each (D,)."""

    pull: Floats
    strength: Floats


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
    sum_ridge: float = 0.0
    """κ, towards Σm."""
    levels: Levels | None = None
    doubtful: bool = False
    """Whether rounding decides if there are levels."""
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


def believe(rounds: Rounds, prior: Prior, sites: Sites | None = None) -> Belief:
    """The ridge towards the prior, as one regression with the constant in front where there is a bias."""
    biased = prior.bias_ridge is not None
    regressors, center, strength = rounds.reward, prior.mean, np.full(len(prior.mean), prior.ridge)
    if sites is not None:
        center, strength = sites.pull / sites.strength, prior.noise * sites.strength
    if prior.bias_ridge is not None:
        regressors = np.column_stack([np.ones(len(rounds.overall)), rounds.reward])
        center = np.concatenate([[prior.bias_mean], center])
        strength = np.concatenate([[prior.bias_ridge], strength])
    held = np.ones(len(center))
    held[: int(biased)] = 0.0
    # One least-squares problem: the normal equations would square its condition number.
    root = np.sqrt(prior.weights(rounds))
    rows = np.vstack([root[:, None] * regressors, np.diag(np.sqrt(strength)), math.sqrt(prior.sum_ridge) * held])
    total = math.sqrt(prior.sum_ridge) * prior.mean.sum()
    right = np.concatenate([root * rounds.overall, np.sqrt(strength) * center, [total]])
    orthogonal, factor = np.linalg.qr(rows)
    solution = np.linalg.solve(factor, orthogonal.T @ right)
    return Belief(solution, factor, float(np.sum((right - rows @ solution) ** 2)), biased)


def marginals(belief: Belief) -> Floats:
    """The diagonal of V⁻¹."""
    return np.asarray(belief.variances[int(belief.biased) :])


# ---- two levels, by expectation propagation


class Tilted(NamedTuple):
    """What the cavity and the two levels say of each entry, by entry and level, (D, 2)."""

    chance: Floats
    mean: Floats
    variance: Floats
    evidence: Floats
    """(D,): the logarithm of the cavity's density under the levels, without (2π)^−½."""


def cavities(belief: Belief, prior: Prior, sites: Sites, spread: float) -> tuple[Floats, Floats]:
    """Each entry's mean and precision by all but its own site."""
    precision = 1.0 / (prior.noise * marginals(belief))
    left = np.maximum(precision - sites.strength, 1e-9 / spread)
    return (belief.preference * precision - sites.pull) / left, left


def tilt(mean: Floats, precision: Floats, levels: Levels) -> Tilted:
    width = levels.variance + 1.0 / precision[:, None]
    logs = np.log(levels.share) - 0.5 * (np.log(width) + (mean[:, None] - levels.mean) ** 2 / width)
    most = logs.max(axis=1, keepdims=True)
    chances = np.exp(logs - most)
    evidence = most[:, 0] + np.log(chances.sum(axis=1))
    variance = 1.0 / (1.0 / levels.variance + precision[:, None])
    # The precision-weighted mean, from the cavity's: where the data decide, a level moves it by next to nothing.
    center = mean[:, None] + (levels.mean - mean[:, None]) * variance / levels.variance
    return Tilted(chances / chances.sum(axis=1, keepdims=True), center, variance, evidence)


def swept(rounds: Rounds, prior: Prior, levels: Levels, sites: Sites, spread: float) -> tuple[Sites, Tilted]:
    """One sweep over a user's entries, all at once, of which seven tenths are taken."""
    mean, precision = cavities(believe(rounds, prior, sites), prior, sites, spread)
    tilted = tilt(mean, precision, levels)
    center = np.sum(tilted.chance * tilted.mean, axis=1)
    between = tilted.chance[:, 0] * tilted.chance[:, 1] * (tilted.mean[:, 0] - tilted.mean[:, 1]) ** 2
    # 1/variance − precision, without the difference of two that may be alike to rounding.
    less = np.sum(tilted.chance * tilted.variance / levels.variance, axis=1) - precision * between
    strength = np.maximum(precision * less / np.maximum(1.0 - less, 1e-12), 0.25 / spread)
    pull = center * strength + precision * (center - mean)
    return Sites(*(0.3 * np.array(sites) + 0.7 * np.array([pull, strength]))), tilted


def find_sites(rounds: Rounds, prior: Prior) -> Sites | None:
    """Five sweeps, from where nothing was seen; None where there is one level."""
    if prior.levels is None:
        return None
    mean, variance = prior.levels.moments
    count = len(prior.mean)
    sites = Sites(np.full(count, mean / variance), np.full(count, 1.0 / variance))
    for _ in range(5 if len(rounds.overall) else 0):
        sites, _ = swept(rounds, prior, prior.levels, sites, variance)
    return sites


def log_determinant(belief: Belief) -> float:
    return float(2.0 * np.sum(np.log(np.abs(np.diag(belief.gram_factor)))))


def fit_levels(active: Sequence[Rounds], prior: Prior, spread: float) -> Prior:
    """Twelve steps of EM, of two sweeps each, and whether their evidence is four nats ahead."""
    count, middle = len(prior.mean), float(prior.mean.mean())
    around = spread + float(np.var(prior.mean))
    width = math.sqrt(around)
    levels = Levels(
        np.array([0.67, 0.33]), np.array([middle - 0.6 * width, middle + 1.2 * width]), np.full(2, 0.25 * around)
    )
    sites = [Sites(np.full(count, middle / around), np.full(count, 1.0 / around)) for _ in active]
    for _ in range(12):
        tilted: list[Tilted] = []
        for _ in range(2):
            both = [swept(rounds, prior, levels, own, around) for rounds, own in zip(active, sites, strict=True)]
            sites, tilted = [one for one, _ in both], [one for _, one in both]
        chance, mean, variance = (
            np.concatenate([getattr(one, name) for one in tilted]) for name in ("chance", "mean", "variance")
        )
        weight = chance.sum(axis=0) + 0.3
        center = (np.sum(chance * mean, axis=0) + 0.3 * levels.mean) / weight
        squares = np.sum(chance * (variance + (mean - center) ** 2), axis=0) + 0.3 * 0.25 * around
        levels = Levels(weight / weight.sum(), center, np.maximum(squares / weight, 0.002 * around))
    ahead = 0.0
    level, width = levels.moments
    for rounds, own in zip(active, sites, strict=True):
        one, two = believe(rounds, prior), believe(rounds, prior, own)
        alike = -0.5 * (log_determinant(one) + one.squares / prior.noise + count * math.log(spread))
        alike += 0.5 * math.log(1.0 + prior.sum_ridge * count / prior.ridge)
        ahead -= alike + 0.5 * (log_determinant(two) + two.squares / prior.noise)
        if prior.sum_ridge > 0.0:
            room = count * width
            ahead += 0.5 * math.log(1.0 + prior.sum_ridge * room / prior.noise)
            away = count * level - prior.mean.sum()
            ahead += 0.5 * float(away) ** 2 / (prior.noise / prior.sum_ridge + room)
        at, precision = cavities(two, prior, own, around)
        ahead += float(np.sum(tilt(at, precision, levels).evidence))
        # The sites stand in the place of the levels: what they say of the cavity is taken out again.
        ahead += 0.5 * float(np.sum(own.pull**2 / own.strength + np.log(1.0 + own.strength / precision)))
        joint = (own.pull + at * precision) ** 2 / (own.strength + precision) - at**2 * precision
        ahead -= 0.5 * float(np.sum(joint))
    doubtful = abs(ahead - 4.0) < 1e-6 * max(1.0, prior.signal * 1e-6)
    return prior._replace(levels=levels if ahead > 4.0 else None, doubtful=doubtful)


def non_negative(belief: Belief) -> Floats:
    """The c ≥ 0 nearest to ĉ in V."""
    nearest: Floats = nnls(belief.gram_factor, belief.gram_factor @ belief.preference)[0]
    return nearest


def fit(
    users: Sequence[Rounds], objectives: int, *, bias: bool, elasticity: float | None, levels: bool
) -> Prior | None:
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
    noise, spread, along_sum = around_level, scale, scale
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
            sum_ridge=noise * (1.0 / along_sum - 1.0 / spread) / objectives if along_sum < spread else 0.0,
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
        inverses_of = [np.linalg.inv(belief.gram_factor.T @ belief.gram_factor) for belief in beliefs]
        trace = sum(float(np.trace(inverse)) for inverse in inverses_of)
        sum_trace = sum(float(np.mean(inverse)) * objectives for inverse in inverses_of)  # 1ᵀV⁻¹1/D
        held = now.ridge + objectives * now.sum_ridge
        freedom = len(active) * objectives - now.ridge * (trace - sum_trace) - held * sum_trace
        # m and τ²: half a user's worth of `level` (of users who differ by `first`), a tenth of a user's of `first`.
        away, drawn = float(np.sum((centers - mean) ** 2)), 0.5 * spread / first
        curve = drawn * np.eye(objectives) + sum(np.eye(objectives) - now.ridge * inverse for inverse in inverses_of)
        apart = float(np.sum(np.sum(centers - mean, axis=1) ** 2)) / objectives
        mean = mean + np.linalg.solve(curve, np.sum(centers - mean, axis=0) + drawn * (level - mean))
        # τ² of the differences and of the sum: the smaller of the two counts for the sum alone.
        along_sum = (apart + 0.1 * first) / (max(len(active) - held * sum_trace, 0.0) + 0.1)
        determined = max(len(active) * objectives - now.ridge * (trace - sum_trace) - held * sum_trace, 0.0)
        spread = (away / objectives + 0.1 * first) / (determined / objectives + 0.1)
        if objectives > 1:
            of_differences = len(active) - now.ridge * (trace - sum_trace) / (objectives - 1)
            differences = (max(away - apart, 0.0) / (objectives - 1) + 0.1 * first) / (max(of_differences, 0.0) + 0.1)
            if along_sum < differences:
                spread, along_sum = differences, max(along_sum, 1e-3 * differences)
            else:
                spread = along_sum = max(spread, differences)
        else:
            along_sum = spread
        if now.bias_ridge is not None:
            biases = np.array([belief.bias for belief in beliefs])
            corner = sum(float(belief.variances[0]) for belief in beliefs)
            freedom += len(active) - now.bias_ridge * corner
            bias_mean = float(biases.sum()) / (0.5 * bias_spread / (first * typical) + len(active))
            away = float(np.sum((biases - bias_mean) ** 2))
            bias_spread = (away + 0.1 * first * typical) / (max(len(active) - now.bias_ridge * corner, 0.0) + 0.1)
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
    if levels and count >= 3 * len(active):
        return fit_levels(active, prior(), spread)
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
        words: dict[str, Any] = {name: q.settings[name] for name in ("bias", "elasticity", "levels")}
        prior = q.memory[last] = fit(users, q.objectives, **words)
        if prior is not None:
            for user in range(q.users):
                q.memory[last, user] = find_sites(users[user], prior)
    return q.memory[last] or start


def belief_of(q: Question, rounds: Rounds) -> Belief:
    """What is believed of the user now; the sites are those of when the prior was fitted."""
    prior = prior_of(q)
    return believe(rounds, prior, q.memory.get((fitted_after(q.t), q.user)) if prior.levels is not None else None)


def hidden(q: Question) -> tuple[Floats, Belief, float]:
    """ĉ, what it is formed from, and σ̂² of the user."""
    prior = prior_of(q)
    rounds = rounds_of(q.earlier, q.user, q.objectives)
    belief = belief_of(q, rounds)
    noise = (belief.squares + prior.prior_rounds * prior.noise) / max(len(rounds.overall) + prior.prior_rounds, 1.0)
    preference = non_negative(belief) if q.settings["non_negative"] else belief.preference
    if q.t == 1:
        noise = 0.0  # nothing was seen
    return preference, belief, noise


def rounding(q: Question) -> float:
    """How far rounding may move a user's ĉ: with one round of one user alone, noise and λ are as good as 0."""
    prior = prior_of(q)
    rounds = rounds_of(q.earlier, q.user, q.objectives)
    belief = belief_of(q, rounds)
    if prior.doubtful:
        return math.inf
    conditioning = 1e-14 * max(float(np.linalg.cond(belief.factor)) ** 2, prior.signal)
    # Where a regression leaves nothing over, what is kept of it is rounding, and a score has its root.
    signal = float(np.sum(prior.weights(rounds) * rounds.overall**2) + prior.ridge * np.sum(prior.mean**2))
    nothing_left = belief.squares <= 1e-12 * signal
    return conditioning + (1e-7 * math.sqrt(signal) if nothing_left else 0.0)


# ---- arms


class Arms(NamedTuple):
    """What arms have in common: the mean, the variance between them and within, each (D,)."""

    mean: Floats
    between: Floats
    within: Floats


def arms_of(q: Question) -> Arms:
    """The arms' prior as it stands at the question: six steps for each objective."""
    last = fitted_after(q.t)
    if ("arms", last) not in q.memory:
        seen: dict[int, list[Floats]] = {}
        for pull in q.earlier[: last * q.users]:
            seen.setdefault(pull.arm, []).append(pull.reward)
        rewards = [np.array(one) for one in seen.values()]
        counts = np.array([len(one) for one in rewards], dtype=float)
        means = np.array([one.mean(axis=0) for one in rewards]).reshape(len(rewards), q.objectives)
        scatter = sum((np.sum((one - one.mean(axis=0)) ** 2, axis=0) for one in rewards), np.zeros(q.objectives))
        within = (scatter + 2 * 0.02) / (counts.sum() - len(rewards) + 2)
        center, between = np.full(q.objectives, 0.5), np.full(q.objectives, 0.05)
        for _ in range(6):
            weights = 1.0 / (between + within / counts[:, None])
            center = (np.sum(weights * means, axis=0) + 0.5 / between) / (weights.sum(axis=0) + 1.0 / between)
            known = between * weights
            squares = np.sum((known * (means - center)) ** 2, axis=0)
            between = np.maximum((squares + 2 * 0.05) / (known.sum(axis=0) + 2), 1e-4)
        q.memory["arms", last] = Arms(center, between, within)
    arms: Arms = q.memory["arms", last]
    return arms


def mean_of(q: Question, arm: int) -> Floats:
    """r̂, or what the prior expects."""
    return reward_mean(q, arm) if pulls_of(q, arm) else arms_of(q).mean


def variance_along(q: Question, arm: int, c: Floats) -> float:
    """ŝ_i² of c·r: the arm's own, with κ pulls' worth of what all arms have in common."""

    def squares(one: int) -> tuple[float, int]:
        values = np.array([c @ pull.reward for pull in pulls_of(q, one)])
        return (float(np.sum((values - values.mean()) ** 2)), len(values) - 1) if len(values) else (0.0, 0)

    parts = [squares(one) for one in range(q.arms)]
    freedom = sum(part[1] for part in parts)
    common = sum(part[0] for part in parts) / freedom if freedom else float(c**2 @ arms_of(q).within)
    kappa = q.settings["prior_pulls"]
    own, own_freedom = parts[arm]
    return float((own + kappa * common) / (own_freedom + kappa))


def reward_bonus(q: Question, arm: int, c: Floats) -> float:
    """The optimism about an arm."""
    arms, many = arms_of(q), len(q.offer) / 10.0
    count, total = len(pulls_of(q, arm)), max(sum(len(pulls_of(q, other)) for other in q.offer), 1)
    if count == 0:
        scale = 1.25 * max(1.0, 1.0 / many) + 0.5 * math.log(1.0 + total / (100.0 * many))
        return float(q.settings["reward_scale"] * scale * math.sqrt(float(c**2 @ arms.between)))
    worth = float(arms.within.sum() / arms.between.sum())
    level = max(math.log(total / count) - max(0.0, math.log(many)), 0.0)
    noisy = min(1.0, worth)
    square = (1.0 + q.settings["few_pulls"] * (1.0 + noisy) / count) * variance_along(q, arm, c) / count
    if many > 1.0:  # arms do not differ by more than they do
        square = 1.0 / (1.0 / square + min(many - 1.0, 1.0) ** 2 / float(c**2 @ arms.between)) if square > 0.0 else 0.0
    deviations = math.sqrt((0.4 + 0.5 * noisy) * level + 0.06 * level**2)
    return float(q.settings["reward_scale"] * deviations * math.sqrt(square))


def same_history(q: Question, i: int, j: int) -> bool:
    """Whether two arms were given the same rewards in the same order, so that all sums are the same to the bit."""
    one, other = ([pull.reward.tolist() for pull in pulls_of(q, arm)] for arm in (i, j))
    return one == other


def verdict(q: Question, scores: Sequence[float], margin: float = 0.0) -> Verdict:
    """The highest; margin: what rounding may add to the tolerance."""
    tolerance = TOLERANCE + margin
    values = np.array(scores)
    possible = values >= values.max() - tolerance * max(1.0, abs(values.max()))
    best = [arm for arm, may in zip(q.offer, possible, strict=True) if may]
    same = all(same_history(q, best[0], other) for other in best)
    return Verdict(values, possible if same else np.zeros_like(possible), possible, tolerance)


# ---- the four


def prucb_hp_v(q: Question) -> Verdict:
    c, belief, noise = hidden(q)
    rounds = q.t * min(1.0, math.sqrt(10.0 / len(q.offer)))

    def score(arm: int) -> float:
        mean = mean_of(q, arm)
        length = belief.length(mean)
        bonus = q.settings["preference_scale"] * math.log(1.0 + rounds * length**2) * math.sqrt(noise) * length
        return float(c @ mean + bonus) + reward_bonus(q, arm, c)

    return verdict(q, [score(arm) for arm in q.offer], rounding(q))


def on(preference: Callable[[Question], Floats]) -> Callable[[Question], Verdict]:
    def witness(q: Question) -> Verdict:
        c = preference(q)
        return verdict(q, [float(c @ mean_of(q, arm)) + reward_bonus(q, arm, c) for arm in q.offer])

    return witness


def stated(q: Question) -> Floats:
    own = [pull.stated for pull in q.earlier if pull.user == q.user]
    return np.mean(own, axis=0) if own else np.zeros(q.objectives)


def prts(q: Question) -> Verdict:
    """A preference first, then each arm's variance and mean, arm by arm; of an unpulled arm's the prior decides."""
    center, belief, noise = hidden(q)
    z = np.array([normal(q.stream) for _ in range(q.objectives)])
    c = center + math.sqrt(q.settings["preference_scale"] * noise) * belief.draw(z)
    scores = []
    for arm in q.offer:
        count = len(pulls_of(q, arm))
        shape = (max(count - 1, 0) + q.settings["prior_pulls"]) / 2.0
        drawn = q.settings["reward_scale"] * variance_along(q, arm, c) * shape / gamma(q.stream, shape)
        variance = drawn / count if count else float(c**2 @ arms_of(q).between)
        scores.append(float(c @ mean_of(q, arm)) + math.sqrt(variance) * normal(q.stream))
    return verdict(q, scores, rounding(q))


WITNESSES: dict[str, Callable[[Question], Verdict]] = {
    "prucb-hp-v": prucb_hp_v,
    "prucb-up-v": on(stated),
    "prucb-kp-v": on(lambda q: q.truth[q.user]),
    "prts": prts,
}
