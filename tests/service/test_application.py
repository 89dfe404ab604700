"""The application as others may build on it: middleware and routes that they add."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from pamo import Engine
from pamo.service import create_app
from tests.service.calling import OBJECTIVES


@pytest.fixture
def app() -> Iterator[Starlette]:
    with Engine(OBJECTIVES, seed=1) as engine:
        engine.add_arm("A")
        yield create_app(engine)


def ask(app: Starlette, method: str, path: str, **more: object) -> httpx.Response:
    async def send() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            return await client.request(method, path, **more)  # type: ignore[arg-type]

    return asyncio.run(send())


def test_middleware_that_is_added_sees_every_request(app: Starlette) -> None:
    seen = []

    class Noting:
        def __init__(self, app: ASGIApp) -> None:
            self._app = app

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            seen.append(scope.get("path"))
            await self._app(scope, receive, send)

    app.add_middleware(Noting)
    assert ask(app, "GET", "/v1/arms/A").json()["id"] == "A"
    assert ask(app, "POST", "/v1/decisions", json={"user": "ann"}).status_code == 201
    assert ask(app, "DELETE", "/healthz").status_code == 405
    assert ask(app, "GET", "/nothing").status_code == 404
    assert seen == ["/v1/arms/A", "/v1/decisions", "/healthz", "/nothing"]


def test_routes_that_are_added_are_found(app: Starlette) -> None:
    async def hello(request: Request) -> PlainTextResponse:
        return PlainTextResponse("hello")

    app.add_route("/hello", hello)
    assert ask(app, "GET", "/hello").text == "hello"
    assert ask(app, "GET", "/healthz").status_code == 200
    assert ask(app, "GET", "/nothing").status_code == 404


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/decisions/batch", 405),  # not a decision of that id
        ("/v1/decisions/x", 404),
        ("/v1/decisions/x/y", 404),
        ("/v1/users/a%2Fb/preference", 200),
        ("/v1/users//preference", 422),
        ("/v1/users/a/b/preference", 404),
        ("/v1/arms/", 422),
        ("/v1/arms", 200),
        ("/v1", 404),
        ("/", 200),  # the page
    ],
)
def test_a_path_means_one_operation(app: Starlette, path: str, status: int) -> None:
    assert ask(app, "GET", path).status_code == status
