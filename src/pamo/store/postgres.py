"""A store in PostgreSQL: any number of workers, on any number of machines, write to one journal.

A worker keeps nothing that it could lose. What is handed in is committed in small batches: events go in `ON CONFLICT DO
NOTHING`, and the sums of those that did go in are added in the same transaction, keys in order, so that workers do not
deadlock. A batch whose connection breaks is tried again as it is: what is in the journal already is a duplicate then.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.errors import InputError, StoreError
from pamo.rows import stated_width, user_width
from pamo.store.base import (
    EXPIRES_AFTER,
    ArmAdded,
    ArmRetired,
    Arms,
    DecisionMade,
    Event,
    FeedbackGiven,
    Made,
    Outcome,
    Receipt,
    Setup,
    Store,
    UserErased,
)
from pamo.store.encoding import DECISION, FEEDBACK, SETUP, decode, encode
from pamo.store.fold import Fold
from pamo.store.ledger import Ledger, named, runs, together
from pamo.store.postgres_arms import ArmCache
from pamo.store.postgres_link import Link, LostError
from pamo.store.postgres_tables import (
    ADD_ARMS,
    ADD_COUNTS,
    ADD_USERS,
    COLUMNS,
    FEEDBACK_TO,
    FIND,
    FIND_USERS,
    FORGET,
    INSERT,
    LOAD,
    NEWEST,
    NEWEST_OF,
    SCHEMA,
    SET_ARM,
    SHARDS,
)
from pamo.store.rules import NOT_EMPTY, Checker, check_setup, redacted
from pamo.store.scales import Scales
from pamo.store.writer import Writer

PAGE = 5000
PATIENCE = 10.0
"""Seconds for which a batch is tried again while the database cannot be reached."""


class PostgresStore(Store):
    """Keeps journal and sums in a PostgreSQL database, which it sets up where that has not been done.

    url: as libpq takes it, `postgresql://user@host/database`. refresh: seconds until the arms' sums are read anew.
    """

    remote = True

    def __init__(
        self,
        url: str,
        setup: Setup | None = None,
        *,
        expires_after: float = EXPIRES_AFTER,
        refresh: float = 0.5,
        patience: float = PATIENCE,
    ) -> None:
        self.lock = threading.RLock()
        self._expires_after = expires_after
        self._closed = False
        self._link = Link(url, patience)
        try:
            self.setup = self._link.retry(lambda: self._prepare(setup))
            self._shard = int(self._link.rows("SELECT nextval('pamo_workers')")[0][0]) % SHARDS
        except BaseException:
            self._link.close()
            raise
        self._checker = Checker(self.setup)
        self._scales = Scales(self.setup)
        self._arms = ArmCache(len(self.setup.objectives), refresh)
        self._writer = Writer(self._commit, lambda: None)

    def _prepare(self, setup: Setup | None) -> Setup:
        """Return the objectives of the journal, which is begun here if there is none."""
        with self._link.transaction(alone=True) as connection:
            if connection.execute("SELECT to_regclass('pamo_events')").fetchone()[0] is None:
                if setup is None:
                    raise InputError(
                        "this database holds no store yet, and a new one needs its objectives: pass a setup"
                    )
                check_setup(setup)
                connection.execute(SCHEMA)
                self._insert(connection, [setup])
                return setup
            (row,) = connection.execute(f"{COLUMNS} WHERE kind = %s", (SETUP,)).fetchall()
        kept = decode(*row[1:])
        assert isinstance(kept, Setup)
        check_setup(kept)
        if setup is not None and setup != kept:
            raise InputError(f"this store was begun with other objectives: {kept}, and now came {setup}")
        return kept

    # Writing

    def submit_many(self, events: Sequence[Event]) -> Future[list[Receipt]]:
        """Hand in events to be recorded together; the receipts come once they are durable."""
        for event in events:
            self._checker.check(event)
        return self._writer.submit(events)

    def _commit(self, events: list[Event]) -> list[Receipt]:
        receipts: list[Receipt] = []
        for run in runs(events):
            receipts += self._link.retry(lambda run=run: self._append(run))  # type: ignore[misc]
        return receipts

    def _append(self, events: list[Event]) -> list[Receipt]:
        if isinstance(events[0], UserErased):
            return [self._erase(events[0])]
        changes = any(isinstance(event, ArmAdded | ArmRetired) for event in events)
        # The cache of arms takes a batch in after it was committed, and is not read from the database in between.
        with self._arms.changing(), self._link.transaction(alone=changes) as connection:
            return self._append_in(connection, events, changes)

    def _append_in(self, connection: Any, events: list[Event], changes: bool) -> list[Receipt]:
        if changes or not self._arms.knows(events):
            self._arms.read(connection)
        ledger = Ledger(self._scales, self._expires_after, self._arms.states())
        ids, keys = named(events)
        found = connection.execute(FIND, (ids, keys), binary=True).fetchall() if ids else []
        ledger.fill((row[0], decode(*row[1:])) for row in found)
        receipts: list[Receipt] = []
        records: list[Event] = []
        for event in events:
            receipt, record = ledger.take(event, -1 - len(records))  # below 0: a place among those to be inserted
            receipts.append(receipt)
            if record is not None:
                records.append(record)
        if records:
            sequences = self._insert(connection, records)
            for receipt in receipts:
                if receipt.sequence < 0:
                    receipt.sequence = sequences[-1 - receipt.sequence]
            fold = Fold(self.setup)
            for record in records:
                fold.apply(record)
                if isinstance(record, ArmAdded | ArmRetired):
                    connection.execute(SET_ARM, (record.arm, *ledger.arms[record.arm]))
            self._add(connection, fold)
            self._arms.committing(fold, ledger.arms if changes else None)
        return receipts

    def _insert(self, connection: Any, events: Sequence[Event]) -> list[int]:
        """Insert events and return their sequence numbers; raise an error if one of them was there."""
        rows = [encode(event) for event in events]
        # One order for all workers, so that two that insert the same events do not wait for each other.
        order = sorted(range(len(rows)), key=lambda p: (rows[p].kind, rows[p].key or "", rows[p].decision or ""))
        columns = [list(column) for column in zip(*(rows[place] for place in order), strict=True)]
        returned = connection.execute(INSERT, columns).fetchall()
        if len(returned) < len(rows):
            raise LostError
        sequences = [0] * len(rows)
        for place, row in zip(order, returned, strict=True):
            sequences[place] = row[0]
        return sequences

    def _add(self, connection: Any, fold: Fold) -> None:
        """Add a fold to the sums: users, then arms, then counts, each in order."""
        users = sorted((name, row) for row, name in enumerate(fold.user_names))
        for page in _pages(users):
            stated = [fold.stated_rows[row] for _, row in page]
            connection.execute(
                ADD_USERS,
                (
                    [name for name, _ in page],
                    [_literal(fold.user_sums.row(row)) for _, row in page],
                    [None if row < 0 else _literal(fold.stated_sums.row(row)) for row in stated],
                ),
            )
        arms = sorted(arm for arm, row in fold.arm_rows.items() if fold.block[row].any())
        if arms:
            literals = [_literal(fold.block[fold.arm_rows[arm]]) for arm in arms]
            connection.execute(ADD_ARMS, (self._shard, arms, literals))
        if fold.decisions or fold.feedbacks:
            connection.execute(ADD_COUNTS, (self._shard, fold.decisions, fold.feedbacks))

    def _erase(self, event: UserErased) -> Receipt:
        with self._link.transaction(alone=True) as connection:
            rows = connection.execute(f"{COLUMNS} WHERE user_id = %s", (event.user,)).fetchall()
            if not rows:
                return Receipt(Outcome.UNKNOWN, reason=f"there is no user {event.user!r}")
            for sequence, *row in rows:
                old: Any = decode(*row)
                connection.execute(
                    "UPDATE pamo_events SET user_id = NULL, key = NULL, body = %s WHERE sequence = %s",
                    (encode(redacted(old)).body, sequence),
                )
            connection.execute("DELETE FROM pamo_user_sums WHERE user_id = %s", (event.user,))
            return Receipt(Outcome.RECORDED, self._insert(connection, [UserErased(None, event.at)])[0])

    # Reading

    def events(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Yield the journal's events, a page at a time; numbers may be left out where a batch was tried again."""
        while rows := self._link.rows(f"{COLUMNS} WHERE sequence > %s ORDER BY sequence LIMIT {PAGE}", (after,)):
            for sequence, *row in rows:
                yield sequence, decode(*row)
            after = rows[-1][0]

    def history(self, user: str) -> Iterator[tuple[int, Event]]:
        """Yield the decisions for a user and their feedback."""
        for sequence, *row in self._link.rows(f"{COLUMNS} WHERE user_id = %s ORDER BY sequence", (user,)):
            yield sequence, decode(*row)

    def decisions_of(self, user: str, limit: int, before: int | None = None) -> list[Made]:
        """Return a user's decisions with their feedback, the newest first."""
        last = NEWEST if before is None else before
        made = [(row[0], decode(*row[1:])) for row in self._link.rows(NEWEST_OF, (user, DECISION, last, limit))]
        ids = [event.id for _, event in made if isinstance(event, DecisionMade)]
        return together(made, [decode(*row[1:]) for row in self._link.rows(FEEDBACK_TO, (ids, FEEDBACK))])

    def decision(self, decision_id: str) -> DecisionMade | None:
        """Return a decision."""
        event = self._one(decision_id, DECISION)
        return event if isinstance(event, DecisionMade) else None

    def decision_for(self, key: str) -> DecisionMade | None:
        """Return the decision that was made under a key."""
        rows = self._link.rows(f"{COLUMNS} WHERE key = %s", (key,))
        event = decode(*rows[0][1:]) if rows else None
        return event if isinstance(event, DecisionMade) else None

    def feedback(self, decision_id: str) -> FeedbackGiven | None:
        """Return the feedback to a decision."""
        event = self._one(decision_id, FEEDBACK)
        return event if isinstance(event, FeedbackGiven) else None

    def _one(self, decision_id: str, kind: str) -> Event | None:
        rows = self._link.rows(f"{COLUMNS} WHERE decision = %s AND kind = %s", (decision_id, kind))
        return decode(*rows[0][1:]) if rows else None

    def arms(self) -> Arms:
        """Return the arms and their sums, which are at most `refresh` seconds old; those of this worker are in."""
        return self._arms.table(self._link.rows)

    def user_rows(self, ids: Sequence[str]) -> tuple[Floats, Floats]:
        """Return users' sums as rows, as the database holds them now."""
        objectives = len(self.setup.objectives)
        rows = np.zeros((len(ids), user_width(objectives)))
        stated_rows = np.zeros((len(ids), stated_width(objectives)))
        statement = "SELECT user_id, sums, stated FROM pamo_user_sums WHERE user_id = ANY(%s)"
        found = {user: (sums, stated) for user, sums, stated in self._link.rows(statement, (list(ids),))}
        for place, user in enumerate(ids):
            if user in found:
                rows[place], stated = found[user]
                if stated is not None:
                    stated_rows[place] = stated
        return rows, stated_rows

    def user_ids(self) -> Iterator[str]:
        """Yield the users who gave feedback."""
        after = ""
        while rows := self._link.rows(
            f"SELECT user_id FROM pamo_user_sums WHERE user_id > %s ORDER BY user_id LIMIT {PAGE}", (after,)
        ):
            for (user,) in rows:
                yield user
            after = rows[-1][0]

    def count_users(self) -> int:
        """Return how many users gave feedback."""
        return int(self._link.rows("SELECT count(*) FROM pamo_user_sums")[0][0])

    def find_users(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        """Return users whose ids begin so, those with the most rounds first."""
        return [(user, int(rounds)) for user, rounds in self._link.rows(FIND_USERS, (prefix, limit))]

    def pending(self) -> int:
        """Return how many decisions have no feedback."""
        return int(self._link.rows("SELECT coalesce(sum(decisions - feedbacks), 0)::bigint FROM pamo_counts")[0][0])

    # Looking after it

    def trouble(self) -> str | None:
        """Ask the database for a sign of life."""
        if self._closed:
            return "this store is closed"
        try:
            self._link.rows("SELECT 1", patience=0.0)
        except StoreError as error:
            return str(error)
        return None

    def snapshot(self) -> None:
        """Do nothing: the database holds the sums already."""

    def rebuild(self) -> None:
        """Throw the sums away and fold the journal, while no worker writes."""

        def attempt() -> None:
            with self._link.transaction(alone=True) as connection:
                self._rebuild_in(connection)

        self._writer.call(lambda: self._link.retry(attempt))
        self._arms.forget()

    def _rebuild_in(self, connection: Any) -> None:
        fold, after = Fold(self.setup), 0
        statement = f"{COLUMNS} WHERE sequence > %s ORDER BY sequence LIMIT {PAGE}"
        while rows := connection.execute(statement, (after,)).fetchall():
            for row in rows:
                fold.apply(decode(*row[1:]))
            after = rows[-1][0]
        connection.execute(FORGET)
        for arm, state in fold.arm_states.items():
            connection.execute(SET_ARM, (arm, *state))
        self._add(connection, fold)

    def load(self, events: Iterable[tuple[int, Event]]) -> int:
        """Take over another journal, in one transaction."""
        count = 0

        def take_over() -> None:
            nonlocal count
            with self._link.transaction(alone=True) as connection:
                if connection.execute("SELECT count(*) FROM pamo_events").fetchone()[0] > 1:
                    raise InputError(NOT_EMPTY)
                connection.execute("TRUNCATE pamo_events RESTART IDENTITY")
                for page in _pages(events):
                    rows = [(sequence, *encode(event)) for sequence, event in page]
                    connection.execute(LOAD, [list(column) for column in zip(*rows, strict=True)])
                    count += len(rows)
                connection.execute(
                    "SELECT setval(pg_get_serial_sequence('pamo_events', 'sequence'), max(sequence)) FROM pamo_events"
                )
                self._rebuild_in(connection)

        self._writer.call(lambda: self._link.retry(take_over, patience=0.0))  # the events come only once
        self._arms.forget()
        return count

    def close(self, *, snapshot: bool = True) -> None:
        """Finish what was handed in, and disconnect."""
        if self._closed:
            return
        self._writer.close()
        self._closed = True
        self._link.close()


def _literal(row: Any) -> str:
    """Return numbers as PostgreSQL writes an array, every digit of them."""
    return "{" + ",".join(map(repr, row.tolist())) + "}"


def _pages(items: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield the items in lists of at most `PAGE`."""
    rest = iter(items)
    while page := list(islice(rest, PAGE)):
        yield page
