"""What the commands share: a parser whose errors are one sentence, flags, and targets checked before the work."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pamo.environments import Environment
from pamo.environments.base import kinds_of
from pamo.errors import InputError
from pamo.plain import to_json
from pamo.simulation.plot import require_matplotlib
from pamo.tabular import require_pyarrow

if TYPE_CHECKING:
    from pamo.experiments.tasks import Runner

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


def wholes(option: str, text: str, expected: str = "whole numbers with commas") -> list[int]:
    """Return the whole numbers, with commas between them, that an option was given."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"expected {option} as {expected}, got {text!r}") from None


def add_whole(parser: Any, flag: str, default: int, metavar: str, help: str) -> None:
    """Add a flag that takes a whole number, with its default in its help."""
    parser.add_argument(flag, type=whole, default=default, metavar=metavar, help=f"{help} (default: {default})")


def add_seed(parser: Any) -> None:
    """Add `--seed`."""
    add_whole(parser, "--seed", 1, "S", "same seed, same result")


def add_runner(parser: Any) -> None:
    """Add `--runner` and `--address`; `runner_of` reads them."""
    parser.add_argument(
        "--runner",
        choices=("local", "ray"),
        default="local",
        help="who does the work: this process, or a Ray cluster, with the same results (default: local)",
    )
    parser.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="with --runner ray: of a cluster (default: RAY_ADDRESS, or a cluster started on this machine)",
    )


@contextmanager
def runner_of(options: argparse.Namespace) -> Iterator[Runner]:
    """Give the runner that was asked for, and stop what was started for it."""
    from pamo.experiments.tasks import local  # here: what it stands on is not needed for most commands

    if options.runner == "local":
        if options.address is not None:
            raise InputError("expected --address together with --runner ray")
        yield local
    else:
        from pamo.experiments.cluster import cluster

        with cluster(options.address) as runner:
            yield runner


def add_outputs(parser: argparse.ArgumentParser, **targets: tuple[str, tuple[str, ...]]) -> None:
    """Add `--format`, and a flag for each file that may be written: what it is for, and the endings it may have.

    `check_targets` checks them before the work.
    """
    output = parser.add_argument_group("output")
    output.add_argument("--format", choices=("table", "json"), default="table", help="of stdout (default: table)")
    for name, (help, _) in targets.items():
        output.add_argument(f"--{name}", metavar="FILE", help=help)
    parser.set_defaults(targets={name: endings for name, (_, endings) in targets.items()})


def check_targets(options: argparse.Namespace) -> None:
    """Check every file that `add_outputs` has a flag for."""
    for name, endings in options.targets.items():
        check_target(f"--{name}", getattr(options, name), endings)


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


def deliver(
    options: argparse.Namespace, document: Any, text: str, *, kept: str = "result", **writers: Callable[[str], Any]
) -> int:
    """Print what was found, as `--format` says, and write the files that were asked for; return the exit code.

    writers: for each flag that `add_outputs` added, a function that writes its file. kept: what `--output` keeps.
    """
    print(to_json(document) if options.format == "json" else text)
    for name, write in writers.items():
        path = getattr(options, name)
        if path:
            write(path)
            print(f"{'figure' if name == 'plot' else kept}: {path}", file=sys.stderr)
    return 0


def add_problem(parser: argparse.ArgumentParser, kinds: Iterable[type[Environment]], title: str = "problem") -> Any:
    """Add a flag for every setting of these environments, as their fields have it; return the group.

    A setting that has no form on a command line, such as a table of means, gets none. Flags that are not given are
    None, so that each environment keeps its own defaults: `problem_of` returns the others.
    """
    group = parser.add_argument_group(title)
    several = list(kinds)
    owners: dict[str, list[type[Environment]]] = {}
    for cls in several:
        for name, kind in kinds_of(cls).items():
            if kind in (int, float, bool, str) or isinstance(kind, tuple):
                owners.setdefault(name, []).append(cls)
    for name, having in owners.items():
        _add_setting(group, name, having, everywhere=len(having) == len(several))
    parser.set_defaults(problem=tuple(owners))
    return group


def _add_setting(group: Any, name: str, having: list[type[Environment]], *, everywhere: bool) -> None:
    fields = {cls.id: next(field for field in dataclasses.fields(cls) if field.name == name) for cls in having}
    first, kind = next(iter(fields.values())), kinds_of(having[0])[name]
    default = first.metadata.get("derived") or first.default
    differing = "".join(f"; {id} {field.default}" for id, field in fields.items() if field.default != first.default)
    only = "" if everywhere else f"{' and '.join(fields)} only: "
    help = f"{only}{first.metadata.get('help', name.replace('_', ' '))} (default: {default}{differing})"
    options: dict[str, Any] = {"default": None, "help": help.replace("%", "%%")}
    if kind is bool:
        options["action"] = argparse.BooleanOptionalAction
    else:
        options |= {
            "metavar": first.metadata.get("metavar", "VALUE"),
            "type": {int: whole, float: number}.get(kind, str),
        }
    group.add_argument(f"--{name.replace('_', '-')}", **options)


def problem_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the environment that were given."""
    return {name: getattr(options, name) for name in options.problem if getattr(options, name) is not None}
