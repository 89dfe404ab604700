"""Compile ahead, in processes of their own: Numba compiles on one core at a time, and what it makes is on disk."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pamo.compiling import SPECIALISED
from pamo.environments.base import Environment
from pamo.policies.base import Policy
from pamo.simulation.cpu import _Ready


@dataclass(frozen=True)
class Job:
    """Something small to run, for what has to be compiled for it: `run(*given)`.

    key: jobs of one key compile the same. first: what several jobs have in common, and the first of them compiles.
    """

    key: Hashable
    run: Callable[..., Any] = field(compare=False)
    given: tuple[Any, ...] = field(compare=False)
    first: Hashable = None


def job_for(policy: Policy, environment: Environment) -> Job:
    """Return the job that compiles what `simulate` needs for a policy in an environment."""
    size = environment.objectives if environment.objectives in SPECIALISED else None
    kernels = (type(policy).kernel, type(policy).remember, type(environment).draw, type(environment).instance)
    names = tuple(None if one is None else (one.__module__, one.__name__) for one in kernels)
    live = environment.live is not None
    return Job((size, *names, live), play_once, (policy, environment), (size, policy.reads_spread, live))


def play_once(policy: Policy, environment: Environment) -> None:
    """Play one round, so that all that it takes is compiled."""
    settings: dict[str, Any] = {"seed": 0, "first_trial": 0, "trials": 1, "threads": 1, "progress": None}
    _Ready(policy, environment, 1).play(marks=np.ones(1, dtype=np.int64), **settings)


class Prepared:
    """Jobs under way in as many processes as there are cores, for those who need them; with one core there are none."""

    def __init__(self, needed: Mapping[str, Iterable[Job]], *, processes: int | None = None) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
        by_name = {name: list(jobs) for name, jobs in needed.items()}
        several = list(dict.fromkeys(job for jobs in by_name.values() for job in jobs))
        leading = list({job.first: job for job in reversed(several) if job.first is not None}.values())[::-1]
        ordered = leading + [job for job in several if job not in leading]
        workers = min(cores if processes is None else processes, len(ordered))
        self._pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) if workers > 1 else None
        self._under_way: dict[Job, Future[Any]] = {}
        if self._pool is not None:
            self._under_way = {job: self._pool.submit(job.run, *job.given) for job in ordered}
        self._needed = by_name

    def __enter__(self) -> Prepared:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def wait_for(self, name: str) -> None:
        """Wait until what it needs is compiled. A job that failed is no loss: whoever needs it compiles it."""
        found = [self._under_way[job] for job in self._needed.get(name, ()) if job in self._under_way]
        try:
            wait(found)
        except BrokenExecutor:
            self._under_way.clear()
