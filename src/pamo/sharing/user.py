"""One user's estimate: from the user's moments and what is known of users in general."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from pamo.arrays import Floats
from pamo.compiling import count_of, inlined, kernel

NOISE, PRIOR_ROUNDS, RIDGE, BIAS_RIDGE, BIAS_MEAN, PLAIN, PAPER, COUNT = range(8)
"""Places in `Population.numbers`."""

_LEAST = 1e-12
_SWEEPS = 1000


class Population(NamedTuple):
    """What is known of users in general.

    mean: m, (D,). numbers: σ², the rounds that it counts for, λ = σ²/τ², the same for the bias (below 0 for none),
    the bias's mean, the weights of the moments with w = 1 and with w = 1/‖r‖², and the rounds that it was fitted to.
    """

    mean: Floats
    numbers: Floats


@kernel
def start_population(population: Population, level: float, ridge: float, weight: float) -> None:
    """Write what is assumed before anything was seen: all objectives weigh alike, and the paper's weights."""
    population.mean.fill(level)
    population.numbers.fill(0.0)
    population.numbers[RIDGE] = ridge
    population.numbers[BIAS_RIDGE] = -1.0
    population.numbers[PAPER] = weight


@inlined
def add_moments(
    plain: Floats, weighted: Floats, row: int, weight: float, reward: Floats, overall: float, dims: Any
) -> None:
    """Add z·zᵀ to a row of the one and w·z·zᵀ to a row of the other, on and below the diagonal alone."""
    last = count_of(dims) + 1
    plain[row, 0, 0] += 1.0
    weighted[row, 0, 0] += weight
    plain[row, last, 0] += overall
    weighted[row, last, 0] += weight * overall
    plain[row, last, last] += overall * overall
    weighted[row, last, last] += weight * overall * overall
    for d in range(count_of(dims)):
        scaled = weight * reward[d]
        plain[row, d + 1, 0] += reward[d]
        weighted[row, d + 1, 0] += scaled
        plain[row, last, d + 1] += reward[d] * overall
        weighted[row, last, d + 1] += scaled * overall
        for e in range(d + 1):
            plain[row, d + 1, e + 1] += reward[d] * reward[e]
            weighted[row, d + 1, e + 1] += scaled * reward[e]


@inlined
def _hold_positive(preference: Floats, n: int, root: Floats, room: Floats, dims: Any) -> None:
    """Move ĉ to the nearest point, in V, whose entries are all at least 0: coordinate ascent on the multipliers."""
    objectives = count_of(dims)
    size = 0.0
    for d in range(objectives):
        room[0, d] = 0.0  # the multipliers
        size = max(size, abs(preference[n, d]))
    for _ in range(_SWEEPS):
        moved = 0.0
        for d in range(objectives):
            diagonal = 0.0  # of V⁻¹ = RᵀR
            for k in range(d, objectives):
                diagonal += root[k, d] * root[k, d]
            step = max(-room[0, d], -preference[n, d] / diagonal)
            room[0, d] += step
            moved = max(moved, abs(step) * diagonal)
            for e in range(objectives):
                along = 0.0
                for k in range(max(d, e), objectives):
                    along += root[k, d] * root[k, e]
                preference[n, e] += step * along
        if moved <= 1e-3 * _LEAST * size:
            break
    for d in range(objectives):
        preference[n, d] = max(preference[n, d], 0.0)


@inlined
def solve_user(
    preference: Floats,
    n: int,
    root: Floats,
    plain: Floats,
    weighted: Floats,
    row: int,
    population: Population,
    non_negative: bool,
    room: Floats,
    dims: Any,
) -> float:
    """Write user n's ĉ, and R with V⁻¹ = RᵀR (on and below the diagonal), from a row of the moments.

    V = λI + Σŵ·r·rᵀ, a bias of the user's own, where there is one, being integrated out. ĉ = V⁻¹(λm + Σŵ·g·r).
    Returns the squares left over, the least of Σŵ(g − c·r)² + λ‖c − m‖². `room` is scratch of 3 rows of D.
    """
    objectives = count_of(dims)
    last = objectives + 1
    numbers, mean = population.numbers, population.mean
    one, two, ridge = numbers[PLAIN], numbers[PAPER], numbers[RIDGE]
    squares = one * plain[row, last, last] + two * weighted[row, last, last]
    share, target = 0.0, 0.0
    if numbers[BIAS_RIDGE] >= 0.0:
        pull = numbers[BIAS_RIDGE] * numbers[BIAS_MEAN]
        share = 1.0 / (one * plain[row, 0, 0] + two * weighted[row, 0, 0] + numbers[BIAS_RIDGE])
        target = one * plain[row, last, 0] + two * weighted[row, last, 0] + pull
        squares += pull * numbers[BIAS_MEAN] - target * target * share
    for d in range(objectives):
        room[1, d] = one * plain[row, d + 1, 0] + two * weighted[row, d + 1, 0]
        room[2, d] = one * plain[row, last, d + 1] + two * weighted[row, last, d + 1]
        room[2, d] += ridge * mean[d] - room[1, d] * target * share
        squares += ridge * mean[d] * mean[d]
    # The Cholesky factor L of V, row by row, into R's place, with 1/L on its diagonal; then L's inverse over it.
    for d in range(objectives):
        for e in range(d + 1):
            entry = one * plain[row, d + 1, e + 1] + two * weighted[row, d + 1, e + 1]
            entry -= room[1, d] * room[1, e] * share
            if d == e:
                entry += ridge
            for k in range(e):
                entry -= root[d, k] * root[e, k]
            if d == e:
                root[d, d] = 1.0 / math.sqrt(max(entry, ridge))  # V ⪰ λI: anything less is rounding
            else:
                root[d, e] = entry * root[e, e]
    for e in range(objectives):
        for d in range(e + 1, objectives):
            entry = 0.0
            for k in range(e, d):
                entry -= root[d, k] * root[k, e]
            root[d, e] = entry * root[d, d]
    for d in range(objectives):
        along = 0.0
        for e in range(d + 1):
            along += root[d, e] * room[2, e]
        room[0, d] = along
        squares -= along * along
    lowest = 0.0
    for d in range(objectives):
        entry = 0.0
        for e in range(d, objectives):
            entry += root[e, d] * room[0, e]
        preference[n, d] = entry
        lowest = min(lowest, entry)
    if non_negative and lowest < 0.0:
        _hold_positive(preference, n, root, room, dims)
    return float(max(squares, 0.0))


@inlined
def write_inverse(inverse_gram: Floats, n: int, root: Floats, dims: Any) -> None:
    """Write V⁻¹ = RᵀR, on and below the diagonal."""
    for d in range(count_of(dims)):
        for e in range(d + 1):
            total = 0.0
            for k in range(d, count_of(dims)):
                total += root[k, d] * root[k, e]
            inverse_gram[n, d, e] = total


@inlined
def weight_of(square: float, population: Population) -> float:
    """ŵ(r) for ‖r‖² > 0."""
    return float(population.numbers[PLAIN] + population.numbers[PAPER] / square)


@inlined
def noise_of(squares: float, rounds: float, population: Population) -> float:
    """The variance of a user's noise: the user's own squares, and a few rounds' worth of what is common."""
    prior = population.numbers[PRIOR_ROUNDS]
    return float((squares + prior * population.numbers[NOISE]) / max(rounds + prior, 1.0))
