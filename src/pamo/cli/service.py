"""The commands `serve`, `warm`, `init` and `key`: the HTTP service, its code, its settings file and its API keys."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from pamo.cli.options import add_command, whole
from pamo.errors import InputError
from pamo.service.keys import Key, Role, digest_of, new_key
from pamo.service.options import YES_OR_NO, Option
from pamo.service.settings import FILE, OPTIONS, Settings, load_settings
from pamo.service.settings_file import as_file, default_in_words, key_table, shown

_SERVE_HELP = """\
examples:
  pamo serve --objectives price,taste,service --arms A,B,C     serve from pamo.db, made if it is not there
  pamo serve                                                   go on with it
  pamo serve --objectives "price: 0..500, lower is better, taste: 1..5" --overall 1..5 --arms "A=Anchor Inn,B=Bristol"
  pamo serve --config shop.toml --port 0                       settings of a file; any free port, which is printed
  pamo serve --store postgresql://db.example/pamo --check      only say what the settings come to

then, from another terminal:
  curl http://127.0.0.1:8000/v1/decisions -d '{"user": "ann"}' -H 'Content-Type: application/json'

Settings come from flags, else from variables (PAMO_PORT=8080 for --port 8080), else from pamo.toml in this folder or
from --config FILE (or PAMO_CONFIG), else they have their defaults. `pamo init` writes a file that explains them all.
A list has commas between its parts: the one before "lower is better" belongs to the objective.
Listening on more than this machine (--host 0.0.0.0) takes at least one key: see `pamo key --help`.
"""

_WARM_HELP = """\
examples:
  pamo warm 3                          compile what a service with three objectives needs
  pamo warm 2 3 4 5 6                  … with each of these numbers, as an image's build does
  pamo warm 3 --policy prts            … that decides by another policy

Compiled code is kept beside the package, in __pycache__, or in the folder that NUMBA_CACHE_DIR names. A service that
finds its own there starts with it; one that does not serves meanwhile, more slowly, and has it compiled beside.
"""

_INIT_HELP = """\
examples:
  pamo init                   write pamo.toml here: every setting, its default and what it is for
  pamo init shop.toml         … for `pamo serve --config shop.toml`
"""

_KEY_HELP = """\
examples:
  pamo key shop --role decide --role feedback     a key for an application
  pamo key ops --role admin                       a key that may do all

The key is printed once and kept nowhere: whoever is to use it puts it into the header `Authorization: Bearer KEY`. The
settings get only its SHA-256, from which nobody gets to the key: add the printed lines to pamo.toml, or put the
one-line form into PAMO_KEYS, several with commas. The key alone goes to stdout, all else to stderr.
"""

_ROLES = {
    Role.DECIDE: "ask for decisions",
    Role.FEEDBACK: "give feedback",
    Role.ADMIN: "do all, also change arms, export and erase users",
}


def add_service(commands: Any) -> None:
    """Add `pamo serve`, `pamo warm`, `pamo init` and `pamo key`."""
    serving = add_command(
        commands,
        "serve",
        _serve,
        help="serve decisions and take feedback over HTTP",
        about="Serve decisions and take feedback over HTTP, until it is stopped by Ctrl-C or SIGTERM.",
        examples=_SERVE_HELP,
    )
    serving.add_argument("--config", metavar="FILE", help=f"the settings file (default: {FILE}, if it is here)")
    serving.add_argument(
        "--check", action="store_true", help="check the settings, print what they come to without secrets, and stop"
    )
    titles = {"engine": "decisions", "log": "logging", "keys": "API keys"}
    groups: dict[str, Any] = {}
    for row in OPTIONS:
        if row.section not in groups:
            groups[row.section] = serving.add_argument_group(titles.get(row.section, row.section))
        _add_flag(groups[row.section], row)

    warming = add_command(
        commands,
        "warm",
        _warm,
        help="compile beforehand what a service needs",
        about="Compile what a service needs, so that it has it when it starts.",
        examples=_WARM_HELP,
    )
    warming.add_argument("objectives", type=whole, nargs="+", metavar="N", help="how many objectives it has")
    warming.add_argument("--policy", default=Settings().policy, help="what it decides by (default: %(default)s)")
    warming.add_argument(
        "--half-life", default="none", metavar="TEXT", help='after how long rounds count half, such as "40 rounds"'
    )

    beginning = add_command(
        commands,
        "init",
        _init,
        help="write a settings file that explains every setting",
        about="Write a settings file for `pamo serve` with every setting, its default and what it is for.",
        examples=_INIT_HELP,
    )
    beginning.add_argument("file", metavar="FILE", nargs="?", default=FILE, help=f"where to (default: {FILE})")
    beginning.add_argument("--force", action="store_true", help="write over a file that is there")

    keying = add_command(
        commands,
        "key",
        _key,
        help="make an API key for the service",
        about="Make an API key for the service: print it once, with the lines of the settings that make it known.",
        examples=_KEY_HELP,
    )
    keying.add_argument("name", metavar="NAME", help="whose key it is: letters, digits, dots, dashes, underscores")
    roles = "; ".join(f"{role}: {what}" for role, what in _ROLES.items())
    keying.add_argument("--role", action="append", metavar="ROLE", help=f"what it may do, once or more: {roles}")


def _add_flag(group: Any, row: Option) -> None:
    # Values stay text here: `load_settings` reads them as it reads the environment, with the same sentences.
    help = f"{row.help} Default: {default_in_words(row, '')}.".replace("%", "%%")
    if row.kind is YES_OR_NO:
        group.add_argument(row.flag, action=argparse.BooleanOptionalAction, default=None, help=help)
    elif row.default == ():
        group.add_argument(row.flag, action="append", metavar=row.kind.metavar, help=help)
    else:
        group.add_argument(row.flag, metavar=row.kind.metavar, help=help)


def _serve(options: argparse.Namespace) -> int:
    flags = {row.name: getattr(options, row.name) for row in OPTIONS}
    flags = {name: ",".join(value) if isinstance(value, list) else value for name, value in flags.items()}
    settings = load_settings(flags, os.environ, options.config)
    if options.check:
        print(shown(settings), end="")
        return 0
    # Imported here: no other command needs the packages that serve.
    from pamo.service import serve

    code: int = serve(settings)
    return code


def _warm(options: argparse.Namespace) -> int:
    # Imported here: no other command of these needs an engine.
    from pamo.service.warming import Need, warm

    for objectives in options.objectives:
        warm(Need(objectives, options.policy, options.half_life))
        print(f"compiled for {objectives} objectives", flush=True)
    return 0


def _init(options: argparse.Namespace) -> int:
    target = Path(options.file)
    try:
        with target.open("w" if options.force else "x", encoding="utf-8") as file:
            file.write(as_file(Settings()))
    except FileExistsError:
        raise InputError(
            f"there is a {options.file!r} already: take another name, or write over it by --force"
        ) from None
    except OSError as error:
        raise InputError(f"cannot write {options.file!r}: {error.strerror}") from None
    print(f"settings: {target}", file=sys.stderr)
    return 0


def _key(options: argparse.Namespace) -> int:
    if not options.role:
        raise InputError(f"expected at least one --role, got none: {', '.join(Role)}")
    secret = new_key()
    key = Key(options.name, options.role, digest_of(secret))
    print(secret, flush=True)
    print(
        f"Above is the key of {key.name}, shown only now. Add to {FILE}:\n\n{key_table(key)}\n"
        f"or to the environment, beside those that are there:\n\nPAMO_KEYS={key.text}",
        file=sys.stderr,
    )
    return 0
