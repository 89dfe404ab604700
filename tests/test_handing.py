"""What the loop is handed as words: it makes of them what Python had, and whatever else there is is refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import types

from pamo.arrays import Floats
from pamo.compiling import around, kernel
from pamo.handing import Handed


class Tables(NamedTuple):
    cube: Floats
    marks: Any
    scale: float


KIND = types.NamedTuple((types.Array(types.float64, 3, "C"), types.Array(types.uint64, 1, "C"), types.float64), Tables)
SIGNATURE = types.void(
    KIND,
    types.FunctionType(types.float64(types.float64)),
    types.none,
    types.int64,
    types.boolean,
    types.uint64,
    types.UniTuple(types.none, 2),
    types.Array(types.float64, 1, "C"),
)


@kernel
def doubled(x: float) -> float:
    return 2.0 * x


@kernel
def refused(x: float) -> float:
    if x > 0.0:
        raise ValueError("refused")
    return x


def calling(one: Any) -> Any:
    def call(x: float) -> float:
        return one(x)  # type: ignore[no-any-return]

    return around(call, one)


def play(
    tables: Tables, function: Any, absent: Any, first: int, whole: bool, seed: int, dims: Any, seen: Floats
) -> None:
    cube = tables.cube
    if absent is None:
        seen[0], seen[1], seen[2] = cube.shape[0], cube.shape[1], cube.shape[2]
    seen[3] = function(tables.scale)
    seen[4], seen[5], seen[6] = first, len(dims), 1.0 if whole else 0.0
    if seed == tables.marks[1]:
        seen[7] = cube[1, 2, 3]
    cube[1, 2, 3] = first


def handed(tables: Tables, function: Any, seen: Floats) -> None:
    Handed(play, SIGNATURE)(tables, function, None, -3, True, 2**64 - 1, (None, None), seen)


def tables_of() -> Tables:
    return Tables(np.arange(24.0).reshape(2, 3, 4), np.array([0, 2**64 - 1], dtype=np.uint64), 0.1)


def test_a_loop_sees_and_writes_what_it_was_handed() -> None:
    tables, seen = tables_of(), np.zeros(8)
    handed(tables, calling(doubled), seen)
    assert seen.tolist() == [2.0, 3.0, 4.0, 0.2, -3.0, 2.0, 1.0, 23.0]
    assert tables.cube[1, 2, 3] == -3.0


@pytest.mark.parametrize(
    "wrong", [np.zeros((2, 3)), np.zeros((2, 3, 4), np.float32), np.zeros((4, 3, 2)).T, np.zeros((2, 3, 8))[:, :, ::2]]
)
def test_a_table_of_another_kind_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="expected array"):
        handed(tables_of()._replace(cube=wrong), calling(doubled), np.zeros(8))


def test_a_table_that_may_not_be_written_to_is_refused() -> None:
    tables = tables_of()
    tables.cube.flags.writeable = False
    with pytest.raises(TypeError, match="expected array"):
        handed(tables, calling(doubled), np.zeros(8))


def test_an_error_of_a_function_that_was_handed_over_is_heard_of() -> None:
    with pytest.raises(ValueError, match="refused"):
        handed(tables_of(), calling(refused), np.zeros(8))
