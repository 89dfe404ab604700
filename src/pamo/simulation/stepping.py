"""Any policy of pamo step by step, for loops that are not ours: it chooses and learns as the compiled loop has it."""

from __future__ import annotations

import math
from operator import index
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pamo.compiling import dimensions
from pamo.environments.base import Environment
from pamo.errors import InputError
from pamo.policies import parse, recommended
from pamo.policies.base import Feedback, Kept, Policy, Shape, check_kernel, scratch_for
from pamo.priors import start_arms
from pamo.priors.user import shapes_of_room
from pamo.reading import clear_arms, common_numbers, padded, scatter_at, tile_height, user_numbers
from pamo.simulation.alone import (
    ALL,
    AT_ONCE,
    DRAWS,
    DUE,
    FITTING,
    NEVER,
    NO_ARM,
    NO_NUMBER,
    NO_USER,
    ROUND,
    SERVED,
    TABLES,
    WAITING,
    choosing_alone,
    dimensions_alone,
    laid_out,
    learning_alone,
    look_up_arrays,
)
from pamo.simulation.cpu import plan_for, spread_for
from pamo.simulation.learning import (
    EVERYBODY,
    NEWCOMERS,
    NOBODY,
    RIDGE,
    Users,
    forget_users,
    learn_anew,
    next_fit,
    shapes_of_users,
)
from pamo.simulation.loop import filled, zeros
from pamo.streams import POLICY, stream_for

_FLOAT, _WHOLE = np.dtype(np.float64), np.dtype(np.int64)
_SCORES = "expected finite numbers as reward and overall score, got {}: leave out a pull of which a score is missing"


class Player:
    """A policy that is asked by `choose` and told by `learn`, whoever runs the loop.

    environment: its sizes are what is played; how it draws does not matter. known: the true mean preferences, (users,
    D), for a policy that reads them. seed, trial: of the policy's own draws.

    at_once: whether a pull is learned as soon as it is told, which makes it a round of its own, for users who come in
    any order. Otherwise a user is served once a round, and what a round gave is learned when it is over: when a user
    comes who was served in it. Fed by `environment.start(seed, trial)`, it then makes the choices that `simulate` makes
    in that trial.

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
        at_once: bool = False,
    ) -> None:
        check_kernel(policy)
        self.policy, self.id = policy, policy.id
        objectives, users, arms = environment.objectives, environment.users, environment.arm_count
        if Feedback.TRUE in policy.reads and known is None:
            raise InputError(f"{policy.id} reads the users' true mean preferences: pass known=…, (users, D)")
        if environment.missing or environment.untold or environment.features:
            raise InputError("a policy that is asked step by step knows no features, and learns from whole rewards")
        self._objectives, self._arm_count = objectives, arms
        self._plan = plan_for(policy, environment, rounds or 0)
        self._spread = spread_for(policy, objectives)
        shape = Shape(users, arms, objectives, rounds)
        numbers = np.array(policy.hyperparameters(shape), dtype=np.float64)
        self._shapes = self._shapes_for(shape, len(numbers))
        self._board = laid_out(self._shapes, users, arms)
        self._working, self._fitting = filled(shapes_of_room(objectives), zeros), np.zeros((1, 2))
        self._due, self._due_new = 1, 1
        self._see()
        tables, marks, dims = self._tables, self._marks, dimensions(objectives)
        marks[AT_ONCE], marks[ROUND], marks[FITTING] = at_once, 1, NEVER if self._spread is None else 1
        marks[DRAWS:SERVED] = stream_for(seed, trial, POLICY).view(np.int64)
        tables["plan"][:], tables["numbers"][:], tables["asked"][:] = self._plan, numbers, np.nan
        tables["spread"][:] = 0.0 if self._spread is None else self._spread
        for tile in tables["arms"]:
            clear_arms(tile)
        if self._spread is not None and self._spread.arms:
            start_arms(tables["arms"], tables["common"][0], dims)
        truth = np.zeros((users, objectives)) if known is None else np.asarray(known, dtype=np.float64)
        forget_users(self._users, truth[None], self._plan, self._spread, dims)

    @classmethod
    def of(
        cls,
        policy: Policy | str = "recommended",
        *,
        users: int,
        arms: int,
        objectives: int,
        rounds: int | None = None,
        known: npt.ArrayLike | None = None,
        seed: int = 1,
    ) -> Self:
        """Return a player for users and arms of your own, numbered from 0, who come in any order: it learns at once.

        Rewards are from 0 to 1, the more the better, and all arms are on offer unless others are named. rounds: how
        many pulls there will be, for a policy that needs to know.

        >>> player = Player.of(users=500, arms=10, objectives=5)
        >>> arm = player.choose(user=7)
        >>> player.learn(7, arm, reward=[0.2, 0.9, 0.5, 0.4, 0.7], overall=0.6)
        """
        if isinstance(policy, str):
            policy = recommended() if policy == "recommended" else parse(policy)
        sizes = Environment(users=users, arms=arms, block_size=1, objectives=objectives, protocol="all")
        return cls(policy, sizes, rounds=rounds, known=known, seed=seed, at_once=True)

    def _shapes_for(self, shape: Shape, numbers: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the tables on the board."""
        users, arms, objectives, _ = shape
        keeps = self.policy.keeps(shape)
        height = scatter_at(objectives) if self._spread is None else tile_height(objectives)
        owners, width = users if self.policy.per_user else 1, padded(arms)
        of_users: dict[str, tuple[int, ...]] = shapes_of_users(
            users, 1, 1, self._plan, self._spread, objectives
        )._asdict()
        return of_users | {
            "plan": (len(self._plan),),
            "spread": (6,),
            "arms": (owners, height, width),
            "sums": (owners, arms, objectives + 1),
            "common": (1, common_numbers(objectives)),
            "rewards": (users, objectives + 1, 1),
            "statements": (users, objectives, 1),
            "room": (objectives, 1),
            "values": (objectives + 1,),
            "tile": (height * width,),
            "scores": (width,),
            "scratch": scratch_for(arms, objectives),
            "user": (user_numbers(objectives),),
            "asked": (objectives,),
            "numbers": (numbers,),
            "by_arm": (arms, keeps.by_arm),
            "by_user": (users, keeps.by_user),
            "shared": (keeps.shared,),
        }

    def _see(self) -> None:
        """Look at the board's tables one by one, and find what plays on them."""
        self._marks = self._board[1 : 1 + int(self._board[0])].view(np.int64)
        begins = self._marks[:AT_ONCE:4].tolist()
        self._tables: dict[str, Any] = {
            name: self._board[begin : begin + math.prod(self._shapes[name])].reshape(self._shapes[name])
            for name, begin in zip(TABLES, begins, strict=True)
        }
        self._users = Users(*(self._tables[name] for name in Users._fields))
        self.kept = Kept(*(self._tables[name] for name in Kept._fields))
        kind, dims = type(self.policy), dimensions_alone(self._objectives)
        reads_spread = None if self._spread is None else True
        self._choose = choosing_alone(kind.kernel, kind.remember, dims)
        self._learn = learning_alone(kind.remember, reads_spread, dims)
        self._at = self._board.ctypes.data
        look_up_arrays(self._marks)
        self._reward, self._offer = np.empty(self._objectives), np.empty(1 + padded(self._arm_count), _WHOLE)
        self._reward_at, self._offer_at = -int(self._reward.ctypes.data), -int(self._offer.ctypes.data)

    @property
    def round(self) -> int:
        """The round that is played."""
        return int(self._marks[ROUND])

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy is made of: it has to look at a board of its own."""
        seen = {"_marks", "_tables", "_users", "kept", "_choose", "_learn", "_at"}
        seen |= {"_reward", "_reward_at", "_offer", "_offer_at"}
        return {name: value for name, value in vars(self).items() if name not in seen}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Become what was copied."""
        vars(self).update(state)
        self._see()

    def choose(self, user: int, offer: npt.ArrayLike | None = None, preference: npt.ArrayLike | None = None) -> int:
        """Return one of the arms on offer, for this user; offer: by default all arms.

        preference: this round's c_t, where it is known beforehand: Algorithm 3 as its analysis has it, with `prucb-kp`.
        """
        if type(user) is not int:
            user = self._place(user, NO_USER)
        if preference is None:
            try:
                arm: int = self._choose(self._at, user, ALL if offer is None else id(offer))
                if arm >= 0:
                    return arm
            except OverflowError:  # a user's number of more than 64 bits
                self._refuse(NO_USER, user, [])
        return self._choose_with_care(user, offer, preference)

    def learn(
        self, user: int, arm: int, reward: npt.ArrayLike, overall: float, stated: npt.ArrayLike | None = None
    ) -> None:
        """Take in what a pull gave, and what the user stated afterwards, for a policy that reads it."""
        if type(user) is not int:
            user = self._place(user, NO_USER)
        if type(arm) is not int:
            arm = self._place(arm, NO_ARM)
        if type(overall) is not float:
            overall = self._score(overall, reward)
        try:
            said: int = self._learn(self._at, user, arm, overall, id(reward))
        except OverflowError:  # as above
            said = NO_USER
        if said < 0:
            said = self._learn_with_care(user, arm, reward, overall, stated)
        if said == DUE:
            self._fit()

    def _choose_with_care(self, user: int, offer: npt.ArrayLike | None, preference: npt.ArrayLike | None) -> int:
        """Choose by whatever was given, or say what is wrong with it."""
        arms = [] if offer is None else self._offered(offer)
        lined = ALL if offer is None else self._offer_at
        try:
            if preference is not None:
                self._tables["asked"][:] = self._weights(preference, "a preference")
            arm: int = self._choose(self._at, user, lined)
            if arm == WAITING:
                self._end_round()
                arm = self._choose(self._at, user, lined)
        except OverflowError:
            arm = NO_USER
        finally:
            if preference is not None:
                self._tables["asked"].fill(np.nan)
        if arm < 0:
            self._refuse(arm, user, arms)
        return arm

    def _learn_with_care(
        self, user: int, arm: int, reward: npt.ArrayLike, overall: float, stated: npt.ArrayLike | None
    ) -> int:
        """Take in whatever was given, or say what is wrong with it; return what the compiled code says."""
        try:
            given = np.asarray(reward, _FLOAT, "C")
        except (TypeError, ValueError):
            raise InputError(_SCORES.format(f"{reward!r:.80} and {overall!r:.40}")) from None
        if given.shape != (self._objectives,):
            raise InputError(f"expected a reward of {self._objectives} objectives, got {given.size}")
        if self._plan.wants_stated:
            self._hear(user, stated)
        self._reward[:] = given
        try:
            said: int = self._learn(self._at, user, arm, overall, self._reward_at)
            if said == WAITING:
                self._end_round()
                said = self._learn(self._at, user, arm, overall, self._reward_at)
        except OverflowError:
            said = NO_ARM if 0 <= user < self._plan.users else NO_USER
        if said == NO_NUMBER:
            raise InputError(_SCORES.format(f"{given.tolist()} and {overall}"))
        if said < 0:
            self._refuse(said, user, [arm])
        return said

    def _hear(self, user: int, stated: npt.ArrayLike | None) -> None:
        """Keep what a user stated until it is learned."""
        if stated is None:
            raise InputError(f"{self.policy.id} reads what users state: pass stated=…")
        if not 0 <= user < self._plan.users:
            self._refuse(NO_USER, user, [])
        if self._marks[SERVED + self._plan.users + user] >= 0:
            self._end_round()
        self._tables["statements"][user, :, 0] = self._weights(stated, "a stated preference")

    def _end_round(self) -> None:
        """Learn what the round gave."""
        if self._learn(self._at, 0, 0, 0.0, ALL) == DUE:
            self._fit()

    def _offered(self, offer: npt.ArrayLike) -> list[Any]:
        """Return the arms on offer, and write how many they are and then each for the compiled code."""
        given = np.atleast_1d(np.asarray(offer))
        arms: list[Any] = given.tolist()
        count = len(arms)
        try:
            if given.dtype.kind not in "iu" or given.ndim != 1 or count >= len(self._offer):
                raise OverflowError
            self._offer[0], self._offer[1 : 1 + count] = count, arms
        except OverflowError:  # also of a number of more than 64 bits
            self._refuse(NO_ARM, 0, arms)
        return arms

    def _place(self, given: Any, otherwise: int) -> int:
        """Return a user's or an arm's number as Python has it."""
        try:
            return index(given)
        except TypeError:
            self._refuse(otherwise, given, [given])
            raise

    def _score(self, overall: Any, reward: Any) -> float:
        """Return an overall score as Python has it."""
        try:
            return float(overall)
        except (TypeError, ValueError, OverflowError):
            raise InputError(_SCORES.format(f"{reward!r:.80} and {overall!r:.40}")) from None

    def _weights(self, given: npt.ArrayLike, what: str) -> Any:
        """Return a preference that was given."""
        try:
            weights = np.asarray(given, _FLOAT)
        except (TypeError, ValueError):
            weights = np.empty(0)
        if weights.shape != (self._objectives,) or not np.isfinite(weights).all():
            raise InputError(f"expected {what} of {self._objectives} finite weights, got {given!r:.80}")
        return weights

    def _refuse(self, said: int, user: Any, arms: list[Any]) -> None:
        """Raise the error that a call's answer stands for."""
        if said == NO_USER:
            raise InputError(f"expected a user from 0 to {self._plan.users - 1}, got {user!r:.40}")
        raise InputError(f"expected arms from 0 to {self._arm_count - 1}, at least one, got {arms!r:.80}")

    def _fit(self) -> None:
        """Fit what users, and what arms, have in common after the round that is over, as the loop does."""
        plan, spread, t = self._plan, self._spread, self.round - 1
        assert spread is not None  # otherwise it would never be the time
        renewed = spread.shared and spread.levels and plan.newcomers > 0
        whose, own = NOBODY, t - plan.arrival + 1
        if renewed and own >= self._due_new:
            self._due_new, whose = next_fit(own), NEWCOMERS
        if t >= self._due:
            self._due, whose = next_fit(t), EVERYBODY
        reading = plan.kind == RIDGE and (spread.bias or spread.non_negative)
        if reading or whose != NOBODY:
            tables = self._users, self._tables["arms"], self._tables["common"]
            learn_anew(whose, reading, *tables, 1, plan, spread, self._working, None, self._fitting, self._objectives)
        soonest = 1 if reading else self._due
        if renewed:
            soonest = min(soonest, self._due_new + plan.arrival - 1)
        self._marks[FITTING] = soonest
