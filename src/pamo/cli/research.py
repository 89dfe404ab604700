"""The commands for research: `compare` and `reproduce`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from pamo.cli.options import add_command, add_outputs, add_seed, add_whole, check_targets, deliver, whole
from pamo.errors import InputError, unknown_name
from pamo.progress import Bar

_COMPARE_HELP = """\
examples:
  pamo compare                                            the suite `regret`: everything, three minutes
  pamo compare --suite live --trials 20                   worlds that change, and tell little, or late
  pamo compare --policy prucb-up --policy prucb-kp --suite regret --plot compare.svg
  pamo compare --setting users=4,objectives=6 --setting environment=bounded,reward=bernoulli
"""

_REPRODUCE_HELP = """\
examples:
  pamo reproduce                       everything, at the paper's size: a few minutes on two cores
  pamo reproduce --quick               everything, small: a few seconds
  pamo reproduce --extended            and what others claim of the families that the paper cites
  pamo reproduce hidden --trials 400   one study, with more trials
"""

_POLICIES = ("prucb-hp", "recommended", "ucb-per-user", "oful", "greedy")


def add_compare(commands: Any) -> None:
    """Add `pamo compare`."""
    parser = add_command(
        commands,
        "compare",
        _compare,
        help="several policies × several settings: one table, with paired differences",
        about="Run policies in several settings on the same trials, and compare final regret: mean, median, 90 % and "
        "99 % of trials, share of the baseline's, the paired difference to it with its 95 % interval, and the mean "
        "over an asymptotic lower bound.",
        examples=_COMPARE_HELP,
    )
    parser.add_argument(
        "--policy",
        action="append",
        metavar="ID[:NAME=VALUE,…]",
        help=f"a policy, or FILE.py:NAME; repeat for several (default: {', '.join(_POLICIES)})",
    )
    parser.add_argument(
        "--baseline", metavar="ID", help="what the others are compared with (default: the first policy)"
    )
    parser.add_argument("--suite", metavar="NAME", help="settings that belong together: regret (the default) or live")
    parser.add_argument(
        "--setting", action="append", metavar="NAME=VALUE,…", help="a setting of your own; repeat for several"
    )
    add_whole(parser, "--rounds", 5000, "T", "rounds")
    add_whole(parser, "--trials", 200, "N", "trials of each")
    add_seed(parser)
    add_outputs(
        parser,
        output=("keep the table: .parquet", (".parquet",)),
        plot=("draw it: .svg or .png", (".svg", ".png")),
    )


def add_reproduce(commands: Any) -> None:
    """Add `pamo reproduce`."""
    parser = add_command(
        commands,
        "reproduce",
        _reproduce,
        help="re-run the paper's studies and write a report with a verdict on each claim",
        about="Re-run the paper's studies, judge its claims, and write report.html, summary.md and summary.json. "
        "What is finished and unchanged is not run again; a run that is stopped loses at most the study in "
        "progress and the one being drawn.",
        examples=_REPRODUCE_HELP,
    )
    parser.add_argument("name", nargs="*", metavar="NAME", help="studies to run (default: all; --list names them)")
    parser.add_argument("--list", action="store_true", help="list the studies and stop")
    parser.add_argument("--quick", action="store_true", help="a small version of each, to see that it works")
    parser.add_argument("--extended", action="store_true", help="the cited families as well, each in its own setting")
    parser.add_argument("--trials", type=whole, metavar="N", help="trials of each (default: 100; confidence 4,000)")
    add_seed(parser)
    parser.add_argument(
        "--output", default="reports/paper", metavar="DIR", help="where to keep it all (default: reports/paper)"
    )


def _compare(options: argparse.Namespace) -> int:
    from pamo.experiments.compare import compare, draw_comparison, parse_setting, text_of
    from pamo.experiments.figures import save_to
    from pamo.experiments.suites import SUITES, asked, run_suite, text_of_asked, text_of_suite

    check_targets(options)
    size = {"rounds": options.rounds, "trials": options.trials, "seed": options.seed}
    name = options.suite or "regret"
    if name not in SUITES:
        raise unknown_name("suite", name, SUITES)
    own = bool(options.policy or options.setting or options.baseline)
    with Bar("compare") as bar:
        if own:
            settings = dict(parse_setting(text) for text in options.setting or [])
            if options.suite is not None or not settings:
                settings = dict(SUITES[name][0].settings) | settings
            table = compare(
                options.policy or _POLICIES, settings, baseline=options.baseline, **size, progress=bar.advance
            )
        else:
            tables = run_suite(name, **size, progress=bar.advance)
            table = next(iter(tables.values()))
    baseline = options.baseline or table.distinct("policy")[0]
    if own:
        document: dict[str, Any] = {"settings": size | {"baseline": baseline}, "rows": list(table.rows())}
        head = f"final regret; {options.rounds} rounds, {options.trials} trials, seed {options.seed}\n\n"
        text = head + text_of(table, baseline)
    else:
        lines, keys = asked(name, tables), ("what", "seen", "most")
        parts = {part: list(rows.rows()) for part, rows in tables.items()}
        document = {"settings": size, "parts": parts, "asked": [dict(zip(keys, line, strict=True)) for line in lines]}
        text = text_of_suite(name, tables, **size) + "\n\n" + text_of_asked(lines)

    def draw(path: str) -> None:
        save_to(draw_comparison(table, baseline), Path(path))

    return deliver(options, document, text, kept="table", output=lambda path: table.save(Path(path)), plot=draw)


def _reproduce(options: argparse.Namespace) -> int:
    # Imported here: the studies are not needed, nor their weight, for anything else.
    from pamo.experiments.paper import EXTENDED, STUDIES
    from pamo.experiments.report import verdict_table, write_report
    from pamo.experiments.runner import finished, run_studies

    known = STUDIES | EXTENDED
    if options.list:
        for study in known.values():
            print(f"{study.name:<13}{study.title} ({study.source})")
        return 0
    for name in options.name:
        if name not in known:
            raise unknown_name("study", name, known)
    if options.seed < 0:
        raise InputError(f"expected --seed to be at least 0, got {options.seed}")
    output = Path(options.output)
    if output.exists() and not output.is_dir():
        raise InputError(f"expected --output to be a folder, got the file {options.output!r}")
    records = run_studies(
        [study for study in known.values() if study.name in (options.name or (known if options.extended else STUDIES))],
        output,
        seed=options.seed,
        quick=options.quick,
        trials=options.trials,
        announce=lambda line: print(line, file=sys.stderr),
    )
    # The report shows all that the folder holds, so that studies can be run one by one.
    fresh = {record["name"]: record for record in records}
    shown = [fresh.get(name) or finished(output / name) for name in known]
    page = write_report([record for record in shown if record is not None], output)
    print(verdict_table(records))
    print(f"\nreport: {page}")
    return 0
