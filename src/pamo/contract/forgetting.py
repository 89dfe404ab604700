"""Half-lives: after how many rounds, or days, what was learned counts half, and how people write that down."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pamo.contract.limits import is_number
from pamo.errors import InputError

ROUNDS, DAYS = "rounds", "days"
OF = ("users", "arms")


@dataclass(slots=True, frozen=True)
class HalfLife:
    """After how long a round counts half: so many rounds of the user (pulls of the arm), or so many days."""

    count: float
    unit: str = ROUNDS

    def age(self, at: float, rounds: float) -> float:
        """Return in half-lives when something was: at a time, in seconds since 1970, and at a count of rounds."""
        return (at / 86_400.0 if self.unit == DAYS else rounds) / self.count


@dataclass(slots=True, frozen=True)
class HalfLives:
    """What is forgotten how fast: of users, and of arms; None is never."""

    users: HalfLife | None = None
    arms: HalfLife | None = None


HalfLivesLike = str | Mapping[str, str | HalfLife | None] | HalfLives

_ONE = r"(?P<count>\S+?)\s*(?P<unit>rounds?|days?)"
_EXPECTED = "expected a half-life such as '40 rounds', '30 days', 'users: 40 rounds, arms: 90 days' or 'none'"


def half_lives(given: HalfLivesLike, field: str = "half_life") -> HalfLives | None:
    """Return the half-lives that text, a mapping or `HalfLives` declare; None where nothing is to be forgotten.

    >>> half_lives("users: 40 rounds, arms: 90 days")
    HalfLives(users=HalfLife(count=40.0, unit='rounds'), arms=HalfLife(count=90.0, unit='days'))
    >>> half_lives("30 days").arms, half_lives("none")
    (HalfLife(count=30.0, unit='days'), None)
    """
    one: Any = given  # callers may not have been type-checked
    if isinstance(one, HalfLives):
        one = {"users": one.users, "arms": one.arms}
    elif isinstance(one, str):
        if one.strip() == "none":
            return None
        parts = [part.partition(":") for part in one.split(",")] if ":" in one else []
        one = {name.strip(): text for name, _, text in parts} if parts else dict.fromkeys(OF, one)
    if not isinstance(one, Mapping) or not one.keys() <= set(OF):
        raise InputError(f"{_EXPECTED}, got {given!r:.80}", field)
    found = HalfLives(**{name: _half_life(value, f"{field}.{name}") for name, value in one.items()})
    return None if found == HalfLives() else found


def written(lives: HalfLives | None) -> str:
    """Return half-lives as people write them.

    >>> written(half_lives({"users": "40 rounds"}))
    'users: 40 rounds'
    """
    if lives is None:
        return "none"
    parts = ((name, getattr(lives, name)) for name in OF)
    return ", ".join(f"{name}: {one.count:g} {one.unit}" for name, one in parts if one is not None)


def _half_life(given: Any, field: str) -> HalfLife | None:
    if given is None or (isinstance(given, str) and given.strip() == "none"):
        return None
    count, unit = (given.count, given.unit) if isinstance(given, HalfLife) else (given, "")
    if isinstance(given, str):
        found = re.fullmatch(_ONE, given.strip())
        if found is None:
            raise InputError(f"{_EXPECTED}, got {given!r:.80}", field)
        unit = ROUNDS if found["unit"].startswith("round") else DAYS
        try:
            count = float(found["count"])
        except ValueError:
            count = found["count"]
    if unit not in (ROUNDS, DAYS) or not (is_number(count) and count > 0):
        raise InputError(f"{_EXPECTED}, of a number of rounds or days above 0, got {given!r:.80}", field)
    return HalfLife(float(count), unit)
