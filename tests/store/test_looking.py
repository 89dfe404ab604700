"""What the page asks of every store: users by the beginning of their ids, and their decisions page by page."""

from __future__ import annotations

import pytest

from pamo.store import ArmAdded, DecisionMade, Event, FeedbackGiven, Made, Store, UserErased
from tests.store.homes import Home
from tests.store.model import SETUP

REWARDS = {"taste": 4.0, "price": 100.0, "service": 0.5}
ROUNDS = {"ann": 3, "anna": 1, "bob": 2, "anton": 3, "Ann": 1, "an\u00e9": 1, "a%_b": 2, "a%": 1}


@pytest.fixture
def store(home: Home) -> Store:
    """Users with some rounds each, in turn; the last decision of ann is still without feedback."""
    events: list[Event] = [ArmAdded("A", "Anchor", at=1.0), ArmAdded("B", "Bristol", at=1.0)]
    for turn in range(max(ROUNDS.values())):
        for user, rounds in ROUNDS.items():
            if turn < rounds:
                events.append(DecisionMade(f"{user}-{turn}", user, ("A", "B"), 1.0, "greedy", at=10.0 + turn))
                events.append(FeedbackGiven(f"{user}-{turn}", REWARDS, at=20.0 + turn, overall=3.0))
    events.append(DecisionMade("ann-waits", "ann", ("B",), 1.0, "greedy", at=99.0))
    opened = home.open(SETUP)
    opened.append_many(events)
    return opened


@pytest.mark.parametrize("prefix", ["", "a", "an", "ann", "anton", "A", "a%", "an\u00e9", "zoe", "anna-longer"])
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_users_are_found_by_the_beginning_of_their_ids(store: Store, prefix: str, limit: int) -> None:
    expected = sorted(
        ((user, rounds) for user, rounds in ROUNDS.items() if user.startswith(prefix)),
        key=lambda one: (-one[1], one[0].encode()),
    )
    assert store.find_users(prefix, limit) == expected[:limit]
    assert Store.find_users(store, prefix, limit) == expected[:limit]  # what a new store inherits is the same


def test_users_are_counted_and_who_was_erased_is_not_found(store: Store) -> None:
    assert store.count_users() == Store.count_users(store) == len(ROUNDS)
    store.append(UserErased("anton", at=200.0))
    assert store.count_users() == len(ROUNDS) - 1
    assert store.find_users("an", 2) == [("ann", 3), ("anna", 1)]
    assert store.decisions_of("anton", 10) == []


def test_a_users_decisions_come_newest_first_with_their_feedback(store: Store) -> None:
    found = store.decisions_of("ann", 10)
    assert [one.decision.id for one in found] == ["ann-waits", "ann-2", "ann-1", "ann-0"]
    assert [one.feedback is None for one in found] == [True, False, False, False]
    for one in found[1:]:
        assert isinstance(one, Made)
        assert one.feedback == store.feedback(one.decision.id)
        assert one.decision == store.decision(one.decision.id)
    assert found == Store.decisions_of(store, "ann", 10)


def test_pages_of_decisions_join_without_gap_or_repeat(store: Store) -> None:
    whole = store.decisions_of("ann", 10)
    paged: list[Made] = []
    before = None
    while page := store.decisions_of("ann", 3, before):
        assert page == Store.decisions_of(store, "ann", 3, before)
        paged += page
        before = page[-1].sequence
    assert paged == whole
    assert store.decisions_of("nobody", 3) == []
