"""Values as JSON has them: it knows no NaN and no infinity, so that what is not defined is null."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def plain(value: Any) -> Any:
    """Return the value with None for every number in it that is not finite.

    >>> plain({"mean": 2.0, "low": float("nan"), "trials": [1, float("inf")]})
    {'mean': 2.0, 'low': None, 'trials': [1, None]}
    """
    if isinstance(value, float):  # most of what there is, and the others cost more to tell
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def to_json(value: Any, **options: Any) -> str:
    """Return the value as a JSON document; what is not a finite number in it is null."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, **options)
