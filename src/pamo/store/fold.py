"""The fold: from the journal's events to sums, in memory.

The sums are rows of `pamo.rows`, added to by its functions; `ArmStatistics` is a view of the arms'. Stated preferences
have rows only for those who stated any: a million users with five objectives take about half a gigabyte.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from pamo.arrays import Floats, Ints
from pamo.compiling import kernel
from pamo.rows import (
    arm_width,
    observe_arm,
    observe_arms,
    observe_user,
    observe_users,
    state,
    stated_width,
    user_width,
)
from pamo.statistics import ArmStatistics, UserStatistics
from pamo.store.base import (
    ArmAdded,
    ArmRetired,
    Arms,
    DecisionMade,
    Event,
    FeedbackGiven,
    Setup,
    UserErased,
    new_version,
)
from pamo.store.names import ABSENT, Names
from pamo.store.scales import Scales

CHUNK = 1 << 16
"""Users whose rows lie together: rows are added by the chunk, so that growing never copies what there is."""


@kernel
def _observe(values: Floats, arms: Floats, arm: int, users: Floats, user: int) -> None:
    """Add one feedback to its arm's row and, unless the row is negative, to its user's."""
    objectives = len(values) // 2
    observe_arm(arms[arm], values, objectives)
    if user >= 0:
        observe_user(users[user], values, objectives)


@kernel
def _state(values: Floats, stated: Floats, row: int) -> None:
    """Add one stated preference."""
    objectives = len(values) // 2
    state(stated[row], values[objectives + 1 :], 1.0, objectives)


class Rows:
    """Rows of zeros that grow by the chunk."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.count = 0
        self.chunks: list[Floats] = []

    def add(self, count: int = 1) -> int:
        """Return the number of the first of so many new rows."""
        self.count += count
        while self.count > len(self.chunks) * CHUNK:
            self.chunks.append(np.zeros((CHUNK, self.width)))  # takes memory only as rows are used
        return self.count - count

    def extend(self, rows: Floats) -> None:
        """Add rows with these numbers in them."""
        done = 0
        while done < len(rows):
            first = self.add()
            room = min(CHUNK - first % CHUNK, len(rows) - done)
            self.chunks[first // CHUNK][first % CHUNK : first % CHUNK + room] = rows[done : done + room]
            self.count += room - 1
            done += room

    def row(self, number: int) -> Floats:
        """Return one row."""
        row: Floats = self.chunks[number // CHUNK][number % CHUNK]
        return row

    def used(self) -> Iterator[Floats]:
        """Yield the rows that were added, chunk by chunk."""
        for index, chunk in enumerate(self.chunks):
            yield chunk[: min(CHUNK, self.count - index * CHUNK)]


class Fold:
    """The sums of all events up to `sequence`.

    >>> from pamo.store.base import Objective
    >>> fold = Fold(Setup((Objective("taste", 1, 5), Objective("price", 0, 10, lower_is_better=True))))
    >>> fold.apply(FeedbackGiven("d1", {"taste": 4, "price": 2}, at=0.0, overall=1.0, arm="A", user="ann"))
    >>> fold.arms().statistics.reward_sum.tolist(), fold.user_rows(["ann", "bob"])[0][:, 0].tolist()
    ([[0.75, 0.8]], [1.0, 0.0])
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.scales = Scales(setup)
        self.objectives = len(setup.objectives)
        self.sequence = 0
        self.decisions = 0
        self.feedbacks = 0
        self.arm_states: dict[str, tuple[str, bool]] = {}
        """From an arm's id to its name and whether it is active, in the order of the rows."""
        self.arm_rows: dict[str, int] = {}
        self._arm_names: list[str] = []
        self._arm_active = bytearray()
        self.block = np.zeros((8, arm_width(self.objectives)))
        self.user_names = Names()
        self.user_sums = Rows(user_width(self.objectives))
        self.stated_rows = array("i")
        """For each user's row the row of the preferences stated, −1 where there is none."""
        self.stated_sums = Rows(stated_width(self.objectives))
        self._nobody = np.zeros((0, self.user_sums.width))
        self._no_sums = np.zeros((1, self.user_sums.width))
        self._no_stated = np.zeros((1, self.stated_sums.width))
        self._table: Arms | None = None

    def apply(self, event: Event, sequence: int = 0) -> None:
        """Add one recorded event."""
        if type(event) is FeedbackGiven:
            self._observe(event)
        elif type(event) is DecisionMade:
            self.decisions += 1
        elif isinstance(event, ArmAdded):
            self._arm_row(event.arm)
            self._set_arm(event.arm, event.name, True)
        elif isinstance(event, ArmRetired):
            self._arm_row(event.arm)
            self._set_arm(event.arm, self.arm_states[event.arm][0], False)
        elif isinstance(event, UserErased) and event.user is not None:
            self.erase(event.user)
        self.sequence = max(self.sequence, sequence)

    def erase(self, user: str) -> None:
        """Forget a user; the arms keep what they learned."""
        row = self.user_names.find(user)
        if row == ABSENT:
            return
        self.user_names.drop(row)
        self.user_sums.chunks[row // CHUNK][row % CHUNK] = 0.0
        self.stated_rows[row] = ABSENT

    def arms(self) -> Arms:
        """Return the arms with a view of their sums."""
        if self._table is None:
            # Copies of what lies ready: whoever adds arms one by one, and looks at them, would wait for more.
            self._table = Arms(
                tuple(self.arm_rows),
                tuple(self._arm_names),
                np.frombuffer(self._arm_active, dtype=bool).copy(),
                self.arm_rows.copy(),
                ArmStatistics(rows=self.block[: len(self.arm_rows)]),
                new_version(),
            )
        return self._table

    def user_rows(self, ids: Sequence[str]) -> tuple[Floats, Floats]:
        """Return the rows of these users, and of their stated preferences: zeros for those who are not known."""
        sums = np.zeros((len(ids), self.user_sums.width))
        stated = np.zeros((len(ids), self.stated_sums.width))
        for place, user in enumerate(ids):
            row = self.user_names.find(user)
            if row >= 0:
                sums[place] = self.user_sums.chunks[row >> 16][row & 0xFFFF]
                if (own := self.stated_rows[row]) >= 0:
                    stated[place] = self.stated_sums.chunks[own >> 16][own & 0xFFFF]
        return sums, stated

    def users(self, ids: Sequence[str]) -> UserStatistics:
        """Return the statistics of these users."""
        rows, stated = self.user_rows(ids)
        return UserStatistics(rows=rows, stated=stated)

    def user_row(self, user: str) -> tuple[Floats, Floats]:
        """Return one user's rows without copying them, since rows stay where they are: zeros for who is not known."""
        row = self.user_names.find(user)
        if row < 0:
            return self._no_sums, self._no_stated
        own, place = self.stated_rows[row], row & 0xFFFF
        sums = self.user_sums.chunks[row >> 16][place : place + 1]
        if own < 0:
            return sums, self._no_stated
        place = own & 0xFFFF
        return sums, self.stated_sums.chunks[own >> 16][place : place + 1]

    def _observe(self, event: FeedbackGiven) -> None:
        self.feedbacks += 1
        assert event.arm is not None  # the store filled it in
        arm = self.arm_rows.get(event.arm, ABSENT)
        if arm == ABSENT:
            arm = self._arm_row(event.arm)
        values = self.scales.values(event)
        if event.user is None:  # erased: the arm learns, and nobody else
            _observe(values, self.block, arm, self._nobody, ABSENT)
            return
        user = self.user_names.find(event.user)
        if user == ABSENT:
            user = self.user_names.add(event.user)
            self._give_rows(1)
        _observe(values, self.block, arm, self.user_sums.chunks[user >> 16], user & 0xFFFF)
        if event.preference is not None:
            stated = self.stated_rows[user]
            if stated == ABSENT:
                stated = self.stated_rows[user] = self.stated_sums.add()
            _state(values, self.stated_sums.chunks[stated >> 16], stated & 0xFFFF)

    def observe_many(self, arms: Sequence[str], users: Sequence[str | None], scores: Floats) -> None:
        """Add feedbacks in order, each with all its scores as they came, the overall score last, and nothing else."""
        self.feedbacks += len(arms)
        values, known = self.scales.normalised(scores), self.arm_rows
        places = np.fromiter((known[arm] if arm in known else self._arm_row(arm) for arm in arms), np.int64, len(arms))
        rows = self._rows_of(users)
        observe_arms(self.block, places, values)
        nothing = np.full((len(rows), self.objectives), np.nan)
        for number in np.unique(rows[rows >= 0] // CHUNK).tolist():
            mine = np.flatnonzero(rows // CHUNK == number)
            chunk = self.user_sums.chunks[number]
            observe_users(chunk, self._no_stated, rows[mine] % CHUNK, values[mine], nothing)

    def _rows_of(self, users: Sequence[str | None]) -> Ints:
        """Return the rows of users, who get one where they have none; nobody has row −1."""
        names = ["" if user is None else user for user in users]
        rows = self.user_names.find_many(names)
        if new := dict.fromkeys(user for user, row in zip(users, rows.tolist(), strict=True) if row < 0 and user):
            self.user_names.add_many(list(new))
            self._give_rows(len(new))
            rows = self.user_names.find_many(names)
        rows[[user is None for user in users]] = ABSENT
        return rows

    def _give_rows(self, count: int) -> None:
        """Give so many new users rows of zeros."""
        self.user_sums.add(count)
        self.stated_rows.extend([ABSENT] * count)

    def _arm_row(self, arm: str) -> int:
        """Return an arm's row; one that was not added (yet) gets a row, and is not active."""
        row = self.arm_rows.get(arm)
        if row is None:
            row = self.arm_rows[arm] = len(self.arm_rows)
            self._set_arm(arm, arm, False)
            if row == len(self.block):
                self.block = np.concatenate([self.block, np.zeros_like(self.block)])
        return row

    def _set_arm(self, arm: str, name: str, active: bool) -> None:
        self.arm_states[arm] = (name, active)
        row = self.arm_rows[arm]
        self._arm_names[row : row + 1] = [name]
        self._arm_active[row : row + 1] = bytes([active])
        self._table = None

    def restore_arms(self, states: Iterable[tuple[str, str, bool]], sums: Floats) -> None:
        """Take over arms with their names and states, and their rows."""
        for arm, name, active in states:
            self.arm_rows[arm] = len(self.arm_rows)
            self._set_arm(arm, name, active)
        self.block = np.concatenate([sums, np.zeros((max(len(sums), 8), sums.shape[1]))])
