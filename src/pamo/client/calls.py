"""Every call of the service: the request that it is, and how its answer is read. Both clients make the same ones."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar

from pamo.client.encoding import body, reader, segment
from pamo.contract.answers import (
    Arm,
    ArmList,
    Decision,
    Decisions,
    Experiment,
    ExperimentFound,
    ExplainedDecision,
    Explanation,
    Features,
    Feedback,
    FeedbackResult,
    FeedbackResults,
    Front,
    FrontArm,
    Objectives,
    Preference,
)
from pamo.contract.events import ARMS
from pamo.contract.experiments import RANDOM, Variant, as_variants, check_policy, check_smallest, share
from pamo.contract.features import Feature, FeatureLike, FeatureValue
from pamo.contract.features import features as features_of
from pamo.contract.limits import check_text
from pamo.contract.objectives import Objective
from pamo.contract.requests import (
    ArmsLike,
    FeedbackRequest,
    OfferLike,
    Request,
    as_arms,
    as_feedback,
    as_request,
    features_by_arm,
    id_of,
)

T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class Call(Generic[T]):
    """A request that may be sent again as it is, and how its answer is read.

    known: the answer, where there is nothing to ask.
    """

    method: str
    path: str
    read: Callable[[bytes], T]
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    known: T | None = None


# Decisions and feedback


def decide(
    user: str,
    arms: OfferLike | None = None,
    preference: Mapping[str, float] | None = None,
    k: int = 1,
    key: str | None = None,
    features: Mapping[str, FeatureValue | None] | None = None,
    choice: str | None = None,
) -> Call[Decision]:
    """Choose an arm for a user, or rank the best k (all of them, if there are fewer).

    The arguments are those of `pamo.engine.Request`. Without a key the call makes its own, for its retries.
    """
    key = _key(key)
    if not (key.isascii() and key.isprintable() and key == key.strip()):
        # A header cannot carry it. The requests of a batch have their keys in the body.
        many = decide_many([Request(user, arms, preference, k, key, features, choice)])
        return Call(many.method, many.path, lambda content: many.read(content)[0], many.content, many.headers)
    fields = {"user": user, "arms": arms, "preference": preference, "k": k, "features": features, "choice": choice}
    return _post("/v1/decisions", reader(Decision), fields, headers={"Idempotency-Key": key})


def decide_many(requests: Iterable[str | Mapping[str, Any] | Request]) -> Call[list[Decision]]:
    """Choose for many users at once: each request a user, or a mapping of what `decide` takes.

    Nothing is recorded if one of them is wrong. A key that was used for another request raises `ConflictError` after
    the others were recorded.
    """
    several = [{**_given(one), "key": _key(one.key)} for one in map(as_request, requests)]
    read = reader(Decisions)
    return _batch("/v1/decisions/batch", lambda content: read(content).decisions, "requests", several)


def feedback(
    decision_id: str | Decision,
    rewards: Mapping[str, float] | None = None,
    overall: float | None = None,
    preference: Mapping[str, float] | None = None,
    arm: str | None = None,
) -> Call[Feedback]:
    """Give what came of a decision, at once or in parts: each score of each arm whenever it is known.

    The same again changes nothing, and another value for something that was given is refused. The arguments are those
    of `pamo.engine.FeedbackRequest`; the decision may be given in place of its id. The status is "duplicate" also where
    the first attempt was recorded and its answer lost: it counts once.
    """
    fields = {"rewards": rewards, "overall": overall, "preference": preference, "arm": arm}
    return _post(f"{_decision(decision_id)}/feedback", reader(Feedback), fields)


def feedback_many(items: Iterable[Mapping[str, Any] | FeedbackRequest]) -> Call[list[FeedbackResult]]:
    """Give many feedbacks at once: each a mapping of what `feedback` takes, `decision_id` among it.

    Nothing is recorded if one of them is wrong in itself. One that is refused for what was recorded before stops no
    other; its result says why.
    """
    several = []
    for one in map(as_feedback, items):
        check_text(one.decision_id, "a decision's id", "decision_id")
        fields = _given(one)
        several.append({"id": fields.pop("decision_id"), **fields})
    read = reader(FeedbackResults)
    return _batch("/v1/feedback/batch", lambda content: read(content).results, "feedback", several)


def decision(decision_id: str) -> Call[Decision]:
    """Return a decision that was made."""
    return Call("GET", _decision(decision_id), reader(Decision))


def explain(decision: str | Decision) -> Call[Explanation]:
    """Say why an arm was chosen, and which would have been without exploration."""
    read = reader(ExplainedDecision)
    return Call("GET", _decision(decision), lambda content: read(content).explanation)


# Users


def preference(user: str) -> Call[Preference]:
    """Return what a user cares about, with intervals; for a new user, what users have in common."""
    return Call("GET", f"{_user(user)}/preference", reader(Preference))


def export_user(user: str) -> Call[dict[str, Any]]:
    """Return everything that is kept of a user, as plain values. Needs the role admin."""
    return Call("GET", _user(user), reader(dict[str, Any]))


def erase_user(user: str) -> Call[None]:
    """Forget a user; the arms keep what they learned. Needs the role admin."""
    return Call("DELETE", _user(user), _nothing)


# Arms and the service itself


def add_arm(arm: str, name: str | None = None, features: Mapping[str, FeatureValue | None] | None = None) -> Call[Arm]:
    """Offer an arm from now on; again: revive it; with another name: rename it. Needs the role admin.

    features: what is known of it; those that it has stay as they are until they are given anew.
    """
    return Call("PUT", _arm(arm), reader(Arm), body({"name": name, "features": features}), _JSON)


def add_arms(
    arms: ArmsLike, features: Mapping[str, Mapping[str, FeatureValue | None]] | None = None
) -> Call[list[Arm]]:
    """Offer many arms from now on: a list of ids, or a mapping from ids to names. Needs the role admin.

    Nothing is recorded if one of them is wrong. Return them in the order in which they were added first. features: by
    id, as for `add_arm`.
    """
    names = as_arms(arms)
    known = features_by_arm(features, names)
    several = [{"id": arm, "name": name, "features": known.get(arm)} for arm, name in names.items()]
    for one in several:
        check_text(one["id"], "an arm", "arm")
    read = reader(ArmList)
    return _batch("/v1/arms", lambda content: read(content).arms, "arms", several)


def declare_features(features: Iterable[FeatureLike], of: str = ARMS) -> Call[tuple[Feature, ...]]:
    """Let arms, or users, have these features from now on; return all that those have. Needs the role admin."""
    declared = [{"name": one.name, "kind": one.kind} for one in features_of(features)]
    read = reader(Features)
    return _post("/v1/features", lambda content: read(content).features, {"features": declared, "of": of})


def features(of: str = ARMS) -> Call[tuple[Feature, ...]]:
    """Return what may be known of arms, or of users, beforehand."""
    read = reader(Objectives)

    def found(content: bytes) -> tuple[Feature, ...]:
        told = read(content)
        return told.features if of == ARMS else told.user_features

    return Call("GET", "/v1/objectives", found)


def retire_arm(arm: str) -> Call[Arm]:
    """Offer an arm no longer; late feedback still counts. Needs the role admin."""
    return Call("DELETE", _arm(arm), reader(Arm))


def arm(arm: str) -> Call[Arm]:
    """Return an arm."""
    return Call("GET", _arm(arm), reader(Arm))


def arms() -> Call[list[Arm]]:
    """Return all arms, the retired ones among them."""
    read = reader(ArmList)
    return Call("GET", "/v1/arms", lambda content: read(content).arms)


def front() -> Call[list[FrontArm]]:
    """Return the active arms, those on the Pareto front first, with how sure it is that they are on it."""
    read = reader(Front)
    return Call("GET", "/v1/front", lambda content: read(content).arms)


def start_experiment(
    name: str,
    control: float | str = "5%",
    policy: str = RANDOM,
    smallest: float = 0.2,
    variants: Sequence[Variant | Mapping[str, Any]] = (),
) -> Call[Experiment]:
    """Serve some of the users, the control group and any variants, otherwise from now on. Needs the role admin.

    control: the share, such as "5%" or 0.05. policy: how control is served: "random", "arm:ID", "caller", the `choice`
    that then comes with every decision, "live", as everybody is, or the name of another policy. smallest: the smallest
    difference worth finding, in standard deviations. variants: more groups, each with name, share, policy ("live"
    unless it is said) and, where all of it are to be served by the same weights, preference. One experiment runs at a
    time, and a name is used once; the same again changes nothing.
    """
    check_text(name, "an experiment's name", "name")
    check_policy(policy)
    check_smallest(smallest)
    part = share(control)
    several = [asdict(one) for one in as_variants(variants, part, policy)]
    fields = {"name": name, "control": part, "policy": policy, "smallest": smallest, "variants": several}
    return _post("/v1/experiment", reader(Experiment), fields)


def end_experiment() -> Call[Experiment]:
    """Serve everybody alike again; late feedback to its decisions still counts. Needs the role admin."""
    return Call("DELETE", "/v1/experiment", reader(Experiment))


def experiment() -> Call[Experiment | None]:
    """Return how the groups of the newest experiment compare, however often; None where there was none."""
    read = reader(ExperimentFound)
    return Call("GET", "/v1/experiment", lambda content: read(content).experiment)


def objectives() -> Call[tuple[Objective, ...]]:
    """Return what arms are scored on."""
    read = reader(Objectives)
    return Call("GET", "/v1/objectives", lambda content: read(content).objectives)


def overall() -> Call[Objective]:
    """Return the scale of the overall score."""
    read = reader(Objectives)
    return Call("GET", "/v1/objectives", lambda content: read(content).overall)


def statistics() -> Call[dict[str, int]]:
    """Count what there is: arms, users who gave feedback, feedbacks, and decisions that wait for one."""
    return Call("GET", "/v1/statistics", reader(dict[str, int]))


def health() -> Call[None]:
    """Tell whether the service is alive; asked once."""
    return Call("GET", "/healthz", _nothing)


def ready() -> Call[None]:
    """Tell whether the service can record anything now; asked once."""
    return Call("GET", "/readyz", _nothing)


_JSON = {"Content-Type": "application/json"}


def _post(
    path: str,
    read: Callable[[bytes], T],
    fields: Mapping[str, Any],
    *,
    headers: Mapping[str, str] | None = None,
    known: T | None = None,
) -> Call[T]:
    return Call("POST", path, read, body(fields), {**_JSON, **(headers or {})}, known)


def _batch(path: str, read: Callable[[bytes], list[T]], name: str, several: Sequence[Any]) -> Call[list[T]]:
    """Return a call with an answer for each that was asked for; none is sent where nothing is."""

    def read_all(content: bytes) -> list[T]:
        found = read(content)
        if len(found) != len(several):
            raise ValueError(f"expected {len(several)} answers in one, got {len(found)}")
        return found

    return _post(path, read_all, {name: several}, known=None if several else [])


def _decision(given: str | Decision) -> str:
    return f"/v1/decisions/{segment(id_of(given), 'a decision', 'decision_id')}"


def _user(given: str) -> str:
    return f"/v1/users/{segment(given, 'a user', 'user')}"


def _arm(given: str) -> str:
    return f"/v1/arms/{segment(given, 'an arm', 'arm')}"


def _key(given: str | None) -> str:
    """Return the key of a request: made once, so that the request is the same however often it is sent."""
    if given is None:
        return uuid.uuid4().hex
    check_text(given, "a key", "key")
    return given


def _given(one: Request | FeedbackRequest) -> dict[str, Any]:
    """Return the fields that were filled in."""
    return {name: value for name in one.__slots__ if (value := getattr(one, name)) is not None}


def _nothing(content: bytes) -> None:
    """Read an answer that says all by its status."""
