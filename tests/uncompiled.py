"""Trials that a GPU's loop plays, and CUDA's simulator playing them with every kernel left plain Python.

`NUMBA_ENABLE_CUDASIM=1 python -m tests.uncompiled OUT.npz` saves what they record. Numba would compile for minutes what
Python runs in a second; whether it can be compiled for a GPU is seen on one (`python -m benchmarks.cuda`).
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numba
import numba.extending
import numpy as np

from pamo.interpreting import FORMS


class Plain:
    """A function where Numba would have made a compiled one."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)

    def enable_caching(self) -> None:
        raise RuntimeError("there is nothing to cache")


class Written:
    """What Numba would have written as machine code."""

    def __init__(self, write: Callable[..., Any]) -> None:
        self.__doc__ = write.__doc__

    def __call__(self, *arguments: Any) -> Any:
        return FORMS[self](*arguments)


if __name__ == "__main__":
    vars(numba)["njit"] = lambda **options: Plain
    vars(numba.extending)["intrinsic"] = Written
    warnings.simplefilter("ignore", RuntimeWarning)  # words that overflow, as they should

from pamo import environments, simulate  # noqa: E402  # after what they are compiled with
from pamo.simulation import cuda  # noqa: E402

CASES: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "local tables, waves, blocks at random, newcomers": (
        "prucb-hp",
        environments.Gaussian(users=3, block_size=4, objectives=3, newcomers=1, arrival=5),
        {"WAVE": 2},
    ),
    "tables in the GPU's memory, threads of several trials, blocks in turn, stated preferences": (
        "prucb-up",
        environments.Bounded(users=2, block_size=3, objectives=2, protocol="rotate"),
        {"LOCAL": dict.fromkeys(cuda.LOCAL, 0), "BLOCK": 2},
    ),
    "a shared prior, every arm to everybody": (
        "prucb-hp-v:bias=true",
        environments.Gaussian(users=2, block_size=3, objectives=2, protocol="all"),
        {},
    ),
    "rows of a policy's own, newcomers": (
        "sw-pareto-ucb:window=4",
        environments.Gaussian(users=3, block_size=3, objectives=2, newcomers=1, arrival=5),
        {"LOCAL": dict.fromkeys(cuda.LOCAL, 0), "BLOCK": 2},
    ),
    "rows of a policy's own that is local, and draws; a utility that is not linear": (
        "exp3",
        environments.Gaussian(users=2, block_size=3, objectives=2, protocol="all", utility="gini"),
        {},
    ),
    "arms as each user alone knows them": ("ucb-per-user", environments.conflict(preference_variance=0.1), {}),
}
"""A policy, an environment, and limits of `pamo.simulation.cuda` to play them under."""


def play(case: str, device: str) -> Any:
    """Return the result of a case."""
    policy, environment, limits = CASES[case]
    usual = {name: getattr(cuda, name) for name in limits}
    vars(cuda).update(limits)
    run: dict[str, Any] = {"rounds": 30, "trials": 5, "first_trial": 2, "seed": 5, "checkpoints": [10]}
    result = simulate([policy], environment, device=device, **run)[policy.split(":")[0]]
    vars(cuda).update(usual)
    return result


RECORDED = ("regret_by_user", "pareto_regret", "overall", "optimal_share", "preference_error", "pulls")

if __name__ == "__main__":
    played = {case: play(case, "cuda") for case in CASES}
    np.savez(sys.argv[1], **{f"{case}/{name}": getattr(played[case], name) for case in CASES for name in RECORDED})
