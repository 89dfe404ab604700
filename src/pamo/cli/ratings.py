"""The command `ratings`: what people's ratings are like, and how well their overall scores can be foretold."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pamo.cli.options import (
    add_command,
    add_outputs,
    add_seed,
    add_whole,
    check_targets,
    deliver,
    number,
    wholes,
)
from pamo.errors import InputError
from pamo.progress import Bar

if TYPE_CHECKING:
    from pamo.ratings import Ratings, Scale

_FILE = """\
FILE, .csv or .parquet, has a row for each rating: who gave it, a score for each objective, an overall score, and, where
they are known, the item and the time. Scores are put on [0, 1]. A row that lacks a score is left out, and so are one
with a cell that is no number or not on its scale, and all but a user's last rating of an item; what was is said.
"""

_HELP = f"""\
examples:
  pamo ratings describe hotels.csv --objectives value,service,rooms
  pamo ratings learn hotels.csv --objectives value,service,rooms --training 5,10,20

{_FILE}
`pamo ratings COMMAND --help` says more of each.
"""

_DESCRIBE_HELP = f"""\
examples:
  pamo ratings describe hotels.parquet --objectives value,service,rooms
  pamo ratings describe beers.csv --objectives aroma=review_aroma,taste=review_taste --overall review_overall
  pamo ratings describe films.csv --objectives story,acting --scale story=1..13 --scale acting=1..13 --format json

{_FILE}
what it prints: users and the lengths of their histories; how much of the overall scores a weighted sum explains; how
far users differ in level and in weights, as far as a user's other ratings foretell one; and how often a
user's weights choose another item than everybody's, among random items and among nearly equal ones. The last line says
what that comes to.
"""

_LEARN_HELP = f"""\
examples:
  pamo ratings learn hotels.parquet --objectives value,service,rooms
  pamo ratings learn hotels.parquet --objectives value,service,rooms --training 5,10,20 --plot hotels.svg
  pamo ratings learn beers.csv --objectives aroma,taste --overall score --user name --low 1 --high 5 --format json

{_FILE}
Each user's ratings are split at random: the user's preference is learned from a few, and foretells the overall scores
of the others. Numbers to learn from that no two users have enough ratings for are skipped, and said.

the ways of estimating it:
  equal weights            1/D on each objective: nothing is learned
  everybody's weights      what users have in common, the same for all
  pooled regression        one regression with an intercept for all; with a shrunken bias a user where it says so
  own regression           a ridge regression with an intercept for each user alone
  foretelling prior        bias and weights drawn to everybody's, as strongly as foretells ratings left out best, or
                           altogether: what the engine tells of users by
  own, … weights           each user alone, a ridge of strength 1 towards 0: with the paper's weights D/‖r‖², or plain
  shared, … weights        drawn to what users have in common, as strongly as they are alike: the paper's weights (noise
                           grows with the reward), plain (it does not), or fitted (φ from the data); with a bias of each
                           user's own, or preferences held at 0 or above, where it says so

what it prints:
  RMSE of the overall score on its own scale, every user counting alike; pooled, every rating counting alike; the
  difference of RMSE to "foretelling prior" with its 95 % interval over users; the share of held-out pairs of items
  that ĉ·r puts in order as the user did (a bias does not matter there), the mean over users, and its difference in
  percentage points; φ (1: the paper's weights, 0: plain), the variances of preferences τ², of noise σ² and of the bias.
  As JSON: default, the way that the engine foretells by; and sizes, by ratings learned from and way: rmse, users …
"""


def add_ratings(commands: Any) -> None:
    """Add `pamo ratings`."""
    parser: Any = add_command(
        commands,
        "ratings",
        lambda options: parser.print_help() or 0,
        help="describe people's ratings, and measure how well their overall scores can be foretold",
        about="What people's ratings are like, and which way of learning foretells their overall scores best.",
        examples=_HELP,
    )
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", help="what to do with them")
    describe = add_command(
        parts,
        "describe",
        _describe,
        help="who rated how much, how linear overall scores are, how different people are",
        about="Say what ratings are like, and whether weights of each user's own are worth having.",
        examples=_DESCRIBE_HELP,
    )
    _add_columns(describe)
    add_seed(describe)
    add_outputs(describe)
    learn = add_command(
        parts,
        "learn",
        _learn,
        help="which weights, bias and sharing foretell overall scores best",
        about="Learn each user's preference from a few of the user's ratings, in several ways, and judge it by the "
        "others.",
        examples=_LEARN_HELP,
    )
    _add_columns(learn)
    size = learn.add_argument_group("measurement")
    size.add_argument(
        "--training",
        default="5,10,50",
        metavar="N1,N2,…",
        help="ratings of a user to learn from, one after the other (default: 5,10,50)",
    )
    add_whole(size, "--held-out", 5, "N", "users have at least so many others")
    size.add_argument(
        "--same-users",
        action="store_true",
        help="only users with enough ratings for the largest of --training, so that its numbers compare",
    )
    add_whole(size, "--splits", 6, "N", "random splits to average; every second one is the one before turned round")
    add_seed(size)
    add_outputs(learn, plot=("draw it: .svg or .png", (".svg", ".png")))


def _add_columns(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="ratings as .csv or .parquet, a row a rating")
    columns = parser.add_argument_group("columns")
    columns.add_argument(
        "--objectives",
        required=True,
        metavar="A,B,…",
        help="the columns with the scores of the objectives; NAME=COLUMN calls one by another name",
    )
    columns.add_argument("--overall", default="overall", metavar="NAME", help="overall score (default: overall)")
    columns.add_argument("--user", default="user", metavar="NAME", help="who gave it (default: user)")
    columns.add_argument("--item", default="item", metavar="NAME", help="what it is of, if known (default: item)")
    columns.add_argument("--time", metavar="NAME", help="when it was given (default: later rows are later)")
    columns.add_argument(
        "--low", type=number, metavar="X", help="the lowest score there is (default: each column's least)"
    )
    columns.add_argument(
        "--high", type=number, metavar="X", help="the highest score there is (default: each column's greatest)"
    )
    columns.add_argument(
        "--scale", action="append", default=[], metavar="COLUMN=LOW..HIGH", help="the same for one column alone"
    )


def _read(options: argparse.Namespace) -> Ratings:
    from pamo.ratings import read_ratings

    parts = [part.strip() for part in options.objectives.split(",") if part.strip()]
    pairs = [(name.strip(), column.strip()) for name, _, column in (part.partition("=") for part in parts)]
    if len(dict(pairs)) < len(pairs):
        raise InputError(f"expected each of --objectives once, got {options.objectives!r}")
    ratings = read_ratings(
        options.file,
        {name: column or name for name, column in pairs},
        overall=options.overall,
        user=options.user,
        item=options.item,
        time=options.time,
        low=options.low,
        high=options.high,
        scales=dict(_scale(text) for text in options.scale),
    )
    if ratings.dropped_text:
        print(f"pamo: {ratings.dropped_text}", file=sys.stderr)
    return ratings


def _scale(text: str) -> tuple[str, Scale]:
    found = re.fullmatch(r"(.+)=\s*(\S+?)\s*\.\.\s*(\S+)\s*", text)
    try:
        if found:
            return found[1].strip(), (float(found[2]), float(found[3]))
    except ValueError:
        pass
    raise InputError(f"expected --scale such as taste=1..5, got {text!r}")


def _describe(options: argparse.Namespace) -> int:
    # Imported here, as below: the study's weight is not needed for anything else.
    from pamo.experiments.ratings_description import describe, text_of, verdict

    found = describe(_read(options), seed=options.seed)
    return deliver(options, {**found, "verdict": verdict(found)}, text_of(found))


def _learn(options: argparse.Namespace) -> int:
    from pamo.experiments.figures import save_to
    from pamo.experiments.ratings import BASELINE, draw_ratings, measure, text_of, unmeasurable

    check_targets(options)
    training = wholes("--training", options.training)
    ratings = _read(options)
    how = {name: getattr(options, name) for name in ("held_out", "splits", "same_users", "seed")}
    with Bar("ratings") as bar:
        table = measure(ratings, training=training, **how, progress=bar.advance)
    skipped = unmeasurable(ratings, training=training, held_out=options.held_out)
    for size, sentence in skipped.items():
        print(f"pamo: {size} skipped: {sentence}", file=sys.stderr)
    document: dict[str, Any] = {
        "default": BASELINE,
        "sizes": {},
        "skipped": {str(size): sentence for size, sentence in skipped.items()},
        "settings": {
            "file": Path(options.file).name,
            "objectives": list(ratings.objectives),
            "overall": options.overall,
            "user": options.user,
            "users": len(ratings.counts),
            "ratings": len(ratings.overall),
            "left_out": ratings.dropped,
            "wrong_cells": [str(one) for one in ratings.problems],
            **how,
        },
    }
    for row in table.rows():
        document["sizes"].setdefault(str(row.pop("training")), {})[row.pop("way")] = row
    head = (
        f"{Path(options.file).name}: {len(ratings.overall):,} ratings by {len(ratings.counts):,} users, "
        f"{len(ratings.objectives)} objectives; {options.splits} split{'s' if options.splits > 1 else ''}, seed "
        f"{options.seed}; differences to {BASELINE!r}"
    )

    def draw(path: str) -> None:
        save_to(draw_ratings(table), Path(path))

    return deliver(options, document, f"{head}\n\n{text_of(table)}", plot=draw)
