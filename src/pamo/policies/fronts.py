"""The Pareto policies that the paper compares with: a uniform pick from an estimated front, whoever the user is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from pamo.arrays import Floats
from pamo.compiling import count_of, kernel
from pamo.pareto import mark_front
from pamo.policies.base import Feedback, Policy, Run, mark_unpulled
from pamo.reading import MEAN, PULLS
from pamo.streams import normal


@kernel
def _score_pareto_ucb(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    if mark_unpulled(scores, offered, arms):
        return
    log_term = math.log(t) + 0.25 * math.log(count_of(dims) * offered)  # ln(t·(D·|offer|)^¼)
    for j in range(offered):
        width = math.sqrt(2.0 * log_term / arms[PULLS, j])
        for d in range(count_of(dims)):
            run.scratch[d, j] = arms[MEAN + d, j] + width
    mark_front(run.scratch.T, scores[:offered], dims)


@kernel
def _score_pareto_ts(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    if mark_unpulled(scores, offered, arms):
        return
    for j in range(offered):
        spread = 0.5 / math.sqrt(arms[PULLS, j])  # variance 1/(4·N_i)
        for d in range(count_of(dims)):
            run.scratch[d, j] = arms[MEAN + d, j] + spread * normal(run.stream)
    mark_front(run.scratch.T, scores[:offered], dims)


@dataclass(frozen=True, kw_only=True)
class ParetoUcb(Policy):
    """Pareto-UCB: a uniform pick from the front of the arms' upper confidence vectors.

    Vectors: r̂_i + √(2·ln(t·(D·|offer|)^¼)/N_i); an arm never pulled comes first.

    >>> ParetoUcb().label
    'pareto-ucb'

    Reference: Drugan & Nowé (2013).
    """

    id: ClassVar[str] = "pareto-ucb"
    summary: ClassVar[str] = "a uniform pick from the front of the arms' upper confidence vectors"
    formula: ClassVar[str] = "uniform on the front of r̂ᵢ + √(2 ln(t·(D·|offer|)^¼)/Nᵢ)"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD,)
    reference: ClassVar[str] = "Drugan & Nowé (2013)"
    kernel: ClassVar[Any] = _score_pareto_ucb


@dataclass(frozen=True, kw_only=True)
class ParetoTs(Policy):
    """Pareto-TS: a uniform pick from the front of vectors drawn from the arms' posteriors.

    Vectors: drawn from Normal(r̂_i, 1/(4·N_i)); an arm never pulled comes first.

    >>> ParetoTs().label
    'pareto-ts'

    Reference: Yahyaa & Manderick (2015).
    """

    id: ClassVar[str] = "pareto-ts"
    summary: ClassVar[str] = "a uniform pick from the front of vectors drawn from the arms' posteriors"
    formula: ClassVar[str] = "uniform on the front of draws from Normal(r̂ᵢ, 1/(4Nᵢ))"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD,)
    reference: ClassVar[str] = "Yahyaa & Manderick (2015)"
    kernel: ClassVar[Any] = _score_pareto_ts
