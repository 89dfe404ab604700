"""People's ratings from a Parquet file: several criteria and an overall score a row, put on [0, 1] at this edge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats, Ints
from pamo.errors import InputError, unknown_name
from pamo.tabular import readable


@dataclass(frozen=True, kw_only=True, eq=False)
class Ratings:
    """Complete ratings, one user's after another's.

    objectives: their names. starts: (users + 1,), where each user's ratings begin. reward: (ratings, D), and overall:
    (ratings,), all on [0, 1]. scale: what 1 is on the overall score's own scale. dropped: how many rows were left out
    for lack of an overall score, of an objective, or of a user.
    """

    objectives: tuple[str, ...]
    starts: Ints
    reward: Floats
    overall: Floats
    scale: float
    dropped: dict[str, int]

    @property
    def counts(self) -> Ints:
        """How many ratings each user gave."""
        return np.diff(self.starts)

    @property
    def dropped_text(self) -> str:
        """What was left out and why, in words; empty if nothing was.

        >>> ratings_of([0], [[1.0]], [0.5], dropped={"overall": 2, "objective": 1, "user": 0}).dropped_text
        '2 rows without an overall score and 1 row without one of the objectives left out'
        """
        lacking = {"overall": "an overall score", "objective": "one of the objectives", "user": "a user"}
        counts = {lacking[what]: count for what, count in self.dropped.items() if count}
        said = [f"{count:,} row{'s' if count > 1 else ''} without {what}" for what, count in counts.items()]
        return f"{' and '.join(said)} left out" if said else ""


def ratings_of(
    user: npt.ArrayLike,
    reward: npt.ArrayLike,
    overall: npt.ArrayLike,
    *,
    objectives: Sequence[str] | None = None,
    scale: float = 1.0,
    dropped: dict[str, int] | None = None,
) -> Ratings:
    """Return ratings that are complete and on [0, 1] already, sorted by user.

    user: (n,), whole numbers; reward: (n, D); overall: (n,).

    >>> ratings_of([7, 3, 7], [[0.1], [0.2], [0.3]], [0.0, 0.5, 1.0]).reward.ravel().tolist()
    [0.2, 0.1, 0.3]
    """
    users, rewards = np.asarray(user), np.asarray(reward, dtype=float)
    order = np.argsort(users, kind="stable")
    _, counts = np.unique(users, return_counts=True)
    return Ratings(
        objectives=tuple(objectives or (f"objective {d + 1}" for d in range(rewards.shape[1]))),
        starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        reward=np.ascontiguousarray(rewards[order]),
        overall=np.asarray(overall, dtype=float)[order],
        scale=scale,
        dropped=dict(dropped or {}),
    )


def read_ratings(
    path: str | Path,
    objectives: Sequence[str],
    *,
    overall: str = "overall",
    user: str = "user",
    low: float | None = None,
    high: float | None = None,
) -> Ratings:
    """Return the ratings that a Parquet file holds, a row a rating.

    objectives, overall, user: names of its columns. low, high: what becomes 0 and what becomes 1, in all of them; by
    default each column's own least and greatest. A row that lacks any of its values is left out, and counted.
    """
    names = [*objectives, overall]
    if not objectives or len({*names, user}) < len(names) + 1:
        raise InputError(f"expected at least one objective and each column once, got {', '.join([*names, user])}")
    source = Path(path)
    with readable(source, "ratings as Parquet, a row a rating", "reading ratings") as (pyarrow, parquet):
        known = parquet.read_schema(source).names
        for name in [*names, user]:
            if name not in known:
                raise unknown_name(f"column of {source.name}", name, known)
        table = parquet.read_table(source, columns=[*names, user])
    columns = {name: _numbers(table[name], name, pyarrow) for name in names}
    indices = table[user].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    no_overall = np.isnan(columns[overall])
    no_objective = ~no_overall & np.isnan(sum(columns[name] for name in objectives))
    no_user = ~no_overall & ~no_objective & np.isnan(indices.astype(float))
    whole = ~(no_overall | no_objective | no_user)
    if not whole.any():
        raise InputError(f"expected rows with a user, all objectives and an overall score, got none in {source.name}")
    limits = {name: _limits(column[~np.isnan(column)], name, low, high) for name, column in columns.items()}
    scaled = {name: (columns[name][whole] - least) / (most - least) for name, (least, most) in limits.items()}
    return ratings_of(
        indices[whole].astype(np.int64),
        np.stack([scaled[name] for name in objectives], axis=1),
        scaled[overall],
        objectives=objectives,
        scale=limits[overall][1] - limits[overall][0],
        dropped={"overall": int(no_overall.sum()), "objective": int(no_objective.sum()), "user": int(no_user.sum())},
    )


def _numbers(column: Any, name: str, pyarrow: Any) -> Floats:
    """Return a column of numbers, NaN where there is none."""
    kind = column.type
    if not (pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) or pyarrow.types.is_decimal(kind)):
        raise InputError(f"expected numbers in the column {name!r}, got {kind}")
    values: Floats = column.cast(pyarrow.float64()).to_numpy()
    if np.isinf(values).any():
        raise InputError(f"expected finite numbers in the column {name!r}, got infinity")
    return values


def _limits(values: Floats, name: str, low: float | None, high: float | None) -> tuple[float, float]:
    """Return what becomes 0 and what becomes 1; every value lies between them."""
    least, most = float(values.min()), float(values.max())
    bottom, top = (least if low is None else low), (most if high is None else high)
    if not (math.isfinite(bottom) and math.isfinite(top) and bottom < top):
        raise InputError(
            f"expected a scale with low < high for {name!r}, got {bottom:g} … {top:g}; say it by --low and --high"
        )
    if least < bottom or most > top:
        raise InputError(f"expected {name!r} from {bottom:g} to {top:g}, got {least:g} … {most:g}")
    return bottom, top
