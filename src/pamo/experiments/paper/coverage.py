"""Watch a policy's confidence statements while it runs: does c̄ lie in the ellipsoid, is every score an upper bound?

The simulator's loop shows totals alone, and a policy never sees the truth, so this is a trial loop of its own, put
together from the same parts: the policy's and the environment's kernels, the ridge's rank-one step, the protocol, the
streams. It plays the very trials that `pamo.simulate` plays.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from pamo.compiling import compile_for, count_of, dimensions, inlined, kernel
from pamo.environments.base import Environment, draw_signature, instance_signature
from pamo.environments.protocols import ALL, PROTOCOLS, assign
from pamo.errors import InputError
from pamo.estimators import Kind, update_ridge
from pamo.policies.base import Arms, Policy, Run, Shape, Users, kernel_signature, pick
from pamo.simulation.loop import write_gaps
from pamo.streams import ENVIRONMENT, INSTANCE, POLICY, STATED, key_of, start

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CHUNK = 50
"""Trials that a thread takes at a time: few enough for a bar that moves and for an interrupt that is heeded."""


class Seen(NamedTuple):
    """What was seen, a row a trial.

    Distances are ‖ĉ_t − c̄‖ in V_{t−1}, the largest over users. A margin is a score less the true c̄·μ_i, the least over
    users and all arms, offered or not: a negative one says that some score was no upper bound.
    """

    distance: Floats
    """(trials, marks): the distance in the rounds marked."""
    margin: Floats
    """(trials, marks): the margin in the rounds marked."""
    worst: Floats
    """(trials, radii): the largest distance/β_t over all rounds with β_t > 0."""
    last_outside: Ints
    """(trials, radii): the last round in which some user's c̄ lay outside the ellipsoid, 0 if none ever did."""
    last_below: Ints
    """(trials,): the last round with a negative margin, 0 if there was none."""
    regret_by_user: Floats
    """(trials, users), at the end."""


class Setup(NamedTuple):
    """Sizes, protocol, and the ridge by which ĉ is formed."""

    rounds: int
    users: int
    arms: int
    offer_size: int
    protocol: int
    ridge: float
    noise: float
    first: float


@inlined
def _distance(gram: Floats, estimate: Floats, truth: Floats, n: int, dims: Any) -> float:
    """‖ĉ − c̄‖ in V for user n, from the triangle of V on and below the diagonal."""
    square = 0.0
    for d in range(count_of(dims)):
        difference = estimate[n, d] - truth[n, d]
        row = gram[n, d, d] * difference
        for e in range(d):
            row += 2.0 * gram[n, d, e] * (estimate[n, e] - truth[n, e])
        square += difference * row
    return math.sqrt(max(square, 0.0))


@kernel
def _forget(arms: Arms, users: Users, gram: Floats, reward_sum: Floats, setup: Setup) -> None:
    """Set everything that is learned to the state before the first round (Alg. 1, initialization)."""
    arms.pulls[:] = 0.0
    arms.width[:] = 1.0
    arms.reward_mean[:] = 0.0
    reward_sum[:] = 0.0
    users.preference[:] = setup.first
    users.inverse_gram[:] = 0.0
    gram[:] = 0.0
    for n in range(gram.shape[0]):
        for d in range(gram.shape[1]):
            users.inverse_gram[n, d, d] = 1.0 / setup.ridge
            gram[n, d, d] = setup.ridge


def _watch_trials(
    score: Any,
    instance: Any,
    draw: Any,
    seed: int,
    first_row: int,
    last_row: int,
    setup: Setup,
    hyperparameters: Floats,
    numbers: Floats,
    radii: Floats,
    marks: Ints,
    seen: Seen,
    dims: Any,
) -> None:
    objectives, size = count_of(dims), setup.offer_size
    means, truth = np.empty((setup.arms, objectives)), np.empty((setup.users, objectives))
    gaps, pareto = np.empty((setup.users, setup.arms)), np.empty(setup.arms)
    values = np.empty((setup.users, setup.arms))
    arms = Arms(np.empty(setup.arms), np.empty(setup.arms), np.empty((setup.arms, objectives)), np.zeros(setup.arms))
    users = Users(
        np.empty((setup.users, objectives)),
        np.empty((setup.users, objectives, objectives)),
        np.zeros((1, 1)),
        np.zeros((1, 1)),
    )
    gram, reward_sum = np.empty((setup.users, objectives, objectives)), np.empty((setup.arms, objectives))
    streams = np.empty((4, 4), dtype=np.uint64)
    instance_stream, stream, policy_stream, spare = streams[0], streams[1], streams[2], streams[3]
    run = Run(hyperparameters, policy_stream, np.empty((setup.arms, objectives)))
    scores, everything, offered = np.empty(setup.arms), np.arange(setup.arms), np.empty(size)
    blocks, chosen = np.arange(setup.arms // size), np.empty(setup.users, dtype=np.int64)
    rewards = np.empty((setup.users, objectives))
    reward, stated, gain = np.empty(objectives + 1), np.empty(objectives), np.empty(objectives)

    for row in range(first_row, last_row):
        for purpose in (INSTANCE, ENVIRONMENT, POLICY, STATED):
            start(streams[purpose], key_of(seed, row, purpose))
        instance(means, truth, numbers, instance_stream, dims)
        write_gaps(gaps, pareto, means, truth, size, dims)
        for n in range(setup.users):
            for i in range(setup.arms):
                values[n, i] = 0.0
                for d in range(objectives):
                    values[n, i] += truth[n, d] * means[i, d]
        _forget(arms, users, gram, reward_sum, setup)
        seen.worst[row, :] = 0.0
        seen.last_outside[row, :] = 0
        seen.last_below[row] = 0
        seen.regret_by_user[row, :] = 0.0
        blocks[:] = np.arange(len(blocks))
        place = 0

        for t in range(1, setup.rounds + 1):
            assign(blocks, setup.protocol, stream)
            distance, margin = 0.0, np.inf
            for n in range(setup.users):
                # Lemma 3 is about every arm, so that all are scored; the choice is among those offered.
                score(scores, everything, n, t, arms, users, run, dims)
                distance = max(distance, _distance(gram, users.preference, truth, n, dims))
                for i in range(setup.arms):
                    margin = min(margin, scores[i] - values[n, i])
                first = 0 if setup.protocol == ALL else blocks[n] * size
                for j in range(size):
                    offered[j] = scores[first + j]
                arm = first + pick(offered, size, policy_stream)
                overall = draw(reward, stated, arm, n, means, truth, numbers, False, stream, spare, dims)
                seen.regret_by_user[row, n] += gaps[n, arm]
                square = 0.0
                for d in range(objectives):
                    square += reward[d] * reward[d]
                    if t == 1:
                        users.preference[n, d] = 0.0  # ĉ₁ was no estimate: from here on ĉ = V⁻¹b
                if square > 0.0:
                    noise = square * setup.noise  # 1/w = ‖r‖²/ω
                    update_ridge(users.inverse_gram, users.preference, n, reward, overall, noise, gain, dims)
                    for d in range(objectives):
                        for e in range(d + 1):
                            gram[n, d, e] += reward[d] * reward[e] / noise
                chosen[n] = arm
                for d in range(objectives):
                    rewards[n, d] = reward[d]
            for n in range(setup.users):
                arm = chosen[n]
                arms.pulls[arm] += 1.0
                share = 1.0 / arms.pulls[arm]
                arms.width[arm] = math.sqrt(share)
                for d in range(objectives):
                    reward_sum[arm, d] += rewards[n, d]
                    arms.reward_mean[arm, d] = reward_sum[arm, d] * share
            for each in range(len(radii)):
                radius = radii[each, t - 1]
                if distance > radius:
                    seen.last_outside[row, each] = t
                if radius > 0.0:  # the experiments' radius is 0 in round 1, and nothing lies within that
                    seen.worst[row, each] = max(seen.worst[row, each], distance / radius)
            if margin < 0.0:
                seen.last_below[row] = t
            if place < len(marks) and t == marks[place]:
                seen.distance[row, place] = distance
                seen.margin[row, place] = margin
                place += 1


@cache
def _loop(objectives: int) -> Any:
    floats = [types.Array(types.float64, axes, "C") for axes in range(3)]
    ints = [types.Array(types.int64, axes, "C") for axes in range(3)]
    whole, real = types.int64, types.float64
    signature = types.void(
        types.FunctionType(kernel_signature(objectives)),
        types.FunctionType(instance_signature(objectives)),
        types.FunctionType(draw_signature(objectives)),
        types.uint64,
        whole,
        whole,
        types.NamedTuple((whole,) * 5 + (real,) * 3, Setup),
        floats[1],
        floats[1],
        floats[2],
        ints[1],
        types.NamedTuple((floats[2], floats[2], floats[2], ints[2], ints[1], floats[2]), Seen),
        numba.typeof(dimensions(objectives)),
    )
    return compile_for(_watch_trials, signature)


def watch(
    policy: Policy,
    environment: Environment,
    *,
    rounds: int,
    trials: int,
    seed: int,
    radii: npt.ArrayLike,
    marks: npt.ArrayLike,
    threads: int | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Seen:
    """Play the trials of `simulate` and return what was seen of the confidence statements.

    policy: one that learns by the weighted ridge. radii: (radii, rounds), each row a β_t to hold distances against.
    marks: rising rounds to note distances and margins in. threads: by default one a core; they change nothing but the
    time. progress: called with the share of the work done since the last call.
    """
    estimate = policy.estimate(environment.objectives)
    if not (estimate.kind == Kind.RIDGE and estimate.weighted) or policy.per_user:
        raise InputError(f"expected a policy that learns by the weighted ridge, such as prucb-hp, got {policy.label}")
    table = np.ascontiguousarray(radii, dtype=np.float64)
    noted = np.ascontiguousarray(marks, dtype=np.int64)
    if table.ndim != 2 or table.shape[1] != rounds:
        raise InputError(f"expected radii with a row of {rounds} rounds each, got the shape {table.shape}")
    if (np.diff(noted) <= 0).any() or noted.size == 0 or noted[0] < 1 or noted[-1] > rounds:
        raise InputError(f"expected rising marks from 1 to {rounds}, got {noted.tolist()}")
    setup = Setup(
        rounds=rounds,
        users=environment.users,
        arms=environment.arm_count,
        offer_size=environment.offer_size,
        protocol=PROTOCOLS[environment.protocol],
        ridge=float(estimate.ridge),
        noise=1.0 / estimate.omega,
        first=float(estimate.first),
    )
    shape = Shape(setup.users, setup.arms, environment.objectives, rounds)
    hyperparameters = np.array(policy.hyperparameters(shape), dtype=np.float64)
    seen = Seen(
        distance=np.empty((trials, len(noted))),
        margin=np.empty((trials, len(noted))),
        worst=np.empty((trials, len(table))),
        last_outside=np.empty((trials, len(table)), dtype=np.int64),
        last_below=np.empty(trials, dtype=np.int64),
        regret_by_user=np.empty((trials, setup.users)),
    )
    loop, numbers, dims = _loop(environment.objectives), environment.numbers(), dimensions(environment.objectives)
    kernels = (type(policy).kernel, type(environment).instance, type(environment).draw)

    def work(first: int) -> int:
        last = min(first + CHUNK, trials)
        loop(*kernels, np.uint64(seed), first, last, setup, hyperparameters, numbers, table, noted, seen, dims)
        return last - first

    workers = threads or len(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else [0])
    with ThreadPoolExecutor(workers) as pool:
        parts = [pool.submit(work, first) for first in range(0, trials, CHUNK)]
        try:
            for part in as_completed(parts):
                progress(part.result() / trials)
        except BaseException:  # an interrupt waits for the chunks in hand, and for no others
            pool.shutdown(cancel_futures=True)
            raise
    return seen
