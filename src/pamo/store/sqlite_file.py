"""The SQLite store's file: how it is opened and owned, and how a new one gets its name once it is whole."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pamo.errors import InputError, InUseError, StoreError, missing_extra

try:
    import apsw
except ImportError:
    raise missing_extra("the SQLite store", "apsw", "sqlite") from None

__all__ = ["apsw", "beside", "connect", "own", "sentences", "with_ending"]

SNAPSHOT = ".snapshot.npz"
NEW = ".new"
"""Ends the name of a store that is being filled."""


def with_ending(path: Path, ending: str) -> Path:
    """Return the path of a file that belongs to the one at `path`."""
    return path.with_name(path.name + ending)


def connect(path: Path, vfs: str | None = None, *, writing: bool) -> Any:
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


@contextlib.contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Yield the path of a file beside, which takes the name `path` when all is done, and is gone otherwise."""
    if not path.parent.is_dir():
        raise InputError(f"expected {path} to be in a folder that exists: make {path.parent} first")
    if (log := with_ending(path, "-wal")).exists():
        raise InputError(f"there is the log {log} of a store that is not there: move it away, or bring the store back")
    new = with_ending(path, NEW)
    owner = own(new)  # nobody else is filling it: what is there was left by a process that was killed
    try:
        _remove(new)
    finally:
        owner.close()
    try:
        yield new
        _name(new, path)
    finally:
        _remove(new)
        with_ending(new, ".lock").unlink(missing_ok=True)


def _name(new: Path, path: Path) -> None:
    """Give a finished store its name, unless another has it by now."""
    try:
        try:
            os.link(new, path)  # unlike renaming, never takes the place of another file
        except FileExistsError:
            raise InputError(f"{path} was begun by somebody else meanwhile: give another path") from None
        except OSError:  # some file systems have no links
            os.rename(new, path)
        with contextlib.suppress(FileNotFoundError):
            os.replace(with_ending(new, SNAPSHOT), with_ending(path, SNAPSHOT))
        _keep(path.parent)
    except OSError as error:
        raise StoreError(f"the new store could not be named {path}: {error}") from error


def _keep(folder: Path) -> None:
    """Have the folder's entries on the disk, where the system can be asked for that."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _remove(path: Path) -> None:
    for ending in ("", "-wal", "-shm", SNAPSHOT, f"{SNAPSHOT}.new"):
        with_ending(path, ending).unlink(missing_ok=True)
