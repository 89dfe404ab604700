"""What arms have in common: a prior for an arm of which nothing was seen, fitted to what was seen of the others.

The model: an arm's mean score in objective d is w_d·x + a deviation of variance v_d, x being the constant and the arm's
features; a pull adds noise of variance S_d. Everything is fitted to what a tile says (`pamo.reading`), which is to say
to the arms' rows: S_d by the scatter within arms, w_d by a ridge that weighs an arm as it is known, v_d by its marginal
likelihood. It is diagonal: a whole covariance was no better, and needs more arms.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats
from pamo.compiling import count_of, inlined, kernel
from pamo.errors import InputError
from pamo.priors.features import standardised
from pamo.reading import (
    MEAN,
    between_at,
    common_numbers,
    count_at,
    expected_at,
    freedoms_at,
    padded,
    read_arms,
    tile_height,
    worth_at,
)
from pamo.rows import pair
from pamo.statistics import ArmStatistics

ITERATIONS = 6
"""Of the fixed point for w and v, from the same start every time, so that the prior is a function of the sums."""
LEVEL, BETWEEN, WITHIN = 0.5, 0.05, 0.02
"""What is assumed of means, v and S before anything was seen: scores from 0 to 1, that tell arms apart."""
PRIOR_ARMS, PRIOR_PULLS = 2.0, 2.0
"""How many arms' worth this v counts, and how many pulls' worth this S."""
LEAST = 1e-4
"""The least v: all arms alike, to a hundredth of the scale."""


class ArmsPrior(NamedTuple):
    """What arms have in common.

    mean: what is expected of each, (arms, D). between: the variance between arms, (D,). within: that of an arm's pulls.
    """

    mean: Floats
    between: Floats
    within: Floats


@kernel
def start_arms(tiles: Floats, common: Floats, dims: Any) -> None:
    """Write what is assumed before anything was seen."""
    objectives = count_of(dims)
    expected = expected_at(objectives)
    for d in range(objectives):
        common[between_at(objectives) + d] = BETWEEN
        common[worth_at(objectives) + d] = WITHIN / BETWEEN
        for block in range(len(tiles)):
            tiles[block, expected + d].fill(LEVEL)
            tiles[block, MEAN + d].fill(LEVEL)


@kernel
def fit_arms(tiles: Floats, common: Floats, features: Any, room: Floats, dims: Any) -> None:
    """Fit the prior to the arms of these tiles, and write what it expects of each of them.

    tiles: (blocks, numbers, places). features: (arms, F), as `prepared` returns them, of a single block's arms; None
    where there are none. room: (F + 1, F + 2).
    """
    objectives, count = count_of(dims), 0
    if features is not None:
        count = features.shape[1]
    expected, given, size = expected_at(objectives), count_at(objectives), count + 1
    for d in range(objectives):
        within = common[pair(d, d)] + PRIOR_PULLS * WITHIN
        within /= common[freedoms_at(objectives) + d] + PRIOR_PULLS
        between = BETWEEN
        for _ in range(ITERATIONS):
            # w: a ridge towards the middle of the scale, an arm's worth for the constant.
            room.fill(0.0)
            for block in range(len(tiles)):
                tile = tiles[block]
                for j in range(tile.shape[1]):
                    pulls = tile[given + d, j]
                    if pulls == 0.0:
                        continue
                    weight = 1.0 / (between + within / pulls)
                    value = weight * (tile[MEAN + d, j] - LEVEL)
                    room[count, count] += weight
                    room[count, size] += value
                    if features is not None:
                        for a in range(count):
                            scaled = weight * features[j, a]
                            room[a, size] += value * features[j, a]
                            room[count, a] += scaled
                            for b in range(a + 1):
                                room[a, b] += scaled * features[j, b]
            room[count, count] += 1.0 / between
            for a in range(count):
                room[a, a] += count / BETWEEN
            _solve(room, size)
            # v: MacKay's step, by how well the arms are known.
            total, known = PRIOR_ARMS * BETWEEN, PRIOR_ARMS
            for block in range(len(tiles)):
                tile = tiles[block]
                for j in range(tile.shape[1]):
                    pulls = tile[given + d, j]
                    if pulls == 0.0:
                        continue
                    share = between / (between + within / pulls)
                    away = share * (tile[MEAN + d, j] - _expected(j, room, features, count))
                    total += away * away
                    known += share
            between = max(total / known, LEAST)
        common[between_at(objectives) + d] = between
        common[worth_at(objectives) + d] = within / between
        for block in range(len(tiles)):
            tile = tiles[block]
            for j in range(tile.shape[1]):
                value = _expected(j, room, features, count)
                tile[expected + d, j] = value
                if tile[given + d, j] == 0.0:
                    tile[MEAN + d, j] = value


@inlined
def _expected(j: int, room: Floats, features: Any, count: int) -> float:
    value = LEVEL + room[count, count + 1]
    if features is not None:  # noqa: SIM102  # Numba drops it for a None only as it stands
        if j < len(features):  # not an arm that pads
            for a in range(count):
                value += room[a, count + 1] * features[j, a]
    return float(value)


@kernel
def _solve(room: Floats, size: int) -> None:
    """Write the solution into the last column; the matrix is symmetric, and its lower triangle is overwritten."""
    for a in range(size):
        for b in range(a + 1):
            entry = room[a, b]
            for k in range(b):
                entry -= room[a, k] * room[b, k]
            room[a, b] = math.sqrt(entry) if a == b else entry / room[b, b]
        for b in range(a):
            room[a, size] -= room[a, b] * room[b, size]
        room[a, size] /= room[a, a]
    for a in range(size - 1, -1, -1):
        for b in range(a + 1, size):
            room[a, size] -= room[b, a] * room[b, size]
        room[a, size] /= room[a, a]


def prepared(features: npt.ArrayLike | None, arms: int) -> Floats:
    """Return features, (arms, F), as the fit reads them: around 0, of variance 1, and 0 where one is missing (NaN).

    >>> prepared([[1.0], [3.0], [float("nan")]], arms=3).ravel().tolist()
    [-1.0, 1.0, 0.0]
    """
    table = np.zeros((arms, 0)) if features is None else np.array(features, dtype=float)
    if table.ndim != 2 or len(table) != arms or np.isinf(table).any():
        raise InputError(f"expected finite features of {arms} arms, (arms, F), got an array of shape {table.shape}")
    return np.ascontiguousarray(standardised(table)[0])


def room_for_arms(features: int) -> Floats:
    """Return room to fit a prior with so many features."""
    return np.empty((features + 1, features + 2))


def arms_prior_of(arms: ArmStatistics, features: npt.ArrayLike | None = None) -> ArmsPrior:
    """Return what these arms have in common, and what is expected of each before its own pulls.

    features: of the arms, (arms, F), NaN where one is missing; by default there are none.

    >>> arms = ArmStatistics.zeros(arms=3, objectives=1)
    >>> arms.observe([0, 0, 1, 1], [[0.8], [0.8], [0.9], [0.9]])
    >>> arms_prior_of(arms).mean.round(2).tolist()  # alike for the third, of which nothing was seen
    [[0.72], [0.72], [0.72]]
    """
    count, objectives = len(arms.rows), arms.objectives
    tile, common = np.empty((tile_height(objectives), padded(count))), np.empty(common_numbers(objectives))
    table = prepared(features, count)
    read_arms(tile, arms.rows, common, objectives)
    fit_arms(tile[None], common, table, room_for_arms(table.shape[1]), objectives)
    return arms_prior_in(tile, common, count, objectives)


def arms_prior_in(tile: Floats, common: Floats, arms: int, objectives: int) -> ArmsPrior:
    """Return the prior that a tile of so many arms, and what they have in common, hold."""
    between, worth, expected = between_at(objectives), worth_at(objectives), expected_at(objectives)
    spread = common[between : between + objectives].copy()
    mean = tile[expected : expected + objectives, :arms].T.copy()
    return ArmsPrior(mean, spread, spread * common[worth : worth + objectives])


def expect(tile: Floats, common: Floats, prior: ArmsPrior) -> None:
    """Write a prior into the tile of all arms, and into what they have in common."""
    arms, objectives = prior.mean.shape
    between, worth, expected = between_at(objectives), worth_at(objectives), expected_at(objectives)
    common[between : between + objectives] = prior.between
    common[worth : worth + objectives] = prior.within / prior.between
    tile[expected : expected + objectives, :arms] = prior.mean.T
    unseen = tile[count_at(objectives) : count_at(objectives) + objectives, :arms] == 0.0
    tile[MEAN : MEAN + objectives, :arms][unseen] = prior.mean.T[unseen]
