"""One decision from the sums: the same kernels as in the simulator, over statistics that anybody may hold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pamo.compiling import dimensions
from pamo.errors import InputError
from pamo.estimators import Kind, overall_means, preferences, reward_means, ridge_gram
from pamo.policies.base import Arms, Floats, Policy, Run, Shape, Users, check_kernel
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
    stream: Stream | None = None,
) -> Floats:
    """Return the policy's score of each arm of the offer, for one user; the highest is the one to pull.

    offer: arm indices, by default all. horizon: the number of rounds, for the policies that need it.
    known: the true mean preferences, (users, D), for a policy that reads them. own: the statistics of this
    user's own pulls, for a policy that is `per_user`. stream: for policies that draw; by default one of seed 0.

    >>> from pamo.policies import create
    >>> arms, users = ArmStatistics.zeros(arms=2, objectives=2), UserStatistics.zeros(users=1, objectives=2)
    >>> arms.observe([0, 1], [[0.9, 0.1], [0.2, 0.4]], overall=[0.2, 0.3])
    >>> users.observe([0, 0], [[0.9, 0.1], [0.2, 0.4]], overall=[0.2, 0.3])
    >>> scores(create("greedy"), arms=arms, users=users).round(2).tolist()
    [0.21, 0.2]
    """
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
    estimate = policy.estimate(objectives)
    # A kernel reads one user's row: only that row is worked out.
    row = UserStatistics(**{name: array[user : user + 1] for name, array in users._arrays().items()})
    mine = None if known is None else np.atleast_2d(np.asarray(known, dtype=float))[user : user + 1]
    inverse: Floats = np.zeros((1, 1, 1))
    if estimate.kind == Kind.RIDGE:
        inverse = np.linalg.inv(ridge_gram(row, estimate)).astype(np.float64)
    mine_only = own if own is not None else ArmStatistics.zeros(arms=count, objectives=objectives)
    result = np.empty(len(offered))
    type(policy).kernel(  # by the class: a dispatcher read off an object is bound to it
        result,
        np.ascontiguousarray(offered, dtype=np.int64),
        0,
        int(row.rounds[0]) + 1,
        Arms(arms.pulls.copy(), 1.0 / np.sqrt(np.maximum(arms.pulls, 1.0)), reward_means(arms), overall_means(arms)),
        Users(
            preferences(row, estimate, mine),
            inverse,
            mine_only.pulls.copy()[None, :],
            overall_means(mine_only)[None, :],
        ),
        Run(
            np.array(policy.hyperparameters(shape), dtype=np.float64),
            stream if stream is not None else stream_for(0, 0, POLICY),
            np.empty((max(len(offered), objectives),) * 2),
        ),
        dimensions(objectives),
    )
    return result
