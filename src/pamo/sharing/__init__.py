"""What all users' sums say of one user: a prior for preferences, fitted to everybody, and each user's estimate with it.

The model: user n's preference is c_n = m + a deviation of variance τ² in each objective; an overall score is
g = b_n + c_n·r + noise, of variance σ²/ŵ(r). Everything is a function of `UserStatistics`' moments of z = (1, r, g),
with w = 1 and with w = 1/‖r‖², so that a prior can be thrown away and fitted again, and two machines' sums add up.

The weight is ŵ(r) = φ·x̄/‖r‖² + (1 − φ), x̄ the mean of ‖r‖²: φ = 1 is the paper's (noise that grows with the reward,
since it is the preference that varies), φ = 0 a plain regression. φ itself is fitted: it is the elasticity of the
noise's variance in ‖r‖², which both kinds of moments together tell.
"""

from pamo.sharing.population import (
    ITERATIONS,
    NOISE_ROUNDS,
    PRIOR_LEVELS,
    PRIOR_SAMPLES,
    PRIOR_USERS,
    empty_population,
    fit_population,
    population_of,
    solve_users,
)
from pamo.sharing.user import (
    BIAS_MEAN,
    BIAS_RIDGE,
    COUNT,
    NOISE,
    PAPER,
    PLAIN,
    PRIOR_ROUNDS,
    RIDGE,
    Population,
    add_moments,
    noise_of,
    solve_user,
    start_population,
    weight_of,
    write_inverse,
)

__all__ = [
    "BIAS_MEAN",
    "BIAS_RIDGE",
    "COUNT",
    "ITERATIONS",
    "NOISE",
    "NOISE_ROUNDS",
    "PAPER",
    "PLAIN",
    "PRIOR_LEVELS",
    "PRIOR_ROUNDS",
    "PRIOR_SAMPLES",
    "PRIOR_USERS",
    "RIDGE",
    "Population",
    "add_moments",
    "empty_population",
    "fit_population",
    "noise_of",
    "population_of",
    "solve_user",
    "solve_users",
    "start_population",
    "weight_of",
    "write_inverse",
]
