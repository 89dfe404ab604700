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
    """What features tell. weights: W, (F, D), of features around 0 and of variance 1; centre, width: of each, (F,)."""

    weights: Floats
    centre: Floats
    width: Floats

    def offsets(self, table: Floats) -> Floats:
        """Return by how much the means of users' priors differ from everybody's, (users, D); NaN: a missing feature."""
        known = np.where(np.isnan(table), 0.0, (table - self.centre) / self.width)
        return np.asarray(known @ self.weights)


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
    known = ~np.isnan(table)
    counts = np.maximum(known.sum(axis=0), 1)
    centre = np.where(known, table, 0.0).sum(axis=0) / counts
    away = np.where(known, table - centre, 0.0)
    width = np.sqrt((away**2).sum(axis=0) / counts)
    width = np.where(width > 0.0, width, 1.0)
    features, noise = away / width, float(numbers[NOISE])
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
    found = Explained(weights.reshape(count, objectives), centre, width)
    offsets = found.offsets(table)
    share = float(offsets.var(axis=0).mean()) / spread
    return None if numbers[SHARE] > 0.0 and share < EXPLAINED else found
