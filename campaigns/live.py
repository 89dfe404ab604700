"""Play a shop: guests with hidden tastes come again and again, `Engine` chooses for them, and they say how it was.

    python -m campaigns.live                      every world, five seeds of each
    python -m campaigns.live catalogue --seeds 20
    python -m campaigns.live complete half-missing --http      through `pamo serve` and the client

Scores are means over guests: 0 is what an arm at random is worth to them, 1 the best arm of each. A world is a function
from a seed to such numbers, in `WORLDS` with what each of them must reach; to add one, write the function and its row.
"""

from __future__ import annotations

import argparse
import math
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pamo import Engine
from pamo.arrays import Floats, Ints
from pamo.client import Client

OBJECTIVES = ("comfort", "quiet", "food", "view", "value")
NOISE, OVERALL_NOISE = 0.07, 0.06
"""Standard deviations of a visit's scores, and of the overall score beyond them."""


class Visit(NamedTuple):
    """What one guest says of one visit; NaN is what is not said."""

    scores: Floats
    overall: float


@dataclass
class Shop:
    """Arms that are good at different things, and guests who care for different ones."""

    means: Floats
    """(arms, objectives)."""
    tastes: Floats
    """(guests, objectives), each adding up to 1."""
    draws: np.random.Generator

    @classmethod
    def of(cls, arms: int, guests: int, seed: int) -> Shop:
        """Return a shop of its own for each seed."""
        draws = np.random.default_rng([2026, seed])
        return cls(new_means(draws, arms), new_tastes(draws, guests), draws)

    def visit(self, guest: int, arm: int) -> Visit:
        """Return what a visit is like."""
        scores = np.clip(self.means[arm] + NOISE * self.draws.standard_normal(len(OBJECTIVES)), 0.0, 1.0)
        overall = float(self.tastes[guest] @ scores) + OVERALL_NOISE * float(self.draws.standard_normal())
        return Visit(scores, min(max(overall, 0.0), 1.0))

    def worth(self, chosen: Ints) -> float:
        """Return the score of a round in which each guest, or each of the first, was given one arm."""
        values = self.tastes[: len(chosen)] @ self.means.T
        mean, best = values.mean(axis=1), values.max(axis=1)
        return float(np.mean((values[np.arange(len(chosen)), chosen] - mean) / (best - mean)))


def new_means(draws: np.random.Generator, arms: int) -> Floats:
    """Return arms' means: who is good at one thing is a little worse at the others."""
    means = draws.uniform(0.05, 0.95, (arms, len(OBJECTIVES)))
    return np.asarray(np.clip(means - 0.7 * (means.mean(axis=1, keepdims=True) - 0.5), 0.03, 0.97))


def new_tastes(draws: np.random.Generator, guests: int) -> Floats:
    """Return tastes: much for one or two objectives, little for the rest."""
    return draws.dirichlet(np.full(len(OBJECTIVES), 0.6), guests)


class Served(Client):
    """A server of its own on this machine, and the client that asks it: what a play needs of an engine."""

    def __init__(self, features: list[str], seed: int) -> None:
        options = {"store": "memory:", "port": "0", "seed": str(seed), "objectives": ",".join(OBJECTIVES)}
        if features:
            options["features"] = ",".join(features)
        flags = [part for name, value in options.items() for part in (f"--{name}", value)]
        self._server = subprocess.Popen(
            [sys.executable, "-m", "pamo", "serve", *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._server.stdout is not None
        found = re.search(r"http://\S+", self._server.stdout.readline())
        if found is None:
            raise SystemExit("the server did not start: see what `pamo serve` says")
        super().__init__(found[0], timeout=60.0)

    def close(self) -> None:
        """Let go of the connections, and stop the server."""
        super().close()
        self._server.terminate()
        self._server.wait()


class Play:
    """A shop and the engine, or the service, that chooses for its guests."""

    over_http = False

    def __init__(self, shop: Shop, seed: int, arms: int | None = None, features: Floats | None = None) -> None:
        self.shop = shop
        names = [f"feature-{k}" for k in range(0 if features is None else features.shape[1])]
        self.engine: Engine | Served = (
            Served(names, seed) if self.over_http else Engine(OBJECTIVES, seed=seed, features=names)
        )
        ids = [f"arm-{arm}" for arm in range(len(shop.means) if arms is None else arms)]
        rows = [] if features is None else features.tolist()
        known = {arm: dict(zip(names, row, strict=True)) for arm, row in zip(ids, rows, strict=False)}
        for first in range(0, len(ids), 1000):  # as many as one request takes
            some = ids[first : first + 1000]
            self.engine.add_arms(some, features={arm: known[arm] for arm in some if arm in known})

    def decide(self, guest: int) -> tuple[str, int]:
        """Return a decision's id and the arm's number."""
        decision = self.engine.decide(f"guest-{guest}")
        return decision.id, int(decision.arm.removeprefix("arm-"))

    def tell(self, decision: str, visit: Visit) -> None:
        """Give the feedback of a visit, as far as there is any."""
        scores = zip(OBJECTIVES, visit.scores.tolist(), strict=True)
        self.engine.feedback(decision, {name: score for name, score in scores if not np.isnan(score)}, visit.overall)

    def rounds(
        self, count: int, change: Callable[[Visit], Visit] = lambda visit: visit, watched: int | None = None
    ) -> Iterator[float]:
        """Have every guest come once a round, and yield each round's score.

        change: what is told of a visit. watched: of how many guests, the first ones, the score is; by default of all.
        """
        guests = range(len(self.shop.tastes))
        for _ in range(count):
            chosen = np.empty(len(guests), dtype=np.int64)
            for guest in guests:
                decision, arm = self.decide(guest)
                self.tell(decision, change(self.shop.visit(guest, arm)))
                chosen[guest] = arm
            yield self.shop.worth(chosen[:watched])

    def late_rounds(self, count: int, late: int) -> Iterator[float]:
        """Have every guest come once a round, and say how it was so many rounds later."""
        told: list[list[tuple[str, Visit]]] = []
        for _ in range(count):
            made = [self.decide(guest) for guest in range(len(self.shop.tastes))]
            told.append([(decision, self.shop.visit(guest, arm)) for guest, (decision, arm) in enumerate(made)])
            if len(told) > late:
                for decision, visit in told[-1 - late]:
                    self.tell(decision, visit)
            yield self.shop.worth(np.array([arm for _, arm in made]))

    def close(self) -> None:
        """Let the engine go."""
        self.engine.close()


def complete(seed: int) -> dict[str, float]:
    """Thirty arms and 150 guests of thirty visits, who say everything."""
    play = Play(Shop.of(30, 150, seed), seed)
    scores = list(play.rounds(30))
    play.close()
    return {"in the end": float(np.mean(scores[-5:])), "on average": float(np.mean(scores))}


def new_arm(seed: int) -> dict[str, float]:
    """An arm is added after 25 visits of each guest; for four visits of each nobody says anything, then all do."""
    play = Play(Shop.of(31, 150, seed), seed, arms=30)
    list(play.rounds(25))
    play.engine.add_arm("arm-30")
    share = float(np.mean([play.decide(guest)[1] == 30 for _ in range(4) for guest in range(150)]))
    after = list(play.rounds(10))
    play.close()
    return {
        "its share unrated": share,
        "then rounds 1-3": float(np.mean(after[:3])),
        "rounds 8-10": float(np.mean(after[7:])),
    }


def new_arm_alone(seed: int) -> dict[str, float]:
    """The same, but that only the new arm's ratings do not come."""
    play = Play(Shop.of(31, 150, seed), seed, arms=30)
    list(play.rounds(25))
    play.engine.add_arm("arm-30")
    given = []
    for _ in range(4):
        for guest in range(150):
            decision, arm = play.decide(guest)
            given.append(arm == 30)
            if arm != 30:
                play.tell(decision, play.shop.visit(guest, arm))
    play.close()
    return {"its share unrated": float(np.mean(given))}


def late(seed: int) -> dict[str, float]:
    """The world of `complete`, in which everything is said five rounds late."""
    play = Play(Shop.of(30, 150, seed), seed)
    scores = list(play.late_rounds(30, 5))
    play.close()
    return {"in the end": float(np.mean(scores[-5:]))}


def catalogue(seed: int, *, late: int = 0) -> dict[str, float]:
    """Three thousand arms and sixty guests of sixty visits: fewer visits than there are arms and a bit."""
    play = Play(Shop.of(3000, 60, seed), seed)
    scores = list(play.late_rounds(60, late) if late else play.rounds(60))
    play.close()
    return {"in the end": float(np.mean(scores[-10:])), "on average": float(np.mean(scores))}


def incomplete(missing: Callable[[np.random.Generator], npt.NDArray[np.bool_]]) -> Callable[[int], dict[str, float]]:
    """Return the world of `complete` in which some scores of a visit are not told."""

    def world(seed: int) -> dict[str, float]:
        play, draws = Play(Shop.of(30, 150, seed), seed), np.random.default_rng([2027, seed])

        def told(visit: Visit) -> Visit:
            return visit._replace(scores=np.where(missing(draws), np.nan, visit.scores))

        scores = list(play.rounds(30, told))
        play.close()
        return {"in the end": float(np.mean(scores[-5:])), "on average": float(np.mean(scores))}

    return world


def featured(explained: float) -> Callable[[int], dict[str, float]]:
    """Return the catalogue with ten features of each arm that explain this share of the variance of means."""

    def world(seed: int) -> dict[str, float]:
        shop = Shop.of(3000, 60, seed)
        features = shop.draws.standard_normal((3000, 10))
        weights = shop.draws.standard_normal((10, len(OBJECTIVES)))
        told = 0.22 * (features @ weights) / np.linalg.norm(weights, axis=0)
        mixed = 0.5 + math.sqrt(1.0 - explained) * (shop.means - 0.5) + math.sqrt(explained) * told
        shop.means = np.clip(mixed, 0.03, 0.97)
        play = Play(shop, seed, features=features)
        scores = list(play.rounds(60))
        play.close()
        return {"in the end": float(np.mean(scores[-10:])), "on average": float(np.mean(scores))}

    return world


def tastes_change(seed: int) -> dict[str, float]:
    """Half the guests care about other things after sixty visits; the score is theirs."""
    shop = Shop.of(30, 150, seed)
    play, half = Play(shop, seed), len(shop.tastes) // 2
    list(play.rounds(60))
    shop.tastes[:half] = new_tastes(shop.draws, half)
    scores = list(play.rounds(40, watched=half))
    play.close()
    return {"35 to 40 visits later": float(np.mean(scores[-5:])), "1 to 10 visits later": float(np.mean(scores[:10]))}


def arms_change(seed: int) -> dict[str, float]:
    """Half the arms are others after sixty visits."""
    shop = Shop.of(30, 150, seed)
    play = Play(shop, seed)
    list(play.rounds(60))
    shop.means[::2] = new_means(shop.draws, len(shop.means[::2]))
    scores = list(play.rounds(40))
    play.close()
    return {"31 to 40 visits later": float(np.mean(scores[-10:])), "1 to 10 visits later": float(np.mean(scores[:10]))}


WORLDS: dict[str, tuple[Callable[[int], dict[str, float]], dict[str, tuple[float, float]]]] = {
    "complete": (complete, {"in the end": (0.94, 2.0), "on average": (0.845, 2.0)}),
    "one-missing": (
        incomplete(lambda draws: np.arange(len(OBJECTIVES)) == 3),
        {"in the end": (0.80, 2.0), "on average": (0.775, 2.0)},
    ),
    "half-missing": (
        incomplete(lambda draws: draws.random(len(OBJECTIVES)) < 0.5),
        {"in the end": (0.91, 2.0), "on average": (0.815, 2.0)},
    ),
    "overall-only": (incomplete(lambda draws: np.ones(len(OBJECTIVES), dtype=bool)), {"in the end": (0.65, 2.0)}),
    "tastes-change": (tastes_change, {"35 to 40 visits later": (0.87, 2.0)}),
    "arms-change": (arms_change, {"31 to 40 visits later": (0.93, 2.0)}),
    "new-arm": (
        new_arm,
        {"its share unrated": (0.0, 0.05), "then rounds 1-3": (0.93, 2.0), "rounds 8-10": (0.95, 2.0)},
    ),
    "new-arm-alone": (new_arm_alone, {"its share unrated": (0.0, 0.05)}),
    "late": (late, {"in the end": (0.93, 2.0)}),
    "catalogue": (catalogue, {"in the end": (0.80, 2.0), "on average": (0.70, 2.0)}),
    "late-catalogue": (lambda seed: catalogue(seed, late=5), {"in the end": (0.80, 2.0)}),
    "features": (featured(0.8), {"on average": (0.90, 2.0)}),
    "useless": (featured(0.0), {"on average": (0.67, 2.0)}),
}
"""Each world, and the least and the most that the mean over seeds may be of each of its numbers."""


def main() -> None:
    """Print the table, and exit with 1 if anything was missed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("worlds", nargs="*", metavar="WORLD", help=f"one of: {', '.join(WORLDS)}; by default all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--http", action="store_true", help="through a server of its own and the client")
    options = parser.parse_args()
    Play.over_http = options.http
    for name in options.worlds:
        if name not in WORLDS:
            parser.error(f"there is no world {name!r}; there are: {', '.join(WORLDS)}")
    print(f"{'world':<14}{'number':<22}{'mean':>8}{'lowest':>8}{'highest':>9}   must be", flush=True)
    missed = False
    for name in options.worlds or WORLDS:
        world, limits = WORLDS[name]
        started = time.perf_counter()
        runs = [world(options.first_seed + k) for k in range(options.seeds)]
        for number, (least, most) in limits.items():
            values = [run[number] for run in runs]
            mean, good = float(np.mean(values)), least <= float(np.mean(values)) <= most
            limit = f"at least {least:.3f}" if most > 1.0 else f"at most {most:.3f}"
            words = f"{mean:>8.3f}{min(values):>8.3f}{max(values):>9.3f}   {limit}{'' if good else '  MISSED'}"
            print(f"{name:<14}{number:<22}{words}", flush=True)
            missed = missed or not good
        print(f"{'':<14}({(time.perf_counter() - started) / options.seeds:.1f} s a seed)", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
