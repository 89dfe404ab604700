"""A store in one SQLite file: the default. One process owns the file, and one thread of it writes.

Its journal is read in `sqlite_reading`, written in `sqlite_writing`, and users are erased from it in `sqlite_erasing`;
here it is opened.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from pathlib import Path
from typing import Any, Self

from pamo.errors import DamagedError, InputError, InUseError
from pamo.store import snapshot as snapshots
from pamo.store.ages import LOOKED_AT, Ages
from pamo.store.base import EXPIRES_AFTER, Event, Setup
from pamo.store.fold import Fold
from pamo.store.rules import Checker
from pamo.store.setups import plain_setup
from pamo.store.sql import Questions, SqlReader
from pamo.store.sqlite_erasing import SqliteErasing
from pamo.store.sqlite_file import (
    BUSY,
    LOG,
    Owner,
    apsw,
    beside,
    connect,
    inode_of,
    lost_header,
    sentences,
    traces,
    with_ending,
)
from pamo.store.sqlite_reading import ADVICE, AMONG, FORMAT, SqliteJournal
from pamo.store.writer import Writer


class SqliteStore(SqliteErasing):
    """Keeps the journal in a SQLite file, which it makes where there is none.

    setup: needed for a new store; for an old one it may be given, and must be the same. snapshot_every: events after
    which a snapshot is taken. adopt_damage: whether to go on with what is left where some of the journal is damaged or
    missing. synchronous, vfs and checkpoint_pages are for campaigns that show what they are good for.
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
        adopt_damage: bool = False,
    ) -> None:
        self._place(Path(path))
        if vfs is None and not self.path.exists():  # before there is a file
            if found := traces(self._file):
                raise self._was_here(found)
            if setup is None:
                raise self._is_new()
        self._ages = Ages(expires_after)
        self._snapshot_every = snapshot_every
        self._checkpoint_pages = checkpoint_pages
        self._pressing = set()
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
                setup = None if setup is None else plain_setup(setup)
                self.setup = self.began = self._prepare(setup, adopt_damage)
                self._owner.hold()
                self._read = connect(self._file, vfs, writing=False)
                self._finish_erasing()
                kept = self._kept()
                if kept is None:  # it may know users who were erased since
                    snapshots.remove(self._snapshot_path)
                self._fold = self._restore(kept)
                self._agree(setup, str(self.path))
                with contextlib.suppress(DamagedError):  # which whoever meets it is told
                    self._ages.note(self.tail(LOOKED_AT))
                self._checker = Checker(self.setup, self._features_of)
                self._empty_log()
                self._files = {path: inode_of(path) for path in (self._file, with_ending(self._file, LOG))}
        except BaseException:
            self._disconnect(snapshot=False)
            raise
        self._writer = Writer(self._commit, self._between)
        self._aside = ThreadPoolExecutor(1, "pamo-aside")

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

    def _is_new(self) -> InputError:
        return InputError(f"{self.path} is new, and a new store needs its objectives: pass a setup")

    def _was_here(self, found: list[str]) -> DamagedError:
        return DamagedError(
            f"there was a store at {self.path}: its file is gone or empty, and {', '.join(found)} is still there. "
            "Bring the file back, such as a backup by `pamo store restore`, or remove that too to begin an empty store"
        )

    def _prepare(self, setup: Setup | None, adopt_damage: bool) -> Setup:
        """Return the objectives of the journal, which is begun here if the file is new."""
        version = self._version()
        if self._is_empty():
            if self._snapshot_path.exists():
                raise self._was_here([self._snapshot_path.name])
            if setup is None:
                raise self._is_new()
            self._begin(setup)
            return setup
        self._note_facts()
        if version < FORMAT:
            self._upgrade()
        if adopt_damage:
            self._adopt()
        return self._first_setup()


def existing(address: str) -> Path:
    """Return the path of a file that there is."""
    path = Path(address)
    if path.is_dir():
        raise InputError(f"expected the path of a store's file, got the folder {path}")
    if not path.exists():
        raise InputError(f"there is no store at {path}: give the path of one that was begun")
    return path


class SqliteReader(SqlReader, SqliteJournal):
    """The journal of a SQLite file and its sums, as they are when it is opened.

    Without sums it is read page by page, up to the last event that there is now, and keeps nobody from shortening the
    log: events stay as they are, but that users may be erased meanwhile.
    """

    inspects = True
    _end: int | None = None

    def __init__(self, path: Path, *, alone: bool = True, sums: bool = True) -> None:
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
                if sums:
                    self._read.execute("BEGIN")  # everything is read as of now
                if self._is_empty():
                    raise InputError(f"there is no store at {path}: the file is empty")
                version = self._version()
                self._note_facts()
                if version < FORMAT:  # which has no checksums: it is read as it is
                    self._sealed = False
                    self._ask = Questions("events", "user", "?", AMONG)  # type: ignore[misc]
                self.setup = self.began = self._first_setup()
            if not sums:
                self._end, self.setup = self.end(), self.setups()[-1]
                return
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

    def _by(self, name: str) -> tuple[Any, ...]:
        return super()._by(name) if self._sealed else (name,)

    def end(self) -> int:
        """Return the number of the last event."""
        return super().end() if self._end is None else self._end

    def examined(self, after: int = 0) -> Iterator[tuple[int, Event | None, str]]:
        """Yield the journal's events, and what is wrong with each."""
        found = super().examined(after)
        return found if self._end is None else takewhile(lambda one: one[0] <= self.end(), found)

    @classmethod
    def of(cls, address: str, *, alone: bool, sums: bool = True) -> Self:
        """Open the store in a file that there is."""
        return cls(existing(address), alone=alone, sums=sums)

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
        kept = snapshots.load(self._snapshot_path, self._identity)
        return None if kept is None else int(kept.fold.sequence)
