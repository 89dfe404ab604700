"""The laws of the sums, what they hold by definition, and the sentences that meet bad input."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pamo.errors import InputError
from pamo.estimators import overall_means
from pamo.statistics import ArmStatistics, UserStatistics
from tests.feedback import Feedback, arms_of, batches, users_of

Sums = ArmStatistics | UserStatistics
FOLDS = pytest.mark.parametrize("fold", [arms_of, users_of])


def assert_same(left: Sums, right: Sums, *, exactly: bool = False) -> None:
    assert type(left) is type(right)
    for field in fields(left):
        ours, theirs = getattr(left, field.name), getattr(right, field.name)
        scale = max(1.0, float(np.abs(ours).max(initial=0.0)))
        np.testing.assert_allclose(ours / scale, theirs / scale, rtol=0.0, atol=0.0 if exactly else 1e-9, strict=True)


# ---- the laws


@FOLDS
@given(batch=batches())
def test_no_feedback_is_the_identity(fold: Any, batch: Feedback) -> None:
    sums, none = fold(batch), fold(batch.part(slice(0, 0)))
    assert all((getattr(none, field.name) == 0.0).all() for field in fields(none))
    assert_same(sums + none, sums, exactly=True)
    assert_same(none + sums, sums, exactly=True)


@FOLDS
@given(batch=batches(), cuts=st.tuples(st.integers(0, 12), st.integers(0, 12)))
def test_merging_is_associative_and_commutative(fold: Any, batch: Feedback, cuts: tuple[int, int]) -> None:
    low, high = sorted(cuts)
    a, b, c = (fold(batch.part(part)) for part in (slice(0, low), slice(low, high), slice(high, None)))
    assert_same((a + b) + c, a + (b + c))
    assert_same(a + b, b + a, exactly=True)
    assert_same(a.merge(b), a + b, exactly=True)


@FOLDS
@given(batch=batches(), cut=st.integers(0, 12))
def test_the_merge_of_parts_is_the_whole(fold: Any, batch: Feedback, cut: int) -> None:
    assert_same(fold(batch.part(slice(0, cut))) + fold(batch.part(slice(cut, None))), fold(batch))


@FOLDS
@given(batch=batches(), data=st.data())
def test_the_order_of_feedback_is_nothing(fold: Any, batch: Feedback, data: st.DataObject) -> None:
    order = np.array(data.draw(st.permutations(range(len(batch.row)))), dtype=np.int64)
    assert_same(fold(batch.part(order)), fold(batch))


@FOLDS
@given(batch=batches())
def test_one_by_one_is_the_same_as_at_once(fold: Any, batch: Feedback) -> None:
    total = fold(batch.part(slice(0, 0)))
    for k in range(len(batch.row)):
        if isinstance(total, ArmStatistics):
            total.observe(int(batch.row[k]), batch.reward[k], float(batch.overall[k]))
        else:
            total.observe(int(batch.row[k]), batch.reward[k], float(batch.overall[k]), batch.preference[k])
    assert_same(total, fold(batch), exactly=True)


@FOLDS
@given(batch=batches())
def test_merging_leaves_its_parts_alone_and_a_copy_stands_by_itself(fold: Any, batch: Feedback) -> None:
    sums, before = fold(batch), fold(batch)
    copy = sums.copy()
    copy.observe(0, np.ones(batch.objectives), 1.0)
    merged = sums + sums
    merged.observe(0, np.ones(batch.objectives), 1.0)
    assert_same(sums, before, exactly=True)


# ---- what the sums hold, against the definitions


@given(batch=batches())
def test_arms_hold_what_the_design_says(batch: Feedback) -> None:
    sums = arms_of(batch)
    for arm in range(batch.rows):
        mine = batch.part(np.flatnonzero(batch.row == arm))
        complete = ~np.isnan(mine.reward).any(axis=1)
        scored = complete & ~np.isnan(mine.overall)
        whole, known = mine.reward[complete], mine.reward[scored]
        moment = np.zeros((batch.objectives + 2, batch.objectives + 2))
        ones = np.column_stack([np.ones(len(whole)), whole])
        moment[:-1, :-1] = ones.T @ ones
        moment[-1, :-1] = moment[:-1, -1] = mine.overall[scored] @ np.column_stack([np.ones(len(known)), known])
        moment[-1, -1] = mine.overall[scored] @ mine.overall[scored]
        np.testing.assert_allclose(sums.moments[arm], moment, rtol=1e-9, atol=1e-9)
        assert sums.pulls[arm] == complete.sum()
        assert sums.overall_pulls[arm] == scored.sum()
        np.testing.assert_allclose(sums.reward_sum[arm], whole.sum(axis=0), atol=1e-9)
        np.testing.assert_allclose(sums.overall_sum[arm], mine.overall[scored].sum(), atol=1e-9)
        np.testing.assert_allclose(sums.objective_count[arm], (~np.isnan(mine.reward)).sum(axis=0))
        np.testing.assert_allclose(sums.objective_sum[arm], np.nansum(mine.reward, axis=0), atol=1e-9)
        np.testing.assert_allclose(sums.objective_square[arm], np.nansum(mine.reward**2, axis=0), atol=1e-9)


@given(batch=batches())
def test_users_hold_what_the_design_says(batch: Feedback) -> None:
    sums = users_of(batch)
    for user in range(batch.rows):
        mine = batch.part(np.flatnonzero(batch.row == user))
        whole = ~np.isnan(mine.reward).any(axis=1) & ~np.isnan(mine.overall)
        z = np.column_stack([np.ones(whole.sum()), mine.reward[whole], mine.overall[whole]])
        squares = (mine.reward[whole] ** 2).sum(axis=1)
        w = np.divide(1.0, squares, out=np.zeros_like(squares), where=squares > 0)
        np.testing.assert_allclose(sums.plain[user], z.T @ z, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(sums.weighted[user], (z.T * w) @ z, rtol=1e-9, atol=1e-9)
        assert sums.rounds[user] == len(mine.row)
        stated = mine.preference[~np.isnan(mine.preference).any(axis=1)]
        assert sums.stated_count[user] == len(stated)
        np.testing.assert_allclose(sums.stated_sum[user], stated.sum(axis=0), atol=1e-9)
        np.testing.assert_allclose(sums.stated_square[user], (stated**2).sum(axis=0), atol=1e-9)


def test_a_reward_of_zero_counts_as_a_pull_and_a_round_but_has_no_direction() -> None:
    arms, users = ArmStatistics.zeros(arms=1, objectives=2), UserStatistics.zeros(users=1, objectives=2)
    arms.observe(0, [0.0, 0.0], overall=0.0)
    users.observe(0, [0.0, 0.0], overall=0.0)
    assert arms.pulls.tolist() == [1.0]
    assert users.rounds.tolist() == [1.0]
    assert users.plain[0, 0, 0] == 1.0
    assert not users.weighted.any()


@pytest.mark.parametrize("size", [1e-155, 1e-160, 5e-324])
def test_a_reward_too_small_to_have_a_weight_does_not_poison_the_sums(size: float) -> None:
    users = UserStatistics.zeros(users=1, objectives=2)
    users.observe([0, 0], [[size, 0.0], [0.5, 0.5]], overall=[size, 0.5])
    assert np.isfinite(users.weighted).all()
    np.testing.assert_allclose(users.weighted[0, 1:3, 1:3], 0.5)


def test_an_overall_score_that_was_not_given_does_not_pull_the_mean_down() -> None:
    arms = ArmStatistics.zeros(arms=1, objectives=1)
    arms.observe([0, 0], [[0.5], [0.7]], overall=[0.8, math.nan])
    arms.observe(0, [0.6])
    assert overall_means(arms).tolist() == [0.8]
    assert arms.pulls.tolist() == [3.0]


# ---- bad input


ARMS = ArmStatistics.zeros(arms=2, objectives=3)
USERS = UserStatistics.zeros(users=2, objectives=3)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: ArmStatistics.zeros(arms=0, objectives=3), "expected at least one of arms, got 0"),
        (lambda: UserStatistics.zeros(users=1, objectives=-1), "expected at least one of objectives, got -1"),
        (lambda: ARMS.observe(2, [0.1, 0.2, 0.3]), "expected arm from 0 to 1, got 2 … 2"),
        (lambda: ARMS.observe([0, -1], [[0.1, 0.2, 0.3]] * 2), "expected arm from 0 to 1, got -1 … 0"),
        (lambda: ARMS.observe(0.5, [0.1, 0.2, 0.3]), "expected arm as a whole number"),
        (lambda: ARMS.observe(True, [0.1, 0.2, 0.3]), "expected arm as a whole number"),
        (lambda: ARMS.observe(0, [0.1, 0.2]), r"expected reward of shape \(1, 3\), got \(2,\)"),
        (lambda: ARMS.observe([0, 1], [0.1, 0.2, 0.3]), r"expected reward of shape \(2, 3\), got \(3,\)"),
        (lambda: ARMS.observe(0, [0.1, 0.2, math.inf]), "expected finite numbers in reward, got infinity"),
        (lambda: ARMS.observe(0, [0.1, 0.2, 0.3], -math.inf), "expected finite numbers in overall, got infinity"),
        (lambda: ARMS.observe(0, [0.1, 0.2, 0.3], [0.1, 0.2]), r"expected overall of shape \(1,\), got \(2,\)"),
        (lambda: USERS.observe(5, [0.1, 0.2, 0.3]), "expected user from 0 to 1, got 5 … 5"),
        (
            lambda: USERS.observe(0, [0.1, 0.2, 0.3], preference=[0.1]),
            r"expected preference of shape \(1, 3\), got \(1,\)",
        ),
        (lambda: ARMS + ArmStatistics.zeros(arms=3, objectives=3), "statistics of one shape can be merged"),
        (lambda: USERS + UserStatistics.zeros(users=2, objectives=2), "statistics of one shape can be merged"),
    ],
)
def test_bad_input_meets_a_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call()


def test_refused_feedback_leaves_no_trace() -> None:
    users = UserStatistics.zeros(users=1, objectives=2)
    with pytest.raises(InputError):
        users.observe([0, 0], [[0.1, 0.2], [0.3, 0.4]], overall=[0.5, math.inf])
    assert not any(getattr(users, field.name).any() for field in fields(users))
