"""The paper's synthetic environment (Appendix, Experimental settings), and its relatives with fixed means.

Rewards and preferences are Gaussian and are *not* clipped, as in the paper's experiments; the theory's assumptions hold
in `bounded`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from pamo.arrays import Floats
from pamo.compiling import count_of, kernel
from pamo.environments.base import Environment, setting, variance
from pamo.errors import InputError
from pamo.streams import Stream, below, normals, uniform


@kernel
def _random_instance(means: Floats, preferences: Floats, numbers: Floats, stream: Stream, dims: Any) -> None:
    objectives = count_of(dims)
    for i in range(len(means)):
        for d in range(objectives):
            means[i, d] = uniform(stream)
    for n in range(len(preferences)):
        write_preference(preferences, n, numbers[2], stream, dims)


@kernel
def write_preference(preferences: Floats, n: int, kind: float, stream: Stream, dims: Any) -> None:
    """Write user n's mean preference, of a kind of `KINDS`; user 0's comes before the others'."""
    objectives = count_of(dims)
    if kind == 2.0 and n > 0:
        for d in range(objectives):
            preferences[n, d] = preferences[0, d] * (0.5 + uniform(stream))
    elif kind == 1.0:
        favourite = below(stream, objectives)
        for d in range(objectives):
            preferences[n, d] = 2.0 if d == favourite else 0.5
    else:
        for d in range(objectives):
            preferences[n, d] = 5.0 * uniform(stream)


@kernel
def _fixed_instance(means: Floats, preferences: Floats, numbers: Floats, stream: Stream, dims: Any) -> None:
    objectives = count_of(dims)
    place = 2
    for table in (means, preferences):
        for row in range(len(table)):
            for d in range(objectives):
                table[row, d] = numbers[place]
                place += 1


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
    square, expected = 0.0, 0.0
    normals(stream, reward, objectives + 1)
    along = reward[objectives]
    for d in range(objectives):
        reward[d] = means[arm, d] + numbers[0] * reward[d]
        square += reward[d] * reward[d]
        expected += preferences[n, d] * reward[d]
    # Given r, g = c·r is exactly Normal(c̄·r, σ²‖r‖²): one normal does what D would.
    length = math.sqrt(square)
    if wants_stated:
        # The c that goes with this g: `along` in the direction of r, and fresh normals across it.
        inward = 0.0
        normals(spare, stated, objectives)
        for d in range(objectives):
            inward += stated[d] * reward[d]
        shift = (along - inward / length) / length if length > 0.0 else 0.0
        for d in range(objectives):
            stated[d] = preferences[n, d] + numbers[1] * (stated[d] + shift * reward[d])
    return float(expected + numbers[1] * length * along)


PREFERENCES = (
    "mean preferences: predefined, 2.0 on one objective and 0.5 on others; random, uniform on [0, 5]; common, alike"
)
KINDS = {"random": 0.0, "predefined": 1.0, "common": 2.0}
"""The numbers by which `write_preference` knows the kinds of preferences."""


@dataclass(frozen=True, kw_only=True)
class Gaussian(Environment):
    """The environment of the paper's experiments: Gaussian rewards and preferences with random means.

    Reward means are uniform on [0, 1]. Mean preferences are `predefined` (2.0 on one random objective, 0.5 on the rest)
    or `random` (uniform on [0, 5]), which are the paper's, or `common` (everybody weighs each objective 0.5 to 1.5
    times as much as the first user, whose weights are uniform on [0, 5]). reward_variance, preference_variance: of each
    entry.

    >>> Gaussian(users=2, block_size=5, objectives=3, preference="predefined").arm_count
    10

    Reference: the paper's Appendix, Experimental settings.
    """

    id: ClassVar[str] = "gaussian"
    summary: ClassVar[str] = "the paper's: Gaussian rewards and preferences around random means, not clipped"
    reference: ClassVar[str] = "the paper's Appendix, Experimental settings"
    instance: ClassVar[Any] = _random_instance
    draw: ClassVar[Any] = _draw

    preference: Literal["predefined", "random", "common"] = setting("predefined", PREFERENCES, "KIND")
    reward_variance: float = variance(0.01, "reward")
    preference_variance: float = variance(0.5, "preference")

    def numbers(self) -> Floats:
        """σ of a reward entry, σ of a preference entry, and the kind of preferences."""
        return np.array([*_sigmas(self), KINDS[self.preference]])


@dataclass(frozen=True, kw_only=True)
class Fixed(Environment):
    """Gaussian rewards and preferences around means that you give: one instance, the same in every trial.

    means: arms × D. preferences: users × D. The sizes follow from them; block_size is by default all arms of a user's
    share, and with protocol="all" (the default here) everybody is offered everything.

    >>> Fixed.of(means=[[0.2, 0.2], [0.8, 0.8]], preferences=[[0.5, 0.5]]).arm_count
    2
    """

    id: ClassVar[str] = "fixed"
    summary: ClassVar[str] = "Gaussian rewards and preferences around means that you give"
    reference: ClassVar[str] = "none: for instances of your own"
    instance: ClassVar[Any] = _fixed_instance
    draw: ClassVar[Any] = _draw

    means: tuple[tuple[float, ...], ...]
    preferences: tuple[tuple[float, ...], ...]
    reward_variance: float = variance(0.01, "reward")
    preference_variance: float = variance(0.5, "preference")

    @classmethod
    def of(
        cls, *, means: Any, preferences: Any, block_size: int | None = None, protocol: str = "all", **more: Any
    ) -> Fixed:
        """Build the environment from array-likes, its sizes read off them; more: other settings, as the variances."""
        arms, users = _table(means, "means"), _table(preferences, "preferences")
        if arms.shape[1] != users.shape[1]:
            raise InputError(
                f"expected means and preferences of one width, got {arms.shape[1]} and {users.shape[1]} objectives"
            )
        return cls(
            users=len(users),
            block_size=len(arms) if block_size is None else block_size,
            objectives=arms.shape[1],
            arms=len(arms),
            protocol=protocol,
            means=tuple(map(tuple, arms.tolist())),
            preferences=tuple(map(tuple, users.tolist())),
            **more,
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, rows in (("means", self.arm_count), ("preferences", self.users)):
            shape = _table(getattr(self, name), name).shape
            if shape != (rows, self.objectives):
                raise InputError(f"expected {name} of shape {(rows, self.objectives)}, got {shape}; use Fixed.of(…)")

    def numbers(self) -> Floats:
        """The two σ, and then the means and preferences in a row."""
        return np.concatenate([_sigmas(self), np.ravel(self.means), np.ravel(self.preferences)])


def toy() -> Fixed:
    """Return the two-arm toy of the paper's estimation study: one user who wants [.5, .5], arms at .2 and at .8.

    The paper gives the preference's variance (0.05) and not the reward's: we take that of its experiments (0.01).

    >>> toy().objectives
    2
    """
    return Fixed.of(means=[[0.2, 0.2], [0.8, 0.8]], preferences=[[0.5, 0.5]], preference_variance=0.05)


def conflict(*, preference_variance: float = 0.0) -> Fixed:
    """Return the instance of Proposition 1's proof: two arms at odds, and two users who each want one of them.

    >>> conflict().preferences
    ((1.0, 0.0), (0.0, 1.0))
    """
    axes = [[1.0, 0.0], [0.0, 1.0]]
    return Fixed.of(means=axes, preferences=axes, reward_variance=0.0, preference_variance=preference_variance)


def _sigmas(noisy: Gaussian | Fixed) -> list[float]:
    return [math.sqrt(noisy.reward_variance), math.sqrt(noisy.preference_variance)]


def _table(values: Any, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or 0 in array.shape or not np.isfinite(array).all():
        raise InputError(f"expected {name} as a table of finite numbers, rows × objectives, got shape {array.shape}")
    return array
