"""Any policy of pamo step by step, for loops that are not ours: it chooses and learns as the compiled loop has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats
from pamo.compiling import LANES, dimensions
from pamo.environments.base import Environment
from pamo.errors import InputError
from pamo.policies.base import Feedback, Keeping, Policy, Run, Shape, check_kernel, kept_for, pick, scratch_for
from pamo.priors import Room, start_arms
from pamo.reading import (
    PREFERENCE,
    clear_arms,
    common_numbers,
    gather,
    padded,
    scatter_at,
    step_arm,
    tile_height,
    user_numbers,
)
from pamo.simulation.cpu import plan_for, spread_for
from pamo.simulation.learning import (
    EVERYBODY,
    NEWCOMERS,
    NOBODY,
    RIDGE,
    Users,
    arrive,
    forget_users,
    learn_anew,
    learn_users,
    next_fit,
    shapes_of_users,
)
from pamo.simulation.loop import filled, zeros
from pamo.streams import POLICY, stream_for


class Player:
    """A policy that is asked by `choose` and told by `learn`, whoever runs the loop.

    environment: its sizes are what is played; how it draws does not matter. known: the true mean preferences, (users,
    D), for a policy that reads them. seed, trial: of the policy's own draws. A user is served once a round, and what a
    round gave is learned when it is over: when a user comes who was served in it. Fed by `environment.start(seed,
    trial)`, it makes the choices that `simulate` makes in that trial.

    >>> from pamo import environments, policies
    >>> environment = environments.Gaussian(users=2)
    >>> player, episode = Player(policies.create("prucb-hp"), environment, rounds=9, seed=1), environment.start(seed=1)
    >>> while episode.round < 10:
    ...     pulled = episode.pull(player.choose(episode.user, episode.offer))
    ...     player.learn(pulled.user, pulled.arm, pulled.reward, pulled.overall)
    """

    def __init__(
        self,
        policy: Policy,
        environment: Environment,
        *,
        rounds: int | None = None,
        known: npt.ArrayLike | None = None,
        seed: int = 1,
        trial: int = 0,
    ) -> None:
        check_kernel(policy)
        self.policy, self.id = policy, policy.id
        objectives, users, arms = environment.objectives, environment.users, environment.arm_count
        if Feedback.TRUE in policy.reads and known is None:
            raise InputError(f"{policy.id} reads the users' true mean preferences: pass known=…, (users, D)")
        if environment.missing or environment.untold or environment.features:
            raise InputError("a policy that is asked step by step knows no features, and learns from whole rewards")
        self._dims, self._objectives = dimensions(objectives), objectives
        self._plan = plan_for(policy, environment, rounds or 0)
        self._spread = spread_for(policy, objectives)
        shape = Shape(users, arms, objectives, rounds)
        self._numbers = np.array(policy.hyperparameters(shape), dtype=np.float64)
        self.kept = kept_for(policy.keeps(shape), shape)
        self._stream = stream_for(seed, trial, POLICY)
        height = scatter_at(objectives) if self._spread is None else tile_height(objectives)
        owners = users if policy.per_user else 1
        self._arms, self._sums = np.empty((owners, height, padded(arms))), np.zeros((owners, arms, objectives + 1))
        for tile in self._arms:
            clear_arms(tile)
        self._common = np.zeros((1, common_numbers(objectives)))
        if self._spread is not None and self._spread.arms:
            start_arms(self._arms, self._common[0], self._dims)
        chunks = -(-users // LANES)
        shapes = shapes_of_users(chunks, 1, LANES, self._plan, self._spread, objectives)
        self._users: Users = filled(shapes, zeros)
        truth = np.zeros((users, objectives)) if known is None else np.asarray(known, dtype=np.float64)
        forget_users(self._users, truth[None], self._plan, self._spread, self._dims)
        square, rooms = (objectives, objectives), Room._make  # as the loop has it
        working: Any = rooms((square, (4, objectives), square, (user_numbers(objectives),), (4, objectives), (2, 3)))
        self._working, self._room = filled(working, zeros), np.zeros((objectives, LANES))
        self._fitting, self._chunks = np.zeros((1, 2)), chunks
        self.round, self._due, self._due_new = 1, 1, 1
        self._served = np.zeros(users, dtype=np.int64)
        self._now: dict[int, tuple[int, Floats, Floats | None]] = {}

    def choose(self, user: int, offer: npt.ArrayLike, preference: npt.ArrayLike | None = None) -> int:
        """Return one of the arms on offer, for this user.

        preference: this round's c_t, where it is known beforehand: Algorithm 3 as its analysis has it, with `prucb-kp`.
        """
        if user in self._now:
            self._learn_round()
        arms = np.atleast_1d(np.asarray(offer, dtype=np.int64))
        table = self._arms[user if self.policy.per_user else 0]
        tile, scores = np.empty((len(table), padded(len(arms)))), np.empty(padded(len(arms)))
        clear_arms(tile)
        gather(tile, table, arms)
        scratch = np.empty(scratch_for(len(arms), self._objectives))
        run: Run | Keeping = Run(self._numbers, self._stream, scratch)
        if self.policy.remember is not None:
            run = Keeping(self._numbers, self._stream, scratch, self.kept, self.round, user, arms)
        chunk, lane = divmod(user, LANES)
        read = np.ascontiguousarray(self._users.read[chunk, :, lane])
        if preference is not None:
            read[PREFERENCE : PREFERENCE + self._objectives] = preference
        t = int(self._served[user]) + 1
        type(self.policy).kernel(scores, len(arms), t, tile, read, self._common[0], run, self._dims)
        return int(arms[pick(scores, len(arms), self._stream)])

    def learn(
        self, user: int, arm: int, reward: npt.ArrayLike, overall: float, stated: npt.ArrayLike | None = None
    ) -> None:
        """Take in what a pull gave, and what the user stated afterwards, for a policy that reads it."""
        values = np.append(np.asarray(reward, dtype=np.float64), float(overall))
        if len(values) != self._objectives + 1:
            raise InputError(f"expected a reward of {self._objectives} objectives, got {len(values) - 1}")
        if stated is None and Feedback.STATED in self.policy.reads:
            raise InputError(f"{self.policy.id} reads what users state: pass stated=…")
        if user in self._now:
            self._learn_round()
        self._now[user] = int(arm), values, None if stated is None else np.asarray(stated, dtype=np.float64)

    def _learn_round(self) -> None:
        """Take in the round's pulls as the loop does: users first, then arms, then what either have in common."""
        plan, dims, users = self._plan, self._dims, self._users
        rewards = np.zeros((self._chunks, self._objectives + 1, LANES))
        statements = np.zeros((self._chunks, self._objectives, LANES))
        pulls = sorted(self._now.items())
        for user, (_, values, stated) in pulls:
            chunk, lane = divmod(user, LANES)
            rewards[chunk, :, lane] = values
            if stated is not None:
                statements[chunk, :, lane] = stated
            if self._served[user] == 0:
                arrive(users, 1, user, user + 1, plan, LANES, dims)
            self._served[user] += 1
        users.here.fill(0.0)
        for user, _ in pulls:
            users.here[divmod(user, LANES)] = 1.0
        if plan.kind == RIDGE or plan.wants_stated:  # else there is nothing to learn of them, and a call is not free
            learn_users(users, 1, rewards, statements, plan, LANES, self._room, self._spread, dims)
        for user, (arm, values, _) in pulls:
            owner = user if self.policy.per_user else 0
            step_arm(self._arms[owner], arm, self._sums[owner, arm], values, self._common[0], self._spread, dims)
            if self.policy.remember is not None:
                about = Keeping(
                    self._numbers, self._stream, self._room, self.kept, self.round, user, np.empty(0, np.int64)
                )
                type(self.policy).remember(arm, values, about, dims)
        self._fit()
        self._now.clear()
        self.round += 1

    def _fit(self) -> None:
        """Fit what users, and what arms, have in common, in the loop's rounds."""
        plan, spread, t = self._plan, self._spread, self.round
        if spread is None:
            return
        whose, own = NOBODY, t - plan.arrival + 1
        if spread.shared and spread.levels and plan.newcomers > 0 and own >= self._due_new:
            self._due_new, whose = next_fit(own), NEWCOMERS
        if t >= self._due:
            self._due, whose = next_fit(t), EVERYBODY
        reading = plan.kind == RIDGE and (spread.bias or spread.non_negative)
        if reading or whose != NOBODY:
            tables = self._users, self._arms, self._common
            learn_anew(whose, reading, *tables, 1, plan, spread, self._working, self._fitting, self._objectives)
