"""Objectives, scales and half-lives that are declared anew: the journal stays, and the sums are by the new ones."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pamo.contract.forgetting import half_lives
from pamo.errors import InputError, StoreError
from pamo.rows import grow_together
from pamo.statistics import ArmStatistics, UserStatistics
from pamo.store import ArmAdded, DecisionMade, FeedbackGiven, MemoryStore, Objective, Setup, Store, UserErased
from pamo.store.fold import Fold
from pamo.store.maintenance import verify
from pamo.store.postgres import PostgresStore
from tests.store.homes import Home
from tests.store.model import SETUP, assert_same

USERS, ARMS, DAY = ("ann", "bob"), ("A", "B", "C"), 86_400.0
WEIGHTS = {"taste": 1.0, "price": 2.0, "service": 3.0}


def visits(seed: int, count: int, first: int = 0, *, clocks: bool = False) -> list[Any]:
    """Decisions half a day apart, each with feedback whole or in parts, of which one comes days later."""
    draws, events = random.Random(seed), list[Any]()
    rounds, pulls = dict.fromkeys(USERS, 0), dict.fromkeys(ARMS, 0)
    late: list[FeedbackGiven] = []
    for number in range(first, first + count):
        user, arm, at = draws.choice(USERS), draws.choice(ARMS), number * DAY / 2
        rounds[user] += 1
        pulls[arm] += 1
        clock = (rounds[user], pulls[arm]) if clocks else None
        events.append(DecisionMade(f"d{number}", user, (arm,), 1.0, "p", at, rounds=clock))
        scores = {"taste": draws.uniform(1, 5), "price": draws.uniform(0, 500), "service": draws.random()}
        overall = draws.uniform(0, 10)
        if number % 3:
            stated = WEIGHTS if number % 4 == 0 else None
            events.append(FeedbackGiven(f"d{number}", scores, at + 9.0, overall, stated))
        else:
            events.append(FeedbackGiven(f"d{number}", {"taste": scores.pop("taste")}, at + 9.0, overall))
            late.append(FeedbackGiven(f"d{number}", scores, at + 3.2 * DAY))
        if len(late) > 1:
            events.append(late.pop(0))
    return [ArmAdded(arm, arm, 0.0) for arm in ARMS] + events


def witness(store: Store, lives: Any) -> tuple[ArmStatistics, UserStatistics]:
    """The sums by their definition: each round as it is known now, half as much for each half-life since."""
    arms, users = ArmStatistics.zeros(arms=3, objectives=3), UserStatistics.zeros(users=2, objectives=3)
    rounds: dict[str, tuple[FeedbackGiven, dict[str, float]]] = {}
    for _, event in store.events():
        if isinstance(event, FeedbackGiven):
            first, known = rounds.setdefault(event.decision, (event, {}))
            known |= event.rewards
            if event.overall is not None:
                known["overall"] = event.overall
    newest, last = max(first.at for first, _ in rounds.values()), dict[str, int]()
    for first, _ in rounds.values():
        _, own, pulls = first.age or (0.0, 0, 0)
        for name, count in ((str(first.user), own), (str(first.arm), pulls)):
            last[name] = max(last.get(name, 0), count)
    for first, known in rounds.values():
        _, own, pulls = first.age or (0.0, 0, 0)
        user, arm = str(first.user), str(first.arm)
        declared = (*store.setup.objectives, store.setup.overall)
        *scores, overall = [one.normalised(known[one.name]) if one.name in known else np.nan for one in declared]

        def age(life: Any, name: str, count: int, at: float = first.at) -> float:
            if life is None:
                return 0.0
            return float(((newest - at) / DAY if life.unit == "days" else last[name] - count) / life.count)

        pull, turn = ArmStatistics.zeros(arms=1, objectives=3), UserStatistics.zeros(users=1, objectives=3)
        pull.observe(0, scores, overall)
        turn.observe(0, scores, overall)
        arms.rows[ARMS.index(arm)] += 2.0 ** -age(lives.arms, arm, pulls) * pull.rows[0]
        turn.rows[0, 1:] *= 2.0 ** -age(lives.users, user, own)  # rounds are rounds
        users.rows[USERS.index(user)] += turn.rows[0]
    return arms, users


@pytest.mark.parametrize("text", ["users: 3 rounds, arms: 2 days", "users: 1.5 days, arms: 4 rounds", "arms: 1 day"])
def test_what_is_forgotten_is_what_was_seen_half_as_much_for_each_half_life(home: Home, text: str) -> None:
    lives = half_lives(text)
    store = home.open(SETUP)
    store.declare(replace(SETUP, half_life=lives), at=0.0)
    for event in visits(1, 40, clocks=True):
        store.append(event)
    for again in range(3):
        if again == 1 and home.durable:
            store.close(snapshot=True)
            store = home.open()
        elif again == 2:
            store.rebuild()
        assert store.setup.half_life == lives
        arms, users = witness(store, lives)
        found = store.users(USERS)
        assert found.rows[:, 1:-1] == pytest.approx(users.rows[:, 1:-1], rel=1e-9, abs=1e-12)
        assert found.rounds.tolist() == users.rounds.tolist()
        with store.lock:
            mine = store.arms().statistics.rows.copy()
        # Arms are read as of the last 64th of a half-life.
        assert mine == pytest.approx(arms.rows, rel=0.012, abs=1e-12)
        ours, theirs = (rows[:, 4:7] / rows[:, :1] for rows in (mine, arms.rows))
        assert ours == pytest.approx(theirs, rel=1e-9)
        assert verify(store).ok
    if home.durable:
        other = MemoryStore(SETUP)
        other.load(list(store.events()))
        assert_same(other.users(USERS), store.users(USERS))
        assert_same(other.arms().statistics, store.arms().statistics)
        pairs = [np.sort(one.user_pairs(USERS).rows, axis=0) for one in (store, other)]
        assert pairs[0] == pytest.approx(pairs[1])
        assert store.clock("ann", ("A", "B")) == other.clock("ann", ("A", "B"))
    store.append(UserErased("ann", at=100 * DAY))
    assert verify(store).ok


def test_rows_that_are_forgotten_are_the_same_in_any_order_and_add_up() -> None:
    setup = replace(SETUP, half_life=half_lives("users: 3 rounds, arms: 2 days"))
    store = MemoryStore(SETUP)
    store.declare(setup, 0.0)
    for event in visits(2, 40, clocks=True):
        store.append(event)
    events = [event for _, event in store.events()]
    folds = [Fold(setup) for _ in range(3)]
    for event in events:
        folds[0].apply(event)
    for event in random.Random(3).sample(events, len(events)):
        folds[1].apply(event)
    assert_same(folds[0].users(USERS), folds[1].users(USERS))
    assert_same(folds[0].arms().statistics, store.arms().statistics)
    halves = [Fold(setup), Fold(setup)]
    for number, event in enumerate(events):
        halves[number % 2].apply(event)
    for arm in ARMS:
        row = halves[0].block[halves[0].arm_rows[arm]].copy()
        grow_together(row, halves[1].block[halves[1].arm_rows[arm]], 0)
        assert row == pytest.approx(folds[0].block[folds[0].arm_rows[arm]], rel=1e-9, abs=1e-9)


def test_scales_and_objectives_are_declared_anew_and_all_that_came_before_counts_by_them(home: Home) -> None:
    new = Setup(
        (Objective("price", 0, 1000, lower_is_better=True), Objective("taste", 1, 5), Objective("view")),
        overall=Objective("overall", 0, 20),
    )
    store = home.open(SETUP)
    for event in visits(4, 30):
        store.append(event)
    before = store.users(USERS)
    store.declare(new, at=30 * DAY)
    assert (store.setup, store.began) == (new, SETUP)
    plain = MemoryStore(new)
    for event in visits(4, 30):
        if isinstance(event, FeedbackGiven):
            event.rewards = {name: value for name, value in event.rewards.items() if name != "service"}
            event.preference = None  # it says nothing of the view
        plain.append(event)
    with pytest.raises(InputError, match="unknown objective 'service'"):
        store.append(FeedbackGiven("d0", {"service": 0.5}, at=30 * DAY))
    late = FeedbackGiven("d0", {"view": 0.5}, at=15 * DAY)
    for one in (store, plain):
        one.append(late)
        one.append(DecisionMade("d99", "ann", ("A",), 1.0, "p", 30 * DAY))
        stated = {"price": 1, "taste": 1, "view": 2}
        one.append(FeedbackGiven("d99", {"price": 600.0, "taste": 4.0, "view": 0.2}, 30 * DAY, 15.0, stated))
    for again in range(3):
        if again == 1 and home.durable:
            store.close(snapshot=True)
            with pytest.raises(InputError, match="redeclare"):
                home.open(SETUP)
            store = home.open(new)
        elif again == 2:
            store.declare(replace(new, overall=Objective("overall", 0, 40)), at=31 * DAY)
            store.declare(new, at=32 * DAY)
        assert (store.setup, store.began) == (new, SETUP)
        assert_same(store.users(USERS), plain.users(USERS))
        ours, theirs = store.arms(), plain.arms()
        assert ours.ids == theirs.ids
        assert_same(ours.statistics, theirs.statistics)
        assert verify(store).ok
    assert not np.allclose(before.plain, store.users(USERS).plain)


def test_a_worker_that_does_not_know_of_it_refuses_until_it_is_started_again(postgres_url: Any) -> None:
    address = postgres_url()
    with PostgresStore(address, SETUP) as one, PostgresStore(address) as two:
        one.append(ArmAdded("A", "A", 0.0))
        two.append(DecisionMade("d1", "ann", ("A",), 1.0, "p", 1.0))
        one.declare(replace(SETUP, overall=Objective("overall", 0, 20)), at=2.0)
        with pytest.raises(StoreError, match="start this one again"):
            two.append(FeedbackGiven("d1", {"taste": 4.0}, 3.0, 5.0))
        assert "start this one again" in str(two.trouble())
        assert one.append(FeedbackGiven("d1", {"taste": 4.0}, 3.0, 5.0)).sequence
        assert one.trouble() is None
        with PostgresStore(address) as three:
            assert three.setup == one.setup
            three.declare(one.setup, at=4.0)  # the same again, as a second worker would
            assert verify(three).ok
        one.append(DecisionMade("d2", "ann", ("A",), 1.0, "p", 5.0))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ("0 rounds", "half_life.users"),
        ("-3 days", "half_life.users"),
        ("nan days", "half_life.users"),
        ("users: 4 weeks", "half_life.users"),
        ("arms: 0 days", "half_life.arms"),
        ({"arms": 40}, "half_life.arms"),
        ({"guests": "4 days"}, "half_life"),
        (40, "half_life"),
    ],
)
def test_a_half_life_that_is_none_is_refused_with_its_field(given: Any, field: str) -> None:
    with pytest.raises(InputError, match="expected a half-life such as '40 rounds'") as caught:
        half_lives(given)
    assert caught.value.field == field
