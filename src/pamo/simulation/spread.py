"""What the trial loop keeps and learns: for most kernels little, for those that read how much rewards vary a lot more.

The loop is written once and compiled twice: for kernels of `Arms` and `Users` with `spread` None, and for those of
`SpreadArms` and `SpreadUsers` with `plain` None. Numba drops what stands under `if … is not None` for a None before it
looks at types, so that each of the two keeps and learns only its own.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types

from pamo.arrays import Floats
from pamo.compiling import count_of, inlined, kernel
from pamo.estimators import Kind, update_ridge
from pamo.policies.base import Arms, SpreadArms, SpreadUsers, Users
from pamo.rows import LEAST_SQUARE
from pamo.sharing import (
    PLAIN,
    Population,
    add_moments,
    fit_population,
    noise_of,
    solve_user,
    start_population,
    weight_of,
    write_inverse,
)

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
    newcomers: int
    """How many users, the last ones, come later."""
    arrival: int
    """The round in which they do."""


class Spread(NamedTuple):
    """How preferences are estimated for a policy that reads the spread; `pamo.sharing` says what the words mean."""

    shared: bool
    bias: bool
    elasticity: float
    """φ, or -1 to fit it."""
    non_negative: bool


class Sums(NamedTuple):
    """The users' moments, and what all users have in common."""

    plain: Floats
    weighted: Floats
    squares: Floats
    """What each user's regression leaves over, (users,)."""
    population: Population
    root: Floats
    room: Floats
    due: Floats
    """The round after which the prior is fitted next, (1,)."""


PLAN_TYPE = types.NamedTuple(
    (types.int64,) * 6 + (types.boolean,) + (types.float64,) * 3 + (types.boolean,) * 2 + (types.int64,) * 2, Plan
)
SPREAD_TYPE = types.NamedTuple((types.boolean, types.boolean, types.float64, types.boolean), Spread)


# ---- room for what is known


@inlined
def plain_views(plan: Plan, objectives: int) -> tuple[Arms, Users]:
    """Return room for what is known of arms and users."""
    own = (plan.users, plan.arms) if plan.per_user else (1, 1)
    arms = Arms(np.empty(plan.arms), np.empty(plan.arms), np.empty((plan.arms, objectives)), np.empty(plan.arms))
    users = Users(
        np.empty((plan.users, objectives)),
        np.empty((plan.users, objectives, objectives)),
        np.empty(own),
        np.empty(own),
    )
    return arms, users


@inlined
def wide_views(plan: Plan, objectives: int) -> tuple[SpreadArms, SpreadUsers, Sums]:
    """Return room for what is known of arms and users, and for the sums behind it."""
    arms = SpreadArms(
        np.empty(plan.arms),
        np.empty(plan.arms),
        np.empty(plan.arms),
        np.empty((plan.arms, objectives)),
        np.empty((plan.arms + 1, objectives, objectives)),
        np.empty(1),
    )
    users = SpreadUsers(
        np.empty((plan.users, objectives)), np.empty((plan.users, objectives, objectives)), np.empty(plan.users)
    )
    moments = (plan.users, objectives + 2, objectives + 2)
    sums = Sums(
        np.empty(moments),
        np.empty(moments),
        np.empty(plan.users),
        Population(np.empty(objectives), np.empty(8)),
        np.zeros((objectives, objectives)),
        np.empty((3, objectives)),
        np.empty(1),
    )
    return arms, users, sums


# ---- before the first round


@kernel
def forget(
    arms: Arms, users: Users, reward_sum: Floats, overall_sum: Floats, stated_sum: Floats, truth: Floats, plan: Plan
) -> None:
    """Set everything that is learned to the state before the first round (Alg. 1, initialization)."""
    arms.pulls.fill(0.0)
    arms.width.fill(1.0)
    arms.reward_mean.fill(0.0)
    arms.overall_mean.fill(0.0)
    reward_sum.fill(0.0)
    overall_sum.fill(0.0)
    users.pulls.fill(0.0)
    users.overall_mean.fill(0.0)
    stated_sum.fill(0.0)
    users.inverse_gram.fill(0.0)
    users.preference.fill(plan.first)
    for n in range(len(truth)):
        for d in range(truth.shape[1]):
            users.inverse_gram[n, d, d] = 1.0 / plan.ridge
            if plan.kind == _KNOWN:
                users.preference[n, d] = truth[n, d]


@kernel
def wide_forget(
    arms: SpreadArms,
    users: SpreadUsers,
    sums: Sums,
    reward_sum: Floats,
    stated_sum: Floats,
    truth: Floats,
    plan: Plan,
    dims: Any,
) -> None:
    """Set everything that is learned to the state before the first round."""
    arms.pulls.fill(0.0)
    arms.width.fill(1.0)
    arms.log_pulls.fill(0.0)
    arms.reward_mean.fill(0.0)
    reward_sum.fill(0.0)
    stated_sum.fill(0.0)
    arms.scatter.fill(0.0)
    arms.freedom.fill(0.0)
    sums.plain.fill(0.0)
    sums.weighted.fill(0.0)
    sums.squares.fill(0.0)
    sums.due[0] = 1.0
    start_population(sums.population, plan.first, plan.ridge, 1.0 / plan.noise)
    users.noise.fill(0.0)
    users.inverse_gram.fill(0.0)
    users.preference.fill(plan.first)
    for n in range(len(truth)):
        for d in range(count_of(dims)):
            users.inverse_gram[n, d, d] = 1.0 / plan.ridge
            if plan.kind == _KNOWN:
                users.preference[n, d] = truth[n, d]


# ---- what a user's round says of the user


@inlined
def learn_preference(
    users: Any,
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
        _learn_stated(users, n, t, stated, stated_sum, dims)


@inlined
def _learn_stated(users: Any, n: int, t: int, stated: Floats, stated_sum: Floats, dims: Any) -> None:
    for d in range(count_of(dims)):
        stated_sum[n, d] += stated[d]
        users.preference[n, d] = stated_sum[n, d] / t


@inlined
def wide_learn_preference(
    spread: Spread,
    users: SpreadUsers,
    sums: Sums,
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
    """Take user n's round into that user's sums, and into ĉ, V⁻¹ and σ̂², which are functions of them."""
    if plan.kind == _RIDGE:
        square = 0.0
        for d in range(count_of(dims)):
            square += reward[d] * reward[d]
        directed = square > LEAST_SQUARE  # w = 1/‖r‖² has no value at r = 0, which carries no direction
        add_moments(sums.plain, sums.weighted, n, 1.0 / square if directed else 0.0, reward, overall, dims)
        if spread.bias or spread.non_negative:
            estimate_preference(spread, users, sums, n, dims)
        else:
            if directed:  # the same in O(D²), while the prior stays as it is
                noise = 1.0 / weight_of(square, sums.population)
                sums.squares[n] += update_ridge(
                    users.inverse_gram, users.preference, n, reward, overall, noise, gain, dims
                )
            else:
                sums.squares[n] += sums.population.numbers[PLAIN] * overall * overall
            users.noise[n] = noise_of(sums.squares[n], sums.plain[n, 0, 0], sums.population)
    elif plan.kind == _STATED:
        _learn_stated(users, n, t, stated, stated_sum, dims)


@inlined
def estimate_preference(spread: Spread, users: SpreadUsers, sums: Sums, n: int, dims: Any) -> None:
    """Form user n's ĉ, V⁻¹ and σ̂² from the sums."""
    sums.squares[n] = solve_user(
        users.preference,
        n,
        sums.root,
        sums.plain,
        sums.weighted,
        n,
        sums.population,
        spread.non_negative,
        sums.room,
        dims,
    )
    write_inverse(users.inverse_gram, n, sums.root, dims)
    users.noise[n] = noise_of(sums.squares[n], sums.plain[n, 0, 0], sums.population)


# ---- what a pull says of the arm


@inlined
def learn_arm(
    arms: Any,
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


@inlined
def wide_learn_arm(arms: SpreadArms, arm: int, n: int, rewards: Floats, reward_sum: Floats, dims: Any) -> None:
    """Take user n's pull into the arm's sums, its scatter and the common one."""
    before = arms.pulls[arm]
    if before > 0.0:
        share = before / (before + 1.0)
        last = len(arms.pulls)
        for d in range(count_of(dims)):
            across = share * (rewards[n, d] - arms.reward_mean[arm, d])
            for e in range(d + 1):
                product = across * (rewards[n, e] - arms.reward_mean[arm, e])
                arms.scatter[arm, d, e] += product
                arms.scatter[last, d, e] += product
        arms.freedom[0] += 1.0
    arms.pulls[arm] = before + 1.0
    arms.log_pulls[arm] = math.log(before + 1.0)
    share = 1.0 / (before + 1.0)
    arms.width[arm] = math.sqrt(share)
    for d in range(count_of(dims)):
        reward_sum[arm, d] += rewards[n, d]
        arms.reward_mean[arm, d] = reward_sum[arm, d] * share


# ---- what a round says of everybody


def next_fit(t: int) -> int:
    """Return the round after which the prior is fitted again, when it was after round t: ever more rarely.

    >>> [next_fit(t) for t in (1, 2, 3, 4, 100)]
    [2, 4, 5, 7, 151]
    """
    return t + 1 + t // 2


_next_fit = inlined(next_fit)


@inlined
def learn_population(spread: Spread, users: SpreadUsers, sums: Sums, t: int, plan: Plan, dims: Any) -> None:
    """Fit the prior to all users' sums where it is time to, and every user's estimate to the prior."""
    if spread.shared and plan.kind == _RIDGE and t >= sums.due[0]:
        sums.due[0] = _next_fit(t)
        fit_population(sums.population, sums.plain, sums.weighted, spread.bias, spread.elasticity, dims)
        for n in range(plan.users):
            estimate_preference(spread, users, sums, n, dims)
