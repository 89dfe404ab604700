"""The command `coverage`: does the variance-aware bound hold as often as it promises?"""

from __future__ import annotations

import argparse
import json
import math
import sys
from typing import Any

from tqdm import tqdm

from pamo.cli.options import number, whole
from pamo.errors import InputError

_BAR = "coverage: {percentage:3.0f} %|{bar}| {elapsed} gone, {remaining} left"
_REWARDS = ("beta", "bernoulli")

_HELP = """\
examples:
  pamo coverage                                     10,000 trials of each kind of reward: a few minutes on two cores
  pamo coverage --trials 500 --rounds 300           a quick look
  pamo coverage --choice greedy --reward bernoulli  arms chosen without any exploration
  pamo coverage --trials 500 --scale 0.05           bonuses a twentieth as large: no bound, and seen to fail

what it prints:
  The first table is about whole trials: a statement holds in a trial if it holds in every round, for every user and
  every arm. "promised" is the share of trials that the derivation promises, "held" the share seen, "could shrink to"
  the factor that the bonus could be multiplied by and still keep the promise (for arms pulled twice or more).
  The second is about single rounds: the share of pairs of user and arm for which the bound held, the share of trials
  in which it held for all pairs; then, for a user's best arm, the median bonus, the median error of the estimate, the
  median of bonus over error, and the median of the bonus over that of the hidden bound.
  "hidden", "stated" and "known" are the derivation's bounds by how the preference is learned. "paper" is the paper's
  with the settings of its Theorem 1. "smaller" is prucb-hp-v's score without a shared prior: no promise.

κ is how much more a preference may vary in one direction than in another; the environment's settings say it (1 where
the preference variance is small enough, infinite for random preferences), and --kappa stands in for it.
docs/theory/variance.md has the derivation. The exit code is 1 if a derived statement held less often than promised.
"""


def add_coverage(commands: Any) -> None:
    """Add `pamo coverage`."""
    parser = commands.add_parser(
        "coverage",
        help="count how often the variance-aware confidence bound holds, against how often it promises to",
        description="Play the bounded environment, where the truth is known, and hold the variance-aware upper bound "
        "against it for every user and arm in every round.",
        epilog=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--trials", type=whole, default=10_000, metavar="N", help="trials (default: 10000)")
    parser.add_argument("--rounds", type=whole, default=2000, metavar="T", help="rounds of each (default: 2000)")
    parser.add_argument("--seed", type=whole, default=1, metavar="S", help="same seed, same result (default: 1)")
    parser.add_argument(
        "--marks", metavar="T1,T2,…", help="rounds to look into (default: 1 %%, 10 %% and 100 %% of them)"
    )
    parser.add_argument("--threads", type=whole, metavar="N", help="default: one a core; the result is the same")
    bound = parser.add_argument_group("bound")
    bound.add_argument("--failure", type=number, default=0.05, metavar="P", help="it may fail so often (default: 0.05)")
    bound.add_argument("--kappa", type=number, metavar="K", help="κ (default: what the environment's settings give)")
    bound.add_argument("--scale", type=number, default=1.0, metavar="F", help="a factor on its bonuses (default: 1)")
    bound.add_argument(
        "--choice",
        default="recommended",
        metavar="KIND",
        help="who chooses the arms: recommended (prucb-hp-v's score; default), bound, greedy or random",
    )
    problem = parser.add_argument_group("problem (the bounded environment)")
    problem.add_argument("--reward", metavar="KIND", help="beta or bernoulli (default: one after the other)")
    problem.add_argument("--users", type=whole, default=2, metavar="N", help="users (default: 2)")
    problem.add_argument("--block-size", type=whole, default=5, metavar="N", help="arms in an offer (default: 5)")
    problem.add_argument("--objectives", type=whole, default=3, metavar="D", help="objectives (default: 3)")
    problem.add_argument("--arms", type=whole, metavar="K", help="arms (default: users × block size)")
    problem.add_argument("--preference", default="predefined", metavar="KIND", help="predefined (default) or random")
    problem.add_argument("--protocol", default="random", metavar="KIND", help="random (default), rotate or all")
    problem.add_argument("--reward-variance", type=number, default=0.01, metavar="V", help="default: 0.01")
    problem.add_argument("--preference-variance", type=number, default=0.01, metavar="V", help="default: 0.01")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="of stdout (default: table)")
    parser.set_defaults(command=_coverage)


def _coverage(options: argparse.Namespace) -> int:
    # Imported here: the study's weight is not needed for anything else.
    from pamo import environments
    from pamo.experiments.coverage import coverage, text_of

    kinds: Any = _REWARDS if options.reward is None else (options.reward,)  # Bounded says which it takes
    settings = [
        environments.Bounded(
            reward=kind,
            users=options.users,
            block_size=options.block_size,
            objectives=options.objectives,
            arms=options.arms,
            preference=options.preference,
            protocol=options.protocol,
            reward_variance=options.reward_variance,
            preference_variance=options.preference_variance,
        )
        for kind in kinds
    ]
    if options.threads is not None and options.threads < 1:
        raise InputError(f"expected --threads to be at least 1, got {options.threads}")
    marks = _marks(options.marks)
    with tqdm(total=1.0, file=sys.stderr, leave=False, bar_format=_BAR) as bar:

        def advance(share: float) -> None:
            bar.update(min(share / len(settings), 1.0 - bar.n))

        results = [
            coverage(
                environment,
                rounds=options.rounds,
                trials=options.trials,
                seed=options.seed,
                failure=options.failure,
                choice=options.choice,
                marks=marks,
                kappa=options.kappa,
                scale=options.scale,
                threads=options.threads,
                progress=advance,
            )
            for environment in settings
        ]
    if options.format == "json":
        documents = [
            {
                "settings": found.settings,
                "holds": found.holds,
                "statements": list(found.statements.rows()),
                "rounds": list(found.rounds.rows()),
                "tightness": list(found.tightness.rows()),
            }
            for found in results
        ]
        print(json.dumps(_plain(documents), ensure_ascii=False))
    else:
        print("\n\n".join(text_of(found) for found in results))
    return 0 if all(found.holds for found in results) else 1


def _marks(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"expected --marks as rounds with commas, got {text!r}") from None


def _plain(value: Any) -> Any:
    """Return the value as JSON has it: no NaN, no infinity."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
