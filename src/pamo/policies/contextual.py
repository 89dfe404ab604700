"""Linear contextual bandits with several objectives: rewards that depend on what is known of the user when choosing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from pamo.arrays import Floats
from pamo.compiling import anywhere, count_of, inlined, kernel
from pamo.estimators import Estimate, Kind
from pamo.pareto import mark_front
from pamo.policies.base import Feedback, Keeping, Keeps, Policy, Shape
from pamo.reading import PREFERENCE
from pamo.rows import pair, triangle

_INVERSE = 1
"""An arm's row: its pulls, then A⁻¹, then θ of each objective."""


@anywhere
def _coefficients_at(objectives: int) -> int:
    """Return where θ begins in an arm's row."""
    return _INVERSE + triangle(objectives)


@inlined
def _along(row: Floats, d: int, context: Floats, ridge: float, dims: Any) -> float:
    """The d-th entry of A⁻¹x; before the first pull A is λI."""
    if row[0] == 0.0:
        return float(context[d] / ridge)
    total = 0.0
    for e in range(count_of(dims)):
        total += row[_INVERSE + (pair(d, e) if e <= d else pair(e, d))] * context[e]
    return total


@inlined
def _foretold(row: Floats, d: int, context: Floats, dims: Any) -> float:
    """θ_d·x."""
    first, total = _coefficients_at(count_of(dims)) + d * count_of(dims), 0.0
    for e in range(count_of(dims)):
        total += row[first + e] * context[e]
    return total


@kernel
def _score_pareto_linucb(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Keeping, dims: Any
) -> None:
    context = run.kept.by_user[run.user]  # kept for `remember`, which is not told it
    for d in range(count_of(dims)):
        context[d] = user[PREFERENCE + d]
    for j in range(offered):
        row, square = run.kept.by_arm[run.offer[j]], 0.0
        for d in range(count_of(dims)):
            square += context[d] * _along(row, d, context, run.hyperparameters[0], dims)
        bonus = run.hyperparameters[1] * math.sqrt(max(square, 0.0))
        for d in range(count_of(dims)):
            run.scratch[d, j] = _foretold(row, d, context, dims) + bonus
    mark_front(run.scratch.T, scores[:offered], dims)


@kernel
def _remember_pareto_linucb(arm: int, values: Floats, run: Keeping, dims: Any) -> None:
    objectives, row, context = count_of(dims), run.kept.by_arm[arm], run.kept.by_user[run.user]
    first, ridge, denominator = _coefficients_at(objectives), run.hyperparameters[0], 1.0
    for d in range(objectives):
        run.scratch[d, 0] = _along(row, d, context, ridge, dims)
        denominator += run.scratch[d, 0] * context[d]
    for d in range(objectives):
        residual = (values[d] - _foretold(row, d, context, dims)) / denominator
        for e in range(objectives):
            row[first + d * objectives + e] += run.scratch[e, 0] * residual
    for d in range(objectives):
        for e in range(d + 1):
            before = row[_INVERSE + pair(d, e)] if row[0] > 0.0 else (1.0 / ridge if d == e else 0.0)
            row[_INVERSE + pair(d, e)] = before - run.scratch[d, 0] * run.scratch[e, 0] / denominator
    row[0] += 1.0


@dataclass(frozen=True, kw_only=True)
class ParetoLinUcb(Policy):
    """Pareto-LinUCB: a uniform pick from the front of what a linear model of each arm foretells in this context.

    Vectors: θ_i(d)·x + α·‖x‖ in A_i⁻¹, A_i = λI + Σ x·xᵀ over the arm's pulls, θ_i(d) the ridge of its d-th rewards on
    their contexts x. The context is what is known of the user when choosing: the D numbers of the preference, that
    of the round where each round has its own (`Player.choose`).

    >>> ParetoLinUcb(width=0.5).label
    'pareto-linucb:width=0.5'

    Reference: Lu, Wang, Hu & Zhang (2019), with the identity for a link; LinUCB is Li, Chu, Langford & Schapire (2010).
    """

    id: ClassVar[str] = "pareto-linucb"
    summary: ClassVar[str] = "contextual: a uniform pick from the front of what linear models of the arms foretell"
    formula: ClassVar[str] = "uniform on the front of θᵢ(d)·x + α·‖x‖_Aᵢ⁻¹, x the user's known preference"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.TRUE)
    reference: ClassVar[str] = "Lu, Wang, Hu & Zhang (2019)"
    kernel: ClassVar[Any] = _score_pareto_linucb
    remember: ClassVar[Any] = _remember_pareto_linucb

    ridge: float = 1.0
    width: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.ridge > 0.0 and self.width >= 0.0, "ridge above 0 and width of at least 0")

    def estimate(self, objectives: int) -> Estimate:
        """The true preference: the context."""
        return Estimate(kind=Kind.KNOWN)

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """λ and α."""
        return (self.ridge, self.width)

    def keeps(self, shape: Shape) -> Keeps:
        """Of an arm: pulls, A⁻¹ and θ. Of a user: the context of the last choice."""
        own = _INVERSE + triangle(shape.objectives) + shape.objectives**2
        return Keeps(by_arm=own, by_user=shape.objectives)
