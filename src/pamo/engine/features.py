"""Features of arms, or of users, as numbers: a column for each number and each yes or no, and one for each word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.contract.features import MOST_COLUMNS, MOST_WORDS, NUMBER, WORD, Feature
from pamo.priors import prepared


def table_of(arms: Sequence[Mapping[str, Any]], declared: Mapping[str, Feature]) -> tuple[list[str], Floats]:
    """Return the columns' names, and the features of arms, or of users, (arms, F), NaN where one is missing.

    >>> arms = [{"stars": 4.0, "style": "old"}, {"style": "new"}, {}]
    >>> names, table = table_of(arms, {"stars": Feature("stars"), "style": Feature("style", "word")})
    >>> names, table.tolist()
    (['stars', 'style: new', 'style: old'], [[4.0, 0.0, 1.0], [nan, 1.0, 0.0], [nan, nan, nan]])
    """
    names: list[str] = []
    columns: list[Any] = []
    by_name = {name: [arm.get(name) for arm in arms] for name in declared}
    words = _words({name: by_name[name] for name, feature in declared.items() if feature.kind == WORD}, len(declared))
    for name, feature in declared.items():
        values = by_name[name]
        if feature.kind == WORD:
            common = sorted(words[name])
            names += [f"{name}: {word}" for word in common]
            columns += [[np.nan if value is None else float(value == word) for value in values] for word in common]
        elif any(value is not None for value in values):
            names.append(name)
            columns.append([np.nan if value is None else float(value) for value in values])
    return names, np.array(columns, dtype=float).reshape(len(columns), len(arms)).T


def _words(values: Mapping[str, Sequence[Any]], declared: int) -> dict[str, list[str]]:
    """Return the words of each feature that count: the most common ones, as many of all together as there is room."""
    counts = {name: Counter(value for value in each if value is not None) for name, each in values.items()}
    common = [(-count, name, word) for name in counts for word, count in counts[name].most_common(MOST_WORDS)]
    found: dict[str, list[str]] = {name: [] for name in counts}
    for _, name, word in sorted(common)[: max(MOST_COLUMNS - (declared - len(counts)), 0)]:
        found[name].append(word)
    return found


def row_of(known: Mapping[str, Any], columns: Sequence[str], declared: Mapping[str, Feature]) -> Floats:
    """Return one's features by the columns of a table, (F,), NaN where one is missing.

    >>> row_of(
    ...     {"style": "old"}, ["stars", "style: new"], {"stars": Feature("stars"), "style": Feature("style", "word")}
    ... )
    array([nan,  0.])
    """
    row = np.full(len(columns), np.nan)
    for name, value in known.items():
        for place, column in enumerate(columns):
            if declared[name].kind == WORD and column.startswith(f"{name}: "):
                row[place] = float(column == f"{name}: {value}")
            elif column == name:
                row[place] = float(value)
    return row


def speaking_for(
    arms: Sequence[Mapping[str, Any]], declared: Mapping[str, Feature], worth: Floats, row: int, most: int = 2
) -> list[str]:
    """Return in words the features of an arm that make it worth more than others. worth: expected of each, (arms,).

    >>> arms = [{"stars": 5.0, "pool": True}, {"stars": 1.0, "pool": True}, {"stars": 3.0, "pool": False}]
    >>> kinds = {"stars": Feature("stars"), "pool": Feature("pool", "yes or no")}
    >>> speaking_for(arms, kinds, np.array([0.9, 0.1, 0.5]), 0)
    ['stars 5']
    """
    names, table = table_of(arms, declared)
    values = prepared(table, len(arms))
    if not names:
        return []
    shares = np.linalg.lstsq(values, worth - worth.mean(), rcond=None)[0] * values[row]
    told = []
    for place in np.argsort(-shares)[:most].tolist():
        if shares[place] > 0.1 * worth.std() and not np.isnan(table[row, place]):
            feature, _, word = names[place].partition(": ")
            value, kind = table[row, place], declared[feature].kind if feature in declared else NUMBER
            if kind == WORD and not value:
                continue  # what it is not says little
            said = f"{feature} {word}" if kind == WORD else feature if value else f"no {feature}"
            told.append(f"{feature} {value:g}" if kind == NUMBER else said)
    return told
