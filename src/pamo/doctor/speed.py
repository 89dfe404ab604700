"""Measures what speed to expect here, shortly."""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from pamo.doctor.checks import Announce, Check, Status
from pamo.engine import Engine
from pamo.errors import PamoError
from pamo.store import ArmAdded, DecisionMade, FeedbackGiven, Objective, Setup, Store, open_store

GROUP = "speed"
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
    yield Check(
        GROUP,
        "in memory",
        Status.OK,
        f"a decision and its feedback take {each:,.0f} µs ({1e6 / each:,.0f} a second) in one thread, with "
        f"{len(ARMS)} arms and {len(NAMES)} objectives",
        {"decide_and_feedback_us": round(each, 2)},
    )
    if folder is None:
        return
    announce("speed of the disk")
    try:
        one, many = on_disk(folder, seconds)
    except (PamoError, OSError) as error:
        yield Check(GROUP, "durable", Status.PROBLEM, f"a store in {folder} cannot be written to: {error}")
        return
    yield Check(
        GROUP,
        "durable",
        Status.OK,
        f"{one:,.0f} durable feedbacks a second from one thread that waits for each, {many:,.0f} from {THREADS}",
        {"feedbacks_per_second": round(one, 1), "threads": THREADS, "feedbacks_per_second_threads": round(many, 1)},
    )


def in_memory(seconds: float) -> float:
    """Return the median microseconds of a decision with its feedback."""
    times: list[float] = []
    with Engine(NAMES, seed=1) as engine:
        for arm in ARMS:
            engine.add_arm(arm)
        users = [f"user-{number}" for number in range(USERS)]

        def both(number: int) -> None:
            engine.feedback(engine.decide(users[number % USERS]).id, REWARDS, 0.1 * (number % 10))

        for number in range(USERS):  # compiles, and makes the users known
            both(number)
        end = time.perf_counter() + seconds
        for number in count():
            started = time.perf_counter()
            both(number)
            now = time.perf_counter()
            times.append(now - started)
            if now >= end:
                return statistics.median(times) * 1e6
    raise AssertionError  # the loop above ends only by returning


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
    started = time.perf_counter()
    lock, done, errors = threading.Lock(), [0] * threads, list[BaseException]()

    def give(place: int) -> None:
        try:
            while time.perf_counter() < started + seconds:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                store.append(FeedbackGiven(f"{number:012x}", REWARDS, 1.0, 0.5))
                done[place] += 1
        except BaseException as error:
            errors.append(error)

    givers = [threading.Thread(target=give, args=(place,)) for place in range(threads)]
    for giver in givers:
        giver.start()
    for giver in givers:
        giver.join()
    if errors:
        raise errors[0]
    return sum(done) / (time.perf_counter() - started)
