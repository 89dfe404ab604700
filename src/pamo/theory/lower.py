"""How little regret there can be: the asymptotic lower bound of Graves and Lai for Gaussian rewards of known variance.

Not in the paper. docs/theory/lower.md derives it, and says what it asks of a policy and what it does not promise at a
finite horizon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats
from pamo.errors import InputError
from pamo.theory.inputs import Offers, checked_offers, checked_rounds, checked_tables
from pamo.theory.paper import TIE, Value


@dataclass(frozen=True, kw_only=True, eq=False)
class LowerBound:
    """The least regret that a policy can have in the long run, and the pulls that have it; `graves_lai` makes it.

    pulls: η, (users, arms), pulls for each unit of log T, beyond those of arms that are best for the user who pulls.
    price: (arms,), the regret of one of these pulls: the arm's least gap. An arm that is best for somebody is free.

    >>> bound = graves_lai(means=[[0.5], [0.3]], preferences=[[1.0]], offers=[[0, 1]], reward_variance=0.01)
    >>> bound.pulls.round(6).tolist(), bound.price.round(6).tolist()
    ([[0.0, 0.5]], [0.0, 0.2])
    """

    pulls: Floats
    price: Floats

    @property
    def constant(self) -> float:
        """Return C: liminf E[R(T)]/log T ≥ C, the regret of all users together, T rounds of each."""
        return float(self.pulls.sum(axis=0) @ self.price)

    def at(self, rounds: npt.ArrayLike) -> Value:
        """Return Σ_i price_i·η_i·log(T/max(η_i, 1)), which is C·log T less a constant; a number or an array over T.

        C·log T itself is of no use where a gap is next to 0: it then exceeds what is lost by taking the arm for the
        best one in every round, and its mean over random instances is infinite. Here a wrong verdict on an arm may be
        as likely as the pulls that it takes are many, η/T; an arm that needs T pulls or more counts for nothing.

        >>> bound = graves_lai(means=[[0.5], [0.45]], preferences=[[1.0]], offers=[[0, 1]], reward_variance=0.01)
        >>> round(bound.constant * math.log(5000), 3), round(bound.at(5000), 3)
        (3.407, 2.575)
        """
        horizon = checked_rounds(rounds)
        needed = self.pulls.sum(axis=0)
        cost, needed = (self.price * needed)[needed > 0], needed[needed > 0]
        total = np.maximum(np.log(horizon[..., None] / np.maximum(needed, 1.0)), 0.0) @ cost
        return float(total) if total.ndim == 0 else total


def graves_lai(
    *, means: npt.ArrayLike, preferences: npt.ArrayLike, offers: Offers, reward_variance: float
) -> LowerBound:
    """Return the lower bound of an instance: no uniformly good policy has less than C·log T regret in the long run.

    C = min_η Σ_{n,i} η(n,i)·Δ(n,i)   such that, for every arm i that is best for nobody, and every user n,
    Σ_m η(m,i) ≥ 2σ²‖c̄ⁿ‖²/Δ(n,i)²
    with Δ(n,i) = c̄ⁿ·(μ_* − μ_i) the least gap over the offers with i; means = μ, (arms, D); preferences = c̄,
    (users, D); offers: blocks of arms, each of which goes to every user in a fixed share of the rounds (`random` and
    `rotate`; one block of all arms is `all`); reward_variance = σ², of each objective.

    The programme falls apart arm by arm: whoever loses least by the arm pulls it as often as the most demanding user
    needs. C is the same for hidden, stated and known preferences, whatever their variance. σ² = 0 is refused: one pull
    then shows an arm's mean, and what is left to learn, the preferences, is another programme.
    Arms within a relative 1e-12 of the best are tied with it.

    One user and one offer give the constant of Lai and Robbins, Σ_i 2σ²‖c̄‖²/Δ_i:

    >>> arms = {"means": [[1, 0], [0, 1], [0, 0]], "offers": [[0, 1, 2]], "reward_variance": 0.01}
    >>> round(graves_lai(preferences=[[2.0, 1.0]], **arms).constant, 6)  # 2·0.01·5·(1/1 + 1/2)
    0.15
    >>> round(graves_lai(preferences=[[2.0, 1.0], [1.0, 2.0]], **arms).constant, 6)  # arm 1 is free: it is best for one
    0.05

    Reference: Graves and Lai (1997), Asymptotically efficient adaptive choice of control laws.
    """
    mu, c = checked_tables(means, preferences)
    if not (np.isfinite(mu).all() and np.isfinite(c).all()):
        raise InputError(f"expected finite means and preferences, got {means!r} and {preferences!r}")
    if not 0 < reward_variance < math.inf:
        raise InputError(
            f"expected reward_variance > 0, got {reward_variance}; without noise in the rewards an arm is known after "
            "one pull, and this bound does not apply"
        )
    gap = np.full((c.shape[0], mu.shape[0]), np.inf)
    for arms in checked_offers(offers, mu.shape[0]):
        scores = c @ mu[arms].T
        gap[:, arms] = np.minimum(gap[:, arms], scores.max(axis=1, keepdims=True) - scores)
    size = np.linalg.norm(c, axis=1, keepdims=True)
    tied = gap <= TIE * size * np.linalg.norm(mu, axis=1).max()
    # Best for somebody: its pulls are linear in T and cost nothing. In no offer: there is nothing to pull.
    free = tied.any(axis=0) | np.isinf(gap).all(axis=0)
    shortfall = np.where(free, np.inf, gap)
    pulls, price = np.zeros_like(gap), np.where(free, 0.0, gap.min(axis=0))
    needed = (2 * reward_variance * (size / shortfall) ** 2).max(axis=0)
    pulls[shortfall.argmin(axis=0), np.arange(len(mu))] = needed
    return LowerBound(pulls=pulls, price=price)
