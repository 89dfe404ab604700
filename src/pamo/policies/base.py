"""What a policy is: a frozen dataclass of hyperparameters, and one kernel that scores an offer for one user.

The kernel's signature is one for all policies, so that the compiled trial loop can be handed any of them:

    kernel(scores, offered, t, arms, user, common, run, dims)

It writes `scores[j]` for the j-th of the `offered` arms, for a user in that user's round `t`. What is known of the arms
on offer is `arms[NUMBER, j]`, of the user `user[NUMBER]`, of all arms together `common[NUMBER]`; `pamo.reading` names
the numbers. The arm of the highest score is pulled, one of them uniformly at random where several are the highest. So a
policy that picks uniformly from a set writes 1 and 0, and one that must pull an arm first writes infinity.

`scores` and `arms` are padded with arms that nobody has pulled: a loop over `len(scores)` scores them as well, to no
effect, and is compiled for several arms at a time; one that draws, or counts arms, goes over `offered`.

A policy whose formula is no function of those numbers (a window, weights) keeps rows of its own: `keeps` declares them,
`run` is then a `Keeping`, and a second kernel, `remember(arm, values, run, dims)`, takes each pull into them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pamo.arrays import Floats, Ints
from pamo.compiling import anywhere, count_of, inlined
from pamo.errors import InputError
from pamo.estimators import NO_ESTIMATE, Estimate
from pamo.reading import MEAN, PREFERENCE, PULLS, padded
from pamo.streams import Stream, below

UNSCORED = -1.7e308
"""The score of an arm that another comes before, of which it says nothing else."""


class Feedback(StrEnum):
    """What a policy reads. It never sees anything else."""

    REWARD = "reward"
    OVERALL = "overall"
    STATED = "stated preference"
    TRUE = "true preference"


class Run(NamedTuple):
    """What a kernel needs besides: the policy's numbers, its random stream, and room to work in."""

    hyperparameters: Floats
    """What the policy's `hyperparameters` returned."""
    stream: Stream
    """For kernels that draw."""
    scratch: Floats
    """D + 1 lines as long as `scores`, or D + 1 if that is longer, to be used freely: no kernel allocates."""


class Keeps(NamedTuple):
    """How many numbers a policy keeps by itself: of each arm, of each user, and of all together."""

    by_arm: int = 0
    by_user: int = 0
    shared: int = 0


class Kept(NamedTuple):
    """The rows that a policy keeps, zeros before the first round. Its kernels may write them whenever they run."""

    by_arm: Floats
    """(arms, numbers of an arm): as many as there are arms, even where nothing is kept of them."""
    by_user: Floats
    """(users, numbers of a user): likewise."""
    shared: Floats


class Keeping(NamedTuple):
    """What a kernel of a policy with rows of its own is given in place of a `Run`."""

    hyperparameters: Floats
    stream: Stream
    scratch: Floats
    kept: Kept
    round: int
    """The trial's round; `remember` is told the one in which the arm was pulled."""
    user: int
    """Whom it is about: `kept.by_user[user]`."""
    offer: Ints
    """The arms on offer: the j-th is `kept.by_arm[offer[j]]`. `remember` is told nothing of them."""


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
    remember: ClassVar[Any] = None
    """What takes a pull, `values` being (r₁ … r_D, g), into the rows that the policy keeps, where it keeps any."""
    per_user: ClassVar[bool] = False
    """Whether its kernel is given the arms as this user alone knows them."""
    reads_spread: ClassVar[bool] = False
    """Whether its kernel reads how much rewards vary, or the regression's noise."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _check_kind(self.id, field.name, getattr(self, field.name), field.default)

    def estimate(self, objectives: int) -> Estimate:
        """Say how ĉ is formed; the default is that it is not."""
        return NO_ESTIMATE

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """Return the numbers that the kernel reads from `run.hyperparameters`."""
        return ()

    def keeps(self, shape: Shape) -> Keeps:
        """Return how many numbers the policy keeps by itself; by default none."""
        return Keeps()

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
def mark_unpulled(scores: Floats, offered: int, arms: Floats) -> bool:
    """Write ∞ for the arms of the offer that were never pulled, UNSCORED for the rest; tell whether there is any."""
    found = False
    for j in range(offered):
        fresh = arms[PULLS, j] == 0.0
        scores[j] = np.inf if fresh else UNSCORED
        found = found or fresh
    return found


@inlined
def value_of(arms: Floats, j: int, user: Floats, dims: Any) -> float:
    """ĉ·r̂ of the offer's j-th arm."""
    total = 0.0
    for d in range(count_of(dims)):
        total += user[PREFERENCE + d] * arms[MEAN + d, j]
    return total


@anywhere
def scratch_for(offered: int, objectives: int) -> tuple[int, int]:
    """Return the shape of `Run.scratch` for offers of so many arms."""
    return objectives + 1, max(padded(offered), objectives + 1)


def check_kernel(policy: Policy) -> None:
    """Raise an error if the trial loop cannot call the policy's kernel, or its `remember` where it has one."""
    for name in ("kernel", "remember"):
        given = getattr(type(policy), name, None)
        if not hasattr(given, "py_func") and (name == "kernel" or given is not None):
            raise InputError(
                f"{type(policy).__name__}: expected a class attribute `{name}`, a function compiled by "
                "`pamo.policies.kernel`"
            )


def kept_for(keeps: Keeps, shape: Shape) -> Kept:
    """Return rows of a policy's own, zeros, for a problem of this shape."""
    return Kept(np.zeros((shape.arms, keeps.by_arm)), np.zeros((shape.users, keeps.by_user)), np.zeros(keeps.shared))


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
