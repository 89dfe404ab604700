"""Policies that trust their preference estimate: the paper's variant of OFUL, and plain greed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pamo.arrays import Floats
from pamo.compiling import kernel
from pamo.estimators import Estimate, Kind
from pamo.policies.base import Feedback, Policy, Run, Shape, value_of
from pamo.reading import PULLS
from pamo.streams import uniform


@kernel
def _score_greedy(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    for j in range(len(scores)):
        scores[j] = value_of(arms, j, user, dims) if arms[PULLS, j] > 0.0 else np.inf


@kernel
def _score_oful(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    # Unlike the other baselines it does not pull every arm first: ε is all the exploration that the paper gives it.
    by_chance = uniform(run.stream) < run.hyperparameters[0]
    for j in range(len(scores)):
        scores[j] = 0.0 if by_chance else value_of(arms, j, user, dims)  # all alike: a uniform pick


@dataclass(frozen=True, kw_only=True)
class Oful(Policy):
    """OFUL as the paper adapts it: greedy on a plain ridge estimate, with a uniform pick at rate ε.

    Score: ĉ·r̂_i, ĉ by ridge regression of overall on reward; with probability ε a uniform pick, which is its only
    exploration: an arm never pulled scores 0.

    epsilon: ε. ridge: λ.

    >>> Oful(epsilon=0.1).label
    'oful:epsilon=0.1'

    Reference: Abbasi-Yadkori, Pál & Szepesvári (2011), in the paper's variant.
    """

    id: ClassVar[str] = "oful"
    summary: ClassVar[str] = "greedy on a plain ridge estimate of the preference, with a uniform pick at rate ε"
    formula: ClassVar[str] = "ĉ·r̂ᵢ with ĉ by plain ridge; with probability ε a uniform pick"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.OVERALL)
    reference: ClassVar[str] = "Abbasi-Yadkori, Pál & Szepesvári (2011), the paper's variant"
    kernel: ClassVar[Any] = _score_oful

    epsilon: float = 0.05
    ridge: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(0 <= self.epsilon <= 1, "epsilon between 0 and 1")
        self.require(self.ridge > 0, "ridge > 0")

    def estimate(self, objectives: int) -> Estimate:
        """ĉ by plain ridge."""
        return Estimate(kind=Kind.RIDGE, weighted=False, ridge=self.ridge)

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """ε alone."""
        return (self.epsilon,)


@dataclass(frozen=True, kw_only=True)
class Greedy(Policy):
    """Greed: the arm that looks best by the paper's own estimates, with no exploration beyond the first pulls.

    Score: ĉ·r̂_i, ĉ by weighted ridge; unpulled arms first.

    ridge: λ. omega: ω of the weight ω/‖r‖², by default D.

    >>> Greedy().estimate(objectives=3).weighted
    True

    Reference: Algorithm 1 with both bonuses left out.
    """

    id: ClassVar[str] = "greedy"
    summary: ClassVar[str] = "trusts its estimates: PRUCB-HP's, without exploring beyond each arm's first pull"
    formula: ClassVar[str] = "ĉ·r̂ᵢ,  ĉ by weighted ridge"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.OVERALL)
    reference: ClassVar[str] = "Algorithm 1 of the paper with both bonuses left out"
    kernel: ClassVar[Any] = _score_greedy

    ridge: float = 1.0
    omega: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.ridge > 0, "ridge > 0")
        self.require(self.omega is None or self.omega > 0, "omega > 0, or none for D")

    def estimate(self, objectives: int) -> Estimate:
        """ĉ by weighted ridge, as PRUCB-HP forms it."""
        omega = float(objectives) if self.omega is None else self.omega
        return Estimate(kind=Kind.RIDGE, weighted=True, ridge=self.ridge, omega=omega, first=1.0 / objectives)
