"""The SQLite store's journal, as it is read: what is in the file, whether it is whole, and its fold.

The journal is one table, and everything else is an index on it or can be thrown away: the sums live in memory, and
beside the database lies a snapshot of them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from pamo.collecting import uncollected
from pamo.errors import DamagedError, StoreError
from pamo.store import snapshot as snapshots
from pamo.store.base import CLOSED, Event, Setup
from pamo.store.checksums import Chain, hidden, is_whole
from pamo.store.encoding import decode
from pamo.store.fold import Fold, RedeclaredError
from pamo.store.folded import FoldedStore
from pamo.store.folding import Folding
from pamo.store.sql import Questions, SqlStore, following
from pamo.store.sqlite_file import SNAPSHOT, apsw, lost_tail, sentences, with_ending

APPLICATION = 0x50414D4F  # "PAMO": SQLite's files say whose they are
FORMAT = 2

AMONG = "IN (SELECT value FROM json_each(?))"

FOLDED_AT_A_TIME = 5000
"""Events that a start reads, checks and adds together."""

ADVICE = (
    "keep a copy of the files; bring back a backup by `pamo store restore`, or go on with what is left by "
    "`pamo store rebuild --adopt-damage`"
)


class SqliteJournal(FoldedStore, SqlStore):
    """The journal in a SQLite file, read from the connection that may write, or from the other one meanwhile."""

    _ask = Questions("events", "user", "?", AMONG, more=", link, checksum", hidden=True)
    _fold: Any = None
    _owner: Any
    _read: Any
    _write: Any
    _page = 1000  # between pages no reader holds up the checkpoints
    _sealed = True
    """Whether the journal has checksums."""
    _declared: float = 0
    """The event that declared the objectives; 0 is the first."""
    _torn: tuple[str, ...] = ()
    """What is left out of the log, and was told to nobody."""

    def _place(self, path: Path) -> None:
        self.path = path
        self._file = path.resolve() if path.is_symlink() else path  # log and snapshot lie beside the file itself
        self.lock = threading.RLock()
        self._reading = threading.Lock()
        self._closed = False
        self._owner = self._write = self._read = None

    @property
    def _snapshot_path(self) -> Path:
        return with_ending(self._file, SNAPSHOT)

    def _is_empty(self) -> bool:
        return bool(next(self._write.execute("SELECT count(*) FROM sqlite_schema"))[0] == 0)

    def _version(self) -> int:
        """Return the file's format."""
        application, version = self._write.pragma("application_id"), self._write.pragma("user_version")
        if not self._is_empty() and application != APPLICATION:
            raise StoreError(f"{self.path} is a database, but not pamo's: give the path of a store, or of a new file")
        if version > FORMAT:
            raise StoreError(f"{self.path} has format {version}, and this pamo reads up to {FORMAT}: update pamo")
        return int(version)

    def _first_setup(self) -> Setup:
        """Return the objectives that the journal begins with."""
        first = next(self._write.execute(self._ask.first), None)
        if self._sealed and first is not None and (wrong := Chain(self._first_link).wrong(first)):
            raise self._is_damaged(wrong)
        return self._first(first, str(self.path))

    def _note_facts(self) -> None:
        facts = dict(self._write.execute("SELECT name, value FROM facts"))
        try:
            self._identity, self._erased = facts["identity"], int(facts["erased"])
        except (KeyError, ValueError) as error:
            raise self._is_damaged(f"its facts cannot be read ({error})") from None
        self._first_link = crc32(self._identity.encode())
        self._unclean: str | None = facts.get("unclean")
        """Why there may be more in the files than in the journal; "" is for names in the log alone."""

    def _kept(self) -> snapshots.Snapshot | None:
        """Return the snapshot, where there is one to use."""
        kept = snapshots.load(self._snapshot_path, self._identity)
        if kept is None or kept.erased != self._erased:  # one from before an erasure still knows the user
            return None
        place = "SELECT sequence, link FROM events WHERE sequence = ?"
        if (kept.fold.sequence, kept.link) not in self._write.execute(place, (kept.fold.sequence,)).fetchall():
            raise DamagedError(
                f"the snapshot of {self.path} goes up to event {kept.fold.sequence:,}, which the journal does not have "
                f"as it was: acknowledged events are missing: {ADVICE}"
            )
        return kept

    def _restore(self, kept: snapshots.Snapshot | None) -> Fold:
        """Return the fold of the whole journal: the snapshot's and the events after it, each of which is checked."""
        begun = kept or snapshots.Snapshot(Fold(self.setup, self._declared), self._first_link)
        self.setup, self._declared = begun.fold.setup, begun.fold.declared
        try:
            return self._restore_from(begun)
        except RedeclaredError as found:
            self.setup, self._declared = found.setup, found.sequence
            return self._restore(None)

    def _restore_from(self, kept: snapshots.Snapshot) -> Fold:
        fold, before, _ = kept
        snapshot_at, chain, folding = fold.sequence, Chain(before), Folding(fold)
        with uncollected():  # looking for cycles among millions of rows takes as long again
            read = self._write.execute
            for rows in following(lambda after: list(read(self._ask.page, (after, FOLDED_AT_A_TIME))), fold.sequence):
                if self._sealed and not chain.holds(rows):
                    raise self._is_damaged(next(filter(None, map(chain.wrong, rows)), "its checksums do not fit"))
                folding.add(rows)
        self._link, self._snapshot_at = chain.link, snapshot_at
        return fold

    # What is wrong with it

    def _is_damaged(self, wrong: str) -> DamagedError:
        return DamagedError(f"{self.path} is damaged, {wrong}: {ADVICE}")

    def _lost_log(self) -> str:
        return f"the log of {self.path} is damaged, and acknowledged events in it are missing"

    def _lost_in_log(self) -> list[str]:
        """Return whether there is more in the log than SQLite took."""
        next(self._write.execute("SELECT count(*) FROM sqlite_schema"))  # the log is taken at the first question
        taken = max(self._write.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0], 0)
        lost = lost_tail(self._file, taken)
        if lost is None:
            self._torn = (
                f"the last transaction in the log of {self.path} is torn, and is left out: after a power cut that is "
                "as it should be, since nobody was told of it; otherwise look after the disk",
            )
            logging.getLogger(__name__).warning("%s", *self._torn)
        return [self._lost_log()] if lost else []

    def _event(self, row: Sequence[Any], read: Callable[..., Event] = decode) -> Event:
        if self._sealed and not is_whole(row):
            raise self._is_damaged(f"event {row[0]} is not what was recorded")
        return super()._event(row, read)

    def _wrong(self, after: int) -> Callable[[Sequence[Any]], str]:
        if not self._sealed:
            return super()._wrong(after)
        before = self._rows("SELECT link FROM events WHERE sequence <= ? ORDER BY sequence DESC LIMIT 1", (after,))
        return Chain(before[0][0] if before else self._first_link).wrong

    def unsealed(self) -> int:
        """Return how many events have no checksum, which are all of a file that is older than these."""
        return 0 if self._sealed else int(self._rows("SELECT count(*) FROM events")[0][0])

    def sound(self) -> bool:
        """Tell whether SQLite finds its file and indexes intact."""
        return not self._damage("integrity")

    def _damage(self, check: str) -> list[str]:
        found = [row[0] for row in self._rows(f"PRAGMA {check}_check")]
        return [] if found == ["ok"] else found

    def _trouble(self) -> str | None:
        return None if os.access(self._file, os.W_OK) else f"{self.path} cannot be written to"

    # Asking it

    def _rows(self, statement: str, bindings: Sequence[Any] = ()) -> list[Any]:
        if self._closed:
            raise StoreError(CLOSED)
        with self._reading, sentences(f"read {self.path}"):
            return list(self._read.execute(statement, bindings))

    def _by(self, name: str) -> tuple[Any, ...]:
        return hidden(name, self._first_link), name

    def _disconnect(self, *, snapshot: bool) -> None:
        for connection in (self._read, self._write, self._owner):
            if connection is not None:
                with self._reading, contextlib.suppress(apsw.Error):
                    connection.close()
