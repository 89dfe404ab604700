"""People's ratings from a CSV or Parquet file: several criteria and an overall score a row, put on [0, 1] at this edge.

Whatever a file has that is no rating is left out and said: cells that are missing, cells that are wrong, by row and
column, and all but the last rating of an item by the same user.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats, Ints
from pamo.errors import InputError
from pamo.tabular import Columns, Problem, problems_text

Scale = tuple[float | None, float | None]
"""The lowest and the highest score that there is; None for the column's own."""

MOST_WRONG = 0.05
"""The share of rows with wrong cells beyond which a file, or a scale, is taken for a mistake."""
REPEATED = "repeated"


@dataclass(frozen=True, kw_only=True, eq=False)
class Ratings:
    """Complete ratings, one user's after another's.

    objectives: their names. starts: (users + 1,), where each user's ratings begin. reward: (ratings, D), and overall:
    (ratings,), all on [0, 1]. item: (ratings,), which item each is of, −1 where it is not known. scale: what 1 is on
    the overall score's own scale. dropped: how many rows were left out for lack of what, or as repeated. problems: the
    cells that are wrong, whose rows were left out too.
    """

    objectives: tuple[str, ...]
    starts: Ints
    reward: Floats
    overall: Floats
    item: Ints
    scale: float
    dropped: dict[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    @property
    def counts(self) -> Ints:
        """How many ratings each user gave."""
        return np.diff(self.starts)

    @property
    def dropped_text(self) -> str:
        """What was left out and why, in words; empty if nothing was.

        >>> ratings_of([0], [[1.0]], [0.5], dropped={"overall": 2, "taste": 1, "repeated": 0}).dropped_text
        "2 rows without 'overall' and 1 row without 'taste' left out"
        """
        said = [
            f"{_rows(count)} without {what!r}" for what, count in self.dropped.items() if count and what != REPEATED
        ]
        if self.dropped.get(REPEATED):
            said.append(f"{_rows(self.dropped[REPEATED])} of an item that the same user rated again")
        if self.problems:
            said.append(
                f"{_rows(len({one.row for one in self.problems}))} with wrong cells ({problems_text(self.problems)})"
            )
        return f"{' and '.join(said)} left out" if said else ""


def _rows(count: int) -> str:
    return f"{count:,} row{'s' if count > 1 else ''}"


def ratings_of(
    user: npt.ArrayLike,
    reward: npt.ArrayLike,
    overall: npt.ArrayLike,
    *,
    item: npt.ArrayLike | None = None,
    objectives: Sequence[str] | None = None,
    scale: float = 1.0,
    dropped: dict[str, int] | None = None,
    problems: Sequence[Problem] = (),
) -> Ratings:
    """Return ratings that are complete and on [0, 1] already, sorted by user.

    user: (n,), whole numbers; reward: (n, D); overall: (n,); item: (n,), whole numbers.

    >>> ratings_of([7, 3, 7], [[0.1], [0.2], [0.3]], [0.0, 0.5, 1.0]).reward.ravel().tolist()
    [0.2, 0.1, 0.3]
    """
    users, rewards = np.asarray(user), np.asarray(reward, dtype=float)
    order = np.argsort(users, kind="stable")
    _, counts = np.unique(users, return_counts=True)
    items = np.full(len(users), -1) if item is None else np.asarray(item)
    return Ratings(
        objectives=tuple(objectives or (f"objective {d + 1}" for d in range(rewards.shape[1]))),
        starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        reward=np.ascontiguousarray(rewards[order]),
        overall=np.asarray(overall, dtype=float)[order],
        item=items[order].astype(np.int64),
        scale=scale,
        dropped=dict(dropped or {}),
        problems=tuple(problems),
    )


def read_ratings(
    path: str | Path,
    objectives: Sequence[str] | Mapping[str, str],
    *,
    overall: str = "overall",
    user: str = "user",
    item: str = "item",
    time: str | None = None,
    low: float | None = None,
    high: float | None = None,
    scales: Mapping[str, Scale] | None = None,
) -> Ratings:
    """Return the ratings that a CSV or Parquet file holds, a row a rating.

    objectives: the names of their columns, or from names to columns. overall, user, item, time: names of columns; the
    item's may be missing. low, high: what becomes 0 and what becomes 1, in all of them; scales: in some, by column; by
    default each column's own least and greatest. A row that lacks any of its values is left out, and counted; so is one
    with a cell that is no number or not on its scale, and reported; and, where items are known, all but the last rating
    of an item by a user, by time or else by row.
    """
    columns = dict(objectives) if isinstance(objectives, Mapping) else {name: name for name in objectives}
    names = [*(columns.values() if isinstance(objectives, Mapping) else objectives), overall]
    asked = [*names, user] + ([time] if time else [])
    if not columns or len(set(asked)) < len(asked):
        raise InputError(f"expected at least one objective and each column once, got {', '.join(asked)}")
    unknown = set(scales or {}) - set(names)
    if unknown:
        raise InputError(f"expected scales of {', '.join(names)}, got one of {', '.join(sorted(unknown))}")
    table = Columns(path, asked, optional=[item], what="ratings, a row a rating", feature="reading ratings")
    whose, _ = table.codes(user)
    lacking = {user: whose < 0}
    problems: list[Problem] = []
    numbers, limits = {}, {}
    for name in names:
        values, wrong = table.numbers(name)
        given = np.isnan(values)
        given[[one.row - 1 for one in wrong]] = False  # it is wrong, not missing
        lacking[name] = given
        least, most = limits[name] = _limits(values, name, (scales or {}).get(name, (low, high)))
        outside = np.flatnonzero((values < least) | (values > most)).tolist()
        problems += wrong
        problems += [Problem(n + 1, name, f"expected {least:g} to {most:g}, got {values[n]:g}") for n in outside]
        numbers[name] = (values - least) / (most - least)
    bad = np.zeros(len(table), dtype=bool)
    bad[[one.row - 1 for one in problems]] = True
    if bad.sum() > MOST_WRONG * len(table):
        raise InputError(
            f"expected ratings in {Path(path).name}, got {bad.sum():,} of {len(table):,} rows with wrong cells: "
            f"{problems_text(sorted(problems))}; are the columns, and the scales (--low, --high, --scale), right?"
        )
    left, dropped = ~bad, {}
    for name in (overall, *columns.values(), user):
        dropped[name] = int((left & lacking[name]).sum())
        left &= ~lacking[name]
    which = table.codes(item)[0] if item in table.names else np.full(len(table), -1)
    order = np.flatnonzero(left)
    if time:
        order = order[np.argsort(_times(table, time)[order], kind="stable")]
    order, again = _last(order, whose, which)
    dropped[REPEATED] = again
    if not len(order):
        raise InputError(
            f"expected rows with a user, all objectives and an overall score, got none in {Path(path).name}"
        )
    return ratings_of(
        whose[order],
        np.stack([numbers[name][order] for name in columns.values()], axis=1),
        numbers[overall][order],
        item=which[order],
        objectives=tuple(columns),
        scale=limits[overall][1] - limits[overall][0],
        dropped=dropped,
        problems=sorted(problems),
    )


def _times(table: Columns, name: str) -> npt.NDArray[np.int64]:
    """Return the rank of each row's time, those without one first."""
    values = table.values(name)
    known = sorted({value for value in values if value is not None})
    ranks = {value: place for place, value in enumerate(known)}
    return np.array([ranks.get(value, -1) for value in values])


def _last(order: Ints, whose: Ints, which: Ints) -> tuple[Ints, int]:
    """Return the places without all but the last of a user's ratings of an item, and how many these were."""
    known = which[order] >= 0
    pairs = whose[order].astype(np.int64) * (int(which.max(initial=0)) + 1) + which[order]
    backwards = np.unique(pairs[known][::-1], return_index=True)[1]
    keep = ~known
    keep[np.flatnonzero(known)[::-1][backwards]] = True
    return order[keep], int((~keep).sum())


def _limits(values: Floats, name: str, scale: Scale) -> tuple[float, float]:
    """Return what becomes 0 and what becomes 1."""
    given = values[~np.isnan(values)]
    own = (float(given.min()), float(given.max())) if len(given) else (math.nan, math.nan)
    bottom, top = (mine if said is None else said for mine, said in zip(own, scale, strict=True))
    if not (math.isfinite(bottom) and math.isfinite(top) and bottom < top):
        raise InputError(
            f"expected a scale with low < high for {name!r}, got {bottom:g} … {top:g}; say it by --low and --high"
        )
    return bottom, top
