"""Policies for worlds that change, and for those that play against one: each keeps rows of its own.

A window, a discount and a distribution over arms are no functions of the sums that everybody shares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pamo.arrays import Floats
from pamo.compiling import count_of, inlined, kernel
from pamo.pareto import mark_front
from pamo.policies.base import UNSCORED, Feedback, Keeping, Keeps, Policy, Shape
from pamo.streams import uniform

_GARIVIER = "Garivier & Moulines (2011)"
_LEAST = 1e-12
"""A discounted count that is as good as none."""


@inlined
def _upper(total: float, pulls: float, log_rounds: float) -> float:
    """The mean of what counts and √(2·log/N); infinite where nothing counts."""
    return total / pulls + math.sqrt(2.0 * log_rounds / pulls) if pulls > _LEAST else np.inf


# ---- of one user's overall scores: counts of the arms, then sums, then what the window holds


@kernel
def _score_sw_ucb(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Keeping, dims: Any
) -> None:
    row, count, log_rounds = run.kept.by_user[run.user], len(run.kept.by_arm), math.log(min(t, run.hyperparameters[0]))
    for j in range(offered):
        arm = run.offer[j]
        scores[j] = _upper(row[count + arm], row[arm], log_rounds)


@kernel
def _remember_window(arm: int, values: Floats, run: Keeping, dims: Any) -> None:
    row, count, window = run.kept.by_user[run.user], len(run.kept.by_arm), int(run.hyperparameters[0])
    seen, overall = row[2 * count], values[count_of(dims)]
    slot = 2 * count + 1 + 2 * (int(seen) % window)
    if seen >= window:  # the oldest goes
        oldest = int(row[slot])
        row[oldest] -= 1.0
        row[count + oldest] = row[count + oldest] - row[slot + 1] if row[oldest] > 0.0 else 0.0
    row[slot], row[slot + 1] = arm, overall
    row[arm] += 1.0
    row[count + arm] += overall
    row[2 * count] = seen + 1.0


@kernel
def _score_d_ucb(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Keeping, dims: Any
) -> None:
    row, count, effective = run.kept.by_user[run.user], len(run.kept.by_arm), 1.0
    for i in range(count):
        effective += row[i]
    for j in range(offered):
        arm = run.offer[j]
        scores[j] = _upper(row[count + arm], row[arm], math.log(effective))


@kernel
def _remember_discounted(arm: int, values: Floats, run: Keeping, dims: Any) -> None:
    row, count = run.kept.by_user[run.user], len(run.kept.by_arm)
    for i in range(2 * count):
        row[i] *= run.hyperparameters[0]
    row[arm] += 1.0
    row[count + arm] += values[count_of(dims)]


# ---- of everybody's rewards: an arm's count and sums


@inlined
def _front_of(scores: Floats, offered: int, log_rounds: float, run: Keeping, dims: Any) -> None:
    """Mark the front of the upper confidence vectors of what counts; arms of which nothing does come first."""
    fresh = False
    for j in range(offered):
        none = run.kept.by_arm[run.offer[j], 0] <= _LEAST
        scores[j] = np.inf if none else UNSCORED
        fresh = fresh or none
    if fresh:
        return
    log_term = log_rounds + 0.25 * math.log(count_of(dims) * offered)
    for j in range(offered):
        row = run.kept.by_arm[run.offer[j]]
        for d in range(count_of(dims)):
            run.scratch[d, j] = _upper(row[1 + d], row[0], log_term)
    mark_front(run.scratch.T, scores[:offered], dims)


@kernel
def _score_sw_pareto_ucb(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Keeping, dims: Any
) -> None:
    _front_of(scores, offered, math.log(min(t, run.hyperparameters[0])), run, dims)


@kernel
def _remember_pareto_window(arm: int, values: Floats, run: Keeping, dims: Any) -> None:
    objectives, rows, ring = count_of(dims), run.kept.by_arm, run.kept.shared
    window, seen = int(run.hyperparameters[0]) * len(run.kept.by_user), ring[0]
    slot = 1 + (objectives + 1) * (int(seen) % window)
    if seen >= window:
        oldest = int(ring[slot])
        rows[oldest, 0] -= 1.0
        for d in range(objectives):
            rows[oldest, 1 + d] = rows[oldest, 1 + d] - ring[slot + 1 + d] if rows[oldest, 0] > 0.0 else 0.0
    ring[0], ring[slot] = seen + 1.0, arm
    rows[arm, 0] += 1.0
    for d in range(objectives):
        ring[slot + 1 + d] = values[d]
        rows[arm, 1 + d] += values[d]


@kernel
def _score_d_pareto_ucb(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Keeping, dims: Any
) -> None:
    effective = 0.0
    for i in range(len(run.kept.by_arm)):
        effective += run.kept.by_arm[i, 0]
    _front_of(scores, offered, math.log(1.0 + effective / len(run.kept.by_user)), run, dims)


@kernel
def _remember_pareto_discounted(arm: int, values: Floats, run: Keeping, dims: Any) -> None:
    rows, last = run.kept.by_arm, run.kept.shared
    if last[0] < run.round:  # a round's pulls all weigh the same
        factor = run.hyperparameters[0] ** (run.round - last[0])
        for i in range(len(rows)):
            for d in range(count_of(dims) + 1):
                rows[i, d] *= factor
        last[0] = run.round
    rows[arm, 0] += 1.0
    for d in range(count_of(dims)):
        rows[arm, 1 + d] += values[d]


# ---- a distribution over arms: the arms' log-weights, the last chance and its share, the scores' range


@kernel
def _score_exp3(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Keeping, dims: Any
) -> None:
    row, count, mix = run.kept.by_user[run.user], len(run.kept.by_arm), run.hyperparameters[0]
    highest, total = row[run.offer[0]], 0.0
    for j in range(1, offered):
        highest = max(highest, row[run.offer[j]])
    for j in range(offered):
        total += math.exp(row[run.offer[j]] - highest)
    left, chosen = uniform(run.stream), offered - 1
    for j in range(offered):
        scores[j] = (1.0 - mix) * math.exp(row[run.offer[j]] - highest) / total + mix / offered
        if left >= 0.0:
            left -= scores[j]
            chosen = j
    row[count], row[count + 1] = scores[chosen], mix / offered
    for j in range(offered):
        scores[j] = 1.0 if j == chosen else 0.0


@kernel
def _remember_exp3(arm: int, values: Floats, run: Keeping, dims: Any) -> None:
    row, count, overall = run.kept.by_user[run.user], len(run.kept.by_arm), values[count_of(dims)]
    seen = row[count + 4] > 0.0
    low = min(row[count + 2], overall) if seen else overall
    high = max(row[count + 3], overall) if seen else overall
    row[count + 2], row[count + 3], row[count + 4] = low, high, 1.0
    if high > low:  # the estimate of a chance's worth is unbiased: what was not drawn counts as 0
        row[arm] += row[count + 1] * (overall - low) / (high - low) / row[count]


@dataclass(frozen=True, kw_only=True)
class SwUcb(Policy):
    """SW-UCB: UCB of each user's overall scores, of which only the user's last τ rounds count.

    Score: ḡ_i + √(2·ln min(t, τ) / N_i), both of the last τ rounds; an arm not pulled in them comes first. With τ ≥ T
    it is `ucb-per-user`.

    >>> SwUcb(window=200).label
    'sw-ucb:window=200'

    Reference: Garivier & Moulines (2011), with UCB's ξ = 2.
    """

    id: ClassVar[str] = "sw-ucb"
    summary: ClassVar[str] = "each user's own UCB over the last τ rounds: for preferences or arms that change at once"
    formula: ClassVar[str] = "ḡᵢ + √(2 ln min(t, τ) / Nᵢ), of the user's last τ rounds"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.OVERALL,)
    reference: ClassVar[str] = f"{_GARIVIER}, with UCB's ξ"
    kernel: ClassVar[Any] = _score_sw_ucb
    remember: ClassVar[Any] = _remember_window

    window: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.window >= 1 and self.window == int(self.window), "window as a whole number of at least 1")

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """τ."""
        return (float(self.window),)

    def keeps(self, shape: Shape) -> Keeps:
        """Of a user: counts and sums of the arms, the rounds so far, and (arm, overall score) of the last τ."""
        return Keeps(by_user=2 * shape.arms + 1 + 2 * int(self.window))


@dataclass(frozen=True, kw_only=True)
class DUcb(Policy):
    """D-UCB: UCB of each user's overall scores, a round counting γ times as much a round later.

    Score: ḡ_i + √(2·ln(1 + Σ_j N_j) / N_i), with discounted means and counts. With γ = 1 it is `ucb-per-user`.

    >>> DUcb(discount=0.9).label
    'd-ucb:discount=0.9'

    Reference: Garivier & Moulines (2011), with UCB's ξ = 2.
    """

    id: ClassVar[str] = "d-ucb"
    summary: ClassVar[str] = "each user's own UCB with older rounds discounted: for what drifts"
    formula: ClassVar[str] = "ḡᵢ + √(2 ln(1 + Σⱼ Nⱼ) / Nᵢ), discounted by γ a round"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.OVERALL,)
    reference: ClassVar[str] = f"{_GARIVIER}, with UCB's ξ"
    kernel: ClassVar[Any] = _score_d_ucb
    remember: ClassVar[Any] = _remember_discounted

    discount: float = 0.998

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(0.0 < self.discount <= 1.0, "discount above 0 and at most 1")

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """γ."""
        return (self.discount,)

    def keeps(self, shape: Shape) -> Keeps:
        """Of a user: discounted counts and sums of the arms."""
        return Keeps(by_user=2 * shape.arms)


@dataclass(frozen=True, kw_only=True)
class SwParetoUcb(SwUcb):
    """SW-Pareto-UCB: Pareto-UCB on the last τ·N pulls, N the users: τ rounds.

    Vectors: r̂_i + √(2·ln(min(t, τ)·(D·|offer|)^¼)/N_i), both of the window; an arm not in it comes first. With τ ≥ T it
    is `pareto-ucb`.

    >>> SwParetoUcb().label
    'sw-pareto-ucb'

    Reference: Garivier & Moulines (2011) on the vectors of Drugan & Nowé (2013).
    """

    id: ClassVar[str] = "sw-pareto-ucb"
    summary: ClassVar[str] = "Pareto-UCB over the last τ rounds: for arms that change at once"
    formula: ClassVar[str] = "uniform on the front of r̂ᵢ + √(2 ln(min(t, τ)·(D·|offer|)^¼)/Nᵢ), of the last τ rounds"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD,)
    reference: ClassVar[str] = f"{_GARIVIER} on Drugan & Nowé (2013)"
    kernel: ClassVar[Any] = _score_sw_pareto_ucb
    remember: ClassVar[Any] = _remember_pareto_window

    def keeps(self, shape: Shape) -> Keeps:
        """Of an arm: count and sums in the window. Of all: the pulls so far, and (arm, reward) of the window."""
        slots = int(self.window) * shape.users
        return Keeps(by_arm=shape.objectives + 1, shared=1 + slots * (shape.objectives + 1))


@dataclass(frozen=True, kw_only=True)
class DParetoUcb(DUcb):
    """D-Pareto-UCB: Pareto-UCB with older rounds discounted.

    Vectors: r̂_i + √(2·ln((1 + Σ_j N_j/N)·(D·|offer|)^¼)/N_i), with discounted means and counts, N the users. With γ = 1
    it is `pareto-ucb`.

    >>> DParetoUcb().label
    'd-pareto-ucb'

    Reference: Garivier & Moulines (2011) on the vectors of Drugan & Nowé (2013).
    """

    id: ClassVar[str] = "d-pareto-ucb"
    summary: ClassVar[str] = "Pareto-UCB with older rounds discounted: for arms that drift"
    formula: ClassVar[str] = "uniform on the front of r̂ᵢ + √(2 ln((1 + Σⱼ Nⱼ/N)·(D·|offer|)^¼)/Nᵢ), discounted by γ"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD,)
    reference: ClassVar[str] = f"{_GARIVIER} on Drugan & Nowé (2013)"
    kernel: ClassVar[Any] = _score_d_pareto_ucb
    remember: ClassVar[Any] = _remember_pareto_discounted

    def keeps(self, shape: Shape) -> Keeps:
        """Of an arm: discounted count and sums. Of all: the last round that was taken in."""
        return Keeps(by_arm=shape.objectives + 1, shared=1)


@dataclass(frozen=True, kw_only=True)
class Exp3(Policy):
    """EXP3: arms drawn by weights that rise with what they gave, a share γ of the rounds evenly; for each user alone.

    Chance of arm i: p_i = (1 − γ)·w_i/Σw + γ/|offer|, over the offer. After a pull w_i ← w_i·exp(γ·x/(p_i·|offer|)), x
    being the overall score scaled to the range of those that the user has given so far.

    >>> Exp3(mix=0.1).label
    'exp3:mix=0.1'

    Reference: Auer, Cesa-Bianchi, Freund & Schapire (2002); theirs knows the range, and every arm is on offer.
    """

    id: ClassVar[str] = "exp3"
    summary: ClassVar[str] = "each user's own EXP3: drawn by weights, for scores that nobody promises to be of one law"
    formula: ClassVar[str] = "a draw with pᵢ = (1 − γ)·wᵢ/Σw + γ/|offer|"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.OVERALL,)
    reference: ClassVar[str] = "Auer, Cesa-Bianchi, Freund & Schapire (2002)"
    kernel: ClassVar[Any] = _score_exp3
    remember: ClassVar[Any] = _remember_exp3

    mix: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(0.0 < self.mix <= 1.0, "mix above 0 and at most 1")

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """γ."""
        return (self.mix,)

    def keeps(self, shape: Shape) -> Keeps:
        """Of a user: log-weights of the arms, the last chance and γ/|offer|, lowest and highest score, whether any."""
        return Keeps(by_user=shape.arms + 5)
