"""One trial, step by step: the very draws of the compiled loop, for whoever wants to choose in plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pamo.arrays import Floats, Ints
from pamo.compiling import dimensions
from pamo.environments.protocols import ALL, PROTOCOLS, assign
from pamo.errors import InputError
from pamo.streams import ENVIRONMENT, INSTANCE, STATED, stream_for

if TYPE_CHECKING:
    from pamo.environments.base import Environment


class Pulled(NamedTuple):
    """What a pull gave: the reward of each objective, the overall score, what the user states, and what it cost."""

    user: int
    arm: int
    reward: Floats
    overall: float
    stated: Floats
    """The preference that the user states afterwards, for a policy that reads it."""
    regret: float
    """How much less the arm is worth to this user than the best on offer: nothing that a policy may see."""


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
        self.means = np.empty((environment.arm_count, environment.objectives))
        self.preferences = np.empty((environment.users, environment.objectives))
        type(environment).instance(
            self.means, self.preferences, self._numbers, stream_for(seed, trial, INSTANCE), self._dims
        )
        self._values = self.preferences @ self.means.T
        self._stream, self._spare = (stream_for(seed, trial, purpose) for purpose in (ENVIRONMENT, STATED))
        self._protocol = PROTOCOLS[environment.protocol]
        self._blocks = np.arange(environment.arm_count // environment.offer_size)
        self._reward, self._stated = np.empty(environment.objectives + 1), np.empty(environment.objectives)
        self.round, self.user = 0, 0
        self._next_round()

    def _next_round(self) -> None:
        self.round, self.user = self.round + 1, 0
        assign(self._blocks, self._protocol, self._stream)
        self._offer_to(0)

    def _offer_to(self, user: int) -> None:
        size = self.environment.offer_size
        first = 0 if self._protocol == ALL else int(self._blocks[user]) * size
        self.offer: Ints = np.arange(first, first + size)

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
        gap = float(self._values[user, self.offer].max() - self._values[user, chosen])
        reward = self._reward[: self.environment.objectives].copy()
        pulled = Pulled(user, chosen, reward, float(overall), self._stated.copy(), gap)
        there = self.environment.users
        if self.round < self.environment.arrival:
            there -= self.environment.newcomers
        if user + 1 < there:
            self.user = user + 1
            self._offer_to(self.user)
        else:
            self._next_round()
        return pulled
