"""The service in a process of its own, as `pamo serve` starts it."""

from __future__ import annotations

import socket
import sys

from benchmarks import servers

WITHIN = servers.STOP_SECONDS


class Server(servers.Server):
    """`pamo serve` with these flags, on a port of its own."""

    def __init__(self, *flags: str, store: str = "memory:") -> None:
        command = [sys.executable, "-m", "pamo", "serve", "--port", "0", "--seed", "1", "--store", store]
        super().__init__([*command, *flags])

    def connect(self) -> socket.socket:
        """Return a connection to it."""
        return socket.create_connection(self.address, timeout=WITHIN)

    def talk(self, text: bytes) -> bytes:
        """Send bytes, and return everything that comes until the server closes the connection."""
        with self.connect() as connection:
            connection.sendall(text)
            return rest(connection)

    def rest_of_output(self) -> str:
        """Return what it has printed after its address, once it has stopped."""
        assert self._process.stdout is not None
        return self._process.stdout.read()


def rest(connection: socket.socket) -> bytes:
    """Return everything that comes until the other side closes the connection."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)
