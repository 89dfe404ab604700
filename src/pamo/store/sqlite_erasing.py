"""How the SQLite store erases: in steps, between which others are served.

The user's events are rewritten some at a time, the snapshot is mended, and the log is emptied. What is still to be done
stands in the database, and is done at the next start.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

from pamo.errors import StoreError
from pamo.store import snapshot as snapshots
from pamo.store.base import Event, Outcome, Receipt, UserErased
from pamo.store.checksums import checksum
from pamo.store.encoding import encode, to_json
from pamo.store.ledger import nobody, runs
from pamo.store.rules import Entry, redacted
from pamo.store.snapshot import Doing
from pamo.store.sqlite_writing import REWRITE, SqliteWriting

AT_A_TIME = 100
"""Decisions, with their feedback, that are rewritten in one step of an erasure."""

LONGEST_PAUSE = 0.02
"""Seconds between two such steps at most: as long as the step took, so that others have half of the time."""

PATIENCE = 5.0
"""Seconds for which an erasure waits until nobody reads the log any more."""


def record_size(*columns: str | int | None) -> int:
    """Return the bytes that columns of a row take as SQLite keeps them.

    An event that takes no more room than before stays where it is, and so do all others on its page: to make room,
    SQLite would move them to other pages, and leave copies of them behind.
    """
    size = 0
    for value in columns:
        if isinstance(value, str):
            length = len(value.encode())
            size += length + (1 if length < 58 else 2 if length < 8186 else 3)  # the type says how long it is
        else:
            bits = 0 if value is None else value.bit_length()
            size += 1 + next(room for room, most in _ROOM if bits <= most) * (bits > 1)
    return size


_ROOM = ((1, 7), (2, 15), (3, 23), (4, 31), (6, 47))
"""Bytes of a whole number, and the bits that fit in."""


class Erasing(NamedTuple):
    """An erasure that was begun: of whom, in all events up to which, when it was asked for, and the mark before."""

    user: str
    mark: int
    at: float
    before: int


class SqliteErasing(SqliteWriting):
    """Takes users out of the journal in a SQLite file, down to the bytes."""

    _erasing: Erasing | None = None

    def submit_many(self, events: Sequence[Event]) -> Future[list[Receipt]]:
        """Hand in events to be recorded together; those with an erasure go in turn, and others in between."""
        checked = [self._checker.check(event) for event in events]
        if not any(isinstance(event, UserErased) for event in checked):
            return self._writer.submit(checked)
        future = self._aside_of_others(lambda: self._in_turn(checked))
        self._pressing.add(future)
        future.add_done_callback(self._pressing.discard)
        return future

    def _in_turn(self, events: list[Event]) -> list[Receipt]:
        receipts: list[Receipt] = []
        for run in runs(events):
            erased = run[0]
            receipts += [self._erase(erased)] if isinstance(erased, UserErased) else self._writer.submit(run).result()
        return receipts

    def _erase(self, event: UserErased) -> Receipt:
        if self._erasing is not None:  # what was begun before, and could not be finished
            self._carry_out(self._step)
        sequence = 0
        if self._step(lambda: self._begin_erasing(event)):
            sequence = self._carry_out(self._step)
        deadline = time.monotonic() + PATIENCE
        while self._unclean is not None and not self._step(self._empty_log):  # the log held the name as well
            if time.monotonic() > deadline or self._closed:
                raise StoreError(
                    f"the user is erased from the journal, but not yet from the log of {self.path}, which something "
                    "reads: that is done as soon as nobody does; ask again to be told"
                )
            time.sleep(0.02)
        return Receipt(Outcome.RECORDED, sequence) if sequence else nobody(event)

    def _begin_erasing(self, event: UserErased) -> bool:
        """Note whom to erase, so that a process that is killed meanwhile is followed by one that finishes."""
        one = Erasing(event.user or "", self._fold.sequence, event.at, self._erased)
        if not self._write.execute(f"{self._ask.made} LIMIT 1", self._by(one.user)).fetchall():
            return False
        notes = {"erasing": to_json(one), "unclean": self._unclean or "log", "erased": str(one.mark)}
        with self._transaction():
            self._write.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", notes.items())
        self._unclean, self._erased, self._erasing = notes["unclean"], one.mark, one
        with self.lock:
            self._fold.erase(one.user)
        return True

    def _finish_erasing(self) -> None:
        """Finish the erasure that the process before was at when it ended."""
        for (erasing,) in self._write.execute("SELECT value FROM facts WHERE name = 'erasing'").fetchall():
            self._erasing = Erasing(*json.loads(erasing))
            ((self._link,),) = self._write.execute("SELECT link FROM events ORDER BY sequence DESC LIMIT 1")
            self._carry_out(lambda step: step())

    def _carry_out(self, do: Doing) -> int:
        """Take the user who is to be erased out of journal and snapshot; return the number of the event for it."""
        began = time.monotonic()
        while changed := self._redacted_some():
            do(partial(self._rewrite, changed))
            time.sleep(min(time.monotonic() - began, LONGEST_PAUSE))  # others come first
            began = time.monotonic()
        self._forget_in_snapshot()
        return int(do(self._note_erased))

    def _redacted_some(self) -> list[tuple[Any, ...]]:
        """Return some of the user's events as they are to be from now on, worked out while others write."""
        assert self._erasing is not None
        user, mark = self._erasing[:2]
        some = f"{self._ask.made} AND sequence <= ? LIMIT ?"
        changed = []
        for row in self._rows(f"{self._ask.columns} WHERE decision IN ({some})", (*self._by(user), mark, AT_A_TIME)):
            old: Any = self._event(row)
            sequence, kind, decision, name, key, body, own, summed = row
            room = record_size(name, key, body, summed, *self._numbers(kind, name, key))
            new = encode(redacted(old)).body
            for spaces in range(max(room - record_size(None, None, new, summed, None, None), 0), -1, -1):
                padded = new + " " * spaces
                summed = checksum(own, kind, decision, None, None, padded)
                left = room - record_size(None, None, padded, summed, None, None)
                if left >= 0:
                    break
            self._moved = self._moved or left < 0
            changed.append((sequence, None, None, padded, own, summed, None, None))
        return changed

    def _rewrite(self, changed: list[tuple[Any, ...]]) -> None:
        if self._moved and self._unclean != "pages":
            self._write.execute("INSERT OR REPLACE INTO facts VALUES ('unclean', 'pages')")
            self._unclean = "pages"
        self._write.execute(REWRITE, (to_json(changed),))
        self._look_after_log()

    def _leave_out(self, entries: dict[str, Entry]) -> None:
        """Take the user who is being erased out of what a batch is judged by: what comes now has no name any more."""
        if (erasing := self._erasing) is None:
            return
        for name, entry in entries.items():
            if entry.decision.user == erasing.user and entry.sequence <= erasing.mark:
                parts = tuple((sequence, redacted(part)) for sequence, part in entry.parts)
                entries[name] = Entry(redacted(entry.decision), entry.sequence, parts)  # type: ignore[arg-type]

    def _empty_log(self) -> bool:
        """Empty the log once nobody is being erased: what is written for that would fill it again."""
        return self._erasing is None and super()._empty_log()

    def _forget_in_snapshot(self) -> None:
        """Take a user out of the snapshot, or throw that away if it cannot be done."""
        assert self._erasing is not None
        one = self._erasing
        if not snapshots.without(self._snapshot_path, one.user, one.mark, one.before):
            snapshots.remove(self._snapshot_path)

    def _note_erased(self) -> int:
        """Record that a user was erased."""
        assert self._erasing is not None
        ((sequence,),) = self._write.execute("SELECT max(sequence) + 1 FROM events")
        with self._transaction():
            self._insert([(sequence, UserErased(None, self._erasing.at))])
            self._write.execute("DELETE FROM facts WHERE name = 'erasing'")
        self._erasing = None
        with self.lock:
            if self._fold is not None:
                self._fold.sequence = sequence
        return int(sequence)

    def close(self, *, snapshot: bool = True) -> None:
        """Finish what was handed in, keep the sums unless told otherwise, and let go of the files."""
        if self._aside is not None:
            self._pressing.add(self)
            self._aside.shutdown()
            self._pressing.discard(self)
        super().close(snapshot=snapshot)
