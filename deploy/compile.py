"""Fill the compiler's cache, as an image's build does.

Usage: python compile.py 2 3 4

It starts and stops a service with two objectives, one with three, and one with four.
"""

from __future__ import annotations

import os
import subprocess
import sys


def main() -> int:
    """Start and stop a service for each number of objectives."""
    # What the image sets for its service is not meant for these.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PAMO_")}
    for number in map(int, sys.argv[1:]):
        names = ",".join(f"objective-{d}" for d in range(number))
        command = [sys.executable, "-m", "pamo", "serve", "--store", "memory:", "--port", "0", "--objectives", names]
        with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            line = process.stdout.readline()  # it says where it serves once everything is compiled
            process.terminate()
        if not line.startswith("pamo serves"):
            print(f"the service with {number} objectives did not start", file=sys.stderr)
            return 1
        print(f"compiled for {number} objectives", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
