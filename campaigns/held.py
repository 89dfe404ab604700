"""Hold connections in every way there is, and see that others are served meanwhile: `python -m campaigns.held`.

Strangers without a key take up thousands of connections and let none of them go by themselves: they say nothing, or
half of something, drop by drop, or do not take what they are answered. Whoever is hung up on comes back within a
second, or at once, as a flood (`--back-within 0`). Other clients, from another address, ask for decisions and give
feedback all the while, and what they wait is measured. In the end so many come from one address that not all are let
in. `--fault wait-for-ever` runs a server that never hangs up, which the campaign must find.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from benchmarks.servers import ROOT, Server, serving
from campaigns.wire import GoneError, Line
from campaigns.world import feedback

_HEAD = b"HTTP/1.1\r\nhost: localhost\r\n"
_CHUNKED = _HEAD + b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"

KINDS: dict[str, tuple[bytes, bytes]] = {
    "nothing": (b"", b""),
    "half a head": (b"GET /healthz " + _HEAD + b"x-slow: ", b"x"),
    "half a body": (b"POST /v1/decisions " + _HEAD + b"content-length: 900\r\n\r\n{", b" "),
    "asks once": (b"GET /healthz " + _HEAD + b"\r\n", b""),
    "asks once, then empty lines": (b"GET /healthz " + _HEAD + b"\r\n", b"\r\n"),
    "a body that nobody wants": (b"GET /healthz " + _HEAD + b"content-length: 9000\r\n\r\n", b"x"),
    "half a chunk that nobody wants": (b"POST /nothing " + _CHUNKED + b"ffff\r\n", b"x"),
    "trailers": (b"POST /v1/decisions " + _CHUNKED + b"10\r\n" + b'{"user":  "mal"}' + b"\r\n0\r\nx-slow: ", b"x"),
    "takes no answer": ((b"GET /openapi.json " + _HEAD + b"\r\n") * 20, b"\r\n"),
}
"""From a way to hold a connection to what is said first, and then again and again."""

DROP_EVERY = 1.0
SLACK = 5.0
"""Seconds that a busy machine may take beyond those that the service waits."""


@dataclass(frozen=True)
class Plan:
    """What to do.

    rate: requests a second of the others. crowd: how many come from one address in the end, where there is room for
    `most`. patience: seconds after which the service hangs up. slowest: milliseconds that p99 of the others is under.
    back_within: seconds within which those come back who are hung up on; with 0 they are a flood.
    """

    connections: int = 2000
    seconds: float = 60.0
    rate: float = 100.0
    crowd: int = 1500
    most: int = 1000
    patience: float = 10.0
    slowest: float = 100.0
    back_within: float = 1.0
    seed: int = 1
    fault: str | None = None


@dataclass
class Tally:
    """What was seen."""

    latencies: list[float] = field(default_factory=list)
    """Milliseconds that the others waited."""
    before: list[float] = field(default_factory=list)
    """The same, before any connection was held."""
    held: dict[str, Any] = field(default_factory=dict)
    """What the holders say: how many connections they have, and how often and how late they were hung up on."""
    let_in: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def p99(self) -> float:
        """What all but one in a hundred waited less than."""
        return float(np.percentile(self.latencies or [np.inf], 99))


class Holders:
    """Connections that are kept as long as they can be, in a process of its own: `python -m campaigns.held hold`."""

    def __init__(self, address: tuple[str, int], count: int, back_within: float, seed: int) -> None:
        self._address, self._count, self._random = address, count, Random(f"held {seed}")
        self._back_within = back_within
        self.open = 0
        self.hung_up: Counter[str] = Counter()
        self.longest: dict[str, float] = dict.fromkeys(KINDS, 0.0)
        self._since: dict[int, tuple[str, float]] = {}

    async def run(self) -> None:
        """Hold, and print what was seen once a second."""
        for number in range(self._count):
            asyncio.ensure_future(self._hold(number))  # noqa: RUF006  # they end with the process
            if number % 10 == 9:
                await asyncio.sleep(0.02)
        while True:
            await asyncio.sleep(1.0)
            now = time.monotonic()
            longest = dict(self.longest)
            for kind, since in self._since.values():
                longest[kind] = max(longest[kind], now - since)
            print(json.dumps({"open": self.open, "hung_up": self.hung_up, "longest": longest}), flush=True)

    async def _hold(self, number: int) -> None:
        kind = list(KINDS)[number % len(KINDS)]
        first, again = KINDS[kind]
        source = (f"127.0.1.{1 + number % 50}", 0)
        while True:
            line = socket.socket()
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.setblocking(False)
            try:
                line.bind(source)
                await asyncio.get_running_loop().sock_connect(line, self._address)
            except OSError:
                line.close()
                await asyncio.sleep(0.5)
                continue
            reader, writer = await asyncio.open_connection(sock=line, limit=1)  # what is not read is not taken
            self.open += 1
            since = time.monotonic()
            self._since[number] = (kind, since)
            with contextlib.suppress(OSError):
                writer.write(first)
                taking = kind != "takes no answer"
                while not writer.transport.is_closing():
                    if taking:
                        with contextlib.suppress(TimeoutError):
                            if not await asyncio.wait_for(reader.read(65536), DROP_EVERY):
                                break
                            continue
                    else:
                        await asyncio.sleep(DROP_EVERY)
                    writer.write(again)
            self.open -= 1
            self.hung_up[kind] += 1
            self.longest[kind] = max(self.longest[kind], time.monotonic() - since)
            del self._since[number]
            writer.transport.abort()
            await asyncio.sleep(self._back_within * self._random.random())


async def _others(plan: Plan, address: tuple[str, int], tally: Tally, seconds: float) -> None:
    until = time.monotonic() + seconds
    await asyncio.gather(*(_ask(plan, address, tally, number, until) for number in range(8)))


async def _ask(plan: Plan, address: tuple[str, int], tally: Tally, number: int, until: float) -> None:
    """Ask for decisions and give feedback, steadily."""
    random, line = Random(f"asking {plan.seed} {number}"), Line()
    while time.monotonic() < until:
        user = {"user": f"user-{random.randrange(500)}"}
        made = await _timed(tally, line.ask(address, "POST", "/v1/decisions", user), 201)
        if made is not None:
            path = f"/v1/decisions/{made['id']}/feedback"
            await _timed(tally, line.ask(address, "POST", path, feedback(random)), 200)
        await asyncio.sleep(16 / plan.rate)
    line.close()


async def _timed(tally: Tally, asked: Any, status: int) -> Any:
    began = time.perf_counter()
    try:
        got, answer = await asked
    except GoneError as error:
        tally.wrong.append(f"no answer: {error}")
        await asyncio.sleep(0.5)
        return None
    tally.latencies.append((time.perf_counter() - began) * 1e3)
    if got != status:
        tally.wrong.append(f"answered {got}, not {status}: {answer!r:.200}")
        return None
    return answer


async def _crowd(plan: Plan, address: tuple[str, int]) -> int:
    """Come from one address all at once, and return how many are let in."""
    lines = []
    for _ in range(plan.crowd):
        with contextlib.suppress(OSError):
            lines.append(await asyncio.open_connection(*address, local_addr=("127.0.2.1", 0)))

    async def is_refused(reader: asyncio.StreamReader) -> bool:
        with contextlib.suppress(TimeoutError, OSError):
            return (await asyncio.wait_for(reader.read(12), 5.0)).endswith(b" 503")
        return False

    refused = await asyncio.gather(*(is_refused(reader) for reader, _ in lines))
    for _, writer in lines:
        writer.transport.abort()
    return len(lines) - sum(refused)


async def attack(plan: Plan, server: Server, tally: Tally, say: Callable[[str], None]) -> None:
    """Have others ask; hold connections while they do so; then come as a crowd."""
    await _others(plan, server.address, tally, plan.seconds / 6)
    tally.before, tally.latencies = tally.latencies, []
    command = [
        sys.executable,
        "-m",
        "campaigns.held",
        "hold",
        *map(str, (*server.address, plan.connections, plan.back_within, plan.seed)),
    ]
    holders = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert holders.stdout is not None
    try:
        until = time.monotonic() + plan.seconds
        others = asyncio.create_task(_others(plan, server.address, tally, plan.seconds))
        reading = asyncio.get_running_loop().run_in_executor
        while time.monotonic() < until:
            tally.held = json.loads(await reading(None, holders.stdout.readline))
            say(f"{tally.held['open']:>7,} held {server.memory() / 1e6:>7.0f} MB{len(tally.latencies):>9,} answers")
        await others
    finally:
        holders.kill()
        holders.communicate()
    tally.let_in = await _crowd(plan, server.address)
    if tally.let_in > plan.most:
        tally.wrong.append(f"{tally.let_in} connections from one address were let in, of at most {plan.most}")
    if "full: " not in server.log:
        tally.wrong.append("the log does not say that there was no room")
    for kind, seconds in tally.held["longest"].items():
        if seconds > 2 * plan.patience + SLACK:  # an answer that is not taken is waited for twice
            tally.wrong.append(f"{kind}: a connection was held for {seconds:.1f} s")
    if not tally.p99 < plan.slowest:
        tally.wrong.append(f"others waited {tally.p99:.0f} ms (p99)")


def campaign(plan: Plan, folder: Path, say: Callable[[str], None] = print) -> Tally:
    """Start a server, and hold its connections."""
    tally = Tally()
    limits = ["--timeout-seconds", str(plan.patience), "--idle-seconds", str(plan.patience)]
    limits += ["--max-connections-per-address", str(plan.most)]
    command = serving(str(folder / "held.db"), "--seed", str(plan.seed), *limits)
    if plan.fault is not None:
        place = command.index("pamo")
        command[place : place + 1] = ["campaigns.faults", plan.fault]
    with Server(command, folder) as server:
        asyncio.run(attack(plan, server, tally, say))
    return tally


def main(arguments: list[str]) -> int:
    """Run the campaign, print what it found, and return 1 if anything is wrong."""
    if arguments[:1] == ["hold"]:
        host, port, count, back_within, seed = arguments[1:]
        asyncio.run(Holders((host, int(port)), int(count), float(back_within), int(seed)).run())
    parser = argparse.ArgumentParser(description="Hold connections, and see that others are served.")
    parser.add_argument("--connections", type=int, default=Plan.connections, help="that are held (default 2000)")
    parser.add_argument("--seconds", type=float, default=Plan.seconds, help="for so long (default 60)")
    parser.add_argument("--back-within", type=float, default=Plan.back_within, metavar="S", help="they return (1 s)")
    parser.add_argument("--fault", choices=["wait-for-ever"], help="put this fault into the server; it must be found")
    given = parser.parse_args(arguments)
    plan = Plan(given.connections, given.seconds, back_within=given.back_within, fault=given.fault)
    with tempfile.TemporaryDirectory(prefix="pamo-held-", dir=".") as folder:
        tally = campaign(plan, Path(folder).absolute())
    for kind, seconds in tally.held["longest"].items():
        print(f"{kind:<32}{tally.held['hung_up'].get(kind, 0):>7,} × hung up on, after {seconds:.1f} s at most")
    for when, latencies in (("before", tally.before), ("meanwhile", tally.latencies)):
        p50, p99, p999 = np.percentile(latencies, [50, 99, 99.9])
        print(f"{len(latencies):,} answers to others {when}: p50 {p50:.1f} ms, p99 {p99:.1f} ms, p99.9 {p999:.1f} ms")
    print(f"of {plan.crowd:,} from one address {tally.let_in:,} were let in")
    for example in tally.wrong[:20]:
        print(f"  wrong: {example}")
    print("FAILED" if tally.wrong else "As it should be.")
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
