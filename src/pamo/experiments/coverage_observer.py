"""What the coverage study looks at: in every round of a trial, five upper bounds on every user's c̄·μ_i, and the truth.

The bounds are the kernels of `pamo.theory.variance`, of what the trial loop has learned by then. The last two are no
bounds but scores, and those are the policies' own kernels': the paper's PRUCB-HP, and `PrucbHpV(shared=False)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pamo.arrays import Floats, Ints
from pamo.compiling import count_of, inlined, kernel
from pamo.estimators import Estimate, Kind
from pamo.policies import Feedback, Policy, PrucbHp, PrucbHpV, Run, Shape
from pamo.policies.base import value_of
from pamo.priors import BIAS_RIDGE, NUMBERS, PAPER, RIDGE, Population, fit_arms, read_user, room_for
from pamo.reading import MEAN, PREFERENCE, PULLS, directed_at, inverse_at, scatter_at, squares_at, user_numbers
from pamo.rows import STATED_COUNT, STATED_SUM, pair, weighted_at
from pamo.simulation.learning import TrialPlan
from pamo.simulation.loop import Moment, Watched
from pamo.theory.variance import (
    ELLIPSOID,
    RESIDUALS,
    REWARDS,
    information,
    noise_limit,
    write_bonuses,
    write_stated_box,
)
from pamo.theory.variance import STATED as STATED_SHARE
from pamo.words import row_of

HIDDEN, ASKED, KNOWN, PAPERS, SMALLER = range(5)
"""The bounds: the derivation's for a hidden, a stated and a known preference, the paper's, the policy's score."""
KINDS = 5

_PAPER_SCORE, _POLICY_SCORE = PrucbHp.kernel, PrucbHpV.kernel


class Rules(NamedTuple):
    """What the bounds are made with; `scale` is a factor on the derivation's bonuses, below 1 to see the study fail."""

    failure: float
    delta: float
    kappa: float
    ridge: float
    omega: float
    bias: float
    most_noise: float
    scale: float
    users: float
    pairs: float
    level: float
    """The preference in each objective that the policy's ridge draws to; the derivation's draws to 0."""


RULES = len(Rules._fields)
MARKS = RULES + 3
"""In the observer's numbers: the rules, how many hyperparameters the two scores have and how many marks there are;
from here on the hyperparameters and the marks."""


class Seen(NamedTuple):
    """What was seen, a row a trial. A ratio is (c̄·μ_i − ĉ·r̂_i)/bonus: above 1, the bound was none."""

    worst: Floats
    """(trials, 5): the largest ratio of each bound over all rounds, users and arms."""
    used: Floats
    """(trials, 5): the same over arms pulled twice or more, for which the bound says more than that c̄·μ_i ≤ b."""
    worst_radius: Floats
    """(trials,): the largest ‖c̄ − ĉ‖ in V over β, over all rounds and users."""
    worst_noise: Floats
    """(trials,): the largest σ over its upper bound, likewise."""
    failed: Ints
    """(trials, marks, 5): how many pairs of user and arm each bound failed for in the rounds marked."""
    bonus: Floats
    """(trials, marks, 2, 5): the bonuses for one user and two arms, that user's best and one taken in turn."""
    error: Floats
    """(trials, marks, 2, 5): the error |c̄·μ_i − ĉ·r̂_i| of what each of them was added to."""


_WORST, _USED, _RADIUS, _NOISE, _AT_MARKS = 0, KINDS, 2 * KINDS, 2 * KINDS + 1, 2 * KINDS + 2
"""Places in a trial's notes: those of `Seen`; at each mark what failed, the bonuses and the errors."""
_FAILED, _BONUS, _ERROR, _AT_MARK = 0, KINDS, 3 * KINDS, 5 * KINDS


def notes_width(marks: int) -> int:
    """Return how many numbers are noted of a trial."""
    return _AT_MARKS + marks * _AT_MARK


def seen_in(notes: Floats, marks: int) -> Seen:
    """Return what the notes of all trials say."""
    noted = notes[:, _AT_MARKS:].reshape(len(notes), marks, _AT_MARK)
    pairs = (len(notes), marks, 2, KINDS)
    return Seen(
        worst=notes[:, _WORST:_USED],
        used=notes[:, _USED:_RADIUS],
        worst_radius=notes[:, _RADIUS],
        worst_noise=notes[:, _NOISE],
        failed=noted[:, :, _FAILED:_BONUS].astype(np.int64),
        bonus=noted[:, :, _BONUS:_ERROR].reshape(pairs),
        error=noted[:, :, _ERROR:].reshape(pairs),
    )


class Known(NamedTuple):
    """The arms, and one user's V⁻¹, as the theory's kernels read them."""

    pulls: Floats
    means: Floats
    covariances: Floats
    inverse: Floats
    factor: Floats


@kernel
def room_to_know(arms: int, objectives: int) -> Known:
    """Return room for so many arms."""
    square = (objectives, objectives)
    return Known(
        np.empty(arms),
        np.empty((arms, objectives)),
        np.empty((arms, objectives, objectives)),
        np.empty(square),
        np.empty(square),
    )


@inlined
def _know_arms(known: Known, first: int, count: int, tile: Floats, dims: Any) -> None:
    """Write so many arms of a tile: pulls, means and unbiased covariances."""
    scatter = scatter_at(count_of(dims))
    for j in range(count):
        pulls = tile[PULLS, j]
        known.pulls[first + j] = pulls
        for d in range(count_of(dims)):
            known.means[first + j, d] = tile[MEAN + d, j] if pulls > 0.0 else 0.0  # and not what a prior expects
            for e in range(d + 1):
                entry = tile[scatter + pair(d, e), j] / max(pulls - 1.0, 1.0)
                known.covariances[first + j, d, e] = known.covariances[first + j, e, d] = entry


@inlined
def _limits(known: Known, user: Floats, rules: Any, dims: Any) -> tuple[float, float]:
    """Write V⁻¹ whole; return β and σ's upper bound, from what is read of a user whose ridge draws to 0."""
    objectives, log_det = count_of(dims), 0.0
    inverse, factor = known.inverse, known.factor
    for d in range(objectives):
        for e in range(d + 1):
            entry = user[inverse_at(objectives) + pair(d, e)]
            inverse[d, e] = inverse[e, d] = entry
            for k in range(e):
                entry -= factor[d, k] * factor[e, k]
            factor[d, e] = math.sqrt(max(entry, 1e-300)) if d == e else entry / factor[e, e]
        log_det -= 2.0 * math.log(factor[d, d]) + math.log(rules.ridge)
    gained = information(log_det, rules.users, ELLIPSOID * rules.failure)
    noise = noise_limit(
        math.floor(user[directed_at(objectives)] + 0.5),
        user[squares_at(objectives)],
        gained,
        rules.bias,
        rules.kappa,
        rules.users,
        RESIDUALS * rules.failure,
        rules.most_noise,
    )
    return noise * math.sqrt(gained) + rules.bias, noise


@inlined
def _write_hidden(
    value: Floats, bonus: Floats, part: Floats, known: Known, user: Floats, radius: float, rules: Any, dims: Any
) -> None:
    """Write the hidden bound's two parts for every arm."""
    center, share = user[PREFERENCE : PREFERENCE + count_of(dims)], REWARDS * rules.failure
    write_bonuses(
        value,
        part,
        bonus,
        known.pulls,
        known.means,
        known.covariances,
        center,
        known.inverse,
        radius,
        np.zeros(count_of(dims)),
        rules.delta,
        rules.pairs,
        share,
    )
    for i in range(len(value)):
        bonus[i] = rules.scale * (bonus[i] + part[i])


@inlined
def _rules(numbers: Floats) -> Rules:
    return Rules(
        numbers[0],
        numbers[1],
        numbers[2],
        numbers[3],
        numbers[4],
        numbers[5],
        numbers[6],
        numbers[7],
        numbers[8],
        numbers[9],
        numbers[10],
    )


# ---- who chooses


@kernel
def _score_bound(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    rules, known = _rules(run.hyperparameters), room_to_know(offered, count_of(dims))
    part, bonus = np.empty(offered), np.empty(offered)
    _know_arms(known, 0, offered, arms, dims)
    radius, _ = _limits(known, user, rules, dims)
    _write_hidden(scores[:offered], bonus, part, known, user, radius, rules, dims)
    for j in range(offered):
        scores[j] += bonus[j]


@kernel
def _score_alike(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    scores.fill(0.0)  # ties are settled at random


@dataclass(frozen=True, kw_only=True)
class ByChance(Policy):
    """Chooses at random, and learns as the others do.

    >>> ByChance().label
    'by-chance'
    """

    id: ClassVar[str] = "by-chance"
    summary: ClassVar[str] = "a uniform pick"
    formula: ClassVar[str] = "0"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.OVERALL)
    reference: ClassVar[str] = "none"
    kernel: ClassVar[Any] = _score_alike
    reads_spread: ClassVar[bool] = True

    def estimate(self, objectives: int) -> Estimate:
        """ĉ as the derivation's, a ridge to 0 by the paper's weights."""
        return Estimate(kind=Kind.RIDGE, weighted=True, omega=float(objectives))


class ByBound(ByChance):
    """Chooses by the hidden bound itself."""

    id: ClassVar[str] = "by-bound"
    kernel: ClassVar[Any] = _score_bound
    rules: Rules

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        object.__setattr__(self, "rules", rules)

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """The rules."""
        return self.rules


# ---- what is seen


@inlined
def _ratio(short: float, bonus: float) -> float:
    """How much of the bonus is used up by what the estimate is short of the truth."""
    if bonus > 0.0:
        return short / bonus
    return np.inf if short > 0.0 else 0.0


@inlined
def _prior(level: float, rules: Any, dims: Any) -> Population:
    prior = Population(np.full(count_of(dims), level), np.zeros(NUMBERS))
    prior.numbers[RIDGE], prior.numbers[PAPER], prior.numbers[BIAS_RIDGE] = rules.ridge, rules.omega, -1.0
    return prior


@kernel
def look(moment: Moment, watched: Watched, plan: TrialPlan, dims: Any) -> None:
    """Hold the five bounds against the truth, for all users and arms of a trial in one round."""
    objectives, size, arms, users = count_of(dims), plan.offer_size, plan.arms, plan.users
    numbers, notes, t = watched.numbers, watched.notes[moment.trial], moment.t
    rules = _rules(numbers)
    papers, policys, marks = int(numbers[RULES]), int(numbers[RULES + 1]), int(numbers[RULES + 2])
    paper_numbers, policy_numbers = numbers[MARKS : MARKS + papers], numbers[MARKS + papers : MARKS + papers + policys]
    marked = -1
    for place in range(marks):
        marked = place if numbers[MARKS + papers + policys + place] == t else marked
    # A look takes some ten microseconds, of which making room takes one.
    known, working, width = room_to_know(arms, objectives), room_for(objectives), moment.arms.shape[2]
    value, bonus, part, scores = np.empty((KINDS, arms)), np.empty((KINDS, arms)), np.empty(arms), np.empty(width)
    center, half, exact, truths = np.empty(objectives), np.empty(objectives), np.zeros(objectives), np.empty(arms)
    user, centred = np.empty(user_numbers(objectives)), np.empty(user_numbers(objectives))
    nothing, level = _prior(0.0, rules, dims), _prior(rules.level, rules, dims)
    stream, scratch = np.zeros(4, dtype=np.uint64), np.empty((objectives + 1, max(width, objectives + 1)))
    paper_run, policy_run = Run(paper_numbers, stream, scratch), Run(policy_numbers, stream, scratch)
    for block in range(len(moment.arms)):
        _know_arms(known, block * size, size, moment.arms[block], dims)
    # What arms have in common, as the policy would know it now; of what is watched nothing is changed.
    tiles, common = moment.arms.copy(), moment.common.copy()
    fit_arms(tiles, common, None, np.empty((1, 2)), dims)
    seen = moment.arms.copy()  # as the paper's policy knows them: without a prior
    for i in range(arms):
        for d in range(objectives):
            if known.pulls[i] == 0.0:
                seen[i // size, MEAN + d, i % size] = 0.0
    for n in range(users):
        row, truth, best, sigma = row_of(moment.users.rows, moment.first + n), moment.truth[n], 0, 0.0
        for d in range(objectives):  # an entry is uniform, this much to each side but never below 0
            sigma = max(sigma, min(numbers[len(numbers) - 1], truth[d]) * math.sqrt(rules.omega / 3.0))
        for i in range(arms):
            truths[i] = 0.0
            for d in range(objectives):
                truths[i] += truth[d] * moment.means[i, d]
            best = i if truths[i] > truths[best] else best
        read_user(user, row, nothing, False, working, dims)
        read_user(centred, row, level, False, working, dims)
        radius, noise = _limits(known, user, rules, dims)
        distance = 0.0  # in V, by the row's weighted moments
        for d in range(objectives):
            away = user[d] - truth[d]
            distance += rules.ridge * away * away
            for e in range(objectives):
                entry = row[weighted_at(objectives) + pair(max(d, e) + 1, min(d, e) + 1)]
                distance += rules.omega * entry * away * (user[e] - truth[e])
        notes[_RADIUS] = max(notes[_RADIUS], math.sqrt(max(distance, 0.0)) / radius)
        notes[_NOISE] = max(notes[_NOISE], sigma / noise)
        _write_hidden(value[HIDDEN], bonus[HIDDEN], part, known, user, radius, rules, dims)
        stated = row_of(moment.users.stated, moment.first + n)
        total, squares = stated[STATED_SUM : STATED_SUM + objectives], stated[STATED_SUM + objectives :]
        share = STATED_SHARE * rules.failure
        write_stated_box(center, half, stated[STATED_COUNT], total, squares, rules.users, rules.delta, share)
        for kind in (ASKED, KNOWN):
            asked = kind == ASKED
            write_bonuses(
                value[kind],
                part,
                bonus[kind],
                known.pulls,
                known.means,
                known.covariances,
                center if asked else truth,
                known.inverse,
                0.0,
                half if asked else exact,
                rules.delta if asked else np.inf,
                rules.pairs,
                (REWARDS if asked else 1.0) * rules.failure,
            )
            for i in range(arms):
                bonus[kind, i] = rules.scale * (bonus[kind, i] + part[i])
        for block in range(len(moment.arms)):
            tile, first = seen[block], block * size
            _PAPER_SCORE(scores, size, t, tile, user, moment.common, paper_run, dims)
            for j in range(size):
                value[PAPERS, first + j] = value[HIDDEN, first + j]
                bonus[PAPERS, first + j] = scores[j] - value[HIDDEN, first + j]
            _POLICY_SCORE(scores, size, t, tiles[block], centred, common, policy_run, dims)
            for j in range(size):
                value[SMALLER, first + j] = value_of(tiles[block], j, centred, dims)
                bonus[SMALLER, first + j] = scores[j] - value[SMALLER, first + j]
        for kind in range(KINDS):
            for i in range(arms):
                ratio = _ratio(truths[i] - value[kind, i], bonus[kind, i])
                notes[_WORST + kind] = max(notes[_WORST + kind], ratio)
                if known.pulls[i] >= 2.0:
                    notes[_USED + kind] = max(notes[_USED + kind], ratio)
                if marked >= 0 and ratio > 1.0:
                    notes[_AT_MARKS + marked * _AT_MARK + _FAILED + kind] += 1.0
            if marked >= 0 and n == moment.trial % users:
                at = _AT_MARKS + marked * _AT_MARK + kind
                for which in range(2):
                    i = best if which == 0 else (moment.trial // users) % arms
                    notes[at + _BONUS + which * KINDS] = bonus[kind, i]
                    notes[at + _ERROR + which * KINDS] = abs(truths[i] - value[kind, i])
