"""An index from names to rows that is several times smaller than a dict: a million users have to fit.

All names lie in one buffer. A table of row numbers, by the names' hashes, finds them (open addressing).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pamo.compiling import entry, kernel

ABSENT = -1
DEAD = -1
"""The hash of a row whose name was taken away: Python's hash() never returns it."""
RECENT = 1 << 14
"""Names that were asked for lately and are found at once: who is decided for gives feedback next. Some 3 MB."""


@entry
def _place(hashes: Any, first: int, table: Any) -> None:
    """Put the rows of these hashes, from the first on, into a table: each in the first free slot from its own on."""
    mask = len(table) - 1
    for row in range(first, len(hashes)):
        slot = hashes[row] & mask
        while table[slot] >= 0:
            slot = (slot + 1) & mask
        table[slot] = row


@entry
def _find(wanted: Any, lengths: Any, sought: Any, text: Any, starts: Any, hashes: Any, table: Any, rows: Any) -> None:
    """Write the rows of names, which lie one after another in `sought`, given their hashes and lengths."""
    mask, first = len(table) - 1, 0
    for k in range(len(wanted)):
        slot, rows[k] = wanted[k] & mask, ABSENT
        while rows[k] < 0 and table[slot] >= 0:
            row = table[slot]
            slot = (slot + 1) & mask
            if hashes[row] != wanted[k] or starts[row + 1] - starts[row] != lengths[k]:
                continue
            place = 0
            while place < lengths[k] and text[starts[row] + place] == sought[first + place]:
                place += 1
            if place == lengths[k]:
                rows[k] = row
        first += lengths[k]


@kernel
def _comes_first(text: Any, starts: Any, left: int, right: int) -> bool:
    """Tell whether one row's name comes before another's, by their bytes."""
    for place in range(min(starts[left + 1] - starts[left], starts[right + 1] - starts[right])):
        a, b = text[starts[left] + place], text[starts[right] + place]
        if a != b:
            return bool(a < b)
    return bool(starts[left + 1] - starts[left] < starts[right + 1] - starts[right])


@entry
def _find_first(text: Any, starts: Any, hashes: Any, numbers: Any, prefix: Any, found: Any) -> int:
    """Write the rows whose names begin so, those of the highest numbers first, and return how many were written."""
    count = 0
    for row in range(len(hashes)):
        start = starts[row]
        if hashes[row] == DEAD or starts[row + 1] - start < len(prefix):
            continue
        same = True
        for place in range(len(prefix)):
            if text[start + place] != prefix[place]:
                same = False
                break
        if not same:
            continue
        place = count
        while place > 0:
            other = found[place - 1]
            if numbers[other] > numbers[row]:
                break
            if numbers[other] == numbers[row] and _comes_first(text, starts, other, row):
                break
            place -= 1
        if place == len(found):
            continue
        count = min(count + 1, len(found))
        for later in range(count - 1, place, -1):
            found[later] = found[later - 1]
        found[place] = row
    return count


class Names:
    """Names, each with the row that it got when it was added; rows count up from 0.

    >>> names = Names()
    >>> names.add("ann"), names.add("bob"), names.find("bob"), names.find("cyd")
    (0, 1, 1, -1)
    """

    def __init__(self) -> None:
        self._text = bytearray()
        self._starts = array("q", [0])
        self._hashes = array("q")
        self._dead = 0
        self._recent: dict[str, int] = {}
        self._make_table(64)

    @classmethod
    def of(cls, text: bytes, lengths: npt.NDArray[np.int64]) -> Names:
        """Return the index of names that lie one after another in `text`."""
        names = cls()
        names._text = bytearray(text)
        names._starts = array("q", np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64).tobytes())
        starts = names._starts
        names._hashes = array("q", [hash(text[starts[row] : starts[row + 1]].decode()) for row in range(len(lengths))])
        names._make_table(_slots(len(lengths)))
        return names

    @property
    def rows(self) -> int:
        """How many rows were ever given out."""
        return len(self._hashes)

    def __len__(self) -> int:
        return len(self._hashes) - self._dead

    def __iter__(self) -> Iterator[str]:
        for row in range(self.rows):
            if self._hashes[row] != DEAD:
                yield self._name(row)

    def find(self, name: str) -> int:
        """Return the name's row, or −1 if there is none."""
        known = self._recent.get(name)
        if known is not None:
            return known
        wanted = hash(name)
        slot, table, hashes = wanted & self._mask, self._view, self._hashes
        while (row := table[slot]) >= 0:
            if hashes[row] == wanted and self._text[self._starts[row] : self._starts[row + 1]] == name.encode():
                if len(self._recent) == RECENT:
                    self._recent.clear()
                self._recent[name] = row
                return row
            slot = (slot + 1) & self._mask
        return ABSENT

    def find_many(self, names: list[str]) -> npt.NDArray[np.int64]:
        """Return the rows of names, −1 for each that is not there."""
        rows: npt.NDArray[np.int64] = np.empty(len(names), dtype=np.int64)
        texts = [name.encode() for name in names]
        _find(
            np.fromiter(map(hash, names), np.int64, len(names)),
            np.fromiter(map(len, texts), np.int64, len(names)),
            np.frombuffer(b"".join(texts), dtype=np.uint8),
            np.frombuffer(self._text, dtype=np.uint8),
            np.frombuffer(self._starts, dtype=np.int64),
            np.frombuffer(self._hashes, dtype=np.int64),
            np.asarray(self._view),
            rows,
        )
        return rows

    def add(self, name: str) -> int:
        """Give a name that is not there yet the next row."""
        row = self.rows
        self._text += name.encode()
        self._starts.append(len(self._text))
        self._hashes.append(hash(name))
        if 2 * self.rows > len(self._view):
            self._make_table(_slots(self.rows))
        else:
            slot = self._hashes[row] & self._mask
            while self._view[slot] >= 0:
                slot = (slot + 1) & self._mask
            self._view[slot] = row
        return row

    def add_many(self, names: list[str]) -> None:
        """Give names, all different and none of them there yet, the next rows."""
        first, texts = self.rows, [name.encode() for name in names]
        ends = np.cumsum([len(text) for text in texts]) + len(self._text)
        self._text += b"".join(texts)
        self._starts.frombytes(ends.astype(np.int64).tobytes())
        self._hashes.extend([hash(name) for name in names])
        if 2 * self.rows > len(self._view):
            self._make_table(_slots(self.rows))
        else:
            _place(np.array(self._hashes, dtype=np.int64), first, np.asarray(self._view))

    def drop(self, row: int) -> None:
        """Take a row's name away; the row is not given out again."""
        start, end = self._starts[row], self._starts[row + 1]
        self._text[start:end] = bytes(end - start)
        self._recent.clear()
        self._hashes[row] = DEAD
        self._dead += 1

    def living(self) -> npt.NDArray[np.bool_]:
        """Tell for each row whether it has a name."""
        alive: npt.NDArray[np.bool_] = np.array(self._hashes, dtype=np.int64) != DEAD
        return alive

    def starts(self) -> npt.NDArray[np.int64]:
        """Return where each row's name begins in `text`, and where the last one ends."""
        return np.array(self._starts, dtype=np.int64)

    def text(self, start: int, end: int) -> npt.NDArray[np.uint8]:
        """Return a copy of a part of all names, which lie one after another."""
        return np.frombuffer(self._text[start:end], dtype=np.uint8)

    def finder(self, prefix: str, limit: int) -> Callable[[npt.NDArray[np.float64]], list[tuple[str, int]]]:
        """Return what finds names that begin so, given a number for each row: those of the highest numbers first.

        It works on a copy, so that nobody who adds names has to wait for it.
        """
        text, starts = bytes(self._text), np.array(self._starts, dtype=np.int64)
        hashes = np.array(self._hashes, dtype=np.int64)

        def find(numbers: npt.NDArray[np.float64]) -> list[tuple[str, int]]:
            found: npt.NDArray[np.int64] = np.empty(limit, dtype=np.int64)
            wanted = np.frombuffer(prefix.encode(), dtype=np.uint8)
            count = _find_first(np.frombuffer(text, dtype=np.uint8), starts, hashes, numbers, wanted, found)
            return [(text[starts[row] : starts[row + 1]].decode(), int(row)) for row in found[:count].tolist()]

        return find

    def _name(self, row: int) -> str:
        return self._text[self._starts[row] : self._starts[row + 1]].decode()

    def _make_table(self, slots: int) -> None:
        table: Any = np.full(slots, ABSENT, dtype=np.int32)
        self._mask = slots - 1
        _place(np.array(self._hashes, dtype=np.int64), 0, table)
        self._view = memoryview(table)  # indexing a view is three times as fast as indexing an array


def _slots(rows: int) -> int:
    """Return a power of two with room to spare: full tables are slow ones."""
    slots = 64
    while slots < 4 * rows:
        slots *= 2
    return slots
