"""The command `ratings`: which weights, bias and sharing serve real people's ratings best?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from pamo.cli.options import add_command, add_outputs, add_seed, add_whole, check_targets, deliver, number, wholes
from pamo.progress import Bar

_HELP = """\
examples:
  pamo ratings hotels.parquet --objectives value,service,rooms
  pamo ratings hotels.parquet --objectives value,service,rooms --training 5,10,20 --plot hotels.svg
  pamo ratings beers.parquet --objectives aroma,taste --overall score --user name --low 1 --high 5 --format json

FILE has a row for each rating: who gave it, a score for each objective, and an overall score. Scores are put on [0, 1];
a row that lacks one of them is left out, and how many were is said. Each user's ratings are split at random: the
user's preference is learned from a few, and foretells the overall scores of the others.

the ways of estimating it:
  equal weights         1/D on each objective: nothing is learned
  everybody's weights   what users have in common, the same for all
  own, … weights        each user alone, a ridge of strength 1 towards 0: with the paper's weights D/‖r‖², or plain
  shared, … weights     drawn to what users have in common, as strongly as they are alike: the paper's weights (noise
                        grows with the reward), plain (it does not), or fitted (φ from the data); with a bias of each
                        user's own, or preferences held at 0 or above, where it says so

what it prints:
  RMSE of the overall score on its own scale, every user counting alike; pooled, every rating counting alike; the
  difference of RMSE to "shared, fitted weights" with its 95 % interval over users; the share of held-out pairs of items
  that ĉ·r puts in order as the user did (a bias does not matter there), the mean over users, and its difference in
  percentage points; φ (1: the paper's weights, 0: plain), the variances of preferences τ², of noise σ² and of the bias.
"""


def add_ratings(commands: Any) -> None:
    """Add `pamo ratings`."""
    parser = add_command(
        commands,
        "ratings",
        _ratings,
        help="measure on people's ratings which weights, bias and sharing foretell their overall scores best",
        about="Learn each user's preference from a few of the user's ratings, in several ways, and judge it by the "
        "others.",
        examples=_HELP,
    )
    parser.add_argument("file", metavar="FILE", help="ratings as Parquet, a row a rating")
    columns = parser.add_argument_group("columns")
    columns.add_argument(
        "--objectives", required=True, metavar="A,B,…", help="the columns with the scores of the objectives"
    )
    columns.add_argument("--overall", default="overall", metavar="NAME", help="overall score (default: overall)")
    columns.add_argument("--user", default="user", metavar="NAME", help="who gave it (default: user)")
    columns.add_argument(
        "--low", type=number, metavar="X", help="the lowest score there is (default: each column's least)"
    )
    columns.add_argument(
        "--high", type=number, metavar="X", help="the highest score there is (default: each column's greatest)"
    )
    size = parser.add_argument_group("measurement")
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
    add_whole(size, "--splits", 5, "N", "random splits to average")
    add_seed(size)
    add_outputs(parser, plot=("draw it: .svg or .png", (".svg", ".png")))


def _ratings(options: argparse.Namespace) -> int:
    # Imported here: the study's weight is not needed for anything else.
    from pamo.experiments.figures import save_to
    from pamo.experiments.ratings import BASELINE, draw_ratings, measure, text_of
    from pamo.experiments.ratings_file import read_ratings

    check_targets(options)
    training = wholes("--training", options.training)
    objectives = [name.strip() for name in options.objectives.split(",") if name.strip()]
    ratings = read_ratings(
        options.file, objectives, overall=options.overall, user=options.user, low=options.low, high=options.high
    )
    if ratings.dropped_text:
        print(f"pamo: {ratings.dropped_text}", file=sys.stderr)
    how = {name: getattr(options, name) for name in ("held_out", "splits", "same_users", "seed")}
    with Bar("ratings") as bar:
        table = measure(ratings, training=training, **how, progress=bar.advance)
    about = {
        "file": Path(options.file).name,
        "objectives": objectives,
        "overall": options.overall,
        "user": options.user,
        "users": len(ratings.counts),
        "ratings": len(ratings.overall),
        "dropped": ratings.dropped,
        **how,
        "baseline": BASELINE,
    }
    head = (
        f"{about['file']}: {about['ratings']:,} ratings by {about['users']:,} users, {len(objectives)} objectives; "
        f"{options.splits} split{'s' if options.splits > 1 else ''}, seed {options.seed}; differences to {BASELINE!r}"
    )

    def draw(path: str) -> None:
        save_to(draw_ratings(table), Path(path))

    return deliver(options, {"settings": about, "rows": list(table.rows())}, f"{head}\n\n{text_of(table)}", plot=draw)
