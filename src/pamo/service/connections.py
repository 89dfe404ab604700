"""Connections: how many there may be, how long one may keep the service waiting, and how much it may say."""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import logging
import resource
import typing
from collections import Counter
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from pamo.service.settings import Settings

log = logging.getLogger("pamo.service")

LONGEST_HEADERS = 65_536
"""Bytes of headers, or of trailers, after which the rest is not waited for; the read in which they begin is free."""
FRAMING = 16
"""Bytes that may stand around a byte of a body: chunks of one byte each take five."""
LEAST_TAKEN = 65_536
"""Bytes of a long answer that have to be taken within the time that a request has."""
MOST_AHEAD = 64
"""Requests that may come on a connection before the one under way is answered; more in one read are a malformed one."""
AT_ONCE, PAUSE = 50, 0.005
"""Connections that are looked at in one go, and seconds until the next."""
OTHER_FILES = 200
"""Files that are left for the store, the log and the libraries."""
SAY_EVERY = 10.0
"""Seconds between two lines of the log about being full."""


class Guest(typing.Protocol):
    """A connection that the doors are kept for."""

    loop: asyncio.AbstractEventLoop
    client: tuple[str, int] | None

    def look(self, now: float) -> None:
        """Hang up if it has been the other side's turn for too long."""


class Doors:
    """Counts the connections, and goes round to see which of them have kept the service waiting for too long."""

    def __init__(self, settings: Settings) -> None:
        self.patience, self.idle = settings.timeout_seconds, settings.idle_seconds
        self.largest_body = settings.max_body_bytes
        self._most, self._most_of_one = _room(settings.max_connections), settings.max_connections_per_address
        self._inside: dict[Guest, str] = {}
        self._of_one: Counter[str] = Counter()
        self._turned_away, self._said_at = 0, float("-inf")
        self._pause = min(1.0, self.patience / 5, self.idle / 5)

    def enter(self, one: Guest) -> bool:
        """Count a connection; tell whether there is room for it."""
        home = "" if one.client is None else _home(one.client[0])
        if not self._inside:
            one.loop.call_later(self._pause, self._go_round, one.loop, [])
        self._inside[one] = home
        self._of_one[home] += 1
        if len(self._inside) <= self._most and self._of_one[home] <= self._most_of_one:
            return True
        self._turned_away += 1
        now = one.loop.time()
        if now - self._said_at >= SAY_EVERY:
            self._said_at = now
            log.warning(
                "full: %d connections of at most %d (max_connections), %d of them from %s, of at most %d from one "
                "address (max_connections_per_address); turned away since the last such line: %d",
                *(len(self._inside) - 1, self._most, self._of_one[home] - 1, home, self._most_of_one),
                self._turned_away,
            )
            self._turned_away = 0
        return False

    def leave(self, one: Guest) -> None:
        """Count a connection no longer."""
        home = self._inside.pop(one, None)
        if home is not None:
            self._of_one[home] -= 1
            if not self._of_one[home]:
                del self._of_one[home]

    def _go_round(self, loop: asyncio.AbstractEventLoop, left: list[Guest]) -> None:
        """Look at some, so that requests are not held up by a thousand that are to be hung up on at once."""
        now, left = loop.time(), left or list(self._inside)
        for one in left[-AT_ONCE:]:
            if one in self._inside:
                one.look(now)
        del left[-AT_ONCE:]
        if self._inside:
            loop.call_later(PAUSE if left else self._pause, self._go_round, loop, left)


class Cycle(RequestResponseCycle):
    """One request and its answer, as uvicorn has them, with a short way for what is there as a whole.

    An answer goes by one write, which is one system call, and is not taken apart and checked again.
    """

    def whole_body(self) -> bytes | None:
        """Return the body, if all of it has come; whoever sent it may have gone since."""
        if self.more_body or self.disconnected or self.response_complete:
            return None
        body, self.body = bytes(self.body), bytearray()
        self.message_event.clear()
        return body

    def answer(self, status: int, headers: bytes, body: bytes) -> bool:
        """Send an answer, if the short way will do: to whoever takes what is sent, and without a line of the log."""
        if self.response_started or self.access_log or self.flow.write_paused or self.scope["method"] == "HEAD":
            return False
        if not self.disconnected:
            parts = [STATUS_LINE[status], *(b"%s: %s\r\n" % header for header in self.default_headers), headers]
            if status != 204:
                parts.append(b"content-length: %d\r\n" % len(body))
            if not self.keep_alive:
                parts.append(b"connection: close\r\n")
            self.response_started = self.response_complete = True
            self.transport.write(b"".join((*parts, b"\r\n", body)))
            self.message_event.set()
            if not self.keep_alive:
                self.transport.close()
            self.on_response()
        return True


class Protocol(HttpToolsProtocol):
    """Uvicorn's protocol, which also hangs up on who takes too long, or too many words, and has a short way to answer.

    Whenever it is the other side's turn (to say what is wanted, to say the rest of what was answered already, to take
    an answer, to ask again) there is an end to the waiting. While the application is at work, that has its own.
    """

    doors: Doors
    _since = 0.0  # when the present waiting began
    _in_head = True  # from the beginning of a request, or before the first, to the end of its headers
    _in_message = True  # the same, to the end of its body and trailers
    _said = 0  # bytes of the headers, or of all that comes after them
    _body = 0  # of these, bytes of the body
    _at_work: Any = None  # the request that is being answered: others may wait behind it
    _unsent = 0  # bytes of an answer that the other side did not take yet

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete  # type: ignore[redundant-expr]  # None at first

    def connection_made(self, transport: Any) -> None:
        """Let a connection in, if there is room."""
        super().connection_made(transport)
        self._since = self.loop.time()
        if not self.doors.enter(self):
            self._hang_up(b"503 Service Unavailable\r\nretry-after: 10")

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it no longer, and have nothing more written to it."""
        self.doors.leave(self)
        self.pipeline.clear()
        if self._at_work is not None:  # of which uvicorn tells only the one that was asked for last
            self._at_work.disconnected = True
            self._at_work.message_event.set()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._at_work = cycle
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        """Read what has come, as long as there is an end to it."""
        if self.transport.is_closing():
            return
        self._said += len(data)
        super().data_received(data)
        if self._said > LONGEST_HEADERS + (1 + FRAMING) * self._body:
            heard_out = not self._answering if self._in_head else not self.cycle.response_started
            self._hang_up(b"431 Request Header Fields Too Large" if heard_out else None)
        elif self._body > self.doors.largest_body and not self._answering:
            self._hang_up()

    def on_message_begin(self) -> None:
        """Give each request its time."""
        if len(self.pipeline) >= MOST_AHEAD:
            raise OverflowError  # which the parser takes for a request that is no HTTP
        self._since = self.loop.time()
        self._in_head = self._in_message = True
        self._said = self._body = 0
        self.url, self.headers, self.expect_100_continue = b"", [], False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; a trailer, which comes when it is decided already who asks for what, is none."""
        if self._in_head:
            name = name.lower()
            if name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Count what comes after the headers anew, and have the request answered, now or in its turn."""
        self._in_head = False
        self._said = 0
        version, url = self.parser.get_http_version(), httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        self.scope = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,  # type: ignore[typeddict-item]  # there is one as soon as there is a connection
            "method": self.parser.get_method().decode("ascii"),
            "root_path": "",
            "path": unquote(path) if "%" in path else path,
            "raw_path": url.path,
            "query_string": url.query or b"",
            "headers": self.headers,
            "state": self.app_state.copy(),
        }
        ahead: Any = self.cycle
        self.cycle = Cycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        if ahead is None or ahead.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def on_body(self, body: bytes) -> None:
        """Count the body's bytes."""
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that all of a request has come."""
        self._in_message = False
        self._said = self._body = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the rest of what was answered already, or for the next request."""
        self._since = self.loop.time()
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())

    def pause_writing(self) -> None:
        """Wait for the other side to take what it asked for."""
        self._since, self._unsent = self.loop.time(), self.transport.get_write_buffer_size()
        super().pause_writing()

    def look(self, now: float) -> None:
        """Hang up if it has been the other side's turn for too long."""
        closing, paused = self.transport.is_closing(), self.flow.write_paused
        if paused:
            unsent = self.transport.get_write_buffer_size()
            if unsent <= self._unsent - LEAST_TAKEN:
                self._since, self._unsent = now, unsent
        elif self._answering and not closing:
            return
        idle = not (closing or paused or self._in_message)
        if now - self._since < (self.doors.idle if idle else self.doors.patience):
            return
        if closing or paused:
            self.transport.abort()  # to close it would be to wait until all is taken
        else:
            self._hang_up()

    def _hang_up(self, answer: bytes | None = None) -> None:
        if not self.transport.is_closing():
            self._since = self.loop.time()
            if answer is not None:
                self.transport.write(b"HTTP/1.1 " + answer + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            self.transport.close()


def protocol_for(settings: Settings) -> type[Protocol]:
    """Return the protocol of a service with these settings."""
    return type("Protocol", (Protocol,), {"doors": Doors(settings)})


def _room(wanted: int) -> int:
    """Return how many connections there may be, once as many files as that takes are asked of the system."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = wanted + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < files:
        soft = files if hard == resource.RLIM_INFINITY else min(files, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if soft < files:
            log.warning(
                "max_connections is %d here rather than %d: of files there may be %d", soft - OTHER_FILES, wanted, soft
            )
            return max(1, soft - OTHER_FILES)
    return wanted


@functools.lru_cache(1024)
def _home(address: str) -> str:
    """Return what counts as one address: of IPv6 the network that one machine can take all addresses of.

    >>> _home("192.0.2.1"), _home("::ffff:192.0.2.1"), _home("2001:db8::1:2:3:4")
    ('192.0.2.1', '::ffff:192.0.2.1', '2001:db8::/64')
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv4Address) or ip.ipv4_mapped is not None:
        return address
    return str(ipaddress.IPv6Network((int(ip) >> 64 << 64, 64)))
