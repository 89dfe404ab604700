"""What users have in common, for foretelling, kept up to date: chosen by some users' rounds, read from the journal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from pamo.priors.foretelling import Foretelling, Rounds, fit
from pamo.store import Store
from pamo.store.scales import Scales

USERS, ROUNDS = 1024, 32
"""Users whose rounds are read, and the newest rounds of each, at most: two megabytes, and some seconds' work."""
AT_ONCE = 64
"""So many users' are read while somebody waits for it; those of more, beside."""


class Foreteller:
    """The prior by which users' preferences are told, and when to fit it anew: once the overall scores grew by half.

    sample: users who gave feedback, in an order that chance has made, those of every start the same.
    """

    def __init__(self, store: Store, sample: Callable[[], Sequence[str]]) -> None:
        self._store = store
        self._sample = sample
        self._scales = Scales(store.setup)
        self._fitting = threading.Lock()
        self._due = 1.0
        self._thread: threading.Thread | None = None
        self._common: Foretelling | None = None

    def common(self) -> Foretelling | None:
        """Return what users have in common as it was fitted last, anew where it is time to; None without any rounds."""
        with self._store.lock:
            scores = float(self._store.arms().statistics.overall_pulls.sum())
        if scores >= self._due and self._fitting.acquire(blocking=self._common is None):
            try:
                if scores >= self._due:
                    self._due = scores + max(1.0, scores // 2)
                    self._renew()
            finally:
                self._fitting.release()
        return self._common

    def fit(self) -> None:
        """Fit it to the rounds as they are now."""
        self.wait()
        with self._fitting:
            self._common = self._fitted(self._sample()[:USERS])

    def wait(self) -> None:
        """Wait for a fit that is going on."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _renew(self) -> None:
        users = self._sample()[:USERS]
        if self._common is None or len(users) <= AT_ONCE:
            self._common = self._fitted(users[:AT_ONCE])
        if len(users) > AT_ONCE and self._thread is None:

            def work() -> None:
                try:
                    with self._fitting:
                        self._common = self._fitted(users)
                finally:
                    self._thread = None

            self._thread = threading.Thread(target=work, name="pamo-foretelling")
            self._thread.start()

    def _fitted(self, users: Sequence[str]) -> Foretelling | None:
        objectives = len(self._scales.names)
        rows, starts = [np.empty((0, objectives + 1))], [0]
        for user in users:
            given = (made.feedback for made in self._store.decisions_of(user, ROUNDS))
            values = [self._scales.values(one)[: objectives + 1].copy() for one in given if one is not None]
            own = np.array(values).reshape(-1, objectives + 1)
            own = own[~np.isnan(own).any(axis=1)]
            if len(own):
                rows.append(own)
                starts.append(starts[-1] + len(own))
        found = np.concatenate(rows)
        if not len(found):
            return None
        return fit(Rounds(np.ascontiguousarray(found[:, :-1]), found[:, -1].copy(), np.array(starts)))
