"""A town with inns and guests, served over HTTP: what the page's tests and its screenshots show."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np

from benchmarks.servers import served
from pamo import Engine
from pamo.service import create_app
from pamo.service.settings import Settings
from tests.service.calling import Clock

OBJECTIVES = ("price: 0..200, lower is better", "taste: 1..5", "service: 1..5", "quiet")
LOWS, SPANS = np.array([0.0, 1.0, 1.0, 0.0]), np.array([200.0, 4.0, 4.0, 1.0])
NAMES = ("price", "taste", "service", "quiet")
INNS = {
    "anchor": ("Anchor Inn", (0.85, 0.35, 0.40, 0.30)),
    "bristol": ("The Bristol", (0.15, 0.95, 0.95, 0.60)),
    "central": ("Central", (0.60, 0.50, 0.55, 0.20)),
    "dunes": ("Dunes Lodge", (0.45, 0.60, 0.65, 0.92)),
    "elm": ("Elm House", (0.70, 0.70, 0.45, 0.65)),
    "fox": ("Fox and Hen", (0.75, 0.78, 0.35, 0.25)),
    "grand": ("Grand Hotel", (0.08, 0.75, 0.90, 0.75)),
    "harbour": ("Harbour View", (0.40, 0.88, 0.60, 0.50)),
    "ivy": ("Ivy Cottage", (0.55, 0.65, 0.70, 0.85)),
    "jolly": ("Jolly Sailor", (0.90, 0.45, 0.30, 0.15)),
    "kings": ("King's Arms", (0.50, 0.55, 0.50, 0.45)),
    "lime": ("Lime Tree", (0.65, 0.40, 0.75, 0.70)),
}


def fill_town(app: Any, clock: Clock, *, guests: int, rounds: int, seconds: float, seed: int = 1) -> None:
    """Let guests come, be offered an inn, and most of them say what they thought of it."""
    api, numbers = app.state.api, np.random.default_rng(seed)
    tastes = numbers.dirichlet((0.7, 1.0, 0.7, 0.7), guests)
    means = {inn: np.array(truth) for inn, (_, truth) in INNS.items()}

    async def stay() -> None:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for turn in range(rounds):
                guest = int(guests * numbers.random() ** 1.7)
                answer = await client.post("/v1/decisions", json={"user": f"guest-{guest:03d}"})
                made = answer.json()
                assert answer.status_code == 201, made
                clock.at += seconds * numbers.exponential()
                if numbers.random() < 0.9:
                    got = np.clip(means[made["arm"]] + 0.1 * numbers.standard_normal(4), 0.0, 1.0)
                    overall = float(np.clip(tastes[guest] @ got + 0.04 * numbers.standard_normal(), 0.0, 1.0))
                    shown = LOWS + SPANS * np.where(np.arange(4) == 0, 1.0 - got, got)
                    body = {
                        "rewards": dict(zip(NAMES, shown.round(3).tolist(), strict=True)),
                        "overall": 1 + 4 * overall,
                    }
                    answer = await client.post(f"/v1/decisions/{made['id']}/feedback", json=body)
                    assert answer.status_code == 200, answer.text
                if turn % 25 == 0:
                    api.activity.read_arms()

    with ThreadPoolExecutor(1) as thread:  # this one may have a loop already: Playwright's
        thread.submit(asyncio.run, stay()).result()


def open_town(store: str = "memory:", clock: Any = time.time) -> Engine:
    """An engine with the town's inns."""
    engine = Engine(OBJECTIVES, store=store, overall="overall: 1..5", seed=7, clock=clock)
    for inn, (name, _) in INNS.items():
        engine.add_arm(inn, name)
    return engine


@contextlib.contextmanager
def running_town(
    *, guests: int = 40, rounds: int = 600, seconds: float = 0.9, settings: Settings | None = None
) -> Iterator[tuple[str, Engine, Any]]:
    """A town that has been busy for a while, its engine and its application."""
    clock = Clock(time.time() - rounds * seconds)
    with open_town(clock=clock) as engine:
        app = create_app(engine, settings)
        fill_town(app, clock, guests=guests, rounds=rounds, seconds=seconds)
        clock.real = True
        with served(app) as address:
            yield address, engine, app
