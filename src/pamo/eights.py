"""Eight numbers as one: what a formula written for one user is compiled for, so that it serves eight users at once.

A user's estimate is a chain of roots and divisions, each of which waits for the one before: a processor that could do
eight of them in that time does one. A formula that reads a user's numbers from an array does the same for eight users
where it is given `abreast(table)`, an array each of whose numbers is eight users' at once: sums, products, roots,
logarithms and comparisons by `max` and `min` are then those of all eight. Nothing but an `if` about such a number is
not to be had, since users may differ in it: `above` and `summed` stand in for it. On a GPU, in plain Python and
where users come one by one, the same formula is given arrays of plain numbers.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]  # it ships no types
from numba.core import cgutils
from numba.core.imputils import lower_builtin, lower_cast
from numba.core.typeconv.castgraph import Conversion
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import models, register_model
from numba.np.arrayobj import populate_array

from pamo.compiling import inlined, written_as
from pamo.words import LANES

_Type: Any = numba.types.Type  # Numba's own classes have no types
_Template: Any = ConcreteTemplate
_Model: Any = models.PrimitiveModel
_casts: Any = lower_cast


class Eight(_Type):  # type: ignore[misc]  # as above
    """A number of each of eight users, in one register."""

    def __init__(self) -> None:
        super().__init__(name="eight")

    def can_convert_from(self, typing: Any, other: Any) -> Any:
        """Tell that a number that all share is a number of each."""
        return Conversion.promote if isinstance(other, numba.types.Float | numba.types.Integer) else None


EIGHT = Eight()
_LINE = ir.VectorType(ir.DoubleType(), LANES)


@register_model(Eight)
class _Register(_Model):  # type: ignore[misc]  # as above
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _LINE)


def _each(builder: Any, number: Any) -> Any:
    """Return code for a number that all eight share."""
    whole, nothing = ir.IntType(32), ir.Constant(_LINE, ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(whole, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(whole, LANES), None))


def _shared(context: Any, builder: Any, of: Any, to: Any, value: Any) -> Any:
    return _each(builder, context.cast(builder, value, of, numba.types.float64))


for _kind in (numba.types.Float, numba.types.Integer):
    _casts(_kind, Eight)(_shared)


def _means(functions: tuple[Any, ...], count: int, write: Any) -> None:
    """Have functions of so many numbers mean, of eights, what `write` writes."""
    kinds = (EIGHT,) * count

    class Template(_Template):  # type: ignore[misc]  # as above
        cases = [signature(EIGHT, *kinds)]  # noqa: RUF012  # as Numba has it

    def code(context: Any, builder: Any, called: Any, arguments: Any) -> Any:
        return write(context, builder, *arguments)

    for function in functions:
        infer_global(function)(Template)
        lower_builtin(function, *kinds)(code)


def _one_by_one(function: Any) -> Any:
    """Return what writes a call of the library's function for each of eight numbers."""
    real = numba.types.float64

    def write(context: Any, builder: Any, numbers: Any) -> Any:
        call = context.get_function(context.typing_context.resolve_value_type(function), signature(real, real))
        out = ir.Constant(_LINE, ir.Undefined)
        for lane in range(LANES):
            place = ir.Constant(ir.IntType(32), lane)
            out = builder.insert_element(out, call(builder, [builder.extract_element(numbers, place)]), place)
        return out

    return write


def _intrinsic(name: str) -> Any:
    """Return what writes a call of one of LLVM's own functions."""

    def write(context: Any, builder: Any, numbers: Any) -> Any:
        kind = ir.FunctionType(_LINE, [_LINE])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"{name}.v{LANES}f64"), [numbers])

    return write


def _the(sign: str) -> Any:
    """Return what writes the second of two numbers where it is `sign` the first, as Python's `max` and `min` do."""

    def write(context: Any, builder: Any, one: Any, other: Any) -> Any:
        return builder.select(builder.fcmp_ordered(sign, other, one), other, one)

    return write


_means((operator.add, operator.iadd), 2, lambda context, builder, one, other: builder.fadd(one, other))
_means((operator.sub, operator.isub), 2, lambda context, builder, one, other: builder.fsub(one, other))
_means((operator.mul, operator.imul), 2, lambda context, builder, one, other: builder.fmul(one, other))
_means((operator.truediv, operator.itruediv), 2, lambda context, builder, one, other: builder.fdiv(one, other))
_means((operator.neg,), 1, lambda context, builder, number: builder.fneg(number))
_means((max,), 2, _the(">"))
_means((min,), 2, _the("<"))
_means((abs,), 1, _intrinsic("llvm.fabs"))
_means((math.sqrt,), 1, _intrinsic("llvm.sqrt"))
for _function in (math.log, math.log1p):
    _means((_function,), 1, _one_by_one(_function))


@written_as(lambda table, lanes: table[..., 0], uncounted=True)
def abreast(typing: Any, table: Any, lanes: Any) -> Any:
    """Return a table of which the last axis is lanes, bare, as one of eight users' numbers, an axis less.

    lanes: `LANES`, or None on a GPU and where users come one by one: there is one lane then, and so in Python.
    """
    alone = isinstance(lanes, numba.types.NoneType)
    line: Any = numba.types.Array(table.dtype if alone else EIGHT, table.ndim - 1, "C", aligned=alone)

    def code(context: Any, builder: Any, called: Any, arguments: Any) -> Any:
        view = context.make_array(table)(context, builder, value=arguments[0])
        shape, strides = (
            [builder.extract_value(of, axis) for axis in range(line.ndim)] for of in (view.shape, view.strides)
        )
        out = context.make_array(line)(context, builder)
        data = builder.bitcast(view.data, out.data.type)
        size = view.itemsize if alone else ir.Constant(context.get_value_type(numba.types.intp), 8 * LANES)
        populate_array(out, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
        return out._getvalue()

    return line(table, lanes), code


def _folded(number: Any, fold: Any) -> Any:
    """Return the signature and the code of what makes one number of eight, half by half; one is left as it is."""

    def code(context: Any, builder: Any, called: Any, arguments: Any) -> Any:
        (whole,), size = arguments, LANES
        if number != EIGHT:
            return whole
        while size > 1:
            size //= 2
            halves = (
                builder.shuffle_vector(whole, whole, ir.Constant(ir.VectorType(ir.IntType(32), size), places))
                for places in (list(range(size)), list(range(size, 2 * size)))
            )
            whole = fold(context, builder, *halves)
        return builder.extract_element(whole, ir.Constant(ir.IntType(32), 0))

    return (numba.types.float64 if number == EIGHT else number)(number), code


@written_as(lambda number: number)
def summed(typing: Any, number: Any) -> Any:
    """Return the sum of a number over the users whose it is: eight, or one."""
    return _folded(number, lambda context, builder, one, other: builder.fadd(one, other))


@written_as(lambda number: number)
def greatest(typing: Any, number: Any) -> Any:
    """Return the greatest of them."""
    return _folded(number, _the(">"))


@written_as(lambda table: 1)
def together(typing: Any, table: Any) -> Any:
    """Return of how many users the numbers of a table are."""
    whole = numba.types.intp

    def code(context: Any, builder: Any, called: Any, arguments: Any) -> Any:
        return ir.Constant(context.get_value_type(whole), LANES if table.dtype == EIGHT else 1)

    return whole(table), code


@written_as(lambda number, bound, one, other: one if number > bound else other)
def above(typing: Any, number: Any, bound: Any, one: Any, other: Any) -> Any:
    """Return one for each user whose number is above a bound, and the other for the rest."""
    compared, chosen = (typing.unify_types(*kinds) for kinds in ((number, bound), (one, other)))
    if EIGHT in (compared, chosen):
        compared = chosen = EIGHT

    def code(context: Any, builder: Any, called: Any, arguments: Any) -> Any:
        values = (
            context.cast(builder, value, kind, to)
            for value, kind, to in zip(arguments, called.args, (compared, compared, chosen, chosen), strict=True)
        )
        first, second, *both = values
        return builder.select(builder.fcmp_ordered(">", first, second), *both)

    return chosen(number, bound, one, other), code


@written_as(lambda power: math.ldexp(1.0, int(power)))
def _two_to(typing: Any, power: Any) -> Any:
    """Return 2 to a whole power from −1022 to 1023, by writing the power where a float has its exponent."""

    def code(context: Any, builder: Any, called: Any, arguments: Any) -> Any:
        eights = power == EIGHT
        kind, whole = (ir.DoubleType(), ir.IntType(64)) if not eights else (_LINE, ir.VectorType(ir.IntType(64), LANES))
        # To 2^52, whose last place is 1: the whole number is then in the last bits.
        beyond, place = ([value] * LANES if eights else value for value in (4503599627370496.0 + 1023.0, 52))
        bits = builder.bitcast(builder.fadd(arguments[0], ir.Constant(kind, beyond)), whole)
        return builder.bitcast(builder.shl(bits, ir.Constant(whole, place)), kind)

    return power(power), code


@inlined
def exp(x: Any) -> Any:
    """Return e to the power of x, from −700 to 700, by operations that there are of eights; right to the last place.

    x = k·log 2 + r, and e^r by fdlibm's polynomial in r². A call of the library's for each of eight takes most of the
    time that eights save.
    """
    k = (x * 1.4426950408889634 + 6755399441055744.0) - 6755399441055744.0  # to a whole number, by what 2^52.6 leaves
    high, low = x - k * 0.69314718036912381649, k * 1.90821492927058770002e-10
    r = high - low
    q = r * r
    tail = q * (6.61375632143793436117e-5 + q * (-1.65339022054652515390e-6 + q * 4.13813679705723846039e-8))
    c = r - q * (0.166666666666666019037 + q * (tail - 2.77777777770155933842e-3))
    return _two_to(k) * (1.0 - ((low - r * c / (2.0 - c)) - high))
