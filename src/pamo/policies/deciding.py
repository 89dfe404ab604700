"""One decision from the sums: the same kernels as in the simulator, over statistics that anybody may hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats, Ints
from pamo.compiling import dimensions
from pamo.errors import InputError
from pamo.estimators import (
    Kind,
    common_to,
    overall_means,
    preferences,
    regress,
    reward_means,
    reward_scatters,
    ridge_gram,
)
from pamo.policies.base import Arms, Policy, Run, Shape, SpreadArms, SpreadUsers, Users, check_kernel
from pamo.sharing import Population
from pamo.statistics import ArmStatistics, UserStatistics
from pamo.streams import POLICY, Stream, stream_for


def scores(
    policy: Policy,
    *,
    arms: ArmStatistics,
    users: UserStatistics,
    user: int = 0,
    offer: npt.ArrayLike | None = None,
    horizon: int | None = None,
    known: npt.ArrayLike | None = None,
    own: ArmStatistics | None = None,
    population: Population | None = None,
    stream: Stream | None = None,
) -> Floats:
    """Return the policy's score of each arm of the offer, for one user; the highest is the one to pull.

    offer: arm indices, by default all. horizon: the number of rounds, for the policies that need it.
    known: the true mean preferences, (users, D), for a policy that reads them. own: the statistics of this
    user's own pulls, for a policy that is `per_user`. population: what users have in common, for a policy that
    shares it; by default it is fitted to `users`. stream: for policies that draw; by default one of seed 0.

    >>> from pamo.policies import create
    >>> arms, users = ArmStatistics.zeros(arms=2, objectives=2), UserStatistics.zeros(users=1, objectives=2)
    >>> arms.observe([0, 1], [[0.9, 0.1], [0.2, 0.4]], overall=[0.2, 0.3])
    >>> users.observe([0, 0], [[0.9, 0.1], [0.2, 0.4]], overall=[0.2, 0.3])
    >>> scores(create("greedy"), arms=arms, users=users).round(2).tolist()
    [0.21, 0.2]
    """
    offered, arguments = _arguments(policy, arms, users, user, offer, horizon, known, own, population, stream)
    result = np.empty(len(offered))
    type(policy).kernel(result, *arguments)  # by the class: a dispatcher read off an object is bound to it
    return result


def propensities(
    policy: Policy,
    *,
    arms: ArmStatistics,
    users: UserStatistics,
    user: int = 0,
    offer: npt.ArrayLike | None = None,
    horizon: int | None = None,
    known: npt.ArrayLike | None = None,
    own: ArmStatistics | None = None,
    population: Population | None = None,
    stream: Stream | None = None,
    draws: int = 1000,
) -> Floats:
    """Return the probability with which the policy pulls each arm of the offer, for one user.

    A policy that draws is asked `draws` times, so that its probabilities are known to about 1/√draws. One that does
    not is certain, but for ties. The arguments are those of `scores`.

    >>> from pamo.policies import create
    >>> arms, users = ArmStatistics.zeros(arms=2, objectives=2), UserStatistics.zeros(users=1, objectives=2)
    >>> propensities(create("prts"), arms=arms, users=users).tolist()  # neither was pulled: one or the other
    [0.5, 0.5]
    """
    if draws < 1:
        raise InputError(f"expected at least one draw, got {draws}")
    offered, arguments = _arguments(policy, arms, users, user, offer, horizon, known, own, population, stream)
    result, total = np.empty(len(offered)), np.zeros(len(offered))
    run = arguments[5]
    for _ in range(draws):
        before = run.stream.copy()
        type(policy).kernel(result, *arguments)
        best = result == result.max()
        total += best / best.sum()
        if np.array_equal(before, run.stream):  # it draws nothing, and would say the same again
            return total
    return total / draws


def _arguments(
    policy: Policy,
    arms: ArmStatistics,
    users: UserStatistics,
    user: int,
    offer: npt.ArrayLike | None,
    horizon: int | None,
    known: npt.ArrayLike | None,
    own: ArmStatistics | None,
    population: Population | None,
    stream: Stream | None,
) -> tuple[Ints, tuple[Any, ...]]:
    """Check what was given, and return the offer and all that the kernel is called with, but for the scores."""
    check_kernel(policy)
    count, objectives = len(arms.pulls), arms.objectives
    if users.objectives != objectives:
        raise InputError(
            f"expected arms and users of one number of objectives, got {objectives} and {users.objectives}"
        )
    if not 0 <= user < len(users.rounds):
        raise InputError(f"expected user from 0 to {len(users.rounds) - 1}, got {user}")
    offered = np.arange(count) if offer is None else np.atleast_1d(np.asarray(offer))
    distinct = offered.dtype.kind in "iu" and len(set(offered.tolist())) == len(offered) > 0
    if not distinct or offered.min() < 0 or offered.max() >= count:
        raise InputError(f"expected an offer of distinct arms from 0 to {count - 1}, got {offered.tolist()}")
    if policy.per_user and own is None:
        raise InputError(
            f"{policy.id} reads the user's own pulls of each arm: pass own=ArmStatistics of that user alone"
        )
    shape = Shape(users=len(users.rounds), arms=count, objectives=objectives, horizon=horizon)
    places = np.ascontiguousarray(offered, dtype=np.int64)
    make = _wide if policy.reads_spread else _plain
    side = max(len(offered), objectives) + policy.reads_spread
    run = Run(
        np.array(policy.hyperparameters(shape), dtype=np.float64),
        stream if stream is not None else stream_for(0, 0, POLICY),
        np.empty((side, side)),
    )
    views = make(policy, arms, users, user, known, own, population)
    return places, (places, 0, int(users.rounds[user]) + 1, *views, run, dimensions(objectives))


def _row(users: UserStatistics, user: int) -> UserStatistics:
    """Return one user's sums alone: a kernel reads one row, and only that row is worked out."""
    return users.part(slice(user, user + 1))


def _mine(known: npt.ArrayLike | None, user: int) -> npt.ArrayLike | None:
    return None if known is None else np.atleast_2d(np.asarray(known, dtype=float))[user : user + 1]


def _plain(
    policy: Policy,
    arms: ArmStatistics,
    users: UserStatistics,
    user: int,
    known: npt.ArrayLike | None,
    own: ArmStatistics | None,
    population: Population | None,
) -> tuple[Arms, Users]:
    estimate, row = policy.estimate(arms.objectives), _row(users, user)
    inverse: Floats = np.zeros((1, 1, 1))
    if estimate.kind == Kind.RIDGE:
        inverse = np.linalg.inv(ridge_gram(row, estimate)).astype(np.float64)
    alone = own if own is not None else ArmStatistics.zeros(arms=len(arms.pulls), objectives=arms.objectives)
    return (
        Arms(arms.pulls.copy(), _widths(arms), reward_means(arms), overall_means(arms)),
        Users(
            preferences(row, estimate, _mine(known, user)),
            inverse,
            alone.pulls.copy()[None, :],
            overall_means(alone)[None, :],
        ),
    )


def _wide(
    policy: Policy,
    arms: ArmStatistics,
    users: UserStatistics,
    user: int,
    known: npt.ArrayLike | None,
    own: ArmStatistics | None,
    population: Population | None,
) -> tuple[SpreadArms, SpreadUsers]:
    estimate, row = policy.estimate(arms.objectives), _row(users, user)
    if estimate.kind == Kind.RIDGE:
        common = common_to(users, estimate) if population is None else population
        center, inverse, noise = regress(row, estimate, common)
    else:
        center, inverse, noise = preferences(row, estimate, _mine(known, user)), np.zeros((1, 1, 1)), np.zeros(1)
    return (
        SpreadArms(
            arms.pulls.copy(),
            _widths(arms),
            np.log(np.maximum(arms.pulls, 1.0)),
            reward_means(arms),
            reward_scatters(arms),
            np.array([np.maximum(arms.pulls - 1.0, 0.0).sum()]),
        ),
        SpreadUsers(center, inverse, noise),
    )


def _widths(arms: ArmStatistics) -> Floats:
    return np.asarray(1.0 / np.sqrt(np.maximum(arms.pulls, 1.0)))
