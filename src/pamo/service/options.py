"""What a setting is: its kind, its sentence, and how it is read from a file, from the environment and from a flag."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, replace
from typing import Any

from pamo.contract.experiments import check_policy, share
from pamo.contract.features import feature, features, written
from pamo.contract.forgetting import half_lives
from pamo.contract.forgetting import written as forgotten
from pamo.contract.objectives import objective
from pamo.errors import InputError
from pamo.policies import parse
from pamo.service.keys import Key, check_keys
from pamo.store.addresses import is_postgres, shown

_LARGEST = 2**63 - 1
_WORDS = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False)
# In a list of objectives, the comma before "lower is better" belongs to the objective.
_BETWEEN_OBJECTIVES = re.compile(r",(?!\s*(?:lower|higher) is better)")
_COMMA = re.compile(",")


def _shown(value: Any) -> str:
    return f"{value!r:.120}"


@dataclass(frozen=True, slots=True)
class ValueKind:
    """A kind of value, in words and as functions.

    take: returns a value as settings have it, and raises ValueError for a wrong one. read: returns what a text stands
    for, which `take` then checks. show: returns a wrong value for a message.
    """

    expected: str
    metavar: str
    take: Callable[[Any], Any]
    read: Callable[[str], Any] = str
    show: Callable[[Any], str] = _shown


def _text(value: Any) -> str:
    """Return some text; a path is one too."""
    text = str(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise ValueError
    return text


def text(expected: str, metavar: str, choices: tuple[str, ...] = ()) -> ValueKind:
    """Return the kind of some text, perhaps one of a few words."""

    def take(value: Any) -> str:
        found = _text(value)
        if choices and found not in choices:
            raise ValueError
        return found

    return ValueKind(expected, metavar, take)


def whole(low: int = 0, high: int = _LARGEST) -> ValueKind:
    """Return the kind of a whole number in a range."""

    def take(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise ValueError
        return value

    span = f"of at least {low}" if high == _LARGEST else f"from {low} to {high}"
    return ValueKind(f"a whole number {span}", "N", take, int)


def number(*, above: bool = False, most: float | None = None) -> ValueKind:
    """Return the kind of a finite number, from 0 on or above it, and up to `most`."""

    def take(value: Any) -> float:
        if type(value) not in (int, float) or not math.isfinite(value) or value < 0 or (above and value == 0):
            raise ValueError
        if most is not None and value > most:
            raise ValueError
        return float(value)

    span = f"from 0 to {most:g}" if most is not None else "above 0" if above else "of at least 0"
    return ValueKind(f"a number {span}", "X", take, float)


def several(
    expected: str,
    one: Callable[[Any], Any],
    check: Callable[[Sequence[Any]], object] = lambda found: None,
    between: re.Pattern[str] = _COMMA,
) -> ValueKind:
    """Return the kind of a list. one: takes a part of it; check: raises for parts that do not go together."""

    def read(text: str) -> list[str]:
        return [part.strip() for part in between.split(text)] if text.strip() else []

    def take(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise ValueError
        found = tuple(map(one, value))
        check(found)
        return found

    return ValueKind(expected, "LIST", take, read)


def _yes_or_no(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError
    return value


def _address(value: Any) -> str:
    address = _text(value)
    if "://" in address and not is_postgres(address):
        raise ValueError
    return address


def _policy(value: Any) -> str:
    name = _text(value)
    parse(name)
    return name


def _scale(value: Any) -> str:
    """Return the scale of the overall score as the engine reads it: of text such as "1..5", or of a table."""
    if isinstance(value, Mapping):
        return objective_text({"name": "overall", **value})
    scale = _text(value).strip()
    if not scale.startswith("overall"):  # the engine would take "1..5" for the name of an objective
        scale = f"overall: {scale}"
    try:
        found = objective(scale)
    except InputError:
        raise ValueError from None
    if found.name != "overall":
        raise ValueError
    return scale


def _half_life(value: Any) -> str:
    return forgotten(half_lives(value))


def _control_policy(value: Any) -> str:
    check_policy(value)
    return str(value)


def objective_text(given: Any) -> str:
    """Return an objective as text, which a file and the environment can hold."""
    found = objective(given)
    if isinstance(given, str):
        return given.strip()
    text = f"{found.name}: {found.low}..{found.high}" + (", lower is better" if found.lower_is_better else "")
    if objective(text) != found:  # a name with a comma or a colon, a scale that is no number
        raise InputError(
            f"expected a name without comma or colon and a scale in numbers, got the objective {given!r:.100}"
        )
    return text


def _arm(given: Any) -> str:
    if not isinstance(given, str) or not all(map(str.strip, given.split("=", 1))):
        raise ValueError
    return given


def _check_arms(arms: Sequence[str]) -> None:
    ids = [one.partition("=")[0].strip() for one in arms]
    twice = next((one for one in ids if ids.count(one) > 1), None)
    if twice is not None:
        raise InputError(f"expected each arm once, got {twice!r:.80} more than once")


YES_OR_NO = ValueKind("true or false", "", _yes_or_no, lambda text: _WORDS.get(text.strip().lower()))
ADDRESS = ValueKind(
    "memory:, the path of a file or postgresql://…",
    "ADDRESS",
    _address,
    show=lambda value: _shown(shown(value) if isinstance(value, str) else value),
)
"""Where the store is; a password in it is not shown."""
POLICY = ValueKind("the name of a policy", "ID", _policy)
SCALE = ValueKind("a scale such as 1..5", "SCALE", _scale)
HALF_LIFE = ValueKind(
    "a half-life such as '40 rounds', 'users: 40 rounds, arms: 90 days' or 'none'", "TIME", _half_life
)
SHARE = ValueKind("a share of users such as 5%", "SHARE", share)
CONTROL_POLICY = ValueKind("random, caller, arm:ID or the name of a policy", "POLICY", _control_policy)
OBJECTIVES = several(
    "a list of objectives, each such as 'taste' or 'price: 0..500, lower is better'",
    objective_text,
    between=_BETWEEN_OBJECTIVES,
)
FEATURES = several(
    "a list of features, each such as 'stars: number', 'pool: yes or no' or 'style: word'",
    lambda given: written(feature(given)),
    features,
)
ARMS = several("a list of arms, each an id or ID=NAME", _arm, _check_arms)
KEYS = replace(
    several("a list of keys, each NAME:ROLE+ROLE:SHA256 as `pamo key` prints it", Key.of, check_keys),
    read=lambda text: [part for part in text.split(",") if part.strip()],
    show=lambda value: f"a value of type {type(value).__name__}",
)
"""API keys; what was given is never shown, since it may be a key itself."""


@dataclass(frozen=True, slots=True)
class Option:
    """One setting: a row of the table that files, environment, flags and documentation are made from."""

    name: str
    kind: ValueKind
    default: Any
    section: str
    help: str
    example: Any = None

    @property
    def flag(self) -> str:
        """The flag that sets it."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "PAMO_" + self.name.upper()

    def place(self, file: str) -> str:
        """Say where it stands in a file."""
        return f"[[keys]] in {file}" if self.section == "keys" else f"{self.name} of [{self.section}] in {file}"

    def read(self, text: str, where: str) -> Any:
        """Return the value that a text stands for; `where` is what an error names."""
        return self._checked(text, where, lambda: self.kind.take(self.kind.read(text)))

    def take(self, value: Any, where: str) -> Any:
        """Return a checked value; `where` is what an error names."""
        if value is None and self.default is None:
            return None
        return self._checked(value, where, lambda: self.kind.take(value))

    def _checked(self, value: Any, where: str, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except InputError as error:  # it has a sentence of its own
            raise InputError(f"{where}: {error}") from None
        except ValueError:
            raise InputError(f"expected {where} to be {self.kind.expected}, got {self.kind.show(value)}") from None


def option(default: Any, kind: ValueKind, section: str, help: str, example: Any = None) -> Any:
    """Declare a field of `Settings` that is an option."""
    row = {"kind": kind, "section": section, "help": help, "example": example}
    return field(default=default, metadata=row)


def option_of(declared: Field[Any]) -> Option:
    """Return the option that a field declares."""
    assert declared.default is not MISSING
    return Option(name=declared.name, default=declared.default, **declared.metadata)
