"""The loop's round for one user who comes by: a choice, and what came of it, each in one compiled call.

A call from Python costs some forty nanoseconds for each array, and more for a tuple of them. So all that there is lies
in one, the *board*, of which a call is told the address: how many marks there are, the marks, and tables. Marks are
whole numbers: of each table where it begins and its shape, then the player's own, then of each user how often the user
was served and the arm whose pull is still to be learned, and then all arms.

What comes with a call, an offer or a reward, is `ALL`, the address of Python's array, or, as a negative number, that of
numbers that lie one behind the other: of an offer first how many they are. A call says `NO_LINE` where an array is none
of the kind, and has then changed nothing, nor has it where it says any other of the negative ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numba import types

from pamo.arrays import Floats, Ints
from pamo.compiling import SPECIALISED, apart, count_of, entered, inlined
from pamo.handing import known_arrays, line_length, line_start
from pamo.policies.base import Keeping, Kept, Run, pick
from pamo.reading import PREFERENCE, WIDTH, gather, padded, step_arm, user_numbers
from pamo.simulation.learning import RIDGE, Spread, TrialPlan, Users, arrive, learn_chunk, learn_stated
from pamo.words import bare, cube_of, floats_at, grid_of, line_of, wholes_at

UNROLLED = 16
"""Up to so many objectives a player's own code is compiled for their very number: there is little of it."""

TABLES: dict[str, int] = {
    "plan": 1,
    "spread": 1,
    "arms": 3,
    "sums": 3,
    "common": 2,
    "read": 3,
    "rows": 3,
    "stated": 3,
    "told": 3,
    "sites": 3,
    "here": 2,
    "priors": 2,
    "rewards": 3,
    "statements": 3,
    "room": 2,
    "values": 1,
    "tile": 1,
    "scores": 1,
    "scratch": 2,
    "user": 1,
    "asked": 1,
    "numbers": 1,
    "by_arm": 2,
    "by_user": 2,
    "shared": 1,
}
"""The tables on a board and their axes; each user is a chunk of one lane. plan, spread: a `TrialPlan`, a `Spread` as
numbers. read … priors: those of `Users`. rewards, statements: what is still to be learned. user: what a kernel reads of
who is served; asked: the preference in place of the user's own, NaN where there is none. by_arm … shared: what a policy
keeps by itself."""

(
    PLAN, SPREAD, ARMS, SUMS, COMMON, READ, ROWS, STATED, TOLD, SITES, HERE, PRIORS, REWARDS, STATEMENTS, ROOM, VALUES,
    TILE, SCORES, SCRATCH, USER, ASKED, NUMBERS, BY_ARM, BY_USER, SHARED,
) = range(len(TABLES))  # fmt: skip

AT_ONCE = 4 * len(TABLES)
ROUND, LAST, SIZE, FITTING, KNOWN = range(AT_ONCE + 1, AT_ONCE + 6)
DRAWS = KNOWN + 3
SERVED = DRAWS + 4
"""Places in the marks: whether each pull is learned at once, the round, who was learned of last, the board's length,
the round after which something is fitted, by what arrays are known, the policy's stream, and then the users."""

ALL = 0
"""In place of an offer: all arms. In place of a reward: all users of the round."""
NEVER = 2**62
"""A round that does not come."""
DONE, DUE, WAITING, NO_USER, NO_ARM, NO_NUMBER, NO_LINE = 0, 1, -1, -2, -3, -4, -5
"""What a call says where it is no arm: learned; learned, and that it is time to fit; that a round has to be learned
before; that there is no such user, or arm; that something is no number; that an array is of another kind."""


def dimensions_alone(objectives: int) -> Any:
    """Return what tells a player's code the number of objectives, as `dimensions` does it for most."""
    return (None,) * objectives if objectives in SPECIALISED or 8 < objectives <= UNROLLED else objectives


def laid_out(shapes: Mapping[str, tuple[int, ...]], users: int, arms: int) -> Floats:
    """Return a board of tables of these shapes, zeros."""
    marks = np.zeros(SERVED + 2 * users + arms, dtype=np.int64)
    size = padded(1 + len(marks))
    for number, name in enumerate(TABLES):
        shape = shapes[name]
        marks[4 * number : 4 * number + 1 + len(shape)] = size, *shape
        size += padded(math.prod(shape))  # each begins where a cache's line may
    marks[LAST], marks[SIZE], marks[FITTING] = -1, size, NEVER
    marks[SERVED + users : SERVED + 2 * users], marks[SERVED + 2 * users :] = -1, np.arange(arms)
    board = np.zeros(size)
    board[0], board[1 : 1 + len(marks)] = len(marks), marks.view(np.float64)
    return board


def look_up_arrays(marks: Ints) -> None:
    """Write into the marks by what arrays are known, which another process knows otherwise."""
    marks[KNOWN : KNOWN + 3] = known_arrays()


@inlined
def _board_at(at: int) -> tuple[Floats, Ints]:
    marks = wholes_at(at + 8, int(floats_at(at, 1)[0]))
    return floats_at(at, marks[SIZE]), marks


@inlined
def _plan_in(board: Floats, marks: Ints) -> TrialPlan:
    p = line_of(board, marks, PLAN)
    sizes = int(p[0]), int(p[1]), int(p[2]), int(p[3]), int(p[4]), int(p[5]), int(p[6]), int(p[7]), int(p[8])
    return TrialPlan(*sizes, p[9] > 0.0, p[10] > 0.0, p[11], p[12], p[13], p[14], p[15])


@cache
def choosing_alone(kernel: Any, remember: Any, dims: Any) -> Any:
    """Return what chooses for one user by a policy's kernel."""
    score, keeps = apart(kernel.py_func), remember is not None

    def choose_alone(at: int, user: int, given: int) -> int:
        board, marks = _board_at(at)
        plan, objectives = line_of(board, marks, PLAN), count_of(dims)
        users, arms = int(plan[1]), int(plan[2])
        if user < 0 or user >= users:
            return NO_USER
        count, start, whole = arms, at + 8 * (1 + SERVED + 2 * users), True
        if given > ALL:
            count = line_length(given, marks[KNOWN], marks[KNOWN + 2])
            if count < 0:
                return NO_LINE
            start = line_start(given)
        if given < ALL:
            count, start = wholes_at(-given, 1)[0], 8 - given
        offer = wholes_at(start, count)
        if given != ALL:
            whole, known = count == arms, count > 0 and padded(count) <= padded(arms)
            for j in range(count):
                whole = whole and offer[j] == j
                known = known and 0 <= offer[j] < arms
            if not known:
                return NO_ARM
        if marks[SERVED + users + user] >= 0:
            return WAITING
        table = bare(cube_of(board, marks, ARMS)[user if plan[9] > 0.0 else 0])
        width, tile = padded(count), table
        if not whole:
            tile = bare(line_of(board, marks, TILE)[: len(table) * width].reshape((len(table), width)))
            gather(tile, table, offer)
            for number in range(len(tile)):
                for j in range(count, width):
                    tile[number, j] = 1.0 if number == WIDTH else 0.0
        numbers_of = user_numbers(objectives)
        own = floats_at(at + 8 * (marks[4 * READ] + user * numbers_of), numbers_of)
        asked = line_of(board, marks, ASKED)
        if asked[0] == asked[0]:
            read, own = own, line_of(board, marks, USER)
            for place in range(numbers_of):
                own[place] = read[place]
            for d in range(objectives):
                own[PREFERENCE + d] = asked[d]
        scores, scratch = bare(line_of(board, marks, SCORES)[:width]), grid_of(board, marks, SCRATCH)
        numbers, common = line_of(board, marks, NUMBERS), bare(grid_of(board, marks, COMMON)[0])
        t, stream = marks[SERVED + user] + 1, bare(marks[DRAWS:SERVED].view(np.uint64))
        if keeps:
            kept = Kept(grid_of(board, marks, BY_ARM), grid_of(board, marks, BY_USER), line_of(board, marks, SHARED))
            about = Keeping(numbers, stream, scratch, kept, marks[ROUND], user, offer)
            score(scores, count, t, tile, own, common, about, dims)
        if not keeps:
            score(scores, count, t, tile, own, common, Run(numbers, stream, scratch), dims)
        return int(offer[pick(scores, count, stream)])

    kernels = (one for one in (kernel, remember) if one is not None)
    return entered(choose_alone, types.int64(*(types.int64,) * 3), *kernels, of=dims)


@inlined
def _learn(
    board: Floats, marks: Ints, plan: TrialPlan, first: int, last: int, take: Any, spread: Any, dims: Any
) -> None:
    """Learn what users first … last − 1 pulled as the loop does: users first, then arms, then what a policy keeps."""
    objectives, pulled, rewards = count_of(dims), SERVED + plan.users, cube_of(board, marks, REWARDS)
    users = Users(
        cube_of(board, marks, READ),
        cube_of(board, marks, ROWS),
        cube_of(board, marks, STATED),
        cube_of(board, marks, TOLD),
        cube_of(board, marks, SITES),
        grid_of(board, marks, HERE),
        grid_of(board, marks, PRIORS),
    )
    if marks[LAST] >= 0:
        users.here[marks[LAST], 0] = 0.0
    marks[LAST] = first
    for n in range(first, last):
        users.here[n, 0] = 0.0
        if marks[pulled + n] >= 0:
            if marks[SERVED + n] == 0:
                arrive(users, 1, n, n + 1, plan, None, dims)
            marks[SERVED + n] += 1
            users.here[n, 0] = 1.0
    if plan.wants_stated:
        statements = cube_of(board, marks, STATEMENTS)
        for n in range(first, last):
            learn_stated(users, n, statements, plan, None, dims)
    room, common = grid_of(board, marks, ROOM), bare(grid_of(board, marks, COMMON)[0])
    if plan.kind == RIDGE:
        for n in range(first, last):
            learn_chunk(users, n, rewards, plan, None, room, spread, dims)
    arms, sums, values = cube_of(board, marks, ARMS), cube_of(board, marks, SUMS), line_of(board, marks, VALUES)
    for n in range(first, last):
        i = marks[pulled + n]
        if i < 0:
            continue
        owner = n if plan.per_user else 0
        for d in range(objectives + 1):
            values[d] = rewards[n, d, 0]
            rewards[n, d, 0] = 0.0
        marks[pulled + n] = -1
        step_arm(bare(arms[owner]), i, bare(sums[owner, i]), values, common, spread, dims)
        if take is not None:
            kept = Kept(grid_of(board, marks, BY_ARM), grid_of(board, marks, BY_USER), line_of(board, marks, SHARED))
            stream, nothing = bare(marks[DRAWS:SERVED].view(np.uint64)), bare(marks[:0])
            about = Keeping(line_of(board, marks, NUMBERS), stream, room, kept, marks[ROUND], n, nothing)
            take(i, values, about, dims)
    marks[ROUND] += 1


@cache
def learning_alone(remember: Any, reads_spread: Any, dims: Any) -> Any:
    """Return what takes in a user's pull, to be learned at once or later; or, for `ALL`, learns those of a round.

    reads_spread: None for a policy that does not. An array is not taken of a user whose statement has to come first.
    """
    take = None if remember is None else apart(remember.py_func)

    def learn_alone(at: int, user: int, arm: int, overall: float, given: int) -> int:
        board, marks = _board_at(at)
        plan, objectives = _plan_in(board, marks), count_of(dims)
        pulled, first, last = SERVED + plan.users, 0, plan.users
        if given != ALL:
            if user < 0 or user >= plan.users:
                return NO_USER
            if arm < 0 or arm >= plan.arms:
                return NO_ARM
            start = -given
            if given > ALL:
                if plan.wants_stated or line_length(given, marks[KNOWN], marks[KNOWN + 1]) != objectives:
                    return NO_LINE
                start = line_start(given)
            reward, total = floats_at(start, objectives), overall
            for d in range(objectives):
                total += reward[d]
            if not math.isfinite(total):
                return NO_NUMBER
            if marks[pulled + user] >= 0:
                return WAITING
            first, last, rewards = user, user + 1, cube_of(board, marks, REWARDS)
            for d in range(objectives):
                rewards[user, d, 0] = reward[d]
            rewards[user, objectives, 0] = overall
            marks[pulled + user] = arm
            if marks[AT_ONCE] == 0:
                return DONE
        if reads_spread is None:
            _learn(board, marks, plan, first, last, take, None, dims)
        if reads_spread is not None:
            s = line_of(board, marks, SPREAD)
            told = Spread(s[0] > 0.0, s[1] > 0.0, s[2], s[3] > 0.0, s[4] > 0.0, s[5] > 0.0)
            _learn(board, marks, plan, first, last, take, told, dims)
        return DUE if marks[ROUND] > marks[FITTING] else DONE

    signature = types.int64(*(types.int64,) * 3, types.float64, types.int64)
    return entered(learn_alone, signature, *(() if remember is None else (remember,)), of=(reads_spread, dims))
