"""Let scripted visitors try the demonstration, and count how often they are told what they care about most.

Each run is a new service as `pamo demo` starts it, on a port of its own, and a new visitor with a taste that nobody is
told: each objective in turn comes first. The visitor does what the page does, over HTTP: asks for a restaurant,
visits it, and gives scores by objective and one overall, a whole number from 1 to 10. At last the service is asked what
the visitor cares about, and the objective with the largest weight is what the page would name.

    python -m campaigns.demo_visitor --runs 20
    python -m campaigns.demo_visitor --runs 100 --noise 0.1 --earlier no
    python -m campaigns.demo_visitor --runs 500 --tastes any

Without the guests who came before, every restaurant is new to the service, and it offers one after the other whatever
the visitor likes: `--earlier no` shows what that comes to. With `--tastes any` visitors care about anything, two things
alike among it, so that nobody could be right each time: then it is the chance that counts, which the page says.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import erfc, exp, prod, sqrt
from random import Random
from typing import Any

import httpx

from benchmarks.servers import served
from pamo import Engine
from pamo.service.app import create_app
from pamo.service.demo import demo_edition, demo_settings
from pamo.service.demo.world import NAMES, NOISE, RESTAURANTS, SETUP, Guest, open_restaurants, worth

LEAD = 0.44
"""The weight of what a visitor cares about most; the other objectives share the rest."""
BANDS = (0.0, 0.6, 0.8, 0.95)
"""From which chance on the page says another word."""
EARLY = 5
"""How many offers are the first ones, and how many the last."""


@dataclass
class Tally:
    """What became of the runs."""

    runs: int = 0
    right: int = 0
    wrong: list[str] = field(default_factory=list)
    covered: int = 0
    """Weights that lay in the interval given for them."""
    weights: int = 0
    early: float = 0.0
    late: float = 0.0
    best: float = 0.0
    """What the first and the last offers were worth to the visitors, and the best restaurant; sums over the runs."""
    chances: list[tuple[float, bool]] = field(default_factory=list)
    """How sure the page would have been, and whether it was right."""

    def lines(self) -> list[str]:
        """Return it in words."""
        several = max(self.runs, 1)
        found = [
            f"told the right first objective: {self.right} of {self.runs} runs",
            f"weights inside their 95 % intervals: {self.covered} of {self.weights}",
            f"worth of an offer to the visitor, 0 to 1: {self.early / several:.2f} at first, "
            f"{self.late / several:.2f} at last; the best there is: {self.best / several:.2f}",
        ]
        for low, high in zip(BANDS, (*BANDS[1:], 1.01), strict=True):
            those = [(chance, right) for chance, right in self.chances if low <= chance < high]
            if those:
                mean = sum(chance for chance, _ in those) / len(those)
                right = sum(right for _, right in those)
                found.append(
                    f"where the page says {low:.0%} or more (on average {mean:.0%}): right {right} of {len(those)}"
                )
        return [*found, *self.wrong[:10]]


@contextlib.contextmanager
def demonstration(seed: int, earlier: bool = True) -> Iterator[str]:
    """Serve a new demonstration from a thread, and give its address. earlier: with the guests who came before."""
    with Engine(SETUP.objectives, overall=SETUP.overall, seed=seed) as engine:
        if earlier:
            open_restaurants(engine, RESTAURANTS)
        else:
            for one in RESTAURANTS:
                engine.add_arm(one.id, one.name)
        with served(create_app(engine, demo_settings(), demo_edition())) as address:
            yield address


def taste_for(first: str) -> dict[str, float]:
    """Return the weights of a visitor who cares about this objective most, and about the others alike.

    >>> taste_for("taste")["taste"], round(sum(taste_for("taste").values()), 9)
    (0.44, 1.0)
    """
    rest = (1.0 - LEAD) / (len(NAMES) - 1)
    return {name: LEAD if name == first else rest for name in NAMES}


def any_taste(random: Random) -> dict[str, float]:
    """Return weights drawn at random: all add up to 1, and any are as likely as any others."""
    shares = [random.expovariate(1.0) for _ in NAMES]
    return {name: share / sum(shares) for name, share in zip(NAMES, shares, strict=True)}


def chance_of_first(told: Mapping[str, Mapping[str, float]], name: str) -> float:
    """Return how sure the page is that an objective has the largest weight: its formula, written a second time.

    >>> even = {"weight": 0.2, "low": 0.1, "high": 0.3}
    >>> round(chance_of_first({"price": even, "taste": even}, "price"), 6)
    0.5
    """
    spreads = {one: max((weight["high"] - weight["weight"]) / 1.96, 1e-9) for one, weight in told.items()}
    whole = chance = 0.0
    for place in range(201):
        z = -5.0 + 0.05 * place
        density = exp(-z * z / 2.0)
        at = told[name]["weight"] + z * spreads[name]
        whole += density
        chance += density * prod(
            0.5 * erfc((weight["weight"] - at) / (spreads[one] * sqrt(2.0)))
            for one, weight in told.items()
            if one != name
        )
    return chance / whole


def visit(api: httpx.Client, guest: Guest, user: str, ratings: int) -> tuple[dict[str, Any], list[float]]:
    """Rate so many restaurants as the page has a visitor do; return the preference told, and what offers were worth."""
    world = api.get("/v1/demo/world").raise_for_status().json()
    places = {one["id"]: one["means"] for one in world["restaurants"]}
    seen: list[str] = []
    worths = []
    for _ in range(ratings):
        offer = [one for one in places if one not in seen[-world["apart"] :]]
        decision = api.post("/v1/decisions", json={"user": user, "arms": offer}).raise_for_status().json()
        seen.append(decision["arm"])
        worths.append(worth(guest.taste, places[decision["arm"]]))
        scores = guest.visit(places[decision["arm"]])
        body = {"rewards": scores, "overall": guest.overall(scores)}
        api.post(f"/v1/decisions/{decision['id']}/feedback", json=body).raise_for_status()
    told: dict[str, Any] = api.get(f"/v1/users/{user}/preference").raise_for_status().json()["objectives"]
    return told, worths


def run(
    tally: Tally, seed: int, *, ratings: int = 15, noise: float = NOISE, earlier: bool = True, tastes: str = "one"
) -> None:
    """Add one visitor to the tally."""
    random = Random(seed)
    taste = any_taste(random) if tastes == "any" else taste_for(NAMES[seed % len(NAMES)])
    first = max(taste, key=lambda name: taste[name])
    guest = Guest(taste, random, noise)
    with demonstration(seed, earlier) as address, httpx.Client(base_url=address, trust_env=False, timeout=60) as api:
        told, worths = visit(api, guest, f"visitor {seed}", ratings)
    named = max(told, key=lambda name: float(told[name]["weight"]))
    tally.runs += 1
    tally.right += named == first
    tally.chances.append((chance_of_first(told, named), named == first))
    if named != first:
        said = ", ".join(f"{name} {one['weight']:.2f}" for name, one in told.items())
        tally.wrong.append(f"run {seed}: cares about {first}, was told {named} ({said})")
    tally.covered += sum(one["low"] <= guest.taste[name] <= one["high"] for name, one in told.items())
    tally.weights += len(told)
    tally.early += sum(worths[:EARLY]) / len(worths[:EARLY])
    tally.late += sum(worths[-EARLY:]) / len(worths[-EARLY:])
    tally.best += max(worth(guest.taste, one.means) for one in RESTAURANTS)


def main() -> int:
    """Run them all, print the count, and return 1 where fewer than 19 of 20 that want one thing were told right."""
    parser = argparse.ArgumentParser(description="Count how often a scripted visitor is told what they care about.")
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="visitors (default: 20)")
    parser.add_argument("--ratings", type=int, default=15, metavar="N", help="ratings of each (default: 15)")
    parser.add_argument("--noise", type=float, default=NOISE, metavar="S", help=f"of overall scores (default: {NOISE})")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the first run (default: 0)")
    parser.add_argument("--earlier", choices=("yes", "no"), default="yes", help="earlier guests (default: yes)")
    parser.add_argument(
        "--tastes", choices=("one", "any"), default="one", help="one thing first (default), or anything at all"
    )
    options = parser.parse_args()
    tally = Tally()
    for seed in range(options.seed, options.seed + options.runs):
        run(
            tally,
            seed,
            ratings=options.ratings,
            noise=options.noise,
            earlier=options.earlier == "yes",
            tastes=options.tastes,
        )
    print("\n".join(tally.lines()))
    return 0 if options.tastes == "any" or 20 * tally.right >= 19 * tally.runs else 1


if __name__ == "__main__":
    sys.exit(main())
