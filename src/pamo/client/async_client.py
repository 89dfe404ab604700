"""The client for programs of asyncio."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pamo.client import calls
from pamo.client.answers import FeedbackResult
from pamo.client.calls import Call
from pamo.client.connection import Connection, succeeded
from pamo.client.retrying import Outcome
from pamo.engine import Arm, Decision, Explanation, Feedback, FrontArm, Objective, Preference, Request

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")


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

    async def decide(
        self,
        user: str,
        arms: Sequence[str] | None = None,
        preference: Mapping[str, float] | None = None,
        k: int = 1,
        key: str | None = None,
    ) -> Decision:
        """Choose an arm for a user, or rank the best k (all of them, if there are fewer)."""
        return await self._ask(calls.decide(user, arms, preference, k, key))

    async def decide_many(self, requests: Iterable[str | Mapping[str, Any] | Request]) -> list[Decision]:
        """Choose for many users at once: each request a user, or a mapping of what `decide` takes."""
        return await self._ask(calls.decide_many(requests))

    async def feedback(
        self,
        decision_id: str,
        rewards: Mapping[str, float] | None = None,
        overall: float | None = None,
        preference: Mapping[str, float] | None = None,
        arm: str | None = None,
    ) -> Feedback:
        """Give what came of a decision, once: the same again changes nothing, and something else is refused."""
        return await self._ask(calls.feedback(decision_id, rewards, overall, preference, arm))

    async def feedback_many(self, items: Iterable[Mapping[str, Any]]) -> list[FeedbackResult]:
        """Give many feedbacks at once: each a mapping of what `feedback` takes, `decision_id` among it."""
        return await self._ask(calls.feedback_many(items))

    async def decision(self, decision_id: str) -> Decision:
        """Return a decision that was made."""
        return await self._ask(calls.decision(decision_id))

    async def explain(self, decision: str | Decision) -> Explanation:
        """Say why an arm was chosen, and which would have been without exploration."""
        return await self._ask(calls.explain(decision))

    # Users

    async def preference(self, user: str) -> Preference:
        """Return what a user cares about, with intervals; for a new user, what users have in common."""
        return await self._ask(calls.preference(user))

    async def export_user(self, user: str) -> dict[str, Any]:
        """Return everything that is kept of a user, as plain values. Needs the role admin."""
        return await self._ask(calls.export_user(user))

    async def erase_user(self, user: str) -> None:
        """Forget a user; the arms keep what they learned. Needs the role admin."""
        await self._ask(calls.erase_user(user))

    # Arms

    async def add_arm(self, arm: str, name: str | None = None) -> Arm:
        """Offer an arm from now on; again: revive it; with another name: rename it. Needs the role admin."""
        return await self._ask(calls.add_arm(arm, name))

    async def retire_arm(self, arm: str) -> Arm:
        """Offer an arm no longer; late feedback still counts. Needs the role admin."""
        return await self._ask(calls.retire_arm(arm))

    async def arm(self, arm: str) -> Arm:
        """Return an arm."""
        return await self._ask(calls.arm(arm))

    async def arms(self) -> list[Arm]:
        """Return all arms, the retired ones among them."""
        return await self._ask(calls.arms())

    async def front(self) -> list[FrontArm]:
        """Return the active arms, those on the Pareto front first, with how sure it is that they are on it."""
        return await self._ask(calls.front())

    # The service

    async def objectives(self) -> tuple[Objective, ...]:
        """Return what arms are scored on."""
        return await self._ask(calls.objectives())

    async def overall(self) -> Objective:
        """Return the scale of the overall score."""
        return await self._ask(calls.overall())

    async def statistics(self) -> dict[str, int]:
        """Count what there is: arms, users who gave feedback, feedbacks, and decisions that wait for one."""
        return await self._ask(calls.statistics())

    async def health(self) -> bool:
        """Tell whether the service is alive; asked once."""
        return succeeded(await self._send(calls.health()))

    async def ready(self) -> bool:
        """Tell whether the service can record anything now; asked once."""
        return succeeded(await self._send(calls.ready()))

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
