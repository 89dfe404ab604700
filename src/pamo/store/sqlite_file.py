"""The SQLite store's file: its tables, the statements on them, and how it is opened and owned."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pamo.errors import InUseError, StoreError, missing_extra
from pamo.store.encoding import DECISION, decode
from pamo.store.fold import Fold

try:
    import apsw
except ImportError:
    raise missing_extra("the SQLite store", "apsw", "sqlite") from None

__all__ = [
    "APPLICATION",
    "COLUMNS",
    "FEEDBACK_TO",
    "FIND",
    "FORMAT",
    "INDEXES",
    "INSERT",
    "NEWEST",
    "NEWEST_OF",
    "OF_USER",
    "SCHEMA",
    "apsw",
    "connect",
    "own",
    "replay",
    "sentences",
]

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
COLUMNS = "SELECT sequence, kind, decision, user, key, body FROM events"
OF_USER = f"""
{COLUMNS} WHERE decision IN (SELECT decision FROM events WHERE user = ? AND kind = 'decision') ORDER BY sequence
"""
NEWEST = 2**63 - 1
NEWEST_OF = f"{COLUMNS} WHERE user = ? AND kind = 'decision' AND sequence < ? ORDER BY sequence DESC LIMIT ?"
FEEDBACK_TO = f"{COLUMNS} WHERE decision IN (SELECT value FROM json_each(?)) AND kind = 'feedback'"


def connect(path: Path, vfs: str | None, *, writing: bool) -> Any:
    """Return a connection to the journal."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE if writing else apsw.SQLITE_OPEN_READONLY
    connection = apsw.Connection(str(path), flags=flags, vfs=vfs)
    connection.set_busy_timeout(10_000)
    return connection


def own(path: Path) -> Any:
    """Return a lock that only one process can hold: a database beside the store, locked and never written to.

    SQLite knows how to lock files on every system, and the lock of a process that is killed is gone with it.
    """
    with sentences(f"open {path}"):
        owner = apsw.Connection(str(path) + ".lock")
        try:
            owner.execute("BEGIN EXCLUSIVE")
        except apsw.BusyError:
            owner.close()
            raise InUseError(
                f"{path} is in use: one process owns a SQLite store. Stop that one first, or use PostgreSQL for several"
            ) from None
        return owner


@contextlib.contextmanager
def sentences(doing: str) -> Iterator[None]:
    """Turn SQLite's errors into one of ours."""
    try:
        yield
    except apsw.Error as error:
        raise StoreError(f"could not {doing}: {error}") from error


def replay(fold: Fold, connection: Any) -> None:
    """Add to the fold what the journal holds after it; of decisions only the number matters."""
    after = fold.sequence
    for sequence, *row in connection.execute(
        f"{COLUMNS} WHERE sequence > ? AND kind <> ? ORDER BY sequence", (after, DECISION)
    ):
        fold.apply(decode(*row), sequence)
    ((count,),) = connection.execute("SELECT count(*) FROM events WHERE sequence > ? AND kind = ?", (after, DECISION))
    fold.decisions += count
