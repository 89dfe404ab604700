"""Begins a store with the journal of another, so that there is either a whole store afterwards or none."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from pamo.errors import InputError, StoreError
from pamo.store.addresses import is_postgres, shown
from pamo.store.base import Event, Setup, Store
from pamo.store.opening import open_store

NEW = ".new"
"""Ends the name of a store that is being filled."""


def begin_with(address: str | Path, setup: Setup, events: Iterable[tuple[int, Event]]) -> int:
    """Fill the store at an address, which is begun where there is none, with a journal; return the number of events.

    events: the whole journal, the setup first. Where it fails, or is interrupted, a store that was begun here is gone,
    and one that was there before is as empty as it was.
    """
    stopped = threading.Event()

    def until_stopped() -> Iterator[tuple[int, Event]]:
        for item in events:
            if stopped.is_set():
                raise StoreError("interrupted")
            yield item

    with _begun(address, setup) as store:
        if next(islice(store.events(), 1, None), None) is not None:
            raise InputError(
                f"expected an empty store, or none, to take a journal over into, got one with events at "
                f"{shown(address)}: give another address"
            )
        try:
            return store.load(until_stopped())
        except BaseException:
            stopped.set()  # the store's own thread may be at it still, when this one was interrupted
            raise


@contextlib.contextmanager
def _begun(address: str | Path, setup: Setup) -> Iterator[Store]:
    if str(address) == "memory:":
        raise InputError("a store in memory is gone with its process: give the path of a SQLite file or postgresql://…")
    if is_postgres(address):
        with _begun_in_postgres(str(address), setup) as store:
            yield store
    elif "://" in str(address) or Path(address).exists():
        with open_store(address, setup) as store:
            yield store
    else:
        with _begun_in_sqlite(Path(address), setup) as store:
            yield store


@contextlib.contextmanager
def _begun_in_sqlite(path: Path, setup: Setup) -> Iterator[Store]:
    """Yield a store in a file beside, which takes its name when all is done."""
    from pamo.store.sqlite import SqliteStore
    from pamo.store.sqlite_file import own

    if not path.parent.is_dir():
        raise InputError(f"expected {path} to be in a folder that exists: make {path.parent} first")
    if (log := Path(f"{path}-wal")).exists():
        raise InputError(f"there is the log {log} of a store that is not there: move it away, or bring the store back")
    beside = path.with_name(path.name + NEW)
    owner = own(beside)  # nobody else is filling it: what is there was left by a process that was killed
    try:
        _remove(beside)
    finally:
        owner.close()
    try:
        with SqliteStore(beside, setup) as store:
            yield store
        _name(beside, path)
    finally:
        _remove(beside)
        _with(beside, ".lock").unlink(missing_ok=True)


def _name(beside: Path, path: Path) -> None:
    """Give a finished store its name, unless another has it by now."""
    try:
        try:
            os.link(beside, path)  # unlike renaming, never takes the place of another file
        except FileExistsError:
            raise InputError(f"{path} was begun by somebody else meanwhile: give another path") from None
        except OSError:  # some file systems have no links
            os.rename(beside, path)
        with contextlib.suppress(FileNotFoundError):
            os.replace(_with(beside, ".snapshot.npz"), _with(path, ".snapshot.npz"))
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
    for ending in ("", "-wal", "-shm", ".snapshot.npz", ".snapshot.npz.new"):
        _with(path, ending).unlink(missing_ok=True)


def _with(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


@contextlib.contextmanager
def _begun_in_postgres(url: str, setup: Setup) -> Iterator[Store]:
    """Yield a store whose tables, where they were made for it, are taken away again if it fails."""
    from pamo.store.postgres import PostgresStore
    from pamo.store.postgres_reading import connect
    from pamo.store.postgres_tables import DROP, LOCK

    def there() -> bool:
        with connect(url, autocommit=True) as connection:
            return bool(connection.execute("SELECT to_regclass('pamo_events') IS NOT NULL").fetchone()[0])

    was_there = there()
    try:
        with PostgresStore(url, setup) as store:
            yield store
    except BaseException:
        if not was_there and there():
            with connect(url) as connection:
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
                if connection.execute("SELECT count(*) FROM pamo_events").fetchone()[0] <= 1:
                    connection.execute(DROP)
        raise
