"""Run policies against an environment: trials on threads, the same numbers for any number of them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pamo._version import __version__
from pamo.arrays import Floats, Ints
from pamo.compiling import dimensions, looped
from pamo.environments.base import MOST_CELLS, Environment
from pamo.environments.protocols import PROTOCOLS
from pamo.environments.utilities import UTILITIES
from pamo.errors import InputError, unknown_name
from pamo.estimators import prior_before
from pamo.policies.base import Feedback, Keeps, Policy, Shape, check_kernel
from pamo.policies.registry import labels, parse
from pamo.priors import PAPER, PLAIN, RIDGE
from pamo.progress import Bar, Progress, scaled, unseen
from pamo.simulation.learning import Spread, TrialPlan, learn_anew
from pamo.simulation.loop import Records, Watched, abreast, filled, shapes_of_desk, trial_loop, zeros
from pamo.simulation.plain import Plain, PlainPolicy, play_plainly
from pamo.simulation.result import PolicyResult, Result
from pamo.simulation.rounds import choosing, drawing
from pamo.simulation.trajectory import noting, room_of, width_of, write_trajectory
from pamo.simulation.worlds import world_for
from pamo.tabular import require_pyarrow
from pamo.words import LANES

_MAX_SEED = 2**63 - 1

DEVICES = ("cpu", "cuda")
PRECISIONS = ("double", "single")
THREADS = "PAMO_THREADS"
"""The variable that says how many threads there are where nobody else does; without it, one a core."""
MOST_NOTES = 1 << 28
"""The most numbers that a trajectory may be noted by: two gigabytes."""


def simulate(
    policies: Iterable[str | Policy | PlainPolicy],
    environment: Environment,
    *,
    rounds: int = 5000,
    trials: int = 10,
    seed: int = 1,
    checkpoints: int | Sequence[int] = 100,
    threads: int | None = None,
    first_trial: int = 0,
    progress: bool = False,
    device: str = "cpu",
    precision: str = "double",
    trajectory: str | Path | None = None,
) -> Result:
    """Run each policy on the same trials of an environment, and return what was seen.

    policies: ids, or policies made by `pamo.policies.create` or by a class of your own. rounds: T. trials:
    independent repetitions; trial k of a seed is the same trial whatever else is run, so `first_trial` splits a run
    over machines (`Result.join` puts it together again). checkpoints: how many rounds, evenly spread, to note
    regret at, or which. threads: by default one a core. progress: a bar on stderr. device: `cpu`, or `cuda` for the
    same trials on an NVIDIA GPU, which pays from some thousands of them on. precision: `double`, or on a GPU `single`,
    to keep what is learned in half the memory: faster, and not the same to the last digits. trajectory: a Parquet file
    to write every decision to, of a single policy: who was offered what, what was chosen, with which chance, and what
    came of it (`pamo evaluate` reads it).

    All policies meet the same instances and, as far as their choices agree, the same draws.

    >>> from pamo import environments
    >>> result = simulate(["prucb-hp", "greedy"], environments.Gaussian(users=2), rounds=100, trials=4, seed=1)
    >>> result["prucb-hp"].regret.shape, result["prucb-hp"].final_regret.shape
    ((4, 100), (4,))
    """
    several = _policies(policies)
    names = labels(several)
    if not isinstance(environment, Environment):
        raise InputError(f"expected an environment such as pamo.environments.Gaussian(…), got {environment!r}")
    for name, value, least in (("rounds", rounds, 1), ("trials", trials, 1), ("first_trial", first_trial, 0)):
        _whole(name, value, least)
    _whole("seed", seed, 0, _MAX_SEED)
    for kind, word, known in (("device", device, DEVICES), ("precision", precision, PRECISIONS)):
        if word not in known:
            raise unknown_name(kind, str(word), known)
    if precision != "double" and device == "cpu":
        raise InputError(f"expected precision 'double' on the device 'cpu', got {precision!r}; 'cuda' has both")
    _threads(threads, trials)  # before a bar is there to be written over, as all that may be refused
    if device == "cuda":
        _still(environment, "the device 'cuda'")
        _cuda().require_cuda()
    marks = _checkpoints(checkpoints, rounds)
    if trials * len(marks) * environment.users > MOST_CELLS or trials * environment.arm_count > MOST_CELLS:
        raise InputError(
            f"expected results that fit into memory, got {trials} trials × {len(marks)} checkpoints × "
            f"{environment.users} users and {environment.arm_count} arms; run fewer trials at a time (first_trial)"
        )
    ready = [_Ready(policy, environment, rounds) for policy in several]
    if trajectory is not None:
        notes, noted = _noted(trajectory, ready, trials, first_trial, seed, device)
    settings = {
        "environment": environment.settings,
        "rounds": int(rounds),
        "trials": int(trials),
        "seed": int(seed),
        "first_trial": int(first_trial),
        "version": __version__,
    } | ({} if precision == "double" else {"precision": precision})
    outcomes: dict[str, PolicyResult] = {}
    shown = progress and threading.current_thread() is threading.main_thread()
    with Bar("simulate", shown=shown, delay=0.2) as bar:
        for name, one in zip(names, ready, strict=True):
            bar.rename(name)
            records, seconds = one.play(
                seed=seed,
                first_trial=first_trial,
                trials=trials,
                marks=marks,
                threads=threads,
                progress=scaled(bar.advance, 1.0 / len(several)) if shown else None,
                device=device,
                precision=precision,
                observer=None if trajectory is None else noted,
                notes=None if trajectory is None else notes,
            )
            outcomes[name] = PolicyResult.from_records(one.policy, one.plan, marks, records, seconds)
    if trajectory is not None:
        write_trajectory(trajectory, notes, several[0], environment, rounds, first_trial)
    return Result(settings=settings, policies=outcomes)


def _noted(
    trajectory: str | Path, ready: Sequence[_Ready], trials: int, first_trial: int, seed: int, device: str
) -> tuple[Floats, Observer]:
    """Return room for the notes of every decision, and who notes them."""
    (one, *more), target = ready, Path(trajectory)
    _still(one.environment, "a trajectory")
    if more or isinstance(one.policy, Plain) or type(one.policy).remember is not None or device != "cpu":
        raise InputError(
            "expected one policy with a kernel, that keeps no rows of its own, on the device 'cpu', for a trajectory"
        )
    if target.suffix != ".parquet" or not target.parent.is_dir():
        raise InputError(f"expected a trajectory that ends in .parquet, in an existing folder, got {str(trajectory)!r}")
    require_pyarrow("a trajectory")
    objectives, plan = one.environment.objectives, one.plan
    width = plan.rounds * plan.users * width_of(objectives)
    if trials * width > MOST_NOTES:
        raise InputError(
            f"expected a trajectory of at most {MOST_NOTES // width_of(objectives):,} decisions, got {trials} trials × "
            f"{plan.rounds} rounds × {plan.users} users"
        )
    numbers = np.array([seed, first_trial, *one.hyperparameters], dtype=np.float64)
    observer = Observer(
        kernel=noting(type(one.policy).kernel), numbers=numbers, width=width, room=room_of(plan, objectives)
    )
    return np.zeros((trials, width)), observer


@dataclass(frozen=True, kw_only=True)
class Observer:
    """What looks on as a policy plays: `kernel(moment, watched, plan, dims)`, called for every trial and round.

    It sees a `pamo.simulation.loop.Moment`, after the users have chosen and before anything is learned from it.
    numbers: settings of its own. width: the numbers that it notes of a trial. room: the numbers that it needs to work.
    rows: whether it reads the users' rows, which the loop does not keep for every policy.
    """

    kernel: Any
    numbers: Floats
    width: int
    room: int
    rows: bool = True


def observe(
    policy: Policy,
    environment: Environment,
    observer: Observer,
    *,
    rounds: int,
    trials: int,
    seed: int,
    stated: bool = False,
    threads: int | None = None,
    progress: Progress = unseen,
) -> tuple[Floats, Records]:
    """Play the trials of `simulate` with an observer; return its notes, a row a trial, and the records.

    stated: whether users state their preferences, for the observer's sake.
    """
    _still(environment, "an observer")
    ready = _Ready(policy, environment, rounds, observed=observer.rows, stated=stated)
    notes = np.zeros((trials, observer.width))
    records, _ = ready.play(
        seed=seed,
        first_trial=0,
        trials=trials,
        marks=_checkpoints(min(rounds, 20), rounds),
        threads=threads,
        progress=progress,
        observer=observer,
        notes=notes,
    )
    return notes, records


class _Ready:
    """A policy and an environment made ready to play."""

    def __init__(
        self,
        policy: Policy,
        environment: Environment,
        rounds: int,
        *,
        observed: bool = False,
        stated: bool = False,
    ) -> None:
        self.policy, self.environment = policy, environment
        if environment.workers > 1 and (policy.per_user or type(policy).remember is not None):
            raise InputError(
                f"expected a policy that learns of arms from all users, by sums, for several workers, got {policy.id}"
            )
        self.plan = plan_for(policy, environment, rounds)
        self.plan = self.plan._replace(wants_stated=self.plan.wants_stated or stated)
        shape = Shape(environment.users, environment.arm_count, environment.objectives, rounds)
        self.hyperparameters, self._keeps = _numbers(policy, shape), _keeps(policy, shape)
        self._spread = spread_for(policy, environment.objectives, observed=observed)

    def play(
        self,
        *,
        seed: int,
        first_trial: int,
        trials: int,
        marks: Ints,
        threads: int | None,
        progress: Progress | None,
        observer: Observer | None = None,
        notes: Floats | None = None,
        device: str = "cpu",
        precision: str = "double",
    ) -> tuple[Records, float]:
        """Play the trials on threads, or a GPU; return records and the seconds they took, compiling not counted."""
        environment, plan = self.environment, self.plan
        workers = _threads(threads, trials)
        records = _records(trials, len(marks), environment)
        if isinstance(self.policy, Plain):
            if device != "cpu":
                raise InputError(f"expected the device 'cpu' for a policy in plain Python, got {device!r}")
            return records, play_plainly(
                self.policy,
                environment,
                rounds=plan.rounds,
                seed=seed,
                first_trial=first_trial,
                marks=marks,
                records=records,
                progress=progress,
            )
        live = environment.live
        offered = plan.offer_size if live is None or live.offered == 0 else live.offered
        narrow = device == "cpu" and offered <= LANES
        choose = choosing(type(self.policy).kernel, type(self.policy).remember, narrow)
        draw = drawing(type(environment).draw)
        if device == "cuda":
            seconds = _cuda().play(
                (choose, type(environment).instance, draw),
                plan,
                self._spread,
                self._keeps,
                environment.objectives,
                hyperparameters=self.hyperparameters,
                numbers=environment.numbers(),
                seed=seed,
                first_trial=first_trial,
                marks=marks,
                records=records,
                precision=precision,
                progress=progress or unseen,
            )
            return records, seconds
        noted = np.zeros((1, 1)) if notes is None else notes
        counts, stop = np.zeros(trials, dtype=np.int64), np.zeros(1, dtype=np.int64)
        pieces = _pieces(trials, workers, abreast(plan, trials))
        loop = trial_loop(environment.objectives, self._spread is not None, observer is not None, live is not None)
        kernels: tuple[Any, ...] = (
            choose,
            looped(type(environment).instance),
            draw,
            None if observer is None else looped(observer.kernel),
        )
        kernels += (None if self._spread is None else looped(learn_anew),)
        dims, numbers = dimensions(environment.objectives), environment.numbers()

        def work(worker: int, first: int, last: int) -> None:
            watched = Watched(
                numbers if observer is None else observer.numbers,
                noted,
                np.empty(1 if observer is None else observer.room),
            )
            together = abreast(plan, last - first)
            sizes: dict[str, Any] = {"trials": together, "lanes": LANES}
            shapes = shapes_of_desk(plan, self._spread, environment.objectives, keeps=self._keeps, live=live, **sizes)
            world = None if live is None else world_for(live, plan, environment.objectives, shapes.arms[1:], **sizes)
            loop(
                plan,
                *kernels,
                np.uint64(seed),
                first_trial,
                first,
                last,
                self.hyperparameters,
                numbers,
                marks,
                records,
                watched,
                counts,
                worker,
                stop,
                LANES,
                self._spread,
                world,
                filled(shapes, zeros),
                dims,
            )

        work(0, 0, 0)  # no trials: the kernels are compiled, or read from the cache, before the clock starts
        started = time.perf_counter()
        if workers == 1 and progress is None:
            for worker, (first, last) in enumerate(pieces):
                work(worker, first, last)
            return records, time.perf_counter() - started
        reached, all_marks = 0, trials * len(marks)
        with ThreadPoolExecutor(workers) as pool:
            waiting: set[Future[None]] = {pool.submit(work, worker, *piece) for worker, piece in enumerate(pieces)}
            try:
                while waiting:
                    timeout = None if progress is None else 0.1
                    done, waiting = wait(waiting, timeout=timeout, return_when=FIRST_EXCEPTION)
                    if progress is not None:
                        now = int(counts.sum())
                        progress((now - reached) / all_marks)
                        reached = now
                    for future in done:
                        future.result()
            except BaseException:  # an interrupt must not wait for trials nobody wants: they stop at a checkpoint
                stop[0] = 1
                pool.shutdown(cancel_futures=True)
                raise
        return records, time.perf_counter() - started


def _pieces(trials: int, workers: int, together: int) -> list[tuple[int, int]]:
    """Return the trials in pieces, (first, last), the largest first, so that all workers end at about the same time.

    together: how many are played abreast. The rest of each worker's share is a piece of its own: of five equal pieces
    one of two workers would play three, and the other wait for a third of the time.

    >>> _pieces(100, 2, 20)
    [(0, 20), (20, 40), (40, 60), (60, 80), (80, 90), (90, 100)]
    """
    size = together * max(1, trials // (8 * workers * together))
    shares = [len(range(worker, trials, workers)) for worker in range(workers)]
    sizes = [min(size, share - first) for share in shares for first in range(0, share, size)]
    ends = np.cumsum([0, *sorted(sizes, reverse=True)]).tolist()
    return list(pairwise(ends))


def _still(environment: Environment, what: str) -> None:
    """Raise an error for an environment that is live, where that is not known."""
    if environment.live is not None:
        raise InputError(
            f"expected an environment with its arms in blocks, one truth, and feedback at once and in full, for {what}"
        )


def plan_for(policy: Policy, environment: Environment, rounds: int) -> TrialPlan:
    """Return what the trial loop is told of a policy and an environment."""
    estimate = policy.estimate(environment.objectives)
    prior = prior_before(estimate, environment.objectives)
    return TrialPlan(
        rounds=rounds,
        users=environment.users,
        arms=environment.arm_count,
        offer_size=environment.arm_count if environment.protocol == "subset" else environment.offer_size,
        protocol=PROTOCOLS[environment.protocol],
        newcomers=environment.newcomers,
        arrival=environment.arrival,
        kind=int(estimate.kind),
        utility=UTILITIES[environment.utility],
        per_user=bool(policy.per_user),
        wants_stated=Feedback.STATED in policy.reads,
        first=float(estimate.first),
        level=float(estimate.level),
        ridge=float(prior.numbers[RIDGE]),
        plain=float(prior.numbers[PLAIN]),
        paper=float(prior.numbers[PAPER]),
    )


def spread_for(policy: Policy, objectives: int, *, observed: bool = False) -> Spread | None:
    """Return how the trial loop estimates preferences and keeps the users' rows, or None where nobody reads them."""
    estimate = policy.estimate(objectives)
    if not policy.reads_spread:
        if estimate.centred or estimate.shared or estimate.non_negative:
            raise InputError(
                f"{policy.id}: a centred, shared or non-negative estimate needs the class attribute reads_spread"
            )
        if not observed:
            return None
    return Spread(
        shared=estimate.shared,
        bias=estimate.bias,
        elasticity=-1.0 if estimate.elasticity is None else float(estimate.elasticity),
        non_negative=estimate.non_negative,
        levels=estimate.levels,
        arms=policy.reads_spread,
    )


def _numbers(policy: Policy, shape: Shape) -> Floats:
    numbers = np.array(policy.hyperparameters(shape), dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise InputError(f"{policy.id}: expected finite hyperparameters, got {policy.settings}")
    return numbers


def _keeps(policy: Policy, shape: Shape) -> Keeps:
    keeps = policy.keeps(shape)
    if any(keeps) != (type(policy).remember is not None):
        raise InputError(f"{policy.id}: expected rows of its own (`keeps`) and `remember` together, or neither")
    return keeps


def _records(trials: int, marks: int, environment: Environment) -> Records:
    return Records(
        regret_by_user=np.zeros((trials, marks, environment.users)),
        pareto_regret=np.zeros((trials, marks)),
        overall=np.zeros((trials, marks)),
        optimal=np.zeros((trials, marks)),
        preference_error=np.zeros((trials, marks)),
        pulls=np.zeros((trials, environment.arm_count)),
    )


def _policies(given: Iterable[str | Policy | PlainPolicy]) -> list[Policy]:
    if isinstance(given, str | Policy):
        given = [given]
    several: list[Policy] = []
    for policy in given:
        if isinstance(policy, str):
            several.append(parse(policy))
        elif isinstance(policy, Policy):
            check_kernel(policy)
            several.append(policy)
        elif isinstance(policy, PlainPolicy):
            several.append(Plain(plain=policy))
        else:
            raise InputError(
                f"expected policies as ids, as Policy objects, or as objects that choose and learn, got {policy!r}"
            )
    if not several:
        raise InputError("expected at least one policy, got none")
    return several


def _whole(name: str, value: Any, least: int, most: int | None = None) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"expected {name} as a whole number, got {value!r}")
    if value < least or (most is not None and value > most):
        limit = f"at least {least}" if most is None else f"from {least} to {most}"
        raise InputError(f"expected {name} to be {limit}, got {value}")


def _checkpoints(given: int | Sequence[int], rounds: int) -> Ints:
    """Return the rounds to note values at, rising; the last round is always one of them."""
    if isinstance(given, int | np.integer):
        _whole("checkpoints", given, 1)
        count = min(int(given), rounds)
        marks = np.unique(np.round(np.linspace(rounds / count, rounds, count)).astype(np.int64))
        return np.maximum(marks, 1)
    marks = np.asarray(given)
    if marks.ndim != 1 or marks.size == 0 or marks.dtype.kind not in "iu":
        raise InputError(f"expected checkpoints as a number of them or as a list of rounds, got {given!r}")
    if marks.min() < 1 or marks.max() > rounds:
        raise InputError(f"expected checkpoints from 1 to {rounds}, got {int(marks.min())} … {int(marks.max())}")
    return np.unique(np.append(marks, rounds)).astype(np.int64)


def _cuda() -> Any:
    from pamo.simulation import cuda  # here: it takes what only an extra installs

    return cuda


def _threads(given: int | None, trials: int) -> int:
    if given is None:
        said = os.environ.get(THREADS, "")
        if said and not said.isdecimal():
            raise InputError(f"expected {THREADS} as a whole number, got {said!r}")
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
        given = int(said) if said else cores
    _whole("threads", given, 1)
    return min(int(given), trials)
