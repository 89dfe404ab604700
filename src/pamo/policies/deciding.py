"""One decision from the sums: the same kernels as in the simulator, over statistics that anybody may hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats
from pamo.compiling import dimensions
from pamo.errors import InputError
from pamo.estimators import Kind, common_to, preferences, read_ridge
from pamo.policies.base import Keeping, Kept, Policy, Run, Shape, check_kernel, scratch_for
from pamo.priors import ArmsPrior, Population, arms_prior_of, expect
from pamo.reading import (
    PREFERENCE,
    clear_arms,
    common_numbers,
    padded,
    pending_at,
    read_arms,
    tile_height,
    user_numbers,
)
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
    sites: Floats | None = None,
    arms_prior: ArmsPrior | None = None,
    pending: npt.ArrayLike | None = None,
    kept: Kept | None = None,
    stream: Stream | None = None,
) -> Floats:
    """Return the policy's score of each arm of the offer, for one user; the highest is the one to pull.

    offer: arm indices, by default all. horizon: the number of rounds, for the policies that need it.
    known: the true mean preferences, (users, D), for a policy that reads them. own: the statistics of this user's own
    pulls, for a policy that is `per_user`. population: what users have in common, for a policy that shares it; by
    default it is fitted to `users`. sites: as in `pamo.estimators.read_ridge`. arms_prior: what arms have in common,
    for a policy that reads it; by default it is fitted to `arms`, without features. pending: each arm's pulls under
    way, likewise; by default none. kept: the rows of its own, for a policy that keeps any (`pamo.policies.kept_for`).
    stream: for policies that draw; by default one of seed 0.

    >>> from pamo.policies import create
    >>> arms, users = ArmStatistics.zeros(arms=2, objectives=2), UserStatistics.zeros(users=1, objectives=2)
    >>> arms.observe([0, 1], [[0.9, 0.1], [0.2, 0.4]], overall=[0.2, 0.3])
    >>> users.observe([0, 0], [[0.9, 0.1], [0.2, 0.4]], overall=[0.2, 0.3])
    >>> scores(create("greedy"), arms=arms, users=users).round(2).tolist()
    [0.21, 0.2]
    """
    result, *arguments = _arguments(
        policy, arms, users, user, offer, horizon, known, own, population, sites, arms_prior, pending, kept, stream
    )
    type(policy).kernel(result, *arguments)  # by the class: a dispatcher read off an object is bound to it
    return np.array(result[: arguments[0]])


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
    sites: Floats | None = None,
    arms_prior: ArmsPrior | None = None,
    pending: npt.ArrayLike | None = None,
    kept: Kept | None = None,
    stream: Stream | None = None,
    draws: int = 1000,
) -> Floats:
    """Return the probability with which the policy pulls each arm of the offer, for one user.

    A policy that draws is asked `draws` times, so that its probabilities are known to about 1/√draws. One that does
    not is certain, but for ties. The arguments are those of `scores`.

    >>> from pamo.policies import create
    >>> arms, users = ArmStatistics.zeros(arms=2, objectives=2), UserStatistics.zeros(users=1, objectives=2)
    >>> propensities(create("prts"), arms=arms, users=users).round(1).tolist()  # neither was pulled: one or the other
    [0.5, 0.5]
    """
    if draws < 1:
        raise InputError(f"expected at least one draw, got {draws}")
    result, *arguments = _arguments(
        policy, arms, users, user, offer, horizon, known, own, population, sites, arms_prior, pending, kept, stream
    )
    offered, run = arguments[0], arguments[5]
    total = np.zeros(offered)
    for _ in range(draws):
        before = run.stream.copy()
        type(policy).kernel(result, *arguments)
        best = result[:offered] == result[:offered].max()
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
    sites: Floats | None,
    arms_prior: ArmsPrior | None,
    pending: npt.ArrayLike | None,
    kept: Kept | None,
    stream: Stream | None,
) -> tuple[Any, ...]:
    """Check what was given, and return all that the kernel is called with, from room for the scores on."""
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
    everything, common = np.empty((tile_height(objectives), count)), np.empty(common_numbers(objectives))
    dims, chosen = dimensions(objectives), offered.astype(np.int64)
    read_arms(everything, arms.rows, common, objectives)
    if policy.reads_spread:
        expect(everything, common, arms_prior_of(arms) if arms_prior is None else arms_prior)
        everything[pending_at(objectives)] = 0.0 if pending is None else pending
    if policy.per_user and own is not None:
        read_arms(everything, own.rows, np.empty_like(common), objectives)
    tile = np.empty((len(everything), padded(len(chosen))))
    clear_arms(tile)
    tile[:, : len(chosen)] = everything[:, chosen]
    t = int(users.rounds[user]) + 1
    run: Run | Keeping = Run(
        np.array(policy.hyperparameters(shape), dtype=np.float64),
        stream if stream is not None else stream_for(0, 0, POLICY),
        np.empty(scratch_for(len(chosen), objectives)),
    )
    if policy.remember is not None:
        if kept is None:
            raise InputError(
                f"{policy.id} keeps rows of its own, which no statistics hold: pass kept=pamo.policies.kept_for(…)"
            )
        run = Keeping(run.hyperparameters, run.stream, run.scratch, kept, t, user, chosen)
    read = _read_user(policy, users, user, known, population, sites)
    return np.empty(tile.shape[1]), len(chosen), t, tile, read, common, run, dims


def _read_user(
    policy: Policy,
    users: UserStatistics,
    user: int,
    known: npt.ArrayLike | None,
    population: Population | None,
    sites: Floats | None,
) -> Floats:
    """Return what the kernel reads of one user: only that user's row is worked out."""
    objectives, row = users.objectives, users.part(slice(user, user + 1))
    estimate = policy.estimate(objectives)
    if estimate.kind == Kind.RIDGE:
        common = common_to(users, estimate) if population is None else population
        return read_ridge(row, estimate, common, None if sites is None else sites[user : user + 1]).ravel()
    read = np.zeros(user_numbers(objectives))
    mine = None if known is None else np.atleast_2d(np.asarray(known, dtype=float))[user : user + 1]
    read[PREFERENCE : PREFERENCE + objectives] = preferences(row, estimate, mine)[0]
    return read
