"""A store in one SQLite file: the default. One process owns the file, and one thread of it writes.

The journal is one table, and everything else is an index on it or can be thrown away: the sums live in memory, and
beside the database lies a snapshot of them. An event is acknowledged after `fsync` returned; if a write ever fails, the
store stops, since after a failed `fsync` nobody knows what is on the disk.

An erasure goes in steps, between which others are served: the user's events are rewritten some at a time, the snapshot
is mended, and the log is emptied. What is still to be done stands in the database, and is done at the next start.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar
from zlib import crc32

from pamo.errors import DamagedError, InputError, InUseError, StoreError
from pamo.store import snapshot as snapshots
from pamo.store.base import CLOSED, EXPIRES_AFTER, Event, Outcome, Receipt, Setup, UserErased
from pamo.store.checksums import Chain, checksum, hidden, is_whole, link
from pamo.store.encoding import DECISION, decode, encode, rows_of, to_json
from pamo.store.fold import Fold
from pamo.store.folded import FoldedStore
from pamo.store.ledger import Ledger, named, nobody, runs
from pamo.store.rules import NOT_EMPTY, Checker, Entry, redacted
from pamo.store.setups import plain_setup
from pamo.store.sql import Questions, SqlReader, SqlStore, pages
from pamo.store.sqlite_file import (
    BUSY,
    LOG,
    SNAPSHOT,
    Owner,
    apsw,
    beside,
    connect,
    inode_of,
    lost_header,
    lost_tail,
    sentences,
    traces,
    with_ending,
)
from pamo.store.writer import Writer

APPLICATION = 0x50414D4F  # "PAMO": SQLite's files say whose they are
FORMAT = 2
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
INSERT = f"""
INSERT INTO events (sequence, kind, decision, user, key, body, {", ".join(COLUMNS)})
SELECT {", ".join(f"value ->> {place}" for place in range(10))} FROM json_each(?1)
"""
REWRITE = """
UPDATE events SET (user, key, body, link, checksum, who, request) = (
    value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7
) FROM json_each(?1) WHERE sequence = value ->> 0
"""

ERASED_AT_A_TIME = 500
"""Decisions, with their feedback, that are rewritten in one step of an erasure."""

PATIENCE = 5.0
"""Seconds for which an erasure waits until nobody reads the log any more."""

ADVICE = (
    "keep a copy of the files; bring back a backup by `pamo store restore`, or go on with what is left by "
    "`pamo store rebuild --adopt-damage`"
)

Result = TypeVar("Result")


class Erasing(NamedTuple):
    """An erasure that was begun: of whom, in all events up to which, when it was asked for, and the mark before."""

    user: str
    mark: int
    at: float
    before: int


class SqliteStore(FoldedStore, SqlStore):
    """Keeps the journal in a SQLite file, which it makes where there is none.

    setup: needed for a new store; for an old one it may be given, and must be the same. snapshot_every: events after
    which a snapshot is taken. adopt_damage: whether to go on with what is left where some of the journal is damaged or
    missing. synchronous, vfs and checkpoint_pages are for campaigns that show what they are good for.
    """

    _ask = Questions("events", "user", "?", more=", link, checksum", hidden=True)
    _fold: Any = None
    _eraser: ThreadPoolExecutor | None
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
        adopt_damage: bool = False,
    ) -> None:
        self._place(Path(path))
        if vfs is None and not self.path.exists():  # before there is a file
            if found := traces(self._file):
                raise self._was_here(found)
            if setup is None:
                raise self._is_new()
        self._expires_after = expires_after
        self._snapshot_every = snapshot_every
        self._checkpoint_pages = checkpoint_pages
        self._log_pages = 0
        self._saving = threading.Lock()
        self._owner = Owner(self._file)
        try:
            with sentences(f"open {self.path}"):
                damaged = [self._lost_log()] if lost_header(self._file) else []
                self._write = connect(self._file, vfs, writing=True)
                self._write.pragma("journal_mode", "wal")
                self._write.pragma("synchronous", synchronous)
                self._write.pragma("fullfsync", True)  # where fsync alone does not reach the disk (macOS)
                self._write.pragma("checkpoint_fullfsync", True)
                self._write.pragma("secure_delete", True)  # what was erased is overwritten
                # Left to itself, SQLite checkpoints before a commit returns, and says nothing if it fails.
                self._write.wal_autocheckpoint(0)
                self._write.set_wal_hook(self._note_log)
                damaged += self._lost_in_log()
                if damaged and not adopt_damage:
                    raise DamagedError(f"{damaged[0]}: {ADVICE}")
                self.setup = self._prepare(setup, adopt_damage)
                self._owner.hold()
                self._finish_erasing()
                kept = self._kept()
                if kept is None:  # it may know users who were erased since
                    snapshots.remove(self._snapshot_path)
                self._fold = self._restore(kept)
                self._read = connect(self._file, vfs, writing=False)
                self._checker = Checker(self.setup)
                self._empty_log()
                self._files = {path: inode_of(path) for path in (self._file, with_ending(self._file, LOG))}
        except BaseException:
            self._disconnect(snapshot=False)
            raise
        self._writer = Writer(self._commit, self._between)
        self._eraser = ThreadPoolExecutor(1, "pamo-eraser")

    # Opening

    @classmethod
    def adopting(cls, address: str) -> Self:
        """Open the store in a file, and go on with what is left of a journal that is damaged."""
        return cls(existing(address), adopt_damage=True)

    @classmethod
    @contextlib.contextmanager
    def begun(cls, address: str, setup: Setup) -> Iterator[Self]:
        """Yield the store in a file; a new one is filled in a file beside, which takes its name when all is done."""
        path = Path(address)
        with contextlib.nullcontext(path) if path.exists() else beside(path) as place, cls(place, setup) as store:
            yield store

    def _place(self, path: Path) -> None:
        self.path = path
        self._file = path.resolve() if path.is_symlink() else path  # log and snapshot lie beside the file itself
        self.lock = threading.RLock()
        self._reading = threading.Lock()
        self._closed = False
        self._failed: StoreError | None = None
        self._erasing: Erasing | None = None
        self._eraser = None
        self._owner = self._write = self._read = None

    def _is_new(self) -> InputError:
        return InputError(f"{self.path} is new, and a new store needs its objectives: pass a setup")

    def _was_here(self, found: list[str]) -> DamagedError:
        return DamagedError(
            f"there was a store at {self.path}: its file is gone or empty, and {', '.join(found)} is still there. "
            "Bring the file back, such as a backup by `pamo store restore`, or remove that too to begin an empty store"
        )

    def _prepare(self, setup: Setup | None, adopt_damage: bool = False) -> Setup:
        """Return the objectives of the journal, which is begun here if the file is new."""
        application, version = self._write.pragma("application_id"), self._write.pragma("user_version")
        empty = next(self._write.execute("SELECT count(*) FROM sqlite_schema"))[0] == 0
        if not empty and application != APPLICATION:
            raise StoreError(f"{self.path} is a database, but not pamo's: give the path of a store, or of a new file")
        if version > FORMAT:
            raise StoreError(f"{self.path} has format {version}, and this pamo reads up to {FORMAT}: update pamo")
        setup = None if setup is None else plain_setup(setup)
        if empty:
            if self._snapshot_path.exists():
                raise self._was_here([self._snapshot_path.name])
            if setup is None:
                raise self._is_new()
            with self._transaction():
                self._write.execute(SCHEMA)
                self._write.execute(INDEXES)
                self._write.execute("INSERT INTO facts VALUES ('identity', ?), ('erased', '0')", (uuid.uuid4().hex,))
                self._note_facts()
                self._link = self._first_link
                self._insert([(1, setup)])
            return setup
        self._note_facts()
        if version < FORMAT:
            self._upgrade()
        if adopt_damage:
            self._adopt()
        first = next(self._write.execute(self._ask.first), None)
        if self._sealed and first is not None and (wrong := Chain(self._first_link).wrong(first)):
            raise self._is_damaged(wrong)
        return self._agreed(first, setup, str(self.path))

    def _note_facts(self) -> None:
        facts = dict(self._write.execute("SELECT name, value FROM facts"))
        try:
            self._identity, self._erased = facts["identity"], int(facts["erased"])
        except (KeyError, ValueError) as error:
            raise self._is_damaged(f"its facts cannot be read ({error})") from None
        self._first_link = crc32(self._identity.encode())
        self._unclean: str | None = facts.get("unclean")
        """Why there may be more in the files than in the journal; "" is for names in the log alone."""

    def _is_damaged(self, wrong: str) -> DamagedError:
        return DamagedError(f"{self.path} is damaged, {wrong}: {ADVICE}")

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
            self._seal(adopt=True)

    def _seal(self, *, adopt: bool) -> None:
        """Write the links and checksums of all events anew; adopt: and drop those that cannot be read or folded."""
        log = logging.getLogger(__name__)
        text = ", ".join(f"CAST({name} AS BLOB)" for name in ("kind", "decision", "user", "key", "body"))
        page = f"SELECT sequence, {text}, link, checksum FROM events WHERE sequence > ? ORDER BY sequence LIMIT ?"
        after, before, chain, fold = -1 << 63, self._first_link, Chain(self._first_link), None
        while rows := list(self._write.execute(page, (after, self._page))):
            after, changed = rows[-1][0], []
            for sequence, *columns, kept, summed in rows:
                try:
                    row: Any = [None if part is None else part.decode() for part in columns]
                    kind, decision, user, key, body = row
                    if adopt:
                        event = decode(kind, decision, user, key, body)
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

    def _finish_erasing(self) -> None:
        """Finish the erasure that the process before was at when it ended."""
        for (erasing,) in self._write.execute("SELECT value FROM facts WHERE name = 'erasing'").fetchall():
            self._erasing = Erasing(*json.loads(erasing))
            ((self._link,),) = self._write.execute("SELECT link FROM events ORDER BY sequence DESC LIMIT 1")
            self._carry_out(lambda step: step())

    def _kept(self) -> snapshots.Snapshot | None:
        """Return the snapshot, where there is one to use."""
        kept = snapshots.load(self._snapshot_path, self.setup, self._identity)
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
        fold, before, _ = kept or snapshots.Snapshot(Fold(self.setup), self._first_link)
        snapshot_at, chain = fold.sequence, Chain(before)
        while rows := list(self._write.execute(self._ask.page, (fold.sequence, self._page))):
            for row in rows:
                if self._sealed and (wrong := chain.wrong(row)):
                    raise self._is_damaged(wrong)
                if row[1] == DECISION:  # of decisions only the number matters to the sums
                    fold.decisions += 1
                else:
                    fold.apply(decode(*row[1:6]), row[0])
            fold.sequence = rows[-1][0]
        self._link, self._snapshot_at = chain.link, snapshot_at
        return fold

    _sealed = True
    """Whether the journal has checksums."""
    _torn: tuple[str, ...] = ()

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

    @property
    def _snapshot_path(self) -> Path:
        return with_ending(self._file, SNAPSHOT)

    # Writing

    def submit_many(self, events: Sequence[Event]) -> Future[list[Receipt]]:
        """Hand in events to be recorded together; those with an erasure go in turn, and others in between."""
        checked = [self._checker.check(event) for event in events]
        if not any(isinstance(event, UserErased) for event in checked):
            return self._writer.submit(checked)
        if self._closed:
            raise StoreError(CLOSED)
        assert self._eraser is not None
        return self._eraser.submit(self._in_turn, checked)

    def _in_turn(self, events: list[Event]) -> list[Receipt]:
        receipts: list[Receipt] = []
        for run in runs(events):
            erased = run[0]
            receipts += [self._erase(erased)] if isinstance(erased, UserErased) else self._writer.submit(run).result()
        return receipts

    def _commit(self, events: list[Event]) -> list[Receipt]:
        return self._doing(lambda: self._append(events))

    def _step(self, task: Callable[[], Result]) -> Result:
        """Have the writer's thread do one step of something longer, between the batches of others."""
        return self._writer.call(lambda: self._doing(task))

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

    def _append(self, events: list[Event]) -> list[Receipt]:
        ledger = Ledger(self._fold.scales, self._expires_after, self._fold.arm_states)
        ids, keys = named(events)
        if ids:
            wanted = to_json([self._by(key) for key in keys])
            (found,) = self._write.execute(FIND, (to_json(ids), wanted))
            ledger.fill((row[0], self._event(row)) for row in rows_of(found[0]))
            if self._erasing is not None:
                self._leave_out(ledger.entries, self._erasing)
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

    def _insert(self, records: list[tuple[int, Event]]) -> None:
        rows, before = [], self._link
        for sequence, event in records:
            row = encode(event)
            before = link(before, sequence, row.kind, row.decision)
            rows.append((sequence, *row, before, checksum(before, *row), *self._numbers(row.kind, row.user, row.key)))
        self._write.execute(INSERT, (to_json(rows),))
        self._link = before

    def _numbers(self, kind: str, user: str | None, key: str | None) -> tuple[int | None, int | None]:
        """Return what stands in the indexes for the user and the key of an event."""
        return (hidden(user, self._first_link), hidden(key, self._first_link)) if kind == DECISION else (None, None)

    def _by(self, name: str) -> tuple[Any, ...]:
        return hidden(name, self._first_link), name

    # Erasing

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

    def _carry_out(self, step: Callable[[Callable[[], Any]], Any]) -> int:
        """Take the user who is to be erased out of journal and snapshot; return the number of the event for it."""
        while step(self._redact_some):
            pass
        self._forget_in_snapshot()
        return int(step(self._note_erased))

    def _redact_some(self) -> bool:
        """Take a user out of some events; tell whether there were any."""
        assert self._erasing is not None
        user, mark = self._erasing[:2]
        some = f"{self._ask.made} AND sequence <= ? LIMIT ?"
        statement = f"{self._ask.columns} WHERE decision IN ({some})"
        rows = self._write.execute(statement, (*self._by(user), mark, ERASED_AT_A_TIME)).fetchall()
        changed = []
        for row in rows:
            old: Any = self._event(row)
            sequence, kind, decision, name, key, body, own, _ = row
            # As long as it was: SQLite then leaves all other events where they are, and no copies of them behind.
            size = sum(len(text.encode()) for text in (name or "", key or "", body)) + 16 * (kind == DECISION)
            new = encode(redacted(old)).body
            new += " " * (size - len(new.encode()))
            changed.append((sequence, None, None, new, own, checksum(own, kind, decision, None, None, new), None, None))
        self._write.execute(REWRITE, (to_json(changed),))
        self._look_after_log()
        return bool(rows)

    def _leave_out(self, entries: dict[str, Entry], erasing: Erasing) -> None:
        """Take the user who is being erased out of what a batch is judged by: what comes now has no name any more."""
        for name, entry in entries.items():
            if entry.decision.user == erasing.user and entry.sequence <= erasing.mark:
                given = None if entry.feedback is None else redacted(entry.feedback)
                entries[name] = Entry(redacted(entry.decision), entry.sequence, given, entry.feedback_sequence)  # type: ignore[arg-type]

    def _forget_in_snapshot(self) -> None:
        """Take a user out of the snapshot, or throw that away if it cannot be done."""
        assert self._erasing is not None
        with self._saving:
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

    def _empty_log(self) -> bool:
        """Carry the whole log over into the database, and cut it; tell whether no file holds what was erased."""
        if self._erasing is not None or not self._reading.acquire(timeout=0.02):
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
        return True

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
        if self._failed is None:
            try:
                self._look_after_log()
            except apsw.Error as error:
                self._stop(error)
        due = self._fold.sequence - self._snapshot_at >= self._snapshot_every
        if due and self._failed is None and not self._saving.locked():
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

    def _look_after_log(self) -> None:
        """Carry the log over into the database, once it is long."""
        if self._log_pages < self._checkpoint_pages or (self._unclean is not None and self._empty_log()):
            return
        with contextlib.suppress(apsw.BusyError):  # a reader is at it: the next checkpoint will do
            self._write.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        self._log_pages = 0

    def _save(self) -> None:
        try:
            with self._saving:
                kept = snapshots.Snapshot(self._fold, self._link, self._erased)
                snapshots.save(kept, self._snapshot_path, self._identity)
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
            self._link = self._first_link
            for page in pages(events, self._page):
                self._insert(page)
                count += len(page)
        self._fold_again()
        return count

    def _fold_again(self) -> None:
        with sentences(f"read {self.path}"):
            fold = self._restore(None)  # damage is found before anything is thrown away
        snapshots.remove(self._snapshot_path)
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

    def _event(self, row: Sequence[Any]) -> Event:
        if self._sealed and not is_whole(row):
            raise self._is_damaged(f"event {row[0]} is not what was recorded")
        return super()._event(row)

    def _wrong(self, after: int) -> Callable[[Sequence[Any]], str]:
        if not self._sealed:
            return super()._wrong(after)
        before = self._rows("SELECT link FROM events WHERE sequence <= ? ORDER BY sequence DESC LIMIT 1", (after,))
        return Chain(before[0][0] if before else self._first_link).wrong

    def _trouble(self) -> str | None:
        if self._failed is not None:
            return str(self._failed)
        return self._gone() or (None if os.access(self._file, os.W_OK) else f"{self.path} cannot be written to")

    def snapshot(self) -> None:
        """Write a snapshot now; what is handed in meanwhile waits for it."""
        self._writer.call(self._save)

    def rebuild(self) -> None:
        """Throw snapshot and sums away, and fold the journal."""

        self._writer.call(self._fold_again)

    def sound(self) -> bool:
        """Tell whether SQLite finds its file and indexes intact."""
        return not self._damage("integrity")

    def _damage(self, check: str) -> list[str]:
        found = [row[0] for row in self._rows(f"PRAGMA {check}_check")]
        return [] if found == ["ok"] else found

    def close(self, *, snapshot: bool = True) -> None:
        """Finish what was handed in, keep the sums unless told otherwise, and let go of the files."""
        if self._eraser is not None:
            self._eraser.shutdown()
        super().close(snapshot=snapshot)

    def _disconnect(self, *, snapshot: bool) -> None:
        if snapshot and self._failed is None and self._snapshot_at < self._fold.sequence:
            self._save_if_possible()
        for connection in (self._read, self._write, self._owner):
            if connection is not None:
                with self._reading, contextlib.suppress(apsw.Error):
                    connection.close()


def existing(address: str) -> Path:
    """Return the path of a file that there is."""
    path = Path(address)
    if path.is_dir():
        raise InputError(f"expected the path of a store's file, got the folder {path}")
    if not path.exists():
        raise InputError(f"there is no store at {path}: give the path of one that was begun")
    return path


class SqliteReader(SqlReader, SqliteStore):
    """The journal of a SQLite file and its sums, as they are when it is opened."""

    inspects = True

    def __init__(self, path: Path, *, alone: bool = True) -> None:
        self._place(path)
        self._owner = Owner(self._file) if alone else None
        try:
            with sentences(f"open {path}"):
                lost = [self._lost_log()] if alone and lost_header(self._file) else []
                left = with_ending(self._file, LOG).exists()
                # Not as read-only: the last such connection to close leaves a log and its index behind.
                self._read = self._write = apsw.Connection(str(self._file), flags=apsw.SQLITE_OPEN_READWRITE)
                if left:  # the log of a process that was killed stays for the next one that writes
                    self._read.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                self._read.set_busy_timeout(BUSY)
                self._read.pragma("query_only", True)
                if alone:
                    lost += self._lost_in_log()
                self._read.execute("BEGIN")  # everything is read as of now
                if next(self._read.execute("SELECT count(*) FROM sqlite_schema"))[0] == 0:
                    raise InputError(f"there is no store at {path}: the file is empty")
                self.setup = self._prepare(None)
                self._fold = Fold(self.setup)
            try:
                with sentences(f"read {path}"):
                    self._fold = self._restore(self._kept())
            except DamagedError as error:
                lost.append(str(error))
            self.lost = tuple(lost)
        except BaseException:
            self._disconnect(snapshot=False)
            raise

    def _upgrade(self) -> None:
        """Read a journal of format 1 as it is."""
        self._sealed = False
        self._ask = Questions("events", "user", "?")  # type: ignore[misc]

    def _by(self, name: str) -> tuple[Any, ...]:
        return super()._by(name) if self._sealed else (name,)

    @classmethod
    def of(cls, address: str, *, alone: bool) -> Self:
        """Open the store in a file that there is."""
        return cls(existing(address), alone=alone)

    @classmethod
    @contextlib.contextmanager
    def copied(cls, address: str, path: Path) -> Iterator[Self]:
        """Yield a copy of the store in a file, page by page as SQLite reads it, and without its unused room."""
        source = existing(address)
        with contextlib.suppress(InUseError), cls(source) as found:  # of one in use the log cannot be judged
            if found.lost:
                raise DamagedError(found.lost[0])
        if path.exists():
            raise InputError(f"there is a file {path} already: give another name, or move it away first")
        with beside(path) as new:
            with sentences(f"copy {source}"):
                connection = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READWRITE)
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                connection.set_busy_timeout(BUSY)
                try:
                    connection.execute("VACUUM INTO ?", (str(new),))
                finally:
                    connection.close()
            with cls(new) as copy:
                yield copy
            with open(new, "rb+") as file:
                os.fsync(file.fileno())

    def sizes(self) -> dict[str, int]:
        """Return the bytes of the database, of its log and of the snapshot."""
        parts = {"journal": self._file, "log": with_ending(self._file, LOG), "snapshot": self._snapshot_path}
        return {name: path.stat().st_size if path.exists() else 0 for name, path in parts.items()}

    def damage(self, *, quick: bool = False) -> list[str]:
        """Return what SQLite finds broken in its file, and what it leaves out of the log."""
        return [*self._torn, *self._damage("quick" if quick else "integrity")]

    @property
    def sequence(self) -> int:
        """The number of the last event."""
        return int(self._fold.sequence)

    def snapshot_at(self) -> int | None:
        """Return up to which event the snapshot goes; 0 where there is none, None where it cannot be used."""
        if not self._snapshot_path.exists():
            return 0
        kept = snapshots.load(self._snapshot_path, self.setup, self._identity)
        return None if kept is None else int(kept.fold.sequence)
