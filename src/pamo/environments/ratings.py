"""A world made of people's ratings: items whose scores are drawn from those given to them, and users as fitted.

A pull of an item gives one of the reward vectors that the item was given, by anybody; the user's overall score of it is
the user's own intercept and weights on it, as the foretelling prior finds them (`pamo.priors.foretelling`), and noise:
what they left over of some rating, whosever.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np

from pamo.arrays import Floats
from pamo.compiling import count_of, dimensions, inlined, kernel
from pamo.environments.base import Environment, setting
from pamo.errors import InputError
from pamo.priors.foretelling import Rounds, fit, regressions, summed
from pamo.ratings import read_ratings
from pamo.streams import Stream, below, uniform

RATED, RATINGS = 5, 10
"""How often an item was rated, and how often a user rated, to be one of the world, at least."""
NEAR = 2
"""Nearly equal items are drawn from so many times as many neighbours in everybody's ranking."""

_ITEMS, _USERS, _RATINGS, _BLOCK, _HEAD = range(5)
"""Places in `numbers`: how many items, users and ratings there are, and the arms of an offer of nearly equal items, 0
for random ones. From `_HEAD` on are everybody's weights; then the items, each with its key, where its ratings begin and
end, and its means; the users, each with a key, the intercept and the weights; both by key, which is the worth by
everybody's weights; then the ratings' rewards, and what is left over of each."""


@inlined
def _key(row: Floats, weights: Floats, dims: Any) -> float:
    """The worth of a row by everybody's weights: by it rows lie in order, and are found again."""
    key = 0.0
    for d in range(count_of(dims)):
        key += row[d] * weights[d]
    return key


@kernel
def _write_keys(table: Floats, weights: Floats, dims: Any) -> None:
    """Write every record's key, of the row at its end, as `_record` works it out."""
    for i in range(len(table)):
        table[i, 0] = _key(table[i, table.shape[1] - count_of(dims) :], weights, dims)


@inlined
def _record(records: Floats, count: int, row: Floats, weights: Floats, dims: Any) -> Floats:
    """The record that has this row at its end, of so many."""
    objectives = count_of(dims)
    width = len(records) // count
    key, low, high = _key(row, weights, dims), 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if records[middle * width] < key:
            low = middle + 1
        else:
            high = middle
    for i in range(low, count):  # several may have the same key
        same = True
        for d in range(objectives):
            same = same and records[(i + 1) * width - objectives + d] == row[d]
        if same:
            low = i
            break
    return records[low * width : (low + 1) * width]


@inlined
def _take(table: Floats, first: int, last: int, records: Floats, width: int, among: int, stream: Stream) -> None:
    """Write the rows at the ends of so many different records, in an order that chance makes."""
    left, place, objectives = among, 0, table.shape[1]
    for row in range(first, last):
        while uniform(stream) * left >= last - row:  # each has the same chance
            left -= 1
            place += 1
        for d in range(objectives):
            table[row, d] = records[(place + 1) * width - objectives + d]
        left -= 1
        place += 1
    for row in range(last - 1, first, -1):
        other = first + below(stream, row - first + 1)
        for d in range(objectives):
            table[row, d], table[other, d] = table[other, d], table[row, d]


@kernel
def _instance(means: Floats, preferences: Floats, numbers: Floats, stream: Stream, dims: Any) -> None:
    objectives, items, users = count_of(dims), int(numbers[_ITEMS]), int(numbers[_USERS])
    block, width = int(numbers[_BLOCK]), 3 + objectives
    items_at = _HEAD + objectives
    users_at = items_at + items * width
    if block == 0:
        _take(means, 0, len(means), numbers[items_at:], width, items, stream)
    else:
        for first in range(0, len(means), block):
            last = min(first + block, len(means))
            among = min(NEAR * (last - first), items)
            window = items_at + below(stream, items - among + 1) * width
            _take(means, first, last, numbers[window:], width, among, stream)
    _take(preferences, 0, len(preferences), numbers[users_at:], 2 + objectives, users, stream)


@kernel
def _draw(
    reward: Floats,
    stated: Floats,
    arm: int,
    n: int,
    means: Floats,
    preferences: Floats,
    numbers: Floats,
    wants_stated: bool,
    stream: Stream,
    spare: Stream,
    dims: Any,
) -> float:
    objectives = count_of(dims)
    items, users, ratings = int(numbers[_ITEMS]), int(numbers[_USERS]), int(numbers[_RATINGS])
    weights = numbers[_HEAD : _HEAD + objectives]
    items_at = _HEAD + objectives
    users_at = items_at + items * (3 + objectives)
    rewards_at = users_at + users * (2 + objectives)
    item = _record(numbers[items_at:users_at], items, means[arm], weights, dims)
    user = _record(numbers[users_at:rewards_at], users, preferences[n], weights, dims)
    begin = int(item[1])
    place = rewards_at + (begin + below(stream, int(item[2]) - begin)) * objectives
    overall = user[1] + numbers[rewards_at + ratings * objectives + below(stream, ratings)]
    for d in range(objectives):
        reward[d] = numbers[place + d]
        stated[d] = preferences[n, d]
        overall += preferences[n, d] * reward[d]
    return float(overall)


@dataclass(frozen=True, kw_only=True)
class RatedItems(Environment):
    """Items and users of a file of people's ratings.

    file: CSV or Parquet, a row a rating (`pamo.ratings.read_ratings`). criteria: its columns with the objectives'
    scores, by commas. overall, user, item: names of columns. low, high: the ends of all scales. offers: `random` items,
    or each offer's `near` one another in what everybody thinks of them. objectives: follows from the criteria.

    >>> RatedItems(file="hotels.csv", criteria="value,rooms", users=4).objectives
    2
    """

    id: ClassVar[str] = "ratings"
    summary: ClassVar[str] = "a world made of people's ratings: scores that items were given, users as fitted"
    reference: ClassVar[str] = "ours"
    instance: ClassVar[Any] = _instance
    draw: ClassVar[Any] = _draw

    objectives: int = setting(0, "objectives of a reward", "D", least=0, derived="as many as criteria")
    block_size: int = setting(20, "arms in an offer", least=1)
    file: str = setting("", "ratings as .csv or .parquet, a row a rating", "FILE", derived="none")
    criteria: str = setting("", "the columns with the objectives' scores", "A,B,…", derived="none")
    overall: str = setting("overall", "the column with the overall score", "NAME")
    user: str = setting("user", "the column that says who gave it", "NAME")
    item: str = setting("item", "the column that says what it is of", "NAME")
    low: float | None = setting(None, "the lowest score there is", "X", derived="each column's least")
    high: float | None = setting(None, "the highest score there is", "X", derived="each column's greatest")
    offers: Literal["random", "near"] = setting("random", "offers of random items, or of nearly equal ones", "KIND")

    def __post_init__(self) -> None:
        names = [name.strip() for name in self.criteria.split(",") if name.strip()]
        if not self.file or not names:
            raise InputError("the ratings environment needs a file of ratings and the columns with its criteria")
        if self.objectives not in (0, len(names)):
            raise InputError(f"expected objectives as many as the {len(names)} criteria, got {self.objectives}")
        object.__setattr__(self, "objectives", len(names))
        super().__post_init__()

    def numbers(self) -> Floats:
        """Items, users and ratings, as the kernels find them."""
        records = _records(self.file, self.criteria, self.overall, self.user, self.item, self.low, self.high)
        needed = {"items": self.arm_count, "users": self.users}
        for (what, count), place in zip(needed.items(), (_ITEMS, _USERS), strict=True):
            if records[place] < count:
                raise InputError(
                    f"expected a file with {count} {what} that have ratings enough, got {records[place]:.0f}: ask for "
                    f"fewer arms or users"
                )
        found = records.copy()
        found[_BLOCK] = self.offer_size if self.offers == "near" else 0.0
        return found


@lru_cache(maxsize=4)
def _records(
    file: str, criteria: str, overall: str, user: str, item: str, low: float | None, high: float | None
) -> Floats:
    names = [name.strip() for name in criteria.split(",") if name.strip()]
    ratings = read_ratings(file, names, overall=overall, user=user, item=item, low=low, high=high)
    if (ratings.item < 0).any():
        raise InputError(f"expected a column {item!r} that says which item each rating is of")
    rounds = Rounds(ratings.reward, ratings.overall, ratings.starts)
    common, dims = fit(rounds), dimensions(len(names))
    beta = regressions(summed(rounds), common)
    beta[:, 0] -= beta[:, 1:] @ common.center
    left = ratings.overall - np.einsum("nd,nd->n", ratings.reward, np.repeat(beta[:, 1:], ratings.counts, axis=0))
    left -= np.repeat(beta[:, 0], ratings.counts)
    weights = np.ascontiguousarray(common.mean[1:])
    order = np.argsort(ratings.item, kind="stable")
    _, begins, counts = np.unique(ratings.item[order], return_index=True, return_counts=True)
    often = counts >= RATED
    rewards = ratings.reward[order]
    means = np.add.reduceat(rewards, begins)[often] / counts[often, None]
    items = np.column_stack([np.zeros(len(means)), begins[often], (begins + counts)[often], means])
    active = ratings.counts >= RATINGS
    users = np.column_stack([np.zeros(active.sum()), beta[active]])
    for table in (items, users):
        _write_keys(table, weights, dims)
    items, users = (table[np.argsort(table[:, 0], kind="stable")] for table in (items, users))
    head = np.array([len(items), len(users), len(rewards), 0.0])
    return np.concatenate([head, weights, items.ravel(), users.ravel(), rewards.ravel(), left - left.mean()])
