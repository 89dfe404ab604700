"""The live stream: server-sent events, ten a second at most, however many decisions there are.

Decisions between two updates are counted, and the last few of them shown. A listener who is slow misses updates, and is
told so; nobody else notices.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from operator import sub

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from pamo.contract.answers import StreamDecision, StreamUpdate
from pamo.service.activity import DECISIONS, Activity
from pamo.service.problems import Problem
from pamo.service.schemas import encode

PERIOD = 0.1
"""Seconds between updates."""
SHOWN = 10
"""Decisions that an update shows at most: the last ones."""
WAITING = 20
"""Updates that wait for a listener before the oldest are dropped."""
QUIET = 10.0
"""Seconds without an update after which a sign of life is sent, so that who has gone is noticed."""
LISTENERS = 100
"""How many may listen at once."""


class Listener:
    """What waits for one listener."""

    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque()
        self.woken = asyncio.Event()
        self.missed = 0

    def push(self, message: bytes) -> None:
        """Add an update; where too many wait, the oldest is missed."""
        if len(self.waiting) >= WAITING:
            self.waiting.popleft()
            self.missed += 1
        self.waiting.append(message)
        self.woken.set()


class Stream:
    """Tells all who listen what is decided."""

    def __init__(self, activity: Activity) -> None:
        self._activity = activity
        self._listeners: set[Listener] = set()
        self._ticking: asyncio.Task[None] | None = None
        self._closed = False
        self.longest = 3600.0
        """Seconds after which a listener has to ask anew, whatever was asked for."""

    def __len__(self) -> int:
        return len(self._listeners)

    def close(self) -> None:
        """Let all listeners go, and take no more."""
        self._closed = True
        for listener in self._listeners:
            listener.woken.set()

    def join(self) -> Listener:
        """Return a new listener, who counts until `leave`."""
        if self._closed:
            raise Problem(503, "the service is about to stop", headers={"retry-after": "5"})
        if len(self._listeners) >= LISTENERS:
            raise Problem(503, f"{LISTENERS} are listening already", headers={"retry-after": "10"})
        listener = Listener()
        self._listeners.add(listener)
        if self._ticking is None:
            self._ticking = asyncio.get_running_loop().create_task(self._tick(self._activity.totals.copy()))
        return listener

    async def events(self, listener: Listener, seconds: float) -> AsyncIterator[bytes]:
        """Yield a listener's events, for so many seconds at most."""
        ends = asyncio.get_running_loop().time() + min(seconds, self.longest)
        yield self._update((0, 0, 0), 0)
        while not self._closed:
            left = ends - asyncio.get_running_loop().time()
            if left <= 0.0:
                return
            try:
                await asyncio.wait_for(listener.woken.wait(), min(QUIET, left))
            except TimeoutError:
                yield b": quiet\n\n"
                continue
            listener.woken.clear()
            if listener.missed:
                yield _event("missed", encode({"updates": listener.missed}))
                listener.missed = 0
            while listener.waiting and not self._closed:
                yield listener.waiting.popleft()

    def forget(self) -> None:
        """Send nobody what still waits: somebody in it was erased."""
        for listener in self._listeners:
            listener.missed += len(listener.waiting)
            listener.waiting.clear()

    def leave(self, listener: Listener) -> None:
        """Count a listener no longer."""
        self._listeners.discard(listener)
        if not self._listeners and self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None

    async def _tick(self, before: list[float]) -> None:
        while True:
            await asyncio.sleep(PERIOD)
            now = self._activity.totals.copy()
            if now != before:
                message = self._update(map(sub, now, before), before[DECISIONS])
                before = now
                for listener in self._listeners:
                    listener.push(message)

    def _update(self, counts: Iterable[float], after: float) -> bytes:
        """Return the event that tells what happened, with the last decisions after the first so many."""
        shown = [
            StreamDecision(made.id, made.user, made.arm, self._activity.name_of(made.arm), at, explored)
            for _, at, made, explored in self._activity.recent(after, SHOWN)
        ]
        decisions, explored, feedbacks = map(int, counts)
        return _event("update", encode(StreamUpdate(decisions, explored, feedbacks, shown)))


def _event(kind: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), data)


class EventStream(StreamingResponse):
    """A listener's events as a response, until one side has enough; to HEAD, only its headers."""

    def __init__(self, stream: Stream, seconds: float) -> None:
        self._stream, self._listener = stream, stream.join()
        super().__init__(
            stream.events(self._listener, seconds),
            media_type="text/event-stream",
            headers={"x-accel-buffering": "no"},  # a proxy is not to save them up
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            if scope["method"] == "HEAD":
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                await send({"type": "http.response.body", "body": b""})
            else:
                await super().__call__(scope, receive, send)
        finally:
            self._stream.leave(self._listener)
