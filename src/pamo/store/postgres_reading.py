"""A PostgreSQL store that is read and not changed."""

from __future__ import annotations

import math
import threading
from typing import Any

from pamo.errors import InputError, StoreError
from pamo.store.addresses import scrubbed, shown
from pamo.store.base import Event, Setup
from pamo.store.encoding import SETUP, decode
from pamo.store.postgres import PostgresStore
from pamo.store.postgres_arms import ArmCache
from pamo.store.postgres_link import Link, psycopg
from pamo.store.postgres_tables import COLUMNS
from pamo.store.reading import Reader
from pamo.store.rules import check_setup

__all__ = ["PostgresReader", "connect", "psycopg"]

TABLES = ("pamo_events", "pamo_arms", "pamo_arm_sums", "pamo_user_sums", "pamo_counts")
CONNECT_SECONDS = 10


def connect(url: str, **options: Any) -> Any:
    """Return a connection, or raise `StoreError` at once: who looks after a store need not wait for a server."""
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
        return psycopg.connect(url, connect_timeout=given.get("connect_timeout") or CONNECT_SECONDS, **options)
    except psycopg.Error as error:
        raise StoreError(f"could not connect to {shown(url)}: {scrubbed(str(error), url)}") from None


class Still(Link):
    """One connection with one transaction, which sees the database as it was at its first question."""

    def __init__(self, url: str) -> None:
        super().__init__(url, patience=0.0)
        self._read = connect(url)
        self._read.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self._read.read_only = True

    def _connect(self) -> Any:
        raise StoreError("the connection to PostgreSQL broke, and what it had seen is gone: try again")


class PostgresReader(Reader, PostgresStore):
    """The journal in a PostgreSQL database and its sums, as they are when it is opened, whatever workers do."""

    def __init__(self, url: str) -> None:
        self.lock = threading.RLock()
        self._closed = False
        self._link = Still(url)
        try:
            self.setup = self._kept(url)
        except BaseException:
            self._link.close()
            raise
        self._arms = ArmCache(len(self.setup.objectives), math.inf)

    def _kept(self, url: str) -> Setup:
        if self._link.rows("SELECT to_regclass('pamo_events') IS NULL")[0][0]:
            raise InputError(f"there is no store at {shown(url)}: give the address of one that was begun")
        rows = self._link.rows(f"{COLUMNS} WHERE kind = %s", (SETUP,))
        kept = decode(*rows[0][1:]) if rows else None
        if not isinstance(kept, Setup):
            raise StoreError(f"the journal at {shown(url)} does not begin with its objectives: was it cut?")
        check_setup(kept)
        return kept

    def kinds(self) -> dict[str, int]:
        """Return how many events there are of each kind."""
        return dict(self._link.rows("SELECT kind, count(*) FROM pamo_events GROUP BY kind ORDER BY kind"))

    def last(self) -> Event | None:
        """Return the last event of the journal."""
        rows = self._link.rows(f"{COLUMNS} ORDER BY sequence DESC LIMIT 1")
        return decode(*rows[0][1:]) if rows else None

    def sizes(self) -> dict[str, int]:
        """Return the bytes of the journal's table and of the sums', with their indexes."""
        size = "SELECT coalesce(sum(pg_total_relation_size(name::regclass)), 0)::bigint FROM unnest(%s::text[]) AS name"
        parts = {"journal": TABLES[:1], "sums": TABLES[1:]}
        return {name: int(self._link.rows(size, (list(tables),))[0][0]) for name, tables in parts.items()}

    def damage(self, *, quick: bool = False) -> list[str]:
        """Return nothing: PostgreSQL looks after its own files."""
        return []

    def close(self, *, snapshot: bool = True) -> None:
        """Disconnect."""
        self._closed = True
        self._link.close()
