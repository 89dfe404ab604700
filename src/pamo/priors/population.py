"""What users have in common: the prior, fitted to all users' moments, and every user's estimate with it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.compiling import count_of, inlined, kernel
from pamo.eights import above, greatest, summed, together
from pamo.errors import InputError
from pamo.priors.user import (
    BIAS_MEAN,
    BIAS_RIDGE,
    COUNT,
    LEAST,
    LEVELS,
    NOISE,
    NUMBERS,
    PAPER,
    PLAIN,
    PRIOR_ROUNDS,
    PULL,
    RIDGE,
    SHARE,
    STRENGTH,
    SUM_RIDGE,
    Population,
    Room,
    cavity,
    find_sites,
    hold_alike,
    level_moments,
    log_density,
    read_user,
    read_with_sites,
    room_for,
    solve_plainly,
    start_population,
    sweep,
    use_sites,
)
from pamo.rows import PLAIN as PLAIN_ROW
from pamo.rows import pair, weighted_at
from pamo.statistics import UserStatistics
from pamo.words import bare

ITERATIONS = 10
"""Of the fixed point. From a start that the sums give, so that the prior is a function of the sums."""
PRIOR_USERS = 0.1
"""How many users' worth the first guess of τ² counts, with one user there being nobody to learn it from."""
PRIOR_NOISE = 1.0
"""How many rounds' worth the first guess of σ² counts."""
PRIOR_LEVELS = 0.5
"""How many users' worth, of users who differ by the first guess of τ², the first guess of m counts: all objectives
weighing alike. How far m is from it says nothing of how much users differ."""
PRIOR_SAMPLES = 10.0
"""How many rounds' worth φ = ½ counts."""
NOISE_ROUNDS = 3.0
"""How many rounds' worth the noise that all users have in common counts for one of them."""
LEAST_SUM = 1e-3
"""The least variance of the sum of a preference's entries, over that of their differences: where everybody's weights
add up to the same, and everybody is on the same arm, nothing else is seen, and the spread would be taken for none."""
LEVEL_ROUNDS = 3.0
"""Rounds of each user from which on two levels are looked for."""
LEVEL_ITERATIONS = 12
"""Of the EM for them, each of two sweeps over every user."""
LEVEL_ENTRIES = 0.3
"""How many entries' worth the first guess of each level counts."""
LEVEL_FLOOR = 0.002
"""The least variance of a level, over that of all entries."""
LEVEL_EVIDENCE = 4.0
"""By how much two levels have to be more likely than one, as a logarithm, to be believed."""
LEVEL_USERS = 256
"""Users to whom two levels are fitted, at most, evenly spread: there are only five numbers to find."""


@inlined
def _misfit(row: Floats, start: int, bias: Any, preference: Floats, dims: Any) -> Any:
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
    return max(total, 0.0)


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
    sites: Floats,
    with_bias: bool,
    elasticity: float,
    with_levels: bool,
    room: Room,
    dims: Any,
) -> None:
    """Fit the prior to the rows of users by its marginal likelihood; φ, too, where `elasticity` is below 0.

    rows, sites: (users, …), sites being room for 2D numbers a user; or of eight users each, as `room` then is, zeros
    for who is not there. with_levels: whether entries may be of two levels, where the rows speak for it.
    """
    objectives, root, user = count_of(dims), room.root, room.user
    last, paper = objectives + 1, weighted_at(objectives)
    rounds, directed, lengths, inverses = 0.0, 0.0, 0.0, 0.0  # Σ1, the same where r ≠ 0, Σ‖r‖², Σ1/‖r‖²
    most = 0.0  # rounds of any user
    for n in range(len(rows)):
        row = bare(rows[n])
        rounds += summed(row[PLAIN_ROW])
        most = max(most, greatest(row[PLAIN_ROW]))
        inverses += summed(row[paper])
        for d in range(objectives):
            lengths += summed(row[PLAIN_ROW + pair(d + 1, d + 1)])
            directed += summed(row[paper + pair(d + 1, d + 1)])
    if directed == 0.0:
        return
    least = LEAST * most * (1.0 + 1e-3 * most)  # noise below which V is singular to rounding, which grows with a sum
    numbers, mean = population.numbers, population.mean
    typical = lengths / rounds
    phi = elasticity if elasticity >= 0.0 else 0.5
    one, two = 1.0 - phi, phi * typical
    squares, moment, total, size = 0.0, 0.0, 0.0, 0.0
    for n in range(len(rows)):
        row = bare(rows[n])
        squares += summed(one * row[PLAIN_ROW + pair(last, last)] + two * row[paper + pair(last, last)])
        for d in range(objectives):
            moment += summed(one * row[PLAIN_ROW + pair(last, d + 1)] + two * row[paper + pair(last, d + 1)])
            for e in range(d + 1):
                entry = summed(one * row[PLAIN_ROW + pair(d + 1, e + 1)] + two * row[paper + pair(d + 1, e + 1)])
                total += entry if e == d else 2.0 * entry
                size += entry if e == d else 0.0
    level = moment / total if total > LEAST * size else 0.0  # all objectives weighing alike, how much each
    scale = max(squares / size, 1e-300)  # the mean of (g/‖r‖)²
    first = scale / objectives
    overall_noise = max(squares - level * moment, least * squares + 1e-300) / rounds  # around that level
    spread, noise, along_sum = scale, overall_noise, scale  # along_sum: the variance of (1·c)/√D
    bias_mean, bias_spread = 0.0, first * typical
    mean.fill(level)
    sums, curve, mixed = room.sums, room.curve, room.lines[1]  # mixed: Σŵ·r of the user just solved
    for _ in range(ITERATIONS):
        numbers[RIDGE], numbers[PLAIN], numbers[PAPER] = noise / spread, one, two
        numbers[BIAS_RIDGE], numbers[BIAS_MEAN] = (noise / bias_spread if with_bias else -1.0), bias_mean
        numbers[SUM_RIDGE] = noise * (1.0 / along_sum - 1.0 / spread) / objectives if along_sum < spread else 0.0
        hold_alike(population, room, dims)
        sum_squares, sum_traces = 0.0, 0.0
        sums.fill(0.0)
        curve.fill(0.0)
        active, sizes, traces, misfit, freedom = 0.0, 0.0, 0.0, 0.0, 0.0
        plain_misfit, paper_misfit, biases, bias_squares, bias_traces = 0.0, 0.0, 0.0, 0.0, 0.0
        for n in range(len(rows)):
            row = bare(rows[n])
            here = above(row[PLAIN_ROW], 0.0, 1.0, 0.0)
            if summed(here) == 0.0:
                continue
            active += summed(here)
            solve_plainly(user, row, population, room, dims)
            trace, bias, away, across = 0.0, 0.0, 0.0, 0.0
            for d in range(objectives):
                along = 0.0
                for e in range(d + 1):
                    along += root[d, e]
                away += user[d] - mean[d]
                across += along * along
                sums[d] += summed(here * user[d])
                sizes += summed(here * user[d] * user[d])
                for e in range(d + 1):
                    trace += root[d, e] * root[d, e]
                    entry = 0.0
                    for k in range(d, objectives):
                        entry += root[k, d] * root[k, e]
                    curve[d, e] -= numbers[RIDGE] * summed(here * entry)
            freedom += summed(here * (objectives - numbers[RIDGE] * trace - numbers[SUM_RIDGE] * across))
            traces += summed(here * trace)
            sum_squares += summed(here * away * away) / objectives
            sum_traces += summed(here * across) / objectives
            if with_bias:
                corner = one * row[PLAIN_ROW] + two * row[paper] + numbers[BIAS_RIDGE]
                target = one * row[PLAIN_ROW + pair(last, 0)] + two * row[paper + pair(last, 0)]
                target += numbers[BIAS_RIDGE] * bias_mean
                across = 0.0
                for d in range(objectives):
                    target -= mixed[d] * user[d]
                    along = 0.0
                    for e in range(d + 1):
                        along += root[d, e] * mixed[e]
                    across += along * along
                bias = target / corner
                trace = (1.0 + across / corner) / corner
                freedom += summed(here * (1.0 - numbers[BIAS_RIDGE] * trace))
                biases += summed(here * bias)
                bias_squares += summed(here * bias * bias)
                bias_traces += summed(here * trace)
            own_plain = summed(here * _misfit(row, PLAIN_ROW, bias, user, dims))
            own_paper = summed(here * _misfit(row, paper, bias, user, dims))
            misfit += one * own_plain + two * own_paper
            plain_misfit += own_plain
            paper_misfit += own_paper
        distance, drawn = sizes, PRIOR_LEVELS * spread / first
        for d in range(objectives):
            distance += mean[d] * (active * mean[d] - 2.0 * sums[d])
            sums[d] += drawn * level - (drawn + active) * mean[d]
            curve[d, d] += drawn + active
        _solve(curve, sums, dims)
        for d in range(objectives):
            mean[d] += sums[d]
        # Newton's step for m, and MacKay's for τ² and σ² by the number of well-determined entries: they get in ten
        # where an EM's take hundreds.
        held = numbers[RIDGE] + objectives * numbers[SUM_RIDGE]
        known = active - numbers[RIDGE] * (traces - sum_traces) / max(objectives - 1, 1)
        across = max(distance - sum_squares, 0.0) / max(objectives - 1, 1)
        across = (across + PRIOR_USERS * first) / (max(known, 0.0) + PRIOR_USERS)  # the variance of the differences
        along_sum = (sum_squares + PRIOR_USERS * first) / (max(active - held * sum_traces, 0.0) + PRIOR_USERS)
        if objectives > 1 and along_sum < across:
            spread, along_sum = across, max(along_sum, LEAST_SUM * across)
        else:
            known = active - (numbers[RIDGE] * (traces - sum_traces) + held * sum_traces) / objectives
            spread = (max(distance, 0.0) / objectives + PRIOR_USERS * first) / (max(known, 0.0) + PRIOR_USERS)
            if objectives > 1:
                spread = max(spread, across)
            along_sum = spread
        if with_bias:
            bias_mean = biases / (PRIOR_LEVELS * bias_spread / (first * typical) + active)
            away = bias_squares + bias_mean * (active * bias_mean - 2.0 * biases)
            known = active - numbers[BIAS_RIDGE] * bias_traces
            bias_spread = (max(away, 0.0) + PRIOR_USERS * first * typical) / (max(known, 0.0) + PRIOR_USERS)
        counted = (1.0 - phi) * rounds + phi * directed
        noise = (misfit + PRIOR_NOISE * overall_noise) / (max(counted - freedom, 0.0) + PRIOR_NOISE)
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
    numbers[SUM_RIDGE] = noise * (1.0 / along_sum - 1.0 / spread) / objectives if along_sum < spread else 0.0
    numbers[SHARE] = 0.0
    if with_levels and rounds >= LEVEL_ROUNDS * active:
        _fit_levels(population, rows, sites, spread, room, dims)


@kernel
def _fit_levels(
    population: Population,
    rows: Floats,
    sites: Floats,
    spread: float,
    room: Room,
    dims: Any,
) -> None:
    """Fit two levels to the entries of all preferences by EM, and keep them if they are that much more likely.

    Given everybody else, what a user's rounds say of an entry is Gaussian but for the entry's own site: expectation
    propagation, whose sites stand in for the two levels.
    """
    objectives, numbers, moments = count_of(dims), population.numbers, room.moments
    step = max((len(rows) * together(rows) + LEVEL_USERS - 1) // LEVEL_USERS, 1)
    center, around = 0.0, spread
    for d in range(objectives):
        center += population.mean[d] / objectives
    for d in range(objectives):
        away = population.mean[d] - center
        around += away * away / objectives
    width = math.sqrt(around)
    share, low, high = 0.67, center - 0.6 * width, center + 1.2 * width
    low_spread, high_spread = 0.25 * around, 0.25 * around
    _tell_levels(numbers, share, low, high, low_spread, high_spread)
    for n in range(0, len(rows), step):
        own = bare(sites[n])
        for d in range(objectives):
            own[d], own[objectives + d] = center / around, 1.0 / around
    for _ in range(LEVEL_ITERATIONS):
        for _ in range(2):
            moments.fill(0.0)
            for n in range(0, len(rows), step):
                row, own = bare(rows[n]), bare(sites[n])
                if summed(row[PLAIN_ROW]) == 0.0:
                    continue
                for d in range(objectives):
                    room.sites[PULL, d], room.sites[STRENGTH, d] = own[d], own[objectives + d]
                sweep(room.user, row, population, around, room, moments, dims)
                for d in range(objectives):
                    own[d], own[objectives + d] = room.sites[PULL, d], room.sites[STRENGTH, d]
        share = (moments[0, 0] + LEVEL_ENTRIES) / (moments[0, 0] + moments[1, 0] + 2.0 * LEVEL_ENTRIES)
        low, low_spread = _level(moments[0], low, around)
        high, high_spread = _level(moments[1], high, around)
        _tell_levels(numbers, share, low, high, low_spread, high_spread)
    if not _evidence(population, rows, sites, step, spread, around, room, dims) > LEVEL_EVIDENCE:
        numbers[SHARE] = 0.0


@inlined
def _tell_levels(numbers: Floats, share: float, low: float, high: float, low_spread: float, high_spread: float) -> None:
    numbers[SHARE], numbers[LEVELS], numbers[LEVELS + 1] = share, low, high
    numbers[LEVELS + 2], numbers[LEVELS + 3] = low_spread, high_spread


@inlined
def _level(moments: Floats, before: float, around: float) -> tuple[float, float]:
    """The mean and the variance of the entries at one level."""
    weight = moments[0] + LEVEL_ENTRIES
    mean = (moments[1] + LEVEL_ENTRIES * before) / weight
    squares = moments[2] - 2.0 * mean * moments[1] + moments[0] * mean * mean
    return mean, max((squares + LEVEL_ENTRIES * 0.25 * around) / weight, LEVEL_FLOOR * around)


@inlined
def _evidence(
    population: Population,
    rows: Floats,
    sites: Floats,
    step: int,
    spread: float,
    around: float,
    room: Room,
    dims: Any,
) -> float:
    """How much more likely two levels make the rows than one does, as a logarithm; what both share is left out."""
    objectives, numbers, own_sites = count_of(dims), population.numbers, room.sites
    noise, held = numbers[NOISE], numbers[SUM_RIDGE]
    center, variance = level_moments(numbers)
    away = objectives * center
    for d in range(objectives):
        away -= population.mean[d]
    # What κ's factor takes from each prior, of two levels by their mean and variance.
    taken = 0.0
    if held > 0.0:
        taken = 0.5 * math.log1p(held * objectives * variance / noise)
        taken += 0.5 * away * away / (noise / held + objectives * variance)
    alike = 0.5 * math.log1p(held * objectives / numbers[RIDGE]) - 0.5 * objectives * math.log(spread)
    total = 0.0
    for n in range(0, len(rows), step):
        row, own = bare(rows[n]), bare(sites[n])
        here = above(row[PLAIN_ROW], 0.0, 1.0, 0.0)
        if summed(here) == 0.0:
            continue
        hold_alike(population, room, dims)
        squares = solve_plainly(room.user, row, population, room, dims)
        more = 0.5 * squares / noise - alike + taken
        for d in range(objectives):
            more -= math.log(room.root[d, d])  # ½·log|V| = −Σ log of R's diagonal
            own_sites[PULL, d], own_sites[STRENGTH, d] = own[d], own[objectives + d]
        use_sites(room, noise, dims)
        squares = solve_plainly(room.user, row, population, room, dims)
        more -= 0.5 * squares / noise
        for d in range(objectives):
            pull, strength = own_sites[PULL, d], own_sites[STRENGTH, d]
            mean, precision = cavity(room.user, d, room, noise, 1e-9 / around, dims)
            told = log_density(numbers, mean, precision)
            both = pull + mean * precision
            joint = both * both / (strength + precision) - mean * mean * precision
            more += math.log(room.root[d, d]) + 0.5 * pull * pull / strength
            more += told + 0.5 * math.log1p(strength / precision) - 0.5 * joint
        total += summed(here * more)
    return total


@kernel
def read_users(
    out: Floats, rows: Floats, population: Population, sites: Any, non_negative: bool, room: Room, dims: Any
) -> None:
    """Write what a kernel reads of every user, a row each; sites: as `sites_of` returns them, or None."""
    for n in range(len(out)):
        row = bare(rows[n])
        if sites is None:
            read_user(out[n], row, population, non_negative, room, dims)
        if sites is not None:
            for d in range(count_of(dims)):
                room.sites[PULL, d], room.sites[STRENGTH, d] = sites[n, 0, d], sites[n, 1, d]
            if population.numbers[SHARE] > 0.0:
                use_sites(room, population.numbers[NOISE], dims)
            else:
                hold_alike(population, room, dims)
            read_with_sites(out[n], row, population, non_negative, room, dims)


@kernel
def _find_all_sites(out: Floats, rows: Floats, population: Population, room: Room, dims: Any) -> None:
    for n in range(len(out)):
        find_sites(room.user, bare(rows[n]), population, room, dims)
        for d in range(count_of(dims)):
            out[n, 0, d], out[n, 1, d] = room.sites[PULL, d], room.sites[STRENGTH, d]


def sites_of(users: UserStatistics, population: Population) -> Floats:
    """Return what two levels make of each user's rounds, (users, 2, D); of no meaning where there is one level.

    Between two fits of a prior the simulator keeps to the sites that it found at the first.
    """
    out = np.empty((len(users.rows), 2, users.objectives))
    _find_all_sites(out, users.rows, population, room_for(users.objectives), users.objectives)
    return out


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
    users: UserStatistics,
    *,
    bias: bool = False,
    elasticity: float | None = None,
    levels: bool = False,
    ridge: float = 1.0,
) -> Population:
    """Return the prior that these users' sums say a user has who is new.

    bias: whether users have one of their own. elasticity: φ of the weights, by default fitted. levels: whether entries
    may be of two levels.

    >>> users = UserStatistics.zeros(users=2, objectives=2)
    >>> users.observe([0, 0, 1, 1], [[1, 0], [0, 1], [1, 0], [0, 1]], overall=[0.9, 0.3, 0.7, 0.1])
    >>> population_of(users).mean.round(2).tolist()
    [0.78, 0.22]
    """
    if elasticity is not None and not 0.0 <= elasticity <= 1.0:
        raise InputError(f"expected elasticity between 0 and 1, or none to fit it, got {elasticity}")
    population = empty_population(users.objectives, ridge=ridge)
    fitted = -1.0 if elasticity is None else float(elasticity)
    objectives = users.objectives
    room, sites = room_for(objectives), np.empty((len(users.rows), 2 * objectives))
    fit_population(population, users.rows, sites, bias, fitted, levels, room, objectives)
    return population
