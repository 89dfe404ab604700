"""Every call of the service: the request that it is, and how its answer is read. Both clients make the same ones."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pamo.client.answers import FeedbackResult
from pamo.client.encoding import body, reader, segment
from pamo.contract.limits import check_text
from pamo.engine import Arm, ArmScore, Decision, Explanation, Feedback, FrontArm, Objective, Preference, Request
from pamo.engine.requests import as_request
from pamo.errors import InputError, PamoError, UnknownDecisionError

T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class Call(Generic[T]):
    """A request that may be sent again as it is, and how its answer is read.

    missing: what is raised if the service knows no such thing (404). known: the answer, where there is nothing to ask.
    """

    method: str
    path: str
    read: Callable[[bytes], T]
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    missing: type[PamoError] = InputError
    known: T | None = None


# What some answers are wrapped in.


@dataclass(slots=True)
class _Decisions:
    decisions: list[Decision]


@dataclass(slots=True)
class _Results:
    results: list[FeedbackResult]


@dataclass(slots=True)
class _Arms:
    arms: list[Arm]


@dataclass(slots=True)
class _Front:
    arms: list[FrontArm]


@dataclass(slots=True)
class _Declared:
    objectives: tuple[Objective, ...]
    overall: Objective


@dataclass(slots=True)
class _Score:
    arm: str
    values: dict[str, float]
    preference_bonus: float
    reward_bonus: float | None = None  # JSON has no infinity, the bonus of an arm that has not been tried


@dataclass(slots=True)
class _Why:
    preference: dict[str, float]
    sentence: str
    chosen: _Score | None = None
    without_exploration: _Score | None = None


@dataclass(slots=True)
class _Explained:
    id: str
    policy: str
    explanation: _Why


# Decisions and feedback


def decide(
    user: str, arms: Sequence[str] | None, preference: Mapping[str, float] | None, k: int, key: str | None
) -> Call[Decision]:
    """Ask for a decision, under a key, so that asked again it is the same decision."""
    key = _key(key)
    if not (key.isascii() and key.isprintable() and key == key.strip()):
        # A header cannot carry it. The requests of a batch have their keys in the body.
        many = decide_many([Request(user, arms, preference, k, key)])
        return Call(many.method, many.path, lambda content: many.read(content)[0], many.content, many.headers)
    fields = {"user": user, "arms": arms, "preference": preference, "k": k}
    return _post("/v1/decisions", reader(Decision), fields, headers={"Idempotency-Key": key})


def decide_many(requests: Iterable[str | Mapping[str, Any] | Request]) -> Call[list[Decision]]:
    """Ask for many decisions, each under a key."""
    several = [
        {"user": one.user, "arms": one.arms, "preference": one.preference, "k": one.k, "key": _key(one.key)}
        for one in map(as_request, requests)
    ]
    read = reader(_Decisions)
    fields = {"requests": [_given(one) for one in several]}
    return _batch("/v1/decisions/batch", lambda content: read(content).decisions, fields, len(several))


def feedback(
    decision_id: str,
    rewards: Mapping[str, float] | None,
    overall: float | None,
    preference: Mapping[str, float] | None,
    arm: str | None,
) -> Call[Feedback]:
    """Give feedback; given again it counts once, by the decision's id."""
    fields = {"rewards": rewards, "overall": overall, "preference": preference, "arm": arm}
    path = f"/v1/decisions/{segment(decision_id, 'a decision', 'decision_id')}/feedback"
    return _post(path, reader(Feedback), fields, missing=UnknownDecisionError)


def feedback_many(items: Iterable[Mapping[str, Any]]) -> Call[list[FeedbackResult]]:
    """Give many feedbacks, each for a decision of its own."""
    several = [_item(one) for one in items]
    read = reader(_Results)
    return _batch("/v1/feedback/batch", lambda content: read(content).results, {"feedback": several}, len(several))


def decision(decision_id: str) -> Call[Decision]:
    """Read a decision that was made."""
    return _made(decision_id, reader(Decision))


def explain(made: str | Decision) -> Call[Explanation]:
    """Read why a decision was made as it was."""
    read = reader(_Explained)
    return _made(made.id if isinstance(made, Decision) else made, lambda content: _explanation(read(content)))


# Users


def preference(user: str) -> Call[Preference]:
    """Read what a user cares about."""
    return Call("GET", f"/v1/users/{segment(user, 'a user', 'user')}/preference", reader(Preference))


def export_user(user: str) -> Call[dict[str, Any]]:
    """Read everything that is kept of a user."""
    return Call("GET", f"/v1/users/{segment(user, 'a user', 'user')}", reader(dict[str, Any]))


def erase_user(user: str) -> Call[None]:
    """Have a user forgotten."""
    return Call("DELETE", f"/v1/users/{segment(user, 'a user', 'user')}", _nothing)


# Arms and the service itself


def add_arm(arm_id: str, name: str | None) -> Call[Arm]:
    """Have an arm offered from now on."""
    path, content = f"/v1/arms/{segment(arm_id, 'an arm', 'arm')}", body({"name": name})
    return Call("PUT", path, reader(Arm), content, _JSON)


def retire_arm(arm_id: str) -> Call[Arm]:
    """Have an arm offered no longer."""
    return Call("DELETE", f"/v1/arms/{segment(arm_id, 'an arm', 'arm')}", reader(Arm))


def arm(arm_id: str) -> Call[Arm]:
    """Read an arm."""
    return Call("GET", f"/v1/arms/{segment(arm_id, 'an arm', 'arm')}", reader(Arm))


def arms() -> Call[list[Arm]]:
    """Read all arms."""
    read = reader(_Arms)
    return Call("GET", "/v1/arms", lambda content: read(content).arms)


def front() -> Call[list[FrontArm]]:
    """Read the arms and the Pareto front."""
    read = reader(_Front)
    return Call("GET", "/v1/front", lambda content: read(content).arms)


def objectives() -> Call[tuple[Objective, ...]]:
    """Read what arms are scored on."""
    read = reader(_Declared)
    return Call("GET", "/v1/objectives", lambda content: read(content).objectives)


def overall() -> Call[Objective]:
    """Read the scale of the overall score."""
    read = reader(_Declared)
    return Call("GET", "/v1/objectives", lambda content: read(content).overall)


def statistics() -> Call[dict[str, int]]:
    """Read how much there is of what."""
    return Call("GET", "/v1/statistics", reader(dict[str, int]))


def health() -> Call[None]:
    """Ask whether the service is alive."""
    return Call("GET", "/healthz", _nothing)


def ready() -> Call[None]:
    """Ask whether the service can record anything."""
    return Call("GET", "/readyz", _nothing)


_JSON = {"Content-Type": "application/json"}
_FEEDBACK = {"decision_id", "rewards", "overall", "preference", "arm"}


def _post(
    path: str,
    read: Callable[[bytes], T],
    fields: Mapping[str, Any],
    *,
    headers: Mapping[str, str] | None = None,
    missing: type[PamoError] = InputError,
    known: T | None = None,
) -> Call[T]:
    return Call("POST", path, read, body(fields), {**_JSON, **(headers or {})}, missing, known)


def _batch(path: str, read: Callable[[bytes], list[T]], fields: Mapping[str, Any], size: int) -> Call[list[T]]:
    """Return a call with an answer for each that was asked for; none is sent where nothing is."""

    def read_all(content: bytes) -> list[T]:
        found = read(content)
        if len(found) != size:
            raise ValueError(f"expected {size} answers in one, got {len(found)}")
        return found

    return _post(path, read_all, fields, known=None if size else [])


def _made(decision_id: str, read: Callable[[bytes], T]) -> Call[T]:
    path = f"/v1/decisions/{segment(decision_id, 'a decision', 'decision_id')}"
    return Call("GET", path, read, missing=UnknownDecisionError)


def _key(given: str | None) -> str:
    """Return the key of a request: made once, so that the request is the same however often it is sent."""
    if given is None:
        return uuid.uuid4().hex
    check_text(given, "a key", "key")
    return given


def _item(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping) or "decision_id" not in given or not set(given) <= _FEEDBACK:
        raise InputError(f"expected a feedback with {', '.join(sorted(_FEEDBACK))}, got {given!r:.120}")
    check_text(given["decision_id"], "a decision's id", "decision_id")
    return _given({"id" if name == "decision_id" else name: value for name, value in given.items()})


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _explanation(answer: _Explained) -> Explanation:
    why = answer.explanation
    chosen, without = _score(why.chosen), _score(why.without_exploration)
    return Explanation(answer.id, answer.policy, why.preference, chosen, without, why.sentence)


def _score(read: _Score | None) -> ArmScore | None:
    if read is None:
        return None
    bonus = math.inf if read.reward_bonus is None else read.reward_bonus
    return ArmScore(read.arm, read.values, bonus, read.preference_bonus)


def _nothing(content: bytes) -> None:
    """Read an answer that says all by its status."""
