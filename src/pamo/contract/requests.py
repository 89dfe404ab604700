"""What is asked, as people write it down: checked, so that an error says which field is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from pamo.contract.answers import Decision
from pamo.contract.events import DecisionMade, same_request
from pamo.contract.features import FeatureValue
from pamo.contract.limits import check_score
from pamo.contract.objectives import Objective
from pamo.errors import InputError, unknown_name

OfferLike = Sequence[str] | Mapping[str, Mapping[str, float] | None]
"""Ids of arms, or by id the scores that are known beforehand."""


@dataclass(slots=True)
class Request:
    """What `decide` takes, for `decide_many`.

    user: whom to choose for; new users need no registration. arms: those to choose from, by default all active ones;
    as a mapping, with scores by objective that are known beforehand, such as tonight's price: {"A": {"price": 120}}.
    preference: the user's weights where they are known; without them the mean of what the user has stated with feedback
    is used, and without any such statement what was learned from overall scores. k: how many arms to rank. key: makes
    the request repeatable: the same again gets the first decision. features: what is known of the user, of those that
    are declared; it is kept until it changes, and None is one that is not known any more. choice: the arm that the
    caller would give, for an experiment whose control group gets that.
    """

    user: str
    arms: OfferLike | None = None
    preference: Mapping[str, float] | None = None
    k: int = 1
    key: str | None = None
    features: Mapping[str, FeatureValue | None] | None = None
    choice: str | None = None


@dataclass(slots=True)
class FeedbackRequest:
    """What `feedback` takes, for `feedback_many`.

    decision_id: the decision, or its id. rewards: scores by objective, on their own scales; some may be missing.
    overall: the user's one overall score. preference: the weights that the user stated. arm: the one that it is for, by
    default the first of the decision.
    """

    decision_id: str
    rewards: Mapping[str, float] | None = None
    overall: float | None = None
    preference: Mapping[str, float] | None = None
    arm: str | None = None


ArmsLike = Mapping[str, str | None] | Iterable[str]
"""Ids of arms, or names by id (None: the name that it has)."""

_REQUEST = tuple(field.name for field in fields(Request))
_FEEDBACK = tuple(field.name for field in fields(FeedbackRequest))


def as_request(given: Any) -> Request:
    """Return the request that a user's id or a mapping stands for.

    >>> as_request({"user": "ann", "k": 2})
    Request(user='ann', arms=None, preference=None, k=2, key=None, features=None, choice=None)
    """
    if isinstance(given, Request):
        return given
    if isinstance(given, Mapping):
        if "user" not in given or not set(given) <= set(_REQUEST):
            raise InputError(f"expected a request with user and any of {', '.join(_REQUEST[1:])}, got {given!r:.120}")
        return Request(**given)
    return Request(given)


def as_feedback(given: Any) -> FeedbackRequest:
    """Return the feedback that a mapping of what `feedback` takes stands for.

    >>> as_feedback({"decision_id": "d1", "overall": 0.5}).overall
    0.5
    """
    if isinstance(given, FeedbackRequest):
        return given
    if not isinstance(given, Mapping) or "decision_id" not in given or not set(given) <= set(_FEEDBACK):
        raise InputError(f"expected a feedback with {', '.join(sorted(_FEEDBACK))}, got {given!r:.120}")
    return FeedbackRequest(**{**given, "decision_id": id_of(given["decision_id"])})


def as_arms(given: ArmsLike) -> dict[str, str | None]:
    """Return the names by id that a mapping or a list of ids stands for.

    >>> as_arms(["A", "B"]), as_arms({"A": "Anchor Inn"})
    ({'A': None, 'B': None}, {'A': 'Anchor Inn'})
    """
    try:
        if not isinstance(given, str):
            return dict(given) if isinstance(given, Mapping) else dict.fromkeys(given)
    except TypeError:
        pass
    raise InputError(f"expected arms as a list of ids, or a mapping from ids to names, got {given!r:.80}", "arms")


def features_by_arm(given: Any, arms: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return features by the ids of these arms, none where they are not given."""
    known: Any = {} if given is None else given
    if not isinstance(known, Mapping) or not known.keys() <= arms.keys():
        raise InputError(f"expected features by the ids of these arms, got {known!r:.80}", "features")
    return known


def id_of(given: str | Decision) -> str:
    """Return the id of a decision, of which the decision itself may be given."""
    return given.id if isinstance(given, Decision) else given


def given_scores(arms: Mapping[str, Any], objectives: Mapping[str, Objective]) -> dict[str, dict[str, float]]:
    """Return the scores that are given beforehand, by arm and objective, as plain numbers."""
    found: dict[str, dict[str, float]] = {}
    for arm, scores in arms.items():
        if not scores and (scores is None or isinstance(scores, Mapping)):
            continue
        if not isinstance(scores, Mapping):
            raise InputError(f"expected for arm {arm!r:.80} scores by objective, got {scores!r:.80}", f"arms.{arm:.80}")
        for name, value in scores.items():
            if name not in objectives:
                raise unknown_name("objective", str(name), objectives, f"arms.{arm:.80}")
            check_score(objectives[name], value, f"arms.{arm:.80}.{name}")
        found[arm] = {name: float(value) for name, value in scores.items()}
    return found


def asks_the_same(request: Request, first: DecisionMade) -> bool:
    """Tell whether a request is the one that a decision was made for."""
    arms: Any = request.arms
    if arms is not None and (isinstance(arms, str) or not isinstance(arms, Sequence | Mapping)):
        return False
    offer = None if arms is None else tuple(arms)
    given = {arm: scores for arm, scores in arms.items() if scores} if isinstance(arms, Mapping) else None
    return same_request(first, request.user, offer, request.k, request.preference, given or None)
