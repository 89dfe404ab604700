"""Every test of the clients is one of both."""

import pytest

from pamo import AsyncClient, Client
from tests.client.faces import Kind


@pytest.fixture(params=[Client, AsyncClient], ids=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget where the developer's own service is."""
    for name in ("PAMO_URL", "PAMO_KEY"):
        monkeypatch.delenv(name, raising=False)
