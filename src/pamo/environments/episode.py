"""One trial, step by step: the very draws of the compiled loop, for whoever wants to choose in plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pamo.arrays import Floats, Ints
from pamo.compiling import dimensions
from pamo.environments.live import begins, draw_offer, drift, hide, turn, write_features
from pamo.environments.protocols import ALL, PROTOCOLS, SUBSET, assign
from pamo.environments.utilities import LINEAR, UTILITIES, worth
from pamo.errors import InputError
from pamo.pareto import shortfall
from pamo.streams import CHANGES, ENVIRONMENT, FEATURES, INSTANCE, MISSING, STATED, stream_for

if TYPE_CHECKING:
    from pamo.environments.base import Environment


class Pulled(NamedTuple):
    """What a pull gave: the reward of each objective, the overall score, what the user states, and what it cost.

    NaN is a score that is not told. `Environment.delay` says after how many rounds a policy may learn of it.
    """

    user: int
    arm: int
    reward: Floats
    overall: float
    stated: Floats
    """The preference that the user states afterwards, for a policy that reads it."""
    regret: float
    """How much less the arm is worth to this user than the best on offer: nothing that a policy may see."""
    pareto_regret: float
    """What the arm lacks in every objective to be undominated on offer: as little."""


class Episode:
    """A trial under way: `user` is to be served in `round` and is offered `offer`; `pull` one of these arms.

    Users come in their order, round after round, those who arrive later from their round on; there is no end. The
    numbers are those of trial `trial` of `simulate` with the same seed, for as long as the choices are the same.

    >>> from pamo.environments import Gaussian
    >>> episode = Gaussian(users=2).start(seed=1)
    >>> episode.round, episode.user, len(episode.offer)
    (1, 0, 5)
    >>> pulled = episode.pull(episode.offer[0])
    >>> pulled.reward.shape, episode.user
    ((3,), 1)
    """

    def __init__(self, environment: Environment, seed: int, trial: int = 0) -> None:
        self.environment = environment
        self._dims, self._numbers = dimensions(environment.objectives), environment.numbers()
        self._live = environment.live
        purposes = (INSTANCE, ENVIRONMENT, STATED, CHANGES, MISSING)
        self._origin, self._stream, self._spare, self._changes, self._missing = (
            stream_for(seed, trial, purpose) for purpose in purposes
        )
        self.means, self.preferences = self._fresh = self._drawn()
        self.features = np.empty((environment.arm_count, environment.features))
        write_features(self.features, self.means, float(environment.explained), stream_for(seed, trial, FEATURES))
        self._protocol, self._utility = PROTOCOLS[environment.protocol], UTILITIES[environment.utility]
        self._blocks = np.arange(environment.arm_count // environment.offer_size)
        self._order = np.arange(environment.arm_count)
        self._offers = np.empty((environment.users, environment.offer_size), dtype=np.int64)
        self._reward, self._stated = np.empty(environment.objectives + 1), np.empty(environment.objectives)
        self.round, self.user = 0, 0
        self._next_round()

    def _drawn(self) -> tuple[Floats, Floats]:
        """Return true means, of arms and of users, that are drawn anew."""
        environment = self.environment
        means = np.empty((environment.arm_count, environment.objectives))
        preferences = np.empty((environment.users, environment.objectives))
        type(environment).instance(means, preferences, self._numbers, self._origin, self._dims)
        return means, preferences

    def _next_round(self) -> None:
        self.round, self.user = self.round + 1, 0
        if self._live is not None:
            self._change()
        assign(self._blocks, self._protocol, self._stream)
        if self._protocol == SUBSET:
            for offer in self._offers:
                draw_offer(offer, self._order, self._stream)
        self._offer_to(0)

    def _change(self) -> None:
        """Let the truth be that of the round that begins."""
        live, t = self._live, self.round
        assert live is not None
        for table, fresh in zip((self.means, self.preferences), self._fresh, strict=True):
            drift(table, fresh, live, t)
        if begins(live, t):
            self._fresh = self._drawn()
            turn(self.means, self._fresh[0], live.changing_arms, live, self._changes)
            turn(self.preferences, self._fresh[1], live.changing_users, live, self._changes)

    def _offer_to(self, user: int) -> None:
        if self._protocol == SUBSET:
            self.offer: Ints = self._offers[user].copy()
            return
        size = self.environment.offer_size
        first = 0 if self._protocol == ALL else int(self._blocks[user]) * size
        self.offer = np.arange(first, first + size)

    def pull(self, arm: int) -> Pulled:
        """Give the user an arm of the offer; then it is the next user's turn."""
        user, chosen = self.user, int(arm)
        if chosen not in self.offer:
            raise InputError(f"expected an arm of the offer, {self.offer.tolist()}, got {arm!r}")
        overall = type(self.environment).draw(
            self._reward,
            self._stated,
            chosen,
            user,
            self.means,
            self.preferences,
            self._numbers,
            True,  # what is stated comes from a stream of its own, so that it shifts nothing
            self._stream,
            self._spare,
            self._dims,
        )
        values = self.means[self.offer] @ self.preferences[user]
        if self._utility != LINEAR:
            own, reward = self.preferences[user], self._reward[: self.environment.objectives]
            values = np.array([worth(own, self.means[arm], self._utility, self._dims) for arm in self.offer])
            overall += worth(own, reward, self._utility, self._dims) - worth(own, reward, LINEAR, self._dims)
        place = int(np.flatnonzero(self.offer == chosen)[0])
        lacking = shortfall(self.means[self.offer], place, 0, len(self.offer), self._dims)
        if self._live is not None and (self._live.missing > 0.0 or self._live.untold > 0):
            hide(self._reward, self._live, self._missing, self._dims)
        reward = self._reward[: self.environment.objectives].copy()
        gap = float(values.max() - values[place])
        pulled = Pulled(user, chosen, reward, float(overall), self._stated.copy(), gap, float(lacking))
        there = self.environment.users
        if self.round < self.environment.arrival:
            there -= self.environment.newcomers
        if user + 1 < there:
            self.user = user + 1
            self._offer_to(self.user)
        else:
            self._next_round()
        return pulled
