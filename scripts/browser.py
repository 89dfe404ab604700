"""Print the path of a Chromium that runs, for the tests that look at pages; install one where there is none.

Usage: python scripts/browser.py [--remember FILE]

Tried in this order, each only when those before it gave nothing:

1. the path in PAMO_BROWSER: whoever sets it means that browser, so a wrong path is an error;
2. a Chromium or Chrome on PATH, or one that Playwright fetched before;
3. Playwright's own download, which needs no administrator but does need its server;
4. the system's packages, where apt-get is at hand and may be used.

The path goes to standard output and everything else to standard error. With --remember, a path found is kept
in FILE and taken from there the next time, as long as it still exists. Only the standard library is imported;
Playwright is asked in a process of its own, and its absence is no error.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
START_SECONDS = 30
DOWNLOAD_SECONDS = 180
INSTALL_SECONDS = 900


def say(message: str) -> None:
    """Tell the person who waits, on standard error."""
    print(f"{Path(sys.argv[0]).stem}: {message}", file=sys.stderr, flush=True)


def succeeds(command: Sequence[str], seconds: float, environment: Mapping[str, str] | None = None) -> bool:
    """Run `command` with its output on standard error, and return whether it ended well and in time."""
    say(" ".join(command))
    try:
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            timeout=seconds,
            env={**os.environ, **(environment or {})},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        say(str(error))
        return False
    if done.returncode != 0:
        say("that did not work; going on without it")
    return done.returncode == 0


def output(command: Sequence[str]) -> str:
    """Return what `command` prints, or nothing if it fails."""
    try:
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def runs(path: str) -> bool:
    """Return whether `path` starts.

    Some systems put a script in a browser's place that only says how to install it, and a download may lack
    the system's libraries: being there is not enough.
    """
    return bool(output([path, "--version"]))


def on_path() -> str:
    """Return the first browser on PATH that runs, or nothing."""
    found = (shutil.which(name) for name in NAMES)
    return next((path for path in found if path and runs(path)), "")


def from_playwright() -> str:
    """Return the browser that Playwright has fetched, if it has and it runs, or nothing."""
    question = (
        "from playwright.sync_api import sync_playwright\n"
        "with sync_playwright() as playwright:\n"
        "    print(playwright.chromium.executable_path)"
    )
    path = output([sys.executable, "-c", question])
    return path if path and os.access(path, os.X_OK) and runs(path) else ""


def installed() -> str:
    """Return a browser that is already here, or nothing."""
    return on_path() or from_playwright()


def download() -> str:
    """Let Playwright fetch its Chromium, and return it, or nothing."""
    # Milliseconds: a server that is out of reach should not hold up the next attempt.
    impatient = {"PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT": "10000"}
    fetched = succeeds([sys.executable, "-m", "playwright", "install", "chromium"], DOWNLOAD_SECONDS, impatient)
    return from_playwright() if fetched else ""


def apt_install(package: str) -> bool:
    """Install one of the system's packages with apt-get, where that is possible, and return whether it was."""
    if not shutil.which("apt-get"):
        return False
    if os.geteuid() == 0:
        prefix = ["env"]
    elif shutil.which("sudo") and succeeds(["sudo", "-n", "true"], START_SECONDS):
        prefix = ["sudo", "-n", "env"]
    else:
        return False
    # Handed over by env, since sudo clears the environment.
    apt = [*prefix, "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    # A failed update may only mean that one of several sources is away: the install decides.
    succeeds([*apt, "update"], INSTALL_SECONDS)
    return succeeds([*apt, "install", "-y", "--no-install-recommends", package], INSTALL_SECONDS)


def install() -> str:
    """Install the system's Chromium, and return it, or nothing."""
    return on_path() if apt_install("chromium") else ""


def find() -> str:
    """Return the path of a browser that runs, installing one if need be, or nothing."""
    attempts: tuple[Callable[[], str], ...] = (installed, download, install)
    return next((path for attempt in attempts if (path := attempt())), "")


def recall(memory: Path | None) -> str:
    """Return the path kept in `memory` if it is still that of a program, or nothing."""
    if memory is None or not memory.is_file():
        return ""
    path = memory.read_text(encoding="utf-8").strip()
    return path if os.access(path, os.X_OK) else ""


def main() -> int:
    """Print the path of a browser; return the exit code."""
    parser = argparse.ArgumentParser(description="Print the path of a Chromium that runs; install one if need be.")
    parser.add_argument("--remember", type=Path, metavar="FILE", help="keep the path found in FILE")
    memory: Path | None = parser.parse_args().remember

    chosen = os.environ.get("PAMO_BROWSER", "")
    if chosen:
        path = shutil.which(chosen) or ""
        if not path or not runs(path):
            say(f"PAMO_BROWSER should be a Chromium that starts; {chosen!r} does not.")
            return 1
        print(path)
        return 0

    path = recall(memory) or find()
    if not path:
        say(
            "no Chromium or Chrome was found, and none could be installed. "
            "Install one and put it on PATH, or set PAMO_BROWSER to its path."
        )
        return 1
    if memory is not None:
        memory.write_text(f"{path}\n", encoding="utf-8")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
