"""What those who look after an engine want to see: leaderboards, rankings by weights, and how a preference moved."""

from __future__ import annotations

import copy
import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.contract.answers import (
    Estimate,
    ExplainedDecision,
    FrontArm,
    Leaderboard,
    PreferenceHistory,
    PreferencePoint,
    Ranked,
    Ranking,
    Standing,
    UserDecisions,
    UserFound,
)
from pamo.contract.events import FeedbackGiven, Made, TasteChanged
from pamo.contract.limits import check_user
from pamo.engine.deciding import weights_in
from pamo.engine.engine import Engine
from pamo.engine.estimates import NORMAL_95, Known, known_of
from pamo.engine.explaining import explained_decision, names_in
from pamo.engine.front import Ordered, front_of
from pamo.errors import unknown_name
from pamo.priors.foretelling import regressions
from pamo.store import Arms
from pamo.store.fold import Fold

SLOW, WAITS = 0.1, 4.0
"""A front that took more seconds than this is shown again for so many times as long."""
POINTS = 60
"""Moments at which a preference's way is shown, at most."""


class Lookout:
    """Looks at an engine without being in its way: on copies of its sums, and where it takes long, not all the time.

    >>> with Engine(["price", "taste"], seed=1) as engine:
    ...     engine.add_arm("A")
    ...     made = engine.decide("ann")
    ...     answer = engine.feedback(made, {"price": 0.2, "taste": 0.8}, overall=0.6)
    ...     [(one.arm, round(one.value.mean, 3)) for one in Lookout(engine).ranking({"price": 1, "taste": 3}).arms]
    [('A', 0.65)]
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._store = engine.store
        self.names = tuple(one.name for one in engine.objectives)
        self._fronts: dict[tuple[int, ...] | None, tuple[Any, float, Ordered]] = {}
        self._finding = threading.Lock()
        self._known: tuple[Any, Arms, Known] | None = None

    def _table(self) -> tuple[Any, Arms, Known]:
        """Return the arms and what is known of them, worked out anew only when something has changed."""
        with self._store.lock:
            table = self._store.arms()
            sums = table.statistics
            # Each feedback adds to a count; whatever the arms have in common is in their version.
            mark = (table.version, float(sums.objective_count.sum()), float(sums.overall_pulls.sum()))
            known = self._known
            if known is not None and known[0] == mark:
                return known
            table = replace(table, statistics=copy.deepcopy(sums))
        found = (mark, table, known_of(table.statistics))
        self._known = found
        return found

    def front(self, objectives: Sequence[str] | None = None, limit: int | None = None) -> list[FrontArm]:
        """Return the active arms as `Engine.front` does; objectives: those that the front is of, by default all.

        limit: how many arms at most. With thousands of arms the answer may be a few seconds old.
        """
        return self._front(objectives).arms(limit)

    def _front(self, objectives: Sequence[str] | None) -> Ordered:
        columns = None if objectives is None else tuple(self._column(name) for name in objectives)
        with self._finding:  # who asks for the same meanwhile gets the same
            mark, table, known = self._table()
            kept = self._fronts.get(columns)
            if kept is not None and (kept[0] == mark or time.monotonic() < kept[1]):
                return kept[2]
            started = time.monotonic()
            found = front_of(table, known, self.names, columns)
            taken = time.monotonic() - started
            until = time.monotonic() + (WAITS * taken if taken > SLOW else 0.0)
            if len(self._fronts) > 100:
                self._fronts.clear()
            self._fronts[columns] = (mark, until, found)
            return found

    def leaderboard(
        self,
        objective: str | None = None,
        sort: str = "mean",
        descending: bool = True,
        search: str = "",
        offset: int = 0,
        limit: int = 25,
    ) -> Leaderboard:
        """Return a page of the active arms, and how many there are that the search finds.

        objective: what `sort="mean"` goes by, None for the overall score; arms of which nothing is known come last
        either way. sort: "mean", "typical" (what somebody with everybody's weights would say), "pulls" or "name".
        search: a part of an id or a name, in any case.
        """
        _, table, known = self._table()
        typical = self._typical(known)
        column = len(self.names) if objective is None else self._column(objective)
        rows = np.flatnonzero(table.active)
        if search:
            part = search.casefold()
            rows = np.array(
                [i for i in rows.tolist() if part in table.names[i].casefold() or part in table.ids[i].casefold()],
                dtype=np.int64,
            )
        pulls, sign = table.statistics.all_pulls[rows], -1.0 if descending else 1.0
        if sort == "name":
            order = sorted(range(len(rows)), key=lambda n: table.names[rows[n]].casefold(), reverse=descending)
        elif sort == "pulls":
            order = np.lexsort((rows, sign * pulls)).tolist()
        else:
            means = np.where(known.counts[rows, column] > 0.0, sign * known.means[rows, column], np.inf)
            if sort == "typical":
                means = np.where(np.isnan(typical[rows, 0]), np.inf, sign * typical[rows, 0])
            order = np.lexsort((-pulls, means)).tolist()
        page = [int(rows[n]) for n in order[offset : offset + limit]]
        return Leaderboard(len(rows), [self._standing(table, known, typical[i].tolist(), i) for i in page])

    def _typical(self, known: Known) -> Floats:
        """Return what somebody with everybody's weights would say of each arm, and the standard error, (arms, 2)."""
        common, count = self._engine.foretelling, len(self.names)
        if common is None:
            return np.full((len(known.means), 2), np.nan)
        weights = common.mean[1:]
        means = np.where(known.counts[:, :count] > 0.0, known.means[:, :count], np.nan)
        errors = np.sqrt((known.errors[:, :count] ** 2) @ weights**2)
        return np.column_stack([common.mean[0] + (means - common.center) @ weights, errors])

    def find_users(self, prefix: str, limit: int) -> list[UserFound]:
        """Return users whose ids begin so, those with the most rounds first, and what they care about."""
        found = self._store.find_users(prefix, limit)
        common = self._engine.foretelling
        if common is None or not found:
            return [UserFound(user, rounds, None) for user, rounds in found]
        weights = regressions(self._store.users([user for user, _ in found]), common)[:, 1:].tolist()
        return [
            UserFound(user, rounds, dict(zip(self.names, own, strict=True)))
            for (user, rounds), own in zip(found, weights, strict=True)
        ]

    def _standing(self, table: Arms, known: Known, typical: Sequence[float], i: int) -> Standing:
        value, room = typical[0], NORMAL_95 * typical[1]
        return Standing(
            table.ids[i],
            table.names[i],
            bool(table.active[i]),
            int(table.statistics.all_pulls[i]),
            known.estimates(i, self.names),
            known.estimate(i, len(self.names)),
            None if math.isnan(value) else Estimate(value, value - room, value + room),
        )

    def ranking(self, preference: Mapping[str, float], limit: int = 20) -> Ranking:
        """Return the active arms that are worth most by these weights, and how many are left out, not being tried yet.

        Only the weights' proportions matter. There is no bonus for arms of which little is known: this is what the
        means say.
        """
        weights = weights_in(preference, self.names)[0]
        weights = weights / (float(np.abs(weights).sum()) or 1.0)
        _, table, known = self._table()
        active = np.flatnonzero(table.active)
        count = len(self.names)
        tried = active[(known.counts[active, :count] > 0.0).all(axis=1)]
        parts = known.means[tried, :count] * weights
        values = parts.sum(axis=1)
        errors = np.sqrt((known.errors[tried, :count] ** 2 * weights**2).sum(axis=1))
        found = []
        for n in np.argsort(-values, kind="stable")[:limit].tolist():
            i, value, room = int(tried[n]), float(values[n]), NORMAL_95 * float(errors[n])
            found.append(
                Ranked(
                    table.ids[i],
                    table.names[i],
                    int(table.statistics.all_pulls[i]),
                    Estimate(value, value - room, value + room),
                    dict(zip(self.names, parts[n].tolist(), strict=True)),
                )
            )
        return Ranking(found, len(active) - len(tried))

    def preference_history(self, user: str, points: int = POINTS) -> PreferenceHistory:
        """Return what was known of a user's preference after each feedback, at most so many points of it.

        What users have in common is taken as it is now; only the user's own feedback is added step by step.
        """
        check_user(user)
        events = (event for _, event in self._store.history(user))
        given = [event for event in events if isinstance(event, FeedbackGiven | TasteChanged)]
        wanted = {round(n * (len(given) - 1) / max(points - 1, 1)) for n in range(points)}
        fold, found, engine = Fold(self._store.setup), [], self._engine
        for place, event in enumerate(given):
            fold.apply(event)
            if place in wanted:
                sums = fold.users([user])
                known = engine.told_of(user, sums)
                found.append(PreferencePoint(event.at, known.rounds, known.source, known.objectives))
        return PreferenceHistory(user, found)

    def decision(self, decision_id: str) -> ExplainedDecision:
        """Return a decision that was made, explained, with its feedback."""
        made = Made(0, self._engine.made(decision_id), self._store.parts(decision_id))
        return self._explained(made, names_in(made.decision, self._store.arms()))

    def decisions(self, user: str, limit: int, before: int | None = None) -> UserDecisions:
        """Return a page of a user's decisions, the newest first, explained, and the names of their arms.

        before: as for `Store.decisions_of`.
        """
        check_user(user)
        table = self._store.arms()
        found = self._store.decisions_of(user, limit + 1, before)
        page = found[:limit]
        names: dict[str, str] = {}
        for made in page:
            names |= names_in(made.decision, table)
        told = [self._explained(made, names) for made in page]
        return UserDecisions(told, names, page[-1].sequence if len(found) > limit else None)

    def _explained(self, made: Made, names: Mapping[str, str]) -> ExplainedDecision:
        awaited = self._store.awaits(made.decision, self._engine.clock())
        began = tuple(one.name for one in self._store.began.objectives)
        return explained_decision(made, self.names, began, names, self._engine.like, awaited=awaited)

    def _column(self, objective: str) -> int:
        if objective not in self.names:
            raise unknown_name("objective", objective, self.names, "objective")
        return self.names.index(objective)
