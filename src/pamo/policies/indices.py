"""The index policies that the paper compares with: UCB and MOSS, on scalarised rewards or on overall scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pamo.arrays import Floats
from pamo.compiling import count_of, inlined, kernel
from pamo.policies.base import Feedback, Policy, Run, Shape
from pamo.reading import MEAN, OVERALL, PULLS

_UCB = "Auer, Cesa-Bianchi & Fischer (2002)"
_MOSS = "Audibert & Bubeck (2009)"


@inlined
def ucb_width(t: int, pulls: float) -> float:
    """√(2·ln t / N), infinite before the first pull."""
    return math.sqrt(2.0 * math.log(t) / pulls) if pulls > 0.0 else np.inf


@inlined
def moss_width(share: float, pulls: float) -> float:
    """√(max(ln(share/N), 0)/N) with share = T·N/K, infinite before the first pull."""
    return math.sqrt(max(math.log(share / pulls), 0.0) / pulls) if pulls > 0.0 else np.inf


@inlined
def _mean_objective(arms: Floats, j: int, dims: Any) -> float:
    total = 0.0
    for d in range(count_of(dims)):
        total += arms[MEAN + d, j]
    return total / count_of(dims)


@kernel
def _score_s_ucb(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    for j in range(len(scores)):
        scores[j] = _mean_objective(arms, j, dims) + ucb_width(t, arms[PULLS, j])


@kernel
def _score_s_moss(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    for j in range(len(scores)):
        scores[j] = _mean_objective(arms, j, dims) + moss_width(run.hyperparameters[0], arms[PULLS, j])


@kernel
def _score_ucb(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    for j in range(len(scores)):
        scores[j] = arms[OVERALL, j] + ucb_width(t, arms[PULLS, j])


@kernel
def _score_moss(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    for j in range(len(scores)):
        scores[j] = arms[OVERALL, j] + moss_width(run.hyperparameters[0], arms[PULLS, j])


@dataclass(frozen=True, kw_only=True)
class SUcb(Policy):
    """S-UCB: UCB on the plain mean of the objectives, the same for every user.

    Score: mean over d of r̂_i(d), + √(2·ln t / N_i); an arm never pulled comes first.

    >>> SUcb().label
    's-ucb'

    Reference: Drugan & Nowé (2013), with equal weights.
    """

    id: ClassVar[str] = "s-ucb"
    summary: ClassVar[str] = "UCB on the plain mean of the objectives, whoever the user is"
    formula: ClassVar[str] = "mean_d r̂ᵢ(d) + √(2 ln t / Nᵢ)"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD,)
    reference: ClassVar[str] = "Drugan & Nowé (2013), equal weights"
    kernel: ClassVar[Any] = _score_s_ucb


@dataclass(frozen=True, kw_only=True)
class SMoss(Policy):
    """S-MOSS: MOSS on the plain mean of the objectives, the same for every user.

    Score: mean over d of r̂_i(d), + √(max(ln(T·N/(K·N_i)), 0)/N_i); an arm never pulled comes first.

    >>> SMoss().hyperparameters(Shape(users=2, arms=10, objectives=3, horizon=5000))
    (1000.0,)

    Reference: Audibert & Bubeck (2009), scalarised with equal weights as in the paper's appendix.
    """

    id: ClassVar[str] = "s-moss"
    summary: ClassVar[str] = "MOSS on the plain mean of the objectives, whoever the user is; needs the horizon"
    formula: ClassVar[str] = "mean_d r̂ᵢ(d) + √(max(ln(T·N/(K·Nᵢ)), 0)/Nᵢ)"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD,)
    reference: ClassVar[str] = f"{_MOSS}, equal weights"
    kernel: ClassVar[Any] = _score_s_moss

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """T·N/K: the pulls an arm would get if all were pulled alike."""
        return (self.horizon(shape) * shape.users / shape.arms,)


@dataclass(frozen=True, kw_only=True)
class Ucb(Policy):
    """UCB on the overall scores of all users together: why one score for everybody fails here.

    Score: ḡ_i + √(2·ln t / N_i), ḡ_i the mean overall score of arm i from all users; unpulled arms first.

    >>> Ucb().reads
    (<Feedback.OVERALL: 'overall'>,)

    Reference: Auer, Cesa-Bianchi & Fischer (2002).
    """

    id: ClassVar[str] = "ucb"
    summary: ClassVar[str] = "UCB on the overall scores of all users thrown together"
    formula: ClassVar[str] = "ḡᵢ + √(2 ln t / Nᵢ),  ḡᵢ over all users"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.OVERALL,)
    reference: ClassVar[str] = _UCB
    kernel: ClassVar[Any] = _score_ucb


@dataclass(frozen=True, kw_only=True)
class Moss(SMoss):
    """MOSS on the overall scores of all users together.

    Score: ḡ_i + √(max(ln(T·N/(K·N_i)), 0)/N_i); unpulled arms first.

    >>> Moss().hyperparameters(Shape(users=2, arms=10, objectives=3, horizon=5000))
    (1000.0,)

    Reference: Audibert & Bubeck (2009).
    """

    id: ClassVar[str] = "moss"
    summary: ClassVar[str] = "MOSS on the overall scores of all users thrown together; needs the horizon"
    formula: ClassVar[str] = "ḡᵢ + √(max(ln(T·N/(K·Nᵢ)), 0)/Nᵢ),  ḡᵢ over all users"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.OVERALL,)
    reference: ClassVar[str] = _MOSS
    kernel: ClassVar[Any] = _score_moss


@dataclass(frozen=True, kw_only=True)
class UcbPerUser(Policy):
    """One UCB a user, on that user's own overall scores: the baseline that the paper leaves out.

    Score: ḡ_i^n + √(2·ln t / N_i^n), both from user n alone; arms that the user never had come first.

    >>> UcbPerUser().per_user
    True

    Reference: Auer, Cesa-Bianchi & Fischer (2002), once for each user.
    """

    id: ClassVar[str] = "ucb-per-user"
    summary: ClassVar[str] = "a UCB for each user alone, on that user's overall scores; shares nothing"
    formula: ClassVar[str] = "ḡᵢⁿ + √(2 ln t / Nᵢⁿ),  both from user n alone"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.OVERALL,)
    reference: ClassVar[str] = f"{_UCB}, once for each user"
    kernel: ClassVar[Any] = _score_ucb
    per_user: ClassVar[bool] = True
