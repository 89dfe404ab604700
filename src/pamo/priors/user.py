"""One user's estimate: from the user's row and what is known of users in general.

Where the row, and the room to work in, hold numbers of eight users (`pamo.eights`), it is the estimates of eight.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pamo.arrays import Floats
from pamo.compiling import count_of, inlined, kernel
from pamo.eights import above, exp, greatest, summed
from pamo.reading import PREFERENCE, directed_at, inverse_at, noise_at, squares_at, user_numbers
from pamo.rows import PLAIN as PLAIN_ROW
from pamo.rows import pair, weighted_at

NOISE, PRIOR_ROUNDS, RIDGE, BIAS_RIDGE, BIAS_MEAN, PLAIN, PAPER, COUNT, SUM_RIDGE, SHARE, LEVELS = range(11)
"""Places in `Population.numbers`; from LEVELS on the two levels, and then their variances."""
NUMBERS = 15
"""How many they are."""

MEAN_OF, RIDGE_OF, PULL, STRENGTH = range(4)
"""Lines of `Room.sites`: the mean and the ridge of each entry of c, and what an entry's site adds to the mean times the
precision, and to the precision."""
SWEEPS = 5
"""Of expectation propagation, from where nothing was seen, so that the sites are a function of the user's row."""
STEP = 0.7
"""Of what a sweep finds, how much is taken: two entries that explain the same would otherwise take turns."""

LEAST = 1e-12
_SWEEPS = 1000


class Population(NamedTuple):
    """What is known of users in general.

    mean: m, (D,). numbers: σ², the rounds that it counts for, λ = σ²/τ², the same for the bias (below 0 for none),
    the bias's mean, the weights of the moments with w = 1 and with w = 1/‖r‖², the rounds that it was fitted to, κ,
    by which the sum of the entries is held beyond λ, and the two levels: π₁ (0 where there is one), ℓ₁, ℓ₂, s₁, s₂.
    """

    mean: Floats
    numbers: Floats


class Room(NamedTuple):
    """Where estimates are worked out: R with V⁻¹ = RᵀR, some vectors, one user's numbers, one's sites; and sums."""

    root: Floats
    lines: Floats
    user: Floats
    sites: Floats
    curve: Floats
    """(D, D), summed over users, as what follows."""
    sums: Floats
    """(D,)."""
    moments: Floats
    """(2, 3), by level: how many entries are at it, their sum, and the sum of their squares."""


def shapes_of_room(objectives: int) -> Any:
    """Return the shapes of the tables of a `Room`."""
    shapes: Any = Room
    square = (objectives, objectives)
    return shapes(square, (3, objectives), (user_numbers(objectives),), (4, objectives), square, (objectives,), (2, 3))


@kernel
def room_for(objectives: int) -> Room:
    """Return room to work in."""
    square, numbers = (objectives, objectives), np.zeros(user_numbers(objectives))
    lines, sites, sums = np.zeros((3, objectives)), np.zeros((4, objectives)), np.zeros(objectives)
    return Room(np.zeros(square), lines, numbers, sites, np.zeros(square), sums, np.zeros((2, 3)))


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
    lowest, size = 0.0, 0.0
    for d in range(objectives):
        multipliers[d] = 0.0
        lowest, size = min(lowest, user[PREFERENCE + d]), max(size, abs(user[PREFERENCE + d]))
    if greatest(-lowest) == 0.0:
        return
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
        if greatest(moved - 1e-3 * LEAST * size) <= 0.0:
            break
    for d in range(objectives):
        user[PREFERENCE + d] = max(user[PREFERENCE + d], 0.0)


@inlined
def _moment(row: Floats, population: Population, i: int, j: int, dims: Any) -> Any:
    """The entry (i, j), j ≤ i, of Σŵ·z·zᵀ."""
    numbers, place = population.numbers, pair(i, j)
    return numbers[PLAIN] * row[PLAIN_ROW + place] + numbers[PAPER] * row[weighted_at(count_of(dims)) + place]


@inlined
def hold_alike(population: Population, room: Room, dims: Any) -> None:
    """Write the prior of an entry of c that everybody shares: the mean m and the ridge λ."""
    for d in range(count_of(dims)):
        room.sites[MEAN_OF, d], room.sites[RIDGE_OF, d] = population.mean[d], population.numbers[RIDGE]


@inlined
def solve_user(user: Floats, row: Floats, population: Population, room: Room, dims: Any) -> Any:
    """Write ĉ, and into `room.root` R with V⁻¹ = RᵀR (on and below the diagonal), from a user's row.

    V = Λ + κ11ᵀ + Σŵ·r·rᵀ, a bias of the user's own, where there is one, being integrated out; Λ is diagonal, and it
    and the mean m are what `room.sites` holds. ĉ = V⁻¹(Λm + κ(1·m̄)1 + Σŵ·g·r), m̄ the population's mean. Returns the
    squares left over, the least of Σŵ(g − c·r)² + ‖c − m‖² in Λ + κ(1·(c − m̄))².
    """
    objectives, root, lines, sites = count_of(dims), room.root, room.lines, room.sites
    last = objectives + 1
    numbers, total = population.numbers, 0.0
    held = numbers[SUM_RIDGE]
    for d in range(objectives):
        total += population.mean[d]
    squares = _moment(row, population, last, last, dims) + held * total * total
    share, target = 0.0, 0.0
    if numbers[BIAS_RIDGE] >= 0.0:
        pull = numbers[BIAS_RIDGE] * numbers[BIAS_MEAN]
        share = 1.0 / (_moment(row, population, 0, 0, dims) + numbers[BIAS_RIDGE])
        target = _moment(row, population, last, 0, dims) + pull
        squares += pull * numbers[BIAS_MEAN] - target * target * share
    for d in range(objectives):
        pull = sites[RIDGE_OF, d] * sites[MEAN_OF, d]
        lines[1, d] = _moment(row, population, d + 1, 0, dims)
        lines[2, d] = _moment(row, population, last, d + 1, dims) + pull - lines[1, d] * target * share + held * total
        squares += pull * sites[MEAN_OF, d]
    # The Cholesky factor L of V, row by row, into R's place, with 1/L on its diagonal; then L's inverse over it.
    for d in range(objectives):
        for e in range(d + 1):
            entry = _moment(row, population, d + 1, e + 1, dims) - lines[1, d] * lines[1, e] * share + held
            if d == e:
                entry += sites[RIDGE_OF, d]
            for k in range(e):
                entry -= root[d, k] * root[e, k]
            if d == e:
                root[d, d] = 1.0 / math.sqrt(max(entry, sites[RIDGE_OF, d]))  # V ⪰ Λ: anything less is rounding
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
    for d in range(objectives):
        entry = 0.0
        for e in range(d, objectives):
            entry += root[e, d] * lines[0, e]
        user[PREFERENCE + d] = entry
    return max(squares, 0.0)


@kernel
def solve_plainly(user: Floats, row: Floats, population: Population, room: Room, dims: Any) -> Any:
    """Do what `solve_user` does, by a call: compiled once for all that do not need every nanosecond."""
    return solve_user(user, row, population, room, dims)


@inlined
def level_moments(numbers: Floats) -> tuple[float, float]:
    """Return the mean and the variance of an entry of c that may be at either level."""
    low, high, share = numbers[LEVELS], numbers[LEVELS + 1], numbers[SHARE]
    mean = share * low + (1.0 - share) * high
    within = share * numbers[LEVELS + 2] + (1.0 - share) * numbers[LEVELS + 3]
    apart = high - low
    return mean, within + share * (1.0 - share) * (apart * apart)


@inlined
def cavity(user: Floats, d: int, room: Room, noise: float, least: float, dims: Any) -> tuple[Any, Any]:
    """Return the mean and the precision of an entry of c by all but its own site, as `solve_user` has just left it."""
    diagonal = 0.0
    for k in range(d, count_of(dims)):
        diagonal += room.root[k, d] * room.root[k, d]
    precision = 1.0 / (noise * diagonal)
    left = max(precision - room.sites[STRENGTH, d], least)
    return (user[PREFERENCE + d] * precision - room.sites[PULL, d]) / left, left


@inlined
def _square(x: Any) -> Any:
    """Return x² by a product: a power is rounded in Python as the library does it."""
    return x * x


@inlined
def low_chance(numbers: Floats, mean: Any, precision: Any) -> Any:
    """Return the chance that an entry is at the lower level, given its cavity."""
    width, share = 1.0 / precision, numbers[SHARE]
    one, two = numbers[LEVELS + 2] + width, numbers[LEVELS + 3] + width
    odds = (1.0 - share) / share * math.sqrt(one / two)
    more = 0.5 * (_square(mean - numbers[LEVELS]) / one - _square(mean - numbers[LEVELS + 1]) / two)
    return 1.0 / (1.0 + odds * exp(max(min(more, 700.0), -700.0)))


@inlined
def log_density(numbers: Floats, mean: Any, precision: Any) -> Any:
    """Return the logarithm of what the two levels make of an entry's cavity, without (2π)^−½."""
    width, share = 1.0 / precision, numbers[SHARE]
    one, two = numbers[LEVELS + 2] + width, numbers[LEVELS + 3] + width
    first = math.log(share) - 0.5 * (math.log(one) + _square(mean - numbers[LEVELS]) / one)
    second = math.log(1.0 - share) - 0.5 * (math.log(two) + _square(mean - numbers[LEVELS + 1]) / two)
    return max(first, second) + math.log1p(exp(max(-abs(first - second), -700.0)))


@inlined
def use_sites(room: Room, noise: float, dims: Any) -> None:
    """Make the sites the ridge."""
    sites = room.sites
    for d in range(count_of(dims)):
        sites[MEAN_OF, d], sites[RIDGE_OF, d] = sites[PULL, d] / sites[STRENGTH, d], noise * sites[STRENGTH, d]


@kernel
def sweep(
    user: Floats, row: Floats, population: Population, spread: float, room: Room, moments: Floats, dims: Any
) -> None:
    """Move each entry's site to what the two levels make of what all else says of the entry, all at once.

    spread: the variance of an entry of any user. moments: added to, by level: how many entries are at it, their sum,
    and the sum of their squares. Of who has no rounds the sites stay as they are.
    """
    objectives, sites, numbers = count_of(dims), room.sites, population.numbers
    noise = numbers[NOISE]
    here = above(row[PLAIN_ROW], 0.0, 1.0, 0.0)
    use_sites(room, noise, dims)
    solve_plainly(user, row, population, room, dims)
    for d in range(objectives):
        mean, precision = cavity(user, d, room, noise, 1e-9 / spread, dims)
        share = low_chance(numbers, mean, precision)
        # Of an entry at one level the variance is (1 − a)/p and the mean m + a(ℓ − m), a = 1/(1 + p·s): all that the
        # level adds to what all else says is in a, and so in no difference of large numbers.
        shift, less, apart = 0.0, 0.0, 0.0
        for level in range(2):
            chance = share if level == 0 else 1.0 - share
            weight = 1.0 / (1.0 + precision * numbers[LEVELS + 2 + level])
            moved = weight * (numbers[LEVELS + level] - mean)
            apart = moved if level == 0 else apart - moved
            shift += chance * moved
            less += chance * weight
            center = mean + moved
            chance *= here
            moments[level, 0] += summed(chance)
            moments[level, 1] += summed(chance * center)
            moments[level, 2] += summed(chance * ((1.0 - weight) / precision + center * center))
        less -= precision * share * (1.0 - share) * apart * apart
        strength = max(precision * less / max(1.0 - less, 1e-12), 0.25 / spread)
        pull = (mean + shift) * strength + precision * shift
        sites[STRENGTH, d] += here * STEP * (strength - sites[STRENGTH, d])
        sites[PULL, d] += here * STEP * (pull - sites[PULL, d])


@inlined
def find_sites(user: Floats, row: Floats, population: Population, room: Room, dims: Any) -> None:
    """Write the prior of one user's entries: everybody's, or the sites that the user's row gives two levels."""
    numbers = population.numbers
    if numbers[SHARE] == 0.0:
        hold_alike(population, room, dims)
    else:
        mean, variance = level_moments(numbers)
        for d in range(count_of(dims)):
            room.sites[PULL, d], room.sites[STRENGTH, d] = mean / variance, 1.0 / variance
        if summed(row[PLAIN_ROW]) > 0.0:
            for _ in range(SWEEPS):
                sweep(user, row, population, variance, room, room.moments, dims)
        use_sites(room, numbers[NOISE], dims)


@inlined
def read_user(user: Floats, row: Floats, population: Population, non_negative: bool, room: Room, dims: Any) -> None:
    """Write all that a kernel reads of a user whose ĉ is a ridge (`pamo.reading`), from the row and the prior."""
    find_sites(user, row, population, room, dims)
    read_with_sites(user, row, population, non_negative, room, dims)


@inlined
def read_with_sites(
    user: Floats, row: Floats, population: Population, non_negative: bool, room: Room, dims: Any
) -> None:
    """Do the same with the sites as they are."""
    objectives, root = count_of(dims), room.root
    inverse, weighted, directed = inverse_at(objectives), weighted_at(objectives), 0.0
    squares = solve_user(user, row, population, room, dims)
    if non_negative:
        _hold_positive(user, root, room.lines[0], dims)
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
def noise_of(squares: Any, rounds: Any, prior: Any, noise: Any) -> Any:
    """The variance of a user's noise: the user's own squares, and a few rounds' worth of what is common."""
    return (squares + prior * noise) / max(rounds + prior, 1.0)
