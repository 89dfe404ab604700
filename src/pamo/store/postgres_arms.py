"""A worker's copy of the arms and their sums: read anew now and then, and kept up with what the worker adds itself."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pamo.rows import arm_width
from pamo.statistics import ArmStatistics
from pamo.store.base import ArmAdded, ArmRetired, Arms, ArmState, DecisionMade, Event, new_version
from pamo.store.fold import Fold


@functools.lru_cache(1 << 16)
def _features(text: str) -> Mapping[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def _state(name: str, active: bool, features: str) -> ArmState:
    return ArmState(name, active, _features(features))


class ArmCache:
    """The arms as last read. The table is replaced, never changed, so that whoever has one may keep reading it.

    arms, sums: the statements that read the arms' states and their sums.
    """

    def __init__(self, objectives: int, refresh: float, *, arms: str, sums: str) -> None:
        self._objectives = objectives
        self._refresh = refresh
        self._statements = arms, sums
        self._lock = threading.RLock()
        self._read_at = -math.inf
        self._table: Arms | None = None
        self._added: tuple[Fold, dict[str, ArmState]] | None = None
        self._learned = False
        self.states: dict[str, ArmState] = {}
        """The arms' names and whether they are active: newer than the table where some were learned meanwhile."""

    def table(self, rows: Callable[[str], list[Any]]) -> Arms:
        """Return the arms, read by `rows` where the copy is too old."""
        table = self._table
        if table is not None and time.monotonic() - self._read_at < self._refresh:
            return table
        with self._lock:
            if self._table is None or time.monotonic() - self._read_at >= self._refresh:
                self._set(*map(rows, self._statements))
            assert self._table is not None
            return self._table

    def forget(self) -> None:
        """Have the arms read anew next time."""
        self._read_at = -math.inf

    def unsure(self, events: Sequence[Event]) -> list[str]:
        """Return the arms that are to be changed, and those that were chosen and are not in the copy."""
        arms = {arm for event in events if type(event) is DecisionMade for arm in event.arms if arm not in self.states}
        return sorted(arms.union(event.arm for event in events if isinstance(event, ArmAdded | ArmRetired)))

    def learn(self, arms: Iterable[tuple[str, str, bool, str]]) -> None:
        """Take in how some arms stand, as the database has them, and have the whole table read when it is asked for."""
        self._learn((arm, _state(name, active, features)) for arm, name, active, features in arms)

    def _learn(self, arms: Iterable[tuple[str, ArmState]]) -> None:
        for arm, state in arms:
            if self.states.get(arm) != state:
                self.states[arm] = state
                self._learned = True
                self.forget()

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

    def committing(self, fold: Fold, changed: dict[str, ArmState]) -> None:
        """Note what the transaction adds, and the arms that it changes."""
        self._added = fold, changed

    def _take_in(self, fold: Fold, changed: dict[str, ArmState]) -> None:
        self._learn(changed.items())
        if self._table is None or self._read_at == -math.inf:
            return  # what will be read holds it
        block, rows = self._table.statistics.rows.copy(), self._table.rows
        for arm, row in fold.arm_rows.items():
            if arm in rows:
                block[rows[arm]] += fold.block[row]
        self._table = replace(self._table, statistics=ArmStatistics(rows=block))

    def _set(self, arms: list[Any], sums: list[Any]) -> None:
        states = {arm: _state(name, active, features) for arm, name, active, features in arms}
        statistics = ArmStatistics(rows=np.zeros((len(states), arm_width(self._objectives))))
        if self._table is None or self._learned or states != self.states:
            names, active, features = zip(*states.values(), strict=True) if states else ((), (), ())
            rows = {arm: row for row, arm in enumerate(states)}
            table = Arms(tuple(states), names, np.array(active, dtype=bool), rows, statistics, new_version(), features)
        else:
            table = replace(self._table, statistics=statistics)
        for arm, numbers in sums:
            if arm in table.rows:  # one that was added between the two readings comes with the next
                statistics.rows[table.rows[arm]] += numbers
        self._table, self.states, self._learned = table, states, False
        self._read_at = time.monotonic()
