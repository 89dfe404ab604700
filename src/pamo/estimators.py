"""What the sums say: means, widths, preference estimates and the sets that hold the truth with high probability."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats
from pamo.compiling import inlined
from pamo.errors import InputError
from pamo.interpreting import plain
from pamo.priors import (
    BIAS_MEAN,
    BIAS_RIDGE,
    NUMBERS,
    PAPER,
    PLAIN,
    Population,
    population_of,
    read_users,
    room_for,
    start_population,
)
from pamo.reading import PREFERENCE, inverse_at, noise_at, user_numbers
from pamo.rows import whole
from pamo.statistics import ArmStatistics, UserStatistics

# Kernels: scalar functions that the policies' kernels and the trial loop are put together from.


@inlined
def root_log(log_t: float, log_alpha: float) -> float:
    """√log(t/α), or 0 while t ≤ α; over √max(N, 1) it is the width ρ of a reward mean (Alg. 1, l. 5)."""
    return math.sqrt(max(log_t - log_alpha, 0.0))


@inlined
def radius_in_experiments(log_t: float, objectives: int, beta: float) -> float:
    """β_t = β·√(D·log t), with β = 0.1 in the paper's experiments (Appendix, Implementation)."""
    return beta * math.sqrt(objectives * log_t)


@inlined
def radius_in_theory(
    t: float, objectives: int, omega: float, ridge: float, failure: float, sub_gaussian: float
) -> float:
    """β_t = R·√(ω·D·log((1 + ω·t/λ)/ϑ)) + √λ (Lemma 2)."""
    inside = omega * objectives * math.log((1.0 + omega * t / ridge) / failure)
    return sub_gaussian * math.sqrt(inside) + math.sqrt(ridge)


# The same, from the sums, for many arms or users at once.


def lemma2_radius(
    t: float, *, objectives: int, omega: float, ridge: float, failure: float, sub_gaussian: float = 1.0
) -> float:
    """Return the radius of the ellipsoid that holds c̄ in all rounds with probability 1 − ϑ (Lemma 2).

    β_t = R·√(ω·D·log((1 + ω·t/λ)/ϑ)) + √λ, with failure = ϑ, ridge = λ, sub_gaussian = R.

    >>> round(lemma2_radius(1, objectives=1, omega=1.0, ridge=1.0, failure=0.05), 3)
    2.921
    """
    if not (t >= 0 and objectives >= 1 and omega > 0 and ridge > 0 and 0 < failure < 1 and sub_gaussian >= 0):
        raise InputError(
            "expected t ≥ 0, objectives ≥ 1, omega > 0, ridge > 0, 0 < failure < 1 and sub_gaussian ≥ 0, got "
            f"{t=}, {objectives=}, {omega=}, {ridge=}, {failure=}, {sub_gaussian=}"
        )
    return float(radius_in_theory(float(t), objectives, omega, ridge, failure, sub_gaussian))


def experiments_radius(t: float, *, objectives: int, beta: float = 0.1) -> float:
    """Return the radius that the paper's experiments use, β·√(D·log t): far smaller than Lemma 2's.

    >>> experiments_radius(1, objectives=3)
    0.0
    """
    if not (t >= 1 and objectives >= 1 and beta >= 0):
        raise InputError(f"expected t ≥ 1, objectives ≥ 1 and beta ≥ 0, got {t=}, {objectives=}, {beta=}")
    return float(radius_in_experiments(math.log(t), objectives, beta))


def reward_means(arms: ArmStatistics) -> Floats:
    """Return r̂, (arms, D): each objective's mean over the pulls that gave it, and 0 where none did.

    >>> arms = ArmStatistics.zeros(arms=1, objectives=2)
    >>> arms.observe([0, 0], [[0.2, 0.5], [0.4, float("nan")]])
    >>> reward_means(arms).round(3).tolist()
    [[0.3, 0.5]]
    """
    return arms.objective_sum / np.maximum(arms.objective_count, 1.0)


def reward_scatters(arms: ArmStatistics) -> Floats:
    """Return Σ(r − r̂)(r − r̂)ᵀ of each arm and, in a last row, of all arms together, (arms + 1, D, D).

    >>> arms = ArmStatistics.zeros(arms=1, objectives=1)
    >>> arms.observe([0, 0], [[0.2], [0.6]])
    >>> reward_scatters(arms).round(3).ravel().tolist()
    [0.08, 0.08]
    """
    means = arms.reward_sum / np.maximum(arms.pulls, 1.0)[:, None]
    scatter = arms.moments[:, 1:-1, 1:-1] - arms.pulls[:, None, None] * means[:, :, None] * means[:, None, :]
    return np.concatenate([scatter, scatter.sum(axis=0, keepdims=True)])


def overall_means(arms: ArmStatistics) -> Floats:
    """Return ḡ, (arms,): the mean overall score of each arm from all users, and 0 where there is none."""
    return arms.overall_sum / np.maximum(arms.overall_pulls, 1.0)


def reward_widths(arms: ArmStatistics, t: float, *, alpha: float = 1.0) -> Floats:
    """Return ρ, (arms,): √(log(t/α)/max(N, 1))."""
    if not (t > 0 and alpha > 0):
        raise InputError(f"expected t > 0 and alpha > 0, got {t=}, {alpha=}")
    return np.sqrt(max(math.log(t / alpha), 0.0) / np.maximum(arms.pulls, 1.0))


def student_t(freedom: float, level: float = 0.975) -> float:
    """Return the quantile of Student's t: exact for 1 and 2 degrees of freedom, to 0.2 % from 3 on.

    The expansion in 1/freedom around the normal quantile (Abramowitz & Stegun 26.7.5): SciPy for one number would
    weigh more than the rest of the core.

    >>> round(student_t(9), 3), round(student_t(1), 2)
    (2.262, 12.71)
    """
    if freedom == 1:
        return math.tan(math.pi * (level - 0.5))
    if freedom == 2:
        return (2.0 * level - 1.0) * math.sqrt(2.0 / (4.0 * level * (1.0 - level)))
    z = NormalDist().inv_cdf(level)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(sum(term / freedom**power for power, term in enumerate(terms)))


class Kind(IntEnum):
    """The ways to form ĉ. The trial loop switches on these numbers."""

    NONE = 0
    RIDGE = 1
    STATED = 2
    KNOWN = 3


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """How a policy forms its preference estimate ĉ from a user's sums.

    kind: from overall scores (RIDGE), stated preferences (STATED), the true mean (KNOWN), or not at all (NONE).
    weighted: whether the ridge weighs a sample by ω/‖r‖² (the paper's) or by 1. ridge: λ. omega: ω.
    first: each entry of ĉ before the user's first round.

    shared: whether the ridge is towards what all users have in common (`pamo.priors`), as strong as they are alike;
    with it, the weights are fitted unless `elasticity` says them (1 is the paper's, 0 plain), a bias of each user's own
    may be had, and `levels` says whether the entries of preferences may be of two levels, much and little, where the
    users' sums speak for it. centred: whether a ridge that is not shared, or not yet, is towards `first` rather than
    towards 0. non_negative: whether ĉ is held at 0 or above. All for policies that read the spread.
    """

    kind: Kind
    weighted: bool = False
    ridge: float = 1.0
    omega: float = 1.0
    first: float = 0.0
    centred: bool = False
    shared: bool = False
    bias: bool = False
    elasticity: float | None = None
    levels: bool = False
    non_negative: bool = False

    @property
    def level(self) -> float:
        """What the ridge draws each entry of ĉ to before anything is shared."""
        return self.first if self.centred or self.shared else 0.0


NO_ESTIMATE = Estimate(kind=Kind.NONE)


@dataclass(frozen=True, kw_only=True)
class ConfidenceSet:
    """An ellipsoid around each user's estimate: {c : ‖c − ĉ‖ in V ≤ β}.

    center: ĉ, (users, D). gram: V, (users, D, D). radius: β, (users,).
    """

    center: Floats
    gram: Floats
    radius: Floats

    def distance(self, preference: npt.ArrayLike) -> Floats:
        """Return ‖c − ĉ‖ in V for each user; preference is (D,) or (users, D)."""
        difference = np.asarray(preference, dtype=float) - self.center
        squares: Floats = np.einsum("nd,nde,ne->n", difference, self.gram, difference)
        return np.sqrt(squares)

    def contains(self, preference: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Tell for each user whether the preference lies in the set."""
        return self.distance(preference) <= self.radius

    def width(self, direction: npt.ArrayLike) -> Floats:
        """Return β·‖x‖ in V⁻¹: how far c·x can be from ĉ·x within the set, for x of shape (D,) or (users, D)."""
        x = np.broadcast_to(np.asarray(direction, dtype=float), self.center.shape)
        inside = np.zeros(len(x))
        known = self.radius > 0.0  # a set of one point has no width, whatever its shape
        solved = np.linalg.solve(self.gram[known], x[known][..., None])[..., 0]
        inside[known] = np.einsum("nd,nd->n", x[known], solved)
        return np.where(inside > 0.0, self.radius, 0.0) * np.sqrt(inside)  # never ∞·0

    def interval(self) -> tuple[Floats, Floats]:
        """Return the lowest and the highest weight of each objective within the set, each (users, D)."""
        half = np.stack([self.width(axis) for axis in np.eye(self.center.shape[1])], axis=1)
        return self.center - half, self.center + half


def ridge_gram(users: UserStatistics, estimate: Estimate) -> Floats:
    """Return V = λI + Σ w·r·rᵀ for each user, (users, D, D)."""
    moments = estimate.omega * users.weighted if estimate.weighted else users.plain
    return estimate.ridge * np.eye(users.objectives) + moments[:, 1:-1, 1:-1]


def preferences(
    users: UserStatistics,
    estimate: Estimate,
    known: npt.ArrayLike | None = None,
    population: Population | None = None,
    sites: Floats | None = None,
) -> Floats:
    """Return ĉ for each user, (users, D), as the estimate says to form it.

    known: the true mean preferences, (users, D), which only the kind KNOWN reads. population and sites: as in
    `read_ridge`.

    >>> users = UserStatistics.zeros(users=1, objectives=2)
    >>> preferences(users, Estimate(kind=Kind.RIDGE, weighted=True, omega=2.0, first=0.5)).tolist()
    [[0.5, 0.5]]
    >>> users.observe([0, 0], [[1.0, 0.0], [0.0, 1.0]], overall=[0.9, 0.3])
    >>> preferences(users, Estimate(kind=Kind.RIDGE, weighted=True, omega=2.0, first=0.5)).round(3).tolist()
    [[0.6, 0.2]]
    """
    first = np.full((len(users.rounds), users.objectives), estimate.first)
    if estimate.kind == Kind.KNOWN:
        given = np.array(known, dtype=float)  # None becomes a NaN without a shape
        if given.shape != first.shape:
            raise InputError(f"expected the known preferences with shape {first.shape}, got {known!r}")
        return given
    if estimate.kind == Kind.STATED:
        count = users.stated_count[:, None]
        return np.where(count > 0, users.stated_sum / np.maximum(count, 1.0), first)
    if estimate.kind == Kind.NONE:
        return np.full(first.shape, np.nan)
    return read_ridge(users, estimate, population, sites)[:, PREFERENCE : PREFERENCE + users.objectives].copy()


def prior_before(estimate: Estimate, objectives: int) -> Population:
    """Return the prior of a ridge before anything was seen: its strength λ, what it draws to, how it weighs rounds."""
    even, paper = (0.0, estimate.omega) if estimate.weighted or estimate.shared else (1.0, 0.0)
    prior = Population(mean=np.empty(objectives), numbers=np.empty(NUMBERS))
    # Some numbers, once: to have it compiled takes half a second.
    plain(start_population.py_func)(prior, estimate.level, float(estimate.ridge), even, float(paper))
    return prior


def common_to(users: UserStatistics, estimate: Estimate) -> Population:
    """Return what these users have in common, as far as the estimate shares anything."""
    if not estimate.shared:
        return prior_before(estimate, users.objectives)
    return population_of(
        users, bias=estimate.bias, elasticity=estimate.elasticity, levels=estimate.levels, ridge=estimate.ridge
    )


def read_ridge(
    users: UserStatistics, estimate: Estimate, population: Population | None = None, sites: Floats | None = None
) -> Floats:
    """Return what a kernel reads of each user whose ĉ is a ridge, (users, …), as `pamo.reading` lays it out.

    population: what users have in common, for a shared estimate; by default these users are what it is fitted to.
    sites: what two levels made of each user's rounds of before, as `pamo.priors.sites_of` returns it; by default what
    they make of these.
    """
    objectives = users.objectives
    prior = common_to(users, estimate) if population is None or not estimate.shared else population
    out = np.empty((len(users.rows), user_numbers(objectives)))
    room = room_for(objectives)
    read_users(out, users.rows, prior, sites, estimate.non_negative, room, objectives)
    if estimate.level != estimate.first:
        out[users.rounds == 0.0, PREFERENCE : PREFERENCE + objectives] = estimate.first
    return out


def regress(
    users: UserStatistics, estimate: Estimate, population: Population | None = None
) -> tuple[Floats, Floats, Floats]:
    """Return ĉ, (users, D), V⁻¹, (users, D, D), and the noise's variance σ̂², (users,), of a ridge with a prior.

    >>> users = UserStatistics.zeros(users=2, objectives=2)
    >>> users.observe([0, 0], [[1, 0], [0, 1]], overall=[0.9, 0.3])
    >>> regress(users, Estimate(kind=Kind.RIDGE, shared=True))[0].round(2).tolist()  # the second is new
    [[0.88, 0.32], [0.85, 0.35]]
    """
    objectives = users.objectives
    read = read_ridge(users, estimate, population)
    places = inverse_at(objectives) + whole(objectives)
    return read[:, PREFERENCE : PREFERENCE + objectives].copy(), read[:, places], read[:, noise_at(objectives)].copy()


def biases(users: UserStatistics, preference: npt.ArrayLike, population: Population) -> Floats:
    """Return each user's bias b̂, (users,), given ĉ, (users, D): the mean of what c·r leaves, drawn to everybody's.

    It is 0 where the population has none, and everybody's mean for a user who is new.

    >>> users = UserStatistics.zeros(users=2, objectives=1)
    >>> users.observe([0, 0, 0, 0], [[0.1], [0.9], [0.2], [0.8]], overall=[0.4, 0.8, 0.45, 0.75])
    >>> shared = Estimate(kind=Kind.RIDGE, shared=True, bias=True)
    >>> common = common_to(users, shared)
    >>> biases(users, preferences(users, shared, population=common), common).round(2).tolist()
    [0.35, 0.33]
    """
    weights = np.asarray(preference, dtype=float)
    if weights.shape != (len(users.rounds), users.objectives):
        raise InputError(f"expected preference of shape {(len(users.rounds), users.objectives)}, got {weights.shape}")
    numbers = population.numbers
    if numbers[BIAS_RIDGE] < 0.0:
        return np.zeros(len(users.rounds))
    firsts = numbers[PLAIN] * users.plain[:, 0] + numbers[PAPER] * users.weighted[:, 0]  # Σŵ·(1, r, g)
    left = firsts[:, -1] - np.einsum("nd,nd->n", firsts[:, 1:-1], weights)
    return np.asarray((left + numbers[BIAS_RIDGE] * numbers[BIAS_MEAN]) / (firsts[:, 0] + numbers[BIAS_RIDGE]))


def confidence_set(
    users: UserStatistics,
    estimate: Estimate,
    *,
    radius: str = "theory",
    failure: float = 0.05,
    sub_gaussian: float = 1.0,
    beta: float = 0.1,
    known: npt.ArrayLike | None = None,
) -> ConfidenceSet:
    """Return the set around each user's ĉ that holds c̄.

    A ridge estimate has Lemma 2's ellipsoid: with radius="theory" its own β (probability 1 − failure over all
    rounds, for R-sub-Gaussian preferences, R = sub_gaussian), with radius="experiments" the far smaller β of the
    paper's experiments, for which nothing is proved. The mean of n stated preferences lies within
    R·√(2·log(2D/failure)/n) of c̄ in every objective (Hoeffding and a union bound, for one n): the set is the ball
    around that box. A known preference is its own set.

    >>> users = UserStatistics.zeros(users=1, objectives=2)
    >>> users.observe(0, [1.0, 0.0], overall=0.9, preference=[0.9, 0.1])
    >>> bool(confidence_set(users, Estimate(kind=Kind.RIDGE)).contains([0.5, 0.5])[0])
    True
    """
    center = preferences(users, estimate, known)
    count, objectives = center.shape
    if estimate.kind == Kind.KNOWN:
        return ConfidenceSet(center=center, gram=_identity(count, objectives), radius=np.zeros(count))
    if radius not in ("theory", "experiments"):
        raise InputError(f"expected radius 'theory' or 'experiments', got {radius!r}")
    if estimate.kind == Kind.STATED:
        if not 0 < failure < 1:
            raise InputError(f"expected failure between 0 and 1, got {failure}")
        box = sub_gaussian * math.sqrt(2.0 * math.log(2.0 * objectives / failure))
        gram = np.maximum(users.stated_count, 1.0)[:, None, None] * _identity(count, objectives)
        radii = np.where(users.stated_count > 0, box * math.sqrt(objectives), np.inf)
        return ConfidenceSet(center=center, gram=gram, radius=radii)
    if estimate.kind == Kind.NONE:
        raise InputError("this policy forms no preference estimate, so there is no set around one")
    rounds = users.rounds + 1.0  # a user's t is the number of that user's rounds so far, plus one
    if radius == "theory":
        radii = np.array(
            [
                lemma2_radius(
                    t,
                    objectives=objectives,
                    omega=estimate.omega,
                    ridge=estimate.ridge,
                    failure=failure,
                    sub_gaussian=sub_gaussian,
                )
                for t in rounds
            ]
        )
    else:
        radii = np.array([experiments_radius(t, objectives=objectives, beta=beta) for t in rounds])
    return ConfidenceSet(center=center, gram=ridge_gram(users, estimate), radius=radii)


def _identity(count: int, objectives: int) -> Floats:
    return np.broadcast_to(np.eye(objectives), (count, objectives, objectives)).copy()
