"""What a value may be, as engine, stores, service and client agree on it."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

from pamo.contract.objectives import Objective
from pamo.errors import InputError

LONGEST = 256
"""Characters of the longest id, name or key."""

LARGEST = sys.float_info.max

HEAVIEST = 1e6
"""The largest weight of a preference, either way: squares of weights are summed, and the sums must stay exact."""

MOST_ARMS = 1_000_000
"""The largest k, and the most arms that are answered at once."""

MOST_ROWS = 500
"""The most rows of a page."""


def check_text(value: Any, what: str, field: str) -> None:
    """Raise `InputError` unless this may be an id, a name or a key."""
    if type(value) is str and 0 < len(value) <= LONGEST:
        if value.isascii() and "\0" not in value:
            return
        try:
            if b"\0" not in value.encode():  # PostgreSQL has no NUL, and no database has half a surrogate pair
                return
        except UnicodeEncodeError:
            pass
    raise InputError(f"expected {what} of 1 to {LONGEST} characters, none of them NUL, got {value!r:.80}", field)


def check_user(user: Any) -> None:
    """Raise `InputError` unless this may be a user."""
    check_text(user, "a user", "user")


def check_preference(given: Any, names: Collection[str]) -> None:
    """Raise `InputError` unless this is a weight for every objective."""
    if not isinstance(given, Mapping) or len(given) != len(names) or any(name not in given for name in names):
        raise InputError(
            f"expected in preference a weight for every objective ({', '.join(names)}), got {given!r:.80}", "preference"
        )
    for name, value in given.items():
        check_weight(name, value)


def check_weight(name: str, value: Any) -> None:
    """Raise `InputError` unless this may be an objective's weight."""
    if not (is_number(value) and abs(value) <= HEAVIEST):
        raise InputError(
            f"expected preference.{name} to be a number from {-HEAVIEST:g} to {HEAVIEST:g}, got {value!r:.80}",
            f"preference.{name}",
        )


def check_score(objective: Objective, value: Any, field: str) -> None:
    """Raise `InputError` unless this is a number on an objective's scale."""
    if not (is_number(value) and objective.low <= value <= objective.high):
        raise InputError(
            f"expected {objective.name} to be a number from {objective.low:g} to {objective.high:g}, got {value!r:.80}",
            field,
        )


def is_number(value: Any) -> bool:
    """Tell whether this is a finite number."""
    if type(value) is float:
        return -LARGEST <= value <= LARGEST
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):  # Decimal is no Real to Python
        return False
    try:
        return -LARGEST <= float(value) <= LARGEST
    except (OverflowError, ValueError):  # a whole number past all floats; a NaN that signals
        return False
