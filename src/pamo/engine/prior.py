"""What users have in common, kept up to date: fitted anew whenever the overall scores have grown by half."""

from __future__ import annotations

import threading
from collections.abc import Callable
from zlib import crc32

from pamo.estimators import Estimate, common_to
from pamo.priors import Population, empty_population
from pamo.store import Store

SAMPLE = 4096
"""Users that a prior is fitted to, at most: chosen by a hash of their ids, so that every start chooses the same."""
AT_ONCE = 512
"""Up to so many users it is fitted at once, in a millisecond or two; with more, beside the caller's work."""


class Prior:
    """The prior of an estimate that is shared, and when to fit it anew."""

    def __init__(self, store: Store, estimate: Estimate) -> None:
        self._store = store
        self._estimate = estimate
        self._limit = 1 << 32
        self._users: set[str] = set()
        self._changing = threading.Lock()
        self._thread: threading.Thread | None = None
        self.population = empty_population(len(store.setup.objectives), ridge=estimate.ridge)
        self.due = 1.0
        """The number of overall scores at which it is to be fitted again."""
        for user in store.user_ids():
            self.note(user)

    def note(self, user: str) -> None:
        """Remember a user who has given feedback, if the user is one of the sample."""
        if user not in self._users and crc32(user.encode()) < self._limit:
            with self._changing:
                self._users.add(user)
                while len(self._users) > SAMPLE:
                    self._limit //= 2
                    self._users = {one for one in self._users if crc32(one.encode()) < self._limit}

    def forget(self, user: str) -> None:
        """Leave a user out from now on."""
        with self._changing:
            self._users.discard(user)

    def sample(self) -> list[str]:
        """Return the users of the sample, in the order of their hashes: the first so many are a sample themselves."""
        with self._changing:
            return sorted(self._users, key=lambda user: (crc32(user.encode()), user))

    def fit(self) -> None:
        """Fit it to the users' sums as they are now."""
        with self._changing:
            users = sorted(self._users)  # sums of floats depend on the order, if only in the last digit
        if users:
            self.population = common_to(self._store.users(users), self._estimate)
        else:
            self.population = empty_population(len(self._store.setup.objectives), ridge=self._estimate.ridge)

    def renew(self, scores: float, use: Callable[[Population], None]) -> bool:
        """Fit it where it is time to, and hand it to `use`; tell whether that is done already."""
        if scores < self.due or self._thread is not None:
            return False
        self.due = scores + max(1.0, scores // 2)
        if len(self._users) <= AT_ONCE:
            self.fit()
            use(self.population)
            return True

        def work() -> None:
            try:
                self.fit()
                use(self.population)
            finally:
                self._thread = None

        self._thread = threading.Thread(target=work, name="pamo-prior")  # waited for at exit: it compiles
        self._thread.start()
        return False

    def wait(self) -> None:
        """Wait for a fit that is going on."""
        thread = self._thread
        if thread is not None:
            thread.join()
