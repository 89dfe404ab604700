"""What is answered, each shape once: the engine returns these, the service sends them as JSON, the client reads them.

JSON has neither infinity nor NaN: both are null there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pamo.contract.codes import Code
from pamo.contract.features import Feature, FeatureValue
from pamo.contract.objectives import Objective
from pamo.errors import PamoError, error_of

if TYPE_CHECKING:
    MaybeInfinite: TypeAlias = float
else:
    MaybeInfinite = float | None
    """A number that may be infinite, and is read as such from JSON's null."""


# Decisions


class _InProcess:
    """What a decision has beyond what is sent."""

    details: Mapping[str, Any] | None = None
    repeated: bool = False


@dataclass
class Decision(_InProcess):
    """A decision: the arm to give, the ranked arms, and the chance with which the first came first.

    arm: the one to give; arms: it and the next best, as many as were asked for. propensity: the chance with which the
    first arm came first; below 1 only where there was a tie or the policy draws. policy: its label and pamo's version.

    In process it has more: details, the numbers behind it, which `Engine.explain` puts into words; and repeated,
    whether it had been made before, for the same key.
    """

    id: str
    user: str | None
    arm: str
    arms: tuple[str, ...]
    propensity: float
    policy: str


@dataclass(slots=True)
class Decisions:
    """Decisions, in the order in which they were asked for."""

    decisions: list[Decision]


@dataclass(slots=True, frozen=True)
class ArmScore:
    """What an arm's score is made of: its value by objective (weight times mean), and the two bonuses.

    value: what the user is expected to think of the arm, the sum of its values. score: value and bonuses together. An
    arm without complete feedback may have an infinite reward bonus (null in JSON, like its score): it comes first.
    """

    arm: str
    values: Mapping[str, float]
    reward_bonus: MaybeInfinite
    preference_bonus: float
    value: float = field(init=False)
    score: MaybeInfinite = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        if self.reward_bonus is None:
            put(self, "reward_bonus", math.inf)
        put(self, "value", sum(self.values.values()))
        put(self, "score", self.value + self.reward_bonus + self.preference_bonus)


@dataclass(slots=True, frozen=True)
class Explanation:
    """Why an arm was chosen, and which would have been without exploration.

    preference: the weights used. chosen: what its score is made of, None for a policy that forms no preference.
    without_exploration: the same for the arm of the highest value, which may be the same arm; None before any was
    tried. sentence: all this in words. scores: by objective where the chosen arm's score was from: "given" beforehand,
    "seen" in feedback to it, or "foretold" from other arms'. explored: whether another had been chosen otherwise.
    """

    decision: str
    policy: str
    preference: Mapping[str, float]
    chosen: ArmScore | None
    without_exploration: ArmScore | None
    sentence: str
    scores: Mapping[str, str] = field(default_factory=dict)
    explored: bool = field(init=False)

    def __post_init__(self) -> None:
        best = self.without_exploration
        explored = self.chosen is not None and (best is None or best.arm != self.chosen.arm)
        object.__setattr__(self, "explored", explored)


@dataclass(slots=True, frozen=True)
class Given:
    """The feedback that a decision got."""

    at: float
    arm: str | None
    rewards: Mapping[str, float]
    overall: float | None
    preference: Mapping[str, float] | None


@dataclass
class ExplainedDecision(Decision):
    """A decision with its explanation, its time in seconds since 1970, and its feedback, null while it is awaited.

    feedback: what was given so far of the arm to give, or, where that was not rated, of the first that was. others: of
    other arms of the ranking. awaited: what has not been given of the arm to give, and can still be: objectives and
    "overall".
    """

    at: float
    explanation: Explanation
    feedback: Given | None
    others: list[Given] = field(default_factory=list)
    awaited: tuple[str, ...] = ()


@dataclass(slots=True)
class UserDecisions:
    """A user's decisions, the newest first. next: what to send as `before` for those before them, null at the end.

    names: of the arms that were given, or would have been without exploration.
    """

    decisions: list[ExplainedDecision]
    names: Mapping[str, str]
    next: int | None


# Feedback


@dataclass(slots=True)
class Feedback:
    """What became of a feedback: "recorded", or "duplicate" if the same was recorded before.

    id: the decision's. learned: what it taught, such as "arm: price" or "preference"; not_learned: what it would have
    taught had it been complete.
    """

    id: str
    status: Literal["recorded", "duplicate"]
    learned: tuple[str, ...]
    not_learned: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class FeedbackResult:
    """What became of one feedback of many.

    status: "recorded", "duplicate" (the same was recorded before, which is as good), "conflict" (another one was),
    "unknown" (there is no such decision, or it did not choose that arm) or "expired" (it came too late). id: the
    decision's. learned and not_learned: as in `Feedback`. detail: why it was refused, None if it was not. code: what
    happened, in one word for programs.

    >>> FeedbackResult("d1", "recorded", ("arm: taste",)).error
    >>> FeedbackResult("d2", "expired", detail="d2 took feedback for 60 s only", code="expired_decision").error
    ExpiredDecisionError('d2 took feedback for 60 s only')
    """

    id: str
    status: str
    learned: tuple[str, ...] = ()
    not_learned: tuple[str, ...] = ()
    detail: str | None = None
    code: str = Code.RECORDED

    @property
    def error(self) -> PamoError | None:
        """What `feedback` would have raised, None if this feedback counts."""
        if self.status in ("recorded", "duplicate"):
            return None
        reason = self.detail or f"the feedback to decision {self.id} was refused: {self.status}"
        return error_of(self.code, reason) or PamoError(reason)  # a newer service has more to say


@dataclass(slots=True)
class FeedbackResults:
    """What became of feedbacks, in the order in which they came."""

    results: list[FeedbackResult]


# Users


@dataclass(slots=True, frozen=True)
class Weight:
    """How much an objective counts for a user, and between which weights that probably lies."""

    weight: float
    low: float
    high: float


@dataclass(slots=True, frozen=True)
class Preference:
    """What a user cares about.

    source: "stated" (the mean of what the user stated), "overall" (learned from overall scores), "others" (a new user:
    what users have in common) or "nothing" (nobody has given an overall score yet). level: the chance with which an
    interval holds its weight, as far as the model is right. changed: when the user was last found to care about other
    things than before, in seconds since 1970; what was learned until then counts no more.
    """

    user: str
    rounds: int
    source: str
    level: float
    objectives: Mapping[str, Weight]
    changed: float | None = None


@dataclass(slots=True)
class PreferencePoint:
    """What was known of a user's preference at a time, in seconds since 1970."""

    at: float
    rounds: int
    source: str
    objectives: Mapping[str, Weight]


@dataclass(slots=True)
class PreferenceHistory:
    """How what is known of a user's preference moved, the oldest first."""

    user: str
    points: list[PreferencePoint]


@dataclass(slots=True)
class UserExport:
    """Everything that is kept of a user: what was learned, decisions and feedback, and what is known beforehand."""

    user: str
    preference: Preference
    history: list[dict[str, Any]]
    features: Mapping[str, FeatureValue] = field(default_factory=dict)


@dataclass(slots=True)
class UserFound:
    """A user, how many feedbacks they have given, and what their overall scores tell of what they care about."""

    user: str
    rounds: int
    weights: Mapping[str, float] | None


@dataclass(slots=True)
class UsersFound:
    """Users who gave feedback, those with the most first. more: whether there are more of them."""

    users: list[UserFound]
    more: bool


# Arms


@dataclass(slots=True, frozen=True)
class Arm:
    """An arm: its id, its name for display, whether it is offered, and its features.

    pulls: how many feedbacks it has, the incomplete ones too; where it was found to have changed, as many as told of
    the objective that most is known of.
    """

    id: str
    name: str
    active: bool
    pulls: int
    features: Mapping[str, FeatureValue] = field(default_factory=dict)


@dataclass(slots=True)
class ArmList:
    """Arms, the retired ones among them."""

    arms: list[Arm]


@dataclass(slots=True, frozen=True)
class Estimate:
    """A mean of an arm's objective, from 0 (worst) to 1 (best), and between which numbers it probably lies."""

    mean: float
    low: float
    high: float


@dataclass(slots=True, frozen=True)
class FrontArm:
    """An arm and the Pareto front.

    on_front: whether no other arm's means are higher in every objective. confidence: the chance that this is so of the
    true means (that the arm is on the front), None for an arm without complete feedback.
    """

    arm: str
    name: str
    pulls: int
    on_front: bool
    confidence: float | None
    objectives: Mapping[str, Estimate]


@dataclass(slots=True)
class Front:
    """The active arms, those on the Pareto front first."""

    arms: list[FrontArm]


@dataclass(slots=True, frozen=True)
class Standing:
    """An arm in a leaderboard: what is known of it, by objective, where anything is.

    overall: of the overall score, of those who were given it. typical: what somebody with everybody's weights would say
    of it, which can be compared between arms whoever was given them; from 0 to 1 as well, None where that is not known.
    """

    arm: str
    name: str
    active: bool
    pulls: int
    objectives: Mapping[str, Estimate]
    overall: Estimate | None
    typical: Estimate | None


@dataclass(slots=True)
class Leaderboard:
    """A page of the active arms, and how many there are that the search finds."""

    total: int
    arms: list[Standing]


@dataclass(slots=True, frozen=True)
class Ranked:
    """An arm in a ranking by weights that add up to 1: its value with an interval, and what each objective adds."""

    arm: str
    name: str
    pulls: int
    value: Estimate
    values: Mapping[str, float]


@dataclass(slots=True)
class Ranking:
    """The arms that are worth most by the given weights. untried: how many arms nothing is known of."""

    arms: list[Ranked]
    untried: int


# Experiments


@dataclass(slots=True, frozen=True)
class Compared:
    """A score in a variant and in control, on its own scale: the mean over users of each user's mean.

    treated, control: the means; difference: how much more those of the variant have, from low to high: in 95 % of
    experiments no variant's interval is ever wrong, however often one looks; null while there are fewer than 20 users
    in a group. better: whether the variant is better off, null while that is open. treated_users, control_users: those
    who gave the score. still_needed: how many more such users there have to be, of all groups together, until the
    smallest difference worth finding would show.
    """

    treated: float | None
    control: float | None
    difference: float | None
    low: float | None
    high: float | None
    better: bool | None
    treated_users: int
    control_users: int
    still_needed: int


@dataclass(slots=True, frozen=True)
class ComparedVariant:
    """A variant and how it compares with control, overall and by objective.

    share: of the users. policy, preference: how they are served. users: those who gave feedback. sentence: what it
    says, in words.
    """

    name: str
    share: float
    policy: str
    preference: Mapping[str, float] | None
    users: int
    overall: Compared
    objectives: Mapping[str, Compared]
    sentence: str


@dataclass(slots=True, frozen=True)
class Experiment:
    """An experiment and what came of it so far.

    started, ended: when, in seconds since 1970; ended is null while it runs. control: the share of users in the control
    group, policy how they are served, and control_users those who gave feedback. smallest: the smallest difference
    worth finding, in standard deviations. variants: what control is compared with; "treated" are all others. sentence:
    what it says, in words. warning: what speaks against believing it, "" where nothing does.
    """

    name: str
    started: float
    ended: float | None
    control: float
    policy: str
    smallest: float
    control_users: int
    variants: list[ComparedVariant]
    sentence: str
    warning: str = ""


@dataclass(slots=True)
class ExperimentFound:
    """The newest experiment, null where there was none."""

    experiment: Experiment | None


# The service itself


@dataclass(slots=True)
class Objectives:
    """The objectives, the scale of the overall score, and the features that arms and users may have."""

    objectives: tuple[Objective, ...]
    overall: Objective
    features: tuple[Feature, ...] = ()
    user_features: tuple[Feature, ...] = ()


@dataclass(slots=True)
class Features:
    """The features that arms, or users, may have."""

    features: tuple[Feature, ...]


@dataclass(slots=True)
class Statistics:
    """How much of everything there is: arms, users who gave feedback, feedbacks, and decisions that wait for one."""

    arms: int
    retired_arms: int
    users: int
    pending_decisions: int
    complete_feedbacks: int
    overall_scores: int
    rewards: int


@dataclass(slots=True)
class Health:
    """A sign of life."""

    status: Literal["ok"] = "ok"


@dataclass(slots=True)
class Alert:
    """Something that whoever looks after the service should know.

    code: one stable word for it. level: "act" where nothing can be decided or recorded, "look" where less is learned
    than could be. about: the arm or objective, where it is about one.
    """

    code: str
    level: Literal["act", "look"]
    sentence: str
    about: str | None = None


@dataclass(slots=True)
class Alerts:
    """What there is to know, the worst first; none where all is as it should be."""

    alerts: list[Alert]


@dataclass(slots=True)
class Bucket:
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


@dataclass(slots=True)
class ActivityReport:
    """What went on: buckets of so many seconds, the empty ones left out.

    By the second and the minute that is what this worker has done since it started. By the quarter of an hour, the hour
    and the day it is counted from the journal, over restarts and all workers, some seconds behind. since: when what
    there is begins.
    """

    since: float
    now: float
    seconds: int
    decisions_per_second: float
    feedbacks_per_second: float
    buckets: list[Bucket]


@dataclass(slots=True)
class StreamDecision:
    """A decision in the live stream."""

    id: str
    user: str | None
    arm: str
    name: str
    at: float
    explored: bool


@dataclass(slots=True)
class StreamUpdate:
    """The data of an event of the live stream: what happened since the last one, and the last few decisions of it."""

    decisions: int
    explored: int
    feedbacks: int
    shown: list[StreamDecision]


@dataclass(slots=True)
class StreamEvent:
    """A server-sent event. data, in JSON: what happened (StreamUpdate), or how many updates a slow reader missed."""

    event: Literal["update", "missed"]
    data: str
