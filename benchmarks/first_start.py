"""What a first start takes, and whether anybody can tell: `python -m benchmarks.first_start`.

A service begins with an empty cache of compiled code. It is asked at once, and on and on while another process
compiles, until it has switched and a while longer. Then a service that has the code from the beginning is asked the
same, and every answer has to be the same, before the switch and after it.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.servers import ARMS, Caller, Server, processor_seconds, serving

MOST_SECONDS = 3.0
"""Processor time of the service from its start until its first answer."""
PAUSE = 0.03
"""Seconds between requests while it compiles."""
AFTER = 200
"""Requests after the switch."""


def requests(seed: int = 1) -> Iterator[dict[str, Any]]:
    """Yield decisions to ask for, with what is then said of them: of all kinds, and the same every time."""
    draw = random.Random(seed)
    while True:
        offer = draw.choice([None, draw.sample(ARMS, 4), {arm: {"service": draw.random()} for arm in ARMS[:3]}])
        asked = {"user": f"user {draw.randrange(8)}", "k": draw.choice([1, 1, 3])}
        if offer is not None:
            asked["arms"] = offer
        scores = {"price": 500.0 * draw.random(), "taste": 1.0 + 4.0 * draw.random()}
        if not isinstance(offer, dict) and draw.random() < 0.8:
            scores["service"] = draw.random()
        yield {"asked": asked, "told": {"rewards": scores, "overall": 1.0 + 4.0 * draw.random()}}


def ask(caller: Caller, request: dict[str, Any]) -> Any:
    """Return all that is answered, but for what names this decision alone."""
    decision = caller.ask("POST", "/v1/decisions", request["asked"])
    name = decision.pop("id")
    why = caller.ask("GET", f"/v1/decisions/{name}")["explanation"]
    del why["decision"]
    caller.ask("POST", f"/v1/decisions/{name}/feedback", request["told"])
    preference = caller.ask("GET", f"/v1/users/{request['asked']['user'].replace(' ', '%20')}/preference")
    return decision, why, preference


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and return 1 if the first answer came late or an answer differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", default="recommended", help="what the service decides by (default: recommended)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="pamo-bench-", dir=".") as name:
        folder = Path(name).absolute()
        command = serving("pamo.db", "--seed", "1", "--policy", options.policy)
        variables, began = {"NUMBA_CACHE_DIR": str(folder / "cache")}, time.monotonic()
        answers, waits = list[Any](), list[float]()
        with Server(command, folder, variables, compiled=False) as server:
            caller, asking = Caller(server), requests()
            answers.append(ask(caller, next(asking)))
            first = server.cpu_seconds()
            print(f"first answers after {time.monotonic() - began:.1f} s, {first:.2f} s of processor time", flush=True)
            while server.uncompiled():
                asked = time.monotonic()
                answers.append(ask(caller, next(asking)))
                waits.append(time.monotonic() - asked)
                time.sleep(PAUSE)
            before, children = len(answers), processor_seconds(server.pid, ended=True)
            switched, usual, slowest = time.monotonic() - began, statistics.median(waits), max(waits)
            print(f"compiled after {switched:.0f} s, {children:.1f} s of processor time of another process")
            print(f"four requests until then: {1000 * usual:.0f} ms, at most {1000 * slowest:.0f} ms", flush=True)
            answers += [ask(caller, request) for request in itertools.islice(asking, AFTER)]
            caller.close()
        again = folder / "again"
        again.mkdir()
        with Server(command, again, variables, compiled=False) as server:
            if "compile" in server.log:
                raise SystemExit(f"the second start compiles: {server.log}")
            caller = Caller(server)
            same = [ask(caller, one) == answer for one, answer in zip(requests(), answers, strict=False)]
            caller.close()
    differ = same[:before].count(False), same[before:].count(False)
    print(f"answers that differ from those of compiled code: {differ[0]} of {before} before the switch, ", end="")
    print(f"{differ[1]} of {len(same) - before} after it")
    print(f"the first answer after {first:.2f} s of processor time, of {MOST_SECONDS:.0f} s")
    return 0 if first <= MOST_SECONDS and not any(differ) else 1


if __name__ == "__main__":
    sys.exit(main())
