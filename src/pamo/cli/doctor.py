"""The command `doctor`: is everything well here, and what speed is to be expected?"""

from __future__ import annotations

import argparse
import json
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pamo._version import __version__
from pamo.cli.options import add_command

if TYPE_CHECKING:
    from pamo.doctor import Check

_HELP = """\
examples:
  pamo doctor                                  this machine, and the disk of this folder
  pamo doctor pamo.db                          a store in a SQLite file, and its disk
  pamo doctor /var/lib/pamo                    a folder where a store is to be
  pamo doctor postgresql://ann@db/pamo         a store in PostgreSQL, and its server
  pamo doctor pamo.db --quick --format json    without folding the journal, for a monitor

what it looks at:
  environment  Python, packages, extras, and where compiled code is kept
  store        whether it opens, SQLite's check of its file, the snapshot, and whether the sums are the journal's
  disk         the kind of file system, free space, and how long fsync takes: below 20 µs it cannot have reached a disk
  server       PostgreSQL's round trip, how long a commit takes, and the settings that say what a commit means
  speed        short measurements, in memory and in a temporary SQLite file in the store's folder

The store is read and not changed. Each line says ok, warning or problem.

exit code: 0 there is no problem, 1 there is one.
"""


def add_doctor(commands: Any) -> None:
    """Add `pamo doctor`."""
    parser = add_command(
        commands,
        "doctor",
        _doctor,
        help="is all well here: environment, store, disk, speed",
        about="Look at the environment, a store, its disk or its server; say what is well, and what to do.",
        examples=_HELP,
    )
    parser.add_argument(
        "store", nargs="?", metavar="STORE", help="the store to look at: a path or postgresql://…; or a folder"
    )
    parser.add_argument("--quick", action="store_true", help="do not fold the journal to compare it with the sums")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="of stdout (default: table)")


def _doctor(options: argparse.Namespace) -> int:
    from pamo.doctor import Status, examine
    from pamo.progress import waiting
    from pamo.store.addresses import shown

    with waiting("doctor") as announce:
        checks = list(examine(options.store, quick=options.quick, announce=lambda name: announce(f"doctor: {name}")))
    well = all(check.status is not Status.PROBLEM for check in checks)
    if options.format == "json":
        store = None if options.store is None else shown(options.store)
        document = {"version": __version__, "store": store, "ok": well, "checks": [asdict(check) for check in checks]}
        print(json.dumps(document, ensure_ascii=False, allow_nan=False))
    else:
        print(as_text(checks, shutil.get_terminal_size((100, 24)).columns))
    return 0 if well else 1


def as_text(checks: Sequence[Check], columns: int) -> str:
    """Return the checks as lines that fit a terminal of so many columns, and what they come to."""
    lines: list[str] = []
    wide = max(len(check.name) for check in checks)
    group = ""
    for check in checks:
        if check.group != group:
            group = check.group
            lines += ["", group] if lines else [group]
        head = f"  {check.status.value:<9}{check.name:<{wide}}  "
        width = max(columns - 1, len(head) + 30)
        lines += textwrap.wrap(
            check.sentence,
            width,
            initial_indent=head,
            subsequent_indent=" " * len(head),
            break_long_words=False,
            break_on_hyphens=False,
        )
    counts = {word: sum(check.status.value == word for check in checks) for word in ("problem", "warning")}
    told = [f"{number} {word}{'s' if number > 1 else ''}" for word, number in counts.items() if number]
    return "\n".join([*lines, "", ", ".join(told) or "all is well"])
