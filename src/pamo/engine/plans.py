"""A policy made ready to decide: its numbers in one array, and the compiled code that reads them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pamo._version import __version__
from pamo.arrays import Floats, Ints
from pamo.compiling import dimensions
from pamo.engine.fast_path import CHOOSERS
from pamo.engine.kernels import (
    AT_MOST,
    BUDGET,
    DRAWS,
    DUE,
    FIRST,
    GIVEN,
    HAS_FIRST,
    KIND,
    NON_NEGATIVE,
    PRIOR,
    PROPENSITY,
    WITHIN,
    arm_views,
    chance_again,
    desk_size,
    desk_views,
    finish,
    hyperparameters_at,
    learn_arms,
    may_explore,
    offer_views,
    out_width,
    prepare,
    user_views,
    watch_at,
)
from pamo.errors import InputError
from pamo.estimators import Kind, prior_before
from pamo.policies.base import Policy, Run, Shape, check_kernel
from pamo.priors import ArmsPrior, Population, arms_prior_in, prepared, room_for_arms
from pamo.reading import clear_arms, offset_at, pending_at
from pamo.statistics import ArmStatistics, UserStatistics
from pamo.streams import POLICY, Stream, stream_for


class ReadyPolicy:
    """A policy and its numbers."""

    def __init__(self, policy: Policy, objectives: int, draws: int) -> None:
        check_kernel(policy)
        if policy.per_user:
            raise InputError(f"{policy.id} reads each user's own pulls of each arm, which no store keeps: use another")
        if policy.remember is not None:
            raise InputError(f"{policy.id} keeps rows of its own, which no store does: use another")
        self.policy = policy
        self.label = f"{policy.label}@{__version__}"
        self.estimate = policy.estimate(objectives)
        self.kind = self.estimate.kind
        self.asks = self.kind == Kind.KNOWN
        """Whether it needs the user's preference with each decision."""
        self.shared = self.kind == Kind.RIDGE and self.estimate.shared
        self.chooser = CHOOSERS.get(type(policy).kernel)
        self.objectives = objectives
        shape = Shape(users=1, arms=1, objectives=objectives, horizon=None)
        hyperparameters = np.array(policy.hyperparameters(shape), dtype=np.float64)
        self.numbers = np.concatenate([np.zeros(hyperparameters_at(objectives)), hyperparameters])
        self.numbers[KIND], self.numbers[DRAWS] = self.kind, draws
        self.numbers[FIRST], self.numbers[NON_NEGATIVE] = self.estimate.first, self.estimate.non_negative
        self.numbers[HAS_FIRST] = self.estimate.first != self.estimate.level
        self.limit(1.0, math.inf)
        self.use(prior_before(self.estimate, objectives))

    def rehearse(self) -> None:
        """Have what it decides by compiled, or loaded, before somebody waits for it."""
        users = UserStatistics.zeros(users=1, objectives=self.objectives)
        arms = ArmStatistics.zeros(arms=1, objectives=self.objectives)
        out, picks = blank(1, self.objectives, 1)
        chooser = Chooser(self.objectives, stream_for(0, 0, POLICY))
        chooser.take(1)
        told = np.ones((1, self.objectives)) if self.asks else users.stated
        chooser.choose(self, out, picks, packed([np.zeros(1, dtype=np.int64)]), users.rows, told, arms)

    def limit(self, at_most: float, within: float) -> None:
        """Have at most this share of decisions explore, and no arms that look worse than the best known by more."""
        self.numbers[AT_MOST], self.numbers[WITHIN] = at_most, within

    def use(self, prior: Population) -> None:
        """Decide with this prior from now on."""
        mean = PRIOR + self.objectives
        self._mean = prior.mean
        self.numbers[PRIOR:mean] = prior.mean
        self.numbers[mean : hyperparameters_at(self.objectives)] = prior.numbers

    def lean(self, offset: Floats | None) -> None:
        """Decide for the next user with a prior whose mean differs by so much; None: by nothing."""
        self.numbers[PRIOR : PRIOR + self.objectives] = self._mean if offset is None else self._mean + offset


class Chooser:
    """What is known of the arms, worked out from their sums as these change, and the policies' stream."""

    def __init__(self, objectives: int, stream: Stream) -> None:
        self.stream = stream
        self._objectives = objectives
        self._dims = dimensions(objectives)
        self._arms = 0
        self._desk = np.zeros(desk_size(0, objectives))
        self._state, _, _ = desk_views(self._desk, 0, objectives)
        self._state[BUDGET] = 1.0  # the first may explore
        self.nothing_given = np.zeros((0, objectives))
        self.take(0)

    def take(self, arms: int, features: Floats | None = None) -> None:
        """Start over with so many arms; features: theirs, (arms, F), NaN where one is missing."""
        watched = self._state[watch_at(self._arms, self._objectives) :]
        self._arms = arms
        self._features = prepared(features, arms)
        self._fitting = room_for_arms(self._features.shape[1])
        budget = self._state[BUDGET]
        self._desk = np.zeros(desk_size(arms, self._objectives))
        self._state, self._work, self._scores = desk_views(self._desk, arms, self._objectives)
        self._state[BUDGET] = budget
        self._state[watch_at(arms, self._objectives) :] = watched
        numbers: Any = self._state
        self._view = memoryview(numbers)  # to read a number of a view is twice as fast as to read one of an array
        self._common, self._seen, _, everything, self._hidden = arm_views(self._state, arms, self._objectives)
        self._seen.fill(-1.0)  # nothing was seen of them
        clear_arms(everything)
        first = offset_at(self._objectives)
        self._offsets = everything[first : first + 2, :arms]
        self._hidden.fill(np.nan)
        self.under_way: Floats = everything[pending_at(self._objectives), :arms]
        """For each arm's row the pulls that are under way, for others to fill in."""
        self._user, self._sure, _ = user_views(self._work, self._objectives)
        self._scratch, _ = offer_views(self._work, arms, arms, self._objectives)

    @property
    def arms_prior(self) -> ArmsPrior:
        """What arms have in common, as it was last fitted."""
        everything = arm_views(self._state, self._arms, self._objectives)[3]
        return arms_prior_in(everything, self._common, self._arms, self._objectives)

    def foretell(self, hidden: Floats | None) -> None:
        """Take arms' scores on hidden objectives from here, (arms, D), NaN where there are none; None: nowhere."""
        self._hidden.fill(np.nan)
        if hidden is not None:
            self._hidden[: len(hidden)] = hidden[: self._arms]
        self._seen.fill(-1.0)  # so that all are read anew
        self._offsets.fill(0.0)

    def expire(self) -> None:
        """Have what arms have in common fitted anew at the next decision."""
        self._state[DUE] = 0.0

    def offset(self, offsets: Floats) -> None:
        """Let the next decision count what arms are worth to its user beyond their scores, (2, arms)."""
        self._offsets[:] = offsets

    def choose(
        self,
        plan: ReadyPolicy,
        out: Floats,
        picks: Ints,
        offers: Ints,
        sums: Floats,
        told: Floats,
        arms: ArmStatistics,
        given: Floats | None = None,
    ) -> None:
        """Decide for each row of `sums` among the arms that its part of `offers` names; write `out` and `picks`.

        offers: as `packed` returns them. told: of each user, the weights where the policy asks for them, and else the
        row of stated preferences. given: the scores that are known beforehand of each arm in `offers`, NaN for the
        others.
        """
        if self._view[GIVEN] >= self._view[DUE] and plan.policy.reads_spread:
            learn_arms(self._state, arms.rows, self._features, self._fitting, self._objectives)
        if given is None:
            given = self.nothing_given
        if plan.chooser is not None:
            plan.chooser(
                out,
                picks,
                offers,
                sums,
                told,
                self._desk,
                arms.rows,
                plan.numbers,
                self.stream,
                given,
                self._dims,
            )
            return
        for n in range(len(out)):
            offer = offers[offers[n] : offers[n + 1]]
            first = offers[n] - offers[0]
            own = given[first : first + len(offer)]
            self._choose_one(plan, out[n], picks[n], offer, sums[n], told[n], arms, own)
            self.under_way[picks[n, 0]] += 1.0  # those who are decided for together know of each other
        for n in range(len(out)):
            self.under_way[picks[n, 0]] -= 1.0

    def _choose_one(
        self,
        plan: ReadyPolicy,
        out: Floats,
        picks: Ints,
        offer: Ints,
        sums: Floats,
        told: Floats,
        arms: ArmStatistics,
        given: Floats,
    ) -> None:
        """Decide for one user by a policy that has no call of its own: step by step."""
        dims, state = self._dims, self._state
        t, tile = prepare(sums, told, offer, state, arms.rows, plan.numbers, self._work, given, dims)
        kernel, count, scores = type(plan.policy).kernel, len(offer), self._scores[:, : tile.shape[1]]
        run = Run(plan.numbers[hyperparameters_at(self._objectives) :], self.stream, self._scratch)
        before = self.stream.copy()
        kernel(scores[0], count, t, tile, self._user, self._common, run, dims)
        draws = not np.array_equal(before, self.stream)
        if draws or plan.kind != Kind.RIDGE:
            scores[1] = scores[0]
        else:
            kernel(scores[1], count, t, tile, self._sure, self._common, run, dims)
        free = may_explore(state, plan.numbers)
        first = finish(out, picks, offer, tile, self._user, self._scores, state, plan.numbers, self.stream, dims)
        if draws and free:
            total, repeats = out[PROPENSITY], int(plan.numbers[DRAWS])
            for _ in range(repeats):
                kernel(scores[1], count, t, tile, self._user, self._common, run, dims)
                total += chance_again(scores[1], first, tile, self._user, state, plan.numbers, count, dims)
            out[PROPENSITY] = total / (1 + repeats)


def packed(offers: Sequence[Ints]) -> Ints:
    """Return offers, rows of arms, as `choose` reads them: where each begins and ends, and then all of them.

    >>> packed([np.array([4, 7]), np.array([5])]).tolist()
    [3, 5, 6, 4, 7, 5]
    """
    bounds = len(offers) + 1 + np.cumsum([0, *map(len, offers)])
    return np.concatenate([bounds, *offers])


def blank(users: int, objectives: int, k: int) -> tuple[Floats, Ints]:
    """Return arrays for `choose` to write to."""
    return np.empty((users, out_width(objectives))), np.empty((users, k), dtype=np.int64)


class Room(NamedTuple):
    """The same for one user, with views of the two rows, which are read and filled faster than arrays."""

    out: Floats
    picks: Ints
    row: Any
    picked: Any


def room_for_one(objectives: int, k: int) -> Room:
    """Return room for a decision of one user."""
    out, picks = blank(1, objectives, k)
    row: Any = out[0]
    picked: Any = picks[0]
    return Room(out, picks, memoryview(row), memoryview(picked))
