"""A SQLite store that is read and not changed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from pamo.errors import InputError
from pamo.store import snapshot as snapshots
from pamo.store.base import Event
from pamo.store.encoding import decode
from pamo.store.reading import Reader
from pamo.store.sqlite import SqliteStore
from pamo.store.sqlite_file import COLUMNS, apsw, own, sentences


class SqliteReader(Reader, SqliteStore):
    """The journal of a SQLite file and its sums, as they are when it is opened."""

    def __init__(self, path: Path, *, alone: bool = True) -> None:
        self.path = path
        self.lock = threading.RLock()
        self._reading = threading.Lock()
        self._closed = False
        self._owner = own(path) if alone else None
        self._write: Any = None
        self._read: Any = None
        try:
            with sentences(f"open {path}"):
                left = Path(f"{path}-wal").exists()
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
            self._disconnect()
            raise

    def kinds(self) -> dict[str, int]:
        """Return how many events there are of each kind."""
        return dict(self._rows("SELECT kind, count(*) FROM events GROUP BY kind", ()))

    def last(self) -> Event | None:
        """Return the last event of the journal."""
        rows = self._rows(f"{COLUMNS} ORDER BY sequence DESC LIMIT 1", ())
        return decode(*rows[0][1:]) if rows else None

    def sizes(self) -> dict[str, int]:
        """Return the bytes of the database, of its log and of the snapshot."""
        parts = {"journal": self.path, "log": Path(f"{self.path}-wal"), "snapshot": self._snapshot_path}
        return {name: path.stat().st_size if path.exists() else 0 for name, path in parts.items()}

    def damage(self, *, quick: bool = False) -> list[str]:
        """Return what SQLite finds broken in its file."""
        found = [row[0] for row in self._rows(f"PRAGMA {'quick' if quick else 'integrity'}_check", ())]
        return [] if found == ["ok"] else found

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

    def close(self, *, snapshot: bool = True) -> None:
        """Let go of the file."""
        self._closed = True
        self._disconnect()
