"""Opens a store that is there already: to read it and nothing else, or to work on it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import NoReturn

from pamo.errors import InputError, StoreError
from pamo.store.addresses import file_of, is_postgres
from pamo.store.base import Event, Receipt, Store
from pamo.store.opening import open_store


class Reader(Store):
    """A store that is read and not changed: its journal and sums are of one moment, whoever writes meanwhile."""

    @abstractmethod
    def kinds(self) -> dict[str, int]:
        """Return how many events there are of each kind."""

    @abstractmethod
    def last(self) -> Event | None:
        """Return the last event of the journal."""

    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Return the bytes that its parts take on the disk."""

    @abstractmethod
    def damage(self, *, quick: bool = False) -> list[str]:
        """Return what the database finds broken in its own files; quick: without comparing indexes with tables."""

    def submit_many(self, events: Sequence[Event]) -> Future[list[Receipt]]:
        """Refuse."""
        self._refuse()

    def snapshot(self) -> None:
        """Refuse."""
        self._refuse()

    def rebuild(self) -> None:
        """Refuse."""
        self._refuse()

    def load(self, events: Iterable[tuple[int, Event]]) -> int:
        """Refuse."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise StoreError("this store was opened to be read only: open it with `open_store` to write to it")


def open_reader(address: str | Path, *, alone: bool = True) -> Reader:
    """Open the store at an address to read it; one that is not there is an `InputError`, and is not begun.

    alone: whether to keep other processes from a SQLite store meanwhile; if one has it, that is an `InUseError`.
    Without it, be quick: meanwhile the process that writes cannot shorten its log. PostgreSQL needs no such care.
    """
    if is_postgres(address):
        from pamo.store.postgres_reading import PostgresReader

        return PostgresReader(str(address))
    path = file_of(address)
    if path.is_dir():
        raise InputError(f"expected the path of a store's file, got the folder {path}")
    if not path.exists():
        raise InputError(f"there is no store at {path}: give the path of one that was begun")
    from pamo.store.sqlite_reading import SqliteReader

    return SqliteReader(path, alone=alone)


def open_existing(address: str | Path) -> Store:
    """Open the store at an address to work on it; one that is not there is an `InputError`, and is not begun."""
    open_reader(address).close()
    return open_store(address)
