"""Watch a policy's confidence statements while it runs: does c̄ lie in the ellipsoid, is every score an upper bound?

A policy never sees the truth, so an observer looks on in the very trials that `pamo.simulate` plays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats, Ints
from pamo.compiling import around, count_of, inlined
from pamo.environments.base import Environment
from pamo.errors import InputError
from pamo.estimators import Kind
from pamo.policies.base import Policy, Run, Shape
from pamo.reading import PREFERENCE, inverse_at, padded
from pamo.rows import pair, triangle
from pamo.simulation.cpu import Observer, observe
from pamo.simulation.learning import TrialPlan
from pamo.simulation.loop import Moment, Watched
from pamo.words import row_of

_RADII, _HYPERPARAMETERS, _NUMBERS = range(3)
"""Places in the observer's numbers: how many radii and hyperparameters there are. Then come the hyperparameters, for
each round its place among the marks or -1, and each radius in each round."""


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
def _distance(user: Floats, truth: Floats, room: Floats, dims: Any) -> float:
    """‖ĉ − c̄‖ in V: with V⁻¹ = L·Lᵀ, which the loop keeps, it is ‖L⁻¹(ĉ − c̄)‖. room: for L, and then L⁻¹(ĉ − c̄)."""
    objectives, square = count_of(dims), 0.0
    inverse, solved = inverse_at(objectives), triangle(objectives)
    for d in range(objectives):
        left = user[PREFERENCE + d] - truth[d]
        for e in range(d + 1):
            entry = user[inverse + pair(d, e)]
            for k in range(e):
                entry -= room[pair(d, k)] * room[pair(e, k)]
            if e < d:
                entry /= room[pair(e, e)]
                left -= entry * room[solved + e]
            else:
                entry = math.sqrt(entry)
            room[pair(d, e)] = entry
        left /= room[pair(d, d)]
        room[solved + d] = left
        square += left * left
    return math.sqrt(square)


@cache
def _observing(kernel: Any) -> Any:
    """Return the observer of a policy with this kernel."""

    def look(moment: Moment, watched: Watched, plan: TrialPlan, dims: Any) -> None:
        numbers, notes, t = watched.numbers, watched.notes[moment.trial], moment.t
        radii, marks_at = int(numbers[_RADII]), _NUMBERS + int(numbers[_HYPERPARAMETERS])
        own, first_radius = numbers[_NUMBERS:marks_at], marks_at + plan.rounds
        objectives, size, width = count_of(dims), plan.offer_size, moment.arms.shape[2]
        scores, factor = watched.room[:width], watched.room[width : width + triangle(objectives) + objectives]
        rest = watched.room[width + len(factor) :]
        scratch = rest.reshape((objectives + 1, len(rest) // (objectives + 1)))
        run = Run(own, scratch[0, :4].view(np.uint64), scratch)  # those who are watched draw nothing
        distance, margin = 0.0, np.inf
        for n in range(plan.users):
            user = row_of(moment.users.read, moment.first + n)
            distance = max(distance, _distance(user, moment.truth[n], factor, dims))
            # Lemma 3 is about every arm, so that all are scored, block by block.
            for block in range(len(moment.arms)):
                kernel(scores, size, t, moment.arms[block], user, moment.common, run, dims)
                for j in range(size):
                    value = 0.0
                    for d in range(objectives):
                        value += moment.truth[n, d] * moment.means[block * size + j, d]
                    margin = min(margin, scores[j] - value)
        for each in range(radii):
            radius = numbers[first_radius + each * plan.rounds + t - 1]
            if distance > radius:
                notes[radii + each] = t
            if radius > 0.0:  # the experiments' radius is 0 in round 1, and nothing lies within that
                notes[each] = max(notes[each], distance / radius)
        if margin < 0.0:
            notes[2 * radii] = t
        place = int(numbers[marks_at + t - 1])
        if place >= 0:
            notes[2 * radii + 1 + 2 * place] = distance
            notes[2 * radii + 2 + 2 * place] = margin

    return around(look, kernel)


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
    shape = Shape(environment.users, environment.arm_count, environment.objectives, rounds)
    hyperparameters = policy.hyperparameters(shape)
    width, height = padded(environment.offer_size), environment.objectives + 1
    places = np.full(rounds, -1)
    places[noted - 1] = np.arange(len(noted))
    numbers = [[len(table), len(hyperparameters)], hyperparameters, places, table.ravel()]
    observer = Observer(
        kernel=_observing(type(policy).kernel),
        numbers=np.concatenate([np.asarray(part, dtype=np.float64) for part in numbers]),
        width=2 * len(table) + 1 + 2 * len(noted),
        room=width + triangle(environment.objectives) + environment.objectives + height * max(width, height),
        rows=False,
    )
    notes, records = observe(
        policy,
        environment,
        observer,
        rounds=rounds,
        trials=trials,
        seed=seed,
        threads=threads,
        progress=progress,
    )
    worst, outside, below, marked = np.split(notes, np.cumsum([len(table), len(table), 1]), axis=1)
    return Seen(
        distance=marked[:, 0::2],
        margin=marked[:, 1::2],
        worst=worst,
        last_outside=outside.astype(np.int64),
        last_below=below[:, 0].astype(np.int64),
        regret_by_user=records.regret_by_user[:, -1],
    )
