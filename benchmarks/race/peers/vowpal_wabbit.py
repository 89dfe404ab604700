"""Vowpal Wabbit: contextual bandits with features of actions, from Python and driven by a file."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import vowpalwabbit

from benchmarks.race import field

_ADF = "--cb_explore_adf --quiet --interactions sa --ignore_linear s"


def _lines(context: np.ndarray, offer: Sequence[int], chosen: int = -1, label: str = "") -> list[str]:
    shared = " ".join(f"x{d}:{value:.6g}" for d, value in enumerate(context) if value)
    return [f"shared |s {shared}", *(f"{label if arm == chosen else ''} |a arm{arm}" for arm in offer)]


class Own:
    """A workspace. It gives chances, of which the arm is drawn, and learns from costs."""

    def __init__(self, options: str, arms: int, dims: int, seed: int) -> None:
        self._workspace = vowpalwabbit.Workspace(f"{_ADF} {options} --random_seed {seed}")
        self._draw = np.random.default_rng(seed)

    def choose(self, context: np.ndarray, offer: Sequence[int]) -> int:
        """Return one of the arms on offer."""
        chances = np.array(self._workspace.predict(_lines(context, offer)))
        place = int(self._draw.choice(len(offer), p=chances / chances.sum()))
        self._offer, self._chance = offer, float(chances[place])
        return int(offer[place])

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        """Learn from what came of it."""
        label = f"0:{-reward:.6g}:{self._chance:.6g}"
        self._workspace.learn(_lines(context, self._offer, arm, label))


def files(arms: int, dims: int, count: int) -> float:
    """Return microseconds an example where Vowpal Wabbit reads decisions that were made before, from a file."""
    draw, offer, many = np.random.default_rng(1), list(range(arms)), max(20 * count // max(arms // 10, 1), 100)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "examples.txt"
        texts = []
        for _ in range(many):
            label = f"0:{-draw.random():.6g}:{1 / arms:.6g}"
            texts.append("\n".join(_lines(draw.random(dims), offer, int(draw.integers(arms)), label)) + "\n\n")
        path.write_text("".join(texts), encoding="utf-8")
        begun = time.perf_counter()
        workspace = vowpalwabbit.Workspace(f"{_ADF} --epsilon 0.1 --data {path}")
        workspace.finish()
        return (time.perf_counter() - begun) / many * 1e6


if __name__ == "__main__":
    field.main(
        {
            "epsilon-greedy": partial(Own, "--epsilon 0.05"),
            "SquareCB": partial(Own, "--squarecb --gamma_scale 100"),
            "online cover": partial(Own, "--cover 4"),
            "RegCB": partial(Own, "--regcbopt --cb_min_cost -1.5 --cb_max_cost 0.5"),
        },
        first="epsilon-greedy",
        files=files,
    )
