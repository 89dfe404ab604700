"""The fold: from the journal's events to sums, in memory.

The sums are rows of `pamo.rows`, added to by its functions; `ArmStatistics` is a view of the arms'. Stated preferences
have rows only for those who stated any, and incomplete feedback only for the pairs of user and arm that had some: a
million users with five objectives take about half a gigabyte.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pamo.arrays import Floats, Ints
from pamo.compiling import entry
from pamo.contract.events import ARMS, scores_of, with_scores
from pamo.contract.features import FeatureValue
from pamo.contract.forgetting import HalfLife, HalfLives
from pamo.rows import (
    PAIR_COUNT,
    ROUNDS,
    arm_width,
    counts_at,
    grow_old,
    observe_arm,
    observe_arms,
    observe_pair,
    observe_user,
    observe_users,
    pair_width,
    pulls_at,
    read_aged,
    state,
    stated_width,
    user_width,
)
from pamo.statistics import ArmStatistics, Pairs, UserStatistics
from pamo.store.base import (
    ArmAdded,
    ArmChanged,
    ArmRetired,
    Arms,
    ArmState,
    DecisionMade,
    Declared,
    Event,
    ExperimentEnded,
    ExperimentStarted,
    Feature,
    FeaturesDeclared,
    FeedbackGiven,
    Setup,
    TasteChanged,
    UserErased,
    UserKnown,
    new_version,
)
from pamo.store.groups import Groups
from pamo.store.names import ABSENT, RECENT, Names
from pamo.store.scales import Scales

NEVER = (-1.0, -1.0)
"""The ages of a round of which nothing is forgotten, by its arm and by its user."""
NONE_LEFT = 1e-9
"""Rounds of a pair that are none: weights that were added and taken back may leave a trace."""
STEP = 1 / 64
"""Half-lives after which all arms are read anew: their counts are never off by more than a hundredth."""

CHUNK = 1 << 16
"""Users whose rows lie together: rows are added by the chunk, so that growing never copies what there is."""


@entry
def _observe(values: Floats, weight: float, arms: Floats, arm: int, users: Floats, user: int) -> bool:
    """Add one feedback to its arm's row and, unless the row is negative, to its user's; tell whether a pair has it."""
    objectives = len(values) // 2
    observe_arm(arms[arm], values, weight, objectives)
    return user >= 0 and observe_user(users[user], values, weight, objectives)


@entry
def _observe_aged(
    values: Floats, weight: float, arms: Floats, arm: int, arm_age: float, users: Floats, user: int, user_age: float
) -> bool:
    """Do the same where something is forgotten; an age below 0 is of those who do not forget."""
    objectives = len(values) // 2
    observe_arm(arms[arm], values, weight * grow_old(arms[arm], arm_age, 0), objectives)
    return user >= 0 and _observe_user(values, weight, users, user, user_age)


@entry
def _observe_user(values: Floats, weight: float, users: Floats, user: int, age: float) -> bool:
    row = users[user]
    rounds = row[ROUNDS]
    partial = observe_user(row, values, weight * grow_old(row, age, 1), len(values) // 2)
    row[ROUNDS] = rounds + weight
    return bool(partial)


@entry
def _grow_old(row: Floats, age: float) -> float:
    return float(grow_old(row, age, 0))


@entry
def _read_rows(out: Floats, rows: Floats, now: float) -> None:
    for place in range(len(rows)):
        read_aged(out[place], rows[place], now, 0)


ARM, NEXT, SUMS = range(3)
"""Places in a line of `PairRows.lines`: the arm, the user's next line, and from there on the pair's row."""


@entry
def _observe_pair(values: Floats, weight: float, lines: Floats, line: int, age: float) -> None:
    row = lines[line, SUMS:]
    observe_pair(row, values, weight * grow_old(row, age, 0), len(values) // 2)


@entry
def _find(lines: Floats, line: int, arm: int) -> int:
    """Return the line of an arm among those that are linked from this one on, −1 where there is none."""
    while line >= 0 and int(lines[line, ARM]) != arm:
        line = int(lines[line, NEXT])
    return line


@entry
def _walk(lines: Floats, line: int, arms: Ints, rows: Floats, least: float) -> int:
    """Copy the lines that are linked from this one on, as far as there is room; return how many there are.

    A pair whose rounds have all been completed by later parts is not there any more: it has none, or at most `least`.
    """
    count = 0
    while line >= 0:
        if lines[line, SUMS + PAIR_COUNT] > least:
            if count < len(arms):
                arms[count] = int(lines[line, ARM])
                rows[count] = lines[line, SUMS:]
            count += 1
        line = int(lines[line, NEXT])
    return count


@entry
def _unlink(lines: Floats, heads: Any, arm: int, free: int) -> int:
    """Take an arm's lines out of everybody's, and link them before the free ones; return the first of those."""
    for user in range(len(heads)):
        before, line = -1, heads[user]
        while line >= 0:
            after = int(lines[line, NEXT])
            if int(lines[line, ARM]) == arm:
                if before < 0:
                    heads[user] = after
                else:
                    lines[before, NEXT] = after
                lines[line] = 0.0
                lines[line, NEXT] = free
                free = line
            else:
                before = line
            line = after
    return free


@entry
def _state(values: Floats, stated: Floats, row: int, age: float) -> None:
    """Add one stated preference, unless it lacks an objective that was declared since."""
    objectives = len(values) // 2
    weights = values[objectives + 1 :]
    if not np.isnan(weights.sum()):
        state(stated[row], weights, grow_old(stated[row], age, 0), objectives)


class RedeclaredError(Exception):
    """Objectives, scales or half-lives were declared anew, so that the journal is to be folded by those."""

    def __init__(self, setup: Setup, sequence: int) -> None:
        super().__init__(f"event {sequence} declares what the journal is folded by")
        self.setup, self.sequence = setup, sequence


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


class PairRows:
    """Rows of pairs: those of a user are linked, so that a user who has none takes four bytes."""

    def __init__(self, width: int) -> None:
        self.lines = np.zeros((0, SUMS + width))
        self.count = 0
        self.heads = array("i")
        """For each user's row the first line, −1 where there is none."""
        self._free = ABSENT

    def add(self, user: int, arm: int) -> int:
        """Return the line of a user and an arm, which is made where there is none."""
        line: int = _find(self.lines, self.heads[user], arm)
        if line >= 0:
            return line
        if self._free >= 0:
            line, self._free = self._free, int(self.lines[self._free, NEXT])
        else:
            if self.count == len(self.lines):
                more = np.zeros((max(self.count // 2, 64), self.lines.shape[1]))
                self.lines = np.concatenate([self.lines, more])
            line = self.count
            self.count += 1
        self.lines[line, ARM], self.lines[line, NEXT] = arm, self.heads[user]
        self.heads[user] = line
        return line

    def drop_user(self, user: int) -> None:
        """Forget a user's rows."""
        line = self.heads[user]
        self.heads[user] = ABSENT
        while line >= 0:
            after = int(self.lines[line, NEXT])
            self.lines[line] = 0.0
            self.lines[line, NEXT], self._free = self._free, line
            line = after

    def drop_arm(self, arm: int) -> None:
        """Forget everybody's row of an arm."""
        if self.count:
            self._free = _unlink(self.lines, np.frombuffer(self.heads, dtype=np.int32), arm, self._free)

    def restore(self, count: int, users: Ints, arms: Ints, rows: Floats) -> None:
        """Take over rows, of so many users."""
        self.lines, self.count = np.zeros((len(rows), SUMS + rows.shape[1])), len(rows)
        heads = np.full(count, ABSENT, dtype=np.int32)
        self.lines[:, ARM], self.lines[:, SUMS:] = arms, rows
        for line, user in enumerate(users.tolist()):
            self.lines[line, NEXT], heads[user] = heads[user], line
        self.heads = array("i", heads.tobytes())

    def of(self, users: Sequence[int], least: float = NONE_LEFT) -> Pairs:
        """Return the rows of these users with more rounds than so many, none for a user that is negative."""
        heads = [self.heads[user] if user >= 0 else ABSENT for user in users]
        arms: Ints = np.zeros(0, dtype=np.int64)
        rows = np.zeros((0, self.lines.shape[1] - SUMS))
        starts = np.zeros(len(users) + 1, dtype=np.int64)
        np.cumsum([_walk(self.lines, line, arms, rows, least) if line >= 0 else 0 for line in heads], out=starts[1:])
        arms, rows = np.zeros(starts[-1], dtype=np.int64), np.zeros((starts[-1], rows.shape[1]))
        for place, line in enumerate(heads):
            if line >= 0:
                part = slice(starts[place], starts[place + 1])
                _walk(self.lines, line, arms[part], rows[part], least)
        return Pairs(starts, arms, rows)


class Fold:
    """The sums of all events up to `sequence`.

    >>> from pamo.store.base import Objective
    >>> fold = Fold(Setup((Objective("taste", 1, 5), Objective("price", 0, 10, lower_is_better=True))))
    >>> fold.apply(FeedbackGiven("d1", {"taste": 4, "price": 2}, at=0.0, overall=1.0, arm="A", user="ann"))
    >>> fold.arms().statistics.reward_sum.tolist(), fold.user_rows(["ann", "bob"])[0][:, 0].tolist()
    ([[0.75, 0.8]], [1.0, 0.0])
    """

    def __init__(self, setup: Setup, declared: float = math.inf) -> None:
        """Begin a fold by these objectives; declared: the event that declared them, after which there may be others."""
        self.setup = setup
        self.scales = Scales(setup)
        self.objectives = len(setup.objectives)
        self.declared = declared
        self._lives = setup.half_life or HalfLives()
        self.newest = 0.0
        """When the newest round was, which is now for what is forgotten by the day."""
        self.sequence = 0
        self.decisions = 0
        self.feedbacks = 0
        self.features: dict[str, Feature] = {}
        self.user_features: dict[str, Feature] = {}
        self.known: dict[str, dict[str, FeatureValue]] = {}
        """The features of users of whom any are known."""
        self.arm_states: dict[str, ArmState] = {}
        """From an arm's id to how it stands, in the order of the rows."""
        self.arm_rows: dict[str, int] = {}
        self._arm_names: list[str] = []
        self._arm_active = bytearray()
        self._arm_features: list[Mapping[str, FeatureValue]] = []
        forgets, fades = self._lives.users is not None, self._lives.arms is not None
        self.block = np.zeros((8, arm_width(self.objectives) + fades))
        self._read = np.zeros((8, arm_width(self.objectives)))
        """Where arms are forgotten: the block as it is worth now."""
        self._read_at = 0.0
        self.user_names = Names()
        self.user_sums = Rows(user_width(self.objectives) + forgets)
        self.stated_rows = array("i")
        """For each user's row the row of the preferences stated, −1 where there is none."""
        self.stated_sums = Rows(stated_width(self.objectives) + forgets)
        self.pairs = PairRows(pair_width(self.objectives) + forgets)
        self.taste_changes: dict[int, tuple[int, int]] = {}
        """By a user's row, the number of the last event for a change of taste, and of the first decision since."""
        self.arm_changes: dict[int, int] = {}
        """By an arm's row, the number of the last event for its change."""
        self.groups = Groups(self.objectives)
        self._held: dict[int, Floats] | None = None
        self.at_hand: dict[str, tuple[Floats, Floats]] = {}
        """What `user_row` returned lately of users who are known: rows stay where they are."""
        self._nobody = np.zeros((0, self.user_sums.width))
        self._no_sums = np.zeros((1, user_width(self.objectives)))
        self._no_stated = np.zeros((1, stated_width(self.objectives)))
        self.table: Arms | None = None
        """The arms as `arms` returned them last; None once they are others."""

    def apply(self, event: Event, sequence: int = 0) -> None:
        """Add one recorded event."""
        if type(event) is FeedbackGiven:
            self._observe(event)
        elif type(event) is DecisionMade:
            self.decisions += 1
        elif isinstance(event, ArmAdded):
            self._arm_row(event.arm)
            self._set_arm(event.arm, self.arm_states[event.arm].after(event))
        elif isinstance(event, ArmRetired):
            self._arm_row(event.arm)
            self._set_arm(event.arm, self.arm_states[event.arm]._replace(active=False))
        elif isinstance(event, FeaturesDeclared):
            declared = self.features if event.of == ARMS else self.user_features
            declared.update((one.name, one) for one in event.features)
        elif isinstance(event, UserKnown) and event.user is not None:
            changed: dict[str, Any] = {**self.known.get(event.user, {}), **event.features}
            self.known[event.user] = {name: value for name, value in changed.items() if value is not None}
        elif isinstance(event, UserErased) and event.user is not None:
            self.erase(event.user)
        elif isinstance(event, TasteChanged):
            self._change_taste(event, sequence)
        elif isinstance(event, ArmChanged):
            self._change_arm(event, sequence)
        elif isinstance(event, ExperimentStarted):
            self.groups.start(event)
        elif isinstance(event, ExperimentEnded):
            self.groups.end(event)
        elif isinstance(event, Declared) and sequence > self.declared:
            raise RedeclaredError(event.setup, sequence)
        if sequence > self.sequence:  # noqa: PLR1730  # `max` takes five times as long
            self.sequence = sequence

    def erase(self, user: str) -> None:
        """Forget a user; the arms keep what they learned."""
        self.known.pop(user, None)
        self.at_hand.pop(user, None)
        row = self.user_names.find(user)
        if row == ABSENT:
            return
        self._hold_row(row)
        self.user_names.drop(row)
        self.user_sums.chunks[row // CHUNK][row % CHUNK] = 0.0
        self.stated_rows[row] = ABSENT
        self.pairs.drop_user(row)
        self.taste_changes.pop(row, None)
        self.groups.forget(row)

    def taste_changed(self, user: str) -> tuple[int, int]:
        """Return when a user's taste was last found to have changed, as `rules.Changes` says."""
        return self.taste_changes.get(self.user_names.find(user), (0, 0)) if self.taste_changes else (0, 0)

    def arm_changed(self, arm: str) -> int:
        """Return the same of an arm."""
        return self.arm_changes.get(self.arm_rows.get(arm, ABSENT), 0)

    def arms(self) -> Arms:
        """Return the arms with a view of their sums."""
        if self.table is None:
            # Copies of what lies ready: whoever adds arms one by one, and looks at them, would wait for more.
            self.table = Arms(
                tuple(self.arm_rows),
                tuple(self._arm_names),
                np.frombuffer(self._arm_active, dtype=bool).copy(),
                self.arm_rows.copy(),
                ArmStatistics(rows=(self.block if self._lives.arms is None else self._read)[: len(self.arm_rows)]),
                new_version(),
                tuple(self._arm_features),
            )
        return self.table

    def user_rows(self, ids: Sequence[str]) -> tuple[Floats, Floats]:
        """Return the rows of these users, and of their stated preferences: zeros for those who are not known."""
        sums = np.zeros((len(ids), user_width(self.objectives)))
        stated = np.zeros((len(ids), stated_width(self.objectives)))
        life = self._lives.users
        for place, user in enumerate(ids):
            row = self.user_names.find(user)
            if row >= 0:
                own = self.stated_rows[row]
                if life is not None:
                    now = self._now(row, life)
                    read_aged(sums[place], self.user_sums.row(row), now, 1)
                    if own >= 0:
                        read_aged(stated[place], self.stated_sums.row(own), now, 0)
                    continue
                sums[place] = self.user_sums.chunks[row >> 16][row & 0xFFFF]
                if own >= 0:
                    stated[place] = self.stated_sums.chunks[own >> 16][own & 0xFFFF]
        return sums, stated

    def clock(self, user: str | None, arms: Sequence[str]) -> tuple[int, ...]:
        """Return the rounds of a user, and the pulls of arms, since half-lives in rounds were declared."""
        lives, row = self._lives, ABSENT if user is None else self.user_names.find(user)
        own = 0.0 if lives.users is None or row < 0 else self.user_sums.row(row)[-1] * lives.users.count
        rows = [self.arm_rows.get(arm, ABSENT) for arm in arms]
        pulls = [0.0 if lives.arms is None or row < 0 else self.block[row, -1] * lives.arms.count for row in rows]
        return (round(float(own)), *(round(float(one)) for one in pulls))

    def users(self, ids: Sequence[str]) -> UserStatistics:
        """Return the statistics of these users."""
        rows, stated = self.user_rows(ids)
        return UserStatistics(rows=rows, stated=stated)

    def user_row(self, user: str) -> tuple[Floats, Floats]:
        """Return one user's rows without copying them, since rows stay where they are: zeros for who is not known."""
        row = self.user_names.find(user)
        if row < 0:
            return self._no_sums, self._no_stated
        if self._lives.users is not None:
            return self.user_rows([user])
        own, place = self.stated_rows[row], row & 0xFFFF
        sums, stated = self.user_sums.chunks[row >> 16][place : place + 1], self._no_stated
        if own >= 0:
            place = own & 0xFFFF
            stated = self.stated_sums.chunks[own >> 16][place : place + 1]
        if len(self.at_hand) == RECENT:
            self.at_hand.clear()
        self.at_hand[user] = found = sums, stated
        return found

    def user_pairs(self, ids: Sequence[str]) -> Pairs:
        """Return the rows of these users' pairs."""
        rows = [self.user_names.find(user) for user in ids]
        pairs, life = self.pairs.of(rows), self._lives.users
        if life is not None:
            now = [0.0 if row < 0 else self._now(row, life) for row in rows]
            worth = np.empty((len(pairs.rows), pair_width(self.objectives)))
            for place, one in enumerate(np.repeat(now, np.diff(pairs.starts)).tolist()):
                read_aged(worth[place], pairs.rows[place], one, 0)
            pairs = pairs._replace(rows=worth)
        return pairs

    def _now(self, row: int, life: HalfLife) -> float:
        """Return now for a user, in half-lives: by rounds, each user has a clock of their own."""
        return max(life.age(self.newest, 0.0), float(self.user_sums.row(row)[-1]))

    def _ages(self, event: FeedbackGiven) -> tuple[float, float]:
        """Return when a feedback's round was, in half-lives of its arm and of its user; −1 where nothing is forgotten.

        Rounds from before a half-life in rounds was declared are as old as that moment.
        """
        at, rounds, pulls = event.age or (event.at, 0, 0)
        self.newest, lives = max(self.newest, at), self._lives
        return (
            -1.0 if lives.arms is None else lives.arms.age(at, pulls),
            -1.0 if lives.users is None else lives.users.age(at, rounds),
        )

    def _observe(self, event: FeedbackGiven) -> None:
        if event.part == 1:
            self.feedbacks += 1
        assert event.arm is not None  # the store filled it in
        arm = self.arm_rows.get(event.arm, ABSENT)
        if arm == ABSENT:
            arm = self._arm_row(event.arm)
        user = ABSENT  # of one who was erased: the arm learns, and nobody else
        if event.user is not None:
            user = self.user_names.find(event.user)
            if user == ABSENT:
                user = self.user_names.add(event.user)
                self._give_rows(1)
        ages = NEVER if self.setup.half_life is None else self._ages(event)
        if event.before is None:
            values = self.scales.values(event)
            self._add(values, 1.0, arm, user, ages)
        elif event.user_changed or event.arm_changed:
            values = self._complete(event, event.before, arm, user, ages)
        else:  # all parts so far take the place of those before this one
            self._add(self.scales.values(with_scores(event, event.before)), -1.0, arm, user, ages)
            values = self.scales.values(with_scores(event, {**event.before, **scores_of(event)}))
            self._add(values, 1.0, arm, user, ages)
        if user >= 0 and event.preference is not None:
            stated = self.stated_rows[user]
            if stated == ABSENT:
                stated = self.stated_rows[user] = self.stated_sums.add()
                self.at_hand.pop(event.user or "", None)
            _state(values, self.stated_sums.chunks[stated >> 16], stated & 0xFFFF, ages[1])
        if ages[0] >= 0.0:
            self._read_arms(arm)
        if event.group is not None:
            self.groups.add(user, event.group, self.scales.values(event))  # of parts, what each says

    def _complete(
        self, event: FeedbackGiven, before: Mapping[str, float], arm: int, user: int, ages: tuple[float, float]
    ) -> Floats:
        """Add a part to what has changed since the parts before: where those are gone, they cannot be taken back."""
        now = {**before, **scores_of(event)}
        # Only what is new is said of an arm that has changed as it is now.
        told = [(scores_of(event), 1.0)] if event.arm_changed else [(before, -1.0), (now, 1.0)]
        for scores, weight in told:
            values = self.scales.values(with_scores(event, scores))
            _observe_aged(values, weight, self.block, arm, ages[0], self._nobody, ABSENT, ages[1])
        if user >= 0 and not event.user_changed:
            self._hold_row(user)
            chunk, place = self.user_sums.chunks[user >> 16], user & 0xFFFF
            for scores, weight in ((before, -1.0), (now, 1.0)):  # the row of the pair went when the arm changed
                _observe_user(self.scales.values(with_scores(event, scores)), weight, chunk, place, ages[1])
        return self.scales.values(with_scores(event, now))

    def observe_many(
        self,
        arms: Sequence[str],
        users: Sequence[str | None],
        scores: Floats,
        groups: Sequence[tuple[str, str] | None] = (),
    ) -> None:
        """Add feedbacks in order, each with all its scores as they came, the overall score last, and nothing else.

        groups: those of an experiment that they belong to.
        """
        self.feedbacks += len(arms)
        values, known = self.scales.normalised(scores), self.arm_rows
        for arm in dict.fromkeys(arms):
            if arm not in known:
                self._arm_row(arm)
        places = np.array([known[arm] for arm in arms], dtype=np.int64)
        rows = self._rows_of(users)
        observe_arms(self.block, places, values)
        nothing = np.full((len(rows), self.objectives), np.nan)
        for number in np.unique(rows[rows >= 0] // CHUNK).tolist():
            mine = np.flatnonzero(rows // CHUNK == number)
            chunk = self.user_sums.chunks[number]
            observe_users(chunk, self._no_stated, rows[mine] % CHUNK, values[mine], nothing)
        self.groups.add_many(rows, groups, values)

    def _rows_of(self, users: Sequence[str | None]) -> Ints:
        """Return the rows of users, who get one where they have none; nobody has row −1."""
        names: Any = ["" if user is None else user for user in users] if None in users else users
        rows = self.user_names.find_many(names)
        if new := dict.fromkeys(names[place] for place in np.flatnonzero(rows < 0).tolist() if names[place]):
            self.user_names.add_many(list(new))
            self._give_rows(len(new))
            rows = self.user_names.find_many(names)
        return rows

    def _give_rows(self, count: int) -> None:
        """Give so many new users rows of zeros."""
        self.user_sums.add(count)
        self.stated_rows.extend([ABSENT] * count)
        self.pairs.heads.extend([ABSENT] * count)

    def _add(self, values: Floats, weight: float, arm: int, user: int, ages: tuple[float, float]) -> None:
        """Add what was said of an arm to its row, to the user's and, where it is incomplete, to that of the pair."""
        if user < 0:
            users, place = self._nobody, ABSENT
        else:
            if self._held is not None:
                self._hold_row(user)
            users, place = self.user_sums.chunks[user >> 16], user & 0xFFFF
        if ages is NEVER:
            incomplete = _observe(values, weight, self.block, arm, users, place)
        else:
            incomplete = _observe_aged(values, weight, self.block, arm, ages[0], users, place, ages[1])
        if incomplete:
            line = self.pairs.add(user, arm)
            _observe_pair(values, weight, self.pairs.lines, line, ages[1])

    def _read_arms(self, arm: int) -> None:
        """Write what arms are worth now: of this one, and of all once time has passed that shows."""
        life = self._lives.arms
        assert life is not None
        now = life.age(self.newest, 0.0) // STEP * STEP
        if len(self._read) < len(self.block):
            self._read, self.table, self._read_at = np.zeros((len(self.block), self._read.shape[1])), None, -math.inf
        if now != self._read_at:
            self._read_at = now
            _read_rows(self._read, self.block, now)
        else:
            read_aged(self._read[arm], self.block[arm], now, 0)

    def _change_taste(self, event: TasteChanged, sequence: int) -> None:
        """Put the rounds that are kept in the place of all that was learned of a user; the number of rounds stays."""
        user = ABSENT if event.user is None else self.user_names.find(event.user)
        if user == ABSENT:
            return
        self._hold_row(user)
        chunk, place = self.user_sums.chunks[user >> 16], user & 0xFFFF
        rounds = chunk[place, ROUNDS]
        chunk[place] = 0.0
        self.pairs.drop_user(user)
        for arm, rewards, overall in event.kept:
            told = FeedbackGiven(event.decision, rewards, event.at, overall)
            values, (_, age) = self.scales.values(told), self._ages(told)
            if _observe_user(values, 1.0, chunk, place, age):
                line = self.pairs.add(user, self._arm_row(arm))
                _observe_pair(values, 1.0, self.pairs.lines, line, age)
        chunk[place, ROUNDS] = rounds
        self.taste_changes[user] = sequence, event.place

    def _change_arm(self, event: ArmChanged, sequence: int) -> None:
        """Put what is kept of some objectives in the place of what was learned; foretold scores are taken back.

        Moments of whole rewards mix what was with what is, so that they begin anew. Pulls are as many as told of the
        objective that most is known of.
        """
        row, objectives = self._arm_row(event.arm), self.objectives
        sums, counts, pulls = self.block[row], counts_at(objectives), pulls_at(objectives)
        sums[:counts] = 0.0
        age, _ = self._ages(FeedbackGiven("", {}, event.at))
        weight = _grow_old(sums, age)
        for name, kept in event.kept.items():
            if name in self.scales.names:
                place = counts + self.scales.names.index(name)
                sums[place : place + 2 * objectives + 1 : objectives] = self.scales.sums(name, *kept)
                sums[place : place + 2 * objectives + 1 : objectives] *= weight
        sums[pulls] = sums[counts : counts + objectives].max()
        self.pairs.drop_arm(row)
        self.arm_changes[row] = sequence
        if age >= 0.0:
            self._read_arms(row)

    def hold(self) -> None:
        """From now on keep users' rows as they are now, whatever changes, for `as_held`."""
        self._held = {}

    def let_go(self) -> None:
        """Keep them no longer."""
        self._held = None

    def as_held(self, rows: Floats, first: int) -> Floats:
        """Return a copy of some of the users' rows, from row `first` on, as they were when told to hold them."""
        copy = rows.copy()
        for row, before in (self._held or {}).items():
            if first <= row < first + len(rows):
                copy[row - first] = before
        return copy

    def _hold_row(self, user: int) -> None:
        if self._held is not None and user not in self._held:
            self._held[user] = self.user_sums.row(user).copy()

    def _arm_row(self, arm: str) -> int:
        """Return an arm's row; one that was not added (yet) gets a row, and is not active."""
        row = self.arm_rows.get(arm)
        if row is None:
            row = self.arm_rows[arm] = len(self.arm_rows)
            self._set_arm(arm, ArmState(arm, False))
            if row == len(self.block):
                self.block = np.concatenate([self.block, np.zeros_like(self.block)])
                if self._lives.arms is not None:
                    self._read_arms(row)
        return row

    def _set_arm(self, arm: str, state: ArmState) -> None:
        self.arm_states[arm] = state
        row = self.arm_rows[arm]
        self._arm_names[row : row + 1] = [state.name]
        self._arm_active[row : row + 1] = bytes([state.active])
        self._arm_features[row : row + 1] = [state.features]
        self.table = None

    def restore_user(self, user: str, sums: Floats, stated: Floats | None) -> None:
        """Take over a user with the rows there are."""
        self.user_names.add(user)
        self.user_sums.extend(sums[None])
        self.pairs.heads.append(ABSENT)
        self.stated_rows.append(ABSENT if stated is None else self.stated_sums.count)
        if stated is not None:
            self.stated_sums.extend(stated[None])

    def restore_arms(self, states: Iterable[Sequence[Any]], sums: Floats) -> None:
        """Take over arms with their names, states and features, and their rows."""
        for arm, *known in states:
            self.arm_rows[arm] = len(self.arm_rows)
            self._set_arm(arm, ArmState(*known))
        self.block = np.concatenate([sums, np.zeros((max(len(sums), 8), sums.shape[1]))])
        if self._lives.arms is not None and len(sums):
            self._read_at = -math.inf
            self._read_arms(0)
