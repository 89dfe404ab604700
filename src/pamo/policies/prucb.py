"""The paper's own policies: PRUCB with hidden, stated and known preference (Algorithms 1 to 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from pamo.arrays import Floats
from pamo.compiling import count_of, kernel
from pamo.estimators import Estimate, Kind, radius_in_experiments, radius_in_theory, root_log
from pamo.policies.base import Feedback, Policy, Run, Shape
from pamo.reading import MEAN, PREFERENCE, PULLS, WIDTH, inverse_at
from pamo.rows import pair
from pamo.words import counted

_PAPER = "Provably Efficient Multi-Objective Bandit Algorithms under Preference-Centric Customization (AAAI 2026)"


@kernel
def _score_hidden(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    objectives, inverse = count_of(dims), inverse_at(count_of(dims))
    log_alpha, beta, reward_bonus, theory = (
        run.hyperparameters[0],
        run.hyperparameters[1],
        run.hyperparameters[2],
        run.hyperparameters[3],
    )
    first_pulls = run.hyperparameters[4] > 0.0
    log_t = math.log(t)
    root = root_log(log_t, log_alpha)
    if theory > 0.0:
        omega, ridge, failure, sub_gaussian = (
            run.hyperparameters[5],
            run.hyperparameters[6],
            run.hyperparameters[7],
            run.hyperparameters[8],
        )
        radius = beta * radius_in_theory(t, objectives, omega, ridge, failure, sub_gaussian)
    else:
        radius = radius_in_experiments(log_t, counted(objectives, arms), beta)
    length = 0.0  # ‖ĉ‖₁
    for d in range(objectives):
        length += abs(user[PREFERENCE + d])
    for j in range(len(scores)):
        rho = root * arms[WIDTH, j]
        value = 0.0
        half = 0.0  # of ‖r̂ + ρ·1‖² in V⁻¹, from the triangle that is kept of it
        for d in range(objectives):
            value += user[PREFERENCE + d] * arms[MEAN + d, j]
            x = arms[MEAN + d, j] + rho
            row = 0.5 * user[inverse + pair(d, d)] * x
            for e in range(d):
                row += user[inverse + pair(d, e)] * (arms[MEAN + e, j] + rho)
            half += x * row
        # Alg. 1, l. 5 to 7: the reward bonus Bʳ, the pseudo information gain Bᶜ, and their sum with the value.
        scores[j] = value + reward_bonus * length * rho + radius * math.sqrt(max(2.0 * half, 0.0))
    if first_pulls:
        for j in range(offered):
            if arms[PULLS, j] == 0.0:
                scores[j] = np.inf


@kernel
def _score_estimated(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    root = root_log(math.log(t), run.hyperparameters[0])
    for j in range(len(scores)):
        rho = root * arms[WIDTH, j]
        score = 0.0
        for d in range(count_of(dims)):
            score += user[PREFERENCE + d] * (arms[MEAN + d, j] + rho)  # Alg. 2, its arm selection
        scores[j] = score


@dataclass(frozen=True, kw_only=True)
class PrucbHp(Policy):
    """PRUCB-HP: learn a hidden preference from overall scores, and explore both it and the arms.

    Score: ĉ·r̂_i + ‖ĉ‖₁·ρ_i + β_t·‖r̂_i + ρ_i·1‖ in V⁻¹, with ρ_i = √(log(t/α)/max(N_i, 1)).

    alpha: α. beta: the factor of the preference bonus: β_t = beta·√(D·log t) with radius="experiments" (the paper's
    experiments, beta = 0.1), beta times Lemma 2's β_t with radius="theory" (beta = 1 is then the lemma's).
    ridge: λ. omega: ω of the weight ω/‖r‖², by default D. failure, sub_gaussian: ϑ and R of Lemma 2.
    reward_bonus: a factor on the reward bonus. weighted: False makes the ridge a plain one. first_pulls: whether an arm
    that nobody has pulled comes first. The last three are the paper's at their defaults, and are there to see what each
    part is worth.

    >>> PrucbHp(alpha=0.5).changed
    {'alpha': 0.5}

    Reference: Algorithm 1.
    """

    id: ClassVar[str] = "prucb-hp"
    summary: ClassVar[str] = "learns a hidden preference from overall scores; explores both it and the arms"
    formula: ClassVar[str] = "ĉ·r̂ᵢ + ‖ĉ‖₁ρᵢ + βₜ‖r̂ᵢ+ρᵢ1‖_V⁻¹,  ρᵢ = √(log(t/α)/max(Nᵢ,1)),  ĉ by weighted ridge"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.OVERALL)
    reference: ClassVar[str] = f"{_PAPER}, Algorithm 1"
    kernel: ClassVar[Any] = _score_hidden

    alpha: float = 1.0
    beta: float = 0.1
    ridge: float = 1.0
    omega: float | None = None
    radius: Literal["experiments", "theory"] = "experiments"
    failure: float = 0.05
    sub_gaussian: float = 1.0
    reward_bonus: float = 1.0
    weighted: bool = True
    first_pulls: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.alpha > 0, "alpha > 0")
        self.require(self.beta >= 0 and self.reward_bonus >= 0, "beta ≥ 0 and reward_bonus ≥ 0")
        self.require(self.ridge > 0, "ridge > 0")
        self.require(self.omega is None or self.omega > 0, "omega > 0, or none for D")
        self.require(self.radius in ("experiments", "theory"), "radius to be experiments or theory")
        self.require(0 < self.failure < 1 and self.sub_gaussian > 0, "0 < failure < 1 and sub_gaussian > 0")

    def estimate(self, objectives: int) -> Estimate:
        """ĉ by ridge regression of overall on reward, 1/D before the first round (Alg. 1, initialization)."""
        return Estimate(
            kind=Kind.RIDGE,
            weighted=self.weighted,
            ridge=self.ridge,
            omega=self._omega(objectives),
            first=1.0 / objectives,
        )

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """In the order in which the kernel unpacks them."""
        theory = float(self.radius == "theory")
        omega = self._omega(shape.objectives)
        return (
            math.log(self.alpha),
            self.beta,
            self.reward_bonus,
            theory,
            float(self.first_pulls),
            omega,
            self.ridge,
            self.failure,
            self.sub_gaussian,
        )

    def _omega(self, objectives: int) -> float:
        return float(objectives) if self.omega is None else self.omega


@dataclass(frozen=True, kw_only=True)
class PrucbUp(Policy):
    """PRUCB-UP: learn the preference from what users state after each round.

    Score: ĉ·(r̂_i + ρ_i·1), ĉ the mean of the preferences stated so far, 0 before the first.

    >>> PrucbUp().estimate(objectives=3).kind.name
    'STATED'

    Reference: Algorithm 2.
    """

    id: ClassVar[str] = "prucb-up"
    summary: ClassVar[str] = "learns the preference from what the user states after each round"
    formula: ClassVar[str] = "ĉ·(r̂ᵢ + ρᵢ1),  ρᵢ = √(log(t/α)/max(Nᵢ,1)),  ĉ the mean of the stated preferences"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.STATED)
    reference: ClassVar[str] = f"{_PAPER}, Algorithm 2"
    kernel: ClassVar[Any] = _score_estimated

    alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.alpha > 0, "alpha > 0")

    def estimate(self, objectives: int) -> Estimate:
        """ĉ as the mean of the stated preferences (Eq. PRUCB_SPM_c_t)."""
        return Estimate(kind=Kind.STATED)

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """log α alone."""
        return (math.log(self.alpha),)


@dataclass(frozen=True, kw_only=True)
class PrucbKp(PrucbUp):
    """PRUCB-KP: PRUCB-UP for users whose mean preference is known; the paper's reference line GT.

    Score: c̄·(r̂_i + ρ_i·1).

    >>> PrucbKp().estimate(objectives=3).kind.name
    'KNOWN'

    Reference: Algorithm 3.
    """

    id: ClassVar[str] = "prucb-kp"
    summary: ClassVar[str] = "knows each user's mean preference and explores the arms alone (the paper's GT)"
    formula: ClassVar[str] = "c̄·(r̂ᵢ + ρᵢ1),  ρᵢ = √(log(t/α)/max(Nᵢ,1))"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.TRUE)
    reference: ClassVar[str] = f"{_PAPER}, Algorithm 3"

    def estimate(self, objectives: int) -> Estimate:
        """The true mean preference."""
        return Estimate(kind=Kind.KNOWN)
