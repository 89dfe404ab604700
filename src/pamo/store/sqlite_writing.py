"""How the SQLite store writes: events with their checksums in one statement, the log, and the snapshot.

An event is acknowledged after `fsync` returned; if a write ever fails, the store stops, since after a failed `fsync`
nobody knows what is on the disk.
"""

from __future__ import annotations

import contextlib
import logging
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from pamo.errors import DamagedError, InputError, StoreError
from pamo.store import snapshot as snapshots
from pamo.store.base import CLOSED, Declared, Event, Receipt, Setup
from pamo.store.checksums import Chain, checksum, hidden, link
from pamo.store.encoding import DECISION, decode, encode, from_json, rows_of, to_json
from pamo.store.fold import Fold
from pamo.store.ledger import Ledger, named, runs
from pamo.store.rules import NOT_EMPTY, Checker, Entry
from pamo.store.sql import BackwardsError, following, pages
from pamo.store.sqlite_file import BUSY, apsw, inode_of, sentences
from pamo.store.sqlite_reading import APPLICATION, FORMAT, SqliteJournal

COLUMNS = {"link": "INTEGER", "checksum": "INTEGER", "who": "INTEGER", "request": "INTEGER"}
"""What format 1 did not have: `pamo.store.checksums`, and numbers that stand for a decision's user and key."""
SCHEMA = f"""
CREATE TABLE events (
    sequence INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    decision TEXT,
    user TEXT,
    key TEXT,
    body TEXT NOT NULL,
    {", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())}
) STRICT;
CREATE UNIQUE INDEX events_decision ON events (decision, kind) WHERE decision IS NOT NULL;
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
PRAGMA application_id = {APPLICATION};
"""

# Feedback is found through its decision: an index over it as well would have each feedback rewrite one more page. Users
# and keys are in no index but as numbers: where SQLite moves what is in an index from page to page, it leaves copies.
INDEXES = f"""
DROP INDEX IF EXISTS events_user;
DROP INDEX IF EXISTS decisions_user;
DROP INDEX IF EXISTS events_key;
CREATE INDEX events_who ON events (who) WHERE who IS NOT NULL;
CREATE INDEX events_request ON events (request) WHERE request IS NOT NULL;
PRAGMA user_version = {FORMAT};
"""
UPGRADE = "".join(f"ALTER TABLE events ADD COLUMN {name} {kind};" for name, kind in COLUMNS.items())

# A batch takes a handful of statements, however many events it has: each gives the interpreter away and has to win it
# back, which in a busy process takes far longer than the statement.
FIND = """
SELECT json_group_array(json_array(sequence, kind, decision, user, key, body, link, checksum)) FROM (
    SELECT events.* FROM json_each(?1) AS wanted CROSS JOIN events ON events.decision = wanted.value
    UNION
    SELECT events.* FROM json_each(?2) AS wanted CROSS JOIN events ON events.request = wanted.value ->> 0
    WHERE events.key = wanted.value ->> 1
)
"""
WIDTH = 6 + len(COLUMNS)
INTO = f"INSERT INTO events (sequence, kind, decision, user, key, body, {', '.join(COLUMNS)})"
INSERT = f"{INTO} SELECT {', '.join(f'value ->> {place}' for place in range(WIDTH))} FROM json_each(?1)"
BOUND = 64
"""Events up to which a batch is bound value by value, in a third of the time, by a statement for each size."""
INSERT_BOUND = [f"{INTO} VALUES " + ", ".join([f"({', '.join('?' * WIDTH)})"] * size) for size in range(BOUND + 1)]
REWRITE = """
UPDATE events SET (user, key, body, link, checksum, who, request) = (
    value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7
) FROM json_each(?1) WHERE sequence = value ->> 0
"""
ACTIVITY = "CREATE TABLE IF NOT EXISTS activity (at INTEGER PRIMARY KEY, sums TEXT NOT NULL) STRICT"

Result = TypeVar("Result")


class SqliteWriting(SqliteJournal):
    """Writes the journal in a SQLite file, from one thread."""

    _failed: StoreError | None = None
    _files: dict[Path, tuple[int, int] | None]
    """What the files were when they were opened, whatever their names."""
    _aside: ThreadPoolExecutor | None = None
    """Does what takes long, one thing after another and in steps, between which the writer serves others."""
    _pressing: set[object]
    """Those who wait for what is done aside."""
    _saving = False
    """Whether a snapshot was asked for that is not written yet."""
    _snapshot_every: int
    _checkpoint_pages: int
    _log_pages = 0
    _moved = False
    """Whether an event takes more room than before, as one of a very short name may: the file is then written anew."""

    # The journal's form

    def _begin(self, setup: Setup) -> None:
        """Make the tables in an empty file, and begin the journal."""
        with self._transaction():
            self._write.execute(SCHEMA)
            self._write.execute(INDEXES)
            self._write.execute("INSERT INTO facts VALUES ('identity', ?), ('erased', '0')", (uuid.uuid4().hex,))
            self._note_facts()
            self._link = self._first_link
            self._insert([(1, setup)])

    def _upgrade(self) -> None:
        """Give a journal of format 1 what it lacks, and no copies of names on pages where nobody looks."""
        with self._transaction():
            self._write.execute(UPGRADE)
            self._seal(adopt=False)
            self._write.execute(INDEXES)
            self._write.execute("INSERT INTO facts VALUES ('unclean', 'pages')")
        self._unclean = "pages"

    def _adopt(self) -> None:
        """Go on with what is left of a damaged journal."""
        snapshots.remove(self._snapshot_path)
        with self._transaction():
            try:
                self._seal(adopt=True)
            except BackwardsError as error:
                raise DamagedError(
                    f"{self.path} cannot be gone on with: {error}; bring back a backup by `pamo store restore`"
                ) from error

    def _seal(self, *, adopt: bool) -> None:
        """Write the links and checksums of all events anew; adopt: and drop those that cannot be read or folded."""
        log = logging.getLogger(__name__)
        text = ", ".join(f"CAST({name} AS BLOB)" for name in ("kind", "decision", "user", "key", "body"))
        page = f"SELECT sequence, {text}, link, checksum FROM events WHERE sequence > ? ORDER BY sequence LIMIT ?"
        before, chain, fold = self._first_link, Chain(self._first_link), None
        for rows in following(lambda after: list(self._write.execute(page, (after, self._page))), -1 << 63):
            changed = []
            for sequence, *columns, kept, summed in rows:
                try:
                    row: Any = [None if part is None else part.decode() for part in columns]
                    kind, decision, user, key, body = row
                    if adopt:
                        event = decode(kind, decision, user, key, body)
                        if isinstance(event, Declared):
                            fold = Fold(event.setup)  # by which what follows can be folded
                        fold = Fold(event) if fold is None else fold  # type: ignore[arg-type]  # the first is the setup
                        fold.apply(event)
                except Exception as error:
                    if fold is None:
                        raise DamagedError(f"the objectives of {self.path} cannot be read: {error}") from error
                    log.warning("%s: event %d cannot be read, and is dropped: %s", self.path, sequence, error)
                    self._write.execute("DELETE FROM events WHERE sequence = ?", (sequence,))
                    continue
                wrong = chain.wrong((sequence, kind, decision, user, key, body, kept, summed)) if adopt else ""
                if wrong:
                    log.warning("%s: %s, and is adopted as it is", self.path, wrong)
                before = link(before, sequence, kind, decision)
                own = checksum(before, kind, decision, user, key, body)
                if (before, own) != (kept, summed):
                    changed.append((sequence, user, key, body, before, own, *self._numbers(kind, user, key)))
            self._write.execute(REWRITE, (to_json(changed),))

    # Events

    def _commit(self, events: list[Event]) -> list[Receipt]:
        return self._doing(lambda: [receipt for run in runs(events) for receipt in self._append(run)])

    def _doing(self, task: Callable[[], Result]) -> Result:
        """Write, and stop the store if that fails: after a failed write nobody knows what is on the disk."""
        if self._failed is not None:
            raise self._failed
        try:
            result = task()
            if (gone := self._gone()) is not None:  # what went into a file without a name is lost with the process
                raise StoreError(gone)
        except BaseException as error:
            raise self._stop(error) from error
        return result

    def _gone(self) -> str | None:
        for path, inode in self._files.items():
            found = inode_of(path)
            if found != inode:
                return f"{path} was {'deleted' if found is None else 'replaced'} while the store was open"
        return None

    def _stop(self, error: BaseException) -> StoreError:
        """Take no more events."""
        self._failed = StoreError(
            f"writing to {self.path} failed ({error}), and what is on the disk is not known now, so the store has "
            "stopped: look after the disk, then open the store again"
        )
        return self._failed

    @property
    def stopped(self) -> bool:
        """Whether a write failed: nobody knows what is on the disk until it is read anew."""
        return self._failed is not None

    def _trouble(self) -> str | None:
        if self._failed is not None:
            return str(self._failed)
        return self._gone() or super()._trouble()

    def _append(self, events: list[Event]) -> list[Receipt]:
        fold = self._fold
        ledger = Ledger(fold.scales, self._ages, fold.arm_states, fold.features, fold, user_features=fold.user_features)
        ledger.experiments = fold.groups.experiments
        ids, keys = named(events)
        if ids:
            wanted = to_json([self._by(key) for key in keys])
            (found,) = self._write.execute(FIND, (to_json(ids), wanted))
            ledger.fill((row[0], self._event(row)) for row in rows_of(found[0]))
            self._leave_out(ledger.entries)
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

    @abstractmethod
    def _leave_out(self, entries: dict[str, Entry]) -> None:
        """Take who is being erased out of what a batch is judged by."""

    def _insert(self, records: list[tuple[int, Event]]) -> None:
        rows, before = [], self._link
        for sequence, event in records:
            row = encode(event)
            before = link(before, sequence, row.kind, row.decision)
            rows.append((sequence, *row, before, checksum(before, *row), *self._numbers(row.kind, row.user, row.key)))
        if len(rows) <= BOUND:
            self._write.execute(INSERT_BOUND[len(rows)], [value for row in rows for value in row])
        else:
            self._write.execute(INSERT, (to_json(rows),))
        self._link = before

    def _numbers(self, kind: str, user: str | None, key: str | None) -> tuple[int | None, int | None]:
        """Return what stands in the indexes for the user and the key of an event."""
        return (hidden(user, self._first_link), hidden(key, self._first_link)) if kind == DECISION else (None, None)

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

    def _take_over(self, events: Iterable[tuple[int, Event]]) -> int:
        count = 0
        if self._fold.sequence > 1:
            raise InputError(NOT_EMPTY)
        with sentences(f"write {self.path}"), self._transaction():
            self._write.execute("DELETE FROM events")
            self._link = self._first_link
            for page in pages(events, self._page):
                self._insert(page)
                count += len(page)
        self.setup, self._declared = self._first_setup(), 0
        self.began = self.setup
        self._fold_again()
        self._checker = Checker(self.setup, self._features_of)
        return count

    def _declare(self, setup: Setup, at: float) -> None:
        sequence = self._fold.sequence + 1
        self._doing(lambda: self._insert([(sequence, Declared(setup, at))]))
        self.setup, self._declared = setup, sequence
        self._fold_again()

    def _fold_again(self) -> None:
        with sentences(f"read {self.path}"):
            fold = self._restore(None)  # damage is found before anything is thrown away
            self._count_again()
        snapshots.remove(self._snapshot_path)
        with self.lock:
            self._fold = fold

    def rebuild(self) -> None:
        """Throw snapshot and sums away, and fold the journal."""
        self._aside_of_others(lambda: self._writer.call(self._fold_again)).result()

    # What went on, by time: a table that is there once something was counted, and a fact that says up to where

    def counted(self) -> int:
        """Return up to which event what went on is counted."""
        found = self._rows("SELECT value FROM facts WHERE name = 'counted'")
        return int(found[0][0]) if found else 0

    def activity(self, since: int) -> dict[int, list[float]]:
        """Return what went on from a time on."""
        if not self.counted():
            return {}
        rows = self._rows("SELECT at, sums FROM activity WHERE at >= ? ORDER BY at", (since,))
        return {at: from_json(sums) for at, sums in rows}

    def count(self, after: int, upto: int, rows: Mapping[int, Sequence[float]]) -> bool:
        """Add what some events come to."""

        def add() -> bool:
            with self._transaction():
                if self.counted() != after:
                    return False
                self._write.execute(ACTIVITY)
                for at, row in rows.items():
                    found = next(self._write.execute("SELECT sums FROM activity WHERE at = ?", (at,)), None)
                    old = [0.0] * len(row) if found is None else from_json(found[0])
                    sums = to_json([a + b for a, b in zip(old, row, strict=True)])
                    self._write.execute("INSERT OR REPLACE INTO activity VALUES (?, ?)", (at, sums))
                self._write.execute("INSERT OR REPLACE INTO facts VALUES ('counted', ?)", (str(upto),))
            return True

        return self._step(add)

    def _count_again(self) -> None:
        """Have all events counted anew."""
        with self._transaction():
            self._write.execute("DROP TABLE IF EXISTS activity")
            self._write.execute("DELETE FROM facts WHERE name = 'counted'")

    # The log

    def _between(self) -> None:
        """Look after the files between two batches, when those who waited have their receipts."""
        if self._failed is None:
            try:
                self._look_after_log()
            except apsw.Error as error:
                self._stop(error)
        due = self._fold.sequence - self._snapshot_at >= self._snapshot_every
        if due and self._failed is None and not self._saving and not self._pressing:
            self._saving = True
            with contextlib.suppress(StoreError):  # the store is being closed, which writes one itself
                self._aside_of_others(lambda: self._save_if_possible(self._writer.call))

    def _note_log(self, connection: Any, name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _look_after_log(self) -> None:
        """Carry the log over into the database, once it is long."""
        if self._log_pages < self._checkpoint_pages or (self._unclean is not None and self._empty_log()):
            return
        with contextlib.suppress(apsw.BusyError):  # a reader is at it: the next checkpoint will do
            self._write.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        self._log_pages = 0

    def _empty_log(self) -> bool:
        """Carry the whole log over into the database, and cut it; tell whether no file holds what was erased."""
        if not self._reading.acquire(timeout=0.02):
            return False
        try:
            if self._unclean == "pages":
                self._write.execute("VACUUM")
            self._write.set_busy_timeout(0)  # others would wait as well
            self._write.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            return False
        finally:
            self._write.set_busy_timeout(BUSY)
            self._reading.release()
        self._log_pages = 0
        if self._unclean is not None:
            self._write.execute("DELETE FROM facts WHERE name = 'unclean'")
            self._unclean = None
            self._moved = False
        return True

    # The snapshot

    def snapshot(self) -> None:
        """Write a snapshot now; others are served meanwhile."""
        self._aside_of_others(lambda: self._save(self._writer.call)).result()

    def _aside_of_others(self, task: Callable[[], Result]) -> Future[Result]:
        assert self._aside is not None
        try:
            return self._aside.submit(task)
        except RuntimeError:
            raise StoreError(CLOSED) from None

    def _step(self, task: Callable[[], Result]) -> Result:
        """Have the writer's thread do one step of something longer, between the batches of others."""
        return self._writer.call(lambda: self._doing(task))

    def _save_if_possible(self, do: Callable[[Callable[[], Any]], Any]) -> None:
        """Take a snapshot, unless somebody waits; without one the next start is slower, and nothing else."""

        before = self._snapshot_at

        def unless_pressed(step: Callable[[], Any]) -> Any:
            if self._pressing:
                raise InterruptedError("something else comes first")
            return do(step)

        try:
            self._save(unless_pressed)
        except StoreError as error:
            if isinstance(error.__cause__, InterruptedError):
                self._snapshot_at = before
            else:
                logging.getLogger(__name__).warning("%s", error)

    def _save(self, do: Callable[[Callable[[], Any]], Any]) -> None:
        def take() -> snapshots.Snapshot:
            self._snapshot_at = self._fold.sequence  # where it fails now, it is tried again much later
            return snapshots.Snapshot(self._fold, self._link, self._erased)

        try:
            snapshots.save_in_steps(take, self._snapshot_path, self._identity, do)
        except OSError as error:
            raise StoreError(f"the snapshot {self._snapshot_path} could not be written: {error}") from error
        finally:
            self._saving = False

    def _disconnect(self, *, snapshot: bool) -> None:
        if snapshot and self._failed is None and self._snapshot_at < self._fold.sequence:
            self._save_if_possible(lambda step: step())
        super()._disconnect(snapshot=snapshot)
