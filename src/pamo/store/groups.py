"""What an experiment adds up: of each user in it how many scores there are, and their sums.

What the groups are compared by is read off these rows (`pamo.comparing`), one value for each user: the mean of the
user's scores. Rows are those of the newest experiment; of earlier ones the journal has all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pamo.arrays import Floats, Ints
from pamo.comparing import Sums
from pamo.contract.events import ExperimentEnded, ExperimentStarted

GROUP, COUNTS = 0, 1
"""Places in a row: the how many-th group, from 1 on; from there on the counts by score, and then the sums."""


class Experiment(NamedTuple):
    """An experiment, and when it was ended; None while it is not."""

    started: ExperimentStarted
    ended: float | None = None


class Compared(NamedTuple):
    """One group: its users, and by score, the objectives' and the overall one, the sums of the users' means."""

    users: int
    scores: tuple[Sums, ...]

    def plus(self, other: Compared) -> Compared:
        """Return both together."""
        both = zip(self.scores, other.scores, strict=True)
        return Compared(self.users + other.users, tuple(one.plus(another) for one, another in both))


class Groups:
    """The experiments of a journal, and the rows of the newest one's users, by users' rows of the fold."""

    def __init__(self, objectives: int) -> None:
        self.experiments: dict[str, Experiment] = {}
        self.running: ExperimentStarted | None = None
        self.name: str | None = None
        """The newest experiment, whose rows these are."""
        self._numbers: dict[str, float] = {}
        self._scores = objectives + 1
        self._begin()

    def _begin(self) -> None:
        self.rows: Floats = np.zeros((64, COUNTS + 2 * self._scores))
        self.count = 0
        self._places: Ints = np.full(64, -1, dtype=np.int64)

    def start(self, event: ExperimentStarted) -> None:
        """Begin an experiment, with nobody in it."""
        self.experiments[event.name] = Experiment(event)
        self.running, self.name = event, event.name
        self._numbers = {one.name: float(place) for place, one in enumerate(event.groups(), start=1)}
        self._begin()

    def end(self, event: ExperimentEnded) -> None:
        """End an experiment; late feedback to its decisions still counts."""
        if event.name in self.experiments:
            self.experiments[event.name] = self.experiments[event.name]._replace(ended=event.at)
        if self.running is not None and self.running.name == event.name:
            self.running = None

    def add(self, user: int, group: tuple[str, str], values: Floats) -> None:
        """Add scores that a user gave, NaN where there is none: what `add_many` does, in microseconds."""
        number = self._numbers.get(group[1])
        if user < 0 or group[0] != self.name or number is None:
            return
        place = int(self._places[user]) if user < len(self._places) else -1
        if place < 0:
            place = int(self._places_of(np.array([user]))[0])
        row = self.rows[place]
        row[GROUP] = number
        for n, value in enumerate(values[: self._scores].tolist()):
            if not math.isnan(value):
                row[COUNTS + n] += 1.0
                row[COUNTS + self._scores + n] += value

    def add_many(self, users: Ints, groups: Sequence[tuple[str, str] | None], values: Floats) -> None:
        """Add scores of users, a row each; those of no group, or of an earlier experiment, are left out."""
        numbers = [0.0 if one is None or one[0] != self.name else self._numbers.get(one[1], 0.0) for one in groups]
        mine = [n for n, number in enumerate(numbers) if number and users[n] >= 0]
        if not mine:
            return
        places = self._places_of(users[mine])
        self.rows[places, GROUP] = [numbers[n] for n in mine]
        scores = values[mine, : self._scores]
        known = ~np.isnan(scores)
        np.add.at(self.rows, places, np.column_stack([np.zeros(len(mine)), known, np.where(known, scores, 0.0)]))

    def _places_of(self, users: Ints) -> Ints:
        most = int(users.max())
        if most >= len(self._places):
            room = max(most + 1, 2 * len(self._places)) - len(self._places)
            self._places = np.concatenate([self._places, np.full(room, -1, dtype=np.int64)])
        new = np.unique(users[self._places[users] < 0])
        if self.count + len(new) > len(self.rows):
            room = max(self.count + len(new), 2 * len(self.rows)) - len(self.rows)
            self.rows = np.concatenate([self.rows, np.zeros((room, self.rows.shape[1]))])
        self._places[new] = np.arange(self.count, self.count + len(new))
        self.count += len(new)
        places: Ints = self._places[users]
        return places

    def forget(self, user: int) -> None:
        """Take a user out."""
        if user < len(self._places) and self._places[user] >= 0:
            self.rows[self._places[user]] = 0.0
            self._places[user] = -1

    def users(self) -> tuple[Ints, Floats]:
        """Return the users' rows of the fold, and their rows here."""
        users = np.flatnonzero(self._places >= 0)
        return users, self.rows[self._places[users]]

    def restore(self, users: Ints, rows: Floats) -> None:
        """Take over rows."""
        places = self._places_of(users)  # which may make room, in another array
        self.rows[places] = rows

    def compared(self, first: int = 0, last: int | None = None) -> dict[str, Compared]:
        """Return the groups by name, control first; of the rows between these numbers, by default all."""
        rows, scores = self.rows[first : self.count if last is None else min(last, self.count)], self._scores
        found = {}
        for name, number in self._numbers.items():
            mine = rows[rows[:, GROUP] == number]
            counts, totals = mine[:, COUNTS : COUNTS + scores], mine[:, COUNTS + scores :]
            means = np.divide(totals, counts, out=np.zeros_like(totals), where=counts > 0.0)
            numbers = (counts > 0.0).sum(axis=0), means.sum(axis=0), (means**2).sum(axis=0)
            found[name] = Compared(len(mine), tuple(Sums(*map(float, one)) for one in zip(*numbers, strict=True)))
        return found
