"""How Python hands the compiled loop all that it plays on: as words in one line, of which the loop makes it again.

Numba takes each table apart by a page of code, and each tuple of tables: of the simulator's loop that was a quarter.
Here Python does, and the loop reads where a table begins and its shape.

Where a call is over in a tenth of a microsecond, compiled code reads that by itself, of Python's own array.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from itertools import count
from struct import pack, unpack
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # it ships no types
from numba import types
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import as_dtype

from pamo.compiling import compile_for, inlined, written_as
from pamo.words import wholes_at

FUNCTIONS = 5
"""The most functions among the arguments."""

_Tuple: Any = types.BaseTuple  # of Numba, untyped
_WORDS = types.Array(types.uint64, 1, "C")


class Handed:
    """A function compiled for one signature, whose arguments are functions and what words can say.

    Functions are not the first of them, which Numba takes for several of one kind. It returns nothing, and keeps no
    table that it is given: they come without a count of references.
    """

    def __init__(self, function: Callable[..., Any], signature: Any) -> None:
        kinds, take, whole = signature.args, _taking(signature.args), inlined(function)

        def call(words, first, second, third, fourth, fifth):  # type: ignore[no-untyped-def]  # Numba's kinds
            whole(*take(words, first, second, third, fourth, fifth))

        self._places = [place for place, kind in enumerate(kinds) if isinstance(kind, types.FunctionType)]
        self._absent = (None,) * (FUNCTIONS - len(self._places))
        self._write = _writing(types.Tuple([_nothing(kind) for kind in kinds]))
        functions = [kinds[place] for place in self._places] + [types.none] * len(self._absent)
        self.compiled = compile_for(call, types.void(_WORDS, *functions), whole, of=str(signature))

    def __call__(self, *arguments: Any) -> None:
        """Call it; whoever does holds the tables meanwhile."""
        words: list[int] = []
        self._write(arguments, words)
        functions = [arguments[place] for place in self._places]
        self.compiled(np.array(words, dtype=np.uint64), *functions, *self._absent)


def _nothing(kind: Any) -> Any:
    return types.none if isinstance(kind, types.FunctionType) else kind


def _writing(kind: Any) -> Callable[[Any, list[int]], None]:
    """Return what appends a value of a kind to the words."""
    if isinstance(kind, _Tuple):
        parts = [_writing(part) for part in kind]

        def write_parts(value: Any, words: list[int]) -> None:
            for write, one in zip(parts, value, strict=True):
                write(one, words)

        return write_parts
    if isinstance(kind, types.Array):
        dtype, axes = as_dtype(kind.dtype), kind.ndim

        def write_table(value: Any, words: list[int]) -> None:
            if value.dtype != dtype or value.ndim != axes or not value.flags.carray:
                raise TypeError(f"expected {kind}, got {numba.typeof(value)}")
            words.append(value.ctypes.data)
            words.extend(value.shape)

        return write_table
    if isinstance(kind, types.Float):
        return lambda value, words: words.extend(unpack("Q", pack("d", value)))
    if isinstance(kind, types.Integer | types.Boolean):
        return lambda value, words: words.append(int(value) % 2**64)
    return lambda value, words: None


def _taking(kinds: Any) -> Any:
    """Return what gives a kernel values of these kinds, of the words and the functions among them."""
    whole = types.Tuple(kinds)

    @written_as(lambda *handed: None, uncounted=True)
    def take(typing: Any, words: Any, first: Any, second: Any, third: Any, fourth: Any, fifth: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            line, *functions = arguments
            start = context.make_array(words)(context, builder, value=line).data
            places, given = count(), iter(functions)

            def word() -> Any:
                return builder.load(builder.gep(start, [ir.Constant(ir.IntType(64), next(places))]))

            def value(kind: Any) -> Any:
                if isinstance(kind, types.FunctionType):
                    return next(given)
                if isinstance(kind, _Tuple):
                    return context.make_tuple(builder, kind, [value(part) for part in kind])
                if isinstance(kind, types.Array):
                    return _table(context, builder, kind, word(), [word() for _ in range(kind.ndim)])
                if isinstance(kind, types.Float):
                    return builder.bitcast(word(), context.get_value_type(kind))
                if isinstance(kind, types.Integer | types.Boolean):
                    made = context.get_value_type(kind)
                    return word() if made.width == 64 else builder.trunc(word(), made)
                return context.get_dummy_value()

            return value(whole)

        return whole(words, first, second, third, fourth, fifth), code

    return take


def _table(context: Any, builder: Any, kind: Any, start: Any, shape: Any) -> Any:
    """Return code for an array without gaps and without references, from an address on."""
    size = ir.Constant(ir.IntType(64), context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    strides = [size]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    out = context.make_array(kind)(context, builder)
    data = builder.inttoptr(start, out.data.type)
    populate_array(out, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
    return out._getvalue()


_KIND, _DATA, _AXES, _SHAPE, _NUMBERS, _FLAGS = 1, 2, 3, 4, 7, 8
"""Words of an array as Python holds it: public in NumPy since its first version."""
_PLAIN = 0x101
"""Of its flags: that its numbers lie one behind the other, where numbers may."""
_HALF = 2**32 - 1


@cache
def known_arrays() -> tuple[int, int, int]:
    """Return by what compiled code knows arrays, and such of 64 bits, floats and whole numbers.

    It is looked up in some arrays whether they lie as expected. Where one does not it is zeros, and no array is known.
    """
    lines = np.arange(3.0), np.arange(8)[::2], np.zeros((2, 3))
    if sys.implementation.name != "cpython" or not all(map(_lies_as_expected, lines)):
        return 0, 0, 0
    return id(np.ndarray), id(np.dtype(np.float64)), id(np.dtype(np.int64))


def _lies_as_expected(array: Any) -> bool:
    words = (ctypes.c_int64 * 9).from_address(id(array))
    known = {_KIND: id(np.ndarray), _DATA: array.ctypes.data, _NUMBERS: id(array.dtype)}
    if any(words[place] != word for place, word in known.items()):
        return False  # and the rest is not to be looked at
    shape = (ctypes.c_int64 * array.ndim).from_address(words[_SHAPE])
    plain = bool(array.flags.c_contiguous and array.flags.aligned)
    return (
        words[_AXES] & _HALF == array.ndim
        and tuple(shape) == array.shape
        and (words[_FLAGS] & _PLAIN == _PLAIN) == plain
    )


@inlined
def line_length(given: int, array: int, numbers: int) -> int:
    """Return how long the line is that Python holds at an address, or -1 where it is no array of such numbers.

    array, numbers: of `known_arrays`.
    """
    words = wholes_at(given, 9)
    if array == 0 or words[_KIND] != array or words[_NUMBERS] != numbers:
        return -1
    if words[_AXES] & _HALF != 1 or words[_FLAGS] & _PLAIN != _PLAIN:
        return -1
    return wholes_at(words[_SHAPE], 1)[0]  # type: ignore[no-any-return]  # of an array


@inlined
def line_start(given: int) -> int:
    """Return the address of its numbers."""
    return wholes_at(given, 9)[_DATA]  # type: ignore[no-any-return]  # as above
