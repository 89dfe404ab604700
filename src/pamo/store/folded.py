"""What the stores that keep their sums in memory share: how they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pamo.arrays import Floats
from pamo.contract.features import FeatureValue
from pamo.statistics import Pairs
from pamo.store.base import Arms, ExperimentStarted, Feature, Store
from pamo.store.fold import Fold
from pamo.store.groups import Compared, Experiment, Groups

AT_A_TIME = 1 << 14
"""Users of an experiment that are added up while nobody else reads or writes."""


class FoldedStore(Store):
    """A store whose sums are a `Fold`."""

    _fold: Fold

    @property
    def features(self) -> Mapping[str, Feature]:
        """The features that arms may have."""
        return self._fold.features

    @property
    def user_features(self) -> Mapping[str, Feature]:
        """The features that users may have."""
        return self._fold.user_features

    def known_of(self, ids: Sequence[str]) -> list[Mapping[str, FeatureValue]]:
        """Return the features of these users."""
        known = self._fold.known
        return [known.get(user, {}) for user in ids]

    @property
    def running(self) -> ExperimentStarted | None:
        """The experiment that is running."""
        running: ExperimentStarted | None = self._fold.groups.running
        return running

    def experiments(self) -> Sequence[Experiment]:
        """Return all experiments."""
        return list(self._fold.groups.experiments.values())

    def compared(self) -> dict[str, Compared]:
        """Return the groups of the newest experiment."""
        groups: Groups = self._fold.groups
        found = groups.compared(0, 0)
        for first in range(0, groups.count, AT_A_TIME):
            with self.lock:
                some = groups.compared(first, first + AT_A_TIME)
            found = {name: one.plus(some[name]) for name, one in found.items()}
        return found

    def arms(self) -> Arms:
        """Return the arms, with a view of their sums."""
        table = self._fold.table  # whole when it is there, so that nobody need wait for those who write
        if table is None:
            with self.lock:
                table = self._fold.arms()
        return table

    def user_rows(self, ids: Sequence[str]) -> tuple[Floats, Floats]:
        """Return users' sums as rows."""
        with self.lock:
            return self._fold.user_rows(ids)

    def user_row(self, user: str) -> tuple[Floats, Floats]:
        """Return views of one user's sums."""
        found = self._fold.at_hand.get(user)  # as of the arms
        if found is None:
            with self.lock:
                found = self._fold.user_row(user)
        return found

    def user_pairs(self, ids: Sequence[str]) -> Pairs:
        """Return the sums of users' pairs."""
        with self.lock:
            return self._fold.user_pairs(ids)

    def clock(self, user: str | None, arms: Sequence[str]) -> tuple[int, ...]:
        """Return the rounds of a user, and the pulls of arms, since half-lives in rounds were declared."""
        with self.lock:
            return self._fold.clock(user, arms)

    def user_ids(self) -> Iterator[str]:
        """Yield the users who gave feedback."""
        with self.lock:
            names = list(self._fold.user_names)
        yield from names

    def count_users(self) -> int:
        """Return how many users gave feedback."""
        with self.lock:
            return len(self._fold.user_names)

    def find_users(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        """Return users whose ids begin so, those with the most rounds first."""
        with self.lock:
            find = self._fold.user_names.finder(prefix, limit)
            rounds = np.concatenate([np.zeros(0), *(chunk[:, 0] for chunk in self._fold.user_sums.used())])
        return [(user, int(rounds[row])) for user, row in find(rounds)]

    def pending(self) -> int:
        """Return how many decisions have no feedback."""
        with self.lock:
            return self._fold.decisions - self._fold.feedbacks
