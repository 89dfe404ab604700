"""A policy made ready to decide: its numbers in one array, and the compiled code that reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pamo._version import __version__
from pamo.arrays import Floats, Ints
from pamo.compiling import dimensions
from pamo.engine.choosing import CHOOSERS
from pamo.engine.kernels import (
    ARMS,
    DRAWS,
    FIRST,
    HAS_FIRST,
    KIND,
    MEAN,
    NON_NEGATIVE,
    PROPENSITY,
    chance,
    finish,
    out_width,
    plain_views,
    prepare,
    spread_views,
    state_size,
    work_size,
)
from pamo.errors import InputError
from pamo.estimators import Kind
from pamo.policies.base import Policy, Run, Shape, check_kernel
from pamo.sharing import BIAS_RIDGE, PAPER, PLAIN, RIDGE, Population, empty_population
from pamo.statistics import ArmStatistics
from pamo.streams import Stream


class Plan:
    """A policy and its numbers."""

    def __init__(self, policy: Policy, objectives: int, draws: int) -> None:
        check_kernel(policy)
        if policy.per_user:
            raise InputError(f"{policy.id} reads each user's own pulls of each arm, which no store keeps: use another")
        self.policy = policy
        self.label = f"{policy.label}@{__version__}"
        self.estimate = policy.estimate(objectives)
        self.kind = self.estimate.kind
        self.shared = self.kind == Kind.RIDGE and self.estimate.shared
        self.chooser = CHOOSERS.get(type(policy).kernel)
        self.objectives = objectives
        shape = Shape(users=1, arms=1, objectives=objectives, horizon=None)
        self.numbers = np.zeros(MEAN + objectives + 8)
        self.numbers[KIND], self.numbers[DRAWS] = self.kind, draws
        self.numbers[FIRST], self.numbers[NON_NEGATIVE] = self.estimate.first, self.estimate.non_negative
        prior = empty_population(objectives, ridge=self.estimate.ridge if self.kind == Kind.RIDGE else 1.0)
        if self.kind == Kind.RIDGE and not policy.reads_spread:  # a plain ridge is one towards 0, by the given weights
            self.numbers[HAS_FIRST] = 1.0
            prior.mean.fill(0.0)
            prior.numbers[RIDGE], prior.numbers[BIAS_RIDGE] = self.estimate.ridge, -1.0
            prior.numbers[PLAIN] = 0.0 if self.estimate.weighted else 1.0
            prior.numbers[PAPER] = self.estimate.omega if self.estimate.weighted else 0.0
        self.use(prior)
        self.numbers = np.concatenate([self.numbers, np.array(policy.hyperparameters(shape), dtype=np.float64)])

    def use(self, prior: Population) -> None:
        """Decide with this prior from now on."""
        self.numbers[MEAN : MEAN + self.objectives] = prior.mean
        self.numbers[MEAN + self.objectives : MEAN + self.objectives + 8] = prior.numbers


class Chooser:
    """What is known of the arms, worked out from their sums as these change, and the policies' stream."""

    def __init__(self, objectives: int, stream: Stream) -> None:
        self.stream = stream
        self._objectives = objectives
        self._dims = dimensions(objectives)
        self._work = np.zeros(work_size(objectives))
        self._views: dict[bool, Any] = {}
        self.take(0)

    def take(self, arms: int) -> None:
        """Start over with so many arms."""
        self._arms = arms
        self._state = np.zeros(state_size(arms, self._objectives))
        self._state[ARMS : ARMS + arms] = -1.0  # nothing was seen of them
        self._scores = np.empty((3, max(arms, 1)))
        # Kernels trust that there is room: a row by arms, as many rows as there are objectives and one.
        self._scratch = np.empty((self._objectives + 1, max(arms, self._objectives + 1)))
        self._views.clear()

    def choose(
        self,
        plan: Plan,
        out: Floats,
        picks: Ints,
        offers: Ints,
        starts: Ints,
        sums: Floats,
        stated: Floats,
        known: Floats,
        arms: ArmStatistics,
    ) -> None:
        """Decide for each row of `sums` among the arms that its part of `offers` names; write `out` and `picks`."""
        if plan.chooser is not None:
            plan.chooser(
                out,
                picks,
                offers,
                starts,
                sums,
                stated,
                known,
                self._state,
                arms.moments,
                arms.overall_pulls,
                arms.objective_count,
                arms.objective_sum,
                plan.numbers,
                self.stream,
                self._scores,
                self._work,
                self._scratch,
                self._dims,
            )
            return
        for n in range(len(out)):
            rows = slice(n, n + 1)
            offer = offers[starts[n] : starts[n + 1]]
            self._choose_one(plan, out[rows], picks[rows], offer, sums[rows], stated[rows], known[rows], arms)

    def _choose_one(
        self,
        plan: Plan,
        out: Floats,
        picks: Ints,
        offer: Ints,
        sums: Floats,
        stated: Floats,
        known: Floats,
        arms: ArmStatistics,
    ) -> None:
        """Decide for one user by a policy that has no call of its own: step by step."""
        t = prepare(
            sums,
            stated,
            known,
            offer,
            self._state,
            arms.moments,
            arms.overall_pulls,
            arms.objective_count,
            arms.objective_sum,
            plan.numbers,
            self._work,
            self._dims,
        )
        kernel, spread, count = type(plan.policy).kernel, plan.policy.reads_spread, len(offer)
        if spread not in self._views:
            view = spread_views if spread else plain_views
            self._views[spread] = view(self._state, self._work, self._arms, self._objectives)
        views, user, sure = self._views[spread]
        side = max(count, self._objectives) + spread
        run = Run(plan.numbers[MEAN + self._objectives + 8 :], self.stream, np.empty((side, side)))
        scores, others = np.empty((3, count)), np.empty(count)
        before = self.stream.copy()
        kernel(scores[0], offer, 0, t, views, user, run, self._dims)
        draws = not np.array_equal(before, self.stream)
        if draws or plan.kind != Kind.RIDGE:
            scores[1] = scores[0]
        else:
            kernel(scores[1], offer, 0, t, views, sure, run, self._dims)
        finish(out, picks, 0, offer, self._state, self.stream, scores, self._work, self._arms, self._dims)
        if draws:
            place, total = int(np.flatnonzero(offer == picks[0, 0])[0]), out[0, PROPENSITY]
            repeats = int(plan.numbers[DRAWS])
            for _ in range(repeats):
                kernel(others, offer, 0, t, views, user, run, self._dims)
                total += chance(others, count, place)
            out[0, PROPENSITY] = total / (1 + repeats)


def blank(users: int, objectives: int, k: int) -> tuple[Floats, Ints]:
    """Return arrays for `choose` to write to."""
    return np.empty((users, out_width(objectives))), np.empty((users, k), dtype=np.int64)
