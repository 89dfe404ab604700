"""What the stores in databases share: the journal is one table, an event a row, and is read by the same questions."""

from __future__ import annotations

import contextlib
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import Any, ClassVar, Self, TypeVar

from pamo.errors import DamagedError, InputError, StoreError
from pamo.store.base import (
    CLOSED,
    EXPIRES_AFTER,
    DecisionMade,
    Declared,
    Event,
    FeedbackGiven,
    Made,
    Reader,
    Receipt,
    Setup,
    Store,
    TasteChanged,
)
from pamo.store.encoding import DECISION, DECLARED, FEEDBACK, PART, TASTE_CHANGED, decode, decode_briefly, to_json
from pamo.store.rules import Checker, check_setup
from pamo.store.setups import described, plain_setup, same_objectives
from pamo.store.writer import Writer

NEWEST = 2**63 - 1
Item = TypeVar("Item")


class BackwardsError(DamagedError):
    """The numbers of events, which go up, go back."""


def following(read: Callable[[int], list[Any]], after: int = 0) -> Iterator[list[Any]]:
    """Yield pages of rows that begin with their numbers: what `read` returns of those after the last one before.

    In a damaged file a number may be smaller than it was, and what comes after it would be read again, for ever.
    """
    while rows := read(after):
        yield rows
        last = rows[-1][0]
        if last <= after:
            raise BackwardsError(f"event {last} stands after event {after}: the journal's order is lost there")
        after = last


class Questions:
    """The statements that read the journal.

    table: of the events. user: the column with the user's id. mark: stands for a value. among: for one of several that
    are given as JSON. more: columns that are read as well. hidden: whether users and keys are found by numbers that
    stand for them, in columns `who` and `request`.
    """

    def __init__(self, table: str, user: str, mark: str, among: str, *, more: str = "", hidden: bool = False) -> None:
        whole = f"SELECT sequence, kind, decision, {user}, key, body{more} FROM {table}"
        whose, asked = (f"{column} = {mark} AND " if hidden else "" for column in ("who", "request"))
        self.made = f"SELECT decision FROM {table} WHERE {whose}{user} = {mark} AND kind = '{DECISION}'"
        made = self.made
        after = f"WHERE sequence > {mark}"
        self.columns = whole
        self.first = f"{whole} ORDER BY sequence LIMIT 1"
        self.last = f"{whole} ORDER BY sequence DESC LIMIT 1"
        self.newest = f"{whole} ORDER BY sequence DESC LIMIT {mark}"
        self.page = f"{whole} {after} ORDER BY sequence LIMIT {mark}"
        self.end = f"SELECT coalesce(max(sequence), 0) FROM {table}"
        self.decided = f"{whole} {after} AND sequence <= {mark} AND kind = '{DECISION}' ORDER BY sequence LIMIT {mark}"
        self.some = f"{whole} WHERE decision {among} AND kind = '{DECISION}'"
        self.given = (
            f"{whole} WHERE decision {among} AND substr(kind, 1, {len(FEEDBACK)}) = '{FEEDBACK}' AND sequence <= {mark}"
        )
        self.declared = f"{whole} WHERE kind = '{DECLARED}' ORDER BY sequence"
        self.kinds = f"SELECT kind, count(*) FROM {table} GROUP BY kind ORDER BY kind"
        self.one = f"{whole} WHERE decision = {mark} AND kind = {mark}"
        self.all_of = f"{whole} WHERE decision = {mark}"
        self.of_key = f"{whole} WHERE {asked}key = {mark}"
        self.of_user = f"{whole} WHERE decision IN ({made}) ORDER BY sequence"
        newest = f"{made} AND sequence < {mark} ORDER BY sequence DESC LIMIT {mark}"
        self.changes_of = f"{whole} WHERE decision IN ({made}) AND kind = '{TASTE_CHANGED}' ORDER BY sequence"
        self.newest_of = f"{whole} WHERE decision IN ({newest}) ORDER BY sequence DESC"


class SqlStore(Store):
    """A store whose journal is a table of a database, and whose events are written by a `Writer`."""

    _ask: ClassVar[Questions]
    _page: ClassVar[int]
    """Events that are read or taken over at a time."""
    _writer: Writer
    _closed: bool

    @abstractmethod
    def __init__(self, address: str, setup: Setup | None = None, *, expires_after: float = EXPIRES_AFTER) -> None:
        """Open the store at an address, or begin it there."""

    @classmethod
    def at(cls, address: str, setup: Setup | None, expires_after: float) -> Self:
        """Open the store at an address, or begin it there."""
        return cls(address, setup, expires_after=expires_after)

    @abstractmethod
    def _rows(self, statement: str, bindings: Sequence[Any] = ()) -> list[Any]:
        """Return what a question gives."""

    # Writing

    def submit_many(self, events: Sequence[Event]) -> Future[list[Receipt]]:
        """Hand in events to be recorded together; the receipts come once they are durable."""
        return self._writer.submit([self._checker.check(event) for event in events])

    def load(self, events: Iterable[tuple[int, Event]]) -> int:
        """Take over another journal, in one transaction."""
        return self._writer.call(lambda: self._take_over(events))

    @abstractmethod
    def _take_over(self, events: Iterable[tuple[int, Event]]) -> int:
        """Put another journal in the place of an empty one, and fold it."""

    def declare(self, setup: Setup, at: float) -> None:
        """Record other objectives, scales or half-lives, and fold the journal by them."""
        setup = plain_setup(setup)
        self._writer.call(lambda: self._declare(setup, float(at)))
        self._checker = Checker(self.setup, self._features_of)

    @abstractmethod
    def _declare(self, setup: Setup, at: float) -> None:
        """Record objectives and fold the journal by them."""

    def _first(self, row: Sequence[Any] | None, where: str) -> Setup:
        """Return the objectives in the journal's first row."""
        kept = None if row is None else self._event(row)
        if not isinstance(kept, Setup):
            raise StoreError(f"the journal at {where} does not begin with its objectives: was it cut?")
        check_setup(kept)
        return kept

    def _agree(self, setup: Setup | None, where: str) -> None:
        """Raise `InputError` where other objectives were given than the journal has."""
        if setup is not None and not same_objectives(setup, self.setup):
            raise InputError(
                f"{where} was begun with other objectives: it has {described(self.setup)}, and given were "
                f"{described(setup)}: give the same or none, declare them anew (redeclare), or begin another store"
            )

    # Reading

    def _event(self, row: Sequence[Any], read: Callable[..., Event] = decode) -> Event:
        """Return the event of a row; raise `StoreError` where it is not what was recorded, as far as can be told."""
        return read(*row[1:6])

    def _wrong(self, after: int) -> Callable[[Sequence[Any]], str]:
        """Return what says of each row after that event, in order, what is wrong with it."""
        return lambda row: ""

    def _missing(self, wrong: Callable[[Sequence[Any]], str]) -> str:
        """Return what is wrong with all rows together, of which that was asked one by one."""
        return ""

    def _by(self, name: str) -> tuple[Any, ...]:
        """Return what a user or a key is looked up by."""
        return (name,)

    def examined(self, after: int = 0) -> Iterator[tuple[int, Event | None, str]]:
        """Yield the journal's events, a page at a time, and what is wrong with each."""
        wrong_with = self._wrong(after)
        try:
            for rows in following(lambda last: self._rows(self._ask.page, (last, self._page)), after):
                for row in rows:
                    event, wrong = None, wrong_with(row)
                    try:
                        event = decode(*row[1:6])
                    except StoreError as error:
                        wrong = wrong or str(error)
                    yield row[0], event, wrong
                after = rows[-1][0]
        except BackwardsError as error:
            yield after, None, str(error)
            return
        if missing := self._missing(wrong_with):
            yield after, None, missing

    def events(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Yield the journal's events; in PostgreSQL numbers may be left out."""
        for sequence, event, wrong in self.examined(after):
            if wrong or event is None:
                raise DamagedError(wrong)
            yield sequence, event

    def tail(self, count: int) -> list[Event]:
        """Return the last events, in order, without any that cannot be read: others look for damage."""
        found: list[Event] = []
        for row in reversed(self._rows(self._ask.newest, (count,))):
            with contextlib.suppress(StoreError):
                found.append(self._event(row))
        return found

    def history(self, user: str) -> Iterator[tuple[int, Event]]:
        """Yield the decisions for a user and their feedback."""
        for row in self._rows(self._ask.of_user, self._by(user)):
            yield row[0], self._event(row)

    def decisions_of(self, user: str, limit: int, before: int | None = None) -> list[Made]:
        """Return a user's decisions with their feedback, the newest first."""
        rows = self._rows(self._ask.newest_of, (*self._by(user), NEWEST if before is None else before, limit))
        given: dict[str, list[FeedbackGiven]] = {}
        made: list[Made] = []
        for row in rows:  # a feedback is newer than its decision, so that it comes first
            event = self._event(row)
            if isinstance(event, FeedbackGiven):
                given.setdefault(event.decision, []).append(event)
            elif isinstance(event, DecisionMade):
                made.append(Made(row[0], event, _in_order(given.get(event.id, ()))))
        return made

    def end(self) -> int:
        """Return the number of the last event."""
        return int(self._rows(self._ask.end)[0][0])

    def setups(self) -> list[Setup]:
        """Return the objectives as they were declared, one time after another."""
        later = map(self._event, self._rows(self._ask.declared))
        return [self.began, *(event.setup for event in later if isinstance(event, Declared))]

    def decided(self, since: float = -math.inf, until: float = math.inf) -> Iterator[tuple[int, list[Made]]]:
        """Yield decisions with their feedback, a page at a time: between pages a reader holds nothing up."""
        end = self.end()
        for rows in following(lambda last: self._rows(self._ask.decided, (last, end, self._page))):
            events = ((row[0], self._event(row, decode_briefly)) for row in rows)
            made = [(place, one) for place, one in events if isinstance(one, DecisionMade) and since <= one.at < until]
            given: dict[str, list[FeedbackGiven]] = {}
            for row in self._rows(self._ask.given, (to_json([one.id for _, one in made]), end)) if made else ():
                part = self._event(row, decode_briefly)
                if isinstance(part, FeedbackGiven):
                    given.setdefault(part.decision, []).append(part)
            yield rows[-1][0], [Made(place, one, _in_order(given.get(one.id, ()))) for place, one in made]
        yield end, []

    def changes_of(self, user: str) -> list[float]:
        """Return when a user's taste was found to have changed."""
        events = map(self._event, self._rows(self._ask.changes_of, self._by(user)))
        return [event.at for event in events if isinstance(event, TasteChanged)]

    def decision(self, decision_id: str) -> DecisionMade | None:
        """Return a decision."""
        return self._one(DecisionMade, self._ask.one, decision_id, DECISION)

    def decisions(self, ids: Sequence[str]) -> dict[str, DecisionMade]:
        """Return those of these decisions that there are."""
        found = map(self._event, self._rows(self._ask.some, (to_json(list(ids)),)) if ids else ())
        return {one.id: one for one in found if isinstance(one, DecisionMade)}

    def decision_for(self, key: str) -> DecisionMade | None:
        """Return the decision that was made under a key."""
        return self._one(DecisionMade, self._ask.of_key, *self._by(key))

    def parts(self, decision_id: str) -> tuple[FeedbackGiven, ...]:
        """Return the parts of the feedback to a decision."""
        events = [self._event(row) for row in self._rows(self._ask.all_of, (decision_id,))]
        return _in_order(event for event in events if isinstance(event, FeedbackGiven))

    def _one(self, kind: type[Item], statement: str, *bindings: Any) -> Item | None:
        rows = self._rows(statement, bindings)
        event = self._event(rows[0]) if rows else None
        return event if isinstance(event, kind) else None

    # Looking after it

    def trouble(self) -> str | None:
        """Return why nothing can be recorded."""
        return CLOSED if self._closed else self._trouble()

    @abstractmethod
    def _trouble(self) -> str | None:
        """Return the same of a store that is open."""

    def close(self, *, snapshot: bool = True) -> None:
        """Finish what was handed in, keep the sums unless told otherwise, and let go of the database."""
        if self._closed:
            return
        if not isinstance(self, Reader):
            self._writer.close()
        self._closed = True
        self._disconnect(snapshot=snapshot)

    @abstractmethod
    def _disconnect(self, *, snapshot: bool) -> None:
        """Let go of the database."""


class SqlReader(Reader, SqlStore):
    """A store in a database that is read and not changed."""

    _take_over = _declare = Reader._refuse

    def kinds(self) -> dict[str, int]:
        """Return how many events there are of each kind; a feedback after the first to its decision is a part."""
        found: dict[str, int] = {}
        for row_kind, count in self._rows(self._ask.kinds):
            kind = str(row_kind)  # that of a damaged row may be no text
            name = PART if kind.startswith(f"{FEEDBACK} ") else kind
            found[name] = found.get(name, 0) + count
        return found

    def last(self) -> Event | None:
        """Return the last event of the journal."""
        rows = self._rows(self._ask.last)
        return self._event(rows[0]) if rows else None

    def close(self, *, snapshot: bool = True) -> None:
        """Let go of the database."""
        super().close(snapshot=False)


def _in_order(parts: Iterable[FeedbackGiven]) -> tuple[FeedbackGiven, ...]:
    return tuple(sorted(parts, key=lambda part: part.part))


def pages(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield the items in lists of at most that size."""
    rest = iter(items)
    while page := list(islice(rest, size)):
        yield page
