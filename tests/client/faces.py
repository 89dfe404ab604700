"""The clients by one name, so that every test is of all of them."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Callable
from typing import Any

import httpx

from pamo import AsyncClient, Client
from tests.client.typescript import TypeScript, named

Kind = type[Client] | type[AsyncClient]
AnyKind = Kind | type[TypeScript]
Handler = Callable[[httpx.Request], httpx.Response]


class Face:
    """A client of some kind, asked by the name of a method.

    pauses: the seconds that it slept, without any time going by.
    """

    def __init__(self, kind: AnyKind, url: str | None = "http://pamo.test", **options: Any) -> None:
        self.kind = kind
        self.pauses: list[float] = []
        self._url = url
        self._options = {"chance": random.Random(7), "key": "k-1", **options}

    def ask(self, method: str, *arguments: Any, **given: Any) -> Any:
        """Call a method of a new client, and close it."""
        if self.kind is Client:
            with Client(self._url, sleep=self.pauses.append, **self._options) as client:
                return getattr(client, method)(*arguments, **given)
        if self.kind is TypeScript:
            return TypeScript.ask(self._url, self._options, self.pauses, method, named(method, arguments, given))
        return asyncio.run(self._ask(method, *arguments, **given))

    async def _ask(self, method: str, *arguments: Any, **given: Any) -> Any:
        async def sleep(seconds: float) -> None:
            self.pauses.append(seconds)

        async with AsyncClient(self._url, sleep=sleep, **self._options) as client:
            return await getattr(client, method)(*arguments, **given)


def heard(kind: Kind, handler: Handler, **options: Any) -> Face:
    """Return a client whose requests a function answers."""
    return Face(kind, transport=httpx.MockTransport(handler), **options)


class Script:
    """Answers requests one after another, the last answer again and again, and keeps the requests.

    An answer is a response, an error to raise, or a function of the request.
    """

    def __init__(self, *answers: httpx.Response | Exception | Handler) -> None:
        self.requests: list[httpx.Request] = []
        self._answers = answers

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer the next request."""
        request.read()
        answer = self._answers[min(len(self.requests), len(self._answers) - 1)]
        self.requests.append(request)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, httpx.Response):
            # A response is read once; every request gets one of its own.
            return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)
        return answer(request)


def problem(status: int, detail: str, headers: dict[str, str] | None = None, **more: str) -> httpx.Response:
    """Return a problem+json as the service sends it."""
    return httpx.Response(
        status,
        json={"type": "about:blank", "title": "Title", "status": status, "detail": detail, **more},
        headers={"Content-Type": "application/problem+json", **(headers or {})},
    )


async def answered(given: Any) -> Any:
    """Return what either client answers."""
    return await given if inspect.isawaitable(given) else given
