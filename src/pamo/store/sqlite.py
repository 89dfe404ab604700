"""A store in one SQLite file: the default. One process owns the file, and one thread of it writes.

The journal is one table, and everything else is an index on it or can be thrown away: the sums live in memory, and
beside the database lies a snapshot of them. An event is acknowledged after `fsync` returned; if a write ever fails, the
store stops, since after a failed `fsync` nobody knows what is on the disk.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from pamo.errors import InputError, StoreError
from pamo.store import snapshot as snapshots
from pamo.store.base import CLOSED, EXPIRES_AFTER, Event, Outcome, Receipt, Setup, UserErased
from pamo.store.encoding import decode_rows, encode, to_json
from pamo.store.fold import Fold
from pamo.store.folded import FoldedStore
from pamo.store.ledger import Ledger, named, nobody, runs
from pamo.store.rules import NOT_EMPTY, Checker
from pamo.store.setups import plain_setup
from pamo.store.sql import Questions, SqlReader, SqlStore, pages
from pamo.store.sqlite_file import SNAPSHOT, apsw, beside, connect, own, sentences, with_ending
from pamo.store.writer import Writer

APPLICATION = 0x50414D4F  # "PAMO": SQLite's files say whose they are
FORMAT = 1
SCHEMA = f"""
CREATE TABLE events (
    sequence INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    decision TEXT,
    user TEXT,
    key TEXT,
    body TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_decision ON events (decision, kind) WHERE decision IS NOT NULL;
CREATE UNIQUE INDEX events_key ON events (key) WHERE key IS NOT NULL;
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
"""

# Feedback is found through its decision: an index over it as well would have each feedback rewrite one more page. Files
# of before have such a one.
INDEXES = """
DROP INDEX IF EXISTS events_user;
CREATE INDEX IF NOT EXISTS decisions_user ON events (user) WHERE user IS NOT NULL AND kind = 'decision';
"""

# A batch takes a handful of statements, however many events it has: each gives the interpreter away and has to win it
# back, which in a busy process takes far longer than the statement.
FIND = """
SELECT json_group_array(json_array(sequence, kind, decision, user, key, body)) FROM (
    SELECT events.* FROM json_each(?1) AS wanted CROSS JOIN events ON events.decision = wanted.value
    UNION
    SELECT events.* FROM json_each(?2) AS wanted CROSS JOIN events ON events.key = wanted.value
)
"""
INSERT = """
INSERT INTO events (sequence, kind, decision, user, key, body)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 FROM json_each(?1)
"""


class SqliteStore(FoldedStore, SqlStore):
    """Keeps the journal in a SQLite file, which it makes where there is none.

    setup: needed for a new store; for an old one it may be given, and must be the same. snapshot_every: events after
    which a snapshot is taken. synchronous, vfs and checkpoint_pages are for campaigns that show what they are good for.
    """

    _ask = Questions("events", "user", "?")
    _owner: Any
    _read: Any
    _write: Any
    _page = 1000  # between pages no reader holds up the checkpoints

    def __init__(
        self,
        path: str | Path,
        setup: Setup | None = None,
        *,
        expires_after: float = EXPIRES_AFTER,
        snapshot_every: int = 500_000,
        synchronous: str = "FULL",
        vfs: str | None = None,
        checkpoint_pages: int = 4000,
    ) -> None:
        self._place(Path(path))
        if setup is None and vfs is None and not self.path.exists():
            raise self._is_new()  # before there is a file
        self._expires_after = expires_after
        self._snapshot_every = snapshot_every
        self._checkpoint_pages = checkpoint_pages
        self._log_pages = 0
        self._failed: StoreError | None = None
        self._owner = own(self.path)
        try:
            with sentences(f"open {self.path}"):
                self._write = connect(self.path, vfs, writing=True)
                self._write.pragma("journal_mode", "wal")
                self._write.pragma("synchronous", synchronous)
                self._write.pragma("fullfsync", True)  # where fsync alone does not reach the disk (macOS)
                self._write.pragma("checkpoint_fullfsync", True)
                self._write.pragma("secure_delete", True)  # what was erased is overwritten
                # Left to itself, SQLite checkpoints before a commit returns, and says nothing if it fails.
                self._write.wal_autocheckpoint(0)
                self._write.set_wal_hook(self._note_log)
                self.setup = self._prepare(setup)
                self._write.execute(INDEXES)
                self._read = connect(self.path, vfs, writing=False)
                self._checker = Checker(self.setup)
                self._fold = self._restore()
        except BaseException:
            self._disconnect(snapshot=False)
            raise
        self._writer = Writer(self._commit, self._between)

    # Opening

    @classmethod
    @contextlib.contextmanager
    def begun(cls, address: str, setup: Setup) -> Iterator[Self]:
        """Yield the store in a file; a new one is filled in a file beside, which takes its name when all is done."""
        path = Path(address)
        with contextlib.nullcontext(path) if path.exists() else beside(path) as place, cls(place, setup) as store:
            yield store

    def _place(self, path: Path) -> None:
        self.path = path
        self.lock = threading.RLock()
        self._reading = threading.Lock()
        self._closed = False
        self._owner = self._write = self._read = None

    def _is_new(self) -> InputError:
        return InputError(f"{self.path} is new, and a new store needs its objectives: pass a setup")

    def _prepare(self, setup: Setup | None) -> Setup:
        """Return the objectives of the journal, which is begun here if the file is new."""
        application, version = self._write.pragma("application_id"), self._write.pragma("user_version")
        empty = next(self._write.execute("SELECT count(*) FROM sqlite_schema"))[0] == 0
        if not empty and application != APPLICATION:
            raise StoreError(f"{self.path} is a database, but not pamo's: give the path of a store, or of a new file")
        if version > FORMAT:
            raise StoreError(f"{self.path} has format {version}, and this pamo reads up to {FORMAT}: update pamo")
        setup = None if setup is None else plain_setup(setup)
        if not empty:
            return self._agreed(next(self._write.execute(self._ask.first), None), setup, str(self.path))
        if setup is None:
            raise self._is_new()
        with self._transaction():
            self._write.execute(SCHEMA)
            self._write.execute("INSERT INTO facts VALUES ('identity', ?), ('erased', '0')", (uuid.uuid4().hex,))
            self._insert([(1, setup)])
        return setup

    def _restore(self) -> Fold:
        """Return the fold of the whole journal: the snapshot's, where there is one to use, and the events after it."""
        facts = dict(self._write.execute("SELECT name, value FROM facts"))
        last = next(self._write.execute("SELECT max(sequence) FROM events"))[0]
        fold = snapshots.load(self._snapshot_path, self.setup, facts["identity"])
        # A snapshot from before an erasure still knows the user; one ahead of the journal belongs to a lost future.
        if fold is None or not int(facts["erased"]) <= fold.sequence <= last:
            fold = Fold(self.setup)
        self._snapshot_at = fold.sequence
        self._identity = facts["identity"]
        self._replay(fold, self._write.execute)
        fold.sequence = last
        return fold

    @property
    def _snapshot_path(self) -> Path:
        return with_ending(self.path, SNAPSHOT)

    # Writing

    def _commit(self, events: list[Event]) -> list[Receipt]:
        if self._failed is not None:
            raise self._failed
        receipts: list[Receipt] = []
        try:
            for run in runs(events):
                erased = run[0]
                receipts += [self._erase(erased)] if isinstance(erased, UserErased) else self._append(run)
        except BaseException as error:
            raise self._stop(error) from error
        return receipts

    def _stop(self, error: BaseException) -> StoreError:
        """Take no more events: after a failed write nobody knows what is on the disk."""
        self._failed = StoreError(
            f"writing to {self.path} failed ({error}), and what is on the disk is not known now, so the store has "
            "stopped: look after the disk, then open the store again"
        )
        return self._failed

    def _append(self, events: list[Event]) -> list[Receipt]:
        ledger = Ledger(self._fold.scales, self._expires_after, self._fold.arm_states)
        ids, keys = named(events)
        if ids:
            (found,) = self._write.execute(FIND, (to_json(ids), to_json(keys)))
            ledger.fill(decode_rows(found[0]))
        first = self._fold.sequence + 1
        receipts, events = ledger.judge(events, first)
        if events:
            records = list(enumerate(events, start=first))
            # One statement is a transaction of its own: to begin and to commit would each be one more turn to wait for.
            self._insert(records)
            with self.lock:
                for sequence, record in records:
                    self._fold.apply(record, sequence)
        return receipts

    def _erase(self, event: UserErased) -> Receipt:
        sequence = self._fold.sequence + 1
        with self._transaction():
            if not self._redact(self._write.execute, event.user):
                return nobody(event)
            self._insert([(sequence, UserErased(None, event.at))])
            self._write.execute("UPDATE facts SET value = ? WHERE name = 'erased'", (str(sequence),))
        with self.lock:
            self._fold.erase(event.user or "")
            self._fold.sequence = sequence
        snapshots.remove(self._snapshot_path)
        self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE)  # the log held the name as well
        return Receipt(Outcome.RECORDED, sequence)

    def _insert(self, records: list[tuple[int, Event]]) -> None:
        self._write.execute(INSERT, (to_json([(sequence, *encode(event)) for sequence, event in records]),))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._write.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._write.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(apsw.Error):
                self._write.execute("ROLLBACK")
            raise

    def _between(self) -> None:
        """Look after the files between two batches, when those who waited have their receipts."""
        if self._failed is None and self._log_pages >= self._checkpoint_pages:
            try:
                self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)
            except apsw.Error as error:
                self._stop(error)
        if self._failed is None and self._fold.sequence - self._snapshot_at >= self._snapshot_every:
            self._save_if_possible()

    def _save_if_possible(self) -> None:
        """Take a snapshot; without one the next start is slower, and nothing else."""
        try:
            self._save()
        except StoreError as error:
            logging.getLogger(__name__).warning("%s", error)

    def _note_log(self, connection: Any, name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self, mode: int) -> None:
        """Carry the log over into the database."""
        with contextlib.suppress(apsw.BusyError):  # a reader is at it: the next checkpoint will do
            self._write.wal_checkpoint(mode=mode)
        self._log_pages = 0

    def _save(self) -> None:
        try:
            snapshots.save(self._fold, self._snapshot_path, self._identity)
        except OSError as error:
            raise StoreError(f"the snapshot {self._snapshot_path} could not be written: {error}") from error
        finally:
            self._snapshot_at = self._fold.sequence  # where it fails now, it is tried again much later

    def _take_over(self, events: Iterable[tuple[int, Event]]) -> int:
        count = 0
        if self._fold.sequence > 1:
            raise InputError(NOT_EMPTY)
        with sentences(f"write {self.path}"), self._transaction():
            self._write.execute("DELETE FROM events")
            for page in pages(events, self._page):
                self._insert(page)
                count += len(page)
        self._fold_again()
        return count

    def _fold_again(self) -> None:
        fold = self._restore()
        with self.lock:
            self._fold = fold

    # Reading, and looking after it

    def _rows(self, statement: str, bindings: Sequence[Any] = ()) -> list[Any]:
        if self._closed:
            raise StoreError(CLOSED)
        with self._reading, sentences(f"read {self.path}"):
            return list(self._read.execute(statement, bindings))

    @property
    def stopped(self) -> bool:
        """Whether a write failed: nobody knows what is on the disk until it is read anew."""
        return self._failed is not None

    def _trouble(self) -> str | None:
        if self._failed is None and not os.access(self.path, os.W_OK):
            return f"the disk with {self.path} takes no writes"
        return None if self._failed is None else str(self._failed)

    def snapshot(self) -> None:
        """Write a snapshot now; what is handed in meanwhile waits for it."""
        self._writer.call(self._save)

    def rebuild(self) -> None:
        """Throw snapshot and sums away, and fold the journal."""

        def start_over() -> None:
            snapshots.remove(self._snapshot_path)
            self._fold_again()

        self._writer.call(start_over)

    def sound(self) -> bool:
        """Tell whether SQLite finds its file and indexes intact."""
        return not self._damage("integrity")

    def _damage(self, check: str) -> list[str]:
        found = [row[0] for row in self._rows(f"PRAGMA {check}_check")]
        return [] if found == ["ok"] else found

    def _disconnect(self, *, snapshot: bool) -> None:
        if snapshot and self._failed is None and self._snapshot_at < self._fold.sequence:
            self._save_if_possible()
        for connection in (self._read, self._write, self._owner):
            if connection is not None:
                with self._reading, contextlib.suppress(apsw.Error):
                    connection.close()


class SqliteReader(SqlReader, SqliteStore):
    """The journal of a SQLite file and its sums, as they are when it is opened."""

    inspects = True

    def __init__(self, path: Path, *, alone: bool = True) -> None:
        self._place(path)
        self._owner = own(path) if alone else None
        try:
            with sentences(f"open {path}"):
                left = with_ending(path, "-wal").exists()
                # Not as read-only: the last such connection to close leaves a log and its index behind.
                self._read = self._write = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
                if left:  # the log of a process that was killed stays for the next one that writes
                    self._read.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                self._read.set_busy_timeout(10_000)
                self._read.pragma("query_only", True)
                self._read.execute("BEGIN")  # everything is read as of now
                if next(self._read.execute("SELECT count(*) FROM sqlite_schema"))[0] == 0:
                    raise InputError(f"there is no store at {path}: the file is empty")
                self.setup = self._prepare(None)
                self._fold = self._restore()
        except BaseException:
            self._disconnect(snapshot=False)
            raise

    @classmethod
    def of(cls, address: str, *, alone: bool) -> Self:
        """Open the store in a file that there is."""
        path = Path(address)
        if path.is_dir():
            raise InputError(f"expected the path of a store's file, got the folder {path}")
        if not path.exists():
            raise InputError(f"there is no store at {path}: give the path of one that was begun")
        return cls(path, alone=alone)

    def sizes(self) -> dict[str, int]:
        """Return the bytes of the database, of its log and of the snapshot."""
        parts = {"journal": self.path, "log": with_ending(self.path, "-wal"), "snapshot": self._snapshot_path}
        return {name: path.stat().st_size if path.exists() else 0 for name, path in parts.items()}

    def damage(self, *, quick: bool = False) -> list[str]:
        """Return what SQLite finds broken in its file."""
        return self._damage("quick" if quick else "integrity")

    @property
    def sequence(self) -> int:
        """The number of the last event."""
        return self._fold.sequence

    def snapshot_at(self) -> int | None:
        """Return up to which event the snapshot goes; 0 where there is none, None where it cannot be used."""
        if not self._snapshot_path.exists():
            return 0
        fold = snapshots.load(self._snapshot_path, self.setup, self._identity)
        return None if fold is None else fold.sequence
