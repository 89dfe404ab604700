"""Opens a store by its address."""

from __future__ import annotations

from pathlib import Path

from pamo.errors import InputError
from pamo.store.addresses import is_postgres, shown
from pamo.store.base import EXPIRES_AFTER, Setup, Store
from pamo.store.memory import MemoryStore


def open_store(address: str | Path, setup: Setup | None = None, *, expires_after: float = EXPIRES_AFTER) -> Store:
    """Open the store at an address, or begin it there with the objectives of `setup`.

    address: "memory:", the path of a SQLite file, or "postgresql://…". setup: needed for a new store; for an
    old one it may be given, and must be the same. expires_after: seconds for which a decision takes feedback.

    >>> from pamo.store import Objective, Setup
    >>> with open_store("memory:", Setup((Objective("taste", 1, 5),))) as store:
    ...     store.pending()
    0
    """
    text = str(address)
    if text == "memory:":
        if setup is None:
            raise InputError("a store in memory is always new, and a new store needs its objectives: pass a setup")
        return MemoryStore(setup, expires_after=expires_after)
    if is_postgres(text):
        from pamo.store.postgres import PostgresStore

        return PostgresStore(text, setup, expires_after=expires_after)
    if "://" in text or not text:
        raise InputError(
            f"expected memory:, the path of a file or postgresql://… as a store's address, got {shown(text)!r}"
        )
    from pamo.store.sqlite import SqliteStore

    return SqliteStore(text, setup, expires_after=expires_after)
