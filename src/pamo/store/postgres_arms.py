"""A worker's copy of the arms and their sums: read anew now and then, and kept up with what the worker adds itself."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pamo.rows import arm_width
from pamo.statistics import ArmStatistics
from pamo.store.base import Arms, DecisionMade, Event
from pamo.store.fold import Fold, new_version
from pamo.store.postgres_tables import ARMS

SUMS = "SELECT arm, sums FROM pamo_arm_sums"


class ArmCache:
    """The arms as last read. The table is replaced, never changed, so that whoever has one may keep reading it."""

    def __init__(self, objectives: int, refresh: float) -> None:
        self._objectives = objectives
        self._refresh = refresh
        self._lock = threading.RLock()
        self._read_at = -math.inf
        self._states: dict[str, tuple[str, bool]] = {}
        self._block: Any = None
        self._table: Arms | None = None
        self._added: tuple[Fold, dict[str, tuple[str, bool]] | None] | None = None

    def table(self, rows: Callable[[str], list[Any]]) -> Arms:
        """Return the arms, read by `rows` where the copy is too old."""
        table = self._table
        if table is not None and time.monotonic() - self._read_at < self._refresh:
            return table
        with self._lock:
            if self._table is None or time.monotonic() - self._read_at >= self._refresh:
                self._set(rows(ARMS), rows(SUMS))
            assert self._table is not None
            return self._table

    def forget(self) -> None:
        """Have the arms read anew next time."""
        self._read_at = -math.inf

    def read(self, connection: Any) -> None:
        """Read the arms within a transaction."""
        self._set(connection.execute(ARMS).fetchall(), connection.execute(SUMS, binary=True).fetchall())

    def states(self) -> dict[str, tuple[str, bool]]:
        """Return the arms' names and whether they are active."""
        return dict(self._states)

    def knows(self, events: Sequence[Event]) -> bool:
        """Tell whether all arms that were chosen are in the copy."""
        return all(arm in self._states for event in events if type(event) is DecisionMade for arm in event.arms)

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Keep readings apart from a transaction, and take in what it added once it is committed.

        A reading in between would miss the transaction's sums, or hold them and get them a second time.
        """
        with self._lock:
            self._added = None
            yield
            if self._added is not None:
                self._take_in(*self._added)

    def committing(self, fold: Fold, states: dict[str, tuple[str, bool]] | None) -> None:
        """Note what the transaction adds, and how the arms stand after it if it changes them."""
        self._added = (fold, states)

    def _take_in(self, fold: Fold, states: dict[str, tuple[str, bool]] | None) -> None:
        if self._table is None:
            return  # nothing was read yet, and what will be read holds it
        block = np.concatenate([self._block, np.zeros((len(states or self._states) - len(self._block), self._width))])
        rows = {arm: row for row, arm in enumerate(states or self._states)}
        for arm, row in fold.arm_rows.items():
            if arm in rows:
                block[rows[arm]] += fold.block[row]
        self._put(states or self._states, block)

    def _set(self, arms: list[Any], sums: list[Any]) -> None:
        states = {arm: (name, active) for arm, name, active in arms}
        rows = {arm: row for row, arm in enumerate(states)}
        block = np.zeros((len(states), self._width))
        for arm, numbers in sums:
            if arm in rows:  # one that was added between the two readings comes with the next
                block[rows[arm]] += numbers
        self._put(states, block)
        self._read_at = time.monotonic()

    def _put(self, states: dict[str, tuple[str, bool]], block: Any) -> None:
        old = self._table
        version = old.version if old is not None and states == self._states else new_version()
        names, active = zip(*states.values(), strict=True) if states else ((), ())
        self._table = Arms(
            tuple(states),
            names,
            np.array(active, dtype=bool),
            {arm: row for row, arm in enumerate(states)},
            ArmStatistics(rows=block),
            version,
        )
        self._states, self._block = states, block

    @property
    def _width(self) -> int:
        return arm_width(self._objectives)
