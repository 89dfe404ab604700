"""Walk through deploy/Containerfile without a container engine: each step in a folder, then start what it made.

Usage: python scripts/containerfile.py [--objectives "2 3"]

Paths of the image are put below a temporary folder, Python is the one that runs this, and steps that need root (a user
of its own) are left out and said. In the end the service is started by ENTRYPOINT and CMD, asked by HEALTHCHECK until
it is well, and it is checked that nothing had to be compiled for that.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONTAINERFILE = ROOT / "deploy" / "Containerfile"
PATIENCE = 120.0
"""Seconds that the service may take to be well."""


def steps(text: str) -> Iterator[tuple[str, str]]:
    """Yield the instructions and what they are given, comments left out and continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(" ")
            yield word.upper(), rest.strip()


class Walk:
    """The state of a build: where paths lie, the variables, the working folder."""

    def __init__(self, folder: Path, arguments: dict[str, str]) -> None:
        self._folder, self._arguments = folder, arguments
        self._here = {name: value for name, value in os.environ.items() if not name.startswith(("PAMO_", "NUMBA_"))}
        self._here["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._here.pop("PYTHONPATH", None)
        self.begin()
        self.health, self.command = "", list[str]()

    def begin(self) -> None:
        """Begin a stage."""
        self.variables = dict(self._here)
        self.work = self._folder

    def take(self, word: str, given: str) -> None:
        """Do one step."""
        if word == "FROM":
            self.begin()
        elif word == "ARG":
            name, _, default = given.partition("=")
            self.variables[name] = self._arguments.get(name, default.strip('"'))
        elif word == "ENV":
            before = dict(self.variables)
            for pair in shlex.split(given):
                name, _, value = pair.partition("=")
                self.variables[name] = self._placed(_filled(value, before))
        elif word == "WORKDIR":
            self.work = Path(self._placed(given))
            self.work.mkdir(parents=True, exist_ok=True)
        elif word == "COPY":
            self._copy(shlex.split(given))
        elif word == "RUN":
            self._run(given)
        elif word == "HEALTHCHECK":
            self.health = self._placed(given.partition("CMD ")[2])
        elif word in ("ENTRYPOINT", "CMD"):
            self.command += json.loads(given)
        elif word not in ("USER", "VOLUME", "EXPOSE", "STOPSIGNAL"):
            raise SystemExit(f"the step {word} {given} is not one that this knows")

    def _placed(self, text: str) -> str:
        return re.sub(r"(?<![\w./])/(opt/pamo|var/lib/pamo|src)\b", lambda one: f"{self._folder}/{one[1]}", text)

    def _copy(self, words: list[str]) -> None:
        if any(word.startswith("--from") for word in words):
            return  # both stages share the folder, and the path is the same in both
        *sources, target = words
        goal = Path(self._placed(target)) if target.startswith("/") else self.work / target
        for source in sources:
            found = ROOT / source
            if found.is_dir():
                shutil.copytree(found, goal, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                place = goal / found.name if len(sources) > 1 or target.endswith("/") else goal
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(found, place)

    def _run(self, given: str) -> None:
        if given.startswith("useradd"):
            print(f"   left out, since it needs root: {given}", flush=True)
            return
        subprocess.run(
            self._placed(given.replace("--owner=pamo ", "")), shell=True, check=True, cwd=self.work, env=self.variables
        )


def _filled(text: str, variables: dict[str, str]) -> str:
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda one: variables.get(one[1] or one[2], ""), text)


def _fails(walk: Walk) -> bool:
    done = subprocess.run(walk.health, shell=True, check=False, env=walk.variables, stderr=subprocess.DEVNULL)
    return done.returncode != 0


def _start(walk: Walk, folder: Path) -> None:
    """Start what was made, wait until its own health check finds it well, and see that nothing was compiled."""
    cache = folder / "opt" / "pamo" / "cache"
    before = {path: path.stat().st_mtime for path in cache.rglob("*.nb[ic]")}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    walk.variables |= {"PAMO_HOST": "127.0.0.1", "PAMO_PORT": port, "PAMO_OBJECTIVES": "price,taste"}
    began = time.monotonic()
    with subprocess.Popen(walk.command, cwd=walk.work, env=walk.variables) as process:
        try:
            while subprocess.run(
                walk.health, shell=True, check=False, env=walk.variables, stderr=subprocess.DEVNULL
            ).returncode:
                if process.poll() is not None or time.monotonic() - began > PATIENCE:
                    raise SystemExit("the service did not get well")
                time.sleep(0.2)
            print(f"well after {time.monotonic() - began:.1f} s", flush=True)
        finally:
            process.terminate()
    if process.returncode:
        raise SystemExit(f"the service ended with {process.returncode}")
    after = {path: path.stat().st_mtime for path in cache.rglob("*.nb[ic]")}
    if not before or after != before:
        raise SystemExit(f"{len(set(after.items()) - set(before.items()))} files were compiled at the start")
    print(f"nothing was compiled at the start: {len(before)} files of compiled code are in the image")


def main() -> int:
    """Walk through it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objectives", default="2", help="the numbers of objectives to compile for")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pamo-image-") as name:
        walk = Walk(Path(name), {"OBJECTIVES": options.objectives})
        for word, given in steps(CONTAINERFILE.read_text(encoding="utf-8")):
            print(f"== {word} {given}", flush=True)
            walk.take(word, given)
        _start(walk, Path(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
