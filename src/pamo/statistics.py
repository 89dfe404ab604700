"""The sums that everything is learned from: zeros are the identity, `+` merges, the order of feedback is nothing.

The building block is the matrix of second moments Σ w·z·zᵀ of z = (1, r, g): the constant, the reward vector and the
overall score. History is never kept, and the ridge λI is not in the sums: merging would count it twice.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats, Ints
from pamo.compiling import kernel
from pamo.errors import InputError

LEAST_SQUARE = 1e-300
"""‖r‖² up to which a reward is as good as 0: its weight 1/‖r‖² would leave a float's range, and then poison a sum."""


@kernel
def _add_moment(moments: Floats, row: int, weight: float, reward: Floats, overall: float) -> None:
    """Add w·z·zᵀ to one row's moments; an overall score that was not given (NaN) leaves its entries alone."""
    objectives = len(reward)
    last = objectives + 1
    moments[row, 0, 0] += weight
    for d in range(objectives):
        weighted = weight * reward[d]
        moments[row, 0, d + 1] += weighted
        moments[row, d + 1, 0] += weighted
        for e in range(objectives):
            moments[row, d + 1, e + 1] += weighted * reward[e]
    if not np.isnan(overall):
        weighted = weight * overall
        moments[row, 0, last] += weighted
        moments[row, last, 0] += weighted
        moments[row, last, last] += weighted * overall
        for d in range(objectives):
            moments[row, d + 1, last] += weighted * reward[d]
            moments[row, last, d + 1] += weighted * reward[d]


@kernel
def _observe_arms(
    rows: Ints,
    rewards: Floats,
    overalls: Floats,
    moments: Floats,
    overall_pulls: Floats,
    counts: Floats,
    sums: Floats,
    squares: Floats,
) -> None:
    for k in range(len(rows)):
        row, complete = rows[k], True
        for d in range(rewards.shape[1]):
            value = rewards[k, d]
            if np.isnan(value):
                complete = False
            else:
                counts[row, d] += 1.0
                sums[row, d] += value
                squares[row, d] += value * value
        if complete:
            _add_moment(moments, row, 1.0, rewards[k], overalls[k])
            if not np.isnan(overalls[k]):
                overall_pulls[row] += 1.0


@kernel
def _observe_users(
    rows: Ints,
    rewards: Floats,
    overalls: Floats,
    preferences: Floats,
    rounds: Floats,
    plain: Floats,
    weighted: Floats,
    stated_count: Floats,
    stated_sum: Floats,
    stated_square: Floats,
) -> None:
    objectives = rewards.shape[1]
    for k in range(len(rows)):
        row, length, stated = rows[k], 0.0, True
        rounds[row] += 1.0
        for d in range(objectives):
            length += rewards[k, d] * rewards[k, d]
            stated = stated and not np.isnan(preferences[k, d])
        # A regression takes a round only whole: reward and overall score both (NaN in either makes this NaN).
        if not np.isnan(length + overalls[k]):
            _add_moment(plain, row, 1.0, rewards[k], overalls[k])
            if length > LEAST_SQUARE:  # w = 1/‖r‖² has no value at r = 0: such a sample carries no direction
                _add_moment(weighted, row, 1.0 / length, rewards[k], overalls[k])
        if stated:
            stated_count[row] += 1.0
            for d in range(objectives):
                stated_sum[row, d] += preferences[k, d]
                stated_square[row, d] += preferences[k, d] * preferences[k, d]


class _Sums:
    """What arms' and users' statistics share: they add up field by field."""

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

    def _arrays(self) -> dict[str, Floats]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]  # a mixin


@dataclass(frozen=True, kw_only=True)
class ArmStatistics(_Sums):
    """The sums over each arm's pulls, all users together.

    moments: (arms, D+2, D+2), Σ z·zᵀ of the pulls whose reward was complete: pulls, Σr, Σr·rᵀ, Σg.
    overall_pulls: (arms,), how many of those came with an overall score.
    objective_count, objective_sum, objective_square: (arms, D), from every pull, the incomplete ones too.

    >>> arms = ArmStatistics.zeros(arms=2, objectives=3)
    >>> arms.observe(1, [0.2, 0.4, 0.6], overall=0.5)
    >>> arms.pulls.tolist(), arms.reward_sum[1].tolist()
    ([0.0, 1.0], [0.2, 0.4, 0.6])
    """

    moments: Floats
    overall_pulls: Floats
    objective_count: Floats
    objective_sum: Floats
    objective_square: Floats

    @classmethod
    def zeros(cls, *, arms: int, objectives: int) -> Self:
        """Return the statistics of no feedback at all."""
        _positive(arms=arms, objectives=objectives)
        shape = (arms, objectives)
        return cls(
            moments=np.zeros((arms, objectives + 2, objectives + 2)),
            overall_pulls=np.zeros(arms),
            objective_count=np.zeros(shape),
            objective_sum=np.zeros(shape),
            objective_square=np.zeros(shape),
        )

    @property
    def objectives(self) -> int:
        """The number of objectives, D."""
        return int(self.objective_sum.shape[1])

    @property
    def pulls(self) -> Floats:
        """N_i: the pulls of each arm with a complete reward."""
        return self.moments[:, 0, 0]

    @property
    def reward_sum(self) -> Floats:
        """Σr over those pulls, (arms, D)."""
        return self.moments[:, 0, 1:-1]

    @property
    def overall_sum(self) -> Floats:
        """Σg over the pulls that came with an overall score."""
        return self.moments[:, 0, -1]

    def observe(self, arm: npt.ArrayLike, reward: npt.ArrayLike, overall: npt.ArrayLike | None = None) -> None:
        """Add one pull, or a batch of them; NaN in a reward is an objective that was not given.

        arm: () or (n,); reward: (D,) or (n, D); overall: () or (n,), or None.
        """
        rows, rewards = _feedback(arm, reward, len(self.moments), self.objectives, "arm")
        overalls = _column(overall, len(rows), "overall")
        arrays = [getattr(self, field.name) for field in fields(self)]
        _observe_arms(rows, rewards, overalls, *arrays)


@dataclass(frozen=True, kw_only=True)
class UserStatistics(_Sums):
    """The sums over each user's rounds.

    rounds: (users,). plain: (users, D+2, D+2), Σ z·zᵀ of the rounds with a complete reward and an overall score.
    weighted: the same with w = 1/‖r‖² (the paper's weight; its factor ω is applied on reading).
    stated_count: (users,); stated_sum, stated_square: (users, D), of the preferences stated.

    >>> users = UserStatistics.zeros(users=1, objectives=2)
    >>> users.observe(0, [3.0, 4.0], overall=5.0)
    >>> users.weighted[0, 1:3, 1:3].round(2).tolist()
    [[0.36, 0.48], [0.48, 0.64]]
    """

    rounds: Floats
    plain: Floats
    weighted: Floats
    stated_count: Floats
    stated_sum: Floats
    stated_square: Floats

    @classmethod
    def zeros(cls, *, users: int, objectives: int) -> Self:
        """Return the statistics of no feedback at all."""
        _positive(users=users, objectives=objectives)
        return cls(
            rounds=np.zeros(users),
            plain=np.zeros((users, objectives + 2, objectives + 2)),
            weighted=np.zeros((users, objectives + 2, objectives + 2)),
            stated_count=np.zeros(users),
            stated_sum=np.zeros((users, objectives)),
            stated_square=np.zeros((users, objectives)),
        )

    @property
    def objectives(self) -> int:
        """The number of objectives, D."""
        return int(self.stated_sum.shape[1])

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
        rows, rewards = _feedback(user, reward, len(self.rounds), self.objectives, "user")
        overalls = _column(overall, len(rows), "overall")
        if preference is None:
            preferences = np.full(rewards.shape, np.nan)
        else:
            preferences = _matrix(preference, rewards.shape, "preference")
        arrays = [getattr(self, field.name) for field in fields(self)]
        _observe_users(rows, rewards, overalls, preferences, *arrays)


def _positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise InputError(f"expected at least one of {name}, got {size}")


def _feedback(
    index: npt.ArrayLike, reward: npt.ArrayLike, rows: int, objectives: int, kind: str
) -> tuple[Ints, Floats]:
    """Check a batch of feedback against the statistics' shape and return its rows and rewards."""
    indices = np.atleast_1d(np.asarray(index))
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise InputError(f"expected {kind} as a whole number or a vector of them, got {index!r}")
    if indices.size and not (indices.min() >= 0 and indices.max() < rows):
        raise InputError(f"expected {kind} from 0 to {rows - 1}, got {int(indices.min())} … {int(indices.max())}")
    return indices.astype(np.int64), _matrix(reward, (len(indices), objectives), "reward")


def _matrix(values: npt.ArrayLike, shape: tuple[int, ...], name: str) -> Floats:
    array: Any = np.ascontiguousarray(np.atleast_2d(np.asarray(values, dtype=np.float64)))
    if array.shape != shape:
        raise InputError(f"expected {name} of shape {shape}, got {np.shape(values)}")
    if np.isinf(array).any():
        raise InputError(f"expected finite numbers in {name}, got infinity")
    return array  # type: ignore[no-any-return]


def _column(values: npt.ArrayLike | None, count: int, name: str) -> Floats:
    if values is None:
        return np.full(count, np.nan)
    array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if array.shape != (count,):
        raise InputError(f"expected {name} of shape ({count},), got {np.shape(values)}")
    if np.isinf(array).any():
        raise InputError(f"expected finite numbers in {name}, got infinity")
    return array
