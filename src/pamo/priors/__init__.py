"""What users have in common: a prior for preferences, fitted to everybody's rows, and each user's estimate with it.

The model: user n's preference is c_n = m + a deviation of variance τ² in each objective; an overall score is
g = b_n + c_n·r + noise, of variance σ²/ŵ(r). Everything is a function of the users' rows (`pamo.rows`), the moments of
z = (1, r, g) with w = 1 and with w = 1/‖r‖², so that a prior can be thrown away and fitted again, and two machines'
sums add up.

The weight is ŵ(r) = φ·x̄/‖r‖² + (1 − φ), x̄ the mean of ‖r‖²: φ = 1 is the paper's (noise that grows with the reward,
since it is the preference that varies), φ = 0 a plain regression. φ itself is fitted: it is the elasticity of the
noise's variance in ‖r‖², which both kinds of moments together tell.
"""

from pamo.priors.foretelling import (
    Foretold,
    fit_arms,
    fit_factors,
    fit_offsets,
    foretell_rounds,
    offsets_of,
    whole_rows,
)
from pamo.priors.population import empty_population, fit_population, population_of, read_users
from pamo.priors.user import (
    BIAS_MEAN,
    BIAS_RIDGE,
    COUNT,
    NOISE,
    NUMBERS,
    PAPER,
    PLAIN,
    PRIOR_ROUNDS,
    RIDGE,
    Population,
    Room,
    noise_of,
    read_user,
    room_for,
    solve_user,
    start_population,
)

__all__ = [
    "BIAS_MEAN",
    "BIAS_RIDGE",
    "COUNT",
    "NOISE",
    "NUMBERS",
    "PAPER",
    "PLAIN",
    "PRIOR_ROUNDS",
    "RIDGE",
    "Foretold",
    "Population",
    "Room",
    "empty_population",
    "fit_arms",
    "fit_factors",
    "fit_offsets",
    "fit_population",
    "foretell_rounds",
    "noise_of",
    "offsets_of",
    "population_of",
    "read_user",
    "read_users",
    "room_for",
    "solve_user",
    "start_population",
    "whole_rows",
]
