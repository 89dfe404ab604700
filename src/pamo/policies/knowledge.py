"""Pareto knowledge gradient: what one more pull is expected to teach, objective by objective."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pamo.arrays import Floats
from pamo.compiling import count_of, inlined, kernel
from pamo.pareto import mark_front
from pamo.policies.base import Feedback, Policy, Run, Shape, mark_unpulled
from pamo.reading import MEAN, PULLS


@inlined
def _gain(sigma: float, gap: float) -> float:
    """σ̃·f(−gap/σ̃), f(z) = φ(z) + z·Φ(z): how much the best is expected to rise by one more pull."""
    z = -gap / sigma
    density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return sigma * (density + z * 0.5 * math.erfc(-z / math.sqrt(2.0)))


@kernel
def _score_pareto_kg(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    if mark_unpulled(scores, offered, arms):
        return
    left = max(run.hyperparameters[0] - t, 0.0) * count_of(dims) * offered
    for d in range(count_of(dims)):
        first, second, best = -np.inf, -np.inf, 0  # the two highest means: of the best arm, the other is the second
        for j in range(offered):
            mean = arms[MEAN + d, j]
            if mean > first:
                first, second, best = mean, first, j
            elif mean > second:
                second = mean
        for j in range(offered):
            mean, pulls = arms[MEAN + d, j], arms[PULLS, j]
            other = second if j == best else first
            # By one more pull the variance of the mean falls from σ²/N to σ²/(N + 1).
            sigma = run.hyperparameters[1] * math.sqrt(1.0 / pulls - 1.0 / (pulls + 1.0))
            gain = _gain(sigma, abs(mean - other)) if offered > 1 else 0.0
            run.scratch[d, j] = mean + left * gain
    mark_front(run.scratch.T, scores[:offered], dims)


@dataclass(frozen=True, kw_only=True)
class ParetoKg(Policy):
    """Pareto-KG: a uniform pick from the front of the means plus what one more pull is expected to teach.

    Vectors: r̂_i(d) + (T − t)·D·|offer|·σ̃_i·f(−|r̂_i(d) − max_{j≠i} r̂_j(d)|/σ̃_i), with f(z) = φ(z) + z·Φ(z) and
    σ̃_i² = σ²/N_i − σ²/(N_i + 1); an arm never pulled comes first. σ: the noise of a reward, which it has to know.

    >>> ParetoKg(noise=0.2).label
    'pareto-kg:noise=0.2'

    Reference: Yahyaa, Drugan & Manderick (2014).
    """

    id: ClassVar[str] = "pareto-kg"
    summary: ClassVar[str] = "a uniform pick from the front of means and what a pull would teach; needs the horizon"
    formula: ClassVar[str] = "uniform on the front of r̂ᵢ(d) + (T − t)·D·|offer|·σ̃ᵢ·f(−|r̂ᵢ(d) − max r̂ⱼ(d)|/σ̃ᵢ)"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD,)
    reference: ClassVar[str] = "Yahyaa, Drugan & Manderick (2014)"
    kernel: ClassVar[Any] = _score_pareto_kg

    noise: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.noise > 0.0, "noise above 0")

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """T and σ."""
        return (float(self.horizon(shape)), self.noise)
