"""What incomplete feedback says: scores that were not given are foretold, and rounds weigh as far as that is possible.

A pair's row (`pamo.rows`) sums the rounds of one user with one arm whose reward was incomplete. Its mean reward is put
together from the scores that were given and, for the rest, from the arm's mean as it is now; the rounds then weigh
s²/(s² + x), s² the noise of an overall score and x the variance of what was foretold. Put together so, they are added
to the row of the user's complete rounds, and whoever reads a user reads one row.

An objective that is hardly ever given has no means to foretell it from. Where overall scores are all that tells of it,
each arm's score on it is found as a hidden factor: the one that the users' overall scores ask for, given their
preferences, which in turn are estimated given the arms' scores (alternating, from both sides' priors).

What an arm is worth beyond its scores, to all (q) or to one user (p), is what is left of the pairs' overall scores. It
is used only where its variance is significant: who has no need of it must not pay for it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from pamo.arrays import Floats, Ints
from pamo.compiling import count_of, inlined, kernel
from pamo.priors.arms import ArmsPrior
from pamo.priors.user import PAPER, Population
from pamo.priors.user import PLAIN as PLAIN_WEIGHT
from pamo.reading import PREFERENCE, inverse_at, noise_at
from pamo.rows import (
    PAIR_COUNT,
    PAIR_GIVEN,
    PAIR_OVERALL,
    PAIR_SQUARE,
    PLAIN,
    counts_at,
    observe,
    pair,
    square_of,
    triangle,
    weighted_at,
)
from pamo.statistics import ArmStatistics, Pairs, UserStatistics
from pamo.streams import normal, stream_for

RARE = 0.05
"""The share of pulls below which an objective counts as hidden."""
FEWEST_PULLS = 20.0
"""Pulls of all arms from which on that can be told."""
FIRST_MEAN, FIRST_VARIANCE, FIRST_NOISE = 0.5, 0.05, 0.02
"""What is assumed of scores, on their scale from 0 to 1: the mean and the variance of arms, and the variance within."""
LEAST_NOISE = 1e-5
"""Variance of an overall score below which a scale of 0 to 1 is not kept."""
GATE, FEWEST_PAIRS, FEWEST_ARMS, NOISE_PAIRS = 3.0, 20.0, 10.0, 5.0
"""Standard errors that a variance of offsets must be above 0, from how many degrees of freedom and arms on, and how
many degrees of freedom's worth the regression's own noise counts."""

PAIR_VARIANCE, ARM_VARIANCE, NOISE = range(3)
"""Places in `Foretold.numbers`: the variances of p and q, 0 where they are not used, and that of an overall score."""


class Foretold(NamedTuple):
    """What stands in for scores that were not given.

    means: (arms, D), where an arm has none. doubts: (arms, …), the triangles of their covariances. offsets: (arms, 2),
    q of each arm and from how many rounds. level, between: (D,), the mean of arms' means and their variance. within:
    (D,), the variance of scores within an arm. hidden: (D,), 1 where an objective is hardly ever given. numbers: see
    `PAIR_VARIANCE`.
    """

    means: Floats
    doubts: Floats
    offsets: Floats
    level: Floats
    within: Floats
    between: Floats
    hidden: Floats
    numbers: Floats

    @classmethod
    def blank(cls, arms: int, objectives: int) -> Self:
        """Return what is foretold before anything was seen."""
        return cls(
            means=np.full((arms, objectives), FIRST_MEAN),
            doubts=np.zeros((arms, triangle(objectives))),
            offsets=np.zeros((arms, 2)),
            level=np.full(objectives, FIRST_MEAN),
            within=np.full(objectives, FIRST_NOISE),
            between=np.full(objectives, FIRST_VARIANCE),
            hidden=np.zeros(objectives),
            numbers=np.array([0.0, 0.0, FIRST_NOISE]),
        )

    def grown(self, arms: int) -> Self:
        """Return a copy for so many arms, of which the last may be new."""
        new = self.blank(arms, len(self.level))
        new.means[:] = self.level
        new.doubts[:, [pair(d, d) for d in range(len(self.level))]] = self.between
        for own, old in zip(new[:3], self[:3], strict=True):
            own[: len(old)] = old[:arms]
        for own, old in zip(new[3:], self[3:], strict=True):
            own[:] = old
        start_factors(new, (np.arange(arms) >= len(self.means))[:, None] & (self.hidden > 0.0))
        return new

    @property
    def has_offsets(self) -> bool:
        """Whether anything is worth more, or less, than its scores say."""
        return bool(self.numbers[PAIR_VARIANCE] > 0.0 or self.numbers[ARM_VARIANCE] > 0.0)


@inlined
def _is_latent(row: Floats, foretold: Foretold, d: int, dims: Any) -> bool:
    """Tell whether an arm's score on an objective is found as a hidden factor."""
    return bool(foretold.hidden[d] > 0.0 and row[counts_at(count_of(dims)) + d] == 0.0)


@inlined
def _mean(row: Floats, foretold: Foretold, i: int, d: int, dims: Any) -> float:
    """The arm's mean of an objective: of those who gave it, else what is foretold."""
    counts = counts_at(count_of(dims))
    if row[counts + d] > 0.0:
        return float(row[counts + count_of(dims) + d] / row[counts + d])
    return float(foretold.means[i, d])


@inlined
def _put_together(
    values: Floats, own: Floats, arm_row: Floats, foretold: Foretold, i: int, user: Floats, dims: Any
) -> float:
    """Write a pair's mean reward and overall score, and return the variance that foretelling adds to a round of it."""
    objectives, counts, count = count_of(dims), counts_at(count_of(dims)), own[PAIR_COUNT]
    extra = 0.0
    for d in range(objectives):
        missing = 1.0 - own[PAIR_GIVEN + d] / count
        values[d] = own[PAIR_GIVEN + objectives + d] / count
        if missing > 0.0:
            values[d] += missing * _mean(arm_row, foretold, i, d, dims)
            doubt = 0.0  # of a hidden factor it is in the moments
            if not _is_latent(arm_row, foretold, d, dims):
                seen = arm_row[counts + d]
                doubt = foretold.within[d] / (seen + foretold.within[d] / foretold.between[d])
            weight = user[PREFERENCE + d]
            extra += weight * weight * missing * (foretold.within[d] + missing * count * doubt)
    values[objectives] = own[PAIR_OVERALL] / count
    return extra


@inlined
def _noise(user: Floats, values: Floats, population: Population, dims: Any) -> float:
    """The variance of an overall score for a reward like this."""
    square = max(square_of(values, count_of(dims)), 1e-9)
    weight = population.numbers[PLAIN_WEIGHT] + population.numbers[PAPER] / square
    return float(max(user[noise_at(count_of(dims))] / max(weight, 1e-9), LEAST_NOISE))


@kernel
def _add_pairs(
    out: Floats,
    pairs: Pairs,
    arm_rows: Floats,
    foretold: Foretold,
    read: Floats,
    population: Population,
    values: Floats,
    dims: Any,
) -> None:
    """Add to each user's row what the pairs' rows say; read: what is known of each user so far."""
    objectives = count_of(dims)
    last, weighted = objectives + 1, weighted_at(objectives)
    for n in range(len(out)):
        row, user = out[n], read[n]
        for line in range(pairs.starts[n], pairs.starts[n + 1]):
            own, i = pairs.rows[line], pairs.arms[line]
            count = own[PAIR_COUNT]
            if count <= 0.0:
                continue
            extra = _put_together(values, own, arm_rows[i], foretold, i, user, dims)
            noise = _noise(user, values, population, dims)
            share = noise / (noise + extra)
            inverse = 1.0 / max(square_of(values, objectives), 1e-9)
            left = share * max(own[PAIR_SQUARE] - count * values[objectives] * values[objectives], 0.0)
            values[objectives] -= foretold.offsets[i, 0]
            observe(row, PLAIN, share * count, values, objectives + 2)
            observe(row, weighted, share * count * inverse, values, objectives + 2)
            row[PLAIN + pair(last, last)] += left
            row[weighted + pair(last, last)] += inverse * left
            for d in range(objectives):
                for e in range(d + 1):
                    doubt = share * count * foretold.doubts[i, pair(d, e)]
                    if (
                        doubt != 0.0
                        and _is_latent(arm_rows[i], foretold, d, dims)
                        and _is_latent(arm_rows[i], foretold, e, dims)
                    ):
                        row[PLAIN + pair(d + 1, e + 1)] += doubt
                        row[weighted + pair(d + 1, e + 1)] += inverse * doubt


def whole_rows(
    users: UserStatistics,
    pairs: Pairs,
    arms: ArmStatistics,
    foretold: Foretold,
    read: Floats,
    population: Population,
) -> UserStatistics:
    """Return the users' rows with what their pairs' rows say added; read: what is known of each user so far."""
    rows = users.rows.copy()
    values = np.empty(users.objectives + 1)
    _add_pairs(rows, pairs, arms.rows, foretold, read, population, values, users.objectives)
    return UserStatistics(rows=rows, stated=users.stated)


def foretell_rounds(
    given: Floats, places: Ints, arms: ArmStatistics, foretold: Foretold, user: Floats, population: Population
) -> tuple[Floats, Floats]:
    """Return a user's rounds with what was not given foretold, and how much each weighs.

    given: (rounds, D + 1), NaN for a score that was not given. places: the rounds' arms. user: what is known of them.
    """
    objectives = arms.objectives
    count, total = arms.objective_count[places], arms.objective_sum[places]
    missing = np.isnan(given[:, :-1])
    values = given.copy()
    means = np.where(count > 0.0, total / np.maximum(count, 1.0), foretold.means[places])
    values[:, :-1] = np.where(missing, means, given[:, :-1])
    values[:, -1] -= foretold.offsets[places, 0]
    diagonal = foretold.doubts[places][:, [pair(d, d) for d in range(objectives)]]
    ordinary = foretold.within / (count + foretold.within / foretold.between)
    doubt = np.where((count == 0.0) & (foretold.hidden > 0.0), diagonal, ordinary)
    weights = user[PREFERENCE : PREFERENCE + objectives]
    extra = np.where(missing, weights**2 * (foretold.within + doubt), 0.0).sum(axis=1)
    square = np.maximum((values[:, :-1] ** 2).sum(axis=1), 1e-9)
    weight = population.numbers[PLAIN_WEIGHT] + population.numbers[PAPER] / square
    noise = np.maximum(user[noise_at(objectives)] / np.maximum(weight, 1e-9), LEAST_NOISE)
    return values, noise / (noise + extra)


# ---- what is foretold


def use_prior(foretold: Foretold, prior: ArmsPrior, arms: ArmStatistics) -> None:
    """Take what arms have in common into what is foretold, and see which objectives are hidden."""
    pulls, seen, before = float(arms.all_pulls.sum()), arms.objective_count > 0.0, foretold.hidden > 0.0
    foretold.hidden[:] = (arms.objective_count.sum(axis=0) < RARE * pulls) & (pulls >= FEWEST_PULLS)
    foretold.within[:], foretold.between[:] = prior.within, prior.between
    foretold.level[:] = prior.mean.mean(axis=0)
    latent = ~seen & (foretold.hidden > 0.0)
    foretold.means[~latent] = prior.mean[~latent]
    foretold.between[foretold.hidden > 0.0] = FIRST_VARIANCE
    start_factors(foretold, latent & ~before)


def start_factors(foretold: Foretold, where: Any) -> None:
    """Draw first guesses of hidden factors, since from equal ones nothing would tell arms apart: always the same."""
    stream = stream_for(0, 0, 0)
    for i, d in np.argwhere(where):
        foretold.means[i, d] = FIRST_MEAN + math.sqrt(FIRST_VARIANCE) * normal(stream)


@kernel
def _ask_factors(
    room: Floats,
    foretold: Foretold,
    pairs: Pairs,
    arm_rows: Floats,
    read: Floats,
    population: Population,
    values: Floats,
    dims: Any,
) -> None:
    """Add up each arm's normal equations for its hidden factors, (arms, D + 1, D) with the right side last."""
    objectives, inverse = count_of(dims), inverse_at(count_of(dims))
    for n in range(len(read)):
        user = read[n]
        noise_of_user = user[noise_at(objectives)]
        for line in range(pairs.starts[n], pairs.starts[n + 1]):
            own, i = pairs.rows[line], pairs.arms[line]
            if own[PAIR_COUNT] <= 0.0:
                continue
            extra = _put_together(values, own, arm_rows[i], foretold, i, user, dims)
            weight = own[PAIR_COUNT] / (_noise(user, values, population, dims) + extra)
            left = values[objectives] - foretold.offsets[i, 0]
            for d in range(objectives):
                if not _is_latent(arm_rows[i], foretold, d, dims):
                    left -= user[PREFERENCE + d] * values[d]
            for d in range(objectives):
                if not _is_latent(arm_rows[i], foretold, d, dims):
                    continue
                right = user[PREFERENCE + d] * left
                for e in range(objectives):
                    both = noise_of_user * user[inverse + (pair(d, e) if e <= d else pair(e, d))]
                    if _is_latent(arm_rows[i], foretold, e, dims):
                        room[i, d, e] += weight * (user[PREFERENCE + d] * user[PREFERENCE + e] + both)
                    else:
                        right -= both * values[e]
                room[i, objectives, d] += weight * right


def fit_factors(foretold: Foretold, pairs: Pairs, arms: ArmStatistics, read: Floats, population: Population) -> None:
    """Fit arms' scores on hidden objectives to the users' overall scores, given the users' preferences."""
    objectives = arms.objectives
    room, values = np.zeros((len(arms.rows), objectives + 1, objectives)), np.empty(objectives + 1)
    _ask_factors(room, foretold, pairs, arms.rows, read, population, values, objectives)
    latent = (arms.objective_count == 0.0) & (foretold.hidden > 0.0) & (arms.all_pulls > 0.0)[:, None]
    matrix, right = room[:, :objectives], room[:, objectives]
    diagonal = np.einsum("idd->id", matrix)
    diagonal += np.where(latent, 1.0 / FIRST_VARIANCE, 1.0)  # what is not hidden stands apart from the rest
    right += np.where(latent, FIRST_MEAN / FIRST_VARIANCE, 0.0)
    inverse = np.linalg.inv(matrix)
    means = np.einsum("ide,ie->id", inverse, right)
    foretold.means[latent] = means[latent]
    for d in range(objectives):
        for e in range(d + 1):
            both = latent[:, d] & latent[:, e]
            foretold.doubts[both, pair(d, e)] = inverse[both, d, e]


# ---- what an arm is worth beyond its scores


@kernel
def _left_over(
    out: Floats, pairs: Pairs, arm_rows: Floats, foretold: Foretold, read: Floats, values: Floats, dims: Any
) -> None:
    """Write for each pair what ĉ·r leaves of its overall scores, Σ(g − ĉ·r), q not taken off."""
    for n in range(len(read)):
        for line in range(pairs.starts[n], pairs.starts[n + 1]):
            own, i, out[line] = pairs.rows[line], pairs.arms[line], 0.0
            if own[PAIR_COUNT] > 0.0:
                _put_together(values, own, arm_rows[i], foretold, i, read[n], dims)
                left = values[count_of(dims)]
                for d in range(count_of(dims)):
                    left -= read[n, PREFERENCE + d] * values[d]
                out[line] = own[PAIR_COUNT] * left


def left_over(pairs: Pairs, arms: ArmStatistics, foretold: Foretold, read: Floats) -> Floats:
    """Return for each pair Σ(g − ĉ·r) over its rounds."""
    out, values = np.empty(len(pairs.rows)), np.empty(arms.objectives + 1)
    _left_over(out, pairs, arms.rows, foretold, read, values, arms.objectives)
    return out


def fit_offsets(foretold: Foretold, pairs: Pairs, arms: ArmStatistics, read: Floats, noise: float) -> None:
    """Fit the variances of p and q by their moments, each counted only as far as it is significant, and q of each arm.

    noise: the variance of an overall score by the regression.
    """
    count, left = pairs.rows[:, PAIR_COUNT], left_over(pairs, arms, foretold, read)
    within = pairs.rows[:, PAIR_SQUARE] - pairs.rows[:, PAIR_OVERALL] ** 2 / np.maximum(count, 1.0)
    several = count > 1.0
    # Within a pair all that varies is noise, and scores that were not given. Of scores that never vary, rounding may
    # leave less than nothing.
    error = (within[several].sum() + NOISE_PAIRS * noise) / ((count[several] - 1.0).sum() + NOISE_PAIRS)
    error = max(error, LEAST_NOISE)
    kept = count > 0.0
    size = len(arms.rows)
    totals, rounds, squares, own = (
        np.bincount(pairs.arms[kept], weights=one[kept], minlength=size)
        for one in (left, count, count**2, left**2 / np.maximum(count, 1.0))
    )
    seen = rounds > 0.0
    number = float(seen.sum())
    degrees = float(kept.sum()) - number
    foretold.numbers[:] = 0.0, 0.0, error
    foretold.offsets[:] = 0.0
    if degrees < FEWEST_PAIRS:
        return
    each = np.maximum(rounds, 1.0)
    between = (own - totals**2 / each)[seen].sum()
    scale = (rounds - squares / each)[seen].sum()
    if scale > 0.0:
        room = GATE * error * math.sqrt(2.0 * degrees)
        foretold.numbers[PAIR_VARIANCE] = max((between - degrees * error - room) / scale, 0.0)
    if number >= FEWEST_ARMS:
        mean = (totals / each)[seen]
        variance = (error / each + foretold.numbers[PAIR_VARIANCE] * squares / each**2)[seen]
        weight = 1.0 / (variance + 1e-3)
        away = (mean - (weight * mean).sum() / weight.sum()) ** 2 - variance
        gate = GATE * math.sqrt(2.0 * ((weight * variance) ** 2).sum())
        foretold.numbers[ARM_VARIANCE] = max(((weight * away).sum() - gate) / weight.sum(), 0.0)
    if foretold.numbers[ARM_VARIANCE] > 0.0:
        doubt = error / each + foretold.numbers[PAIR_VARIANCE] * squares / each**2
        shrunk = foretold.numbers[ARM_VARIANCE] / (foretold.numbers[ARM_VARIANCE] + doubt)
        foretold.offsets[:, 0] = np.where(seen, shrunk * totals / each, 0.0)
        foretold.offsets[:, 1] = rounds


def offsets_of(pairs: Pairs, arms: ArmStatistics, foretold: Foretold, read: Floats) -> Floats:
    """Return what each arm is worth to one user beyond its scores, and how much more it may be, (2, arms)."""
    pair_variance, arm_variance, error = foretold.numbers
    out = np.zeros((2, len(arms.rows)))
    out[0] = foretold.offsets[: len(arms.rows), 0]
    if pair_variance > 0.0:
        count, prior = np.zeros(len(arms.rows)), error / pair_variance
        count[pairs.arms] = pairs.rows[:, PAIR_COUNT]
        left = left_over(pairs, arms, foretold, read) - count[pairs.arms] * out[0, pairs.arms]
        out[0, pairs.arms] += left / (count[pairs.arms] + prior)
        out[1] += np.sqrt(error / (count + prior))
    if arm_variance > 0.0:
        out[1] += np.sqrt(error / (foretold.offsets[: len(arms.rows), 1] + error / arm_variance))
    return out
