"""What the operations for those who look after the service take and answer."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from pamo.contract.limits import LONGEST
from pamo.engine.answers import Estimate, FrontArm, Preference
from pamo.engine.looking import Ranked, Standing
from pamo.service.schemas import EstimateAnswer, ExplainedDecision, FrontArmAnswer, Numbers, WeightAnswer

MOST_ROWS = 500
"""The most rows in one answer."""

Part = Annotated[str, Meta(max_length=LONGEST, pattern="^[^\\u0000]*$")]
Rows = Annotated[int, Meta(ge=1, le=MOST_ROWS)]
Place = Annotated[int, Meta(ge=0, le=2**53)]
"""Numbers that a program in JavaScript can send and read exactly."""


class ActivityQuery(Struct, forbid_unknown_fields=True):
    """Which buckets: of a second, a minute or an hour each, and how many of the last ones."""

    resolution: Literal["second", "minute", "hour"] = "minute"
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
    """Which arms, in which order. objective: what `mean` is the mean of; the overall score if it is left out."""

    objective: Part = ""
    sort: Literal["mean", "pulls", "name"] = "mean"
    order: Literal["descending", "ascending"] = "descending"
    search: Part = ""
    offset: Place = 0
    limit: Rows = 25


class FrontQuery(Struct, forbid_unknown_fields=True):
    """Of which objectives the front is, one or two (of all if both are left out), and how many arms to return."""

    x: Part = ""
    y: Part = ""
    limit: Annotated[int, Meta(ge=1, le=1_000_000)] = 1_000_000


class RankingQuery(Struct, forbid_unknown_fields=True):
    """How many arms to rank."""

    limit: Rows = 20


class RankingBody(Struct, forbid_unknown_fields=True):
    """Weights for every objective, of which only the proportions matter."""

    preference: Annotated[Numbers, Meta(description="The weights to try.")]


class BucketAnswer(Struct):
    """What happened in some seconds from `at` on.

    explored: decisions that greed would have made otherwise. scored: feedbacks that could be compared; got, greedy and
    random: on average over these, what came back, what the arm that looked best was expected to get, and what the arms
    on offer get on average, each from 0 (worst) to 1 (best); null where there are none.
    """

    at: float
    decisions: int
    explored: int
    feedbacks: int
    scored: int
    got: float | None
    greedy: float | None
    random: float | None


class ActivityAnswer(Struct):
    """What went on lately in this worker since it started: buckets of so many seconds, the empty ones left out."""

    since: float
    now: float
    seconds: int
    decisions_per_second: float
    feedbacks_per_second: float
    buckets: list[BucketAnswer]


class StreamDecision(Struct):
    """A decision in the live stream."""

    id: str
    user: str | None
    arm: str
    name: str
    at: float
    explored: bool


class StreamEvent(Struct):
    """A server-sent event. data, in JSON: what happened (StreamUpdate), or how many updates a slow reader missed."""

    event: Literal["update", "missed"]
    data: str


class StreamUpdate(Struct):
    """The data of an event of the live stream: what happened since the last one, and the last few decisions of it."""

    decisions: int
    explored: int
    feedbacks: int
    shown: list[StreamDecision]


class UserFound(Struct):
    """A user, and how many feedbacks they have given."""

    user: str
    rounds: int


class UsersAnswer(Struct):
    """Users who gave feedback, those with the most first. more: whether there are more of them."""

    users: list[UserFound]
    more: bool


class DecisionsAnswer(Struct):
    """A user's decisions, the newest first. next: what to send as `before` for those before them, null at the end.

    names: of the arms that were given, or would have been without exploration.
    """

    decisions: list[ExplainedDecision]
    names: dict[str, str]
    next: int | None


class PreferencePoint(Struct):
    """What was known of a user's preference at a time, in seconds since 1970."""

    at: float
    rounds: int
    source: str
    objectives: dict[str, WeightAnswer]

    @classmethod
    def of(cls, at: float, one: Preference) -> PreferencePoint:
        """Return a moment as it is answered."""
        weights = {name: WeightAnswer(w.weight, w.low, w.high) for name, w in one.objectives.items()}
        return cls(at, one.rounds, one.source, weights)


class PreferenceHistoryAnswer(Struct):
    """How what is known of a user's preference moved, the oldest first."""

    user: str
    points: list[PreferencePoint]


class StandingAnswer(Struct):
    """An arm in a leaderboard: its means with intervals, from 0 (worst) to 1 (best), where anything is known."""

    arm: str
    name: str
    pulls: int
    objectives: dict[str, EstimateAnswer]
    overall: EstimateAnswer | None

    @classmethod
    def of(cls, one: Standing) -> StandingAnswer:
        """Return an arm's standing as it is answered."""
        overall = None if one.overall is None else estimate(one.overall)
        return cls(one.arm, one.name, one.pulls, {k: estimate(v) for k, v in one.objectives.items()}, overall)


class LeaderboardAnswer(Struct):
    """A page of the active arms, and how many there are that the search finds."""

    total: int
    arms: list[StandingAnswer]


class RankedAnswer(Struct):
    """An arm in a ranking: its value from 0 to 1 with an interval, and what each objective adds to it."""

    arm: str
    name: str
    pulls: int
    value: EstimateAnswer
    values: dict[str, float]

    @classmethod
    def of(cls, one: Ranked) -> RankedAnswer:
        """Return a ranked arm as it is answered."""
        return cls(one.arm, one.name, one.pulls, estimate(one.value), dict(one.values))


class RankingAnswer(Struct):
    """The arms that are worth most by the given weights. untried: how many arms nothing is known of."""

    arms: list[RankedAnswer]
    untried: int


def estimate(one: Estimate) -> EstimateAnswer:
    """Return an estimate as it is answered."""
    return EstimateAnswer(one.mean, one.low, one.high)


def front_arm(one: FrontArm) -> FrontArmAnswer:
    """Return an arm of the front as it is answered."""
    known = {name: estimate(value) for name, value in one.objectives.items()}
    return FrontArmAnswer(one.arm, one.name, one.pulls, one.on_front, one.confidence, known)
