"""What went on in all workers and since the beginning: counted from the journal, a quarter of an hour each.

The counts are kept beside the journal and carried on from there, so that neither a restart nor another worker loses or
doubles anything. Counting follows a few seconds behind, some events at a time, so that decisions do not wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import threading
import time
from collections.abc import Mapping
from itertools import islice, takewhile

from pamo.contract.answers import Bucket
from pamo.contract.events import HISTORY, DecisionMade, Event, FeedbackGiven
from pamo.errors import PamoError
from pamo.service.activity import DECISIONS, EXPLORED, FEEDBACKS, FIELDS, Activity, bucket_of, explored
from pamo.store import Store

STEP = 900
"""Seconds that are counted together."""
SPANS = {"quarter-hour": STEP, "hour": 3600, "day": 86_400}
"""From a resolution to its seconds."""

EVERY = 10.0
"""Seconds between two looks at the journal."""
FRESH = 2.0
"""Seconds for which what was counted is not looked at again by whoever asks, where that costs others anything."""
PIECE = 1000
"""Events that are counted at a time, in some 50 ms: whether others are busy is known only after the first pieces."""
REST, LONG_REST = 3.0, 40.0
"""How many times as long as it counted it rests while there is more to count: the second if the process is busy."""
BUSY = 0.3
"""Of a processor, while it rested: counting takes its time from those who are served."""
EARLIEST, LATEST = 0.0, 253_402_300_800.0
"""Times that are shown: whoever wrote another had a clock of their own."""


class History:
    """Counts the journal's events, and returns what went on. `advance` may be called from any thread."""

    def __init__(self, store: Store, activity: Activity) -> None:
        self._store = store
        self._activity = activity
        self._counting = threading.Lock()
        self._due = 0.0  # when whoever looks has to have it counted first

    def buckets(self, resolution: str, limit: int, now: float) -> list[Bucket]:
        """Return the last so many buckets, the oldest first, without those in which nothing happened."""
        if time.monotonic() >= self._due:
            self.advance()
        span = SPANS[resolution]
        first = (int(now // span) - limit + 1) * span
        found: dict[int, list[float]] = {}
        for at, row in self._store.activity(first).items():
            begins = at // span * span
            found[begins] = [a + b for a, b in zip(found.get(begins) or [0.0] * FIELDS, row, strict=True)]
        return [bucket_of(at, row) for at, row in found.items() if at <= now]

    async def keep(self) -> None:
        """Go on counting until cancelled."""
        said, busy = "", False
        while True:
            began, more = time.monotonic(), False
            try:
                more = await asyncio.to_thread(self.advance)
            except PamoError as error:  # the store says so itself, to whoever needs it more
                if str(error) != said:
                    said = str(error)
                    logging.getLogger("pamo.service").warning("what went on is not counted: %s", error)
            ended, spent = time.monotonic(), time.process_time()
            rest = (LONG_REST if busy else REST) * (ended - began)
            await asyncio.sleep(rest if more else EVERY * (1.0 + random.random()))  # workers take turns
            busy = time.process_time() - spent > BUSY * (time.monotonic() - ended)

    def advance(self) -> bool:
        """Count some of the events that are not counted yet; tell whether there may be more."""
        if not self._counting.acquire(blocking=False):
            return True  # somebody is at it
        try:
            after = self._store.counted()
            if self._store.end() <= after:
                return False
            end = self._store.settled()
            if self._store.remote:  # which keeps others waiting for a moment
                self._due = time.monotonic() + FRESH
            events = takewhile(lambda one: one[0] <= end, self._store.events(after))
            piece = list(islice(events, PIECE))
            if not piece:
                return False
            self._store.count(after, piece[-1][0], self._rows([event for _, event in piece]))
            return piece[-1][0] < end
        finally:
            self._counting.release()

    def _rows(self, events: list[Event]) -> dict[int, list[float]]:
        made = {event.id: event for event in events if isinstance(event, DecisionMade)}
        earlier = {event.decision for event in events if isinstance(event, FeedbackGiven)} - made.keys()
        made |= self._store.decisions(sorted(earlier))
        rows: dict[int, list[float]] = {}
        if self._activity.blind and any(isinstance(event, FeedbackGiven) for event in events):
            self._activity.read_arms()
        for event in events:
            if isinstance(event, DecisionMade | FeedbackGiven) and EARLIEST <= event.at < LATEST:
                self._add(rows.setdefault(int(event.at) // STEP * STEP, [0.0] * FIELDS), event, made)
        return {at: row for at, row in rows.items() if any(row)}

    def _add(self, row: list[float], event: DecisionMade | FeedbackGiven, made: Mapping[str, DecisionMade]) -> None:
        decision = event if isinstance(event, DecisionMade) else made.get(event.decision)
        if decision is not None and decision.policy == HISTORY:
            return  # which nobody decided
        if isinstance(event, DecisionMade):
            row[DECISIONS] += 1.0
            row[EXPLORED] += explored(event.explanation)
        else:
            row[FEEDBACKS] += 1.0
            with contextlib.suppress(LookupError, TypeError):  # an explanation that another version wrote
                self._activity.compare(row, event, decision)
