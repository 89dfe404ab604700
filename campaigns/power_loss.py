"""Cut the power of the SQLite store's disk, again and again, and see whether anything acknowledged is lost.

A store lives through a number of events on a disk that notes every step. Then the power is cut at many points of that
life, each leaving another of the states that the disk might be in; from each the store is opened again and compared
with what it should hold. One of them is where the next life begins, so that recoveries are interrupted as well.

    python -m campaigns.power_loss --points 10000

With `synchronous=NORMAL` the same campaign must find losses; it is run as well, and so shows that it can.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import apsw

from campaigns.disk import Image, Mark, Recorder, State
from pamo.errors import DamagedError, PamoError
from pamo.store import (
    ArmAdded,
    DecisionMade,
    Event,
    FeedbackGiven,
    MemoryStore,
    Objective,
    Setup,
    UserErased,
)
from pamo.store.maintenance import verify
from pamo.store.sqlite import SqliteStore

SETUP = Setup((Objective("taste", 1, 5), Objective("price", 0, 500, lower_is_better=True)))
FILE = "journal.db"
SNAPSHOT = "journal.db.snapshot.npz"
POINTS_A_LIFE = 100
_names = itertools.count()


@dataclass
class Tally:
    """What the campaign has seen."""

    points: int = 0
    lives: int = 0
    acknowledged: int = 0
    """Events that had been acknowledged when the power went, summed over the points."""
    lost: int = 0
    """Points after which some of them were missing."""
    corrupt: int = 0
    """Points after which the store did not open, or held anything else than it should."""
    examples: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.points:,} crash points in {self.lives:,} lives, {self.acknowledged:,} acknowledged events checked: "
            f"{self.lost:,} points with losses, {self.corrupt:,} corrupt"
        )


@dataclass
class Life:
    """One life of the store: the disk's steps, and what the journal held after each transaction."""

    disk: Recorder
    start: Image
    journals: dict[int, list[tuple[int, Event]]]
    """The journal by its length, at the ends of transactions."""


def events_of(random: Random, count: int) -> Iterator[list[Event]]:
    """Yield batches as clients might hand them in: decisions, feedback on time and twice, erasures."""
    waiting: list[str] = []
    yield [ArmAdded(arm, f"Arm {arm}", 0.0) for arm in "ABC"]
    for _ in range(count):
        batch: list[Event] = []
        for _ in range(random.randint(1, 4)):
            if waiting and random.random() < 0.5:
                number = random.choice(waiting)
                score = float(int(number.partition("-")[2]) % 5 + 1)
                batch.append(FeedbackGiven(number, {"taste": score, "price": 20.0}, 2.0, score / 5.0))
            else:
                number = f"{random.randrange(10**9)}-{random.randrange(100)}"
                waiting.append(number)
                user = f"user {random.randrange(8)}"
                batch.append(DecisionMade(number, user, (random.choice("ABC"),), 1.0, "campaign", 1.0, key=number))
        yield batch
        if random.random() < 0.04:
            yield [UserErased(f"user {random.randrange(8)}", 3.0)]


def live(folder: Path, start: Image, journal: list[tuple[int, Event]], synchronous: str, random: Random) -> Life:
    """Let a store live on from what is on the disk, and note every step."""
    for name, content in start.items():
        (folder / name).write_bytes(content)
    disk = Recorder(f"pamo-campaign-{next(_names)}")
    model = MemoryStore(SETUP)
    if journal:
        model.load(journal)
    life = Life(disk, start, {len(list(model.events())): list(model.events())})
    note = {"acknowledged": 1 if not journal else len(journal)}

    def open_store() -> SqliteStore:
        # FULL is the store's own setting: it is left to the store, so that the campaign tests that as well.
        worse: dict[str, Any] = {} if synchronous == "FULL" else {"synchronous": synchronous}
        pages = random.choice([4, 16, 64])
        return SqliteStore(folder / FILE, SETUP, vfs=disk.name, checkpoint_pages=pages, **worse)

    store = open_store()
    disk.steps.append(Mark(dict(note)))
    for batch in events_of(random, random.randint(10, 30)):
        store.append_many(batch)
        model.append_many(batch)
        held = list(model.events())
        life.journals[len(held)] = held
        note["acknowledged"] = len(held)
        disk.steps.append(Mark(dict(note)))
        if random.random() < 0.05:
            store.snapshot()
            disk.steps.append(Mark({**note, "snapshot": (folder / SNAPSHOT).read_bytes()}))
        if random.random() < 0.03:
            store.close(snapshot=False)
            store = open_store()
    store.close(snapshot=False)
    disk.unregister()
    return life


def check(folder: Path, image: Image, life: Life, acknowledged: int) -> tuple[list[tuple[int, Event]], str]:
    """Open the store from what is left; return its journal, and what is wrong with it ("" if nothing)."""
    for name, content in image.items():
        (folder / name).write_bytes(content)
    try:
        with SqliteStore(folder / FILE, SETUP, synchronous="OFF") as store:
            journal = list(store.events())
            report = verify(store)
            sound = store.sound()
    except DamagedError as error:  # the store noticed by itself
        return [], f"lost: {error}"
    except (PamoError, apsw.Error) as error:
        return [], f"corrupt: {error}"
    if not report.ok or not sound:
        return journal, f"corrupt: {report.differences or 'the file is damaged'}"
    if len(journal) < acknowledged:
        return journal, f"lost: {acknowledged - len(journal)} of {acknowledged} acknowledged events"
    if life.journals.get(len(journal)) != journal:
        return journal, "corrupt: the journal is not one that there ever was"
    return journal, ""


def crash(life: Life, points: int, random: Random, tally: Tally) -> tuple[Image, list[tuple[int, Event]]]:
    """Cut the power at so many points of a life; return one of the disks that are left, and its journal."""
    chosen = sorted(random.choices(range(len(life.disk.steps) + 1), k=points))
    state, done, acknowledged = State(durable=dict(life.start)), 0, 0
    snapshot = life.start.get(SNAPSHOT)
    left: tuple[Image, list[tuple[int, Event]]] = ({}, [])
    for point in chosen:
        for step in life.disk.steps[done:point]:
            state.take(step)
            if isinstance(step, Mark):
                acknowledged = step.note["acknowledged"]
                snapshot = step.note.get("snapshot", snapshot)
        done = point
        image = state.crash(random)
        image.pop(SNAPSHOT, None)
        if snapshot is not None and random.random() < 0.9:  # it is written apart, and may be torn or lost
            image[SNAPSHOT] = snapshot if random.random() < 0.8 else snapshot[: random.randrange(len(snapshot))]
        with tempfile.TemporaryDirectory(prefix="pamo-crash-") as folder:
            journal, wrong = check(Path(folder), image, life, acknowledged)
        tally.points += 1
        tally.acknowledged += acknowledged
        tally.lost += wrong.startswith("lost")
        tally.corrupt += wrong.startswith("corrupt")
        if wrong:
            if len(tally.examples) < 5:
                tally.examples.append(f"life {tally.lives}, step {point} of {len(life.disk.steps)}: {wrong}")
        elif journal and random.random() < 0.1:
            left = image, journal
    return left


def campaign(points: int, synchronous: str = "FULL", seed: int = 1) -> Tally:
    """Run lives and cut their power until so many points have been seen."""
    random, tally = Random(seed), Tally()
    start: tuple[Image, list[tuple[int, Event]]] = ({}, [])
    while tally.points < points:
        if len(start[1]) > 400:
            start = {}, []  # a new store: a long journal makes each point slow, and shows nothing new
        with tempfile.TemporaryDirectory(prefix="pamo-life-") as folder:
            life = live(Path(folder), *start, synchronous, random)
        tally.lives += 1
        start = crash(life, min(POINTS_A_LIFE, points - tally.points), random, tally)
    return tally


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign as it should be, and as it should not."""
    parser = argparse.ArgumentParser(description="Cut the power of the SQLite store's disk.")
    parser.add_argument("--points", type=int, default=10_000, help="crash points (default 10,000)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    failed = False
    for synchronous, points in (("FULL", options.points), ("NORMAL", max(options.points // 10, 100))):
        started = time.perf_counter()
        tally = campaign(points, synchronous, options.seed)
        print(f"synchronous={synchronous}: {tally}; {time.perf_counter() - started:.0f} s", flush=True)
        for example in tally.examples:
            print(f"  {example}")
        failed |= tally.corrupt > 0 or (tally.lost > 0) != (synchronous == "NORMAL")
    print("FAILED" if failed else "As it should be: FULL loses nothing, and NORMAL shows that losses would be seen.")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
