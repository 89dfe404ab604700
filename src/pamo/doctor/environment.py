"""Looks at what pamo runs on: Python, packages, extras, and the cache of compiled code."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from typing import Any

from pamo._version import __version__
from pamo.doctor.checks import Check, Subject

PYTHON, PACKAGES, EXTRAS, COMPILED = (
    Subject("environment", name) for name in ("python", "packages", "extras", "compiled")
)
LEAST_PYTHON = (3, 11)
_REQUIREMENT = re.compile(r"^([\w.-]+)(?:\[([\w,.-]+)\])?[^;]*;(.*)\bextra == ['\"]([\w-]+)['\"]")
_NOT_FOR_USE = ("all", "docs")


def look_at_environment() -> Iterator[Check]:
    """Yield how Python, the packages, the extras and the cache are."""
    yield _python(sys.version_info[:2])
    yield _packages()
    yield extras_of(metadata.requires("pamo") or [])
    from pamo.store.names import _place

    yield kept_code(_place)


def _python(version: tuple[int, int]) -> Check:
    shown = platform.python_version()
    figures = {"python": shown, "system": platform.system(), "machine": platform.machine()}
    if version < LEAST_PYTHON:
        least = ".".join(map(str, LEAST_PYTHON))
        return PYTHON.problem(f"Python {shown}, and pamo needs {least} or newer", **figures)
    return PYTHON.ok(f"Python {shown} on {figures['system']} {figures['machine']}", **figures)


def _packages() -> Check:
    versions = {name: metadata.version(name) for name in ("numpy", "numba")}
    shown = f"pamo {__version__}, NumPy {versions['numpy']}, Numba {versions['numba']}"
    try:
        import apsw
    except ImportError:
        pass
    else:
        versions |= {"apsw": apsw.apsw_version(), "sqlite": apsw.sqlite_lib_version()}
        shown += f", SQLite {versions['sqlite']} (apsw {versions['apsw']})"
    return PACKAGES.ok(shown, pamo=__version__, **versions)


def extras_of(requirements: Iterable[str]) -> Check:
    """Return which of the extras that these requirements name are installed whole."""
    missing: dict[str, list[str]] = {}
    for requirement in requirements:
        found = _REQUIREMENT.match(requirement)
        if found is None or found[4] in _NOT_FOR_USE:
            continue
        package, _, marker, extra = found.groups()
        lacking = missing.setdefault(extra, [])
        elsewhere = "sys_platform != 'win32'" in marker.replace('"', "'") and sys.platform == "win32"
        if not elsewhere and not _is_installed(package):
            lacking.append(package)
    there = sorted(extra for extra, lacking in missing.items() if not lacking)
    absent = {extra: lacking for extra, lacking in sorted(missing.items()) if lacking}
    sentence = f"installed: {', '.join(there) or 'none'}"
    if absent:
        lines = ", ".join(f"{extra} (lacks {', '.join(lacking)})" for extra, lacking in absent.items())
        sentence += f"; not installed: {lines}; where you need them: pip install 'pamo[{','.join(absent)}]'"
    return EXTRAS.ok(sentence, installed=there, missing=absent)


def _is_installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def kept_code(compiled: Any) -> Check:
    """Return whether the code of a compiled kernel is kept on the disk."""
    # Numba has no public way to ask; where a later version keeps it elsewhere, this says that it does not know.
    cache = getattr(compiled, "_cache", None)
    folder = getattr(cache, "cache_path", None)
    if folder:
        return COMPILED.ok(f"compiled code is kept in {folder}", folder=str(folder))
    if cache is None:
        return COMPILED.ok("where compiled code is kept is not known", folder=None)
    return COMPILED.warning(
        "compiled code cannot be kept, so that every start compiles it anew, which takes up to a minute: "
        "set NUMBA_CACHE_DIR to a folder that may be written to",
        folder=None,
    )
