"""What users have in common, kept up to date: fitted anew whenever the overall scores have grown by half."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np

from pamo.arrays import Floats, Ints
from pamo.engine.features import row_of, table_of
from pamo.estimators import Estimate, common_to, read_ridge
from pamo.priors import (
    NOISE,
    Explained,
    Foretold,
    Population,
    arms_prior_of,
    empty_population,
    explained_by,
    fit_factors,
    fit_offsets,
    foretell_rounds,
    use_prior,
    whole_rows,
    without,
)
from pamo.statistics import ArmStatistics, Pairs, UserStatistics
from pamo.store import Store

SAMPLE = 4096
"""Users that a prior is fitted to, at most: chosen by a hash of their ids, so that every start chooses the same."""
SWEEPS, FACTOR_SWEEPS, FIT_EVERY = 2, 10, 3
"""How often users and arms are estimated by turns where feedback is incomplete: without hidden factors, with them; and
in which of those turns the prior is fitted anew."""
AT_ONCE = 512
"""Up to so many users it is fitted at once, in some milliseconds; with more, beside the caller's work."""


class Prior:
    """The prior of an estimate that is shared, and when to fit it anew."""

    def __init__(self, store: Store, estimate: Estimate) -> None:
        self._store = store
        self._estimate = estimate
        self._limit = 1 << 32
        self.users: set[str] = set()
        """The sample that it is fitted to, by their ids."""
        self._changing = threading.Lock()
        self._thread: threading.Thread | None = None
        self.population = empty_population(len(store.setup.objectives), ridge=estimate.ridge)
        self.due = 1.0
        """The number of overall scores at which it is to be fitted again."""
        self.foretold: Foretold | None = None
        """What stands in for scores that were not given; None while all feedback is complete."""
        self.explained: Explained | None = None
        """What users' features tell of their preferences; None where they tell nothing."""
        self._columns: tuple[str, ...] = ()
        for user in store.user_ids():
            self.note(user)

    def note(self, user: str) -> None:
        """Remember a user who has given feedback, and is not one of the sample, if the user is to be."""
        if crc32(user.encode()) < self._limit:
            with self._changing:
                self.users.add(user)
                while len(self.users) > SAMPLE:
                    self._limit //= 2
                    self.users = {one for one in self.users if crc32(one.encode()) < self._limit}

    def forget(self, user: str) -> None:
        """Leave a user out from now on."""
        with self._changing:
            self.users.discard(user)

    def __len__(self) -> int:
        return len(self.users)

    def sample(self) -> list[str]:
        """Return the users of the sample, in the order of their hashes: the first so many are a sample themselves."""
        with self._changing:
            return sorted(self.users, key=lambda user: (crc32(user.encode()), user))

    def fit(self) -> None:
        """Fit it to the users' sums as they are now."""
        with self._changing:
            users = sorted(self.users)  # sums of floats depend on the order, if only in the last digit
        if users:
            with self._store.lock:
                arms = self._store.arms().statistics.copy()
                sums = self._store.users(users)
                incomplete = bool(arms.all_overalls.sum() > arms.overall_pulls.sum())
                pairs = self._store.user_pairs(users) if incomplete else None
            if pairs is None:
                whole = sums
                self.population, self.foretold = common_to(sums, self._estimate), None
            else:
                whole = self._fit_incomplete(sums, pairs, arms)
            if self._store.user_features or self.explained is not None:
                self._explain(whole, users)
        else:
            self.population = empty_population(len(self._store.setup.objectives), ridge=self._estimate.ridge)

    def _explain(self, sums: UserStatistics, users: Sequence[str]) -> None:
        """Find out what users' features tell, and fit what users have in common beyond it."""
        names, table = table_of(self._store.known_of(users), self._store.user_features)
        explained = explained_by(sums, table, self.population) if names else None
        if explained is not None:  # with less left to differ by, W is a little better known
            population = common_to(without(sums, explained.offsets(table)), replace(self._estimate, levels=False))
            explained = explained_by(sums, table, population) or explained
            self.population = common_to(without(sums, explained.offsets(table)), replace(self._estimate, levels=False))
        self._columns, self.explained = tuple(names), explained

    def offset_of(self, user: str, given: Mapping[str, Any] | None = None) -> Floats | None:
        """Return by how much the mean of a user's prior differs from everybody's; given: what is known since."""
        explained = self.explained
        if explained is None:
            return None
        (known,) = self._store.known_of([user])
        if given:
            known = {name: value for name, value in {**known, **given}.items() if value is not None}
        return explained.offsets(row_of(known, self._columns, self._store.user_features)[None])[0] if known else None

    def population_for(self, user: str) -> Population:
        """Return what users have in common, its mean by what this user's features tell."""
        offset = self.offset_of(user)
        return self.population if offset is None else self.population._replace(mean=self.population.mean + offset)

    def _fit_incomplete(self, sums: UserStatistics, pairs: Pairs, arms: ArmStatistics) -> UserStatistics:
        """Fit users' prior and what stands in for missing scores by turns: each is estimated given the other.

        Return the users' sums put together.
        """
        before = self.foretold or Foretold.blank(0, arms.objectives)
        foretold = before.grown(len(arms.rows))  # so that hidden factors go on from where they were
        use_prior(foretold, arms_prior_of(arms), arms)
        factors = bool(foretold.hidden.any())
        population, read = self.population, read_ridge(sums, self._estimate, self.population)
        for sweep in range(FACTOR_SWEEPS if factors else SWEEPS):
            whole = whole_rows(sums, pairs, arms, foretold, read, population)
            if sweep % FIT_EVERY == 0 or not factors:
                population = common_to(whole, self._estimate)
            read = read_ridge(whole, self._estimate, population)
            if factors:
                fit_factors(foretold, pairs, arms, read, population)
        whole = whole_rows(sums, pairs, arms, foretold, read, population)
        population = common_to(whole, self._estimate)
        fit_offsets(foretold, pairs, arms, read, float(population.numbers[NOISE]))
        self.population, self.foretold = population, foretold
        return whole

    def foretold_of(self, arms: ArmStatistics) -> Foretold:
        """Return what stands in for missing scores, of all arms that there are now."""
        foretold = self.foretold or Foretold.blank(0, arms.objectives)
        if len(foretold.means) < len(arms.rows):
            foretold = foretold.grown(len(arms.rows))
            if self.foretold is not None:
                self.foretold = foretold
        return foretold

    def complete(self, sums: UserStatistics, pairs: Pairs, arms: ArmStatistics) -> tuple[UserStatistics, Floats]:
        """Return users' sums with what their incomplete rounds say added, and what is then read of them."""
        foretold, population = self.foretold_of(arms), self.population
        read = read_ridge(sums, self._estimate, population)
        for _ in range(SWEEPS):
            whole = whole_rows(sums, pairs, arms, foretold, read, population)
            read = read_ridge(whole, self._estimate, population)
        return whole, read

    def rounds(
        self, given: Floats, places: Ints, sums: UserStatistics, pairs: Pairs, arms: ArmStatistics
    ) -> tuple[Floats, Floats, UserStatistics]:
        """Return some of a user's rounds put together, how much each weighs, and the user's sums put together likewise.

        given: (rounds, D + 1), the scores and the overall score, NaN for what was not given. places: their arms.
        """
        if self.foretold is None:
            return given, np.ones(len(given)), sums
        whole, read = self.complete(sums, pairs, arms)
        return *foretell_rounds(given, places, arms, self.foretold_of(arms), read[0], self.population), whole

    def renew(self, scores: float, use: Callable[[Population], None]) -> bool:
        """Fit it where it is time to, and hand it to `use`; tell whether that is done already."""
        if scores < self.due or self._thread is not None:
            return False
        self.due = scores + max(1.0, scores // 2)
        if len(self.users) <= AT_ONCE:
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
