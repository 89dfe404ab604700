"""What every peer of the race runs, in its own environment: nothing of pamo, nothing but NumPy.

A peer is asked as `python -m benchmarks.race.peers.NAME`, with a job as JSON on stdin, and answers with a line of JSON:

- `simulation`: its own simulator, decisions and seconds;
- `online`: choose among K arms for a context of D numbers, then learn from one number; microseconds of both;
- `regret`: each of its policies on given trials of the paper's problem, as many as there is time for; the overall score
  is the reward, scaled to about [0, 1], which most of them are made for; the user is the context, one number a user.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np


class Player(Protocol):
    """A policy of a peer."""

    def choose(self, context: np.ndarray, offer: Sequence[int]) -> int:
        """Return one of the arms on offer."""

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        """Learn from what came of it."""


Make = Callable[[int, int, int], Player]
"""Makes a policy: (arms, numbers of a context, seed)."""


class PerUser:
    """A policy that knows no context, once for each user: the context is a 1 at the user's place."""

    def __init__(self, users: int, make: Callable[[], Player]) -> None:
        self._own = [make() for _ in range(users)]

    def choose(self, context: np.ndarray, offer: Sequence[int]) -> int:
        """Return one of the arms on offer."""
        return self._own[int(context.argmax())].choose(context, offer)

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        """Learn from what came of it."""
        self._own[int(context.argmax())].learn(context, arm, reward)


def best_of(scores: Mapping[int, float] | np.ndarray, offer: Sequence[int], draw: np.random.Generator) -> int:
    """Return the arm on offer with the highest score, ties at random: for peers that always choose among all arms."""
    values = np.array([scores[arm] for arm in offer])
    return int(offer[int(draw.choice(np.flatnonzero(values == values.max())))])


def online(make: Make, arms: int, dims: int, count: int) -> float:
    """Return the median microseconds of a choice and its learning, after as many to warm up."""
    draw = np.random.default_rng(1)
    player, offer = make(arms, dims, 1), list(range(arms))
    contexts, rewards = draw.random((500, dims)), draw.random(500)
    times = []
    for number in range(2 * count):
        context, reward = contexts[number % 500], float(rewards[number % 500])
        begun = time.perf_counter()
        player.learn(context, player.choose(context, offer), reward)
        times.append(time.perf_counter() - begun)
    return statistics.median(times[count:]) * 1e6


def regret(make: Make, means: np.ndarray, preferences: np.ndarray, rounds: int, seed: int) -> float:
    """Return the regret of a trial: blocks of arms go to users by a random permutation each round."""
    draw = np.random.default_rng(seed)
    users, objectives = preferences.shape
    block, worth = len(means) // users, means @ preferences.T
    player, scale, contexts = make(len(means), users, seed), 1.0 / preferences.sum(axis=1).max(), np.eye(users)
    total = 0.0
    for _ in range(rounds):
        for n, place in enumerate(draw.permutation(users)):
            offer = list(range(place * block, (place + 1) * block))
            arm = player.choose(contexts[n], offer)
            reward = means[arm] + 0.1 * draw.standard_normal(objectives)
            overall = (preferences[n] + np.sqrt(0.5) * draw.standard_normal(objectives)) @ reward
            player.learn(contexts[n], arm, float(overall) * scale)
            total += worth[offer, n].max() - worth[arm, n]
    return float(total)


def main(
    policies: Mapping[str, Make],
    *,
    first: str | None = None,
    simulation: Callable[[], tuple[str, int, float]] | None = None,
    files: Callable[[int, int, int], float] | None = None,
) -> None:
    """Answer the job on stdin. first: the policy of the online race. files: microseconds where a file drives it."""
    job = json.load(sys.stdin)
    warnings.simplefilter("ignore")  # of peers' dependencies, about themselves
    answer: dict[str, Any] = {}
    if job["part"] == "simulation" and simulation is not None:
        what, decisions, seconds = simulation()
        answer = {"what": what, "microseconds": seconds / decisions * 1e6}
    elif job["part"] == "online" and first is not None:
        answer = {"policy": first, "microseconds": online(policies[first], job["arms"], job["dims"], job["count"])}
        if files is not None:
            answer["file"] = files(job["arms"], job["dims"], job["count"])
    elif job["part"] == "regret":
        for name in job["policies"] or policies:
            begun, trials = time.perf_counter(), []
            for seed, one in enumerate(job["trials"], 1):
                given = np.array(one["means"]), np.array(one["preferences"])
                trials.append(regret(policies[name], *given, job["rounds"], seed))
                if len(trials) >= job["least"] and time.perf_counter() - begun > job["seconds"]:
                    break  # fewer trials of a slow library, rather than none
            answer[name] = trials
    print("\n" + json.dumps(answer))
