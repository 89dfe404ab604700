"""The true arms and users of a trial of `simulate`, and how little regret there can be with them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats
from pamo.compiling import dimensions
from pamo.environments import Environment, Fixed, Gaussian
from pamo.streams import INSTANCE, stream_for
from pamo.theory import LowerBound, graves_lai


def instance_of(environment: Environment, seed: int, trial: int) -> tuple[Floats, Floats]:
    """Return the true reward means (arms, D) and mean preferences (users, D) of a trial of `simulate`."""
    means = np.empty((environment.arm_count, environment.objectives))
    preferences = np.empty((environment.users, environment.objectives))
    type(environment).instance(
        means,
        preferences,
        environment.numbers(),
        stream_for(seed, trial, INSTANCE),
        dimensions(environment.objectives),
    )
    return means, preferences


def offers_of(environment: Environment) -> npt.NDArray[np.int64]:
    """Return the blocks of arms, (blocks, offer size): under every protocol, any of them may go to any user."""
    return np.arange(environment.arm_count).reshape(-1, environment.offer_size)


def lower_bound_of(environment: Environment, seed: int, trial: int) -> LowerBound | None:
    """Return the least regret in the long run of a trial of `simulate`, or None where no bound is known.

    There is one where rewards are Gaussian, and noisy, utility is linear and the environment is not live.

    >>> bound = lower_bound_of(Gaussian(users=2, block_size=5), seed=1, trial=0)
    >>> bound.pulls.shape, lower_bound_of(Gaussian(reward_variance=0.0), seed=1, trial=0)
    ((2, 10), None)
    """
    still = environment.live is None and environment.utility == "linear"
    if not (isinstance(environment, Gaussian | Fixed) and environment.reward_variance > 0 and still):
        return None
    means, preferences = instance_of(environment, seed, trial)
    return graves_lai(
        means=means,
        preferences=preferences,
        offers=offers_of(environment),
        reward_variance=environment.reward_variance,
    )


def mean_lower_bound(environment: Environment, *, rounds: int, trials: int, seed: int) -> float:
    """Return the mean over trials of the lower bound at a horizon, or NaN where no bound is known.

    >>> mean_lower_bound(Gaussian(users=1, block_size=1), rounds=5000, trials=3, seed=1)
    0.0
    """
    bounds = [lower_bound_of(environment, seed, trial) for trial in range(trials)]
    return float(np.mean([np.nan if bound is None else bound.at(rounds) for bound in bounds]))
