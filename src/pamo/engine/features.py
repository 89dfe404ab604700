"""Arms' features as numbers: a column for each number and each yes or no, and one for each word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.contract.features import MOST_WORDS, WORD, Feature


def table_of(arms: Sequence[Mapping[str, Any]], declared: Mapping[str, Feature]) -> tuple[list[str], Floats]:
    """Return the columns' names, and the arms' features, (arms, F), NaN where one is missing.

    >>> arms = [{"stars": 4.0, "style": "old"}, {"style": "new"}, {}]
    >>> names, table = table_of(arms, {"stars": Feature("stars"), "style": Feature("style", "word")})
    >>> names, table.tolist()
    (['stars', 'style: new', 'style: old'], [[4.0, 0.0, 1.0], [nan, 1.0, 0.0], [nan, nan, nan]])
    """
    names: list[str] = []
    columns: list[Any] = []
    for name, feature in declared.items():
        values = [arm.get(name) for arm in arms]
        if feature.kind == WORD:
            words = Counter(value for value in values if value is not None)
            common = sorted(word for word, _ in words.most_common(MOST_WORDS))
            names += [f"{name}: {word}" for word in common]
            columns += [[np.nan if value is None else float(value == word) for value in values] for word in common]
        elif any(value is not None for value in values):
            names.append(name)
            columns.append([np.nan if value is None else float(value) for value in values])
    return names, np.array(columns, dtype=float).reshape(len(columns), len(arms)).T
