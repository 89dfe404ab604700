"""Take the steps of *Start here* as somebody new would, from a clone, in an empty environment, and say what each takes.

Usage: python scripts/first_steps.py [--source REPOSITORY] [--python COMMAND]

The clone, the home folder and every cache are new and empty; the commands are those of docs/start.md, read from it.
The demo has to be there in three minutes, and the first recommendation over HTTP in five, all steps before it counted.
Where pip finds its index stays as it is on this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
HERE = "http://127.0.0.1:8000"
DEMO, RECOMMENDATION = 180.0, 300.0
"""Seconds after which the demo, and an own recommendation, have to be there."""
KEPT = ("PATH", "LANG", "LC_ALL", "TERM", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
"""What the environment keeps beside what says where packages come from."""


def blocks(page: Path, kind: str) -> list[str]:
    """Return a page's blocks of a kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def shown(page: Path, beginning: str) -> list[str]:
    """Return the lines of a page's blocks of commands that begin so."""
    return [line for block in blocks(page, "text") for line in block.splitlines() if line.startswith(beginning)]


def from_clone(page: Path) -> tuple[str, str]:
    """Return what sets pamo up from a clone, and what its command is then."""
    told = re.search(
        r"From a clone, `([^`]+)`[^`]*`[^`]+`, and the command is `([^`]+)`", page.read_text(encoding="utf-8")
    )
    if told is None:
        raise SystemExit(f"{page} does not say how to begin from a clone")
    return told[1], told[2]


@contextmanager
def started(command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> Iterator[str]:
    """Start what serves, give its address once it has said it, and stop it in the end."""
    # Its notes go where ours do: of a start that fails they say why.
    process = subprocess.Popen(command, cwd=folder, env=variables, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        found = next(
            filter(None, (re.search(r"http://127\.0\.0\.1:\d+(?:/\w+)?", line) for line in process.stdout)), None
        )
        if found is None:
            raise SystemExit(f"{shlex.join(command)} ended with {process.wait()} before it served")
        yield found[0]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        process.stdout.close()


def asked(page: Path, url: str) -> Iterator[Any]:
    """Take the page's three steps with curl at this address, and yield what each is answered."""
    decision = ""
    for line in shown(page, "curl "):
        words = shlex.split(line.replace(HERE, url).replace("/ID/", f"/{decision}/"))
        command = [words[0], "--silent", "--show-error", "--fail-with-body", *words[1:]]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            raise SystemExit(f"{line}: {(done.stdout + done.stderr).decode()}")
        answer = json.loads(done.stdout)
        decision = decision or answer["id"]
        yield answer


class Clock:
    """Prints what each step takes, and what all until then have."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()

    def __call__(self, step: str) -> float:
        """Say that a step is done, and return the seconds since the first one began."""
        now = time.monotonic()
        print(f"{step:44}{now - self._last:8.1f} s{now - self._began:8.1f} s", flush=True)
        self._last = now
        return now - self._began


def variables_in(folder: Path) -> dict[str, str]:
    """Return the variables of somebody who has just sat down here: an empty home, and no cache."""
    home = folder / "home"
    home.mkdir()
    packages = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_"))}
    own = [Path.home() / name for name in (".config/pip/pip.conf", ".pip/pip.conf")]
    told = dict([("PIP_CONFIG_FILE", str(one)) for one in own if one.exists()][:1])
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    caches = {"PIP_CACHE_DIR": str(home / "pip"), "UV_CACHE_DIR": str(home / "uv")}
    return {**told, **packages, **kept, **caches, "HOME": str(home), "TMPDIR": str(folder)}


def take(source: str, python: str, folder: Path) -> bool:
    """Take all steps; tell whether the demo and the recommendation came in time."""
    clone, variables, clock = folder / "pamo", variables_in(folder), Clock()

    def run(*command: str) -> None:
        subprocess.run(command, cwd=clone if clone.exists() else folder, env=variables, check=True)

    run("git", "clone", "--quiet", source, str(clone))
    clock("git clone")
    page = clone / "docs" / "start.md"
    made_by, command = from_clone(page)
    run(*shlex.split(made_by), f"PYTHON={python}")
    clock(made_by)
    pamo = str(clone / command)
    (demo,) = shown(page, "pamo demo")
    with started([pamo, *shlex.split(demo)[1:], "--no-browser"], clone, variables) as url:
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert answer.status == 200
        there = clock(f"{demo}, until its page is there")
    example = folder / "example.txt"
    example.write_text("".join(blocks(page, "python")), encoding="utf-8")
    run(str(Path(pamo).with_name("python")), "-m", "doctest", str(example))
    clock("call it from Python")
    (serve,) = shown(page, "pamo serve")
    with started([pamo, *shlex.split(serve)[1:], "--port", "0"], clone, variables) as url:
        clock("pamo serve, until it does")
        answers = asked(page, url)
        made = next(answers)
        recommended = clock(f"a recommendation over HTTP: {made['arm']}")
        given, learned = answers
        clock(f"feedback {given['status']}, a preference of {learned['rounds']} round")
    print(f"the demo after {there:.0f} of {DEMO:.0f} s, ", end="")
    print(f"a recommendation after {recommended:.0f} of {RECOMMENDATION:.0f} s")
    return there <= DEMO and recommended <= RECOMMENDATION


def main() -> int:
    """Take the steps in a folder that is removed again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default=str(ROOT), help="the repository to clone; default: this one")
    parser.add_argument(
        "--python", default=sys.executable, help="the Python to set up with; default: the one that runs this"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pamo-first-steps-") as folder:
        return 0 if take(given.source, given.python, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
