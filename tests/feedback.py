"""Batches of feedback for Hypothesis: complete, partial, without an overall score, and of length 0."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from pamo.arrays import Floats
from pamo.statistics import ArmStatistics, UserStatistics


class Feedback(NamedTuple):
    """A batch of feedback: `row` is the arm or the user; NaN is what was not given."""

    rows: int
    objectives: int
    row: npt.NDArray[np.int64]
    reward: Floats
    overall: Floats
    preference: Floats

    def part(self, places: slice | npt.NDArray[np.int64]) -> Feedback:
        return self._replace(
            row=self.row[places],
            reward=self.reward[places],
            overall=self.overall[places],
            preference=self.preference[places],
        )


def numbers(*, missing: bool) -> st.SearchStrategy[float]:
    """Scores as they come: within a few orders of magnitude, exactly 0, or not given."""
    given_ones = st.floats(-100.0, 100.0).filter(lambda x: x == 0.0 or abs(x) > 1e-3)
    return st.one_of(given_ones, st.just(math.nan)) if missing else given_ones


@st.composite
def batches(draw: st.DrawFn, *, missing: bool = True, most: int = 12) -> Feedback:
    rows, objectives, count = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(0, most))
    value = numbers(missing=missing)
    flat = draw(st.lists(value, min_size=count * (2 * objectives + 1), max_size=count * (2 * objectives + 1)))
    table = np.array(flat, dtype=float).reshape(count, 2 * objectives + 1)
    reward = table[:, :objectives].copy()
    if count and draw(st.booleans()):
        reward[0] = 0.0  # no direction
    return Feedback(
        rows=rows,
        objectives=objectives,
        row=np.array(draw(st.lists(st.integers(0, rows - 1), min_size=count, max_size=count)), dtype=np.int64),
        reward=reward,
        overall=table[:, -1].copy(),
        preference=table[:, objectives:-1].copy(),
    )


def arms_of(batch: Feedback) -> ArmStatistics:
    sums = ArmStatistics.zeros(arms=batch.rows, objectives=batch.objectives)
    sums.observe(batch.row, batch.reward, batch.overall)
    return sums


def users_of(batch: Feedback) -> UserStatistics:
    sums = UserStatistics.zeros(users=batch.rows, objectives=batch.objectives)
    sums.observe(batch.row, batch.reward, batch.overall, batch.preference)
    return sums
