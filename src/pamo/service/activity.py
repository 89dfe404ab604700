"""What went on lately: decisions and feedback by the second and the minute, in rings of numbers.

It is kept in memory, by each worker for itself, from its start on; `history` has the rest. A decision costs about a
microsecond here, and a feedback a few.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from pamo.contract.answers import Bucket, Decision
from pamo.engine import Engine
from pamo.errors import PamoError, StoreError
from pamo.estimators import reward_means
from pamo.plain import plain
from pamo.store import Arms, DecisionMade, FeedbackGiven
from pamo.store.scales import Scales

DECISIONS, EXPLORED, FEEDBACKS, SCORED, GOT, GREEDY, RANDOM, FIELDS = range(8)
"""Places in a row: SCORED feedbacks are those in which what came back can be compared with what was expected."""

RINGS = {"second": (1, 600), "minute": (60, 1440)}
"""From a resolution to its seconds, and how many of such buckets are kept: ten minutes, and a day."""

RECENT = 50
"""The last decisions, for who begins to look."""
RATE_SECONDS = 10
"""Seconds that decisions and feedback a second are averaged over."""
REFRESH = 2.0
"""Seconds after which the arms' means are read anew."""
UNKNOWN: Any = object()
OFFERS = 1000
"""Offers whose averages are remembered until then."""


class Noted(NamedTuple):
    """A decision, how many there had been with it, when it was made, and whether greed would have made another."""

    number: float
    at: float
    decision: Decision
    explored: bool


class _Seen(NamedTuple):
    """The arms as they were a moment ago: means of those that are tried and active, and averages over offers."""

    arms: Arms
    means: Any
    averages: dict[int, list[float] | None]  # by the offers' hashes: an offer itself may be thousands of ids


class _Ring:
    def __init__(self, seconds: int, size: int) -> None:
        self.seconds = seconds
        self.rows = np.zeros((size, FIELDS))
        self.numbers = np.full(size, -1, dtype=np.int64)

    def add(self, second: int, row: Sequence[float]) -> None:
        number = second // self.seconds
        place = number % len(self.rows)
        if self.numbers[place] != number:
            self.numbers[place] = number
            self.rows[place] = 0.0
        self.rows[place] += row

    def last(self, second: int, limit: int) -> list[tuple[int, list[float]]]:
        """Return up to so many buckets up to this second, the oldest first; those in which nothing was are left out."""
        newest = second // self.seconds
        oldest = max(newest - min(limit, len(self.rows)) + 1, 0)
        places = np.flatnonzero((self.numbers >= oldest) & (self.numbers <= newest))
        places = places[np.argsort(self.numbers[places])]
        return [(int(self.numbers[place]) * self.seconds, self.rows[place].tolist()) for place in places]


class Activity:
    """Counts decisions and feedback, and compares what came back with what was to be expected. For one event loop.

    For each feedback with an overall score: the score; what the arm that looked best was expected to get at the time of
    the decision (greedy); and what the arms on offer get on average (random); all from 0 to 1, as the user's weights
    foretell it. Where no overall score comes, the rewards weighed by the user's preference stand for it.
    """

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._scales = Scales(engine.store.setup)
        self._overall = engine.store.setup.overall
        self._clock = clock
        self.since = clock()
        self._rings = {name: _Ring(*shape) for name, shape in RINGS.items()}
        self._second = int(self.since)
        self._row = [0.0] * FIELDS
        self.totals = [0.0, 0.0, 0.0]
        """Decisions, explored ones among them, and feedbacks, since the start."""
        self._recent: deque[Noted] = deque(maxlen=RECENT)
        self._seen: _Seen | None = None
        self._due = 0.0  # when the arms' means are to be read again

    def decided(self, decision: Decision) -> None:
        """Take note of a decision, unless it repeats one that was made before."""
        if decision.repeated:
            return
        now, to_learn = self._clock(), explored(decision.details)
        for counts in (self._turn(now), self.totals):
            counts[DECISIONS] += 1
            counts[EXPLORED] += to_learn
        self._recent.append(Noted(self.totals[DECISIONS], now, decision, to_learn))

    def fed(self, event: FeedbackGiven, made: DecisionMade | None) -> None:
        """Take note of a feedback that was recorded, to a decision that the store may know."""
        row = self._turn(self._clock())
        row[FEEDBACKS] += 1.0
        self.totals[FEEDBACKS] += 1
        self.compare(row, event, made)

    @property
    def blind(self) -> bool:
        """Whether nothing is known of the arms yet, so that nothing can be compared."""
        return self._seen is None

    def compare(self, row: list[float], event: FeedbackGiven, made: DecisionMade | None) -> None:
        """Add to a row what came back, and what greed and chance were expected to get, where all of it is known."""
        compared = None if made is None or made.explanation is None else self._compare(event, made)
        if compared is not None:
            row[SCORED] += 1.0
            row[GOT] += compared[0]
            row[GREEDY] += compared[1]
            row[RANDOM] += compared[2]

    def forget(self, user: str | None) -> None:
        """Show a user who was erased no longer."""
        kept = [one for one in self._recent if one.decision.user != user]
        self._recent.clear()
        self._recent.extend(kept)

    def erased(self) -> set[str | None]:
        """Return who was erased by another worker, as the store tells; where it cannot, whoever it may be."""
        users = {one.decision.id: one.decision.user for one in list(self._recent)}
        with contextlib.suppress(StoreError):
            kept = {place: self._engine.store.decision(place) for place in users}
            return {user for place, user in users.items() if (made := kept[place]) is None or made.user != user}
        return set(users.values())

    def name_of(self, arm: str) -> str:
        """Return an arm's name, or its id where the name is not known yet."""
        row = None if self._seen is None else self._seen.arms.rows.get(arm)
        return arm if row is None or self._seen is None else self._seen.arms.names[row]

    def read_arms(self) -> None:
        """Read the arms' means, which may wait for a network; where they cannot be read, the last ones stay."""
        store = self._engine.store
        with contextlib.suppress(PamoError), store.lock:
            arms = store.arms()
            means, counts = reward_means(arms.statistics), arms.statistics.objective_count
            means[~(counts > 0.0).all(axis=1) | ~arms.active] = np.nan
            self._seen = _Seen(arms, means, {})

    def buckets(self, resolution: str, limit: int) -> list[Bucket]:
        """Return the last so many buckets, the oldest first, without those in which nothing happened."""
        self._turn(self._clock())
        self._put_away()
        return [bucket_of(at, row) for at, row in self._rings[resolution].last(self._second, limit)]

    def recent(self, after: float, most: int) -> list[Noted]:
        """Return the last decisions, those after the first so many, and no more than this."""
        return [one for one in self._recent if one.number > after][-most:]

    def rates(self) -> tuple[float, float]:
        """Return decisions and feedbacks a second, of late."""
        self._turn(self._clock())
        rows = self._rings["second"].last(self._second - 1, RATE_SECONDS)
        span = min(RATE_SECONDS, max(1.0, self._second - int(self.since)))
        return sum(row[DECISIONS] for _, row in rows) / span, sum(row[FEEDBACKS] for _, row in rows) / span

    def _turn(self, now: float) -> list[float]:
        """Return the row of this second; that of a second that is over goes to the rings."""
        second = int(now)
        if second > self._second:  # a clock that was set back is waited for
            self._put_away()
            self._second = second
            if time.monotonic() >= self._due:
                self._due = time.monotonic() + REFRESH
                asyncio.get_running_loop().run_in_executor(None, self.read_arms)
        return self._row

    def _put_away(self) -> None:
        """Add the present row to the rings, and begin another."""
        if any(self._row):
            for ring in self._rings.values():
                ring.add(self._second, self._row)
            self._row = [0.0] * FIELDS

    def _compare(self, event: FeedbackGiven, made: DecisionMade) -> tuple[float, float, float] | None:
        """Return what came back, and what greed and chance were expected to get; None where one is not known."""
        kept: Any = made.explanation
        best = kept.get("without_exploration", kept)
        if best is kept and kept["reward_bonus"] is None:
            return None  # nothing had been tried
        average = self._average(made.offer)
        if average is None:
            return None
        weights = kept["preference"]
        # Weights that were given or stated are proportions; fitted ones are on the scale of the overall score.
        scale = 1.0 if self._engine.foretells_overall(made.policy) else 1.0 / (sum(map(abs, weights)) or 1.0)
        if event.overall is not None:
            got = self._overall.normalised(event.overall)
        else:
            got = scale * sum(map(mul, weights, self._scales.values(event).tolist()))
            if math.isnan(got):  # not all rewards came
                return None
        return got, scale * sum(map(mul, weights, best["means"])), scale * sum(map(mul, weights, average))

    def _average(self, offer: tuple[str, ...] | None) -> list[float] | None:
        """Return the arms' average means, over an offer."""
        seen = self._seen
        if seen is None:
            return None
        averages, place = seen.averages, hash(offer)
        average: list[float] | None = averages.get(place, UNKNOWN)
        if average is UNKNOWN:  # asked once: another thread may forget it meanwhile
            if len(averages) >= OFFERS:
                averages.clear()
            means = seen.means
            if offer is not None:
                rows = seen.arms.rows
                means = means[[rows[arm] for arm in offer if arm in rows]]
            means = means[~np.isnan(means[:, 0])]
            average = averages[place] = means.mean(axis=0).tolist() if len(means) else None
        return average


def explored(details: Mapping[str, Any] | None) -> bool:
    """Tell from what explains a decision whether greed would have made another."""
    return details is not None and ("without_exploration" in details or details["reward_bonus"] is None)


def bucket_of(at: int, row: list[float]) -> Bucket:
    """Return a row as it is told."""
    scored = row[SCORED]
    means = [row[place] / scored if scored else None for place in (GOT, GREEDY, RANDOM)]
    known = plain(means)
    counts = (int(row[place]) for place in (DECISIONS, EXPLORED, FEEDBACKS, SCORED))
    return Bucket(float(at), *counts, *known)
