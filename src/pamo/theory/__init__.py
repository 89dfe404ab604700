"""What can be proved: the paper's bounds, and a variance-aware one of our own, with their constants."""

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
    "VarianceBound",
    "gaps",
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
