"""A worker's connections to PostgreSQL: made when they are needed, and made again when they break."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from pamo.errors import StoreError
from pamo.store.addresses import scrubbed, shown
from pamo.store.base import CLOSED
from pamo.store.postgres_arrays import psycopg, register

__all__ = ["Link", "LostError", "Still", "connect", "psycopg"]

LOCK = 0x50414D4F
"""Of the advisory lock: workers that append share it, and what changes more than it adds (an erasure) has it alone."""

CONNECT_SECONDS = 10

Result = TypeVar("Result")


def connect(url: str, **options: Any) -> Any:
    """Return a connection, or raise `StoreError` at once: who looks after a store need not wait for a server."""
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
        return psycopg.connect(url, connect_timeout=given.get("connect_timeout") or CONNECT_SECONDS, **options)
    except psycopg.Error as error:
        raise StoreError(f"could not connect to {shown(url)}: {scrubbed(str(error), url)}") from None


class LostError(Exception):
    """Another worker wrote one of the batch's events first: judge the batch again."""


class Link:
    """One connection to write, used by one thread, and one to read, used by any."""

    def __init__(self, url: str, patience: float) -> None:
        self.name = shown(url)
        self._url = url
        self._patience = patience
        self._closed = False
        self._reading = threading.Lock()
        self._write: Any = None
        self._read: Any = None

    def retry(self, attempt: Callable[[], Result], patience: float | None = None) -> Result:
        """Try until it succeeds, or until the database was out of reach for too long."""
        deadline, pause = time.monotonic() + (self._patience if patience is None else patience), 0.01
        while True:
            try:
                return attempt()
            except (LostError, psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
                continue  # another worker was first, and its events are there to be seen now
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if time.monotonic() >= deadline or self._closed:
                    raise StoreError(
                        f"PostgreSQL cannot be reached, and nothing is acknowledged: {self._said(error)}"
                    ) from None
                time.sleep(pause)
                pause = min(2.0 * pause, 0.5)
            except psycopg.Error as error:
                raise StoreError(f"PostgreSQL refused, and nothing is acknowledged: {self._said(error)}") from None

    @contextlib.contextmanager
    def transaction(self, *, alone: bool = False) -> Iterator[Any]:
        """Open a transaction that has the journal to itself, or does not; `SHARE` shares it with other workers."""
        if self._write is None or self._write.closed:
            self._write = self._connect()
        connection = self._write
        try:
            # Pipelined, a transaction waits for the database only where something is read from it, and at its end.
            with contextlib.nullcontext() if alone else connection.pipeline():
                connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
                if alone:
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
                yield connection
                connection.execute("COMMIT")
        except BaseException:
            if not connection.closed:
                connection.rollback()  # what failed at the end of a pipeline is still open
            raise

    def rows(self, statement: str, bindings: Sequence[Any] = (), patience: float | None = None) -> list[Any]:
        """Return what a query gives."""

        def attempt() -> list[Any]:
            if self._closed:
                raise StoreError(CLOSED)
            with self._reading:
                if self._read is None or self._read.closed:
                    self._read = self._connect()
                rows: list[Any] = self._read.execute(statement, bindings, binary=True).fetchall()
                return rows

        return self.retry(attempt, patience)

    def close(self) -> None:
        """Disconnect."""
        self._closed = True
        for connection in (self._write, self._read):
            if connection is not None:
                connection.close()

    def _said(self, error: Exception) -> str:
        """Return what an error says, without the password: clients of the service are told it, and logs keep it."""
        return scrubbed(str(error), self._url)

    def _connect(self) -> Any:
        connection: Any = psycopg.connect(self._url, autocommit=True, client_encoding="UTF8")
        register(connection)
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        if connection.execute("SHOW synchronous_commit").fetchone() == ("off",):
            connection.execute("SET synchronous_commit = on")  # an acknowledgement means that it is on the disk
        return connection


class Still(Link):
    """One connection with one transaction, which sees the database as it was at its first question."""

    def __init__(self, url: str) -> None:
        super().__init__(url, patience=0.0)
        self._read = connect(url)
        self._read.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self._read.read_only = True

    def _connect(self) -> Any:
        raise StoreError("the connection to PostgreSQL broke, and what it had seen is gone: try again")
