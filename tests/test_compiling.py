"""How kernels are compiled: counts of references are left alone where that is safe, and kept where it is not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core.runtime import nrt

from pamo import compiling
from pamo.arrays import Floats
from pamo.compiling import kernel


class Pair(NamedTuple):
    one: Any
    two: Any


@kernel
def first_row(table: Floats) -> Any:
    return table[0]


@kernel
def doubled(row: Floats) -> Any:
    return 2.0 * row


@kernel
def total(row: Floats) -> float:
    result = 0.0
    for value in row:
        result += value
    return result


@numba.njit
def made(table: Floats) -> Any:
    return np.zeros_like(table[0])


def looks(table: Floats) -> Any:
    pair = Pair(table[1:], (table[0], table[:, 1]))
    rest, (row, column) = pair
    rest[0, 0] = 5.0
    row[1:] = 3.0
    if table is not None:
        column.fill(2.0)
    return total(rest[0]) + pair.two[0][1] + len(column)


def calls_a_view(table: Floats) -> Any:
    return first_row(table)[1] + total(first_row(table))


def returns_a_view(table: Floats) -> Any:
    return table[1:]


def returns_views(table: Floats) -> Any:
    return Pair(table[0], (table[1], 1.0))


def returns_its_argument(table: Floats) -> Any:
    return table


def makes(table: Floats) -> Any:
    return np.zeros(len(table))[0] + doubled(table[0])[1] + (table[0] + table[1])[0]


def makes_by_another(table: Floats) -> Any:
    return 0.0 * made(table)[0] + table.T.copy()[0, 0]


def returns_what_it_made(table: Floats) -> Any:
    return doubled(table[0]), table[0]


def copies(table: Floats) -> Any:
    table[0] = table[0, ::-1]
    return table[0, 0]


def goes_through(table: Floats) -> Any:
    result = 0.0
    for row in table:
        result += row[0]
    return result


def adds(table: Floats) -> Any:
    table += 1.0
    return table[0, 0]


ONLY_LOOKS = [looks]
COUNTS = [
    calls_a_view,
    returns_a_view,
    returns_views,
    returns_its_argument,
    makes,
    makes_by_another,
    returns_what_it_made,
    copies,
    goes_through,
    adds,
]


@pytest.mark.parametrize("function", ONLY_LOOKS + COUNTS)
def test_no_count_goes_wrong_whether_it_is_kept_or_left_alone(
    function: Callable[[Floats], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = {}
    only_looks = compiling._only_looks

    def noted(state: Any) -> bool:
        judged[state.func_id.func_name] = only_looks(state)
        return judged[state.func_id.func_name]

    monkeypatch.setattr(compiling, "_only_looks", noted)
    compiled = numba.njit(pipeline_class=compiling._Rooted, **compiling.OPTIONS)(function)  # and not from the cache
    table, plain = np.arange(12.0).reshape(4, 3), np.arange(12.0).reshape(4, 3)
    np.testing.assert_equal(compiled(table), function(plain))
    assert (table == plain).all()
    assert judged[function.__name__] == (function in ONLY_LOOKS)
    runtime: Any = nrt
    runtime._nrt.memsys_enable_stats()
    held, before = sys.getrefcount(table), nrt.rtsys.get_allocation_stats()
    for _ in range(10):
        compiled(table)
    after = nrt.rtsys.get_allocation_stats()
    assert sys.getrefcount(table) == held
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free
    assert after.alloc - before.alloc == after.free - before.free


def branches(x: float) -> Any:
    square, times = x * x, 0
    if x > 1.0:
        added = square
        for i in range(3):
            added = added + i * square
            if added > 20.0:
                times = i
                break
    else:
        added, y = -square, 2.0 * x
        while y < 3.0:
            step = y + square
            y = y + step
            times += 1
        added = added + y
    pair = Pair(added, (square, times))
    return pair.one + pair.two[0] * pair.two[1]


def catches(x: float) -> Any:
    given = 0.0
    try:
        given = x + 1.0
        halved = 0.5 * given
        if x > 1.0:
            raise ValueError("too much")
        given = halved
    except Exception:
        given = given + 3.0
    return given * x


@kernel
def must_be_small(x: float) -> float:
    if x > 1.0:
        raise ValueError("too much")
    return x


def catches_what_is_called(x: float) -> Any:
    went = False
    try:
        late = must_be_small(x)
        went = True
    except Exception:
        went = False
    if went:
        return late
    return -1.0


def comes_to_nothing(x: float) -> Any:
    row = np.full(3, x)
    if x > 1.0:
        other = row[1:]
        for _ in range(2):
            made = other + row[:2]
            other[0] = made[1]
    return row[1]


def makes_of_a_list(x: float) -> Any:
    return np.array([x * i for i in range(4)])[3] + sum([x, 2.0])


def closes_over(x: float) -> Any:
    def add(y: float) -> float:
        return x + y

    return add(1.0) + add(2.0)


def folds(x: float) -> Any:
    return reduce(lambda one, two: one + two, (x, 2.0, 3.0))


def names_items(x: float) -> Any:
    items: dict[str, Any] = {"one": x, "two": (x, 2)}
    return items["one"] + items["two"][1]


ANYTHING = [
    branches,
    catches,
    catches_what_is_called,
    comes_to_nothing,
    makes_of_a_list,
    closes_over,
    folds,
    names_items,
]


@pytest.mark.parametrize("function", ANYTHING)
def test_whatever_a_kernel_is_written_with_is_compiled_as_it_stands(function: Callable[[float], float]) -> None:
    """What is left out where it finds nothing to do finds here what it is for."""
    compiled = numba.njit(pipeline_class=compiling._Rooted, **compiling.OPTIONS)(function)
    for x in (0.25, 1.0, 1.5, 7.0):
        assert compiled(x) == function(x)
