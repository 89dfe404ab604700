"""What a policy is: a frozen dataclass of hyperparameters, and one kernel that scores an offer for one user.

The kernel's signature is one for all policies, so that the compiled trial loop can be handed any of them:

    kernel(scores, offer, n, t, arms, users, run, dims)

It writes `scores[j]` for the arm `offer[j]`, for user `n` in that user's round `t`. The arm of the highest score is
pulled, one of them uniformly at random where several are the highest. So a policy that picks uniformly from a set
writes 1 and 0, and one that must pull an arm first writes infinity.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numba
from numba import types

from pamo.arrays import Floats, Ints
from pamo.compiling import dimensions, inlined
from pamo.errors import InputError
from pamo.estimators import NO_ESTIMATE, Estimate
from pamo.streams import Stream, below


class Feedback(StrEnum):
    """What a policy reads. It never sees anything else."""

    REWARD = "reward"
    OVERALL = "overall"
    STATED = "stated preference"
    TRUE = "true preference"


class Arms(NamedTuple):
    """What is known of the arms from all users, as a kernel sees it."""

    pulls: Floats
    """N_i, (arms,)."""
    width: Floats
    """1/√max(N_i, 1), (arms,): the width of a mean of so many pulls."""
    reward_mean: Floats
    """r̂_i, (arms, D); 0 before the first pull."""
    overall_mean: Floats
    """ḡ_i, (arms,); 0 before the first pull."""


class SpreadArms(NamedTuple):
    """What is known of the arms from all users, for a kernel that reads how much rewards vary."""

    pulls: Floats
    """N_i, (arms,)."""
    width: Floats
    """1/√max(N_i, 1), (arms,)."""
    log_pulls: Floats
    """log max(N_i, 1), (arms,)."""
    reward_mean: Floats
    """r̂_i, (arms, D); 0 before the first pull."""
    scatter: Floats
    """Σ(r − r̂)(r − r̂)ᵀ of each arm and, in a last row, of all together, (arms + 1, D, D): on and below the diagonal."""
    freedom: Floats
    """Σ(N_i − 1) over the arms that were pulled, (1,)."""


class Users(NamedTuple):
    """What is known of the users, as a kernel sees it: row n is the user to decide for."""

    preference: Floats
    """ĉ^n, (users, D), formed as the policy's `estimate` says."""
    inverse_gram: Floats
    """(V^n)⁻¹, (users, D, D), where `estimate` is a ridge: only on and below the diagonal, d ≥ e."""
    pulls: Floats
    """Each user's own pulls, (users, arms), where the policy is `per_user`; otherwise (1, 1)."""
    overall_mean: Floats
    """Each user's own ḡ, likewise."""


class SpreadUsers(NamedTuple):
    """What is known of the users, for a kernel that reads how much rewards vary."""

    preference: Floats
    """ĉ^n, (users, D)."""
    inverse_gram: Floats
    """(V^n)⁻¹, (users, D, D), where `estimate` is a ridge: only on and below the diagonal, d ≥ e."""
    noise: Floats
    """σ̂², (users,): the variance of the regression's noise."""


class Run(NamedTuple):
    """What a kernel needs besides: the policy's numbers, its random stream, and room to work in."""

    hyperparameters: Floats
    """What the policy's `hyperparameters` returned."""
    stream: Stream
    """For kernels that draw."""
    scratch: Floats
    """A square of max(offer, D) a side, one more where the spread is read, to be used freely: no kernel allocates."""


class Shape(NamedTuple):
    """The sizes of a problem. The horizon is None where nobody knows how many rounds there will be."""

    users: int
    arms: int
    objectives: int
    horizon: int | None


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Base of all policies: subclass it, set the class attributes, add hyperparameters as fields."""

    id: ClassVar[str]
    """The name by which the policy is asked for."""
    summary: ClassVar[str]
    """One line on what it is for."""
    formula: ClassVar[str]
    """The score of arm i."""
    reads: ClassVar[tuple[Feedback, ...]]
    """The feedback it learns from."""
    reference: ClassVar[str]
    """Where it comes from."""
    kernel: ClassVar[Any]
    """The compiled formula."""
    per_user: ClassVar[bool] = False
    """Whether it reads each user's own pulls and overall means."""
    reads_spread: ClassVar[bool] = False
    """Whether its kernel reads how much rewards vary: it is then given `SpreadArms` and `SpreadUsers`."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _check_kind(self.id, field.name, getattr(self, field.name), field.default)

    def estimate(self, objectives: int) -> Estimate:
        """Say how ĉ is formed; the default is that it is not."""
        return NO_ESTIMATE

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """Return the numbers that the kernel reads from `run.hyperparameters`."""
        return ()

    @property
    def settings(self) -> dict[str, Any]:
        """The hyperparameters by name."""
        return dataclasses.asdict(self)

    @property
    def changed(self) -> dict[str, Any]:
        """The hyperparameters that are not at their defaults."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        return {name: value for name, value in self.settings.items() if value != defaults[name]}

    @property
    def label(self) -> str:
        """The id, with the hyperparameters that are not at their defaults: `oful:epsilon=0.1`."""
        changed = ",".join(f"{name}={value}" for name, value in self.changed.items())
        return f"{self.id}:{changed}" if changed else self.id

    def require(self, condition: bool, expected: str) -> None:
        """Raise an error that says what was expected and which values came, unless the condition holds."""
        if not condition:
            raise InputError(f"{self.id}: expected {expected}, got {self.settings}")

    def horizon(self, shape: Shape) -> int:
        """Return the number of rounds, for a policy that cannot do without."""
        if shape.horizon is None:
            raise InputError(
                f"{self.id} needs the horizon (the number of rounds that will be played), and none was given: "
                "pass horizon=…, or choose a policy that works without, such as prucb-hp"
            )
        return shape.horizon


def _check_kind(policy: str, name: str, value: Any, default: Any) -> None:
    """Raise an error if the value is not of its default's kind: a switch, a finite number (or none), or a word."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if isinstance(default, bool):
        fits, expected = isinstance(value, bool), "true or false"
    elif isinstance(default, int | float):
        fits, expected = number, "a finite number"
    elif default is None:
        fits, expected = value is None or number, "a finite number or none"
    else:  # words are checked by the policy that knows them, and so is what has no default
        fits, expected = True, ""
    if not fits:
        raise InputError(f"{policy}: expected {name} to be {expected}, got {value}")


@cache
def kernel_signature(objectives: int, reads_spread: bool = False) -> Any:
    """Return the Numba signature that every policy's kernel has, for this number of objectives.

    There are two: what only some kernels read would make every call of the others slower.
    """
    arms: Any = types.NamedTuple((_array(1), _array(1), _array(2), _array(1)), Arms)
    users: Any = types.NamedTuple((_array(2), _array(3), _array(2), _array(2)), Users)
    if reads_spread:
        arms = types.NamedTuple((_array(1), _array(1), _array(1), _array(2), _array(3), _array(1)), SpreadArms)
        users = types.NamedTuple((_array(2), _array(3), _array(1)), SpreadUsers)
    return types.void(
        _array(1),
        _array(1, types.int64),
        types.int64,
        types.int64,
        arms,
        users,
        types.NamedTuple((_array(1), _array(1, types.uint64), _array(2)), Run),
        numba.typeof(dimensions(objectives)),
    )


def _array(axes: int, of: Any = types.float64) -> Any:
    return types.Array(of, axes, "C")


@inlined
def pick(scores: Floats, count: int, stream: Stream) -> int:
    """Return the place of the highest of the first `count` scores; ties uniformly at random.

    Without a branch until there is a tie: which arm is best is what a processor cannot guess.
    """
    best = scores[0]
    for j in range(1, count):
        best = max(best, scores[j])
    place, ties = 0, 0
    for j in range(count):
        highest = scores[j] == best
        place = j if highest else place
        ties += 1 if highest else 0
    if ties > 1:
        skip = below(stream, ties)
        for j in range(count):
            if scores[j] == best:
                if skip == 0:
                    return j
                skip -= 1
    return place


@inlined
def mark_unpulled(scores: Floats, offer: Ints, pulls: Floats) -> bool:
    """Write 1 for the arms of the offer that were never pulled and 0 for the rest; tell whether there is any."""
    found = False
    for j in range(len(offer)):
        fresh = pulls[offer[j]] == 0.0
        scores[j] = 1.0 if fresh else 0.0
        found = found or fresh
    return found


def check_kernel(policy: Policy) -> None:
    """Raise an error if the policy has no kernel that the trial loop can call."""
    if not hasattr(getattr(type(policy), "kernel", None), "py_func"):
        raise InputError(
            f"{type(policy).__name__}: expected a class attribute `kernel`, a function compiled by "
            "`pamo.policies.kernel`"
        )


def with_hyperparameters(cls: type[Policy], values: Mapping[str, Any]) -> Policy:
    """Build the policy, turning a wrong name into a sentence that lists the right ones."""
    names = [field.name for field in dataclasses.fields(cls)]
    for name in values:
        if name not in names:
            takes = ", ".join(names) if names else "none"
            raise InputError(f"{cls.id} has no hyperparameter {name!r}; it takes: {takes}")
    try:
        return cls(**values)
    except TypeError:  # a word where a number belongs
        raise InputError(f"{cls.id}: expected hyperparameters like {cls().settings}, got {dict(values)}") from None
