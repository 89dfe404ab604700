"""What a setting is: its kind, its sentence, and how it is read from a file, from the environment and from a flag."""

from __future__ import annotations

import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field
from typing import Any

from pamo.contract.objectives import objective
from pamo.errors import InputError
from pamo.policies import parse
from pamo.service.keys import Key, check_keys
from pamo.store.addresses import shown

_LARGEST = 2**63 - 1
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
# In a list of objectives, the comma before "lower is better" belongs to the objective.
_BETWEEN_OBJECTIVES = re.compile(r",(?!\s*(?:lower|higher) is better)")


class Kind(ABC):
    """A kind of value. `take` checks one and `read` reads it from text; both raise ValueError for a wrong one."""

    def __init__(self, expected: str, metavar: str) -> None:
        self.expected = expected
        self.metavar = metavar

    def read(self, text: str) -> Any:
        """Return the value that this text stands for."""
        return self.take(text)

    @abstractmethod
    def take(self, value: Any) -> Any:
        """Return the value as settings have it."""

    def show(self, value: Any) -> str:
        """Return a wrong value for a message."""
        return f"{value!r:.120}"


class Text(Kind):
    """Some text, perhaps one of a few words."""

    def __init__(self, expected: str, metavar: str = "TEXT", choices: tuple[str, ...] = ()) -> None:
        super().__init__(expected, metavar)
        self._choices = choices

    def take(self, value: Any) -> str:
        """Return the text; a path is one too."""
        text = str(value) if isinstance(value, os.PathLike) else value
        if not isinstance(text, str) or not text.strip() or "\0" in text:
            raise ValueError
        if self._choices and text not in self._choices:
            raise ValueError
        return text


class Whole(Kind):
    """A whole number in a range."""

    def __init__(self, low: int = 0, high: int = _LARGEST) -> None:
        span = f"of at least {low}" if high == _LARGEST else f"from {low} to {high}"
        super().__init__(f"a whole number {span}", "N")
        self._low, self._high = low, high

    def read(self, text: str) -> int:
        """Return the number that is written here."""
        return self.take(int(text))

    def take(self, value: Any) -> int:
        """Return the number."""
        if type(value) is not int or not self._low <= value <= self._high:
            raise ValueError
        return value


class Number(Kind):
    """A finite number, from 0 on or above it."""

    def __init__(self, *, above: bool = False) -> None:
        super().__init__(f"a number {'above 0' if above else 'of at least 0'}", "X")
        self._above = above

    def read(self, text: str) -> float:
        """Return the number that is written here."""
        return self.take(float(text))

    def take(self, value: Any) -> float:
        """Return the number."""
        if type(value) not in (int, float) or not math.isfinite(value) or value < 0 or (self._above and value == 0):
            raise ValueError
        return float(value)


class YesNo(Kind):
    """Whether something is so."""

    def __init__(self) -> None:
        super().__init__("true or false", "")

    def read(self, text: str) -> bool:
        """Return what a word means."""
        word = text.strip().lower()
        if word not in _YES + _NO:
            raise ValueError
        return word in _YES

    def take(self, value: Any) -> bool:
        """Return the value."""
        if type(value) is not bool:
            raise ValueError
        return value


class Address(Text):
    """Where the store is; a password in it is not shown."""

    def take(self, value: Any) -> str:
        """Return the address."""
        text = super().take(value)
        if "://" in text and not text.startswith(("postgresql://", "postgres://")):
            raise ValueError
        return text

    def show(self, value: Any) -> str:
        """Return a wrong address for a message."""
        return super().show(shown(value) if isinstance(value, str) else value)


class PolicyName(Text):
    """The name of a policy, perhaps with hyperparameters."""

    def take(self, value: Any) -> str:
        """Return the name."""
        text = super().take(value)
        parse(text)
        return text


class OverallScale(Text):
    """The scale of the overall score: text such as "1..5", or a table with low and high."""

    def take(self, value: Any) -> str:
        """Return the scale as the engine reads it."""
        if isinstance(value, Mapping):
            return _objective_text({"name": "overall", **value})
        text = super().take(value).strip()
        if not text.startswith("overall"):  # the engine would take "1..5" for the name of an objective
            text = f"overall: {text}"
        try:
            found = objective(text)
        except InputError:
            raise ValueError from None
        if found.name != "overall":
            raise ValueError
        return text


class Objectives(Kind):
    """What arms are scored on."""

    def __init__(self) -> None:
        super().__init__("a list of objectives, each such as 'taste' or 'price: 0..500, lower is better'", "LIST")

    def read(self, text: str) -> tuple[str, ...]:
        """Return the objectives of a list with commas."""
        return self.take([part.strip() for part in _BETWEEN_OBJECTIVES.split(text)] if text.strip() else [])

    def take(self, value: Any) -> tuple[str, ...]:
        """Return the objectives as text."""
        if not isinstance(value, list | tuple):
            raise ValueError
        return tuple(_objective_text(one) for one in value)


class Arms(Kind):
    """Arms, each with its id or as ID=NAME."""

    def __init__(self) -> None:
        super().__init__("a list of arms, each an id or ID=NAME", "LIST")

    def read(self, text: str) -> tuple[str, ...]:
        """Return the arms of a list with commas."""
        return self.take([part.strip() for part in text.split(",")] if text.strip() else [])

    def take(self, value: Any) -> tuple[str, ...]:
        """Return the arms as text."""
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
            raise ValueError
        if not all(all(map(str.strip, one.split("=", 1))) for one in value):
            raise ValueError
        ids = [one.partition("=")[0].strip() for one in value]
        twice = next((one for one in ids if ids.count(one) > 1), None)
        if twice is not None:
            raise InputError(f"expected each arm once, got {twice!r:.80} more than once")
        return tuple(value)


class Keys(Kind):
    """API keys; what was given is never shown, since it may be a key itself."""

    def __init__(self) -> None:
        super().__init__("a list of keys, each NAME:ROLE+ROLE:SHA256 as `pamo key` prints it", "LIST")

    def read(self, text: str) -> tuple[Key, ...]:
        """Return the keys of a list with commas."""
        return self.take([part for part in text.split(",") if part.strip()])

    def take(self, value: Any) -> tuple[Key, ...]:
        """Return the keys."""
        if not isinstance(value, list | tuple):
            raise ValueError
        keys = tuple(_key(one) for one in value)
        check_keys(keys)
        return keys

    def show(self, value: Any) -> str:
        """Return what kind of thing came, and no more."""
        return f"a value of type {type(value).__name__}"


@dataclass(frozen=True, slots=True)
class Option:
    """One setting: a row of the table that files, environment, flags and documentation are made from."""

    name: str
    kind: Kind
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
        try:
            return self.kind.read(text)
        except ValueError as error:
            raise self._wrong(text, where, error) from None

    def take(self, value: Any, where: str) -> Any:
        """Return a checked value; `where` is what an error names."""
        if value is None and self.default is None:
            return None
        try:
            return self.kind.take(value)
        except ValueError as error:
            raise self._wrong(value, where, error) from None

    def _wrong(self, value: Any, where: str, error: ValueError) -> InputError:
        if isinstance(error, InputError):  # it has a sentence of its own
            return InputError(f"{where}: {error}")
        return InputError(f"expected {where} to be {self.kind.expected}, got {self.kind.show(value)}")


def option(default: Any, kind: Kind, section: str, help: str, example: Any = None) -> Any:
    """Declare a field of `Settings` that is an option."""
    row = {"kind": kind, "section": section, "help": help, "example": example}
    return field(default=default, metadata=row)


def option_of(declared: Field[Any]) -> Option:
    """Return the option that a field declares."""
    assert declared.default is not MISSING
    return Option(name=declared.name, default=declared.default, **declared.metadata)


def _objective_text(given: Any) -> str:
    if isinstance(given, str):
        objective(given)
        return given.strip()
    found = objective(given)
    text = f"{found.name}: {found.low}..{found.high}" + (", lower is better" if found.lower_is_better else "")
    if objective(text) != found:  # a name with a comma or a colon, a scale that is no number
        raise InputError(
            f"expected a name without comma or colon and a scale in numbers, got the objective {given!r:.100}"
        )
    return text


def _key(given: Any) -> Key:
    if isinstance(given, Key):
        return given
    if isinstance(given, str):
        return Key.from_text(given)
    if isinstance(given, Mapping):
        return Key.from_mapping(given)
    raise ValueError
