"""Print the path of wrk, which puts load on HTTP servers; install it where there is none.

Usage: python -m scripts.wrk

Tried in this order: the path in PAMO_WRK, where a wrong one is an error; one on PATH; the system's packages, where
apt-get is at hand and may be used. The path goes to standard output and everything else to standard error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from scripts.browser import START_SECONDS, apt_install, say

NONE = (
    "wrk was not found and could not be installed. Install it with your system's packages (apt-get install wrk, "
    "brew install wrk), or set PAMO_WRK to its path."
)


def runs(path: str) -> bool:
    """Return whether this is a wrk that starts; asked for its version, it says so and fails."""
    try:
        done = subprocess.run([path, "-v"], check=False, capture_output=True, text=True, timeout=START_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.stdout.startswith("wrk ")


def on_path() -> str:
    """Return the wrk on PATH, if there is one that runs, or nothing."""
    path = shutil.which("wrk")
    return path if path and runs(path) else ""


def find() -> str:
    """Return the path of wrk, installing it if need be; raise `LookupError` with a sentence if there is none."""
    chosen = os.environ.get("PAMO_WRK", "")
    if chosen:
        path = shutil.which(chosen) or ""
        if not path or not runs(path):
            raise LookupError(f"PAMO_WRK should be a wrk that starts; {chosen!r} does not.")
        return path
    path = on_path() or (on_path() if apt_install("wrk") else "")
    if not path:
        raise LookupError(NONE)
    return path


def main() -> int:
    """Print the path of wrk; return the exit code."""
    try:
        print(find())
    except LookupError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
