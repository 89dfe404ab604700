"""Objectives in an order of importance: the next one decides only between arms that the former cannot tell apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pamo.arrays import Floats
from pamo.compiling import count_of, kernel
from pamo.policies.base import UNSCORED, Feedback, Policy, Run, Shape, mark_unpulled
from pamo.reading import MEAN, PULLS


@kernel
def _score_lex(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    if mark_unpulled(scores, offered, arms):
        return
    log_term, near = math.log(t) + 0.25 * math.log(count_of(dims) * offered), run.hyperparameters[0]
    for j in range(offered):
        run.scratch[0, j] = math.sqrt(run.hyperparameters[1] * log_term / arms[PULLS, j])
        scores[j] = 0.0  # may be the best in all objectives so far
    left, widest = offered, 0.0
    for d in range(count_of(dims)):
        best = -np.inf
        for j in range(offered):
            if scores[j] == 0.0:
                best = max(best, arms[MEAN + d, j] - run.scratch[0, j])
        left, widest = 0, 0.0
        for j in range(offered):
            if scores[j] == 0.0 and arms[MEAN + d, j] + run.scratch[0, j] < best - near:
                scores[j] = UNSCORED
            if scores[j] == 0.0:
                left += 1
                widest = max(widest, run.scratch[0, j])
        if left == 1 or widest > near:  # one is best, or too little is known to call them equal
            break
    for j in range(offered):
        if scores[j] == 0.0 and run.scratch[0, j] == widest:
            scores[j] = 1.0


@dataclass(frozen=True, kw_only=True)
class LexUcb(Policy):
    """Lexicographic: arms that may be the best in the first objective, of these those that may be in the second, …

    An arm goes in objective d if r̂_i(d) + w_i < max_j (r̂_j(d) − w_j) − ε over those left, with w_i =
    √(scale·ln(t·(D·|offer|)^¼)/N_i). Those left count as equal, and the next objective decides, once w_i ≤ ε for all of
    them. Of those left in the end the one pulled least is pulled; one never pulled comes first.

    >>> LexUcb(near=0.1).label
    'lex:near=0.1'

    Reference: Hüyük & Tekin (2021), its confidence sets; theirs tells near-equal arms by chains of them.
    """

    id: ClassVar[str] = "lex"
    summary: ClassVar[str] = "objectives by importance: the next decides between arms that the former cannot tell apart"
    formula: ClassVar[str] = "−Nᵢ among those with r̂ᵢ(d) + wᵢ ≥ max_j (r̂ⱼ(d) − wⱼ) − ε for d = 1 … D in turn"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD,)
    reference: ClassVar[str] = "Hüyük & Tekin (2021)"
    kernel: ClassVar[Any] = _score_lex

    near: float = 0.05
    scale: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.near >= 0.0 and self.scale > 0.0, "near of at least 0 and scale above 0")

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """ε and the scale of w²."""
        return (self.near, self.scale)
