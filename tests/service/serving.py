"""The service in a process of its own, as `pamo serve` starts it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

WITHIN = 60.0
"""Seconds that anything may take before a test fails: far more than it does take."""


class Server:
    """`pamo serve` with these flags, on a port of its own."""

    def __init__(self, *flags: str, store: str = "memory:") -> None:
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115  # closed by stop
        command = [sys.executable, "-m", "pamo", "serve", "--port", "0", "--seed", "1", "--store", store]
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PAMO_")}
        self.process = subprocess.Popen(
            [*command, *flags], stdout=subprocess.PIPE, stderr=self._log, text=True, env=variables, cwd=Path.cwd()
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.match(r"pamo serves (https?://\S+:(\d+)) ", line)
        if found is None:
            self.stop()
            log = self.log
            self._log.close()
            raise AssertionError(f"the server did not start: {line}{log}")
        self.url, self.port = found[1], int(found[2])

    @property
    def log(self) -> str:
        """What it has written so far beside the line with its address."""
        self._log.seek(0)
        return self._log.read()

    def connect(self) -> socket.socket:
        """Return a connection to it."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=WITHIN)

    def talk(self, text: bytes) -> bytes:
        """Send bytes, and return everything that comes until the server closes the connection."""
        with self.connect() as connection:
            connection.sendall(text)
            return rest(connection)

    def stop(self, with_signal: int = signal.SIGTERM) -> int:
        """Stop it, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
        return self.wait()

    def wait(self) -> int:
        """Wait for its end, and return its exit code."""
        try:
            code = self.process.wait(WITHIN)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            if self.process.stdout is not None:
                self.process.stdout.close()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._log.close()


def rest(connection: socket.socket) -> bytes:
    """Return everything that comes until the other side closes the connection."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)
