"""Variance-aware PRUCB: the paper's policies with bonuses as wide as the data ask for, and no wider.

PRUCB's bonus assumes the worst noise that a reward in [0, 1] can have and adds it up over the objectives by ‖ĉ‖₁. Here
the bonus is that of the *estimated* variance of ĉ·r̂_i, and the preference's that of the regression's *estimated*
noise; a preference starts from what all users have in common, and an arm from what all arms have (`pamo.priors`), so
that no arm is infinitely good because it is new. Nothing needs to be known of variances, of the horizon, or of the
preferences' scale. What is proved of it, and with which constants, is in docs/theory/variance.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from pamo.arrays import Floats
from pamo.compiling import anywhere, count_of, inlined, kernel
from pamo.estimators import Estimate, Kind
from pamo.policies.base import Feedback, Policy, Run, Shape, value_of
from pamo.reading import (
    MEAN,
    PREFERENCE,
    PULLS,
    between_at,
    complete_at,
    count_at,
    freedom_at,
    freedoms_at,
    inverse_at,
    noise_at,
    offset_at,
    offset_width_at,
    pending_at,
    scatter_at,
    worth_at,
)
from pamo.rows import pair
from pamo.streams import gamma, normal
from pamo.words import LANES, log

_MANY = 10.0
"""Arms on offer from which on they are too many to try each."""
_LEAST_WEIGHT = 1e-12
"""So that what no preference weighs has a number of pulls, too."""

_BY = "ours; UCB with an estimated variance as in Audibert, Munos & Szepesvári (2009)"


@inlined
def _common_variance(common: Floats, preference: Floats, dims: Any) -> float:
    """The variance of c·r within an arm, from all arms together: what stands in for an arm pulled too few times."""
    objectives, total = count_of(dims), 0.0
    freedoms, between, worth = freedoms_at(objectives), between_at(objectives), worth_at(objectives)
    whole = common[freedom_at(objectives)]
    together = 1.0 / max(whole, 1.0)
    for d in range(objectives):
        along, freedom = 0.0, common[freedoms + d]
        for e in range(d):
            along += 2.0 * preference[e] * common[pair(d, e)]
        if freedom == whole and whole > 0.0:  # complete feedback: no division of its own
            own = common[pair(d, d)] * together
        elif freedom > 0.0:
            own = common[pair(d, d)] / freedom
        else:
            own = common[between + d] * common[worth + d]
        total += preference[d] * (along * together + preference[d] * own)
    return float(max(total, 0.0))


@inlined
def _squares(arms: Floats, j: int, preference: Floats, shared: float, dims: Any) -> float:
    """The squares of c·r around an arm's mean, cᵀS_ic, and `shared` more: those that all arms have in common."""
    first, half = scatter_at(count_of(dims)), 0.0  # half of cᵀSc, from the triangle that is kept of S
    for d in range(count_of(dims)):
        along = 0.5 * preference[d] * arms[first + pair(d, d), j]
        for e in range(d):
            along += preference[e] * arms[first + pair(d, e), j]
        half += preference[d] * along
    return float(max(2.0 * half + shared, 0.0))


@inlined
def _known_of(arms: Floats, j: int, preference: Floats, common: Floats, dims: Any) -> tuple[float, float]:
    """Return N_e = Σw/Σ(w/n_d), w_d = c_d²S_d, and Σc_d²v_d over the objectives of which nothing is known.

    N_e is how many complete pulls would say as much of c·r̂, those under way counted as pulls. An objective that no pull
    gave counts for the pulls that the prior is worth.
    """
    objectives, over, under, unknown = count_of(dims), 0.0, 0.0, 0.0
    given, between, worth = count_at(objectives), between_at(objectives), worth_at(objectives)
    pending = arms[pending_at(objectives), j]
    for d in range(objectives):
        apart = preference[d] * preference[d] * common[between + d]
        weight = apart * common[worth + d] + _LEAST_WEIGHT
        count = arms[given + d, j] + pending
        over += weight
        under += weight / (count + (common[worth + d] if count < 1.0 else 0.0))
        unknown += apart if count < 1.0 else 0.0
    return over / under, unknown


@inlined
def _own_freedom(arms: Floats, j: int, along: float) -> float:
    """The degrees of freedom of an arm's own scatter along c."""
    return float(max(min(along, arms[PULLS, j]) - 1.0, 0.0))


@inlined
def _look_over(arms: Floats, offered: int, dims: Any) -> tuple[bool, bool]:
    """Whether every pull of every arm gave every objective, and nothing is under way; and whether an arm is fresh.

    The first is the simulator's case: N_e is then N_i, and there is nothing to divide by objective. Of the second, an
    arm of which nothing was seen, there is none after the first rounds, and nothing to work out.
    """
    uneven, fresh, complete, pending = 0, 0, complete_at(count_of(dims)), pending_at(count_of(dims))
    for j in range(arms.shape[1]):
        pulls = arms[PULLS, j] + arms[pending, j]
        uneven |= 1 if pulls != arms[complete, j] else 0
        fresh += 1 if pulls == 0.0 else 0
    return uneven == 0, fresh > arms.shape[1] - offered  # those that pad are as fresh


@inlined
def _all_pulls(arms: Floats, dims: Any) -> float:
    """N, the pulls of all the arms on offer, with those under way."""
    total, pending = 0.0, pending_at(count_of(dims))
    tiled = arms.shape[1] // LANES * LANES  # on a GPU nothing pads an offer
    for j in range(0, tiled, LANES):  # by twos and fours: one after the other is a chain of waiting
        left = (arms[PULLS, j] + arms[PULLS, j + 1]) + (arms[PULLS, j + 2] + arms[PULLS, j + 3])
        right = (arms[PULLS, j + 4] + arms[PULLS, j + 5]) + (arms[PULLS, j + 6] + arms[PULLS, j + 7])
        total += left + right
        left = (arms[pending, j] + arms[pending, j + 1]) + (arms[pending, j + 2] + arms[pending, j + 3])
        right = (arms[pending, j + 4] + arms[pending, j + 5]) + (arms[pending, j + 6] + arms[pending, j + 7])
        total += left + right
    for j in range(tiled, arms.shape[1]):
        total += arms[PULLS, j] + arms[pending, j]
    return float(max(total, 1.0))


@inlined
def _unseen(preference: Floats, common: Floats, dims: Any) -> float:
    """√Σc_d²v_d: how much an arm of which nothing was seen may differ from what is expected of it."""
    total = 0.0
    for d in range(count_of(dims)):
        total += preference[d] * preference[d] * common[between_at(count_of(dims)) + d]
    return math.sqrt(total)


@inlined
def _worth(common: Floats, dims: Any) -> float:
    """n₀ = ΣS/Σv: the variance within arms over that between them."""
    objectives, within, between = count_of(dims), 0.0, 0.0
    for d in range(objectives):
        own = common[between_at(objectives) + d]
        between += own
        within += own * common[worth_at(objectives) + d]
    return float(within / max(between, 1e-300))


@inlined
def _first_scale(offered: int, pulls: float) -> float:
    """B = 1¼·max(1, 10/K) + ½·log(1 + N/(10K)): the optimism about an arm that nobody has pulled."""
    return float(1.25 * max(1.0, _MANY / offered) + 0.5 * log(1.0 + pulls / (_MANY * offered)))


@anywhere
def deviations_squared(level: float, noisy: float) -> float:
    """The square of how many standard errors of optimism an arm gets, with level = L = log(N/N_e) − log⁺(K/10).

    h² = L⁺·(0.4 + 0.5·a + 0.06·L⁺). To tell arms apart for good takes h² = 2L (Lai & Robbins, 1985), and in any number
    of rounds that is played a part of that is better: at first a fifth where a few pulls settle it, and nearly a half
    where noise drowns what arms differ by, a = 1. The rest comes with the rounds, so that who was misled by chance is
    found in the end.
    """
    over = max(level, 0.0)
    return float(over * (0.4 + 0.5 * noisy + 0.06 * over))


@inlined
def _terms(offered: int, fresh: bool, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any) -> Any:
    """What the reward bonuses of all arms share: ζ, κ, a, ν_a, κ·s̄², log N − log⁺(K/10), ζ·B, √Σc_d²v_d and 1/u.

    ζ·B and √Σc_d²v_d are 0 where no arm is fresh: only of those they are read.
    """
    scale, prior = run.hyperparameters[0], run.hyperparameters[1]
    noisy, pulls = min(_worth(common, dims), 1.0), _all_pulls(arms, dims)
    shared, level = prior * _common_variance(common, user, dims), log(pulls / max(offered / _MANY, 1.0))
    first, unseen, tight, many = 0.0, 0.0, 0.0, min(max(offered / _MANY - 1.0, 0.0), 1.0)
    if fresh or many > 0.0:
        unseen = _unseen(user, common, dims)
        first, tight = scale * _first_scale(offered, pulls), many * many / max(unseen * unseen, 1e-300)
    few = run.hyperparameters[2] * (1.0 + noisy)
    return scale, prior, noisy, few, shared, level, first, unseen, tight


_UNSEEN = 7
"""Where √Σc_d²v_d stands among the terms."""


@inlined
def _reward_bonus(
    arms: Floats, j: int, user: Floats, known: float, log_known: float, unseen: float, terms: Any, dims: Any
) -> float:
    """ζ·h(L)·√(1/(1/w + 1/u)), w = (1 + ν_a/N_e)·ŝ²/N_e, N_e being known; where nothing was seen, ζ·B·√Σc_d²v_d.

    Among many arms none is thought to be further off than arms differ: u = Σc_d²v_d from twenty on, infinite up to ten.
    """
    scale, prior, noisy, few, shared, level, first, _, tight = terms
    # w as one fraction, ŝ² = squares/(N_e − 1 + κ)
    over = _squares(arms, j, user, shared, dims) * (known + few * min(known, 1.0))
    under = (_own_freedom(arms, j, known) + prior) * known * known
    bonus = scale * math.sqrt(deviations_squared(level - log_known, noisy) * over / (under + over * tight))
    fresh = arms[PULLS, j] + arms[pending_at(count_of(dims)), j] == 0.0
    return float((first * unseen if fresh else bonus) + _offset(arms, j, dims))


@inlined
def _preference_bonus(arms: Floats, j: int, user: Floats, noise: float, rounds: float, dims: Any) -> float:
    """ξ·σ̂·log(1 + t·‖r̂‖²)·‖r̂‖ in V⁻¹."""
    objectives, inverse, half = count_of(dims), inverse_at(count_of(dims)), 0.0
    for d in range(objectives):  # half of ‖r̂‖², from the triangle that is kept of V⁻¹
        row = 0.5 * user[inverse + pair(d, d)] * arms[MEAN + d, j]
        for e in range(d):
            row += user[inverse + pair(d, e)] * arms[MEAN + e, j]
        half += arms[MEAN + d, j] * row
    square = max(2.0 * half, 0.0)  # 1/square is how many rounds' worth is known of c in the direction of r̂
    return float(noise * log(1.0 + rounds * square) * math.sqrt(square))


@inlined
def _offset(arms: Floats, j: int, dims: Any) -> float:
    """What the arm is worth to this user beyond its scores, and the optimism about that."""
    return float(arms[offset_at(count_of(dims)), j] + arms[offset_width_at(count_of(dims)), j])


@kernel
def _score_hidden_v(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    noise = run.hyperparameters[3] * math.sqrt(user[noise_at(count_of(dims))])
    even, fresh = _look_over(arms, offered, dims)
    terms, rounds = _terms(offered, fresh, arms, user, common, run, dims), t * min(math.sqrt(_MANY / offered), 1.0)
    if even:
        for j in range(len(scores)):
            known = max(arms[PULLS, j], 1.0)
            bonus = _reward_bonus(arms, j, user, known, log(known), terms[_UNSEEN], terms, dims)
            score = value_of(arms, j, user, dims) + bonus
            scores[j] = score + _preference_bonus(arms, j, user, noise, rounds, dims)
        return
    for j in range(len(scores)):
        known, unknown = _known_of(arms, j, user, common, dims)
        bonus = _reward_bonus(arms, j, user, known, log(known), math.sqrt(unknown), terms, dims)
        score = value_of(arms, j, user, dims) + bonus
        scores[j] = score + _preference_bonus(arms, j, user, noise, rounds, dims)


@kernel
def _score_estimated_v(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    even, fresh = _look_over(arms, offered, dims)
    terms = _terms(offered, fresh, arms, user, common, run, dims)
    if even:
        for j in range(len(scores)):
            known = max(arms[PULLS, j], 1.0)
            bonus = _reward_bonus(arms, j, user, known, log(known), terms[_UNSEEN], terms, dims)
            scores[j] = value_of(arms, j, user, dims) + bonus
        return
    for j in range(len(scores)):
        known, unknown = _known_of(arms, j, user, common, dims)
        bonus = _reward_bonus(arms, j, user, known, log(known), math.sqrt(unknown), terms, dims)
        scores[j] = value_of(arms, j, user, dims) + bonus


@kernel
def _draw_posterior(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    objectives, room = count_of(dims), run.scratch
    inverse, scale, prior = inverse_at(objectives), run.hyperparameters[0], run.hyperparameters[1]
    width = math.sqrt(run.hyperparameters[2] * user[noise_at(objectives)])
    drawn = room[objectives]  # a preference, ĉ + √σ̂²·Lz; the lines before it are for L, with V⁻¹ = LLᵀ
    for d in range(objectives):
        drawn[d] = user[PREFERENCE + d]
    for e in range(objectives):
        z = width * normal(run.stream)
        for d in range(e, objectives):
            entry = user[inverse + pair(d, e)]
            for k in range(e):
                entry -= room[d, k] * room[e, k]
            room[d, e] = math.sqrt(max(entry, 0.0)) if d == e else (entry / room[e, e] if room[e, e] > 0.0 else 0.0)
            drawn[d] += room[d, e] * z
    shared = prior * _common_variance(common, drawn, dims)
    for j in range(offered):
        along, unknown = _known_of(arms, j, drawn, common, dims)
        freedom = _own_freedom(arms, j, along) + prior
        # Normal-Gamma: the variance is drawn, too, so that the value has a Student t of so many degrees of freedom.
        shrink = freedom / (2.0 * gamma(run.stream, 0.5 * freedom))
        variance = scale * shrink * _squares(arms, j, drawn, shared, dims) / (freedom * along)
        if arms[PULLS, j] + arms[pending_at(objectives), j] == 0.0:
            variance = unknown
        value = value_of(arms, j, drawn, dims) + math.sqrt(variance) * normal(run.stream)
        scores[j] = value + _offset(arms, j, dims)


@dataclass(frozen=True, kw_only=True)
class _Spread(Policy):
    """What they have in common: how many pulls' worth of the arms' common variance an arm's own is mixed with."""

    reads_spread: ClassVar[bool] = True

    prior_pulls: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.prior_pulls > 0, "prior_pulls > 0")


@dataclass(frozen=True, kw_only=True)
class _Hidden(_Spread):
    """How a hidden preference is learned: a ridge towards what all users have in common, as strong as they are alike.

    ridge: λ until there is anything to learn it from, and for good where `shared` is off, with the paper's weights.
    shared: off, every user starts at 1/D. elasticity: φ of the weights, by default fitted; 1 is the paper's, 0 plain.
    bias: whether users have one of their own. levels: whether the entries of preferences may be of two levels, much
    and little, where everybody's sums speak for it. non_negative: whether preferences are held at 0 or above.
    """

    ridge: float = 1.0
    shared: bool = True
    elasticity: float | None = None
    bias: bool = False
    levels: bool = True
    non_negative: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.ridge > 0, "ridge > 0")
        self.require(self.elasticity is None or 0 <= self.elasticity <= 1, "elasticity from 0 to 1, or none to fit it")
        self.require(
            self.shared or (self.elasticity is None and not self.bias), "elasticity and bias only where shared is true"
        )

    def estimate(self, objectives: int) -> Estimate:
        """ĉ by a ridge that all users' sums shape (`pamo.priors`), 1/D before anybody's first round."""
        return Estimate(
            kind=Kind.RIDGE,
            weighted=True,
            ridge=self.ridge,
            omega=float(objectives),
            first=1.0 / objectives,
            centred=True,
            shared=self.shared,
            bias=self.bias,
            elasticity=self.elasticity,
            levels=self.levels,
            non_negative=self.non_negative,
        )


@dataclass(frozen=True, kw_only=True)
class PrucbHpV(_Hidden):
    """PRUCB-HP with estimated variances: a hidden preference, learned from overall scores and from other users.

    Score: ĉ·r̂_i + ζ·h(L_i)·√(1/(1/w_i + 1/u)) + ξ·log(1 + t·min(1, √(10/K))·‖r̂_i‖²)·σ̂·‖r̂_i‖, the norms in V⁻¹,
    w_i = (1 + ν_a/N_i)·ŝ_i²/N_i and 1/u = min(1, (K/10 − 1)⁺)²/Σĉ_d²v_d; of an arm that nobody has pulled
    ĉ·m_i + ζ·B·√(Σĉ_d²v_d) in place of the first two terms, m_i and v_d being what is expected of arms
    (`pamo.priors.arms`), B = 1¼·max(1, 10/K) + ½·log(1 + N/(10K)).
    L_i = log(N/N_i) − log⁺(K/10), N the pulls of the K arms on offer; h(L)² = L⁺·(0.4 + 0.5·a + 0.06·L⁺) and
    ν_a = ν·(1 + a), a = min(1, n₀), n₀ = ΣS_d/Σv_d the variance within arms over that between them.
    ŝ_i² = (ĉᵀS_iĉ + κ·s̄²)/(N_i − 1 + κ), S_i the arm's scatter Σ(r − r̂)(r − r̂)ᵀ and s̄² the variance of ĉ·r that all
    arms have in common; σ̂² the variance of the regression's noise. Where pulls did not give every objective,
    N_i = Σw/Σ(w/n_d), w_d = ĉ_d²S_d; pulls that are under way count as pulls.

    reward_scale: ζ. prior_pulls: κ. few_pulls: ν, the correction for few pulls. preference_scale: ξ.
    The others say how ĉ is formed: ridge, shared, elasticity, bias, levels, non_negative (see `pamo.priors`).

    >>> PrucbHpV(non_negative=True).label
    'prucb-hp-v:non_negative=True'

    Reference: ours, after Algorithm 1; UCB-V is Audibert, Munos & Szepesvári (2009).
    """

    id: ClassVar[str] = "prucb-hp-v"
    summary: ClassVar[str] = "PRUCB-HP with bonuses from estimated variances and a prior from other users: recommended"
    formula: ClassVar[str] = "ĉ·r̂ᵢ + ζ h(log N/Nᵢ)·√((1+ν_a/Nᵢ)·ŝᵢ²/Nᵢ) + ξ log(1+t‖r̂ᵢ‖²)·σ̂‖r̂ᵢ‖_V⁻¹,  ŝᵢ², σ̂² estimated"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.OVERALL)
    reference: ClassVar[str] = _BY
    kernel: ClassVar[Any] = _score_hidden_v

    reward_scale: float = 1.0
    few_pulls: float = 0.5
    preference_scale: float = 0.4

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            self.reward_scale >= 0 and self.few_pulls >= 0 and self.preference_scale >= 0,
            "reward_scale, few_pulls and preference_scale ≥ 0",
        )

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """ζ, κ, ν and ξ."""
        return (self.reward_scale, self.prior_pulls, self.few_pulls, self.preference_scale)


@dataclass(frozen=True, kw_only=True)
class PrucbUpV(_Spread):
    """PRUCB-UP with estimated variances: the preference is learned from what users state.

    Score: ĉ·r̂_i + ζ·h(L_i)·√(1/(1/w_i + 1/u)), or ĉ·m_i + ζ·B·√(Σĉ_d²v_d) of an arm that nobody has pulled, as in
    `PrucbHpV`; ĉ the mean of the stated preferences.

    >>> PrucbUpV().estimate(objectives=3).kind.name
    'STATED'

    Reference: ours, after Algorithm 2.
    """

    id: ClassVar[str] = "prucb-up-v"
    summary: ClassVar[str] = "PRUCB-UP with bonuses from estimated variances: recommended where users state preferences"
    formula: ClassVar[str] = "ĉ·r̂ᵢ + ζ h(log N/Nᵢ)·√((1+ν_a/Nᵢ)·ŝᵢ²/Nᵢ),  ĉ the mean of the stated preferences"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.STATED)
    reference: ClassVar[str] = _BY
    kernel: ClassVar[Any] = _score_estimated_v

    reward_scale: float = 1.0
    few_pulls: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.reward_scale >= 0 and self.few_pulls >= 0, "reward_scale and few_pulls ≥ 0")

    def estimate(self, objectives: int) -> Estimate:
        """ĉ as the mean of the stated preferences."""
        return Estimate(kind=Kind.STATED)

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """ζ, κ and ν."""
        return (self.reward_scale, self.prior_pulls, self.few_pulls)


@dataclass(frozen=True, kw_only=True)
class PrucbKpV(PrucbUpV):
    """PRUCB-KP with estimated variances: the mean preference is known.

    Score: that of `PrucbUpV`, with c̄ in the place of ĉ.

    >>> PrucbKpV().estimate(objectives=3).kind.name
    'KNOWN'

    Reference: ours, after Algorithm 3.
    """

    id: ClassVar[str] = "prucb-kp-v"
    summary: ClassVar[str] = "PRUCB-KP with bonuses from estimated variances: recommended where preferences are known"
    formula: ClassVar[str] = "c̄·r̂ᵢ + ζ h(log N/Nᵢ)·√((1+ν_a/Nᵢ)·ŝᵢ²/Nᵢ),  ŝᵢ² estimated"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.TRUE)

    def estimate(self, objectives: int) -> Estimate:
        """The true mean preference."""
        return Estimate(kind=Kind.KNOWN)


@dataclass(frozen=True, kw_only=True)
class Prts(_Hidden):
    """Posterior sampling: draw a preference and each arm's value from what is believed of them, and take the best.

    Score: c·r̂_i + s_i·z/√N_i, c drawn from Normal(ĉ, σ̂²V⁻¹), s_i² from the arm's posterior (Normal-Gamma, so that the
    value has a Student t), z from Normal(0, 1); of an arm that nobody has pulled c·m_i + √(Σc_d²v_d)·z, by what is
    expected of arms (`pamo.priors.arms`). Every arm has a chance, so that propensities are above 0
    (`pamo.policies.propensities`), which learning from logs asks for.

    reward_scale, preference_scale: factors on the two variances, 1 being the posterior's own. prior_pulls: κ, as in
    `PrucbHpV`, and so are ridge, shared, elasticity, bias, levels and non_negative.

    >>> Prts().changed
    {}

    Reference: ours, after Thompson (1933).
    """

    id: ClassVar[str] = "prts"
    summary: ClassVar[str] = "posterior sampling of reward and preference together: random, so that it has propensities"
    formula: ClassVar[str] = "c·r̂ᵢ + sᵢ·z/√Nᵢ,  c ~ Normal(ĉ, σ̂²V⁻¹),  sᵢ² drawn from its posterior,  z ~ Normal(0, 1)"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.OVERALL)
    reference: ClassVar[str] = "ours; posterior sampling is Thompson (1933)"
    kernel: ClassVar[Any] = _draw_posterior

    reward_scale: float = 0.5
    preference_scale: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.reward_scale >= 0 and self.preference_scale >= 0, "reward_scale ≥ 0 and preference_scale ≥ 0")

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """The reward's factor, κ, and the preference's factor."""
        return (self.reward_scale, self.prior_pulls, self.preference_scale)
