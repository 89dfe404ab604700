"""An upper confidence bound on c̄·μ_i that is as wide as the rewards and the preferences vary, and no wider.

The paper's bonuses take every reward for as noisy as a coin and every preference for as noisy as its range allows.
Here both are measured: a reward by its empirical covariance (Maurer & Pontil 2009), a preference's noise by what the
regression leaves over. docs/theory/variance.md derives the bound; the numbers after "Step" are its.

It holds for all arms, users and rounds at once with probability 1 − ϑ, whatever chooses the arms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats
from pamo.compiling import inlined, kernel
from pamo.errors import InputError
from pamo.estimators import Estimate, Kind, ridge_gram
from pamo.statistics import ArmStatistics, UserStatistics

REWARDS, ELLIPSOID, RESIDUALS, STATED = 0.5, 0.25, 0.25, 0.5
"""The parts of ϑ: hidden preferences spend the first three, stated ones the first and the last, known ones all of it
on the rewards."""
SPAN = (2.0**0.25 + 2.0**-0.25) / 2.0
"""C = 1.015: what it costs that one exponent serves all n from 2ᵏ to 2ᵏ⁺¹ (Step 4)."""


# Kernels: scalars first, then one user's bound on every arm. The coverage study's loop is put together from them too.


@inlined
def reward_log(pulls: float, pairs: float, failure: float) -> float:
    """L_N = log(2·pairs·N(N−1)/ϑ) for N ≥ 2 pulls: 1/(N(N−1)) adds up to 1 (Step 1)."""
    return math.log(2.0 * pairs * pulls * (pulls - 1.0) / failure)


@inlined
def bernstein_width(pulls: float, deviation: float, length: float, log_term: float) -> float:
    """√(2L/N)·s + 7bL/(3(N−1)), and never more than b, the length of the interval (Step 1)."""
    if pulls < 2.0:
        return length
    return min(length, math.sqrt(2.0 * log_term / pulls) * deviation + 7.0 * length * log_term / (3.0 * (pulls - 1.0)))


@inlined
def information(log_det: float, users: float, failure: float) -> float:
    """A² = 2·log(users/ϑ) + log det V/det λI (Step 3)."""
    return 2.0 * math.log(users / failure) + log_det


@inlined
def noise_limit(
    rounds: float, residual: float, square: float, bias: float, kappa: float, users: float, failure: float, most: float
) -> float:
    """The largest σ that RSS* allows, or `most` while it allows any; square = A², bias = S, kappa = κ (Step 4).

    a·σ² − 2AS·σ − RSS* ≤ 0 with a = n/κ − C·√(6nL'/κ) − A² and L' = log(users·(k+1)(k+2)/ϑ), 2ᵏ ≤ n < 2ᵏ⁺¹.
    """
    if rounds < 1.0:
        return most
    doubled = math.floor(math.log2(rounds))
    log_term = math.log(users * (doubled + 1.0) * (doubled + 2.0) / failure)
    worth = rounds / kappa
    left = worth - SPAN * math.sqrt(6.0 * worth * log_term) - square
    if left <= 0.0:
        return most
    cross = math.sqrt(square) * bias
    return min(most, (cross + math.sqrt(cross * cross + left * residual)) / left)


@kernel
def write_bonuses(
    value: Floats,
    reward_bonus: Floats,
    preference_bonus: Floats,
    pulls: Floats,
    means: Floats,
    covariances: Floats,
    center: Floats,
    inverse_gram: Floats,
    radius: float,
    half: Floats,
    delta: float,
    pairs: float,
    failure: float,
) -> None:
    """Write one user's ĉ·r̂_i and the two bonuses of every arm (Steps 1, 2, 5 to 7).

    c̄ is within the radius of ĉ in V, and half = 0; or it is within `half` of ĉ in each objective, and the radius is 0;
    or it is ĉ, and both are 0.
    """
    objectives = len(center)
    length = 0.0
    for d in range(objectives):
        length += abs(center[d]) + radius * math.sqrt(inverse_gram[d, d]) + half[d]
    length = min(length, delta)
    for i in range(len(pulls)):
        score, gain, along, loose = 0.0, 0.0, 0.0, 0.0  # ĉ·r̂, ‖r̂‖² in V⁻¹, ĉᵀΣ̂ĉ, tr(V⁻¹Σ̂)
        aside, spread = 0.0, 0.0  # Σh·|r̂|, Σh·√Σ̂_dd
        for d in range(objectives):
            score += center[d] * means[i, d]
            aside += half[d] * abs(means[i, d])
            spread += half[d] * math.sqrt(max(covariances[i, d, d], 0.0))
            for e in range(objectives):
                gain += means[i, d] * inverse_gram[d, e] * means[i, e]
                along += center[d] * covariances[i, d, e] * center[e]
                loose += inverse_gram[d, e] * covariances[i, e, d]
        deviation = math.sqrt(max(along, 0.0)) + radius * math.sqrt(max(loose, 0.0)) + spread
        log_term = reward_log(pulls[i], pairs, failure) if pulls[i] >= 2.0 else 0.0
        value[i] = score
        reward_bonus[i] = bernstein_width(pulls[i], deviation, length, log_term)
        preference_bonus[i] = radius * math.sqrt(max(gain, 0.0)) + aside


@kernel
def write_stated_box(
    center: Floats,
    half: Floats,
    count: float,
    total: Floats,
    squares: Floats,
    users: float,
    delta: float,
    failure: float,
) -> None:
    """Write the mean of a user's stated preferences and how far from it c̄ may be, by objective (Step 6)."""
    objectives = len(total)
    for d in range(objectives):
        center[d] = total[d] / max(count, 1.0)
        half[d] = delta
        if count >= 2.0:
            variance = max(squares[d] - count * center[d] * center[d], 0.0) / (count - 1.0)
            # Both sides of each objective of each user: 2·D·users statements.
            log_term = reward_log(count, 2.0 * objectives * users, failure)
            half[d] = bernstein_width(count, math.sqrt(variance), delta, log_term)


# From the sums.


@dataclass(frozen=True, kw_only=True, eq=False)
class VarianceBound:
    """An upper bound on every user's c̄·μ_i for every arm; `variance_bound` makes it.

    value: ĉ·r̂_i, (users, arms). reward_bonus, preference_bonus: likewise, what is added for the arms and for ĉ.
    radius: β, (users,), and noise: σ's upper bound, (users,); both 0 where ĉ is not a ridge estimate.
    """

    value: Floats
    reward_bonus: Floats
    preference_bonus: Floats
    radius: Floats
    noise: Floats

    @property
    def total(self) -> Floats:
        """The upper bound, (users, arms)."""
        return self.value + self.reward_bonus + self.preference_bonus


def variance_bound(
    arms: ArmStatistics,
    users: UserStatistics,
    *,
    estimate: Estimate,
    failure: float = 0.05,
    delta: float = 1.0,
    kappa: float = 1.0,
    known: npt.ArrayLike | None = None,
    prior_mean: npt.ArrayLike | None = None,
) -> VarianceBound:
    """Return the variance-aware upper bound on c̄·μ_i; it holds for all of it, always, with probability 1 − failure.

    RIDGE   ĉ·r̂ + min(b, √(2L/N)(√(ĉᵀΣ̂ĉ) + β√tr(V⁻¹Σ̂)) + 7bL/(3(N−1))) + β‖r̂‖ in V⁻¹,  b = min(δ, ‖ĉ‖₁ + βΣ√V⁻¹_dd)
    STATED  ĉ·r̂ + min(b, √(2L/N)(√(ĉᵀΣ̂ĉ) + Σh_d√Σ̂_dd) + 7bL/(3(N−1))) + Σh_d·r̂_d,         b = min(δ, ‖ĉ‖₁ + Σh_d)
    KNOWN   c̄·r̂ + min(‖c̄‖₁, √(2L·c̄ᵀΣ̂c̄/N) + 7‖c̄‖₁L/(3(N−1)))

    Rewards have to be in [0,1] and preferences non-negative with ‖c‖₁ ≤ delta. For RIDGE a preference's noise has to be
    strictly sub-Gaussian, its variance in one direction at most kappa times that in another (1: isotropic; infinity:
    nothing is known, and the range stands in for the variance). known: c̄, (users, D), for KNOWN alone. prior_mean: m,
    (D,) or (users, D), fixed beforehand, that the ridge λ‖c − m‖² draws to; by default 0.

    >>> arms, users = ArmStatistics.zeros(arms=1, objectives=2), UserStatistics.zeros(users=1, objectives=2)
    >>> arms.observe([0] * 1000, [[0.5, 0.25]] * 1000)
    >>> bound = variance_bound(arms, users, estimate=Estimate(kind=Kind.KNOWN), known=[[0.5, 0.5]])
    >>> bound.value.tolist(), bound.reward_bonus.round(4).tolist()
    ([[0.375]], [[0.0409]])
    """
    _check(arms, users, failure, delta, kappa)
    pulls, means, covariances = _arm_moments(arms)
    count, objectives, shape = len(users.rounds), users.objectives, (len(users.rounds), len(arms.pulls))
    value, reward_bonus, preference_bonus = np.empty(shape), np.empty(shape), np.empty(shape)
    radius, noise, half = np.zeros(count), np.zeros(count), np.zeros((count, objectives))
    center, inverse = np.empty((count, objectives)), np.zeros((count, objectives, objectives))
    longest, spent = float(delta), REWARDS * failure
    if estimate.kind == Kind.RIDGE:
        center, inverse, radius, noise = _ellipsoids(users, estimate, failure, delta, kappa, prior_mean)
    elif estimate.kind == Kind.STATED:
        for n in range(count):
            sums = users.stated_count[n], users.stated_sum[n], users.stated_square[n]
            write_stated_box(center[n], half[n], *sums, float(count), float(delta), STATED * failure)
    elif estimate.kind == Kind.KNOWN:
        center = np.array(known, dtype=np.float64)  # None becomes a NaN without a shape
        if center.shape != half.shape or not np.isfinite(center).all():
            raise InputError(f"expected known, finite, of shape {half.shape}, got {known!r}")
        longest, spent = math.inf, float(failure)
    else:
        raise InputError("this policy forms no preference estimate, so there is no bound on an overall score by one")
    for n in range(count):
        written = value[n], reward_bonus[n], preference_bonus[n]
        believed = center[n], inverse[n], radius[n], half[n]
        write_bonuses(*written, pulls, means, covariances, *believed, longest, float(count * shape[1]), spent)
    return VarianceBound(
        value=value, reward_bonus=reward_bonus, preference_bonus=preference_bonus, radius=radius, noise=noise
    )


def most_noise(delta: float, omega: float) -> float:
    """Return the σ that the range allows: c·r/‖r‖ lies in [0, δ], so √ω times it varies by √ω·δ/2 at most.

    >>> most_noise(1.0, 4.0)
    1.0
    """
    return 0.5 * delta * math.sqrt(omega)


def prior_bias(delta: float, ridge: float, prior_mean: npt.ArrayLike) -> Floats:
    """Return S = √λ·max‖c − m‖₂ over c ≥ 0 with ‖c‖₁ ≤ δ, for each row m: a corner of that simplex is the farthest.

    >>> prior_bias(1.0, 4.0, [[0.0, 0.0], [0.5, 0.5]]).round(3).tolist()
    [2.0, 1.414]
    """
    center = np.atleast_2d(np.asarray(prior_mean, dtype=np.float64))
    corners = np.vstack([np.zeros(center.shape[1]), delta * np.eye(center.shape[1])])
    return np.asarray(math.sqrt(ridge) * np.linalg.norm(corners[:, None] - center, axis=2).max(axis=0))


def _ellipsoids(
    users: UserStatistics,
    estimate: Estimate,
    failure: float,
    delta: float,
    kappa: float,
    prior_mean: npt.ArrayLike | None,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return ĉ, V⁻¹, β and σ's upper bound of each user (Steps 3 and 4)."""
    count, objectives = len(users.rounds), users.objectives
    if not (estimate.ridge > 0 and estimate.omega > 0):
        raise InputError(f"expected an estimate with ridge > 0 and omega > 0, got {estimate}")
    omega = estimate.omega if estimate.weighted else 1.0
    moments = omega * (users.weighted if estimate.weighted else users.plain)
    prior = np.zeros(objectives) if prior_mean is None else np.asarray(prior_mean, dtype=np.float64)
    if prior.shape not in ((objectives,), (count, objectives)) or not np.isfinite(prior).all():
        raise InputError(f"expected prior_mean of shape ({objectives},) or {(count, objectives)}, got {prior_mean!r}")
    prior = np.broadcast_to(prior, (count, objectives))
    gram = ridge_gram(users, estimate)
    center = np.linalg.solve(gram, (moments[:, 1:-1, -1] + estimate.ridge * prior)[..., None])[..., 0]
    fitted = np.einsum("nd,nde,ne->n", center, gram, center)
    residual = np.maximum(moments[:, -1, -1] + estimate.ridge * (prior**2).sum(axis=1) - fitted, 0.0)
    log_det = np.linalg.slogdet(gram)[1] - objectives * math.log(estimate.ridge)
    # The weighted Σ r·rᵀ/‖r‖² has one on its trace for every round that carries a direction.
    rounds = np.round(np.trace(users.weighted[:, 1:-1, 1:-1], axis1=1, axis2=2)) if estimate.weighted else None
    bias, most = prior_bias(delta, estimate.ridge, prior), most_noise(delta, omega)
    noise, radius = np.empty(count), np.empty(count)
    for n in range(count):
        regressed = float(users.plain[n, 0, 0] if rounds is None else rounds[n])
        square = information(float(log_det[n]), float(count), ELLIPSOID * failure)
        noise[n] = noise_limit(
            regressed, residual[n], square, bias[n], float(kappa), float(count), RESIDUALS * failure, most
        )
        radius[n] = noise[n] * math.sqrt(square) + bias[n]
    inverse: Floats = np.ascontiguousarray(np.linalg.inv(gram), dtype=np.float64)
    return center.astype(np.float64), inverse, radius, noise


def _arm_moments(arms: ArmStatistics) -> tuple[Floats, Floats, Floats]:
    """Return N, r̂ and the unbiased covariance Σ̂ of each arm; Σ̂ is 0 up to the first pull."""
    pulls = arms.pulls.copy()
    squares = arms.moments[:, 1:-1, 1:-1]
    means = np.ascontiguousarray(arms.reward_sum / np.maximum(pulls, 1.0)[:, None])
    # r² ≤ r for r in [0,1] and for no other number: the sums can tell.
    if (np.einsum("idd->id", squares) > arms.reward_sum * (1 + 1e-9) + 1e-9).any():
        raise InputError("expected rewards in [0, 1], for which alone the bound holds; scale them to it first")
    spread = squares - pulls[:, None, None] * means[:, :, None] * means[:, None, :]
    return pulls, means, np.ascontiguousarray(spread / np.maximum(pulls - 1.0, 1.0)[:, None, None])


def _check(arms: ArmStatistics, users: UserStatistics, failure: float, delta: float, kappa: float) -> None:
    if arms.objectives != users.objectives:
        raise InputError(
            f"expected arms and users of one number of objectives, got {arms.objectives} and {users.objectives}"
        )
    if not (0 < failure < 1 and 0 < delta < math.inf and kappa >= 1):
        raise InputError(f"expected 0 < failure < 1, delta > 0 and kappa ≥ 1, got {failure=}, {delta=}, {kappa=}")
