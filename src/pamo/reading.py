"""What a policy's kernel reads, and how it follows from the rows: of the arms on offer, of one user, of all arms.

A kernel is given arrays of numbers, and these are the names of their places:

    arms[PULLS, j]            N, the pulls of the offer's j-th arm, whatever they gave
    arms[WIDTH, j]            1/√max(N, 1), the width of a mean of so many pulls
    arms[OVERALL, j]          ḡ, the mean overall score; 0 before the first pull
    arms[MEAN + d, j]         r̂(d); before the first pull that gave it 0 or, where there is one, the arms' prior's mean

and, where the policy reads the spread,

    arms[scatter_at(D) + pair(d, e), j]  Σ(r − r̂)(r − r̂)ᵀ for e ≤ d
    arms[pending_at(D), j]    pulls under way: decided, and not yet answered
    arms[offset_at(D), j]     what the arm is worth to this user beyond its scores
    arms[offset_width_at(D), j]          how much more it may be worth, the optimism included
    arms[complete_at(D), j]   how many pulls gave every objective
    arms[count_at(D) + d, j]  how many pulls gave the objective
    arms[expected_at(D) + d, j]          what the arms' prior (`pamo.priors.arms`) expects of it before any did

    user[PREFERENCE + d]      ĉ(d)
    user[inverse_at(D) + pair(d, e)]     V⁻¹ for e ≤ d, where ĉ is a ridge
    user[noise_at(D)]         σ̂², the variance of the regression's noise, where the policy reads the spread
    user[squares_at(D)]       the squares left over, the least of Σŵ(g − c·r)² + λ‖c − m‖², likewise
    user[directed_at(D)]      the rounds with r ≠ 0, likewise

    common[pair(d, e)]        the scatter of all arms together, where the policy reads the spread
    common[freedom_at(D)]     Σ(N − 1) over the arms that were pulled, likewise, of pulls with a complete reward
    common[freedoms_at(D) + d]           the same of the pulls that gave an objective
    common[between_at(D) + d] v, the variance between arms that the arms' prior expects
    common[worth_at(D) + d]   n₀ = S/v, the pulls that this prior is worth, S the variance within arms

The arms on offer are a *tile*: a line for each number, padded with arms that nobody has pulled to a multiple of
`LANES`, so that a plain loop over them is compiled for several at a time and treats all alike: arms of which the same
was seen tie. There are two ways to each of these, which agree: all at once from the rows (`read_arm`, and `read_user`
of `pamo.priors`), or by one step for each feedback (`step_arm`, `step_user`), as the simulator goes.
"""

from __future__ import annotations

import math
from typing import Any

from pamo.arrays import Floats, Ints
from pamo.compiling import anywhere, apart, count_of, inlined, kernel
from pamo.eights import above
from pamo.rows import counts_at, pair, pulls_at, scored_at, triangle
from pamo.words import LANES, zero

PULLS, WIDTH, OVERALL, MEAN = range(4)
"""Lines of a tile."""
ROUNDING = 1e-14
"""Share of Σr² below which what is left of it after the mean is rounding, of which a root would make something."""
PREFERENCE = 0
"""Where ĉ begins in what is read of a user."""


@anywhere
def padded(count: int) -> int:
    """Return the length of a tile's lines for so many arms.

    >>> padded(5), padded(8), padded(9)
    (8, 8, 16)
    """
    return (count + LANES - 1) // LANES * LANES


@anywhere
def scatter_at(objectives: int) -> int:
    """Return the first line of the arms' scatter: the height of a tile without it."""
    return MEAN + objectives


@anywhere
def pending_at(objectives: int) -> int:
    """Return the line of the pulls under way. Whoever decides writes it; no row knows of them."""
    return MEAN + objectives + triangle(objectives)


@anywhere
def offset_at(objectives: int) -> int:
    """Return the line of the arms' worth to this user beyond their scores: 0 where nobody has found any."""
    return MEAN + objectives + triangle(objectives) + 1


@anywhere
def offset_width_at(objectives: int) -> int:
    """Return the line of the optimism about that worth."""
    return MEAN + objectives + triangle(objectives) + 2


@anywhere
def complete_at(objectives: int) -> int:
    """Return the line of the pulls that gave every objective."""
    return MEAN + objectives + triangle(objectives) + 3


@anywhere
def count_at(objectives: int) -> int:
    """Return the first line of the counts by objective."""
    return MEAN + objectives + triangle(objectives) + 4


@anywhere
def expected_at(objectives: int) -> int:
    """Return the first line of what the arms' prior expects."""
    return count_at(objectives) + objectives


@anywhere
def tile_height(objectives: int) -> int:
    """Return the lines of a tile with everything."""
    return count_at(objectives) + 2 * objectives


@anywhere
def inverse_at(objectives: int) -> int:
    """Return where V⁻¹ begins in what is read of a user."""
    return objectives


@anywhere
def noise_at(objectives: int) -> int:
    """Return the place of σ̂² in what is read of a user."""
    return objectives + triangle(objectives)


@anywhere
def squares_at(objectives: int) -> int:
    """Return the place of the squares left over."""
    return objectives + triangle(objectives) + 1


@anywhere
def directed_at(objectives: int) -> int:
    """Return the place of the rounds with a direction."""
    return objectives + triangle(objectives) + 2


@anywhere
def user_numbers(objectives: int) -> int:
    """Return how many numbers are read of a user."""
    return objectives + triangle(objectives) + 3


@anywhere
def freedom_at(objectives: int) -> int:
    """Return the place of Σ(N − 1) in what all arms have in common."""
    return triangle(objectives)


@anywhere
def freedoms_at(objectives: int) -> int:
    """Return the first place of the same by objective."""
    return triangle(objectives) + 1


@anywhere
def between_at(objectives: int) -> int:
    """Return the first place of the variances between arms."""
    return triangle(objectives) + 1 + objectives


@anywhere
def worth_at(objectives: int) -> int:
    """Return the first place of the pulls that the arms' prior is worth."""
    return triangle(objectives) + 1 + 2 * objectives


@anywhere
def common_numbers(objectives: int) -> int:
    """Return how many numbers all arms have in common."""
    return triangle(objectives) + 1 + 3 * objectives


# ---- arms


@kernel
def clear_arms(arms: Floats) -> None:
    """Write a tile of arms of which nothing was seen."""
    zero(arms)
    for j in range(arms.shape[1]):
        arms[WIDTH, j] = 1.0


@inlined
def read_arm(arms: Floats, j: int, row: Floats, common: Floats, dims: Any) -> None:
    """Write what an arm's row says into place j of a tile, and what has changed by it into the common numbers.

    The scatter of an objective is that of all pulls that gave it, the scatter between two that of the complete ones.
    """
    objectives = count_of(dims)
    first, counts, scored, complete = scatter_at(objectives), counts_at(objectives), scored_at(objectives), row[0]
    given, expected, pulls = count_at(objectives), expected_at(objectives), row[pulls_at(objectives)]
    common[freedom_at(objectives)] += max(complete - 1.0, 0.0) - max(arms[complete_at(objectives), j] - 1.0, 0.0)
    arms[complete_at(objectives), j] = complete
    arms[PULLS, j] = pulls
    arms[WIDTH, j] = 1.0 / math.sqrt(max(pulls, 1.0))
    arms[OVERALL, j] = row[pair(objectives + 1, 0)] / max(row[scored], 1.0)
    for d in range(objectives):
        count, total, squares = row[counts + d], row[counts + objectives + d], row[counts + 2 * objectives + d]
        common[freedoms_at(objectives) + d] += max(count - 1.0, 0.0) - max(arms[given + d, j] - 1.0, 0.0)
        arms[given + d, j] = count
        arms[MEAN + d, j] = total / count if count > 0.0 else arms[expected + d, j]
        for e in range(d + 1):
            entry, size = squares - total * total / max(count, 1.0), squares
            if e < d:
                size = row[pair(d + 1, e + 1)]
                entry = size - row[pair(d + 1, 0)] * row[pair(e + 1, 0)] / max(complete, 1.0)
            if abs(entry) <= ROUNDING * abs(size) or (e == d and entry < 0.0):  # rewards that do not vary
                entry = 0.0
            common[pair(d, e)] += entry - arms[first + pair(d, e), j]
            arms[first + pair(d, e), j] = entry


@kernel
def read_arms(arms: Floats, rows: Floats, common: Floats, dims: Any) -> None:
    """Write what all arms' rows say into one tile, and what they have in common."""
    clear_arms(arms)
    common.fill(0.0)
    for i in range(len(rows)):
        read_arm(arms, i, rows[i], common, dims)


@inlined
def gather(tile: Floats, arms: Floats, offer: Ints) -> None:
    """Write the tile of an offer, taken from the tile of all arms; what pads it is left as it is."""
    for number in range(len(tile)):
        for j in range(len(offer)):
            tile[number, j] = arms[number, offer[j]]


@apart
def step_arm(arms: Floats, j: int, sums: Floats, values: Floats, common: Floats, spread: Any, dims: Any) -> None:
    """Take one pull with the values (r₁ … r_D, g) into an arm's place in a tile, and into its sums (Σr, Σg).

    With spread None the scatter is left out, and what is common with it.
    """
    objectives = count_of(dims)
    before = arms[PULLS, j]
    share = 1.0 / (before + 1.0)
    for d in range(objectives + 1):
        sums[d] += values[d]
    if spread is not None:
        if before > 0.0:
            first = scatter_at(objectives)
            for d in range(objectives):
                across = before * share * (values[d] - arms[MEAN + d, j])
                for e in range(d + 1):
                    product = across * (values[e] - arms[MEAN + e, j])
                    arms[first + pair(d, e), j] += product
                    common[pair(d, e)] += product
                common[freedoms_at(objectives) + d] += 1.0
            common[freedom_at(objectives)] += 1.0
        given = count_at(objectives)
        arms[complete_at(objectives), j] = before + 1.0
        for d in range(objectives):
            arms[given + d, j] = before + 1.0
    arms[PULLS, j] = before + 1.0
    arms[WIDTH, j] = math.sqrt(share)
    arms[OVERALL, j] = sums[objectives] * share
    for d in range(objectives):
        arms[MEAN + d, j] = sums[d] * share


# ---- a user


@inlined
def step_user(
    user: Floats, values: Floats, square: Any, least: float, one: Any, two: Any, room: Floats, dims: Any
) -> Any:
    """Take one round with the values (r₁ … r_D, g) into ĉ = V⁻¹b and V⁻¹ by a rank-one step (Alg. 1, updating lines).

    V ← V + ŵ·r·rᵀ and b ← b + ŵ·g·r, without V or b: O(D²) in place of O(D³). square is ‖r‖², and a reward of no more
    than `least` is as good as 0 and leaves both as they are. ŵ = one + two/‖r‖²: the paper's weight has one = 0 and
    two = ω, a plain ridge one = 1 and two = 0. Returns what the round adds to the squares left over. `room` is D long.
    Or eight users' rounds, whose numbers all of these then are (`pamo.eights`).
    """
    objectives = count_of(dims)
    inverse = inverse_at(objectives)
    denominator = square / (one * square + two)  # 1/ŵ
    residual = values[objectives]
    for d in range(objectives):
        along = 0.0  # of V⁻¹r
        for e in range(objectives):
            along += user[inverse + (pair(d, e) if e <= d else pair(e, d))] * values[e]
        room[d] = along
        denominator += along * values[d]
        residual -= user[PREFERENCE + d] * values[d]
    scale = above(square, least, 1.0 / denominator, 0.0)
    for d in range(objectives):
        scaled = scale * room[d]
        user[PREFERENCE + d] += scaled * residual
        for e in range(d + 1):
            user[inverse + pair(d, e)] -= scaled * room[e]
    return above(square, least, residual * residual * scale, one * values[objectives] * values[objectives])
