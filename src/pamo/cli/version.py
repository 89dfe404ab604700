"""What a report of a bug needs to know of an installation, and nothing that names who runs it."""

from __future__ import annotations

import importlib
import os
import platform
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pamo
from pamo._version import __version__


def version(*, verbose: bool = False) -> str:
    """Return the version; verbose: with all that an answer to a bug report asks for first."""
    return "\n".join([f"pamo {__version__}", *(_details() if verbose else ())])


def _details() -> Iterator[str]:
    from pamo.doctor.environment import extras_of

    python = f"{platform.python_implementation()} {platform.python_version()}"
    yield f"python: {python} on {platform.system()} {platform.release()}, {platform.machine()}"
    yield f"processor: {_processor()}, {os.cpu_count()} threads"
    packages = {name: _installed(name) for name in ("numpy", "numba", "llvmlite")}
    yield f"packages: {', '.join(f'{name} {found}' for name, found in packages.items())}"
    extras = extras_of(metadata.requires("pamo") or []).figures
    absent = (f"{extra} (lacks {', '.join(lacks)})" for extra, lacks in extras["missing"].items())
    yield f"extras: {', '.join([*extras['installed'], *absent]) or 'none'}"
    more = ("apsw", "psycopg", "starlette", "uvicorn", "httpx", "matplotlib", "pyarrow", "numba-cuda")
    there = [f"{name} {found}" for name in more if (found := _installed(name)) is not None]
    yield f"of the extras: {', '.join(there) or 'nothing'}"
    yield f"compiled code: {_kept()}"
    # What they are set to may name a person, a machine or a password.
    names = sorted(name for name in os.environ if name.startswith(("PAMO_", "NUMBA_", "PYTHON")))
    yield f"variables set: {', '.join(names) or 'none'}"


def _processor() -> str:
    """Return the processor as the compiler knows it."""
    told: str = importlib.import_module("llvmlite.binding").get_host_cpu_name()
    return told


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _kept() -> str:
    """Say where compiled code is kept, in words rather than by its path, and how much of it."""
    from pamo.store.names import _place

    folder = getattr(getattr(_place, "_cache", None), "cache_path", None)
    if not folder:
        return "cannot be kept: every start compiles anew"
    package = Path(pamo.__file__).parent
    if os.environ.get("NUMBA_CACHE_DIR"):
        root, where = Path(os.environ["NUMBA_CACHE_DIR"]), "in NUMBA_CACHE_DIR"
    elif Path(folder).is_relative_to(package):
        root, where = package, "beside the package"
    else:
        root, where = Path(folder).parent, "in the user's cache folder"
    sizes = [path.stat().st_size for path in root.rglob("*.nbc")]
    return f"{len(sizes)} files of {sum(sizes) / 1e6:.1f} MB together, {where}"
