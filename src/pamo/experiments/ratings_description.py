"""What a file of ratings can teach: who rated how much, how linear overall scores are, and how far people differ."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.priors.foretelling import Foretelling, Rounds, fit, regressions, summed
from pamo.ratings import Ratings

LENGTHS = (2, 5, 10, 20, 50, 100)
"""Ratings of a user, at least: how many users have them."""
OFFERED, NEAR = 20, 40
"""Items of an offer, and of how many neighbours in everybody's ranking those that are nearly equal are drawn."""
USERS, RATED = 2000, 3
"""Users who are asked for their best item, and how often an item was rated to be among the offers."""
LITTLE = 0.002
"""A gain in root mean squared error that is hardly one."""


def describe(ratings: Ratings, *, seed: int = 1) -> dict[str, Any]:
    """Return what the ratings are like, as plain values; errors and gains are on the overall score's own scale.

    sizes: users, ratings, items, what was left out, and users by length of history. scores: mean and spread of each
    criterion on [0, 1], and the share of their variance along one direction. linear: R² of a pooled regression with an
    intercept, without, and with squares and products; the residual's spread in the quarters of least and most ‖r‖.
    people: the error of each rating foretold from the user's others, where users are alike, have a bias, and
    have weights; the standard deviations between users of their levels and weights. choices: how often a user's weights
    choose another item than everybody's, and what that is worth, among random and among nearly equal items.
    """
    rounds = Rounds(ratings.reward, ratings.overall, ratings.starts)
    common = fit(rounds)
    apart = np.sqrt(common.spread)
    roots = [ratings.scale * math.sqrt(max(error, 0.0)) for error in common.errors]
    scores = np.column_stack([ratings.reward, ratings.overall])
    variances = np.linalg.eigvalsh(np.atleast_2d(np.cov(ratings.reward.T)))
    return {
        "sizes": {
            "users": len(ratings.counts),
            "ratings": len(ratings.overall),
            "items": len(np.unique(ratings.item)) if (ratings.item >= 0).any() else None,
            "left_out": dict(ratings.dropped),
            "wrong_cells": [str(one) for one in ratings.problems],
            "history": dict(
                zip(
                    ("least", "quarter", "median", "three_quarters", "most"),
                    np.quantile(ratings.counts, [0.0, 0.25, 0.5, 0.75, 1.0]).tolist(),
                    strict=True,
                )
            ),
            "users_with": {str(n): int((ratings.counts >= n).sum()) for n in LENGTHS},
        },
        "scores": {
            "names": [*ratings.objectives, "overall"],
            "mean": scores.mean(axis=0).tolist(),
            "spread": scores.std(axis=0).tolist(),
            "one_direction": float(variances[-1] / max(variances.sum(), 1e-300)),
        },
        "linear": _linear(ratings),
        "people": {
            "alike": roots[0],
            "bias": roots[1],
            "weights": roots[2],
            "bias_spread": ratings.scale * float(apart[0]),
            "weights_spread": apart[1:].tolist(),
            "weights_mean": common.mean[1:].tolist(),
        },
        "choices": _choices(ratings, regressions(summed(rounds), common), common, seed),
    }


def _linear(ratings: Ratings) -> dict[str, Any]:
    reward, overall = ratings.reward, ratings.overall
    objectives = reward.shape[1]
    ones = np.ones((len(overall), 1))
    products = [reward[:, d] * reward[:, e] for d in range(objectives) for e in range(d + 1)]
    residual = overall - _fitted(np.hstack([ones, reward]), overall)
    lengths = np.einsum("nd,nd->n", reward, reward)
    least, most = np.quantile(lengths, [0.25, 0.75])
    total = float(np.square(overall - overall.mean()).sum()) or 1.0

    def explained(columns: Floats) -> float:
        return 1.0 - float(np.square(overall - _fitted(columns, overall)).sum()) / total

    return {
        "with_intercept": 1.0 - float(np.square(residual).sum()) / total,
        "without": explained(reward),
        "curved": explained(np.column_stack([ones, reward, *products])),
        "residual_where_least": ratings.scale * float(residual[lengths <= least].std()),
        "residual_where_most": ratings.scale * float(residual[lengths >= most].std()),
    }


def _fitted(columns: Floats, overall: Floats) -> Floats:
    weights = np.linalg.lstsq(columns.T @ columns, columns.T @ overall, rcond=None)[0]
    return np.asarray(columns @ weights)


def _choices(ratings: Ratings, beta: Floats, common: Foretelling, seed: int) -> dict[str, Any]:
    items = _items(ratings)
    draw = np.random.default_rng(seed)
    users = draw.permutation(len(beta))[:USERS]
    offered = min(OFFERED, len(items))
    near = min(NEAR, len(items))
    ranked = items[np.argsort(items @ common.mean[1:], kind="stable")]
    found: dict[str, Any] = {"offered": offered}
    windows = draw.integers(0, len(items) - near + 1, len(users))
    for name, first, among in (("random", np.zeros(len(users), dtype=int), len(items)), ("near_equal", windows, near)):
        places = first[:, None] + np.stack([draw.choice(among, offered, replace=False) for _ in users])
        offers = ranked[places]
        own = np.einsum("uod,ud->uo", offers, beta[users, 1:])
        mine, everybodys = own.argmax(axis=1), (offers @ common.mean[1:]).argmax(axis=1)
        rows = np.arange(len(users))
        found[name] = {
            "differ": float((mine != everybodys).mean()),
            "worth": ratings.scale * float((own[rows, mine] - own[rows, everybodys]).mean()),
        }
    return found


def _items(ratings: Ratings) -> Floats:
    """Return the mean rewards of the items that were rated often enough, or the rewards where items are not known."""
    if (ratings.item < 0).any():
        return ratings.reward
    counts = np.bincount(ratings.item)
    means = np.stack([np.bincount(ratings.item, column) for column in ratings.reward.T], axis=1)
    often = counts >= min(RATED, int(counts.max()))
    return np.asarray(means[often] / counts[often, None])


def verdict(found: dict[str, Any]) -> str:
    """Return in a sentence whether weights of their own are worth having, as far as these ratings tell."""
    people, choices = found["people"], found["choices"]["near_equal"]
    gain = 1.0 - people["weights"] / people["bias"] if people["bias"] > 0.0 else 0.0
    if people["weights"] == people["alike"]:
        return "As far as these ratings tell nobody differs: a pooled regression is enough."
    if gain < LITTLE:
        return "People differ in level and hardly in their weights: a pooled regression with a bias a user is enough."
    return (
        f"People differ in their weights: these foretell a rating from the user's others better by {gain:.1%} than "
        f"a bias alone, and change the best of nearly equal items for {choices['differ']:.0%} of the users."
    )


def text_of(found: dict[str, Any]) -> str:
    """Return the description as lines of text."""
    sizes, scores, linear = found["sizes"], found["scores"], found["linear"]
    people, choices = found["people"], found["choices"]
    history, near, random = sizes["history"], choices["near_equal"], choices["random"]
    items = "items not known" if sizes["items"] is None else f"{sizes['items']:,} items"
    each = zip(scores["names"], people["weights_mean"], people["weights_spread"], strict=False)
    weights = ", ".join(f"{name} {mean:.2f} ± {spread:.2f}" for name, mean, spread in each)
    wide = 2 + max(map(len, scores["names"]))
    rows = zip(scores["names"], scores["mean"], scores["spread"], strict=True)
    return "\n".join(
        [
            f"{sizes['ratings']:,} ratings by {sizes['users']:,} users; {items}",
            f"  of a user: {history['least']:.0f} to {history['most']:.0f}, half of the users {history['quarter']:.0f} "
            f"to {history['three_quarters']:.0f}, median {history['median']:.0f}",
            "  users with at least: " + ", ".join(f"{n} {count:,}" for n, count in sizes["users_with"].items()),
            "",
            f"  {'on [0, 1]':<{wide}}{'mean':>6}{'spread':>8}",
            *(f"  {name:<{wide}}{mean:>6.2f}{spread:>8.2f}" for name, mean, spread in rows),
            f"  {scores['one_direction']:.0%} of the criteria's variance is along one direction",
            "",
            "how linear: R² of everybody's overall scores",
            f"  {linear['with_intercept']:.3f} with an intercept, {linear['without']:.3f} without, "
            f"{linear['curved']:.3f} with squares and products too",
            f"  the residual's spread is {linear['residual_where_least']:.3f} in the quarter of least rewards, "
            f"{linear['residual_where_most']:.3f} in that of most",
            "",
            "how different people are: error of each rating, foretold from the user's others",
            f"  {people['alike']:.4f} alike, {people['bias']:.4f} with a bias a user, {people['weights']:.4f} with "
            "weights too",
            f"  between users, the level varies by {people['bias_spread']:.3f}; weights: {weights}",
            "",
            f"how often a user's weights choose another than everybody's, of {choices['offered']} items",
            f"  random ones: {random['differ']:.0%}, worth {random['worth']:.4f}; nearly equal ones: "
            f"{near['differ']:.0%}, worth {near['worth']:.4f}",
            "",
            verdict(found),
        ]
    )
