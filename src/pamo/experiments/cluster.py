"""Tasks on a Ray cluster: one that exists, or one that is started on this machine. What a worker loses is run again.

A task goes to its worker with the files of one's own that it needs, plays on one thread, and gives what it gives here,
seed for seed: a worker whose kernels are not this process's refuses it.
"""

from __future__ import annotations

import logging
import os
import pickle
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from pamo import compiling
from pamo.errors import PamoError, missing_extra
from pamo.experiments.tasks import Began, Runner, Task
from pamo.from_file import own_files, run_file
from pamo.progress import Progress
from pamo.simulation.cpu import THREADS

RETRIES = 20
"""How often a task is begun again whose worker was lost, before something is wrong with the task."""
_LOOK = 0.5
"""Seconds between two looks at how far the tasks are."""


def require_ray() -> Any:
    """Return `ray`, or say which extra installs it."""
    # Ray tells of lost workers on stdout, which is for results; it is told so before it is imported, or not at all.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".*")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster of ours tells nobody of itself
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own future
            import ray
            import ray.exceptions
    except ImportError as error:
        raise missing_extra("running on a cluster", "ray", "ray") from error
    return ray


@contextmanager
def cluster(address: str | None = None, *, workers: int | None = None) -> Iterator[Runner]:
    """Give the runner of a Ray cluster.

    address: of one that exists, `HOST:PORT`; by default that of the variable RAY_ADDRESS, and where there is none a
    cluster is started on this machine, with so many workers (by default one a core), and stopped in the end.
    """
    ray = require_ray()
    there = address or os.environ.get("RAY_ADDRESS")
    own: dict[str, Any] = {} if there else {"num_cpus": workers, "include_dashboard": False}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.init(address=there or "local", logging_level=logging.ERROR, log_to_driver=False, **own)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        first = str(error).strip().splitlines()[0]
        raise PamoError(f"no Ray cluster {f'at {there}' if there else 'could be started here'}: {first}") from error
    try:
        yield _Cluster(ray)
    finally:
        ray.shutdown()


class _Cluster:
    """Runs tasks on the cluster that this process is connected to."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def __call__(self, tasks: Sequence[Task], progress: Progress, began: Began) -> Iterator[tuple[int, Any]]:
        if not tasks:
            return
        ray = self._ray
        tally = ray.remote(_Tally).options(num_cpus=0, max_restarts=-1).remote()
        play = ray.remote(_play).options(num_cpus=1, max_retries=RETRIES)
        files, stamp = own_files(), compiling.kernel_stamp()
        places = {
            play.remote(pickle.dumps((task.run, task.given)), files, stamp, place, tally): place
            for place, task in enumerate(tasks)
        }
        total = sum(task.weight for task in tasks)
        reached, done, cores = 0.0, set(), 0
        try:
            while places:
                ready, _ = ray.wait(list(places), timeout=_LOOK)
                if not ready or not cores:
                    cores = int(ray.cluster_resources().get("CPU", 0))
                shares = self._shares(tally) if not ready else {}
                for one in ready:
                    place = places.pop(one)
                    done.add(place)
                    yield place, self._result(one)
                under_way = sum(shares.get(place, 0.0) * tasks[place].weight for place in places.values())
                now = (sum(tasks[place].weight for place in done) + under_way) / total
                progress(max(now - reached, 0.0))
                reached = max(now, reached)
                began(f"{len(done):,} of {len(tasks):,} tasks, on {cores} cores")
        finally:
            for one in places:
                ray.cancel(one, force=True)
            ray.kill(tally)

    def _shares(self, tally: Any) -> dict[int, float]:
        """Return how much is done of each task that is under way, as far as is known."""
        with suppress(self._ray.exceptions.RayError):  # it went with its worker, and is there again soon
            found: dict[int, float] = self._ray.get(tally.shares.remote(), timeout=_LOOK)
            return found
        return {}

    def _result(self, one: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(one)
        except errors.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from None
        except errors.RayError as error:
            first = str(error).strip().splitlines()[0]
            raise PamoError(f"a task was lost with its worker {RETRIES + 1} times, out of memory? ({first})") from error


class _Tally:
    """How much of each task is done: an actor that workers tell."""

    def __init__(self) -> None:
        self._shares: dict[int, float] = {}

    def tell(self, place: int, share: float) -> None:
        """Note that this much of a task is done."""
        self._shares[place] = share

    def shares(self) -> dict[int, float]:
        """Return what was noted."""
        return self._shares


def _play(task: bytes, files: Sequence[str], stamp: str, place: int, tally: Any) -> Any:
    """Run a task, on a worker."""
    if compiling.kernel_stamp() != stamp:
        raise PamoError("a worker of the cluster has another pamo than this process; install the same on all nodes")
    os.environ[THREADS] = "1"  # a task has one core
    for file in files:
        run_file(file)
    run, given = pickle.loads(task)
    share, told = 0.0, time.monotonic()

    def progress(amount: float) -> None:
        nonlocal share, told
        share += amount
        if time.monotonic() - told > _LOOK:
            told = time.monotonic()
            tally.tell.remote(place, share)

    return run(*given, progress)
