"""Reading a store in PostgreSQL: as it was at one moment, with nothing written and nobody kept waiting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from pamo.errors import InputError
from pamo.store import postgres_tables as tables
from pamo.store.addresses import shown
from pamo.store.base import Reader
from pamo.store.encoding import DECLARED
from pamo.store.folded import FoldedStore
from pamo.store.postgres import PostgresStore
from pamo.store.postgres_link import Still
from pamo.store.postgres_seals import Sealed
from pamo.store.sql import Questions, SqlReader


class PostgresReader(SqlReader, PostgresStore):
    """The journal in a PostgreSQL database and its sums, as they are when it is opened, whatever workers do."""

    _arms_end = "SELECT 0"  # nothing changes here

    def __init__(self, url: str) -> None:
        self._connect(Still(url))
        with self._closing_if_it_fails():
            if not tables.has(self._rows, "pamo_events"):
                raise InputError(f"there is no store at {shown(url)}: give the address of one that was begun")
            self._sealed = tables.has(self._rows, "pamo_seals")
            if not self._sealed:
                self._ask = Questions("pamo_events", "user_id", "%s", tables.AMONG, more=", NULL")  # type: ignore[misc]
                self._anew = f"{self._ask.columns} WHERE kind = '{DECLARED}'"
                self._in_experiments = PostgresStore._in_experiments.replace(", checksum", ", NULL")
            first = self._rows(self._ask.first)
            self.began, self._refresh = self._first(first[0] if first else None, shown(url)), math.inf
            self._go_by(self._declared(self._rows(self._anew)))
            self._features, self._user_features = (
                tables.declared_in(self._rows, table) if tables.has(self._rows, table) else {}
                for table in tables.DECLARED_IN
            )

    @classmethod
    def of(cls, address: str, *, alone: bool, sums: bool = True) -> Reader:
        """Open the store in a database; nobody has to be kept from it."""
        reader = cls(address)
        if not sums or tables.has(reader._rows, tables.USER_SUMS):
            return reader
        reader.close()
        return FoldingReader(address)

    def sizes(self) -> dict[str, int]:
        """Return the bytes of the journal's table and of the sums', with their indexes."""
        size = (
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class "
            "WHERE relkind = 'r' AND pg_table_is_visible(oid) AND relname ~ %s"
        )
        parts = {"journal": "pamo_events", "sums": f"pamo_arms|pamo_counts|{tables.SUMS}"}
        return {part: int(self._rows(size, (f"^({names})$",))[0][0]) for part, names in parts.items()}

    def damage(self, *, quick: bool = False) -> list[str]:
        """Return nothing: PostgreSQL looks after its own files."""
        return []

    def _seals(self, execute: Callable[..., Iterable[Any]], *, whole: bool = True) -> Sealed:
        return super()._seals(execute, whole=whole and self._sealed)

    def unsealed(self) -> int:
        """Return how many events were recorded before there were checksums."""
        return super().unsealed() if self._sealed else sum(self.kinds().values())


class FoldingReader(FoldedStore, PostgresReader):
    """The same of a database whose sums are of another layout, since nobody has opened it to write: it folds."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        with self._closing_if_it_fails():
            self._fold = self._replay(self._rows)
