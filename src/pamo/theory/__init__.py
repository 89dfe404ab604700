"""What can be proved: the paper's bounds, a variance-aware one of our own, and the least regret that there can be."""

from pamo.theory.lower import LowerBound, graves_lai
from pamo.theory.paper import (
    CONFLICT,
    TIE,
    ZETA_2,
    Bound,
    Gaps,
    HiddenSettings,
    gaps,
    lemma3_probability,
    lemma3_uniform_probability,
    preference_free_slope,
    prucb_hp_bound,
    prucb_kp_bound,
    prucb_up_bound,
    uniform_failure,
    warm_up_rounds,
)
from pamo.theory.variance import VarianceBound, most_noise, prior_bias, variance_bound

__all__ = [
    "CONFLICT",
    "TIE",
    "ZETA_2",
    "Bound",
    "Gaps",
    "HiddenSettings",
    "LowerBound",
    "VarianceBound",
    "gaps",
    "graves_lai",
    "lemma3_probability",
    "lemma3_uniform_probability",
    "most_noise",
    "preference_free_slope",
    "prior_bias",
    "prucb_hp_bound",
    "prucb_kp_bound",
    "prucb_up_bound",
    "uniform_failure",
    "variance_bound",
    "warm_up_rounds",
]
