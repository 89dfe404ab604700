"""What comes and goes over HTTP. The names are the contract: other programs rely on them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from pamo.contract.limits import LARGEST, LONGEST, MOST_ARMS
from pamo.engine.answers import Arm, ArmScore, Decision, Explanation
from pamo.store import FeedbackGiven, Made, Objective

Id = Annotated[str, Meta(min_length=1, max_length=LONGEST, pattern="^[^\\u0000]*$")]
Numbers = dict[str, Any]
"""Numbers by objective. The engine checks them, since it can name the one that is wrong."""


class Request(Struct, forbid_unknown_fields=True):
    """Ask for an arm for a user. Only `user` is required; without `arms` all active ones are on offer."""

    user: Annotated[Id, Meta(description="Whom to choose for; new users need no registration.")]
    arms: Annotated[list[Id] | None, Meta(description="The offer: ids of active arms, each once.")] = None
    k: Annotated[int, Meta(ge=1, le=MOST_ARMS, description="How many arms to rank.")] = 1
    preference: Annotated[Numbers | None, Meta(description="The user's weights, where they are known.")] = None


class BatchRequest(Request, forbid_unknown_fields=True):
    """Ask for an arm for a user, among many. `key` makes the request repeatable."""

    key: Id | None = None


class DecisionBatch(Struct, forbid_unknown_fields=True):
    """Ask for arms for many users at once; nothing is recorded if one of the requests is wrong."""

    requests: list[BatchRequest]


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
    """An arm to offer. name: for display; the id, or the name it had, if it is left out."""

    name: Id | None = None


class DecisionAnswer(Struct):
    """A decision: the arm to give, the ranked arms, and the chance with which the first came first."""

    id: str
    user: str | None
    arm: str
    arms: tuple[str, ...]
    propensity: float
    policy: str


class DecisionAnswers(Struct):
    """Decisions, in the order in which they were asked for."""

    decisions: list[DecisionAnswer]


class FeedbackAnswer(Struct):
    """What became of a feedback, what it taught, and what it would have taught had it been complete."""

    id: str
    status: Literal["recorded", "duplicate"]
    learned: tuple[str, ...]
    not_learned: tuple[str, ...]


class FeedbackResult(Struct):
    """What became of a feedback among many. detail: a sentence, where it was not recorded."""

    id: str
    status: Literal["recorded", "duplicate", "conflict", "unknown", "expired"]
    learned: tuple[str, ...] = ()
    not_learned: tuple[str, ...] = ()
    detail: str | None = None


class FeedbackAnswers(Struct):
    """What became of feedbacks, in the order in which they came."""

    results: list[FeedbackResult]


class WeightAnswer(Struct):
    """How much an objective counts for a user, and between which weights that probably lies."""

    weight: float
    low: float
    high: float


class PreferenceAnswer(Struct):
    """What a user cares about. source: "stated", "overall", "others" (a new user) or "nothing"."""

    user: str
    rounds: int
    source: str
    level: float
    objectives: dict[str, WeightAnswer]


class ScoreAnswer(Struct):
    """What an arm's score is made of. reward_bonus and score are null for an arm that has not been tried: infinite."""

    arm: str
    values: dict[str, float]
    value: float
    reward_bonus: float | None
    preference_bonus: float
    score: float | None

    @classmethod
    def of(cls, score: ArmScore | None) -> ScoreAnswer | None:
        """Return a score as it is answered."""
        if score is None:
            return None
        tried = score.reward_bonus != float("inf")
        return cls(
            score.arm,
            dict(score.values),
            score.value,
            score.reward_bonus if tried else None,
            score.preference_bonus,
            score.score if tried else None,
        )


class ExplanationAnswer(Struct):
    """Why an arm was chosen, and which would have been without exploration."""

    preference: dict[str, float]
    chosen: ScoreAnswer | None
    without_exploration: ScoreAnswer | None
    explored: bool
    sentence: str

    @classmethod
    def of(cls, one: Explanation) -> ExplanationAnswer:
        """Return an explanation as it is answered."""
        scores = ScoreAnswer.of(one.chosen), ScoreAnswer.of(one.without_exploration)
        return cls(dict(one.preference), *scores, one.explored, one.sentence)


class GivenAnswer(Struct):
    """The feedback that a decision got."""

    at: float
    arm: str | None
    rewards: dict[str, float]
    overall: float | None
    preference: dict[str, float] | None

    @classmethod
    def of(cls, given: FeedbackGiven | None) -> GivenAnswer | None:
        """Return a feedback as it is answered."""
        if given is None:
            return None
        stated = None if given.preference is None else dict(given.preference)
        return cls(given.at, given.arm, dict(given.rewards), given.overall, stated)


class ExplainedDecision(DecisionAnswer):
    """A decision with its explanation, its time in seconds since 1970, and its feedback, null while it is awaited."""

    at: float
    explanation: ExplanationAnswer
    feedback: GivenAnswer | None

    @classmethod
    def of(cls, one: Made, explanation: Explanation) -> ExplainedDecision:
        """Return a decision as it is answered."""
        made = one.decision
        why, given = ExplanationAnswer.of(explanation), GivenAnswer.of(one.feedback)
        return cls(made.id, made.user, made.arms[0], made.arms, made.propensity, made.policy, made.at, why, given)


class ArmAnswer(Struct):
    """An arm: whether it is offered, and how many complete feedbacks it has."""

    id: str
    name: str
    active: bool
    pulls: int

    @classmethod
    def of(cls, arm: Arm) -> ArmAnswer:
        """Return an arm as it is answered."""
        return cls(arm.id, arm.name, arm.active, arm.pulls)


class ArmsAnswer(Struct):
    """All arms, the retired ones among them."""

    arms: list[ArmAnswer]


class EstimateAnswer(Struct):
    """A mean of an arm's objective from 0 (worst) to 1 (best), and between which numbers it probably lies."""

    mean: float
    low: float
    high: float


class FrontArmAnswer(Struct):
    """An arm and the Pareto front. confidence: the chance that it is on it, null without complete feedback."""

    arm: str
    name: str
    pulls: int
    on_front: bool
    confidence: float | None
    objectives: dict[str, EstimateAnswer]


class FrontAnswer(Struct):
    """The active arms, those on the Pareto front first."""

    arms: list[FrontArmAnswer]


class ObjectiveAnswer(Struct):
    """What arms are scored on: its scale, and whether less is better."""

    name: str
    low: float
    high: float
    lower_is_better: bool

    @classmethod
    def of(cls, one: Objective) -> ObjectiveAnswer:
        """Return an objective as it is answered."""
        return cls(one.name, one.low, one.high, one.lower_is_better)


class ObjectivesAnswer(Struct):
    """The objectives, and the scale of the overall score."""

    objectives: list[ObjectiveAnswer]
    overall: ObjectiveAnswer


class StatisticsAnswer(Struct):
    """How much of everything there is."""

    arms: int
    retired_arms: int
    users: int
    pending_decisions: int
    complete_feedbacks: int
    overall_scores: int
    rewards: int


class UserAnswer(Struct):
    """Everything that is kept of a user: what was learned, decisions and feedback."""

    user: str
    preference: PreferenceAnswer
    history: list[dict[str, Any]]


class HealthAnswer(Struct):
    """A sign of life."""

    status: Literal["ok"] = "ok"


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


def decision_answer(one: Decision) -> DecisionAnswer:
    """Return a decision as it is answered."""
    return DecisionAnswer(one.id, one.user, one.arm, one.arms, one.propensity, one.policy)


encode = msgspec.json.Encoder().encode
