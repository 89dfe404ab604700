"""What is known of users before anything is seen of them: kept, checked, and the mean of their prior."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pamo import AsyncEngine, Engine
from pamo.errors import InputError
from pamo.estimators import Estimate, Kind, common_to
from pamo.priors import explained_by, without
from pamo.statistics import UserStatistics
from pamo.store import UserKnown
from pamo.store.maintenance import verify

NAMES = ("a", "b", "c")
MEANS = np.array([[0.9, 0.2, 0.3], [0.2, 0.9, 0.4], [0.3, 0.3, 0.9], [0.5, 0.5, 0.5]])
TASTES = {True: np.array([0.8, 0.1, 0.1]), False: np.array([0.1, 0.1, 0.8])}


def shop(**options: Any) -> Engine:
    engine = Engine(NAMES, user_features=["business: yes or no", "age", "town: word"], seed=1, **options)
    engine.add_arms(["0", "1", "2", "3"])
    return engine


def visit(engine: Engine, user: str, features: Any, taste: Any, draws: Any) -> bool:
    """Have a user come; return whether the arm was the best for them."""
    decision = engine.decide(user, features=features)
    arm = int(decision.arm)
    scores = np.clip(MEANS[arm] + 0.05 * draws.standard_normal(3), 0.0, 1.0)
    engine.feedback(decision, dict(zip(NAMES, scores.tolist(), strict=True)), float(taste @ scores))
    return arm == int(np.argmax(MEANS @ taste))


@pytest.mark.parametrize("told", [True, False])
def test_a_new_user_is_served_as_others_with_such_features_are(told: bool) -> None:
    draws, right = np.random.default_rng(1), []
    with shop() as engine:
        for user in range(60):
            business = bool(draws.random() < 0.5)
            features = {"business": business, "age": float(draws.uniform(20, 70)), "town": "here"} if told else None
            for turn in range(4):
                good = visit(engine, f"user-{user}", features if turn == 0 else None, TASTES[business], draws)
                if user >= 40 and turn == 0:
                    right.append(good)
        assert (engine.core.decider.prior.explained is not None) == told
        shown = []
        for business, taste in TASTES.items():  # what is told of somebody new is what decisions go by
            engine.decide(f"new-{business}", features={"business": business, "age": 40.0})
            weights = list(engine.preference(f"new-{business}").objectives.values())
            shown.append(np.argmax([one.weight for one in weights]) == np.argmax(taste))
            assert all(one.low <= true <= one.high for one, true in zip(weights, taste, strict=True))
        assert all(shown) == told
    assert np.mean(right) > 0.9 if told else np.mean(right) < 0.7


def test_of_several_requests_for_a_user_the_last_says_what_is_known() -> None:
    with shop() as engine:
        engine.decide("ann", features={"age": 40, "business": True})
        requests = [{"user": "ann", "features": {"age": age, "town": town}} for age, town in ((50, "here"), (40, None))]
        engine.decide_many([*requests, {"user": "bob", "features": {"age": 20}}])
        assert engine.store.known_of(["ann", "bob"]) == [{"age": 40.0, "business": True}, {"age": 20.0}]
        assert verify(engine.store).ok


EXTREMES = st.sampled_from([1e308, -1e308, 1e200, 5e-324, -1e-308, 0.0, 1.0, 40.0]) | st.floats(
    allow_nan=False, allow_infinity=False
)


@settings(max_examples=10)
@given(st.lists(EXTREMES, min_size=12, max_size=12), EXTREMES)
def test_features_of_any_size_leave_the_store_readable(ages: list[float], last: float) -> None:
    """What somebody says of a user may be nonsense; the propensity of a decision must not be."""
    draws = np.random.default_rng(1)
    with shop() as engine:
        for turn in range(3):
            for user, age in enumerate(ages):
                business = age > 1.0
                visit(engine, f"user-{user}", {"business": business, "age": age}, TASTES[business], draws)
            assert 0.0 < engine.decide(f"new-{turn}", features={"age": last}).propensity <= 1.0
        assert all(np.isfinite(one.weight) for one in engine.preference("user-1").objectives.values())
        assert verify(engine.store).ok


def test_features_count_no_further_than_they_were_seen() -> None:
    rows = np.random.default_rng(1)
    table = rows.uniform(20.0, 70.0, (200, 1))
    users = UserStatistics.zeros(users=200, objectives=2)
    for user, (age,) in enumerate(table):
        for _ in range(20):
            reward = rows.uniform(size=2)
            users.observe(user, reward, overall=float(reward @ [age / 70.0, 1.0 - age / 70.0]))
    explained = explained_by(users, table, common_to(users, Estimate(kind=Kind.RIDGE, shared=True)))
    assert explained is not None
    oldest, beyond, infinite = explained.offsets(np.array([[table.max()], [1000.0], [1e308]]))
    assert oldest.tolist() == beyond.tolist() == infinite.tolist()


def test_features_are_kept_until_they_change(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with shop(store=path) as engine:
        engine.decide("ann", features={"business": True, "age": 40})
        engine.decide("ann", features={"business": True})  # nothing new
        first, second, _ = engine.decide_many(
            [{"user": "ann", "features": {"age": None, "town": "here"}}, "bob", "ann"]
        )
        assert (first.user, second.user) == ("ann", "bob")
        known = {"business": True, "town": "here"}
        assert engine.store.known_of(["ann", "bob"]) == [known, {}]
        told = [event.features for _, event in engine.store.events() if isinstance(event, UserKnown)]
        assert told == [{"business": True, "age": 40.0}, {"age": None, "town": "here"}]
        assert engine.export_user("ann")["features"] == known
        again = engine.decide("ann", features={"age": 41}, key="k")
        assert engine.decide("ann", features={"age": 41}, key="k") == again
    for snapshot in (True, False):
        with Engine(store=path) as engine:
            assert engine.store.known_of(["ann"]) == [{**known, "age": 41.0}]
            assert [one.name for one in engine.user_features] == ["business", "age", "town"]
            assert verify(engine.store).ok
            if not snapshot:
                engine.store.rebuild()
                engine.erase_user("ann")
                assert engine.store.known_of(["ann"]) == [{}]
                assert "here" not in str([event for _, event in engine.store.events() if isinstance(event, UserKnown)])
                assert verify(engine.store).ok
    with Engine(store=path) as engine:
        assert engine.store.known_of(["ann"]) == [{}]


@pytest.mark.parametrize(
    ("features", "field", "words"),
    [
        ({"wealth": 3}, "features", "unknown feature 'wealth'. Known: age, business, town"),
        ({"business": 1}, "features.business", "expected business to be yes or no"),
        ({"age": "old"}, "features.age", "expected age to be a number"),
        ({"town": 7}, "features.town", "expected town to be a word"),
        (["age"], "features", "expected features by name"),
    ],
)
def test_a_feature_that_cannot_be_is_refused_and_nothing_changes(features: Any, field: str, words: str) -> None:
    with shop() as engine:
        before = len(list(engine.store.events()))
        for attempt in (
            lambda: engine.decide("ann", features=features),
            lambda: engine.decide_many(["bob", {"user": "ann", "features": features}]),
        ):
            with pytest.raises(InputError, match=words) as caught:
                attempt()
            assert caught.value.field == field
        with pytest.raises(InputError, match=words):
            asyncio.run(AsyncEngine(engine).decide("ann", features=features))
        assert len(list(engine.store.events())) == before


def test_what_features_tell_is_found_and_useless_ones_tell_nothing() -> None:
    draws = np.random.default_rng(2)
    estimate = Estimate(kind=Kind.RIDGE, shared=True)
    weights = np.array([[0.2, -0.1, 0.0], [0.0, 0.1, -0.2]])
    users, table = UserStatistics.zeros(users=300, objectives=3), draws.standard_normal((300, 2))
    tastes = np.array([0.4, 0.3, 0.3]) + table @ weights + 0.05 * draws.standard_normal((300, 3))
    for user in range(300):
        scores = draws.random((3, 3))  # three rounds: fewer than would tell three weights by themselves
        users.observe([user] * 3, scores, scores @ tastes[user] + 0.02 * draws.standard_normal(3))
    population = common_to(users, estimate)
    found = explained_by(users, table, population)
    assert found is not None
    assert found.weights / found.width[:, None] == pytest.approx(weights, abs=0.02)
    rest = common_to(without(users, found.offsets(table)), estimate)
    assert rest.numbers[0] / rest.numbers[2] < 0.25 * population.numbers[0] / population.numbers[2]  # τ² = σ²/λ
    blank = np.full((300, 2), np.nan)
    assert explained_by(users, blank, population) is None
    assert explained_by(users, draws.standard_normal((300, 2)), population) is None
