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
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numba
import numpy as np
from numba import types

from pamo.arrays import Floats
from pamo.compiling import dimensions
from pamo.environments.protocols import PROTOCOLS
from pamo.errors import InputError, unknown_name

MOST_CELLS = 2**36
"""The most numbers that one table of a trial may hold: beyond half a terabyte it is a slip of the keyboard."""


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

    users: int = 2
    block_size: int = 5
    objectives: int = 3
    arms: int | None = None
    protocol: str = "random"
    newcomers: int = 0
    arrival: int = 1

    def __post_init__(self) -> None:
        for name in ("users", "block_size", "objectives", "arms", "newcomers", "arrival"):
            size, least = getattr(self, name), 0 if name == "newcomers" else 1
            if size is None:
                continue
            if isinstance(size, bool) or not isinstance(size, int | np.integer):
                raise InputError(f"expected {name} as a whole number, got {size!r}")
            if size < least:
                raise InputError(f"expected {name} to be at least {least}, got {size}")
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

    @property
    def arm_count(self) -> int:
        """K: the number of arms."""
        return self.users * self.block_size if self.arms is None else self.arms

    @property
    def offer_size(self) -> int:
        """The number of arms in an offer."""
        return self.arm_count if self.protocol == "all" else self.block_size

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


def check_variance(name: str, value: float) -> None:
    """Raise an error unless the value can be a variance."""
    if not (math.isfinite(value) and value >= 0):
        raise InputError(f"expected {name} to be a finite number, 0 or more, got {value}")


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
