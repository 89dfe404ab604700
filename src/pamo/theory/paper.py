"""The paper's regret bounds and confidence statements, with every constant written out.

The paper states its bounds up to O(·); the constants here are the ones that its proofs carry. Where a proof
and its statement disagree, or a step does not hold as printed, "Reading" says which way it was taken, and
docs/theory/bounds.md why. Labels after "App." are those of the paper's LaTeX.

All of it is for the bounded environment: rewards in [0,1], preferences non-negative with ‖c‖₁ ≤ δ (1 for
PRUCB-HP). Gaussian rewards and preferences satisfy neither.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats
from pamo.errors import InputError
from pamo.estimators import lemma2_radius
from pamo.theory.inputs import Offers, checked_offers, checked_rounds, checked_tables

Value: TypeAlias = float | Floats  # a number for one T, an array for an array of T

ZETA_2 = math.pi**2 / 6  # Σ 1/t² over t ≥ 1, App. eq: riemann_zeta
# Scores nearer than this are tied: a tie costs nothing, but rounding would put almost 0 under a fraction.
TIE = 1e-12
CONFLICT = ((1.0, 0.0), (0.0, 1.0))  # Proposition 1's two arms, and its two users


@dataclass(frozen=True, kw_only=True, eq=False)
class Bound:
    """A bound and the named terms that it is the sum of, each a number or an array over T.

    >>> Bound(terms={"reward": 2.0, "preference": 0.5}).total
    2.5
    """

    terms: Mapping[str, Value]

    @property
    def total(self) -> Value:
        """Return the sum of the terms."""
        return _plain(sum(self.terms.values()))


@dataclass(frozen=True, kw_only=True)
class HiddenSettings:
    """The α, ω and β that Theorem 1 asks PRUCB-HP to run with.

    α = √(12ϑ'/(KD(D+3)π²));  ω ≥ D, D unless given;  ϑ' = ϑ/N
    β_t = R·√(ωD·log((1 + ωt/λ)/min(α, ϑ'))) + √λ
    with K arms, D objectives, N users, failure = ϑ, ridge = λ and sub_gaussian = R (the paper's β leaves R
    out, as if it were 1; that is safe, since preferences in [0,1] have R ≤ ½).

    Reading: ϑ/N, since the theorem sums N users and asks its events of one (N=1: the printed α); min(α, ϑ'),
    since the theorem has α in β and Lemma 2 has ϑ; D ≥ 2, since Lemma 2 takes 2·log(1/ϑ) ≤ D·log(1/ϑ).
    Reference: Theorem 1; Lemma 2; App. proposition: uniform_confidence_bound.

    >>> settings = HiddenSettings(arms=10, objectives=3, failure=0.05)
    >>> round(settings.alpha, 5), settings.omega, round(settings.beta(5000), 3)
    (0.01838, 3.0, 12.069)
    """

    arms: int
    objectives: int
    failure: float
    users: int = 1
    omega: float = math.nan  # not given
    ridge: float = 1.0
    sub_gaussian: float = 1.0

    def __post_init__(self) -> None:
        if math.isnan(self.omega):
            object.__setattr__(self, "omega", float(self.objectives))
        counts = self.arms >= 1 and self.objectives >= 2 and self.users >= 1
        scales = 0 < self.failure < 1 and 0 < self.ridge < math.inf and 0 < self.sub_gaussian < math.inf
        # ω ≥ D makes every weight ω/‖r‖² at least 1, as App. lemma: iter_E_upsilon needs.
        if not (counts and scales and self.objectives <= self.omega < math.inf):
            raise InputError(
                "expected arms ≥ 1, objectives ≥ 2, users ≥ 1, 0 < failure < 1, omega ≥ objectives, "
                f"ridge > 0 and sub_gaussian > 0, got {self}"
            )

    @property
    def alpha(self) -> float:
        """Return α."""
        pairs = self.arms * self.objectives * (self.objectives + 3)
        return math.sqrt(12 * self.failure / self.users / pairs) / math.pi

    @property
    def own_failure(self) -> float:
        """Return the ϑ that stands in the logarithm of β_t, min(α, ϑ'): that of one user's ellipsoid."""
        return min(self.alpha, self.failure / self.users)

    def beta(self, t: float) -> float:
        """Return β_t, the radius of a user's preference ellipsoid in round t."""
        return lemma2_radius(
            t,
            objectives=self.objectives,
            omega=self.omega,
            ridge=self.ridge,
            failure=self.own_failure,
            sub_gaussian=self.sub_gaussian,
        )


def warm_up_rounds(*, settings: HiddenSettings, reward_variance: float) -> int:
    """Return Theorem 1's M, after which a user's Gram matrix is at least half of its mean.

    M = min{t' ≥ 1 : tσ² + λ ≥ 2Dω·√(Kt·log(t/α)) for every whole t ≥ t'}, with reward_variance = σ², the
    least variance of any arm's any objective (no more than ¼, as rewards are in [0,1]).
    Reading: t' is whole; the paper rounds a real t' down, but its Lemma needs the inequality at M itself.
    Reference: Theorem 1; App. lemma: hidden_sum_reg_c_expectation_bd.

    >>> settings = HiddenSettings(arms=10, objectives=3, failure=0.05)
    >>> warm_up_rounds(settings=settings, reward_variance=0.01)
    793426980
    """
    if not 1e-60 <= reward_variance <= 0.25:
        raise InputError(f"expected 0 < reward_variance ≤ 1/4 (and not under 1e-60), got {reward_variance=}")
    ridge, arms = settings.ridge, settings.arms

    def settled(t: int) -> bool:
        deviation = settings.objectives * settings.omega * math.sqrt(arms * t * math.log(t / settings.alpha))
        return t * reward_variance + ridge >= 2 * deviation

    def rising(t: int) -> bool:
        return (t * reward_variance - ridge) * math.log(t / settings.alpha) >= t * reward_variance + ridge

    # (tσ²+λ)²/(t·log(t/α)) falls up to one point, then rises, so the rounds that fail the inequality are one
    # interval around that point, or none; M is where it ends.
    turn = _first(rising, 1)
    failing = [t for t in (turn, turn - 1) if t >= 1 and not settled(t)]
    return _first(settled, failing[0]) if failing else 1


def prucb_hp_bound(
    rounds: npt.ArrayLike, *, settings: HiddenSettings, reward_variance: float, warm_up: int | None = None
) -> Bound:
    """Return Theorem 1's bound on PRUCB-HP's regret over all users; it holds with probability 1 − 2ϑ.

    preference  N·2·max(β_T,1)·√(D/log(9/8)·S·log(1 + ωS/λ))   App. eq: hidden_regret_c, first part
    combined    N·(12·β_T/√λ)·√(DKS·log(T/α))                   its second part, which has 8
    reward      N·4·√(KS·log(T/α))                              App. eq: hidden_regret_r
    warm_up     N·min(M, T)                                     App. eq: trunc_regret_0
    with T rounds (a number or an array) and S = max(T − M, 0). A given `warm_up` stands in for M: with 0 the
    terms show the rates that the theorem states, and bound nothing.

    Reading: 2 is as printed (the proof of lemma: hidden_sum_reg_c_1 gives 1); max(β,1), since the proof needs
    β ≥ 1; 12 for 8, since the proof takes ‖ĉ‖₁ for Σĉ, and ĉ may be negative in some objectives.
    Reference: Theorem 1; App., its proof, steps 1 to 4.

    >>> settings = HiddenSettings(arms=10, objectives=3, failure=0.05)
    >>> bound = prucb_hp_bound([5000, 1e12], settings=settings, reward_variance=0.01)
    >>> [f"{value:.3g}" for value in bound.total]
    ['5e+03', '8.56e+09']
    """
    horizon = checked_rounds(rounds)
    lost = warm_up_rounds(settings=settings, reward_variance=reward_variance) if warm_up is None else warm_up
    if lost < 0:
        raise InputError(f"expected warm_up ≥ 0 or None, got {warm_up=}")
    objectives, arms, users, ridge = settings.objectives, settings.arms, settings.users, settings.ridge
    left = np.maximum(horizon - lost, 0.0)
    beta = np.array([settings.beta(float(t)) for t in horizon.flat]).reshape(horizon.shape)
    explored = np.sqrt(arms * left * np.log(horizon / settings.alpha))
    information = objectives / math.log(9 / 8) * left * np.log1p(settings.omega * left / ridge)
    return _bound(
        preference=users * 2 * np.maximum(beta, 1.0) * np.sqrt(information),
        combined=users * 12 * beta * math.sqrt(objectives / ridge) * explored,
        reward=users * 4 * explored,
        warm_up=users * np.minimum(float(lost), horizon),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Gaps:
    """How far each arm falls short of each user's best; `gaps` makes it.

    low = η↓, high = η↑, spread = ‖Δ↑‖₂, each (users, arms). An arm that is never short has low = ∞ and the
    rest 0, which makes its every term 0. norm = max ‖c̄‖₁ over users. Reference: Theorem 2.

    >>> gaps(means=[[0.5], [0.2]], preferences=[[1.0]], offers=[[0, 1]]).norm
    1.0
    """

    low: Floats
    high: Floats
    spread: Floats
    objectives: int
    norm: float


def gaps(*, means: npt.ArrayLike, preferences: npt.ArrayLike, offers: Offers) -> Gaps:
    """Return η↓, η↑ and ‖Δ↑‖₂ of Theorem 2 for every user and arm.

    η_i^{n↓}, η_i^{n↑} = min, max of c̄ⁿ·(μ_* − μ_i) and ‖Δ_i^{n↑}‖₂ = max ‖μ_i − μ_j‖₂, over the offers with i
    in which another arm is better for n, and over their arms j; means = μ, (arms, D); preferences = c̄,
    (users, D); offers: blocks of arms, any of which may go to any user.

    Reading: η↑ is a max, as in the theorem (the appendix has min); an arm tied with the best is not short.
    Reference: Theorem 2; App. sec:app_up_bd_stat.

    >>> found = gaps(means=[[1, 0], [0, 1]], preferences=[[0.75, 0.25]], offers=[[0, 1]])
    >>> found.low.tolist(), found.high.tolist(), found.spread.round(3).tolist()
    ([[inf, 0.5]], [[0.0, 0.5]], [[0.0, 1.414]])
    """
    mu, c = _instance(means, preferences)
    low = np.full((c.shape[0], mu.shape[0]), np.inf)
    high, spread = np.zeros_like(low), np.zeros_like(low)
    for arms in checked_offers(offers, mu.shape[0]):
        scores = c @ mu[arms].T
        gap = scores.max(axis=1, keepdims=True) - scores
        distance = np.linalg.norm(mu[arms][:, None] - mu[arms], axis=2).max(axis=1)
        short = gap > TIE
        low[:, arms] = np.minimum(low[:, arms], np.where(short, gap, np.inf))
        high[:, arms] = np.maximum(high[:, arms], np.where(short, gap, 0.0))
        spread[:, arms] = np.maximum(spread[:, arms], np.where(short, distance, 0.0))
    return Gaps(low=low, high=high, spread=spread, objectives=mu.shape[1], norm=float(c.sum(axis=1).max()))


def prucb_up_bound(rounds: npt.ArrayLike, *, gaps: Gaps, delta: float, alpha: float = 1.0) -> Bound:
    """Return Theorem 2's bound on PRUCB-UP's expected regret over all users.

    reward       R^r = Σ_{n,i} η↑·(16δ²·log(T/α)/η↓² + Dπ²α²/3)
    preference   R^c = Σ_{n,i} η↑·4D²·‖Δ↑‖₂²·δ²/η↓²
    corrections  Σ_{n,i} η↑·(1 + Dα²·max(N(log T + π²/6 − 1) − π²/3, 0))
    with T rounds, N users, delta = δ, the most that ‖c‖₁ can be, and 0 < α ≤ 1.

    Reading: a pull costs η↑ throughout; the proof's last line has η↓, too little where offers vary (the
    corollary has η↑). The corrections are not in the paper: its count of pulls leaves out the first one, and
    its π²/3 takes the number of pulls for fixed (see `lemma3_uniform_probability`).
    Reference: Theorem 2; App. eq: E_N_up_bd_stat with ε = η↓/2.

    >>> found = gaps(means=[[1, 0], [0, 1]], preferences=[[0.75, 0.25]], offers=[[0, 1]])
    >>> bound = prucb_up_bound(100, gaps=found, delta=1.0)
    >>> {name: round(value, 2) for name, value in bound.terms.items()}
    {'reward': 150.66, 'preference': 64.0, 'corrections': 2.46}
    """
    # ε = η↓/2 leaves half of the gap to the rewards: 16 for the corollary's 4.
    reward, corrections = _pulls(checked_rounds(rounds), gaps, delta, alpha, 16.0)
    imprecise = np.sum(gaps.high * (2 * gaps.objectives * gaps.spread * delta / gaps.low) ** 2)
    return _bound(reward=reward, preference=np.full_like(reward, imprecise), corrections=corrections)


def prucb_kp_bound(rounds: npt.ArrayLike, *, gaps: Gaps, delta: float, alpha: float = 1.0) -> Bound:
    """Return the corollary's bound on PRUCB-KP's expected regret: the paper's one user, summed over users.

    reward       Σ_{n,i} η↑·(4δ²·log(T/α)/η↓² + Dπ²α²/3)
    corrections  and all symbols: as in `prucb_up_bound`
    Reference: the corollary and its proof's last line; App. prop: N_known_changing.

    >>> found = gaps(means=[[1, 0], [0, 1]], preferences=[[0.75, 0.25]], offers=[[0, 1]])
    >>> round(prucb_kp_bound(100, gaps=found, delta=1.0).terms["reward"], 2)
    40.13
    """
    reward, corrections = _pulls(checked_rounds(rounds), gaps, delta, alpha, 4.0)
    return _bound(reward=reward, corrections=corrections)


def _pulls(horizon: Floats, gaps: Gaps, delta: float, alpha: float, factor: float) -> tuple[Floats, Floats]:
    if not (0 < alpha <= 1 and gaps.norm - TIE <= delta < math.inf):
        raise InputError(f"expected 0 < alpha ≤ 1 and delta ≥ ‖c̄‖₁ = {gaps.norm}, got {alpha=}, {delta=}")
    cost, users = float(gaps.high.sum()), gaps.high.shape[0]
    per_log = factor * float(np.sum(gaps.high * (delta / gaps.low) ** 2))
    # Σ 1/t² twice: the arm's own mean too high, the best arm's too low.
    fixed, unit = 2 * ZETA_2, gaps.objectives * alpha**2
    # Summed over what the number of pulls can be: the first at each pull once, the second in each round.
    random = users * (np.log(horizon) + ZETA_2 - 1)
    reward = per_log * np.log(horizon / alpha) + cost * unit * fixed
    return np.asarray(reward), np.asarray(cost * (1 + unit * np.maximum(random - fixed, 0.0)))


def preference_free_slope(*, means: npt.ArrayLike = CONFLICT, preferences: npt.ArrayLike = CONFLICT) -> float:
    """Return the least regret a round, over all users, of a policy that does not look at preferences.

    min_i Σ_n max_j c̄ⁿ·(μ_j − μ_i), with means = μ, (arms, D), all offered to everybody, and preferences = c̄,
    (users, D). By default the paper's conflicting arms: whichever is pulled, one of the two users loses 1.
    Such a policy gives all users the same law over arms, so that its regret is a mean over i of that sum.
    Reading: 0 where one arm suits everybody, which the paper's front does not exclude: [1,.5] and [.5,.5] are
    both on it, as dominating means better in *every* objective.
    Reference: Proposition 1; App. sce: app_pf_lower_bd.

    >>> preference_free_slope()
    1.0
    """
    mu, c = _instance(means, preferences)
    scores = c @ mu.T
    return float((scores.max(axis=1, keepdims=True) - scores).sum(axis=0).min())


def lemma3_probability(t: npt.ArrayLike, *, objectives: int, alpha: float, failure: float) -> Value:
    """Return how surely PRUCB-HP's score is at least c̄·μ_i, for one user, one arm and one round t.

    1 − ϑ − Dα²/t², or 0 if that is negative, with failure = ϑ, that of Lemma 2's ellipsoid.
    Reference: Lemma 3 (its proof counts both sides, 2Dα²/t²; the statement needs one).

    >>> round(lemma3_probability(2, objectives=2, alpha=0.5, failure=0.05), 3)
    0.825
    """
    _confident(1, objectives, 1, alpha, failure)
    return _plain(np.maximum(1 - failure - objectives * (alpha / checked_rounds(t)) ** 2, 0.0))


def lemma3_uniform_probability(*, arms: int, objectives: int, alpha: float, failure: float, users: int = 1) -> float:
    """Return how surely Lemma 3's upper bound holds for all rounds, arms and users at once.

    1 − Nϑ − KDα²·max(π²/6, N(π²/6 − 1)), or 0 if that is negative; ϑ is for one user and all rounds.

    Reading: π²/6 = Σ 1/t² is the paper's sum over rounds, which takes the number of pulls for fixed. A sum
    over pulls, the s-th of which is known no sooner than in round 1 + ⌈s/N⌉, is sound: N(π²/6 − 1).
    Reference: Lemma 3; App. sec: proof_proposition_uniform_confidence_bound.

    >>> round(lemma3_uniform_probability(arms=2, objectives=2, alpha=0.1, failure=0.05), 4)
    0.8842
    """
    _confident(arms, objectives, users, alpha, failure)
    missed = arms * objectives * alpha**2 * max(ZETA_2, users * (ZETA_2 - 1))
    return max(1 - users * failure - missed, 0.0)


def uniform_failure(*, arms: int, objectives: int, alpha: float, users: int = 1, as_printed: bool = False) -> Bound:
    """Return how likely some reward mean, or some entry of a Gram matrix, ever leaves its interval.

    reward  2KDα²·N(π²/6 − 1)       as printed: KDα²π²/3
    gram    KD(D+1)α²·N(π²/6 − 1)   as printed: KD(D−1)α²π²/12

    Reading: D(D+1)/2 entries, not D(D−1)/2, and both sides of each; the sum is over pulls, not rounds (see
    `lemma3_uniform_probability`). With Theorem 1's α and N=1 it comes to 0.784·ϑ; as printed, to ϑ.
    Reference: App. proposition: uniform_confidence_bound, eq: conf_B_upbd and eq: conf_C_upbd.

    >>> alpha = HiddenSettings(arms=10, objectives=3, failure=0.05).alpha
    >>> round(uniform_failure(arms=10, objectives=3, alpha=alpha).total, 5)
    0.03921
    """
    _confident(arms, objectives, users, alpha, 0.5)
    unit = arms * objectives * alpha**2
    if as_printed:
        return Bound(terms={"reward": unit * 2 * ZETA_2, "gram": unit * (objectives - 1) / 2 * ZETA_2})
    unit *= users * (ZETA_2 - 1)
    return Bound(terms={"reward": 2 * unit, "gram": (objectives + 1) * unit})


def _first(holds: Callable[[int], bool], start: int) -> int:
    """Return the first whole number from `start` on at which a condition that stays true turns true."""
    if holds(start):
        return start
    below, above = start, 2 * start
    while not holds(above):
        below, above = above, 2 * above
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if holds(middle) else (middle, above)
    return above


def _bound(**terms: Value) -> Bound:
    return Bound(terms={name: _plain(term) for name, term in terms.items()})


def _plain(values: npt.ArrayLike) -> Value:
    array = np.asarray(values, dtype=np.float64)
    return float(array) if array.ndim == 0 else array


def _instance(means: npt.ArrayLike, preferences: npt.ArrayLike) -> tuple[Floats, Floats]:
    mu, c = checked_tables(means, preferences)
    if not (((mu >= 0) & (mu <= 1)).all() and ((c >= 0) & (c < np.inf)).all()):
        raise InputError(f"expected means in [0,1] and preferences ≥ 0, got {means!r} and {preferences!r}")
    return mu, c


def _confident(arms: int, objectives: int, users: int, alpha: float, failure: float) -> None:
    if not (arms >= 1 and objectives >= 1 and users >= 1 and 0 < alpha <= 1 and 0 < failure < 1):
        raise InputError(
            "expected arms, objectives and users ≥ 1, 0 < alpha ≤ 1 and 0 < failure < 1, got "
            f"{arms=}, {objectives=}, {users=}, {alpha=}, {failure=}"
        )
