"""The client for programs of asyncio."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from pamo.client import calls
from pamo.client.calls import Call
from pamo.client.connection import Connection, succeeded
from pamo.client.retrying import Outcome
from pamo.contract.methods import like

if TYPE_CHECKING:
    import httpx

P = ParamSpec("P")
T = TypeVar("T")


def _asks(call: Callable[P, Call[T]]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """Return a call as a method that answers what it brings."""

    async def method(client: AsyncClient, /, *arguments: P.args, **named: P.kwargs) -> T:
        return await client._ask(call(*arguments, **named))

    return like(call, method, wrapper="Call")


def _succeeds(call: Callable[P, Call[Any]]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, bool]]:
    """Return a call as a method that tells whether it succeeds, in one attempt."""

    async def method(client: AsyncClient, /, *arguments: P.args, **named: P.kwargs) -> bool:
        return succeeded(await client._send(call(*arguments, **named)))

    return like(call, method)


class AsyncClient(Connection):
    """Asks pamo's HTTP service as `Client` does, for asyncio: the same arguments, and every method is awaited.

    transport and sleep: as there, asynchronous ones. A client may be used by any number of tasks of one event loop.

    >>> AsyncClient("http://127.0.0.1:8000")
    AsyncClient('http://127.0.0.1:8000')
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = 10.0,
        retries: int = 4,
        backoff: float = 0.1,
        longest_pause: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: random.Random | None = None,
    ) -> None:
        super().__init__(url, key, timeout, retries, backoff, longest_pause, chance)
        import httpx

        self._http = httpx.AsyncClient(headers=self._headers, timeout=self._timeout, transport=transport)
        self._sleep = sleep

    # Decisions and feedback

    decide = _asks(calls.decide)
    decide_many = _asks(calls.decide_many)
    feedback = _asks(calls.feedback)
    feedback_many = _asks(calls.feedback_many)
    decision = _asks(calls.decision)
    explain = _asks(calls.explain)

    # Users

    preference = _asks(calls.preference)
    export_user = _asks(calls.export_user)
    erase_user = _asks(calls.erase_user)

    # Arms

    add_arm = _asks(calls.add_arm)
    add_arms = _asks(calls.add_arms)
    declare_features = _asks(calls.declare_features)
    features = _asks(calls.features)
    retire_arm = _asks(calls.retire_arm)
    arm = _asks(calls.arm)
    arms = _asks(calls.arms)
    front = _asks(calls.front)

    # Experiments

    start_experiment = _asks(calls.start_experiment)
    end_experiment = _asks(calls.end_experiment)
    experiment = _asks(calls.experiment)

    # The service

    objectives = _asks(calls.objectives)
    overall = _asks(calls.overall)
    statistics = _asks(calls.statistics)
    health = _succeeds(calls.health)
    ready = _succeeds(calls.ready)

    async def close(self) -> None:
        """Let go of the connections. Closing twice is fine."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _ask(self, call: Call[T]) -> T:
        """Make a call, as often as it takes."""
        if call.known is not None:
            return call.known
        attempts = self._attempts(call)
        while (pause := attempts.pause_after(await self._send(call))) is not None:
            await self._sleep(pause)
        return attempts.answer()

    async def _send(self, call: Call[Any]) -> Outcome:
        """Make one attempt."""
        try:
            return await self._http.request(**self._request(call, closed=self._http.is_closed))
        except self._no_answer as error:
            return error
