"""The engine for asyncio: what is asked within one turn of the event loop is recorded together."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from pamo.engine.answers import Decision, Feedback
from pamo.engine.live import Engine
from pamo.engine.requests import Request
from pamo.errors import InputError, StoreError
from pamo.store import ArmAdded, DecisionMade, Event, FeedbackGiven, Receipt

MOST = 500
"""Requests that are decided together at most, where users' sums come over a network."""

Result = TypeVar("Result")

Waiting = list[tuple[Event, "asyncio.Future[Receipt]"]]


class AsyncEngine:
    """Awaits what `Engine` does: decisions and feedback of many tasks, without a thread for each.

    timeout: seconds after which a caller is told that the store has not answered. What it was handed may be recorded
    nevertheless; the same feedback, or the same key, may be sent again.

    >>> async def visit() -> str:
    ...     with Engine(["taste: 1..5"], seed=1) as engine:
    ...         engine.add_arm("A")
    ...         live = AsyncEngine(engine)
    ...         decision = await live.decide("ann")
    ...         return (await live.feedback(decision.id, {"taste": 4})).status
    >>> asyncio.run(visit())
    'recorded'
    """

    def __init__(self, engine: Engine, timeout: float = 10.0) -> None:
        self.engine = engine
        self._store = engine.store
        self._timeout = timeout
        self._waiting: Waiting = []
        self._asked: list[tuple[Request, asyncio.Future[DecisionMade]]] = []
        self._asking: asyncio.Task[None] | None = None
        # The policies' scratch is one, so that a second thread would only wait for the first.
        self._thread = ThreadPoolExecutor(1, "pamo-decider") if self._store.remote else None

    async def decide(
        self,
        user: str,
        arms: Sequence[str] | None = None,
        preference: Mapping[str, float] | None = None,
        k: int = 1,
        key: str | None = None,
    ) -> Decision:
        """Choose an arm for a user, as `Engine.decide` does."""
        request = Request(user, arms, preference, k, key)
        try:
            if self.engine.accepts_new_arms and arms is not None:
                await self._admit([request])
            event = self.engine.choose(request) if self._thread is None else await self._ask(request)
        except InputError:
            (first,) = await self._repeated([request])
            if first is None:
                raise
            return first
        return self.engine.decided(await self.record(event))

    async def decide_many(self, requests: Sequence[Request]) -> list[Decision]:
        """Choose for many users; an error names the request that is wrong, and then nothing is recorded."""
        try:
            if self.engine.accepts_new_arms:
                await self._admit(requests)
            if self._thread is None:
                events = self.engine.choose_many(requests)
            else:
                loop = asyncio.get_running_loop()
                events = await self._in_time(loop.run_in_executor(self._thread, self.engine.choose_many, requests))
        except InputError:
            first = await self._repeated(requests)
            rest = [one for one, known in zip(requests, first, strict=True) if known is None]
            if len(rest) == len(requests):
                raise
            others = iter(await self.decide_many(rest) if rest else ())
            return [next(others) if known is None else known for known in first]
        return [self.engine.decided(receipt) for receipt in await self.record_many(events)]

    async def feedback(
        self,
        decision_id: str,
        rewards: Mapping[str, float] | None = None,
        overall: float | None = None,
        preference: Mapping[str, float] | None = None,
        arm: str | None = None,
    ) -> Feedback:
        """Take what came of a decision, as `Engine.feedback` does."""
        given = {} if rewards is None else rewards
        event = FeedbackGiven(decision_id, given, self.engine.clock(), overall, preference, arm)
        return self.engine.answered(decision_id, await self.record(event))

    def record(self, event: Event) -> asyncio.Future[Receipt]:
        """Hand in one event, together with all others of this turn of the loop."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._hand_in, loop)
        done: asyncio.Future[Receipt] = loop.create_future()
        self._waiting.append((event, done))
        return done

    async def record_many(self, events: Sequence[Event]) -> list[Receipt]:
        """Hand in events that belong together: all of them, or none if one could not be recorded in any journal."""
        return await self._in_time(asyncio.wrap_future(self._store.submit_many(events)))

    def close(self) -> None:
        """End the thread, where there is one; the engine stays open."""
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)

    def _hand_in(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self._waiting = self._waiting, []
        try:
            done = self._store.submit_many([event for event, _ in batch])
        except InputError as error:
            if len(batch) == 1:
                _fail(batch, error)
                return
            for one in batch:  # one of them is wrong, and the others should not suffer for it
                self._hand_in_one(loop, one)
            return
        except Exception as error:
            _fail(batch, error)
            return
        self._watch(loop, batch, done)

    def _hand_in_one(self, loop: asyncio.AbstractEventLoop, one: tuple[Event, asyncio.Future[Receipt]]) -> None:
        try:
            self._watch(loop, [one], self._store.submit_many([one[0]]))
        except Exception as error:
            _fail([one], error)

    def _watch(self, loop: asyncio.AbstractEventLoop, batch: Waiting, done: Future[list[Receipt]]) -> None:
        if done.done():
            _hand_out(batch, None, done)
            return
        timer = loop.call_later(self._timeout, lambda: _fail(batch, self._late()))

        def wake(done: Future[list[Receipt]]) -> None:  # called by the store's thread
            if not loop.is_closed():
                loop.call_soon_threadsafe(_hand_out, batch, timer, done)

        done.add_done_callback(wake)

    async def _in_time(self, work: asyncio.Future[Result]) -> Result:
        try:
            return await asyncio.wait_for(work, self._timeout)
        except TimeoutError:
            raise self._late() from None

    def _late(self) -> StoreError:
        return StoreError(
            f"the store has not answered for {self._timeout:g} s, and nothing is acknowledged: send the same again"
        )

    async def _repeated(self, requests: Sequence[Request]) -> list[Decision | None]:
        """Return the decisions that were made before for those of these requests that have keys."""
        if all(one.key is None for one in requests):
            return [None] * len(requests)
        loop = asyncio.get_running_loop()
        return await self._in_time(
            loop.run_in_executor(self._thread, lambda: [self.engine.repeated(one) for one in requests])
        )

    async def _admit(self, requests: Sequence[Request]) -> None:
        """Add the arms on offer that are not known yet."""
        loop, engine = asyncio.get_running_loop(), self.engine
        if self._thread is None:
            arms = engine.new_arms(requests)
        else:
            arms = await self._in_time(loop.run_in_executor(self._thread, engine.new_arms, requests))
        if arms:
            await self.record_many([ArmAdded(arm, arm, engine.clock()) for arm in arms])

    # Where users' sums come over a network, a thread reads those of all that asked meanwhile.

    async def _ask(self, request: Request) -> DecisionMade:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[DecisionMade] = loop.create_future()
        self._asked.append((request, done))
        if self._asking is None or self._asking.done():
            self._asking = loop.create_task(self._answer())
        return await self._in_time(done)

    async def _answer(self) -> None:
        loop = asyncio.get_running_loop()
        while self._asked:
            asked = [one for one in self._asked if not one[1].done()]  # the others gave up
            batch, self._asked = asked[:MOST], asked[MOST:]
            if not batch:
                return
            work = functools.partial(_choose, self.engine, [request for request, _ in batch])
            try:
                found: Sequence[DecisionMade | BaseException] = await loop.run_in_executor(self._thread, work)
            except BaseException as error:
                found = [error] * len(batch)
            for (_, done), event in zip(batch, found, strict=True):
                if done.done():
                    continue  # the caller has gone
                if isinstance(event, BaseException):
                    done.set_exception(event)
                else:
                    done.set_result(event)


def _choose(engine: Engine, requests: Sequence[Request]) -> Sequence[DecisionMade | BaseException]:
    """Decide for all; where one is wrong, for each by itself, so that only that one fails."""
    try:
        return engine.choose_many(requests)
    except InputError:
        return [_choose_one(engine, request) for request in requests]


def _choose_one(engine: Engine, request: Request) -> DecisionMade | BaseException:
    try:
        return engine.choose(request)
    except Exception as error:
        return error


def _hand_out(batch: Waiting, timer: asyncio.TimerHandle | None, done: Future[Any]) -> None:
    if timer is not None:
        timer.cancel()
    error = done.exception()
    if error is not None:
        _fail(batch, error)
        return
    for (_, future), receipt in zip(batch, done.result(), strict=True):
        if not future.done():
            future.set_result(receipt)


def _fail(batch: Waiting, error: BaseException) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)
