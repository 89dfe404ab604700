"""What every store does. These tests are the definition of a store: they run over each in `homes.py`."""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from numbers import Number
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from pamo.contract.experiments import Variant
from pamo.errors import InputError, StoreError
from pamo.statistics import UserStatistics
from pamo.store import (
    ArmAdded,
    ArmChanged,
    ArmRetired,
    DecisionMade,
    Event,
    ExperimentEnded,
    ExperimentStarted,
    FeedbackGiven,
    MemoryStore,
    Objective,
    Outcome,
    Setup,
    Store,
    TasteChanged,
    UserErased,
    rules,
)
from pamo.store.ledger import Ledger
from pamo.store.maintenance import verify
from pamo.store.postgres_arms import ArmCache
from pamo.store.postgres_tables import USER_SUMS
from tests.store.homes import Home
from tests.store.model import OBJECTIVES, SETUP, Model, assert_same

WHOLE = {"taste": 4.0, "price": 100.0, "service": 0.5}
WEIGHTS = {"taste": 0.5, "price": 0.25, "service": 0.25}


def decision(number: int = 1, user: str = "ann", arms: tuple[str, ...] = ("A", "B"), **more: Any) -> DecisionMade:
    return DecisionMade(f"d{number}", user, arms, propensity=0.5, policy="prucb-hp", at=100.0, **more)


def feedback(number: int = 1, rewards: dict[str, float] | None = None, **more: Any) -> FeedbackGiven:
    return FeedbackGiven(f"d{number}", WHOLE if rewards is None else rewards, **{"at": 200.0, **more})


def begun(home: Home, **options: Any) -> Store:
    """A store with three arms."""
    store = home.open(SETUP, **options)
    store.append_many([ArmAdded(arm, f"Hotel {arm}", at=1.0) for arm in "ABC"])
    return store


def contents(store: Store) -> list[Any]:
    return [list(store.events()), store.pending(), store.arms().ids, sorted(store.user_ids())]


def test_a_new_store_needs_its_objectives_and_an_old_one_keeps_them(home: Home) -> None:
    if home.durable:
        with pytest.raises(InputError, match="pass a setup"):
            home.open()
    store = home.open(SETUP)
    assert store.setup == SETUP
    assert [event for _, event in store.events()] == [SETUP]
    store.close()
    if home.durable:
        with pytest.raises(InputError, match="other objectives") as raised:
            home.open(Setup((Objective("taste"), Objective("price", 0, 499.9999999, lower_is_better=True))))
        assert "it has taste: 1..5; price: 0..500, lower is better; service: 0..1; overall: 0..10" in str(raised.value)
        assert "given were taste: 0..1; price: 0..499.9999999, lower is better; overall: 0..1:" in str(raised.value)
        assert "Setup(" not in str(raised.value)
        for given in (None, SETUP):
            again = home.open(given)
            assert again.setup == SETUP
            again.close()


@pytest.mark.parametrize(
    "setup",
    [
        Setup(()),
        Setup((Objective("a"), Objective("a"))),
        Setup((Objective("overall"),)),
        Setup((Objective("a", 1.0, 1.0),)),
        Setup((Objective("a", 0.0, math.inf),)),
        Setup((Objective("a", math.nan, 1.0),)),
        Setup((Objective(""),)),
        Setup((Objective("a"),), format=99),
    ],
)
def test_objectives_that_cannot_be_learned_are_refused(home: Home, setup: Setup) -> None:
    with pytest.raises(InputError):
        home.open(setup)


def test_a_feedback_is_recorded_and_says_what_was_learned(home: Home) -> None:
    store = begun(home)
    receipt = store.append(decision())
    assert (receipt.outcome, receipt.decision) == (Outcome.RECORDED, decision())
    assert store.pending() == 1
    assert store.feedback("d1") is None
    receipt = store.append(feedback(overall=7.0))
    assert receipt.outcome is Outcome.RECORDED
    assert receipt.learned == ("arm: taste", "arm: price", "arm: service", "arm: overall", "preference")
    assert store.decision("d1") == decision()
    assert store.feedback("d1") == feedback(overall=7.0, arm="A", user="ann")
    assert store.pending() == 0
    arms = store.arms()
    assert arms.statistics.reward_sum[arms.rows["A"]] == pytest.approx([0.75, 0.8, 0.5])
    assert store.users(["ann"]).rounds.tolist() == [1.0]
    assert list(store.events(after=receipt.sequence - 1)) == [(receipt.sequence, store.feedback("d1"))]


@pytest.mark.parametrize(
    ("given", "learned"),
    [
        ({"rewards": {"price": 10.0}}, ("arm: price",)),
        ({"rewards": {"price": 10.0}, "overall": 5.0}, ("arm: price", "arm: overall", "preference")),
        ({"rewards": {}, "overall": 5.0}, ("arm: overall", "preference")),
        ({"rewards": {}, "preference": WEIGHTS}, ("preference",)),
        ({"rewards": WHOLE}, ("arm: taste", "arm: price", "arm: service")),
        ({"rewards": {"taste": 1, "price": 0, "service": 1}}, ("arm: taste", "arm: price", "arm: service")),
    ],
)
def test_partial_feedback_teaches_what_it_can(home: Home, given: dict[str, Any], learned: tuple[str, ...]) -> None:
    store, model = begun(home), Model(math.inf)
    events: list[Event] = [*(ArmAdded(arm, f"Hotel {arm}", at=1.0) for arm in "ABC"), decision(), feedback(**given)]
    for event in events:
        model.append(event)
    store.append(decision())
    assert store.append(feedback(**given)).learned == learned
    model.check(store)
    assert store.append(feedback(**given, at=300.0)).learned == learned  # a duplicate is answered like the first


def test_the_same_again_is_a_duplicate_and_anything_else_a_conflict(home: Home) -> None:
    store = begun(home)
    first = store.append_many([decision(), feedback(overall=7.0)])
    before = contents(store)
    sums = store.users(["ann"])
    again = store.append_many([decision(), feedback(overall=7.0, at=999.0), feedback(overall=7.0, arm="A")])
    assert [receipt.outcome for receipt in again] == [Outcome.DUPLICATE] * 3
    assert again[0].decision == decision()
    assert [receipt.sequence for receipt in again] == [first[0].sequence, first[1].sequence, first[1].sequence]
    assert again[1].learned == first[1].learned
    for other in (
        decision(user="bob"),
        decision(arms=("B",)),
        feedback(overall=6.0),
        feedback(rewards={"taste": 1.5}, overall=7.0, preference=WEIGHTS),
    ):
        receipt = store.append(other)
        assert receipt.outcome is Outcome.CONFLICT
        assert (receipt.sequence, receipt.learned) == (0, ())
        assert "d1" in receipt.reason
    assert contents(store) == before
    assert_same(store.users(["ann"]), sums)


def test_within_one_batch_the_first_counts(home: Home) -> None:
    store = begun(home)
    batch: list[Event] = [decision(), decision(), feedback(), feedback(at=201.0), feedback(rewards={"taste": 1.0})]
    receipts = store.append_many(batch)
    assert [str(receipt.outcome) for receipt in receipts] == [
        "recorded",
        "duplicate",
        "recorded",
        "duplicate",
        "conflict",
    ]
    assert receipts[0].sequence == receipts[1].sequence > 0
    assert receipts[2].sequence == receipts[3].sequence > 0
    assert store.users(["ann"]).rounds.tolist() == [1.0]
    assert store.append_many([]) == []


def test_what_does_not_exist_is_unknown(home: Home) -> None:
    store = begun(home)
    store.append(decision(arms=("A", "B")))
    before = contents(store)
    for event in (
        feedback(2),
        feedback(1, arm="C"),
        decision(3, arms=("Z",)),
        ArmRetired("Z", at=1.0),
        UserErased("zoe", at=1.0),
    ):
        receipt = store.append(event)
        assert receipt.outcome is Outcome.UNKNOWN, event
        assert receipt.reason
    assert contents(store) == before


def test_feedback_may_be_late_until_the_decision_expires(home: Home) -> None:
    store = begun(home, expires_after=50.0)
    store.append_many([decision(1), decision(2)])
    assert store.append(feedback(1, at=150.0)).outcome is Outcome.RECORDED
    assert store.append(feedback(2, at=150.1)).outcome is Outcome.EXPIRED
    assert store.append(feedback(1, at=10_000.0)).outcome is Outcome.DUPLICATE
    assert store.pending() == 1
    assert store.users(["ann"]).rounds.tolist() == [1.0]


DAY = 86_400.0


def test_a_clock_that_was_behind_does_not_make_decisions_old(home: Home) -> None:
    """The journal has seen later times already, so that decisions of such a clock are as old as those."""
    store = begun(home)
    made = [dataclasses.replace(decision(n), at=at * DAY) for n, at in ((1, 100.0), (2, 40.0), (3, 40.1), (4, 99.99))]
    store.append(made[0])
    if home.durable:
        store.close(snapshot=False)
        store = home.open()
    store.append_many(made[1:])
    kept = [store.decision(f"d{n}") for n in (1, 2, 3, 4)]
    assert [one and one.since for one in kept] == [None, 100 * DAY, 100 * DAY, None]
    assert store.append(made[1]).outcome is Outcome.DUPLICATE
    if home.durable:
        store.close(snapshot=False)
        store = home.open()
    assert store.append(feedback(2, at=100.01 * DAY)).outcome is Outcome.RECORDED
    assert store.append(feedback(1, at=129.9 * DAY)).outcome is Outcome.RECORDED
    assert store.append(feedback(3, at=130.1 * DAY)).outcome is Outcome.EXPIRED
    assert verify(store).ok


def test_a_clock_that_is_set_forward_does_not_make_decisions_old(home: Home) -> None:
    now, passed = 0.0, 0.0
    store = begun(home)
    ages = store._ages
    ages._wall, ages._steady, ages._offset = lambda: now, lambda: passed, 0.0
    store.append(decision(1))

    def goes_on(seconds: float, *, by: float = 0.0) -> None:
        nonlocal now, passed
        now, passed = now + seconds + by, passed + seconds

    goes_on(100.0)
    store.append(decision(2))
    goes_on(100.0, by=60 * DAY)
    assert store.append(feedback(1, at=now)).outcome is Outcome.RECORDED
    one = store.decision("d2")
    assert one is not None
    assert store.awaits(one, now)
    goes_on(31 * DAY)
    assert not store.awaits(one, now)
    assert store.append(feedback(2, at=now)).outcome is Outcome.EXPIRED


def test_arms_are_added_renamed_retired_and_revived(home: Home) -> None:
    store = begun(home)
    store.append(decision())
    versions = [store.arms().version]

    def state(arm: str) -> tuple[str, bool]:
        arms = store.arms()
        versions.append(arms.version)
        return arms.names[arms.rows[arm]], bool(arms.active[arms.rows[arm]])

    assert store.append(ArmAdded("A", "Hotel A", at=2.0)).outcome is Outcome.DUPLICATE
    assert state("A") == ("Hotel A", True)
    assert versions[-1] == versions[-2]
    assert store.append(ArmAdded("A", "Anchor Inn", at=2.0)).outcome is Outcome.RECORDED
    assert state("A") == ("Anchor Inn", True)
    assert versions[-1] != versions[-2]
    assert store.append(ArmRetired("A", at=3.0)).outcome is Outcome.RECORDED
    assert store.append(ArmRetired("A", at=3.0)).outcome is Outcome.DUPLICATE
    assert state("A") == ("Anchor Inn", False)
    assert store.append(feedback()).outcome is Outcome.RECORDED  # late feedback for a retired arm still counts
    assert state("A") == ("Anchor Inn", False)
    assert versions[-1] == versions[-2]
    arms = store.arms()
    assert arms.statistics.pulls[arms.rows["A"]] == 1.0
    assert store.append(ArmAdded("A", "Anchor Inn", at=4.0)).outcome is Outcome.RECORDED
    assert state("A") == ("Anchor Inn", True)
    assert len(set(versions)) == 4


def test_many_arms_and_users_keep_their_own(home: Home) -> None:
    store, model = home.open(SETUP), Model(math.inf)
    events: list[Event] = [ArmAdded(f"arm {k}", f"Arm {k}", at=0.0) for k in range(40)]
    for k in range(120):
        events.append(decision(k, user=f"user {k % 50}", arms=(f"arm {k % 40}",)))
        events.append(
            feedback(k, {**WHOLE, "taste": 1.0 + k / 30}, overall=k / 12, preference=WEIGHTS if k % 3 else None)
        )
    for event in events:
        model.append(event)
    assert {str(receipt.outcome) for receipt in store.append_many(events)} == {"recorded"}
    model.check(store)
    assert verify(store).ok


def test_sums_add_up_over_batches(home: Home) -> None:
    store, model = begun(home), Model(math.inf)
    for arm in "ABC":
        model.append(ArmAdded(arm, f"Hotel {arm}", at=1.0))
    for n, stated in enumerate((None, WEIGHTS, None, {"taste": -1.0, "price": 2.0, "service": 0.0}, WEIGHTS)):
        for event in (decision(n), feedback(n, overall=n, preference=stated)):
            assert store.append(event).outcome is model.append(event)
        model.check(store)
    assert store.users(["ann"]).stated_sum.tolist() == [[0.0, 2.5, 0.5]]


def test_a_decision_with_an_explanation_can_be_sent_again(home: Home) -> None:
    """As a worker does whose connection broke: JSON has neither infinities nor tuples, and it is the same decision."""
    store = begun(home)
    made = decision(1, key="request-7", explanation={"bonus": [math.inf, 0.5], "arms": ("A", "B")})
    first = store.append(made)
    for again in (made, dataclasses.replace(made, at=101.0)):
        receipt = store.append(again)
        assert (receipt.outcome, receipt.sequence) == (Outcome.DUPLICATE, first.sequence)
    assert store.append(dataclasses.replace(made, arms=("B", "A"))).outcome is Outcome.CONFLICT
    assert store.pending() == 1


def test_a_key_makes_a_decision_repeatable(home: Home) -> None:
    store = begun(home)
    first = decision(1, key="request-7", offer=("A", "B"))
    assert store.append(first).outcome is Outcome.RECORDED
    again = store.append(decision(2, key="request-7", offer=("A", "B"), arms=("B",)))
    assert (again.outcome, again.decision) == (Outcome.DUPLICATE, first)
    for other in (
        decision(3, key="request-7"),
        decision(3, key="request-7", offer=("A", "B"), user="bob"),
        decision(3, key="request-7", offer=("A", "B"), k=2),
        decision(3, key="request-7", offer=("A", "B"), preference=WEIGHTS),
    ):
        assert store.append(other).outcome is Outcome.CONFLICT
    assert store.decision("d2") is None
    assert store.decision_for("request-7") == first
    assert store.decision_for("request-8") is None
    in_one = store.append_many([decision(4, key="k", arms=("A",)), decision(5, key="k", arms=("B",))])
    assert in_one[1].decision == decision(4, key="k", arms=("A",))


def test_an_erased_user_is_nowhere(home: Home) -> None:
    store = begun(home)
    mine = [
        decision(n, user="ann-of-cleves", key=f"k{n}", preference=WEIGHTS, explanation={"for": "ann-of-cleves"})
        for n in (1, 2)
    ]
    store.append_many([*mine, decision(3, user="bob")])
    store.append_many([feedback(1, overall=7.0, preference=WEIGHTS), feedback(3, overall=3.0)])
    store.snapshot()
    kept = store.arms().statistics.copy()
    bob = store.users(["bob"])
    assert [sequence for sequence, _ in store.history("ann-of-cleves")] == sorted(
        sequence for sequence, _ in store.history("ann-of-cleves")
    )
    assert len(list(store.history("ann-of-cleves"))) == 3
    assert store.append(UserErased("ann-of-cleves", at=300.0)).outcome is Outcome.RECORDED
    for _ in range(2):
        assert "cleves" not in repr(list(store.events()))
        assert list(store.history("ann-of-cleves")) == []
        assert store.decision_for("k1") is None
        assert sorted(store.user_ids()) == ["bob"]
        assert not store.users(["ann-of-cleves"]).rounds.any()
        assert not store.users(["ann-of-cleves"]).stated_count.any()
        assert_same(store.users(["bob"]), bob)
        assert_same(store.arms().statistics, kept)
        assert verify(store).ok
        if home.durable:
            store.close()
            store = home.open()
    assert store.append(UserErased("ann-of-cleves", at=301.0)).outcome is Outcome.UNKNOWN
    # What is repeated is still a duplicate; what is late teaches the arm, and nobody.
    assert store.append(feedback(1, overall=7.0, preference=WEIGHTS)).outcome is Outcome.DUPLICATE
    late = store.append(feedback(2, overall=1.0, preference=WEIGHTS))
    assert (late.outcome, late.learned[-1]) == (Outcome.RECORDED, "arm: overall")
    assert store.feedback("d2") == feedback(2, overall=1.0, arm="A")
    assert sorted(store.user_ids()) == ["bob"]
    # The same name later is somebody new.
    store.append_many([decision(4, user="ann-of-cleves", key="k1"), feedback(4)])
    assert store.users(["ann-of-cleves"]).rounds.tolist() == [1.0]
    assert verify(store).ok


def test_erasing_within_a_batch(home: Home) -> None:
    store = begun(home)
    receipts = store.append_many([decision(1), feedback(1), UserErased("ann", at=1.0), decision(2), feedback(2)])
    assert {str(receipt.outcome) for receipt in receipts} == {"recorded"}
    assert store.users(["ann"]).rounds.tolist() == [1.0]
    assert verify(store).ok


BAD: list[Any] = [
    feedback(rewards={"taste": math.nan}),
    feedback(rewards={"taste": math.inf}),
    feedback(rewards={"taste": 5.1}),
    feedback(rewards={"taste": 0.9}),
    feedback(rewards={"price": -0.1}),
    feedback(rewards={"colour": 1.0}),
    feedback(rewards=[4.0]),  # type: ignore[arg-type]
    feedback(preference=[0.5]),
    feedback(preference=0.5),
    feedback(rewards={"taste": "4"}),  # type: ignore[dict-item]
    feedback(rewards={"taste": True}),
    feedback(rewards={"taste": None}),  # type: ignore[dict-item]
    feedback(rewards={"taste": np.bool_(True)}),  # type: ignore[dict-item]
    feedback(rewards={"taste": np.float32("nan")}),  # type: ignore[dict-item]
    feedback(rewards={"taste": 4 + 0j}),  # type: ignore[dict-item]
    feedback(rewards={"taste": Decimal("sNaN")}),  # type: ignore[dict-item]
    feedback(rewards={"price": Decimal("500.01")}),  # type: ignore[dict-item]
    feedback(rewards={"taste": 10**400}),
    feedback(rewards={}),
    feedback(overall=10.5),
    feedback(overall=math.nan),
    feedback(preference={"taste": 1.0}),
    feedback(preference={**WEIGHTS, "colour": 1.0}),
    feedback(preference={**WEIGHTS, "taste": math.nan}),
    feedback(preference={**WEIGHTS, "taste": 10**400}),
    feedback(preference={**WEIGHTS, "taste": Decimal("Infinity")}),
    feedback(preference={**WEIGHTS, "taste": np.True_}),
    feedback(at=math.nan),
    feedback(at=None),
    FeedbackGiven("", WHOLE, at=1.0),
    decision(arms=()),
    decision(user=""),
    decision(user="a\0b"),
    decision(user="\ud800"),
    decision(user="x" * 257),
    decision(user=7),  # type: ignore[arg-type]
    decision(key=""),
    decision(preference={"taste": 1.0}),
    dataclasses.replace(decision(), id=""),
    *(dataclasses.replace(decision(), propensity=propensity) for propensity in (math.nan, math.inf, 0.0, 1.5)),
    ArmAdded("", "name", at=0.0),
    ArmAdded("A", "", at=0.0),
    ArmRetired("A\0", at=0.0),
    ArmAdded("A", "name", at=math.inf),
    UserErased("", at=0.0),
    UserErased(None, at=0.0),
    Setup((Objective("other"),)),
    "no event at all",
]


def test_bad_input_is_refused_and_changes_nothing(home: Home) -> None:
    store = begun(home)
    store.append(decision())
    before = contents(store)
    for event in BAD:
        with pytest.raises(InputError):
            store.append(event)
        with pytest.raises(InputError):
            store.append_many([decision(2), event])
    assert contents(store) == before
    assert store.append(SETUP).outcome is Outcome.DUPLICATE


@pytest.mark.parametrize(
    "name", ["Zoë", "名前", "👩‍👩‍👧", "a b\tc", "'; DROP TABLE events; --", '{"json": [1]}', "x" * 256]
)
def test_names_are_kept_to_the_letter(home: Home, name: str) -> None:
    store = home.open(SETUP)
    store.append_many([ArmAdded(name, name, at=0.0), decision(1, user=name, arms=(name,), key=name), feedback(1)])
    arms = store.arms()
    assert (arms.ids, arms.names) == ((name,), (name,))
    assert list(store.user_ids()) == [name]
    assert [event for _, event in store.history(name)] == [store.decision("d1"), store.feedback("d1")]
    assert store.users([name]).rounds.tolist() == [1.0]


def test_numbers_are_kept_to_the_last_digit(home: Home) -> None:
    store = begun(home)
    numbers = np.random.default_rng(1).random((20, 3))
    for n, (taste, price, service) in enumerate(numbers.tolist()):
        rewards = {"taste": 1.0 + 4.0 * taste, "price": np.float64(500.0 * price), "service": service**40}
        store.append_many([decision(n), feedback(n, rewards, at=1e3 + service)])
        kept = store.feedback(f"d{n}")
        assert kept is not None
        assert (kept.rewards, kept.at) == (rewards, 1e3 + service)


NUMBERS: list[Callable[[int], Any]] = [
    int,
    Decimal,
    Fraction,
    np.float32,
    np.float64,
    np.int64,
    np.longdouble,
]


@pytest.mark.parametrize("number", NUMBERS, ids=[number.__name__ for number in NUMBERS])
def test_whatever_is_a_number_is_taken_and_kept_as_a_plain_float(home: Home, number: Any) -> None:
    scales = [(one.name, number(int(one.low)), number(int(one.high)), one.lower_is_better) for one in SETUP.objectives]
    setup = Setup(tuple(Objective(*scale) for scale in scales), Objective("overall", number(0), number(10)))
    store = home.open(setup)
    assert store.setup == SETUP
    weights = dict.fromkeys(OBJECTIVES, number(2))
    asked = DecisionMade("d1", "ann", ("A",), number(1), "greedy", number(3), k=1, preference=weights)
    given = FeedbackGiven("d1", {"taste": number(4), "price": number(100), "service": number(1)}, number(5), number(7))
    receipts = store.append_many(
        [ArmAdded("A", "A", number(1)), asked, dataclasses.replace(given, preference=MappingProxyType(weights))]
    )
    assert [one.outcome for one in receipts] == [Outcome.RECORDED] * 3
    assert verify(store).ok
    for _, event in store.events():
        kept = dataclasses.asdict(event)
        for count in ("format", "k", "part"):
            kept.pop(count, None)
        found = [kept, *kept.get("objectives", ()), kept.get("overall"), kept.get("rewards"), kept.get("preference")]
        values = [value for part in found if isinstance(part, dict) for name, value in part.items()]
        assert {type(value) for value in values if isinstance(value, Number)} <= {float, bool}
        assert all(type(part) is dict for part in (kept.get("rewards"), kept.get("preference")) if part is not None)
    assert store.append(dataclasses.replace(given, preference=weights)).outcome is Outcome.DUPLICATE


def test_adding_arms_one_by_one_looks_at_no_other_arm(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in memory, where the states of all arms used to be copied, nor in what is asked of a database."""
    store = begun(home)
    seen: list[int] = []
    learn, judge = ArmCache.learn, Ledger.__init__

    def learn_few(self: Any, arms: Any) -> None:
        few = list(arms)
        seen.append(len(few))
        learn(self, few)

    def judge_by_what_there_is(self: Any, scales: Any, ages: Any, arms: Any, *more: Any, **named: Any) -> None:
        assert arms is (store._fold.arm_states if hasattr(store, "_fold") else store._arms.states)  # type: ignore[attr-defined]
        judge(self, scales, ages, arms, *more, **named)

    monkeypatch.setattr(ArmCache, "learn", learn_few)
    monkeypatch.setattr(Ledger, "__init__", judge_by_what_there_is)
    for number in range(30):
        store.append(ArmAdded(f"arm {number}", "new", at=1.0))
    assert not seen or max(seen) <= 1
    assert store.arms().names == ("Hotel A", "Hotel B", "Hotel C", *["new"] * 30)


def test_users_come_in_the_order_asked_for_with_zeros_for_the_unknown(home: Home) -> None:
    store = begun(home)
    store.append_many([decision(1, user="ann"), decision(2, user="bob"), decision(3, user="bob")])
    store.append_many([feedback(n) for n in (1, 2, 3)])
    assert store.users(["nobody", "bob", "ann", "bob"]).rounds.tolist() == [0.0, 2.0, 1.0, 2.0]
    assert store.users([]).plain.shape == (0, 5, 5)
    assert sorted(store.user_ids()) == ["ann", "bob"]


def test_many_threads_deliver_everything_several_times(home: Home) -> None:
    """The same state as once each."""
    store, model = begun(home), Model(math.inf)
    events: list[Event] = []
    for n in range(60):
        events += [decision(n, user=f"u{n % 7}", arms=("ABC"[n % 3],)), feedback(n, overall=n / 10)]
    for event in (*(ArmAdded(arm, f"Hotel {arm}", at=1.0) for arm in "ABC"), *events):
        model.append(event)
    store.append_many(events[::2])
    recorded: list[int] = []

    def deliver(seed: int) -> None:
        order = np.random.default_rng(seed).permutation(60)
        futures = [store.submit(events[2 * n + 1]) for n in order]
        recorded.append(sum(future.result().outcome is Outcome.RECORDED for future in futures))

    threads = [threading.Thread(target=deliver, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(recorded) == 60
    model.check(store)


def test_everything_is_there_after_opening_again(home: Home) -> None:
    model = Model(math.inf)
    store = home.open(SETUP)
    for n in range(12):
        batch: list[Event] = [ArmAdded("AB"[n % 2], "name", at=0.0), decision(n, arms=("AB"[n % 2],)), feedback(n)]
        for event in batch[: 3 - n % 2]:
            assert store.append(event).outcome is model.append(event)
        if n % 4 == 1:
            store.snapshot()
        store.close(snapshot=n % 3 == 0)
        store.close()
        store = home.open()
        if not home.durable:
            return
        model.check(store)


def test_a_journal_can_be_taken_over(home: Home) -> None:
    source = MemoryStore(SETUP)
    source.append_many([ArmAdded("A", "Hotel A", at=1.0), decision(1, arms=("A",), key="k"), feedback(1, overall=1.0)])
    source.append_many([decision(2, user="bob", arms=("A",)), feedback(2), UserErased("bob", at=9.0)])
    store = home.open(SETUP)
    assert store.load(source.events()) == 7
    assert list(store.events()) == list(source.events())
    assert verify(store).ok
    assert_same(store.users(["ann", "bob"]), source.users(["ann", "bob"]))
    assert store.append(feedback(1, overall=1.0)).outcome is Outcome.DUPLICATE
    assert store.append(decision(3, arms=("A",), key="k")).outcome is Outcome.DUPLICATE
    assert store.append(decision(4, arms=("A",))).outcome is Outcome.RECORDED
    with pytest.raises(InputError, match="empty store"):
        store.load(source.events())


def test_sums_can_be_rebuilt_and_damage_is_seen(home: Home) -> None:
    store = begun(home)
    store.append_many([decision(1), feedback(1, overall=3.0), decision(2)])
    report = verify(store)
    assert (report.ok, report.events, report.arms, report.users) == (True, 7, 3, 1)
    damage(store)
    assert not verify(store).ok
    store.rebuild()
    assert verify(store).ok
    assert store.pending() == 1
    assert store.append(feedback(2)).outcome is Outcome.RECORDED


def damage(store: Any) -> None:
    """Change a user's sums behind the store's back."""
    if hasattr(store, "_fold"):
        store._fold.user_sums.chunks[0][0, 3] += 1e-6
    else:
        with store._link.transaction() as connection:
            connection.execute(f"UPDATE {USER_SUMS} SET sums[3] = sums[3] + 1e-6")


def test_a_closed_store_takes_nothing(home: Home) -> None:
    store = begun(home)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.append(decision())


def test_submitting_hands_errors_on(home: Home) -> None:
    store = begun(home)
    with pytest.raises(InputError):
        store.submit(feedback(overall=99.0))
    assert store.submit(decision()).result().outcome is Outcome.RECORDED
    assert tuple(objective.name for objective in store.setup.objectives) == OBJECTIVES


def test_a_change_of_taste_begins_a_user_anew(home: Home) -> None:
    store = begun(home)
    for number in range(1, 7):
        store.append(decision(number, user="ann" if number < 6 else "bob"))
        given = {"taste": 2.0} if number % 2 else WHOLE
        store.append(feedback(number, given, overall=float(number), preference=WEIGHTS))
    kept = (("A", WHOLE, 4.0), ("A", {"taste": 2.0}, 5.0))
    changed = TasteChanged("d4", "ann", at=300.0, kept=kept)
    assert store.append(dataclasses.replace(changed, user="bob")).outcome is Outcome.UNKNOWN  # it is not bob's decision
    with pytest.raises(InputError, match="expected taste to be a number"):
        store.append(dataclasses.replace(changed, kept=(("A", {"taste": 9.0}, 4.0),)))
    assert store.append(changed).outcome is Outcome.RECORDED
    assert store.append(changed).outcome is Outcome.DUPLICATE
    for again in (False, True):
        if again and home.durable:
            store.close(snapshot=not again)
            store = home.open()
        wanted = UserStatistics.zeros(users=2, objectives=3)
        wanted.observe(0, [0.75, 0.8, 0.5], 0.4)
        wanted.observe(0, [0.25, np.nan, np.nan], 0.5)
        ours = store.users(["ann"])
        assert ours.rounds.tolist() == [5.0]  # the rounds are as many as they were
        assert ours.rows[0, 1:] == pytest.approx(wanted.rows[0, 1:])
        assert ours.stated_count.tolist() == [5.0]
        found = store.user_pairs(["ann", "bob"])
        assert found.rows.tolist() == [pytest.approx([1.0, 0.5, 0.25, 1.0, 0.0, 0.0, 0.25, 0.0, 0.0])]
        assert store.changes_of("ann") == [300.0]
        assert store.changes_of("bob") == []
        (place,) = (number for number, event in store.events() if event == decision(4, user="ann"))
        assert dataclasses.replace(changed, place=place) in [event for _, event in store.history("ann")]
        assert verify(store).ok
    store.append(UserErased("ann", at=400.0))
    assert not [event for _, event in store.events() if "ann" in str(event)]
    assert verify(store).ok


def test_a_changed_arm_keeps_what_was_seen_since(home: Home) -> None:
    store = begun(home)
    for number, price in enumerate((100.0, 120.0, 400.0), start=1):
        store.append_many([decision(number), feedback(number, {**WHOLE, "price": price}, overall=5.0)])
    store.append_many([decision(4), feedback(4, {"taste": 4.0}, overall=5.0)])
    changed = ArmChanged("A", at=300.0, kept={"price": (1.0, 400.0, 160_000.0)})
    assert store.append(dataclasses.replace(changed, arm="X")).outcome is Outcome.UNKNOWN
    with pytest.raises(InputError, match="by objective how many scores"):
        store.append(dataclasses.replace(changed, kept={"prise": (1.0, 2.0, 3.0)}))
    assert store.append(changed).outcome is Outcome.RECORDED
    for again in (False, True):
        if again and home.durable:
            store.close(snapshot=False)
            store = home.open()
        table = store.arms()
        with store.lock:
            sums = table.statistics.part([table.rows["A"]])
        assert sums.objective_count.tolist() == [[4.0, 1.0, 3.0]]
        assert sums.objective_sum[0] == pytest.approx([3.0, 0.2, 1.5])
        assert sums.objective_square[0] == pytest.approx([2.25, 0.04, 0.75])
        # A pull is one that anything is still known of: an arm that much is known of is not one that nobody has tried.
        assert (sums.all_pulls.tolist(), sums.pulls.tolist(), sums.all_overalls.tolist()) == ([4.0], [0.0], [4.0])
        assert not len(store.user_pairs(["ann"]).rows)  # what was foretold of it was of another
        assert store.users(["ann"]).rounds.tolist() == [4.0]
        assert verify(store).ok


def test_a_part_that_comes_after_a_change_takes_nothing_back_that_is_gone(home: Home) -> None:
    """Of what was said before a change, nothing is left that the rest could complete."""
    store, taste = begun(home), {"taste": 4.0}
    for number in range(1, 5):
        store.append_many([decision(number), feedback(number, taste, overall=5.0)])
    # The third and fourth are kept, as they are; then the arm changes, and forgets the prices before.
    kept = tuple(("A", taste, 5.0) for _ in range(2))
    assert store.append(TasteChanged("d3", "ann", at=300.0, kept=kept)).outcome is Outcome.RECORDED
    if home.durable:
        store.close()
        store = home.open()
    for number in (1, 3):  # the first is of the user as it was, the third of the new one
        assert store.append(feedback(number, WHOLE, overall=5.0)).outcome is Outcome.RECORDED
    wanted = UserStatistics.zeros(users=1, objectives=3)
    wanted.observe([0, 0], [[0.75, 0.8, 0.5], [0.75, np.nan, np.nan]], [0.5, 0.5])
    assert store.users(["ann"]).rows[0, 1:] == pytest.approx(wanted.rows[0, 1:])
    assert store.user_pairs(["ann"]).rows[:, 0].tolist() == [1.0]
    table = store.arms()
    with store.lock:
        assert table.statistics.objective_count[table.rows["A"]].tolist() == [4.0, 2.0, 2.0]
    assert store.append(ArmChanged("A", at=400.0, kept={"price": (1.0, 100.0, 10_000.0)})).outcome is Outcome.RECORDED
    for again in (False, True):
        if again and home.durable:
            store.close()
            store = home.open()
        rewards = {"price": 50.0} if again else {"service": 1.0}
        assert store.append(feedback(4, {**taste, **rewards})).outcome is Outcome.RECORDED
        table = store.arms()
        with store.lock:
            sums = table.statistics.part([table.rows["A"]])
        assert sums.objective_count.tolist() == [[4.0, 2.0 if again else 1.0, 3.0]]
        assert sums.pulls.tolist() == [0.0]
        assert not len(store.user_pairs(["ann"]).rows)
        assert verify(store).ok
    wanted = UserStatistics.zeros(users=1, objectives=3)
    wanted.observe([0, 0], [[0.75, 0.8, 0.5], [0.75, 0.9, 1.0]], [0.5, 0.5])
    assert store.users(["ann"]).rows[0, 1:] == pytest.approx(wanted.rows[0, 1:])
    assert store.users(["ann"]).rounds.tolist() == [4.0]


def means_of(store: Store) -> list[tuple[int, list[tuple[float, ...]]]]:
    """The groups, control first, with the counts, sums and squares of users' means, rounded."""
    found = store.compared().values()
    return [(one.users, [tuple(round(x, 9) for x in sums) for sums in one.scores]) for one in found]


def test_an_experiment_compares_the_means_of_its_users(home: Home) -> None:
    store = begun(home)
    assert (store.running, store.experiments(), store.compared()) == (None, [], {})
    started = ExperimentStarted("autumn", 50.0, 0.25, "arm:A", 0.1)
    assert store.append(dataclasses.replace(started, policy="arm:Z")).code == "unknown_arm"
    assert store.append(started).outcome is Outcome.RECORDED
    assert store.append(dataclasses.replace(started, at=51.0)).outcome is Outcome.DUPLICATE
    for other in (dataclasses.replace(started, control=0.5), dataclasses.replace(started, name="winter")):
        assert store.append(other).code == "experiment_conflict"
    assert store.running == started
    control, treated = ("autumn", "control"), ("autumn", "treated")
    whose = {"ann": control, "bob": treated, "cid": treated, "dan": treated, "eve": None}
    numbers = dict(zip(whose, range(1, 6), strict=True))
    store.append_many([decision(number, user, group=whose[user]) for user, number in numbers.items()])
    store.append_many([decision(10 + number, user, group=whose[user]) for user, number in numbers.items()])
    whole = {"taste": 5.0, "price": 0.0, "service": 1.0}
    store.append_many([feedback(number, whole, overall=10.0) for number in numbers.values()])
    store.append_many(
        [feedback(11, {"taste": 3.0}), feedback(12, {"taste": 1.0}), feedback(3, {}, arm="B", overall=0.0)]
    )
    store.append_many([feedback(11, {"price": 500.0}), feedback(99, whole)])  # a part; and one to no decision
    assert [event.group for _, event in store.history("ann") if isinstance(event, FeedbackGiven)] == 3 * [control]
    ann = (1, [(1.0, 0.75, 0.5625), (1.0, 0.5, 0.25), (1.0, 1.0, 1.0), (1.0, 1.0, 1.0)])
    others = (3, [(3.0, 2.5, 2.25), (3.0, 3.0, 3.0), (3.0, 3.0, 3.0), (3.0, 2.5, 2.25)])
    assert means_of(store) == [ann, others]
    assert verify(store).ok
    store.append(UserErased("cid", at=210.0))
    bob_and_dan = (2, [(2.0, 1.5, 1.25), (2.0, 2.0, 2.0), (2.0, 2.0, 2.0), (2.0, 2.0, 2.0)])
    assert means_of(store) == [ann, bob_and_dan]
    store.append(feedback(13, whole))  # of nobody any more
    assert store.append(ExperimentEnded("autumn", 220.0)).outcome is Outcome.RECORDED
    assert store.append(ExperimentEnded("autumn", 221.0)).outcome is Outcome.DUPLICATE
    assert store.append(ExperimentEnded("spring", 221.0)).code == "unknown_experiment"
    assert store.append(started).code == "experiment_conflict"
    store.append(feedback(14, {"taste": 1.0}))  # late, and counts
    ended = (2, [(2.0, 1.0, 0.5), *bob_and_dan[1][1:]])
    assert means_of(store) == [ann, ended]
    assert [one.ended for one in store.experiments()] == [220.0]
    store.rebuild()
    assert means_of(store) == [ann, ended]
    if home.durable:
        store.snapshot()
        store.close()
        store = home.open()
        assert means_of(store) == [ann, ended]
    copy = MemoryStore(SETUP)
    copy.load(store.events())
    assert (means_of(copy), copy.experiments()) == ([ann, ended], list(store.experiments()))
    assert verify(copy).ok
    assert verify(store).ok
    weights = {"taste": 1.0, "price": 0.0, "service": 0.5}
    several = Variant("cheap", 0.25, preference=weights), Variant("house", 0.25, "arm:A")
    winter = ExperimentStarted("winter", 300.0, 0.25, "live", variants=several)
    wrong = dataclasses.replace(winter, variants=(several[0], Variant("house", 0.25, "arm:Z")))
    assert store.append(wrong).code == "unknown_arm"
    store.append_many(
        [winter, decision(30, group=("winter", "control")), decision(31, "dan", group=("winter", "cheap"))]
    )
    store.append_many([feedback(30), feedback(31), feedback(12, {"service": 0.0})])  # the last is of the one before
    for number in range(32, 132):
        store.append_many([decision(number, f"guest {number}", group=("winter", "house")), feedback(number)])
    assert {name: one.users for name, one in store.compared().items()} == {"control": 1, "cheap": 1, "house": 100}
    assert [one.started.name for one in store.experiments()] == ["autumn", "winter"]
    assert store.running == winter
    assert verify(store).ok
    if home.durable:
        told = means_of(store)
        store.snapshot()
        store.close()
        store = home.open()
        assert (means_of(store), store.running) == (told, winter)
    store.append(UserErased("ann", at=310.0))
    assert {name: one.users for name, one in store.compared().items()} == {"control": 0, "cheap": 1, "house": 100}
    assert verify(store).ok


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"control": 0.0},
        {"control": 1.0},
        {"control": "many"},
        {"policy": "Greedy!"},
        {"policy": "live"},
        {"variants": ({"name": "a", "share": 0.95},)},
        {"policy": "arm:"},
        {"policy": 3},
        {"smallest": 0.0},
        {"smallest": math.nan},
        {"at": math.inf},
    ],
)
def test_an_experiment_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="expected"):
        MemoryStore(SETUP).append(dataclasses.replace(ExperimentStarted("autumn", 0.0, 0.1), **wrong))


def test_a_decision_takes_so_many_feedbacks(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """With each that comes all before it are read, so that there has to be an end."""
    monkeypatch.setattr(rules, "MOST_PARTS", 3)
    store = begun(home)
    store.append(decision())
    parts = [feedback(1, {name: value}) for name, value in WHOLE.items()]
    assert [receipt.outcome for receipt in store.append_many(parts)] == [Outcome.RECORDED] * 3
    receipt = store.append(feedback(1, {}, overall=3.0))
    assert (receipt.outcome, "has 3 feedbacks" in receipt.reason) == (Outcome.CONFLICT, True)
    assert store.append(parts[0]).outcome is Outcome.DUPLICATE
