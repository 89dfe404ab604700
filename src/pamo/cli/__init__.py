"""The `pamo` command: thin commands over the library. Results go to stdout, progress and errors to stderr."""

from __future__ import annotations

import argparse
import io
import math
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from pamo import environments, policies
from pamo.cli.coverage import add_coverage
from pamo.cli.demo import add_demo
from pamo.cli.doctor import add_doctor
from pamo.cli.evaluate import add_evaluate
from pamo.cli.options import (
    Parser,
    add_command,
    add_outputs,
    add_problem,
    add_seed,
    add_whole,
    check_targets,
    deliver,
    problem_of,
    whole,
    wholes,
)
from pamo.cli.ratings import add_ratings
from pamo.cli.research import add_compare, add_reproduce
from pamo.cli.service import add_service
from pamo.cli.store import add_store
from pamo.cli.sweep import add_sweep
from pamo.cli.version import version
from pamo.collecting import collect_rarely
from pamo.errors import PamoError
from pamo.plain import to_json
from pamo.simulation import Result, simulate, summarize

_SIMULATE_HELP = """\
examples:
  pamo simulate                                          the paper's main setting, PRUCB-HP against UCB
  pamo simulate --policy prucb-hp --policy oful:epsilon=0.1 --trials 100 --plot regret.svg
  pamo simulate --environment bounded --reward bernoulli --format json > result.json
  pamo simulate --policy prts --rounds 500 --trials 1 --trajectory log.parquet   then: pamo evaluate log.parquet …

A policy is an id, with hyperparameters after a colon where wanted; `pamo policies` lists them.
"""
_TARGETS = {
    "output": ("keep the result: .parquet (everything), .csv or .json", (".parquet", ".csv", ".json")),
    "plot": ("draw the regret: .svg, .png or .pdf", (".svg", ".png", ".pdf")),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 2 for bad input (one sentence on stderr), 130 if interrupted."""
    for stream in (sys.stdout, sys.stderr):  # formulas and JSON are UTF-8, whatever the terminal's language
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.version:
        print(version(verbose=options.verbose))
        return 0
    command: Callable[[argparse.Namespace], int] | None = getattr(options, "command", None)
    if command is None:
        parser.print_help()
        return 0
    if arguments is None and command is _simulate:  # a process of its own, which may have to compile
        collect_rarely()
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
    parser.add_argument("--version", action="store_true", help="say which version this is")
    parser.add_argument("--verbose", action="store_true", help="with --version: and all that a bug report needs")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_simulate(commands)
    add_sweep(commands)
    add_compare(commands)
    add_reproduce(commands)
    add_evaluate(commands)
    add_coverage(commands)
    add_ratings(commands)
    add_demo(commands)
    add_store(commands)
    add_doctor(commands)
    listing = add_command(commands, "policies", _policies, help="list the policies: formula, feedback read, reference")
    listing.add_argument("--family", choices=tuple(policies.FAMILIES), help="only those of one family; default: all")
    listing.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    showing = add_command(commands, "show", _show, help="print, draw or convert a saved result")
    showing.add_argument("file", metavar="FILE", help="a result written by --output FILE.parquet")
    add_outputs(showing, **_TARGETS)
    add_service(commands)
    return parser


def _add_simulate(commands: Any) -> None:
    parser = add_command(
        commands,
        "simulate",
        _simulate,
        help="run policies against a synthetic environment and compare their regret",
        about="Run policies on the same trials of an environment and compare their cumulative regret.",
        examples=_SIMULATE_HELP,
    )
    parser.add_argument(
        "--policy",
        action="append",
        metavar="ID[:NAME=VALUE,…]",
        help="a policy to run, or FILE.py:NAME for one of your own; repeat for several (default: prucb-hp and ucb)",
    )
    playable = environments.playable()
    problem = add_problem(parser, playable.values())
    problem.add_argument(
        "--environment",
        default="gaussian",
        metavar="ID",
        help=f"{', '.join(playable)}, or FILE.py:NAME (default: gaussian)",
    )
    size = parser.add_argument_group("size")
    add_whole(size, "--rounds", 5000, "T", "rounds, the horizon")
    add_whole(size, "--trials", 10, "N", "independent trials")
    add_whole(size, "--first-trial", 0, "K", "number of the first trial")
    add_seed(size)
    size.add_argument("--threads", type=whole, metavar="N", help="default: one a core; the result is the same")
    size.add_argument("--device", default="cpu", metavar="NAME", help="cpu or cuda: the same trials (default: cpu)")
    size.add_argument(
        "--precision", default="double", metavar="NAME", help="on cuda: double or single (default: double)"
    )
    size.add_argument(
        "--checkpoints", default="100", metavar="N|T1,T2,…", help="how many rounds to note, or which (default: 100)"
    )
    parser.add_argument(
        "--trajectory", metavar="FILE", help="write every decision of a single policy, with its chance: .parquet"
    )
    add_outputs(parser, **_TARGETS)


def _simulate(options: argparse.Namespace) -> int:
    check_targets(options)
    checkpoints = wholes("--checkpoints", options.checkpoints, "a number or as rounds with commas")
    result = simulate(
        policies=[policies.parse(text) for text in options.policy or ["prucb-hp", "ucb"]],
        environment=environments.create(options.environment, **problem_of(options)),
        rounds=options.rounds,
        trials=options.trials,
        seed=options.seed,
        checkpoints=checkpoints if "," in options.checkpoints else checkpoints[0],
        threads=options.threads,
        first_trial=options.first_trial,
        progress=True,
        device=options.device,
        precision=options.precision,
        trajectory=options.trajectory,
    )
    return _report(result, options)


def _show(options: argparse.Namespace) -> int:
    check_targets(options)
    return _report(Result.load(options.file), options)


def _report(result: Result, options: argparse.Namespace) -> int:
    return deliver(options, result.summary(), table(result), output=result.save, plot=result.plot)


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
        for cls in map(policies.REGISTRY.__getitem__, policies.available(options.family))
    ]
    if options.format == "json":
        print(to_json(rows, indent=1))
        return 0
    for row in rows:
        values = ", ".join(f"{name}={value}" for name, value in row["hyperparameters"].items())
        print(f"{row['id']}: {row['summary']}")
        print(f"    score      {row['formula']}")
        print(f"    reads      {', '.join(row['reads'])}")
        print(f"    settings   {values or 'none'}")
        print(f"    reference  {row['reference']}\n")
    return 0
