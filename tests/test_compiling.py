"""How kernels are compiled: counts of references are left alone where that is safe, and kept where it is not."""

from __future__ import annotations

import sys
from collections.abc import Callable
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
