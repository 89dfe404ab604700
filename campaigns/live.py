"""How well a shop is served that is not as the paper has it: scores that are missing, tastes and arms that change.

Thirty hotels with five scores from 0 to 1 each, guests whose hidden tastes are drawn from Dirichlet(.6), everything
through `Engine`. A choice scores 0 where it is worth what a random arm is to this guest, and 1 where it is the guest's
best. Each world says what it must reach; `python -m campaigns.live` prints what it does, and fails where it does not.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.engine import Engine

OBJECTIVES = ("rooms", "food", "place", "calm", "price")


class World:
    """The truth: arms' mean scores, guests' tastes, and what a visit gives."""

    def __init__(self, arms: int, guests: int, seed: int) -> None:
        self.draw = np.random.default_rng(seed)
        self.arms = self.new_arms(arms)
        self.tastes = self.new_tastes(guests)

    def new_arms(self, count: int) -> Floats:
        """Draw arms: good in some things and less so in others, so that nobody's best is everybody's."""
        means = self.draw.uniform(0.05, 0.95, (count, len(OBJECTIVES)))
        means -= 0.7 * (means.mean(axis=1, keepdims=True) - 0.5)
        return np.clip(means, 0.03, 0.97)

    def new_tastes(self, count: int) -> Floats:
        """Draw tastes: most care about one or two things."""
        return self.draw.dirichlet(np.full(len(OBJECTIVES), 0.6), count)

    def scores(self) -> Floats:
        """Return how good each arm is for each guest, (guests, arms)."""
        values: Floats = self.tastes @ self.arms.T
        mean: Floats = values.mean(axis=1, keepdims=True)
        best: Floats = values.max(axis=1, keepdims=True)
        return (values - mean) / (best - mean)

    def visit(self, guest: int, arm: int) -> tuple[Floats, float]:
        """Return what a guest says of an arm: its scores, and one overall score."""
        reward = np.clip(self.arms[arm] + 0.07 * self.draw.standard_normal(len(OBJECTIVES)), 0.0, 1.0)
        overall = float(self.tastes[guest] @ reward) + 0.06 * self.draw.standard_normal()
        return reward, float(np.clip(overall, 0.0, 1.0))


Given = Callable[[World], Any]


@dataclass(frozen=True)
class Case:
    """One situation. given: which scores are told of a visit; change: what happens to the world, and after which visit.

    limits: what the mean score over those visits (the first, and the one after the last) must reach; of guests who
    changed alone where `changed` is set.
    """

    name: str
    limits: dict[tuple[int, int], float]
    guests: int = 150
    arms: int = 30
    visits: int = 30
    given: Given = field(default=lambda world: np.ones(len(OBJECTIVES), dtype=bool))
    change: Callable[[World], Sequence[int] | None] | None = None
    at: int = -1


def _tastes_change(world: World) -> Sequence[int]:
    half = len(world.tastes) // 2
    world.tastes[:half] = world.new_tastes(half)
    return range(half)


def _arms_change(world: World) -> None:
    world.arms[::2] = world.new_arms(len(world.arms[::2]))


def _all_but_calm(world: World) -> Any:
    return np.array([name != "calm" for name in OBJECTIVES])


def _half(world: World) -> Any:
    return world.draw.random(len(OBJECTIVES)) < 0.5


def _none(world: World) -> Any:
    return np.zeros(len(OBJECTIVES), dtype=bool)


CASES = (
    Case("complete", {(25, 30): 0.94, (0, 30): 0.845}),
    Case("one score is never given", {(25, 30): 0.80, (0, 30): 0.775}, given=_all_but_calm),
    Case("each score is missing half the time", {(25, 30): 0.91, (0, 30): 0.815}, given=_half),
    Case("only the overall score is given", {(25, 30): 0.65}, given=_none),
    Case("half the guests change taste", {(95, 100): 0.87}, visits=100, change=_tastes_change, at=60),
    Case("half the arms change", {(90, 100): 0.93}, visits=100, change=_arms_change, at=60),
)


def serve(case: Case, seed: int, **options: Any) -> tuple[Floats, Engine]:
    """Serve every guest once a round; return the mean score of each round, of those who changed once they did."""
    world = World(case.arms, case.guests, seed)
    scores, watched = world.scores(), np.arange(case.guests)
    found: Floats = np.zeros(case.visits)
    engine = Engine(OBJECTIVES, seed=seed, **options)
    engine.add_arms([f"hotel {i}" for i in range(case.arms)])
    for visit in range(case.visits):
        if visit == case.at and case.change is not None:
            watched = np.arange(case.guests) if (who := case.change(world)) is None else np.array(who)
            scores = world.scores()
        own = np.zeros(case.guests)
        for guest in range(case.guests):
            decision = engine.decide(f"guest {guest}")
            arm = int(decision.arm.removeprefix("hotel "))
            own[guest] = scores[guest, arm]
            reward, overall = world.visit(guest, arm)
            given = case.given(world)
            told = {name: float(reward[d]) for d, name in enumerate(OBJECTIVES) if given[d]}
            engine.feedback(decision, told, overall=overall)
        found[visit] = own[watched].mean()
    return found, engine


def judge(case: Case, rounds: Floats) -> list[tuple[str, float, float]]:
    """Return for each limit of a case what it is of, what was reached on average over the seeds, and the limit."""
    return [
        (f"visits {first + 1} to {last}", float(rounds[:, first:last].mean()), limit)
        for (first, last), limit in case.limits.items()
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the worlds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=1, help="the first of the seeds")
    parser.add_argument("--only", default="", help="worlds with this in their name")
    options = parser.parse_args(arguments)
    bad = 0
    for case in CASES:
        if options.only not in case.name:
            continue
        began = time.perf_counter()
        found = []
        for seed in range(options.first, options.first + options.seeds):
            scores, engine = serve(case, seed)
            engine.close()
            found.append(scores)
        rounds = np.array(found)
        for what, reached, limit in judge(case, rounds):
            bad += reached < limit
            sign = "  " if reached >= limit else "✗ "
            print(f"{sign}{case.name}, {what}: {reached:.3f} (at least {limit:.3f})", flush=True)
        ends = rounds[:, -5:].mean(axis=1)
        print(
            f"    last five: {' '.join(f'{end:.3f}' for end in ends)} [{time.perf_counter() - began:.1f} s]", flush=True
        )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
