"""From values to JSON and paths, and from JSON to values: what cannot travel is said before it is sent."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypeVar, cast
from urllib.parse import quote

from pamo.contract.limits import check_text
from pamo.errors import InputError

T = TypeVar("T")


def segment(text: Any, what: str, field: str) -> str:
    """Return an id as one segment of a path.

    >>> segment("hotels/Zoë", "an arm", "arm")
    'hotels%2FZo%C3%AB'
    >>> segment("..", "a user", "user")
    '%2E%2E'
    """
    check_text(text, what, field)
    if text in (".", ".."):
        return str(text.replace(".", "%2E"))  # as they are, they would lead to another path
    return quote(text, safe="")


def body(fields: Mapping[str, Any]) -> bytes:
    """Return the fields that are not None as JSON.

    >>> body({"user": "ann", "arms": ("A", "B"), "preference": None})
    b'{"user":"ann","arms":["A","B"]}'
    """
    kept = {name: _plain(value, name) for name, value in fields.items() if value is not None}
    return json.dumps(kept, separators=(",", ":"), allow_nan=False).encode()


def reader(kind: type[T]) -> Callable[[bytes], T]:
    """Return what reads JSON as a dataclass, and raises `ValueError` for anything else; unknown fields are ignored."""

    def read(content: bytes) -> T:
        answer: T = _decoder(cast("Hashable", kind)).decode(content)
        return answer

    return read


@functools.cache
def _decoder(kind: Any) -> Any:
    import msgspec

    return msgspec.json.Decoder(kind)


def _plain(value: Any, where: str) -> Any:
    """Return a value as JSON has it, or raise `InputError` with the place where JSON has no such value."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, str):
        if value.isascii() or _is_whole(value):
            return value
        raise InputError(f"expected {where} to be text without half a surrogate pair, got {value!r:.80}", where)
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        raise InputError(f"expected {where} to be a finite number, got {value!r}: leave out what is not known", where)
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise InputError(f"expected {where} by name, got the name {name!r:.80}", where)
        return {_plain(name, f"a name in {where}"): _plain(one, f"{where}.{name}") for name, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [_plain(one, f"{where}[{place}]") for place, one in enumerate(value)]
    if isinstance(value, Integral):  # NumPy's numbers are none of Python's
        return int(value)
    if isinstance(value, Real):
        return _plain(float(value), where)
    raise InputError(f"expected {where} to be text, a number, a list or a mapping, got {value!r:.80}", where)


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
