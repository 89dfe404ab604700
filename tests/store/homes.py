"""The stores under test. A new store is one more row here, and passes the tests in this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pamo.store import MemoryStore, Setup, Store
from pamo.store.postgres import PostgresStore
from pamo.store.sqlite import SqliteStore


class Home:
    """Where one store lives: it can be opened, closed without warning, and opened again."""

    durable = True
    """Whether what was recorded outlives the process."""

    def __init__(self, make: Callable[..., Store]) -> None:
        self._make = make
        self.store: Store | None = None

    def open(self, setup: Setup | None = None, **options: Any) -> Store:
        if not self.durable and self.store is not None:
            return self.store
        self.store = self._make(setup, **options)
        return self.store

    def close(self) -> None:
        if self.store is not None:
            self.store.close(snapshot=False)


class MemoryHome(Home):
    durable = False


def memory(path: Path, url: Callable[[], str]) -> Home:
    return MemoryHome(MemoryStore)


def sqlite(path: Path, url: Callable[[], str]) -> Home:
    return Home(lambda setup, **options: SqliteStore(path / "journal.db", setup, **options))


def postgres(path: Path, url: Callable[[], str]) -> Home:
    address = url()
    return Home(lambda setup, **options: PostgresStore(address, setup, **options))


HOMES: dict[str, Callable[[Path, Callable[[], str]], Home]] = {"memory": memory, "sqlite": sqlite, "postgres": postgres}
