"""The command `evaluate`: what would other weights, or another policy, have got?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pamo.cli.options import add_command, add_outputs, add_runner, add_seed, deliver, runner_of
from pamo.errors import InputError
from pamo.progress import Bar

if TYPE_CHECKING:
    from pamo.experiments.evaluation import Target
    from pamo.experiments.logs import Log

_HELP = """\
examples:
  pamo evaluate pamo.db --weights price=0.7,taste=0.3
  pamo evaluate pamo.db --policy greedy --policy recommended --groups members.csv
  pamo evaluate journal.parquet --weights taste=1 --format json
  pamo simulate --policy prts --trials 1 --trajectory log.parquet && pamo evaluate log.parquet --policy greedy
  pamo evaluate log.csv --objective "price: 0..500, lower is better" --objective "taste: 1..5" --weights price=1

LOG is a store (a path or postgresql://…), a journal that `pamo store export` wrote, decisions that `pamo simulate
--trajectory` wrote, or a table of your own, .csv or
.parquet: a row a round, with the columns user, arm, propensity, a score for each --objective, overall and, where there
are any, offer (the arms to choose from; in CSV with | between them; all arms where there is none) and group.

targets: --weights gives everybody the arm whose mean scores, put on 0 to 1, weigh most; --policy chooses as the policy
does; --random chooses at random. Each learns from the rounds before.

what it prints, by objective and for the overall score, on their own scales, with 95 % intervals over rounds:
  logged  what was got
  replay  the mean over rounds that the target would have chosen alike, of which alone it learns
  ips     every round weighed by the target's chance over the log's
  snips   the same, over the sum of the weights
  dr      doubly robust: a model of arms and users, and ips for what it misses
docs/evaluate.md says which to trust when. A log whose propensities are 1 cannot say what other choices would have got:
exit code 1.
"""


def add_evaluate(commands: Any) -> None:
    """Add `pamo evaluate`."""
    parser = add_command(
        commands,
        "evaluate",
        _evaluate,
        help="say from a log of decisions what other weights, or another policy, would have got",
        about="Say from decisions and their propensities what other weights, or another policy, would have got.",
        examples=_HELP,
    )
    parser.add_argument("log", metavar="LOG", help="a store, an exported journal, or a table: .csv or .parquet")
    targets = parser.add_argument_group("targets (at least one)")
    targets.add_argument("--weights", action="append", default=[], metavar="A=X,B=Y", help="weights on objectives")
    targets.add_argument(
        "--policy", action="append", default=[], metavar="ID", help="a policy; `pamo policies` lists them"
    )
    targets.add_argument("--random", action="store_true", help="a choice at random, as a yardstick")
    columns = parser.add_argument_group("columns of a table")
    columns.add_argument(
        "--objective", action="append", default=[], metavar="TEXT", help="such as 'taste: 1..5'; a column each"
    )
    for name in ("overall", "user", "arm", "offer", "propensity", "group"):
        columns.add_argument(f"--{name}", default=name, metavar="NAME", help=f"default: {name}")
    parser.add_argument("--groups", metavar="FILE", help="users' groups: .csv or .parquet with user and group")
    add_seed(parser)
    add_runner(parser)
    add_outputs(parser)


def _evaluate(options: argparse.Namespace) -> int:
    # Imported here: the study's weight is not needed for anything else.
    from pamo.experiments.evaluation import evaluate, text_of
    from pamo.experiments.logs import read_groups
    from pamo.experiments.tasks import Task, in_order
    from pamo.store.addresses import shown, without_passwords

    targets = _targets(options)
    groups = read_groups(options.groups) if options.groups else None
    with without_passwords(options.log):
        log = _log(options, groups)
    for what, count in log.left_out.items():
        if count:
            print(f"pamo: left out: {count:,} {what}", file=sys.stderr)
    tasks = [Task("evaluate", evaluate, (log, target, options.seed)) for target in targets.values()]
    with runner_of(options) as runner, Bar("evaluate") as bar:
        found = dict(zip(targets, in_order(runner, tasks, bar.advance), strict=True))
    document = {
        "log": shown(options.log),
        "rounds": len(log),
        "users": len(log.users),
        "arms": len(log.arms),
        "left_out": dict(log.left_out),
        "targets": {
            name: {
                "answerable": not one.reason,
                "reason": one.reason or None,
                "unsupported": one.unsupported,
                "effective_rounds": one.effective,
                "mean_weight": one.mean_weight,
                "largest_weight": one.largest_weight,
                "rows": list(one.rows.rows()),
            }
            for name, one in found.items()
        },
    }
    head = f"{document['log']}: {len(log):,} rounds of {len(log.users):,} users, {len(log.arms):,} arms"
    deliver(options, document, "\n\n".join([head, *(f"{name}\n{text_of(one)}" for name, one in found.items())]))
    return int(any(one.reason for one in found.values()))


def _targets(options: argparse.Namespace) -> dict[str, Target]:
    from pamo import policies
    from pamo.experiments.evaluation import by_chance, by_policy, by_weights

    found: dict[str, Target] = {f"weights {text}": by_weights(_weights(text)) for text in options.weights}
    found |= {f"policy {text}": by_policy(policies.parse(text), seed=options.seed) for text in options.policy}
    if options.random:
        found["random"] = by_chance
    if not found:
        raise InputError("expected --weights, --policy or --random: what is it that might have been done?")
    return found


def _weights(text: str) -> dict[str, float]:
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = part.rpartition("=")
        try:
            weights[name.strip()] = float(number)
        except ValueError:
            equals = ""
        if not equals:
            raise InputError(f"expected --weights such as price=0.7,taste=0.3, got {text!r}")
    return weights


def _log(options: argparse.Namespace, groups: Mapping[str, str] | None) -> Log:
    from pamo.contract.objectives import objectives
    from pamo.experiments.logs import log_of_events, objectives_in, read_log
    from pamo.store.addresses import open_reader

    source = Path(options.log)
    if source.suffix not in (".csv", ".parquet"):
        with open_reader(options.log, alone=False) as store:
            return log_of_events((event for _, event in store.events()), groups=groups)
    said = objectives(options.objective) if options.objective else objectives_in(source)
    if source.suffix == ".parquet" and not said:
        from pamo.store.maintenance import exported

        return log_of_events((event for _, event in exported(source)), groups=groups)
    if not said:
        raise InputError("expected --objective for each column with scores, such as --objective 'taste: 1..5'")
    names = {name: getattr(options, name) for name in ("overall", "user", "arm", "offer", "propensity", "group")}
    return read_log(source, said, **names, groups=groups)
