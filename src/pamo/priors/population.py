"""What users have in common: the prior, fitted to all users' moments, and every user's estimate with it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.compiling import bare, count_of, dimensions, inlined, kernel
from pamo.errors import InputError
from pamo.priors.user import (
    BIAS_MEAN,
    BIAS_RIDGE,
    COUNT,
    LEAST,
    NOISE,
    NUMBERS,
    PAPER,
    PLAIN,
    PRIOR_ROUNDS,
    RIDGE,
    Population,
    Room,
    read_user,
    room_for,
    solve_user,
    start_population,
)
from pamo.rows import PLAIN as PLAIN_ROW
from pamo.rows import pair, weighted_at
from pamo.statistics import UserStatistics

ITERATIONS = 10
"""Of the fixed point. From a start that the sums give, so that the prior is a function of the sums."""
PRIOR_USERS = 1.0
"""How many users' worth the first guess of τ² counts, with one user there being nobody to learn it from, and how many
rounds' worth that of σ²."""
PRIOR_LEVELS = 0.5
"""How many users' worth the first guess of m counts: all objectives weighing alike."""
PRIOR_SAMPLES = 10.0
"""How many rounds' worth φ = ½ counts."""
NOISE_ROUNDS = 3.0
"""How many rounds' worth the noise that all users have in common counts for one of them."""


@inlined
def row_of(rows: Floats, n: int) -> Floats:
    """Return user n's row, from rows that stand in lanes, (chunks, numbers, lanes): statistics have one lane alone."""
    lanes = rows.shape[2]
    return bare(rows[n // lanes, :, n % lanes])  # type: ignore[no-any-return]


@inlined
def _misfit(row: Floats, start: int, bias: float, preference: Floats, dims: Any) -> float:
    """Σw(g − b − c·r)² from the triangle that begins at `start`."""
    objectives = count_of(dims)
    last = objectives + 1
    total = row[start + pair(last, last)] + bias * (bias * row[start] - 2.0 * row[start + pair(last, 0)])
    for d in range(objectives):
        along = 2.0 * (bias * row[start + pair(d + 1, 0)] - row[start + pair(last, d + 1)])
        along += preference[d] * row[start + pair(d + 1, d + 1)]
        for e in range(d):
            along += 2.0 * preference[e] * row[start + pair(d + 1, e + 1)]
        total += preference[d] * along
    return float(max(total, 0.0))


@inlined
def _solve(matrix: Floats, right: Floats, dims: Any) -> None:
    """Write the solution over the right side; the matrix is symmetric, its lower triangle is overwritten."""
    objectives = count_of(dims)
    for d in range(objectives):
        for e in range(d + 1):
            entry = matrix[d, e]
            for k in range(e):
                entry -= matrix[d, k] * matrix[e, k]
            matrix[d, e] = math.sqrt(max(entry, LEAST)) if d == e else entry / matrix[e, e]
        for e in range(d):
            right[d] -= matrix[d, e] * right[e]
        right[d] /= matrix[d, d]
    for d in range(objectives - 1, -1, -1):
        for e in range(d + 1, objectives):
            right[d] -= matrix[e, d] * right[e]
        right[d] /= matrix[d, d]


@kernel
def fit_population(
    population: Population,
    rows: Floats,
    first_user: int,
    users: int,
    with_bias: bool,
    elasticity: float,
    room: Room,
    dims: Any,
) -> None:
    """Fit the prior to the rows of so many users by its marginal likelihood; φ, too, where `elasticity` is below 0.

    rows: in lanes, as `row_of` reads them.
    """
    objectives, root, user = count_of(dims), room.root, room.user
    last, paper = objectives + 1, weighted_at(objectives)
    rounds, directed, lengths, inverses = 0.0, 0.0, 0.0, 0.0  # Σ1, the same where r ≠ 0, Σ‖r‖², Σ1/‖r‖²
    most = 0.0  # rounds of any user
    for n in range(users):
        row = row_of(rows, first_user + n)
        rounds += row[PLAIN_ROW]
        most = max(most, row[PLAIN_ROW])
        inverses += row[paper]
        for d in range(objectives):
            lengths += row[PLAIN_ROW + pair(d + 1, d + 1)]
            directed += row[paper + pair(d + 1, d + 1)]
    if directed == 0.0:
        return
    least = LEAST * most * (1.0 + 1e-3 * most)  # noise below which V is singular to rounding, which grows with a sum
    numbers, mean = population.numbers, population.mean
    typical = lengths / rounds
    phi = elasticity if elasticity >= 0.0 else 0.5
    one, two = 1.0 - phi, phi * typical
    squares, moment, total, size = 0.0, 0.0, 0.0, 0.0
    for n in range(users):
        row = row_of(rows, first_user + n)
        squares += one * row[PLAIN_ROW + pair(last, last)] + two * row[paper + pair(last, last)]
        for d in range(objectives):
            moment += one * row[PLAIN_ROW + pair(last, d + 1)] + two * row[paper + pair(last, d + 1)]
            for e in range(d + 1):
                entry = one * row[PLAIN_ROW + pair(d + 1, e + 1)] + two * row[paper + pair(d + 1, e + 1)]
                total += entry if e == d else 2.0 * entry
                size += entry if e == d else 0.0
    level = moment / total if total > LEAST * size else 0.0  # all objectives weighing alike, how much each
    scale = max(squares / size, 1e-300)  # the mean of (g/‖r‖)²
    first = scale / objectives
    overall_noise = max(squares - level * moment, least * squares + 1e-300) / rounds  # around that level
    spread, noise = scale, overall_noise
    bias_mean, bias_spread = 0.0, first * typical
    mean.fill(level)
    sums, curve, mixed = room.lines[3], room.curve, room.lines[1]  # mixed: Σŵ·r of the user just solved
    for _ in range(ITERATIONS):
        numbers[RIDGE], numbers[PLAIN], numbers[PAPER] = noise / spread, one, two
        numbers[BIAS_RIDGE], numbers[BIAS_MEAN] = (noise / bias_spread if with_bias else -1.0), bias_mean
        sums.fill(0.0)
        curve.fill(0.0)
        active, sizes, traces, misfit, freedom = 0.0, 0.0, 0.0, 0.0, 0.0
        plain_misfit, paper_misfit, biases, bias_squares, bias_traces = 0.0, 0.0, 0.0, 0.0, 0.0
        for n in range(users):
            row = row_of(rows, first_user + n)
            if row[PLAIN_ROW] == 0.0:
                continue
            active += 1.0
            solve_user(user, row, population, False, room, dims)
            trace, bias = 0.0, 0.0
            for d in range(objectives):
                sums[d] += user[d]
                sizes += user[d] * user[d]
                curve[d, d] += 1.0
                for e in range(d + 1):
                    trace += root[d, e] * root[d, e]
                    for k in range(d, objectives):
                        curve[d, e] -= numbers[RIDGE] * root[k, d] * root[k, e]
            freedom += objectives - numbers[RIDGE] * trace
            traces += trace
            if with_bias:
                corner = one * row[PLAIN_ROW] + two * row[paper] + numbers[BIAS_RIDGE]
                bias = one * row[PLAIN_ROW + pair(last, 0)] + two * row[paper + pair(last, 0)]
                bias += numbers[BIAS_RIDGE] * bias_mean
                across = 0.0
                for d in range(objectives):
                    bias -= mixed[d] * user[d]
                    along = 0.0
                    for e in range(d + 1):
                        along += root[d, e] * mixed[e]
                    across += along * along
                bias /= corner
                trace = (1.0 + across / corner) / corner
                freedom += 1.0 - numbers[BIAS_RIDGE] * trace
                biases += bias
                bias_squares += bias * bias
                bias_traces += trace
            own_plain = _misfit(row, PLAIN_ROW, bias, user, dims)
            own_paper = _misfit(row, paper, bias, user, dims)
            misfit += one * own_plain + two * own_paper
            plain_misfit += own_plain
            paper_misfit += own_paper
        distance = sizes
        for d in range(objectives):
            distance += mean[d] * (active * mean[d] - 2.0 * sums[d]) + PRIOR_LEVELS * (mean[d] - level) ** 2
            sums[d] += PRIOR_LEVELS * level - (PRIOR_LEVELS + active) * mean[d]
            curve[d, d] += PRIOR_LEVELS
        _solve(curve, sums, dims)
        for d in range(objectives):
            mean[d] += sums[d]
        # Newton's step for m, and MacKay's for τ² and σ² by the number of well-determined entries: they get in ten
        # where an EM's take hundreds.
        known = active - numbers[RIDGE] * traces / objectives
        spread = (max(distance, 0.0) / objectives + PRIOR_USERS * first) / (max(known, 0.0) + PRIOR_USERS)
        if with_bias:
            bias_mean = biases / (PRIOR_LEVELS + active)
            away = bias_squares + bias_mean * (active * bias_mean - 2.0 * biases) + PRIOR_LEVELS * bias_mean**2
            known = active - numbers[BIAS_RIDGE] * bias_traces
            bias_spread = (max(away, 0.0) + PRIOR_USERS * first * typical) / (max(known, 0.0) + PRIOR_USERS)
        counted = (1.0 - phi) * rounds + phi * directed
        noise = (misfit + PRIOR_USERS * overall_noise) / (max(counted - freedom, 0.0) + PRIOR_USERS)
        noise = max(noise, least * scale * typical + 1e-300)
        determinant = rounds * directed - lengths * inverses
        # What a regression that goes through all points leaves over is rounding, and says nothing of φ.
        if elasticity < 0.0 and -determinant > 1e-9 * rounds * directed and misfit > 1e-9 * squares:
            # The noise's variance as α + β‖r‖²: both kinds of misfit have their expectations in α and β.
            constant = max((plain_misfit * directed - lengths * paper_misfit) / determinant, 0.0)
            slope = max((rounds * paper_misfit - inverses * plain_misfit) / determinant, 0.0) * typical
            if constant + slope > 0.0:
                fitted = slope / (constant + slope)
                phi = (rounds * fitted + PRIOR_SAMPLES * 0.5) / (rounds + PRIOR_SAMPLES)
                one, two = 1.0 - phi, phi * typical
    numbers[RIDGE], numbers[PLAIN], numbers[PAPER] = noise / spread, one, two
    numbers[BIAS_RIDGE], numbers[BIAS_MEAN] = (noise / bias_spread if with_bias else -1.0), bias_mean
    numbers[NOISE], numbers[PRIOR_ROUNDS], numbers[COUNT] = noise, NOISE_ROUNDS, rounds


@kernel
def read_users(out: Floats, rows: Floats, population: Population, non_negative: bool, room: Room, dims: Any) -> None:
    """Write what a kernel reads of every user, a row each."""
    for n in range(len(out)):
        read_user(out[n], row_of(rows, n), population, non_negative, room, dims)


def empty_population(
    objectives: int, *, ridge: float = 1.0, level: float | None = None, weight: float | None = None
) -> Population:
    """Return what is assumed of users before anything was seen: `level` each, by default 1/D, and the paper's weights.

    weight: their factor ω, by default D.

    >>> empty_population(4).mean.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if objectives < 1 or not ridge > 0:
        raise InputError(f"expected at least one objective and ridge > 0, got {objectives} and {ridge}")
    population = Population(mean=np.empty(objectives), numbers=np.empty(NUMBERS))
    first = 1.0 / objectives if level is None else level
    start_population(population, first, ridge, 0.0, float(objectives) if weight is None else weight)
    return population


def population_of(
    users: UserStatistics, *, bias: bool = False, elasticity: float | None = None, ridge: float = 1.0
) -> Population:
    """Return the prior that these users' sums say a user has who is new.

    bias: whether users have one of their own. elasticity: φ of the weights, by default fitted.

    >>> users = UserStatistics.zeros(users=2, objectives=2)
    >>> users.observe([0, 0, 1, 1], [[1, 0], [0, 1], [1, 0], [0, 1]], overall=[0.9, 0.3, 0.7, 0.1])
    >>> population_of(users).mean.round(2).tolist()
    [0.72, 0.28]
    """
    if elasticity is not None and not 0.0 <= elasticity <= 1.0:
        raise InputError(f"expected elasticity between 0 and 1, or none to fit it, got {elasticity}")
    population = empty_population(users.objectives, ridge=ridge)
    fitted = -1.0 if elasticity is None else float(elasticity)
    room, dims = room_for(users.objectives), dimensions(users.objectives)
    fit_population(population, users.rows[:, :, None], 0, len(users.rows), bias, fitted, room, dims)
    return population
