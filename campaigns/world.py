"""What the clients of campaigns say, about the arms and objectives of `benchmarks.servers.serving`."""

from __future__ import annotations

from random import Random
from typing import Any

from benchmarks.servers import OBJECTIVES

NAMES = ("price", "taste", "service")
ARM_FEATURES, USER_FEATURES = "stars, pool: yes or no", "age, abroad: yes or no"


def objectives(price: int) -> str:
    """Return the objectives with prices up to this one; all that are sent are up to 500."""
    return OBJECTIVES.replace("0..500", f"0..{price}")


def features(random: Random, of: str) -> dict[str, Any]:
    """Return some features of an arm, or of a user; None is one that is not known any more."""
    number, yes = (one.partition(":")[0] for one in of.split(", "))
    known: dict[str, Any] = {number: random.randint(1, 90), yes: random.random() < 0.5}
    return {name: None if random.random() < 0.1 else value for name, value in known.items() if random.random() < 0.7}


def weights(random: Random) -> dict[str, float]:
    """Return a preference."""
    return {name: random.random() for name in NAMES}


def feedback(random: Random) -> dict[str, Any]:
    """Return a feedback: mostly whole, sometimes without an objective, an overall score or a preference."""
    rewards = {"price": random.uniform(0, 500), "taste": random.uniform(1, 5), "service": random.random()}
    if random.random() < 0.2:
        del rewards[random.choice(NAMES)]
    body: dict[str, Any] = {"rewards": rewards}
    if random.random() < 0.8:
        body["overall"] = random.uniform(1, 5)
    if random.random() < 0.2:
        body["preference"] = weights(random)
    return body
