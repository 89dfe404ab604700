"""Random walks through an engine, and everything that it answers on the way, to the last bit.

`python -m tests.walks OUT.json` walks with Python standing in for all that the cache does not have, and saves the
answers; `--nudged` breaks one function by the last bit, to see that it shows.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

from pamo import Engine, InputError, interpreting

WALKS: dict[str, dict[str, Any]] = {
    "three objectives": {"objectives": 3},
    "more than kernels are compiled for each, by a policy that draws": {"objectives": 4, "policy": "prts", "draws": 3},
    "forgetting, by rounds and days": {"objectives": 3, "half_life": "users: 7 rounds, arms: 2 days"},
    "a policy that has no call of its own": {"objectives": 3, "policy": "prucb-hp"},
    "features, and little explored": {
        "objectives": 3,
        "features": ["stars"],
        "user_features": ["age"],
        "explore_at_most": 0.3,
    },
}
"""Engines to walk through."""
STEPS = 90


def walk(walk: str, steps: int = STEPS) -> list[str]:
    """Return what an engine answers to requests of all kinds, one after another."""
    settings, draw, told = dict(WALKS[walk]), random.Random(walk), list[str]()
    names = [f"objective {d}" for d in range(settings.pop("objectives"))]
    featured, ticks = "features" in settings, itertools.count()
    with Engine(names, seed=1, clock=lambda: 1e9 + 5e3 * next(ticks), **settings) as engine:
        for arm in "ABCDEF":
            engine.add_arm(arm, features={"stars": draw.random()} if featured else None)
        for step in range(steps):
            user = f"user {draw.randrange(5)}"
            known = {name: draw.random() for name in names} if draw.random() < 0.2 else None
            given = {arm: {names[0]: draw.random()} for arm in draw.sample("ABCDEF", 3)}
            offer: Any = draw.choice([None, draw.sample("ABCDEF", 4), given])
            request: dict[str, Any] = {"user": user, "arms": offer, "preference": known, "k": draw.choice([1, 1, 2, 3])}
            if featured:
                request["features"] = {"age": draw.randrange(20, 70)}
            try:
                (decision,) = engine.decide_many([request]) if step % 3 else [engine.decide(**request)]
            except InputError as error:  # a policy that takes no preference, or needs one
                told.append(str(error))
                continue
            told.append(repr((decision.arms, decision.propensity, decision.details)))
            scores = {name: draw.random() for name in names if draw.random() < 0.9}
            if offer is given:
                scores.pop(names[0], None)
            stated = {name: draw.random() for name in names} if draw.random() < 0.1 else None
            parts = [(dict([*scores.items()][:1]), None, None), (dict([*scores.items()][1:]), draw.random(), stated)]
            for part in parts if draw.random() < 0.3 else [(scores, draw.choice([None, draw.random()]), stated)]:
                if any(part):
                    engine.feedback(decision.id, *part)
            if step % 10 == 0:
                told.append(repr((engine.preference(user), engine.explain(decision))).replace(decision.id, ""))
        told += [repr(engine.arms()), repr(engine.population)]
    return told


def main() -> None:
    """Walk, and save the answers."""
    interpreting.stand_in()
    if "--nudged" in sys.argv:
        usual = interpreting._MATH.sqrt
        interpreting._MATH.sqrt = lambda x: np.nextafter(usual(x), np.inf)
    Path(sys.argv[1]).write_text(json.dumps({name: walk(name) for name in WALKS}), encoding="utf-8")


if __name__ == "__main__":
    main()
