"""A store for tests and notebooks: the journal is a list, and gone with the process."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Self

from pamo.errors import InputError, StoreError
from pamo.store.ages import Ages
from pamo.store.base import (
    CLOSED,
    EXPIRES_AFTER,
    ArmState,
    DecisionMade,
    Declared,
    Event,
    FeedbackGiven,
    Outcome,
    Receipt,
    Setup,
    TasteChanged,
    UserErased,
    UserKnown,
)
from pamo.store.fold import Fold
from pamo.store.folded import FoldedStore
from pamo.store.ledger import Ledger, nobody
from pamo.store.rules import NOT_EMPTY, Checker, redacted
from pamo.store.setups import plain_setup

_OF_USERS = (DecisionMade, FeedbackGiven, TasteChanged, UserKnown)


class MemoryStore(FoldedStore):
    """Keeps everything in memory.

    >>> from pamo.store import ArmAdded, DecisionMade, FeedbackGiven, MemoryStore, Objective, Setup
    >>> store = MemoryStore(Setup((Objective("taste", 1, 5),)))
    >>> receipts = store.append_many(
    ...     [
    ...         ArmAdded("A", "Anchor Inn", at=0.0),
    ...         DecisionMade("d1", "ann", ("A",), propensity=1.0, policy="greedy", at=1.0),
    ...         FeedbackGiven("d1", {"taste": 4}, at=2.0),
    ...     ]
    ... )
    >>> receipts[-1].outcome, receipts[-1].learned
    (<Outcome.RECORDED: 'recorded'>, ('arm: taste',))
    """

    def __init__(self, setup: Setup, *, expires_after: float = EXPIRES_AFTER) -> None:
        self.setup = self.began = plain_setup(setup)
        self.lock = threading.RLock()
        self._checker = Checker(self.setup, self._features_of)
        self._ages = Ages(expires_after)
        self._closed = False
        self._start()
        self._record(self.setup)

    @classmethod
    def at(cls, address: str, setup: Setup | None, expires_after: float) -> Self:
        """Begin a store."""
        if setup is None:
            raise InputError("a store in memory is always new, and a new store needs its objectives: pass a setup")
        return cls(setup, expires_after=expires_after)

    def _start(self) -> None:
        self._journal: list[Event] = []
        self._places: defaultdict[str, list[int]] = defaultdict(list)  # of each user's events in the journal
        self._fold = Fold(self.setup)
        arms: dict[str, ArmState] = {}
        self._ledger = Ledger(
            self._fold.scales, self._ages, arms, self._fold.features, self._fold, arms, self._fold.user_features
        )
        self._ledger.experiments = self._fold.groups.experiments

    def _record(self, event: Event) -> None:
        journal = self._journal
        if isinstance(event, _OF_USERS) and (user := event.user) is not None:
            self._places[user].append(len(journal))
        journal.append(event)
        self._fold.apply(event, len(journal))

    def append(self, event: Event, *, checked: bool = False) -> Receipt:
        """Record one event."""
        if not checked:
            event = self._checker.check(event)
        with self.lock:
            if self._closed:
                raise StoreError(CLOSED)
            if type(event) is UserErased:
                return self._erase(event)
            receipt, record = self._ledger.take(event, len(self._journal) + 1)
            if record is not None:
                self._record(record)
            return receipt

    def submit_many(self, events: Sequence[Event]) -> Future[list[Receipt]]:
        """Record events; the receipts are there at once."""
        checked = [self._checker.check(event) for event in events]
        done: Future[list[Receipt]] = Future()
        with self.lock:
            done.set_result([self.append(event, checked=True) for event in checked])
        return done

    def _erase(self, event: UserErased) -> Receipt:
        places = self._places.pop(event.user or "", None)
        if places is None:
            return nobody(event)
        for place in places:
            old = self._journal[place]
            assert isinstance(old, _OF_USERS)
            self._journal[place] = new = redacted(old)
            if isinstance(new, DecisionMade):
                assert isinstance(old, DecisionMade)
                self._ledger.entries[new.id].decision = new
                self._ledger.keys.pop(old.key or "", None)
            elif isinstance(new, FeedbackGiven):
                entry = self._ledger.entries[new.decision]
                entry.parts = tuple((at, new if part is old else part) for at, part in entry.parts)
        self._fold.erase(event.user or "")
        self._record(UserErased(None, event.at))
        return Receipt(Outcome.RECORDED, len(self._journal))

    def events(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Yield the events so far."""
        with self.lock:
            journal = self._journal[after:]
        yield from enumerate(journal, start=after + 1)

    def end(self) -> int:
        """Return how many there are."""
        return len(self._journal)

    def tail(self, count: int) -> list[Event]:
        """Return the last events."""
        with self.lock:
            return self._journal[-count:]

    def history(self, user: str) -> Iterator[tuple[int, Event]]:
        """Yield a user's decisions and feedback."""
        with self.lock:
            found = [(place + 1, self._journal[place]) for place in self._places.get(user, ())]
        yield from found

    def decision(self, decision_id: str) -> DecisionMade | None:
        """Return a decision."""
        entry = self._ledger.entries.get(decision_id)
        return None if entry is None else entry.decision

    def decision_for(self, key: str) -> DecisionMade | None:
        """Return the decision that was made under a key."""
        entry = self._ledger.keys.get(key)
        return None if entry is None else entry.decision

    def parts(self, decision_id: str) -> tuple[FeedbackGiven, ...]:
        """Return the parts of the feedback to a decision."""
        entry = self._ledger.entries.get(decision_id)
        return () if entry is None else tuple(part for _, part in entry.parts)

    def trouble(self) -> str | None:
        """Return whether the store is closed."""
        return CLOSED if self._closed else None

    def snapshot(self) -> None:
        """Do nothing: there is nowhere to keep it."""

    def rebuild(self) -> None:
        """Fold the journal again."""
        with self.lock:
            fold = Fold(self.setup)
            for sequence, event in enumerate(self._journal, start=1):
                fold.apply(event, sequence)
            self._fold, self._counted, self._activity = fold, 0, None
            self._ledger.features, self._ledger.user_features = fold.features, fold.user_features
            self._ledger.scales, self._ledger.changes = fold.scales, fold
            self._ledger.experiments = fold.groups.experiments

    def declare(self, setup: Setup, at: float) -> None:
        """Fold the journal by these objectives from now on."""
        with self.lock:
            self.setup = plain_setup(setup)
            self._checker = Checker(self.setup, self._features_of)
            self._journal.append(Declared(self.setup, at))
            self.rebuild()

    def load(self, events: Iterable[tuple[int, Event]]) -> int:
        """Take over another journal."""
        with self.lock:
            if len(self._journal) > 1:
                raise InputError(NOT_EMPTY)
            self._start()
            for _, event in events:
                self._record(event)
                if isinstance(event, Setup):
                    self.began = self.setup = event
                elif isinstance(event, Declared):
                    self.setup = event.setup
            self._checker = Checker(self.setup, self._features_of)
            self.rebuild()
            self._ledger.fill(self.events())
            self._ages.note(self._journal)
            self._ledger.changed.update(self._fold.arm_states)
            return len(self._journal)

    def close(self, *, snapshot: bool = True) -> None:
        """Take no more events."""
        self._closed = True
