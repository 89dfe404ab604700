"""Have engines learn what users care about whose weights are known, and count how often the intervals told hold them.

    python -m campaigns.preference_intervals --worlds 100 --seed 1

Users are those of the paper's experiments, predefined and random (overall scores vary with the reward), people who
share a weight of one among the objectives, and people around what most of them want. Each world is an engine of its
own, whose recommended policy chooses; after so many rounds each user's preference is asked for.

A 95 % interval is to hold the truth in 93 to 97 % of all weights. `--narrow 0.7` makes intervals narrower, which has to
be found. Exit code 1 if they hold it too seldom or too often in any case.
"""

from __future__ import annotations

import argparse
import math
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from typing import NamedTuple

import numpy as np

from pamo import Engine
from pamo.arrays import Floats
from pamo.contract.objectives import Objective
from pamo.progress import Bar

ALLOWED = (0.93, 0.97)
SCALE = 50.0
"""Scores and overall scores are from minus to plus this on the engine's scales: Gaussian ones have no ends."""


class Case(NamedTuple):
    """Which users, how many, how many objectives, and after how many rounds of each they are asked for.

    noise: the overall scores' standard deviation; 0 is √½·‖r‖, as in the paper's experiments. arms: how many there are.
    """

    kind: str
    users: int
    objectives: int
    rounds: int
    noise: float = 0.0
    arms: int = 20

    def __str__(self) -> str:
        noise = f", noise {self.noise:g}" if self.noise else ""
        return f"{self.kind}, {self.users} users, D={self.objectives}, {self.arms} arms, {self.rounds} rounds{noise}"


CASES = (
    Case("random", 10, 5, 20),
    Case("random", 10, 5, 100),
    Case("random", 50, 4, 30),
    Case("random", 3, 3, 100),
    Case("random", 20, 3, 50, noise=0.3),
    Case("random", 15, 2, 40, arms=6),
    Case("predefined", 10, 5, 100),
    Case("predefined", 10, 5, 100, noise=0.2),
    Case("predefined", 10, 3, 50),
    Case("predefined", 50, 4, 30),
    Case("shares", 5, 5, 20, noise=0.05),
    Case("shares", 40, 5, 8, noise=0.05),
    Case("shares", 50, 4, 30, noise=0.05),
    Case("shares", 20, 3, 60, noise=0.2),
    Case("around", 20, 4, 40),
    Case("around", 25, 6, 50, arms=60),
)


def weights_of(case: Case, draw: np.random.Generator) -> Floats:
    """Return every user's true weights."""
    shape = case.users, case.objectives
    if case.kind == "random":
        return draw.uniform(0.0, 5.0, shape)
    if case.kind == "shares":
        return draw.dirichlet(np.ones(case.objectives), case.users)
    if case.kind == "around":
        return np.linspace(0.5, 2.0, case.objectives) + 0.5 * draw.normal(size=shape)
    weights = np.full(shape, 0.5)
    weights[np.arange(case.users), draw.integers(0, case.objectives, case.users)] = 2.0
    return weights


def held_in(case: Case, seed: list[int], narrow: float) -> float:
    """Return the share of weights that lie in their intervals, in one world."""
    draw = np.random.default_rng(seed)
    names = [f"o{d}" for d in range(case.objectives)]
    weights, means = weights_of(case, draw), draw.uniform(size=(case.arms, case.objectives))
    users, arms = [f"u{n}" for n in range(case.users)], [f"a{i}" for i in range(len(means))]
    # On a scale of 2·SCALE points one point is 1/(2·SCALE), of rewards and overall scores alike: weights stay the same.
    scales = [Objective(name, -SCALE, SCALE) for name in names]
    with Engine(scales, overall=Objective("overall", -SCALE, SCALE), seed=int(draw.integers(2**31))) as engine:
        engine.add_arms(arms)
        for _ in range(case.rounds):
            offers = [draw.permutation(arms)[:5].tolist() for _ in users]
            made = engine.decide_many(
                [{"user": user, "arms": offer} for user, offer in zip(users, offers, strict=True)]
            )
            given = []
            for n, decision in enumerate(made):
                reward = means[arms.index(decision.arm)] + 0.1 * draw.normal(size=case.objectives)
                noise = case.noise or math.sqrt(0.5) * float(np.linalg.norm(reward))
                overall = float(weights[n] @ reward) + noise * float(draw.normal())
                rewards = dict(zip(names, reward.tolist(), strict=True))
                given.append({"decision_id": decision.id, "rewards": rewards, "overall": overall})
            engine.feedback_many(given)
        engine.refit()
        told = [engine.preference(user).objectives for user in users]
    low, high = (np.array([[getattr(one[name], end) for name in names] for one in told]) for end in ("low", "high"))
    return float(np.mean(np.abs(weights - (low + high) / 2.0) <= narrow * (high - low) / 2.0))


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign, and say what was found."""
    parser = argparse.ArgumentParser(description="Count how often the intervals of preferences hold the truth.")
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--narrow", type=float, default=1.0, help="a factor on the intervals, as a fault to be found")
    parser.add_argument("--processes", type=int, help="to run at the same time (default: one a core)")
    options = parser.parse_args(arguments)
    wrong = 0
    with Bar("intervals", total=options.worlds * len(CASES)) as bar, ProcessPoolExecutor(options.processes) as pool:
        for number, case in enumerate(CASES):
            seeds = [[options.seed, number, one] for one in range(options.worlds)]
            shares = []
            for held in pool.map(held_in, repeat(case), seeds, repeat(options.narrow)):
                shares.append(held)
                bar.advance(1.0)
            share, error = float(np.mean(shares)), float(np.std(shares)) / math.sqrt(len(shares))
            failed = not ALLOWED[0] - 2.0 * error <= share <= ALLOWED[1] + 2.0 * error
            wrong += failed
            print(f"{case!s:<56}{share:7.1%} ± {error:.1%}{'  FAILED' if failed else ''}", flush=True)
    print(f"{options.worlds:,} worlds each, seed {options.seed}: ", end="")
    print(f"{wrong} outside {ALLOWED[0]:.0%} to {ALLOWED[1]:.0%}" if wrong else "as it should be")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
