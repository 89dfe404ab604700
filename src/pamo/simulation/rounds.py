"""One round of all users: a policy's formula and an environment's draw, each written for one user, repeated over them.

The trial loop calls each of the two once a round through a `numba.types.FunctionType`, so that it is compiled once for
all policies and environments, and an indirect call costs a fraction of a nanosecond a decision. What is repeated is
compiled with the kernel inside it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
from numba import types

from pamo.arrays import Floats, Ints
from pamo.compiling import apart, around, count_of, dimensions
from pamo.policies.base import Keeping, Kept, Run, pick
from pamo.simulation.learning import PLAN_TYPE, TrialPlan
from pamo.streams import ENVIRONMENT, POLICY, STATED
from pamo.words import bare, counted, eight, lane_of, seat

_WHOLE = types.int64


def _floats(axes: int) -> Any:
    return types.Array(types.float64, axes, "C")


_INTS, _STREAMS = types.Array(types.int64, 1, "C"), types.Array(types.uint64, 3, "C")
KEPT_TYPE = types.NamedTuple((_floats(3), _floats(3), _floats(2)), Kept)


@cache
def choosing(kernel: Any, remember: Any = None, narrow: bool = False) -> Any:
    """Return what has all users of several trials choose by a policy's kernel.

    narrow: whether tiles have lines of `LANES`, as for offers of up to so many arms on the processor.

    Where the policy keeps rows of its own, what was heard last, of the round `heard`, is first taken into them by its
    `remember`: nobody needs them earlier, and the loop is the same for all policies.
    """
    score = apart(kernel.py_func)
    take = None if remember is None else apart(remember.py_func)
    lined = eight if narrow else bare

    def choose_round(
        chosen: Ints,
        tiles: Ints,
        trials: int,
        t: int,
        heard: int,
        plan: TrialPlan,
        arms: Floats,
        users: Floats,
        common: Floats,
        hyperparameters: Floats,
        streams: Any,
        scores: Floats,
        scratch: Floats,
        kept: Kept,
        every: Ints,
        pulled: Ints,
        rewards: Floats,
        lanes: Any,
        dims: Any,
    ) -> None:
        settled, blocks = plan.users - plan.newcomers, plan.arms // plan.offer_size
        for trial in range(trials):
            stream, shared = bare(streams[trial, POLICY]), bare(common[trial])
            run = Run(hyperparameters, stream, scratch)
            if take is not None:
                rows = Kept(bare(kept.by_arm[trial]), bare(kept.by_user[trial]), bare(kept.shared[trial]))
                present = plan.users if heard >= plan.arrival else settled
                for n in range(present if heard >= 1 else 0):
                    place = trial * plan.users + n
                    chunk, lane = seat(place, lanes)
                    about = Keeping(hyperparameters, stream, scratch, rows, heard, n, bare(every[:0]))
                    take(pulled[place], lane_of(rewards[chunk], lane, lanes), about, dims)
            # Those who were there from the beginning, and then the newcomers, whose own rounds are fewer.
            for part in range(2):
                first, last, own = 0, settled, t
                if part == 1:
                    first, last, own = settled, plan.users, t - plan.arrival + 1
                if own < 1:
                    last = first
                for n in range(trial * plan.users + first, trial * plan.users + last):
                    chunk, lane = seat(n, lanes)
                    tile, user = bare(arms[tiles[n]]), lane_of(users[chunk], lane, lanes)
                    if take is None:
                        score(lined(scores), plan.offer_size, counted(own, arms), lined(tile), user, shared, run, dims)
                    if take is not None:
                        begin = tiles[n] % blocks * plan.offer_size
                        offer = bare(every[begin : begin + plan.offer_size])
                        about = Keeping(hyperparameters, stream, scratch, rows, t, n - trial * plan.users, offer)
                        score(scores, plan.offer_size, counted(own, arms), tile, user, shared, about, dims)
                    chosen[n] = pick(scores, plan.offer_size, stream)

    return around(choose_round, *(one for one in (kernel, remember) if one is not None), of=narrow)


@cache
def choosing_signature(objectives: int) -> Any:
    """Return the Numba signature of what `choosing` returns."""
    return types.void(
        _INTS,
        _INTS,
        _WHOLE,
        _WHOLE,
        _WHOLE,
        PLAN_TYPE,
        _floats(3),
        _floats(3),
        _floats(2),
        _floats(1),
        _STREAMS,
        _floats(1),
        _floats(2),
        KEPT_TYPE,
        _INTS,
        _INTS,
        _floats(3),
        _WHOLE,
        numba.typeof(dimensions(objectives)),
    )


@cache
def drawing(kernel: Any) -> Any:
    """Return what draws the feedback of all users of several trials by an environment's `draw`."""
    draw = apart(kernel.py_func)

    def draw_round(
        rewards: Floats,
        statements: Floats,
        arms: Ints,
        trials: int,
        present: int,
        plan: TrialPlan,
        means: Floats,
        truth: Floats,
        numbers: Floats,
        streams: Any,
        reward: Floats,
        stated: Floats,
        lanes: Any,
        dims: Any,
    ) -> None:
        for trial in range(trials):
            stream, spare = bare(streams[trial, ENVIRONMENT]), bare(streams[trial, STATED])
            values, preferences = bare(means[trial]), bare(truth[trial])
            for n in range(present):
                place = trial * plan.users + n
                overall = draw(
                    reward,
                    stated,
                    arms[place],
                    n,
                    values,
                    preferences,
                    numbers,
                    plan.wants_stated,
                    stream,
                    spare,
                    dims,
                )
                chunk, lane = seat(place, lanes)
                for d in range(count_of(dims)):
                    rewards[chunk, d, lane] = reward[d]
                    if plan.wants_stated:
                        statements[chunk, d, lane] = stated[d]
                rewards[chunk, count_of(dims), lane] = overall

    return around(draw_round, kernel)


@cache
def drawing_signature(objectives: int) -> Any:
    """Return the Numba signature of what `drawing` returns."""
    return types.void(
        _floats(3),
        _floats(3),
        _INTS,
        _WHOLE,
        _WHOLE,
        PLAN_TYPE,
        _floats(3),
        _floats(3),
        _floats(1),
        _STREAMS,
        _floats(1),
        _floats(1),
        _WHOLE,
        numba.typeof(dimensions(objectives)),
    )
