"""The commands for research: `compare` and `reproduce`."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from pamo.cli.options import check_target, whole
from pamo.errors import InputError, unknown_name

if TYPE_CHECKING:
    from pamo.experiments.tables import Table

_COMPARE_BAR = "compare: {percentage:3.0f} %|{bar}| {elapsed} gone, {remaining} left"

_COMPARE_HELP = """\
examples:
  pamo compare                                            the suite `regret`: everything, three minutes
  pamo compare --policy prucb-up --policy prucb-kp --suite regret --plot compare.svg
  pamo compare --setting users=4,objectives=6 --setting environment=bounded,reward=bernoulli
"""

_REPRODUCE_HELP = """\
examples:
  pamo reproduce                       everything, at the paper's size: about two minutes on two cores
  pamo reproduce --quick               everything, small: a few seconds
  pamo reproduce hidden --trials 400   one study, with more trials
"""


def add_compare(commands: Any) -> None:
    """Add `pamo compare`."""
    parser = commands.add_parser(
        "compare",
        help="several policies × several settings: one table, with paired differences",
        description="Run policies in several settings on the same trials, and compare final regret: mean, median, "
        "90 % and 99 % of trials, share of the baseline's, the paired difference to it with its 95 % interval, and "
        "the mean over an asymptotic lower bound.",
        epilog=_COMPARE_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--policy",
        action="append",
        metavar="ID[:NAME=VALUE,…]",
        help="a policy; repeat for several (default: prucb-hp, recommended, ucb-per-user, oful, greedy)",
    )
    parser.add_argument(
        "--baseline", metavar="ID", help="what the others are compared with (default: the first policy)"
    )
    parser.add_argument("--suite", metavar="NAME", help="settings that belong together: regret (the default)")
    parser.add_argument(
        "--setting", action="append", metavar="NAME=VALUE,…", help="a setting of your own; repeat for several"
    )
    parser.add_argument("--rounds", type=whole, default=5000, metavar="T", help="rounds (default: 5000)")
    parser.add_argument("--trials", type=whole, default=200, metavar="N", help="trials of each (default: 200)")
    parser.add_argument("--seed", type=whole, default=1, metavar="S", help="same seed, same result (default: 1)")
    output = parser.add_argument_group("output")
    output.add_argument("--format", choices=("table", "json"), default="table", help="of stdout (default: table)")
    output.add_argument("--output", metavar="FILE", help="keep the table: .parquet")
    output.add_argument("--plot", metavar="FILE", help="draw it: .svg or .png")
    parser.set_defaults(command=_compare)


def add_reproduce(commands: Any) -> None:
    """Add `pamo reproduce`."""
    parser = commands.add_parser(
        "reproduce",
        help="re-run the paper's studies and write a report with a verdict on each claim",
        description="Re-run the paper's studies, judge its claims, and write report.html, summary.md and summary.json. "
        "What is finished and unchanged is not run again; a run that is stopped loses at most the study in progress.",
        epilog=_REPRODUCE_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="*", metavar="NAME", help="studies to run (default: all; --list names them)")
    parser.add_argument("--list", action="store_true", help="list the studies and stop")
    parser.add_argument("--quick", action="store_true", help="a small version of each, to see that it works")
    parser.add_argument("--trials", type=whole, metavar="N", help="trials of each (default: 100; confidence 10,000)")
    parser.add_argument("--seed", type=whole, default=1, metavar="S", help="same seed, same result (default: 1)")
    parser.add_argument(
        "--output", default="reports/paper", metavar="DIR", help="where to keep it all (default: reports/paper)"
    )
    parser.set_defaults(command=_reproduce)


def _compare(options: argparse.Namespace) -> int:
    from pamo.experiments.compare import compare, draw_comparison, parse_setting, text_of
    from pamo.experiments.figures import save_to
    from pamo.experiments.suites import SUITES, run_suite

    check_target("--output", options.output, (".parquet",))
    check_target("--plot", options.plot, (".svg", ".png"))
    about = {"trials": options.trials, "seed": options.seed}
    with tqdm(total=1.0, file=sys.stderr, leave=False, bar_format=_COMPARE_BAR) as bar:

        def advance(share: float) -> None:
            bar.update(min(share, 1.0 - bar.n))

        own = bool(options.policy or options.setting or options.baseline)
        if not own:
            name = options.suite or "regret"
            tables = run_suite(name, rounds=options.rounds, trials=options.trials, seed=options.seed, progress=advance)
            table = next(iter(tables.values()))
        else:
            if options.suite is not None and options.suite not in SUITES:
                raise unknown_name("suite", options.suite, SUITES)
            settings = dict(parse_setting(text) for text in options.setting or [])
            if options.suite is not None or not settings:
                settings = dict(SUITES[options.suite or "regret"][0].settings) | settings
            table = compare(
                options.policy or ["prucb-hp", "recommended", "ucb-per-user", "oful", "greedy"],
                settings,
                baseline=options.baseline,
                rounds=options.rounds,
                trials=options.trials,
                seed=options.seed,
                progress=advance,
            )
    baseline = options.baseline or table.distinct("policy")[0]
    if not own:
        _print_suite(name, tables, options)
    elif options.format == "json":
        _print_json({**about, "rounds": options.rounds, "baseline": baseline}, rows=_rows(table))
    else:
        print(f"final regret; {options.rounds} rounds, {options.trials} trials, seed {options.seed}\n")
        print(text_of(table, baseline))
    if options.output:
        table.save(Path(options.output))
        print(f"table: {options.output}", file=sys.stderr)
    if options.plot:
        print(f"figure: {save_to(draw_comparison(table, baseline), Path(options.plot))}", file=sys.stderr)
    return 0


def _print_suite(name: str, tables: Mapping[str, Table], options: argparse.Namespace) -> None:
    """Print every part of a suite, and what was asked of the recommended policies."""
    from pamo.experiments.compare import text_of
    from pamo.experiments.suites import SUITES, asked, rounds_of, text_of_asked

    lines = asked(tables)
    if options.format == "json":
        parts = {part: _rows(table) for part, table in tables.items()}
        keys = ("what", "seen", "most")
        about = {"trials": options.trials, "seed": options.seed, "rounds": options.rounds}
        _print_json(about, parts=parts, asked=[dict(zip(keys, line, strict=True)) for line in lines])
        return
    for part in SUITES[name]:
        rounds = rounds_of(part, options.rounds)
        print(f"# {part.title}; regret after {rounds} rounds, {options.trials} trials, seed {options.seed}\n")
        print(text_of(tables[part.name], part.policies[0]) + "\n")
    print(text_of_asked(lines))


def _rows(table: Table) -> list[dict[str, Any]]:
    return [{name: _or_null(value) for name, value in row.items()} for row in table.rows()]


def _print_json(about: Mapping[str, Any], **contents: Any) -> None:
    print(json.dumps({"settings": about, **contents}, ensure_ascii=False, allow_nan=False))


def _or_null(value: Any) -> Any:
    """JSON has no NaN: what is not defined is null."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _reproduce(options: argparse.Namespace) -> int:
    # Imported here: the studies are not needed, nor their weight, for anything else.
    from pamo.experiments.paper import STUDIES
    from pamo.experiments.report import verdict_table, write_report
    from pamo.experiments.runner import finished, run_studies

    if options.list:
        for study in STUDIES.values():
            print(f"{study.name:<13}{study.title} ({study.source})")
        return 0
    for name in options.name:
        if name not in STUDIES:
            raise unknown_name("study", name, STUDIES)
    if options.seed < 0:
        raise InputError(f"expected --seed to be at least 0, got {options.seed}")
    output = Path(options.output)
    if output.exists() and not output.is_dir():
        raise InputError(f"expected --output to be a folder, got the file {options.output!r}")
    records = run_studies(
        [study for study in STUDIES.values() if not options.name or study.name in options.name],
        output,
        seed=options.seed,
        quick=options.quick,
        trials=options.trials,
        announce=lambda line: print(line, file=sys.stderr),
    )
    # The report shows all that the folder holds, so that studies can be run one by one.
    fresh = {record["name"]: record for record in records}
    shown = [fresh.get(name) or finished(output / name) for name in STUDIES]
    page = write_report([record for record in shown if record is not None], output)
    print(verdict_table(records))
    print(f"\nreport: {page}")
    return 0
