"""Servers on free ports: an application in a thread, or a process that is watched through /proc and stopped."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

ROOT = Path(__file__).parents[1]
OBJECTIVES = "price: 0..500, lower is better, taste: 1..5, service"
OVERALL = "1..5"
ARMS = tuple(f"arm-{k}" for k in range(10))
STOP_SECONDS = 60


class Server:
    """A server that was started and says where it serves."""

    def __init__(self, process: subprocess.Popen[str], host: str, port: int) -> None:
        self._process = process
        self.host, self.port = host, port
        self.pid = process.pid

    @property
    def address(self) -> str:
        """Where it serves."""
        return f"http://{self.host}:{self.port}"

    def cpu_seconds(self) -> float:
        """Return the processor time that it has taken, as Linux tells it."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Return the bytes of memory that are its own: files that it has mapped may be dropped at any time."""
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024

    def running(self) -> bool:
        """Tell whether it still runs."""
        return self._process.poll() is None

    def stop(self) -> int:
        """Have it stop in good order, and return its exit code."""
        if self.running():
            self._process.terminate()
        return self.wait()

    def wait(self) -> int:
        """Wait until it has stopped, and return its exit code."""
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an application of the service from a thread, and give its address."""
    # asyncio turns off the delay of small packets only where the socket says that its protocol is TCP.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # who connects before the thread is ready waits for it
        server = uvicorn.Server(uvicorn.Config(app, loop="asyncio", ws="none", log_level="critical"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            app.state.api.stream.close()  # who listens to it would hold up the end
            server.should_exit = True
            thread.join()


@contextmanager
def running(command: Sequence[str], folder: Path) -> Iterator[Server]:
    """Start a server, wait until it says that it serves, and stop it afterwards."""
    # What is set for a service here is not meant for this one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PAMO_")}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1
        )
        try:
            assert process.stdout is not None
            with process.stdout as output:
                for line in output:
                    found = re.search(r"serves http://([\d.]+):(\d+)", line)
                    if found:
                        break
                else:
                    process.wait()
                    log.seek(0)
                    raise RuntimeError(f"the server did not start:\n{log.read()}")
                server = Server(process, found[1], int(found[2]))
                yield server
            if server.running() and server.stop() not in (0, -signal.SIGTERM):  # uvicorn ends itself by it
                log.seek(0)
                raise RuntimeError(f"the server stopped with an error:\n{log.read()[-4000:]}")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def serving(store: str, *options: str) -> list[str]:
    """Return the command that serves a store with ten arms and three objectives."""
    address = ["--port", "0", "--store", store]
    scales = ["--objectives", OBJECTIVES, "--overall", OVERALL, "--arms", ",".join(ARMS)]
    return [sys.executable, "-m", "pamo", "serve", *address, *scales, "--log-level", "warning", *options]


class Caller:
    """One connection that asks with JSON, for what need not be fast."""

    def __init__(self, server: Server) -> None:
        self._connection = http.client.HTTPConnection(server.host, server.port, timeout=60)

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the answer, which has to be a good one."""
        text = None if body is None else json.dumps(body)
        self._connection.request(method, path, text, {"content-type": "application/json"})
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path} was answered {answer.status}: {content[:500]!r}")
        return json.loads(content)

    def close(self) -> None:
        """Hang up."""
        self._connection.close()
