"""A prior chosen by what foretells: each round of a user from the user's others, and from everybody's.

With x = (1, r − r̄), A = Σŵ·x·xᵀ and a = Σŵ·x·g over a user's rounds, and Λ = diag(λ_b, λ_c, …, λ_c), the user's
intercept and weights are β = μ + (A + Λ)⁻¹(a − Aμ): everybody's, μ, and as much of the user's own as Λ lets in. λ_b,
λ_c and φ of ŵ = 1 − φ + φ·x̄/‖r‖² are those that foretell best what is left out, a round at a time, as far as one can
be sure of it: a large λ means that nobody differs, and what is gained over that, or over what people usually differ by,
counts for less by some of its standard errors over users. So they differ by no more than chance leaves of it. Since
there is an intercept and r is centred, the zeros of the scales do not matter; since no likelihood is asked, noise that
varies with r does not pass for a difference between users.

To choose, rounds of some users are needed. The rest is a function of the sums: β of any user's moments.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pamo.arrays import Floats, Ints
from pamo.compiling import kernel
from pamo.rows import LEAST_SQUARE
from pamo.statistics import UserStatistics

ALIKE = math.log(1e12)
"""log λ at which users do not differ."""
SURE, SOUGHT = 1.0, 1.64
"""Standard errors over users by which a gain is taken for less than it seems: of a strength that was named beforehand,
and of one that was sought among many, which may look good by chance."""
USUAL = 30.0, 80.0
"""How strongly people are usually drawn to everybody's: by how many rounds' worth the level is, and each weight."""
OWN = 4.0
"""Rounds' worth that everybody's noise counts for a user's own, where it is asked whether users differ."""
LEVELS, LEAST_LEVEL = 8, 100
"""Rounds are as noisy as those of about the score that is foretold: groups at most, and rounds in each at least."""
FEW = 10
"""Users with two rounds or more, below which they say too little of how they differ for anything to be chosen."""
ELASTICITIES = (0.0, 0.5, 1.0)
"""φ that are tried; the first is taken unless another is better by more than chance."""
_LOWEST, _HIGHEST, _STEP, _FINEST = -13.6, 8.5, 1.7, 0.2
_POOLED = 5000.0
"""λ_b from which on μ is the pooled regression: all rounds count alike then, whoever's they are."""
_ROUGHLY = 2**17
"""Rounds that are enough to find where on the grid to begin."""
_REPEATS = 4
"""How often μ and what users differ by are found from one another."""

Place = tuple[float, float]
"""log λ_b and log λ_c."""
NOBODY: Place = ALIKE, ALIKE


class Rounds(NamedTuple):
    """Whole rounds of some users, one user's after another's.

    reward: (n, D). overall: (n,). starts: (users + 1,), where each user's begin, and where the last one's end.
    """

    reward: Floats
    overall: Floats
    starts: Ints


class Foretelling(NamedTuple):
    """What users have in common, for foretelling.

    center: r̄. mean: μ, the intercept first. ridge: Λ's diagonal. weights: the factors 1 − φ and φ·x̄ of the moments
    with w = 1 and with w = 1/‖r‖². errors: the mean squared error of what is left out where nobody differs, where
    levels do if that is better, and where weights do if that is. noise: σ².

    For intervals: spread, the variances between users, (D+1,); mean_variance, the covariance of μ; curvature, the
    matrix whose inverse μ was found by; freedom, the degrees of freedom of σ² and of the spread.
    """

    center: Floats
    mean: Floats
    ridge: Floats
    weights: tuple[float, float]
    errors: tuple[float, float, float]
    noise: float
    spread: Floats
    mean_variance: Floats
    curvature: Floats
    freedom: tuple[float, float]


@kernel
def left_out(errors: Floats, x: Floats, left: Floats, factors: Floats, starts: Ints, ridge: Floats) -> None:
    """Write g − β·x of each round, β of the user's other rounds; left: what μ leaves of g; factors: ŵ.

    Without its round i a ridge errs there by e_i/(1 − h_i): no need to solve it again.
    """
    size = x.shape[1]
    root, right, along = np.empty((size, size)), np.empty(size), np.empty(size)
    for n in range(len(starts) - 1):
        root.fill(0.0)
        right.fill(0.0)
        for i in range(starts[n], starts[n + 1]):
            for d in range(size):
                scaled = factors[i] * x[i, d]
                right[d] += scaled * left[i]
                for e in range(d + 1):
                    root[d, e] += scaled * x[i, e]
        for d in range(size):  # the Cholesky factor in the lower triangle, with one over its diagonal on the diagonal
            root[d, d] += ridge[d]
            for e in range(d + 1):
                entry = root[d, e]
                for k in range(e):
                    entry -= root[d, k] * root[e, k]
                root[d, e] = 1.0 / math.sqrt(max(entry, ridge[d])) if d == e else entry * root[e, e]
            entry = right[d]
            for e in range(d):
                entry -= root[d, e] * right[e]
            right[d] = entry * root[d, d]
        for i in range(starts[n], starts[n + 1]):
            error, share = left[i], 1.0
            for d in range(size):
                entry = x[i, d]
                for e in range(d):
                    entry -= root[d, e] * along[e]
                along[d] = entry * root[d, d]
                error -= along[d] * right[d]
                share -= factors[i] * along[d] * along[d]
            errors[i] = error / max(share, 1e-9)


class _Search:
    """How well each strength foretells, with given weights: every user's squared error, kept once it is worked out.

    noise: of each round, how much its square counts for less. sure: standard errors by which a gain over the place
    `against` is taken for less.
    """

    def __init__(
        self,
        x: Floats,
        left: Floats,
        factors: Floats,
        noise: Floats,
        starts: Ints,
        sure: float = 0.0,
        against: Place = NOBODY,
    ) -> None:
        self._given = (x, left, factors, noise, starts)
        self._sure, self._against = sure, against
        self._tried: dict[Place, Floats] = {}

    def suppose(self, usual: Place) -> None:
        """Hold places against the usual one, if that surely gains over nobody's differing; else against the latter.

        Where nobody differs the usual strength costs something, while the best of many may gain by chance. So it takes
        less to be sure by it. Who scatters more counts for less here; but not when a strength is sought, since who
        differs most seems to scatter as well.
        """
        alone, counts = self.errors(NOBODY), np.diff(self._given[-1])
        own = (alone * counts.sum() / max(float(alone.sum()), 1e-300) + OWN) / (counts + OWN)
        gains = (alone - self.errors(usual)) / own
        surely = gains.sum() > SURE * _stray(gains)
        self._sure, self._against = (SURE, usual) if surely else (SOUGHT, NOBODY)

    def errors(self, place: Place) -> Floats:
        if place not in self._tried:
            *_, noise, starts = self._given
            self._tried[place] = np.add.reduceat(self.rounds(place) ** 2 / noise, starts[:-1])
        return self._tried[place]

    def rounds(self, place: Place) -> Floats:
        """Return the error of each round, foretold from the user's others."""
        x, left, factors, _, starts = self._given
        found = np.empty(len(x))
        left_out(found, x, left, factors, starts, _ridge(place, x.shape[1]))
        return found

    def bound(self, place: Place) -> float:
        """Return the error that it surely does not exceed, if that of what it is held against is what it is."""
        errors = self.errors(place)
        return float(errors.sum()) + self._sure * _stray(errors - self.errors(self._against))

    def best(self, *, weights: bool) -> Place:
        """Return the place of the least bound: by steps from a coarse grid, or from what it is held against."""
        coarse = [*np.arange(_LOWEST, _HIGHEST + 0.1, 2.0 * _STEP).tolist(), ALIKE]
        *given, starts = self._given
        users = min(int(np.searchsorted(starts, _ROUGHLY)), len(starts) - 1)
        x, left, factors, noise = (each[: starts[users]] for each in given)
        part = starts[: users + 1]
        some = self
        if users < len(starts) - 1:
            some = _Search(x, left, factors, noise, part, self._sure, self._against)
        grid = [(b, c) for b in coarse for c in (coarse if weights else [ALIKE])]
        best = min([*grid, self._against] if weights else grid, key=some.bound)
        step = _STEP
        while step > _FINEST:
            near = min(((_moved(best[0], i * step), _moved(best[1], j * step)) for i, j in _AROUND), key=self.bound)
            if self._less(near, best):
                best = near
            else:
                step /= 2.0
        return best

    def choose(self, *, weights: bool) -> list[Place]:
        """Return where nobody differs, where levels do if that is better, and where weights do if that is."""
        levels = self.best(weights=False)
        if not weights:
            return [NOBODY, levels, levels]
        levels = levels if self._less(levels, NOBODY) else NOBODY
        both = self.best(weights=True)
        return [NOBODY, levels, both if self._less(both, levels) else levels]

    def _less(self, place: Place, other: Place) -> bool:
        return self.bound(place) < self.bound(other) * (1.0 - 1e-9)  # less is rounding, and would go on and on


_AROUND = ((1, 0), (-1, 0), (0, 1), (0, -1))


def _moved(x: float, step: float) -> float:
    return x if x > _HIGHEST + _STEP else min(max(x + step, _LOWEST), _HIGHEST)  # "alike" stays where it is


def _ridge(place: Place, size: int) -> Floats:
    return np.asarray(np.exp(np.concatenate([[place[0]], np.full(size - 1, place[1])])))


def _stray(gains: Floats) -> float:
    """Return the standard error of a sum over users."""
    return math.sqrt(len(gains)) * float(gains.std())


def _usual(x: Floats) -> Place:
    """Return how strongly people are usually drawn to everybody's, as the place for these rewards."""
    level, weight = USUAL
    strength = weight * max(float((x[:, 1:] ** 2).mean()), 1e-300)
    return math.log(level), min(max(math.log(strength), _LOWEST), _HIGHEST)


def _noises(told: Floats, left: Floats) -> Floats:
    """Return how noisy each round is, in units of the mean: as those are of which about the same score is foretold.

    People agree on what is good, and less on what is bad. By squares that count alike it is the latter who would say
    what all differ by, and with a larger standard error.
    """
    groups = min(max(len(told) // LEAST_LEVEL, 1), LEVELS)
    which = np.searchsorted(np.quantile(told, np.arange(1, groups) / groups), told)
    squares = np.bincount(which, left**2, groups) / np.maximum(np.bincount(which, minlength=groups), 1)
    mean = max(float((left**2).mean()), 1e-300)
    return np.asarray(np.maximum(squares / mean, 0.05)[which])


class _Guess(NamedTuple):
    """What is believed before anything is known of μ: all objectives weigh alike, each `variance` about, so much noise.

    It counts as one user would, and is soon forgotten.
    """

    level: float
    variance: float
    noise: float


def _guess(reward: Floats, overall: Floats) -> _Guess:
    sums, count, objectives = reward.sum(axis=1), len(overall), reward.shape[1]
    # A level and a slope, the level drawn to 0 by one round's worth: with one round there is nothing else to go by.
    gram = np.array([[count + 1.0, sums.sum()], [sums.sum(), max(float(sums @ sums), 1e-300)]])
    level = float(np.linalg.solve(gram, [overall.sum(), sums @ overall])[1])
    center, middle = reward.mean(axis=0), float(overall.mean())
    # As if weights made all of g's variance, wherever the zeros of the scales are; of one round, as if they made g.
    apart = float(((reward - center) ** 2).mean()) * objectives
    variance = max(middle**2 / objectives / (float(center @ center) or 1.0), float(overall.var()) / (apart or math.inf))
    noise = float((overall - level * sums).var())
    return _Guess(level, max(variance, 1e-300), max(noise, 1e-9 * float(overall @ overall) / count, 1e-300))


def fit(rounds: Rounds, *, weights: bool = True) -> Foretelling:
    """Return what users have in common, from rounds of theirs.

    weights: whether these may differ as levels may; otherwise levels do, even if that is by chance, as who expects a
    bias would have it.

    >>> draw = np.random.default_rng(1)
    >>> reward, taste = draw.uniform(size=(400, 2)), np.repeat([[0.9, 0.1], [0.5, 0.5]], 20, axis=0)
    >>> overall = (reward * np.repeat(taste, 10, axis=0)).sum(axis=1) + 0.1 * draw.normal(size=400)
    >>> fit(Rounds(reward, overall, np.arange(0, 401, 10))).mean[1:].round(1).tolist()
    [0.7, 0.3]
    """
    return _fit(rounds, "all" if weights else "levels")


def alike(rounds: Rounds) -> Foretelling:
    """Return the pooled regression: nobody differs."""
    return _fit(rounds, "nothing")


def _fit(rounds: Rounds, differ: str) -> Foretelling:
    reward, overall, starts = rounds
    users, center, guess = summed(rounds), reward.mean(axis=0), _guess(reward, overall)
    x = np.column_stack([np.ones(len(overall)), reward - center])
    lengths = np.einsum("nd,nd->n", reward, reward)
    typical = float(lengths.mean()) or 1.0
    shares = np.where(lengths > LEAST_SQUARE, typical / np.maximum(lengths, LEAST_SQUARE), 0.0)
    telling = int((np.diff(starts) > 1).sum())
    choosing = differ != "nothing" and telling >= FEW
    # Where many said something and nobody twice, nothing tells a user from noise: a guess would do harm to all of them.
    guessing = differ != "nothing" and not choosing and (telling > 0 or len(starts) <= FEW)
    places, reference = [NOBODY] * 3, None
    noises, sure = np.ones(len(x)), 0.0
    for phi in ELASTICITIES if choosing and differ == "all" else ELASTICITIES[:1]:
        mixture = 1.0 - phi, phi * typical
        tried = _moments(users, mixture, center)
        pooled, _ = _everybody(tried, None, guess, guess.noise)
        if choosing and differ == "all" and reference is None:
            noises, sure = _noises(x @ pooled, overall - x @ pooled), SOUGHT
        search = _Search(x, overall - x @ pooled, 1.0 - phi + phi * shares, noises, starts)
        if sure:
            search.suppose(_usual(x))
        gains = np.zeros(0) if reference is None else reference - search.errors(places[-1])
        if reference is None or gains.sum() > max(sure * _stray(gains), 1e-9 * reference.sum()):
            if choosing:
                places = search.choose(weights=differ == "all")
            reference, factors, moments, mean = search.errors(places[-1]), mixture, tried, pooled
            errors = [float((search.rounds(place) ** 2).mean()) for place in places]
    ridge, noise = _ridge(places[-1], x.shape[1]), guess.noise
    for _ in range(_REPEATS):
        # Who chooses for users by what they care about gives them rewards that go with it, which a pooled regression
        # takes for weights that all have: so what they differ by is found anew once μ counts users by what they say.
        spread, spread_freedom = _spread(users, rounds, center, mean, guess)
        if guessing:
            ridge = np.clip(noise / np.maximum(spread, 1e-300), math.exp(_LOWEST), math.exp(ALIKE))
        mean, curvature = _everybody(moments, ridge if ridge[0] < _POOLED else None, guess, noise)
        noise, freedom = _noise(moments, mean, ridge, len(overall), guess)
    gram = moments[:, :-1, :-1]
    pull = ridge[:, None] * np.linalg.inv(gram + np.diag(ridge))
    apart = pull @ (noise * gram + gram * spread @ gram) @ pull.transpose(0, 2, 1)
    inverse = np.linalg.inv(curvature)
    before = np.diag([0.0, *[noise**2 / guess.variance] * len(center)])
    variance = inverse @ (apart.sum(axis=0) + before) @ inverse.T
    return Foretelling(
        center,
        mean,
        ridge,
        factors,
        (errors[0], errors[1], errors[2]),
        noise,
        spread,
        variance,
        curvature,
        (freedom, spread_freedom),
    )


def regressions(users: UserStatistics, common: Foretelling) -> Floats:
    """Return each user's intercept at r̄ and weights, (users, D+1): g is foretold as β·(1, r − r̄).

    >>> users = UserStatistics.zeros(users=2, objectives=1)
    >>> users.observe([0, 0, 0], [[0.0], [0.5], [1.0]], overall=[0.1, 0.5, 0.9])
    >>> rounds = Rounds(np.array([[0.0], [0.5], [1.0]]), np.array([0.1, 0.5, 0.9]), np.array([0, 3]))
    >>> regressions(users, fit(rounds)).round(2).tolist()
    [[0.5, 0.8], [0.5, 0.82]]
    """
    return _posterior(_moments(users, common.weights, common.center), common.mean, common.ridge)


def variances(users: UserStatistics, common: Foretelling) -> tuple[Floats, Floats]:
    """Return by how much these stray from the truth, as variances and their degrees of freedom, both (users, D+1).

    β − β̂ is made of what the user differs from μ and is not let in, of μ's own error, and of noise. The ridge is what
    foretells best, which need not be σ² over the spread, so that each part counts by itself; and a user is one of those
    whom μ was found from.
    """
    gram = _moments(users, common.weights, common.center)[:, :-1, :-1]
    inverse = np.linalg.inv(gram + np.diag(common.ridge))
    shrink = inverse * common.ridge
    share = np.linalg.inv(common.curvature) @ shrink.transpose(0, 2, 1) @ gram
    noisy = common.noise * inverse @ gram @ inverse
    own = share * common.spread
    between = common.mean_variance + np.diag(common.spread) - own - own.transpose(0, 2, 1)
    both = common.noise * shrink @ share @ inverse
    other = shrink @ between @ shrink.transpose(0, 2, 1) + both + both.transpose(0, 2, 1)
    parts = [np.maximum(np.diagonal(each, axis1=1, axis2=2), 0.0) for each in (noisy, other)]
    total = parts[0] + parts[1] + 1e-300
    # Satterthwaite: the degrees of freedom of a sum of variances that are known by degrees of their own.
    unsure = sum((part / total) ** 2 / max(one, 1.0) for part, one in zip(parts, common.freedom, strict=True))
    return total, np.asarray(1.0 / np.maximum(unsure, 1e-9))


def summed(rounds: Rounds) -> UserStatistics:
    """Return these users' sums."""
    counts = np.diff(rounds.starts)
    users = UserStatistics.zeros(users=len(counts), objectives=rounds.reward.shape[1])
    users.observe(np.repeat(np.arange(len(counts)), counts), rounds.reward, rounds.overall)
    return users


def _moments(users: UserStatistics, weights: tuple[float, float], center: Floats) -> Floats:
    """Return the moments of (1, r − r̄, g) with ŵ, (users, D+2, D+2)."""
    move = np.eye(users.objectives + 2)
    move[1:-1, 0] = -center
    plain, paper = weights
    mixed = plain * users.plain + paper * users.weighted if paper else plain * users.plain
    return np.asarray(move @ mixed @ move.T)


def _everybody(moments: Floats, ridge: Floats | None, guess: _Guess, noise: float) -> tuple[Floats, Floats]:
    """Return μ, and the matrix whose inverse it was found by; without a ridge, the pooled regression's."""
    whole = moments[:, :-1, :]
    if ridge is not None:  # users count by what their rounds say of them: Λ(A + Λ)⁻¹
        whole = ridge[:, None] * np.linalg.solve(moments[:, :-1, :-1] + np.diag(ridge), whole)
    total = whole.sum(axis=0)
    drawn = np.array([0.0, *[noise / guess.variance] * (len(total) - 1)])
    curvature = total[:, :-1] + np.diag(drawn)
    return np.linalg.solve(curvature, total[:, -1] + drawn * guess.level), curvature


def _noise(moments: Floats, mean: Floats, ridge: Floats, rounds: int, guess: _Guess) -> tuple[float, float]:
    """Return σ², and the degrees of freedom that it has; the guess counts as one round."""
    gram = moments[:, :-1, :-1]
    beta = _posterior(moments, mean, ridge)
    whole = np.concatenate([beta, np.full((len(beta), 1), -1.0)], axis=1)
    left = float(np.einsum("ui,uij,uj->", whole, moments, whole, optimize=True))
    used = float(np.trace(np.linalg.solve(gram + np.diag(ridge), gram), axis1=1, axis2=2).sum())
    freedom = max(rounds - used, 0.0) + 1.0
    return (max(left, 0.0) + guess.noise) / freedom, freedom


def _spread(users: UserStatistics, rounds: Rounds, center: Floats, mean: Floats, guess: _Guess) -> tuple[Floats, float]:
    """Return by how much levels and weights vary between users, as variances, and their degrees of freedom.

    Two rounds i and j of a user have independent noise, whatever it depends on: what μ leaves of them has
    E[e_i·e_j] = τ_b² + τ_c²·r_i·r_j, and a regression on all such pairs finds the two. A guess counts as one user: that
    weights vary by as much as they are large.
    """
    moments = _moments(users, (1.0, 0.0), center)
    counts = np.diff(rounds.starts)
    who = np.repeat(np.arange(len(counts)), counts)
    away = rounds.reward - center
    squares = np.einsum("nd,nd->n", away, away)
    left = (rounds.overall - mean[0] - away @ mean[1:]) ** 2
    sums = moments[:, :-1, -1] - moments[:, :-1, :-1] @ mean  # Σx·e

    def over(values: Floats) -> Floats:
        return np.asarray(np.bincount(who, values, minlength=len(counts)), dtype=float)

    pairs = np.maximum(counts - 1.0, 1.0)  # a user of n rounds counts as n, not as n² pairs
    ones = counts * (counts - 1.0) / pairs
    cross = ((moments[:, 0, 1:-1] ** 2).sum(axis=1) - over(squares)) / pairs
    both = ((moments[:, 1:-1, 1:-1] ** 2).sum(axis=(1, 2)) - over(squares**2)) / pairs
    right = np.stack([sums[:, 0] ** 2 - over(left), (sums[:, 1:] ** 2).sum(axis=1) - over(left * squares)]) / pairs
    matrix = np.array([[ones.sum(), cross.sum()], [cross.sum(), both.sum()]])
    several = float((counts > 1).sum())
    first = np.array([guess.noise, float(np.mean(mean[1:] ** 2))])
    if several < 2.0 or np.linalg.det(matrix) <= 1e-9 * matrix[0, 0] * matrix[1, 1]:
        found, freedom = first, 1.0
    else:
        raw = np.linalg.solve(matrix, right.sum(axis=1))
        strays = right - np.stack([ones * raw[0] + cross * raw[1], cross * raw[0] + both * raw[1]])
        spread = np.linalg.inv(matrix) @ strays
        raw = np.maximum(raw * several / (several - 1.0), 0.0)  # μ was found from the same users
        found = (several * raw + first) / (several + 1.0)
        freedom = min(max(2.0 * found[1] ** 2 / max(float((spread[1] ** 2).sum()), 1e-300), 1.0), several)
    return np.array([found[0], *[found[1]] * (len(mean) - 1)]), freedom


def _posterior(moments: Floats, mean: Floats, ridge: Floats) -> Floats:
    gram, right = moments[:, :-1, :-1], moments[:, :-1, -1]
    apart = np.linalg.solve(gram + np.diag(ridge), (right - gram @ mean)[:, :, None])[:, :, 0]
    return np.asarray(mean + apart)
