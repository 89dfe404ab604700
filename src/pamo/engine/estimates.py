"""What is known, with intervals: of the arms' means, and of what a user cares about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pamo.arrays import Floats
from pamo.contract.answers import Estimate, Preference, Weight
from pamo.estimators import Estimate as Learning
from pamo.estimators import preferences, regress, reward_means, student_t
from pamo.priors import COUNT, Population, without
from pamo.priors.foretelling import Foretelling, regressions, variances
from pamo.statistics import ArmStatistics, UserStatistics

NORMAL_95 = 1.959963984540054
"""Standard deviations to either side that hold 95 % of a normal distribution."""
PRIOR_PULLS = 10.0
"""How many pulls' worth the variance that all arms have in common counts for one of them, as in the policies."""
LEVEL = 0.95
"""The chance with which such an interval is to hold."""


@dataclass(slots=True, frozen=True)
class Known:
    """What is known of the arms' means, a row each: how often they were seen, the means, and their standard errors."""

    counts: Floats
    means: Floats
    errors: Floats

    def estimate(self, arm: int, objective: int) -> Estimate | None:
        """Return one mean with its interval, or None if it was never seen."""
        if self.counts[arm, objective] == 0.0:
            return None
        mean, room = float(self.means[arm, objective]), NORMAL_95 * float(self.errors[arm, objective])
        return Estimate(mean, mean - room, mean + room)

    def estimates(self, arm: int, names: Sequence[str]) -> dict[str, Estimate]:
        """Return an arm's means by objective, of those that were seen."""
        return {name: one for d, name in enumerate(names) if (one := self.estimate(arm, d)) is not None}


def known_of(sums: ArmStatistics) -> Known:
    """Return what the sums tell of each objective; in a last column the overall score.

    Means are taken to vary around what was seen as much as the arm's own rewards do, with ten pulls' worth of what all
    arms have in common.
    """
    last = sums.moments.shape[1] - 1
    scores = sums.moments[:, 0, last] / np.maximum(sums.overall_pulls, 1.0)
    counts = np.column_stack([sums.objective_count, sums.overall_pulls])
    means = np.column_stack([reward_means(sums), scores])
    squares = np.column_stack([sums.objective_square, sums.moments[:, last, last]])
    scatter = np.maximum(squares - counts * means**2, 0.0)
    freedom = np.maximum(counts - 1.0, 0.0)
    common = scatter.sum(axis=0) / np.maximum(freedom.sum(axis=0), 1.0)
    variance = (scatter + PRIOR_PULLS * common) / (freedom + PRIOR_PULLS)
    return Known(counts, means, np.sqrt(variance / np.maximum(counts, 1.0)))


def preference_of(
    user: str,
    names: tuple[str, ...],
    sums: UserStatistics,
    estimate: Learning,
    common: Foretelling | None,
    population: Population,
    offset: Floats | None,
) -> Preference:
    """Return what is known of one user's preference: as stated where anything was, otherwise as learned.

    common: what users have in common, None without any complete round. population: the same, as decisions go by it.
    offset: what the user's features tell, beyond which `common` is fitted; None where they tell nothing.
    """
    rounds, stated = int(sums.rounds[0]), float(sums.stated_count[0])
    center: Floats
    if stated > 0:
        source, center = "stated", sums.stated_sum[0] / stated
        # The mean square of the weights stands for one more statement's variance: one statement alone has none to show.
        squares = np.maximum(sums.stated_square[0] - stated * center**2, 0.0) + float(np.mean(center**2))
        room = NORMAL_95 * np.sqrt(squares / stated / stated)
    elif common is None and population.numbers[COUNT] > 0.0:  # all feedback is incomplete
        weights, inverse, noise = regress(sums, estimate, population)
        source, center = "overall" if sums.plain[0, 0, 0] > 0 else "others", weights[0]
        room = NORMAL_95 * np.sqrt(float(noise[0]) * np.diagonal(inverse[0]))
    elif common is None:
        # Nothing is known of how much overall scores vary: as if it were over their whole scale.
        source, center = "nothing", preferences(sums, estimate)[0]
        room = np.full(len(names), NORMAL_95 / math.sqrt(estimate.ridge))
    else:
        source = "overall" if sums.plain[0, 0, 0] > 0 else "others"
        told = np.zeros(len(names)) if offset is None else offset
        center = told + regressions(without(sums, told[None]), common)[0, 1:]
        variance, freedom = (each[0, 1:] for each in variances(sums, common))
        room = np.array([student_t(max(one, 2.0)) for one in freedom.tolist()]) * np.sqrt(variance)
    low, high = center - room, center + room
    if estimate.non_negative and not stated:
        center, low, high = (np.maximum(each, 0.0) for each in (center, low, high))
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
