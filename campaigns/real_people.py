"""Hold what is learned of real people against what statisticians would do, on two sets of ratings that are not pamo's.

    python -m campaigns.real_people FOLDER --seeds 3

FOLDER has `beeradvocate.parquet` and `tripadvisor.parquet` (docs/ratings.md says where they come from). Parts:

- `foretold`: the error of a user's other ratings, learned from so many: over a pooled regression with a bias a user, at
  every length that 100 users have, and at some against what is known to be possible. Six random splits a seed, and
  up to forty where users are few: on 757 of them one split's error strays by .007;
- `placebo`: the same with ratings dealt to users at random, over the pooled regression: nobody differs;
- `zero`: by how much the error changes when the zero of all scales moves by one point;
- `size`: how many seconds `pamo ratings describe` takes for 625,000 of them, from a CSV file;
- `world`: in the world made of these ratings, the recommended policy's regret over that of a greedy pooled regression:
  of the first 20 rounds among random items, and of 60 among nearly equal ones.

Every line is a mean over the seeds (the most, for `placebo` and `zero`), with what each seed gave behind it.
`--way own` learns each user alone, and has to be found. Exit code 1 if anything is above its limit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import Literal, NamedTuple, Self

import numpy as np

from campaigns.limits import Figure
from pamo import policies, simulate
from pamo.arrays import Floats, Ints
from pamo.environments.ratings import RatedItems
from pamo.policies import Policy
from pamo.priors.foretelling import Foretelling, Rounds, alike, fit, regressions, summed
from pamo.ratings import Ratings, read_ratings
from pamo.simulation.plain import PlainPolicy

LOW, HIGH = 1.0, 5.0
HELD_OUT = 5
FEWEST = 100
"""Users whom a length has to have."""
JUDGED, SPLITS = 30_000, (6, 40)
"""A seed's splits are as many as judge so many users, within these bounds."""
LENGTHS = (1, 2, 3, 5, 7, 10, 13, 20, 50, 100, 200, 400)
ROOM = 0.001
"""Of the scale's range, by which the error may be above that of the pooled regression with a bias."""
PLACEBO, ZERO = 0.001, 0.005
SIZE, SECONDS = 625_000, 10.0
FIRST, NEAR = 1.3, 1.0
"""The most that the regret may be of a greedy pooled regression's, among random items and among nearly equal ones."""


class Known(NamedTuple):
    """A set of ratings: its file and criteria, and by ratings learned from the most that the error may be."""

    file: str
    criteria: tuple[str, ...]
    most: Mapping[int, float]


SETS: Mapping[str, Known] = {
    "beers": Known(
        "beeradvocate.parquet", ("appearance", "aroma", "palate", "taste"), {5: 0.443, 10: 0.435, 50: 0.411}
    ),
    "hotels": Known(
        "tripadvisor.parquet", ("value", "service", "rooms", "location", "cleanliness"), {5: 0.559, 10: 0.561}
    ),
}


class Runs(NamedTuple):
    """How to run."""

    folder: Path
    seeds: Sequence[int]
    splits: int | None
    trials: int
    way: Callable[[Rounds], Foretelling]

    def ratings(self, name: str) -> Ratings:
        """Return one of the sets."""
        return _read(self.folder / SETS[name].file, SETS[name].criteria)


@cache
def _read(path: Path, criteria: tuple[str, ...]) -> Ratings:
    return read_ratings(path, criteria, low=LOW, high=HIGH)


def own(rounds: Rounds) -> Foretelling:
    """Return a prior that says next to nothing, so that each user is learned alone: a fault to be found."""
    common = alike(rounds)
    return common._replace(ridge=np.full(len(common.ridge), 0.05))


def errors(
    ratings: Ratings,
    size: int,
    ways: Sequence[Callable[[Rounds], Foretelling]],
    splits: int | None,
    draw: np.random.Generator,
) -> list[float]:
    """Return each way's root mean squared error on the scale's own points: every user counts alike."""
    chosen = np.flatnonzero(ratings.counts >= size + HELD_OUT)
    splits = splits or int(np.clip(-(-JUDGED // len(chosen)), *SPLITS))
    counts = ratings.counts[chosen]
    who = np.repeat(np.arange(len(chosen)), counts)
    mine = np.concatenate([np.arange(ratings.starts[u], ratings.starts[u + 1]) for u in chosen.tolist()])
    place = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts)
    squares, place_in = np.zeros((len(ways), len(chosen))), np.empty(0)
    for split in range(splits):  # every second one is the one before turned round, and strays the other way
        place_in = draw.random(len(mine)) if split % 2 == 0 else -place_in
        order = mine[np.lexsort((place_in, who))]
        seen, others = order[place < size], order[place >= size]
        rounds = Rounds(ratings.reward[seen], ratings.overall[seen], np.arange(0, len(seen) + 1, size))
        users, judged = summed(rounds), who[place >= size]
        for number, way in enumerate(ways):
            common = way(rounds)
            beta = regressions(users, common)[judged]
            told = beta[:, 0] + np.einsum("nd,nd->n", beta[:, 1:], ratings.reward[others] - common.center)
            squares[number] += np.bincount(judged, (told - ratings.overall[others]) ** 2) / (counts - size) / splits
    return [ratings.scale * float(root) for root in np.sqrt(squares.mean(axis=1))]


def lengths_of(ratings: Ratings) -> list[int]:
    """Return the numbers of ratings to learn from that enough users have."""
    return [size for size in LENGTHS if (ratings.counts >= size + HELD_OUT).sum() >= FEWEST]


def _with_bias(rounds: Rounds) -> Foretelling:
    return fit(rounds, weights=False)


def foretold(runs: Runs, name: str) -> Iterator[tuple[Figure, Sequence[float]]]:
    """Yield the errors of what is foretold."""
    ratings = runs.ratings(name)
    for size in lengths_of(ratings):
        found = np.array(
            [
                errors(ratings, size, (runs.way, _with_bias), runs.splits, np.random.default_rng([seed, size]))
                for seed in runs.seeds
            ]
        )
        above = found[:, 0] - found[:, 1]
        yield (
            Figure(f"{name}, {size}: RMSE above the pooled regression's", above.mean(), ROOM * (HIGH - LOW)),
            list(above),
        )
        if size in SETS[name].most:
            yield Figure(f"{name}, {size}: RMSE", found[:, 0].mean(), SETS[name].most[size]), list(found[:, 0])


def placebo(runs: Runs, name: str) -> Iterator[tuple[Figure, Sequence[float]]]:
    """Yield by how much what is foretold is off where nobody differs."""
    ratings = runs.ratings(name)
    for size in SETS[name].most:
        off = []
        for seed in runs.seeds:
            draw = np.random.default_rng([seed, size])
            deal = draw.permutation(len(ratings.overall))
            dealt = _replaced(ratings, ratings.reward[deal], ratings.overall[deal], ratings.scale)
            ours, pooled = errors(dealt, size, (runs.way, alike), 1, draw)
            off.append(abs(ours / pooled - 1.0))
        yield Figure(f"{name}, {size}: dealt at random, off the pooled regression by", max(off), PLACEBO), off


def zero(runs: Runs, name: str) -> Iterator[tuple[Figure, Sequence[float]]]:
    """Yield by how much the error changes with the zero of the scales."""
    ratings, wide = runs.ratings(name), HIGH - LOW + 1.0
    reward, overall = ((each * (HIGH - LOW) + 1.0) / wide for each in (ratings.reward, ratings.overall))
    moved = _replaced(ratings, reward, overall, wide)
    for size in SETS[name].most:
        off = []
        for seed in runs.seeds:
            before, after = (
                errors(each, size, (runs.way,), 1, np.random.default_rng([seed, size]))[0] for each in (ratings, moved)
            )
            off.append(abs(after / before - 1.0))
        yield Figure(f"{name}, {size}: the zero moved, RMSE changes by", max(off), ZERO), off


def _replaced(ratings: Ratings, reward: Floats, overall: Floats, scale: float) -> Ratings:
    return Ratings(
        objectives=ratings.objectives,
        starts=ratings.starts,
        reward=reward,
        overall=overall,
        item=ratings.item,
        scale=scale,
    )


def size(runs: Runs, name: str) -> Iterator[tuple[Figure, Sequence[float]]]:
    """Yield the seconds that a description takes of so many ratings: the set's own, by as many users as needed."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv, parquet

    table = parquet.read_table(runs.folder / SETS[name].file)
    users = pc.cast(table["user"], pa.string())
    several = [
        table.set_column(table.schema.get_field_index("user"), "user", pc.binary_join_element_wise(users, f"{n}", "-"))
        for n in range(-(-SIZE // len(users)))
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.csv"
        csv.write_csv(pa.concat_tables(several)[:SIZE], path)
        command = [sys.executable, "-m", "pamo", "ratings", "describe", str(path)]
        command += ["--objectives", ",".join(SETS[name].criteria), "--low", f"{LOW:g}", "--high", f"{HIGH:g}"]
        took = []
        for _ in range(2):  # the first may have to compile
            started = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            took.append(time.perf_counter() - started)
    yield Figure(f"{name}, {SIZE:,} ratings: seconds to describe them", took[-1], SECONDS), took


class PooledGreedy:
    """What a statistician would begin with: one regression for all, and the item that is best by it.

    An item's scores are its mean, with one rating's worth of the mean of all; so that it need not try each.
    """

    def __init__(self, arms: int, objectives: int, seed: Sequence[int] = (1,)) -> None:
        self._shape, self._trials = (arms, objectives), count(1)
        self._draw = np.random.default_rng(seed)
        self._sums = np.zeros((arms, objectives + 1))  # of (1, r), by item
        self._gram = np.diag([1e-6, *[0.02] * objectives])  # a little is needed until there are rounds enough
        self._right = self._gram @ [0.0, *[1.0 / objectives] * objectives]

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return what a trial begins with: each breaks ties by draws of its own.

        With the same in all trials, chance would decide for all of them at once how many arms the first round tries.
        """
        return type(self)(*self._shape, seed=(1, next(self._trials)))

    def choose(self, user: int, offer: Ints) -> int:
        """Return the best of these by everybody's weights."""
        total, own_sums = self._sums.sum(axis=0), self._sums[offer]
        everybody = total[1:] / max(total[0], 1.0)
        means = (own_sums[:, 1:] + everybody) / (own_sums[:, :1] + 1.0)
        worth = means @ np.linalg.solve(self._gram, self._right)[1:]
        return int(self._draw.choice(offer[worth >= worth.max() - 1e-12]))

    def learn(self, user: int, arm: int, reward: Floats, overall: float, stated: Floats) -> None:
        """Take in one rating."""
        x = np.array([1.0, *reward])
        self._sums[arm] += x
        self._gram += np.outer(x, x)
        self._right += overall * x


def world(runs: Runs, name: str) -> Iterator[tuple[Figure, Sequence[float]]]:
    """Yield regrets over those of a greedy pooled regression."""
    kinds: tuple[tuple[Literal["random", "near"], int, float], ...] = (("random", 20, FIRST), ("near", 60, NEAR))
    for offers, rounds, most in kinds:
        for protocol in ("random", "all"):
            environment = RatedItems(
                file=str(runs.folder / SETS[name].file),
                criteria=",".join(SETS[name].criteria),
                users=10,
                low=LOW,
                high=HIGH,
                offers=offers,
                protocol=protocol,
                arms=20 if protocol == "all" else None,
            )
            rival = PooledGreedy(environment.arm_count, environment.objectives)
            over = []
            for seed in runs.seeds:
                both: list[Policy | PlainPolicy] = [policies.recommended(), rival]
                result = simulate(both, environment, rounds=rounds, trials=runs.trials, seed=seed, checkpoints=1)
                ours, theirs = (each.final_regret.mean() for each in result.values())
                over.append(ours / theirs)
            offered = "the same for all" if protocol == "all" else "each their own"
            what = f"{name}, {offers} items, {offered}: regret of {rounds} rounds over pooled"
            yield Figure(what, float(np.mean(over)), most), over


PARTS = {each.__name__: each for each in (foretold, placebo, zero, size, world)}


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign, and say what was found."""
    parser = argparse.ArgumentParser(description="Hold what is learned of real people against its limits.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the two sets are")
    parser.add_argument("--seeds", type=int, default=3, help="how many, from 1 on")
    parser.add_argument("--splits", type=int, help="of each user's ratings, a seed (default: the more the fewer users)")
    parser.add_argument("--trials", type=int, default=200, help="of the world made of ratings, a seed")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="only these (default: all)")
    parser.add_argument("--set", action="append", choices=list(SETS), help="only these (default: both)")
    parser.add_argument("--way", choices=["default", "own"], default="default", help="own: a fault to be found")
    options = parser.parse_args(arguments)
    runs = Runs(
        options.folder,
        range(1, options.seeds + 1),
        options.splits,
        options.trials,
        own if options.way == "own" else fit,
    )
    wrong = several = 0
    print(f"{'':<72}{'seen':>10}{'at most':>10}")
    for part in options.part or PARTS:
        for name in options.set or SETS:
            for figure, each in PARTS[part](runs, name):
                print(f"{figure}   {' '.join(f'{one:.4f}' for one in each)}", flush=True)
                several += 1
                wrong += not figure.good
    print(f"{wrong} of {several} figures above their limits" if wrong else f"As it should be: all {several} figures.")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
