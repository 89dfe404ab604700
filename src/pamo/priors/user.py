"""One user's estimate: from the user's row and what is known of users in general."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pamo.arrays import Floats
from pamo.compiling import count_of, inlined, kernel
from pamo.reading import PREFERENCE, directed_at, inverse_at, noise_at, squares_at, user_numbers
from pamo.rows import PLAIN as PLAIN_ROW
from pamo.rows import pair, weighted_at

NOISE, PRIOR_ROUNDS, RIDGE, BIAS_RIDGE, BIAS_MEAN, PLAIN, PAPER, COUNT = range(8)
"""Places in `Population.numbers`."""
NUMBERS = 8
"""How many they are."""

LEAST = 1e-12
_SWEEPS = 1000


class Population(NamedTuple):
    """What is known of users in general.

    mean: m, (D,). numbers: σ², the rounds that it counts for, λ = σ²/τ², the same for the bias (below 0 for none),
    the bias's mean, the weights of the moments with w = 1 and with w = 1/‖r‖², and the rounds that it was fitted to.
    """

    mean: Floats
    numbers: Floats


class Room(NamedTuple):
    """Where estimates are worked out: R with V⁻¹ = RᵀR, some vectors, a matrix, and one user's numbers."""

    root: Floats
    lines: Floats
    curve: Floats
    user: Floats


@kernel
def room_for(objectives: int) -> Room:
    """Return room to work in."""
    square = (objectives, objectives)
    return Room(np.zeros(square), np.zeros((4, objectives)), np.zeros(square), np.zeros(user_numbers(objectives)))


@kernel
def start_population(population: Population, level: float, ridge: float, plain: float, paper: float) -> None:
    """Write what is assumed before anything was seen: all objectives weigh `level`, and how rounds weigh."""
    population.mean.fill(level)
    population.numbers.fill(0.0)
    population.numbers[RIDGE] = ridge
    population.numbers[BIAS_RIDGE] = -1.0
    population.numbers[PLAIN] = plain
    population.numbers[PAPER] = paper


@inlined
def _hold_positive(user: Floats, root: Floats, multipliers: Floats, dims: Any) -> None:
    """Move ĉ to the nearest point, in V, whose entries are all at least 0: coordinate ascent on the multipliers."""
    objectives = count_of(dims)
    size = 0.0
    for d in range(objectives):
        multipliers[d] = 0.0
        size = max(size, abs(user[PREFERENCE + d]))
    for _ in range(_SWEEPS):
        moved = 0.0
        for d in range(objectives):
            diagonal = 0.0  # of V⁻¹ = RᵀR
            for k in range(d, objectives):
                diagonal += root[k, d] * root[k, d]
            step = max(-multipliers[d], -user[PREFERENCE + d] / diagonal)
            multipliers[d] += step
            moved = max(moved, abs(step) * diagonal)
            for e in range(objectives):
                along = 0.0
                for k in range(max(d, e), objectives):
                    along += root[k, d] * root[k, e]
                user[PREFERENCE + e] += step * along
        if moved <= 1e-3 * LEAST * size:
            break
    for d in range(objectives):
        user[PREFERENCE + d] = max(user[PREFERENCE + d], 0.0)


@inlined
def _moment(row: Floats, population: Population, i: int, j: int, dims: Any) -> float:
    """The entry (i, j), j ≤ i, of Σŵ·z·zᵀ."""
    numbers, place = population.numbers, pair(i, j)
    return float(numbers[PLAIN] * row[PLAIN_ROW + place] + numbers[PAPER] * row[weighted_at(count_of(dims)) + place])


@inlined
def solve_user(user: Floats, row: Floats, population: Population, non_negative: bool, room: Room, dims: Any) -> float:
    """Write ĉ, and into `room.root` R with V⁻¹ = RᵀR (on and below the diagonal), from a user's row.

    V = λI + Σŵ·r·rᵀ, a bias of the user's own, where there is one, being integrated out. ĉ = V⁻¹(λm + Σŵ·g·r).
    Returns the squares left over, the least of Σŵ(g − c·r)² + λ‖c − m‖².
    """
    objectives, root, lines = count_of(dims), room.root, room.lines
    last = objectives + 1
    numbers, mean = population.numbers, population.mean
    ridge = numbers[RIDGE]
    squares = _moment(row, population, last, last, dims)
    share, target = 0.0, 0.0
    if numbers[BIAS_RIDGE] >= 0.0:
        pull = numbers[BIAS_RIDGE] * numbers[BIAS_MEAN]
        share = 1.0 / (_moment(row, population, 0, 0, dims) + numbers[BIAS_RIDGE])
        target = _moment(row, population, last, 0, dims) + pull
        squares += pull * numbers[BIAS_MEAN] - target * target * share
    for d in range(objectives):
        lines[1, d] = _moment(row, population, d + 1, 0, dims)
        lines[2, d] = _moment(row, population, last, d + 1, dims) + ridge * mean[d] - lines[1, d] * target * share
        squares += ridge * mean[d] * mean[d]
    # The Cholesky factor L of V, row by row, into R's place, with 1/L on its diagonal; then L's inverse over it.
    for d in range(objectives):
        for e in range(d + 1):
            entry = _moment(row, population, d + 1, e + 1, dims) - lines[1, d] * lines[1, e] * share
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
            along += root[d, e] * lines[2, e]
        lines[0, d] = along
        squares -= along * along
    lowest = 0.0
    for d in range(objectives):
        entry = 0.0
        for e in range(d, objectives):
            entry += root[e, d] * lines[0, e]
        user[PREFERENCE + d] = entry
        lowest = min(lowest, entry)
    if non_negative and lowest < 0.0:
        _hold_positive(user, root, lines[0], dims)
    return float(max(squares, 0.0))


@inlined
def read_user(user: Floats, row: Floats, population: Population, non_negative: bool, room: Room, dims: Any) -> None:
    """Write all that a kernel reads of a user whose ĉ is a ridge (`pamo.reading`), from the row and the prior."""
    objectives, root = count_of(dims), room.root
    inverse, weighted, directed = inverse_at(objectives), weighted_at(objectives), 0.0
    squares = solve_user(user, row, population, non_negative, room, dims)
    for d in range(objectives):
        directed += row[weighted + pair(d + 1, d + 1)]  # of r·rᵀ/‖r‖² the trace is 1
        for e in range(d + 1):
            total = 0.0
            for k in range(d, objectives):
                total += root[k, d] * root[k, e]
            user[inverse + pair(d, e)] = total
    user[squares_at(objectives)], user[directed_at(objectives)] = squares, directed
    numbers = population.numbers
    user[noise_at(objectives)] = noise_of(squares, row[PLAIN_ROW], numbers[PRIOR_ROUNDS], numbers[NOISE])


@inlined
def noise_of(squares: float, rounds: float, prior: float, noise: float) -> float:
    """The variance of a user's noise: the user's own squares, and a few rounds' worth of what is common."""
    return (squares + prior * noise) / max(rounds + prior, 1.0)
