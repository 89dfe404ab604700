"""Judges events one after another against what the journal holds, and keeps in mind what it let through.

The memory store's ledger knows every decision. The others fill one for each batch with the decisions that it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pamo.contract.codes import Code
from pamo.contract.events import ARMS, RECORDED, refused
from pamo.store.ages import Ages
from pamo.store.base import (
    ArmAdded,
    ArmChanged,
    ArmRetired,
    ArmState,
    DecisionMade,
    Event,
    ExperimentEnded,
    ExperimentStarted,
    Feature,
    FeaturesDeclared,
    FeedbackGiven,
    Outcome,
    Receipt,
    TasteChanged,
    UserErased,
    UserKnown,
)
from pamo.store.groups import Experiment
from pamo.store.rules import (
    Changes,
    Entry,
    judge_arm,
    judge_change,
    judge_decision,
    judge_experiment,
    judge_feedback,
)
from pamo.store.scales import Scales


class Ledger:
    """Decisions by id and by key, and the arms' states.

    arms: as the journal has them; they may be many, and are not copied. features, user_features: those that are
    declared. changes: when tastes and arms were found to have changed. changed: where changes to arms go.
    experiments: by name, all there were; one that is to be started or ended stands alone (`runs`).
    """

    def __init__(
        self,
        scales: Scales,
        ages: Ages,
        arms: Mapping[str, ArmState],
        features: Mapping[str, Feature],
        changes: Changes,
        changed: dict[str, ArmState] | None = None,
        user_features: Mapping[str, Feature] | None = None,
        experiments: Mapping[str, Experiment] | None = None,
    ) -> None:
        self.entries: dict[str, Entry] = {}
        self.keys: dict[str, Entry] = {}
        self.arms, self.features = arms, features
        self.user_features = {} if user_features is None else user_features
        self.experiments = {} if experiments is None else experiments
        self._new: set[tuple[str, str]] = set()
        self.changed: dict[str, ArmState] = {} if changed is None else changed
        self.scales = scales
        self._ages = ages
        self.changes = changes

    def fill(self, events: Iterable[tuple[int, Event]]) -> None:
        """Put in decisions and feedbacks that the journal holds already, in any order."""
        feedbacks: list[tuple[int, FeedbackGiven | TasteChanged | UserKnown]] = []
        for sequence, event in events:
            if isinstance(event, DecisionMade):
                entry = self.entries[event.id] = Entry(event, sequence)
                if event.key is not None:
                    self.keys[event.key] = entry
            elif isinstance(event, FeedbackGiven | TasteChanged | UserKnown):
                feedbacks.append((sequence, event))
        for sequence, feedback in sorted(feedbacks, key=lambda one: getattr(one[1], "part", 0)):
            if feedback.decision in self.entries:  # a decision may be missing where damage was adopted
                entry = self.entries[feedback.decision]
                if isinstance(feedback, TasteChanged):
                    entry.changed = sequence
                elif isinstance(feedback, UserKnown):
                    entry.known = sequence
                else:
                    entry.parts = (*entry.parts, (sequence, feedback))

    def judge(self, events: Iterable[Event], first: int, step: int = 1) -> tuple[list[Receipt], list[Event]]:
        """Judge events in order; return the receipts, and what to write under the numbers first, first + step, …"""
        receipts: list[Receipt] = []
        records: list[Event] = []
        for event in events:
            receipt, record = self.take(event, first + step * len(records))
            receipts.append(receipt)
            if record is not None:
                records.append(record)
        return receipts, records

    def __contains__(self, arm: object) -> bool:
        return arm in self.arms or arm in self.changed

    def take(self, event: Event, sequence: int) -> tuple[Receipt, Event | None]:
        """Judge an event; return its receipt and, if it is to be recorded under that sequence number, what to write."""
        if type(event) is FeedbackGiven:
            entry = self.entries.get(event.decision)
            judged = judge_feedback(event, entry, self._ages, self.changes)
            if type(judged) is FeedbackGiven:
                assert entry is not None  # otherwise it was judged unknown
                entry.parts = (*entry.parts, (sequence, judged))
                learned = self.scales.learned(judged if judged.part == 1 else entry.whole(judged.arm or ""))
                return Receipt(RECORDED, sequence, learned, entry.decision), judged
            assert isinstance(judged, Receipt)
            if judged.outcome is Outcome.DUPLICATE and entry is not None:
                judged.learned = self.scales.learned(entry.whole(event.arm or entry.decision.arms[0]))
            return judged, None
        if type(event) is DecisionMade:
            same_key = self.keys.get(event.key) if event.key is not None else None
            # A mapping tells what it holds five times as fast as a method of ours.
            arms = self if self.changed and self.changed is not self.arms else self.arms
            receipt = judge_decision(event, self.entries.get(event.id), same_key, arms)
            if receipt is not None:
                return receipt, None
            if (since := self._ages.since(event.at)) is not None:
                event = replace(event, since=since)
            entry = self.entries[event.id] = Entry(event, sequence)
            if event.key is not None:
                self.keys[event.key] = entry
            return Receipt(RECORDED, sequence, (), event), event
        if isinstance(event, ArmAdded | ArmRetired):
            state = self.changed.get(event.arm) or self.arms.get(event.arm)
            receipt = judge_arm(event, state)
            if receipt is not None:
                return receipt, None
            state = state or ArmState(event.arm, False)
            self.changed[event.arm] = (
                state.after(event) if isinstance(event, ArmAdded) else state._replace(active=False)
            )
            return Receipt(RECORDED, sequence), event
        if isinstance(event, TasteChanged | UserKnown):
            entry = self.entries.get(event.decision)
            receipt = judge_change(event, entry)
            if receipt is not None or entry is None:
                return receipt or Receipt(Outcome.UNKNOWN), None
            if isinstance(event, UserKnown):
                entry.known = sequence
                return Receipt(RECORDED, sequence), event
            entry.changed = sequence
            return Receipt(RECORDED, sequence), replace(event, place=entry.sequence)
        if isinstance(event, ArmChanged):
            if event.arm not in self:
                return refused(Code.UNKNOWN_ARM, f"there is no arm {event.arm!r}"), None
            return Receipt(RECORDED, sequence), event
        if isinstance(event, ExperimentStarted | ExperimentEnded):
            receipt = judge_experiment(event, self.experiments, self)
            return receipt or Receipt(RECORDED, sequence), event if receipt is None else None
        if isinstance(event, FeaturesDeclared):
            known = self.features if event.of == ARMS else self.user_features
            new = tuple(
                one for one in event.features if one.name not in known and (event.of, one.name) not in self._new
            )
            if not new:
                return Receipt(Outcome.DUPLICATE), None
            self._new.update((event.of, one.name) for one in new)
            return Receipt(RECORDED, sequence), FeaturesDeclared(new, event.at, event.of)
        return Receipt(Outcome.DUPLICATE, 1), None  # the setup, which was checked to be this journal's


def nobody(event: UserErased) -> Receipt:
    """Return the receipt for the erasure of a user of whom there is nothing."""
    return Receipt(Outcome.UNKNOWN, reason=f"there is no user {event.user!r}")


def named(events: Sequence[Event]) -> tuple[list[str], list[str]]:
    """Return the decisions' ids and the keys that these events name, sorted."""
    ids, keys = set(), set()
    for event in events:
        if isinstance(event, FeedbackGiven | TasteChanged | UserKnown):
            ids.add(event.decision)
        elif isinstance(event, DecisionMade):
            ids.add(event.id)
            if event.key is not None:
                keys.add(event.key)
    return sorted(ids), sorted(keys)


def runs(events: Sequence[Event]) -> list[list[Event]]:
    """Split a batch so that what is no sum stands alone: erasures, changes, and experiments as they start and end."""
    parts: list[list[Event]] = [[]]
    for event in events:
        if isinstance(event, UserErased | TasteChanged | ArmChanged | ExperimentStarted | ExperimentEnded):
            parts += [[event], []]
        else:
            parts[-1].append(event)
    return [part for part in parts if part]
