"""Make logs of which the truth is known, and count how often the intervals of `pamo evaluate` hold it.

    python -m campaigns.intervals --logs 1000 --rounds 1000 --seed 1

Users are drawn anew for each round. In the first case offers are, too; the log is made by a fixed policy that draws,
and one is asked about that always takes what it thinks is best. In the second all arms are on offer; the log is made by
a policy that learns and takes chances, and weights are asked about whose choice is learned from the log as well.
Replay, whose target learns from other rounds, is left out there.

A 95 % interval is to hold the truth in 93 to 97 % of the logs. `--narrow 0.8` makes intervals a fifth too narrow, which
has to be found. Exit code 1 if any interval holds it too seldom or too often.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from typing import NamedTuple

import numpy as np

from pamo.arrays import Floats, Ints
from pamo.contract.objectives import Objective
from pamo.experiments.evaluation import METHODS, Evaluation, Learner, by_weights, evaluate
from pamo.experiments.logs import Log, Round, log_of
from pamo.progress import Bar

USERS, ARMS, OFFERED, OBJECTIVES = 20, 8, 4, 2
NOISE, EPSILON = 0.2, 0.4
WEIGHTS = {"x": 0.8, "y": 0.2}
ALLOWED = (0.93, 0.97)
_OFFERS = np.array(list(itertools.combinations(range(ARMS), OFFERED)))


class World(NamedTuple):
    """What is true: (arms, D), each user's weights, (users, D), and the fixed policies' scores, (users, arms)."""

    means: Floats
    weights: Floats
    logger: Floats
    target: Floats

    @property
    def values(self) -> Floats:
        """What an arm gives a user on average, by objective and overall: (users, arms, D+1)."""
        overall = self.weights @ self.means.T
        return np.concatenate([np.broadcast_to(self.means, (USERS, *self.means.shape)), overall[..., None]], axis=2)


def world_of(draw: np.random.Generator) -> World:
    """Draw a world."""
    means, weights = draw.random((ARMS, OBJECTIVES)), draw.dirichlet(np.ones(OBJECTIVES), USERS)
    return World(means, weights, draw.normal(size=(USERS, ARMS)), weights @ means.T + 0.2 * draw.random((USERS, ARMS)))


def log_in(world: World, rounds: int, draw: np.random.Generator, *, learns: bool) -> Log:
    """Return a log of the fixed policy that draws, or of one that learns."""
    totals, pulls, made = np.zeros(ARMS), np.zeros(ARMS), []
    truth, named = world.values, [f"arm {i}" for i in range(ARMS)]
    for _ in range(rounds):
        user, offer = int(draw.integers(USERS)), _OFFERS[draw.integers(len(_OFFERS))]
        if learns:
            offer, chances = np.arange(ARMS), np.full(ARMS, EPSILON / ARMS)
            chances[np.argmax(totals[offer] / np.maximum(pulls[offer], 1.0))] += 1.0 - EPSILON
        else:
            chances = np.exp(0.5 * world.logger[user, offer])
            chances /= chances.sum()
        place = int(draw.choice(len(offer), p=chances))
        arm = int(offer[place])
        values = truth[user, arm] + NOISE * draw.normal(size=OBJECTIVES + 1)
        totals[arm] += values[-1]
        pulls[arm] += 1.0
        listed, rewards = tuple(named[i] for i in offer), dict(zip(WEIGHTS, values.tolist(), strict=False))
        made.append(Round(str(user), listed, named[arm], float(chances[place]), rewards, float(values[-1])))
    return log_of(made, [Objective(name) for name in WEIGHTS])


class _Fixed:
    """Takes the arm of the offer with the highest score of its own for the user."""

    def __init__(self, scores: Floats) -> None:
        self._scores = scores

    def chances(self, user: int, offer: Ints) -> Floats:
        own = self._scores[user, offer]
        return np.asarray(own == own.max(), dtype=float)

    def observe(self, user: int, arm: int, reward: Floats, overall: float) -> None:
        pass


class _Watched:
    """A target that learns, and the chances that it gave."""

    def __init__(self, learner: Learner, given: list[Floats]) -> None:
        self._learner, self._given = learner, given

    def chances(self, user: int, offer: Ints) -> Floats:
        self._given.append(self._learner.chances(user, offer))
        return self._given[-1]

    def observe(self, user: int, arm: int, reward: Floats, overall: float) -> None:
        self._learner.observe(user, arm, reward, overall)


def fixed_case(world: World, rounds: int, draw: np.random.Generator) -> tuple[Evaluation, Floats]:
    """Return the evaluation of the fixed target from a fixed policy's log, and the truth by measure."""
    log = log_in(world, rounds, draw, learns=False)
    rows, columns = [int(user) for user in log.users], [int(arm.split()[1]) for arm in log.arms]
    best = np.argmax(world.target[:, _OFFERS], axis=2)
    chosen = _OFFERS[np.arange(len(_OFFERS)), best]
    truth = world.values[np.arange(USERS)[:, None], chosen].mean(axis=(0, 1))
    return evaluate(log, lambda _: _Fixed(world.target[np.ix_(rows, columns)])), truth


def learning_case(world: World, rounds: int, draw: np.random.Generator) -> tuple[Evaluation, Floats]:
    """Return the evaluation of weights that learn from the log of a policy that learns, and the truth by measure."""
    log, given = log_in(world, rounds, draw, learns=True), list[Floats]()
    found = evaluate(log, lambda each: _Watched(by_weights(WEIGHTS)(each), given))
    # All arms are in every offer, in the same order; replay's chances come after the first pass.
    return found, np.mean(given[:rounds], axis=0) @ world.values.mean(axis=0)


CASES = {"fixed": fixed_case, "learning": learning_case}


def coverage(logs: int, rounds: int, seed: int, narrow: float = 1.0) -> dict[tuple[str, str, str], float]:
    """Return, by case, method and measure, the share of the logs whose interval holds the truth."""
    held: dict[tuple[str, str, str], list[bool]] = {}
    with Bar("intervals", total=logs * len(CASES)) as bar:
        for (number, name), case in zip(enumerate(CASES), CASES.values(), strict=True):
            for one in range(logs):
                draw = np.random.default_rng([seed, number, one])
                found, truth = case(world_of(draw), rounds, draw)
                expected = dict(zip(found.rows.distinct("measure"), truth.tolist(), strict=True))
                for row in found.rows.rows():
                    if row["method"] != "replay" or name == "fixed":
                        half = narrow * (row["high"] - row["low"]) / 2.0
                        if row["method"] != METHODS[0]:
                            key = name, row["method"], row["measure"]
                            held.setdefault(key, []).append(abs(row["value"] - expected[row["measure"]]) <= half)
                bar.advance(1.0)
    return {key: sum(each) / len(each) for key, each in held.items()}


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign, and say what was found."""
    parser = argparse.ArgumentParser(description="Count how often intervals from logs hold the truth.")
    parser.add_argument("--logs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--narrow", type=float, default=1.0, help="a factor on the intervals, as a fault to be found")
    options = parser.parse_args(arguments)
    found = coverage(options.logs, options.rounds, options.seed, options.narrow)
    # With few logs a share strays further; of so many shares none is to be beyond three standard errors by chance.
    slack = max(0.0, 3.0 * math.sqrt(0.05 * 0.95 / options.logs) - 0.02)
    wrong = [key for key, share in found.items() if not ALLOWED[0] - slack <= share <= ALLOWED[1] + slack]
    for (case, method, measure), share in found.items():
        print(f"{case:<10}{method:<8}{measure:<9}{share:7.1%}{'  FAILED' if (case, method, measure) in wrong else ''}")
    print(f"{options.logs:,} logs of {options.rounds:,} rounds each, seed {options.seed}: ", end="")
    print(f"{len(wrong)} shares outside {ALLOWED[0]:.0%} to {ALLOWED[1]:.0%}" if wrong else "as it should be")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
