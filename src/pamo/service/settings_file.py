"""Settings written down: as the TOML file that they can be loaded from again, and as the documentation's table."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from pamo.service.keys import Key
from pamo.service.options import Option
from pamo.service.settings import OPTIONS, PROJECT_LIMITS, Settings

_HEAD = """\
# Settings of `pamo serve`, which reads this file as pamo.toml in the folder that it is started in, or by --config FILE.
# What the environment says (PAMO_PORT=8080) stands above this file, and flags (--port 8080) stand above both.
# Paths are as seen from the folder that pamo is started in.
"""
_KEY_EXAMPLE = """\
# [[keys]]
# name = "shop"
# roles = ["decide", "feedback"]
# sha256 = "…"
"""
_PROJECT_EXAMPLE = """\
# Other projects that are served beside this one, at /v1/projects/films/… and as a page at /projects/films/. Each has a
# store, objectives, arms, keys and limits of its own: every setting of [engine], rate, burst, max_batch, max_cost,
# max_new_arms and max_waiting.
# [projects.films]
# objectives = ["story: 1..5", "acting: 1..5"]
# store = "films.db"
"""


def as_file(settings: Settings) -> str:
    """Return these settings as a TOML file that explains every option.

    >>> lines = as_file(Settings(port=8080)).splitlines()
    >>> place = lines.index("port = 8080")
    >>> lines[place - 1]
    '# The port to listen on; 0 is any that is free.'
    """
    parts = [_HEAD]
    for section, rows in _sections():
        if section != "keys":
            parts.append(f"[{section}]\n")
        for row in rows:
            value, begins = getattr(settings, row.name), ""
            if section == "keys":
                lines = _tables(value) or _KEY_EXAMPLE
            else:
                if value == row.default and row.example is not None:  # not set, and an example says how it would be
                    value, begins = row.example, "# "
                lines = f"{begins}{row.name} = {_literal(value)}\n"
            comment = textwrap.fill(row.help, 118, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
            parts.append(f"{comment}\n{lines}")
    projects = [_project(name, one, digests=True) for name, one in settings.projects.items()]
    return "\n".join([*parts, *(projects or [_PROJECT_EXAMPLE])])


def shown(settings: Settings) -> str:
    """Return the settings as they may be shown to anyone: without the store's password and the keys' digests.

    >>> print(shown(Settings(store="postgresql://ann:secret@db/pamo")).splitlines()[1])
    store = "postgresql://ann:…@db/pamo"
    """
    parts = []
    for section, rows in _sections():
        lines = [] if section == "keys" else [f"[{section}]"]
        for row in rows:
            value: Any = settings.shown_store if row.name == "store" else getattr(settings, row.name)
            if section == "keys":
                lines.append(_tables(value, digests=False) or "# no keys: whoever reaches the service may do all")
            else:
                lines.append(f"# {row.name} is not set" if value is None else f"{row.name} = {_literal(value)}")
        parts.append("\n".join(lines))
    parts += [_project(name, one, digests=False) for name, one in settings.projects.items()]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _project(name: str, settings: Settings, *, digests: bool) -> str:
    """Return a project's section: what is set of it otherwise than by default."""
    lines = [f"[projects.{name}]"]
    for row in OPTIONS:
        value: Any = getattr(settings, row.name)
        if row.name == "store" and not digests:
            value = settings.shown_store
        if (row.section == "engine" or row.name in PROJECT_LIMITS) and (value != row.default or row.name == "store"):
            lines.append(f"{row.name} = {_literal(value)}")
    keys = _tables(settings.keys, digests=digests).replace("[[keys]]", f"[[projects.{name}.keys]]")
    return "\n".join([*lines, keys] if keys else lines) + "\n"


def key_table(key: Key, *, digest: bool = True) -> str:
    """Return the lines of a TOML file that make a key known.

    >>> print(key_table(Key("shop", ["decide"], 64 * "0"), digest=False))
    [[keys]]
    name = "shop"
    roles = ["decide"]
    # sha256 = "00000000…"
    """
    roles = _literal(sorted(map(str, key.roles)))
    kept = f'sha256 = "{key.sha256}"' if digest else f'# sha256 = "{key.sha256[:8]}…"'
    return f'[[keys]]\nname = "{key.name}"\nroles = {roles}\n{kept}\n'


def table() -> str:
    """Return the documentation's table of all settings."""
    lines = ["| in the file | flag and variable | default | what it is |", "|---|---|---|---|"]
    for row in OPTIONS:
        place = "`[[keys]]`" if row.section == "keys" else f"`[{row.section}]` `{row.name}`"
        lines.append(f"| {place} | `{row.flag}` `{row.variable}` | {default_in_words(row)} | {row.help} |")
    return "\n".join(lines) + "\n"


def default_in_words(row: Option, quote: str = "`") -> str:
    """Return an option's default as a person reads it."""
    if row.default is None or row.default == ():
        return "none"
    return f"{quote}{row.default if isinstance(row.default, str) else _literal(row.default)}{quote}"


def _sections() -> Iterator[tuple[str, Iterator[Option]]]:
    return groupby(OPTIONS, lambda row: row.section)


def _tables(keys: Iterable[Key], *, digests: bool = True) -> str:
    return "\n".join(key_table(key, digest=digests) for key in keys)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and value < 1e15 else repr(value)
    if isinstance(value, str):  # of what JSON leaves as it is, TOML refuses one character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int):
        return str(value)
    return f"[{', '.join(map(_literal, value))}]"
