"""Worlds that answer an engine: arms and users with true means, and feedback drawn from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pamo import Engine
from pamo.engine import Decision


class World:
    """Arms A0, A1, … with true means in [0.2, 0.8], users u0, u1, … with weights that add up to 1."""

    def __init__(
        self, *, arms: int = 6, users: int = 4, objectives: int = 3, seed: int = 1, noise: float = 0.05
    ) -> None:
        self.numbers = np.random.default_rng(seed)
        self.means = self.numbers.uniform(0.2, 0.8, size=(arms, objectives))
        self.weights = self.numbers.dirichlet(np.full(objectives, 0.5), size=users)
        self.noise = noise
        self.names = [f"o{d}" for d in range(objectives)]
        self.arms = [f"A{i}" for i in range(arms)]
        self.users = [f"u{n}" for n in range(users)]

    def engine(self, **options: Any) -> Engine:
        """Return an engine that knows the arms."""
        engine = Engine(options.pop("objectives", self.names), **{"seed": 1, **options})
        for arm in self.arms:
            engine.add_arm(arm)
        return engine

    def answer(self, engine: Engine, decision: Decision, *, stated: bool = False, overall: bool = True) -> float:
        """Give feedback to a decision, and return its regret."""
        n, i = self.users.index(decision.user or ""), self.arms.index(decision.arm)
        reward = np.clip(self.means[i] + self.noise * self.numbers.standard_normal(len(self.names)), 0.0, 1.0)
        weights = self.weights[n]
        score = float(np.clip(weights @ reward + 0.02 * self.numbers.standard_normal(), 0.0, 1.0))
        engine.feedback(
            decision.id,
            dict(zip(self.names, reward.tolist(), strict=True)),
            overall=score if overall else None,
            preference=dict(zip(self.names, weights.tolist(), strict=True)) if stated else None,
        )
        values = self.means @ weights
        return float(values.max() - values[i])

    def preference(self, user: str) -> dict[str, float]:
        """Return a user's true weights."""
        return dict(zip(self.names, self.weights[self.users.index(user)].tolist(), strict=True))

    def play(self, engine: Engine, rounds: int, mode: str = "hidden") -> list[float]:
        """Return each round's regret, over all users, of a policy that is told what the mode says."""
        regrets = []
        for _ in range(rounds):
            total = 0.0
            for user in self.users:
                known = self.preference(user) if mode == "known" else None
                decision = engine.decide(user, preference=known)
                total += self.answer(engine, decision, stated=mode == "stated", overall=mode == "hidden")
            regrets.append(total)
        return regrets
