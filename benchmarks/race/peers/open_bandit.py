"""Open Bandit Pipeline: policies with `select_action` and `update_params`, and its simulation on logged feedback."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import tqdm

from benchmarks.race import field

for _name in ("torch", "torch.nn", "torch.nn.functional", "torch.optim", "torch.utils", "torch.utils.data"):
    # Two gigabytes that nothing here uses: modules with nothing in them stand in for it.
    _stand_in = sys.modules.setdefault(_name, ModuleType(_name))
    _stand_in.__getattr__ = lambda name: MagicMock  # type: ignore[method-assign]  # of a module
    if "." in _name:
        setattr(sys.modules[_name.rpartition(".")[0]], _name.rpartition(".")[2], _stand_in)

from obp.policy import BernoulliTS, EpsilonGreedy, LinTS, LinUCB  # noqa: E402  # after what stands in for torch
from obp.simulator import replay  # noqa: E402  # likewise
from obp.simulator.simulator import BanditEnvironmentSimulator, BanditPolicySimulator  # noqa: E402  # likewise


class Own:
    """A policy. It orders all of its arms, of which the first is taken that is on offer."""

    def __init__(self, make: Callable[..., Any], contextual: bool, arms: int, dims: int, seed: int) -> None:
        sizes = {"n_actions": arms, "random_state": seed, "batch_size": 1} | ({"dim": dims} if contextual else {})
        self._make, self._sizes, self._contextual, self._arms = make, sizes, contextual, arms
        self._policy: Any = None

    def choose(self, context: np.ndarray, offer: Sequence[int]) -> int:
        """Return one of the arms on offer."""
        if self._policy is None:  # how many it is to order has to be said when it is made
            self._policy = self._make(**self._sizes, len_list=1 if len(offer) == self._arms else self._arms)
        order = self._policy.select_action(context[None, :]) if self._contextual else self._policy.select_action()
        if len(offer) == self._arms:
            return int(np.ravel(order)[0])
        allowed = set(offer)
        return next(int(arm) for arm in np.ravel(order) if int(arm) in allowed)

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        """Learn from what came of it."""
        given = (context[None, :],) if self._contextual else ()
        self._policy.update_params(arm, reward, *given)


def plain(make: Callable[..., Any], arms: int, dims: int, seed: int) -> field.Player:
    """Return a policy for each user."""
    return field.PerUser(dims, partial(Own, make, False, arms, dims, seed))


def simulation() -> tuple[str, int, float]:
    """Time the faster of its simulations, of its faster policy: one user, ten arms, one number a reward."""
    draw, steps = np.random.default_rng(1), 5_000
    feedback = {
        "n_rounds": steps,
        "n_actions": 10,
        "context": draw.random((steps, 1)),
        "action": draw.integers(10, size=steps),
        "reward": draw.integers(2, size=steps),
        "position": np.zeros(steps, dtype=int),
        "pscore": np.full(steps, 0.1),
    }
    replay.tqdm = tqdm.tqdm  # it calls the module, where the function was meant
    found = []
    for make in (EpsilonGreedy, BernoulliTS):
        policy = make(n_actions=10, random_state=1)
        begun = time.perf_counter()
        replay.run_bandit_replay(bandit_feedback=feedback, policy=policy)
        found.append((time.perf_counter() - begun, f"run_bandit_replay, {make.__name__}"))
        world = BanditEnvironmentSimulator(n_actions=10, random_state=1)
        player = BanditPolicySimulator(environment=world, policy=make(n_actions=10, random_state=1))
        begun = time.perf_counter()
        player.steps(batch_bandit_rounds=world.next_bandit_round_batch(n_rounds=steps))
        found.append((time.perf_counter() - begun, f"BanditPolicySimulator, {make.__name__}"))
    seconds, name = min(found)
    return f"{name}, 1 user, 10 arms, D=1", steps, seconds


if __name__ == "__main__":
    field.main(
        {
            "LinUCB, epsilon 1": partial(Own, partial(LinUCB, epsilon=1.0), True),
            "LinUCB, epsilon 0.3": partial(Own, partial(LinUCB, epsilon=0.3), True),
            "LinTS": partial(Own, LinTS, True),
            "epsilon-greedy": partial(plain, partial(EpsilonGreedy, epsilon=0.05)),
        },
        first="LinUCB, epsilon 1",
        simulation=simulation,
    )
