"""A store in one SQLite file: the default. One process owns the file, and one thread of it writes.

The journal is one table, and everything else is an index on it or can be thrown away: the sums live in memory, and
beside the database lies a snapshot of them. An event is acknowledged after `fsync` returned; if a write ever fails, the
store stops, since after a failed `fsync` nobody knows what is on the disk.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from itertools import islice
from pathlib import Path
from typing import Any

from pamo.errors import InputError, StoreError
from pamo.store import snapshot as snapshots
from pamo.store.base import (
    EXPIRES_AFTER,
    ArmAdded,
    ArmRetired,
    DecisionMade,
    Event,
    FeedbackGiven,
    Made,
    Outcome,
    Receipt,
    Setup,
    UserErased,
)
from pamo.store.encoding import DECISION, FEEDBACK, SETUP, decode, decode_rows, encode, to_json
from pamo.store.fold import Fold
from pamo.store.folded import FoldedStore
from pamo.store.ledger import Ledger, named, runs, together
from pamo.store.rules import NOT_EMPTY, Checker, check_setup, redacted
from pamo.store.sqlite_file import (
    APPLICATION,
    COLUMNS,
    FEEDBACK_TO,
    FIND,
    FORMAT,
    INDEXES,
    INSERT,
    NEWEST,
    NEWEST_OF,
    OF_USER,
    SCHEMA,
    apsw,
    connect,
    own,
    replay,
    sentences,
)
from pamo.store.writer import Writer

PAGE = 1000
"""Events read or taken over at a time: between pages no reader holds up the checkpoints."""


class SqliteStore(FoldedStore):
    """Keeps the journal in a SQLite file, which it makes where there is none.

    setup: needed for a new store; for an old one it may be given, and must be the same. snapshot_every: events after
    which a snapshot is taken. synchronous, vfs and checkpoint_pages are for campaigns that show what they are good for.
    """

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
        self.path = Path(path)
        self.lock = threading.RLock()
        self._expires_after = expires_after
        self._snapshot_every = snapshot_every
        self._checkpoint_pages = checkpoint_pages
        self._log_pages = 0
        self._failed: StoreError | None = None
        self._closed = False
        self._owner = own(self.path)
        self._reading = threading.Lock()
        self._write: Any = None
        self._read: Any = None
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
            self._disconnect()
            raise
        self._snapshot_at = self._fold.sequence
        self._writer = Writer(self._commit, self._between)

    # Opening

    def _prepare(self, setup: Setup | None) -> Setup:
        """Return the objectives of the journal, which is begun here if the file is new."""
        application, version = self._write.pragma("application_id"), self._write.pragma("user_version")
        empty = next(self._write.execute("SELECT count(*) FROM sqlite_schema"))[0] == 0
        if not empty and application != APPLICATION:
            raise StoreError(f"{self.path} is a database, but not pamo's: give the path of a store, or of a new file")
        if version > FORMAT:
            raise StoreError(f"{self.path} has format {version}, and this pamo reads up to {FORMAT}: update pamo")
        if empty:
            if setup is None:
                raise InputError(f"{self.path} is new, and a new store needs its objectives: pass a setup")
            check_setup(setup)
            with self._transaction():
                self._write.execute(SCHEMA)
                self._write.execute("INSERT INTO facts VALUES ('identity', ?), ('erased', '0')", (uuid.uuid4().hex,))
                self._insert([(1, setup)])
            return setup
        (row,) = self._write.execute(f"{COLUMNS} WHERE sequence = 1 AND kind = ?", (SETUP,))
        kept = decode(*row[1:])
        assert isinstance(kept, Setup)
        check_setup(kept)
        if setup is not None and setup != kept:
            raise InputError(f"{self.path} was begun with other objectives: {kept}, and now came {setup}")
        return kept

    def _restore(self) -> Fold:
        """Return the fold of the whole journal: the snapshot's, where there is one to use, and the events after it."""
        facts = dict(self._write.execute("SELECT name, value FROM facts"))
        last = next(self._write.execute("SELECT max(sequence) FROM events"))[0]
        fold = snapshots.load(self._snapshot_path, self.setup, facts["identity"])
        # A snapshot from before an erasure still knows the user; one ahead of the journal belongs to a lost future.
        if fold is None or not int(facts["erased"]) <= fold.sequence <= last:
            fold = Fold(self.setup)
        self._identity = facts["identity"]
        replay(fold, self._write)
        fold.sequence = last
        return fold

    @property
    def _snapshot_path(self) -> Path:
        return self.path.with_name(self.path.name + ".snapshot.npz")

    # Writing

    def submit_many(self, events: Sequence[Event]) -> Future[list[Receipt]]:
        """Hand in events to be recorded together; the receipts come once they are durable."""
        for event in events:
            self._checker.check(event)
        return self._writer.submit(events)

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
        arms = self._fold.arm_states
        if any(isinstance(event, ArmAdded | ArmRetired) for event in events):
            arms = dict(arms)  # the ledger changes its own
        ledger = Ledger(self._fold.scales, self._expires_after, arms)
        ids, keys = named(events)
        if ids:
            (found,) = self._write.execute(FIND, (to_json(ids), to_json(keys)))
            ledger.fill(decode_rows(found[0]))
        receipts: list[Receipt] = []
        records: list[tuple[int, Event]] = []
        sequence = self._fold.sequence
        for event in events:
            receipt, record = ledger.take(event, sequence + 1)
            receipts.append(receipt)
            if record is not None:
                sequence += 1
                records.append((sequence, record))
        if records:
            # One statement is a transaction of its own: to begin and to commit would each be one more turn to wait for.
            self._insert(records)
            with self.lock:
                for sequence, record in records:
                    self._fold.apply(record, sequence)
        return receipts

    def _erase(self, event: UserErased) -> Receipt:
        rows = list(self._write.execute(OF_USER, (event.user,)))
        if not rows:
            return Receipt(Outcome.UNKNOWN, reason=f"there is no user {event.user!r}")
        sequence = self._fold.sequence + 1
        with self._transaction():
            for number, *row in rows:
                old: Any = decode(*row)
                body = encode(redacted(old)).body
                self._write.execute(
                    "UPDATE events SET user = NULL, key = NULL, body = ? WHERE sequence = ?", (body, number)
                )
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

    # Reading

    def _rows(self, statement: str, bindings: tuple[Any, ...]) -> list[Any]:
        if self._closed:
            raise StoreError("this store is closed")
        with self._reading, sentences(f"read {self.path}"):
            return list(self._read.execute(statement, bindings))

    def events(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Yield the journal's events, a page at a time."""
        while rows := self._rows(f"{COLUMNS} WHERE sequence > ? ORDER BY sequence LIMIT {PAGE}", (after,)):
            for sequence, *row in rows:
                yield sequence, decode(*row)
            after = rows[-1][0]

    def history(self, user: str) -> Iterator[tuple[int, Event]]:
        """Yield the decisions for a user and their feedback."""
        for sequence, *row in self._rows(OF_USER, (user,)):
            yield sequence, decode(*row)

    def decisions_of(self, user: str, limit: int, before: int | None = None) -> list[Made]:
        """Return a user's decisions with their feedback, the newest first."""
        made = self._rows(NEWEST_OF, (user, NEWEST if before is None else before, limit))
        given = self._rows(FEEDBACK_TO, (to_json([row[2] for row in made]),))
        return together([(row[0], decode(*row[1:])) for row in made], [decode(*row[1:]) for row in given])

    def decision(self, decision_id: str) -> DecisionMade | None:
        """Return a decision."""
        event = self._one(decision_id, DECISION)
        return event if isinstance(event, DecisionMade) else None

    def decision_for(self, key: str) -> DecisionMade | None:
        """Return the decision that was made under a key."""
        rows = self._rows(f"{COLUMNS} WHERE key = ?", (key,))
        event = decode(*rows[0][1:]) if rows else None
        return event if isinstance(event, DecisionMade) else None

    def feedback(self, decision_id: str) -> FeedbackGiven | None:
        """Return the feedback to a decision."""
        event = self._one(decision_id, FEEDBACK)
        return event if isinstance(event, FeedbackGiven) else None

    def _one(self, decision_id: str, kind: str) -> Event | None:
        rows = self._rows(f"{COLUMNS} WHERE decision = ? AND kind = ?", (decision_id, kind))
        return decode(*rows[0][1:]) if rows else None

    # Looking after it

    def trouble(self) -> str | None:
        """Return what made the store stop."""
        if self._closed:
            return "this store is closed"
        return None if self._failed is None else str(self._failed)

    def snapshot(self) -> None:
        """Write a snapshot now; what is handed in meanwhile waits for it."""
        self._writer.call(self._save)

    def rebuild(self) -> None:
        """Throw snapshot and sums away, and fold the journal."""

        def fold_again() -> None:
            snapshots.remove(self._snapshot_path)
            fold = self._restore()
            with self.lock:
                self._fold = fold

        self._writer.call(fold_again)

    def sound(self) -> bool:
        """Tell whether SQLite finds its file and indexes intact."""
        return self._rows("PRAGMA integrity_check", ()) == [("ok",)]

    def load(self, events: Iterable[tuple[int, Event]]) -> int:
        """Take over another journal, in one transaction."""
        count = 0

        def take_over() -> None:
            nonlocal count
            if self._fold.sequence > 1:
                raise InputError(NOT_EMPTY)
            with sentences(f"write {self.path}"), self._transaction():
                self._write.execute("DELETE FROM events")
                rest = iter(events)
                while page := list(islice(rest, PAGE)):
                    self._insert(page)
                    count += len(page)
            fold_again = self._restore()
            with self.lock:
                self._fold = fold_again

        self._writer.call(take_over)
        return count

    def close(self, *, snapshot: bool = True) -> None:
        """Finish what was handed in, take a snapshot unless told otherwise, and let go of the file."""
        if self._closed:
            return
        self._writer.close()
        self._closed = True
        if self._failed is None and snapshot and self._snapshot_at < self._fold.sequence:
            self._save_if_possible()
        self._disconnect()

    def _disconnect(self) -> None:
        for connection in (self._read, self._write, self._owner):
            if connection is not None:
                with self._reading, contextlib.suppress(apsw.Error):
                    connection.close()
