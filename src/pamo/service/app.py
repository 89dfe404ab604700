"""The ASGI application: which operation a path means, and what holds them together."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.types import Lifespan, Receive, Scope, Send

from pamo.engine import Engine
from pamo.estimators import Kind
from pamo.service import openapi_page
from pamo.service.api import Api
from pamo.service.dashboard.pages import VIEWS, Pages, View
from pamo.service.endpoint import Endpoint, refuse
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


class Site:
    """Answers a request by an operation, by a page, or by a problem.

    Ids are percent-encoded in paths, so that they may hold slashes as well.
    """

    def __init__(self, api: Api, operations: tuple[Operation, ...], pages: Pages) -> None:
        self._pages = pages
        self._methods: dict[tuple[str | None, ...], dict[str, Endpoint]] = {}
        for one in operations:
            assert None not in (*one.segments[:2], *one.segments[3:])  # an id is the third part of its path, always
            methods = self._methods.setdefault(one.segments, {})
            methods[one.method] = Endpoint(api, one)
            if one.method == "GET":
                methods["HEAD"] = methods["GET"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        await self.answer(_parts(scope), scope, receive, send)

    async def answer(self, parts: tuple[str, ...], scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for the path of these parts."""
        ids: tuple[str, ...] = ()
        methods = self._methods.get(parts)
        if methods is None and len(parts) > 2:
            methods, ids = self._methods.get((*parts[:2], None, *parts[3:])), (_text(parts[2]),)
        if methods is None:
            page = self._pages.find(parts)
            if page is None:
                problem = Problem(404, f"there is nothing at {scope['path']:.80}: /docs says what there is")
                await refuse(send, problem)
            elif scope["method"] in ("GET", "HEAD"):
                await page(scope, receive, send)
            else:
                await _refuse_method(send, scope["method"], "GET, HEAD")
        elif scope["method"] in methods:
            await methods[scope["method"]](scope, receive, send, ids)
        else:
            await _refuse_method(send, scope["method"], ", ".join(methods))


class Projects:
    """Several sites: the plain paths are the first one's, and each project has two ways to its own.

    What is /v1/… in a project by itself is /v1/projects/NAME/… here; and all that it has, pages and description too, is
    at /projects/NAME/…, so that a client of a project is one with another base address.
    """

    def __init__(self, first: Site, projects: Mapping[str, Site]) -> None:
        self._first, self._projects = first, projects

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        site, parts = self._first, _parts(scope) if scope["type"] == "http" else ()
        if parts[:2] == ("v1", "projects") and len(parts) > 3:
            name, parts = parts[2], ("v1", *parts[3:])
        elif parts[:1] == ("projects",) and len(parts) > 2:
            name, parts = parts[1], parts[2:]
        elif parts[:1] == ("projects",) and len(parts) == 2 and parts[1] in self._projects:
            target = f"/projects/{parts[1]}/"  # so that what the page calls its own is below it
            await Response(status_code=308, headers={"location": target})(scope, receive, send)
            return
        else:
            await site(scope, receive, send)
            return
        if name not in self._projects:
            await refuse(send, Problem(404, f"there is no project {name!r:.80} here"))
            return
        await self._projects[name].answer(parts, scope, receive, send)


class Application(Starlette):
    """Starlette, with a short way to the site.

    The site answers its own errors, which is all that Starlette's own middleware would do. Routes and middleware that
    were added are not passed by.
    """

    def __init__(self, site: Site | Projects, lifespan: Lifespan[Starlette]) -> None:
        super().__init__(lifespan=lifespan)
        self.router.default = site
        self.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http" and not self.user_middleware and not self.router.routes:
            await self.router.default(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def _parts(scope: Scope) -> tuple[str, ...]:
    raw = scope.get("raw_path") or quote(scope["path"]).encode()
    return tuple(raw.decode("latin-1").split("/")[1:])


def _text(part: str) -> str:
    """Return an id as text; of bytes that are none it becomes text that no id may be."""
    if part.isascii() and "%" not in part:
        return part
    return unquote_to_bytes(part.encode("latin-1")).decode("utf-8", "surrogateescape")


async def _refuse_method(send: Send, method: str, allowed: str) -> None:
    await refuse(send, Problem(405, f"this takes {allowed}, not {method}", headers={"allow": allowed}))


def create_app(
    engine: Engine,
    settings: Settings | None = None,
    edition: Edition = PLAIN,
    projects: Mapping[str, Engine] | None = None,
) -> Starlette:
    """Return the service as an ASGI application. The engines are the caller's to close.

    projects: the engines of those that the settings name.

    >>> with Engine(["taste: 1..5"]) as engine:
    ...     create_app(engine).state.api.keyring.empty
    True
    """
    settings = Settings() if settings is None else settings
    api = Api(engine, settings)
    api.others = {name: Api(one, settings.projects[name]) for name, one in (projects or {}).items()}
    first = _site(api, edition)
    others = {name: _site(one, PLAIN, f"/projects/{name}") for name, one in api.others.items()}
    apis = (api, *api.others.values())

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        counting = [loop.create_task(one.history.keep()) for one in apis]
        yield
        for task in counting:
            task.cancel()
        for one in apis:
            one.stream.close()
            one.live.close()

    app = Application(Projects(first, others) if others else first, lifespan)
    app.state.api, app.state.apis = api, apis
    return app


def _site(api: Api, edition: Edition, base: str = "") -> Site:
    """Return what answers for one engine; base: where all its paths begin."""
    engine, settings, keys = api.engine, api.settings, not api.keyring.empty
    operations = (*OPERATIONS, *edition.operations)
    decider = engine.core.decider
    described = functools.partial(
        describe,
        operations,
        keys=keys,
        max_batch=settings.max_batch,
        takes_preference=decider.live.known.kind == Kind.KNOWN,
        needs_preference=decider.live.hidden.kind == Kind.KNOWN,
        base=base,
    )
    # What the objectives are called, and lie between, is for those who may ask; a browser sends no key for a page.
    description = encode(described(engine.store.setup))
    page = openapi_page.page(described(None if keys else engine.store.setup))

    async def openapi(api: Api, asked: Arguments) -> Any:
        return Response(description, media_type="application/json")

    async def docs(api: Api, asked: Arguments) -> Any:
        return Response(page, media_type="text/html", headers={"content-security-policy": openapi_page.POLICY})

    about = (
        Operation("GET", "/openapi.json", "getOpenApi", "Return this description.", openapi),
        Operation("GET", "/docs", "getReference", "Show it.", docs, roles=None if keys else (), media="text/html"),
    )
    return Site(api, (*operations, *about), Pages(keys=keys, views=(*edition.views, *VIEWS), base=base))
