"""The difference of two groups: intervals that hold however often one looks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from campaigns.comparing import SAME, World, campaign, normal
from pamo.comparing import FEWEST, SMALLEST, Sums, difference, enough, fixed_size, still_needed

SHORT = [
    World("half in control", normal, 0.5, 5_000),
    World("people come back", normal, 0.5, 5_000, people=200),
    World("twenty variants", normal, 1 / 3, 5_000, variants=20),
]


def sums_of(values: object) -> Sums:
    found = np.asarray(values, dtype=float)
    return Sums(float(len(found)), float(found.sum()), float((found**2).sum()))


def test_of_experiments_without_a_difference_few_ever_say_there_is_one_and_others_find_theirs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert campaign(1000, seed=1, worlds=SHORT[:1]), capsys.readouterr().out
    assert campaign(300, seed=1, worlds=SHORT[1:2]), capsys.readouterr().out
    assert campaign(50, seed=1, worlds=SHORT[2:]), capsys.readouterr().out


@pytest.mark.parametrize(("fault", "world"), [("fixed", SHORT[0]), ("decisions", SHORT[1]), ("undivided", SHORT[2])])
def test_what_one_might_do_instead_is_found_out(fault: str, world: World) -> None:
    assert not campaign(50, seed=1, fault=fault, worlds=[world])
    assert all(one.decisions >= world.decisions for one in SAME)


def test_the_difference_is_that_of_the_means_on_any_scale_and_either_way_round() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(3.0, 2.0, 500), rng.normal(2.0, 1.0, 50)
    told = difference(sums_of(first), sums_of(second))
    assert told is not None
    assert told.excludes_zero
    assert told.estimate == pytest.approx(first.mean() - second.mean())
    assert told.low < told.estimate < told.high
    turned = difference(sums_of(-first), sums_of(-second))
    assert turned is not None
    assert (turned.low, turned.high) == pytest.approx((-told.high, -told.low))
    scaled = difference(sums_of(10 * first + 7), sums_of(10 * second + 7))
    assert scaled is not None
    assert (scaled.low, scaled.high) == pytest.approx((10 * told.low, 10 * told.high))
    halves = sums_of(first[:100]).plus(sums_of(first[100:]))
    again = difference(halves, sums_of(second))
    assert again is not None
    assert again == pytest.approx(told)


def test_nothing_is_said_of_too_few_or_of_values_that_are_all_the_same() -> None:
    few, many = sums_of(range(FEWEST - 1)), sums_of(range(1000))
    assert difference(few, many) is None
    assert difference(many, few) is None
    assert difference(sums_of([1.0] * 100), sums_of([1.0] * 100)) is None
    assert math.isnan(Sums().mean)
    assert math.isnan(sums_of([1.0]).variance)


@pytest.mark.parametrize("share", [0.5, 0.05])
@pytest.mark.parametrize("smallest", [SMALLEST, 0.05])
def test_as_many_as_are_still_needed_are_enough_and_no_fewer(share: float, smallest: float) -> None:
    more = still_needed(Sums(), Sums(), share, smallest)
    assert 1.0 < enough(smallest) / fixed_size(smallest) < 1.3
    for count, shows in ((more, True), (0.99 * more, False)):
        n, m = (1.0 - share) * count, share * count
        shift = smallest  # two groups of variance 1, whose means are as far apart as that
        told = difference(Sums(n, n * shift, n * shift**2 + n - 1.0), Sums(m, 0.0, m - 1.0), smallest)
        assert told is not None
        assert told.excludes_zero == shows
    assert still_needed(Sums((1.0 - share) * more), Sums(share * more), share, smallest) == 0
