"""What can be proved: the paper's bounds, with their constants, and the least regret that there can be."""

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

__all__ = [
    "CONFLICT",
    "TIE",
    "ZETA_2",
    "Bound",
    "Gaps",
    "HiddenSettings",
    "LowerBound",
    "gaps",
    "graves_lai",
    "lemma3_probability",
    "lemma3_uniform_probability",
    "preference_free_slope",
    "prucb_hp_bound",
    "prucb_kp_bound",
    "prucb_up_bound",
    "uniform_failure",
    "warm_up_rounds",
]
