"""Which answers are worth another attempt, after what pause, and what is raised when there is none left."""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from pamo.client.calls import Call
from pamo.client.problems import failure, silence, unreadable

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

Outcome: TypeAlias = "httpx.Response | httpx.RequestError"
"""What comes of an attempt: an answer, or none."""

AGAIN = frozenset({429, 502, 503, 504})
"""The answers that may be others a moment later."""


@dataclass(slots=True, frozen=True)
class Patience:
    """How often, and how soon, a call is tried again.

    retries: attempts after the first. backoff: seconds before the first of them, twice as many before each next one,
    half of it by chance, so that many clients do not come back at the same moment. longest_pause: seconds that no
    pause exceeds; a service that asks for a longer one is not waited for.
    """

    retries: int
    backoff: float
    longest_pause: float
    chance: random.Random = field(default_factory=random.Random)

    def pause(self, attempts: int, asked: float | None) -> float | None:
        """Return the seconds before the next attempt, None if there is to be none.

        attempts: how many were made. asked: the seconds that the service asked to wait.
        """
        if attempts > self.retries or (asked is not None and asked > self.longest_pause):
            return None
        doubled = 2.0 ** min(attempts - 1, 60)  # more would be too large a number, and too long a pause
        longest = min(self.backoff * doubled, self.longest_pause)
        if asked is None:
            return longest * self.chance.uniform(0.5, 1.0)
        return min(asked + longest * self.chance.uniform(0.0, 0.5), self.longest_pause)


class Attempts(Generic[T]):
    """The attempts at one call."""

    def __init__(self, call: Call[T], url: str, patience: Patience) -> None:
        self._call = call
        self._url = url
        self._patience = patience
        self._made = 0
        self._last: Outcome | None = None

    def pause_after(self, outcome: Outcome) -> float | None:
        """Take what came of an attempt; return the seconds before the next one, None if this was the last."""
        self._made += 1
        self._last = outcome
        if isinstance(outcome, Exception):
            return self._patience.pause(self._made, None)
        if outcome.status_code not in AGAIN:
            return None
        return self._patience.pause(self._made, asked_pause(outcome.headers.get("Retry-After")))

    def answer(self) -> T:
        """Return what the last attempt brought, or raise the error that it stands for."""
        last = self._last
        if last is None or isinstance(last, Exception):
            raise silence(self._url, self._made, last) from last
        if not last.is_success:
            raise failure(self._url, self._made, last)
        try:
            return self._call.read(last.content)
        except ValueError as error:
            raise unreadable(self._url, self._call.path, error) from error


def asked_pause(header: str | None) -> float | None:
    """Return the seconds to wait that a Retry-After header asks for, None if it asks for none.

    >>> asked_pause("2"), asked_pause("Thu, 01 Jan 1970 00:00:00 GMT"), asked_pause("soon"), asked_pause(None)
    (2.0, 0.0, None, None)
    """
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except ValueError:
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None
