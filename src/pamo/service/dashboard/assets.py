"""The page's files, read once: under a path that changes whenever one of them does, so that browsers may keep them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from types import MappingProxyType
from typing import Any

KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Assets:
    """Files by name, with what kind they are, and the stamp of all of them."""

    stamp: str
    files: Any

    def path(self, name: str) -> str:
        """Return where a file is served.

        >>> assets().path("style.css").startswith("/assets/")
        True
        """
        if name not in self.files:
            raise KeyError(name)
        return f"/assets/{self.stamp}/{name}"


@cache
def assets() -> Assets:
    """Return the files of the folder `static`."""
    found: dict[str, tuple[bytes, str]] = {}
    whole = sha256()
    for file in sorted(files(__package__).joinpath("static").iterdir(), key=lambda one: one.name):
        kind = KINDS.get("." + file.name.rpartition(".")[2])
        if kind is not None:
            content = file.read_bytes()
            found[file.name] = (content, kind)
            whole.update(file.name.encode() + b"\0" + content)
    return Assets(whole.hexdigest()[:16], MappingProxyType(found))
