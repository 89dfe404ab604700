"""The sums that everything is learned from, as arrays of rows: zeros are the identity, `+` merges, order is nothing.

What a row holds, and how feedback is added to it, is in `pamo.rows`; here are the rows of many arms or users under
their names. History is never kept.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats, Ints
from pamo.errors import InputError
from pamo.rows import (
    PLAIN,
    ROUNDS,
    STATED_COUNT,
    STATED_SUM,
    arm_width,
    counts_at,
    observe_arms,
    observe_users,
    pair,
    pair_width,
    partial_at,
    pulls_at,
    scored_at,
    stated_width,
    user_width,
    weighted_at,
    whole,
)


class _Sums:
    """What arms' and users' statistics share: they add up row by row."""

    def merge(self, other: Self) -> Self:
        """Return the statistics of both parts' feedback together."""
        ours, theirs = self._arrays(), other._arrays()
        if any(ours[name].shape != theirs[name].shape for name in ours):
            mine, yours = (next(iter(arrays.values())).shape for arrays in (ours, theirs))
            raise InputError(f"statistics of one shape can be merged, got {mine} and {yours}")
        return type(self)(**{name: ours[name] + theirs[name] for name in ours})

    __add__ = merge

    def copy(self) -> Self:
        """Return statistics that change apart from these."""
        return type(self)(**{name: array.copy() for name, array in self._arrays().items()})

    def part(self, places: slice | Ints | list[int]) -> Self:
        """Return the statistics of some of the rows: a view for a slice, a copy for a list."""
        return type(self)(**{name: array[places] for name, array in self._arrays().items()})

    def _arrays(self) -> dict[str, Floats]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]  # a mixin


@dataclass(frozen=True, kw_only=True)
class ArmStatistics(_Sums):
    """The sums over each arm's pulls, all users together.

    rows: (arms, …), laid out as `pamo.rows` says. Everything else is read from them.

    >>> arms = ArmStatistics.zeros(arms=2, objectives=3)
    >>> arms.observe(1, [0.2, 0.4, 0.6], overall=0.5)
    >>> arms.pulls.tolist(), arms.reward_sum[1].tolist()
    ([0.0, 1.0], [0.2, 0.4, 0.6])
    """

    names: ClassVar[tuple[str, ...]] = (
        "moments",
        "overall_pulls",
        "objective_count",
        "objective_sum",
        "objective_square",
        "all_pulls",
        "all_overalls",
    )
    """The sums by name, each number of a row in one of them."""

    rows: Floats

    @classmethod
    def zeros(cls, *, arms: int, objectives: int) -> Self:
        """Return the statistics of no feedback at all."""
        _positive(arms=arms, objectives=objectives)
        return cls(rows=np.zeros((arms, arm_width(objectives))))

    @property
    def objectives(self) -> int:
        """The number of objectives, D."""
        return _arm_objectives(self.rows.shape[1])

    @property
    def moments(self) -> Floats:
        """(arms, D+2, D+2): Σ z·zᵀ of the pulls whose reward was complete: pulls, Σr, Σr·rᵀ, Σg. A copy."""
        return self.rows[:, whole(self.objectives + 2)]

    @property
    def pulls(self) -> Floats:
        """N_i: the pulls of each arm with a complete reward."""
        return self.rows[:, 0]

    @property
    def reward_sum(self) -> Floats:
        """Σr over those pulls, (arms, D). A copy."""
        return self.rows[:, [pair(d + 1, 0) for d in range(self.objectives)]]

    @property
    def overall_sum(self) -> Floats:
        """Σg over the pulls that came with an overall score."""
        return self.rows[:, pair(self.objectives + 1, 0)]

    @property
    def overall_square(self) -> Floats:
        """Σg² over those pulls."""
        return self.rows[:, pair(self.objectives + 1, self.objectives + 1)]

    @property
    def overall_pulls(self) -> Floats:
        """(arms,): how many of the pulls with a complete reward came with an overall score."""
        return self.rows[:, scored_at(self.objectives)]

    @property
    def objective_count(self) -> Floats:
        """(arms, D): how many pulls gave each objective, the incomplete ones too."""
        return self._by_objective(0)

    @property
    def objective_sum(self) -> Floats:
        """(arms, D): Σr over them."""
        return self._by_objective(1)

    @property
    def objective_square(self) -> Floats:
        """(arms, D): Σr² over them."""
        return self._by_objective(2)

    @property
    def all_pulls(self) -> Floats:
        """(arms,): all pulls that anything was told of, the incomplete ones too."""
        return self.rows[:, pulls_at(self.objectives)]

    @property
    def all_overalls(self) -> Floats:
        """(arms,): how many of those came with an overall score."""
        return self.rows[:, pulls_at(self.objectives) + 1]

    def _by_objective(self, which: int) -> Floats:
        objectives = self.objectives
        first = counts_at(objectives) + which * objectives
        return self.rows[:, first : first + objectives]

    def observe(self, arm: npt.ArrayLike, reward: npt.ArrayLike, overall: npt.ArrayLike | None = None) -> None:
        """Add one pull, or a batch of them; NaN in a reward is an objective that was not given.

        arm: () or (n,); reward: (D,) or (n, D); overall: () or (n,), or None.
        """
        observe_arms(self.rows, *_feedback(arm, reward, overall, len(self.rows), self.objectives, "arm"))


@dataclass(frozen=True, kw_only=True)
class UserStatistics(_Sums):
    """The sums over each user's rounds.

    rows: (users, …); stated: (users, …), of the preferences stated; both laid out as `pamo.rows` says. Everything else
    is read from them.

    >>> users = UserStatistics.zeros(users=1, objectives=2)
    >>> users.observe(0, [3.0, 4.0], overall=5.0)
    >>> users.weighted[0, 1:3, 1:3].round(2).tolist()
    [[0.36, 0.48], [0.48, 0.64]]
    """

    names: ClassVar[tuple[str, ...]] = (
        "rounds",
        "plain",
        "weighted",
        "partial",
        "stated_count",
        "stated_sum",
        "stated_square",
    )
    """The sums by name, each number of a row in one of them."""

    rows: Floats
    stated: Floats

    @classmethod
    def zeros(cls, *, users: int, objectives: int) -> Self:
        """Return the statistics of no feedback at all."""
        _positive(users=users, objectives=objectives)
        return cls(rows=np.zeros((users, user_width(objectives))), stated=np.zeros((users, stated_width(objectives))))

    @property
    def objectives(self) -> int:
        """The number of objectives, D."""
        return int(self.stated.shape[1] - STATED_SUM) // 2

    @property
    def rounds(self) -> Floats:
        """(users,)."""
        return self.rows[:, ROUNDS]

    @property
    def plain(self) -> Floats:
        """(users, D+2, D+2): Σ z·zᵀ of the rounds with a complete reward and an overall score. A copy."""
        return self.rows[:, PLAIN + whole(self.objectives + 2)]

    @property
    def weighted(self) -> Floats:
        """The same with w = 1/‖r‖² (the paper's weight; its factor ω is applied on reading). A copy."""
        return self.rows[:, weighted_at(self.objectives) + whole(self.objectives + 2)]

    @property
    def partial(self) -> Floats:
        """(users,): rounds with an overall score beside an incomplete reward, which are summed by pair."""
        return self.rows[:, partial_at(self.objectives)]

    @property
    def stated_count(self) -> Floats:
        """(users,): how many preferences were stated."""
        return self.stated[:, STATED_COUNT]

    @property
    def stated_sum(self) -> Floats:
        """(users, D): their sum."""
        return self.stated[:, STATED_SUM : STATED_SUM + self.objectives]

    @property
    def stated_square(self) -> Floats:
        """(users, D): the sum of their squares."""
        return self.stated[:, STATED_SUM + self.objectives :]

    def observe(
        self,
        user: npt.ArrayLike,
        reward: npt.ArrayLike,
        overall: npt.ArrayLike | None = None,
        preference: npt.ArrayLike | None = None,
    ) -> None:
        """Add one round of one user, or a batch of them; what was not given is None, or NaN within a batch.

        user: () or (n,); reward: (D,) or (n, D); overall: () or (n,); preference (stated): (D,) or (n, D).
        """
        places, values = _feedback(user, reward, overall, len(self.rows), self.objectives, "user")
        shape = (len(places), self.objectives)
        given = np.full(shape, np.nan) if preference is None else _array(preference, shape, "preference")
        observe_users(self.rows, self.stated, places, values, given)


class Pairs(NamedTuple):
    """The sums over rounds with an overall score and an incomplete reward, a row for each user and arm that have any.

    starts: (users + 1,), where each user's rows begin and end. arms: the arm of each row, by its own row. rows:
    (pairs, …), laid out as `pamo.rows` says.
    """

    starts: Ints
    arms: Ints
    rows: Floats

    @classmethod
    def none(cls, *, users: int, objectives: int) -> Self:
        """Return no rows for so many users."""
        nobody: Ints = np.zeros(0, dtype=np.int64)
        return cls(np.zeros(users + 1, dtype=np.int64), nobody, np.zeros((0, pair_width(objectives))))


@cache
def _arm_objectives(width: int) -> int:
    """Return D of an arm's row of so many numbers."""
    objectives = 1
    while arm_width(objectives) < width:
        objectives += 1
    return objectives


def _positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise InputError(f"expected at least one of {name}, got {size}")


def _feedback(
    index: npt.ArrayLike, reward: npt.ArrayLike, overall: npt.ArrayLike | None, rows: int, objectives: int, kind: str
) -> tuple[Ints, Floats]:
    """Check a batch of feedback against the statistics' shape; return its rows, and (r₁ … r_D, g) of each."""
    indices = np.atleast_1d(np.asarray(index))
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise InputError(f"expected {kind} as a whole number or a vector of them, got {index!r}")
    if indices.size and not (indices.min() >= 0 and indices.max() < rows):
        raise InputError(f"expected {kind} from 0 to {rows - 1}, got {int(indices.min())} … {int(indices.max())}")
    count = len(indices)
    values = np.full((count, objectives + 1), np.nan)
    values[:, :-1] = _array(reward, (count, objectives), "reward")
    if overall is not None:
        values[:, -1] = _array(overall, (count,), "overall")
    return indices.astype(np.int64), values


def _array(values: npt.ArrayLike, shape: tuple[int, ...], name: str) -> Floats:
    array: Any = np.array(values, dtype=np.float64, ndmin=len(shape))
    if array.shape != shape:
        raise InputError(f"expected {name} of shape {shape}, got {np.shape(values)}")
    if np.isinf(array).any():
        raise InputError(f"expected finite numbers in {name}, got infinity")
    return array  # type: ignore[no-any-return]
