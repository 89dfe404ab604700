"""What every store can do; the journal's words are `pamo.contract.events`.

The journal is the truth: events are appended to it and never changed (the erasure of a user is the one exception). It
holds raw values as they came; the sums are its fold, normalised by the objectives that the first event declares.
"""

from __future__ import annotations

import itertools
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats
from pamo.contract.events import (
    ARMS,
    FORMAT,
    ArmAdded,
    ArmChanged,
    ArmRetired,
    DecisionMade,
    Declared,
    Event,
    ExperimentEnded,
    ExperimentStarted,
    FeaturesDeclared,
    FeedbackGiven,
    Made,
    Outcome,
    Receipt,
    Setup,
    TasteChanged,
    UserErased,
    UserKnown,
    together,
)
from pamo.contract.features import Feature, FeatureValue
from pamo.contract.objectives import Objective
from pamo.errors import InputError, StoreError
from pamo.statistics import ArmStatistics, Pairs, UserStatistics
from pamo.store.ages import Ages
from pamo.store.groups import Compared, Experiment

if TYPE_CHECKING:
    from pamo.store.rules import Checker

__all__ = [
    "EXPIRES_AFTER",
    "FORMAT",
    "ArmAdded",
    "ArmChanged",
    "ArmRetired",
    "Arms",
    "DecisionMade",
    "Declared",
    "Event",
    "ExperimentEnded",
    "ExperimentStarted",
    "Feature",
    "FeaturesDeclared",
    "FeedbackGiven",
    "Made",
    "Objective",
    "Outcome",
    "Receipt",
    "Setup",
    "Store",
    "TasteChanged",
    "UserErased",
    "UserKnown",
]

EXPIRES_AFTER = 30 * 24 * 3600.0
"""Seconds after which a decision takes no feedback any more, unless the store is opened with another number."""


@dataclass(slots=True, frozen=True)
class Arms:
    """The arms, a row each: ids, names for display, whether they are active, their sums, and their features.

    rows: from id to row. version: another number whenever an arm was added, renamed, revived or retired. The sums may
    be the store's own, which change as feedback comes in: read them while holding the store's `lock`, or copy them.
    """

    ids: tuple[str, ...]
    names: tuple[str, ...]
    active: npt.NDArray[np.bool_]
    rows: Mapping[str, int]
    statistics: ArmStatistics
    version: int = field(compare=False, default=0)
    features: tuple[Mapping[str, FeatureValue], ...] = ()


class ArmState(NamedTuple):
    """An arm's name, whether it is active, and its features, which nobody changes in place."""

    name: str
    active: bool
    features: Mapping[str, FeatureValue] = MappingProxyType({})

    def after(self, event: ArmAdded) -> ArmState:
        """Return how the arm stands once it is added so."""
        changed: dict[str, Any] = {**self.features, **(event.features or {})}
        return ArmState(event.name, True, {name: value for name, value in changed.items() if value is not None})


_versions = itertools.count(1)


def new_version() -> int:
    """Return a number for a table of arms, never the same twice in a process."""
    return next(_versions)


CLOSED = "this store is closed"


class Store(ABC):
    """A durable journal, and the sums that are its fold.

    A store implements what is abstract here. It may be used by any number of threads. `InputError` means that an event
    is not one that could be recorded, and nothing of the batch was; `StoreError` that the store cannot record now.
    """

    setup: Setup
    """The objectives, scales and half-lives as they were declared last."""
    began: Setup
    """The same as the journal began."""
    _checker: Checker
    _ages = Ages(EXPIRES_AFTER)
    remote = False
    """Whether reading sums may wait for a network."""
    lock: threading.RLock
    """Held while the sums change: hold it to read `arms().statistics` undisturbed."""

    @classmethod
    @abstractmethod
    def at(cls, address: str, setup: Setup | None, expires_after: float) -> Self:
        """Open the store at an address, or begin it there; `open_store` says what these are."""

    @classmethod
    def begun(cls, address: str, setup: Setup) -> AbstractContextManager[Self]:
        """Yield the store at an address, begun where there is none; that one is gone again if the block fails."""
        raise NotImplementedError  # of a store that is gone with its process

    @classmethod
    def adopting(cls, address: str) -> Self:
        """Open the store at an address, and go on with what is left of a journal that is damaged."""
        raise InputError("a store in memory has no damage to adopt")

    @abstractmethod
    def submit_many(self, events: Sequence[Event]) -> Future[list[Receipt]]:
        """Hand in events to be recorded together; the receipts come once they are durable.

        Each is judged on its own, in order. Memory changes only after the journal did, and the receipts come last. An
        event that cannot be recorded whatever the journal holds is an `InputError` at once, and nothing is handed in.
        """

    @property
    @abstractmethod
    def features(self) -> Mapping[str, Feature]:
        """The features that arms may have, by name."""

    @property
    @abstractmethod
    def user_features(self) -> Mapping[str, Feature]:
        """The features that users may have, by name."""

    @abstractmethod
    def known_of(self, ids: Sequence[str]) -> list[Mapping[str, FeatureValue]]:
        """Return the features of these users, as far as they are known."""

    @property
    @abstractmethod
    def running(self) -> ExperimentStarted | None:
        """The experiment that is running."""

    @abstractmethod
    def experiments(self) -> Sequence[Experiment]:
        """Return all experiments, in the order in which they were started."""

    @abstractmethod
    def compared(self) -> Mapping[str, Compared]:
        """Return the groups of the newest experiment by name, control first; none where there was no experiment."""

    def _features_of(self, whose: str) -> Mapping[str, Feature]:
        return self.features if whose == ARMS else self.user_features

    def check(self, event: Event) -> None:
        """Raise `InputError` for an event that could not be recorded whatever the journal holds."""
        self._checker.check(event)

    @abstractmethod
    def events(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Yield the journal's events with their sequence numbers, from the one after `after` on.

        At one that is not what was recorded, as far as the store can tell, that is a `DamagedError`.
        """

    def examined(self, after: int = 0) -> Iterator[tuple[int, Event | None, str]]:
        """Yield the same, each with what is wrong with it, "" where nothing is; None is one that cannot be read."""
        for sequence, event in self.events(after):
            yield sequence, event, ""

    def unsealed(self) -> int:
        """Return how many events are from before there were checksums."""
        return 0

    @abstractmethod
    def tail(self, count: int) -> list[Event]:
        """Return the last so many events of the journal, in order; one that is damaged may be left out."""

    def end(self) -> int:
        """Return the number of the last event."""
        return max((sequence for sequence, _ in self.events()), default=0)

    def setups(self) -> list[Setup]:
        """Return the objectives as they were declared, one time after another."""
        return [self.began, *(event.setup for _, event in self.events() if isinstance(event, Declared))]

    def decided(self, since: float = -math.inf, until: float = math.inf) -> Iterator[tuple[int, list[Made]]]:
        """Yield decisions of a time with their feedback, some at a time, and up to which event these go.

        They come in the journal's order, as it is now, and may lack what explains them. At one that is not what was
        recorded, as far as the store can tell, that is a `DamagedError`; whether one is missing is for `examined` to
        tell.
        """
        for sequence, event in self.events():
            wanted = isinstance(event, DecisionMade) and since <= event.at < until
            yield sequence, [Made(sequence, event, self.parts(event.id))] if wanted else []  # type: ignore[union-attr, arg-type]

    def decisions(self, ids: Sequence[str]) -> dict[str, DecisionMade]:
        """Return those of these decisions that there are."""
        return {one: made for one in ids if (made := self.decision(one)) is not None}

    # What went on, by time: sums over the journal's events that whoever looks at them adds up, a step of time each.

    _counted = 0
    _activity: dict[int, list[float]] | None = None

    def settled(self) -> int:
        """Return the number of the last event that has none before it which is still on its way."""
        return self.end()

    def counted(self) -> int:
        """Return up to which event what went on is counted."""
        return self._counted

    def activity(self, since: int) -> dict[int, list[float]]:
        """Return what went on from a time on, by the time at which each step begins."""
        with self.lock:
            return {at: row for at, row in sorted((self._activity or {}).items()) if at >= since}

    def count(self, after: int, upto: int, rows: Mapping[int, Sequence[float]]) -> bool:
        """Add what the events after one come to, up to another; False where others have counted them meanwhile."""
        with self.lock:
            if self._counted != after:
                return False
            kept = self._activity = self._activity or {}
            for at, row in rows.items():
                kept[at] = [a + b for a, b in zip(kept.get(at) or [0.0] * len(row), row, strict=True)]
            self._counted = upto
            return True

    @abstractmethod
    def history(self, user: str) -> Iterator[tuple[int, Event]]:
        """Yield the decisions for a user and their feedback, in order."""

    @abstractmethod
    def decision(self, decision_id: str) -> DecisionMade | None:
        """Return a decision, or None if there is none of that id."""

    @abstractmethod
    def decision_for(self, key: str) -> DecisionMade | None:
        """Return the decision that was made under a key, or None if there is none."""

    @abstractmethod
    def parts(self, decision_id: str) -> tuple[FeedbackGiven, ...]:
        """Return the parts of the feedback to a decision, in the order in which they came."""

    def feedback(self, decision_id: str) -> FeedbackGiven | None:
        """Return the feedback to a decision, for the arm that was rated first, or None if there is none yet."""
        return next(iter(together(self.parts(decision_id)).values()), None)

    def awaits(self, decision: DecisionMade, now: float) -> bool:
        """Tell whether a decision still takes feedback."""
        return not self._ages.expired(decision, now)

    @abstractmethod
    def arms(self) -> Arms:
        """Return the arms and their sums."""

    @abstractmethod
    def user_rows(self, ids: Sequence[str]) -> tuple[Floats, Floats]:
        """Return the sums of these users, a row each, in this order: zeros for a user that nothing is known of.

        The numbers are laid out as `pamo.rows` says; the second array holds the stated preferences. This is
        for who has only microseconds to decide; `users` is the same, unpacked.
        """

    @abstractmethod
    def user_pairs(self, ids: Sequence[str]) -> Pairs:
        """Return the sums of these users' pairs, in this order; each arm by its row in `arms`."""

    @abstractmethod
    def user_ids(self) -> Iterator[str]:
        """Yield the users who gave feedback."""

    @abstractmethod
    def pending(self) -> int:
        """Return how many decisions have no feedback, the expired ones among them."""

    @abstractmethod
    def trouble(self) -> str | None:
        """Return why nothing can be recorded at the moment, or None if all is well."""

    @property
    def stopped(self) -> bool:
        """Whether nothing will be recorded until the store is opened anew."""
        return False

    @abstractmethod
    def snapshot(self) -> None:
        """Keep the sums as they are, so that the next start need not fold the whole journal."""

    @abstractmethod
    def rebuild(self) -> None:
        """Throw the sums away and fold the journal again."""

    @abstractmethod
    def declare(self, setup: Setup, at: float) -> None:
        """Record other objectives, scales or half-lives, and fold the journal by them, while nothing else is done."""

    def clock(self, user: str | None, arms: Sequence[str]) -> tuple[int, ...]:
        """Return the rounds of a user, and the pulls of arms, since half-lives in rounds were declared."""
        raise NotImplementedError  # of a store without sums of its own

    @abstractmethod
    def load(self, events: Iterable[tuple[int, Event]]) -> int:
        """Take over another journal as it is, into a store that has none; return the number of events."""

    @abstractmethod
    def close(self, *, snapshot: bool = True) -> None:
        """Finish what was handed in, and let go. Closing twice is fine."""

    def user_row(self, user: str) -> tuple[Floats, Floats]:
        """Return the same for one user, as arrays of one row, to be read and not to be changed.

        The sums may be the store's own, as those of `arms` may: read them while holding the store's `lock`.
        """
        return self.user_rows((user,))

    def users(self, ids: Sequence[str]) -> UserStatistics:
        """Return the statistics of these users, a row each, in this order: zeros for one that nothing is known of."""
        rows, stated = self.user_rows(ids)
        return UserStatistics(rows=rows, stated=stated)

    def count_users(self) -> int:
        """Return how many users gave feedback."""
        return sum(1 for _ in self.user_ids())

    def find_users(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        """Return users who gave feedback and whose ids begin so, each with their rounds.

        Those with the most rounds come first, and of equal ones those whose id does; at most `limit`.
        """
        ids = [user for user in self.user_ids() if user.startswith(prefix)]
        rounds = self.user_rows(ids)[0][:, 0].tolist() if ids else []
        found = sorted(zip(ids, rounds, strict=True), key=lambda one: (-one[1], one[0].encode()))
        return [(user, int(count)) for user, count in found[:limit]]

    def decisions_of(self, user: str, limit: int, before: int | None = None) -> list[Made]:
        """Return a user's decisions with their feedback, the newest first: at most `limit`, made before that one.

        before: the sequence number of a decision; None is from the newest on.
        """
        made: dict[str, Made] = {}
        for sequence, event in self.history(user):
            if isinstance(event, DecisionMade) and (before is None or sequence < before):
                made[event.id] = Made(sequence, event)
            elif isinstance(event, FeedbackGiven) and event.decision in made:
                one = made[event.decision]
                made[event.decision] = one._replace(parts=(*one.parts, event))
        return list(reversed(made.values()))[:limit]

    def changes_of(self, user: str) -> list[float]:
        """Return when a user's taste was found to have changed, in order."""
        return [event.at for _, event in self.history(user) if isinstance(event, TasteChanged)]

    def append(self, event: Event, *, checked: bool = False) -> Receipt:
        """Record one event, and return once it is durable.

        checked: whether who made it has checked it, so that the store need not.
        """
        return self.submit_many([event]).result()[0]

    def append_many(self, events: Sequence[Event]) -> list[Receipt]:
        """Record events together, and return once they are durable."""
        return self.submit_many(events).result()

    def submit(self, event: Event) -> Future[Receipt]:
        """Hand in one event; the receipt comes once it is durable."""
        one: Future[Receipt] = Future()

        def hand_on(many: Future[list[Receipt]]) -> None:
            error = many.exception()
            if not one.set_running_or_notify_cancel():
                return  # the caller does not want to know any more
            if error is None:
                one.set_result(many.result()[0])
            else:
                one.set_exception(error)

        self.submit_many([event]).add_done_callback(hand_on)
        return one

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Reader(Store):
    """A store that is read and not changed: its journal and sums are of one moment, whoever writes meanwhile."""

    inspects = False
    """Whether `damage` looks for any."""
    lost: tuple[str, ...] = ()
    """What was seen to be wrong with the journal as it was opened: sums are then not to be had."""

    @classmethod
    @abstractmethod
    def of(cls, address: str, *, alone: bool, sums: bool = True) -> Reader:
        """Open what there is at an address; `open_reader` says what alone and sums are."""

    @classmethod
    def copied(cls, address: str, path: Path) -> AbstractContextManager[Reader]:
        """Yield a copy of a store as it is now, whoever writes to it; it gets its name once the block is done."""
        raise InputError(
            "only a store in a file is copied like this: PostgreSQL's is backed up by pg_dump, and brought back by "
            "pg_restore (docs/store.md), or carried to a file by `pamo store migrate`"
        )

    @abstractmethod
    def kinds(self) -> dict[str, int]:
        """Return how many events there are of each kind."""

    @abstractmethod
    def last(self) -> Event | None:
        """Return the last event of the journal."""

    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Return the bytes that its parts take on the disk."""

    @abstractmethod
    def damage(self, *, quick: bool = False) -> list[str]:
        """Return what the database finds broken in its own files; quick: without comparing indexes with tables."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise StoreError("this store was opened to be read only: open it with `open_store` to write to it")

    submit_many = snapshot = rebuild = load = declare = _refuse
