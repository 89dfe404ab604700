"""The command `sweep`: settings and hyperparameters tried out, and what was found."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from pamo.cli.options import add_command, add_outputs, add_runner, add_whole, deliver, runner_of
from pamo.errors import InputError, MissingExtraError
from pamo.progress import Bar

_HELP = """\
A file says what is tried; a field is a value, a list, or a range:

  [sweep]
  method = "halving"              # grid: all of it; random: drawn; halving: drawn, or all, the worse dropped on the way
  rounds = 2000
  trials = 40
  candidates = 30                 # random and halving: how many policies are drawn; settings = N: environments
  keep = 0.5                      # halving: the share that goes on (default: a third)

  [environment]                   # as for `pamo simulate`; [[environment]] for several
  id = "gaussian"
  users = [2, 10]

  [[policy]]                      # once for each; `pamo policies` names them and their settings
  id = "oful"
  epsilon = {from = 0.01, to = 1.0, steps = 50, scale = "log"}

Every policy meets the same trials of every setting. A range whose ends are whole numbers has whole numbers.

examples:
  pamo sweep examples/sweep.toml                     the table; more of it, and a figure, in reports/sweep/sweep
  pamo sweep examples/sweep.toml --format json
  pamo sweep my.toml --output runs/mine              stopped, it goes on there; with more values in the file, too
  pamo sweep my.toml --runner ray --address 10.0.0.1:6379

docs/sweep.md says more.
"""


def add_sweep(commands: Any) -> None:
    """Add `pamo sweep`."""
    parser = add_command(
        commands,
        "sweep",
        _sweep,
        help="try settings and hyperparameters: grid, random or successive halving",
        about="Try out settings and hyperparameters of any policies and environments, and say which did best. What is "
        "finished is kept: a sweep that is stopped goes on where it was, with the same table.",
        examples=_HELP,
    )
    parser.add_argument("spec", metavar="SPEC.toml", help="what to try")
    parser.add_argument("--output", metavar="DIR", help="where to keep it all (default: reports/sweep/SPEC)")
    add_whole(parser, "--top", 10, "N", "candidates that the table shows")
    add_runner(parser)
    add_outputs(parser)


def _sweep(options: argparse.Namespace) -> int:
    # Imported here: the study's weight is not needed for anything else.
    from pamo.experiments.sweep import FIGURE, TABLE, document_of, sweep, text_of, write_table
    from pamo.experiments.sweep_spec import read_spec

    spec = read_spec(options.spec)
    folder = Path(options.output or Path("reports", "sweep", Path(options.spec).stem))
    if folder.exists() and not folder.is_dir():
        raise InputError(f"expected --output to be a folder, got the file {options.output!r}")
    if options.top < 1:
        raise InputError(f"expected --top to be at least 1, got {options.top}")
    try:
        with runner_of(options) as runner, Bar("sweep") as bar:
            found = sweep(spec, folder, runner=runner, progress=bar.advance, began=bar.rename)
    except KeyboardInterrupt:
        print(f"pamo: interrupted; what is finished is in {folder}, and the same command goes on", file=sys.stderr)
        return 130
    deliver(options, document_of(found), text_of(found, top=options.top))
    write_table(found, folder / TABLE)
    print(f"table: {folder / TABLE}", file=sys.stderr)
    try:
        from pamo.experiments.figures import save_figure
        from pamo.experiments.sweep_figure import draw_sweep

        save_figure(draw_sweep(found), folder / FIGURE)
        print(f"figure: {folder / FIGURE}.svg, .png", file=sys.stderr)
    except MissingExtraError as error:  # the table is what matters, and is there
        print(f"pamo: no figure: {error}", file=sys.stderr)
    return 0
