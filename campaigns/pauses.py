"""See that nobody waits while a large store is looked after: `python -m campaigns.pauses`.

A server with a million users is asked steadily, for decisions and with feedback. Meanwhile it writes snapshots, carries
its log over into the database, and erases users with a long history. What each request waits is counted from when it
was due, so that one that is held up shows in those behind it too; and of each of the three, what was waited while it
went on. `--fault in-one-go` runs a server that writes its snapshots in one go, which the campaign must find.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from benchmarks.servers import ARMS, Server, serving
from campaigns.wire import GoneError, Line
from campaigns.world import feedback
from pamo.store import ArmAdded, DecisionMade, Event, FeedbackGiven, Objective, Setup
from pamo.store.sqlite import SqliteStore

LARGE = 3
"""Users with a long history, who are erased one after another."""
LOOK_EVERY = 0.01
"""Seconds between two looks at the files."""


@dataclass(frozen=True)
class Plan:
    """What to do.

    rate: requests a second. history: decisions of a user who is erased. slowest: milliseconds that p99.9 has to be
    under.
    """

    users: int = 1_000_000
    seconds: float = 60.0
    rate: float = 500.0
    history: int = 50_000
    connections: int = 64
    slowest: float = 150.0
    seed: int = 1
    fault: str | None = None


@dataclass
class Tally:
    """What was seen: when each request was due and what it waited, and from when to when the server was at what."""

    waited: list[tuple[float, float]] = field(default_factory=list)
    spans: dict[str, list[tuple[float, float]]] = field(
        default_factory=lambda: {"snapshot": [], "checkpoint": [], "erasure": []}
    )
    wrong: list[str] = field(default_factory=list)

    def during(self, kind: str) -> list[float]:
        """Return the milliseconds that were waited while the server was at something, or got to it."""
        spans = self.spans[kind]
        return [wait for due, wait in self.waited if any(a - 0.05 <= due + wait / 1e3 and due <= b for a, b in spans)]


def fill(path: Path, plan: Plan) -> None:
    """Begin a store with so many users, each of whom gave one feedback, and some with a long history."""
    setup = Setup(
        (Objective("price", 0, 500, lower_is_better=True), Objective("taste", 1, 5), Objective("service")),
        Objective("overall", 1, 5),
    )
    rewards = {"price": 100.0, "taste": 3.0, "service": 0.5}

    def events() -> Iterator[Event]:
        yield setup
        yield from (ArmAdded(arm, arm, 0.0) for arm in ARMS)
        for number in range(plan.users):
            yield FeedbackGiven(f"first-{number}", rewards, 0.0, 3.0, None, ARMS[number % 10], f"user-{number}")
        for number in range(LARGE * plan.history):
            user = f"large-{number % LARGE}"
            yield DecisionMade(f"long-{number}", user, (ARMS[0],), 1.0, "p", 0.0)
            yield FeedbackGiven(f"long-{number}", rewards, 1.0, 3.0, None, ARMS[0], user)

    with SqliteStore(path, setup) as store:
        store.load(enumerate(events(), start=1))


async def ask(plan: Plan, server: Server, tally: Tally, number: int, going_on: Callable[[float], bool]) -> None:
    """Ask for decisions and give feedback, each when it is due, as long as that is said to be in time."""
    random, line = Random(f"pauses {plan.seed} {number}"), Line()
    interval = plan.connections / plan.rate
    due = time.perf_counter() + random.random() * interval
    made: list[str] = []
    while going_on(due):
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        if made:
            asked = line.ask(server.address, "POST", f"/v1/decisions/{made.pop()}/feedback", feedback(random))
        else:
            asked = line.ask(server.address, "POST", "/v1/decisions", {"user": f"user-{random.randrange(plan.users)}"})
        try:
            status, answer = await asked
        except GoneError as error:
            tally.wrong.append(f"no answer: {error}")
            return
        tally.waited.append((due, (time.perf_counter() - due) * 1e3))
        if status == 201:
            made.append(answer["id"])
        elif status != 200:
            tally.wrong.append(f"answered {status}: {answer!r:.200}")
        due += interval
    line.close()


async def watch(path: Path, tally: Tally) -> None:
    """Note when a snapshot is being written, and when the database is, which only a checkpoint does."""
    beside = path.with_name(path.name + ".snapshot.npz.new")
    since: dict[str, float] = {}
    changed = path.stat().st_mtime_ns
    while True:
        now, was, changed = time.perf_counter(), changed, path.stat().st_mtime_ns
        for kind, going_on in (("snapshot", beside.exists()), ("checkpoint", changed != was)):
            if going_on:
                since.setdefault(kind, now - LOOK_EVERY)
            elif kind in since:
                tally.spans[kind].append((since.pop(kind), now))
        await asyncio.sleep(LOOK_EVERY)


async def erase(plan: Plan, server: Server, tally: Tally) -> None:
    """Erase the users with a long history, in the second half, one after another."""
    line = Line()
    await asyncio.sleep(plan.seconds / 2)
    for number in range(LARGE):
        began = time.perf_counter()
        status, answer = await line.ask(server.address, "DELETE", f"/v1/users/large-{number}")
        tally.spans["erasure"].append((began, time.perf_counter()))
        if status != 204:
            tally.wrong.append(f"an erasure was answered {status}: {answer!r:.200}")
    line.close()


async def attack(plan: Plan, server: Server, path: Path, tally: Tally) -> None:
    """Ask, watch and erase."""
    watching = asyncio.create_task(watch(path, tally))
    until = time.perf_counter() + plan.seconds
    asking = [ask(plan, server, tally, number, lambda due: due < until) for number in range(plan.connections)]
    await asyncio.gather(erase(plan, server, tally), *asking)
    watching.cancel()


def campaign(plan: Plan, folder: Path, say: Callable[[str], None] = print) -> Tally:
    """Fill a store, serve it, and ask it."""
    tally, path = Tally(), folder / "pauses.db"
    fill(path, plan)
    say(f"{plan.users:,} users, {LARGE} with {plan.history:,} decisions each: {path.stat().st_size / 1e6:,.0f} MB")
    # An erasure of somebody with a long history is given more than the usual ten seconds on a slow machine.
    command = serving(str(path), "--seed", str(plan.seed), "--timeout-seconds", "60")
    place = command.index("pamo")
    command[place : place + 1] = [
        "campaigns.pauses",
        "serve",
        str(int(plan.rate * plan.seconds / 6)),
        plan.fault or "-",
    ]
    with Server(command, folder) as server:
        asyncio.run(attack(plan, server, path, tally))
    for kind, spans in tally.spans.items():
        if not spans:
            tally.wrong.append(f"there was no {kind}")
            continue
        found = float(np.percentile(tally.during(kind) or [np.inf], 99.9))
        if found >= plan.slowest:
            tally.wrong.append(f"{kind}: p99.9 of what was waited is {found:.0f} ms")
    return tally


def serve(every: int, fault: str, arguments: list[str]) -> int:
    """Run pamo's command line with a store that takes a snapshot more often."""
    from pamo.cli import main as pamo
    from pamo.store import snapshot

    defaults: Any = SqliteStore.__init__.__kwdefaults__
    defaults["snapshot_every"] = every
    if fault == "in-one-go":
        in_steps = snapshot.save_in_steps

        def in_one_go(take: Any, path: Path, journal: str, do: Any) -> None:
            do(lambda: in_steps(take, path, journal, lambda step: step()))

        snapshot.save_in_steps = in_one_go
    return pamo(arguments)


def main(arguments: list[str]) -> int:
    """Run the campaign, print what it found, and return 1 if anything is wrong."""
    if arguments[:1] == ["serve"]:
        return serve(int(arguments[1]), arguments[2], arguments[3:])
    parser = argparse.ArgumentParser(description="See that nobody waits while a large store is looked after.")
    parser.add_argument("--users", type=int, default=Plan.users, help="of the store (default 1,000,000)")
    parser.add_argument("--seconds", type=float, default=Plan.seconds, help="of load (default 60)")
    parser.add_argument("--rate", type=float, default=Plan.rate, help="requests a second (default 500)")
    parser.add_argument("--history", type=int, default=Plan.history, help="decisions of who is erased (default 50,000)")
    parser.add_argument("--fault", choices=["in-one-go"], help="put this fault into the server; it must be found")
    given = parser.parse_args(arguments)
    plan = Plan(given.users, given.seconds, given.rate, given.history, fault=given.fault)
    with tempfile.TemporaryDirectory(prefix="pamo-pauses-", dir=".") as folder:
        tally = campaign(plan, Path(folder).absolute())
    parts = {"all": [wait for _, wait in tally.waited]} | {kind: tally.during(kind) for kind in tally.spans}
    for kind, waited in parts.items():
        p50, p99, p999, most = np.percentile(waited or [np.nan], [50, 99, 99.9, 100])
        spans = tally.spans.get(kind, [(0.0, plan.seconds)])
        went_on = sum(b - a for a, b in spans)
        print(
            f"{kind:<12}{len(spans):>4} × {went_on:>6.1f} s{len(waited):>9,} answers   "
            f"p50 {p50:.1f}, p99 {p99:.1f}, p99.9 {p999:.1f}, most {most:.1f} ms"
        )
    for example in tally.wrong[:20]:
        print(f"  wrong: {example}")
    print("FAILED" if tally.wrong else "As it should be.")
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
