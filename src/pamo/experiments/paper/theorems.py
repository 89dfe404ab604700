"""What the studies of the theory share: PRUCB-HP as Theorem 1 has it run, a trial's gaps, and intervals of shares."""

from __future__ import annotations

import math
from statistics import NormalDist

from pamo.environments.base import Environment
from pamo.experiments.instances import instance_of, offers_of
from pamo.policies import PrucbHp
from pamo.theory import Gaps, HiddenSettings, gaps


def hidden_settings(environment: Environment, failure: float) -> HiddenSettings:
    """Return what Theorem 1 prescribes in an environment, with probability `failure` of failing for any user."""
    arms, objectives, users = environment.arm_count, environment.objectives, environment.users
    return HiddenSettings(arms=arms, objectives=objectives, users=users, failure=failure)


def prescribed(settings: HiddenSettings) -> PrucbHp:
    """Return PRUCB-HP as Theorem 1 has it run.

    >>> prescribed(HiddenSettings(arms=10, objectives=3, failure=0.05)).radius
    'theory'
    """
    return PrucbHp(
        alpha=settings.alpha,
        beta=1.0,  # β_t is Lemma 2's, and not a multiple of it
        ridge=settings.ridge,
        omega=settings.omega,
        radius="theory",
        failure=settings.own_failure,
        sub_gaussian=settings.sub_gaussian,
    )


def gaps_of(environment: Environment, seed: int, trial: int) -> Gaps:
    """Return the gaps of Theorem 2 of a trial of `simulate`: any block may go to any user."""
    means, preferences = instance_of(environment, seed, trial)
    return gaps(means=means, preferences=preferences, offers=offers_of(environment))


def wilson(held: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval of a share, which is of use at 0 and 1 too.

    >>> low, high = wilson(10_000, 10_000)
    >>> round(low, 5), high
    (0.99962, 1.0)
    """
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share, spread = held / total, z * z / total
    center = share + spread / 2
    half = z * math.sqrt(share * (1 - share) / total + spread / total / 4)
    return max((center - half) / (1 + spread), 0.0), min((center + half) / (1 + spread), 1.0)
