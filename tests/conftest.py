"""What every test stands on.

Hypothesis draws the same examples in every run, and takes the time it takes. A real PostgreSQL is started once for all
tests that ask for it, with a schema for each.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import psycopg
import pytest
from hypothesis import settings

from tests.store.servers import running_postgres

settings.register_profile("pamo", derandomize=True, deadline=None, database=None)
settings.load_profile("pamo")

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
