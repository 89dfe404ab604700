"""Pareto-TS that knows which objectives go together: vectors drawn with the covariance that rewards have."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from pamo.arrays import Floats
from pamo.compiling import count_of, kernel
from pamo.pareto import mark_front
from pamo.policies.base import Feedback, Keeping, Keeps, Policy, Shape, mark_unpulled
from pamo.reading import MEAN, WIDTH, freedom_at
from pamo.rows import pair, triangle
from pamo.streams import normal


@kernel
def _score_pareto_ts_cov(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Keeping, dims: Any
) -> None:
    if mark_unpulled(scores, offered, arms):
        return
    objectives, factor = count_of(dims), run.kept.shared  # L, with Σ̂ = LLᵀ: the scratch is full of vectors
    prior, together = run.hyperparameters[0], run.hyperparameters[1]
    freedom = common[freedom_at(objectives)] + prior
    for e in range(objectives):
        for d in range(e, objectives):
            entry = (common[pair(d, d)] + 0.25 * prior if d == e else together * common[pair(d, e)]) / freedom
            for k in range(e):
                entry -= factor[pair(d, k)] * factor[pair(e, k)]
            if d == e:
                factor[pair(d, e)] = math.sqrt(max(entry, 0.0))
            else:
                factor[pair(d, e)] = entry / factor[pair(e, e)] if factor[pair(e, e)] > 0.0 else 0.0
    for j in range(offered):
        for d in range(objectives):
            run.scratch[d, j] = arms[MEAN + d, j]
        for e in range(objectives):
            z = arms[WIDTH, j] * normal(run.stream)
            for d in range(e, objectives):
                run.scratch[d, j] += factor[pair(d, e)] * z
    mark_front(run.scratch.T, scores[:offered], dims)


@kernel
def _remember_nothing(arm: int, values: Floats, run: Keeping, dims: Any) -> None:
    """The arms' scatter holds all that is needed of a pull."""


@dataclass(frozen=True, kw_only=True)
class ParetoTsCov(Policy):
    """Pareto-TS with covariance: a uniform pick from the front of vectors drawn as correlated as rewards are.

    Vectors: drawn from Normal(r̂_i, Σ̂/N_i), Σ̂ = (S + κ·I/4)/(Σ(N_i − 1) + κ), S the scatter of rewards around their
    arms' means, of all arms; an arm never pulled comes first. Objectives that go up and down together make it less
    likely that a dominated arm is off the others' reach in any of them. together: off, Σ̂ is diagonal.

    >>> ParetoTsCov(together=False).label
    'pareto-ts-cov:together=False'

    Reference: Kone, Jourdan & Kaufmann (2024), who draw to identify the front, with a covariance that is known.
    """

    id: ClassVar[str] = "pareto-ts-cov"
    summary: ClassVar[str] = "a uniform pick from the front of vectors drawn with the estimated covariance of rewards"
    formula: ClassVar[str] = "uniform on the front of draws from Normal(r̂ᵢ, Σ̂/Nᵢ)"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD,)
    reference: ClassVar[str] = "Kone, Jourdan & Kaufmann (2024)"
    kernel: ClassVar[Any] = _score_pareto_ts_cov
    remember: ClassVar[Any] = _remember_nothing
    reads_spread: ClassVar[bool] = True

    prior_pulls: float = 1.0
    together: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.prior_pulls > 0.0, "prior_pulls above 0")

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """κ, and whether objectives may go together."""
        return (self.prior_pulls, float(self.together))

    def keeps(self, shape: Shape) -> Keeps:
        """Of all: room for the factor of Σ̂."""
        return Keeps(shared=triangle(shape.objectives))
