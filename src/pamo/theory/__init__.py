"""What can be proved: the paper's bounds, with their constants."""

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
    "gaps",
    "lemma3_probability",
    "lemma3_uniform_probability",
    "preference_free_slope",
    "prucb_hp_bound",
    "prucb_kp_bound",
    "prucb_up_bound",
    "uniform_failure",
    "warm_up_rounds",
]
