"""Try it: a small world of restaurants behind the service, and what its page asks of it."""

from __future__ import annotations

from collections.abc import Callable

from pamo.service.app import Edition
from pamo.service.dashboard.pages import View
from pamo.service.demo.operations import demo_operations
from pamo.service.demo.world import RESTAURANTS, SETUP, Restaurant, open_restaurants
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
    return Edition(
        operations=demo_operations(restaurants),
        views=(TRY,),
        prepare=lambda engine: open_restaurants(engine, restaurants),
        started=started,
    )
