"""Try it: a small world of restaurants behind the service, and what its page asks of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pamo.service.api import Api
from pamo.service.app import Edition
from pamo.service.dashboard.pages import View
from pamo.service.demo.world import APART, MEASURES, NOISE, RESTAURANTS, SETUP, Measure, Restaurant, open_restaurants
from pamo.service.operations import Arguments, Operation
from pamo.service.options import objective_text
from pamo.service.settings import Settings

__all__ = ["TRY", "demo_edition", "demo_settings"]

TRY = View(
    "/try",
    "Try it on yourself",
    "try.js",
    "Try it",
    lead="Rate restaurants, and see what pamo thinks you care about.",
    style="try.css",
)
"""The page on which a visitor rates restaurants."""


@dataclass(frozen=True, slots=True)
class World:
    """The demonstration's world. apart: the visits between two to one restaurant. noise: of an overall score."""

    measures: tuple[Measure, ...]
    restaurants: tuple[Restaurant, ...]
    apart: int
    noise: float


def demo_settings(store: str = "memory:", port: int = 0) -> Settings:
    """Return the settings of the demonstration: on this machine only, on a free port.

    >>> demo_settings().objectives[0]
    'price: 8..60, lower is better'
    """
    return Settings(
        store=store,
        objectives=tuple(map(objective_text, SETUP.objectives)),
        overall=objective_text(SETUP.overall),
        port=port,
        stop_seconds=1.0,
        log_level="warning",
    )


def demo_edition(
    restaurants: tuple[Restaurant, ...] = RESTAURANTS, started: Callable[[str], None] | None = None
) -> Edition:
    """Return what the demonstration adds to the service. started: is handed the address where it serves."""

    async def world(api: Api, asked: Arguments) -> World:
        """Return the restaurants as they are now: without the retired ones, and by the names they were given."""
        names = {arm.id: arm.name for arm in await api.aside(api.engine.arms) if arm.active}
        there = tuple(replace(one, name=names[one.id]) for one in restaurants if one.id in names)
        return World(MEASURES, there, APART, NOISE)

    operation = Operation(
        "GET",
        "/v1/demo/world",
        "getDemoWorld",
        "Return the restaurants of the demonstration, and what a visit to each is like.",
        world,
        World,
        tag="demonstration",
    )
    return Edition(
        operations=(operation,),
        views=(TRY,),
        prepare=lambda engine: open_restaurants(engine, restaurants),
        started=started,
    )
