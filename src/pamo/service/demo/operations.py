"""What the service can be asked in the demonstration alone: what its world is like."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from pamo.service.api import Api
from pamo.service.demo.world import APART, MEASURES, NOISE, Restaurant
from pamo.service.operations import Arguments, Operation


class MeasureAnswer(Struct):
    """An objective for people: what those who care want of it, its unit, the step it is told in, how far visits to one
    restaurant differ, and words for it from the worst to the best.
    """

    name: str
    title: str
    unit: str
    step: float
    spread: float
    words: tuple[str, ...]


class RestaurantAnswer(Struct):
    """A restaurant that is open, and the mean of each objective over many visits."""

    id: str
    name: str
    kind: str
    about: str
    means: dict[str, float]


class WorldAnswer(Struct):
    """The demonstration's world. apart: the visits between two to one restaurant. noise: of an overall score."""

    measures: list[MeasureAnswer]
    restaurants: list[RestaurantAnswer]
    apart: int
    noise: float


def demo_operations(restaurants: tuple[Restaurant, ...]) -> tuple[Operation, ...]:
    """Return what the demonstration adds to the API."""
    measures = [
        MeasureAnswer(one.objective.name, one.title, one.unit, one.step, one.spread, one.words) for one in MEASURES
    ]
    names = [one.name for one in measures]

    async def world(api: Api, asked: Arguments) -> Any:
        """Return the restaurants as they are now: without the retired ones, and by the names they were given."""
        arms = {arm.id: arm for arm in await api.aside(api.engine.arms) if arm.active}
        found = [
            RestaurantAnswer(one.id, arms[one.id].name, one.kind, one.about, dict(zip(names, one.means, strict=True)))
            for one in restaurants
            if one.id in arms
        ]
        return WorldAnswer(measures, found, APART, NOISE)

    return (
        Operation(
            "GET",
            "/v1/demo/world",
            "getDemoWorld",
            "Return the restaurants of the demonstration, and what a visit to each is like.",
            world,
            WorldAnswer,
            tag="demonstration",
        ),
    )
