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

from pamo.arrays import Floats, Ints
from pamo.contract.forgetting import DAYS
from pamo.rows import arm_width, grow_together, read_aged
from pamo.statistics import ArmStatistics
from pamo.store.base import ArmAdded, ArmRetired, Arms, ArmState, DecisionMade, Event, Setup, new_version
from pamo.store.fold import STEP, Fold
from pamo.store.postgres_arrays import unpacked


@functools.lru_cache(1 << 16)
def _features(text: str) -> Mapping[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def _state(name: str, active: bool, features: str) -> ArmState:
    return ArmState(name, active, _features(features))


class ArmCache:
    """The arms as last read. The table is replaced, never changed, so that whoever has one may keep reading it.

    end, arms, sums: the statements that read the last event of the arms, their states and their sums.
    """

    def __init__(self, setup: Setup, refresh: float, *, end: str, arms: str, sums: str) -> None:
        self._width = arm_width(len(setup.objectives))
        self._life = None if setup.half_life is None else setup.half_life.arms
        self._kept = np.zeros((0, self._width + 1))  # where arms are forgotten, their rows with their ages
        self._refresh = refresh
        self._statements = end, arms, sums
        self._end = self._wanted = 0
        self._ends = threading.Lock()
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
        if table is not None and not self._old():
            return table
        with self._lock:
            if self._table is None or self._old():
                self._set(rows)
            assert self._table is not None
            return self._table

    def _old(self) -> bool:
        return self._end < self._wanted or time.monotonic() - self._read_at >= self._refresh

    def add(self, row: Any, other: Any) -> None:
        """Add a row of sums to another, as the database keeps them."""
        if self._life is None:
            row += other
        else:
            grow_together(row, other, 0)

    @property
    def newest(self) -> float:
        """When the newest round of an arm was, where arms are forgotten by the day."""
        if self._life is None or self._life.unit != DAYS or not len(self._kept):
            return 0.0
        return float(self._kept[:, -1].max()) * self._life.count * 86_400.0

    def clock(self, arms: Sequence[str]) -> tuple[int, ...]:
        """Return the pulls of arms since a half-life in rounds was declared."""
        if self._life is None or self._table is None:
            return (0,) * len(arms)
        count, rows = self._life.count, self._table.rows
        return tuple(round(float(self._kept[rows[arm], -1]) * count) if arm in rows else 0 for arm in arms)

    def _worth(self) -> ArmStatistics:
        """Return what the arms' rows are worth now."""
        assert self._life is not None
        worth, now = np.empty((len(self._kept), self._width)), self._life.age(self.newest, 0.0) // STEP * STEP
        for place, row in enumerate(self._kept):
            read_aged(worth[place], row, now, 0)
        return ArmStatistics(rows=worth)

    def reach(self, end: int) -> None:
        """Have the arms read anew unless they were read after this event, the last one of theirs."""
        with self._ends:
            if end < self._end:  # some of the journal is gone, as where damage was adopted
                self._wanted = end
                self.forget()
            else:
                self._wanted = max(self._wanted, end)

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
        block, rows = (self._table.statistics.rows if self._life is None else self._kept).copy(), self._table.rows
        for arm, row in fold.arm_rows.items():
            if arm in rows:
                self.add(block[rows[arm]], fold.block[row])
        if self._life is not None:
            self._kept = block
        self._table = replace(
            self._table, statistics=ArmStatistics(rows=block) if self._life is None else self._worth()
        )

    def _set(self, rows: Callable[[str], list[Any]]) -> None:
        ask_end, ask_arms, ask_sums = self._statements
        end, table = rows(ask_end)[0][0], self._table
        if table is None or end != self._end or self._read_at == -math.inf:  # otherwise they stand as they did
            states = {arm: _state(name, active, features) for arm, name, active, features in rows(ask_arms)}
            if table is None or self._learned or states != self.states:
                names, active, features = zip(*states.values(), strict=True) if states else ((), (), ())
                places = {arm: row for row, arm in enumerate(states)}
                nothing, on = ArmStatistics(rows=np.zeros((0, self._width))), np.array(active, dtype=bool)
                table = Arms(tuple(states), names, on, places, nothing, new_version(), features)
            self.states, self._learned = states, False
        kept = np.zeros((len(table.ids), self._width + (self._life is not None)))
        for names, packed in rows(ask_sums):
            found = [table.rows.get(arm, -1) for arm in names]  # one that was added meanwhile comes with the next
            self._add_all(kept, np.array(found), unpacked(packed, kept.shape[1]))
        self._kept = kept
        statistics = ArmStatistics(rows=kept) if self._life is None else self._worth()
        self._table, self._end = replace(table, statistics=statistics), end
        self._read_at = time.monotonic()

    def _add_all(self, kept: Floats, places: Ints, sums: Floats) -> None:
        if self._life is None:
            np.add.at(kept, places[places >= 0], sums[places >= 0])
            return
        for place, own in zip(places.tolist(), sums, strict=True):
            if place >= 0:
                self.add(kept[place], own)
