"""What a user cares about, with intervals."""

from __future__ import annotations

import math

import numpy as np

from pamo.arrays import Floats
from pamo.engine.answers import Preference, Weight
from pamo.engine.fronts import NORMAL_95
from pamo.estimators import Estimate, regress
from pamo.priors import COUNT, Population
from pamo.statistics import UserStatistics

LEVEL = 0.95


def preference_of(
    user: str, names: tuple[str, ...], sums: UserStatistics, estimate: Estimate, population: Population
) -> Preference:
    """Return what is known of one user's preference: as stated where anything was, otherwise as learned."""
    rounds, stated = int(sums.rounds[0]), float(sums.stated_count[0])
    center: Floats
    if stated > 0:
        source, center = "stated", sums.stated_sum[0] / stated
        # The mean square of the weights stands for one more statement's variance: one statement alone has none to show.
        squares = np.maximum(sums.stated_square[0] - stated * center**2, 0.0) + float(np.mean(center**2))
        error = np.sqrt(squares / stated / stated)
    else:
        weights, inverse, noise = regress(sums, estimate, population)
        center, variance = weights[0], float(noise[0])
        source = "overall" if sums.plain[0, 0, 0] > 0 else "others"
        if population.numbers[COUNT] == 0.0:
            # Nothing is known of how much overall scores vary: as if it were over their whole scale.
            variance = 1.0
            source = "nothing" if source == "others" else source
        error = np.sqrt(variance * np.diagonal(inverse[0]))
    low, high = center - NORMAL_95 * error, center + NORMAL_95 * error
    if estimate.non_negative and not stated:
        low = np.maximum(low, 0.0)
    return Preference(
        user,
        rounds,
        source,
        LEVEL,
        {
            name: Weight(float(center[d]), float(low[d]), float(high[d]))
            for d, name in enumerate(names)
            if math.isfinite(center[d])
        },
    )
