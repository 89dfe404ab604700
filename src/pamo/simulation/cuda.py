"""Trials on a GPU: each thread plays some, by the loop and the kernels that the processor runs, from the same streams.

A round reads most of what a trial is played on (`pamo.simulation.loop.Desk`) and computes little, so where that stands
is what decides the speed. It is local to its thread where it is small, the sizes being known when the loop is compiled:
local tables of several threads are interwoven, number by number, which is best where all of them read the same place.
What is read of the arms is at another place in each trial: it is local only where it is very small, and else stands in
the GPU's memory, thread after thread, all that is known of an arm side by side. And no more threads are started than
the caches serve; each plays its trials one after the other, on the same tables.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

from pamo.arrays import Floats, Ints
from pamo.compiling import dimensions, kernel
from pamo.errors import InputError, missing_extra
from pamo.policies.base import Keeps, Kept
from pamo.priors import Room
from pamo.progress import Progress, unseen
from pamo.simulation.learning import Spread, TrialPlan, Users, learn_anew
from pamo.simulation.loop import Desk, Records, filled, run_trials, shapes_of_desk

if not hasattr(np, "row_stack"):  # numba-cuda looks for it, and NumPy 2.5 has it no more
    np.__dict__["row_stack"] = np.vstack
cuda: Any = importlib.import_module("numba.cuda")  # of whose names type checkers know nothing

_SIMULATED = bool(getattr(numba.config, "ENABLE_CUDASIM", False))
"""Whether CUDA's simulator, which needs no GPU, plays the trials: for tests."""

_TABLES = {
    "arms": ("arms", "sums"),
    "truth": ("means", "truth", "gaps", "pareto", "every"),
    "users": (*Users._fields, "rewards", "statements", "assigned", "tiles", "places", "chosen", "regret"),
    "offer": ("scores", "scratch"),
    "kept": Kept._fields,
}
"""A desk's tables that grow with the problem; the others are always local."""
LOCAL = {"arms": 2048, "truth": 2048, "users": 16384, "offer": 16384, "kept": 2048}
"""Bytes up to which they are local: the GPU sets so much aside for every thread that it can hold."""
WAVE = 1 << 18
"""Trials that are started at once, at most: enough to fill any GPU, few enough for a bar to move."""
BLOCK = 64
"""Threads in a block."""
REGISTERS = {False: 255, True: 128}
"""Those of a thread, where its policy reads the spread or not: most of what that computes waits for something else, so
that twice as many threads are worth more than all that they keep at hand. What `benchmarks.cuda` found best."""
FILE = 1 << 16
"""Registers of a multiprocessor."""
CACHE = 1 << 18
"""Bytes of the cache next to it."""

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
    keeps: Keeps,
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
    shapes = shapes_of_desk(plan, spread, objectives, trials=1, lanes=1, keeps=keeps)
    trials = len(records.pulls)
    sizes = dict.fromkeys(_TABLES, 0)

    def add(name: str, shape: tuple[int, ...], kind: Any) -> None:
        for group, names in _TABLES.items():
            sizes[group] += math.prod(shape) * np.dtype(_kind(kind, real)).itemsize if name in names else 0

    filled(shapes, add)
    away = {group: size > LOCAL[group] for group, size in sizes.items()}
    far_tables = {name for group, names in _TABLES.items() if away[group] for name in names}
    free = 1 << 40 if _SIMULATED else cuda.current_context().get_memory_info().free
    wave = max(1, min(trials, WAVE, free // 4 // sum(table[:1].nbytes for table in records)))
    far = sum(size for group, size in sizes.items() if away[group])
    resident = FILE // (BLOCK * REGISTERS[spread is not None])
    most = min(wave, _threads(sum(sizes.values()), resident, free // 2 // max(far, 1)))
    wave -= wave % most
    run = _compiled(*kernels, plan, spread, keeps, objectives, real, *away.values())

    def make(name: str, shape: tuple[int, ...], kind: Any) -> Any:
        # All that is read of an arm is side by side: it is read, and written, at once.
        return _empty((most if name in far_tables else 1, *shape), _kind(kind, real), turned=name == "arms")

    given = filled(shapes, make)
    room = Records(*(_empty((wave, *table.shape[1:]), np.float64) for table in records))
    settings = map(_there, (hyperparameters.astype(real), numbers.astype(real), marks))
    rest = (*settings, room, _there(np.zeros(most, np.int64)))
    stop = _there(np.zeros(1, np.int64))

    def start(first: int, count: int) -> None:
        share = max(1, -(-count // most))
        arguments = (np.uint64(seed), first_trial + first, count, share, *rest, stop, given)
        run[max(1, -(-count // share // BLOCK)), BLOCK](arguments)
        cuda.synchronize()

    with _literals(real):
        start(0, 0)  # no trials: the loop is compiled before the clock starts
    started = time.perf_counter()
    for first in range(0, trials, wave):
        count = min(wave, trials - first)
        start(first, count)
        for table, wanted in zip(room, records, strict=True):
            _fetch(table[:count], wanted[first : first + count])
        progress(count / trials)
    return time.perf_counter() - started


def _threads(size: int, resident: int, room: int) -> int:
    """Return how many threads to start, up to `room`, where the tables of one have so many bytes.

    resident: blocks that a multiprocessor has registers for. Threads whose tables are all in the cache next to their
    processors are worth more than twice as many that wait for memory. Where no block of them would fit, as many as can
    wait together.
    """
    if _SIMULATED:
        return BLOCK
    blocks = min(round(CACHE / size / BLOCK), resident) if BLOCK * size <= CACHE else resident
    return int(max(1, min(BLOCK * blocks * cuda.get_current_device().MULTIPROCESSOR_COUNT, room)))


def _kind(kind: Any, real: Any) -> Any:
    return {np.float64: real, np.int64: np.int32}.get(kind, kind)


def _there(table: Any) -> Any:
    """Return the table on the GPU; CUDA's simulator has none."""
    return table if _SIMULATED else cuda.to_device(table)


def _fetch(table: Any, out: Floats) -> None:
    if _SIMULATED:
        out[:] = table
    else:
        table.copy_to_host(out)


def _empty(shape: tuple[int, ...], kind: Any, *, turned: bool = False) -> Any:
    """Return a table in the GPU's memory; turned: what lies along its last axis but one is side by side."""
    if not turned:
        return np.empty(shape, kind) if _SIMULATED else cuda.device_array(shape, kind)
    *outer, lines, length = shape
    if _SIMULATED:
        return np.empty((*outer, length, lines), kind).swapaxes(-1, -2)
    like = np.empty((1, *outer[1:], length, lines), kind).swapaxes(-1, -2)
    return cuda.device_array(shape, kind, strides=like.strides)


_alone: dict[Dispatcher, Any] = {}
"""Functions as they are compiled for single precision."""


@contextmanager
def _literals(real: Any) -> Iterator[None]:
    """Have the numbers in a kernel's text be single where all others are: one that is double makes its results so."""
    if _SIMULATED or real is np.float64:
        yield
        return
    context = importlib.import_module("numba.cuda.descriptor").cuda_target.typing_context
    compiled = importlib.import_module("numba.cuda.dispatcher").CUDADispatcher
    usual, limits = context.resolve_value_type, np.finfo(np.float32)
    least, largest = float(limits.tiny), float(limits.max)

    def resolve(value: Any) -> Any:
        if type(value) is float and (least <= abs(value) <= largest or value == 0.0 or math.isinf(value)):
            return numba.float32
        if isinstance(value, Dispatcher) and not isinstance(value, compiled):
            if value not in _alone:  # apart from those of double precision
                _alone[value] = compiled(value.py_func, value.targetoptions | {"device": True})
            value = _alone[value]
        return usual(value)

    context.resolve_value_type = resolve
    try:
        yield
    finally:
        del context.resolve_value_type


@cache
def _compiled(
    choose: Any,
    instance: Any,
    draw: Any,
    plan: TrialPlan,
    spread: Spread | None,
    keeps: Keeps,
    objectives: int,
    real: Any,
    arms_away: bool,
    truth_away: bool,
    users_away: bool,
    offer_away: bool,
    kept_away: bool,
) -> Any:
    """Return the loop compiled for one policy, environment and size; …_away: whose tables are not the threads' own."""
    values: Any = (real(value) if isinstance(value, float) else value for value in plan)
    plan = TrialPlan(*values)
    shapes = shapes_of_desk(plan, spread, objectives, trials=1, lanes=1, keeps=keeps)
    dims = dimensions(objectives)
    means, truth, gaps, pareto, arms, sums, common, of_users, rewards, statements = shapes[:10]
    room, of_room, fitting, streams, scores, scratch, kept, every, reward, stated, assigned, by_user = shapes[10:22]
    regret, totals = shapes[24:26]
    kept_arms, kept_users, kept_shared = kept
    read, rows, told_stated, told, sites, here, priors = of_users
    root, lines, user, own_sites, curve, own_sums, moments = of_room
    relearn = None if spread is None else learn_anew
    options = {} if _SIMULATED else {"max_registers": REGISTERS[spread is not None]}

    @cuda.jit(**options)  # type: ignore[untyped-decorator]
    def play_trial(arguments: Any) -> None:
        seed, first_trial, count, share, hyperparameters, numbers, marks, records, progress, stop, given = arguments
        k = cuda.grid(1)
        if k * share >= count:
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
                cuda.local.array(user, real),
                cuda.local.array(own_sites, real),
                cuda.local.array(curve, real),
                cuda.local.array(own_sums, real),
                cuda.local.array(moments, real),
            ),
            cuda.local.array(fitting, real),
            cuda.local.array(streams, np.uint64),
            given.scores[k] if offer_away else cuda.local.array(scores, real),
            given.scratch[k] if offer_away else cuda.local.array(scratch, real),
            Kept(
                given.kept.by_arm[k] if kept_away else cuda.local.array(kept_arms, real),
                given.kept.by_user[k] if kept_away else cuda.local.array(kept_users, real),
                given.kept.shared[k] if kept_away else cuda.local.array(kept_shared, real),
            ),
            given.every[k] if truth_away else cuda.local.array(every, np.int32),
            cuda.local.array(reward, real),
            cuda.local.array(stated, real),
            given.assigned[k] if users_away else cuda.local.array(assigned, np.int32),
            given.tiles[k] if users_away else cuda.local.array(by_user, np.int32),
            given.places[k] if users_away else cuda.local.array(by_user, np.int32),
            given.chosen[k] if users_away else cuda.local.array(by_user, np.int32),
            given.regret[k] if users_away else cuda.local.array(regret, real),
            cuda.local.array(totals, real),
            None,
        )
        _loop(
            plan,
            choose,
            instance,
            draw,
            None,
            relearn,
            seed,
            first_trial,
            k * share,
            min((k + 1) * share, count),
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
            None,
            desk,
            dims,
        )

    return play_trial
