"""How sums are laid out in rows of numbers, and how rows are turned into statistics.

An arm's row: its moments whole, then the pulls that had an overall score, then count, sum and squares by objective. A
user's row: rounds, then the lower triangles, row by row, of the plain and of the weighted moments. A row of stated
preferences: count, sums, squares. Moments have D + 2 rows and columns: the constant, the rewards, the overall score.
"""

from __future__ import annotations

import numpy as np

from pamo.arrays import Floats
from pamo.compiling import kernel
from pamo.statistics import ArmStatistics, UserStatistics


@kernel
def _unpack(sums: Floats, rounds: Floats, plain: Floats, weighted: Floats) -> None:
    """Write users' rows out as whole matrices."""
    side = plain.shape[1]
    half = side * (side + 1) // 2
    for n in range(len(sums)):
        rounds[n] = sums[n, 0]
        at = 1
        for i in range(side):
            for j in range(i + 1):
                plain[n, i, j] = sums[n, at]
                plain[n, j, i] = sums[n, at]
                weighted[n, i, j] = sums[n, at + half]
                weighted[n, j, i] = sums[n, at + half]
                at += 1


def arm_width(objectives: int) -> int:
    """Return the numbers in an arm's row: whole moments, pulls with an overall score, counts, sums and squares."""
    return (objectives + 2) ** 2 + 1 + 3 * objectives


def user_width(objectives: int) -> int:
    """Return the numbers in a user's row: rounds, and a triangle each of the plain and the weighted moments."""
    return 1 + (objectives + 2) * (objectives + 3)


def stated_width(objectives: int) -> int:
    """Return the numbers in a row of stated preferences."""
    return 1 + 2 * objectives


def arm_statistics(block: Floats, objectives: int) -> ArmStatistics:
    """Return the statistics of which `block` holds the rows: views of it, no copies."""
    side, count = objectives + 2, len(block)
    counts = side * side + 1
    return ArmStatistics(
        moments=block[:, : side * side].reshape(count, side, side),
        overall_pulls=block[:, side * side],
        objective_count=block[:, counts : counts + objectives],
        objective_sum=block[:, counts + objectives : counts + 2 * objectives],
        objective_square=block[:, counts + 2 * objectives :],
    )


def user_statistics(sums: Floats, stated: Floats) -> UserStatistics:
    """Return the statistics of users whose rows, and rows of stated preferences, these are."""
    count, objectives = len(sums), (stated.shape[1] - 1) // 2
    side = objectives + 2
    rounds, plain, weighted = np.empty(count), np.empty((count, side, side)), np.empty((count, side, side))
    _unpack(sums, rounds, plain, weighted)
    return UserStatistics(
        rounds=rounds,
        plain=plain,
        weighted=weighted,
        stated_count=stated[:, 0],
        stated_sum=stated[:, 1 : 1 + objectives],
        stated_square=stated[:, 1 + objectives :],
    )
