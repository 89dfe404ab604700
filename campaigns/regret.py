"""Drive simulated users through the HTTP API, and see whether their regret is the simulator's.

The worlds are the simulator's own, trial by trial: the same means, the same noise. Only that here an application asks
the service for arms, and sends back what came of them on scales of its own: prices in euros of which fewer are better,
stars, overall scores from 0 to 10. If the service learned any worse than the simulator, or confused a scale, a
direction or a user, its regret would be higher.

    python -m campaigns.regret --trials 200 --rounds 200 --seed 1

Two worlds: `bounded`, and the paper's Gaussian one, scaled so that its rewards fit their scales. Three modes: the
preference hidden behind an overall score, stated with the feedback, and known with the decision. Trials are paired, and
the last column says how large a difference would have been seen with a chance of 90 %.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
from tqdm import tqdm

from pamo import policies, simulate
from pamo.arrays import Floats
from pamo.compiling import dimensions
from pamo.engine import Engine
from pamo.environments import Bounded, Environment, Fixed, Gaussian
from pamo.service import create_app
from pamo.streams import ENVIRONMENT, INSTANCE, STATED, stream_for

USERS, ARMS, OBJECTIVES = 8, 6, 3
MODES = ("hidden", "stated", "known")
DECLARED = ("euros: 0..500, lower is better", "stars: 1..5", "calm: -1..1")
NAMES = ("euros", "stars", "calm")
OVERALL = "overall: 0..10"
SEEN = 1.96 + 1.2816
"""Standard errors of a difference that a test at 5 % sees with a chance of 90 %."""


@dataclass(frozen=True)
class World:
    """One trial: the truth, and the environment that draws from it."""

    environment: Environment
    means: Floats
    weights: Floats
    trial: int
    seed: int


def bounded_worlds(seed: int, trials: int) -> Iterator[World]:
    """Yield the worlds of the bounded environment."""
    environment = Bounded(users=USERS, arms=ARMS, objectives=OBJECTIVES, protocol="all", block_size=2)
    for trial in range(trials):
        yield World(environment, *_instance(environment, seed, trial), trial, seed)


def gaussian_worlds(seed: int, trials: int) -> Iterator[World]:
    """Yield the worlds of the paper's environment, with rewards around 0.3 to 0.7 and small weights.

    The noise's standard deviation is an eighth of that range, as it is a tenth in the paper: it takes six of them to
    leave the scale.
    """
    template = Gaussian(
        users=USERS, arms=ARMS, objectives=OBJECTIVES, protocol="all", block_size=2, preference="random"
    )
    for trial in range(trials):
        means, weights = _instance(template, seed, trial)
        weights *= 0.6 / weights.sum(axis=1, keepdims=True)
        environment = Fixed.of(
            means=0.3 + 0.4 * means, preferences=weights, reward_variance=0.0025, preference_variance=0.0025
        )
        yield World(environment, 0.3 + 0.4 * means, weights, trial, seed)


WORLDS: dict[str, Callable[[int, int], Iterator[World]]] = {"bounded": bounded_worlds, "gaussian": gaussian_worlds}


def _instance(environment: Environment, seed: int, trial: int) -> tuple[Floats, Floats]:
    means, weights = np.empty((ARMS, OBJECTIVES)), np.empty((USERS, OBJECTIVES))
    stream = stream_for(seed, trial, INSTANCE)
    type(environment).instance(means, weights, environment.numbers(), stream, dimensions(OBJECTIVES))
    return means, weights


def simulated(name: str, mode: str, rounds: int, trials: int, seed: int) -> Floats:
    """Return the simulator's regret, trial by trial."""
    policy = policies.recommended(mode)
    if name == "bounded":
        (world,) = bounded_worlds(seed, 1)
        found: Floats = simulate([policy], world.environment, rounds=rounds, trials=trials, seed=seed)[
            policy.id
        ].final_regret
        return found
    several = []
    for world in WORLDS[name](seed, trials):
        # A world of its own for each trial, and so a simulation for each; only the trial's number tells their noise.
        result = simulate([policy], world.environment, rounds=rounds, trials=1, seed=seed + world.trial)
        several.append(float(result[policy.id].final_regret[0]))
    return np.array(several)


def driven(name: str, mode: str, rounds: int, trials: int, seed: int, **options: Any) -> Iterator[float]:
    """Yield the regret of users who are served over HTTP, trial by trial. options: other than usual, of the engine."""
    for world in WORLDS[name](seed, trials):
        yield asyncio.run(_drive(world, name, mode, rounds, options))


async def _drive(world: World, name: str, mode: str, rounds: int, options: dict[str, Any]) -> float:
    seed, trial = (world.seed, world.trial) if name == "bounded" else (world.seed + world.trial, 0)
    stream, spare = stream_for(seed, trial, ENVIRONMENT), stream_for(seed, trial, STATED)
    values = world.weights @ world.means.T
    lost = values.max(axis=1, keepdims=True) - values
    known = [dict(zip(NAMES, row, strict=True)) if mode == "known" else None for row in world.weights.tolist()]
    asked = {"requests": [{"user": f"u{n}", "preference": known[n]} for n in range(USERS)]}
    draw, numbers, dims = type(world.environment).draw, world.environment.numbers(), dimensions(OBJECTIVES)
    reward, stated = np.empty(OBJECTIVES + 1), np.empty(OBJECTIVES + 1)
    regret = 0.0
    with Engine(**{"objectives": DECLARED, "overall": OVERALL, "seed": world.trial, **options}) as engine:
        for i in range(ARMS):
            engine.add_arm(f"{i}")
        transport = httpx.ASGITransport(create_app(engine))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for _ in range(rounds):
                made = (await client.post("/v1/decisions/batch", json=asked)).raise_for_status().json()["decisions"]
                given = []
                for n, decision in enumerate(made):
                    arm = int(decision["arm"])
                    regret += lost[n, arm]
                    overall = draw(
                        reward, stated, arm, n, world.means, world.weights, numbers, True, stream, spare, dims
                    )
                    given.append(_feedback(decision["id"], mode, reward, stated, overall))
                answer = (await client.post("/v1/feedback/batch", json={"feedback": given})).raise_for_status().json()
                assert all(one["status"] == "recorded" for one in answer["results"])
    return float(regret)


def _feedback(decision: str, mode: str, reward: Floats, stated: Floats, overall: float) -> dict[str, Any]:
    """Return a user's feedback on the scales that the application has declared."""
    a, b, c = np.clip(reward[:OBJECTIVES], 0.0, 1.0).tolist()
    body: dict[str, Any] = {
        "id": decision,
        "rewards": {"euros": 500.0 - 500.0 * a, "stars": 1 + 4 * b, "calm": 2 * c - 1},
    }
    if mode == "hidden":
        body["overall"] = 10.0 * min(max(overall, 0.0), 1.0)
    elif mode == "stated":
        body["preference"] = dict(zip(NAMES, stated[:OBJECTIVES].tolist(), strict=True))
    return body


@dataclass(frozen=True)
class Comparison:
    """The regret over HTTP beside the simulator's."""

    name: str
    mode: str
    simulated: float
    served: float
    error: float
    """The standard error of the mean difference."""

    @property
    def standardised(self) -> float:
        """The difference in standard errors."""
        return (self.served - self.simulated) / self.error

    @property
    def detectable(self) -> float:
        """The difference, as a share of the simulator's regret, that would have been seen with a chance of 90 %."""
        return SEEN * self.error / self.simulated

    def __str__(self) -> str:
        share = (self.served - self.simulated) / self.simulated
        return (
            f"{self.name:10}{self.mode:8}{self.simulated:>11.3f}{self.served:>11.3f}{share:>+11.1%}"
            f"{self.standardised:>+9.2f}{self.detectable:>13.1%}"
        )


HEADER = f"{'world':10}{'mode':8}{'simulator':>11}{'over HTTP':>11}{'difference':>11}{'in SE':>9}{'detectable':>13}"


def compare(
    name: str,
    mode: str,
    rounds: int,
    trials: int,
    seed: int,
    progress: Callable[[int], object] = lambda count: None,
    **options: Any,
) -> Comparison:
    """Compare one mode in one world."""
    expected = simulated(name, mode, rounds, trials, seed)
    served = []
    for regret in driven(name, mode, rounds, trials, seed, **options):
        served.append(regret)
        progress(1)
    difference = np.array(served) - expected
    error = float(difference.std(ddof=1) / np.sqrt(trials))
    return Comparison(name, mode, float(expected.mean()), float(np.mean(served)), error)


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign, and say what was found."""
    parser = argparse.ArgumentParser(description="Compare regret over HTTP with the simulator's.")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    started, found = time.perf_counter(), []
    print(HEADER, flush=True)
    with tqdm(total=len(WORLDS) * len(MODES) * options.trials, unit="trial", disable=None) as bar:
        for name in WORLDS:
            for mode in MODES:
                found.append(compare(name, mode, options.rounds, options.trials, options.seed, bar.update))
                bar.write(str(found[-1]))
                sys.stdout.flush()
    size = (
        f"{options.trials} trials of {options.rounds} rounds with {USERS} users, {ARMS} arms, {OBJECTIVES} objectives"
    )
    print(f"{size}, seed {options.seed}, {time.perf_counter() - started:.0f} s")
    worst = max(abs(one.standardised) for one in found)
    # Of six true comparisons one is beyond 3 standard errors in 60 campaigns.
    print("As it should be: the same regret." if worst < 3.0 else "FAILED")
    return int(worst >= 3.0)


if __name__ == "__main__":
    sys.exit(main())
