"""What HTTP takes: bodies and queries, each field described. What it answers is `pamo.contract.answers`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from pamo.contract.experiments import LIVE, MOST_VARIANTS, RANDOM
from pamo.contract.limits import LARGEST, LONGEST, MOST_ARMS, MOST_ROWS

Id = Annotated[str, Meta(min_length=1, max_length=LONGEST, pattern="^[^\\u0000]*$")]
Part = Annotated[str, Meta(max_length=LONGEST, pattern="^[^\\u0000]*$")]
Rows = Annotated[int, Meta(ge=1, le=MOST_ROWS)]
Place = Annotated[int, Meta(ge=0, le=2**53)]
"""Numbers that a program in JavaScript can send and read exactly."""
Numbers = dict[str, Any]
"""Numbers by objective. The engine checks them, since it can name the one that is wrong."""


class DecisionBody(Struct, forbid_unknown_fields=True):
    """Ask for an arm for a user. Only `user` is required; without `arms` all active ones are on offer."""

    user: Annotated[Id, Meta(description="Whom to choose for; new users need no registration.")]
    arms: Annotated[
        list[Id] | dict[str, Numbers | None] | None,
        Meta(
            description="The offer: ids of active arms, each once; or by id the scores by objective that are known "
            "beforehand, such as tonight's price."
        ),
    ] = None
    k: Annotated[int, Meta(ge=1, le=MOST_ARMS, description="How many arms to rank.")] = 1
    preference: Annotated[Numbers | None, Meta(description="The user's weights, where they are known.")] = None
    features: Annotated[
        dict[str, Any] | None,
        Meta(
            description="What is known of the user: numbers, yes or no, words, of the features that are declared for "
            "users. It is kept until it changes; null is one that is not known any more."
        ),
    ] = None
    choice: Annotated[
        Id | None,
        Meta(description="The arm that you would give yourself, for an experiment whose control group gets that."),
    ] = None


class BatchDecision(DecisionBody, forbid_unknown_fields=True):
    """Ask for an arm for a user, among many. `key` makes the request repeatable."""

    key: Id | None = None


class DecisionBatch(Struct, forbid_unknown_fields=True):
    """Ask for arms for many users at once; nothing is recorded if one of the requests is wrong."""

    requests: list[BatchDecision]


class FeedbackBody(Struct, forbid_unknown_fields=True):
    """What came of a decision: any of rewards by objective, the overall score, and the preference the user stated."""

    rewards: Annotated[Numbers | None, Meta(description="Scores by objective, on their own scales.")] = None
    overall: Annotated[float | None, Meta(description="The user's one overall score.")] = None
    preference: Annotated[Numbers | None, Meta(description="The weights that the user stated.")] = None
    arm: Annotated[Id | None, Meta(description="Which of the ranked arms it is for; the first by default.")] = None


class BatchFeedback(FeedbackBody, forbid_unknown_fields=True, kw_only=True):
    """What came of a decision, among many. id: the decision's."""

    id: Id


class FeedbackBatch(Struct, forbid_unknown_fields=True):
    """Give feedback to many decisions at once; nothing is recorded if one of them is wrong in itself."""

    feedback: list[BatchFeedback]


class ArmBody(Struct, forbid_unknown_fields=True):
    """An arm to offer. name: for display; the id, or the name it had, if it is left out. features: new or changed."""

    name: Id | None = None
    features: Annotated[
        dict[str, Any] | None,
        Meta(description="What is known of it: numbers, yes or no, words, of the features that are declared."),
    ] = None


class BatchArm(ArmBody, forbid_unknown_fields=True, kw_only=True):
    """An arm to offer, among many."""

    id: Id


class ArmBatch(Struct, forbid_unknown_fields=True):
    """Arms to offer; nothing is recorded if one of them is wrong."""

    arms: list[BatchArm]


class DeclaredFeature(Struct, forbid_unknown_fields=True):
    """What may be known of an arm, or of a user, beforehand."""

    name: Id
    kind: Literal["number", "yes or no", "word"] = "number"


class FeaturesBody(Struct, forbid_unknown_fields=True):
    """Features that arms, or users, may have from now on."""

    features: list[DeclaredFeature]
    of: Literal["arms", "users"] = "arms"


Share = Annotated[float, Meta(gt=0, lt=1, description="The group's share of the users.")]
GroupPolicy = Annotated[
    str,
    Meta(
        pattern=f"^(arm:[^\\u0000]{{1,{LONGEST}}}|[a-z][a-z0-9-]*(:[a-z_]+=[\\w.+-]+(,[a-z_]+=[\\w.+-]+)*)?)$",
        description="How the group is served: live (as everybody is), random, caller (the choice that comes with each "
        "decision), arm:ID, or the name of a policy with any hyperparameters, such as prucb-hp-v:reward_scale=0.5.",
    ),
]


class VariantBody(Struct, forbid_unknown_fields=True):
    """A group beside control."""

    name: Annotated[Id, Meta(description="What it is called; neither control nor treated.")]
    share: Share
    policy: GroupPolicy = LIVE
    preference: Annotated[
        Numbers | None, Meta(description="Weights by which all of the group are served, in place of their own.")
    ] = None


class ExperimentBody(Struct, forbid_unknown_fields=True):
    """An experiment to start. One runs at a time, and a name is used once."""

    name: Annotated[Id, Meta(description="What it is called; who is in control hangs on it.")]
    control: Share = 0.05
    policy: GroupPolicy = RANDOM
    smallest: Annotated[
        float, Meta(ge=0.001, le=10, description="The smallest difference worth finding, in standard deviations.")
    ] = 0.2
    variants: Annotated[
        list[VariantBody],
        Meta(max_length=MOST_VARIANTS, description="More groups, each of which is compared with control."),
    ] = []


class RankingBody(Struct, forbid_unknown_fields=True):
    """Weights for every objective, of which only the proportions matter."""

    preference: Annotated[Numbers, Meta(description="The weights to try.")]


class ActivityQuery(Struct, forbid_unknown_fields=True):
    """Which buckets: how long each is, a day being one in UTC, and how many of the last ones."""

    resolution: Literal["second", "minute", "quarter-hour", "hour", "day"] = "minute"
    limit: Annotated[int, Meta(ge=1, le=1440)] = 60


class StreamQuery(Struct, forbid_unknown_fields=True):
    """For how many seconds to listen at most."""

    seconds: Annotated[int, Meta(ge=1, le=3600)] = 3600


class UsersQuery(Struct, forbid_unknown_fields=True):
    """How the ids of the wanted users begin, and how many of them."""

    query: Part = ""
    limit: Rows = 20


class DecisionsQuery(Struct, forbid_unknown_fields=True):
    """How many decisions, and before which: what the last page's `next` was."""

    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    before: Annotated[int, Meta(ge=1, le=2**53)] = 2**53


class HistoryQuery(Struct, forbid_unknown_fields=True):
    """How many moments to show at most."""

    points: Annotated[int, Meta(ge=2, le=200)] = 60


class LeaderboardQuery(Struct, forbid_unknown_fields=True):
    """Which arms, in which order. objective: what `mean` is the mean of; the overall score if it is left out.

    typical: by what somebody with everybody's weights would say, which does not mix audiences.
    """

    objective: Part = ""
    sort: Literal["mean", "typical", "pulls", "name"] = "mean"
    order: Literal["descending", "ascending"] = "descending"
    search: Part = ""
    offset: Place = 0
    limit: Rows = 25


class FrontQuery(Struct, forbid_unknown_fields=True):
    """Of which objectives the front is, one or two (of all if both are left out), and how many arms to return."""

    x: Part = ""
    y: Part = ""
    limit: Annotated[int, Meta(ge=1, le=MOST_ARMS)] = MOST_ARMS


class RankingQuery(Struct, forbid_unknown_fields=True):
    """How many arms to rank."""

    limit: Rows = 20


def scores(given: Numbers | None) -> Numbers:
    """Return rewards with every number a float, as JSON has but one kind: the same again must be the same.

    >>> scores({"taste": 4, "price": "much"})
    {'taste': 4.0, 'price': 'much'}
    """
    if given is None:
        return {}
    return {
        name: float(value) if type(value) is int and -LARGEST <= value <= LARGEST else value
        for name, value in given.items()
    }


encode = msgspec.json.Encoder().encode
