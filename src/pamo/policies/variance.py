"""Variance-aware PRUCB: the paper's policies with bonuses as wide as the data ask for, and no wider.

PRUCB's bonus assumes the worst noise that a reward in [0, 1] can have and adds it up over the objectives by ‖ĉ‖₁. Here
the bonus is that of the *estimated* variance of ĉ·r̂_i, and the preference's that of the regression's *estimated*
noise; the preference starts from what all users have in common. Nothing needs to be known of variances, of the
horizon, or of the preferences' scale. What is proved of it, and with which constants, is in docs/theory/variance.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pamo.arrays import Floats
from pamo.compiling import count_of, inlined, kernel, log
from pamo.estimators import Estimate, Kind
from pamo.policies.base import Feedback, Policy, Run, Shape, value_of
from pamo.reading import LOG_PULLS, MEAN, PREFERENCE, PULLS, WIDTH, freedom_at, inverse_at, noise_at, scatter_at
from pamo.rows import pair
from pamo.streams import gamma, normal

_BY = "ours; UCB with an estimated variance as in Audibert, Munos & Szepesvári (2009)"


@inlined
def _common_variance(common: Floats, preference: Floats, dims: Any) -> float:
    """The variance of c·r within an arm, from all arms together: what stands in for an arm pulled too few times."""
    objectives, half = count_of(dims), 0.0
    for d in range(objectives):
        along = 0.5 * preference[d] * common[pair(d, d)]
        for e in range(d):
            along += preference[e] * common[pair(d, e)]
        half += preference[d] * along
    freedom = common[freedom_at(objectives)]
    return float(2.0 * half / freedom) if freedom > 0.0 else 0.0


@inlined
def _variance(arms: Floats, j: int, preference: Floats, prior: float, common: float, dims: Any) -> float:
    """ŝ_i²: the arm's own variance of c·r, and `prior` pulls' worth of the one that all arms have in common."""
    first, half = scatter_at(count_of(dims)), 0.0  # half of cᵀSc, from the triangle that is kept of S
    for d in range(count_of(dims)):
        along = 0.5 * preference[d] * arms[first + pair(d, d), j]
        for e in range(d):
            along += preference[e] * arms[first + pair(d, e), j]
        half += preference[d] * along
    return float(max((2.0 * half + prior * common) / (arms[PULLS, j] - 1.0 + prior), 0.0))


@inlined
def _log_pulls(arms: Floats) -> float:
    """log N, N the pulls of all the arms on offer."""
    total = 0.0
    for j in range(arms.shape[1]):
        total += arms[PULLS, j]
    return float(log(max(total, 1.0)))


@inlined
def _reward_bonus(arms: Floats, j: int, variance: float, log_pulls: float, scale: float, few: float) -> float:
    """ζ·log(N/N_i)·√((1 + ν/N_i)·ŝ²/N_i)."""
    share = arms[WIDTH, j] * arms[WIDTH, j]  # 1/N_i
    return float(scale * (log_pulls - arms[LOG_PULLS, j]) * math.sqrt((1.0 + few * share) * variance * share))


@kernel
def _score_hidden_v(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    objectives, inverse = count_of(dims), inverse_at(count_of(dims))
    scale, prior, few, preference_scale = (
        run.hyperparameters[0],
        run.hyperparameters[1],
        run.hyperparameters[2],
        run.hyperparameters[3],
    )
    shared, log_pulls = _common_variance(common, user, dims), _log_pulls(arms)
    noise = preference_scale * math.sqrt(user[noise_at(objectives)])
    for j in range(len(scores)):
        half = 0.0  # of ‖r̂‖² in V⁻¹, from the triangle that is kept of it
        for d in range(objectives):
            row = 0.5 * user[inverse + pair(d, d)] * arms[MEAN + d, j]
            for e in range(d):
                row += user[inverse + pair(d, e)] * arms[MEAN + e, j]
            half += arms[MEAN + d, j] * row
        square = max(2.0 * half, 0.0)  # 1/square is how many rounds' worth is known of c in the direction of r̂
        variance = _variance(arms, j, user, prior, shared, dims)
        score = value_of(arms, j, user, dims) + _reward_bonus(arms, j, variance, log_pulls, scale, few)
        score += noise * log(1.0 + t * square) * math.sqrt(square)
        scores[j] = score if arms[PULLS, j] > 0.0 else np.inf


@kernel
def _score_estimated_v(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    scale, prior, few = run.hyperparameters[0], run.hyperparameters[1], run.hyperparameters[2]
    shared, log_pulls = _common_variance(common, user, dims), _log_pulls(arms)
    for j in range(len(scores)):
        variance = _variance(arms, j, user, prior, shared, dims)
        score = value_of(arms, j, user, dims) + _reward_bonus(arms, j, variance, log_pulls, scale, few)
        scores[j] = score if arms[PULLS, j] > 0.0 else np.inf


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
    shared = _common_variance(common, drawn, dims)
    for j in range(offered):
        if arms[PULLS, j] == 0.0:
            scores[j] = np.inf
            continue
        freedom = arms[PULLS, j] - 1.0 + prior
        # Normal-Gamma: the variance is drawn, too, so that the value has a Student t of so many degrees of freedom.
        shrink = freedom / (2.0 * gamma(run.stream, 0.5 * freedom))
        variance = scale * shrink * _variance(arms, j, drawn, prior, shared, dims)
        scores[j] = value_of(arms, j, drawn, dims) + math.sqrt(variance) * arms[WIDTH, j] * normal(run.stream)


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
    bias: whether users have one of their own. non_negative: whether preferences are held at 0 or above.
    """

    ridge: float = 1.0
    shared: bool = True
    elasticity: float | None = None
    bias: bool = False
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
            non_negative=self.non_negative,
        )


@dataclass(frozen=True, kw_only=True)
class PrucbHpV(_Hidden):
    """PRUCB-HP with estimated variances: a hidden preference, learned from overall scores and from other users.

    Score: ĉ·r̂_i + ζ·log(N/N_i)·√((1 + ν/N_i)·ŝ_i²/N_i) + ξ·log(1 + t·‖r̂_i‖²)·σ̂·‖r̂_i‖, the norms in V⁻¹;
    unpulled arms first.
    ŝ_i² = (ĉᵀS_iĉ + κ·s̄²)/(N_i − 1 + κ), S_i the arm's scatter Σ(r − r̂)(r − r̂)ᵀ and s̄² the variance of ĉ·r that all
    arms have in common; N the pulls of all arms on offer; σ̂² the variance of the regression's noise.

    reward_scale: ζ. prior_pulls: κ. few_pulls: ν, the correction for few pulls. preference_scale: ξ.
    The others say how ĉ is formed: ridge, shared, elasticity, bias, non_negative (see `pamo.priors`).

    >>> PrucbHpV(non_negative=True).label
    'prucb-hp-v:non_negative=True'

    Reference: ours, after Algorithm 1; UCB-V is Audibert, Munos & Szepesvári (2009).
    """

    id: ClassVar[str] = "prucb-hp-v"
    summary: ClassVar[str] = "PRUCB-HP with bonuses from estimated variances and a prior from other users: recommended"
    formula: ClassVar[str] = "ĉ·r̂ᵢ + ζ log(N/Nᵢ)·√((1+ν/Nᵢ)·ŝᵢ²/Nᵢ) + ξ log(1+t‖r̂ᵢ‖²)·σ̂‖r̂ᵢ‖_V⁻¹,  ŝᵢ² and σ̂² estimated"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.OVERALL)
    reference: ClassVar[str] = _BY
    kernel: ClassVar[Any] = _score_hidden_v

    reward_scale: float = 0.45
    few_pulls: float = 1.0
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

    Score: ĉ·r̂_i + ζ·log(N/N_i)·√((1 + ν/N_i)·ŝ_i²/N_i), ĉ the mean of the stated preferences; unpulled arms first.

    >>> PrucbUpV().estimate(objectives=3).kind.name
    'STATED'

    Reference: ours, after Algorithm 2.
    """

    id: ClassVar[str] = "prucb-up-v"
    summary: ClassVar[str] = "PRUCB-UP with bonuses from estimated variances: recommended where users state preferences"
    formula: ClassVar[str] = "ĉ·r̂ᵢ + ζ log(N/Nᵢ)·√((1+ν/Nᵢ)·ŝᵢ²/Nᵢ),  ĉ the mean of the stated preferences"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.STATED)
    reference: ClassVar[str] = _BY
    kernel: ClassVar[Any] = _score_estimated_v

    reward_scale: float = 0.45
    few_pulls: float = 1.0

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

    Score: c̄·r̂_i + ζ·log(N/N_i)·√((1 + ν/N_i)·ŝ_i²/N_i); unpulled arms first.

    >>> PrucbKpV().estimate(objectives=3).kind.name
    'KNOWN'

    Reference: ours, after Algorithm 3.
    """

    id: ClassVar[str] = "prucb-kp-v"
    summary: ClassVar[str] = "PRUCB-KP with bonuses from estimated variances: recommended where preferences are known"
    formula: ClassVar[str] = "c̄·r̂ᵢ + ζ log(N/Nᵢ)·√((1+ν/Nᵢ)·ŝᵢ²/Nᵢ),  ŝᵢ² estimated"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.TRUE)

    def estimate(self, objectives: int) -> Estimate:
        """The true mean preference."""
        return Estimate(kind=Kind.KNOWN)


@dataclass(frozen=True, kw_only=True)
class Prts(_Hidden):
    """Posterior sampling: draw a preference and each arm's value from what is believed of them, and take the best.

    Score: c·r̂_i + s_i·z/√N_i, c drawn from Normal(ĉ, σ̂²V⁻¹), s_i² from the arm's posterior (Normal-Gamma, so that the
    value has a Student t), z from Normal(0, 1); unpulled arms first. Every arm has a chance, so that propensities are
    above 0 (`pamo.policies.propensities`), which learning from logs asks for.

    reward_scale, preference_scale: factors on the two variances, 1 being the posterior's own. prior_pulls: κ, as in
    `PrucbHpV`, and so are ridge, shared, elasticity, bias and non_negative.

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
