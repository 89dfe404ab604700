"""A real PostgreSQL, started once for all tests that ask for it, with a schema for each; and the stores' homes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.store.homes import HOMES, Home
from tests.store.servers import running_postgres

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a server that is gone after the tests."""
    with running_postgres() as server:
        yield server.get_uri()


@pytest.fixture
def postgres_url(postgres_server: str) -> Callable[[], str]:
    """Returns addresses, each of a schema that nobody else uses."""

    def new() -> str:
        name = f"test_{os.getpid()}_{next(_numbers)}"
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{postgres_server}&options=-csearch_path%3D{name}"

    return new


@pytest.fixture(params=HOMES)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """Each kind of store in turn."""

    def url() -> str:
        new: Callable[[], str] = request.getfixturevalue("postgres_url")
        return new()

    place = HOMES[request.param](tmp_path, url)
    yield place
    place.close()
