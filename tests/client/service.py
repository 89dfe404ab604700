"""The real service for the clients' tests: in a thread over a real socket, or in a process that can be killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


class Process:
    """`pamo serve` in a process of its own, which goes on with its store on the same port after a kill."""

    def __init__(self, store: Path, objectives: str = "taste: 1..5", arms: str = "A,B") -> None:
        self._store, self._objectives, self._arms = store, objectives, arms
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and return when it listens."""
        settings = [
            "--store",
            str(self._store),
            "--port",
            str(self.port),
            "--objectives",
            self._objectives,
            "--arms",
            self._arms,
        ]
        command = [sys.executable, "-m", "pamo", "serve", *settings]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8")
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("pamo serves http://127.0.0.1:"), line
        self.port = int(line.split(" ")[2].rpartition(":")[2])

    def kill(self) -> None:
        """Kill it in the middle of whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
