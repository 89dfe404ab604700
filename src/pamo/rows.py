"""The layout of what is summed: rows of arms, of users, of pairs and of stated preferences, and how each is added to.

Everything that is learned is Σ w·z·zᵀ of z = (1, r, g), the constant, the reward vector and the overall score, kept as
the lower triangle row by row: (1,1), (r₁,1), (r₁,r₁), (r₂,1), … With g last, all that is known without an overall score
is the beginning of the triangle. Zeros are the identity, rows add up, and the ridge λI is in no row: adding two would
count it twice.

| row | numbers |
|---|---|
| of an arm | triangle with w = 1 of the pulls with a complete reward; how many of them had an overall score; then for every pull, by objective: how many gave it, Σr, Σr²; how many pulls there were at all, and how many had an overall score |
| of a user | rounds; triangles with w = 1 and with w = 1/‖r‖², of the rounds with a complete reward and an overall score; how many rounds had an overall score beside an incomplete reward |
| of a pair, a user and an arm | of those rounds: how many, Σg, Σg²; by objective how many gave it, Σr. There is one only where there was such a round |
| of stated preferences | how many were stated, Σc, Σc² |

Where something is forgotten with time, its rows have one number more, the last: how old the newest round in them is, in
half-lives since 1970 or since the first round. A round of age a weighs 2^(a − ⌊newest⌋), and a row whose newest passes a
whole number is halved, so that sums stay sums, and rows that were added to in any order are the same.

A row is any one-dimensional view of floats, whatever its stride, and is never made here: the same functions add to a
store's block, to an array of statistics and to the simulator's lanes.
"""  # noqa: E501  # a table

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pamo.arrays import Floats, Ints
from pamo.compiling import anywhere, entry, inlined
from pamo.eights import above

LAYOUT = 3
"""The number of this layout. Whoever keeps rows keeps it beside them: rows of another are summed anew."""

LEAST_SQUARE = 1e-300
"""‖r‖² up to which a reward is as good as 0: its weight 1/‖r‖² would leave a float's range, and then poison a sum."""

ROUNDS, PLAIN = 0, 1
"""Places in a user's row: the rounds, and the beginning of the triangle with w = 1."""
PAIR_COUNT, PAIR_OVERALL, PAIR_SQUARE, PAIR_GIVEN = range(4)
"""Places in a pair's row: its rounds, Σg, Σg², and where the counts by objective begin; D places on are Σr."""
STATED_COUNT, STATED_SUM = 0, 1
"""Places in a row of stated preferences."""


@anywhere
def pair(d: int, e: int) -> int:
    """Return the place of the entry (d, e), e ≤ d, in a triangle.

    >>> [pair(d, e) for d in range(3) for e in range(d + 1)]
    [0, 1, 2, 3, 4, 5]
    """
    return d * (d + 1) // 2 + e


@anywhere
def triangle(size: int) -> int:
    """Return how many numbers a triangle of so many rows holds."""
    return size * (size + 1) // 2


@anywhere
def scored_at(objectives: int) -> int:
    """Return the place in an arm's row of the pulls that came with an overall score; the triangle is before it."""
    return triangle(objectives + 2)


@anywhere
def counts_at(objectives: int) -> int:
    """Return the place in an arm's row of the counts by objective; D places on are Σr, and D more on Σr²."""
    return triangle(objectives + 2) + 1


@anywhere
def pulls_at(objectives: int) -> int:
    """Return the place in an arm's row of all its pulls, whatever was told of them; then of those with a score."""
    return triangle(objectives + 2) + 1 + 3 * objectives


@anywhere
def arm_width(objectives: int) -> int:
    """Return the numbers in an arm's row."""
    return triangle(objectives + 2) + 3 + 3 * objectives


@anywhere
def weighted_at(objectives: int) -> int:
    """Return the place in a user's row of the triangle with w = 1/‖r‖²."""
    return PLAIN + triangle(objectives + 2)


@anywhere
def partial_at(objectives: int) -> int:
    """Return the place in a user's row of the rounds with an overall score beside an incomplete reward."""
    return PLAIN + 2 * triangle(objectives + 2)


@anywhere
def user_width(objectives: int) -> int:
    """Return the numbers in a user's row."""
    return PLAIN + 2 * triangle(objectives + 2) + 1


@anywhere
def pair_width(objectives: int) -> int:
    """Return the numbers in a pair's row."""
    return PAIR_GIVEN + 2 * objectives


@anywhere
def stated_width(objectives: int) -> int:
    """Return the numbers in a row of stated preferences."""
    return STATED_SUM + 2 * objectives


def whole(size: int) -> Ints:
    """Return the places in a triangle of the entries of its whole matrix, (size, size)."""
    row, column = np.indices((size, size))
    return np.asarray(pair(np.maximum(row, column), np.minimum(row, column)))  # type: ignore[arg-type]  # of arrays too


@inlined
def observe(row: Floats, start: int, weight: Any, values: Floats, size: int) -> None:
    """Add w·z·zᵀ to the triangle that begins at `start`; z = (1, values…), of which `size` entries are taken.

    This is the one place where a moment is added up.
    """
    row[start] += weight
    for i in range(1, size):
        scaled = weight * values[i - 1]
        row[start + pair(i, 0)] += scaled
        for j in range(1, i + 1):
            row[start + pair(i, j)] += scaled * values[j - 1]


@inlined
def grow_old(row: Floats, age: float, fixed: int) -> float:
    """Let a row be as old as a round that is added to it, and return what that round weighs in it.

    age: in half-lives; below 0 nothing is forgotten, and every round weighs 1. fixed: the first numbers, that stay.
    """
    if age < 0.0:
        return 1.0
    last = len(row) - 1
    if age > row[last]:
        passed = math.floor(age) - math.floor(row[last])
        if passed > 0:
            for place in range(fixed, last):
                row[place] = math.ldexp(row[place], -passed)  # exact
        row[last] = age
    return math.ldexp(math.exp2(age - math.floor(age)), math.floor(age) - math.floor(row[last]))


@entry
def grow_together(row: Floats, other: Floats, fixed: int) -> None:
    """Add a row to one of the same kind, both of which have ages."""
    last = len(row) - 1
    weight = 0.0
    if other[last] > row[last]:
        grow_old(row, other[last], fixed)
        weight = 1.0
    else:
        weight = math.ldexp(1.0, math.floor(other[last]) - math.floor(row[last]))
    for place in range(last):
        row[place] += other[place] if place < fixed else weight * other[place]


@entry
def read_aged(out: Floats, row: Floats, now: float, fixed: int) -> None:
    """Write a row as it is worth now, an age in half-lives, or as of its newest round if that is later."""
    last = len(row) - 1
    weight = math.exp2(math.floor(row[last]) - max(now, row[last]))
    for place in range(last):
        out[place] = row[place] if place < fixed else weight * row[place]


@inlined
def observe_arm(row: Floats, values: Floats, weight: float, objectives: int) -> None:
    """Add a pull with the values (r₁ … r_D, g), `weight` times (−1 takes it back); NaN is what was not given."""
    given, counts, pulls = 0, counts_at(objectives), pulls_at(objectives)
    scored = not np.isnan(values[objectives])
    for d in range(objectives):
        if not np.isnan(values[d]):
            given += 1
            row[counts + d] += weight
            row[counts + objectives + d] += weight * values[d]
            row[counts + 2 * objectives + d] += weight * values[d] * values[d]
    row[pulls] += weight
    if scored:
        row[pulls + 1] += weight
    if given == objectives:
        if scored:
            observe(row, 0, weight, values, objectives + 2)
            row[scored_at(objectives)] += weight
        else:  # an overall score that was not given leaves its entries alone
            observe(row, 0, weight, values, objectives + 1)


@inlined
def square_of(values: Floats, objectives: int) -> Any:
    """Return ‖r‖² of the values (r₁ … r_D, …)."""
    square = 0.0
    for d in range(objectives):
        square += values[d] * values[d]
    return square


@inlined
def observe_round(row: Floats, values: Floats, weight: Any, objectives: int) -> None:
    """Add a user's round with a whole reward and an overall score, `weight` times: once, or 0 for who is not there.

    Or the rounds of eight users (`pamo.eights`), whose numbers the row, the values and the weight then are.
    """
    square = square_of(values, objectives)
    row[ROUNDS] += weight
    observe(row, PLAIN, weight, values, objectives + 2)
    # w = 1/‖r‖² has no value at r = 0: such a sample carries no direction.
    observe(row, weighted_at(objectives), above(square, LEAST_SQUARE, weight / square, 0.0), values, objectives + 2)


@inlined
def observe_user(row: Floats, values: Floats, weight: float, objectives: int) -> bool:
    """Add a user's round with the values (r₁ … r_D, g), `weight` times; NaN is what was not given.

    Tells whether the round belongs into the row of its pair as well: it has an overall score, and no whole reward.
    """
    if np.isnan(values[objectives]):
        row[ROUNDS] += weight
        return False
    if np.isnan(square_of(values, objectives)):  # a triangle takes a round only whole
        row[ROUNDS] += weight
        row[partial_at(objectives)] += weight
        return True
    observe_round(row, values, weight, objectives)
    return False


@inlined
def observe_pair(row: Floats, values: Floats, weight: float, objectives: int) -> None:
    """Add a round with an overall score and an incomplete reward to the row of its user and arm."""
    overall = values[objectives]
    row[PAIR_COUNT] += weight
    row[PAIR_OVERALL] += weight * overall
    row[PAIR_SQUARE] += weight * overall * overall
    for d in range(objectives):
        if not np.isnan(values[d]):
            row[PAIR_GIVEN + d] += weight
            row[PAIR_GIVEN + objectives + d] += weight * values[d]


@inlined
def state(row: Floats, weights: Floats, count: float, objectives: int) -> None:
    """Add a stated preference to a row, `count` times: once, or 0 times for a user who is not there."""
    row[STATED_COUNT] += count
    for d in range(objectives):
        row[STATED_SUM + d] += count * weights[d]
        row[STATED_SUM + objectives + d] += count * weights[d] * weights[d]


@entry
def observe_arms(rows: Floats, places: Ints, values: Floats) -> None:
    """Add pulls to the rows at these places, one for each row of values."""
    for k in range(len(places)):
        observe_arm(rows[places[k]], values[k], 1.0, values.shape[1] - 1)


@entry
def observe_users(rows: Floats, stated: Floats, places: Ints, values: Floats, preferences: Floats) -> None:
    """Add rounds to the rows at these places, and what was stated to the rows of stated preferences."""
    objectives = values.shape[1] - 1
    for k in range(len(places)):
        observe_user(rows[places[k]], values[k], 1.0, objectives)
        if not np.isnan(preferences[k].sum()):
            state(stated[places[k]], preferences[k], 1.0, objectives)
