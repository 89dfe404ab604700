"""One way to compile a kernel, for every kernel: the same options, and a disk cache that cannot mislead.

Numba's cache notices a change in the file of the compiled function, but not in the files of the functions
that were compiled into it. A simulator that ran yesterday's formula would be a silent error, so the stamp under
which our kernels are cached covers every source file of the package that holds one. Nor does it expect several
processes to fill it: what they may do to each other there, `_Entries` and `around` keep apart.
"""

from __future__ import annotations

import glob
import hashlib
import math
import operator
import os
import re
import uuid
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import binding, ir  # type: ignore[import-untyped]  # it ships no types
from numba.core import cgutils
from numba.core import ir as nodes
from numba.core.caching import CompileResultCacheImpl, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags, compile_result
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.cpu import CPUContext
from numba.core.cpu_options import FastMathOptions
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import AnnotateTypes
from numba.extending import intrinsic, overload
from numba.np.arrayobj import populate_array

from pamo.collecting import uncollected
from pamo.interpreting import FORMS, NotCompiledError, plain, refusing, standing_in

Function = TypeVar("Function", bound=Callable[..., Any])

_intrinsic: Any = intrinsic
# Numba's own classes have no types.
_Files: Any = IndexDataCacheFile
_Library: Any = JITCodeLibrary
_Dispatcher: Any = CPUDispatcher
_Kept: Any = CompileResultCacheImpl
_Flags: Any = Flags
_Analysis: Any = AnalysisPass
_register: Any = register_pass

LANES = 8
"""Arms, or the simulator's users, that are worked on abreast."""

SPECIALISED = frozenset(int(number) for number in os.environ.get("PAMO_SPECIALISED", "1,2,3,4,5,6,7,8").split(","))
"""For these numbers of objectives a kernel is compiled for that very number; one kernel serves all others.

The variable `PAMO_SPECIALISED` names others: fewer mean less to compile where many numbers are met, as in the tests.
"""

OPTIONS: dict[str, Any] = {
    "nogil": True,  # trials run on threads
    "error_model": "numpy",  # a division by zero is an infinity, as in the formulas, and not a branch
    # On a GPU, and in the simulator's loop. Scores may be infinite, so never nnan or ninf. And never reassoc: a
    # compiler that peels a loop's first round may sum it in another order, which rounds otherwise, and arms of which
    # the same was seen would not tie.
    "fastmath": {"contract", "nsz", "arcp"},
}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` with Numba, as every kernel of pamo and of its users is, and cache it on disk.

    >>> @kernel
    ... def double(x):
    ...     return 2.0 * x
    >>> double(4.0)
    8.0
    """
    return _within(function, _Inside)


def entry(function: Callable[..., Any]) -> Any:
    """Compile `function` as `kernel` does, for Python to call at once, and often."""
    compiled = _cached(numba.njit(pipeline_class=_Rooted, **OPTIONS)(function))
    if type(compiled) is CPUDispatcher:
        compiled.__class__ = _Entry
    return compiled


class _Entry(_Dispatcher):  # type: ignore[misc]  # of Numba, untyped
    """What Python calls. Where its code is not in the cache, Python itself may stand in for it."""

    @cached_property
    def stand_in(self) -> Callable[..., Any]:
        return plain(self.py_func)

    @cached_property
    def missing(self) -> set[Any]:
        """The types of arguments of which no code was found in the cache."""
        return set()

    def _compile_for_args(self, *arguments: Any, **named: Any) -> Any:
        """Return what is called with these arguments, which are of types that are met for the first time."""
        if (standing_in() or refusing()) and self._is_missing(tuple(map(self.typeof_pyval, arguments))):
            if refusing():
                raise NotCompiledError(self.py_func.__qualname__)
            return self.stand_in
        return super()._compile_for_args(*arguments, **named)

    def _is_missing(self, types: Any) -> bool:
        """Tell whether there is a cache without the code for these types; it is looked for once."""
        files = getattr(self._cache, "_cache_file", None)
        if files is None:
            return False
        if types not in self.missing:
            if self._cache._index_key(types, self.targetctx.codegen()) in files._load_index():
                return False
            self.missing.add(types)
        return True


_ARITHMETIC = re.compile(r"(= (?:f(?:add|sub|mul|div|rem|cmp)|(?:tail )?call(?= (?:double|float) ))) ")


class _LoopCode(_Library):  # type: ignore[misc]  # of Numba, untyped
    """Code of the simulator's loop, which may round a product and its sum at once: up to an eighth of its time.

    The kernels in it are kept without that liberty. What Python calls is then what Python itself would calculate.
    """

    _final_module: Any

    def _optimize_final_module(self) -> None:
        strict = self._final_module
        freely = rf"\1 {' '.join(sorted(OPTIONS['fastmath']))} "
        self._final_module = binding.parse_assembly(_ARITHMETIC.sub(freely, str(strict)))
        self._final_module.name = strict.name
        super()._optimize_final_module()
        # What is called is looked up by its name in all that was loaded: code of one would call that of the other.
        for function in self._final_module.functions:
            if function.linkage == binding.Linkage.linkonce_odr and not function.is_declaration:
                function.name += ".looped"


class _InlinedCode(_Library):  # type: ignore[misc]  # of Numba, untyped
    """Code that is only ever compiled into other code.

    It is optimised where it went, with all that is known there. To optimise it by itself as well, at every level of
    functions that call functions, and to make machine code of it, takes up to a quarter of the time of compiling.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing: what Python would find there is for functions that Python calls."""


@_register(mutates_CFG=False, analysis_only=True)
class _Counting(_Analysis):  # type: ignore[misc]  # of Numba, untyped
    """Has a function that only looks at arrays, and makes none, leave their counts of references alone.

    Whoever calls it holds the arrays, and all that it sees are views of them. To count takes code for each array of a
    tuple, wherever the tuple goes: a quarter of the time of compiling.
    """

    _name = "pamo_counting"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        if _only_looks(state):
            state.targetctx = state.targetctx.subtarget(enable_nrt=False)
            vars(state.targetctx).pop("nrt", None)  # of the context that was copied
        return False


def _only_looks(state: Any) -> bool:
    """Tell whether every array of a function is an argument or a view of one, and none is returned.

    What is not known to make no array is taken to make one: Numba then counts as always.
    """
    types, kinds, models = numba.types, state.typemap, state.targetctx.data_model_manager
    holding = {kind for kind in set(kinds.values()) if models[kind].contains_nrt_meminfo()}

    def holds(variable: Any) -> bool:
        return kinds[variable.name] in holding

    def views(index: Any) -> bool:
        """Tell whether an index picks a number or a view."""
        kind: Any = types.int64 if index is None else kinds[index.name]
        parts: Any = kind if isinstance(kind, types.BaseTuple) else (kind,)
        return all(isinstance(part, types.Integer | types.SliceType | types.EllipsisType) for part in parts)

    def calls(function: Any, result: bool) -> bool:
        """Tell whether a call of a function, with arrays, makes none; result: whether it returns one."""
        key = getattr(function, "typing_key", None)
        if isinstance(function, types.NamedTupleClass) or key in (bare, lane_of, row_of, line_of, grid_of, cube_of):
            return True
        compiled = isinstance(function, types.Dispatcher | types.FunctionType) or key in (len, (types.Array, "fill"))
        return not result and (compiled or key in FORMS)

    def looks(step: Any) -> bool:
        """Tell whether a statement makes no array."""
        if isinstance(step, nodes.SetItem | nodes.StaticSetItem):  # an array is copied where the two might overlap
            return not holds(step.value) and views(getattr(step, "index_var", getattr(step, "index", None)))
        if not isinstance(step, nodes.Assign):
            return isinstance(step, nodes.Del | nodes.Jump | nodes.Branch | nodes.Return | nodes.StaticRaise)
        value, result = step.value, holds(step.target)
        if not isinstance(value, nodes.Expr):
            return isinstance(value, nodes.Arg | nodes.Var | nodes.Const | nodes.Global | nodes.FreeVar)
        if not result and not any(map(holds, value.list_vars())):
            return True
        if value.op == "call":
            return calls(kinds[value.func.name], result)
        if value.op in ("getitem", "static_getitem"):
            of_tuple = isinstance(kinds[value.value.name], types.BaseTuple)
            return of_tuple or views(value.index if value.op == "getitem" else value.index_var)
        if value.op == "getattr":
            return not isinstance(kinds[step.target.name], types.Array) or isinstance(
                kinds[value.value.name], types.BaseTuple
            )
        return value.op in ("build_tuple", "exhaust_iter", "cast") or (
            value.op == "binop" and value.fn in (operator.is_, operator.is_not)
        )

    seen = types.Array | types.BaseTuple | types.BoundFunction
    return (
        state.return_type not in holding
        and all(isinstance(kind, seen) for kind in holding)
        and all(looks(step) for block in state.func_ir.blocks.values() for step in block.body)
    )


class _Compared(_Flags):  # type: ignore[misc]  # of Numba, untyped
    """How a function is compiled, for Numba to look up what it has compiled so already, thousands of times a function.

    Numba compares all that may be said, defaults included, which takes a tenth of the time of compiling.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> Any:
        return (isinstance(other, Flags) and self._values == other._values) or super().__eq__(other)

    def __hash__(self) -> int:
        return _HASH


_HASH = hash(Flags())


class _Rooted(Compiler):
    """Compiles functions that Python calls, with all that they call."""

    from_python, by_pointer = True, False
    """The ways in: a call from Python, or through a pointer; none where it is for other kernels alone."""
    apart = False
    """Whether array arguments never overlap, which Numba cannot be told otherwise."""
    looped = False
    """Whether it is part of the simulator's loop."""

    def __init__(self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, local: Any) -> None:
        flags.__class__ = _Compared
        flags.fastmath = FastMathOptions(False)
        flags.no_cpython_wrapper, flags.no_cfunc_wrapper = not self.from_python, not self.by_pointer
        super().__init__(typing, target, library, args, result, flags, local)  # type: ignore[no-untyped-call]  # of Numba, untyped

    def define_pipelines(self) -> Any:
        state: Any = self.state
        if self.apart:
            state.flags.noalias = True
        if self.looped:
            state.library = _LoopCode(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
        if not (self.from_python or self.by_pointer):
            state.library = _InlinedCode(state.targetctx.codegen(), state.func_id.func_qualname)
        (pipeline,) = super().define_pipelines()  # type: ignore[no-untyped-call]  # of Numba, untyped
        pipeline.add_pass_after(_Counting, AnnotateTypes)
        pipeline.finalize()
        return [pipeline]

    def _compile_core(self) -> Any:
        with uncollected():  # what a compiler makes stays, and looking at it again and again is time lost
            return super()._compile_core()  # type: ignore[no-untyped-call]  # as above


class _Inside(_Rooted):
    from_python = False


class _ApartInside(_Inside):
    apart = True


class _Loop(_Rooted):
    looped = True


class _Looped(_Loop):
    """Compiles functions that are handed to the loop."""

    from_python, by_pointer = False, True


class _LoopedApart(_Looped):
    apart = True


class _RootedApart(_Rooted):
    apart = True


class _KeptInlined(_Kept):  # type: ignore[misc]  # of Numba, untyped
    """What is cached of such code, and made it again."""

    def reduce(self, result: Any) -> Any:
        of = result.fndesc
        of.typemap = of.calltypes = None  # of no more use, and not to be pickled
        code = result.library._get_module_for_linking().as_bitcode()
        return result.library.name, code, of, result.environment, result.signature, result.reload_init

    def rebuild(self, context: Any, payload: Any) -> Any:
        name, code, of, environment, signature, reload_init = payload
        for load in reload_init:
            load()
        library = _InlinedCode(context.codegen(), name)
        library._final_module = library._shared_module = binding.parse_bitcode(code)
        library._finalize_final_module()
        return compile_result(
            typing_context=context.typing_context,
            target_context=context,
            entry_point=context.get_executable(library, of, environment),
            environment=environment,
            signature=signature,
            objectmode=False,
            lifted=(),
            fndesc=of,
            library=library,
            reload_init=reload_init,
        )


class _Within(_Dispatcher):  # type: ignore[misc]  # of Numba, untyped
    """A function that is compiled into kernels; Python is given one compiled for it where it calls after all."""

    @cached_property
    def outside(self) -> Any:
        return entry(self.py_func)

    @cached_property
    def looped(self) -> Any:
        of = self.py_func
        copy = FunctionType(of.__code__, of.__globals__, of.__name__, of.__defaults__, of.__closure__)
        copy.__module__ = of.__module__
        copy.__qualname__ = f"{of.__qualname__}_looped"  # of two of one name, one might be called for the other
        return _handed(_cached(numba.njit(pipeline_class=_Looped, **OPTIONS)(copy)))

    def get_call_template(self, types: Any, named: Any) -> Any:
        """Return what a kernel calls, one for all values of a number: the compiler sees it when that is inlined."""
        return super().get_call_template(tuple(map(numba.types.unliteral, types)), named)

    def __call__(self, *arguments: Any) -> Any:
        return self.outside(*arguments)


class _Handed(_Dispatcher):  # type: ignore[misc]  # of Numba, untyped
    """A function that is handed to the simulator's loop, which calls it through a pointer; Python is given another."""

    @cached_property
    def outside(self) -> Any:
        return numba.njit(pipeline_class=_Loop, **OPTIONS)(self.py_func)

    def __call__(self, *arguments: Any) -> Any:
        return self.outside(*arguments)


def _handed(compiled: Any) -> Any:
    if type(compiled) is CPUDispatcher:
        compiled.__class__ = _Handed
    return compiled


def inlined(function: Callable[..., Any]) -> Any:
    """Compile `function` as `kernel` does, and always into its callers.

    An array is seven words or more to pass, so a call costs more than most of our small functions do.
    """
    return _within(function, _Inside, forceinline=True)


def apart(function: Callable[..., Any]) -> Any:
    """Compile `function` into its callers, on its word that no two of its arrays overlap: loops then vectorise."""
    return _within(function, _ApartInside, forceinline=True)


def _within(function: Callable[..., Any], compiler: type[_Rooted], **options: Any) -> Any:
    """Return the function compiled for other kernels alone."""
    compiled = _cached(numba.njit(pipeline_class=compiler, **options, **OPTIONS)(function))
    if type(compiled) is CPUDispatcher:
        compiled.__class__ = _Within
    usual = getattr(getattr(compiled, "_cache", None), "_index_key", None)
    if usual is not None:  # the same function may be a kernel, too
        compiled._cache._impl.__class__ = _KeptInlined
        compiled._cache._index_key = lambda signature, codegen: (usual(signature, codegen), compiler.__name__, *options)
    return compiled


def looped(compiled: Any) -> Any:
    """Return a kernel as one that can be handed to the simulator's loop as a function."""
    return compiled.looped if isinstance(compiled, _Within) else compiled


def anywhere(function: Function) -> Function:
    """Return the function itself for Python to call; where a kernel calls it, it is compiled into that kernel."""
    _written(function)(lambda *types: function)
    return function


def _written(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Have a kernel that calls `function` compile what is returned of the types that it calls it with."""

    def register(choose: Callable[..., Any]) -> None:
        FORMS[function] = function
        # For a processor's kernels, without the ways in that Numba would make; and for those of a GPU, which has none.
        options: Any = {"forceinline": True, **OPTIONS}
        for target, more in (("generic", {}), ("cpu", {"pipeline_class": _Inside})):
            overload(function, jit_options=options | more, strict=False, target=target)(choose)

    return register


def around(function: Callable[..., Any], *kernels: Any, strict: bool = False, of: Any = None) -> Any:
    """Compile `function`, a closure over the kernels, so that the next process finds it in the cache.

    strict: as what Python calls, without the liberties of the simulator's loop. of: plain values that it closes over.

    Numba looks a closure up by its pickled variables, which differ from process to process. We look it up by where the
    kernels come from and by these files' stamps. One that is a closure itself is compiled anew: what it closes over
    cannot be told.
    """
    places: list[Any] = []
    for kernel in kernels:
        stamp = getattr(getattr(getattr(kernel, "_cache", None), "_cache_file", None), "_source_stamp", None)
        known = stamp is not None and kernel.py_func.__closure__ is None
        code = kernel.py_func.__code__
        place = (code.co_filename, kernel.py_func.__module__, kernel.py_func.__qualname__, code.co_firstlineno, stamp)
        places.append(place if known else None)
    cacheable = None not in places
    digest = hashlib.sha256(repr((places, of)).encode() + function.__code__.co_code).hexdigest()
    # Numba tells closures of one name apart by how many functions the process had compiled before, so that two from the
    # caches of two processes may bear the same: one would then be called for the other.
    function.__qualname__ += f"_{digest[:16] if cacheable else uuid.uuid4().hex}"
    compiled = numba.njit(pipeline_class=_RootedApart if strict else _LoopedApart, **OPTIONS)(function)
    if cacheable:
        compiled = _cached(compiled)
        compiled._cache._index_key = lambda signature, codegen: (signature, codegen.magic_tuple(), digest)
    return compiled if strict else _handed(compiled)


def compile_for(function: Callable[..., Any], signature: Any) -> Any:
    """Compile `function` for one signature, at once.

    Naming the signature is what lets an argument be a `numba.types.FunctionType`: code that calls a function through
    such an argument is compiled once for all functions of that type, and so its cache is of use to every process.
    """
    compiled = _cached(numba.njit(pipeline_class=_Loop, **OPTIONS)(function))
    with uncollected():  # reading the cache makes as much
        compiled.compile(signature)
    compiled.disable_compile()
    return compiled


def _cached(compiled: Any) -> Any:
    """Return the dispatcher with its disk cache switched on, stamped for the whole package."""
    try:
        compiled.enable_caching()
    except RuntimeError:  # typed into a prompt: there is no file to cache beside
        return compiled
    # Numba offers no public way to widen the stamp; where a later version keeps it elsewhere, its own stays.
    cache: Any = getattr(compiled, "_cache", None)
    cache_file: Any = getattr(cache, "_cache_file", None)
    if type(cache_file) is IndexDataCacheFile and hasattr(cache_file, "_source_stamp"):
        stamp = (cache_file._source_stamp, kernel_stamp())
        cache._cache_file = _Entries(cache._cache_path, cache._impl.filename_base, stamp)
    return compiled


class _Entries(_Files):  # type: ignore[misc]  # of Numba, untyped
    """What is cached of a function, where processes of several versions may write and read at the same time.

    Numba numbers the files, and names one in the index before it is written. A reader may then find yesterday's code
    under today's name, and of two who add different signatures one may write over what the other's entry names: the
    code of one signature runs with the arguments of another. Here a file is named after what it holds, and written
    first; whoever comes between finds nothing, and compiles.
    """

    def save(self, key: Any, data: Any) -> None:
        digest = hashlib.sha256(repr((self._source_stamp, key)).encode()).hexdigest()
        name = self._data_name_pattern.replace("{number:d}", digest[:16])
        self._save_data(name, data)
        entries = self._load_index()
        self._save_index({**entries, key: name})
        if not entries:  # the first of its version: what is left of earlier ones is of no more use
            for path in Path(self._cache_path).glob(glob.escape(self._data_name_pattern.split("{")[0]) + "*.nbc"):
                if path.name != name:
                    path.unlink(missing_ok=True)

    def load(self, key: Any) -> Any:
        try:
            return super().load(key)
        except (AttributeError, ImportError):  # it names what another version, or a program of another name, had
            return None

    def _load_index(self) -> dict[Any, str]:
        try:
            return dict(super()._load_index())
        except (AttributeError, ImportError):
            return {}


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
    """Return what tells a kernel the number of objectives: by its type if it is `SPECIALISED`, else by its value.

    A tuple of `None` holds no data, and Numba compiles a function anew for each length of it, so `count_of` is a
    constant in the machine code and the loops over objectives unroll.

    >>> dimensions(3), dimensions(20)
    ((None, None, None), 20)
    """
    return (None,) * objectives if objectives in SPECIALISED else objectives


def count_of(dims: Any) -> int:
    """Return the number of objectives that `dimensions` wrapped.

    >>> count_of(dimensions(3)), count_of(dimensions(20))
    (3, 20)
    """
    return dims if isinstance(dims, int) else len(dims)


@_written(count_of)
def _count_of(dims):  # type: ignore[no-untyped-def]  # Numba compares the signatures, annotations included
    if isinstance(dims, numba.types.Integer):
        return lambda dims: dims
    return lambda dims: len(dims)  # noqa: PLW0108  # Numba compiles a function of ours, and `len` is not one


def generally(dims: Any, lanes: int | None) -> Any:
    """Return the number of objectives as one that is known when it runs, for what is called rarely.

    That is then compiled once for all numbers of objectives, and not for each of them. On a GPU, lanes being None, it
    stays as it is.

    >>> generally(dimensions(3), 8)
    3
    """
    return dims if lanes is None else count_of(dims)


@_written(generally)
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


@_written(counted)
def _counted(count, table):  # type: ignore[no-untyped-def]  # as above
    if table.dtype == numba.float32:
        return lambda count, table: np.float32(count)
    return lambda count, table: count


def _written_as(form: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Have a function write machine code for the kernels that call it, without the typing context; form: in Python."""

    def register(write: Callable[..., Any]) -> Any:
        written = _intrinsic(write)
        FORMS[written] = form
        return written

    return register


@_written_as(lambda array: array)
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


@_written_as(lambda array: array.fill(0.0))
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


@_written_as(lambda chunk, lane, lanes: chunk[:, lane])
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


@_written_as(lambda table: table)
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


@_written_as(lambda rows, n: rows[n // rows.shape[2], :, n % rows.shape[2]])
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

    @_written_as(in_python)
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


def listed(values: npt.NDArray[Any]) -> Any:
    """Return what gives a kernel the number at a place of a fixed list.

    A global array is what Numba would put into a GPU's constant memory, which answers threads that ask for different
    places one after the other: normal numbers, each from another layer, were most of a trial's time. Here it stands in
    the memory that is cached like any other.
    """
    kind, numbers = numba.from_dtype(values.dtype), values.tolist()
    name = "listed." + hashlib.sha256(values.tobytes()).hexdigest()[:16]

    @_written_as(values.__getitem__)
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


@inlined
def across(lanes: int | None) -> int:
    """Return how many lanes a loop goes over; it is a multiple of eight in a way that the compiler sees.

    lanes is known when it runs: were the compiler told, it would unroll the loop before it could vectorise it.
    """
    if lanes is None:
        return 1
    return lanes & 24


@_written_as(lambda number: int(np.float64(number).view(np.int64)))
def _bits_of(typing: Any, number: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return numba.types.int64(numba.types.float64), code


@_written_as(lambda bits: np.int64(bits).view(np.float64))
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
