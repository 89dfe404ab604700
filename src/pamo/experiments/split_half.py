"""A prior chosen by what foretells the other half: each user's rounds in two halves, each foretold from the other.

The moments of z = (1, r, g) are kept a half, and nothing else. With x = (1, r − r̄), A = Σx·xᵀ, a = Σx·g, s = Σg², and
Λ = diag(λ_b, λ_c, …, λ_c), a half's estimate is β = μ + (A + Λ)⁻¹(a − Aμ), and its error on the other half is
s − 2β·a + β·Aβ there. λ_b and λ_c are those of the least error over all users, with μ the pooled regression; then
μ = (ΣΛ(A + Λ)⁻¹A)⁻¹ ΣΛ(A + Λ)⁻¹a. Large λ means that users do not differ, and then nothing is personal. Since r is
centred and there is an intercept, the zeros of the scales do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pamo.arrays import Floats, Ints

ALIKE = math.log(1e12)
"""log λ at which users do not differ."""
_BIAS, _WEIGHTS = (-4.0, 9.2), (-4.0, 9.2)
_STEP, _FINEST = 1.7, 0.2
_MEAN = 5000.0
"""λ_b from which on μ is the pooled regression: all users count alike then, whatever their rounds."""


class SplitHalf(NamedTuple):
    """What users have in common. center: r̄. mean: μ, the intercept first. ridge: Λ's diagonal.

    errors: the mean squared error of a half that the other half did not see, where users are alike; where each has a
    bias, if that is better; and with weights of their own, if that is. noise: the variance that goes with the ridge.
    """

    center: Floats
    mean: Floats
    ridge: Floats
    errors: tuple[float, float, float]
    noise: float


def moments_of(reward: Floats, overall: Floats, starts: Ints) -> Floats:
    """Return the moments of z = (1, r, g) of each user's two halves, (users, 2, D+2, D+2), rounds going by turns.

    reward: (n, D), overall: (n,), one user's after another's; starts: (users + 1,), where each user's begin.

    >>> moments_of(np.array([[1.0], [2.0], [3.0]]), np.array([0.0, 1.0, 1.0]), np.array([0, 3]))[0, :, 0, 0].tolist()
    [2.0, 1.0]
    """
    z = np.column_stack([np.ones(len(overall)), reward, overall])
    turn = (np.arange(len(z)) - np.repeat(starts[:-1], np.diff(starts))) % 2
    place = 2 * np.repeat(np.arange(len(starts) - 1), np.diff(starts)) + turn
    width, users = z.shape[1], len(starts) - 1
    found = np.empty((width, width, 2 * users))
    for i in range(width):
        for j in range(i + 1):
            found[i, j] = found[j, i] = np.bincount(place, z[:, i] * z[:, j], minlength=2 * users)
    return np.ascontiguousarray(found.transpose(2, 0, 1)).reshape(users, 2, width, width)


def fit(moments: Floats, *, weights: bool = True) -> SplitHalf:
    """Return what users have in common, from the moments of their halves; weights: whether these may differ as well."""
    total = moments.sum(axis=(0, 1))
    center = total[0, 1:-1] / total[0, 0]
    shifted = _shift(moments, center)
    whole = shifted.sum(axis=1)
    mean = _pooled(whole)
    both = shifted[(shifted[:, :, 0, 0] > 0.0).all(axis=1)]
    held = max(float(both[:, :, 0, 0].sum()), 1.0)
    tried: dict[tuple[float, float], float] = {}

    def error(place: tuple[float, float]) -> float:
        if place not in tried:
            ridge = _ridge(place, len(mean))
            tried[place] = sum(
                float(_misfit(both[:, 1 - h], _posterior(both[:, h], mean, ridge)).sum()) for h in (0, 1)
            )
        return tried[place]

    nobody = (ALIKE, ALIKE)
    biased = _least(error, [(b, ALIKE) for b in np.arange(-1.0, _BIAS[1] + 0.1, _STEP).tolist()], nobody, (1.0, 0.0))
    best = biased
    if weights:
        grid = [
            (b, c)
            for b in [*np.arange(-1.0, _BIAS[1] + 0.1, _STEP).tolist(), ALIKE]
            for c in np.arange(-2.5, _WEIGHTS[1] + 0.1, _STEP).tolist()
        ]
        best = _least(error, grid, biased, (1.0, 1.0))
    ridge = _ridge(best, len(mean))
    if ridge[0] < _MEAN:
        mean = _mean_under(whole, ridge)
    errors = error(nobody) / held, error(biased) / held, error(best) / held
    gram = whole[:, :-1, :-1]
    used = float(np.trace(np.linalg.solve(gram + np.diag(ridge), gram), axis1=1, axis2=2).sum())
    left = max(float(_misfit(whole, _posterior(whole, mean, ridge)).sum()), 0.0)
    return SplitHalf(center, mean, ridge, errors, left / max(float(whole[:, 0, 0].sum()) - used, 1.0))


def alike(moments: Floats) -> SplitHalf:
    """Return the pooled regression: users do not differ."""
    total = moments.sum(axis=(0, 1))
    center = total[0, 1:-1] / total[0, 0]
    whole = _shift(moments, center).sum(axis=1)
    mean = _pooled(whole)
    noise = float(_misfit(whole.sum(axis=0)[None], mean[None])[0] / total[0, 0])
    return SplitHalf(center, mean, np.full(len(mean), math.exp(ALIKE)), (noise, noise, noise), noise)


def betas(moments: Floats, common: SplitHalf) -> Floats:
    """Return every user's intercept and weights, (users, D+1), from both halves; g is foretold as β·(1, r − r̄)."""
    return _posterior(_shift(moments, common.center).sum(axis=1), common.mean, common.ridge)


def spreads(moments: Floats, common: SplitHalf) -> Floats:
    """Return by how much levels at r̄, and each of the weights, vary between users: standard deviations, (D+1,).

    The ridge alone says it badly where users differ much, since any small one foretells as well; so this is what the
    users' estimates vary by, and what they are unsure of besides.
    """
    whole = _shift(moments, common.center).sum(axis=1)
    unsure = np.linalg.inv(whole[:, :-1, :-1] + np.diag(common.ridge)).diagonal(axis1=1, axis2=2)
    apart = _posterior(whole, common.mean, common.ridge) - common.mean
    return np.asarray(np.sqrt((apart * apart + common.noise * unsure).mean(axis=0)))


def own_ridge(moments: Floats) -> tuple[Floats, Floats]:
    """Return r̄ and each user's own regression, drawn towards a slope of 0 as strongly as foretells halves best."""
    total = moments.sum(axis=(0, 1))
    center = total[0, 1:-1] / total[0, 0]
    shifted = _shift(moments, center)
    both = shifted[(shifted[:, :, 0, 0] > 0.0).all(axis=1)]
    flat = np.zeros(shifted.shape[-1] - 1)

    def ridge_of(x: float) -> Floats:
        return np.concatenate([[1e-6], np.full(len(flat) - 1, math.exp(x))])  # the intercept is the user's own level

    def error(x: float) -> float:
        return sum(float(_misfit(both[:, 1 - h], _posterior(both[:, h], flat, ridge_of(x))).sum()) for h in (0, 1))

    best = min(np.arange(-6.0, 6.1, 1.0).tolist(), key=error)
    return center, _posterior(shifted.sum(axis=1), flat, ridge_of(best))


def _least(
    error: Callable[[tuple[float, float]], float],
    grid: Sequence[tuple[float, float]],
    start: tuple[float, float],
    along: tuple[float, float],
) -> tuple[float, float]:
    """Return the place of the least error: of a grid and a start, and then by steps that grow finer."""
    best = min([start, *grid], key=error)
    step = _STEP / 2.0
    while step > _FINEST:
        around = [
            (_kept(best[0] + i * step * along[0], _BIAS), _kept(best[1] + j * step * along[1], _WEIGHTS))
            for i, j in ((1, 0), (-1, 0), (0, 1), (0, -1))
        ]
        near = min(around, key=error)
        if error(near) < error(best) - 1e-9 * abs(error(best)):  # less is rounding, and would go on and on
            best = near
        else:
            step /= 2.0
    return best


def _kept(x: float, limits: tuple[float, float]) -> float:
    return x if x > limits[1] + _STEP else min(max(x, limits[0]), limits[1])  # "alike" stays where it is


def _ridge(place: tuple[float, float], size: int) -> Floats:
    return np.asarray(np.exp(np.concatenate([[min(place[0], ALIKE)], np.full(size - 1, min(place[1], ALIKE))])))


def _shift(moments: Floats, center: Floats) -> Floats:
    """Return the moments of (1, r − r̄, g)."""
    move = np.eye(moments.shape[-1])
    move[1:-1, 0] = -center
    return np.asarray(move @ moments @ move.T)


def _pooled(moments: Floats) -> Floats:
    total = moments.sum(axis=0)
    return np.asarray(np.linalg.lstsq(total[:-1, :-1], total[:-1, -1], rcond=None)[0])


def _posterior(moments: Floats, mean: Floats, ridge: Floats) -> Floats:
    gram, right = moments[:, :-1, :-1], moments[:, :-1, -1]
    apart = np.linalg.solve(gram + np.diag(ridge), (right - gram @ mean)[:, :, None])[:, :, 0]
    return np.asarray(mean + apart)


def _misfit(moments: Floats, beta: Floats) -> Floats:
    whole = np.concatenate([beta, np.full((len(beta), 1), -1.0)], axis=1)
    return np.asarray(np.einsum("ui,uij,uj->u", whole, moments, whole, optimize=True))


def _mean_under(moments: Floats, ridge: Floats) -> Floats:
    """Return the mean that goes with a ridge: users count by what their rounds say."""
    gram, size = moments[:, :-1, :-1], len(ridge)
    spread = (ridge[:, None] * np.linalg.solve(gram + np.diag(ridge), moments[:, :-1, :])).sum(axis=0)
    return np.asarray(np.linalg.solve(spread[:, :-1] + 1e-9 * np.eye(size), spread[:, -1]))
