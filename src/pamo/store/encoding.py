"""How events are written down: a kind, the columns that a database looks them up by, and the rest as JSON.

JSON holds floats exactly, can be read without pamo, and takes new fields without a new format. A field that has its
default is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pamo.contract.features import FeatureValue
from pamo.errors import StoreError, missing_extra
from pamo.store.base import (
    ArmAdded,
    ArmChanged,
    ArmRetired,
    DecisionMade,
    Declared,
    Event,
    ExperimentEnded,
    ExperimentStarted,
    FeaturesDeclared,
    FeedbackGiven,
    Setup,
    TasteChanged,
    UserErased,
    UserKnown,
)

try:
    import msgspec
    from msgspec.structs import astuple
except ImportError:
    raise missing_extra("a store on disk", "msgspec", "sqlite,postgres") from None

SETUP, DECLARED, FEATURES_DECLARED = "setup", "declared", "features declared"
ARM_ADDED, ARM_RETIRED = "arm added", "arm retired"
DECISION, FEEDBACK, USER_ERASED = "decision", "feedback", "user erased"
EXPERIMENT_STARTED, EXPERIMENT_ENDED = "experiment started", "experiment ended"
TASTE_CHANGED, ARM_CHANGED, USER_KNOWN = "taste changed", "arm changed", "user known"
PART = "part"
"""What feedbacks after the first to a decision are called. As rows they are `feedback 2` and so on: each kind of event
is there once for a decision, which keeps two workers from recording the same."""


class Row(NamedTuple):
    """An event as a row of the journal's table."""

    kind: str
    decision: str | None
    user: str | None
    key: str | None
    body: str


# Bodies: the fields that are in no column, in the order of the events'.


class _Decided(msgspec.Struct):
    arms: tuple[str, ...]
    propensity: float
    policy: str
    at: float
    offer: tuple[str, ...] | None = None
    k: int = 1


class _Decision(_Decided, omit_defaults=True):
    preference: Mapping[str, float] | None = None
    explanation: dict[str, Any] | None = None
    given: Mapping[str, Mapping[str, float]] | None = None
    since: float | None = None
    rounds: tuple[int, ...] | None = None
    group: tuple[str, str] | None = None


class _Feedback(msgspec.Struct, omit_defaults=True):
    rewards: Mapping[str, float]
    at: float
    overall: float | None = None
    preference: Mapping[str, float] | None = None
    arm: str | None = None
    before: Mapping[str, float] | None = None
    user_changed: bool = False
    arm_changed: bool = False
    age: tuple[float, int, int] | None = None
    group: tuple[str, str] | None = None


class _Changed(msgspec.Struct, omit_defaults=True):
    at: float
    kept: tuple[tuple[str, Mapping[str, float], float], ...] = ()
    place: int = 0


class _Known(msgspec.Struct):
    at: float
    features: Mapping[str, FeatureValue | None]


class _Given(msgspec.Struct):
    rewards: Mapping[str, float]
    at: float
    overall: float | None = None
    arm: str | None = None


_encode = msgspec.json.Encoder().encode
_decode_decision = msgspec.json.Decoder(_Decision).decode
_decode_feedback = msgspec.json.Decoder(_Feedback).decode
_decode_changed = msgspec.json.Decoder(_Changed).decode
_decode_known = msgspec.json.Decoder(_Known).decode
_decode_decided = msgspec.json.Decoder(_Decided).decode
_decode_given = msgspec.json.Decoder(_Given).decode
_KINDS: dict[type, str] = {
    Setup: SETUP,
    Declared: DECLARED,
    FeaturesDeclared: FEATURES_DECLARED,
    ArmAdded: ARM_ADDED,
    ArmRetired: ARM_RETIRED,
    ArmChanged: ARM_CHANGED,
    UserErased: USER_ERASED,
    ExperimentStarted: EXPERIMENT_STARTED,
    ExperimentEnded: EXPERIMENT_ENDED,
}
_DECODERS: dict[str, Any] = {kind: msgspec.json.Decoder(event).decode for event, kind in _KINDS.items()}


def encode(event: Event) -> Row:
    """Return the event as a row."""
    if type(event) is FeedbackGiven:
        feedback = _Feedback(
            event.rewards,
            event.at,
            event.overall,
            event.preference,
            event.arm,
            event.before,
            event.user_changed,
            event.arm_changed,
            event.age,
            event.group,
        )
        kind = FEEDBACK if event.part == 1 else f"{FEEDBACK} {event.part}"
        return Row(kind, event.decision, event.user, None, _encode(feedback).decode())
    if type(event) is DecisionMade:
        decision = _Decision(
            event.arms,
            event.propensity,
            event.policy,
            event.at,
            event.offer,
            event.k,
            event.preference,
            None if event.explanation is None else dict(event.explanation),
            event.given,
            event.since,
            event.rounds,
            event.group,
        )
        return Row(DECISION, event.id, event.user, event.key, _encode(decision).decode())
    if isinstance(event, TasteChanged):
        changed = _Changed(event.at, event.kept, event.place)
        return Row(TASTE_CHANGED, event.decision, event.user, None, _encode(changed).decode())
    if isinstance(event, UserKnown):
        return Row(USER_KNOWN, event.decision, event.user, None, _encode(_Known(event.at, event.features)).decode())
    return Row(_KINDS[type(event)], None, None, None, _encode(event).decode())


def decode_briefly(kind: str, decision: str | None, user: str | None, key: str | None, body: str | bytes) -> Event:
    """Return a decision without its explanation, or a feedback without the store's notes: in a third of the time."""
    try:
        if kind == DECISION:
            made = _decode_decided(body)
            chosen = made.arms, made.propensity, made.policy, made.at, made.offer, made.k
            return DecisionMade(decision or "", user, *chosen, key=key)
        given = _decode_given(body)
        part = 1 if kind == FEEDBACK else int(kind.removeprefix(f"{FEEDBACK} "))
        return FeedbackGiven(decision or "", given.rewards, given.at, given.overall, None, given.arm, user, part=part)
    except (AttributeError, TypeError, ValueError, msgspec.MsgspecError) as error:
        raise _unreadable(kind, error) from None


def _unreadable(kind: str, error: Exception) -> StoreError:
    return StoreError(f"the journal holds an event that this pamo cannot read ({kind}): {error}")


def decode(kind: str, decision: str | None, user: str | None, key: str | None, body: str | bytes) -> Event:
    """Return the event that a row holds."""
    try:
        if kind.startswith(FEEDBACK):
            *first, before, user_changed, arm_changed, age, group = astuple(_decode_feedback(body))
            part = 1 if kind == FEEDBACK else int(kind.removeprefix(f"{FEEDBACK} "))
            changed = user_changed, arm_changed
            return FeedbackGiven(decision or "", *first, user, before, part, *changed, age, group)  # type: ignore[call-arg]
        if kind == DECISION:
            *first, explanation, given, since, rounds, group = astuple(_decode_decision(body))
            kept = key, explanation, given, since, rounds, group
            return DecisionMade(decision or "", user, *first, *kept)  # type: ignore[call-arg]
        if kind == TASTE_CHANGED:
            return TasteChanged(decision or "", user, *astuple(_decode_changed(body)))
        if kind == USER_KNOWN:
            return UserKnown(decision or "", user, *astuple(_decode_known(body)))
        event: Event = _DECODERS[kind](body)
        return event
    except (AttributeError, KeyError, TypeError, ValueError, msgspec.MsgspecError) as error:
        # A damaged row may hold another type.
        raise _unreadable(kind, error) from None


_Row = tuple[int, str, str | None, str | None, str | None, str, int, int]
_decode_rows = msgspec.json.Decoder(list[_Row]).decode
experiments_of = msgspec.json.Decoder(list[tuple[ExperimentStarted, float | None]]).decode
"""From JSON to experiments, and when each was ended."""


def rows_of(text: str) -> list[_Row]:
    """Return the rows that a database returned as one JSON text."""
    return _decode_rows(text)


def to_json(value: Any) -> str:
    """Return any plain value as JSON."""
    return _encode(value).decode()


def from_json(text: str) -> Any:
    """Return the plain value of a JSON text."""
    return msgspec.json.decode(text)
