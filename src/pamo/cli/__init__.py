"""The `pamo` command: thin commands over the library. Results go to stdout, progress and errors to stderr."""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from pamo import environments, policies
from pamo._version import __version__
from pamo.cli.coverage import add_coverage
from pamo.cli.demo import add_demo
from pamo.cli.doctor import add_doctor
from pamo.cli.options import Parser, check_target, number, whole
from pamo.cli.ratings import add_ratings
from pamo.cli.research import add_compare, add_reproduce
from pamo.cli.service import add_service
from pamo.cli.store import add_store
from pamo.errors import InputError, PamoError
from pamo.simulation import Result, simulate, summarize

_SIMULATE_HELP = """\
examples:
  pamo simulate                                          the paper's main setting, PRUCB-HP against UCB
  pamo simulate --policy prucb-hp --policy oful:epsilon=0.1 --trials 100 --plot regret.svg
  pamo simulate --environment bounded --reward bernoulli --format json > result.json

A policy is an id, with hyperparameters after a colon where wanted; `pamo policies` lists them.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 2 for bad input (one sentence on stderr), 130 if interrupted."""
    for stream in (sys.stdout, sys.stderr):  # formulas and JSON are UTF-8, whatever the terminal's language
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    parser = _parser()
    options = parser.parse_args(arguments)
    command: Callable[[argparse.Namespace], int] | None = getattr(options, "command", None)
    if command is None:
        parser.print_help()
        return 0
    try:
        code = command(options)
        sys.stdout.flush()
        return code
    except PamoError as error:
        print(f"pamo: {error}", file=sys.stderr)
        return 2
    except MemoryError as error:
        print(
            f"pamo: this needs more memory than there is; ask for fewer trials, checkpoints, users or arms ({error})",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        print("pamo: interrupted; nothing was written", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of a pipe has gone: no one to tell, now or when Python flushes at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="pamo",
        description="Learn what each person cares about, and pick for them accordingly.",
    )
    parser.add_argument("--version", action="version", version=f"pamo {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_simulate(commands)
    add_compare(commands)
    add_reproduce(commands)
    add_coverage(commands)
    add_ratings(commands)
    add_demo(commands)
    add_store(commands)
    add_doctor(commands)
    listing = commands.add_parser("policies", help="list the policies: formula, feedback read, reference")
    listing.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    listing.set_defaults(command=_policies)
    showing = commands.add_parser("show", help="print, draw or convert a saved result")
    showing.add_argument("file", metavar="FILE", help="a result written by --output FILE.parquet")
    _add_outputs(showing)
    showing.set_defaults(command=_show)
    add_service(commands)
    return parser


def _add_simulate(commands: Any) -> None:
    parser = commands.add_parser(
        "simulate",
        help="run policies against a synthetic environment and compare their regret",
        description="Run policies on the same trials of an environment and compare their cumulative regret.",
        epilog=_SIMULATE_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--policy",
        action="append",
        metavar="ID[:NAME=VALUE,…]",
        help="a policy to run; repeat for several (default: prucb-hp and ucb)",
    )
    problem = parser.add_argument_group("problem")
    problem.add_argument("--environment", default="gaussian", metavar="ID", help="gaussian (default) or bounded")
    problem.add_argument("--users", type=whole, default=2, metavar="N", help="users (default: 2)")
    problem.add_argument("--block-size", type=whole, default=5, metavar="N", help="arms in an offer (default: 5)")
    problem.add_argument("--objectives", type=whole, default=3, metavar="D", help="objectives of a reward (default: 3)")
    problem.add_argument("--arms", type=whole, metavar="K", help="arms (default: users × block size)")
    problem.add_argument(
        "--preference",
        default="predefined",
        metavar="KIND",
        help="predefined: 2.0 on one objective, 0.5 on others (default); random: uniform on [0, 5]; common: all alike",
    )
    problem.add_argument(
        "--protocol",
        default="random",
        metavar="KIND",
        help="who is offered what: random blocks (default), rotate, or all arms to all",
    )
    problem.add_argument("--newcomers", type=whole, default=0, metavar="N", help="users who come later (default: 0)")
    problem.add_argument("--arrival", type=whole, default=1, metavar="T", help="the round they come in (default: 1)")
    problem.add_argument("--reward", metavar="KIND", help="bounded only: beta (default) or bernoulli")
    problem.add_argument("--reward-variance", type=number, metavar="V", help="of a reward entry (default: 0.01)")
    problem.add_argument(
        "--preference-variance", type=number, metavar="V", help="of a preference entry (default: 0.5; bounded 0.01)"
    )
    size = parser.add_argument_group("size")
    size.add_argument("--rounds", type=whole, default=5000, metavar="T", help="rounds, the horizon (default: 5000)")
    size.add_argument("--trials", type=whole, default=10, metavar="N", help="independent trials (default: 10)")
    size.add_argument(
        "--first-trial", type=whole, default=0, metavar="K", help="number of the first trial (default: 0)"
    )
    size.add_argument("--seed", type=whole, default=1, metavar="S", help="same seed, same result (default: 1)")
    size.add_argument("--threads", type=whole, metavar="N", help="default: one a core; the result is the same")
    size.add_argument(
        "--checkpoints", default="100", metavar="N|T1,T2,…", help="how many rounds to note, or which (default: 100)"
    )
    _add_outputs(parser)
    parser.set_defaults(command=_simulate)


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    output = parser.add_argument_group("output")
    output.add_argument("--format", choices=("table", "json"), default="table", help="of stdout (default: table)")
    output.add_argument("--output", metavar="FILE", help="keep the result: .parquet (everything), .csv or .json")
    output.add_argument("--plot", metavar="FILE", help="draw the regret: .svg, .png or .pdf")


def _simulate(options: argparse.Namespace) -> int:
    check_target("--output", options.output, (".parquet", ".csv", ".json"))
    check_target("--plot", options.plot, (".svg", ".png", ".pdf"))
    settings: dict[str, Any] = {
        "users": options.users,
        "block_size": options.block_size,
        "objectives": options.objectives,
        "arms": options.arms,
        "protocol": options.protocol,
        "preference": options.preference,
        "newcomers": options.newcomers,
        "arrival": options.arrival,
    }
    for name in ("reward", "reward_variance", "preference_variance"):
        if getattr(options, name) is not None:
            settings[name] = getattr(options, name)
    result = simulate(
        policies=[policies.parse(text) for text in options.policy or ["prucb-hp", "ucb"]],
        environment=environments.create(options.environment, **settings),
        rounds=options.rounds,
        trials=options.trials,
        seed=options.seed,
        checkpoints=_checkpoints(options.checkpoints),
        threads=options.threads,
        first_trial=options.first_trial,
        progress=True,
    )
    return _report(result, options)


def _show(options: argparse.Namespace) -> int:
    check_target("--output", options.output, (".parquet", ".csv", ".json"))
    check_target("--plot", options.plot, (".svg", ".png", ".pdf"))
    return _report(Result.load(options.file), options)


def _report(result: Result, options: argparse.Namespace) -> int:
    if options.format == "json":
        print(json.dumps(result.summary(), ensure_ascii=False))
    else:
        print(table(result))
    if options.output:
        print(f"result: {result.save(options.output)}", file=sys.stderr)
    if options.plot:
        print(f"figure: {result.plot(options.plot)}", file=sys.stderr)
    return 0


def _checkpoints(text: str) -> int | list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"expected --checkpoints as a number or as rounds with commas, got {text!r}") from None
    return numbers if "," in text else numbers[0]


def table(result: Result) -> str:
    """Return a result as the table that `pamo simulate` prints, the lowest regret first."""
    environment, settings = result.settings["environment"], result.settings
    wide = max(24, 2 + max(map(len, result)))
    lines = [
        f"{environment['id']} environment: {environment['users']} users, {environment['arms']} arms "
        f"({environment['protocol']}), {environment['objectives']} objectives; "
        f"{settings['rounds']} rounds, {settings['trials']} trials, seed {settings['seed']}",
        "",
        f"{'policy':<{wide}}{'final regret':>14}{'95 % interval':>19}{'optimal pulls':>15}{'error of ĉ':>12}"
        f"{'decisions/s':>13}",
    ]
    ordered = sorted(result.items(), key=lambda item: float(item[1].final_regret.mean()))
    for name, outcome in ordered:
        mean, _, low, high = summarize(outcome.final_regret)
        interval = f"{low:.1f} … {high:.1f}" if math.isfinite(low) else "one trial"
        error = float(outcome.preference_error[:, -1].mean())
        lines.append(
            f"{name:<{wide}}{mean:>14.1f}{interval:>19}{float(outcome.optimal_share[:, -1].mean()):>15.1%}"
            f"{'–' if math.isnan(error) else f'{error:.3f}':>12}{outcome.decisions_per_second / 1e6:>11.1f} M"
        )
    return "\n".join(lines)


def _policies(options: argparse.Namespace) -> int:
    rows: list[dict[str, Any]] = [
        {
            "id": cls.id,
            "summary": cls.summary,
            "formula": cls.formula,
            "reads": [str(feedback) for feedback in cls.reads],
            "reference": cls.reference,
            "hyperparameters": cls().settings,
        }
        for cls in policies.REGISTRY.values()
    ]
    if options.format == "json":
        print(json.dumps(rows, ensure_ascii=False, indent=1))
        return 0
    for row in rows:
        values = ", ".join(f"{name}={value}" for name, value in row["hyperparameters"].items())
        print(f"{row['id']}: {row['summary']}")
        print(f"    score      {row['formula']}")
        print(f"    reads      {', '.join(row['reads'])}")
        print(f"    settings   {values or 'none'}")
        print(f"    reference  {row['reference']}\n")
    return 0
