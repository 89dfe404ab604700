"""What the commands share: a parser whose errors are one sentence, numbers, and targets checked before the work."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from pamo.errors import InputError
from pamo.simulation.files import require_pyarrow
from pamo.simulation.plot import require_matplotlib

_LARGEST = 2**63 - 1  # what the compiled code counts with


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence, and which takes options by their whole names only."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line, in one sentence, and stop."""
        self.exit(2, f"pamo: {message}; see {self.prog} --help\n")


def add_command(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace], int],
    *,
    help: str,
    about: str | None = None,
    examples: str | None = None,
) -> Parser:
    """Add a command and return its parser; `run` does it. about: what `--help` says first, examples: and last."""
    parser: Parser = commands.add_parser(
        name, help=help, description=about, epilog=examples, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(command=run)
    return parser


def whole(text: str) -> int:
    """Return the whole number that an option was given."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}") from None
    if abs(number) > _LARGEST:
        raise argparse.ArgumentTypeError(f"expected a number up to {_LARGEST}, got {text}")
    return number


def number(text: str) -> float:
    """Return the number that an option was given."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}") from None


def check_target(option: str, path: str | None, endings: tuple[str, ...]) -> None:
    """Raise an error for a file that could not be written, before the work rather than after it."""
    if path is None:
        return
    target = Path(path)
    if target.suffix not in endings:
        raise InputError(f"expected {option} to end in {', '.join(endings)}, got {path!r}")
    if not target.parent.is_dir():
        raise InputError(f"expected {option} in an existing folder, got {path!r}; make {target.parent} first")
    if target.is_dir():
        raise InputError(f"expected {option} to be a file, got the folder {path!r}")
    if target.suffix == ".parquet":
        require_pyarrow()
    elif option == "--plot":
        require_matplotlib()
