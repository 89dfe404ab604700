"""Dominance and fronts against brute force, by the paper's definition: greater in *every* objective."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pamo.compiling import dimensions
from pamo.errors import InputError
from pamo.pareto import dominates, front, pareto_gaps, shortfall

Points = list[list[float]]


@st.composite
def points(draw: st.DrawFn) -> Points:
    """Few different values, so that ties in single objectives and equal points are common."""
    objectives = draw(st.sampled_from([1, 2, 3, 9]))
    value = st.one_of(st.integers(-2, 2).map(float), st.floats(-1e6, 1e6))
    return draw(st.lists(st.lists(value, min_size=objectives, max_size=objectives), min_size=1, max_size=7))


def beats(u: list[float], v: list[float]) -> bool:
    return all(a > b for a, b in zip(u, v, strict=True))


@given(points())
def test_dominance_is_greater_in_every_objective(table: Points) -> None:
    for u in table:
        for v in table:
            assert dominates(u, v) == beats(u, v)


@given(points())
def test_the_front_is_what_nothing_dominates(table: Points) -> None:
    assert front(table).tolist() == [not any(beats(other, point) for other in table) for point in table]


@given(points())
def test_dominance_is_a_strict_order_and_the_front_is_never_empty(table: Points) -> None:
    assert front(table).any()
    for u in table:
        assert not dominates(u, u)
        for v in table:
            assert not (dominates(u, v) and dominates(v, u))
            assert all(dominates(u, w) for w in table if dominates(u, v) and dominates(v, w))


@given(points())
def test_the_gap_is_the_least_that_lifts_a_point_to_the_front(table: Points) -> None:
    gaps = pareto_gaps(table)
    array = np.array(table)
    for i, gap in enumerate(gaps):
        expected = max(float(np.min(other - array[i])) for other in array)
        assert gap == max(expected, 0.0)
        assert (gap == 0.0) == front(table)[i]
        if gap > 0.0:  # a little less than the gap is not enough, a little more is
            lower, higher = array.copy(), array.copy()
            lower[i] += gap * (1 - 1e-6)
            higher[i] += gap * (1 + 1e-6) + 1e-6
            assert front(higher)[i]
            assert not front(lower)[i] or gap < 1e-6


def test_a_shortfall_is_within_the_given_points_only() -> None:
    table = np.array([[0.9, 0.9], [0.1, 0.1], [0.4, 0.3]])
    assert shortfall(table, 1, 0, 3, dimensions(2)) == pytest.approx(0.8)
    assert shortfall(table, 1, 1, 3, dimensions(2)) == pytest.approx(0.2)
    assert shortfall(table, 0, 0, 3, dimensions(2)) == 0.0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: dominates([1.0], [1.0, 2.0]), r"two vectors of one length, got shapes \(1,\) and \(2,\)"),
        (lambda: dominates([[1.0]], [[2.0]]), "two vectors of one length"),
        (lambda: front([1.0, 2.0]), r"arms × objectives, got shape \(2,\)"),
        (lambda: front(np.empty((0, 2))), r"arms × objectives, got shape \(0, 2\)"),
        (lambda: front([[1.0, float("nan")]]), "finite points, got NaN or infinity"),
        (lambda: pareto_gaps([[1.0, float("inf")]]), "finite points, got NaN or infinity"),
    ],
)
def test_bad_input_meets_a_sentence(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call()
