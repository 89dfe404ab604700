"""A state machine over every store: whatever is asked of it in whatever order, it equals the plain model."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from pamo.contract.features import features
from pamo.store import ArmAdded, ArmRetired, DecisionMade, Event, FeaturesDeclared, FeedbackGiven, Outcome, UserErased
from pamo.store.maintenance import verify
from tests.store.homes import HOMES
from tests.store.model import SETUP, Model
from tests.store.test_laws import ARMS, USERS, feedbacks, weights

EXPIRES_AFTER = 10.0
EXAMPLES = {"memory": 60, "sqlite": 30, "postgres": 8}


class Machine(RuleBasedStateMachine):
    """Whoever uses a store: time passes, things go wrong, and the process dies now and then."""

    kind: str
    url: Callable[[], str]

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="pamo-machine-")
        self.home = HOMES[self.kind](Path(self.folder.name), type(self).url)
        self.store = self.home.open(SETUP, expires_after=EXPIRES_AFTER)
        self.model = Model(EXPIRES_AFTER)
        self.numbers = itertools.count()
        self.now = 0.0
        self.given: dict[str, FeedbackGiven] = {}

    def teardown(self) -> None:
        try:
            assert verify(self.store).differences == ()
        finally:
            self.home.close()
            self.folder.cleanup()

    def append(self, *events: Event) -> None:
        receipts = self.store.append_many(list(events))
        for event, receipt in zip(events, receipts, strict=True):
            assert receipt.outcome is self.model.append(event), (event, receipt)
            if receipt.outcome is Outcome.RECORDED and isinstance(event, FeedbackGiven):
                self.given[event.decision] = event

    @rule(
        arm=st.sampled_from(ARMS),
        name=st.sampled_from(["old", "new"]),
        pool=st.sampled_from([None, True, False]),
        stars=st.sampled_from([None, 3.0]),
        style=st.sampled_from([None, "plain", "Jugendstil, grün"]),
    )
    def add_arm(self, arm: str, name: str, pool: bool | None, stars: float | None, style: str | None) -> None:
        given = {"pool": pool, "stars": stars, "style": style}
        known = {feature: value for feature, value in given.items() if feature in self.model.declared}
        self.append(ArmAdded(arm, name, self.now, known or None))

    @rule(names=st.lists(st.sampled_from(["pool: yes or no", "stars", "style: word"]), min_size=1, unique=True))
    def declare(self, names: list[str]) -> None:
        self.append(FeaturesDeclared(features(names), self.now))

    @rule(arm=st.sampled_from(ARMS))
    def retire_arm(self, arm: str) -> None:
        self.append(ArmRetired(arm, self.now))

    def decision(
        self, user: str, arms: Any, key: str | None, preference: Any, price: float | None = None
    ) -> DecisionMade:
        made = DecisionMade(
            f"d{next(self.numbers)}", user, tuple(arms), 0.5, "p", self.now, None, len(arms), preference, key
        )
        if price is not None:
            made.offer, made.given = made.arms, {made.arms[-1]: {"price": price}}
        return made

    @rule(
        user=st.sampled_from(USERS),
        arms=st.lists(st.sampled_from(ARMS), min_size=1, max_size=2, unique=True),
        key=st.none() | st.sampled_from(["k1", "k2", "k3"]),
        preference=st.none() | weights(),
        price=st.none() | st.sampled_from([0.0, 120.0]),
    )
    def decide(self, user: str, arms: list[str], key: str | None, preference: Any, price: float | None) -> None:
        self.append(self.decision(user, arms, key, preference, price))

    @rule(
        user=st.sampled_from(USERS),
        arm=st.sampled_from(ARMS),
        event=feedbacks(st.just(""), st.just(0.0)),
    )
    def decide_and_feed_back_in_one_batch(self, user: str, arm: str, event: FeedbackGiven) -> None:
        decision = self.decision(user, [arm], None, None)
        event.decision, event.at = decision.id, self.now
        self.append(decision, event, decision, event)

    @precondition(lambda self: self.model.decisions)
    @rule(data=st.data(), together=st.booleans())
    def feed_back_in_parts(self, data: st.DataObject, together: bool) -> None:
        """Each score by itself, in any order, some of them twice, for any of the arms."""
        decision = data.draw(st.sampled_from(sorted(self.model.decisions)))
        whole = data.draw(feedbacks(st.just(decision), st.just(0.0)))
        arm, now = data.draw(st.sampled_from(self.model.decisions[decision].arms)), self.now
        parts = [FeedbackGiven(decision, {name: value}, now, arm=arm) for name, value in whole.rewards.items()]
        if whole.overall is not None:
            parts.append(FeedbackGiven(decision, {}, now, whole.overall, arm=arm))
        if whole.preference is not None:
            parts.append(FeedbackGiven(decision, {}, now, preference=whole.preference, arm=arm))
        parts = data.draw(st.permutations([*parts, *parts[:1]]))
        for batch in [parts] if together else [[part] for part in parts]:
            if batch:
                self.append(*batch)

    @precondition(lambda self: self.model.decisions)
    @rule(data=st.data(), after=st.sampled_from([0.0, 9.0, 11.0]))
    def feed_back(self, data: st.DataObject, after: float) -> None:
        """On time or late, for the first time, again or otherwise than before."""
        decision = data.draw(st.sampled_from(sorted(self.model.decisions)))
        event = data.draw(feedbacks(st.just(decision), st.just(0.0)))
        event.at = self.now + after
        self.append(event)

    @precondition(lambda self: self.given)
    @rule(data=st.data(), after=st.sampled_from([0.0, 100.0]))
    def feed_back_again(self, data: st.DataObject, after: float) -> None:
        event = self.given[data.draw(st.sampled_from(sorted(self.given)))]
        again = FeedbackGiven(
            event.decision, event.rewards, self.now + after, event.overall, event.preference, event.arm
        )
        self.append(again)

    @rule()
    def feed_back_to_nothing(self) -> None:
        self.append(FeedbackGiven("never", {"taste": 2.0}, self.now))

    @rule(user=st.sampled_from(USERS))
    def erase(self, user: str) -> None:
        self.append(UserErased(user, self.now))

    @rule(seconds=st.floats(0.0, 8.0))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def take_snapshot(self) -> None:
        self.store.snapshot()

    @rule()
    def rebuild(self) -> None:
        self.store.rebuild()

    @rule(snapshot=st.booleans())
    def crash_and_restart(self, snapshot: bool) -> None:
        """Leave without a snapshot, or with one."""
        if self.home.durable:
            self.store.close(snapshot=snapshot)
            self.store = self.home.open(expires_after=EXPIRES_AFTER)

    @invariant()
    def is_the_model(self) -> None:
        self.model.check(self.store)


@pytest.mark.parametrize("kind", HOMES)
def test_every_store_equals_the_plain_model(kind: str, request: pytest.FixtureRequest) -> None:
    new: Callable[[], str] = request.getfixturevalue("postgres_url") if kind == "postgres" else str
    machine = type("Machine", (Machine,), {"kind": kind, "url": staticmethod(new)})
    run_state_machine_as_test(machine, settings=settings(max_examples=EXAMPLES[kind], stateful_step_count=30))
