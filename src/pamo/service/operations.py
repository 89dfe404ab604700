"""An operation of the API as data: its path, who may call it, what it takes and answers, and what does it.

One table of them drives the routing, the keys' roles, and the OpenAPI description.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pamo.service.keys import Role

if TYPE_CHECKING:
    from pamo.service.api import Api


@dataclass(slots=True)
class Call:
    """One request, as its handler sees it: the path's ids, the body, the query, and the Idempotency-Key."""

    ids: tuple[str, ...]
    body: Any = None
    query: Any = None
    key: str | None = None


Handler = Callable[["Api", Call], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Operation:
    """What can be asked. See `pamo.service.table` for all of them.

    path: with {id} where an id stands. roles: a key needs one of them; () is any key, None not even that. body, query:
    what is read; objectives: what in the query names an objective. answer: what is answered, with `status`. A handler
    may answer with a Response of its own, of this `media`. problems: the statuses it may refuse with, beyond those that
    every operation has.
    """

    method: str
    path: str
    name: str
    summary: str
    handler: Handler
    answer: Any = None
    status: int = 200
    roles: tuple[Role, ...] | None = ()
    body: Any = None
    body_optional: bool = False
    query: Any = None
    objectives: tuple[str, ...] = ()
    repeatable: bool = False
    problems: tuple[int, ...] = ()
    media: str = "application/json"
    tag: str = "service"
    segments: tuple[str | None, ...] = field(init=False)

    def __post_init__(self) -> None:
        parts = self.path.strip("/").split("/")
        object.__setattr__(self, "segments", tuple(None if part.startswith("{") else part for part in parts))
