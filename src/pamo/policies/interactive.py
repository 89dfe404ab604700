"""Learning a utility by asking for it, and only where the answer may matter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from pamo.arrays import Floats
from pamo.compiling import anywhere, count_of, inlined, kernel
from pamo.policies.base import Feedback, Keeping, Keeps, Policy, Shape, mark_unpulled, value_of
from pamo.reading import PREFERENCE, WIDTH, inverse_at, step_user
from pamo.rows import pair, triangle
from pamo.streams import normal

_LEAST = 1e-300
"""A reward of no more than this, squared, has no direction."""


@anywhere
def asked_at(objectives: int) -> int:
    """Return the place in a user's row of whether the user is asked this round; then come the questions so far.

    Before it are ĉ and V⁻¹, laid out as in what is read of a user; after it whether the row is begun.
    """
    return objectives + triangle(objectives)


@inlined
def _draw_preference(row: Floats, run: Keeping, dims: Any) -> float:
    """Draw c from Normal(ĉ, ν²V⁻¹) into the scratch's last line; return ‖c‖. The lines before it are for V⁻¹'s root."""
    objectives, room = count_of(dims), run.scratch
    drawn, inverse, square = room[objectives], inverse_at(objectives), 0.0
    for d in range(objectives):
        drawn[d] = row[PREFERENCE + d]
    for e in range(objectives):
        z = run.hyperparameters[1] * normal(run.stream)
        for d in range(e, objectives):
            entry = row[inverse + pair(d, e)]
            for k in range(e):
                entry -= room[d, k] * room[e, k]
            room[d, e] = math.sqrt(max(entry, 0.0)) if d == e else (entry / room[e, e] if room[e, e] > 0.0 else 0.0)
            drawn[d] += room[d, e] * z
    for d in range(objectives):
        square += drawn[d] * drawn[d]
    return math.sqrt(square)


@inlined
def _draw_best(scores: Floats, offered: int, arms: Floats, row: Floats, run: Keeping, dims: Any) -> int:
    """Draw a preference and the arms' values with it; return the place of the best."""
    spread, best = run.hyperparameters[0] * _draw_preference(row, run, dims), 0
    for j in range(offered):
        value = value_of(arms, j, run.scratch[count_of(dims)], dims)
        scores[j] = value + spread * arms[WIDTH, j] * normal(run.stream)
        best = j if scores[j] > scores[best] else best
    return best


@kernel
def _score_its(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Keeping, dims: Any
) -> None:
    objectives, row = count_of(dims), run.kept.by_user[run.user]
    asked = asked_at(objectives)
    if row[asked + 2] == 0.0:
        row[asked + 2] = 1.0
        for d in range(objectives):
            row[PREFERENCE + d] = 1.0 / objectives
            row[inverse_at(objectives) + pair(d, d)] = 1.0 / run.hyperparameters[2]
    row[asked] = 1.0
    if mark_unpulled(scores, offered, arms):
        return
    other = _draw_best(scores, offered, arms, row, run, dims)
    best = _draw_best(scores, offered, arms, row, run, dims)
    row[asked] = 1.0 if best != other or run.hyperparameters[3] > 0.0 else 0.0


@kernel
def _remember_its(arm: int, values: Floats, run: Keeping, dims: Any) -> None:
    objectives, row, square = count_of(dims), run.kept.by_user[run.user], 0.0
    asked = asked_at(objectives)
    if row[asked] == 0.0:
        return  # nobody was asked, and the overall score is not known
    row[asked + 1] += 1.0
    for d in range(objectives):
        square += values[d] * values[d]
    step_user(row, values, square, _LEAST, 0.0, 1.0, run.scratch[:, 0], dims)


@dataclass(frozen=True, kw_only=True)
class Its(Policy):
    """Interactive Thompson sampling: two draws of what is believed; the user is asked where they choose differently.

    Each draw has a preference c from Normal(ĉ, ν²V⁻¹) and values c·r̂_i + σ‖c‖z/√N_i; the second one's best is pulled.
    Only where the first one's best is another arm, or an arm is new, is the user asked for the overall score of what
    was given, and ĉ and V, the ridge with weights 1/‖r‖² around 1/D, learn from it: what is not asked is not read.
    noise: σ, of a reward; preference_noise: ν; ridge: λ; always: ask in every round, to compare with.

    >>> Its(always=True).label
    'its:always=True'

    Reference: Roijers, Zintgraf & Nowé (2017), whose users compare two arms where ours score one.
    """

    id: ClassVar[str] = "its"
    summary: ClassVar[str] = "Thompson sampling that asks a user for overall scores only where the answer may matter"
    formula: ClassVar[str] = "c·r̂ᵢ + σ‖c‖z/√Nᵢ,  c ~ Normal(ĉ, ν²V⁻¹),  ĉ from the rounds that were asked about"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.OVERALL)
    reference: ClassVar[str] = "Roijers, Zintgraf & Nowé (2017)"
    kernel: ClassVar[Any] = _score_its
    remember: ClassVar[Any] = _remember_its

    noise: float = 0.1
    preference_noise: float = 0.7
    ridge: float = 1.0
    always: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            self.noise >= 0.0 and self.preference_noise >= 0.0 and self.ridge > 0.0,
            "noise and preference_noise of at least 0, and ridge above 0",
        )

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """σ, ν, λ, and whether to ask always."""
        return (self.noise, self.preference_noise, self.ridge, float(self.always))

    def keeps(self, shape: Shape) -> Keeps:
        """Of a user: ĉ, V⁻¹, whether asked this round, the questions so far, and whether the row is begun."""
        return Keeps(by_user=shape.objectives + triangle(shape.objectives) + 3)
