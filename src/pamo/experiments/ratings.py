"""Real people's ratings: which weights, which bias and how much sharing foretell a user's overall scores best?

Each user's ratings are split at random. From the first few, every way of estimating forms the user's preference; the
rest judge it, by the error of the overall score foretold, and by the share of pairs of items put into the right order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats, Ints
from pamo.compiling import kernel
from pamo.errors import InputError
from pamo.estimators import Estimate, Kind, biases, common_to, preferences
from pamo.experiments.figures import label, legend_above, panels
from pamo.experiments.tables import Table
from pamo.priors import BIAS_RIDGE, NOISE, PLAIN, RIDGE, Population
from pamo.priors.foretelling import Rounds, alike, fit, left_out, regressions
from pamo.progress import Progress, unseen
from pamo.ratings import Ratings
from pamo.simulation import Summary, summarize
from pamo.simulation.plot import (
    AMBER,
    BLACK,
    BLUE,
    DASHED,
    DOTTED,
    FOREST,
    GREEN,
    GREY,
    MIXED,
    PURPLE,
    SKY,
    VERMILION,
    Style,
    draw_line,
)
from pamo.statistics import UserStatistics
from pamo.streams import ENVIRONMENT, Stream, shuffle, stream_for

BASELINE = "foretelling prior"
"""What the others are compared with: what the engine foretells by (`pamo.priors.foretelling`). Bias and weights are
drawn to what users have in common, as strongly as foretells rounds left out best."""
ACTING = "shared, fitted weights"
"""What policies act by: the prior's likelihood chooses."""
EQUAL, EVERYBODY = "equal weights", "everybody's weights"
"""Two yardsticks that know nothing of the user: 1/D on each objective, and the mean of the fitted prior."""
POOLED, POOLED_BIAS, OWN = "pooled regression", "pooled regression, bias", "own regression"
"""What a statistician would try first, each with an intercept: one regression for all, the same with a bias a user that
is drawn towards 0, and a ridge regression for each user alone; how strongly is chosen by rounds left out."""

STYLES: Mapping[str, Style] = {
    EQUAL: (GREY, DOTTED),
    EVERYBODY: (GREY, "-"),
    POOLED: (PURPLE, DOTTED),
    POOLED_BIAS: (PURPLE, DASHED),
    OWN: (SKY, "-"),
    BASELINE: (BLACK, "-"),
    "own, paper's weights": (AMBER, "-"),
    "own, plain weights": (GREEN, "-"),
    "shared, paper's weights": (VERMILION, "-"),
    "shared, paper's weights, bias": (VERMILION, DASHED),
    "shared, plain weights": (BLUE, "-"),
    "shared, plain weights, bias": (BLUE, DASHED),
    ACTING: (FOREST, "-"),
    f"{ACTING}, bias": (FOREST, DASHED),
    f"{ACTING}, non-negative": (FOREST, MIXED),
}
"""Each way's colour and line: a colour for the weights, broken where there is a bias."""


FITTED = ("elasticity", "preference_variance", "noise", "bias_variance")
"""What is fitted of the prior: φ, τ², σ² and the variance of the bias."""


class Judged(NamedTuple):
    """One way's outcome on one split: a user's mean squared error, share of pairs in order, and what was fitted."""

    squares: Floats
    ordered: Floats
    fitted: tuple[float, ...]
    """The numbers of `FITTED`; NaN where there is none."""


def ways(objectives: int) -> dict[str, Estimate]:
    """Return the ways of estimating by `pamo.estimators`, by name; the two yardsticks are known beforehand.

    >>> len(ways(4)), ways(4)["own, paper's weights"].omega
    (11, 4.0)
    """
    known, ridge = Estimate(kind=Kind.KNOWN), Estimate(kind=Kind.RIDGE)
    found = {
        EQUAL: known,
        EVERYBODY: known,
        "own, paper's weights": Estimate(kind=Kind.RIDGE, weighted=True, omega=float(objectives)),
        "own, plain weights": ridge,
    }
    for name, elasticity in (("paper's", 1.0), ("plain", 0.0), ("fitted", None)):
        for bias in (False, True):
            found[f"shared, {name} weights{', bias' if bias else ''}"] = Estimate(
                kind=Kind.RIDGE, shared=True, bias=bias, elasticity=elasticity
            )
    found[f"{ACTING}, non-negative"] = Estimate(kind=Kind.RIDGE, shared=True, non_negative=True)
    return found


@kernel
def _shuffle_within(order: Ints, starts: Ints, stream: Stream) -> None:
    for n in range(len(starts) - 1):
        shuffle(stream, order[starts[n] : starts[n + 1]])


@kernel
def _share_in_order(scores: Floats, overall: Floats, starts: Ints, shares: Floats) -> None:
    """Write each user's share of pairs with different overall scores that the scores put in order; a tie is a half."""
    for n in range(len(starts) - 1):
        pairs, right = 0.0, 0.0
        for i in range(starts[n], starts[n + 1]):
            for j in range(starts[n], i):
                apart = overall[i] - overall[j]
                if apart != 0.0:
                    along = (scores[i] - scores[j]) * apart
                    pairs += 1.0
                    right += 1.0 if along > 0.0 else (0.5 if along == 0.0 else 0.0)
        shares[n] = right / pairs if pairs > 0.0 else np.nan


def share_in_order(scores: npt.ArrayLike, overall: npt.ArrayLike, starts: npt.ArrayLike) -> Floats:
    """Return for each user the share of pairs of items, of different overall scores, that the scores put in order.

    starts: where each user's items begin, and after the last where they end. A tie of scores counts a half; a user
    without such a pair is NaN.

    >>> share_in_order([0.1, 0.2, 0.3, 0.5, 0.5], [1.0, 3.0, 2.0, 4.0, 4.0], [0, 3, 5]).round(2).tolist()
    [0.67, nan]
    """
    places = np.asarray(starts, dtype=np.int64)
    shares = np.empty(len(places) - 1)
    _share_in_order(np.asarray(scores, dtype=float), np.asarray(overall, dtype=float), places, shares)
    return shares


def measure(
    ratings: Ratings,
    *,
    training: Sequence[int] = (5, 10, 50),
    held_out: int = 5,
    splits: int = 6,
    seed: int = 1,
    same_users: bool = False,
    progress: Progress = unseen,
) -> Table:
    """Return a row for each number of ratings to learn from and each way of estimating.

    training: how many of a user's ratings are learned from; the user's others judge. held_out: how many others a user
    has at least. splits: over how many random splits each user's errors are averaged, by pairs that turn each other
    round. same_users: whether all numbers are measured on the users who have enough for the largest, or each on all who
    have enough for it. Numbers that fewer than two users have enough ratings for are skipped: `unmeasurable` says which
    and why.

    Columns: training, users, ratings (held out, in one split), way; rmse, on the overall score's own scale, every user
    counting alike, and pooled, every rating counting alike; difference, difference_low, difference_high: rmse less that
    of `BASELINE`, with the 95 % interval over users; ordered: the mean over users of the share of held-out pairs put in
    order, and ordered_difference, ordered_low, ordered_high to `BASELINE`; elasticity (φ), preference_variance (τ²),
    noise (σ²) and bias_variance as fitted, where all ratings are on [0, 1], means over the splits.
    """
    if not training or min(training) < 1 or held_out < 1 or splits < 1 or seed < 0:
        raise InputError(
            f"expected training ≥ 1, held_out ≥ 1, splits ≥ 1 and seed ≥ 0, got {training=}, {held_out=}, {splits=}, "
            f"{seed=}"
        )
    said = unmeasurable(ratings, training=training, held_out=held_out)
    counts, sizes = ratings.counts, sorted(set(training) - set(said))
    if not sizes:
        raise InputError(said[min(said)])
    rows = []
    for size in sizes:
        chosen = np.flatnonzero(counts >= (sizes[-1] if same_users else size) + held_out)
        judged: dict[str, list[Judged]] = {name: [] for name in STYLES}
        for split in range(splits):
            for name, outcome in _one_split(ratings, chosen, size, seed, split).items():
                judged[name].append(outcome)
            progress(1.0 / (len(sizes) * splits))
        rows.extend(_rows(judged, size, counts[chosen] - size, ratings.scale))
    return Table.from_rows(rows)


def unmeasurable(ratings: Ratings, *, training: Sequence[int], held_out: int = 5) -> dict[int, str]:
    """Return, for each number of ratings to learn from that cannot be measured, why."""
    said = {}
    for size in sorted(set(training)):
        users = int((ratings.counts >= size + held_out).sum())
        if users == 0:
            said[size] = (
                f"no user has enough ratings to learn from {size} and be judged by {held_out}: the most that a user "
                f"has is {ratings.counts.max()}; ask for fewer"
            )
        elif users == 1:
            said[size] = (
                f"only one user has the {size + held_out} ratings to learn from {size} and be judged by {held_out}; "
                "expected two or more, for users to be compared"
            )
    return said


def _order_of(ratings: Ratings, seed: int, split: int) -> Ints:
    """Return the ratings in the order of one split, each user's together: the first are learned from.

    Every second split is the one before turned round, so that what was learned from judges: a split that is easy by
    chance is followed by a hard one, and means of errors stray less.
    """
    order = np.arange(len(ratings.overall))
    _shuffle_within(order, ratings.starts, stream_for(seed, split // 2, ENVIRONMENT))
    if split % 2:
        order = order[np.repeat(ratings.starts[:-1] + ratings.starts[1:] - 1, ratings.counts) - np.arange(len(order))]
    return order


def _one_split(ratings: Ratings, chosen: Ints, size: int, seed: int, split: int) -> dict[str, Judged]:
    """Learn from `size` ratings of each chosen user and judge by the others, in every way."""
    order = _order_of(ratings, seed, split)  # smaller sizes are parts of larger
    begins, ends = ratings.starts[chosen], ratings.starts[chosen + 1]
    seen = order[(begins[:, None] + np.arange(size)).ravel()]
    others = ends - begins - size
    starts = np.concatenate([[0], np.cumsum(others)])
    row = np.repeat(np.arange(len(chosen)), others)
    unseen = order[np.arange(starts[-1]) - starts[row] + begins[row] + size]
    users = UserStatistics.zeros(users=len(chosen), objectives=ratings.reward.shape[1])
    users.observe(np.repeat(np.arange(len(chosen)), size), ratings.reward[seen], ratings.overall[seen])
    reward, overall = ratings.reward[unseen], ratings.overall[unseen]
    estimated = {name: _estimated(users, name, estimate) for name, estimate in ways(users.objectives).items()}
    rounds = Rounds(ratings.reward[seen], ratings.overall[seen], np.arange(0, len(seen) + 1, size))
    estimated |= _regressions(users, rounds)
    found = {}
    for name in STYLES:
        preference, bias, fitted = estimated[name]
        scores = np.einsum("nd,nd->n", preference[row], reward)
        errors = bias[row] + scores - overall
        found[name] = Judged(
            np.bincount(row, errors * errors) / others, share_in_order(scores, overall, starts), fitted
        )
    return found


_Estimated = tuple[Floats, Floats, tuple[float, ...]]
"""Every user's ĉ and bias, and the numbers of `FITTED`."""


def _estimated(users: UserStatistics, name: str, estimate: Estimate) -> _Estimated:
    """Return every user's ĉ and bias, and what the prior was fitted to be."""
    count, objectives = len(users.rounds), users.objectives
    none = np.zeros(count)
    if estimate.shared:
        common = common_to(users, estimate)
        preference = preferences(users, estimate, population=common)
        return preference, biases(users, preference, common), _numbers_of(common)
    known = None
    if name == EQUAL:
        known = np.full((count, objectives), 1.0 / objectives)
    elif name == EVERYBODY:
        known = np.broadcast_to(common_to(users, ways(objectives)[ACTING]).mean, (count, objectives))
    return preferences(users, estimate, known), none, (math.nan,) * len(FITTED)


def _regressions(users: UserStatistics, rounds: Rounds) -> dict[str, _Estimated]:
    """Return every user's weights and intercept, and what was fitted, for the ways that have a common intercept."""
    found: dict[str, _Estimated] = {}
    for name in (POOLED, POOLED_BIAS, BASELINE):
        common = alike(rounds) if name == POOLED else fit(rounds, weights=name == BASELINE)
        beta, noise, plain = regressions(users, common), common.noise, common.weights[0]
        fitted = 1.0 - plain, noise / common.ridge[1], noise, noise / common.ridge[0]
        found[name] = beta[:, 1:], beta[:, 0] - beta[:, 1:] @ common.center, fitted
    found[OWN] = *_own_regressions(users, rounds), (math.nan,) * len(FITTED)
    return found


def _own_regressions(users: UserStatistics, rounds: Rounds) -> tuple[Floats, Floats]:
    """Return each user's own weights and intercept, drawn to a slope of 0 as strongly as foretells rounds left out."""
    x = np.column_stack([np.ones(len(rounds.overall)), rounds.reward])
    ones = np.ones(len(x))

    def ridge(strength: float) -> Floats:
        return np.concatenate([[1e-6], np.full(users.objectives, math.exp(strength))])  # the level is the user's own

    def error(strength: float) -> float:
        errors = np.empty(len(x))
        left_out(errors, x, rounds.overall, ones, rounds.starts, ridge(strength))
        return float(errors @ errors)

    best = min(np.arange(-6.0, 6.1, 1.0).tolist(), key=error)
    moments = users.plain
    beta = np.linalg.solve(moments[:, :-1, :-1] + np.diag(ridge(best)), moments[:, :-1, -1:])[:, :, 0]
    return np.asarray(beta[:, 1:]), np.asarray(beta[:, 0])


def _numbers_of(common: Population) -> tuple[float, ...]:
    """Return the numbers of `FITTED`."""
    numbers = common.numbers
    noise = float(numbers[NOISE])
    bias = noise / float(numbers[BIAS_RIDGE]) if numbers[BIAS_RIDGE] > 0.0 else math.nan
    return 1.0 - float(numbers[PLAIN]), noise / float(numbers[RIDGE]), noise, bias


def _rows(judged: Mapping[str, Sequence[Judged]], size: int, others: Ints, scale: float) -> list[dict[str, Any]]:
    """Return a row a way: means over the splits for each user, then over users."""
    squares = {name: scale**2 * np.mean([each.squares for each in several], axis=0) for name, several in judged.items()}
    # A user all of whose held-out scores are the same has no pair; which user that is depends on the split alone.
    ordered = {name: _mean_of_given([each.ordered for each in several]) for name, several in judged.items()}
    rows = []
    for name, several in judged.items():
        fitted = np.mean([each.fitted for each in several], axis=0).tolist()
        low, difference, high = root_difference(squares[name], squares[BASELINE])
        paired = ordered[name] - ordered[BASELINE]
        paired = paired[~np.isnan(paired)]
        apart = summarize(paired) if len(paired) else Summary(*[math.nan] * 4)
        rows.append(
            {
                "training": size,
                "users": len(others),
                "ratings": int(others.sum()),
                "way": name,
                "rmse": math.sqrt(squares[name].mean()),
                "pooled": math.sqrt(np.average(squares[name], weights=others)),
                "difference": difference,
                "difference_low": low,
                "difference_high": high,
                "ordered": float(np.nanmean(ordered[name])) if len(paired) else math.nan,
                "ordered_difference": apart.mean,
                "ordered_low": apart.low,
                "ordered_high": apart.high,
            }
            | dict(zip(FITTED, fitted, strict=True))
        )
    return rows


def _mean_of_given(columns: Sequence[Floats]) -> Floats:
    """Return the mean of each place over the columns that have a value there; NaN where none has."""
    stacked = np.array(columns)
    given = (~np.isnan(stacked)).sum(axis=0)
    return np.where(given > 0, np.nansum(stacked, axis=0) / np.maximum(given, 1), np.nan)


def root_difference(squares: npt.ArrayLike, reference: npt.ArrayLike) -> tuple[float, float, float]:
    """Return the difference of two root mean squares over the same users, between the ends of its 95 % interval.

    Student's t on the differences to first order: √m moves by (s − m)/(2√m) where one user's square is s.

    >>> low, difference, high = root_difference([4.0, 4.0, 4.0], [1.0, 1.0, 1.0])
    >>> low, difference, high
    (1.0, 1.0, 1.0)
    """
    ours, theirs = np.asarray(squares, dtype=float), np.asarray(reference, dtype=float)
    roots = [math.sqrt(values.mean()) for values in (ours, theirs)]
    pulls = [values / (2.0 * root) if root else values for values, root in zip((ours, theirs), roots, strict=True)]
    spread = summarize(pulls[0] - pulls[1])
    half = spread.high - spread.mean
    difference = roots[0] - roots[1]
    return difference - half, difference, difference + half


def text_of(table: Table) -> str:
    """Return what was measured as lines of text, the lowest error first."""
    wide = 2 + max(map(len, table.distinct("way")))
    lines = []
    for size in table.distinct("training"):
        rows = sorted(table.where(training=size).rows(), key=lambda row: float(row["rmse"]))
        lines += [
            f"{size} ratings to learn from: {rows[0]['users']:,} users, judged by {rows[0]['ratings']:,} other ratings",
            f"  {'way':<{wide}}{'RMSE':>7}{'pooled':>8}   {'difference':<29}{'in order':>8}   {'difference':<25}"
            f"{'φ':>6}{'τ²':>8}{'σ²':>8}{'bias':>8}",
        ]
        for row in rows:
            error = _interval(row, ("difference", "difference_low", "difference_high"), 1.0, ".4f")
            order = _interval(row, ("ordered_difference", "ordered_low", "ordered_high"), 100.0, ".2f")
            numbers = (("elasticity", ".2f", 6), *((name, ".4f", 8) for name in FITTED[1:]))
            fitted = "".join(f"{_given(row[name], form):>{room}}" for name, form, room in numbers)
            lines.append(
                f"  {row['way']:<{wide}}{row['rmse']:>7.4f}{row['pooled']:>8.4f}   {error:<29}"
                f"{_given(row['ordered'], '.2%'):>8}   {order:<25}{fitted}"
            )
        lines.append("")
    return "\n".join(lines).rstrip()


def _given(value: float, form: str) -> str:
    return "–" if math.isnan(value) else format(value, form)


def _interval(row: Mapping[str, Any], names: tuple[str, str, str], factor: float, form: str) -> str:
    if row["way"] == BASELINE or math.isnan(row[names[0]]):
        return "–"
    value, least, most = (format(factor * row[name], f"+{form}") for name in names)
    return f"{value} ({least} … {most})"


def draw_ratings(table: Table) -> Any:
    """Draw the error, and the share of pairs in order, against the ratings learned from, a line a way."""
    sizes, names = table.distinct("training"), table.distinct("way")
    figure, axes = panels(2, columns=2, height=4.2, legend=0.85)
    for each, column, factor, title in (
        (axes[0], "rmse", 1.0, "error of the overall score (RMSE; lower is better)"),
        (axes[1], "ordered", 100.0, "pairs of items in the right order, % (higher is better)"),
    ):
        for name in names:
            values = factor * table.where(way=name)[column]
            draw_line(each, range(len(sizes)), values, STYLES[name], linewidth=1.6, marker=".")
        users = [table.where(training=size)["users"][0] for size in sizes]
        each.set_xticks(range(len(sizes)), [f"{size}\n{n:,} users" for size, n in zip(sizes, users, strict=True)])
        label(each, title, "ratings of a user learned from")
    legend_above(figure, names, [STYLES[name] for name in names], columns=4)
    return figure
