"""From a feedback as it came to the numbers that are summed, and to what was learned from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.store.base import FeedbackGiven, Setup


class Scales:
    """Normalises feedback by the objectives' scales."""

    def __init__(self, setup: Setup) -> None:
        self.names = tuple(objective.name for objective in setup.objectives)
        self._scales = {
            objective.name: (place, objective.low, objective.high - objective.low, objective.lower_is_better)
            for place, objective in enumerate((*setup.objectives, setup.overall))
        }
        self._overall = self._scales[setup.overall.name]
        _, lows, spans, turned = zip(*self._scales.values(), strict=True)
        self._lows, self._spans, self._turned = np.array(lows), np.array(spans), np.array(turned)
        self._weights = {name: len(self.names) + 1 + place for place, name in enumerate(self.names)}
        self._learned: dict[tuple[tuple[str, ...], bool, bool, bool], tuple[str, ...]] = {}
        # Filled and handed to a kernel again and again: to fill a view is five times as fast as to build an array.
        values: Any = np.full(2 * len(self.names) + 1, math.nan)
        self._values: Floats = values
        blank: Any = values.copy()
        self._view: Any = memoryview(values)
        self._blank: Any = memoryview(blank)

    def values(self, event: FeedbackGiven) -> Floats:
        """Return (r₁ … r_D, g, c₁ … c_D), NaN for what was not given; the next call fills the same array."""
        view, scales = self._view, self._scales
        view[:] = self._blank
        for name, value in event.rewards.items():
            try:
                place, low, span, turned = scales[name]
            except KeyError:  # an objective of before
                continue
            share = (value - low) / span
            view[place] = 1.0 - share if turned else share
        if event.overall is not None:
            place, low, span, turned = self._overall
            share = (event.overall - low) / span
            view[place] = 1.0 - share if turned else share
        if event.preference is not None:
            for name, value in event.preference.items():
                if name in self._weights:
                    view[self._weights[name]] = value
        return self._values

    def normalised(self, scores: Floats) -> Floats:
        """Return rows of (r₁ … r_D, g), given as they came, as `values` would."""
        shares: Floats = (scores - self._lows) / self._spans
        shares[:, self._turned] = 1.0 - shares[:, self._turned]
        return shares

    def sums(self, name: str, count: float, total: float, squares: float) -> tuple[float, float, float]:
        """Return how many scores of an objective there are, their sum and squares, normalised from raw ones."""
        _, low, span, turned = self._scales[name]
        slope, start = (-1.0 / span, 1.0 + low / span) if turned else (1.0 / span, -low / span)
        return (
            count,
            start * count + slope * total,
            start * start * count + 2.0 * start * slope * total + slope * slope * squares,
        )

    def raw_sums(self, name: str, count: float, total: float, squares: float) -> tuple[float, float, float]:
        """Return the same the other way round."""
        _, low, span, turned = self._scales[name]
        slope, start = (-span, low + span) if turned else (span, low)
        return (
            count,
            start * count + slope * total,
            start * start * count + 2.0 * start * slope * total + slope * slope * squares,
        )

    def learned(self, event: FeedbackGiven) -> tuple[str, ...]:
        """Say what a recorded feedback teaches: of the arm, objective by objective, and of the user's preference.

        An overall score teaches beside an incomplete reward as well: what was not given is foretold from the arm's
        means. An erased user has no preference to learn.
        """
        given = (tuple(event.rewards), event.overall is None, event.preference is None, event.user is None)
        known = self._learned.get(given)
        if known is None:
            lessons = [f"arm: {name}" for name in self.names if name in event.rewards]
            if event.overall is not None:
                lessons.append("arm: overall")
            if event.user is not None and not (event.overall is None and event.preference is None):
                lessons.append("preference")
            if len(self._learned) > 10_000:  # objectives come in any order, and there are many orders
                self._learned.clear()
            known = self._learned[given] = tuple(lessons)
        return known
