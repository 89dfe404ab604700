"""The compiled trial loop: the paper's rounds, for any policy and environment, with nothing allocated on the way.

It is compiled once for each number of objectives, not for each policy: policy and environment come in as functions of
a fixed type. Sums are kept for the part of the statistics that the policy at hand reads, with the means and inverses
that kernels read derived from them as they change.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from pamo.compiling import compile_for, count_of, dimensions, inlined, kernel
from pamo.environments.base import draw_signature, instance_signature
from pamo.environments.protocols import ALL, assign
from pamo.estimators import Kind, update_ridge
from pamo.pareto import shortfall
from pamo.policies.base import Arms, Run, Users, kernel_signature, pick
from pamo.statistics import LEAST_SQUARE
from pamo.streams import ENVIRONMENT, INSTANCE, POLICY, STATED, key_of, start

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_RIDGE, _STATED, _KNOWN = int(Kind.RIDGE), int(Kind.STATED), int(Kind.KNOWN)


class Plan(NamedTuple):
    """What a run is, in numbers: sizes, protocol, and how the policy forms its preference estimate."""

    rounds: int
    users: int
    arms: int
    offer_size: int
    protocol: int
    kind: int
    weighted: bool
    ridge: float
    noise: float
    first: float
    per_user: bool
    wants_stated: bool


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
def forget(
    arms: Arms, users: Users, reward_sum: Floats, overall_sum: Floats, stated_sum: Floats, truth: Floats, plan: Plan
) -> None:
    """Set everything that is learned to the state before the first round (Alg. 1, initialization)."""
    arms.pulls.fill(0.0)
    arms.width.fill(1.0)
    arms.reward_mean.fill(0.0)
    arms.overall_mean.fill(0.0)
    users.pulls.fill(0.0)
    users.overall_mean.fill(0.0)
    reward_sum.fill(0.0)
    overall_sum.fill(0.0)
    stated_sum.fill(0.0)
    users.inverse_gram.fill(0.0)
    users.preference.fill(plan.first)
    for n in range(len(truth)):
        for d in range(truth.shape[1]):
            users.inverse_gram[n, d, d] = 1.0 / plan.ridge
            if plan.kind == _KNOWN:
                users.preference[n, d] = truth[n, d]


@inlined
def learn_preference(
    users: Users,
    n: int,
    t: int,
    reward: Floats,
    overall: float,
    stated: Floats,
    stated_sum: Floats,
    gain: Floats,
    plan: Plan,
    dims: Any,
) -> None:
    """Take user n's round into that user's ĉ and V⁻¹ (Alg. 1 and 2, the updating lines of the inner loop)."""
    objectives = count_of(dims)
    if plan.kind == _RIDGE:
        square = 0.0
        for d in range(objectives):
            square += reward[d] * reward[d]
            if t == 1:
                users.preference[n, d] = 0.0  # ĉ₁ was no estimate: from here on ĉ = V⁻¹b
        if square > LEAST_SQUARE:  # w = ω/‖r‖² has no value at r = 0, which carries no direction
            noise = square * plan.noise if plan.weighted else 1.0  # 1/w
            update_ridge(users.inverse_gram, users.preference, n, reward, overall, noise, gain, dims)
    elif plan.kind == _STATED:
        for d in range(objectives):
            stated_sum[n, d] += stated[d]
            users.preference[n, d] = stated_sum[n, d] / t


@inlined
def learn_arm(
    arms: Arms,
    arm: int,
    n: int,
    rewards: Floats,
    overall: float,
    reward_sum: Floats,
    overall_sum: Floats,
    dims: Any,
) -> None:
    """Take user n's pull into the arm's sums and what is derived from them (Alg. 1, its last lines)."""
    arms.pulls[arm] += 1.0
    share = 1.0 / arms.pulls[arm]
    arms.width[arm] = math.sqrt(share)
    overall_sum[arm] += overall
    arms.overall_mean[arm] = overall_sum[arm] * share
    for d in range(count_of(dims)):
        reward_sum[arm, d] += rewards[n, d]
        arms.reward_mean[arm, d] = reward_sum[arm, d] * share


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
) -> None:
    objectives, size = count_of(dims), plan.offer_size
    means, truth = np.empty((plan.arms, objectives)), np.empty((plan.users, objectives))
    gaps, pareto = np.empty((plan.users, plan.arms)), np.empty(plan.arms)
    own = (plan.users, plan.arms) if plan.per_user else (1, 1)
    arms = Arms(np.empty(plan.arms), np.empty(plan.arms), np.empty((plan.arms, objectives)), np.empty(plan.arms))
    users = Users(
        np.empty((plan.users, objectives)),
        np.empty((plan.users, objectives, objectives)),
        np.empty(own),
        np.empty(own),
    )
    reward_sum, overall_sum = np.empty((plan.arms, objectives)), np.empty(plan.arms)
    stated_sum, regret = np.empty((plan.users, objectives)), np.empty(plan.users)
    streams = np.empty((4, 4), dtype=np.uint64)
    instance_stream, stream, policy_stream, spare = streams[0], streams[1], streams[2], streams[3]
    side = max(size, objectives)
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
        forget(arms, users, reward_sum, overall_sum, stated_sum, truth, plan)
        regret.fill(0.0)
        for block in range(len(blocks)):
            blocks[block] = block
        pareto_regret, overall_total, optimal, place = 0.0, 0.0, 0.0, 0

        for t in range(1, plan.rounds + 1):
            assign(blocks, plan.protocol, stream)
            for n in range(plan.users):
                if plan.protocol != ALL:
                    for j in range(size):
                        offer[j] = blocks[n] * size + j
                score(scores, offer, n, t, arms, users, run, dims)
                arm = offer[pick(scores, size, policy_stream)]
                overall = draw(reward, stated, arm, n, means, truth, numbers, plan.wants_stated, stream, spare, dims)
                gap = gaps[n, arm]
                regret[n] += gap
                pareto_regret += pareto[arm]
                overall_total += overall
                optimal += 1.0 if gap == 0.0 else 0.0
                learn_preference(users, n, t, reward, overall, stated, stated_sum, gain, plan, dims)
                if plan.per_user:
                    users.pulls[n, arm] += 1.0
                    users.overall_mean[n, arm] += (overall - users.overall_mean[n, arm]) / users.pulls[n, arm]
                chosen[n], overalls[n] = arm, overall
                for d in range(objectives):
                    rewards[n, d] = reward[d]
            # Every user chose from the arms as they stood at the round's start.
            for n in range(plan.users):
                learn_arm(arms, chosen[n], n, rewards, overalls[n], reward_sum, overall_sum, dims)
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


PLAN_TYPE = types.NamedTuple((types.int64,) * 6 + (types.boolean,) + (types.float64,) * 3 + (types.boolean,) * 2, Plan)


@cache
def trial_loop(objectives: int) -> Any:
    """Return the trial loop compiled for this number of objectives (one for all numbers above `SPECIALISED`)."""
    floats = [types.Array(types.float64, axes, "C") for axes in range(4)]
    whole = types.int64
    indices = types.Array(types.int64, 1, "C")
    records = types.NamedTuple((floats[3],) + (floats[2],) * 5, Records)
    signature = types.void(
        types.FunctionType(kernel_signature(objectives)),
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
    )
    return compile_for(_run_trials, signature)
