"""What the coverage study learns in a trial: the arms' and users' sums, and what follows from them step by step."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pamo.arrays import Floats
from pamo.compiling import kernel
from pamo.rows import LEAST_SQUARE


class Learned(NamedTuple):
    """The sums, and what follows from them; a row an arm or a user."""

    pulls: Floats
    reward_sum: Floats
    reward_square: Floats
    means: Floats
    covariances: Floats
    rounds: Floats
    center: Floats
    gram: Floats
    inverse_gram: Floats
    residual: Floats
    log_det: Floats
    stated_count: Floats
    stated_sum: Floats
    stated_square: Floats


@kernel
def room(arms: int, users: int, objectives: int) -> Learned:
    """Return what a trial learns into; `forget` fills it."""
    return Learned(
        np.empty(arms),
        np.empty((arms, objectives)),
        np.empty((arms, objectives, objectives)),
        np.empty((arms, objectives)),
        np.empty((arms, objectives, objectives)),
        np.empty(users),
        np.empty((users, objectives)),
        np.empty((users, objectives, objectives)),
        np.empty((users, objectives, objectives)),
        np.empty(users),
        np.empty(users),
        np.empty(users),
        np.empty((users, objectives)),
        np.empty((users, objectives)),
    )


@kernel
def forget(learned: Learned, ridge: float) -> None:
    """Set everything that is learned to the state before the first round; ridge = λ."""
    for i in range(len(learned.pulls)):
        learned.pulls[i] = 0.0
        learned.reward_sum[i] = 0.0
        learned.reward_square[i] = 0.0
        learned.means[i] = 0.0
        learned.covariances[i] = 0.0
    for n in range(len(learned.rounds)):
        learned.rounds[n] = learned.residual[n] = learned.log_det[n] = learned.stated_count[n] = 0.0
        learned.center[n] = 0.0
        learned.stated_sum[n] = 0.0
        learned.stated_square[n] = 0.0
        learned.gram[n] = 0.0
        learned.inverse_gram[n] = 0.0
        for d in range(learned.center.shape[1]):
            learned.gram[n, d, d] = ridge
            learned.inverse_gram[n, d, d] = 1.0 / ridge


@kernel
def learn_arm(learned: Learned, i: int, reward: Floats) -> None:
    """Take a pull into the arm's sums, its mean and its unbiased covariance."""
    objectives = learned.means.shape[1]
    learned.pulls[i] += 1.0
    pulls = learned.pulls[i]
    for d in range(objectives):
        learned.reward_sum[i, d] += reward[d]
        learned.means[i, d] = learned.reward_sum[i, d] / pulls
        for e in range(objectives):
            learned.reward_square[i, d, e] += reward[d] * reward[e]
    for d in range(objectives):
        for e in range(objectives):
            spread = learned.reward_square[i, d, e] - pulls * learned.means[i, d] * learned.means[i, e]
            learned.covariances[i, d, e] = spread / max(pulls - 1.0, 1.0)


@kernel
def learn_user(
    learned: Learned, n: int, reward: Floats, overall: float, stated: Floats, omega: float, gain: Floats
) -> None:
    """Take a round into ĉ, V, V⁻¹, RSS* and log det V by a rank-one step, and into the stated preferences' sums."""
    objectives, square = learned.center.shape[1], 0.0
    learned.stated_count[n] += 1.0
    for d in range(objectives):
        learned.stated_sum[n, d] += stated[d]
        learned.stated_square[n, d] += stated[d] * stated[d]
        square += reward[d] * reward[d]
    if square <= LEAST_SQUARE:
        return
    weight = omega / square
    left, along = overall, 0.0
    for d in range(objectives):
        gain[d] = 0.0
        for e in range(objectives):
            gain[d] += learned.inverse_gram[n, d, e] * reward[e]
            learned.gram[n, d, e] += weight * reward[d] * reward[e]
        left -= learned.center[n, d] * reward[d]
        along += gain[d] * reward[d]
    grown = 1.0 + weight * along
    learned.rounds[n] += 1.0
    learned.residual[n] += weight * left * left / grown
    learned.log_det[n] += math.log(grown)
    for d in range(objectives):
        learned.center[n, d] += weight * gain[d] * left / grown
        for e in range(objectives):
            learned.inverse_gram[n, d, e] -= weight * gain[d] * gain[e] / grown
