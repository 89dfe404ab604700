"""Features: what is known of an arm, or of a user, before anything is seen of it, and how people write them down."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from pamo.contract.limits import check_text, is_number
from pamo.errors import InputError, unknown_name

NUMBER, YES_OR_NO, WORD = "number", "yes or no", "word"
KINDS = (NUMBER, YES_OR_NO, WORD)
"""What a feature may be: numbers count as they are, yes as 1 and no as 0, and each word is a yes or no of its own."""

MOST_WORDS = 50
"""The most words of a feature that count: the rest, the rarest of them, are as if they were missing."""

MOST_FEATURES, MOST_COLUMNS = 100, 100
"""The most features that arms may have, and the most numbers, answers and words of them that count, all together."""

FeatureValue = bool | float | str


@dataclass(slots=True, frozen=True)
class Feature:
    """What is known of arms, or of users, beforehand: a name, and whether it is a number, a yes or no, or a word."""

    name: str
    kind: str = NUMBER


FeatureLike = str | Mapping[str, object] | Feature

_TEXT = re.compile(rf"(?P<name>[^:,]+?)\s*(?::\s*(?P<kind>{'|'.join(KINDS)}))?")


def feature(given: FeatureLike) -> Feature:
    """Return the feature that a name, a line of text, a mapping or a `Feature` declares.

    >>> feature("pool: yes or no"), feature("stars").kind
    (Feature(name='pool', kind='yes or no'), 'number')
    """
    one: Any = given  # callers may not have been type-checked
    if isinstance(one, Mapping):
        names = [field.name for field in fields(Feature)]
        if "name" not in one or not set(one) <= set(names):
            raise InputError(f"expected a feature with {' and '.join(names)}, got {dict(one)!r:.120}", "features")
        one = Feature(**one)
    found = _TEXT.fullmatch(one.strip()) if isinstance(one, str) else None
    if found is not None:
        one = Feature(found["name"], found["kind"] or NUMBER)
    if not isinstance(one, Feature) or one.kind not in KINDS:
        raise InputError(
            f"expected a feature such as 'stars: number', 'pool: yes or no' or 'style: word', got {given!r:.80}",
            "features",
        )
    check_text(one.name, "a feature's name", "features")
    return one


def features(given: Iterable[FeatureLike]) -> tuple[Feature, ...]:
    """Return the features that these declare, each name once."""
    if isinstance(given, str):
        raise InputError(f"expected a list of features, got the text {given!r:.80}: put it into a list", "features")
    found = tuple(feature(one) for one in given)
    if len({one.name for one in found}) < len(found):
        raise InputError(
            f"expected features of different names, got {', '.join(one.name for one in found):.120}", "features"
        )
    return found


def written(one: Feature) -> str:
    """Return a feature as people write it."""
    return f"{one.name}: {one.kind}"


def checked_features(
    given: Any, known: Mapping[str, Feature], field: str = "features"
) -> dict[str, FeatureValue | None]:
    """Return features as plain values; raise `InputError` for one that is not declared or of another kind."""
    if not isinstance(given, Mapping):
        raise InputError(f"expected features by name, got {given!r:.80}", field)
    found: dict[str, FeatureValue | None] = {}
    for name, value in given.items():
        one = known.get(name)
        if one is None:
            raise unknown_name("feature", str(name), known, field)
        place = f"{field}.{name}"
        if value is None:  # it is not known any more
            found[name] = None
        elif one.kind == YES_OR_NO:
            if not isinstance(value, bool):
                raise InputError(f"expected {name} to be yes or no, true or false, got {value!r:.80}", place)
            found[name] = value
        elif one.kind == WORD:
            check_text(value, f"{name} to be a word", place)
            found[name] = value
        else:
            if not is_number(value):
                raise InputError(f"expected {name} to be a number, got {value!r:.80}", place)
            found[name] = float(value)
    return found
