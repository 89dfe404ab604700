"""What users, and what arms, have in common: priors that are fitted to everybody's rows, and estimates with them.

The users' model: user n's preference is c_n = m + a deviation of variance τ² in each objective, but for the sum of its
entries, which may vary less; an overall score is g = b_n + c_n·r + noise, of variance σ²/ŵ(r). Everything is a function
of the users' rows (`pamo.rows`), the moments of z = (1, r, g) with w = 1 and with w = 1/‖r‖², so that a prior can be
thrown away and fitted again, and two machines' sums add up.

The weight is ŵ(r) = φ·x̄/‖r‖² + (1 − φ), x̄ the mean of ‖r‖²: φ = 1 is the paper's (noise that grows with the reward,
since it is the preference that varies), φ = 0 a plain regression. φ itself is fitted: it is the elasticity of the
noise's variance in ‖r‖², which both kinds of moments together tell.

People care much for a few objectives and little for the rest. So every entry of every c_n may also be of two levels,
π₁·Normal(ℓ₁, s₁) + π₂·Normal(ℓ₂, s₂), where the rows make that e⁴ times more likely (`levels`): fitted by EM, with
expectation propagation for each user. Its sites are then the user's own ridge, and a function of the user's row.

The arms' model is in `pamo.priors.arms`.
"""

from pamo.priors.arms import (
    ArmsPrior,
    arms_prior_in,
    arms_prior_of,
    expect,
    fit_arms,
    prepared,
    room_for_arms,
    start_arms,
)
from pamo.priors.features import Explained, explained_by, without
from pamo.priors.incomplete import (
    Foretold,
    fit_factors,
    fit_offsets,
    foretell_rounds,
    offsets_of,
    use_prior,
    whole_rows,
)
from pamo.priors.population import empty_population, fit_population, population_of, read_users, sites_of
from pamo.priors.user import (
    BIAS_MEAN,
    BIAS_RIDGE,
    COUNT,
    LEVELS,
    NOISE,
    NUMBERS,
    PAPER,
    PLAIN,
    PRIOR_ROUNDS,
    RIDGE,
    SHARE,
    SUM_RIDGE,
    Population,
    Room,
    noise_of,
    read_user,
    room_for,
    start_population,
)

__all__ = [
    "BIAS_MEAN",
    "BIAS_RIDGE",
    "COUNT",
    "LEVELS",
    "NOISE",
    "NUMBERS",
    "PAPER",
    "PLAIN",
    "PRIOR_ROUNDS",
    "RIDGE",
    "SHARE",
    "SUM_RIDGE",
    "ArmsPrior",
    "Explained",
    "Foretold",
    "Population",
    "Room",
    "arms_prior_in",
    "arms_prior_of",
    "empty_population",
    "expect",
    "explained_by",
    "fit_arms",
    "fit_factors",
    "fit_offsets",
    "fit_population",
    "foretell_rounds",
    "noise_of",
    "offsets_of",
    "population_of",
    "prepared",
    "read_user",
    "read_users",
    "room_for",
    "room_for_arms",
    "sites_of",
    "start_arms",
    "start_population",
    "use_prior",
    "whole_rows",
    "without",
]
