"""A process that has imported pamo and loaded its kernels, and becomes a server by a fork whenever it is told to.

Most of a server's start is Python and Numba getting ready, the same each time. A fork skips that, so that a campaign
makes several times as many kills a minute; all that opens the store and serves is done by the server itself, as ever.

It is told by lines of JSON, the arguments of `pamo`, and says `forked PID`, then what the server says, then `ended
STATUS`.
"""

from __future__ import annotations

import json
import os
import sys

from campaigns.faults import FAULTS


def prepare() -> None:
    """Import what a server imports, and load the kernels that it uses; no thread may be left running."""
    import gc

    from pamo.engine import Engine
    from pamo.service.warming import warm_all

    with Engine(["price: 0..500, lower is better", "taste: 1..5", "service"], seed=0) as engine:
        warm_all(engine)
    for module in ("pamo.cli", "pamo.store.sqlite", "pamo.store.postgres", "uvloop"):
        __import__(module)
    gc.freeze()


def fork(arguments: list[str]) -> None:
    """Become a server in a fork, and say when it has ended."""
    wait, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(wait, 1)  # until the parent has said its line
        from pamo.cli import main

        os._exit(main(arguments))
    say(f"forked {child}")
    os.close(wait)
    os.close(go)
    _, status = os.waitpid(child, 0)
    say(f"ended {os.waitstatus_to_exitcode(status)}")


def say(line: str) -> None:
    """Write a line at once, on a line of its own: a server that is killed may leave half a one behind."""
    os.write(1, f"\n{line}\n".encode())


def main(faults: list[str]) -> int:
    """Fork a server for each line, one after another, with this fault in it if there is one."""
    prepare()
    for fault in faults:
        FAULTS[fault]()
    say("prepared")
    for line in sys.stdin:
        fork(json.loads(line))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
