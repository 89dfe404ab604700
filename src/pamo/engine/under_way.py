"""Pulls under way: decisions whose feedback may still come count as pulls, so that nobody floods a new arm.

How long feedback takes, and what share of decisions ever gets any, is learned as it comes. All this is a worker's own,
in memory, and bounded: a start rebuilds it from the journal's end.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.contract.events import DecisionMade, Event, FeedbackGiven

MOST = 50_000
"""Decisions under way that are kept in mind; with more, the oldest are no longer waited for."""
TAIL = 20_000
"""Events at the journal's end that a start looks at."""
GIVEN_UP = 0.02
"""What a pull counts whose feedback is not to be expected any more. Most of these never come; a few do."""
LEAST_PATIENCE = 3600.0
"""Seconds for which feedback is waited for in any case: ratings of a new arm may take longer than all before."""
LATE = 0.95
"""The share of feedback that comes within the usual delay; twice as long it is waited for."""
REMEMBERED = 10_000.0
"""Feedbacks from which delays are learned: the older ones count less."""
ASSUMED = 50.0
"""Decisions that are taken to have been answered before the first was seen."""
_BINS, _QUICK = 32, LEAST_PATIENCE / 2.0
"""Delays are counted by powers of two times this; what is quicker makes no difference."""
_PUT_OFF = 1000
"""Feedbacks, at most, of which note is taken when the next decision is made: until then nobody needs it."""


class UnderWay:
    """The decisions without feedback, by id: what they count for as pulls of their arms.

    lock: held by whoever decides, and so by those who call `begin`, `settle` and `attach`.

    >>> waiting = UnderWay()
    >>> waiting.attach(np.zeros(2), {"A": 0, "B": 1})
    >>> waiting.begin("d1", "B", at=0.0)
    >>> waiting.begin("d2", "B", at=1.0)
    >>> waiting.end("d1", at=2.0)
    >>> waiting.line.tolist()
    [0.0, 1.0]
    """

    def __init__(self, lock: threading.RLock | None = None) -> None:
        self._open: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._open_of: dict[str, int] = {}  # how many of them are of an arm
        self._given_up: dict[str, float] = {}
        self._rows: Mapping[str, int] = {}
        self._next = math.inf  # when the oldest may be given up: not later than this
        self._quick = 0.0
        self._delays = [0.0] * _BINS
        self._answered, self._unanswered, self._since = ASSUMED, 0.0, 0
        self._lock = lock or threading.RLock()
        self._view: Any = np.zeros(0).data  # to fill a view is five times as fast as to fill an array
        self._weight, self._patience = 1.0, LEAST_PATIENCE
        self.ended: deque[tuple[str, float | None]] = deque()
        """Feedbacks of which no note was taken yet: decisions and times, None for a decision that was not recorded."""

    def __len__(self) -> int:
        self._catch_up()
        return len(self._open)

    @property
    def line(self) -> Floats:
        """What a kernel reads: for each arm's row, the pulls that its decisions under way count for."""
        self._catch_up()
        return np.asarray(self._view)

    @property
    def weight(self) -> float:
        """What each of them counts for: the share of decisions that get feedback."""
        self._catch_up()
        return self._weight

    @property
    def patience(self) -> float:
        """Seconds for which feedback is to be expected."""
        self._catch_up()
        return self._patience

    def attach(self, line: Floats, rows: Mapping[str, int]) -> None:
        """Write what pulls under way count for into this line from now on, by the arms' rows."""
        self._view, self._rows = memoryview(line), rows  # type: ignore[arg-type]  # which it is
        self._write()

    def begin(self, decision: str, arm: str, at: float) -> None:
        """Wait for the feedback to a decision."""
        waiting, row = self._open, self._rows.get(arm)
        waiting[decision] = (arm, at)
        self._open_of[arm] = self._open_of.get(arm, 0) + 1
        if row is not None:
            self._view[row] += self._weight
        if at > self._next or len(waiting) > MOST:
            self._give_up(at)
        elif len(waiting) == 1:
            self._next = at + self._patience

    def end(self, decision: str, at: float) -> None:
        """Have note taken of a feedback, by `settle`: without a lock, which would cost a part of the feedback."""
        self.ended.append((decision, at))
        if len(self.ended) > _PUT_OFF:
            self._catch_up()

    def settle(self) -> None:
        """Take note of the feedbacks that have come."""
        while self.ended:
            decision, at = self.ended.popleft()
            found = self._open.pop(decision, None)
            if found is None:
                continue
            arm, begun = found
            self._open_of[arm] -= 1
            row = self._rows.get(arm)
            if row is not None:
                self._view[row] -= self._weight
            if at is None:
                continue
            self._answered += 1.0
            if at - begun < _QUICK:
                self._quick += 1.0
            else:
                self._delays[min(math.frexp((at - begun) / _QUICK)[1], _BINS - 1)] += 1.0
            self._since += 1
            if self._since >= 64:
                self._learn()

    def _catch_up(self) -> None:
        with self._lock:
            self.settle()

    def forget(self, decision: str) -> None:
        """Take no note of a decision that was not recorded."""
        self.ended.append((decision, None))
        self._catch_up()

    def replay(self, events: Iterable[Event]) -> None:
        """Take in decisions and feedback that the journal holds."""
        with self._lock:
            for event in events:
                if isinstance(event, DecisionMade):
                    self.settle()
                    self.begin(event.id, event.arms[0], event.at)
                elif isinstance(event, FeedbackGiven):
                    self.end(event.decision, event.at)
            self.settle()
            self._learn()

    def _give_up(self, now: float) -> None:
        """Let go of decisions that are too old, or too many."""
        waiting = self._open
        while waiting:
            decision = next(iter(waiting))
            arm, begun = waiting[decision]
            if begun + self._patience >= now and len(waiting) <= MOST:
                self._next = begun + self._patience
                return
            del waiting[decision]
            self._open_of[arm] -= 1
            self._given_up[arm] = self._given_up.get(arm, 0.0) + 1.0
            self._unanswered += 1.0
            row = self._rows.get(arm)
            if row is not None:
                self._view[row] -= self._weight
                self._view[row] += GIVEN_UP
        self._next = math.inf

    def _learn(self) -> None:
        """Work out how long feedback takes and how often it comes, and let the past fade."""
        self._since = 0
        below, place = self._quick, 0
        total = below + sum(self._delays)
        while place < _BINS - 1 and below < LATE * total:
            below += self._delays[place]
            place += 1
        self._patience = max(2.0 * math.ldexp(_QUICK, place - 1), LEAST_PATIENCE)
        if self._answered + self._unanswered > REMEMBERED:
            self._answered *= 0.5
            self._unanswered *= 0.5
            self._quick *= 0.5
            self._delays = [0.5 * count for count in self._delays]
        weight = max(self._answered / (self._answered + self._unanswered), GIVEN_UP)
        if abs(weight - self._weight) > 0.05 * self._weight:
            self._weight = weight
            self._write()

    def _write(self) -> None:
        """Write the whole line anew."""
        view, rows = self._view, self._rows
        for row in range(len(view)):
            view[row] = 0.0
        for counts, weight in ((self._given_up, GIVEN_UP), (self._open_of, self._weight)):
            for arm, count in counts.items():
                if arm in rows:
                    view[rows[arm]] += weight * count
