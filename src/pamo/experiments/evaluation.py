"""What would other weights, or another policy, have got? Answers from a log of decisions and their propensities.

Each round's weight is w = π(a)/p: the chance with which the target would have chosen the arm, over that with which it
was chosen. With v what came of it, and q̂ what a model foretells:

    IPS     mean of w·v                                   unbiased, and the widest
    SNIPS   Σ w·v / Σ w                                   steadier: what the weights lack or exceed cancels
    DR      mean of Σ_b π(b)·q̂(b) + w·(v − q̂(a))          unbiased whatever the model, and narrower the better it is
    replay  mean of v over rounds that are kept with a chance in proportion to w; the target learns from these alone

π and q̂ are formed from the rounds before, so that a round's term is right on average given all that came before it,
also where the log was itself made by a policy that learned. IPS, SNIPS and DR then say what the target would have got
in these rounds knowing what was known; replay says what it would have got had it learned from its own choices.

References: Li, Chu, Langford, Wang, "Unbiased offline evaluation of contextual-bandit-based news article recommendation
algorithms", WSDM 2011 (replay); Swaminathan, Joachims, "The self-normalized estimator for counterfactual learning",
NeurIPS 2015 (SNIPS); Dudík, Langford, Li, "Doubly robust policy evaluation and learning", ICML 2011 (DR).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from pamo.arrays import Floats, Ints
from pamo.errors import InputError, unknown_name
from pamo.estimators import Kind, common_to, student_t
from pamo.experiments.logs import Log
from pamo.experiments.tables import Table
from pamo.policies import Policy, propensities
from pamo.progress import Progress, unseen
from pamo.statistics import ArmStatistics, UserStatistics
from pamo.streams import POLICY, stream_for

METHODS = ("logged", "replay", "ips", "snips", "dr")
"""What was got, and the four ways of saying what would have been."""
EVERYONE = "all"
"""The group of all rounds."""
UNSUPPORTED = 0.05
"""The share of choices beyond which a log that could not have made them answers nothing."""
FEW = 30
"""Rounds of equal weight below which an interval by Student's t is not to be trusted."""
CERTAIN = 1.0 - 1e-9
"""A propensity from here on: nothing else could have been chosen."""
DRAWS = 10
"""How often a target that draws is asked for its chances. The estimates are unbiased with any number."""
REFIT = 1.1
"""The growth of a log, since the last time, at which what its users have in common is fitted anew."""


class Learner(Protocol):
    """A target at work: it says its chances in a round, and then sees what came of a choice."""

    def chances(self, user: int, offer: Ints) -> Floats:
        """Return the chance of each arm of the offer."""

    def observe(self, user: int, arm: int, reward: Floats, overall: float) -> None:
        """Learn from one round: the reward on [0, 1], NaN for what was not given."""


Target = Callable[[Log], Learner]
"""Begins anew, knowing nothing of the log but its sizes and names."""


class _Means:
    """Means so far of some columns by row, drawn by one more observation towards the mean of all."""

    def __init__(self, rows: int, columns: int) -> None:
        self._sum, self._count = np.zeros((rows, columns)), np.zeros((rows, columns))
        self._all, self._of = np.zeros(columns), np.zeros(columns)

    def __call__(self, rows: Ints | int) -> Floats:
        common = self._all / np.maximum(self._of, 1.0)
        return np.asarray((self._sum[rows] + common) / (self._count[rows] + 1.0))

    def add(self, row: int, values: Floats) -> None:
        given = ~np.isnan(values)
        taken = np.where(given, values, 0.0)
        self._sum[row] += taken
        self._count[row] += given
        self._all += taken
        self._of += given


def by_weights(weights: Mapping[str, float]) -> Target:
    """Return the target that gives everybody the arm of the greatest weighted mean so far, scores being on [0, 1]."""
    return partial(_begin_by_weights, dict(weights))


def _begin_by_weights(weights: Mapping[str, float], log: Log) -> Learner:
    names = [one.name for one in log.objectives]
    for name in weights:
        if name not in names:
            raise unknown_name("objective", name, names)
    if not weights or not all(map(math.isfinite, weights.values())):
        raise InputError(f"expected finite weights by objective, got {dict(weights)}")
    return _ByWeights(np.array([weights.get(name, 0.0) for name in names]), len(log.arms))


class _ByWeights:
    def __init__(self, weights: Floats, arms: int) -> None:
        self._weights, self._means = weights, _Means(arms, len(weights))

    def chances(self, user: int, offer: Ints) -> Floats:
        scores = self._means(offer) @ self._weights
        best = scores == scores.max()
        return np.asarray(best / best.sum())

    def observe(self, user: int, arm: int, reward: Floats, overall: float) -> None:
        self._means.add(arm, reward)


def by_chance(log: Log) -> Learner:
    """Return the target that chooses at random: a yardstick."""

    class Random:
        def chances(self, user: int, offer: Ints) -> Floats:
            return np.full(len(offer), 1.0 / len(offer))

        def observe(self, user: int, arm: int, reward: Floats, overall: float) -> None:
            pass

    return Random()


def by_policy(policy: Policy, *, seed: int = 1) -> Target:
    """Return the target that chooses as a policy does, which learns from the rounds before."""
    return partial(_begin_by_policy, policy, seed)


def _begin_by_policy(policy: Policy, seed: int, log: Log) -> Learner:
    kind = policy.estimate(len(log.objectives)).kind
    own = policy.per_user or policy.remember is not None
    if own or kind in (Kind.KNOWN, Kind.STATED):
        what = "each user's own pulls of each arm" if own else "preferences that users say"
        raise InputError(
            f"{policy.id} reads {what}, which a log does not have: choose another policy, such as recommended, "
            "or ask what weights would have got"
        )
    return _ByPolicy(policy, log, seed)


class _ByPolicy:
    def __init__(self, policy: Policy, log: Log, seed: int) -> None:
        objectives = len(log.objectives)
        self._policy, self._estimate = policy, policy.estimate(objectives)
        self._arms = ArmStatistics.zeros(arms=len(log.arms), objectives=objectives)
        self._users = UserStatistics.zeros(users=len(log.users), objectives=objectives)
        self._stream, self._horizon = stream_for(seed, 0, POLICY), max(1, round(len(log) / len(log.users)))
        self._seen, self._fitted = 0, 0.0
        self._common: Any = None

    def chances(self, user: int, offer: Ints) -> Floats:
        if self._estimate.shared and self._seen >= REFIT * self._fitted:
            self._common, self._fitted = common_to(self._users, self._estimate), max(self._seen, 1.0)
        return propensities(
            self._policy,
            arms=self._arms,
            users=self._users,
            user=user,
            offer=offer,
            horizon=self._horizon,
            population=self._common,
            stream=self._stream,
            draws=DRAWS,
        )

    def observe(self, user: int, arm: int, reward: Floats, overall: float) -> None:
        score = None if math.isnan(overall) else overall
        self._arms.observe(arm, reward, score)
        self._users.observe(user, reward, score)
        self._seen += 1


class Chances(NamedTuple):
    """What a target would have done in each round of a log, and what a model foretold of it.

    chosen: (n,), the chance of the arm that was chosen. expected: (n, D+1), what the model foretells of the target's
    choice; predicted: of the arm that was chosen. kept: (n,), the rounds that replay keeps.
    """

    chosen: Floats
    expected: Floats
    predicted: Floats
    kept: Any


def chances_of(log: Log, target: Target, *, seed: int = 1, progress: Progress = unseen) -> Chances:
    """Let a target go through a log: once learning from all rounds, once from those alone that replay keeps."""
    rewards, count = log.rewards, len(log)
    learner, model = target(log), _Model(log)
    chosen, expected, predicted = np.empty(count), np.empty_like(log.values), np.empty_like(log.values)
    for t in range(count):
        user, arm, offer = int(log.user[t]), int(log.arm[t]), log.offer(t)
        chances, place = learner.chances(user, offer), offer == arm
        foretold = model.foretell(user, offer)
        chosen[t], expected[t], predicted[t] = chances[place][0], chances @ foretold, foretold[place][0]
        learner.observe(user, arm, rewards[t], log.values[t, -1])
        model.observe(user, arm, log.values[t])
        progress(0.5 / count)
    # The largest factor with which all the weights seen are chances: rejection sampling.
    possible = chosen > 0.0
    factor = float((log.propensity[possible] / chosen[possible]).min()) if possible.any() else 1.0
    kept, draws, learner = np.zeros(count, dtype=bool), np.random.default_rng(seed).random(count), target(log)
    for t in range(count):
        user, arm, offer = int(log.user[t]), int(log.arm[t]), log.offer(t)
        chance = float(learner.chances(user, offer)[offer == arm][0])
        kept[t] = draws[t] * log.propensity[t] < factor * chance
        if kept[t]:
            learner.observe(user, arm, rewards[t], log.values[t, -1])
        progress(0.5 / count)
    return Chances(chosen, expected, predicted, kept)


class _Model:
    """What a round gives: the arm's mean so far, plus how far the user's rounds were from their arms' means."""

    def __init__(self, log: Log) -> None:
        columns = log.values.shape[1]
        self._arms = _Means(len(log.arms), columns)
        self._sum, self._count = np.zeros((len(log.users), columns)), np.ones((len(log.users), columns))

    def foretell(self, user: int, offer: Ints) -> Floats:
        return np.asarray(self._arms(offer) + self._sum[user] / self._count[user])

    def observe(self, user: int, arm: int, values: Floats) -> None:
        apart = values - self._arms(arm)
        given = ~np.isnan(apart)
        self._sum[user] += np.where(given, apart, 0.0)
        self._count[user] += given
        self._arms.add(arm, values)


@dataclass(frozen=True)
class Evaluation:
    """What was found of one target.

    rows: for each group, measure (objective or overall score) and method: rounds, value, low, high (95 %), and
    difference, difference_low, difference_high to what was got. unsupported: the share of the target's choices that the
    log could not have made. effective: as many rounds of equal weight say as much. mean_weight: 1 on average, and less
    where the target chooses what the log hardly could. reason: why there is no answer, "" where there is one.
    """

    rows: Table
    rounds: int
    unsupported: float
    effective: float
    mean_weight: float
    largest_weight: float
    reason: str


def evaluate(log: Log, target: Target, seed: int = 1, progress: Progress = unseen) -> Evaluation:
    """Say what a target would have got in the rounds of a log, by objective, for the overall score and for groups.

    Intervals are over rounds: they say how sure one can be of these users in these rounds, not of other users.
    """
    return judged(log, chances_of(log, target, seed=seed, progress=progress))


def judged(log: Log, chances: Chances) -> Evaluation:
    """Return what comes of a target's chances."""
    weight = chances.chosen / log.propensity
    stuck = log.propensity >= CERTAIN
    unsupported = float(np.where(stuck, 1.0 - chances.chosen, 0.0).mean())
    reason = ""
    if unsupported > UNSUPPORTED:
        reason = (
            f"this log cannot say: in {stuck.mean():.0%} of its rounds nothing else could have been chosen (propensity "
            f"1), and {unsupported:.0%} of the choices asked about are others. Let a policy choose that gives every "
            "arm a chance, such as prts (pamo serve --policy prts), for a while, and ask again of its rounds"
        )
    rows = []
    names = [EVERYONE, *sorted({name for name in log.group if name})]
    groups = np.array(log.group)
    for name in names if not reason else ():
        inside = np.ones(len(log), dtype=bool) if name == EVERYONE else groups == name
        for column, measure in enumerate(log.measures):
            use = inside & ~np.isnan(log.values[:, column])
            if use.sum() > 1:
                foretold = (chances.expected[use, column], chances.predicted[use, column])
                found = estimates(weight[use], log.values[use, column], chances.kept[use], *foretold)
                rows += [
                    {"group": name, "measure": measure, "method": method, **one._asdict()}
                    for method, one in found.items()
                ]
    return Evaluation(
        Table.from_rows(rows),
        len(log),
        unsupported,
        _effective(weight),
        float(weight.mean()),
        float(weight.max()),
        reason,
    )


class Estimated(NamedTuple):
    """A mean with its 95 % interval, and its difference to what was got; rounds: that it rests on."""

    rounds: int
    value: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float


def estimates(weight: Floats, value: Floats, kept: Any, expected: Floats, predicted: Floats) -> dict[str, Estimated]:
    """Return what each of `METHODS` makes of some rounds.

    weight: π(a)/p. value: what came of the choice. kept: whether replay keeps the round. expected: Σ_b π(b)·q̂(b).
    predicted: q̂(a).

    >>> ones = np.ones(4)
    >>> found = estimates(np.array([2.0, 0.0, 2.0, 0.0]), np.array([1.0, 0.0, 3.0, 1.0]), ones > 0, ones, ones)
    >>> [round(found[method].value, 3) for method in METHODS]
    [1.25, 1.25, 2.0, 2.0, 2.0]
    """
    found = {"logged": _mean(value, value, len(value))}
    for method, shares in (("replay", kept.astype(float)), ("snips", weight)):
        total = float(shares.sum())
        if total > 0.0:
            center = float((shares * value).sum()) / total
            # A ratio of means moves with a round by this, to first order; a round also draws the ratio towards itself,
            # and its residual is made larger by what that hides.
            leverage = np.minimum(shares / total, 1.0 - 1e-9)
            moves = len(value) * shares / total * (value - center) / np.sqrt(1.0 - leverage)
            found[method] = _mean(center + moves, value, _effective(shares), center)
        else:
            found[method] = Estimated(0, *[math.nan] * 6)
    found["ips"] = _mean(weight * value, value, _effective(weight))
    found["dr"] = _mean(expected + weight * (value - predicted), value, len(value))
    rests = {"replay": int(kept.sum())}
    return {method: found[method]._replace(rounds=rests.get(method, len(value))) for method in METHODS}


def _mean(terms: Floats, got: Floats, effective: float, center: float | None = None) -> Estimated:
    """Return the mean of terms and of their differences to what was got, with Student's intervals.

    effective: the rounds that say as much, whose number is the freedom. center: the mean, where it is not the terms'.
    """
    count = len(terms)
    factor = student_t(max(1, int(effective) - 1)) if effective >= 2.0 else math.nan
    mean, ends = float(terms.mean()) if center is None else center, []
    for middle, values in ((mean, terms), (mean - float(got.mean()), terms - got)):
        half = factor * float(values.std(ddof=1)) / math.sqrt(count)
        ends += [middle, middle - half, middle + half]
    return Estimated(count, *ends)


def _effective(weight: Floats) -> float:
    """Return how many rounds of equal weight say as much as these: (Σw)²/Σw²."""
    squares = float(np.square(weight).sum())
    return float(weight.sum()) ** 2 / squares if squares > 0.0 else 0.0


def text_of(found: Evaluation) -> str:
    """Return what was found as lines of text: for each group a line a measure."""
    if found.reason:
        return found.reason
    lines = [
        f"{found.rounds:,} rounds, as good as {found.effective:,.0f} of equal weight; mean weight "
        f"{found.mean_weight:.3f} (1 expected), largest {found.largest_weight:.1f}; {found.unsupported:.1%} of the "
        "choices could not have been made in the log"
    ]
    if found.effective < FEW:
        lines.append(f"fewer than {FEW} rounds of equal weight say too little for these intervals to be trusted")
    wide = 2 + max(len(name) for name in found.rows.distinct("measure"))
    for group in found.rows.distinct("group"):
        part = found.rows.where(group=group)
        lines += [
            "",
            f"{group} ({part['rounds'][0]:,} rounds, replay keeps {part.where(method='replay')['rounds'][0]:,})",
        ]
        lines.append(f"  {'':<{wide}}{'method':<8}{'mean':>10}   {'95 % interval':<24}{'to what was got':<34}".rstrip())
        for measure in part.distinct("measure"):
            for row in part.where(measure=measure).rows():
                name = measure if row["method"] == METHODS[0] else ""
                line = f"  {name:<{wide}}{row['method']:<8}{_shown(row['value']):>10}   "
                line += f"{_shown(row['low'])} … {_shown(row['high'])}".ljust(24)
                if row["method"] != METHODS[0]:
                    low, high = (_shown(row[f"difference_{end}"], "+") for end in ("low", "high"))
                    line += f"{_shown(row['difference'], '+')} ({low} … {high})"
                lines.append(line.rstrip())
    return "\n".join(lines)


def _shown(value: float, sign: str = "") -> str:
    return "–" if math.isnan(value) else format(value, f"{sign}.4g" if abs(value) >= 1000 else f"{sign}.4f")
