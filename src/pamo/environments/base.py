"""What an environment is: the true arms and users of a trial, and the feedback that a pull gives.

An environment is a frozen dataclass of settings with two kernels, each of one signature for all environments:

    instance(means, preferences, numbers, stream, dims)
        writes the trial's true reward means (arms × D) and mean preferences (users × D);
    draw(reward, stated, arm, n, means, preferences, numbers, wants_stated, stream, spare, dims) -> overall
        writes the reward of one pull, and the preference that the user would state where that is wanted;
        `reward` has D + 1 places, the last of them free to use.

`draw` takes a fixed number of draws from `stream`, whatever the arm, so that two policies meet the same draws for as
long as they choose alike; an environment that needs more starts `spare` afresh from one word of `stream`.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import NoneType
from typing import Any, ClassVar, Literal

import numba
import numpy as np
from numba import types

from pamo.arrays import Floats
from pamo.compiling import dimensions
from pamo.environments.episode import Episode
from pamo.environments.protocols import PROTOCOLS
from pamo.errors import InputError, unknown_name

MOST_CELLS = 2**36
"""The most numbers that one table of a trial may hold: beyond half a terabyte it is a slip of the keyboard."""


def setting(default: Any, help: str, metavar: str = "N", *, least: float | None = None, derived: str = "") -> Any:
    """Return a field of an environment: its default, what it is, and what may stand there. The command line reads it.

    help, metavar: of its flag. least: the least number that it may be. derived: what a default of None comes to.
    """
    about = {"help": help, "metavar": metavar, "least": least, "derived": derived}
    return dataclasses.field(default=default, metadata=about)


def variance(default: float, of: str) -> Any:
    """Return the field of a variance."""
    return setting(default, f"variance of a {of} entry", "V", least=0)


def kinds_of(cls: type[Environment]) -> Mapping[str, Any]:
    """Return what each setting of an environment is: a type, or for a choice of words the tuple of them.

    >>> kinds_of(Environment)["users"], kinds_of(Environment)["arms"]
    (<class 'int'>, <class 'int'>)
    """
    wanted: Any = cls
    return _kinds_of(wanted)


@cache
def _kinds_of(cls: Any) -> Mapping[str, Any]:
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        with suppress(NameError):  # a type that is known to type checkers alone is no kind of ours
            hints |= typing.get_type_hints(base)
    kinds: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        kind = hints.get(field.name)
        parts = typing.get_args(kind)
        if typing.get_origin(kind) is Literal:
            kinds[field.name] = parts
        else:
            kinds[field.name] = parts[0] if NoneType in parts else kind
    return kinds


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Base of all environments: how many users, arms and objectives there are, and who is offered what.

    users: N. block_size: arms in an offer. objectives: D. arms: K, by default users × block_size.
    protocol: `random` or `rotate` (blocks of arms go round among the users) or `all` (everybody is offered all arms).
    newcomers: how many of the users, the last ones, come later, in the round `arrival`.
    """

    id: ClassVar[str]
    summary: ClassVar[str]
    reference: ClassVar[str]
    instance: ClassVar[Any]
    draw: ClassVar[Any]

    users: int = setting(2, "users", least=1)
    block_size: int = setting(5, "arms in an offer", least=1)
    objectives: int = setting(3, "objectives of a reward", "D", least=1)
    arms: int | None = setting(None, "arms", "K", least=1, derived="users × block size")
    protocol: str = setting("random", "who is offered what: random blocks, rotate, or all arms to all", "KIND")
    newcomers: int = setting(0, "users who come later", least=0)
    arrival: int = setting(1, "the round they come in", "T", least=1)

    def __post_init__(self) -> None:
        kinds = kinds_of(type(self))
        for field in dataclasses.fields(self):
            self._check(field.name, kinds[field.name], field.metadata.get("least"))
        if self.newcomers >= self.users:
            raise InputError(f"expected fewer newcomers than the {self.users} users there are, got {self.newcomers}")
        if max(self.users * self.arm_count, self.arm_count * self.objectives) > MOST_CELLS:
            raise InputError(
                f"expected a problem that fits into memory, got {self.users} users × {self.arm_count} arms × "
                f"{self.objectives} objectives"
            )
        if self.protocol not in PROTOCOLS:
            raise unknown_name("protocol", self.protocol, PROTOCOLS)
        if self.block_size > self.arm_count:
            raise InputError(f"an offer of {self.block_size} arms is larger than the {self.arm_count} arms there are")
        if self.protocol != "all":
            if self.arm_count % self.block_size:
                raise InputError(f"expected arms to fill blocks of {self.block_size}, got {self.arm_count} arms")
            if self.arm_count < self.users * self.block_size:
                raise InputError(
                    f"expected a block of {self.block_size} arms for each of {self.users} users (at least "
                    f"{self.users * self.block_size} arms), got {self.arm_count}; give more arms, or protocol='all'"
                )

    def _check(self, name: str, kind: Any, least: float | None) -> None:
        """Raise an error unless a setting is what its field says."""
        value = getattr(self, name)
        if isinstance(kind, tuple) and value not in kind:
            *most, last = map(repr, kind)
            raise InputError(f"expected {name} {', '.join(most)} or {last}, got {value!r}")
        if value is None or least is None:
            return
        if kind is int:
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise InputError(f"expected {name} as a whole number, got {value!r}")
            if value < least:
                raise InputError(f"expected {name} to be at least {least}, got {value}")
        elif not (math.isfinite(value) and value >= least):
            raise InputError(f"expected {name} to be a finite number, {least} or more, got {value}")

    @property
    def arm_count(self) -> int:
        """K: the number of arms."""
        return self.users * self.block_size if self.arms is None else self.arms

    @property
    def offer_size(self) -> int:
        """The number of arms in an offer."""
        return self.arm_count if self.protocol == "all" else self.block_size

    def start(self, seed: int, trial: int = 0) -> Episode:
        """Begin a trial, to be played step by step: trial `trial` of `simulate` with this seed."""
        return Episode(self, seed, trial)

    def numbers(self) -> Floats:
        """Return the settings as the kernels read them."""
        raise NotImplementedError  # the base class is abstract: each environment says what its kernels read

    @property
    def settings(self) -> dict[str, Any]:
        """The settings by name, as plain values; newcomers only where there are any."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        values["arms"] = self.arm_count
        if not self.newcomers:
            del values["newcomers"], values["arrival"]
        return {"id": self.id} | values


@cache
def instance_signature(objectives: int) -> Any:
    """Return the Numba signature of every environment's `instance` kernel."""
    table, row = types.Array(types.float64, 2, "C"), types.Array(types.float64, 1, "C")
    stream = types.Array(types.uint64, 1, "C")
    return types.void(table, table, row, stream, numba.typeof(dimensions(objectives)))


@cache
def draw_signature(objectives: int) -> Any:
    """Return the Numba signature of every environment's `draw` kernel."""
    table, row = types.Array(types.float64, 2, "C"), types.Array(types.float64, 1, "C")
    stream, dims = types.Array(types.uint64, 1, "C"), numba.typeof(dimensions(objectives))
    whole = types.int64
    return types.float64(row, row, whole, whole, table, table, row, types.boolean, stream, stream, dims)
