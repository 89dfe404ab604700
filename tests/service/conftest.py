"""Services for the tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pamo.service.settings import Settings
from tests.service.calling import Serve, Service, engine_of


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Make services: with settings by name, on an engine that is given or a new one."""
    made: list[Service] = []

    def make(engine: Any = None, **settings: Any) -> Service:
        made.append(Service(engine_of() if engine is None else engine, Settings(**settings)))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def service(serve: Serve) -> Service:
    """Return a service with arms A, B and C, in memory."""
    return serve()
