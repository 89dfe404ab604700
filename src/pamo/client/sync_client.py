"""The client for programs that wait for each answer."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
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


def _asks(call: Callable[P, Call[T]]) -> Callable[Concatenate[Client, P], T]:
    """Return a call as a method that answers what it brings."""

    def method(client: Client, /, *arguments: P.args, **named: P.kwargs) -> T:
        return client._ask(call(*arguments, **named))

    return like(call, method, wrapper="Call")


def _succeeds(call: Callable[P, Call[Any]]) -> Callable[Concatenate[Client, P], bool]:
    """Return a call as a method that tells whether it succeeds, in one attempt."""

    def method(client: Client, /, *arguments: P.args, **named: P.kwargs) -> bool:
        return succeeded(client._send(call(*arguments, **named)))

    return like(call, method)


class Client(Connection):
    """Asks pamo's HTTP service what `Engine` is asked in process, and answers the same.

    url: where the service is; by default the environment's PAMO_URL, or this machine's port 8000. key: the API key, by
    default the environment's PAMO_KEY. timeout: seconds to wait for each step of an attempt (to connect, to send, to
    receive).

    A call that is not answered, or answered 429, 502, 503 or 504, is tried again, up to `retries` times, after
    `backoff` seconds, then twice as many, up to `longest_pause`; or after as many as the service asks for. It is the
    same call each time: a decision has a key and a feedback its decision's id, so that nothing is decided or counted
    twice. After the last attempt it is a `ServiceError`. See `pamo.errors` for the others.

    transport: sends the requests in place of the network, or over one with settings of your own; sleep and chance:
    wait, and draw the length of pauses. A client may be used by any number of threads.

    >>> Client("http://127.0.0.1:8000")
    Client('http://127.0.0.1:8000')
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
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        chance: random.Random | None = None,
    ) -> None:
        super().__init__(url, key, timeout, retries, backoff, longest_pause, chance)
        import httpx

        self._http = httpx.Client(headers=self._headers, timeout=self._timeout, transport=transport)
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

    def close(self) -> None:
        """Let go of the connections. Closing twice is fine."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, call: Call[T]) -> T:
        """Make a call, as often as it takes."""
        if call.known is not None:
            return call.known
        attempts = self._attempts(call)
        while (pause := attempts.pause_after(self._send(call))) is not None:
            self._sleep(pause)
        return attempts.answer()

    def _send(self, call: Call[Any]) -> Outcome:
        """Make one attempt."""
        try:
            return self._http.request(**self._request(call, closed=self._http.is_closed))
        except self._no_answer as error:
            return error
