"""Policies and environments that somebody wrote in a file of their own, named by `FILE.py:NAME`."""

from __future__ import annotations

import importlib.util
import re
import sys
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import TypeVar
from zlib import crc32

from pamo.errors import InputError, unknown_name

Kind = TypeVar("Kind")

_PREFIX = "pamo_own_"
_NAMED = re.compile(r"(?P<file>.+\.py):(?P<name>[^:=,]+)(?::(?P<rest>.*))?")


def parts_of(text: str) -> tuple[str, str] | None:
    """Return what names a class in a file, and what comes after it; None for a name that is no such thing.

    >>> parts_of("mine/top.py:TopTwo:share=0.5")
    ('mine/top.py:TopTwo', 'share=0.5')
    >>> parts_of("oful:epsilon=0.1") is None
    True
    """
    found = _NAMED.fullmatch(text)
    return None if found is None else (f"{found['file']}:{found['name'].strip()}", found["rest"] or "")


def class_in(text: str, base: type[Kind], what: str) -> type[Kind]:
    """Return the class that `FILE.py:NAME` names; it has to be one of the given kind, `what` in words."""
    file, _, name = text.rpartition(":")
    module = run_file(file, what)
    classes = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__
    }
    if name not in classes:
        if not classes:
            raise InputError(f"expected a {what} in {file}: a class that extends {base.__module__}.{base.__name__}")
        raise unknown_name(f"{what} in {file}", name, classes)
    return classes[name]


def run_file(file: str, what: str = "file") -> ModuleType:
    """Run a file once, under a name of its own, which what it defines is known by."""
    path = Path(file).resolve()
    if not path.is_file():
        raise InputError(f"expected a {what} as FILE.py:NAME, and there is no file {file!r}")
    name = f"{_PREFIX}{crc32(str(path).encode()):08x}_{path.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[name]
            raise InputError(f"{file} could not be run: {type(error).__name__}: {error}") from error
    return sys.modules[name]


def own_files() -> list[str]:
    """Return the files that were run so far: another process runs them too, before it is sent what they define.

    One that is gone since is left out: nobody can run it again.
    """
    files = (str(module.__file__) for name, module in sorted(sys.modules.items()) if name.startswith(_PREFIX))
    return [file for file in files if Path(file).is_file()]


def sources_of(*values: object) -> dict[str, str]:
    """Return a digest of each such file that defines one of these: what it defines may change between two runs."""
    modules = {type(one).__module__ for one in values}
    files = [str(sys.modules[name].__file__) for name in sorted(modules) if name.startswith(_PREFIX)]
    return {file: sha256(Path(file).read_bytes()).hexdigest() for file in files}
