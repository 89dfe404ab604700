"""One log of 10,000 rounds, and what Open Bandit Pipeline makes of it.

Open Bandit Pipeline brings PyTorch along, so that the tests read its figures from a file. With it installed,

    python tests/open_bandit.py

writes them anew; it needs nothing of pamo. The figures kept are of obp 0.4.1 with NumPy 2.4 and an empty module in the
place of PyTorch, which the estimators asked here import and do not use.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FIGURES = Path(__file__).parent / "fixtures" / "open-bandit.json"
ROUNDS, ARMS, MEASURES = 10_000, 5, 3


class Case(NamedTuple):
    """A log, a target and a model: (n,), (n,), (n, measures), (n, arms) and (n, arms, measures)."""

    arm: Any
    propensity: Any
    values: Any
    target: Any
    model: Any


def case(*, uniform: bool) -> Case:
    """Return the log: of a choice at random with a target that is sure, or of uneven chances and an unsure target."""
    draw = np.random.default_rng(20).random  # uniform numbers alone: these stay the same from version to version
    chances = np.full((ROUNDS, ARMS), 1.0 / ARMS)
    target = np.eye(ARMS)[(draw(ROUNDS) * ARMS).astype(int)]
    if not uniform:
        chances, target = (0.1 + draw((ROUNDS, ARMS)) for _ in range(2))
        chances, target = (each / each.sum(axis=1, keepdims=True) for each in (chances, target))
    arm = (draw((ROUNDS, 1)) > np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1)
    means = draw((ARMS, MEASURES))
    values = means[arm] + draw((ROUNDS, MEASURES)) - 0.5
    model = means + 0.4 * draw((ROUNDS, ARMS, MEASURES)) - 0.3
    return Case(arm, chances[np.arange(ROUNDS), arm], values, target, model)


def figures() -> dict[str, list[float]]:
    """Return what Open Bandit Pipeline says of both logs."""
    obp = importlib.import_module("obp.ope.estimators")
    ways = {
        "ips": (obp.InverseProbabilityWeighting(), False),
        "snips": (obp.SelfNormalizedInverseProbabilityWeighting(), False),
        "dr": (obp.DoublyRobust(), False),
        "replay": (obp.ReplayMethod(), True),
    }
    found: dict[str, list[float]] = {}
    for name, (estimator, uniform) in ways.items():
        given = case(uniform=uniform)
        found[name] = [
            float(
                estimator.estimate_policy_value(
                    reward=given.values[:, measure],
                    action=given.arm,
                    pscore=given.propensity,
                    action_dist=given.target[:, :, None],
                    estimated_rewards_by_reg_model=given.model[:, :, measure, None],
                    position=np.zeros(ROUNDS, dtype=int),
                )
            )
            for measure in range(MEASURES)
        ]
    return found


if __name__ == "__main__":
    FIGURES.write_text(json.dumps(figures(), indent=1) + "\n", encoding="utf-8")
