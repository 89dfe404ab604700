"""What a real shop sends, in any environment: offers of any subset, changes, untold and late feedback, features.

The loop and the step-by-step trial draw all of it by the kernels that stand here, each purpose from a stream of its
own: whoever hides scores, or has feedback come late, meets the rewards that would have come otherwise.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types

from pamo.arrays import Floats, Ints
from pamo.compiling import count_of, kernel
from pamo.streams import Stream, below, normal, uniform


class Live(NamedTuple):
    """The settings by which an environment is more than one truth, told at once and in full; as kernels read them."""

    offered: int
    """Arms in an offer that is any subset of all arms; 0 where a protocol gives out blocks."""
    every: int
    """Rounds from one change to the next; 0 where nothing changes."""
    drifting: bool
    changing_users: float
    changing_arms: float
    missing: float
    untold: int
    delay: int
    features: int
    explained: float
    workers: int
    """Who serve a part of the users each."""
    merge_every: int
    """Rounds from one merge of what they know of the arms to the next."""


LIVE_TYPE = types.NamedTuple(
    (types.int64,) * 2
    + (types.boolean,)
    + (types.float64,) * 3
    + (types.int64,) * 3
    + (types.float64,)
    + (types.int64,) * 2,
    Live,
)


@kernel
def draw_offer(offer: Ints, order: Ints, stream: Stream) -> None:
    """Write arms drawn without replacement; `order` holds all arms, in any order, and is left in another."""
    for j in range(len(offer)):
        other = j + below(stream, len(order) - j)
        order[j], order[other] = order[other], order[j]
        offer[j] = order[j]


@kernel
def begins(live: Live, t: int) -> bool:
    """Tell whether new truths are drawn before round t: for a drift they are where it goes to."""
    return live.every > 0 and (t - 1) % live.every == 0 and (t > 1 or live.drifting)


@kernel
def drift(table: Floats, step: Floats, live: Live, t: int) -> None:
    """Take a round's step of a drift, if there is one, before new truths are drawn for round t."""
    if live.drifting and t > 1:
        for row in range(len(table)):
            for d in range(table.shape[1]):
                table[row, d] += step[row, d]


@kernel
def turn(table: Floats, fresh: Floats, share: float, live: Live, stream: Stream) -> None:
    """Change true means, of arms or of users, to fresh ones: each row with the chance `share`.

    Of a drift, `fresh` becomes each round's step, so that after `every` of them a row is what was drawn for it.
    """
    for row in range(len(table)):
        moves = uniform(stream) < share
        for d in range(table.shape[1]):
            if live.drifting:
                fresh[row, d] = (fresh[row, d] - table[row, d]) / live.every if moves else 0.0
            elif moves:
                table[row, d] = fresh[row, d]


@kernel
def hide(values: Floats, live: Live, stream: Stream, dims: Any) -> None:
    """Make NaN of the scores that are not told: each with the chance `missing`, the last `untold` of them always."""
    objectives = count_of(dims)
    for d in range(objectives):
        if uniform(stream) < live.missing or d >= objectives - live.untold:
            values[d] = np.nan


@kernel
def write_features(features: Floats, means: Floats, explained: float, stream: Stream) -> None:
    """Write arms' features, (arms, F), that together explain this share of the variance of each objective's means.

    A feature tells of one objective, in turn, with noise. m of them that each explain ρ explain mρ/(1 + (m−1)ρ).
    """
    (arms, objectives), count = means.shape, features.shape[1]
    for f in range(count):
        d, several = f % objectives, count // objectives + (1 if f % objectives < count % objectives else 0)
        share = explained / (several - (several - 1) * explained)
        mean, square = 0.0, 0.0
        for i in range(arms):
            mean += means[i, d] / arms
        for i in range(arms):
            away = means[i, d] - mean
            square += away * away / arms
        scale = math.sqrt(share / square) if square > 0.0 else 0.0
        for i in range(arms):
            features[i, f] = scale * (means[i, d] - mean) + math.sqrt(1.0 - share) * normal(stream)
