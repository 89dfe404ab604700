"""Judges events one after another against what the journal holds, and keeps in mind what it let through.

The memory store's ledger knows every decision. The others fill one for each batch with the decisions that it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pamo.store.base import (
    ArmAdded,
    ArmRetired,
    DecisionMade,
    Event,
    FeedbackGiven,
    Made,
    Outcome,
    Receipt,
    UserErased,
)
from pamo.store.rules import Entry, completed, judge_arm, judge_decision, judge_feedback
from pamo.store.scales import Scales


class Ledger:
    """Decisions by id and by key, and the arms' names and states."""

    def __init__(self, scales: Scales, expires_after: float, arms: dict[str, tuple[str, bool]]) -> None:
        self.entries: dict[str, Entry] = {}
        self.keys: dict[str, Entry] = {}
        self.arms = arms
        self._scales = scales
        self._expires_after = expires_after

    def fill(self, events: Iterable[tuple[int, Event]]) -> None:
        """Put in decisions and feedbacks that the journal holds already, in any order."""
        feedbacks: list[tuple[int, FeedbackGiven]] = []
        for sequence, event in events:
            if isinstance(event, DecisionMade):
                entry = self.entries[event.id] = Entry(event, sequence)
                if event.key is not None:
                    self.keys[event.key] = entry
            elif isinstance(event, FeedbackGiven):
                feedbacks.append((sequence, event))
        for sequence, feedback in feedbacks:
            entry = self.entries[feedback.decision]
            entry.feedback, entry.feedback_sequence = feedback, sequence

    def take(self, event: Event, sequence: int) -> tuple[Receipt, Event | None]:
        """Judge an event; return its receipt and, if it is to be recorded under that sequence number, what to write."""
        if type(event) is FeedbackGiven:
            entry = self.entries.get(event.decision)
            receipt = judge_feedback(event, entry, self._expires_after)
            if receipt is None:
                assert entry is not None  # otherwise it was judged unknown
                whole = completed(event, entry.decision)
                entry.feedback, entry.feedback_sequence = whole, sequence
                return Receipt(Outcome.RECORDED, sequence, self._scales.learned(whole), entry.decision), whole
            if receipt.outcome is Outcome.DUPLICATE and entry is not None and entry.feedback is not None:
                receipt.learned = self._scales.learned(entry.feedback)
            return receipt, None
        if type(event) is DecisionMade:
            same_key = self.keys.get(event.key) if event.key is not None else None
            receipt = judge_decision(event, self.entries.get(event.id), same_key, self.arms)
            if receipt is not None:
                return receipt, None
            entry = self.entries[event.id] = Entry(event, sequence)
            if event.key is not None:
                self.keys[event.key] = entry
            return Receipt(Outcome.RECORDED, sequence, decision=event), event
        if isinstance(event, ArmAdded | ArmRetired):
            name, active = self.arms.get(event.arm, (None, False))
            receipt = judge_arm(event, name, active)
            if receipt is not None:
                return receipt, None
            if isinstance(event, ArmAdded):
                self.arms[event.arm] = (event.name, True)
            else:
                self.arms[event.arm] = (name or event.arm, False)
            return Receipt(Outcome.RECORDED, sequence), event
        return Receipt(Outcome.DUPLICATE, 1), None  # the setup, which was checked to be this journal's


def together(made: Iterable[tuple[int, Event]], given: Iterable[Event]) -> list[Made]:
    """Return decisions, in their order, each with its feedback."""
    feedback = {event.decision: event for event in given if isinstance(event, FeedbackGiven)}
    return [
        Made(sequence, event, feedback.get(event.id)) for sequence, event in made if isinstance(event, DecisionMade)
    ]


def named(events: Sequence[Event]) -> tuple[list[str], list[str]]:
    """Return the decisions' ids and the keys that these events name, sorted."""
    ids, keys = set(), set()
    for event in events:
        if isinstance(event, FeedbackGiven):
            ids.add(event.decision)
        elif isinstance(event, DecisionMade):
            ids.add(event.id)
            if event.key is not None:
                keys.add(event.key)
    return sorted(ids), sorted(keys)


def runs(events: Sequence[Event]) -> list[list[Event]]:
    """Split a batch so that each erasure stands alone: it changes what the events after it are judged by."""
    parts: list[list[Event]] = [[]]
    for event in events:
        if isinstance(event, UserErased):
            parts += [[event], []]
        else:
            parts[-1].append(event)
    return [part for part in parts if part]
