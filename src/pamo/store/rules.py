"""What may be recorded: every event is checked before it is judged, and judged before it is written.

`check` looks at the event alone and raises `InputError`. `judge_…` compares it with what the journal holds already and
returns the receipt for an event that is not to be recorded, or None for one that is. All stores share these rules.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

from pamo.contract.codes import Code
from pamo.contract.events import (
    FORMAT,
    ArmAdded,
    ArmChanged,
    ArmRetired,
    DecisionMade,
    Event,
    FeedbackGiven,
    Outcome,
    Receipt,
    Setup,
    TasteChanged,
    UserErased,
    refused,
    same_request,
)
from pamo.contract.limits import LARGEST, check_preference, check_text, is_number
from pamo.contract.objectives import Objective
from pamo.errors import InputError

NOT_EMPTY = "expected an empty store to load a journal into, got one with events: open a new one"


@dataclass(slots=True)
class Entry:
    """What the journal holds of one decision."""

    decision: DecisionMade
    sequence: int
    feedback: FeedbackGiven | None = None
    feedback_sequence: int = 0
    changed: int = 0
    """The number of the event by which the user's taste has changed with this decision."""


def check_setup(setup: Setup) -> None:
    """Raise `InputError` unless these objectives can be learned."""
    if setup.format > FORMAT:
        raise InputError(f"this journal has format {setup.format}, and this pamo reads up to {FORMAT}: update pamo")
    if not setup.objectives:
        raise InputError("expected at least one objective, got none: name what arms are scored on")
    names = [objective.name for objective in setup.objectives]
    for objective in (*setup.objectives, setup.overall):
        check_text(objective.name, "an objective's name", "objectives")
        low, high = objective.low, objective.high
        if not (is_number(low) and is_number(high) and 0 < high - low <= LARGEST):
            raise InputError(
                f"expected the scale of {objective.name!r} to go from a lower to a higher finite number, "
                f"got {low!r:.40} to {high!r:.40}"
            )
    if len(set(names)) < len(names) or "overall" in names:
        raise InputError(f"expected objectives of different names, none of them 'overall', got {', '.join(names)}")


class Checker:
    """Checks events against the objectives."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._objectives = {objective.name: objective for objective in setup.objectives}
        self._bounds = {objective.name: (objective.low, objective.high) for objective in setup.objectives}

    def check(self, event: Event) -> Event:
        """Return the event, its numbers plain floats; raise `InputError` unless it could be recorded."""
        if type(event) is FeedbackGiven:
            return self._check_feedback(event)
        if type(event) is DecisionMade:
            return self._check_decision(event)
        if isinstance(event, Setup):
            if event != self._setup:
                raise InputError(
                    "the objectives of a journal are declared once, in its first event: start another store"
                )
            return event
        if not isinstance(event, ArmAdded | ArmRetired | UserErased | TasteChanged | ArmChanged):
            raise InputError(f"expected an event of the journal, got {event!r}")
        _check_time(event.at)
        if isinstance(event, TasteChanged):
            return self._check_taste(event)
        if isinstance(event, ArmChanged):
            return self._check_changed(event)
        if isinstance(event, UserErased):
            check_text(event.user, "a user", "user")
        else:
            check_text(event.arm, "an arm", "arm")
        if isinstance(event, ArmAdded):
            check_text(event.name, "an arm's name", "name")
        return event if type(event.at) is float else replace(event, at=float(event.at))

    def _check_decision(self, event: DecisionMade) -> DecisionMade:
        check_text(event.id, "a decision's id", "id")
        check_text(event.user, "a user", "user")
        _check_time(event.at)
        if event.key is not None:
            check_text(event.key, "a key", "key")
        if not event.arms:
            raise InputError(f"expected at least one chosen arm in decision {event.id}, got none")
        for arm in event.arms:
            check_text(arm, "an arm", "arms")
        exact = type(event.at) is float and type(event.propensity) is float and type(event.k) is int
        if event.preference is not None:
            check_preference(event.preference, self._objectives)
            exact = exact and _is_plain(event.preference)
        if exact:
            return event
        k: Any = event.k
        return replace(
            event,
            at=float(event.at),
            propensity=plain(event.propensity),
            k=int(k) if isinstance(k, Integral) else k,
            preference=_floats(event.preference),
        )

    def _check_taste(self, event: TasteChanged) -> TasteChanged:
        check_text(event.decision, "a decision's id", "decision")
        check_text(event.user, "a user", "user")
        kept = []
        for arm, rewards, overall in event.kept:
            given = self._check_feedback(FeedbackGiven(event.decision, rewards, event.at, overall, None, arm))
            kept.append((arm, given.rewards, float(overall)))
        return replace(event, at=float(event.at), kept=tuple(kept))

    def _check_changed(self, event: ArmChanged) -> ArmChanged:
        check_text(event.arm, "an arm", "arm")
        kept = {}
        for name, sums in event.kept.items():
            if name not in self._objectives or len(sums) != 3 or not all(map(is_number, sums)) or sums[0] <= 0:
                raise InputError(
                    f"expected how many scores, their sum and squares by objective, got {event.kept!r:.80}"
                )
            kept[name] = (float(sums[0]), float(sums[1]), float(sums[2]))
        return replace(event, at=float(event.at), kept=kept)

    def _check_feedback(self, event: FeedbackGiven) -> FeedbackGiven:
        check_text(event.decision, "a decision's id", "id")
        _check_time(event.at)
        bounds = self._bounds
        exact = type(event.at) is float and type(event.rewards) is dict
        try:
            for name, value in event.rewards.items():
                low, high = bounds[name]
                if type(value) is not float or not low <= value <= high:  # the usual number is done with; NaN is not
                    _check_score(self._objectives[name], value, f"rewards.{name}")
                    exact = False
        except KeyError as error:
            known = ", ".join(bounds)
            raise InputError(f"unknown objective {error!s:.80} in rewards; known: {known}", "rewards") from None
        except AttributeError:
            raise InputError(f"expected rewards by objective, got {event.rewards!r:.80}", "rewards") from None
        if event.overall is not None:
            _check_score(self._setup.overall, event.overall, "overall")
            exact = exact and type(event.overall) is float
        if event.arm is not None:
            check_text(event.arm, "an arm", "arm")
        if event.preference is not None:
            check_preference(event.preference, self._objectives)
            exact = exact and _is_plain(event.preference)
        elif event.overall is None and not event.rewards:
            raise InputError(
                "expected feedback with a reward, an overall score or a preference, got none of them: "
                "a decision takes one feedback, and this one would use it up",
                "rewards",
            )
        if exact:
            return event
        return replace(
            event,
            rewards=_floats(event.rewards),
            at=float(event.at),
            overall=plain(event.overall),
            preference=_floats(event.preference),
        )


def judge_decision(
    event: DecisionMade, same_id: Entry | None, same_key: Entry | None, arms: Container[str]
) -> Receipt | None:
    """Say what becomes of a decision, given what has its id and its key; None: it is to be recorded."""
    if same_id is not None:
        first = same_id.decision
        # An explanation comes back from a journal otherwise than it went in: infinities and tuples are not JSON's.
        if replace(first, at=event.at, explanation=event.explanation) == event:
            return Receipt(Outcome.DUPLICATE, same_id.sequence, decision=first)
        return refused(Code.DECISION_CONFLICT, f"another decision was recorded as {event.id}, and it stays as it was")
    if same_key is not None:
        first = same_key.decision
        if same_request(first, event.user, event.offer, event.k, event.preference):
            return Receipt(Outcome.DUPLICATE, same_key.sequence, decision=first)
        return refused(
            Code.KEY_CONFLICT, f"the key {event.key} was used for another request, and its decision stays as it was"
        )
    for arm in event.arms:
        if arm not in arms:
            return refused(Code.UNKNOWN_ARM, f"there is no arm {arm!r}: add it first")
    return None


def judge_feedback(event: FeedbackGiven, entry: Entry | None, expires_after: float) -> Receipt | None:
    """Say what becomes of a feedback, given its decision; None: it is to be recorded."""
    if entry is None:
        return refused(
            Code.UNKNOWN_DECISION, f"there is no decision {event.decision}: give the id of one that was made here"
        )
    decision = entry.decision
    if event.arm is not None and event.arm not in decision.arms:
        chosen = ", ".join(decision.arms)
        return refused(Code.ARM_NOT_CHOSEN, f"decision {event.decision} chose {chosen}, and not {event.arm}")
    if entry.feedback is not None:
        if same_feedback(entry.feedback, completed(event, decision)):
            return Receipt(Outcome.DUPLICATE, entry.feedback_sequence)
        return refused(
            Code.FEEDBACK_CONFLICT,
            f"another feedback was recorded for decision {event.decision}, and it stays as it was",
        )
    if event.at > decision.at + expires_after:
        return refused(
            Code.EXPIRED_DECISION,
            f"decision {event.decision} took feedback for {expires_after:g} s only: nothing was learned",
        )
    return None


def judge_arm(event: ArmAdded | ArmRetired, name: str | None, active: bool) -> Receipt | None:
    """Say what becomes of a change to an arm, given its present name (None: there is no such arm) and state."""
    if isinstance(event, ArmRetired):
        if name is None:
            return refused(Code.UNKNOWN_ARM, f"there is no arm {event.arm!r}")
        return None if active else Receipt(Outcome.DUPLICATE)
    return Receipt(Outcome.DUPLICATE) if active and name == event.name else None


def completed(event: FeedbackGiven, decision: DecisionMade) -> FeedbackGiven:
    """Return the feedback as the journal keeps it: with its arm and its user, or none if that user was erased."""
    user = decision.user
    return FeedbackGiven(
        event.decision,
        event.rewards,
        event.at,
        event.overall,
        None if user is None else event.preference,
        event.arm or decision.arms[0],
        user,
    )


def same_feedback(first: FeedbackGiven, second: FeedbackGiven) -> bool:
    """Tell whether two completed feedbacks say the same; a retry may come at another time."""
    return (first.arm, first.rewards, first.overall, first.preference) == (
        second.arm,
        second.rewards,
        second.overall,
        second.preference,
    )


def judge_change(event: TasteChanged, entry: Entry | None) -> Receipt | None:
    """Say what becomes of a change of taste, given the decision that it begins with; None: it is to be recorded."""
    if entry is None or entry.decision.user != event.user:
        return refused(Code.UNKNOWN_DECISION, f"there is no decision {event.decision} for {event.user!r}")
    return Receipt(Outcome.DUPLICATE, entry.changed) if entry.changed else None


OfUser = DecisionMade | FeedbackGiven | TasteChanged
"""An event that names a user."""


def redacted(event: OfUser) -> OfUser:
    """Return the event without anything of its user but what the arms learned."""
    if isinstance(event, TasteChanged):
        return replace(event, user=None, kept=())
    if isinstance(event, DecisionMade):
        return replace(event, user=None, key=None, preference=None, explanation=None)
    return replace(event, user=None, preference=None)


def plain(value: Any) -> Any:
    """Return a number as a plain float, and anything else as it is."""
    return float(value) if is_number(value) else value


def _is_plain(values: Mapping[str, float]) -> bool:
    return type(values) is dict and all(type(value) is float for value in values.values())


def _floats(values: Mapping[str, float] | None) -> Any:
    return None if values is None else {name: float(value) for name, value in values.items()}


def _check_time(value: Any) -> None:
    if not (type(value) is float and value - value == 0.0) and not is_number(value):
        raise InputError(f"expected a time in seconds since 1970, got {value!r}")


def _check_score(objective: Objective, value: Any, field: str) -> None:
    if not (is_number(value) and objective.low <= value <= objective.high):
        raise InputError(
            f"expected {objective.name} to be a number from {objective.low:g} to {objective.high:g}, got {value!r:.80}",
            field,
        )
