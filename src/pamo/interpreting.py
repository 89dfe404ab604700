"""Kernels as plain Python, which stand in for compiled code that is not there yet.

What the compiler makes of a kernel and what Python makes of it are the same to the last bit, so that nobody can tell
which of them answered: the code that Python calls is compiled without the liberties that a simulator's loop takes
(`pamo.compiling`), and here Python calculates as compiled code does. All numbers are of the same 64 bits, a division by
zero is an infinity, a logarithm of nothing as well.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import math
import threading
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

FORMS: dict[Any, Callable[..., Any]] = {}
"""In Python, what is compiled into the kernels that call it, or is written for them as machine code."""

_made: dict[FunctionType, FunctionType] = {}
_making = threading.RLock()


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel's function as one that calls nothing but plain Python, whatever is compiled meanwhile.

    >>> plain(lambda x: 1.0 / x)(0.0)
    inf
    """
    made = _copy(function)

    def stand_in(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return _handed_back(made(*map(_number, arguments)))

    return stand_in


def _copy(function: Callable[..., Any]) -> Callable[..., Any]:
    if not isinstance(function, FunctionType):  # of a list, or of NumPy
        return function
    with _making:
        if function not in _made:
            names: dict[str, Any] = {"__builtins__": builtins, "float": np.float64}
            cells = tuple(CellType() for _ in function.__closure__ or ())
            code = _widened(function.__code__)
            _made[function] = FunctionType(code, names, function.__name__, function.__defaults__, cells)
            known = function.__globals__
            names.update({name: _as_plain(known[name]) for name in _named(code) if name in known})
            for cell, own in zip(cells, function.__closure__ or (), strict=True):
                cell.cell_contents = _as_plain(own.cell_contents)
        return _made[function]


def _as_plain(value: Any) -> Any:
    """Return what stands for a global name's value."""
    if value is math:
        return _MATH
    if isinstance(value, ModuleType | type):
        return value
    if hasattr(value, "py_func"):
        return _copy(value.py_func)
    try:
        return _copy(FORMS[value])
    except (KeyError, TypeError):
        return _number(value)


def _number(value: Any) -> Any:
    """Return a float as NumPy's, which divides as compiled code does."""
    if type(value) is tuple:
        return tuple(map(_number, value))
    return np.float64(value) if type(value) is float else value


def _handed_back(value: Any) -> Any:
    """Return a result as compiled code hands it to Python."""
    if type(value) is tuple:
        return tuple(map(_handed_back, value))
    return value.item() if isinstance(value, np.generic) else value


def _widened(code: CodeType) -> CodeType:
    """Return the code with NumPy's floats for those that it names."""
    return code.replace(
        co_consts=tuple(_widened(one) if isinstance(one, CodeType) else _number(one) for one in code.co_consts)
    )


def _named(code: CodeType) -> set[str]:
    """Return the names that a function, or one within it, may look up."""
    inner = (_named(one) for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*inner)


def _everywhere(name: str) -> Callable[..., Any]:
    """Return a function of the library's `math` that has a value where Python raises an error."""
    function, beyond = getattr(math, name), getattr(np, name, None)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return _number(function(*arguments))
        except (ValueError, OverflowError):
            return beyond(*arguments)  # type: ignore[misc]  # those that can fail are NumPy's, too

    return call


_MATH = SimpleNamespace(
    **{
        name: _everywhere(name) if callable(value) else _number(value)
        for name, value in vars(math).items()
        if not name.startswith("_")
    }
)


class NotCompiledError(Exception):
    """Compiled code is asked for that is not in the cache."""


class _Way(threading.local):
    """What a thread does where code is not in the cache: compile, stand in or refuse; None: what all do."""

    own: str | None = None


_COMPILE, _STAND_IN, _REFUSE = "compile", "stand in", "refuse"
_way = _Way()
_usual = _COMPILE


def standing_in() -> bool:
    """Tell whether Python stands in for code that is not in the cache, in this thread."""
    return (_way.own or _usual) == _STAND_IN


def refusing() -> bool:
    """Tell whether code that is not in the cache is refused, in this thread."""
    return _way.own == _REFUSE


def stand_in() -> None:
    """From now on, have Python stand in for code that is not in the cache, in all threads."""
    _set(_STAND_IN)


def compile_again() -> None:
    """From now on, have code compiled that is not in the cache."""
    _set(_COMPILE)


def _set(way: str) -> None:
    global _usual  # noqa: PLW0603  # of the process, as the compiled code is
    _usual = way


@contextlib.contextmanager
def _by(way: str) -> Iterator[None]:
    before, _way.own = _way.own, way
    try:
        yield
    finally:
        _way.own = before


def from_cache() -> contextlib.AbstractContextManager[None]:
    """Have this thread raise `NotCompiledError` where code is not in the cache."""
    return _by(_REFUSE)


def compiling_here() -> contextlib.AbstractContextManager[None]:
    """Have this thread load or compile code, whatever the others do."""
    return _by(_COMPILE)
