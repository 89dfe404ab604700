"""Trials on a GPU: a thread for each, running the loop and the kernels that the processor runs, from the same streams.

What a trial is played on (`pamo.simulation.loop.Desk`) is local to its thread where it is small, the sizes being known
when the loop is compiled. Larger ones are tables in the GPU's memory with the trial as the last axis, so that threads
side by side read numbers side by side. More trials than fit, or than are worth starting at once, are run in waves.
"""

from __future__ import annotations

import importlib.util
import math
import time
from functools import cache
from typing import Any

import numba
import numpy as np

if not hasattr(np, "row_stack"):  # numba-cuda looks for it, and NumPy 2.5 has it no more
    np.__dict__["row_stack"] = np.vstack

from numba import cuda

from pamo.arrays import Floats, Ints
from pamo.compiling import dimensions, kernel
from pamo.errors import InputError, missing_extra
from pamo.priors import Room
from pamo.progress import Progress, unseen
from pamo.simulation.learning import Spread, TrialPlan, Users
from pamo.simulation.loop import Desk, Records, filled, run_trials, shapes_of_desk

LOCAL = 64 * 1024
"""Bytes up to which a trial's desk is local to its thread: the GPU sets so much aside for every thread it can hold."""
WAVE = 1 << 18
"""Trials that are started at once, at most: enough to fill any GPU, few enough for a bar to move."""
BLOCK = 64
"""Threads in a block."""

_loop = kernel(run_trials)


def require_cuda() -> None:
    """Raise an error that says what is missing, unless there is a GPU to run on."""
    if numba.config.ENABLE_CUDASIM:  # CUDA's simulator, for tests
        return
    if importlib.util.find_spec("numba_cuda") is None:
        raise missing_extra("device 'cuda'", "numba-cuda", "cuda")
    if not cuda.is_available():
        raise InputError(
            "device 'cuda' needs an NVIDIA GPU and its driver, and none was found; 'cpu' runs the same trials"
        )


def play(
    kernels: tuple[Any, Any, Any],
    plan: TrialPlan,
    spread: Spread | None,
    objectives: int,
    *,
    hyperparameters: Floats,
    numbers: Floats,
    seed: int,
    first_trial: int,
    marks: Ints,
    records: Records,
    precision: str,
    progress: Progress = unseen,
) -> float:
    """Play a trial for each row of the records, and return the seconds that it took, compiling not counted."""
    require_cuda()
    real = np.float32 if precision == "single" else np.float64
    shapes, trials = shapes_of_desk(plan, spread, objectives, trials=1, lanes=1), len(records.pulls)
    size = _total(filled(shapes, lambda shape, kind: math.prod(shape) * np.dtype(_kind(kind, real)).itemsize))
    local = size <= LOCAL
    wave = min(trials, WAVE)
    if not numba.config.ENABLE_CUDASIM:
        each = sum(table[:1].nbytes for table in records) + (0 if local else size)
        wave = max(1, min(wave, cuda.current_context().get_memory_info().free // 2 // each))
    run = _compiled(*kernels, plan, spread, objectives, real, local)
    given = (
        _there(np.zeros(1)) if local else filled(shapes, lambda shape, kind: _empty((*shape, wave), _kind(kind, real)))
    )
    room = Records(*(_empty((wave, *table.shape[1:]), np.float64) for table in records))
    rest = (*map(_there, (hyperparameters, numbers, marks)), room, _there(np.zeros(wave, np.int64)))
    stop = _there(np.zeros(1, np.int64))

    def start(first: int, count: int) -> None:
        arguments = (np.uint64(seed), first_trial + first, count, *rest, stop, given)
        run[max(1, -(-count // BLOCK)), BLOCK](arguments)
        cuda.synchronize()

    start(0, 0)  # no trials: the loop is compiled before the clock starts
    started = time.perf_counter()
    for first in range(0, trials, wave):
        count = min(wave, trials - first)
        start(first, count)
        for table, wanted in zip(room, records, strict=True):
            _fetch(table[:count], wanted[first : first + count])
        progress(count / trials)
    return time.perf_counter() - started


def _kind(kind: Any, real: Any) -> Any:
    return real if kind is np.float64 else kind


def _total(sizes: Any) -> int:
    return sum(_total(part) if isinstance(part, tuple) else part for part in sizes)


def _there(table: Any) -> Any:
    """Return the table on the GPU; CUDA's simulator has none."""
    return table if numba.config.ENABLE_CUDASIM else cuda.to_device(table)


def _fetch(table: Any, out: Floats) -> None:
    if numba.config.ENABLE_CUDASIM:
        out[:] = table
    else:
        table.copy_to_host(out)


def _empty(shape: tuple[int, ...], kind: Any) -> Any:
    return np.empty(shape, kind) if numba.config.ENABLE_CUDASIM else cuda.device_array(shape, kind)


@cache
def _compiled(
    choose: Any,
    instance: Any,
    draw: Any,
    plan: TrialPlan,
    spread: Spread | None,
    objectives: int,
    real: Any,
    local: bool,
) -> Any:
    """Return the loop compiled for one policy, environment and size; where `local`, its tables are the threads' own."""
    shapes = shapes_of_desk(plan, spread, objectives, trials=1, lanes=1)
    dims = dimensions(objectives)
    means, truth, gaps, pareto, arms, sums, common, of_users, rewards, statements = shapes[:10]
    room, of_room, streams, scores, scratch, reward, stated, assigned, by_user = shapes[10:19]
    regret, totals = shapes[21:]
    read, rows, told_stated, told, here, priors = of_users
    root, lines, curve, user = of_room

    @cuda.jit
    def play_trial(arguments: Any) -> None:
        seed, first_trial, count, hyperparameters, numbers, marks, records, progress, stop, given = arguments
        k = cuda.grid(1)
        if k >= count:
            return
        # Which of the two it is, is known when it is compiled, and the other is dropped.
        desk = Desk(
            cuda.local.array(means, real) if local else given.means[..., k],
            cuda.local.array(truth, real) if local else given.truth[..., k],
            cuda.local.array(gaps, real) if local else given.gaps[..., k],
            cuda.local.array(pareto, real) if local else given.pareto[..., k],
            cuda.local.array(arms, real) if local else given.arms[..., k],
            cuda.local.array(sums, real) if local else given.sums[..., k],
            cuda.local.array(common, real) if local else given.common[..., k],
            Users(
                cuda.local.array(read, real) if local else given.users.read[..., k],
                cuda.local.array(rows, real) if local else given.users.rows[..., k],
                cuda.local.array(told_stated, real) if local else given.users.stated[..., k],
                cuda.local.array(told, real) if local else given.users.told[..., k],
                cuda.local.array(here, real) if local else given.users.here[..., k],
                cuda.local.array(priors, real) if local else given.users.priors[..., k],
            ),
            cuda.local.array(rewards, real) if local else given.rewards[..., k],
            cuda.local.array(statements, real) if local else given.statements[..., k],
            cuda.local.array(room, real) if local else given.room[..., k],
            Room(
                cuda.local.array(root, real) if local else given.working.root[..., k],
                cuda.local.array(lines, real) if local else given.working.lines[..., k],
                cuda.local.array(curve, real) if local else given.working.curve[..., k],
                cuda.local.array(user, real) if local else given.working.user[..., k],
            ),
            cuda.local.array(streams, np.uint64) if local else given.streams[..., k],
            cuda.local.array(scores, real) if local else given.scores[..., k],
            cuda.local.array(scratch, real) if local else given.scratch[..., k],
            cuda.local.array(reward, real) if local else given.reward[..., k],
            cuda.local.array(stated, real) if local else given.stated[..., k],
            cuda.local.array(assigned, np.int64) if local else given.assigned[..., k],
            cuda.local.array(by_user, np.int64) if local else given.tiles[..., k],
            cuda.local.array(by_user, np.int64) if local else given.places[..., k],
            cuda.local.array(by_user, np.int64) if local else given.chosen[..., k],
            cuda.local.array(regret, real) if local else given.regret[..., k],
            cuda.local.array(totals, real) if local else given.totals[..., k],
        )
        _loop(
            choose,
            instance,
            draw,
            None,
            seed,
            first_trial,
            k,
            k + 1,
            plan,
            hyperparameters,
            numbers,
            marks,
            records,
            None,
            progress,
            k,
            stop,
            None,
            spread,
            desk,
            dims,
        )

    return play_trial
