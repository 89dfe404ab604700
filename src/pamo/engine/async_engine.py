"""The engine for asyncio: what is asked within one turn of the event loop is recorded together."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, TypeVar

from pamo.contract.events import DecisionMade, Event, Receipt
from pamo.contract.methods import like
from pamo.contract.requests import Request
from pamo.engine.core import Core, Face
from pamo.engine.deciding import Decider, check_k
from pamo.engine.engine import Engine
from pamo.errors import InputError, StoreError

MOST = 500
"""Requests that are decided together at most, where users' sums come over a network."""

FIRST = 16
"""Of many requests, how many are decided before others have their turn; then as many as take about so long:"""
TURN, REMOTE_TURN = 0.005, 0.05

P = ParamSpec("P")
T = TypeVar("T")

Waiting = list[tuple[Event, "asyncio.Future[Receipt]"]]


def _awaited(
    flow: Callable[Concatenate[Core, Face, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[AsyncEngine, P], Coroutine[Any, Any, T]]:
    """Return an operation of the core as a method to be awaited."""

    async def method(engine: AsyncEngine, /, *arguments: P.args, **named: P.kwargs) -> T:
        return await flow(engine.core, engine, *arguments, **named)

    return like(flow, method, without="face")


class AsyncEngine:
    """Awaits what `Engine` does: decisions and feedback of many tasks, without a thread for each.

    timeout: seconds after which a caller is told that the store has not answered. What it was handed may be recorded
    nevertheless; the same feedback, or the same key, may be sent again. max_cost: the most that may be asked for at
    once, arms on offer × k, added up; None is any.

    >>> async def visit() -> str:
    ...     with Engine(["taste: 1..5"], seed=1) as engine:
    ...         engine.add_arm("A")
    ...         live = AsyncEngine(engine)
    ...         decision = await live.decide("ann")
    ...         return (await live.feedback(decision, {"taste": 4})).status
    >>> asyncio.run(visit())
    'recorded'
    """

    def __init__(self, engine: Engine, timeout: float = 10.0, max_cost: int | None = None) -> None:
        self.engine = engine
        self.core = engine.core
        self._store = engine.store
        self._decider = engine.core.decider
        self._timeout = timeout
        self._max_cost = max_cost
        self._waiting: Waiting = []
        self._asked: list[tuple[Request, asyncio.Future[DecisionMade]]] = []
        self._asking: asyncio.Task[None] | None = None
        # The policies' scratch is one, so that a second thread would only wait for the first.
        self._thread = ThreadPoolExecutor(1, "pamo-decider") if self._store.remote else None

    decide = _awaited(Core.decide)
    decide_many = _awaited(Core.decide_many)
    feedback = _awaited(Core.feedback)
    feedback_many = _awaited(Core.feedback_many)
    add_arm = _awaited(Core.add_arm)
    add_arms = _awaited(Core.add_arms)
    retire_arm = _awaited(Core.retire_arm)
    declare_features = _awaited(Core.declare_features)
    start_experiment = _awaited(Core.start_experiment)
    end_experiment = _awaited(Core.end_experiment)
    erase_user = _awaited(Core.erase_user)

    # How it waits for the store

    async def choose(self, request: Request) -> DecisionMade:
        """Decide: at once, or where users' sums come over a network, together with all who ask meanwhile."""
        if request.k != 1:
            self._check_cost([request])
        if self._thread is None:
            return self._decider.choose(
                request.user, request.arms, request.preference, request.k, request.key, request.features, request.choice
            )
        return await self._ask(request)

    async def choose_many(self, requests: Sequence[Request]) -> list[DecisionMade]:
        """Decide for many: for some at a time, so that others need not wait until all are done."""
        self._check_cost(requests)
        made: list[DecisionMade] = []
        time, turn = asyncio.get_running_loop().time, TURN if self._thread is None else REMOTE_TURN
        begun, size = time(), FIRST if self._thread is None else MOST
        while True:
            some, since = requests[len(made) : len(made) + size], time()
            made += await self.read(functools.partial(self._decider.choose_many, some))
            if len(made) == len(requests):
                return made
            now = time()
            if now - begun > self._timeout:
                raise StoreError(f"this takes more than {self._timeout:g} s, and nothing is decided: ask for less")
            size = size * 2 if now - since < turn / 2 else max(1, size // 2) if now - since > turn else size
            await asyncio.sleep(0)

    def _check_cost(self, requests: Sequence[Request]) -> None:
        if self._max_cost is None:
            return
        for one in requests:
            check_k(one.k)
        cost = self._decider.cost(requests)
        if cost > self._max_cost:
            raise InputError(
                f"expected arms on offer × k, over all decisions, of at most {self._max_cost}, got {cost}: "
                "ask for less at once",
                "k" if len(requests) == 1 else "requests",
            )

    async def read(self, work: Callable[[], T], *, journal: bool = False) -> T:
        """Read in a thread what may take its time; sums that are in memory are read at once."""
        if self._thread is None and not journal:
            return work()
        return await self._in_time(asyncio.get_running_loop().run_in_executor(self._thread, work))

    def record(self, event: Event) -> asyncio.Future[Receipt]:
        """Hand in one event, together with all others of this turn of the loop."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._turn, loop)
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

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self._waiting = self._waiting, []
        self._hand_in(loop, batch)

    def _hand_in(self, loop: asyncio.AbstractEventLoop, batch: Waiting) -> None:
        try:
            done = self._store.submit_many([event for event, _ in batch])
        except InputError as error:
            if len(batch) == 1:
                _fail(batch, error)
                return
            for one in batch:  # one of them is wrong, and the others should not suffer for it
                self._hand_in(loop, [one])
        except Exception as error:
            _fail(batch, error)
        else:
            self._watch(loop, batch, done)

    def _watch(self, loop: asyncio.AbstractEventLoop, batch: Waiting, done: Future[list[Receipt]]) -> None:
        if done.done():
            _hand_out(batch, None, done)
            return
        timer = loop.call_later(self._timeout, lambda: _fail(batch, self._late()))

        def wake(done: Future[list[Receipt]]) -> None:  # called by the store's thread
            if not loop.is_closed():
                loop.call_soon_threadsafe(_hand_out, batch, timer, done)

        done.add_done_callback(wake)

    async def _in_time(self, work: asyncio.Future[T]) -> T:
        try:
            return await asyncio.wait_for(work, self._timeout)
        except TimeoutError:
            raise self._late() from None

    def _late(self) -> StoreError:
        return StoreError(
            f"the store has not answered for {self._timeout:g} s, and nothing is acknowledged: send the same again"
        )

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
            work = functools.partial(_choose, self._decider, [request for request, _ in batch])
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


def _choose(decider: Decider, requests: Sequence[Request]) -> Sequence[DecisionMade | InputError]:
    """Decide for all; where one is wrong, for each by itself, so that only that one fails."""
    try:
        return decider.choose_many(requests)
    except InputError as error:
        if len(requests) == 1:
            return [error]
        return [found for one in requests for found in _choose(decider, [one])]


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
