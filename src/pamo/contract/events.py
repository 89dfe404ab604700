"""The journal's words: what is recorded, and what became of it.

Events are appended to a journal and never changed (the erasure of a user is the one exception). They hold raw values as
they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from pamo.contract.codes import Code
from pamo.contract.experiments import CONTROL, LIVE, RANDOM, TREATED, Variant
from pamo.contract.features import Feature, FeatureValue
from pamo.contract.forgetting import HalfLives
from pamo.contract.objectives import Objective

ARMS, USERS = "arms", "users"
"""Whose features may be declared."""
HISTORY = "history"
"""The policy of a decision that nobody made: a rating from before there was a journal, of the one arm on offer."""
FORMAT = 1
"""The number of the journal's format. Older ones stay readable; a newer one is refused."""


@dataclass(slots=True, frozen=True)
class Setup:
    """The first event of every journal: the objectives, and the scale of the overall score.

    half_life: how fast what was learned is forgotten, never where it is None. That is declared later (`Declared`).
    """

    objectives: tuple[Objective, ...]
    overall: Objective = Objective("overall")  # noqa: RUF009  # it is frozen
    format: int = FORMAT
    half_life: HalfLives | None = None


# Events are plain values, and nobody changes them. They are not frozen, since to make one would take twice as long.


@dataclass(slots=True)
class Declared:
    """Objectives, scales or half-lives are others than before: from now on, and for all that the journal holds.

    The journal has raw values, so that the sums are folded anew; of an objective that is new no score was given before.
    """

    setup: Setup
    at: float


@dataclass(slots=True)
class ArmAdded:
    """An arm can be chosen from now on. Added again it is revived; added with another name it is renamed.

    features: those that are new or have changed, None for one that is not known any more.
    """

    arm: str
    name: str
    at: float
    features: Mapping[str, FeatureValue | None] | None = None


@dataclass(slots=True)
class ArmRetired:
    """An arm is no longer offered. What was learned of it stays, and late feedback still counts."""

    arm: str
    at: float


@dataclass(slots=True)
class FeaturesDeclared:
    """Arms, or users, may have these features from now on."""

    features: tuple[Feature, ...]
    at: float
    of: str = ARMS


@dataclass(slots=True)
class DecisionMade:
    """Arms were chosen for a user, the best first.

    offer: the arms to choose from, None for all that were active. k: how many were asked for. preference: the user's
    weights where they were known. key: makes the request repeatable. user: None once the user was erased. given: raw
    scores by arm and objective that were known beforehand. since: the journal's time, which the store fills in where
    the clock was far behind that. rounds: where a half-life is in rounds, how many the user has had since that was
    declared, and how many pulls each of the arms. group: the experiment that it was made in, and the user's group.
    """

    id: str
    user: str | None
    arms: tuple[str, ...]
    propensity: float
    policy: str
    at: float
    offer: tuple[str, ...] | None = None
    k: int = 1
    preference: Mapping[str, float] | None = None
    key: str | None = None
    explanation: Mapping[str, Any] | None = None
    given: Mapping[str, Mapping[str, float]] | None = None
    since: float | None = None
    rounds: tuple[int, ...] | None = None
    group: tuple[str, str] | None = None


@dataclass(slots=True)
class FeedbackGiven:
    """What came of a decision, or a part of that: each score of an arm is given once, whenever it is known.

    rewards: raw scores by objective, of those that are known. overall: the user's one overall score. preference: the
    weights that the user stated. arm: the one that the feedback is for, the first of the decision where it is None.

    The store fills in the rest when it records the event, so that the journal can be folded event by event: arm and
    user; before, what earlier parts have said of the arm, by objective and as "overall", None where there are none;
    part, the how many-th feedback to the decision it is; user_changed and arm_changed, whether the user's taste, or the
    arm, was found to have changed since those parts, so that nothing of them is left to be completed; age, where that
    may matter, how old its round is: when its first part came, and the decision's rounds of user and arm; group, the
    decision's. What was given already is left out of the event itself.
    """

    decision: str
    rewards: Mapping[str, float]
    at: float
    overall: float | None = None
    preference: Mapping[str, float] | None = None
    arm: str | None = None
    user: str | None = None
    before: Mapping[str, float] | None = None
    part: int = 1
    user_changed: bool = False
    arm_changed: bool = False
    age: tuple[float, int, int] | None = None
    group: tuple[str, str] | None = None


@dataclass(slots=True)
class UserKnown:
    """Something is known of a user: the features that are new or have changed, None for one not known any more.

    decision: the one that they came with. user: None once the user was erased, and features is then empty.
    """

    decision: str
    user: str | None
    at: float
    features: Mapping[str, FeatureValue | None]


@dataclass(slots=True)
class UserErased:
    """A user asked to be forgotten. In the journal the name is gone here too: user is None."""

    user: str | None
    at: float


@dataclass(slots=True)
class TasteChanged:
    """A user was found to care about other things than before: what was learned of the user until then counts no more.

    decision: the first that is counted to the new taste. kept: what is known since, the arm, the raw scores and the
    overall score of each round. user: None once the user was erased, and kept is then empty. place: the decision's
    number in the journal, which the store fills in.
    """

    decision: str
    user: str | None
    at: float
    kept: tuple[tuple[str, Mapping[str, float], float], ...] = ()
    place: int = 0


@dataclass(slots=True)
class ArmChanged:
    """An arm was found to be another than before: what was learned of these objectives until then counts no more.

    kept: by objective what is known since: how many raw scores, their sum, and the sum of their squares.
    """

    arm: str
    at: float
    kept: Mapping[str, tuple[float, float, float]]


@dataclass(slots=True)
class ExperimentStarted:
    """From now on some of the users, the control group and each variant, are served otherwise, so as to be compared.

    control: control's share. policy: how it is served, see `pamo.contract.experiments`. smallest: the smallest
    difference worth finding, in standard deviations. variants: the groups beside it that have a name of their own.
    """

    name: str
    at: float
    control: float
    policy: str = RANDOM
    smallest: float = 0.2
    variants: tuple[Variant, ...] = ()

    def groups(self) -> tuple[Variant, ...]:
        """Return all groups: control, the variants, and the treated, unless they would be served as control is.

        Then those who are in no group are not in the experiment.
        """
        named = (Variant(CONTROL, self.control, self.policy), *self.variants)
        others = 1.0 - sum(one.share for one in named)
        return named if self.policy == LIVE or others < 1e-9 else (*named, Variant(TREATED, others))


@dataclass(slots=True)
class ExperimentEnded:
    """Everybody is served alike again. Late feedback to the experiment's decisions still counts."""

    name: str
    at: float


Event = (
    Setup
    | Declared
    | FeaturesDeclared
    | ArmAdded
    | ArmRetired
    | ArmChanged
    | DecisionMade
    | FeedbackGiven
    | UserErased
    | UserKnown
    | TasteChanged
    | ExperimentStarted
    | ExperimentEnded
)


class Outcome(StrEnum):
    """What became of an event. Nothing has changed unless it was recorded."""

    RECORDED = "recorded"
    DUPLICATE = "duplicate"
    """The same had been recorded before: harmless, and answered like the first time."""
    CONFLICT = "conflict"
    """Something else had been recorded under the same id or key."""
    UNKNOWN = "unknown"
    """It names a decision, an arm or a user that does not exist."""
    EXPIRED = "expired"
    """The feedback came too late."""


RECORDED = Outcome.RECORDED
"""The usual one, for whoever counts microseconds: to read it off its class takes ten times as long."""


@dataclass(slots=True)
class Receipt:
    """The answer to an appended event.

    sequence: the event's place in the journal (of the first one for a duplicate), 0 where nothing is recorded. learned:
    what a feedback taught, such as ("arm: price", "preference"). decision: for a decision, the one that counts (where
    the key was used before, the first); for a recorded feedback, the one that it is for. reason, code: a sentence
    for people and a code for programs, where it was neither recorded nor a duplicate.
    """

    outcome: Outcome
    sequence: int = 0
    learned: tuple[str, ...] = ()
    decision: DecisionMade | None = None
    reason: str = ""
    code: Code | None = None


_REFUSALS: dict[str, Outcome] = {
    Code.UNKNOWN_DECISION: Outcome.UNKNOWN,
    Code.UNKNOWN_ARM: Outcome.UNKNOWN,
    Code.ARM_NOT_CHOSEN: Outcome.UNKNOWN,
    Code.FEEDBACK_CONFLICT: Outcome.CONFLICT,
    Code.DECISION_CONFLICT: Outcome.CONFLICT,
    Code.KEY_CONFLICT: Outcome.CONFLICT,
    Code.EXPERIMENT_CONFLICT: Outcome.CONFLICT,
    Code.UNKNOWN_EXPERIMENT: Outcome.UNKNOWN,
    Code.EXPIRED_DECISION: Outcome.EXPIRED,
}


def outcome_of(code: str) -> Outcome | None:
    """Return the outcome that a code of a refusal stands for, None for another code."""
    return _REFUSALS.get(code)


def refused(code: Code, reason: str) -> Receipt:
    """Return the receipt for an event that is not recorded."""
    return Receipt(_REFUSALS[code], reason=reason, code=code)


class Made(NamedTuple):
    """A decision, its place in the journal, and the parts of its feedback so far."""

    sequence: int
    decision: DecisionMade
    parts: tuple[FeedbackGiven, ...] = ()

    @property
    def feedback(self) -> FeedbackGiven | None:
        """The feedback to the arm that was rated first, its parts put together; None while there is none."""
        return next(iter(together(self.parts).values()), None)


OVERALL = "overall"
"""What the overall score is called among scores by objective: no objective may have that name."""


def scores_of(event: FeedbackGiven) -> dict[str, float]:
    """Return the scores that a feedback gives, by objective and as "overall"."""
    scores = dict(event.rewards)
    if event.overall is not None:
        scores[OVERALL] = event.overall
    return scores


def with_scores(event: FeedbackGiven, scores: Mapping[str, float]) -> FeedbackGiven:
    """Return a feedback like this one that gives these scores, and is the only one."""
    rewards = {name: value for name, value in scores.items() if name != OVERALL}
    overall, preference = scores.get(OVERALL), event.preference
    return FeedbackGiven(event.decision, rewards, event.at, overall, preference, event.arm, event.user, age=event.age)


def together(parts: Iterable[FeedbackGiven]) -> dict[str, FeedbackGiven]:
    """Return by arm what the parts of a decision's feedback say together; one alone is as it was."""
    whole: dict[str, FeedbackGiven] = {}
    for part in parts:
        arm = part.arm or ""
        first = whole.get(arm)
        if first is None:
            whole[arm] = part
        else:
            whole[arm] = with_scores(part, {**scores_of(first), **scores_of(part)})
            if part.preference is None:
                whole[arm].preference = first.preference
    return whole


def same_request(
    first: DecisionMade,
    user: str | None,
    offer: tuple[str, ...] | None,
    k: int,
    preference: Mapping[str, float] | None,
    given: Mapping[str, Mapping[str, float]] | None = None,
) -> bool:
    """Tell whether a decision was made for this request."""
    asked = (user, offer, k, preference, given)
    return (first.user, first.offer, first.k, first.preference, first.given) == asked
