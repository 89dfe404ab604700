"""Pulls under way: decisions whose feedback may still come count as pulls, so that nobody floods a new arm.

How long feedback takes, and what share of decisions ever gets any, is learned as it comes. All this is a worker's own,
in memory, and bounded: a start rebuilds it from the journal's end.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping

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
_BINS, _FIRST = 64, -20
"""Delays are counted by powers of two, from 2⁻²⁰ s on."""


class UnderWay:
    """The decisions without feedback, by id: what they count for as pulls of their arms.

    >>> waiting = UnderWay()
    >>> waiting.attach(np.zeros(2), {"A": 0, "B": 1})
    >>> waiting.begin("d1", "B", at=0.0)
    >>> waiting.begin("d2", "B", at=1.0)
    >>> waiting.end("d1", at=2.0)
    >>> waiting.line.tolist()
    [0.0, 1.0]
    """

    def __init__(self) -> None:
        self._open: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._waiting: dict[str, int] = {}
        self._given_up: dict[str, float] = {}
        self._rows: Mapping[str, int] = {}
        self._delays = [0.0] * _BINS
        self._answered, self._unanswered, self._since = ASSUMED, 0.0, 0
        self._lock = threading.Lock()
        self.line: Floats = np.zeros(0)
        """What a kernel reads: for each arm's row, the pulls that its decisions under way count for."""
        self.weight = 1.0
        """What each of them counts for: the share of decisions that get feedback."""
        self.patience = LEAST_PATIENCE
        """Seconds for which feedback is to be expected."""

    def __len__(self) -> int:
        return len(self._open)

    def attach(self, line: Floats, rows: Mapping[str, int]) -> None:
        """Write what pulls under way count for into this line from now on, by the arms' rows."""
        with self._lock:
            self.line, self._rows = line, rows
            self._write_all()

    def begin(self, decision: str, arm: str, at: float) -> None:
        """Wait for the feedback to a decision."""
        with self._lock:
            waiting = self._open
            waiting[decision] = (arm, at)
            self._waiting[arm] = self._waiting.get(arm, 0) + 1
            while True:
                oldest = next(iter(waiting))
                if at - waiting[oldest][1] <= self.patience and len(waiting) <= MOST:
                    break
                self._give_up(oldest)
                if not waiting:
                    return
            self._write(arm)

    def end(self, decision: str, at: float) -> None:
        """Take note of a feedback."""
        with self._lock:
            found = self._open.pop(decision, None)
            if found is None:
                return
            arm, begun = found
            self._let_go(arm)
            self._answered += 1.0
            self._delays[min(max(math.frexp(at - begun)[1] - _FIRST, 0), _BINS - 1)] += 1.0
            self._since += 1
            if self._since >= 64:
                self._learn()

    def forget(self, decision: str) -> None:
        """Take no note of a decision that was not recorded."""
        with self._lock:
            found = self._open.pop(decision, None)
            if found is not None:
                self._let_go(found[0])

    def replay(self, events: Iterable[Event]) -> None:
        """Take in decisions and feedback that the journal holds."""
        for event in events:
            if isinstance(event, DecisionMade):
                self.begin(event.id, event.arms[0], event.at)
            elif isinstance(event, FeedbackGiven):
                self.end(event.decision, event.at)
        with self._lock:
            self._learn()

    def _let_go(self, arm: str) -> None:
        left = self._waiting[arm] - 1
        if left:
            self._waiting[arm] = left
        else:
            del self._waiting[arm]
        self._write(arm)

    def _give_up(self, decision: str) -> None:
        arm, _ = self._open.pop(decision)
        self._given_up[arm] = self._given_up.get(arm, 0.0) + 1.0
        self._unanswered += 1.0
        self._let_go(arm)

    def _learn(self) -> None:
        """Work out how long feedback takes and how often it comes, and let the past fade."""
        self._since = 0
        total = sum(self._delays)
        if total > 0.0:
            below, place = 0.0, 0
            while place < _BINS - 1 and below + self._delays[place] < LATE * total:
                below += self._delays[place]
                place += 1
            self.patience = max(2.0 * math.ldexp(1.0, place + _FIRST), LEAST_PATIENCE)
        if self._answered + self._unanswered > REMEMBERED:
            self._answered *= 0.5
            self._unanswered *= 0.5
            self._delays = [0.5 * count for count in self._delays]
        weight = max(self._answered / (self._answered + self._unanswered), GIVEN_UP)
        if abs(weight - self.weight) > 0.05 * self.weight:
            self.weight = weight
            self._write_all()

    def _write_all(self) -> None:
        self.line.fill(0.0)
        for arm in self._waiting.keys() | self._given_up.keys():
            self._write(arm)

    def _write(self, arm: str) -> None:
        row = self._rows.get(arm)
        if row is not None:
            given_up = self._given_up.get(arm, 0.0)
            self.line[row] = self.weight * self._waiting.get(arm, 0) + GIVEN_UP * given_up
