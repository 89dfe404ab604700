"""Services for the tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from pamo.service.settings import Settings
from tests.browsing import chromium
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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start a Chromium; tests of this module that run a loop of their own do so in another thread."""
    with chromium() as started:
        yield started


@pytest.fixture
def service(serve: Serve) -> Service:
    """Return a service with arms A, B and C, in memory."""
    return serve()
