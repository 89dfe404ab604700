"""Our environments as Gymnasium's and MO-Gymnasium's have them. Importing this registers `pamo/NAME-v0` and `-mo-v0`.

A step serves one user: the observation says whom, and which arms are on offer; the action is a place in the offer. The
reward is the user's overall score or, in the environments with `mo` in their names, the vector of objectives. `info`
holds what else a pull gave, and the regret, which is for whoever watches and not for a policy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.environments import Environment, create, playable
from pamo.environments.episode import Episode
from pamo.errors import InputError, missing_extra

try:
    import gymnasium
except ImportError as error:
    raise missing_extra("pamo.loops.gym", "gymnasium", "gym") from error

_LARGEST = 2**31 - 1


class Bandit(gymnasium.Env[dict[str, Any], int]):
    """An environment of pamo, step by step, with the overall score as its reward.

    environment: one of ours, or the id of one, with its settings. rounds: after so many the episode is truncated; None
    goes on for ever. `reset(seed=s, options={"trial": k})` begins trial k of `simulate` with that seed.

    >>> env = Bandit("gaussian", users=2)
    >>> seen, _ = env.reset(seed=1)
    >>> int(seen["user"]), len(seen["offer"])
    (0, 5)
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # as Gymnasium declares it

    def __init__(self, environment: Environment | str, *, rounds: int | None = None, **settings: Any) -> None:
        if isinstance(environment, str):
            environment = create(environment, **settings)
        elif settings:
            raise InputError(f"expected settings with an environment's id, got {environment!r} and {settings}")
        self.environment, self.rounds = environment, rounds
        self.observation_space = gymnasium.spaces.Dict(
            {
                "user": gymnasium.spaces.Discrete(environment.users),
                "offer": gymnasium.spaces.MultiDiscrete([environment.arm_count] * environment.offer_size),
            }
        )
        self.action_space: Any = gymnasium.spaces.Discrete(environment.offer_size)
        self._episode: Episode | None = None

    @property
    def episode(self) -> Episode:
        """The trial under way, with the truth in it."""
        if self._episode is None:
            raise InputError("expected `reset` before anything else")
        return self._episode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin a trial; without a seed, one that the environment draws."""
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(_LARGEST))
        trial = int((options or {}).get("trial", 0))
        self._episode = self.environment.start(drawn if seed is None else seed, trial)
        return self._seen(), {}

    def step(self, action: int) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Give the user the arm at this place of the offer."""
        episode = self.episode
        pulled = episode.pull(episode.offer[int(action)])
        info = pulled._asdict()
        over = self.rounds is not None and episode.round > self.rounds
        return self._seen(), self._reward(pulled.reward, pulled.overall), False, over, info

    def _seen(self) -> dict[str, Any]:
        return {"user": np.int64(self.episode.user), "offer": self.episode.offer.copy()}

    def _reward(self, reward: Floats, overall: float) -> Any:
        return overall


class VectorBandit(Bandit):
    """The same with the vector of objectives as its reward, as MO-Gymnasium has it.

    >>> env = VectorBandit("bounded", users=2, objectives=3)
    >>> env.reward_space.shape
    (3,)
    """

    def __init__(self, environment: Environment | str, *, rounds: int | None = None, **settings: Any) -> None:
        super().__init__(environment, rounds=rounds, **settings)
        self.reward_dim = self.environment.objectives
        self.reward_space = gymnasium.spaces.Box(-np.inf, np.inf, (self.reward_dim,), np.float64)

    def _reward(self, reward: Floats, overall: float) -> Any:
        return reward


for _name in playable():
    gymnasium.register(f"pamo/{_name}-v0", "pamo.loops.gym:Bandit", kwargs={"environment": _name})
    gymnasium.register(f"pamo/{_name}-mo-v0", "pamo.loops.gym:VectorBandit", kwargs={"environment": _name})
