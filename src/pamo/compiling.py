"""One way to compile a kernel, for every kernel: the same options, and a disk cache that cannot mislead.

Numba's cache notices a change in the file of the compiled function, but not in the files of the functions
that were compiled into it. A simulator that ran yesterday's formula would be a silent error, so the stamp under
which our kernels are cached covers every source file of the package that holds one. Nor does it expect several
processes to fill it: what they may do to each other there, `_Entries` and `around` keep apart.
"""

from __future__ import annotations

import glob
import hashlib
import operator
import os
import re
import uuid
from collections import Counter
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import numba
from llvmlite import binding  # type: ignore[import-untyped]  # it ships no types
from numba.core import ir as nodes
from numba.core.caching import CompileResultCacheImpl, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags, compile_result
from numba.core.compiler_machinery import register_pass
from numba.core.cpu_options import FastMathOptions
from numba.core.lowering import Lower
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.unsafe.eh import exception_check
from numba.core.untyped_passes import InlineClosureLikes
from numba.extending import intrinsic, overload

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
_Lowering: Any = Lower
_register: Any = register_pass

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


_UNCOUNTED: set[Any] = set()
"""Of the words of kernels (`written_as`) those that return an array without a count of references."""


@_register(mutates_CFG=True, analysis_only=False)
class _Rewriting(NopythonRewrites):
    """Has a function that only looks at arrays, and makes none, leave their counts of references alone.

    Whoever calls it holds the arrays, and all that it sees are views of them. To count takes code for each array of a
    tuple, wherever the tuple goes: a quarter of the time of compiling. And what is to be rewritten are expressions that
    make arrays, and literal names of items: there are none.
    """

    _name = "pamo_rewriting"

    def run_pass(self, state: Any) -> bool:
        if _only_looks(state):
            state.targetctx = state.targetctx.subtarget(enable_nrt=False)
            vars(state.targetctx).pop("nrt", None)  # of the context that was copied
            if not any(isinstance(kind, numba.types.StringLiteral) for kind in state.typemap.values()):
                return False
        return bool(super().run_pass(state))  # type: ignore[no-untyped-call]  # of Numba, untyped


@_register(mutates_CFG=True, analysis_only=False)
class _Inlining(InlineClosureLikes):
    """Has functions and arrays that are made of lists written into a function, where it holds any.

    To look for them is a twentieth of the time of compiling.
    """

    _name = "pamo_inlining"

    def run_pass(self, state: Any) -> bool:
        return any(map(_makes, state.func_ir.blocks.values())) and bool(super().run_pass(state))  # type: ignore[no-untyped-call]  # as above


def _makes(block: Any) -> bool:
    """Tell whether a block makes a function or a list, or calls what is given a function, `reduce` and `stencil`."""
    for step in block.find_insts(nodes.Assign):
        value = step.value
        if isinstance(value, nodes.Expr):
            names = {value.attr} if value.op == "getattr" else {value.op}
        elif isinstance(value, nodes.Global | nodes.FreeVar):
            names = {value.name, getattr(value.value, "__name__", None)}
        else:
            continue
        if names & {"make_function", "build_list", "reduce", "stencil"}:
            return True
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
        if isinstance(function, types.NamedTupleClass) or key in _UNCOUNTED:
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
            return value.op != "build_map"  # which counts whatever it holds
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


class _Lower(_Lowering):  # type: ignore[misc]  # of Numba, untyped
    """Writes a function's code, without a place in memory for what is assigned once, or to be cleared when it is over.

    Numba gives a place to each variable that another block uses, copies all of it at each use, be it a tuple of thirty
    tables, and clears it in the end. LLVM finds that none is needed, by two thirds of the code of the simulator's loop.
    Where references are counted, it stays so.
    """

    def _find_singly_assigned_variable(self) -> None:
        super()._find_singly_assigned_variable()
        if self.func_ir.func_id.is_generator or any(map(_tries, self.blocks.values())):
            return
        lifetime, homes, times = self.func_ir.variable_lifetime, {}, Counter[str]()
        for home, block in self.blocks.items():
            names = [step.target.name for step in block.find_insts(nodes.Assign)]
            times.update(names)
            homes.update(dict.fromkeys(names, home))
        once = {name for name in homes if times[name] == 1 and not self._counts(name)}
        for place, used in lifetime.usedefs.usemap.items():
            passed = lifetime.cfg.dominators()[place]
            once -= {name for name in once & used if homes[name] not in passed or homes[name] >= place}
        self._singly_assigned_vars |= once

    def _counts(self, name: str) -> bool:
        """Tell whether a variable holds references that are counted."""
        kind = self.context.data_model_manager[self.typeof(name)]
        counted: bool = self.context.enable_nrt and kind.contains_nrt_meminfo()
        return counted

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        if self._counts(name) or self._disable_sroa_like_opt or name in self._singly_assigned_vars:
            super().storevar(value, name, argidx)
        else:
            self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        if self._counts(name) or self._disable_sroa_like_opt:
            super().delvar(name)


def _tries(block: Any) -> bool:
    """Tell whether what a block calls may jump to where an exception is caught."""
    return any(
        isinstance(step.value, nodes.Global) and step.value.value is exception_check
        for step in block.find_insts(nodes.Assign)
    )


@_register(mutates_CFG=True, analysis_only=False)
class _Lowered(NativeLowering):
    """Has a function's code written by `_Lower`."""

    _name = "pamo_lowering"
    lowering_class = _Lower


_INSTEAD: dict[Any, Any] = {InlineClosureLikes: _Inlining, NopythonRewrites: _Rewriting, NativeLowering: _Lowered}
"""Of Numba's steps those that find nothing to do in most kernels, and by what they are skipped there, or cut short."""


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
        pipeline.passes = [(_INSTEAD.get(one, one), what) for one, what in pipeline.passes]
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
    written(function)(lambda *types: function)
    return function


def written(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Have a kernel that calls `function` compile what is returned of the types that it calls it with."""

    def register(choose: Callable[..., Any]) -> None:
        FORMS[function] = function
        # For a processor's kernels, without the ways in that Numba would make; and for those of a GPU, which has none.
        options: Any = {"forceinline": True, **OPTIONS}
        for target, more in (("generic", {}), ("cpu", {"pipeline_class": _Inside})):
            overload(function, jit_options=options | more, strict=False, target=target)(choose)

    return register


def around(function: Callable[..., Any], *kernels: Any, of: Any = None) -> Any:
    """Compile `function`, a closure over the kernels, for the simulator's loop; the next process finds it in the cache.

    of: plain values that it closes over.
    """
    return _handed(_kept(function, kernels, of, _LoopedApart))


def compile_for(function: Callable[..., Any], signature: Any, *kernels: Any, of: Any = None) -> Any:
    """Compile `function` for one signature, at once; kernels, of: what it closes over, as in `around`.

    Naming the signature is what lets an argument be a `numba.types.FunctionType`: code that calls a function through
    such an argument is compiled once for all functions of that type, and so its cache is of use to every process.
    """
    compiled = (
        _kept(function, kernels, of, _Loop)
        if kernels
        else _cached(numba.njit(pipeline_class=_Loop, **OPTIONS)(function))
    )
    with uncollected():  # reading the cache makes as much
        compiled.compile(signature)
    compiled.disable_compile()
    return compiled


def entered(function: Callable[..., Any], signature: Any, *kernels: Any, of: Any = None) -> Any:
    """Compile `function`, a closure over the kernels, as strict code for one signature; return its way in from Python.

    A call of it does not look at the types of what it is given, half of what a call by Numba's dispatcher takes: it
    makes numbers of it, as `int` and `float` would. Nobody else runs meanwhile, so it is for what is over at once.
    """
    compiled = _kept(function, kernels, of, _RootedApart, nogil=False)
    with uncollected():
        way_in = compiled.compile(signature)
    compiled.disable_compile()
    return way_in or compiled  # the same to the caller, wherever a later version keeps it


def _kept(
    function: Callable[..., Any], kernels: tuple[Any, ...], of: Any, compiler: type[_Rooted], **options: Any
) -> Any:
    """Return the dispatcher of a closure over kernels and plain values, with its disk cache switched on.

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
    compiled = numba.njit(pipeline_class=compiler, **{**OPTIONS, **options})(function)
    if cacheable:
        compiled = _cached(compiled)
        compiled._cache._index_key = lambda signature, codegen: (signature, codegen.magic_tuple(), digest)
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


@written(count_of)
def _count_of(dims):  # type: ignore[no-untyped-def]  # Numba compares the signatures, annotations included
    if isinstance(dims, numba.types.Integer):
        return lambda dims: dims
    return lambda dims: len(dims)  # noqa: PLW0108  # Numba compiles a function of ours, and `len` is not one


def written_as(form: Callable[..., Any], *, uncounted: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Have a function write machine code for the kernels that call it, without the typing context; form: in Python.

    uncounted: what it returns is an array without a count of references.
    """

    def register(write: Callable[..., Any]) -> Any:
        by_code = _intrinsic(write)
        FORMS[by_code] = form
        if uncounted:
            _UNCOUNTED.add(by_code)
        return by_code

    return register
