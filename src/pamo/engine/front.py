"""Which arms are on the Pareto front, with confidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats, Ints
from pamo.compiling import count_of, dimensions, inlined, kernel
from pamo.contract.answers import FrontArm
from pamo.engine.estimates import Known
from pamo.pareto import mark_front
from pamo.plain import plain
from pamo.store import Arms

DRAWS, FEWEST_DRAWS = 2000, 30
"""Draws of all means that a confidence is taken from: fewer with thousands of arms. One standard deviation of it is
0.011 at most with all draws, and 0.09 with the fewest."""
NUMBERS, COMPARISONS = 5_000_000, 30_000_000
"""Random numbers and comparisons of arms that may be spent on the draws: a few tenths of a second."""
SURELY = 4.0
"""Standard deviations by which an arm has to lose to another in every objective to be left out of the draws: it would
be on the front in fewer of them than one of 2000."""
STRONG, WORTH = 16, 20
"""Arms that all others are first compared with in a draw, at most, and of how many others each has to beat one."""


@inlined
def _beats(left: Floats, j: int, right: Floats, i: int, dims: Any) -> bool:
    for d in range(count_of(dims)):  # noqa: SIM110  # a kernel compiles no generators
        if left[j, d] <= right[i, d]:
            return False
    return True


@kernel
def _hopeful(means: Floats, errors: Floats, best: Ints, out: Ints, dims: Any) -> int:
    """Write the arms that none of the best surely beats, and return how many there are."""
    count = 0
    for i in range(len(means)):
        lost = False
        for j in best:
            lost = True
            for d in range(count_of(dims)):
                error = math.sqrt(errors[i, d] * errors[i, d] + errors[j, d] * errors[j, d])
                if means[j, d] - means[i, d] <= SURELY * error:
                    lost = False
                    break
            if lost:
                break
        if not lost:
            out[count] = i
            count += 1
    return count


@kernel
def _strongest(means: Floats, best: Ints, out: Ints, dims: Any) -> int:
    """Write arms that together beat many others, the one that beats most first, and return how many there are."""
    beaten = np.zeros(len(means), dtype=np.bool_)
    for place in range(len(out)):
        most, chosen = 0, -1
        for j in best:
            number = 0
            for i in range(len(means)):
                if not beaten[i] and _beats(means, j, means, i, dims):
                    number += 1
            if number > most:
                most, chosen = number, j
        if most * WORTH < len(means):
            return place
        out[place] = chosen
        for i in range(len(means)):
            if _beats(means, chosen, means, i, dims):
                beaten[i] = True
    return len(out)


@kernel
def _count_fronts(means: Floats, errors: Floats, strong: Ints, noise: Floats, total: Floats, dims: Any) -> int:
    """Add to each arm the number of draws in which it is on the front; return how many comparisons that took.

    What an arm beats, those that beat the arm beat as well. So whoever loses to one of the strong ones need not be
    looked at again, and the others have to be compared only with those of a higher sum that are on the front.
    """
    arms, objectives, compared = len(means), count_of(dims), 0
    points, sums = np.empty((arms, objectives)), np.empty(arms)
    left, front = np.empty(arms, dtype=np.int64), np.empty(arms, dtype=np.int64)
    tops = np.empty((arms, objectives))  # the points of the front, one after another
    for draw in range(len(noise)):
        for i in range(arms):
            sums[i] = 0.0
            for d in range(objectives):
                points[i, d] = means[i, d] + errors[i, d] * noise[draw, i, d]
                sums[i] += points[i, d]
        count = 0
        for i in range(arms):
            lost = False
            for j in strong:
                compared += 1
                if _beats(points, j, points, i, dims):
                    lost = True
                    break
            if not lost:
                left[count] = i
                count += 1
        order = np.argsort(-sums[left[:count]])
        size = 0
        for place in range(count):
            i = left[order[place]]
            lost = False
            for at in range(size):
                if _beats(tops, at, points, i, dims):
                    lost = True
                    other = at // 2  # who beats one may well beat the next: it moves up
                    for d in range(objectives):
                        tops[at, d], tops[other, d] = tops[other, d], tops[at, d]
                    compared += at + 1
                    break
            if not lost:
                compared += size
                front[size] = i
                for d in range(objectives):
                    tops[size, d] = points[i, d]
                size += 1
        for at in range(size):
            total[front[at]] += 1.0
    return compared


def confidence_of(means: Floats, errors: Floats) -> tuple[npt.NDArray[np.bool_], Floats]:
    """Return which arms no other beats in every objective, and the chance that this holds of their true means.

    The chance is the share of draws of all means, each normal around what was seen. The same numbers give the same
    answer.

    >>> on_front, chance = confidence_of(np.array([[0.9, 0.1], [0.5, 0.5], [0.4, 0.4]]), np.full((3, 2), 0.01))
    >>> on_front.tolist(), chance.tolist()
    ([True, True, False], [1.0, 1.0, 0.0])
    """
    dims, marks, chance = dimensions(means.shape[1]), np.empty(len(means)), np.zeros(len(means))
    means, errors = np.ascontiguousarray(means), np.ascontiguousarray(errors)
    mark_front(means, marks, dims)
    best = np.flatnonzero(marks > 0.0)
    rows: Ints = np.empty(len(means), dtype=np.int64)
    rows = rows[: _hopeful(means, errors, best, rows, dims)]
    means, errors = means[rows], errors[rows]
    strong: Ints = np.empty(STRONG, dtype=np.int64)
    strong = strong[: _strongest(means, np.flatnonzero(marks[rows] > 0.0)[:500], strong, dims)]
    numbers, total = np.random.default_rng(0), np.zeros(len(means))
    # The first draw shows what one costs. (Counted, not timed: the same numbers are to give the same answer.)
    cost = _count_fronts(means, errors, strong, numbers.standard_normal((1, *means.shape)), total, dims)
    draws = min(max(min(NUMBERS // means.size, COMPARISONS // max(cost, 1)), FEWEST_DRAWS), DRAWS)
    step = max(1, 1_000_000 // means.size)
    for first in range(1, draws, step):
        noise = numbers.standard_normal((min(step, draws - first), *means.shape))
        _count_fronts(means, errors, strong, noise, total, dims)
    chance[rows] = total / draws
    return marks > 0.0, chance


@dataclass(slots=True, frozen=True)
class Ordered:
    """The active arms in the order of the front: rows of the table, those on it first, then those that may be."""

    table: Arms
    known: Known
    names: Sequence[str]
    rows: Ints
    on_front: npt.NDArray[np.bool_]
    chance: Floats

    def arms(self, limit: int | None = None) -> list[FrontArm]:
        """Return the first so many of them."""
        table, known = self.table, self.known
        return [
            FrontArm(
                table.ids[i],
                table.names[i],
                int(table.statistics.all_pulls[i]),
                bool(self.on_front[i]),
                plain(float(self.chance[i])),
                known.estimates(i, self.names),
            )
            for i in self.rows[:limit].tolist()
        ]


def front_of(table: Arms, known: Known, names: Sequence[str], columns: Sequence[int] | None = None) -> Ordered:
    """Return the Pareto front of the active arms. columns: the objectives that it is of, by default all."""
    chosen = list(range(len(names)) if columns is None else columns)
    active = np.flatnonzero(table.active)
    tried = active[(known.counts[active][:, chosen] > 0.0).all(axis=1)]
    on_front, chance = np.zeros(len(table.ids), dtype=bool), np.full(len(table.ids), np.nan)
    if len(tried):
        on_front[tried], chance[tried] = confidence_of(known.means[tried][:, chosen], known.errors[tried][:, chosen])
    order = np.lexsort((-np.nan_to_num(chance[active]), ~on_front[active]))
    return Ordered(table, known, names, active[order], on_front, chance)
