"""What is asked of the engine, checked; and what a store's receipt says, as an answer or an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.contract.limits import check_text, check_weight
from pamo.errors import ConflictError, ExpiredDecisionError, InputError, PamoError, UnknownDecisionError
from pamo.store import DecisionMade, FeedbackGiven, Outcome, Receipt
from pamo.store.rules import same_request


@dataclass(slots=True)
class Request:
    """What `Engine.decide` takes, for `Engine.decide_many`."""

    user: str
    arms: Sequence[str] | None = None
    preference: Mapping[str, float] | None = None
    k: int = 1
    key: str | None = None


_FIELDS = tuple(field.name for field in fields(Request))


def as_request(given: Any) -> Request:
    """Return the request that a user's id or a mapping stands for."""
    if isinstance(given, Request):
        return given
    if isinstance(given, Mapping):
        if "user" not in given or not set(given) <= set(_FIELDS):
            raise InputError(f"expected a request with user and any of {', '.join(_FIELDS[1:])}, got {given!r:.120}")
        return Request(**given)
    return Request(given)


_FEEDBACK = {"decision_id", "rewards", "overall", "preference", "arm"}


def as_feedback(given: Any, at: float) -> FeedbackGiven:
    """Return the event that a mapping of what `Engine.feedback` takes stands for."""
    if not isinstance(given, Mapping) or "decision_id" not in given or not set(given) <= _FEEDBACK:
        raise InputError(f"expected a feedback with {', '.join(sorted(_FEEDBACK))}, got {given!r:.120}")
    rewards = given.get("rewards")
    return FeedbackGiven(
        given["decision_id"],
        {} if rewards is None else rewards,
        at,
        given.get("overall"),
        given.get("preference"),
        given.get("arm"),
    )


def check_user(user: Any) -> None:
    """Raise `InputError` unless this may be a user."""
    check_text(user, "a user", "user")


def weights_in(preference: Mapping[str, float], names: Sequence[str]) -> Floats:
    """Return a known preference as a row of numbers in the objectives' order."""
    given: Any = preference
    if not isinstance(given, Mapping) or len(given) != len(names) or any(name not in given for name in names):
        raise InputError(
            f"expected in preference a weight for every objective ({', '.join(names)}), got {given!r:.80}", "preference"
        )
    row = np.empty((1, len(names)))
    for place, name in enumerate(names):
        value = given[name]
        check_weight(name, value)
        row[0, place] = value
    return row


def usable_key(request: Request) -> str | None:
    """Return the request's key, or None if it has none that could have been used before."""
    if request.key is None:
        return None
    try:
        check_text(request.key, "a key", "key")
    except InputError:
        return None
    return request.key


def asks_the_same(request: Request, first: DecisionMade) -> bool:
    """Tell whether a request is the one that a decision was made for."""
    arms: Any = request.arms
    if arms is not None and (isinstance(arms, str) or not isinstance(arms, Sequence)):
        return False
    offer = None if arms is None else tuple(arms)
    return same_request(first, request.user, offer, request.k, request.preference)


def refusal(receipt: Receipt) -> PamoError:
    """Return the error that a receipt stands for, of an event that was not recorded."""
    if receipt.outcome is Outcome.CONFLICT:
        return ConflictError(f"{receipt.reason}, and it stays as it was")
    if receipt.outcome is Outcome.EXPIRED:
        return ExpiredDecisionError(f"{receipt.reason}: nothing was learned")
    if receipt.reason.startswith("there is no decision"):
        return UnknownDecisionError(f"{receipt.reason}: give the id of one that was made here")
    return InputError(receipt.reason, "arm" if receipt.reason.startswith("decision") else "arms")
