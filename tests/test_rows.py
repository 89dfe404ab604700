"""The rows: their layout, lanes and strides, and the two ways to what kernels read, which agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pamo.arrays import Floats
from pamo.compiling import dimensions, kernel
from pamo.estimators import overall_means, reward_means, reward_scatters
from pamo.reading import (
    MEAN,
    OVERALL,
    PULLS,
    WIDTH,
    clear_arms,
    common_numbers,
    count_at,
    freedom_at,
    offset_at,
    offset_width_at,
    padded,
    pending_at,
    read_arms,
    scatter_at,
    step_arm,
    tile_height,
)
from pamo.rows import arm_width, observe_arms, observe_users, pair, stated_width, user_width
from pamo.statistics import ArmStatistics, UserStatistics
from pamo.words import log


@kernel
def step_all(arms: Floats, sums: Floats, common: Floats, places: Any, values: Floats, dims: Any) -> None:
    for k in range(len(places)):
        step_arm(arms, places[k], sums[places[k]], values[k], common, True, dims)


def pulls(objectives: int, arms: int = 5, count: int = 60) -> tuple[Any, Floats]:
    generator = np.random.default_rng(objectives)
    return generator.integers(0, arms - 1, count), generator.random((count, objectives + 1))


@pytest.mark.parametrize("objectives", [1, 3, 8, 11])
def test_a_step_for_each_pull_and_the_rows_at_once_say_the_same(objectives: int) -> None:
    places, values = pulls(objectives)
    dims, shape = dimensions(objectives), (tile_height(objectives), padded(5))
    stepped, common = np.empty(shape), np.zeros(common_numbers(objectives))
    clear_arms(stepped)
    step_all(stepped, np.zeros((5, objectives + 2)), common, places, values, dims)
    statistics = ArmStatistics.zeros(arms=5, objectives=objectives)
    statistics.observe(places, values[:, :-1], values[:, -1])
    read, together = np.empty(shape), np.empty_like(common)
    read_arms(read, statistics.rows, together, dims)
    np.testing.assert_allclose(stepped, read, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(common, together, rtol=1e-9, atol=1e-11)


def test_what_is_read_of_an_arm_is_what_the_estimators_say() -> None:
    places, values = pulls(3)
    statistics = ArmStatistics.zeros(arms=5, objectives=3)
    statistics.observe(places, values[:, :-1], values[:, -1])
    read, common = np.empty((tile_height(3), padded(5))), np.empty(common_numbers(3))
    read_arms(read, statistics.rows, common, dimensions(3))
    counts, scatter = np.bincount(places, minlength=5), reward_scatters(statistics)
    np.testing.assert_allclose(read[PULLS, :5], counts)
    np.testing.assert_allclose(read[WIDTH, :5], 1 / np.sqrt(np.maximum(counts, 1)))
    np.testing.assert_allclose(read[OVERALL, :5], overall_means(statistics))
    np.testing.assert_allclose(read[MEAN : MEAN + 3, :5].T, reward_means(statistics))
    for d in range(3):
        for e in range(d + 1):
            np.testing.assert_allclose(read[scatter_at(3) + pair(d, e), :5], scatter[:5, d, e], atol=1e-12)
            assert common[pair(d, e)] == pytest.approx(scatter[5, d, e])
    assert common[freedom_at(3)] == np.maximum(counts - 1, 0).sum()


def test_an_arm_says_how_many_pulls_gave_each_objective() -> None:
    statistics = ArmStatistics.zeros(arms=2, objectives=2)
    statistics.observe([0, 0, 1], [[0.2, 0.5], [np.nan, 0.4], [0.1, np.nan]])
    read, common = np.full((tile_height(2), padded(2)), 7.0), np.empty(common_numbers(2))
    read_arms(read, statistics.rows, common, dimensions(2))
    assert read[count_at(2) : count_at(2) + 2, :2].tolist() == [[1, 1], [2, 0]]
    for line in (pending_at(2), offset_at(2), offset_width_at(2)):
        assert not read[line].any()  # rows know of none of these


def test_rows_may_be_strided() -> None:
    places, values = pulls(3)
    preferences = np.full((len(places), 3), 0.5)
    rows, stated = np.zeros((5, user_width(3))), np.zeros((5, stated_width(3)))
    observe_users(rows, stated, places, values, preferences)
    lanes = [np.zeros((numbers, 8)) for numbers in (user_width(3), stated_width(3), arm_width(3))]
    observe_users(lanes[0].T, lanes[1].T, places, values, preferences)
    np.testing.assert_array_equal(lanes[0].T[:5], rows)
    np.testing.assert_array_equal(lanes[1].T[:5], stated)
    arms = np.zeros((5, arm_width(3)))
    observe_arms(arms, places, values)
    observe_arms(lanes[2].T, places, values)
    np.testing.assert_array_equal(lanes[2].T[:5], arms)


def test_every_number_of_a_row_has_a_name() -> None:
    """What the names of `verify` leave out would go unchecked."""
    for sums in (ArmStatistics.zeros(arms=1, objectives=3), UserStatistics.zeros(users=1, objectives=3)):
        for array in sums._arrays().values():
            for place in range(array.shape[1]):
                array[:] = 0.0
                array[0, place] = 1.0
                assert sum(bool(getattr(sums, name).any()) for name in sums.names) == 1
            array[:] = 0.0


def test_the_logarithm_that_vectorises_is_the_logarithm() -> None:
    numbers = np.concatenate(
        [np.geomspace(1e-300, 1e300, 2001), np.arange(1.0, 2000.0), 1.0 + np.geomspace(1e-12, 1, 99)]
    )
    np.testing.assert_allclose([log(x) for x in numbers], np.log(numbers), rtol=4e-16, atol=4e-16)
