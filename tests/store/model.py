"""The plain model that every store is held against: lists, dicts, and the statistics' own `observe`."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from pamo.statistics import ArmStatistics, UserStatistics
from pamo.store import (
    ArmAdded,
    ArmRetired,
    DecisionMade,
    Event,
    FeaturesDeclared,
    FeedbackGiven,
    Objective,
    Outcome,
    Setup,
    Store,
    UserErased,
)

SETUP = Setup(
    (Objective("taste", 1, 5), Objective("price", 0, 500, lower_is_better=True), Objective("service")),
    overall=Objective("overall", 0, 10),
)
OBJECTIVES = tuple(objective.name for objective in SETUP.objectives)


class Model:
    """What a store should hold, written for the reader rather than for the machine."""

    def __init__(self, expires_after: float, setup: Setup = SETUP) -> None:
        self.setup = setup
        self.expires_after = expires_after
        self.arms: dict[str, tuple[str, bool]] = {}
        self.declared: dict[str, str] = {}
        self.features: dict[str, dict[str, object]] = {}
        self.decisions: dict[str, DecisionMade] = {}
        self.parts: dict[str, list[FeedbackGiven]] = {}
        self.count = 1  # the setup

    def append(self, event: Event) -> Outcome:
        outcome = self.judge(event)
        self.count += outcome is Outcome.RECORDED
        return outcome

    def judge(self, event: Event) -> Outcome:
        match event:
            case FeaturesDeclared(features):
                if {one.name for one in features} <= self.declared.keys():
                    return Outcome.DUPLICATE
                self.declared |= {one.name: one.kind for one in features}
            case ArmAdded(arm, name):
                known = {**self.features.get(arm, {}), **(event.features or {})}
                known = {feature: value for feature, value in known.items() if value is not None}
                if self.arms.get(arm) == (name, True) and self.features.get(arm, {}) == known:
                    return Outcome.DUPLICATE
                self.arms[arm], self.features[arm] = (name, True), known
            case ArmRetired(arm):
                if arm not in self.arms:
                    return Outcome.UNKNOWN
                name, active = self.arms[arm]
                if not active:
                    return Outcome.DUPLICATE
                self.arms[arm] = (name, False)
            case DecisionMade():
                if event.id in self.decisions:
                    first = self.decisions[event.id]
                    same = dataclasses.replace(first, at=event.at, explanation=event.explanation) == event
                    return Outcome.DUPLICATE if same else Outcome.CONFLICT
                for first in self.decisions.values():
                    if event.key is not None and first.key == event.key:
                        asked = ("user", "offer", "k", "preference", "given")
                        same = all(getattr(first, name) == getattr(event, name) for name in asked)
                        return Outcome.DUPLICATE if same else Outcome.CONFLICT
                if not set(event.arms) <= set(self.arms):
                    return Outcome.UNKNOWN
                self.decisions[event.id] = event
            case FeedbackGiven():
                return self.judge_feedback(event)
            case UserErased(user):
                mine = [d for d in self.decisions.values() if d.user == user]
                if not mine:
                    return Outcome.UNKNOWN
                for decision in mine:
                    self.decisions[decision.id] = dataclasses.replace(
                        decision, user=None, key=None, preference=None, explanation=None
                    )
                    for place, part in enumerate(self.parts.get(decision.id, ())):
                        self.parts[decision.id][place] = dataclasses.replace(part, user=None, preference=None)
        return Outcome.RECORDED

    def judge_feedback(self, event: FeedbackGiven) -> Outcome:
        decision = self.decisions.get(event.decision)
        if decision is None or (event.arm is not None and event.arm not in decision.arms):
            return Outcome.UNKNOWN
        arm, parts = event.arm or decision.arms[0], self.parts.get(event.decision, [])
        preference = None if decision.user is None else event.preference
        known = {} if decision.given is None else dict(decision.given.get(arm, {}))
        mine = [part for part in parts if part.arm == arm]
        for part in mine:
            known |= part.rewards
            if part.overall is not None:
                known["overall"] = part.overall
        new = dict(event.rewards)
        if event.overall is not None:
            new["overall"] = event.overall
        if any(name in known and known[name] != value for name, value in new.items()):
            return Outcome.CONFLICT
        for part in parts:
            if part.preference is not None and preference is not None:
                if part.preference != preference:
                    return Outcome.CONFLICT
                preference = None
        if mine:
            new = {name: value for name, value in new.items() if name not in known}
            if not new and preference is None:
                return Outcome.DUPLICATE
        else:
            new = {**known, **new}
        if event.at > decision.at + self.expires_after:
            return Outcome.EXPIRED
        overall = new.pop("overall", None)
        whole = FeedbackGiven(event.decision, new, event.at, overall, preference, arm, decision.user)
        whole.before, whole.part = known if mine else None, len(parts) + 1
        whole.age = (mine[0].at, 0, 0) if mine else None
        self.parts.setdefault(event.decision, []).append(whole)
        return Outcome.RECORDED

    @property
    def feedbacks(self) -> list[FeedbackGiven]:
        """What was said of each arm of each decision, put together."""
        whole: dict[tuple[str, str | None], FeedbackGiven] = {}
        for part in (part for parts in self.parts.values() for part in parts):
            first = whole.get((part.decision, part.arm))
            if first is None:
                whole[part.decision, part.arm] = dataclasses.replace(part, before=None, part=1)
            else:
                first.rewards = {**first.rewards, **part.rewards}
                first.overall = part.overall if first.overall is None else first.overall
                first.preference = part.preference if first.preference is None else first.preference
        return list(whole.values())

    def reward(self, feedback: FeedbackGiven) -> list[float]:
        return [
            objective.normalised(feedback.rewards[objective.name]) if objective.name in feedback.rewards else np.nan
            for objective in self.setup.objectives
        ]

    def overall(self, feedback: FeedbackGiven) -> float | None:
        return None if feedback.overall is None else self.setup.overall.normalised(feedback.overall)

    def users(self) -> list[str]:
        return sorted({feedback.user for feedback in self.feedbacks if feedback.user is not None})

    def arm_statistics(self, ids: list[str]) -> ArmStatistics:
        sums = ArmStatistics.zeros(arms=len(ids), objectives=len(self.setup.objectives))
        for feedback in self.feedbacks:
            assert feedback.arm is not None
            sums.observe(ids.index(feedback.arm), self.reward(feedback), self.overall(feedback))
        return sums

    def user_statistics(self, ids: list[str]) -> UserStatistics:
        sums = UserStatistics.zeros(users=len(ids), objectives=len(self.setup.objectives))
        for feedback in self.feedbacks:
            if feedback.user in ids:
                stated = feedback.preference
                weights = None if stated is None else [stated[objective.name] for objective in self.setup.objectives]
                sums.observe(ids.index(feedback.user), self.reward(feedback), self.overall(feedback), weights)
        return sums

    def pairs(self) -> dict[tuple[str, str], list[float]]:
        """Rounds, Σg, Σg², counts and Σr of the feedbacks with an overall score and an incomplete reward."""
        sums: dict[tuple[str, str], Any] = {}
        for feedback in self.feedbacks:
            reward, overall = np.array(self.reward(feedback)), self.overall(feedback)
            if feedback.user is None or overall is None or not np.isnan(reward).any():
                continue
            row = np.concatenate([[1.0, overall, overall**2], ~np.isnan(reward), np.nan_to_num(reward)])
            pair = feedback.user, str(feedback.arm)
            sums[pair] = sums.get(pair, 0.0) + row
        return {pair: row.tolist() for pair, row in sums.items()}

    def check(self, store: Store) -> None:
        """Compare everything that a store can be asked."""
        arms = store.arms()
        assert {arm: (arms.names[row], bool(arms.active[row])) for arm, row in arms.rows.items()} == self.arms
        assert {arm: arms.features[row] for arm, row in arms.rows.items()} == {
            arm: self.features.get(arm, {}) for arm in self.arms
        }
        assert {one.name: one.kind for one in store.features.values()} == self.declared
        if self.arms:
            with store.lock:
                assert_same(arms.statistics, self.arm_statistics(list(arms.ids)))
        users = self.users()
        assert sorted(store.user_ids()) == users
        asked = [*users, "nobody"]
        assert_same(store.users(asked), self.user_statistics(asked))
        found, pairs = store.user_pairs([*asked, *users[:1]]), self.pairs()  # and one of them twice
        for place, user in enumerate([*asked, *users[:1]]):
            part = slice(found.starts[place], found.starts[place + 1])
            own = {(user, arms.ids[arm]): row for arm, row in zip(found.arms[part], found.rows[part], strict=True)}
            assert own.keys() == {pair for pair in pairs if pair[0] == user}
            for pair, row in own.items():
                assert row == pytest.approx(pairs[pair], rel=1e-9, abs=1e-12)
        assert store.pending() == len(self.decisions) - len(self.parts)
        for decision_id, decision in self.decisions.items():
            assert store.decision(decision_id) == decision
            assert store.parts(decision_id) == tuple(self.parts.get(decision_id, ()))
        assert len(list(store.events())) == self.count


def assert_same(ours: ArmStatistics | UserStatistics, theirs: ArmStatistics | UserStatistics) -> None:
    for field in dataclasses.fields(ours):
        left, right = getattr(ours, field.name), getattr(theirs, field.name)
        assert left.shape == right.shape
        assert left == pytest.approx(right, rel=1e-9, abs=1e-12), field.name
