"""Checksums of PostgreSQL's journal: one over each row, and for each worker a sum over the rows that it has written.

A chain would have workers wait for each other, since what comes next is known only when the one before has committed. A
sum needs no order: each transaction adds to its worker's how many events it has written, and Σ sequence · checksum. So
a row that is missing, added or moved shows in all of them together, and one that was changed in its own checksum as
well. Rows from before there were checksums have none, and are in no sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pamo.store.checksums import checksum

ADVICE = (
    "keep a copy by pg_dump; bring back a backup (docs/store.md), or go on with what is left by "
    "`pamo store rebuild --adopt-damage`"
)
SEALS = "SELECT coalesce(sum(events), 0)::bigint, coalesce(sum(places), 0) FROM pamo_seals"
UNSEALED = "SELECT count(*) FROM pamo_events WHERE checksum IS NULL"
ADD_SEAL = """
INSERT INTO pamo_seals AS old VALUES (%s, %s, %s) ON CONFLICT (shard) DO UPDATE
SET events = old.events + excluded.events, places = old.places + excluded.places
"""
SEAL_ANEW = """
INSERT INTO pamo_seals SELECT %s, count(checksum), coalesce(sum(sequence::numeric * checksum), 0) FROM pamo_events
"""


def sum_of(row: Sequence[Any]) -> int:
    """Return the checksum of kind, decision, user, key and body."""
    kind, decision, user, key, body = row
    return checksum(0, kind, decision, user, key, body)


class Sealed:
    """Looks at a journal's rows one after another, and in the end at all of them together."""

    def __init__(self, execute: Callable[..., Iterable[Any]], *, whole: bool) -> None:
        self._execute = execute
        self._kept = self._seals() if whole else None
        self.events, self.places = 0, 0

    def __call__(self, row: Sequence[Any]) -> str:
        """Say what is wrong with a row, "" where nothing is."""
        if row[6] is not None:
            self.events += 1
            self.places += row[0] * row[6]
        return wrong_with(row)

    def missing(self) -> str:
        """Say what is wrong with all rows together, unless others have written meanwhile."""
        if self._kept is None or self._kept != self._seals() or (self.events, self.places) == self._kept:
            return ""
        if self.events == self._kept[0]:
            return "the events are as many as were recorded, but not those"
        return f"the journal has {self.events:,} events with a checksum, and {self._kept[0]:,} were recorded"

    def _seals(self) -> Any:
        return next(iter(self._execute(SEALS)))


def wrong_with(row: Sequence[Any]) -> str:
    """Say what is wrong with one row by itself, "" where nothing is or where it has no checksum."""
    if row[6] is None or sum_of(row[1:6]) == row[6]:
        return ""
    return f"event {row[0]} is not what was recorded"
