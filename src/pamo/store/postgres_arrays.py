"""Columns on their way to PostgreSQL: arrays in the form in which they go over the wire.

psycopg would write a list item by item, as text with every quote escaped, which takes longer than all the rest of a
batch; and the database would have to read it.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.errors import missing_extra

try:
    import psycopg
    from psycopg.adapt import Dumper
    from psycopg.pq import Format
except ImportError:
    raise missing_extra("the PostgreSQL store", "psycopg", "postgres") from None

__all__ = ["Numbers", "Places", "Texts", "psycopg", "register", "unpacked"]

_HEADER, _LENGTH = Struct("!iiIii"), Struct("!i")  # dimensions, whether any is null, the items' type, their number, 1
_NULL = _LENGTH.pack(-1)


class Texts(list[str | None]):
    """A column of texts."""


class Places(list[int]):
    """A column of whole numbers."""


class Numbers:
    """Rows of floats, one after another in one array."""

    def __init__(self, rows: Floats) -> None:
        self.flat = rows.reshape(-1)


def _fixed(values: Any, type_of: str, item: int) -> bytes:
    """Return numbers of eight bytes as an array."""
    items = np.empty(len(values), dtype=[("length", ">i4"), ("value", type_of)])
    items["length"], items["value"] = 8, values
    return _HEADER.pack(1, 0, item, len(values), 1) + items.tobytes()


def unpacked(arrays: bytes, width: int) -> Floats:
    """Return the rows of arrays of so many floats that the database has sent one after another (`array_send`)."""
    items = [("length", ">i4"), ("value", ">f8")]
    found = np.frombuffer(arrays, dtype=[("header", f"V{_HEADER.size}"), ("items", items, (width,))])
    return found["items"]["value"].astype(np.float64)


class _Texts(Dumper):
    format, oid = Format.BINARY, 1009

    def dump(self, obj: Texts) -> bytes:
        pack, items = _LENGTH.pack, [_NULL if text is None else text.encode() for text in obj]
        parts = [item if item is _NULL else pack(len(item)) + item for item in items]
        return _HEADER.pack(1, None in obj, 25, len(obj), 1) + b"".join(parts)


class _Places(Dumper):
    format, oid = Format.BINARY, 1016

    def dump(self, obj: Places) -> bytes:
        return _fixed(obj, ">i8", 20)


class _Numbers(Dumper):
    format, oid = Format.BINARY, 1022

    def dump(self, obj: Numbers) -> bytes:
        return _fixed(obj.flat, ">f8", 701)


def register(connection: Any) -> None:
    """Have a connection take such columns; it has to speak UTF-8."""
    for column, dumper in ((Texts, _Texts), (Places, _Places), (Numbers, _Numbers)):
        connection.adapters.register_dumper(column, dumper)
