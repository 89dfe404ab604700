"""The compiled loop of the coverage study: it plays trials, and in every round holds five upper bounds against c̄·μ_i.

It keeps the sums that the bounds are functions of by itself, one step a round, and the bounds are the kernels of
`pamo.theory.variance`. The fifth is no bound but a score, that of `PrucbHpV(shared=False)`, from the same sums.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from pamo.arrays import Floats, Ints
from pamo.compiling import compile_for, count_of, dimensions, inlined, kernel
from pamo.environments.base import draw_signature, instance_signature
from pamo.environments.protocols import ALL, assign
from pamo.experiments.coverage_sums import Learned, forget, learn_arm, learn_user, room
from pamo.policies.base import pick
from pamo.streams import ENVIRONMENT, INSTANCE, POLICY, STATED, Stream, key_of, start
from pamo.theory.variance import (
    ELLIPSOID,
    RESIDUALS,
    REWARDS,
    information,
    noise_limit,
    write_bonuses,
    write_stated_box,
)
from pamo.theory.variance import STATED as STATED_SHARE

HIDDEN, ASKED, KNOWN, PAPER, SMALLER = range(5)
"""The bounds: the derivation's for a hidden, a stated and a known preference, the paper's, the policy's score."""
BOUND, GREEDY, RECOMMENDED, RANDOM = range(4)
"""The ways to choose: by the hidden bound, by ĉ·r̂, by the recommended policy's score, or at random."""


class Plan(NamedTuple):
    """What is played, in whole numbers."""

    rounds: int
    users: int
    arms: int
    offer_size: int
    protocol: int
    choice: int


class Rules(NamedTuple):
    """What the bounds are made with: those of the derivation, the paper's α, the recommended policy's own.

    level: the preference in each objective that the policy's ridge draws to; the derivation's draws to 0.
    scale: a factor on the derivation's bonuses, below 1 to see the study fail.
    """

    failure: float
    delta: float
    kappa: float
    ridge: float
    omega: float
    bias: float
    most_noise: float
    alpha: float
    level: float
    zeta: float
    prior_pulls: float
    few_pulls: float
    xi: float
    scale: float


class Seen(NamedTuple):
    """What was seen, a row a trial. A ratio is (c̄·μ_i − ĉ·r̂_i)/bonus: above 1, the bound was none."""

    worst: Floats
    """(trials, 5): the largest ratio of each bound over all rounds, users and arms."""
    used: Floats
    """(trials, 5): the same over arms pulled twice or more, for which the bound says more than that c̄·μ_i ≤ b."""
    worst_radius: Floats
    """(trials,): the largest ‖c̄ − ĉ‖ in V over β, over all rounds and users."""
    worst_noise: Floats
    """(trials,): the largest σ over its upper bound, likewise."""
    failed: Ints
    """(trials, marks, 5): how many pairs of user and arm each bound failed for in the rounds marked."""
    bonus: Floats
    """(trials, marks, 2, 5): the bonuses for one user and two arms, that user's best and one taken in turn."""
    error: Floats
    """(trials, marks, 2, 5): the error |c̄·μ_i − ĉ·r̂_i| of what each of them was added to."""


@kernel
def _write_papers(bonus: Floats, learned: Learned, n: int, t: int, radius: float, alpha: float) -> None:
    """Write the paper's bonus with Theorem 1's α and β, for every arm."""
    objectives, inverse, length = learned.center.shape[1], learned.inverse_gram[n], 0.0
    for d in range(objectives):
        length += abs(learned.center[n, d])
    for i in range(len(learned.pulls)):
        rho = math.sqrt(max(math.log(t) - math.log(alpha), 0.0) / max(learned.pulls[i], 1.0))
        optimistic = 0.0
        for d in range(objectives):
            for e in range(objectives):
                optimistic += (learned.means[i, d] + rho) * inverse[d, e] * (learned.means[i, e] + rho)
        bonus[i] = length * rho + radius * math.sqrt(max(optimistic, 0.0))


@kernel
def _write_policys(
    value: Floats, bonus: Floats, learned: Learned, n: int, t: int, size: int, rules: Rules, room: Floats, along: Floats
) -> None:
    """Write the two parts of `PrucbHpV(shared=False)`'s score, for every arm: ĉ·r̂, and what it adds to it.

    An arm is scored as on an offer of its block, the `size` arms that it comes with. `room` is scratch of D, `along` of
    all arms.
    """
    objectives, inverse = learned.center.shape[1], learned.inverse_gram[n]
    # The same sums with the prior mean m in place of 0: ĉ gains λV⁻¹m, and RSS* λ‖m‖² − 2λm·ĉ − λ²mᵀV⁻¹m.
    pull = rules.ridge * rules.level
    squares = learned.residual[n]
    for d in range(objectives):
        room[d] = learned.center[n, d]
        for e in range(objectives):
            room[d] += pull * inverse[d, e]
        squares += pull * (rules.level - learned.center[n, d] - room[d])
    pooled, freedom = 0.0, 0.0
    for i in range(len(learned.pulls)):
        along[i] = 0.0  # ĉᵀSĉ, S the arm's sum of squares around its mean
        degrees = max(learned.pulls[i] - 1.0, 0.0)
        for d in range(objectives):
            for e in range(objectives):
                along[i] += degrees * room[d] * learned.covariances[i, d, e] * room[e]
        pooled += along[i]
        freedom += degrees
    pooled /= max(freedom, 1.0)
    # The policy counts all of the user's rounds, those without any reward too.
    noise = rules.xi * math.sqrt(max(squares, 0.0) / max(learned.stated_count[n], 1.0))
    for i in range(len(learned.pulls)):
        value[i], gain, offered = 0.0, 0.0, 0.0
        for d in range(objectives):
            value[i] += room[d] * learned.means[i, d]
            for e in range(objectives):
                gain += learned.means[i, d] * inverse[d, e] * learned.means[i, e]
        for j in range(size):
            offered += learned.pulls[i // size * size + j]
        bonus[i] = np.inf  # an arm never pulled comes first
        pulls = learned.pulls[i]
        if pulls >= 1.0:
            variance = max((along[i] + rules.prior_pulls * pooled) / (pulls - 1.0 + rules.prior_pulls), 0.0)
            gain = max(gain, 0.0)
            error = math.sqrt((1.0 + rules.few_pulls / pulls) * variance / pulls)
            bonus[i] = rules.zeta * math.log(offered / pulls) * error
            bonus[i] += noise * math.log(1.0 + t * gain) * math.sqrt(gain)


@inlined
def _ratio(short: float, bonus: float) -> float:
    """How much of the bonus is used up by what the estimate is short of the truth."""
    if bonus > 0.0:
        return short / bonus
    return np.inf if short > 0.0 else 0.0


@inlined
def _choose(
    choice: int, value: Floats, bonus: Floats, pulls: Floats, first: int, size: int, scores: Floats, stream: Stream
) -> int:
    for j in range(size):
        i = first + j
        if choice == BOUND:
            scores[j] = value[HIDDEN, i] + bonus[HIDDEN, i]
        elif choice == RECOMMENDED:
            scores[j] = value[SMALLER, i] + bonus[SMALLER, i]
        elif choice == GREEDY:
            scores[j] = value[HIDDEN, i] if pulls[i] >= 1.0 else np.inf
        else:
            scores[j] = 0.0  # ties are settled at random
    place: int = pick(scores, size, stream)
    return first + place


def _watch_trials(
    instance: Any,
    draw: Any,
    seed: int,
    first_row: int,
    last_row: int,
    plan: Plan,
    rules: Rules,
    numbers: Floats,
    radii: Floats,
    marks: Ints,
    seen: Seen,
    dims: Any,
) -> None:
    objectives, size, arms, users = count_of(dims), plan.offer_size, plan.arms, plan.users
    means, truth = np.empty((arms, objectives)), np.empty((users, objectives))
    learned = room(arms, users, objectives)
    value, bonus, reward_bonus = np.empty((5, arms)), np.empty((5, arms)), np.empty(arms)
    scores, along, no_half = np.empty(size), np.empty(arms), np.zeros(objectives)
    center, half, gain = np.empty(objectives), np.empty(objectives), np.empty(objectives)
    streams = np.empty((4, 4), dtype=np.uint64)
    stream, policy_stream, spare = streams[ENVIRONMENT], streams[POLICY], streams[STATED]
    blocks, chosen = np.arange(arms // size), np.empty(users, dtype=np.int64)
    rewards = np.empty((users, objectives + 1))
    stated, best = np.empty(objectives), np.empty(users, dtype=np.int64)
    noise_of, truths = np.empty(users), np.empty((users, arms))
    pairs, counted = float(arms * users), float(users)

    for row in range(first_row, last_row):
        for purpose in (INSTANCE, ENVIRONMENT, POLICY, STATED):
            start(streams[purpose], key_of(seed, row, purpose))
        instance(means, truth, numbers, streams[INSTANCE], dims)
        forget(learned, rules.ridge)
        for n in range(users):
            noise_of[n] = 0.0
            for d in range(objectives):  # an entry is uniform, numbers[1] to each side but never below 0
                noise_of[n] = max(noise_of[n], min(numbers[1], truth[n, d]) * math.sqrt(rules.omega / 3.0))
            for i in range(arms):
                truths[n, i] = 0.0
                for d in range(objectives):
                    truths[n, i] += truth[n, d] * means[i, d]
            best[n] = np.argmax(truths[n])
        seen.worst[row, :] = 0.0
        seen.used[row, :] = 0.0
        seen.worst_radius[row] = seen.worst_noise[row] = 0.0
        seen.failed[row, :, :] = 0
        blocks[:] = np.arange(len(blocks))
        place = 0

        for t in range(1, plan.rounds + 1):
            assign(blocks, plan.protocol, stream)
            marked = place < len(marks) and t == marks[place]
            for n in range(users):
                information_gained = information(learned.log_det[n], counted, ELLIPSOID * rules.failure)
                noise = noise_limit(
                    learned.rounds[n],
                    learned.residual[n],
                    information_gained,
                    rules.bias,
                    rules.kappa,
                    counted,
                    RESIDUALS * rules.failure,
                    rules.most_noise,
                )
                radius = noise * math.sqrt(information_gained) + rules.bias
                distance = 0.0
                for d in range(objectives):
                    for e in range(objectives):
                        away = (learned.center[n, d] - truth[n, d]) * (learned.center[n, e] - truth[n, e])
                        distance += away * learned.gram[n, d, e]
                seen.worst_radius[row] = max(seen.worst_radius[row], math.sqrt(max(distance, 0.0)) / radius)
                seen.worst_noise[row] = max(seen.worst_noise[row], noise_of[n] / noise)
                write_bonuses(
                    value[HIDDEN],
                    reward_bonus,
                    bonus[HIDDEN],
                    learned.pulls,
                    learned.means,
                    learned.covariances,
                    learned.center[n],
                    learned.inverse_gram[n],
                    radius,
                    no_half,
                    rules.delta,
                    pairs,
                    REWARDS * rules.failure,
                )
                for i in range(arms):
                    bonus[HIDDEN, i] = rules.scale * (bonus[HIDDEN, i] + reward_bonus[i])
                write_stated_box(
                    center,
                    half,
                    learned.stated_count[n],
                    learned.stated_sum[n],
                    learned.stated_square[n],
                    counted,
                    rules.delta,
                    STATED_SHARE * rules.failure,
                )
                for kind in (ASKED, KNOWN):
                    asked = kind == ASKED
                    write_bonuses(
                        value[kind],
                        reward_bonus,
                        bonus[kind],
                        learned.pulls,
                        learned.means,
                        learned.covariances,
                        center if asked else truth[n],
                        learned.inverse_gram[n],
                        0.0,
                        half if asked else no_half,
                        rules.delta if asked else np.inf,
                        pairs,
                        (REWARDS if asked else 1.0) * rules.failure,
                    )
                    for i in range(arms):
                        bonus[kind, i] = rules.scale * (bonus[kind, i] + reward_bonus[i])
                value[PAPER] = value[HIDDEN]
                _write_papers(bonus[PAPER], learned, n, t, radii[t - 1], rules.alpha)
                _write_policys(value[SMALLER], bonus[SMALLER], learned, n, t, size, rules, gain, along)
                for kind in range(5):
                    for i in range(arms):
                        ratio = _ratio(truths[n, i] - value[kind, i], bonus[kind, i])
                        seen.worst[row, kind] = max(seen.worst[row, kind], ratio)
                        if learned.pulls[i] >= 2.0:
                            seen.used[row, kind] = max(seen.used[row, kind], ratio)
                        if marked and ratio > 1.0:
                            seen.failed[row, place, kind] += 1
                    if marked and n == row % users:
                        for which in range(2):
                            i = best[n] if which == 0 else (row // users) % arms
                            seen.bonus[row, place, which, kind] = bonus[kind, i]
                            seen.error[row, place, which, kind] = abs(truths[n, i] - value[kind, i])
                first = 0 if plan.protocol == ALL else blocks[n] * size
                arm = _choose(plan.choice, value, bonus, learned.pulls, first, size, scores, policy_stream)
                overall = draw(rewards[n], stated, arm, n, means, truth, numbers, True, stream, spare, dims)
                learn_user(learned, n, rewards[n, :objectives], overall, stated, rules.omega, gain)
                chosen[n] = arm
            # Every user chose from the arms as they stood at the round's start.
            for n in range(users):
                learn_arm(learned, chosen[n], rewards[n, :objectives])
            if marked:
                place += 1


@cache
def watching_loop(objectives: int) -> Any:
    """Return the loop compiled for this number of objectives."""
    floats = [types.Array(types.float64, axes, "C") for axes in range(5)]
    whole, indices = types.int64, types.Array(types.int64, 1, "C")
    seen = (floats[2], floats[2], floats[1], floats[1], types.Array(types.int64, 3, "C"), floats[4], floats[4])
    signature = types.void(
        types.FunctionType(instance_signature(objectives)),
        types.FunctionType(draw_signature(objectives)),
        types.uint64,
        whole,
        whole,
        types.NamedUniTuple(whole, len(Plan._fields), Plan),
        types.NamedUniTuple(types.float64, len(Rules._fields), Rules),
        floats[1],
        floats[1],
        indices,
        types.NamedTuple(seen, Seen),
        numba.typeof(dimensions(objectives)),
    )
    return compile_for(_watch_trials, signature)
