"""The operations of the API as data: their paths, who may call them, what they take and answer, and what does it.

One table drives the routing, the keys' roles, the metrics' labels and the OpenAPI description.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from pamo.contract import answers
from pamo.service import api, operator_views, schemas
from pamo.service.keys import Role


@dataclass(slots=True)
class Arguments:
    """One request, as its handler sees it: the path's ids, the body, the query, and the Idempotency-Key."""

    ids: tuple[str, ...]
    body: Any = None
    query: Any = None
    key: str | None = None


Handler = Callable[[api.Api, Arguments], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Operation:
    """What can be asked.

    path: with {id} where an id stands. roles: a key needs one of them; () is any key, None not even that. body, query:
    what is read; objectives: what in the query names an objective. answer: what is answered, with `status`. A handler
    may answer with a Response of its own, of this `media`. problems: the statuses it may refuse with, beyond those that
    every operation has.
    """

    method: str
    path: str
    name: str
    summary: str
    handler: Handler
    answer: Any = None
    status: int = 200
    roles: tuple[Role, ...] | None = ()
    body: Any = None
    body_optional: bool = False
    query: Any = None
    objectives: tuple[str, ...] = ()
    repeatable: bool = False
    problems: tuple[int, ...] = ()
    media: str = "application/json"
    tag: str = "service"
    segments: tuple[str | None, ...] = field(init=False)

    def __post_init__(self) -> None:
        parts = self.path.strip("/").split("/")
        object.__setattr__(self, "segments", tuple(None if part.startswith("{") else part for part in parts))


DECIDE, FEEDBACK, ADMIN = (Role.DECIDE,), (Role.FEEDBACK,), (Role.ADMIN,)

OPERATIONS = (
    Operation(
        "POST",
        "/v1/decisions/{id}/feedback",
        "giveFeedback",
        "Tell what came of a decision. The same again is answered like the first time; something else is refused.",
        api.feedback,
        answers.Feedback,
        roles=FEEDBACK,
        body=schemas.FeedbackBody,
        problems=(404, 409, 410),
        tag="decisions",
    ),
    Operation(
        "POST",
        "/v1/decisions",
        "decide",
        "Choose an arm for a user, or rank the best k. With an Idempotency-Key the request can be repeated.",
        api.decide,
        answers.Decision,
        201,
        roles=DECIDE,
        body=schemas.DecisionBody,
        repeatable=True,
        problems=(409,),
        tag="decisions",
    ),
    Operation(
        "POST",
        "/v1/decisions/batch",
        "decideMany",
        "Choose for many users at once.",
        api.decide_many,
        answers.Decisions,
        roles=DECIDE,
        body=schemas.DecisionBatch,
        problems=(409,),
        tag="decisions",
    ),
    Operation(
        "POST",
        "/v1/feedback/batch",
        "giveFeedbackToMany",
        "Tell what came of many decisions at once; each has its own result.",
        api.feedback_many,
        answers.FeedbackResults,
        roles=FEEDBACK,
        body=schemas.FeedbackBatch,
        tag="decisions",
    ),
    Operation(
        "GET",
        "/v1/decisions/{id}",
        "getDecision",
        "Return a decision, why it was made, and its feedback.",
        api.decision,
        answers.ExplainedDecision,
        problems=(404,),
        tag="decisions",
    ),
    Operation(
        "GET",
        "/v1/users/{id}/preference",
        "getPreference",
        "Return what a user cares about, with intervals; for a new user, what users have in common.",
        api.preference,
        answers.Preference,
        tag="users",
    ),
    Operation(
        "GET",
        "/v1/users/{id}/preference/history",
        "getPreferenceHistory",
        "Return how what is known of a user's preference moved from feedback to feedback.",
        operator_views.preference_history,
        answers.PreferenceHistory,
        query=schemas.HistoryQuery,
        tag="users",
    ),
    Operation(
        "GET",
        "/v1/users/{id}/decisions",
        "getDecisions",
        "Return a user's decisions, why they were made, and their feedback; the newest first, a page at a time.",
        operator_views.decisions,
        answers.UserDecisions,
        query=schemas.DecisionsQuery,
        tag="users",
    ),
    Operation(
        "GET",
        "/v1/users",
        "findUsers",
        "Find users who gave feedback by the beginning of their ids; those who gave most come first.",
        operator_views.users,
        answers.UsersFound,
        query=schemas.UsersQuery,
        tag="users",
    ),
    Operation(
        "GET",
        "/v1/users/{id}",
        "exportUser",
        "Return everything that is kept of a user.",
        api.user,
        answers.UserExport,
        roles=ADMIN,
        tag="users",
    ),
    Operation(
        "DELETE",
        "/v1/users/{id}",
        "eraseUser",
        "Forget a user; the arms keep what they learned.",
        api.erase,
        status=204,
        roles=ADMIN,
        tag="users",
    ),
    Operation("GET", "/v1/arms", "getArms", "Return all arms.", api.arms, answers.ArmList, tag="arms"),
    Operation(
        "POST",
        "/v1/arms",
        "putArms",
        "Offer many arms from now on, as putArm does one; nothing is recorded if one of them is wrong.",
        api.add_arms,
        answers.ArmList,
        roles=ADMIN,
        body=schemas.ArmBatch,
        tag="arms",
    ),
    Operation(
        "POST",
        "/v1/features",
        "declareFeatures",
        "Let arms, or users, have more features from now on; the same again changes nothing.",
        api.declare_features,
        answers.Features,
        roles=ADMIN,
        body=schemas.FeaturesBody,
        tag="arms",
    ),
    Operation("GET", "/v1/arms/{id}", "getArm", "Return an arm.", api.arm, answers.Arm, problems=(404,), tag="arms"),
    Operation(
        "PUT",
        "/v1/arms/{id}",
        "putArm",
        "Offer an arm from now on; a retired one is revived, and one with another name renamed.",
        api.add_arm,
        answers.Arm,
        roles=ADMIN,
        body=schemas.ArmBody,
        body_optional=True,
        tag="arms",
    ),
    Operation(
        "DELETE",
        "/v1/arms/{id}",
        "retireArm",
        "Offer an arm no longer; late feedback still counts.",
        api.retire_arm,
        answers.Arm,
        roles=ADMIN,
        problems=(404,),
        tag="arms",
    ),
    Operation(
        "GET",
        "/v1/front",
        "getFront",
        "Return the active arms, those on the Pareto front first, with confidence.",
        operator_views.front,
        answers.Front,
        query=schemas.FrontQuery,
        objectives=("x", "y"),
        tag="arms",
    ),
    Operation(
        "GET",
        "/v1/leaderboard",
        "getLeaderboard",
        "Return the active arms by an objective's mean, with intervals, a page at a time.",
        operator_views.leaderboard,
        answers.Leaderboard,
        query=schemas.LeaderboardQuery,
        objectives=("objective",),
        tag="arms",
    ),
    Operation(
        "POST",
        "/v1/rankings",
        "rankArms",
        "Rank the arms for somebody with these weights, by what is known of them; nothing is decided or recorded.",
        operator_views.ranking,
        answers.Ranking,
        body=schemas.RankingBody,
        query=schemas.RankingQuery,
        tag="arms",
    ),
    Operation(
        "GET",
        "/v1/experiment",
        "getExperiment",
        "Return how the groups of the newest experiment compare, with intervals that hold however often one looks.",
        api.experiment,
        answers.ExperimentFound,
        tag="experiments",
    ),
    Operation(
        "POST",
        "/v1/experiment",
        "startExperiment",
        "Serve control, and any variants, otherwise from now on; the same again changes nothing.",
        api.start_experiment,
        answers.Experiment,
        roles=ADMIN,
        body=schemas.ExperimentBody,
        problems=(409,),
        tag="experiments",
    ),
    Operation(
        "DELETE",
        "/v1/experiment",
        "endExperiment",
        "Serve everybody alike again; late feedback to the experiment's decisions still counts.",
        api.end_experiment,
        answers.Experiment,
        roles=ADMIN,
        problems=(404,),
        tag="experiments",
    ),
    Operation(
        "GET",
        "/v1/objectives",
        "getObjectives",
        "Return the objectives, the scale of the overall score, and the features that arms and users may have.",
        api.objectives,
        answers.Objectives,
    ),
    Operation(
        "GET",
        "/v1/statistics",
        "getStatistics",
        "Count arms, users, feedbacks, and decisions that wait for one.",
        api.statistics,
        answers.Statistics,
    ),
    Operation(
        "GET",
        "/v1/activity",
        "getActivity",
        "Return decisions and feedback over time, and what came back against what greed and chance would get.",
        operator_views.activity,
        answers.ActivityReport,
        query=schemas.ActivityQuery,
    ),
    Operation(
        "GET",
        "/v1/alerts",
        "getAlerts",
        "Tell what whoever looks after this should know: that feedback dries up, that nobody reports an objective, …",
        operator_views.alerts,
        answers.Alerts,
    ),
    Operation(
        "GET",
        "/v1/stream",
        "getStream",
        "Follow decisions as they are made: server-sent events, ten a second at most.",
        operator_views.stream,
        answers.StreamEvent,
        query=schemas.StreamQuery,
        media="text/event-stream; charset=utf-8",
    ),
    Operation(
        "GET",
        "/healthz",
        "getHealth",
        "Tell that it lives, and that a new start would not help.",
        api.health,
        answers.Health,
        roles=None,
        problems=(503,),
    ),
    Operation(
        "GET",
        "/readyz",
        "getReadiness",
        "Tell whether decisions and feedback can be recorded.",
        api.ready,
        answers.Health,
        roles=None,
        problems=(503,),
    ),
    Operation(
        "GET",
        "/metrics",
        "getMetrics",
        "Return what Prometheus reads.",
        api.measures,
        str,
        media="text/plain; version=0.0.4; charset=utf-8",
    ),
)
"""All operations; those that are called all the time come first."""
