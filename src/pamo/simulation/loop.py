"""The compiled trial loop: the paper's rounds, for any policy and environment, with nothing allocated on the way.

It is compiled once for each number of objectives, not for each policy: policy and environment come in as functions of
a fixed type. (Twice, to be exact: `pamo.simulation.spread` says why.) Sums are kept for the part of the statistics that
the policy at hand reads, with the means and inverses that kernels read derived from them as they change.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from pamo.arrays import Floats, Ints
from pamo.compiling import compile_for, count_of, dimensions, kernel
from pamo.environments.base import draw_signature, instance_signature
from pamo.environments.protocols import ALL, assign
from pamo.pareto import shortfall
from pamo.policies.base import Run, kernel_signature, pick
from pamo.simulation.spread import (
    PLAN_TYPE,
    SPREAD_TYPE,
    Plan,
    Spread,
    forget,
    learn_arm,
    learn_population,
    learn_preference,
    plain_views,
    wide_forget,
    wide_learn_arm,
    wide_learn_preference,
    wide_views,
)
from pamo.streams import ENVIRONMENT, INSTANCE, POLICY, STATED, key_of, start


class Records(NamedTuple):
    """Where the loop writes, a row a trial; all but the pulls are cumulative values at the checkpoints."""

    regret_by_user: Floats
    """(trials, checkpoints, users)."""
    pareto_regret: Floats
    """(trials, checkpoints)."""
    overall: Floats
    """(trials, checkpoints): the sum of the overall scores received."""
    optimal: Floats
    """(trials, checkpoints): the number of pulls without regret."""
    preference_error: Floats
    """(trials, checkpoints): the mean over users of ‖ĉ − c̄‖₂ then."""
    pulls: Floats
    """(trials, arms), at the end."""


@kernel
def write_gaps(gaps: Floats, pareto: Floats, means: Floats, preferences: Floats, size: int, dims: Any) -> None:
    """Write each user's regret for each arm, against the best of the arm's block, and each arm's Pareto regret."""
    for first in range(0, len(means), size):
        last = first + size
        for i in range(first, last):
            pareto[i] = shortfall(means, i, first, last, dims)
        for n in range(len(preferences)):
            best = -np.inf
            for i in range(first, last):
                value = 0.0
                for d in range(count_of(dims)):
                    value += preferences[n, d] * means[i, d]
                gaps[n, i] = value
                best = max(best, value)
            for i in range(first, last):
                gaps[n, i] = best - gaps[n, i]


@kernel
def _preference_error(estimate: Floats, truth: Floats) -> float:
    total = 0.0
    for n in range(len(truth)):
        square = 0.0
        for d in range(truth.shape[1]):
            square += (estimate[n, d] - truth[n, d]) ** 2
        total += math.sqrt(square)
    return total / len(truth)


def _run_trials(
    score: Any,
    instance: Any,
    draw: Any,
    seed: int,
    first_trial: int,
    first_row: int,
    last_row: int,
    plan: Plan,
    hyperparameters: Floats,
    numbers: Floats,
    checkpoints: Ints,
    records: Records,
    progress: Ints,
    worker: int,
    stop: Ints,
    dims: Any,
    plain: bool | None,
    spread: Spread | None,
) -> None:
    objectives, size = count_of(dims), plan.offer_size
    means, truth = np.empty((plan.arms, objectives)), np.empty((plan.users, objectives))
    gaps, pareto = np.empty((plan.users, plan.arms)), np.empty(plan.arms)
    if plain is not None:
        arms, users = plain_views(plan, objectives)
    if spread is not None:
        arms, users, sums = wide_views(plan, objectives)
    reward_sum, overall_sum = np.empty((plan.arms, objectives)), np.empty(plan.arms)
    stated_sum, regret = np.empty((plan.users, objectives)), np.empty(plan.users)
    streams = np.empty((4, 4), dtype=np.uint64)
    instance_stream, stream, policy_stream, spare = streams[0], streams[1], streams[2], streams[3]
    side = max(size, objectives)
    if spread is not None:
        side += 1
    run = Run(hyperparameters, policy_stream, np.empty((side, side)))
    scores, offer = np.empty(size), np.arange(size)
    blocks = np.arange(plan.arms // size)
    rewards, overalls = np.empty((plan.users, objectives)), np.empty(plan.users)
    chosen = np.empty(plan.users, dtype=np.int64)
    reward, stated, gain = np.empty(objectives + 1), np.empty(objectives), np.empty(objectives)

    for row in range(first_row, last_row):
        for purpose in (INSTANCE, ENVIRONMENT, POLICY, STATED):
            start(streams[purpose], key_of(seed, first_trial + row, purpose))
        instance(means, truth, numbers, instance_stream, dims)
        write_gaps(gaps, pareto, means, truth, size, dims)
        if plain is not None:
            forget(arms, users, reward_sum, overall_sum, stated_sum, truth, plan)
        if spread is not None:
            wide_forget(arms, users, sums, reward_sum, stated_sum, truth, plan, dims)
        regret.fill(0.0)
        for block in range(len(blocks)):
            blocks[block] = block
        pareto_regret, overall_total, optimal, place = 0.0, 0.0, 0.0, 0

        for t in range(1, plan.rounds + 1):
            assign(blocks, plan.protocol, stream)
            present = plan.users if t >= plan.arrival else plan.users - plan.newcomers
            for n in range(present):
                own_t = t if n < plan.users - plan.newcomers else t - plan.arrival + 1
                if plan.protocol != ALL:
                    for j in range(size):
                        offer[j] = blocks[n] * size + j
                score(scores, offer, n, own_t, arms, users, run, dims)
                arm = offer[pick(scores, size, policy_stream)]
                overall = draw(reward, stated, arm, n, means, truth, numbers, plan.wants_stated, stream, spare, dims)
                gap = gaps[n, arm]
                regret[n] += gap
                pareto_regret += pareto[arm]
                overall_total += overall
                optimal += 1.0 if gap == 0.0 else 0.0
                if plain is not None:
                    learn_preference(users, n, own_t, reward, overall, stated, stated_sum, gain, plan, dims)
                    if plan.per_user:
                        users.pulls[n, arm] += 1.0
                        users.overall_mean[n, arm] += (overall - users.overall_mean[n, arm]) / users.pulls[n, arm]
                if spread is not None:
                    wide_learn_preference(
                        spread, users, sums, n, own_t, reward, overall, stated, stated_sum, gain, plan, dims
                    )
                chosen[n], overalls[n] = arm, overall
                for d in range(objectives):
                    rewards[n, d] = reward[d]
            # Every user chose from the arms as they stood at the round's start.
            for n in range(present):
                if plain is not None:
                    learn_arm(arms, chosen[n], n, rewards, overalls[n], reward_sum, overall_sum, dims)
                if spread is not None:
                    wide_learn_arm(arms, chosen[n], n, rewards, reward_sum, dims)
            if spread is not None:
                learn_population(spread, users, sums, t, plan, dims)
            if t == checkpoints[place]:
                for n in range(plan.users):
                    records.regret_by_user[row, place, n] = regret[n]
                records.pareto_regret[row, place] = pareto_regret
                records.overall[row, place] = overall_total
                records.optimal[row, place] = optimal
                records.preference_error[row, place] = _preference_error(users.preference, truth)
                place += 1
                progress[worker] += 1
                if stop[0] != 0:
                    return
        for i in range(plan.arms):
            records.pulls[row, i] = arms.pulls[i]


@cache
def trial_loop(objectives: int, reads_spread: bool = False) -> Any:
    """Return the trial loop compiled for this number of objectives (one for all numbers above `SPECIALISED`)."""
    floats = [types.Array(types.float64, axes, "C") for axes in range(4)]
    whole = types.int64
    indices = types.Array(types.int64, 1, "C")
    records = types.NamedTuple((floats[3],) + (floats[2],) * 5, Records)
    signature = types.void(
        types.FunctionType(kernel_signature(objectives, reads_spread)),
        types.FunctionType(instance_signature(objectives)),
        types.FunctionType(draw_signature(objectives)),
        types.uint64,
        whole,
        whole,
        whole,
        PLAN_TYPE,
        floats[1],
        floats[1],
        indices,
        records,
        indices,
        whole,
        indices,
        numba.typeof(dimensions(objectives)),
        types.none if reads_spread else types.boolean,
        SPREAD_TYPE if reads_spread else types.none,
    )
    return compile_for(_run_trials, signature)
