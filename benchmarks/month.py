"""A store with a month behind it: decisions in an experiment, and feedback to them, as the service records them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from benchmarks.servers import ARMS
from pamo.contract.experiments import Variant, group_of
from pamo.store import ArmAdded, DecisionMade, Event, ExperimentStarted, FeedbackGiven, Objective, Setup
from pamo.store.maintenance import begin

DAYS = 30
DAY = 86_400.0
SETUP = Setup(
    (Objective("price", 0, 500, lower_is_better=True), Objective("taste", 1, 5), Objective("service")),
    Objective("overall", 1, 5),
)
"""The objectives of `benchmarks.servers.serving`."""


def month(events: int, users: int, now: float) -> Iterator[tuple[int, Event]]:
    """Yield about so many events, the last of them now: half of them decisions, more by day than by night."""
    numbers = np.random.default_rng(1)
    decisions = events // 2
    when = np.linspace(0.0, DAYS * DAY, decisions)
    when += DAY / (2 * math.pi) * 0.8 * np.sin(2 * math.pi * when / DAY)  # each time is still after the one before
    yield 1, SETUP
    for place, arm in enumerate(ARMS, start=2):
        yield place, ArmAdded(arm, arm, now - DAYS * DAY)
    variants = Variant("dice", 0.25, "random"), Variant("fair", 0.25, preference={"price": 1, "taste": 1, "service": 1})
    started = ExperimentStarted("month", now - DAYS * DAY, 0.25, "live", variants=variants)
    sequence = 2 + len(ARMS)
    yield sequence, started
    found = [group_of(f"user-{user}", started.name, started.groups()) for user in range(users)]
    groups = [None if one is None else (started.name, one.name) for one in found]
    for number, passed in enumerate(when.tolist()):
        at, who, arm = now - DAYS * DAY + passed, int(numbers.integers(users)), ARMS[number % len(ARMS)]
        user, group = f"user-{who}", groups[who]
        price, taste, service = numbers.random(3).tolist()
        kept = {
            "preference": [0.28, 0.31, 0.41],
            "means": [0.81, 0.52, 0.49],
            "reward_bonus": 0.013,
            "preference_bonus": 4.59e-3,
        }
        if number % 5 == 0:
            kept["without_exploration"] = {**kept, "arm": ARMS[0], "means": [0.7, 0.6, 0.5]}
        name = f"{number:024x}"
        yield (
            sequence + 1,
            DecisionMade(name, user, (arm,), 0.125, "prucb-hp-v@0.1.0", at, explanation=kept, group=group),
        )
        rewards = {"price": 500.0 * price, "taste": 1.0 + 4.0 * taste, "service": service}
        overall = 1.0 + 4.0 * (taste + service) / 2.0
        yield sequence + 2, FeedbackGiven(name, rewards, at, overall, None, arm, user, group=group)
        sequence += 2


def fill(address: str, events: int, users: int, now: float) -> None:
    """Begin a store with such a month."""
    begin(address, month(events, users, now))
