"""The loop's round for one user who comes by: a choice, and what came of it, each in one compiled call.

A call from Python costs some fifty nanoseconds for each array, and more for a tuple of them. So all that there is lies
in one, the *board*: how many marks there are, the marks, and tables. Marks are whole numbers: of each table where it
begins and its shape, then the player's own, and then of each user how often the user was served and the arm whose pull
is still to be learned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from pamo.arrays import Floats, Ints
from pamo.compiling import apart, around, count_of, inlined
from pamo.policies.base import Keeping, Kept, Run, pick
from pamo.reading import PREFERENCE, WIDTH, gather, padded, step_arm
from pamo.simulation.learning import RIDGE, Spread, TrialPlan, Users, arrive, learn_chunk, learn_stated
from pamo.words import bare, cube_of, grid_of, line_of

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
ROUND, LAST, DRAWS = AT_ONCE + 1, AT_ONCE + 2, AT_ONCE + 3
SERVED = DRAWS + 4
"""Places in the marks: whether each pull is learned at once, the round, who was learned of last, the policy's stream,
and then the users."""

ALL = -(2**62)
"""In place of a user: all users of a round."""
DONE, WAITING, NO_USER, NO_ARM, NO_NUMBER = 0, -1, -2, -3, -4
"""What a call says where it is no arm: learned; that a round has to be learned before; that there is no such user, or
arm."""


def laid_out(shapes: Mapping[str, tuple[int, ...]], users: int) -> Floats:
    """Return a board of tables of these shapes, zeros."""
    marks = np.zeros(SERVED + 2 * users, dtype=np.int64)
    size = padded(1 + len(marks))
    for number, name in enumerate(TABLES):
        shape = shapes[name]
        marks[4 * number : 4 * number + 1 + len(shape)] = size, *shape
        size += padded(math.prod(shape))  # each begins where a cache's line may
    marks[LAST], marks[SERVED + users :] = -1, -1
    board = np.zeros(size)
    board[0], board[1 : 1 + len(marks)] = len(marks), marks.view(np.float64)
    return board


@inlined
def _plan_in(board: Floats, marks: Ints) -> TrialPlan:
    p = line_of(board, marks, PLAN)
    sizes = int(p[0]), int(p[1]), int(p[2]), int(p[3]), int(p[4]), int(p[5]), int(p[6]), int(p[7]), int(p[8])
    return TrialPlan(*sizes, p[9] > 0.0, p[10] > 0.0, p[11], p[12], p[13], p[14], p[15])


@cache
def choosing_alone(kernel: Any, remember: Any, dims: Any) -> Any:
    """Return what chooses for one user by a policy's kernel."""
    score, keeps = apart(kernel.py_func), remember is not None

    def choose_alone(board: Floats, offer: Ints, user: int) -> int:
        marks = bare(board[1 : 1 + int(board[0])].view(np.int64))
        plan, count, objectives = line_of(board, marks, PLAN), len(offer), count_of(dims)
        users, arms = int(plan[1]), int(plan[2])
        if user < 0 or user >= users:
            return NO_USER
        whole, known = count == arms, count > 0
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
        own, read = line_of(board, marks, USER), cube_of(board, marks, READ)
        for place in range(len(own)):
            own[place] = read[user, place, 0]
        asked = line_of(board, marks, ASKED)
        if asked[0] == asked[0]:
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

    return around(choose_alone, *(one for one in (kernel, remember) if one is not None), strict=True, of=dims)


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

    reads_spread: None for a policy that does not.
    """
    take = None if remember is None else apart(remember.py_func)

    def learn_alone(board: Floats, reward: Floats, overall: float, user: int, arm: int) -> int:
        marks = bare(board[1 : 1 + int(board[0])].view(np.int64))
        plan, objectives = _plan_in(board, marks), count_of(dims)
        pulled, first, last = SERVED + plan.users, 0, plan.users
        if user != ALL:
            if user < 0 or user >= plan.users:
                return NO_USER
            if arm < 0 or arm >= plan.arms:
                return NO_ARM
            total = overall
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
        return DONE

    return around(learn_alone, *(() if remember is None else (remember,)), strict=True, of=(reads_spread, dims))
