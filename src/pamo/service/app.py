"""The ASGI application: which operation a path means, and what holds them together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Lifespan, Receive, Scope, Send

from pamo.engine import Engine
from pamo.service import openapi_page
from pamo.service.api import Api
from pamo.service.dashboard.pages import VIEWS, Pages, View
from pamo.service.endpoint import Endpoint, path_parts, refuse, refuse_method
from pamo.service.openapi import describe
from pamo.service.operations import OPERATIONS, Arguments, Operation
from pamo.service.problems import Problem
from pamo.service.schemas import encode
from pamo.service.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """What an edition of the service has beyond the plain one: `pamo demo` is one.

    views: they come first in the menu. prepare: is handed the engine before anybody is served. started: is handed the
    address where it serves; without it the address is printed.
    """

    operations: tuple[Operation, ...] = ()
    views: tuple[View, ...] = ()
    prepare: Callable[[Engine], None] = lambda engine: None
    started: Callable[[str], None] | None = None


PLAIN = Edition()
"""The service as `pamo serve` runs it."""


class Routes(BaseRoute):
    """Finds the operation for a path. Ids are percent-encoded in it, so that they may hold slashes as well."""

    def __init__(self, api: Api, operations: tuple[Operation, ...]) -> None:
        self._methods: dict[tuple[str | None, ...], dict[str, Endpoint]] = {}
        for one in operations:
            assert None not in (*one.segments[:2], *one.segments[3:])  # an id is the third part of its path, always
            methods = self._methods.setdefault(one.segments, {})
            methods[one.method] = Endpoint(api, one)
            if one.method == "GET":
                methods["HEAD"] = methods["GET"]

    def find(self, scope: Scope) -> tuple[dict[str, Endpoint] | None, tuple[str, ...]]:
        """Return what a path takes, by method, and the ids in it; None if it is not one of the API's."""
        parts = path_parts(scope)
        methods = self._methods.get(parts)
        if methods is not None or len(parts) < 3:
            return methods, ()
        return self._methods.get((*parts[:2], None, *parts[3:])), (_text(parts[2]),)

    async def answer(
        self, found: dict[str, Endpoint], ids: tuple[str, ...], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Hand the request to its operation."""
        endpoint = found.get(scope["method"])
        if endpoint is None:
            await refuse_method(send, scope["method"], found)
            return
        await endpoint(scope, receive, send, ids)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Tell whether the path is one of the API's."""
        found, ids = self.find(scope) if scope["type"] == "http" else (None, ())
        return (Match.NONE, {}) if found is None else (Match.FULL, {"pamo.found": found, "pamo.ids": ids})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request to its operation, where Starlette found it."""
        await self.answer(scope["pamo.found"], scope["pamo.ids"], scope, receive, send)


class Application(Starlette):
    """Starlette, with a short way to the operations.

    Each of them answers its own errors, which is all that Starlette's own middleware would do. Middleware that was
    added is not passed by.
    """

    def __init__(self, operations: Routes, pages: BaseRoute, lifespan: Lifespan[Starlette]) -> None:
        super().__init__(routes=[operations, pages], lifespan=lifespan)
        self._operations = operations
        self.router.default = _unknown
        self.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http" and not self.user_middleware:
            found, ids = self._operations.find(scope)
            if found is not None:
                await self._operations.answer(found, ids, scope, receive, send)
                return
        await super().__call__(scope, receive, send)


def _text(part: str) -> str:
    """Return an id as text; of bytes that are none it becomes text that no id may be."""
    if part.isascii() and "%" not in part:
        return part
    return unquote_to_bytes(part.encode("latin-1")).decode("utf-8", "surrogateescape")


async def _unknown(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await refuse(send, Problem(404, f"there is nothing at {scope['path']:.80}: /docs says what there is"))
    elif scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1000})


def create_app(engine: Engine, settings: Settings | None = None, edition: Edition = PLAIN) -> Starlette:
    """Return the service as an ASGI application. The engine is the caller's to close.

    >>> with Engine(["taste: 1..5"]) as engine:
    ...     create_app(engine).state.api.keyring.empty
    True
    """
    settings = Settings() if settings is None else settings
    api = Api(engine, settings)
    keys = not api.keyring.empty
    operations = (*OPERATIONS, *edition.operations)
    document = describe(operations, engine.store.setup, keys=keys, max_batch=settings.max_batch)
    description, page = encode(document), openapi_page.page(document)

    async def openapi(api: Api, asked: Arguments) -> Any:
        return Response(description, media_type="application/json")

    async def docs(api: Api, asked: Arguments) -> Any:
        return Response(page, media_type="text/html", headers={"content-security-policy": openapi_page.POLICY})

    about = (
        Operation("GET", "/openapi.json", "getOpenApi", "Return this description.", openapi, roles=None),
        Operation("GET", "/docs", "getReference", "Show it.", docs, roles=None, media="text/html"),
    )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        api.stream.close()
        api.live.close()

    pages = Pages(keys=keys, views=(*edition.views, *VIEWS))
    app = Application(Routes(api, (*operations, *about)), pages, lifespan)
    app.state.api = api
    return app
