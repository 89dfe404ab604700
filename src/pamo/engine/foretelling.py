"""What users have in common, for foretelling, kept up to date: chosen by some users' rounds, read from the journal."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from pamo.engine.prior import Prior
from pamo.priors.foretelling import Foretelling, Rounds, fit
from pamo.store import Store
from pamo.store.scales import Scales

USERS, ROUNDS = 1024, 32_768
"""Users whose rounds are read, and those of all together, at most: two megabytes, and some seconds' work."""
USERS_AT_ONCE, ROUNDS_AT_ONCE = 64, 2048
"""So many are read while somebody waits for it; more, beside."""
SHARERS = 32
"""Users who share the rounds that are read, at least, where there are so many. A few whole histories tell more than the
ends of many: what is chosen late goes with what the user cares about, and why it was chosen is in the rounds before."""


class Foreteller:
    """The prior by which users' preferences are told, and when to fit it anew: once the overall scores grew by half.

    prior: the one that is acted by, which knows the sample of users, and what their features tell. That is taken off
    their overall scores first: what is fitted is what they have in common beyond it.
    """

    def __init__(self, store: Store, prior: Prior) -> None:
        self._store = store
        self._prior = prior
        self._by_features = False
        self._scales = Scales(store.setup)
        self._fitting = threading.Lock()
        self._due = 1.0
        self._thread: threading.Thread | None = None
        self._common: Foretelling | None = None

    def common(self) -> Foretelling | None:
        """Return what users have in common as it was fitted last, anew where it is time to; None without any rounds."""
        with self._store.lock:
            scores = float(self._store.arms().statistics.overall_pulls.sum())
        if self._by_features != (self._prior.explained is not None):
            self.expire()
        if scores >= self._due and self._fitting.acquire(blocking=self._common is None):
            try:
                if scores >= self._due:
                    self._due = scores + max(1.0, scores // 2)
                    self._renew(scores)
            finally:
                self._fitting.release()
        return self._common

    def fit(self) -> None:
        """Fit it to the rounds as they are now."""
        self.wait()
        with self._fitting:
            self._common = self._fitted(self._prior.sample()[:USERS], ROUNDS)

    def expire(self) -> None:
        """Have it fitted anew when it is asked for next."""
        self._due = 0.0

    def wait(self) -> None:
        """Wait for a fit that is going on."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _renew(self, scores: float) -> None:
        users = self._prior.sample()[:USERS]
        few = len(users) <= USERS_AT_ONCE and scores <= ROUNDS_AT_ONCE
        if self._common is None or few:
            self._common = self._fitted(users[:USERS_AT_ONCE], ROUNDS_AT_ONCE)
        if not few and self._thread is None:

            def work() -> None:
                try:
                    with self._fitting:
                        self._common = self._fitted(users, ROUNDS)
                finally:
                    self._thread = None

            self._thread = threading.Thread(target=work, name="pamo-foretelling")
            self._thread.start()

    def _fitted(self, users: Sequence[str], rounds: int) -> Foretelling | None:
        names = self._scales.names
        self._by_features = self._prior.explained is not None
        rows, starts, whose = list[list[float]](), [0], list[str]()
        most = rounds // max(1, min(len(users), SHARERS))
        for user in users:
            if len(rows) >= rounds:
                break
            for made in self._store.decisions_of(user, min(most, rounds - len(rows))):
                scores: dict[
                    str | None, dict[str | None, float]
                ] = {}  # by arm, of all parts; None is the overall score
                for part in made.parts:
                    own = scores.setdefault(part.arm, {})
                    own.update(part.before or {})  # with it what was known beforehand
                    own.update(part.rewards)
                    if part.overall is not None:
                        own["overall"] = part.overall
                rows += [
                    [own[name] for name in (*names, "overall")] for own in scores.values() if len(own) > len(names)
                ]
            if len(rows) > starts[-1]:
                starts.append(len(rows))
                whose.append(user)
        if not rows:
            return None
        values = self._scales.normalised(np.array(rows))
        for user, first, last in zip(whose, starts, starts[1:], strict=False) if self._by_features else ():
            offset = self._prior.offset_of(user)
            if offset is not None:
                values[first:last, -1] -= values[first:last, :-1] @ offset
        return fit(Rounds(np.ascontiguousarray(values[:, :-1]), values[:, -1].copy(), np.array(starts)))
