"""What a look at something finds: ok, a warning or a problem, and a sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

Announce = Callable[[str], object]
"""Is told what is looked at next."""


class Status(StrEnum):
    """How something is."""

    OK = "ok"
    WARNING = "warning"
    """It works, and somebody should know this."""
    PROBLEM = "problem"
    """It does not work, or does not do what pamo promises."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    sentence: what was found and, unless it is well, what to do. figures: the numbers behind it, as plain values.
    """

    group: str
    name: str
    status: Status
    sentence: str
    figures: dict[str, Any] = field(default_factory=dict)


class Subject(NamedTuple):
    """Something to look at, of which a check is then said."""

    group: str
    name: str

    def ok(self, sentence: str, **figures: Any) -> Check:
        """Say that it is well."""
        return Check(*self, Status.OK, sentence, figures)

    def warning(self, sentence: str, **figures: Any) -> Check:
        """Say what somebody should know of it."""
        return Check(*self, Status.WARNING, sentence, figures)

    def problem(self, sentence: str, **figures: Any) -> Check:
        """Say what does not work."""
        return Check(*self, Status.PROBLEM, sentence, figures)
