"""The demonstration's world: two dozen restaurants, what a visit to each is like, and the guests who came before.

No restaurant is good at everything: the scores of each add up to about the same, and no two objectives go together. So
what people are glad of tells what they care about, and who gives high marks throughout is taken to care a little more
about everything, not about one thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from pamo.engine import Engine
from pamo.store import Objective, Setup


@dataclass(frozen=True, slots=True)
class Measure:
    """An objective for people: what those who care want of it, its unit, the step it is told in, how far visits to one
    restaurant differ, and words for a fifth of the scale each, from the worst to the best.
    """

    name: str
    title: str
    unit: str
    step: float
    spread: float
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Restaurant:
    """A place to eat: what it is, and the mean of each objective over many visits."""

    id: str
    name: str
    kind: str
    about: str
    means: Mapping[str, float]


SETUP = Setup(
    (
        Objective("price", 8, 60, lower_is_better=True),
        Objective("taste", 1, 5),
        Objective("service", 1, 5),
        Objective("waiting", 0, 45, lower_is_better=True),
        Objective("atmosphere", 1, 5),
    ),
    Objective("overall", 1, 10),
)
"""What restaurants are scored on, and the scale of the one overall score, of which only whole numbers are given."""

NAMES = tuple(one.name for one in SETUP.objectives)

MEASURES = (
    Measure("price", "low prices", "€", 1.0, 2.5, ("a fortune", "dear", "fair", "cheap", "a bargain")),
    Measure("taste", "good food", "★", 0.5, 0.25, ("awful", "poor", "decent", "good", "superb")),
    Measure("service", "good service", "★", 0.5, 0.25, ("rude", "poor", "fine", "kind", "perfect")),
    Measure("waiting", "short waits", "min", 1.0, 2.5, ("endless", "long", "bearable", "short", "brief")),
    Measure("atmosphere", "nice atmosphere", "★", 0.5, 0.25, ("bleak", "plain", "fine", "pleasant", "magical")),
)
"""The same for people, in the same order."""

APART = 8
"""How many visits lie between two to the same restaurant, at least: nobody wants the same one again and again, and
what is learned of a guest comes from the differences."""

EARLIER_GUESTS, EARLIER_VISITS = 40, 8
"""How many guests came before, and how often each: so many that a new one's second visit may already suit them."""

NOISE = 0.05
"""How far a guest's overall score is from what the visit was worth to them, from 0 to 1: half a point."""


class Guest:
    """Somebody simulated, with a taste: weights by objective that add up to 1."""

    def __init__(self, taste: Mapping[str, float], random: Random, noise: float = NOISE) -> None:
        self.taste, self.random, self.noise = taste, random, noise

    def visit(self, means: Mapping[str, float]) -> dict[str, float]:
        """Return what a visit is like to a restaurant with these means, in the steps in which it is told."""
        found = {}
        for one, scale in zip(MEASURES, SETUP.objectives, strict=True):
            told = round(self.random.gauss(means[one.name], one.spread) / one.step) * one.step
            found[one.name] = min(max(told, scale.low), scale.high)
        return found

    def overall(self, scores: Mapping[str, float]) -> int:
        """Return the overall score of such a visit."""
        low, high = SETUP.overall.low, SETUP.overall.high
        points = low + (high - low) * self.random.gauss(worth(self.taste, scores), self.noise)
        return int(min(max(round(points), low), high))


def worth(taste: Mapping[str, float], scores: Mapping[str, float]) -> float:
    """Return what a visit with these scores is worth to a taste, from 0 to 1.

    >>> worth({**dict.fromkeys(NAMES, 0.0), "price": 1.0}, {**dict.fromkeys(NAMES, 3.0), "price": 8.0})
    1.0
    """
    return sum(taste[one.name] * one.normalised(scores[one.name]) for one in SETUP.objectives)


def open_restaurants(engine: Engine, restaurants: tuple[Restaurant, ...], seed: int = 1) -> None:
    """Offer the restaurants, and have simulated guests of all tastes visit them; nothing, where that was done before.

    >>> with Engine(SETUP.objectives, overall=SETUP.overall) as engine:
    ...     open_restaurants(engine, RESTAURANTS)
    ...     engine.statistics()["complete_feedbacks"], {arm.pulls > 0 for arm in engine.arms()}
    (320, {True})
    """
    if engine.arms():
        return
    for one in restaurants:
        engine.add_arm(one.id, one.name)
    random = Random(seed)
    visits = []
    for number in range(EARLIER_GUESTS):
        shares = [random.expovariate(1.0) for _ in NAMES]
        guest = Guest({name: share / sum(shares) for name, share in zip(NAMES, shares, strict=True)}, random)
        places = random.sample(restaurants, min(EARLIER_VISITS, len(restaurants)))
        visits += [(f"guest {number + 1}", guest, place) for place in places]
    decisions = engine.decide_many([{"user": user, "arms": [place.id]} for user, _, place in visits])
    feedback = []
    for decision, (_, guest, place) in zip(decisions, visits, strict=True):
        scores = guest.visit(place.means)
        feedback.append({"decision_id": decision.id, "rewards": scores, "overall": guest.overall(scores)})
    engine.feedback_many(feedback)
    engine.refit()


def _of(id: str, name: str, kind: str, about: str, *means: float) -> Restaurant:
    return Restaurant(id, name, kind, about, dict(zip(NAMES, means, strict=True)))


# fmt: off
RESTAURANTS = (
    _of("spoon", "The Gilded Spoon", "grand hotel",
        "Chandeliers and white gloves. The kitchen is an afterthought.", 57, 1.5, 4.6, 16, 4.1),
    _of("clemence", "Maison Clémence", "French",
        "Slow, rich cooking. Bring an evening, and a full purse.", 55, 4.3, 3.7, 34, 3.7),
    _of("terminal", "Terminal Club", "airport lounge",
        "Served before you have put down your bag. It is still an airport.", 53, 2.3, 4.5, 3, 2.0),
    _of("nine", "Counter Nine", "sushi",
        "Nine stools, bare walls, and superb fish at once.", 51, 4.8, 2.6, 4, 1.5),
    _of("lenta", "Osteria Lenta", "Italian",
        "Fresh pasta, rolled after you have ordered it.", 49, 4.5, 3.4, 32, 2.6),
    _of("whim", "The Cook's Whim", "tasting menu",
        "No menu, no hurry, no apologies. Wonderful plates.", 47, 4.6, 2.3, 39, 2.9),
    _of("skyline", "Skyline", "rooftop bar",
        "The whole city below. The waiters admire it, too.", 45, 3.1, 1.5, 11, 4.5),
    _of("orangery", "The Orangery", "tea house",
        "Lemon trees, silver pots, and somebody for every wish. In time.", 43, 2.8, 4.8, 42, 4.6),
    _of("brusque", "Brusque", "steakhouse",
        "Excellent steak, quickly, and not a word too many.", 41, 4.1, 1.7, 8, 2.5),
    _of("neon", "Neon Cantina", "theme restaurant",
        "Cowboys, robots, a volcano. The food is the least of it.", 39, 1.2, 2.5, 10, 3.5),
    _of("harbour", "Harbour Lights", "seafood",
        "Tables on the quay, boats coming in, decent chowder.", 37, 3.2, 2.9, 18, 4.3),
    _of("rosa", "Chez Rosa", "home cooking",
        "Rosa treats you like family, and cooks like hers.", 35, 2.2, 4.0, 29, 3.1),
    _of("corner", "The Corner Table", "bistro",
        "A bit of everything, and nothing to complain about.", 33, 2.9, 3.1, 23, 2.8),
    _of("lakeside", "Lakeside Garden", "beer garden",
        "Chestnut trees and long benches. Fetch your own.", 31, 2.5, 2.2, 22, 3.2),
    _of("jasmine", "Jasmine Court", "Lebanese",
        "A courtyard, a fountain, and many small bowls.", 29, 3.4, 2.8, 30, 3.8),
    _of("buffet", "Quick Lunch 24", "buffet",
        "Lukewarm trays under bright lights. Friendly, and no queue.", 27, 1.4, 3.8, 6, 1.4),
    _of("spice", "Spice Route", "Indian",
        "Deep flavours and a crowd. Wave harder.", 25, 4.0, 2.0, 25, 3.4),
    _of("cellar", "Candle Cellar", "wine bar",
        "Vaults, live jazz, a hundred candles. Eat before you come.", 23, 1.7, 1.4, 27, 4.8),
    _of("sunny", "Sunny Side", "diner",
        "Plastic chairs, and they know your name the second time.", 21, 2.6, 4.3, 15, 1.2),
    _of("wok", "Wok and Go", "Chinese",
        "Shouted orders, hot wok, good noodles.", 19, 3.5, 1.2, 13, 2.2),
    _of("pho", "Phở Corner", "Vietnamese",
        "One soup, a long queue, and worth it.", 17, 3.7, 3.2, 37, 1.9),
    _of("common", "The Common Pot", "community kitchen",
        "Volunteers with big hearts and one stove.", 15, 2.0, 4.1, 41, 2.3),
    _of("falafel", "Falafel Window", "street food",
        "A hatch in the wall. The queue goes round the block.", 13, 3.8, 3.5, 35, 1.7),
    _of("courtyard", "Student Courtyard", "canteen",
        "Trays under old lime trees, fairy lights at night.", 11, 1.9, 1.9, 20, 4.0),
)
# fmt: on
"""Every restaurant. The ids are the arms'."""
