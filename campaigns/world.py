"""What the clients of campaigns say, about the arms and objectives of `benchmarks.servers.serving`."""

from __future__ import annotations

from random import Random
from typing import Any

NAMES = ("price", "taste", "service")


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
