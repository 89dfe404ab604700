"""The live stream: server-sent events, ten a second at most, however many decisions there are.

Decisions between two updates are counted, and the last few of them shown. A reader who is slow misses updates, and is
told so; nobody else notices.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from pamo.contract.answers import Decision, StreamDecision, StreamUpdate
from pamo.service.activity import Activity
from pamo.service.problems import Problem
from pamo.service.schemas import encode

PERIOD = 0.1
"""Seconds between updates."""
SHOWN = 10
"""Decisions that an update shows at most: the last ones."""
WAITING = 20
"""Updates that wait for a reader before the oldest are dropped."""
QUIET = 10.0
"""Seconds without an update after which a sign of life is sent, so that who has gone is noticed."""
READERS = 100
"""How many may listen at once."""


class Reader:
    """What waits for one reader."""

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
        self._readers: set[Reader] = set()
        self._ticking: asyncio.Task[None] | None = None
        self._closed = False
        self.longest = 3600.0
        """Seconds after which a reader has to ask anew, whatever was asked for."""
        self._clear()

    def _clear(self) -> None:
        self._decisions = self._explored = self._feedbacks = 0
        self._last: deque[tuple[float, Decision]] = deque(maxlen=SHOWN)

    def __len__(self) -> int:
        return len(self._readers)

    def close(self) -> None:
        """Let all readers go, and take no more."""
        self._closed = True
        for reader in self._readers:
            reader.woken.set()

    def join(self) -> Reader:
        """Return a new reader, who counts until `leave`."""
        if self._closed:
            raise Problem(503, "the service is about to stop", headers={"retry-after": "5"})
        if len(self._readers) >= READERS:
            raise Problem(503, f"{READERS} are listening already", headers={"retry-after": "10"})
        reader = Reader()
        self._readers.add(reader)
        self._listen()
        return reader

    async def events(self, reader: Reader, seconds: float) -> AsyncIterator[bytes]:
        """Yield a reader's events, for so many seconds at most."""
        ends = asyncio.get_running_loop().time() + min(seconds, self.longest)
        yield _event("update", encode(self._update(list(self._activity.recent)[-SHOWN:], 0, 0, 0)))
        while not self._closed:
            left = ends - asyncio.get_running_loop().time()
            if left <= 0.0:
                return
            try:
                await asyncio.wait_for(reader.woken.wait(), min(QUIET, left))
            except TimeoutError:
                yield b": quiet\n\n"
                continue
            reader.woken.clear()
            if reader.missed:
                yield _event("missed", encode({"updates": reader.missed}))
                reader.missed = 0
            while reader.waiting and not self._closed:
                yield reader.waiting.popleft()

    def leave(self, reader: Reader) -> None:
        """Count a reader no longer."""
        self._readers.discard(reader)
        if not self._readers:
            self._activity.made = self._activity.fed_back = None
            if self._ticking is not None:
                self._ticking.cancel()
                self._ticking = None

    def _listen(self) -> None:
        self._activity.made, self._activity.fed_back = self._note, self._note_feedback
        if self._ticking is None:
            self._clear()
            self._ticking = asyncio.get_running_loop().create_task(self._tick())

    def _note(self, now: float, decision: Decision) -> None:
        self._decisions += 1
        self._explored += _explored(decision)
        self._last.append((now, decision))

    def _note_feedback(self) -> None:
        self._feedbacks += 1

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(PERIOD)
            if self._decisions or self._feedbacks:
                update = self._update(list(self._last), self._decisions, self._explored, self._feedbacks)
                self._clear()
                message = _event("update", encode(update))
                for reader in self._readers:
                    reader.push(message)

    def _update(
        self, decisions: list[tuple[float, Decision]], number: int, explored: int, feedbacks: int
    ) -> StreamUpdate:
        shown = [
            StreamDecision(one.id, one.user, one.arm, self._activity.name_of(one.arm), at, bool(_explored(one)))
            for at, one in decisions
        ]
        return StreamUpdate(number, explored, feedbacks, shown)


def _explored(decision: Decision) -> int:
    kept = decision.details
    return int(kept is not None and ("without_exploration" in kept or kept["reward_bonus"] is None))


def _event(kind: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), data)


class EventStream(StreamingResponse):
    """A reader's events as a response, until one side has enough; to HEAD, only its headers."""

    def __init__(self, stream: Stream, seconds: float) -> None:
        self._stream, self._reader = stream, stream.join()
        super().__init__(
            stream.events(self._reader, seconds),
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
            self._stream.leave(self._reader)
