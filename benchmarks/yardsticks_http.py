"""The yardstick of the service: a bare Starlette that decodes and encodes with msgspec, and does nothing else.

`python -m benchmarks.yardsticks_http` serves it on a free port, with the loop, the parser and the log of `pamo serve`.
"""

from __future__ import annotations

import socket

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


class Given(msgspec.Struct):
    """A body of the shape of a feedback."""

    rewards: dict[str, float] | None = None
    overall: float | None = None
    preference: dict[str, float] | None = None
    arm: str | None = None


class Answer(msgspec.Struct):
    """An answer of the shape of a feedback's."""

    id: str
    status: str
    learned: tuple[str, ...]
    not_learned: tuple[str, ...]


_decode = msgspec.json.Decoder(Given).decode
_encode = msgspec.json.Encoder().encode


async def echo(request: Request) -> Response:
    """Read a feedback, and answer as if it had been recorded."""
    given = _decode(await request.body())
    learned = (*(given.rewards or ()), "overall", "preference")
    return Response(_encode(Answer(request.path_params["id"], "recorded", learned, ())), media_type="application/json")


app = Starlette(routes=[Route("/v1/decisions/{id}/feedback", echo, methods=["POST"])])


def main() -> None:
    """Serve on a free port, and say which, until stopped."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, loop="uvloop", http="httptools", ws="none", access_log=False, log_level="warning")
    print(f"the echo serves http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
