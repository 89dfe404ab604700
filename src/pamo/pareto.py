"""Dominance and Pareto fronts, with dominance as the paper defines it: greater in *every* objective."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats
from pamo.compiling import count_of, dimensions, inlined, kernel
from pamo.errors import InputError


@inlined
def margin(points: Floats, j: int, i: int, dims: object) -> float:
    """Return by how much point j beats point i in the objective where it beats it least."""
    least = np.inf
    for d in range(count_of(dims)):
        ahead = points[j, d] - points[i, d]
        least = ahead if ahead < least else least  # as a `min`, of which Numba makes a function that has to be compiled
    return least


@kernel
def mark_front(points: Floats, on_front: Floats, dims: object) -> None:
    """Write 1 for each point that no other dominates, and 0 for the rest."""
    count = len(on_front)
    for i in range(count):
        on_front[i] = 1.0
        for j in range(count):
            if margin(points, j, i, dims) > 0.0:
                on_front[i] = 0.0
                break


@kernel
def shortfall(points: Floats, i: int, first: int, last: int, dims: object) -> float:
    """Return how much point i lacks in every objective to be undominated among the points first … last − 1."""
    lacking = 0.0
    for j in range(first, last):
        lacking = max(lacking, margin(points, j, i, dims))
    return lacking


def dominates(u: npt.ArrayLike, v: npt.ArrayLike) -> bool:
    """Tell whether u ≻ v: u is greater than v in every objective (Appendix, Pareto order).

    >>> dominates([0.8, 0.8], [0.2, 0.2]), dominates([0.8, 0.2], [0.2, 0.2])
    (True, False)
    """
    left, right = np.asarray(u, dtype=float), np.asarray(v, dtype=float)
    if left.shape != right.shape or left.ndim != 1:
        raise InputError(f"expected two vectors of one length, got shapes {left.shape} and {right.shape}")
    return bool(np.all(left > right))


def front(points: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return which of the points (arms × objectives) no other point dominates.

    >>> front([[1.0, 0.0], [0.0, 1.0], [-0.5, -0.5]]).tolist()
    [True, True, False]
    """
    array = _points(points)
    on_front = np.empty(len(array))
    mark_front(array, on_front, dimensions(array.shape[1]))
    return on_front > 0.0


def pareto_gaps(points: npt.ArrayLike) -> Floats:
    """Return each point's distance to the front: the least ε for which point + ε·1 is not dominated.

    This is the regret of an arm in the sense of Drugan & Nowé (2013); it is 0 on the front.

    >>> pareto_gaps([[0.8, 0.8], [0.2, 0.3]]).round(3).tolist()
    [0.0, 0.5]
    """
    array = _points(points)
    dims = dimensions(array.shape[1])
    return np.array([shortfall(array, i, 0, len(array), dims) for i in range(len(array))])


def _points(points: npt.ArrayLike) -> Floats:
    array = np.ascontiguousarray(points, dtype=np.float64)
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(f"expected points as an array of arms × objectives, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise InputError("expected finite points, got NaN or infinity; leave such arms out")
    return array
