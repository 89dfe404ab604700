"""Kill a process while it erases a user, again and again, and search every byte of its files for the name.

A process fills a SQLite store and erases one of its users, while others come and go; within the next milliseconds it
is ended by SIGKILL. Where the erasure was acknowledged, no file may hold the name at that moment. Where it was not, the
next start finishes what was begun; if it was not begun, the user is still there, and erasing again must do.

    python -m campaigns.erasures --kills 500

With `--fault keep-the-log` an erasure is acknowledged before the log is cut; the campaign must then find names.
"""

from __future__ import annotations

import argparse
import logging
import os
import select
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from pamo.store import ArmAdded, DecisionMade, Event, FeedbackGiven, Objective, Setup, UserErased
from pamo.store.maintenance import verify
from pamo.store.sqlite import SqliteStore

SETUP = Setup((Objective("taste", 1, 5),))
KILLS_A_STORE = 25
FAULTS = ("keep-the-log",)


@dataclass
class Tally:
    """What the campaign has seen."""

    kills: int = 0
    acknowledged: int = 0
    """Erasures that were acknowledged before the kill."""
    finished: int = 0
    """Erasures that the next start finished."""
    repeated: int = 0
    """Erasures that had not begun, and were asked for again."""
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.kills:,} kills inside erasures: {self.acknowledged:,} acknowledged before, {self.finished:,} "
            f"finished by the next start, {self.repeated:,} asked for again; {len(self.wrong):,} wrong"
        )


def events_of(random: Random, victim: str, count: int) -> list[Event]:
    """Return decisions and feedback of a user to be erased, among those of others."""
    events: list[Event] = [ArmAdded("A", "Anchor Inn", 0.0)]
    for _ in range(count):
        user = victim if random.random() < 0.5 else f"bystander {random.randrange(1000)}"
        made, why = f"{random.getrandbits(64):016x}", {"who": user, "why": "x" * random.randrange(400)}
        key = f"{user}, {made}" if random.random() < 0.5 else None
        events.append(DecisionMade(made, user, ("A",), 1.0, "campaign", 1.0, key=key, explanation=why))
        if random.random() < 0.7:
            stated = {"taste": 1.0} if random.random() < 0.3 else None
            events.append(FeedbackGiven(made, {"taste": random.uniform(1, 5)}, 2.0, 0.5, stated))
    return events


def work(path: Path, victim: str, seed: int, fault: str | None, said: int) -> None:
    """Be the process that is killed: fill the store, erase, and say when."""
    random = Random(seed)
    store = SqliteStore(path, SETUP, checkpoint_pages=random.choice([20, 200, 4000]), snapshot_every=500)
    if fault is not None:
        store._empty_log = lambda: True  # type: ignore[method-assign]  # that is the fault
    events = events_of(random, victim, random.choice([5, 50, 700]))
    for start in range(0, len(events), 20):
        store.append_many(events[start : start + 20])
    if random.random() < 0.5:
        store.snapshot()

    def go_on() -> None:
        for number in range(10**9):
            store.append(DecisionMade(f"{seed}-{number}", f"bystander {number % 50}", ("A",), 1.0, "campaign", 1.0))

    threading.Thread(target=go_on, daemon=True).start()
    os.write(said, b"e")
    store.append(UserErased(victim, 3.0))
    os.write(said, b"d")
    time.sleep(60)


def holding(folder: Path, token: str) -> list[str]:
    """Return the files that hold a text."""
    return [file.name for file in sorted(folder.iterdir()) if token.encode() in file.read_bytes()]


def kill_once(folder: Path, random: Random, fault: str | None, tally: Tally) -> None:
    """Start a process, kill it inside its erasure, and look at what it left."""
    path, token, seed = folder / "journal.db", f"{random.getrandbits(60):015x}", random.getrandbits(32)
    victim, wait, to_the_end = f"victim {token}", random.uniform(0.0, 0.15) * random.random(), random.random() < 0.3
    heard, said = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(heard)
            work(path, victim, seed, fault, said)
        finally:
            os._exit(1)
    os.close(said)
    begun = os.read(heard, 1)
    if to_the_end:  # how long an erasure takes depends on the machine; what comes just after it is of interest too
        select.select([heard], [], [], 60.0)
        wait /= 100
    time.sleep(wait)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    done = os.read(heard, 1)
    os.close(heard)
    if begun != b"e":
        tally.wrong.append(f"seed {seed}: the process ended by itself")
        return
    tally.kills += 1
    if done:
        tally.acknowledged += 1
        if left := holding(folder, token):
            tally.wrong.append(f"seed {seed}: acknowledged, and the name is in {', '.join(left)}")
    with SqliteStore(path) as store:
        if list(store.history(victim)):
            tally.repeated += 1
            store.append(UserErased(victim, 4.0))
        elif not done:
            tally.finished += 1
        if left := holding(folder, token):
            tally.wrong.append(f"seed {seed}: after a start, the name is in {', '.join(left)}")
        report = verify(store)
        if not report.ok or not store.sound():
            tally.wrong.append(f"seed {seed}: {(*report.damage, *report.differences, 'the file is damaged')[0]}")


def campaign(kills: int, seed: int = 1, fault: str | None = None) -> Tally:
    """Kill so many processes, a few on each store."""
    random, tally = Random(seed), Tally()
    while tally.kills < kills and len(tally.wrong) < 20:
        with tempfile.TemporaryDirectory(prefix="pamo-erasures-") as folder:
            for _ in range(min(KILLS_A_STORE, kills - tally.kills)):
                kill_once(Path(folder), random, fault, tally)
    return tally


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description="Kill processes inside erasures.")
    parser.add_argument("--kills", type=int, default=500, help="default 500")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fault", choices=FAULTS, help="a fault that must be found")
    options = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    started = time.perf_counter()
    tally = campaign(options.kills, options.seed, options.fault)
    logging.disable(logging.NOTSET)
    print(f"{tally}; {time.perf_counter() - started:.0f} s")
    for sentence in tally.wrong[:20]:
        print(f"  {sentence}")
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main())
