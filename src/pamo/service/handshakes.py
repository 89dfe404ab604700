"""TLS handshakes: a connection counts, and has an end to its waiting, from its first byte on and not from HTTP's."""

from __future__ import annotations

import asyncio
import functools
import ssl
from typing import Any

import uvicorn

from pamo.service.connections import Protocol


class Handshake(asyncio.Protocol):
    """A connection until both sides agree on a key; from then on it is what `http` makes of it."""

    def __init__(self, http: type[Protocol], context: ssl.SSLContext, **options: Any) -> None:
        self._http = functools.partial(http, **options)
        self._context, self.doors = context, http.doors
        self.loop = asyncio.get_running_loop()
        self._early = bytearray()  # what came before it is known who reads it
        self.client: tuple[str, int] | None = None

    def connection_made(self, transport: Any) -> None:
        """Let a connection in, if there is room."""
        self._transport, self._since = transport, self.loop.time()
        peer = transport.get_extra_info("peername")
        self.client = None if peer is None else (str(peer[0]), int(peer[1]))
        self._shaking: asyncio.Task[None] | None = None
        if not self.doors.enter(self):
            transport.abort()  # before there is a key nothing can be said

    def data_received(self, data: bytes) -> None:
        """Begin with the first bytes: they, and no more, are read before TLS reads for itself.

        What comes later is from the other side of TLS: a request in the same packet as the end of the handshake.
        """
        self._early += data
        if self._shaking is None:
            self._transport.pause_reading()  # `start_tls` resumes it
            self._shaking = self.loop.create_task(self._shake_hands())

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it no longer."""
        self.doors.leave(self)

    def look(self, now: float) -> None:
        """Hang up if it takes too long."""
        if now - self._since > self.doors.patience:
            self._transport.abort()

    def _hand_over(self) -> None:
        """Give TLS, which has taken over by now, what was read before it did."""
        tls = self._transport.get_protocol()
        early = memoryview(bytes(self._early))
        self._early.clear()
        while early and tls is not self:
            buffer = memoryview(tls.get_buffer(len(early)))
            taken = min(len(buffer), len(early))
            buffer[:taken] = early[:taken]
            tls.buffer_updated(taken)
            early = early[taken:]

    async def _shake_hands(self) -> None:
        self.loop.call_soon(self._hand_over)  # after what `start_tls` does at once, and before it resumes the reading
        try:
            secure: Any = await self.loop.start_tls(self._transport, self, self._context, server_side=True)
        except (OSError, RuntimeError):  # this is no TLS, or they have gone
            secure = None
        self.doors.leave(self)
        if secure is None or secure.is_closing():
            self._transport.abort()
            return
        http = self._http()
        secure.set_protocol(http)
        http.connection_made(secure)
        if self._early:
            http.data_received(bytes(self._early))


def count_handshakes(config: uvicorn.Config) -> None:
    """Have a server that speaks TLS begin with the handshake itself; `config` is loaded."""
    if config.ssl is not None:
        http: Any = config.http_protocol_class
        config.http_protocol_class = functools.partial(Handshake, http, config.ssl)  # type: ignore[assignment]
        config.ssl = None
