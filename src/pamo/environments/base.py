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
from numbers import Integral, Real
from types import NoneType
from typing import Any, ClassVar, Literal

import numba
from numba import types

from pamo.arrays import Floats
from pamo.compiling import dimensions
from pamo.environments.episode import Episode
from pamo.environments.live import Live
from pamo.environments.protocols import PROTOCOLS
from pamo.errors import InputError, unknown_name

MOST_CELLS = 2**36
"""The most numbers that one table of a trial may hold: beyond half a terabyte it is a slip of the keyboard."""


_BELONGING = {"changes_every": ("changing_users", "changing_arms", "changes"), "features": ("explained",)}
"""Settings that mean something beside another alone."""


def setting(
    default: Any,
    help: str,
    metavar: str = "N",
    *,
    least: float | None = None,
    most: float = math.inf,
    derived: str = "",
) -> Any:
    """Return a field of an environment: its default, what it is, and what may stand there. The command line reads it.

    help, metavar: of its flag. least, most: what a number may be. derived: what a default of None comes to.
    """
    about = {"help": help, "metavar": metavar, "least": least, "most": most, "derived": derived}
    return dataclasses.field(default=default, metadata=about)


def variance(default: float, of: str) -> Any:
    """Return the field of a variance."""
    return setting(default, f"variance of a {of} entry", "V", least=0)


def share(of: str) -> Any:
    """Return the field of a chance, or a share."""
    return setting(0.0, of, "P", least=0, most=1)


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
    protocol: `random` or `rotate` (blocks of arms go round among the users), `all` (everybody is offered all arms) or
    `subset` (everybody is offered block_size arms of all, drawn anew each round). newcomers: how many of the users, the
    last ones, come later, in the round `arrival`.

    Every environment may be more than one truth that is told at once. changes_every: after so many rounds, again and
    again, each user with the chance changing_users, and each arm with the chance changing_arms, is drawn anew: at once
    (changes="jump"), or evenly until the next change ("drift"). Regret is against the truth of its round. missing: the
    chance of each score not to be told; untold: how many objectives, the last ones, never are. delay: the rounds after
    which feedback comes. features: of each arm, that explain the share `explained` of the variance of its first means.
    workers: among whom the users are dealt out; a worker knows of the arms what its own users gave, at once, and what
    the others' gave by the last merge, one after every `merge_every` rounds.
    utility: what a reward is worth to a user, by which regret is measured, against the best arm on offer; where it is
    not linear, the overall score is the utility of the reward with the noise that it would have had.
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
    protocol: str = setting(
        "random", "who is offered what: random blocks, rotate, all arms to all, or any subset of them", "KIND"
    )
    newcomers: int = setting(0, "users who come later", least=0)
    arrival: int = setting(1, "the round they come in", "T", least=1)
    changes_every: int = setting(0, "rounds from one change of users or arms to the next; 0: none", "T", least=0)
    changing_users: float = share("chance of a user to be another at a change")
    changing_arms: float = share("chance of an arm to be another at a change")
    changes: Literal["jump", "drift"] = setting("jump", "changes at once (jump) or step by step (drift)", "KIND")
    missing: float = share("chance of a score not to be told")
    untold: int = setting(0, "objectives, the last ones, that are never told", least=0)
    delay: int = setting(0, "rounds until feedback comes", "T", least=0)
    features: int = setting(0, "features of each arm; for protocols all and subset", least=0)
    workers: int = setting(1, "workers that serve a part of the users each", least=1)
    merge_every: int = setting(1, "rounds from one merge of what workers know of the arms to the next", "T", least=1)
    explained: float = setting(0.8, "share of the means' variance that they explain", "P", least=0, most=1)
    utility: Literal["linear", "chebyshev", "gini"] = setting(
        "linear", "what a reward is worth: the weighted sum, the worst objective, or the worst most", "KIND"
    )

    def __post_init__(self) -> None:
        kinds = kinds_of(type(self))
        for field in dataclasses.fields(self):
            about = field.metadata
            self._check(field.name, kinds[field.name], about.get("least"), about.get("most", math.inf))
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
        if bool(self.changes_every) != (self.changing_users + self.changing_arms > 0):
            raise InputError("expected changes_every together with changing_users or changing_arms, or none of them")
        if self.untold > self.objectives:
            raise InputError(f"expected at most the {self.objectives} objectives untold, got {self.untold}")
        if self.workers > 1 and (self.missing or self.untold or self.delay):
            raise InputError(
                "expected feedback at once and in full for several workers: leave out missing, untold and delay"
            )
        if self.features and self._in_blocks:
            raise InputError(f"expected protocol='all' or 'subset' for arms with features, got {self.protocol!r}")
        if self._in_blocks:
            if self.arm_count % self.block_size:
                raise InputError(f"expected arms to fill blocks of {self.block_size}, got {self.arm_count} arms")
            if self.arm_count < self.users * self.block_size:
                raise InputError(
                    f"expected a block of {self.block_size} arms for each of {self.users} users (at least "
                    f"{self.users * self.block_size} arms), got {self.arm_count}; give more arms, or "
                    "protocol='all' or 'subset'"
                )

    def _check(self, name: str, kind: Any, least: float | None, most: float) -> None:
        """Raise an error unless a setting is what its field says."""
        value = getattr(self, name)
        if isinstance(kind, tuple) and value not in kind:
            *others, last = map(repr, kind)
            raise InputError(f"expected {name} {', '.join(others)} or {last}, got {value!r}")
        if kind in (bool, str) and not isinstance(value, kind):
            raise InputError(f"expected {name} as {'true or false' if kind is bool else 'a word'}, got {value!r}")
        if kind not in (int, float) or value is None:
            return
        number: Any = Integral if kind is int else Real
        if isinstance(value, bool) or not isinstance(value, number):
            raise InputError(f"expected {name} as a {'whole ' if kind is int else ''}number, got {value!r}")
        if least is None:
            return
        if kind is int:
            if value < least:
                raise InputError(f"expected {name} to be at least {least}, got {value}")
        elif not (math.isfinite(value) and least <= value <= most):
            wanted = f"a finite number, {least} or more" if most == math.inf else f"from {least} to {most}"
            raise InputError(f"expected {name} to be {wanted}, got {value}")

    @property
    def arm_count(self) -> int:
        """K: the number of arms."""
        return self.users * self.block_size if self.arms is None else self.arms

    @property
    def offer_size(self) -> int:
        """The number of arms in an offer."""
        return self.arm_count if self.protocol == "all" else self.block_size

    @property
    def _in_blocks(self) -> bool:
        return self.protocol in ("random", "rotate")

    @property
    def live(self) -> Live | None:
        """What makes it more than one truth, blocks of arms, and whole feedback at once; None where nothing does."""
        found = Live(
            offered=self.block_size if self.protocol == "subset" else 0,
            every=self.changes_every,
            drifting=self.changes == "drift",
            changing_users=float(self.changing_users),
            changing_arms=float(self.changing_arms),
            missing=float(self.missing),
            untold=self.untold,
            delay=self.delay,
            features=self.features,
            explained=float(self.explained),
            workers=self.workers,
            merge_every=self.merge_every,
        )
        plain = (found.offered, found.every, found.missing, found.untold, found.delay, found.features, self.workers > 1)
        return found if any(plain) else None

    def start(self, seed: int, trial: int = 0) -> Episode:
        """Begin a trial, to be played step by step: trial `trial` of `simulate` with this seed."""
        if self.workers > 1:
            raise InputError(f"expected one worker for a trial that is played step by step, got {self.workers}")
        return Episode(self, seed, trial)

    def numbers(self) -> Floats:
        """Return the settings as the kernels read them."""
        raise NotImplementedError  # the base class is abstract: each environment says what its kernels read

    @property
    def settings(self) -> dict[str, Any]:
        """The settings by name, as plain values; newcomers, changes and the like only where there are any."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        values["arms"] = self.arm_count
        if not self.newcomers:
            del values["newcomers"], values["arrival"]
        if self.workers == 1:
            del values["workers"], values["merge_every"]
        for name in ("changes_every", "missing", "untold", "delay", "features"):
            if not values[name]:
                for belonging in (name, *_BELONGING.get(name, ())):
                    del values[belonging]
        if self.utility == "linear":
            del values["utility"]
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
