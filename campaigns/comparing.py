"""Simulate experiments with a control group, look at each after every 100 decisions, and count how often they err.

Where there is no difference, at most 5 % of experiments may ever exclude 0, for any of their variants, however people's
scores are spread, however small the control group is, and however often the same people come back. Where there is a
difference of 0.2 standard deviations, at least 80 % have to find it within twice the sample that a test of a fixed
sample would need to find it in 80 % of cases.

    python -m campaigns.comparing --experiments 1000

With `--fault` the intervals are what one might do instead: `fixed`, those of a test that may be looked at once;
`decisions`, with decisions in the place of users; or `undivided`, of each variant as if it were the only one. The
campaign must then find too many errors.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from pamo import comparing
from pamo.comparing import ALPHA, SMALLEST, Sums, difference, fixed_size

EVERY = 100
FAULTS = ("fixed", "decisions", "undivided")


@dataclass(frozen=True)
class World:
    """Experiments of one kind. people: how many there are; 0 is a new one for each decision. share: of control.

    draw: a person's own mean, as that of many; each score is around it, with as large a variance.
    """

    name: str
    draw: Callable[[np.random.Generator, Any], Any]
    share: float
    decisions: int
    people: int = 0
    shift: float = 0.0
    variants: int = 1


def normal(rng: np.random.Generator, size: Any) -> Any:
    """Draw scores around 0."""
    return rng.normal(size=size)


def rare(rng: np.random.Generator, size: Any) -> Any:
    """Draw scores that are 1 now and then, and mostly 0."""
    return (rng.random(size) < 0.02).astype(float)


SAME = [
    World("scores around a mean, half in control", normal, 0.5, 20_000),
    World("scores around a mean, 5 % in control", normal, 0.05, 20_000),
    World("2 % of scores are 1, 5 % in control", rare, 0.05, 20_000),
    World("1,000 people who come back, half in control", normal, 0.5, 10_000, people=1000),
    World("1,000 people who come back, 10 % in control", normal, 0.1, 10_000, people=1000),
    World("twenty variants, a third in control", normal, 1 / 3, 20_000, variants=20),
]


def different(share: float) -> World:
    """Return experiments with a difference, as long as twice the fixed sample."""
    size = 2.0 * fixed_size() / (share * (1.0 - share))
    return World(f"{share:.0%} in control", normal, share, int(size), shift=SMALLEST)


def found_after(world: World, experiments: int, rng: np.random.Generator, *, fault: str | None = None) -> Any:
    """Return for each experiment after how many decisions it excluded 0 first, infinity where it never did."""
    found, sums = np.full(experiments, math.inf), np.zeros((experiments, 1 + world.variants, 3))
    alpha = ALPHA if fault == "undivided" else ALPHA / world.variants

    def groups(size: Any) -> Any:
        """Draw groups, 0 for control."""
        points = rng.random(size)
        others = np.minimum((points - world.share) / (1.0 - world.share) * world.variants, world.variants - 0.5)
        return np.where(points < world.share, 0, 1 + others.astype(int))

    if world.people:
        mine = groups((experiments, world.people))
        means, own = world.draw(rng, mine.shape), np.zeros((2, *mine.shape))
    for done in range(EVERY, world.decisions + 1, EVERY):
        if world.people:
            who = rng.integers(world.people, size=(experiments, EVERY))
            place = np.repeat(np.arange(experiments), EVERY), who.ravel()
            scores = means[place] + rng.normal(size=who.size)
            np.add.at(own[0], place, 1.0)
            np.add.at(own[1], place, scores)
            if fault == "decisions":
                values, group = scores.reshape(experiments, EVERY), mine[place].reshape(experiments, EVERY)
            else:  # one value for each person, which changes with each score
                sums[:] = 0.0
                values, group = np.where(own[0] > 0.0, own[1] / np.maximum(own[0], 1.0), np.nan), mine
        else:
            group = groups((experiments, EVERY))
            values = world.draw(rng, group.shape) + world.shift * (group > 0)
        for number in range(1 + world.variants):
            chosen = np.where(group == number, values, np.nan)
            for power in range(3):
                sums[:, number, power] += np.nansum(chosen**power if power else ~np.isnan(chosen), axis=1)
        for experiment in np.flatnonzero(np.isinf(found)).tolist():
            control, *others = (Sums(*row) for row in sums[experiment].tolist())
            told = (difference(one, control, alpha=alpha) for one in others)
            if any(one is not None and one.excludes_zero for one in told):
                found[experiment] = done
    return found


def campaign(experiments: int, seed: int, fault: str | None = None, worlds: list[World] | None = None) -> bool:
    """Print how often experiments err, and how soon they find; tell whether that is as promised."""
    rng, good = np.random.default_rng(seed), True
    narrow = mock.patch.object(comparing, "boundary", return_value=1.96)
    with narrow if fault == "fixed" else mock.patch.object(comparing, "FEWEST", comparing.FEWEST):
        for world in SAME if worlds is None else worlds:
            wrong = np.isfinite(found_after(world, experiments, rng, fault=fault)).mean()
            good = good and bool(wrong <= ALPHA)
            print(f"no difference, {world.name}: {wrong:.1%} of {experiments:,} ever exclude 0 ", end="")
            print(f"(looked at after every {EVERY} of {world.decisions:,} decisions)")
        for world in (different(0.5), different(0.05)):
            after = found_after(world, experiments, rng)
            fixed = world.decisions / 2.0
            share, median = np.isfinite(after).mean(), float(np.median(after)) / fixed
            good = good and bool(share >= 0.8)
            print(f"a difference of {SMALLEST} standard deviations, {world.name}: {share:.1%} find it within ", end="")
            print(f"twice the fixed sample of {fixed:,.0f}, half of them within {median:.1f} times it")
    return good


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiments", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fault", choices=FAULTS)
    given = parser.parse_args(arguments)
    return 0 if campaign(given.experiments, given.seed, given.fault) else 1


if __name__ == "__main__":
    sys.exit(main())
