"""A shop that learns which hotel suits whom: decide, feedback, and what was learned.

    python examples/engine_in_a_shop.py --visits 100

Three hotels, two guests. Ada wants it cheap, Ben wants comfort; neither says so, they only rate each stay.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence

from pamo import Engine

OBJECTIVES = ["price: 0..500, lower is better", "location: 1..5", "comfort: 1..5"]
HOTELS = {  # what a stay is like, on average: price, location, comfort
    "anchor": ("Anchor Inn", 80.0, 2.0, 2.0),
    "bristol": ("Bristol", 250.0, 4.0, 3.0),
    "central": ("Central", 400.0, 3.5, 4.8),
}
GUESTS = {"Ada": (0.8, 0.1, 0.1), "Ben": (0.1, 0.2, 0.7)}  # what the shop does not know


def stay(hotel: str, chance: random.Random) -> dict[str, float]:
    """Return what one stay was like."""
    _, price, location, comfort = HOTELS[hotel]
    return {
        "price": price + chance.uniform(-30, 30),
        "location": min(5.0, location + chance.uniform(-0.5, 0.5)),
        "comfort": min(5.0, comfort + chance.uniform(-0.5, 0.5)),
    }


def rating(guest: str, seen: dict[str, float], chance: random.Random) -> float:
    """Return the guest's stars, from 1 to 5, give or take."""
    cheap, location, comfort = 1 - seen["price"] / 500, (seen["location"] - 1) / 4, (seen["comfort"] - 1) / 4
    weights = GUESTS[guest]
    stars = 1 + 4 * (weights[0] * cheap + weights[1] * location + weights[2] * comfort)
    return min(max(stars + chance.uniform(-0.3, 0.3), 1.0), 5.0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Let the guests come again and again, and print what was learned of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visits", type=int, default=100, help="of each guest")
    parser.add_argument("--store", default="memory:", help="memory:, a file, or postgresql://…")
    options = parser.parse_args(arguments)
    chance = random.Random(1)
    given: dict[str, list[str]] = {guest: [] for guest in GUESTS}
    with Engine(OBJECTIVES, store=options.store, overall="overall: 1..5", seed=1) as engine:
        for hotel, (name, *_) in HOTELS.items():
            engine.add_arm(hotel, name)
        for _ in range(options.visits):
            for guest in GUESTS:
                decision = engine.decide(guest)
                seen = stay(decision.arm, chance)
                engine.feedback(decision.id, seen, overall=rating(guest, seen, chance))
                given[guest].append(decision.arm)
        for guest, hotels in given.items():
            learned = engine.preference(guest).objectives
            weights = ", ".join(f"{name} {w.weight:.2f} ({w.low:.2f} … {w.high:.2f})" for name, w in learned.items())
            last = hotels[-10:]
            favourite = max(set(last), key=last.count)
            print(f"{guest} cares about {weights};")
            print(f"{guest} gets {HOTELS[favourite][0]} {last.count(favourite)} times of the last {len(last)}")
            print(" ", engine.explain(engine.decide(guest)).sentence)
        print("front:", ", ".join(f"{arm.name} ({arm.confidence:.0%})" for arm in engine.front() if arm.on_front))


if __name__ == "__main__":
    main()
