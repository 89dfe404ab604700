"""What the engine answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Decision:
    """Arms chosen for a user.

    arm: the one to give; arms: it and the next best, as many as were asked for. propensity: the chance with which the
    first arm came first; below 1 only where there was a tie or the policy draws. policy: its label and pamo's version.
    details: the numbers behind it, which `Engine.explain` puts into words. repeated: whether it had been made before,
    for the same request with the same key.
    """

    id: str
    user: str | None
    arm: str
    arms: tuple[str, ...]
    propensity: float
    policy: str
    details: Mapping[str, Any] | None = None
    repeated: bool = field(default=False, compare=False)


@dataclass(slots=True)
class Feedback:
    """What became of a feedback: "recorded", or "duplicate" if the same was recorded before.

    id: the decision's. learned: what it taught, such as "arm: price" or "preference"; not_learned: what it would have
    taught had it been complete.
    """

    id: str
    status: str
    learned: tuple[str, ...]
    not_learned: tuple[str, ...] = ()


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
    interval holds its weight, as far as the model is right.
    """

    user: str
    rounds: int
    source: str
    level: float
    objectives: Mapping[str, Weight]


@dataclass(slots=True, frozen=True)
class ArmScore:
    """What an arm's score is made of: its value by objective (weight times mean), and the two bonuses.

    The score is the sum. An arm that has not been tried has an infinite reward bonus: it comes first.
    """

    arm: str
    values: Mapping[str, float]
    reward_bonus: float
    preference_bonus: float

    @property
    def value(self) -> float:
        """What the user is expected to think of the arm."""
        return sum(self.values.values())

    @property
    def score(self) -> float:
        """Value and bonuses together."""
        return self.value + self.reward_bonus + self.preference_bonus


@dataclass(slots=True, frozen=True)
class Explanation:
    """Why an arm was chosen.

    preference: the weights used. chosen: what its score is made of, None for a policy that forms no preference.
    without_exploration: the same for the arm of the highest value, which may be the same arm; None before any was
    tried. sentence: all this in words.
    """

    decision: str
    policy: str
    preference: Mapping[str, float]
    chosen: ArmScore | None
    without_exploration: ArmScore | None
    sentence: str

    @property
    def explored(self) -> bool:
        """Whether another arm would have been chosen without exploration."""
        best = self.without_exploration
        return self.chosen is not None and (best is None or best.arm != self.chosen.arm)


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


@dataclass(slots=True, frozen=True)
class Arm:
    """An arm: its id, its name for display, whether it is offered, and how many complete feedbacks it has."""

    id: str
    name: str
    active: bool
    pulls: int
