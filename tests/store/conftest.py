"""The stores' homes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.store.homes import HOMES, Home


@pytest.fixture(params=HOMES)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """Each kind of store in turn."""

    def url() -> str:
        new: Callable[[], str] = request.getfixturevalue("postgres_url")
        return new()

    place = HOMES[request.param](tmp_path, url)
    yield place
    place.close()
