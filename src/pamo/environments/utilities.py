"""What a reward vector is worth to a user who weighs the objectives: their sum, the worst of them, or the worst most.

    linear      Σ_d c_d·r_d
    chebyshev   min_d c_d·r_d                       (Drugan & Nowé 2013, the point of reference being 0)
    gini        Σ_k 2^(1−k)·x_(k), x = (c_d·r_d) in rising order   (the generalised Gini index, Busa-Fekete et al. 2017)

Each is the least of several linear ones. So a mix of arms may be worth more than the arms that it is made of.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats
from pamo.compiling import count_of, inlined
from pamo.errors import InputError

LINEAR, CHEBYSHEV, GINI = range(3)
UTILITIES = {"linear": LINEAR, "chebyshev": CHEBYSHEV, "gini": GINI}
MOST_OBJECTIVES = 7
"""The most that `planes` takes for the Gini index: it has a plane for each order of them."""


@inlined
def worth(weights: Floats, reward: Floats, utility: int, dims: Any) -> float:
    """Return what a reward is worth to whoever weighs its objectives so."""
    objectives = count_of(dims)
    if utility == LINEAR:
        total = 0.0
        for d in range(objectives):
            total += weights[d] * reward[d]
        return total
    if utility == CHEBYSHEV:
        least = np.inf
        for d in range(objectives):
            mine = weights[d] * reward[d]
            least = mine if mine < least else least
        return least
    total = 0.0
    for d in range(objectives):
        mine, share = weights[d] * reward[d], 1.0
        for e in range(objectives):  # each objective that is worse off takes half of the share
            other = weights[e] * reward[e]
            if other < mine or (other == mine and e < d):
                share *= 0.5
        total += share * mine
    return total


def planes(weights: npt.ArrayLike, utility: str) -> Floats:
    """Return (planes, D): the linear utilities of which this one is the least.

    >>> planes([2.0, 1.0], "gini").tolist()
    [[2.0, 0.5], [1.0, 1.0]]
    """
    own = np.asarray(weights, dtype=np.float64)
    if utility == "linear":
        return own[None]
    if utility == "chebyshev":
        return np.diag(own)
    if len(own) > MOST_OBJECTIVES:
        raise InputError(f"expected at most {MOST_OBJECTIVES} objectives for the Gini index of a mix, got {len(own)}")
    orders = np.array(list(permutations(range(len(own)))))
    result: Floats = own * 0.5**orders
    return result


def utility_of(points: npt.ArrayLike, weights: npt.ArrayLike, utility: str) -> Floats:
    """Return what each of the points, (…, D), is worth.

    >>> utility_of([[1.0, 0.0], [0.4, 0.4]], [1.0, 1.0], "gini").round(2).tolist()
    [0.5, 0.6]
    """
    result: Floats = (np.asarray(points, dtype=np.float64) @ planes(weights, utility).T).min(axis=-1)
    return result


def best_mix(means: npt.ArrayLike, weights: npt.ArrayLike, utility: str) -> tuple[float, Floats]:
    """Return what the best mix of the arms, (arms, D), is worth, and its shares: no arm may be worth as much.

    It is a game in which one chooses an arm and another a plane: solved by the simplex method.

    >>> value, shares = best_mix([[1.0, 0.0], [0.0, 1.0], [0.4, 0.4]], [1.0, 1.0], "gini")
    >>> round(value, 6), shares.round(6).tolist()
    (0.75, [0.5, 0.5, 0.0])
    """
    payoff = np.asarray(means, dtype=np.float64) @ planes(weights, utility).T
    shift = 1.0 - payoff.min()
    arms, columns = payoff.shape
    table = np.zeros((arms + 1, columns + arms + 1))
    table[:-1, :columns], table[:-1, columns:-1], table[:-1, -1] = payoff + shift, np.eye(arms), 1.0
    table[-1, :columns] = -1.0
    basis = np.arange(columns, columns + arms)
    while (table[-1, :-1] < -1e-12).any():
        entering = int(np.argmax(table[-1, :-1] < -1e-12))  # the first, in both choices, so that it comes to an end
        up = table[:-1, entering] > 1e-12
        ratios = np.where(up, table[:-1, -1] / np.where(up, table[:-1, entering], 1.0), np.inf)
        ties = np.flatnonzero(ratios <= ratios.min() * (1.0 + 1e-12))
        leaving = ties[np.argmin(basis[ties])]
        table[leaving] /= table[leaving, entering]
        others = np.arange(arms + 1) != leaving
        table[others] -= np.outer(table[others, entering], table[leaving])
        basis[leaving] = entering
    total = table[-1, -1]
    return float(1.0 / total - shift), table[-1, columns:-1] / total


def regret_of_mix(pulls: npt.ArrayLike, means: npt.ArrayLike, weights: npt.ArrayLike, utility: str) -> Floats:
    """Return T·(what the best mix is worth − what the mean of all that was given is), for pulls of (trials, arms).

    >>> means = [[1.0, 0.0], [0.0, 1.0], [0.4, 0.4]]
    >>> regret_of_mix([[0, 0, 100], [50, 50, 0]], means, [1.0, 1.0], "gini").round(6).tolist()
    [15.0, 0.0]
    """
    counts = np.asarray(pulls, dtype=np.float64)
    rounds = counts.sum(axis=-1)
    given = counts @ np.asarray(means, dtype=np.float64) / rounds[..., None]
    result: Floats = rounds * (best_mix(means, weights, utility)[0] - utility_of(given, weights, utility))
    return result
