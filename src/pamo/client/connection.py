"""What both clients know of the service: where it is, the key, and how patient to be."""

from __future__ import annotations

import os
import random
from typing import Any, TypeVar

from pamo._version import __version__
from pamo.client.calls import Call
from pamo.client.retrying import Attempts, Outcome, Patience
from pamo.errors import InputError, ServiceError, missing_extra

T = TypeVar("T")

HERE = "http://127.0.0.1:8000"
"""Where a service is that was started without saying where."""


class Connection:
    """The service as a client sees it; the clients add how they send and wait."""

    def __init__(
        self,
        url: str | None,
        key: str | None,
        timeout: float,
        retries: int,
        backoff: float,
        longest_pause: float,
        chance: random.Random | None,
    ) -> None:
        _check_packages()
        import httpx

        self.url = _checked_url(os.environ.get("PAMO_URL") or HERE if url is None else url)
        self._timeout = _checked_seconds(timeout, "timeout", above_zero=True)
        if type(retries) is not int or retries < 0:
            raise InputError(f"expected retries to be a whole number from 0 on, got {retries!r}")
        backoff = _checked_seconds(backoff, "backoff")
        longest_pause = _checked_seconds(longest_pause, "longest_pause")
        self._patience = Patience(retries, backoff, longest_pause, random.Random() if chance is None else chance)
        self._headers = {"Accept": "application/json", "User-Agent": f"pamo/{__version__}"}
        key = os.environ.get("PAMO_KEY") or None if key is None else key
        if key is not None:
            self._headers["Authorization"] = f"Bearer {_checked_key(key)}"
        self._no_answer = httpx.RequestError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def _request(self, call: Call[Any], *, closed: bool) -> dict[str, Any]:
        """Return what an HTTP client is to be asked for, unless it was closed."""
        if closed:
            raise ServiceError(f"this client of {self.url} was closed: make another")
        return {
            "method": call.method,
            "url": self.url + call.path,
            "content": call.content,
            "headers": call.headers,
        }

    def _attempts(self, call: Call[T]) -> Attempts[T]:
        return Attempts(call, self.url, self._patience)


def succeeded(outcome: Outcome) -> bool:
    """Tell whether an attempt brought the answer that was hoped for."""
    return not isinstance(outcome, Exception) and outcome.is_success


def _check_packages() -> None:
    try:
        import httpx  # noqa: F401  # only whether it is there
        import msgspec  # noqa: F401  # answers are read by it; better said now than with the first answer
    except ImportError as error:
        raise missing_extra("a client of the service", error.name or "httpx", "client") from error


def _checked_url(given: Any) -> str:
    import httpx

    wanted = f"expected the service's URL, such as {HERE}"
    if not isinstance(given, str):
        raise InputError(f"{wanted}, got {given!r:.80}")
    try:
        url = httpx.URL(given)
    except httpx.InvalidURL as error:
        raise InputError(f"{wanted}, got {given!r:.80}: {error}") from None
    if url.userinfo:
        raise InputError(f"{wanted}, without a user or a password in it: give the key by key= or PAMO_KEY")
    if url.scheme not in ("http", "https") or not url.host or url.query or url.fragment or "%20" in url.host:
        raise InputError(f"{wanted}, got {given!r:.80}")
    return given.rstrip("/")


def _checked_key(given: Any) -> str:
    """Return an API key, or raise a sentence that does not tell it."""
    if not isinstance(given, str) or not given or not given.isascii() or not given.isprintable() or " " in given:
        raise InputError("expected the service's key as it was made, of printable characters without spaces")
    return given


def _checked_seconds(given: Any, what: str, *, above_zero: bool = False) -> float:
    number = isinstance(given, int | float) and not isinstance(given, bool)
    if not number or not (given > 0 if above_zero else given >= 0) or given > 1e6:
        least = "more than 0" if above_zero else "0 or more"
        raise InputError(f"expected {what} to be {least} seconds, and at most a million, got {given!r}")
    return float(given)
