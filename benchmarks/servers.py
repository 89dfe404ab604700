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
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import uvicorn

from pamo.service.warming import COMPILED, UNCOMPILED

ROOT = Path(__file__).parents[1]
OBJECTIVES = "price: 0..500, lower is better, taste: 1..5, service"
OVERALL = "1..5"
ARMS = tuple(f"arm-{k}" for k in range(10))
STOP_SECONDS = 60
"""Seconds that anything may take before something must be wrong."""


def environment() -> dict[str, str]:
    """Return the variables of a server: what is set for a service here is not meant for it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PAMO_")}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}


class Server:
    """A process that has said where it serves, and is stopped in good order at the end of a `with`."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path | None = None,
        variables: Mapping[str, str] | None = None,
        *,
        compiled: bool = True,
    ) -> None:
        """Start it; compiled: and wait until it serves compiled code."""
        self._log = tempfile.TemporaryFile("a+", encoding="utf-8")  # noqa: SIM115  # closed in the end
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={**environment(), **(variables or {})},
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            bufsize=1,
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = re.search(r"serves (https?://\S+:\d+)", line)
            if found:
                break
        else:
            self._process.wait()
            log = self.log
            self.end()
            raise RuntimeError(f"the server did not start:\n{log}")
        self.url, self.address, self.pid = found[1], address_of(found[1]), self._process.pid
        while compiled and self.uncompiled():
            time.sleep(0.1)

    def uncompiled(self) -> bool:
        """Tell whether it serves uncompiled code for now."""
        log = self.log
        return self.running() and UNCOMPILED in log and COMPILED not in log

    @property
    def log(self) -> str:
        """What it has written so far beside the line with its address."""
        self._log.seek(0)
        return self._log.read()

    def cpu_seconds(self) -> float:
        """Return the processor time that it has taken, as Linux tells it."""
        return processor_seconds(self.pid)

    def memory(self) -> int:
        """Return the bytes of memory that are its own: files that it has mapped may be dropped at any time."""
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024

    def running(self) -> bool:
        """Tell whether it still runs."""
        return self._process.poll() is None

    def send(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Have it stop in good order, and return its exit code."""
        self.send(number)
        return self.wait()

    def wait(self) -> int:
        """Wait until it has stopped, and return its exit code."""
        return self._process.wait(STOP_SECONDS)

    def end(self) -> None:
        """Let go of everything."""
        if self.running():
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self.running() and self.stop() not in (0, -signal.SIGTERM):  # uvicorn ends itself by it
                raise RuntimeError(f"the server stopped with an error:\n{self.log[-4000:]}")
        finally:
            self.end()


def processor_seconds(pid: int, *, ended: bool = False) -> float:
    """Return the processor time of a process, as Linux tells it; ended: that of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11:15]
    return sum(map(int, fields[2:] if ended else fields[:2])) / os.sysconf("SC_CLK_TCK")


def address_of(url: str) -> tuple[str, int]:
    """Return the host and the port of an address such as http://127.0.0.1:8000."""
    host, _, port = url.partition("://")[2].rpartition(":")
    return host, int(port)


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


def serving(store: str, *options: str, objectives: str = OBJECTIVES) -> list[str]:
    """Return the command that serves a store with ten arms and three objectives."""
    address = ["--port", "0", "--store", store]
    scales = ["--objectives", objectives, "--overall", OVERALL, "--arms", ",".join(ARMS)]
    return [sys.executable, "-m", "pamo", "serve", *address, *scales, "--log-level", "warning", *options]


class Caller:
    """One connection that asks with JSON, for what need not be fast."""

    def __init__(self, server: Server) -> None:
        self._connection = http.client.HTTPConnection(*server.address, timeout=STOP_SECONDS)

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
