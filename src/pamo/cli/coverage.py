"""The command `coverage`: does the variance-aware bound hold as often as it promises?"""

from __future__ import annotations

import argparse
from typing import Any

from pamo.cli.options import (
    add_command,
    add_outputs,
    add_problem,
    add_seed,
    add_whole,
    deliver,
    number,
    problem_of,
    whole,
    wholes,
)
from pamo.environments import Bounded
from pamo.errors import InputError
from pamo.progress import Bar, scaled

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
    parser = add_command(
        commands,
        "coverage",
        _coverage,
        help="count how often the variance-aware confidence bound holds, against how often it promises to",
        about="Play the bounded environment, where the truth is known, and hold the variance-aware upper bound against "
        "it for every user and arm in every round. Without --reward, rewards are beta and then bernoulli.",
        examples=_HELP,
    )
    add_whole(parser, "--trials", 10_000, "N", "trials")
    add_whole(parser, "--rounds", 2000, "T", "rounds of each")
    add_seed(parser)
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
    add_problem(parser, [Bounded], "problem (the bounded environment)")
    add_outputs(parser)


def _coverage(options: argparse.Namespace) -> int:
    # Imported here: the study's weight is not needed for anything else.
    from pamo.experiments.coverage import coverage, text_of

    given = problem_of(options)
    kinds: Any = _REWARDS if options.reward is None else (options.reward,)  # Bounded says which it takes
    settings = [Bounded(**given | {"reward": kind}) for kind in kinds]
    if options.threads is not None and options.threads < 1:
        raise InputError(f"expected --threads to be at least 1, got {options.threads}")
    marks = None if options.marks is None else wholes("--marks", options.marks, "rounds with commas")
    with Bar("coverage") as bar:
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
                progress=scaled(bar.advance, 1.0 / len(settings)),
            )
            for environment in settings
        ]
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
    deliver(options, documents, "\n\n".join(text_of(found) for found in results))
    return 0 if all(found.holds for found in results) else 1
