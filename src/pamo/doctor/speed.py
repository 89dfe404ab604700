"""Measures what speed to expect here, shortly."""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

from pamo.doctor.checks import Announce, Check, Subject
from pamo.doctor.disk import microseconds
from pamo.engine import Engine
from pamo.errors import PamoError
from pamo.store import ArmAdded, DecisionMade, FeedbackGiven, Objective, Setup, Store, open_store

IN_MEMORY, DURABLE = Subject("speed", "in memory"), Subject("speed", "durable")
THREADS = 32
NAMES = ("price", "taste", "service", "comfort", "noise")
ARMS = tuple(f"arm-{number}" for number in range(10))
REWARDS = dict.fromkeys(NAMES, 0.5)
USERS = 1000
FASTEST = 32_000
"""Feedbacks a second that a measurement is prepared for; should there be more, it ends sooner."""


def look_at_speed(folder: Path | None, *, seconds: float, announce: Announce) -> Iterator[Check]:
    """Yield how fast decisions and feedback are, in memory and, where there is a folder, on its disk."""
    announce("speed in memory (the first time, this compiles)")
    each = in_memory(seconds)
    yield IN_MEMORY.ok(
        f"a decision and its feedback take {each:,.0f} µs ({1e6 / each:,.0f} a second) in one thread, with "
        f"{len(ARMS)} arms and {len(NAMES)} objectives",
        decide_and_feedback_us=round(each, 2),
    )
    if folder is None:
        return
    announce("speed of the disk")
    try:
        one, many = on_disk(folder, seconds)
    except (PamoError, OSError) as error:
        yield DURABLE.problem(f"a store in {folder} cannot be written to: {error}")
        return
    yield DURABLE.ok(
        f"{one:,.0f} durable feedbacks a second from one thread that waits for each, {many:,.0f} from {THREADS}",
        feedbacks_per_second=round(one, 1),
        threads=THREADS,
        feedbacks_per_second_threads=round(many, 1),
    )


def in_memory(seconds: float) -> float:
    """Return the median microseconds of a decision with its feedback."""
    with Engine(NAMES, seed=1) as engine:
        for arm in ARMS:
            engine.add_arm(arm)
        users = [f"user-{number}" for number in range(USERS)]

        def both(number: int) -> None:
            engine.feedback(engine.decide(users[number % USERS]).id, REWARDS, 0.1 * (number % 10))

        for number in range(USERS):  # compiles, and makes the users known
            both(number)
        numbers = count()
        return statistics.median(microseconds(lambda: both(next(numbers)), seconds))


def on_disk(folder: Path, seconds: float, threads: int = THREADS) -> tuple[float, float]:
    """Return durable feedbacks a second in a store that is gone afterwards: from one thread, and from several."""
    with (
        tempfile.TemporaryDirectory(prefix=".pamo-doctor-", dir=folder) as made,
        open_store(Path(made) / "speed.db", Setup(tuple(map(Objective, NAMES)))) as store,
    ):
        store.append_many([ArmAdded(arm, arm, 0.0) for arm in ARMS])
        most = max(int(FASTEST * seconds), 2 * threads)
        store.append_many([_decision(number) for number in range(2 * most)])
        alone = _feedbacks_per_second(store, iter(range(most)), seconds, 1)
        return alone, _feedbacks_per_second(store, iter(range(most, 2 * most)), seconds, threads)


def _decision(number: int) -> DecisionMade:
    return DecisionMade(f"{number:012x}", f"user-{number % USERS}", (ARMS[number % 10],), 0.1, "prucb-hp", 0.0)


def _feedbacks_per_second(store: Store, numbers: Iterator[int], seconds: float, threads: int) -> float:
    """Have each thread give one feedback after the other, and wait for each, until the time is over."""
    started, lock = time.perf_counter(), threading.Lock()

    def give(_: int) -> int:
        for done in count():
            with lock:
                number = next(numbers, None)
            if number is None or time.perf_counter() >= started + seconds:
                return done
            store.append(FeedbackGiven(f"{number:012x}", REWARDS, 1.0, 0.5))
        raise AssertionError  # the loop above ends only by returning

    with ThreadPoolExecutor(threads) as pool:
        done = sum(pool.map(give, range(threads)))
    return done / (time.perf_counter() - started)
