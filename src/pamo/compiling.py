"""One way to compile a kernel, for every kernel: the same options, and a disk cache that cannot go stale.

Numba's cache notices a change in the file of the compiled function, but not in the files of the functions
that were compiled into it. A simulator that ran yesterday's formula would be a silent error, so the stamp under
which our kernels are cached covers every source file of the package that holds one.
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.extending import overload, register_jitable

SPECIALISED = 8
"""Up to this many objectives a kernel is compiled for that very number; above it one kernel serves them all."""

OPTIONS: dict[str, Any] = {
    "nogil": True,  # trials run on threads
    "error_model": "numpy",  # a division by zero is an infinity, as in the formulas, and not a branch
    "fastmath": {"contract", "nsz", "arcp", "reassoc"},  # scores may be infinite, so never nnan or ninf
}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` with Numba, as every kernel of pamo and of its users is, and cache it on disk.

    >>> @kernel
    ... def double(x):
    ...     return 2.0 * x
    >>> double(4.0)
    8.0
    """
    return _cached(numba.njit(**OPTIONS)(function))


def inlined(function: Callable[..., Any]) -> Any:
    """Compile `function` as `kernel` does, and always into its callers.

    An array is seven words or more to pass, so a call costs more than most of our small functions do.
    """
    return _cached(numba.njit(forceinline=True, **OPTIONS)(function))


def anywhere(function: Callable[..., Any]) -> Any:
    """Return the function itself for Python to call; where a kernel calls it, it is compiled into that kernel."""
    return register_jitable(forceinline=True, **OPTIONS)(function)


def compile_for(function: Callable[..., Any], signature: Any) -> Any:
    """Compile `function` for one signature, at once.

    Naming the signature is what lets an argument be a `numba.types.FunctionType`: code that calls a function through
    such an argument is compiled once for all functions of that type, and so its cache is of use to every process.
    """
    compiled = _cached(numba.njit(**OPTIONS)(function))
    collecting = gc.isenabled()
    gc.disable()  # compiling, or reading the cache, makes much that stays: collecting on the way is time lost
    try:
        compiled.compile(signature)
    finally:
        if collecting:
            gc.enable()
    compiled.disable_compile()
    return compiled


def _cached(compiled: Any) -> Any:
    """Return the dispatcher with its disk cache switched on, stamped for the whole package."""
    try:
        compiled.enable_caching()
    except RuntimeError:  # typed into a prompt: there is no file to cache beside
        return compiled
    # Numba offers no public way to widen the stamp; where a later version keeps it elsewhere, its own stays.
    cache_file: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = (cache_file._source_stamp, kernel_stamp())
    return compiled


@cache
def kernel_stamp() -> str:
    """Return a digest of the package's source files that hold kernels, and of how they are compiled."""
    root = Path(__file__).parent
    digest = hashlib.sha256(repr(sorted((name, str(value)) for name, value in _stable_options())).encode())
    for path in sorted(root.rglob("*.py")):
        source = path.read_bytes()
        if b"pamo.compiling" in source:
            digest.update(str(path.relative_to(root)).encode() + source)
    return digest.hexdigest()


def _stable_options() -> list[tuple[str, Any]]:
    """Return the options in an order that does not change from process to process."""
    return [(name, sorted(value) if isinstance(value, set) else value) for name, value in OPTIONS.items()]


def dimensions(objectives: int) -> Any:
    """Return what tells a kernel the number of objectives: by its type up to `SPECIALISED`, by its value above.

    A tuple of `None` holds no data, and Numba compiles a function anew for each length of it, so `count_of` is a
    constant in the machine code and the loops over objectives unroll.

    >>> dimensions(3), dimensions(20)
    ((None, None, None), 20)
    """
    return (None,) * objectives if objectives <= SPECIALISED else objectives


def count_of(dims: Any) -> int:
    """Return the number of objectives that `dimensions` wrapped.

    >>> count_of(dimensions(3)), count_of(dimensions(20))
    (3, 20)
    """
    return dims if isinstance(dims, int) else len(dims)


@overload(count_of)
def _count_of(dims):  # type: ignore[no-untyped-def]  # Numba compares the signatures, annotations included
    if isinstance(dims, numba.types.Integer):
        return lambda dims: dims
    return lambda dims: len(dims)  # noqa: PLW0108  # Numba compiles a function of ours, and `len` is not one
