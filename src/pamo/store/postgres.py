"""A store in PostgreSQL: any number of workers, on any number of machines, write to one journal.

A worker keeps nothing that it could lose. What is handed in is committed in small batches: events go in `ON CONFLICT DO
NOTHING`, and the sums of those that did go in are added in the same transaction, keys in order, so that workers do not
deadlock. A batch whose connection breaks is tried again as it is: what is in the journal already is a duplicate then.

Events are the truth. The sums are kept in tables beside them, so that a worker that has just started knows everything.
Numbers are arrays, laid out as the rows of a `Fold`, in tables that have the layout's number in their names: a worker
that knows another layout finds no table to add to, rather than adding what does not belong there.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import mul
from typing import Any, Self

import numpy as np

from pamo.arrays import Floats
from pamo.comparing import Sums
from pamo.contract.features import FeatureValue
from pamo.contract.forgetting import DAYS, HalfLife, HalfLives
from pamo.errors import DamagedError, InputError, StoreError
from pamo.rows import arm_width, pair_width, read_aged, stated_width, user_width
from pamo.statistics import Pairs
from pamo.store import postgres_tables as tables
from pamo.store.ages import LOOKED_AT, Ages
from pamo.store.base import (
    EXPIRES_AFTER,
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
    FeedbackGiven,
    Outcome,
    Receipt,
    Setup,
    TasteChanged,
    UserErased,
    UserKnown,
)
from pamo.store.encoding import (
    ARM_CHANGED,
    DECLARED,
    EXPERIMENT_ENDED,
    EXPERIMENT_STARTED,
    TASTE_CHANGED,
    Row,
    decode,
    encode,
    to_json,
)
from pamo.store.fold import NONE_LEFT, Fold
from pamo.store.folding import Folding
from pamo.store.groups import Compared, Experiment, Groups
from pamo.store.ledger import Ledger, named, nobody, runs
from pamo.store.postgres_arms import ArmCache
from pamo.store.postgres_arrays import Numbers, Places, Texts
from pamo.store.postgres_link import LOCK, Link, LostError, connect, psycopg
from pamo.store.postgres_seals import ADD_SEAL, ADVICE, SEAL_ANEW, UNSEALED, Sealed, sum_of, wrong_with
from pamo.store.rules import NOT_EMPTY, Checker, redacted
from pamo.store.scales import Scales
from pamo.store.setups import plain_setup
from pamo.store.sql import Questions, SqlStore, following, pages
from pamo.store.writer import Writer

PATIENCE = 10.0
"""Seconds for which a batch is tried again while the database cannot be reached."""

ANEW = "another worker has declared the objectives anew: start this one again, so that it knows them"

SHARDS = 16
"""Rows that an arm's sums are spread over, so that workers do not wait for each other at a popular arm."""

ERASED_AT_A_TIME = 500
"""Decisions, with their feedback, that are rewritten while other workers wait."""


class Changed:
    """When tastes and arms have changed, as some of the journal's events say: what `rules.Changes` is."""

    def __init__(self, events: Iterable[tuple[int, Event]] = ()) -> None:
        self._users: dict[str | None, tuple[int, int]] = {}
        self._arms: dict[str, int] = {}
        for sequence, event in events:
            if isinstance(event, TasteChanged):
                self._users[event.user] = sequence, event.place
            elif isinstance(event, ArmChanged):
                self._arms[event.arm] = sequence

    def taste_changed(self, user: str) -> tuple[int, int]:
        """Return when a user's taste was last found to have changed."""
        return self._users.get(user, (0, 0))

    def arm_changed(self, arm: str) -> int:
        """Return when an arm was."""
        return self._arms.get(arm, 0)


class PostgresStore(SqlStore):
    """Keeps journal and sums in a PostgreSQL database, which it sets up where that has not been done.

    url: as libpq takes it, `postgresql://user@host/database`. refresh: seconds until the arms' sums are read anew.
    adopt_damage: whether to go on with what is left where some of the journal is damaged or missing.
    """

    remote = True
    _ask = Questions("pamo_events", "user_id", "%s", tables.AMONG, more=", checksum")
    _page = 5000
    _anew = f"{_ask.columns} WHERE kind = '{DECLARED}'"
    _find = f"{_ask.columns} WHERE decision = ANY(%s) UNION {_ask.columns} WHERE key = ANY(%s) UNION {_anew}"
    _changes = (
        f"{_ask.columns} WHERE kind = '{TASTE_CHANGED}' AND user_id = ANY(%s) "
        f"UNION ALL {_ask.columns} WHERE kind = '{ARM_CHANGED}' AND sequence > %s ORDER BY sequence"
    )

    _arms_end = tables.ARMS_END
    _in_experiments = f"{_ask.columns} WHERE kind IN ('{EXPERIMENT_STARTED}', '{EXPERIMENT_ENDED}') ORDER BY sequence"

    def __init__(
        self,
        url: str,
        setup: Setup | None = None,
        *,
        expires_after: float = EXPIRES_AFTER,
        refresh: float = 0.5,
        patience: float = PATIENCE,
        adopt_damage: bool = False,
    ) -> None:
        self._connect(Link(url, patience))
        self._ages = Ages(expires_after)
        self._refresh = refresh
        with self._closing_if_it_fails():
            self._link.retry(lambda: self._prepare(setup, adopt_damage))
        self._checker = Checker(self.setup, self._features_of)
        with contextlib.suppress(DamagedError):  # which whoever meets it is told
            self._ages.note(self.tail(LOOKED_AT))
        self._writer = Writer(self._commit, lambda: None)

    # Opening

    @classmethod
    def adopting(cls, address: str) -> Self:
        """Open the store in a database, and go on with what is left of a journal that is damaged."""
        return cls(address, adopt_damage=True)

    @classmethod
    @contextlib.contextmanager
    def begun(cls, address: str, setup: Setup) -> Iterator[Self]:
        """Yield a store whose tables, where they were made for it, are taken away again if it fails."""

        def there() -> bool:
            with connect(address, autocommit=True) as connection:
                return tables.has(connection.execute, "pamo_events")

        was_there = there()
        try:
            with cls(address, setup) as store:
                yield store
        except BaseException:
            if not was_there and there():
                with connect(address) as connection:
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
                    if connection.execute("SELECT count(*) FROM pamo_events").fetchone()[0] <= 1:
                        connection.execute(tables.DROP)
            raise

    @property
    def features(self) -> Mapping[str, Feature]:
        """The features that arms may have."""
        return self._features

    @property
    def user_features(self) -> Mapping[str, Feature]:
        """The features that users may have."""
        return self._user_features

    @property
    def running(self) -> ExperimentStarted | None:
        """The experiment that is running, as it was at most `refresh` seconds ago."""
        return self._known_groups().running

    def experiments(self) -> Sequence[Experiment]:
        """Return all experiments, as the database holds them now."""
        self._groups_at = -math.inf
        return list(self._known_groups().experiments.values())

    def _known_groups(self) -> Groups:
        now = time.monotonic()
        if now - self._groups_at >= self._refresh:
            self._groups, self._groups_at = self._groups_in(self._rows), now
        return self._groups

    def _groups_in(self, execute: Callable[..., Iterable[Any]]) -> Groups:
        """Return the experiments that there are, without the rows of their users."""
        groups = Groups(len(self.setup.objectives))
        for _, event in self._decoded(execute(self._in_experiments)):
            if isinstance(event, ExperimentStarted):
                groups.start(event)
            elif isinstance(event, ExperimentEnded):
                groups.end(event)
        return groups

    def compared(self) -> dict[str, Compared]:
        """Return the groups of the newest experiment, as the database holds them now."""
        scores, found = len(self.setup.objectives) + 1, dict[float, Compared]()
        means = ", ".join(f"sums[{2 + scores + n}] / nullif(sums[{2 + n}], 0) AS m{n}" for n in range(scores))
        added = ", ".join(f"count(m{n}), coalesce(sum(m{n}), 0), coalesce(sum(m{n}^2), 0)" for n in range(scores))
        statement = f"SELECT one, count(*), {added} FROM (SELECT sums[1] AS one, {means} FROM pamo_groups) AS users"
        for group, users, *sums in (
            self._rows(f"{statement} GROUP BY one") if tables.has(self._rows, "pamo_groups") else ()
        ):
            found[group] = Compared(users, tuple(Sums(*map(float, sums[n : n + 3])) for n in range(0, len(sums), 3)))
        known, nobody_there = self.experiments(), Compared(0, (Sums(),) * scores)
        groups = known[-1].started.groups() if known else ()
        return {one.name: found.get(place, nobody_there) for place, one in enumerate(groups, start=1)}

    def known_of(self, ids: Sequence[str]) -> list[Mapping[str, FeatureValue]]:
        """Return the features of these users."""
        found = {user: json.loads(features) for user, features in self._rows(tables.KNOWN, (list(ids),))} if ids else {}
        return [found.get(user, {}) for user in ids]

    def _connect(self, link: Link) -> None:
        self._features: Mapping[str, Feature] = {}
        self._user_features: Mapping[str, Feature] = {}
        self.lock = threading.RLock()
        self._closed = False
        self._link = link
        self._groups_at = -math.inf
        self._looked = 0

    @contextlib.contextmanager
    def _closing_if_it_fails(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._link.close()
            raise

    def _go_by(self, setup: Setup) -> None:
        """Add and read by these objectives and half-lives."""
        self.setup, self._scales, self._newest = setup, Scales(setup), 0.0
        states = f"{tables.ARMS} ORDER BY place"
        self._arms = ArmCache(setup, self._refresh, end=self._arms_end, arms=states, sums=tables.ALL_SUMS)
        lives = setup.half_life or HalfLives()
        forgets, fades, objectives = lives.users is not None, lives.arms is not None, len(setup.objectives)
        own, stated = user_width(objectives) + forgets, stated_width(objectives) + forgets
        self._add_users = tables.add_users(own, stated, aged=forgets)
        self._add_pairs = tables.add_pairs(pair_width(objectives) + forgets, aged=forgets)
        self._add_arms = tables.add_arms(arm_width(objectives) + fades, aged=fades)

    def _declared(self, rows: Iterable[Any]) -> Setup:
        """Return the objectives that were declared last, of rows with all declarations among them."""
        anew = [event.setup for _, event in sorted(self._decoded(rows)) if isinstance(event, Declared)]
        self._times_declared = len(anew)
        return anew[-1] if anew else self.began

    def _prepare(self, setup: Setup | None, adopt_damage: bool) -> None:
        """Find out the objectives of the journal, which is begun here if there is none."""
        setup = None if setup is None else plain_setup(setup)
        with self._link.transaction(alone=True) as connection:
            begins = not tables.has(connection.execute, "pamo_events")
            if begins:
                if setup is None:
                    raise InputError(
                        "this database holds no store yet, and a new one needs its objectives: pass a setup"
                    )
                connection.execute(tables.SCHEMA)
            for name, schema in tables.LATER.items():
                if not tables.has(connection.execute, name):
                    connection.execute(schema)
            self._shard = int(connection.execute("SELECT nextval('pamo_workers')").fetchone()[0]) % SHARDS
            if begins and setup is not None:
                self._insert(connection, setup)
            first = connection.execute(self._ask.first).fetchone()
            self.began = self._first(first, self._link.name)
            self._go_by(self._declared(connection.execute(self._anew)))
            self._agree(setup, self._link.name)
            self._features, self._user_features = (
                tables.declared_in(connection.execute, table) for table in tables.DECLARED_IN
            )
            if not tables.has(connection.execute, tables.USER_SUMS):  # the store is new, or was another version's
                for (name,) in connection.execute(tables.OTHER_SUMS).fetchall():
                    connection.execute(f"DROP TABLE {name}")
                connection.execute(tables.SUMS_SCHEMA)
                self._fold_again(connection, adopt_damage)
            elif adopt_damage:
                self._fold_again(connection, adopt_damage)

    def _declare(self, setup: Setup, at: float) -> None:
        def attempt() -> None:
            with self._link.transaction(alone=True) as connection:
                self._go_by(self._declared(connection.execute(self._anew)))
                if setup == self.setup:
                    return  # another worker has declared the same, and folded by it
                self._insert(connection, Declared(setup, at))
                self._go_by(self._declared(connection.execute(self._anew)))
                self._fold_again(connection)

        self._link.retry(attempt)

    def _still(self, rows: Sequence[Any]) -> None:
        """Raise `StoreError` where another worker has declared objectives anew: what this one adds is not theirs."""
        if sum(row[1] == DECLARED for row in rows) != self._times_declared:
            raise StoreError(ANEW)

    # Writing

    def _commit(self, events: list[Event]) -> list[Receipt]:
        receipts: list[Receipt] = []
        for run in runs(events):
            receipts += self._link.retry(lambda run=run: self._append(run))  # type: ignore[misc]
        return receipts

    def _append(self, events: list[Event]) -> list[Receipt]:
        if isinstance(events[0], UserErased):
            return [self._erase(events[0])]
        if isinstance(events[0], TasteChanged | ArmChanged):
            return [self._change(events[0])]
        alone = ArmAdded | ArmRetired | ExperimentStarted | ExperimentEnded
        changes = any(isinstance(event, alone) for event in events)
        # The cache of arms takes a batch in after it was committed, and is not read from the database in between.
        try:
            with self._arms.changing(), self._link.transaction(alone=changes) as connection:
                return self._append_in(connection, events, changes)
        except psycopg.errors.UniqueViolation:
            raise LostError from None

    def _append_in(self, connection: Any, events: list[Event], changes: bool) -> list[Receipt]:
        numbers = connection.execute(tables.SHARE, (LOCK, len(events)), binary=True)
        if wanted := self._arms.unsure(events):
            self._arms.learn(connection.execute(f"{tables.ARMS} WHERE arm = ANY(%s)", (wanted,)))
        ledger = Ledger(
            self._scales,
            self._ages,
            self._arms.states,
            self._features,
            Changed(),
            user_features=self._user_features,
        )
        ids, keys = named(events)
        if ids:
            found = connection.execute(self._find, (Texts(ids), Texts(keys)), binary=True).fetchall()
            self._still(found)
            ledger.fill(self._decoded(found))
            begun = [entry for entry in ledger.entries.values() if entry.parts]
            if begun:  # what completes a feedback has to know what has changed since that was begun
                users = [entry.decision.user for entry in begun]
                oldest = min(number for entry in begun for number, _ in entry.parts)
                ledger.changes = Changed(self._decoded(connection.execute(self._changes, (users, oldest), binary=True)))
        groups = Groups(0)
        if changes and isinstance(events[0], ExperimentStarted | ExperimentEnded):
            ledger.experiments = self._groups_in(connection.execute).experiments
        elif any(entry.decision.group is not None for entry in ledger.entries.values()) or _gives_in_group(events):
            groups = self._groups_in(connection.execute)
        receipts, records = ledger.judge(events, -1, -1)  # below 0: places among those to be inserted
        if records:
            sequences = [number for (number,) in numbers.fetchall()[: len(records)]]
            inserting = self._inserting(records, sequences)
            for receipt in receipts:
                if receipt.sequence < 0:
                    receipt.sequence = sequences[-1 - receipt.sequence]
            fold = Fold(self.setup)
            fold.user_sums.chunks.append(np.zeros((len(records), fold.user_sums.width)))  # no room for thousands
            known = [str(record.user) for record in records if isinstance(record, UserKnown)]
            if known:
                kept = connection.execute(tables.KNOWN, (known,)).fetchall()
                fold.known.update((user, json.loads(features)) for user, features in kept)
            if groups.name is not None:
                fold.groups.start(groups.experiments[groups.name].started)
            for record in records:
                fold.apply(record)
                if isinstance(record, ExperimentStarted):
                    connection.execute("DELETE FROM pamo_groups")
                if isinstance(record, ExperimentStarted | ExperimentEnded):
                    self._groups_at = -math.inf
            self._newest = max(self._newest, fold.newest)
            self._set_arms(connection, ledger.changed)
            self._set_features(connection, fold)
            connection.execute(*tables.together([*inserting, *self._adding(fold)]))
            self._arms.committing(fold, ledger.changed)
        return receipts

    def _inserting(self, events: Sequence[Event], sequences: Sequence[int]) -> list[tables.Statement]:
        """Return what inserts events under these numbers, and adds them to the worker's seal."""
        rows = [encode(event) for event in events]
        sums = [sum_of(row) for row in rows]
        # One order for all workers, so that two that insert the same events do not wait for each other.
        order = sorted(range(len(rows)), key=lambda p: (rows[p].kind, rows[p].key or "", rows[p].decision or ""))
        columns = map(Texts, zip(*(rows[place] for place in order), strict=True))
        numbers, own = (Places(column[place] for place in order) for column in (sequences, sums))
        seal = self._shard, len(rows), sum(map(mul, sequences, sums))
        return [(tables.INSERT, (numbers, *columns, own)), (ADD_SEAL, seal)]

    def _insert(self, connection: Any, event: Event) -> int:
        """Insert one event where nobody else writes, and return its number."""
        (number,) = connection.execute(tables.SHARE, (LOCK, 1)).fetchone()
        self._run(connection, self._inserting([event], [number]))
        return int(number)

    @staticmethod
    def _run(connection: Any, statements: Iterable[tables.Statement]) -> None:
        for statement, bindings in statements:
            connection.execute(statement, bindings)

    def _set_arms(self, connection: Any, states: Mapping[str, ArmState]) -> None:
        if states:
            rows = ((arm, state.name, state.active, to_json(dict(state.features))) for arm, state in states.items())
            connection.execute(tables.SET_ARMS, _columns(rows))

    def _set_features(self, connection: Any, fold: Fold) -> None:
        """Keep features that were declared, of which other workers know when they start, and what users have."""
        for table, declared in zip(tables.DECLARED_IN, (fold.features, fold.user_features), strict=True):
            if declared:
                rows = ((one.name, one.kind) for one in declared.values())
                connection.execute(tables.SET_FEATURES.format(table), _columns(rows))
        self._features = {**self._features, **fold.features}
        self._user_features = {**self._user_features, **fold.user_features}
        for page in pages(sorted(fold.known.items()), self._page):
            connection.execute(tables.SET_KNOWN, _columns((user, to_json(features)) for user, features in page))

    def _adding(self, fold: Fold) -> Iterator[tables.Statement]:
        """Yield what adds a fold to the sums: users, then arms, then counts, each in order."""
        users = sorted((name, row) for row, name in enumerate(fold.user_names))
        for page in pages(users, self._page):
            names, rows = Texts(name for name, _ in page), [row for _, row in page]
            stated = [fold.stated_rows[row] for row in rows if fold.stated_rows[row] >= 0]
            places = iter(range(1, len(stated) + 1))
            yield (
                self._add_users,
                (
                    names,
                    Places(next(places) if fold.stated_rows[row] >= 0 else 0 for row in rows),
                    Numbers(np.array([fold.user_sums.row(row) for row in rows])),
                    Numbers(np.array([fold.stated_sums.row(row) for row in stated])),
                ),
            )
            if fold.pairs.count:
                yield from self._adding_pairs(fold, names, rows)
        of = {row: name for name, row in users} if fold.groups.count else {}
        mine = sorted((of[row], _literal(sums)) for row, sums in zip(*_listed(fold.groups), strict=True))
        for some in pages(mine, self._page):
            yield tables.ADD_GROUPS, _columns(some)
        arms = sorted(arm for arm, row in fold.arm_rows.items() if fold.block[row].any())
        if arms:
            sums = Numbers(fold.block[[fold.arm_rows[arm] for arm in arms]])
            yield self._add_arms, (self._shard, Texts(arms), sums)
        if fold.decisions or fold.feedbacks:
            yield tables.ADD_COUNTS, (self._shard, fold.decisions, fold.feedbacks)

    def _adding_pairs(self, fold: Fold, names: Texts, users: Sequence[int]) -> Iterator[tables.Statement]:
        # What a part takes back and what it adds may be as many rounds, and still something to add.
        arms, found = tuple(fold.arm_rows), fold.pairs.of(users, -math.inf)
        whose = np.repeat(np.arange(len(users)), np.diff(found.starts)).tolist()
        keys = [(names[place], arms[arm]) for place, arm in zip(whose, found.arms.tolist(), strict=True)]
        if keys:
            order = sorted(range(len(keys)), key=keys.__getitem__)
            columns = map(Texts, zip(*(keys[place] for place in order), strict=True))
            yield self._add_pairs, (*columns, Numbers(found.rows[order]))

    def _erase(self, event: UserErased) -> Receipt:
        """Take a user out of the journal, some decisions at a time: in between others are served."""
        found = False
        while True:
            with self._link.transaction(alone=True) as connection:
                some = f"{self._ask.made} ORDER BY sequence LIMIT %s"
                rows = connection.execute(
                    f"{self._ask.columns} WHERE decision IN ({some})", (event.user, ERASED_AT_A_TIME)
                ).fetchall()
                redactions = [(row, redacted(self._event(row))) for row in rows]  # type: ignore[arg-type]
                self._rewrite(connection, [(row, encode(new)) for row, new in redactions])
                if sum(isinstance(new, DecisionMade) for _, new in redactions) == ERASED_AT_A_TIME:
                    found = True
                    continue
                # One who gave feedback has sums until the last step, whoever was at it before.
                for table in ("pamo_known", "pamo_groups", tables.PAIR_SUMS, tables.USER_SUMS):
                    gone = connection.execute(f"DELETE FROM {table} WHERE user_id = %s", (event.user,)).rowcount
                if not (found or rows or gone):
                    return nobody(event)
                return Receipt(Outcome.RECORDED, self._insert(connection, UserErased(None, event.at)))

    def _rewrite(self, connection: Any, changed: Sequence[tuple[Sequence[Any], Row]]) -> None:
        """Put other events in the place of rows, and their checksums into the worker's seal."""
        rows, events, places = [], 0, 0
        for (sequence, *_, before), new in changed:
            own = sum_of(new)
            rows.append((sequence, new.user, new.key, new.body, own))
            events += before is None
            places += sequence * (own - (before or 0))
        if rows:
            connection.execute(tables.REWRITE, _columns(rows))
            connection.execute(ADD_SEAL, (self._shard, events, places))

    def _change(self, event: TasteChanged | ArmChanged) -> Receipt:
        """Put what is kept in the place of what was learned, while no worker adds to it."""
        with self._link.transaction(alone=True) as connection:
            known = connection.execute(f"{tables.ARMS} WHERE arm = ANY(%s)", ([getattr(event, "arm", "")],))
            states = {row[0]: ArmState(row[1], row[2]) for row in known}
            ledger = Ledger(self._scales, self._ages, states, {}, Changed())
            fold = Fold(self.setup)
            if isinstance(event, TasteChanged):
                ledger.fill(self._decoded(connection.execute(self._find, ([event.decision], []), binary=True)))
                of, whose = (tables.USER_SUMS, tables.PAIR_SUMS), ("user_id", event.user)
                for sums, stated in connection.execute(
                    f"SELECT sums, stated FROM {tables.USER_SUMS} WHERE user_id = %s", (event.user,)
                ).fetchall():
                    fold.restore_user(str(event.user), np.array(sums), None if stated is None else np.array(stated))
            else:
                of, whose = (tables.ARM_SUMS, tables.PAIR_SUMS), ("arm", event.arm)
                rows = connection.execute(f"SELECT sums FROM {tables.ARM_SUMS} WHERE arm = %s", (event.arm,)).fetchall()
                sums = fold.block[:1].copy()
                for (row,) in rows:
                    self._arms.add(sums[0], np.array(row))
                fold.restore_arms([(event.arm, event.arm, True)], sums)
            (receipt,), records = ledger.judge([event], 1)
            if records:
                receipt.sequence = self._insert(connection, records[0])
                fold.apply(event)
                for table in of:
                    connection.execute(f"DELETE FROM {table} WHERE {whose[0]} = %s", (whose[1],))
                self._run(connection, self._adding(fold))
        self._arms.forget()
        return receipt

    def _take_over(self, events: Iterable[tuple[int, Event]]) -> int:
        def attempt() -> int:
            count = 0
            with self._link.transaction(alone=True) as connection:
                if connection.execute("SELECT count(*) FROM pamo_events").fetchone()[0] > 1:
                    raise InputError(NOT_EMPTY)
                connection.execute("TRUNCATE pamo_events, pamo_seals RESTART IDENTITY")
                for page in pages(events, self._page):
                    numbers, some = zip(*page, strict=True)
                    self._run(connection, self._inserting(some, numbers))
                    count += len(page)
                connection.execute(
                    "SELECT setval(pg_get_serial_sequence('pamo_events', 'sequence'), max(sequence)) FROM pamo_events"
                )
                self.began = self._first(connection.execute(self._ask.first).fetchone(), self._link.name)
                self._go_by(self._declared(connection.execute(self._anew)))
                self._fold_again(connection)
            return count

        count = self._link.retry(attempt, patience=0.0)  # the events come only once
        self._arms.forget()
        return count

    def _fold_again(self, connection: Any, adopt_damage: bool = False) -> None:
        if adopt_damage:
            self._adopt(connection)
        fold = self._replay(connection.execute)
        if self.setup.half_life is not None:
            connection.execute(tables.AGED)
            connection.execute(tables.ADD_AGED)
        connection.execute(tables.FORGET)
        self._set_arms(connection, fold.arm_states)
        self._set_features(connection, fold)
        self._run(connection, self._adding(fold))
        # What was written in one go is known to the planner only after this: until then it reads whole tables.
        connection.execute(f"ANALYZE pamo_events, {tables.ARM_SUMS}, {tables.USER_SUMS}, {tables.PAIR_SUMS}")

    def _replay(self, execute: Callable[..., Iterable[Any]]) -> Fold:
        """Return the fold of the journal, each event of which is checked."""
        fold, sealed = Fold(self.setup), self._seals(execute)
        folding = Folding(fold)
        for rows in following(lambda after: list(execute(self._ask.page, (after, self._page))), fold.sequence):
            for wrong in filter(None, map(sealed, rows)):
                raise self._is_damaged(wrong)
            folding.add(rows)
        if wrong := sealed.missing():
            raise self._is_damaged(wrong)
        return fold

    def _adopt(self, connection: Any) -> None:
        """Write all checksums anew, and drop events that cannot be read or folded."""
        log, fold = logging.getLogger(__name__), Fold(self.setup)
        for rows in following(lambda after: connection.execute(self._ask.page, (after, self._page)).fetchall()):
            changed = []
            for row in rows:
                try:
                    fold.apply(super()._event(row))
                except Exception as error:
                    log.warning("%s: event %d cannot be read, and is dropped: %s", self._link.name, row[0], error)
                    connection.execute("DELETE FROM pamo_events WHERE sequence = %s", (row[0],))
                    continue
                if wrong := wrong_with(row):
                    log.warning("%s: %s, and is adopted as it is", self._link.name, wrong)
                if wrong or row[6] is None:
                    changed.append((row, Row(*row[1:6])))
            self._rewrite(connection, changed)
        connection.execute("TRUNCATE pamo_seals")
        connection.execute(SEAL_ANEW, (self._shard,))

    # Reading

    def _is_damaged(self, wrong: str) -> DamagedError:
        return DamagedError(f"the journal at {self._link.name} is damaged, {wrong}: {ADVICE}")

    def _event(self, row: Sequence[Any], read: Callable[..., Event] = decode) -> Event:
        if wrong := wrong_with(row):
            raise self._is_damaged(wrong)
        return super()._event(row, read)

    def _decoded(self, rows: Iterable[Sequence[Any]]) -> Iterator[tuple[int, Event]]:
        for row in rows:
            yield row[0], self._event(row)

    def _seals(self, execute: Callable[..., Iterable[Any]], *, whole: bool = True) -> Sealed:
        return Sealed(execute, whole=whole)

    def _wrong(self, after: int) -> Callable[[Sequence[Any]], str]:
        return self._seals(self._rows, whole=not after)

    def _missing(self, wrong: Callable[[Sequence[Any]], str]) -> str:
        return wrong.missing() if isinstance(wrong, Sealed) else ""

    def unsealed(self) -> int:
        """Return how many events were recorded before there were checksums."""
        return int(self._rows(UNSEALED)[0][0])

    def _rows(self, statement: str, bindings: Sequence[Any] = ()) -> list[Any]:
        return self._link.rows(statement, bindings)

    def arms(self) -> Arms:
        """Return the arms as they are now, with sums that are at most `refresh` seconds old; this worker's are in."""
        if self._looked != threading.get_ident():  # whoever has just read users knows already
            self._arms.reach(self._rows(self._arms_end)[0][0])
        self._looked = 0
        table = self._arms.table(self._rows)
        self._newest = max(self._newest, self._arms.newest)
        return table

    def user_rows(self, ids: Sequence[str]) -> tuple[Floats, Floats]:
        """Return users' sums as rows, as the database holds them now."""
        objectives = len(self.setup.objectives)
        rows = np.zeros((len(ids), user_width(objectives)))
        stated_rows = np.zeros((len(ids), stated_width(objectives)))
        # Whether the arms are still those that are known here is asked along with it: who decides reads users first.
        statement = (
            f"SELECT last, user_id, sums, stated FROM ({self._arms_end}) AS arms(last) "
            f"LEFT JOIN {tables.USER_SUMS} ON user_id = ANY(%s)"
        )
        read = self._rows(statement, (list(ids),))
        self._arms.reach(read[0][0])
        self._looked = threading.get_ident()
        found = {user: (sums, stated) for _, user, sums, stated in read}
        for place, user in enumerate(ids):
            if user in found:
                sums, stated = found[user]
                if self._forgets:
                    self._read_aged(rows[place], stated_rows[place], *map(np.array, (sums, stated or ())))
                else:
                    rows[place] = sums
                    if stated is not None:
                        stated_rows[place] = stated
        return rows, stated_rows

    @property
    def _forgets(self) -> HalfLife | None:
        """The half-life of what is known of users."""
        return None if self.setup.half_life is None else self.setup.half_life.users

    def _now(self, newest: float) -> float:
        """Return now for a user whose newest round was then, in half-lives; a worker knows what it has seen itself."""
        assert self._forgets is not None
        if self._forgets.unit == DAYS and not self._newest:
            last = self._rows(f"SELECT coalesce(max(sums[cardinality(sums)]), 0) FROM {tables.USER_SUMS}")[0][0]
            self._newest = last * self._forgets.count * 86_400.0
        return max(newest, self._forgets.age(self._newest, 0.0))

    def _read_aged(self, row: Floats, stated_row: Floats, sums: Floats, stated: Floats) -> None:
        now = self._now(float(sums[-1]))
        read_aged(row, sums, now, 1)
        if len(stated):
            read_aged(stated_row, stated, now, 0)

    def clock(self, user: str | None, arms: Sequence[str]) -> tuple[int, ...]:
        """Return the rounds of a user, and the pulls of arms, since half-lives in rounds were declared."""
        own = 0.0
        if self._forgets is not None:
            statement = f"SELECT sums[cardinality(sums)] FROM {tables.USER_SUMS} WHERE user_id = %s"
            own = sum(row[0] for row in self._rows(statement, (user,))) * self._forgets.count
        return (round(own), *self._arms.clock(arms))

    def user_pairs(self, ids: Sequence[str]) -> Pairs:
        """Return the sums of users' pairs, as the database holds them now."""
        those = f"WHERE user_id = ANY(%s) AND sums[1] > {NONE_LEFT}"
        statement = f"SELECT user_id, arm, sums FROM {tables.PAIR_SUMS} {those} ORDER BY arm"
        rows, found = self.arms().rows, dict[str, list[tuple[int, list[float]]]]()
        for user, arm, sums in self._rows(statement, (list(ids),)):
            if arm in rows:  # one that was added a moment ago comes with the next reading of the arms
                found.setdefault(user, []).append((rows[arm], sums))
        lines = [line for user in ids for line in found.get(user, ())]
        pairs = Pairs.none(users=len(ids), objectives=len(self.setup.objectives))
        if lines:
            np.cumsum([len(found.get(user, ())) for user in ids], out=pairs.starts[1:])
            arms, own = zip(*lines, strict=True)
            worth = np.array(own)
            if self._forgets is not None:
                newest = np.repeat(self._newest_of(ids), np.diff(pairs.starts))
                kept, worth = worth, np.empty((len(own), pairs.rows.shape[1]))
                for place, now in enumerate(newest.tolist()):
                    read_aged(worth[place], kept[place], now, 0)
            pairs = Pairs(pairs.starts, np.array(arms), worth)
        return pairs

    def _newest_of(self, ids: Sequence[str]) -> list[float]:
        """Return now for these users, in half-lives."""
        statement = f"SELECT user_id, sums[cardinality(sums)] FROM {tables.USER_SUMS} WHERE user_id = ANY(%s)"
        found = dict(self._rows(statement, (list(ids),)))
        return [self._now(found.get(user, 0.0)) for user in ids]

    def user_ids(self) -> Iterator[str]:
        """Yield the users who gave feedback."""
        after = ""
        statement = f"SELECT user_id FROM {tables.USER_SUMS} WHERE user_id > %s ORDER BY user_id LIMIT %s"
        while rows := self._rows(statement, (after, self._page)):
            for (after,) in rows:
                yield after

    def count_users(self) -> int:
        """Return how many users gave feedback."""
        return int(self._rows(f"SELECT count(*) FROM {tables.USER_SUMS}")[0][0])

    def find_users(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        """Return users whose ids begin so, those with the most rounds first."""
        return [(user, int(rounds)) for user, rounds in self._rows(tables.FIND_USERS, (prefix, limit))]

    def settled(self) -> int:
        """Return the last event, once nobody is writing: others' may get lower numbers and be seen later."""

        def ask() -> int:
            with self._link.transaction(alone=True) as connection:
                return int(connection.execute(self._ask.end).fetchone()[0])

        return self._writer.call(lambda: self._link.retry(ask))

    def counted(self) -> int:
        """Return up to which event what went on is counted."""
        return int(self._rows(tables.COUNTED)[0][0])

    def activity(self, since: int) -> dict[int, list[float]]:
        """Return what went on from a time on."""
        return dict(self._rows("SELECT at, sums FROM pamo_activity WHERE at >= %s ORDER BY at", (since,)))

    def count(self, after: int, upto: int, rows: Mapping[int, Sequence[float]]) -> bool:
        """Add what some events come to."""

        def add() -> bool:
            with self._link.transaction() as connection:
                connection.execute(tables.SHARE, (LOCK, 0))
                if connection.execute(tables.COUNT, (upto, after, after)).fetchone() is None:
                    return False
                sums = ["{" + ",".join(map(repr, map(float, row))) + "}" for row in rows.values()]
                connection.execute(tables.ADD_ACTIVITY, (list(rows), sums))
                return True

        return self._writer.call(lambda: self._link.retry(add))

    def pending(self) -> int:
        """Return how many decisions have no feedback."""
        return int(self._rows("SELECT coalesce(sum(decisions - feedbacks), 0)::bigint FROM pamo_counts")[0][0])

    # Looking after it

    def _trouble(self) -> str | None:
        """Ask the database for a sign of life."""
        try:
            self._still(self._link.rows(self._anew, patience=0.0))
        except StoreError as error:
            return str(error)
        return None

    def snapshot(self) -> None:
        """Do nothing: the database holds the sums already."""

    def rebuild(self) -> None:
        """Throw the sums away and fold the journal, while no worker writes."""

        def attempt() -> None:
            with self._link.transaction(alone=True) as connection:
                self._fold_again(connection)

        self._writer.call(lambda: self._link.retry(attempt))
        self._arms.forget()

    def _disconnect(self, *, snapshot: bool) -> None:
        self._link.close()


def _gives_in_group(events: Sequence[Event]) -> bool:
    """Tell whether there is feedback to a decision in an experiment that is recorded together with it."""
    new = {event.id for event in events if isinstance(event, DecisionMade) and event.group is not None}
    return bool(new) and any(isinstance(event, FeedbackGiven) and event.decision in new for event in events)


def _listed(groups: Groups) -> tuple[list[int], Floats]:
    users, rows = groups.users()
    return users.tolist(), rows


def _columns(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _literal(row: Any) -> str:
    """Return numbers as PostgreSQL writes an array, every digit of them."""
    return "{" + ",".join(map(repr, row.tolist())) + "}"
