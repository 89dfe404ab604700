"""Our policies in loops for one user: river's, and Open Bandit Pipeline's."""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from pamo.arrays import Ints
from pamo.errors import InputError
from pamo.policies import Policy, parse
from pamo.simulation.stepping import Player


class _Alone:
    """A policy that serves one user, from arms of any name."""

    def __init__(
        self, policy: Policy | str, *, arms: int, objectives: int = 1, rounds: int | None = None, seed: int = 1
    ) -> None:
        self.policy = parse(policy) if isinstance(policy, str) else policy
        self.arms, self.objectives, self.rounds, self.seed = arms, objectives, rounds, seed
        self.begin()

    def begin(self) -> None:
        """Forget everything."""
        sizes: Any = {"users": 1, "arms": self.arms, "objectives": self.objectives}
        self._player = Player.of(self.policy, **sizes, rounds=self.rounds, seed=self.seed)
        self._numbers: dict[Hashable, int] = {}

    def _number_of(self, arm: Hashable) -> int:
        number = self._numbers.setdefault(arm, len(self._numbers))
        if number >= self.arms:
            raise InputError(
                f"expected at most {self.arms} arms, as was said when the policy was made; {arm!r} is more"
            )
        return number

    def _learn(self, arm: Hashable, reward: npt.ArrayLike, overall: float | None) -> None:
        values = np.atleast_1d(np.asarray(reward, dtype=np.float64))
        if overall is None:
            if len(values) != 1:
                raise InputError(f"expected overall=… beside a reward of {len(values)} objectives")
            overall = float(values[0])
        self._player.learn(0, self._number_of(arm), values, overall)


class ForRiver(_Alone):
    """A policy of ours with `pull` and `update`, as river's bandits have them: for `river.bandit.evaluate`.

    arms: how many there are. objectives: of a reward, one where it is a number. rounds: the horizon, for the policies
    that need it.

    >>> policy = ForRiver("ucb", arms=2)
    >>> arm = policy.pull(["tea", "coffee"])
    >>> policy.update(arm, 1.0)
    >>> policy.pull(["tea", "coffee"]) != arm  # the one that was not pulled yet
    True
    """

    def pull(self, arm_ids: Iterable[Any]) -> Any:
        """Return one of these arms."""
        several = list(arm_ids)
        numbers = [self._number_of(arm) for arm in several]
        return several[numbers.index(self._player.choose(0, numbers))]

    def update(self, arm_id: Any, reward: npt.ArrayLike, overall: float | None = None) -> None:
        """Take in what an arm gave: a number, or a vector and the overall score."""
        self._learn(arm_id, reward, overall)

    def clone(self) -> ForRiver:
        """Return the same policy before its first pull."""
        return ForRiver(self.policy, arms=self.arms, objectives=self.objectives, rounds=self.rounds, seed=self.seed)


class ForOpenBandit(_Alone):
    """A policy of ours as Open Bandit Pipeline's context-free ones are: for its `BanditPolicySimulator`.

    >>> policy = ForOpenBandit("ucb", arms=3)
    >>> policy.update_params(action=int(policy.select_action()[0]), reward=1.0)
    """

    len_list = 1

    @property
    def n_actions(self) -> int:
        """How many arms there are."""
        return self.arms

    @property
    def policy_name(self) -> str:
        """What it is called in reports."""
        return self.policy.label

    @property
    def policy_type(self) -> Any:
        """Its kind, a word of Open Bandit Pipeline's."""
        return importlib.import_module("obp.policy.policy_type").PolicyType.CONTEXT_FREE

    def initialize(self) -> None:
        """Forget everything."""
        self.begin()

    def select_action(self) -> Ints:
        """Return a list of the one arm that is chosen."""
        numbers = [self._number_of(arm) for arm in range(self.arms)]
        return np.array([self._player.choose(0, numbers)])

    def update_params(self, action: int, reward: npt.ArrayLike, overall: float | None = None) -> None:
        """Take in what an arm gave."""
        self._learn(action, reward, overall)
