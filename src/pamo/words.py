"""The words that kernels are written in, beside Python's: lanes, lines of tables, fixed lists, a logarithm.

Each stands for machine code that Numba would not write by itself, or not as short; `pamo.compiling` compiles them. In
Python, where kernels run uncompiled, each is the plain expression that stands beside its name.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]  # it ships no types
from numba.core import cgutils
from numba.core.cpu import CPUContext
from numba.np.arrayobj import populate_array

from pamo.compiling import count_of, inlined, written, written_as

LANES = 8
"""Arms, or the simulator's users, that are worked on abreast."""


def generally(dims: Any, lanes: int | None) -> Any:
    """Return the number of objectives as one that is known when it runs, for what is called rarely.

    That is then compiled once for all numbers of objectives, and not for each of them. On a GPU, lanes being None, it
    stays as it is.

    >>> generally((None, None, None), 8)
    3
    """
    return dims if lanes is None else count_of(dims)


@written(generally)
def _generally(dims, lanes):  # type: ignore[no-untyped-def]  # as above
    if isinstance(lanes, numba.types.NoneType):
        return lambda dims, lanes: dims
    return lambda dims, lanes: np.int64(
        count_of(dims)
    )  # of a plain count Numba knows the value, as of a tuple's length


def counted(count: int, table: Any) -> Any:
    """Return a count for arithmetic with the table's numbers: a single one where those are, which an int would widen.

    >>> counted(3, np.zeros(2))
    3
    """
    return count


@written(counted)
def _counted(count, table):  # type: ignore[no-untyped-def]  # as above
    if table.dtype == numba.float32:
        return lambda count, table: np.float32(count)
    return lambda count, table: count


@written_as(lambda array: array, uncounted=True)
def bare(typing: Any, array: Any) -> Any:
    """Return the same array without its count of references, which a view in a hot loop would go up and down.

    Only for a view of an array that outlives it: what is written must not be kept or returned.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, value=arguments[0])
        view.meminfo = ir.Constant(view.meminfo.type, None)
        view.parent = ir.Constant(view.parent.type, None)
        return view._getvalue()

    return array(array), code


@written_as(lambda array: array.fill(0.0))
def zero(typing: Any, array: Any) -> Any:
    """Fill an array with zeros, by one call where its numbers lie one behind the other: `fill` is a page of code."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if array.layout != "C" or not isinstance(context, CPUContext):
            return context.compile_internal(builder, lambda table: table.fill(0.0), signature, arguments)
        table = context.make_array(array)(context, builder, value=arguments[0])
        cgutils.memset(builder, table.data, builder.mul(table.nitems, table.itemsize), 0)
        return context.get_dummy_value()

    return numba.types.none(array), code


def _bare_line(context: Any, builder: Any, line: Any, table: Any, start: Any, length: Any, stride: Any) -> Any:
    """Return code for an array without references: `length` numbers of the table, from `start` bytes on."""
    data, bytes_of = table.data, ir.IntType(8).as_pointer()
    out = context.make_array(line)(context, builder)
    populate_array(
        out,
        data=builder.bitcast(builder.gep(builder.bitcast(data, bytes_of), [start]), data.type),
        shape=[length],
        strides=[stride],
        itemsize=table.itemsize,
        meminfo=None,
    )
    return out._getvalue()


@written_as(lambda chunk, lane, lanes: chunk[:, lane], uncounted=True)
def lane_of(typing: Any, chunk: Any, lane: Any, lanes: Any) -> Any:
    """Return a lane of a chunk, bare; lanes is `LANES`, or None on a GPU, where a chunk has one lane alone.

    The stride is one that the compiler knows. By it the compiler sees that no two numbers of a chunk are the same
    place, and vectorises over the lanes. (An intrinsic, since on a GPU a function cannot return an array.)
    """
    alone = isinstance(lanes, numba.types.NoneType)
    line = numba.types.Array(chunk.dtype, 1, chunk.layout if alone else "A")

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table = context.make_array(signature.args[0])(context, builder, value=arguments[0])
        whole = context.get_value_type(numba.types.intp)
        start = ir.Constant(whole, 0) if alone else builder.mul(arguments[1], ir.Constant(whole, 8))
        stride = builder.extract_value(table.strides, 0) if alone else ir.Constant(whole, 8 * LANES)
        return _bare_line(context, builder, line, table, start, builder.extract_value(table.shape, 0), stride)

    return line(chunk, numba.types.intp, lanes), code


@written_as(lambda table: table, uncounted=True)
def eight(typing: Any, table: Any) -> Any:
    """Return a table whose lines are `LANES` long, bare, as one of which the compiler knows where its lines are.

    To find a line then takes no code, and no two lines are the same place. That it is one eight of numbers at most the
    compiler sees as well, but not that it is one: it would unroll a loop over it before it could vectorise it.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, value=arguments[0])
        whole, axes = context.get_value_type(numba.types.intp), table.ndim
        shape = [builder.extract_value(view.shape, axis) for axis in range(axes)]
        shape[-1] = builder.and_(shape[-1], ir.Constant(whole, LANES))
        strides = [ir.Constant(whole, 8 * LANES), ir.Constant(whole, 8)][-axes:]
        out = context.make_array(table)(context, builder)
        populate_array(out, data=view.data, shape=shape, strides=strides, itemsize=view.itemsize, meminfo=None)
        return out._getvalue()

    return table(table), code


@written_as(lambda rows, n: rows[n // rows.shape[2], :, n % rows.shape[2]], uncounted=True)
def row_of(typing: Any, rows: Any, n: Any) -> Any:
    """Return user n's row, bare, from rows in lanes, (chunks, numbers, lanes): statistics have one lane alone."""
    line = numba.types.Array(rows.dtype, 1, "A")

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table = context.make_array(signature.args[0])(context, builder, value=arguments[0])
        (_, length, lanes), strides = (
            [builder.extract_value(of, axis) for axis in range(3)] for of in (table.shape, table.strides)
        )
        chunk, lane = builder.udiv(arguments[1], lanes), builder.urem(arguments[1], lanes)
        start = builder.add(builder.mul(chunk, strides[0]), builder.mul(lane, strides[2]))
        return _bare_line(context, builder, line, table, start, length, strides[1])

    return line(rows, numba.types.intp), code


def _table(axes: int) -> Any:
    """Return what gives a kernel a table of so many axes that lies in a board: see `pamo.simulation.alone`."""

    def in_python(board: Any, marks: Any, number: int) -> Any:
        start, *shape = marks[4 * number : 4 * number + 1 + axes].tolist()
        return board[start : start + math.prod(shape)].reshape(shape)

    @written_as(in_python, uncounted=True)
    def table_of(typing: Any, board: Any, marks: Any, number: Any) -> Any:
        table = numba.types.Array(board.dtype, axes, "C")

        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            line, list_of = (
                context.make_array(kind)(context, builder, value=value)
                for kind, value in zip(signature.args[:2], arguments[:2], strict=True)
            )
            first = builder.mul(arguments[2], ir.Constant(ir.IntType(64), 4))
            start, *shape = (
                builder.load(builder.gep(list_of.data, [builder.add(first, ir.Constant(ir.IntType(64), place))]))
                for place in range(1 + axes)
            )
            strides = [line.itemsize]
            for size in shape[:0:-1]:
                strides.insert(0, builder.mul(strides[0], size))
            out = context.make_array(table)(context, builder)
            data = builder.gep(line.data, [start])
            populate_array(out, data=data, shape=shape, strides=strides, itemsize=line.itemsize, meminfo=None)
            return out._getvalue()

        return table(board, marks, numba.types.intp), code

    return table_of


line_of, grid_of, cube_of = (_table(axes) for axes in (1, 2, 3))


def _line_at(kind: Any, number: Any) -> Any:
    """Return what gives a kernel the numbers of a kind that lie at an address, which somebody else holds."""
    line = numba.types.Array(kind, 1, "C")

    def in_python(start: int, length: int) -> Any:
        return np.ctypeslib.as_array((number * length).from_address(start))

    @written_as(in_python, uncounted=True)
    def line_at(typing: Any, start: Any, length: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            out, size = context.make_array(line)(context, builder), ir.Constant(ir.IntType(64), 8)
            data = builder.inttoptr(arguments[0], out.data.type)
            populate_array(out, data=data, shape=[arguments[1]], strides=[size], itemsize=size, meminfo=None)
            return out._getvalue()

        return line(numba.types.int64, numba.types.int64), code

    return line_at


floats_at = _line_at(numba.types.float64, ctypes.c_double)
wholes_at = _line_at(numba.types.int64, ctypes.c_int64)


def listed(values: npt.NDArray[Any]) -> Any:
    """Return what gives a kernel the number at a place of a fixed list.

    A global array is what Numba would put into a GPU's constant memory, which answers threads that ask for different
    places one after the other: normal numbers, each from another layer, were most of a trial's time. Here it stands in
    the memory that is cached like any other.
    """
    kind, numbers = numba.from_dtype(values.dtype), values.tolist()
    name = "listed." + hashlib.sha256(values.tobytes()).hexdigest()[:16]

    @written_as(values.__getitem__)
    def at(typing: Any, place: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            line = ir.Constant(ir.ArrayType(context.get_data_type(kind), len(numbers)), numbers)
            table = builder.module.globals.get(name)
            if table is None:
                space = 0 if isinstance(context, CPUContext) else 1  # a GPU's global memory
                table = ir.GlobalVariable(builder.module, line.type, name, addrspace=space)
                table.linkage, table.global_constant, table.initializer = "internal", True, line
            zero = ir.Constant(ir.IntType(64), 0)
            return builder.load(builder.gep(table, [zero, arguments[0]], inbounds=True))

        return kind(place), code

    return at


@inlined
def seat(n: int, lanes: int | None) -> tuple[int, int]:
    """Return the chunk and the lane of user n."""
    if lanes is None:
        return n, 0
    return n // LANES, n % LANES


@written_as(lambda number: int(np.float64(number).view(np.int64)))
def _bits_of(typing: Any, number: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return numba.types.int64(numba.types.float64), code


@written_as(lambda bits: np.int64(bits).view(np.float64))
def _number_of(typing: Any, bits: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return numba.types.float64(numba.types.int64), code


@inlined
def log(x: float) -> float:
    """Return the logarithm of a finite x ≥ 1e-300 by operations that vectorise; right to a few units of the last place.

    x = m·2^k with m around 1, and log m = 2·artanh(f), f = (m − 1)/(m + 1), by fdlibm's polynomial in f², its odd and
    its even terms apart: a sum of one term after the other is a chain of waiting. A call of the library's logarithm
    would keep a loop over arms from being compiled for several at a time.
    """
    bits = _bits_of(x)
    # The exponent as a number: behind 2^52, whose last place is 1. To convert it is not to be had for several at once.
    exponent = _number_of(((bits >> 52) & 0x7FF) | 0x4330000000000000) - 4503599627370496.0 - 1023.0
    m = _number_of((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000)
    large = m > 1.4142135623730951
    m = 0.5 * m if large else m
    exponent = exponent + 1.0 if large else exponent
    f = (m - 1.0) / (m + 1.0)
    q = f * f
    w = q * q
    odd = 0.6666666666666735130 + w * (0.2857142874366239149 + w * (0.1818357216161805012 + w * 0.1479819860511658591))
    even = 0.3999999999940941908 + w * (0.2222219843214978396 + w * 0.1531383769920937332)
    return float(exponent * 0.6931471805599453 + (2.0 * f + f * q * (odd + q * even)))
