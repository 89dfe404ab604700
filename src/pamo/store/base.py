"""The journal's words, and what every store can do.

The journal is the truth: events are appended to it and never changed (the erasure of a user is the one exception). It
holds raw values as they came; the sums are its fold, normalised by the objectives that the first event declares.
"""

from __future__ import annotations

import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats
from pamo.errors import StoreError
from pamo.statistics import ArmStatistics, UserStatistics

if TYPE_CHECKING:
    from pamo.store.rules import Checker

FORMAT = 1
"""The number of the journal's format. Older ones stay readable; a newer one is refused."""

EXPIRES_AFTER = 30 * 24 * 3600.0
"""Seconds after which a decision takes no feedback any more, unless the store is opened with another number."""


@dataclass(slots=True, frozen=True)
class Objective:
    """What an arm is scored on: its scale as people give it, and whether less of it is better.

    >>> price = Objective("price", 0, 500, lower_is_better=True)
    >>> price.normalised(100)
    0.8
    """

    name: str
    low: float = 0.0
    high: float = 1.0
    lower_is_better: bool = False

    def normalised(self, value: float) -> float:
        """Return the value on a scale from 0 (worst) to 1 (best)."""
        share = (value - self.low) / (self.high - self.low)
        return 1.0 - share if self.lower_is_better else share


@dataclass(slots=True, frozen=True)
class Setup:
    """The first event of every journal: the objectives, and the scale of the overall score."""

    objectives: tuple[Objective, ...]
    overall: Objective = Objective("overall")
    format: int = FORMAT


# Events are plain values, and nobody changes them. They are not frozen, since to make one would take twice as long.


@dataclass(slots=True)
class ArmAdded:
    """An arm can be chosen from now on. Added again it is revived; added with another name it is renamed."""

    arm: str
    name: str
    at: float


@dataclass(slots=True)
class ArmRetired:
    """An arm is no longer offered. What was learned of it stays, and late feedback still counts."""

    arm: str
    at: float


@dataclass(slots=True)
class DecisionMade:
    """Arms were chosen for a user, the best first.

    offer: the arms to choose from, None for all that were active. k: how many were asked for. preference: the user's
    weights where they were known. key: makes the request repeatable. user: None once the user was erased.
    """

    id: str
    user: str | None
    arms: tuple[str, ...]
    propensity: float
    policy: str
    at: float
    offer: tuple[str, ...] | None = None
    k: int = 1
    preference: Mapping[str, float] | None = None
    key: str | None = None
    explanation: Mapping[str, Any] | None = None


@dataclass(slots=True)
class FeedbackGiven:
    """What came of a decision; each takes exactly one.

    rewards: raw scores by objective, of those that are known. overall: the user's one overall score. preference: the
    weights that the user stated. arm: the one that the feedback is for, the first of the decision where it is None. The
    store fills in arm and user when it records the event, so that the journal can be folded event by event.
    """

    decision: str
    rewards: Mapping[str, float]
    at: float
    overall: float | None = None
    preference: Mapping[str, float] | None = None
    arm: str | None = None
    user: str | None = None


@dataclass(slots=True)
class UserErased:
    """A user asked to be forgotten. In the journal the name is gone here too: user is None."""

    user: str | None
    at: float


Event = Setup | ArmAdded | ArmRetired | DecisionMade | FeedbackGiven | UserErased


class Outcome(StrEnum):
    """What became of an event. Nothing has changed unless it was recorded."""

    RECORDED = "recorded"
    DUPLICATE = "duplicate"
    """The same had been recorded before: harmless, and answered like the first time."""
    CONFLICT = "conflict"
    """Something else had been recorded under the same id or key."""
    UNKNOWN = "unknown"
    """It names a decision, an arm or a user that does not exist."""
    EXPIRED = "expired"
    """The feedback came too late."""


@dataclass(slots=True)
class Receipt:
    """The answer to an appended event.

    sequence: the event's place in the journal (of the first one for a duplicate), 0 where nothing is recorded. learned:
    what a feedback taught, such as ("arm: price", "preference"). decision: for a decision, the one that counts (where
    the key was used before, the first); for a recorded feedback, the one that it is for. reason: a sentence, where it
    was neither recorded nor a duplicate.
    """

    outcome: Outcome
    sequence: int = 0
    learned: tuple[str, ...] = ()
    decision: DecisionMade | None = None
    reason: str = ""


class Made(NamedTuple):
    """A decision, its place in the journal, and its feedback if there is one."""

    sequence: int
    decision: DecisionMade
    feedback: FeedbackGiven | None


@dataclass(slots=True, frozen=True)
class Arms:
    """The arms, a row each: ids, names for display, whether they are active, and their sums.

    rows: from id to row. version: another number whenever an arm was added, renamed, revived or retired. The sums may
    be the store's own, which change as feedback comes in: read them while holding the store's `lock`, or copy them.
    """

    ids: tuple[str, ...]
    names: tuple[str, ...]
    active: npt.NDArray[np.bool_]
    rows: Mapping[str, int]
    statistics: ArmStatistics
    version: int = field(compare=False, default=0)


ArmState = tuple[str, bool]
"""An arm's name, and whether it is active."""

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
    _checker: Checker
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

    @abstractmethod
    def submit_many(self, events: Sequence[Event]) -> Future[list[Receipt]]:
        """Hand in events to be recorded together; the receipts come once they are durable.

        Each is judged on its own, in order. Memory changes only after the journal did, and the receipts come last. An
        event that cannot be recorded whatever the journal holds is an `InputError` at once, and nothing is handed in.
        """

    def check(self, event: Event) -> None:
        """Raise `InputError` for an event that could not be recorded whatever the journal holds."""
        self._checker.check(event)

    @abstractmethod
    def events(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Yield the journal's events with their sequence numbers, from the one after `after` on."""

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
    def feedback(self, decision_id: str) -> FeedbackGiven | None:
        """Return the feedback to a decision, or None if there is none yet."""

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
    def user_ids(self) -> Iterator[str]:
        """Yield the users who gave feedback."""

    @abstractmethod
    def pending(self) -> int:
        """Return how many decisions have no feedback, the expired ones among them."""

    @abstractmethod
    def trouble(self) -> str | None:
        """Return why nothing can be recorded at the moment, or None if all is well."""

    @abstractmethod
    def snapshot(self) -> None:
        """Keep the sums as they are, so that the next start need not fold the whole journal."""

    @abstractmethod
    def rebuild(self) -> None:
        """Throw the sums away and fold the journal again."""

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
                made[event.id] = Made(sequence, event, None)
            elif isinstance(event, FeedbackGiven) and event.decision in made:
                made[event.decision] = made[event.decision]._replace(feedback=event)
        return list(reversed(made.values()))[:limit]

    def append(self, event: Event) -> Receipt:
        """Record one event, and return once it is durable."""
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

    @classmethod
    @abstractmethod
    def of(cls, address: str, *, alone: bool) -> Reader:
        """Open what there is at an address; `open_reader` says what alone is."""

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

    submit_many = snapshot = rebuild = load = _refuse
