"""Objectives: what arms are scored on, and how people write them down."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from pamo.errors import InputError


@dataclass(slots=True, frozen=True)
class Objective:
    """What an arm is scored on: its scale as people give it, and whether less of it is better.

    >>> price = Objective("price", 0, 500, lower_is_better=True)
    >>> price.normalised(100)
    0.8
    """

    name: str
    low: float = 0.0
    high: float = 1.0
    lower_is_better: bool = False

    def normalised(self, value: float) -> float:
        """Return the value on a scale from 0 (worst) to 1 (best)."""
        share = (value - self.low) / (self.high - self.low)
        return 1.0 - share if self.lower_is_better else share


ObjectiveLike = str | Mapping[str, object] | Objective

_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_TEXT = re.compile(
    rf"(?P<name>[^:,]+?)\s*(?::\s*(?P<low>{_NUMBER})\s*(?:\.\.|–|to)\s*(?P<high>{_NUMBER}))?"
    r"\s*(?:,\s*(?P<better>lower|higher) is better)?"
)


def objective(given: ObjectiveLike) -> Objective:
    """Return the objective that a name, a line of text, a mapping or an `Objective` declares.

    >>> objective("price: 0..500, lower is better")
    Objective(name='price', low=0.0, high=500.0, lower_is_better=True)
    >>> objective({"name": "taste", "low": 1, "high": 5})
    Objective(name='taste', low=1, high=5, lower_is_better=False)
    """
    one: Any = given  # callers may not have been type-checked
    if isinstance(given, Objective):
        return given
    if isinstance(given, Mapping):
        names = [field.name for field in fields(Objective)]
        if "name" not in given or not set(given) <= set(names):
            raise InputError(f"expected an objective with {', '.join(names)}, got {dict(given)!r:.120}")
        return Objective(**given)  # type: ignore[arg-type]  # the store checks the values
    found = _TEXT.fullmatch(one.strip()) if isinstance(one, str) else None
    if found is None:
        raise InputError(
            "expected an objective such as 'taste', 'taste: 1..5' or 'price: 0..500, lower is better', "
            f"got {given!r:.80}"
        )
    low, high = (0.0, 1.0) if found["low"] is None else (float(found["low"]), float(found["high"]))
    return Objective(found["name"], low, high, found["better"] == "lower")


def objectives(given: Iterable[ObjectiveLike]) -> tuple[Objective, ...]:
    """Return the objectives that these declare."""
    if isinstance(given, str):
        raise InputError(f"expected a list of objectives, got the text {given!r:.80}: put it into a list")
    return tuple(objective(one) for one in given)
