"""The generalised Gini index: a mix of arms whose worst objectives weigh most, found by online gradient steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from pamo.arrays import Floats
from pamo.compiling import count_of, inlined, kernel
from pamo.policies.base import Feedback, Keeping, Keeps, Policy, Shape, mark_unpulled
from pamo.reading import MEAN
from pamo.streams import uniform


@inlined
def project(shares: Floats, count: int, least: float) -> None:
    """Move the first `count` numbers to the nearest ones that are at least `least` and add up to 1."""
    free = count
    while free > 0:
        total = 0.0
        for j in range(count):
            total += shares[j] if shares[j] > least else least
        excess, fixed = (total - 1.0) / free, 0
        for j in range(count):
            if shares[j] > least:
                shares[j] -= excess
        for j in range(count):
            if shares[j] <= least:
                shares[j] = least
                fixed += 1
        if count - fixed == free:
            return
        free = count - fixed


@kernel
def _score_gini(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Keeping, dims: Any
) -> None:
    if mark_unpulled(scores, offered, arms):
        return
    objectives, row, shares, gradient = count_of(dims), run.kept.by_user[run.user], run.scratch[0], run.scratch[1]
    total = 0.0
    for j in range(offered):
        total += row[run.offer[j]]
        gradient[j] = 0.0
    for j in range(offered):
        shares[j] = row[run.offer[j]] / total if total > 0.0 else 1.0 / offered
    for d in range(objectives):
        mixed, worse = 0.0, 0
        for j in range(offered):
            mixed += shares[j] * arms[MEAN + d, j]
        for e in range(objectives):  # how many objectives are worse off: the worst weighs most
            other = 0.0
            for j in range(offered):
                other += shares[j] * arms[MEAN + e, j]
            worse += 1 if other < mixed or (other == mixed and e < d) else 0
        for j in range(offered):
            gradient[j] += 0.5**worse * arms[MEAN + d, j]
    step = run.hyperparameters[0] / math.sqrt(t)
    for j in range(offered):
        shares[j] += step * gradient[j]
    project(shares, offered, min(step, 1.0) * 0.1 / offered)
    left, chosen = uniform(run.stream), offered - 1
    for j in range(offered):
        row[run.offer[j]] = shares[j]
        if left >= 0.0:
            left -= shares[j]
            chosen = j
    for j in range(offered):
        scores[j] = 1.0 if j == chosen else 0.0


@kernel
def _remember_nothing(arm: int, values: Floats, run: Keeping, dims: Any) -> None:
    """All that the steps need of a pull is in the arms' means."""


@dataclass(frozen=True, kw_only=True)
class MoOgde(Policy):
    """MO-OGDE: a draw from a mix of arms that goes up the gradient of the generalised Gini index of its mean reward.

    G(x) = Σ_k w_k·x_(k) with x_(1) ≤ x_(2) ≤ …, w_k = 2^(1−k): the worst objective weighs most. Each round the user's
    mix α over the offer goes a step η/√t up the gradient of G(Σ_i α_i·r̂_i), back to the mixes with at least a tenth
    of that for each arm, and an arm is drawn from it; one never pulled comes first. A mix may be better than any arm.

    >>> MoOgde(step=2.0).label
    'mo-ogde:step=2.0'

    Reference: Busa-Fekete, Szörényi, Weng & Mannor (2017); their step needs the horizon, this one falls with t.
    """

    id: ClassVar[str] = "mo-ogde"
    summary: ClassVar[str] = "a draw from the mix of arms that is fairest to all objectives: generalised Gini index"
    formula: ClassVar[str] = "a draw from α ← Proj(α + η/√t·∇G(Σᵢ αᵢ·r̂ᵢ)), G(x) = Σ_k 2^(1−k)·x_(k)"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD,)
    reference: ClassVar[str] = "Busa-Fekete, Szörényi, Weng & Mannor (2017)"
    kernel: ClassVar[Any] = _score_gini
    remember: ClassVar[Any] = _remember_nothing

    step: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.step > 0.0, "step above 0")

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """η."""
        return (self.step,)

    def keeps(self, shape: Shape) -> Keeps:
        """Of a user: the share of each arm in the mix."""
        return Keeps(by_user=shape.arms)
