"""How old decisions are, whatever becomes of the machine's clock.

A clock that was wrong makes decisions look older than they are, and what is too old takes no feedback. Two things tell:
a clock behind what the journal has seen already was wrong when the decision was made, which is recorded with it; and a
clock that is set forward while the process runs moves away from the one that nobody can set.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable

from pamo.contract.events import DecisionMade, Event, Setup

STEP = 3600.0
"""Seconds by which a clock has to be off to be called wrong: others are slewed, or of several machines."""

LOOKED_AT = 100
"""Events at the end of a journal that say how far its time is."""


LOOK_EVERY = 60.0
"""Seconds between two events after which it is looked whether the clock was set: a small part of `STEP`."""


def _steady() -> float:
    """Tell the time since some moment, by a clock that goes on while the machine sleeps, where there is one."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Ages:
    """Knows how far the journal's time is, and when the machine's clock was set forward."""

    def __init__(
        self, expires_after: float, wall: Callable[[], float] = time.time, steady: Callable[[], float] = _steady
    ) -> None:
        self.expires_after = expires_after
        self._latest = -math.inf
        self._wall, self._steady = wall, steady
        self._looked = wall()
        self._offset = self._looked - steady()
        self._set: list[tuple[float, float]] = []

    def _look(self, at: float) -> None:
        """Look whether the clock was set, at an event of that time: a clock that was set shows in the events' times."""
        now, steady, self._looked = self._wall(), self._steady(), at
        expected = steady + self._offset
        if now - expected > STEP:
            self._set.append((expected, now))
            logging.getLogger(__name__).warning(
                "the machine's clock was set forward by %.1f hours: decisions from before do not age by that",
                (now - expected) / 3600.0,
            )
        self._offset = now - steady

    def note(self, events: Iterable[Event]) -> None:
        """Take in how far the journal's time is."""
        for event in events:
            if not isinstance(event, Setup):
                self._latest = max(self._latest, event.at, getattr(event, "since", None) or event.at)

    def since(self, at: float) -> float | None:
        """Return the journal's time for a new decision that the clock puts long before it, None for any other."""
        if not -LOOK_EVERY < at - self._looked < LOOK_EVERY:
            self._look(at)
        if at >= self._latest:
            self._latest = at
            return None
        return self._latest if at < self._latest - STEP else None

    def expired(self, decision: DecisionMade, at: float) -> bool:
        """Tell whether a decision takes no feedback any more."""
        if not -LOOK_EVERY < at - self._looked < LOOK_EVERY:
            self._look(at)
        made = decision.at if decision.since is None else decision.since
        age = at - made
        if self._set:
            age -= sum(after - before for before, after in self._set if made <= before and at >= after)
        return age > self.expires_after
