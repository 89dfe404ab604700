"""PRUCB-HP as a researcher would write it in NumPy: decision by decision, and batched over trials.

The yardsticks that the simulator is measured against. They follow Algorithm 1 line by line and take what NumPy has for
each step; neither is made slow on purpose.
"""

from __future__ import annotations

import math

import numpy as np


def numpy_loop(*, users: int, block: int, objectives: int, rounds: int, seed: int) -> float:
    """Run one trial, one decision at a time, and return its regret."""
    rng = np.random.default_rng(seed)
    arms = users * block
    means = rng.random((arms, objectives))
    truth = np.full((users, objectives), 0.5)
    truth[np.arange(users), rng.integers(objectives, size=users)] = 2.0
    pulls, reward_mean = np.zeros(arms), np.zeros((arms, objectives))
    gram = np.stack([np.eye(objectives)] * users)
    moment = np.zeros((users, objectives))
    preference = np.full((users, objectives), 1.0 / objectives)
    regret = 0.0
    for t in range(1, rounds + 1):
        blocks = rng.permutation(users)
        radius = 0.1 * math.sqrt(objectives * math.log(t))
        chosen, rewards = np.empty(users, dtype=int), np.empty((users, objectives))
        for n in range(users):
            offer = slice(blocks[n] * block, (blocks[n] + 1) * block)
            rho = np.sqrt(math.log(t) / np.maximum(pulls[offer], 1.0))
            optimistic = reward_mean[offer] + rho[:, None]
            information = np.sqrt(((optimistic @ np.linalg.inv(gram[n])) * optimistic).sum(axis=1))
            scores = reward_mean[offer] @ preference[n] + np.abs(preference[n]).sum() * rho + radius * information
            arm = offer.start + rng.choice(np.flatnonzero(scores == scores.max()))
            reward = means[arm] + 0.1 * rng.standard_normal(objectives)
            overall = (truth[n] + math.sqrt(0.5) * rng.standard_normal(objectives)) @ reward
            weight = objectives / (reward @ reward)
            gram[n] += weight * np.outer(reward, reward)
            moment[n] += weight * overall * reward
            preference[n] = np.linalg.solve(gram[n], moment[n])
            regret += (means[offer] @ truth[n]).max() - means[arm] @ truth[n]
            chosen[n], rewards[n] = arm, reward
        pulls[chosen] += 1.0
        reward_mean[chosen] += (rewards - reward_mean[chosen]) / pulls[chosen, None]
    return float(regret)


def numpy_batched(*, users: int, block: int, objectives: int, rounds: int, trials: int, seed: int) -> float:
    """Run many trials side by side, each NumPy call doing one user's decision in all of them; return mean regret."""
    rng = np.random.default_rng(seed)
    arms, every = users * block, np.arange(trials)
    means = rng.random((trials, arms, objectives))
    truth = np.full((trials, users, objectives), 0.5)
    truth[every[:, None], np.arange(users), rng.integers(objectives, size=(trials, users))] = 2.0
    pulls, reward_sum = np.zeros((trials, arms)), np.zeros((trials, arms, objectives))
    inverse = np.broadcast_to(np.eye(objectives), (trials, users, objectives, objectives)).copy()
    preference = np.full((trials, users, objectives), 1.0 / objectives)
    regret = np.zeros(trials)
    for t in range(1, rounds + 1):
        blocks = rng.permuted(np.broadcast_to(np.arange(users), (trials, users)), axis=1)
        radius = 0.1 * math.sqrt(objectives * math.log(t))
        observed: list[tuple[np.ndarray, np.ndarray]] = []
        for n in range(users):
            offer = blocks[:, n, None] * block + np.arange(block)
            known = np.maximum(pulls[every[:, None], offer], 1.0)
            mean = reward_sum[every[:, None], offer] / known[:, :, None]
            rho = np.sqrt(math.log(t) / known)
            optimistic = mean + rho[:, :, None]
            weights = preference[:, n]
            information = np.sqrt(((optimistic @ inverse[:, n]) * optimistic).sum(axis=2))
            scores = (mean @ weights[:, :, None])[:, :, 0] + np.abs(weights).sum(axis=1)[:, None] * rho
            scores += radius * information
            noise = rng.random(scores.shape)  # a random order settles ties
            place = np.where(scores == scores.max(axis=1, keepdims=True), noise, -1.0).argmax(axis=1)
            arm = offer[every, place]
            reward = means[every, arm] + 0.1 * rng.standard_normal((trials, objectives))
            drawn = truth[:, n] + math.sqrt(0.5) * rng.standard_normal((trials, objectives))
            overall = (drawn * reward).sum(axis=1)
            if t == 1:
                preference[:, n] = 0.0
            weight = objectives / (reward * reward).sum(axis=1)
            gain = (inverse[:, n] @ reward[:, :, None])[:, :, 0]
            scale = weight / (1.0 + weight * (gain * reward).sum(axis=1))
            residual = overall - (preference[:, n] * reward).sum(axis=1)
            preference[:, n] += (scale * residual)[:, None] * gain
            inverse[:, n] -= scale[:, None, None] * gain[:, :, None] * gain[:, None, :]
            values = (means[every[:, None], offer] * truth[:, None, n]).sum(axis=2)
            regret += values.max(axis=1) - values[every, place]
            observed.append((arm, reward))
        for arm, reward in observed:
            pulls[every, arm] += 1.0
            reward_sum[every, arm] += reward
    return float(regret.mean())
