"""What users' features tell of their preferences: the mean of a user's prior is m + W·x, as an arm's is with its own.

W is fitted to the users' rows. What user n's rounds say of c_n has the precision S_n = V_n/σ², and c_n itself varies by
τ² around its mean, so that the rounds speak of W·x_n with H_n = S_n·(1 + τ²S_n)⁻¹: a generalised least squares over
everybody, with a ridge that lets all features together explain about τ². It is believed where the rows make it e⁴ times
as likely as none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pamo.arrays import Floats
from pamo.priors.user import NOISE, PAPER, RIDGE, SHARE, Population
from pamo.priors.user import PLAIN as PLAIN_WEIGHT
from pamo.rows import PLAIN, pair, weighted_at, whole
from pamo.statistics import UserStatistics

EVIDENCE = 4.0
"""By how much features have to make the rows more likely, as a logarithm, to be believed."""
EXPLAINED = 0.5
"""Where weights are of two levels, which says more than a mean does: the share of τ² that features have to explain."""


@dataclass(frozen=True)
class Explained:
    """What features tell. weights: W, (F, D), of features around 0 and of variance 1; centre, width: of each, (F,).

    least, most: of each, among those that W is from, (F,). What is beyond counts as they do: nothing is known of there.
    """

    weights: Floats
    centre: Floats
    width: Floats
    least: Floats
    most: Floats

    def offsets(self, table: Floats) -> Floats:
        """Return by how much the means of users' priors differ from everybody's, (users, D); NaN: a missing feature."""
        with np.errstate(over="ignore"):
            away = np.clip((table - self.centre) / self.width, self.least, self.most)
        return np.asarray(np.where(np.isnan(table), 0.0, away) @ self.weights)


def standardised(table: Floats) -> tuple[Floats, Floats, Floats]:
    """Return features, (n, F), around 0 and of variance 1, and centre and width of each, (F,).

    One that is missing (NaN) is 0, and so is one that all have alike.

    >>> standardised(np.array([[1.0], [3.0], [np.nan]]))[0].ravel().tolist()
    [-1.0, 1.0, 0.0]
    """
    known = ~np.isnan(table)
    counts = np.maximum(known.sum(axis=0), 1)
    # Squares of numbers of any size stay within a float's range: by powers of two, which change no digit.
    sizes = np.frexp(np.where(known, np.abs(table), 0.0).max(axis=0, initial=0.0))[1]
    scaled = np.ldexp(np.where(known, table, 0.0), -sizes)
    centre = scaled.sum(axis=0) / counts
    away = np.where(known, scaled - centre, 0.0)
    width = np.sqrt((away**2).sum(axis=0) / counts)
    whole = np.where(width > 0.0, np.maximum(np.ldexp(width, sizes), np.finfo(float).tiny), 1.0)
    return away / np.where(width > 0.0, width, 1.0), np.ldexp(centre, sizes), whole


def without(users: UserStatistics, offsets: Floats) -> UserStatistics:
    """Return users' sums as if what their features tell had been taken off each overall score: g − o·r.

    >>> users = UserStatistics.zeros(users=1, objectives=2)
    >>> users.observe(0, [0.5, 1.0], overall=0.9)
    >>> without(users, np.array([[0.2, 0.3]])).plain[0, 3].round(2).tolist()
    [0.5, 0.25, 0.5, 0.25]
    """
    objectives = users.objectives
    size, rows = objectives + 2, users.rows.copy()
    places = np.array([pair(size - 1, place) for place in range(size)])
    for start in (PLAIN, weighted_at(objectives)):
        moments = users.rows[:, start + whole(size)]
        moved = moments[:, -1] - np.einsum("nd,ndj->nj", offsets, moments[:, 1:-1])
        moved[:, -1] -= np.einsum("nd,nd->n", offsets, moved[:, 1:-1])
        rows[:, start + places] = moved
    return UserStatistics(rows=rows, stated=users.stated)


def explained_by(users: UserStatistics, table: Floats, population: Population) -> Explained | None:
    """Return what features tell of these users' preferences; None where they tell nothing that is believed.

    table: (users, F), NaN where one is missing. population: what the users have in common.
    """
    numbers, objectives = population.numbers, users.objectives
    (features, centre, width), noise = standardised(table), float(numbers[NOISE])
    if not features.any() or noise <= 0.0 or numbers[RIDGE] <= 0.0:
        return None
    spread = noise / float(numbers[RIDGE])
    moments = np.asarray(numbers[PLAIN_WEIGHT] * users.plain + numbers[PAPER] * users.weighted) / noise
    precision, told = moments[:, 1:-1, 1:-1], moments[:, 1:-1, -1] - moments[:, 1:-1, 1:-1] @ population.mean
    shrunk = np.linalg.inv(np.eye(objectives) + spread * precision)
    precision, told = shrunk @ precision, np.einsum("nde,ne->nd", shrunk, told)
    count = features.shape[1]
    matrix = np.einsum("nf,ng,nde->fdge", features, features, precision, optimize=True)
    matrix = matrix.reshape(count * objectives, count * objectives)
    right = (features.T @ told).ravel()
    ridge = count / spread
    weights = np.linalg.solve(matrix + ridge * np.eye(len(matrix)), right)
    _, size = np.linalg.slogdet(np.eye(len(matrix)) + matrix / ridge)
    if 0.5 * (right @ weights - size) < EVIDENCE:
        return None
    reach = features.min(axis=0), features.max(axis=0)
    found = Explained(weights.reshape(count, objectives), centre, width, *reach)
    offsets = found.offsets(table)
    share = float(offsets.var(axis=0).mean()) / spread
    return None if numbers[SHARE] > 0.0 and share < EXPLAINED else found
