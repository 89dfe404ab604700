"""A small HTTP/1.1 client for campaigns: it costs next to nothing, and knows exactly what was answered in full."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

PATIENCE = 60.0
"""Seconds after which a server that says nothing counts as gone: more than it takes to give up a request itself."""


class GoneError(Exception):
    """No whole answer came: the server may have done what it was asked, or not."""


class Line:
    """One connection, kept open from request to request and made anew when it breaks."""

    def __init__(self) -> None:
        self._address: tuple[str, int] | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(
        self,
        address: tuple[str, int],
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """Send a request and return the status and what the answer's JSON holds, once all of it has come."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._ask(address, method, path, body, headers or {})
        except (OSError, EOFError, TimeoutError) as error:
            self.close()
            raise GoneError(f"{type(error).__name__}: {error}") from error
        except BaseException:
            self.close()  # half an answer may be on the line
            raise

    async def _ask(
        self, address: tuple[str, int], method: str, path: str, body: Any, headers: Mapping[str, str]
    ) -> tuple[int, Any]:
        if self._writer is None or self._reader is None or self._reader.at_eof() or self._address != address:
            self.close()
            self._reader, self._writer = await asyncio.open_connection(*address)
            self._address = address
        content = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", f"host: {address[0]}:{address[1]}", f"content-length: {len(content)}"]
        if body is not None:
            lines.append("content-type: application/json")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + content)
        await self._writer.drain()
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(head[0].split(" ", 2)[1])
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        answer = await self._reader.readexactly(int(fields.get("content-length", "0")))
        if fields.get("connection", "").lower() == "close":
            self.close()
        return status, json.loads(answer) if "json" in fields.get("content-type", "") and answer else answer

    def close(self) -> None:
        """Hang up."""
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None
