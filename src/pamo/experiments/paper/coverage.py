"""Watch a policy's confidence statements while it runs: does c̄ lie in the ellipsoid, is every score an upper bound?

The simulator's loop shows totals alone, and a policy never sees the truth, so this is a trial loop of its own, put
together from the same parts: the policy's and the environment's kernels, what a round teaches, the protocol, the
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

from pamo.arrays import Floats, Ints
from pamo.compiling import compile_for, count_of, dimensions, inlined
from pamo.environments.base import Environment, draw_signature, instance_signature
from pamo.environments.protocols import ALL, assign
from pamo.errors import InputError
from pamo.estimators import Kind
from pamo.policies.base import Arms, Policy, Run, Shape, Users, kernel_signature, pick
from pamo.rows import LEAST_SQUARE
from pamo.simulation.cpu import plan_for
from pamo.simulation.loop import write_gaps
from pamo.simulation.spread import PLAN_TYPE, Plan, forget, learn_arm, learn_preference
from pamo.streams import ENVIRONMENT, INSTANCE, POLICY, STATED, key_of, start

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


def _watch_trials(
    score: Any,
    instance: Any,
    draw: Any,
    seed: int,
    first_row: int,
    last_row: int,
    plan: Plan,
    hyperparameters: Floats,
    numbers: Floats,
    radii: Floats,
    marks: Ints,
    seen: Seen,
    dims: Any,
) -> None:
    objectives, size = count_of(dims), plan.offer_size
    means, truth = np.empty((plan.arms, objectives)), np.empty((plan.users, objectives))
    gaps, pareto = np.empty((plan.users, plan.arms)), np.empty(plan.arms)
    values = np.empty((plan.users, plan.arms))
    arms = Arms(np.empty(plan.arms), np.empty(plan.arms), np.empty((plan.arms, objectives)), np.zeros(plan.arms))
    users = Users(
        np.empty((plan.users, objectives)),
        np.empty((plan.users, objectives, objectives)),
        np.zeros((1, 1)),
        np.zeros((1, 1)),
    )
    gram, reward_sum = np.empty((plan.users, objectives, objectives)), np.empty((plan.arms, objectives))
    overall_sum, stated_sum = np.empty(plan.arms), np.empty((plan.users, objectives))
    streams = np.empty((4, 4), dtype=np.uint64)
    instance_stream, stream, policy_stream, spare = streams[0], streams[1], streams[2], streams[3]
    side = max(plan.arms, objectives)
    run = Run(hyperparameters, policy_stream, np.empty((side, side)))
    scores, everything, offered = np.empty(plan.arms), np.arange(plan.arms), np.empty(size)
    blocks, chosen = np.arange(plan.arms // size), np.empty(plan.users, dtype=np.int64)
    rewards, overalls = np.empty((plan.users, objectives)), np.empty(plan.users)
    reward, stated, gain = np.empty(objectives + 1), np.empty(objectives), np.empty(objectives)

    for row in range(first_row, last_row):
        for purpose in (INSTANCE, ENVIRONMENT, POLICY, STATED):
            start(streams[purpose], key_of(seed, row, purpose))
        instance(means, truth, numbers, instance_stream, dims)
        write_gaps(gaps, pareto, means, truth, size, dims)
        for n in range(plan.users):
            for i in range(plan.arms):
                values[n, i] = 0.0
                for d in range(objectives):
                    values[n, i] += truth[n, d] * means[i, d]
        forget(arms, users, reward_sum, overall_sum, stated_sum, truth, plan)
        gram.fill(0.0)
        for n in range(plan.users):
            for d in range(objectives):
                gram[n, d, d] = plan.ridge
        seen.worst[row, :] = 0.0
        seen.last_outside[row, :] = 0
        seen.last_below[row] = 0
        seen.regret_by_user[row, :] = 0.0
        blocks[:] = np.arange(len(blocks))
        place = 0

        for t in range(1, plan.rounds + 1):
            assign(blocks, plan.protocol, stream)
            distance, margin = 0.0, np.inf
            for n in range(plan.users):
                # Lemma 3 is about every arm, so that all are scored; the choice is among those offered.
                score(scores, everything, n, t, arms, users, run, dims)
                distance = max(distance, _distance(gram, users.preference, truth, n, dims))
                for i in range(plan.arms):
                    margin = min(margin, scores[i] - values[n, i])
                first = 0 if plan.protocol == ALL else blocks[n] * size
                for j in range(size):
                    offered[j] = scores[first + j]
                arm = first + pick(offered, size, policy_stream)
                overall = draw(reward, stated, arm, n, means, truth, numbers, False, stream, spare, dims)
                seen.regret_by_user[row, n] += gaps[n, arm]
                learn_preference(users, n, t, reward, overall, stated, stated_sum, gain, plan, dims)
                square = 0.0
                for d in range(objectives):
                    square += reward[d] * reward[d]
                    rewards[n, d] = reward[d]
                if square > LEAST_SQUARE:
                    for d in range(objectives):
                        for e in range(d + 1):
                            gram[n, d, e] += reward[d] * reward[e] / (square * plan.noise)  # w = ω/‖r‖²
                chosen[n], overalls[n] = arm, overall
            for n in range(plan.users):
                learn_arm(arms, chosen[n], n, rewards, overalls[n], reward_sum, overall_sum, dims)
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
    whole = types.int64
    signature = types.void(
        types.FunctionType(kernel_signature(objectives)),
        types.FunctionType(instance_signature(objectives)),
        types.FunctionType(draw_signature(objectives)),
        types.uint64,
        whole,
        whole,
        PLAN_TYPE,
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
    plan = plan_for(policy, environment, rounds)
    shape = Shape(plan.users, plan.arms, environment.objectives, rounds)
    hyperparameters = np.array(policy.hyperparameters(shape), dtype=np.float64)
    seen = Seen(
        distance=np.empty((trials, len(noted))),
        margin=np.empty((trials, len(noted))),
        worst=np.empty((trials, len(table))),
        last_outside=np.empty((trials, len(table)), dtype=np.int64),
        last_below=np.empty(trials, dtype=np.int64),
        regret_by_user=np.empty((trials, plan.users)),
    )
    loop, numbers, dims = _loop(environment.objectives), environment.numbers(), dimensions(environment.objectives)
    kernels = (type(policy).kernel, type(environment).instance, type(environment).draw)

    def work(first: int) -> int:
        last = min(first + CHUNK, trials)
        loop(*kernels, np.uint64(seed), first, last, plan, hyperparameters, numbers, table, noted, seen, dims)
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
