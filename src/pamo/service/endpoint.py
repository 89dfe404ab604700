"""From an HTTP request to a handler and back: limits, keys, bodies, errors and measures, alike for all operations."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pamo.contract.limits import check_text
from pamo.errors import PamoError
from pamo.service.api import Api
from pamo.service.connections import Cycle
from pamo.service.operations import Arguments, Operation
from pamo.service.problems import MEDIA_TYPE, Problem, misread, problem_of
from pamo.service.schemas import encode
from pamo.service.settings import is_loopback

log = logging.getLogger("pamo.service")

COMMON = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
"""Headers of every answer."""

_JSON = b"application/json"


class Headers:
    """Headers of an answer, as ASGI has them and as they are sent. keep: whether they leave the connection open."""

    def __init__(self, pairs: list[tuple[bytes, bytes]]) -> None:
        self.pairs, self.text = pairs, b"".join(b"%s: %s\r\n" % pair for pair in pairs)
        self.keep = not any(name == b"connection" for name, _ in pairs)


def _type(media: str) -> tuple[bytes, bytes]:
    return b"content-type", media.encode()


_PROBLEM = [_type(MEDIA_TYPE), *COMMON]
_REFUSED = Headers(_PROBLEM)


class Endpoint:
    """An operation as an ASGI application."""

    def __init__(self, api: Api, operation: Operation) -> None:
        self._api, self._operation = api, operation
        self._decode = None if operation.body is None else msgspec.json.Decoder(operation.body).decode
        self._answered = api.metrics.of(operation.name).add
        self._success = Headers([*([] if operation.answer is None else [_type(operation.media)]), *COMMON])

    async def __call__(self, scope: Scope, receive: Receive, send: Send, ids: tuple[str, ...]) -> None:
        """Answer a request."""
        api, started = self._api, time.perf_counter()
        api.in_flight += 1
        try:
            answer = await self._answer(scope, receive, ids)
            if isinstance(answer, Response):
                status = answer.status_code
                answer.raw_headers.extend(COMMON)
                await answer(scope, receive, send)
            else:
                status = self._operation.status
                await _send(send, status, self._success, b"" if status == 204 else encode(answer))
        except Exception as error:
            problem = self._problem(error)
            status = problem.status
            await refuse(send, problem)
        finally:
            api.in_flight -= 1
        self._answered(status, time.perf_counter() - started)

    def _problem(self, error: Exception) -> Problem:
        """Return what an error is to the caller; what nobody expected goes to the log."""
        if isinstance(error, Problem):
            return error
        if isinstance(error, PamoError):
            problem = problem_of(error)
            if problem.status >= 500:
                log.error("%s: %s", self._operation.name, error)
            return problem
        log.error("%s %s failed", self._operation.method, self._operation.path, exc_info=error)
        return Problem(500, "this failed, and the log here says why; nothing was acknowledged")

    async def _answer(self, scope: Scope, receive: Receive, ids: tuple[str, ...]) -> Any:
        api, operation = self._api, self._operation
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if operation.roles is not None:
            self._admit(scope, headers)
            if api.in_flight > api.settings.max_waiting:
                raise Problem(503, "too many requests are under way: try again soon", headers={"retry-after": "1"})
        for one in ids:
            check_text(one, "an id", "id")
        asked = Arguments(ids)
        if self._decode is not None:
            cycle = getattr(receive, "__self__", None)
            body = cycle.whole_body() if type(cycle) is Cycle else None
            if body is None:
                body = await self._body(receive, headers.get(b"content-length"))
            elif len(body) > api.settings.max_body_bytes:
                raise _too_large(api.settings.max_body_bytes)
            if body or not operation.body_optional:
                if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != _JSON:
                    raise Problem(415, "expected content-type: application/json (curl sends it with --json)")
                asked.body = self._read(body)
        if operation.query is not None:
            asked.query = _query(operation.query, scope["query_string"])
        if operation.repeatable and b"idempotency-key" in headers:
            asked.key = _repeat_key(headers[b"idempotency-key"])
        return await operation.handler(api, asked)

    def _read(self, body: bytes) -> Any:
        assert self._decode is not None
        try:
            try:
                return self._decode(body)
            except msgspec.ValidationError as error:
                again = _read_whole(body, self._operation.body)
                if again is None:
                    raise misread(error, self._operation.body) from None
                return again
        except msgspec.DecodeError as error:
            raise misread(error, self._operation.body) from None
        except UnicodeDecodeError:
            raise Problem(400, "expected a body in JSON: it is not in UTF-8") from None
        except RecursionError:
            raise Problem(400, "expected a body in JSON that is not nested so deeply") from None

    def _admit(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Let the request through if its key may, and has not asked too often."""
        api, roles = self._api, self._operation.roles or ()
        if api.keyring.empty:
            # Without keys only this machine is to be served; a page in its browser is not, whatever name it has
            # had point here.
            host = headers.get(b"host")
            if host is not None and not _is_loopback(host):
                raise Problem(
                    403, f"without keys this answers to localhost only, and was asked as {host.decode('latin-1')[:80]}"
                )
            caller = (scope.get("client") or ("local",))[0]
        else:
            found = api.keyring.roles_for(headers.get(b"authorization", b"").decode("latin-1"))
            if found is None:
                what = "this key is not known" if b"authorization" in headers else "a key is needed"
                raise Problem(
                    401, f"{what}: send authorization: Bearer KEY", headers={"www-authenticate": 'Bearer realm="pamo"'}
                )
            caller, has = found
            if roles and not any(role in has for role in roles):
                wanted = " or ".join(roles)
                raise Problem(403, f"the key {caller} may not do this: it takes the role {wanted}")
        if api.limiter is not None:
            wait = api.limiter.wait_for(caller)
            if wait > 0.0:
                raise Problem(
                    429,
                    f"more than {api.settings.rate:g} requests a second: try again in {wait:.1f} s",
                    headers={"retry-after": str(max(1, round(wait + 0.5)))},
                )

    async def _body(self, receive: Receive, length: bytes | None) -> bytes:
        settings = self._api.settings
        limit = settings.max_body_bytes
        if length is not None and length.isdigit() and int(length) > limit:
            raise _too_large(limit)
        # What asyncio.timeout does, in a fifth of the time: nearly every body is there already.
        task, late = asyncio.current_task(), False

        def give_up() -> None:
            nonlocal late
            if task is not None:
                late = task.cancel()

        timer = asyncio.get_running_loop().call_later(settings.timeout_seconds, give_up)
        try:
            message = await receive()
            body = message.get("body", b"")
            while message.get("more_body", False):
                if len(body) > limit:
                    raise _too_large(limit)
                message = await receive()
                body += message.get("body", b"")
        except asyncio.CancelledError:
            if not late or (task is not None and task.uncancel() > 0):
                raise
            raise Problem(
                408, f"the body did not arrive within {settings.timeout_seconds:g} s", headers={"connection": "close"}
            ) from None
        finally:
            timer.cancel()
        if len(body) > limit:
            raise _too_large(limit)
        if message["type"] == "http.disconnect":
            raise Problem(400, "the connection was closed before the body was complete")
        return bytes(body)


def _read_whole(body: bytes, kind: Any) -> Any:
    """Return a body with 2.0 read as 2, which is the same number in JSON; None if it is wrong even so."""
    try:
        return msgspec.convert(_whole(msgspec.json.decode(body)), kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(part) for name, part in value.items()}
    return [_whole(part) for part in value] if isinstance(value, list) else value


def _too_large(limit: int) -> Problem:
    return Problem(413, f"expected a body of at most {limit} bytes", headers={"connection": "close"})


def _repeat_key(value: bytes) -> str:
    text = value.decode("latin-1")
    if not text or not text.isascii() or not text.isprintable() or len(text) > 256:
        raise Problem(422, "expected an idempotency-key of 1 to 256 visible ASCII characters", "idempotency-key")
    return text


def _query(kind: Any, text: bytes) -> Any:
    given: dict[str, str] = {}
    for name, value in parse_qsl(text.decode("latin-1"), keep_blank_values=True):
        if name in given:
            raise Problem(422, f"expected {name:.80} once in the query", name[:80])
        given[name] = value
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise misread(error, kind) from None


@functools.lru_cache(64)
def _is_loopback(host: bytes) -> bool:
    name = host.decode("latin-1").strip().lower()
    name = name[1:].partition("]")[0] if name.startswith("[") else name.rpartition(":")[0] or name
    return name.endswith(".localhost") or is_loopback(name)


async def refuse(send: Send, problem: Problem) -> None:
    """Answer with a problem."""
    more = [(name.encode(), value.encode("latin-1", "replace")) for name, value in problem.headers.items()]
    headers = Headers([*_PROBLEM, *more]) if more else _REFUSED
    await _send(send, problem.status, headers, encode(problem.body()))


async def _send(send: Send, status: int, headers: Headers, body: bytes) -> None:
    cycle = getattr(send, "__self__", None)
    if type(cycle) is Cycle and headers.keep and cycle.answer(status, headers.text, body):
        return
    start: MutableMapping[str, Any] = {"type": "http.response.start", "status": status}
    start["headers"] = headers.pairs if status == 204 else [*headers.pairs, (b"content-length", b"%d" % len(body))]
    await send(start)
    await send({"type": "http.response.body", "body": body})
