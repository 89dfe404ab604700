"""Variance-aware PRUCB: the paper's policies with bonuses as wide as the data ask for, and no wider.

PRUCB's bonus assumes the worst noise that a reward in [0, 1] can have and adds it up over the objectives by ‖ĉ‖₁. Here
the bonus is that of the *estimated* variance of ĉ·r̂_i, and the preference's that of the regression's *estimated*
residual variance. Nothing needs to be known of variances, of the horizon, or of the preferences' scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pamo.compiling import count_of, inlined, kernel
from pamo.estimators import Estimate, Kind
from pamo.policies.base import Arms, Feedback, Floats, Ints, Policy, Run, Shape, Users

_BY = "ours; UCB with an estimated variance as in Audibert, Munos & Szepesvári (2009)"


@inlined
def _spread_along(scatter: Floats, row: int, preference: Floats, n: int, dims: Any) -> float:
    """ĉᵀSĉ of one row of the scatter, from the triangle that is kept of it."""
    total = 0.0
    for d in range(count_of(dims)):
        along = preference[n, d] * scatter[row, d, d]
        for e in range(d):
            along += 2.0 * preference[n, e] * scatter[row, d, e]
        total += preference[n, d] * along
    return total


@inlined
def _common_variance(arms: Arms, users: Users, n: int, dims: Any) -> float:
    """The variance of ĉ·r within an arm, from all arms together: what stands in for an arm pulled too few times."""
    if arms.freedom[0] == 0.0:
        return 0.0
    return float(_spread_along(arms.scatter, len(arms.pulls), users.preference, n, dims) / arms.freedom[0])


@inlined
def _value_and_width(
    arms: Arms, users: Users, n: int, i: int, log_t: float, scale: float, prior: float, common: float, dims: Any
) -> float:
    """ĉ·r̂_i + √(2·scale·log t·ŝ²/N_i), ŝ² the arm's own variance and `prior` pulls' worth of the common one."""
    value = 0.0
    for d in range(count_of(dims)):
        value += users.preference[n, d] * arms.reward_mean[i, d]
    own = _spread_along(arms.scatter, i, users.preference, n, dims)
    variance = (own + prior * common) / (arms.pulls[i] - 1.0 + prior)
    return float(value + math.sqrt(2.0 * scale * log_t * max(variance, 0.0)) * arms.width[i])


@kernel
def _score_hidden_v(scores: Floats, offer: Ints, n: int, t: int, arms: Arms, users: Users, run: Run, dims: Any) -> None:
    objectives = count_of(dims)
    reward_scale, prior, preference_scale = run.hyperparameters[0], run.hyperparameters[1], run.hyperparameters[2]
    log_t, common = math.log(t), _common_variance(arms, users, n, dims)
    noise = users.residual[n] / max(t - 1.0 - objectives, 1.0)
    radius = math.sqrt(2.0 * preference_scale * log_t * noise)
    for j in range(len(offer)):
        i = offer[j]
        if arms.pulls[i] == 0.0:
            scores[j] = np.inf
            continue
        square = 0.0  # ‖r̂‖² in V⁻¹
        for d in range(objectives):
            row = users.inverse_gram[n, d, d] * arms.reward_mean[i, d]
            for e in range(d):
                row += 2.0 * users.inverse_gram[n, d, e] * arms.reward_mean[i, e]
            square += arms.reward_mean[i, d] * row
        index = _value_and_width(arms, users, n, i, log_t, reward_scale, prior, common, dims)
        scores[j] = index + radius * math.sqrt(max(square, 0.0))


@kernel
def _score_estimated_v(
    scores: Floats, offer: Ints, n: int, t: int, arms: Arms, users: Users, run: Run, dims: Any
) -> None:
    reward_scale, prior = run.hyperparameters[0], run.hyperparameters[1]
    log_t, common = math.log(t), _common_variance(arms, users, n, dims)
    for j in range(len(offer)):
        i = offer[j]
        if arms.pulls[i] == 0.0:
            scores[j] = np.inf
        else:
            scores[j] = _value_and_width(arms, users, n, i, log_t, reward_scale, prior, common, dims)


@dataclass(frozen=True, kw_only=True)
class _VarianceAware(Policy):
    """What the three have in common.

    reward_scale: ζ, the factor of the reward bonus. prior_pulls: κ, how many pulls' worth of the variance that all arms
    have in common is mixed into an arm's own, which is nothing after one pull.
    """

    reads_spread: ClassVar[bool] = True

    reward_scale: float = 0.5
    prior_pulls: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.reward_scale >= 0 and self.prior_pulls > 0, "reward_scale ≥ 0 and prior_pulls > 0")

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """ζ and κ."""
        return (self.reward_scale, self.prior_pulls)


@dataclass(frozen=True, kw_only=True)
class PrucbHpV(_VarianceAware):
    """PRUCB-HP with estimated variances: a hidden preference, learned from overall scores.

    Score: ĉ·r̂_i + √(2ζ·log t·ŝ_i²/N_i) + √(2ξ·log t·σ̂²)·‖r̂_i‖ in V⁻¹; unpulled arms first.
    ŝ_i² = (ĉᵀS_iĉ + κ·s̄²)/(N_i − 1 + κ), S_i the arm's scatter Σ(r − r̂)(r − r̂)ᵀ and s̄² the variance of ĉ·r that all
    arms have in common; σ̂² the residual variance of the weighted ridge, over t − 1 − D degrees of freedom.

    reward_scale: ζ. prior_pulls: κ. preference_scale: ξ. ridge: λ. omega: ω of the weight ω/‖r‖², by default D.

    >>> PrucbHpV().label
    'prucb-hp-v'

    Reference: ours, after Algorithm 1; UCB-V is Audibert, Munos & Szepesvári (2009).
    """

    id: ClassVar[str] = "prucb-hp-v"
    summary: ClassVar[str] = "PRUCB-HP with bonuses from estimated variances: a tenth of its regret, or less"
    formula: ClassVar[str] = "ĉ·r̂ᵢ + √(2ζ log t·ŝᵢ²/Nᵢ) + √(2ξ log t·σ̂²)·‖r̂ᵢ‖_V⁻¹,  ŝᵢ² and σ̂² estimated"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.OVERALL)
    reference: ClassVar[str] = _BY
    kernel: ClassVar[Any] = _score_hidden_v

    preference_scale: float = 0.1
    ridge: float = 1.0
    omega: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.preference_scale >= 0 and self.ridge > 0, "preference_scale ≥ 0 and ridge > 0")
        self.require(self.omega is None or self.omega > 0, "omega > 0, or none for D")

    def estimate(self, objectives: int) -> Estimate:
        """ĉ by weighted ridge, as PRUCB-HP forms it."""
        omega = float(objectives) if self.omega is None else self.omega
        return Estimate(kind=Kind.RIDGE, weighted=True, ridge=self.ridge, omega=omega, first=1.0 / objectives)

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """ζ, κ and ξ."""
        return (*super().hyperparameters(shape), self.preference_scale)


@dataclass(frozen=True, kw_only=True)
class PrucbUpV(_VarianceAware):
    """PRUCB-UP with estimated variances: the preference is learned from what users state.

    Score: ĉ·r̂_i + √(2ζ·log t·ŝ_i²/N_i), ĉ the mean of the stated preferences; unpulled arms first.

    >>> PrucbUpV().estimate(objectives=3).kind.name
    'STATED'

    Reference: ours, after Algorithm 2.
    """

    id: ClassVar[str] = "prucb-up-v"
    summary: ClassVar[str] = "PRUCB-UP with bonuses from estimated variances, for users who state their preference"
    formula: ClassVar[str] = "ĉ·r̂ᵢ + √(2ζ log t·ŝᵢ²/Nᵢ),  ĉ the mean of the stated preferences,  ŝᵢ² estimated"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.STATED)
    reference: ClassVar[str] = _BY
    kernel: ClassVar[Any] = _score_estimated_v

    def estimate(self, objectives: int) -> Estimate:
        """ĉ as the mean of the stated preferences."""
        return Estimate(kind=Kind.STATED)


@dataclass(frozen=True, kw_only=True)
class PrucbKpV(PrucbUpV):
    """PRUCB-KP with estimated variances: the mean preference is known.

    Score: c̄·r̂_i + √(2ζ·log t·ŝ_i²/N_i); unpulled arms first.

    >>> PrucbKpV().estimate(objectives=3).kind.name
    'KNOWN'

    Reference: ours, after Algorithm 3.
    """

    id: ClassVar[str] = "prucb-kp-v"
    summary: ClassVar[str] = "PRUCB-KP with bonuses from estimated variances, for users whose preference is known"
    formula: ClassVar[str] = "c̄·r̂ᵢ + √(2ζ log t·ŝᵢ²/Nᵢ),  ŝᵢ² estimated"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.TRUE)

    def estimate(self, objectives: int) -> Estimate:
        """The true mean preference."""
        return Estimate(kind=Kind.KNOWN)
