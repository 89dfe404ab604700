"""Trials on a GPU: a thread for each, running the loop and the kernels that the processor runs, from the same streams.

What a trial is played on (`pamo.simulation.loop.Desk`) is local to its thread where it is small, the sizes being known
when the loop is compiled; what is not, stands in the GPU's memory, trial after trial. Local tables of several threads
are interwoven, number by number, which is best where all of them read the same place. What is read of the arms is at
another place in each trial: it is local only where it is very small. More trials than fit, or than are worth starting
at once, are run in waves.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import time
from functools import cache
from typing import Any

import numba
import numpy as np

from pamo.arrays import Floats, Ints
from pamo.compiling import dimensions, kernel
from pamo.errors import InputError, missing_extra
from pamo.priors import Room
from pamo.progress import Progress, unseen
from pamo.simulation.learning import Spread, TrialPlan, Users
from pamo.simulation.loop import Desk, Records, filled, run_trials, shapes_of_desk

if not hasattr(np, "row_stack"):  # numba-cuda looks for it, and NumPy 2.5 has it no more
    np.__dict__["row_stack"] = np.vstack
cuda: Any = importlib.import_module("numba.cuda")  # of whose names type checkers know nothing

_SIMULATED = bool(getattr(numba.config, "ENABLE_CUDASIM", False))
"""Whether CUDA's simulator, which needs no GPU, plays the trials: for tests."""

_TABLES = {
    "arms": ("arms", "sums"),
    "truth": ("means", "truth", "gaps", "pareto"),
    "users": (*Users._fields, "rewards", "statements", "assigned", "tiles", "places", "chosen", "regret"),
    "offer": ("scores", "scratch"),
}
"""A desk's tables that grow with the problem; the others are always local."""
LOCAL = {"arms": 2048, "truth": 16384, "users": 16384, "offer": 16384}
"""Bytes up to which they are local: the GPU sets so much aside for every thread that it can hold."""
WAVE = 1 << 18
"""Trials that are started at once, at most: enough to fill any GPU, few enough for a bar to move."""
BLOCK = 64
"""Threads in a block."""

_loop = kernel(run_trials)


def require_cuda() -> None:
    """Raise an error that says what is missing, unless there is a GPU to run on."""
    if _SIMULATED:
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
    real = np.float32 if precision == "single" else np.float64
    shapes, trials = shapes_of_desk(plan, spread, objectives, trials=1, lanes=1), len(records.pulls)
    sizes = dict.fromkeys(_TABLES, 0)

    def add(name: str, shape: tuple[int, ...], kind: Any) -> None:
        for group, names in _TABLES.items():
            sizes[group] += math.prod(shape) * np.dtype(_kind(kind, real)).itemsize if name in names else 0

    filled(shapes, add)
    away = {group: size > LOCAL[group] for group, size in sizes.items()}
    kept = {name for group, names in _TABLES.items() if away[group] for name in names}
    wave = min(trials, WAVE)
    if not _SIMULATED:
        each = sum(table[:1].nbytes for table in records) + sum(size for group, size in sizes.items() if away[group])
        wave = max(1, min(wave, cuda.current_context().get_memory_info().free // 2 // each))
    run = _compiled(*kernels, plan, spread, objectives, real, *away.values())
    given = filled(shapes, lambda name, shape, kind: _empty((wave if name in kept else 1, *shape), _kind(kind, real)))
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


def _there(table: Any) -> Any:
    """Return the table on the GPU; CUDA's simulator has none."""
    return table if _SIMULATED else cuda.to_device(table)


def _fetch(table: Any, out: Floats) -> None:
    if _SIMULATED:
        out[:] = table
    else:
        table.copy_to_host(out)


def _empty(shape: tuple[int, ...], kind: Any) -> Any:
    return np.empty(shape, kind) if _SIMULATED else cuda.device_array(shape, kind)


@cache
def _compiled(
    choose: Any,
    instance: Any,
    draw: Any,
    plan: TrialPlan,
    spread: Spread | None,
    objectives: int,
    real: Any,
    arms_away: bool,
    truth_away: bool,
    users_away: bool,
    offer_away: bool,
) -> Any:
    """Return the loop compiled for one policy, environment and size; …_away: whose tables are not the threads' own."""
    shapes = shapes_of_desk(plan, spread, objectives, trials=1, lanes=1)
    dims = dimensions(objectives)
    means, truth, gaps, pareto, arms, sums, common, of_users, rewards, statements = shapes[:10]
    room, of_room, fitting, streams, scores, scratch, reward, stated, assigned, by_user = shapes[10:20]
    regret, totals = shapes[22:]
    read, rows, told_stated, told, sites, here, priors = of_users
    root, lines, curve, user, own_sites, moments = of_room

    @cuda.jit  # type: ignore[untyped-decorator]
    def play_trial(arguments: Any) -> None:
        seed, first_trial, count, hyperparameters, numbers, marks, records, progress, stop, given = arguments
        k = cuda.grid(1)
        if k >= count:
            return
        # Which of the two it is, is known when it is compiled, and the other is dropped.
        desk = Desk(
            given.means[k] if truth_away else cuda.local.array(means, real),
            given.truth[k] if truth_away else cuda.local.array(truth, real),
            given.gaps[k] if truth_away else cuda.local.array(gaps, real),
            given.pareto[k] if truth_away else cuda.local.array(pareto, real),
            given.arms[k] if arms_away else cuda.local.array(arms, real),
            given.sums[k] if arms_away else cuda.local.array(sums, real),
            cuda.local.array(common, real),
            Users(
                given.users.read[k] if users_away else cuda.local.array(read, real),
                given.users.rows[k] if users_away else cuda.local.array(rows, real),
                given.users.stated[k] if users_away else cuda.local.array(told_stated, real),
                given.users.told[k] if users_away else cuda.local.array(told, real),
                given.users.sites[k] if users_away else cuda.local.array(sites, real),
                given.users.here[k] if users_away else cuda.local.array(here, real),
                given.users.priors[k] if users_away else cuda.local.array(priors, real),
            ),
            given.rewards[k] if users_away else cuda.local.array(rewards, real),
            given.statements[k] if users_away else cuda.local.array(statements, real),
            cuda.local.array(room, real),
            Room(
                cuda.local.array(root, real),
                cuda.local.array(lines, real),
                cuda.local.array(curve, real),
                cuda.local.array(user, real),
                cuda.local.array(own_sites, real),
                cuda.local.array(moments, real),
            ),
            cuda.local.array(fitting, real),
            cuda.local.array(streams, np.uint64),
            given.scores[k] if offer_away else cuda.local.array(scores, real),
            given.scratch[k] if offer_away else cuda.local.array(scratch, real),
            cuda.local.array(reward, real),
            cuda.local.array(stated, real),
            given.assigned[k] if users_away else cuda.local.array(assigned, np.int64),
            given.tiles[k] if users_away else cuda.local.array(by_user, np.int64),
            given.places[k] if users_away else cuda.local.array(by_user, np.int64),
            given.chosen[k] if users_away else cuda.local.array(by_user, np.int64),
            given.regret[k] if users_away else cuda.local.array(regret, real),
            cuda.local.array(totals, real),
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
