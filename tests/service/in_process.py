"""The service on a socket, in the test's own process: real HTTP, and the store within reach."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn

from pamo.engine import Engine
from pamo.service import create_app
from pamo.service.settings import Settings


@asynccontextmanager
async def serving(engine: Engine, settings: Settings | None = None) -> AsyncIterator[tuple[str, int]]:
    """Serve the engine, which stays the caller's, and yield the address."""
    # With its protocol named: asyncio switches Nagle's delay off only for sockets that say that they are TCP's.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(create_app(engine, settings), ws="none", lifespan="on", log_level="warning")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        while not server.started:
            assert not task.done(), task
            await asyncio.sleep(0.005)
        yield listening.getsockname()[:2]
    finally:
        server.should_exit = True
        await task
