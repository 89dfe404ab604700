"""Speed and size of the stores: `python -m benchmarks.store`.

What counts are the ratios to a yardstick in the same run: for the memory store the statistics' own `observe`, for
SQLite a bare transaction for each event on the same disk. Sizes are of a million users with five objectives.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import apsw

from pamo.contract.forgetting import half_lives
from pamo.statistics import ArmStatistics, UserStatistics
from pamo.store import ArmAdded, DecisionMade, Event, FeedbackGiven, MemoryStore, Objective, Setup, Store, snapshot
from pamo.store.encoding import encode
from pamo.store.fold import Fold
from pamo.store.sqlite import SqliteStore

NAMES = ("price", "taste", "service", "comfort", "noise")
SETUP = Setup(tuple(Objective(name) for name in NAMES))
REWARDS = dict.fromkeys(NAMES, 0.5)
SUBMITTERS = 32
MOST_MEGABYTES = 700
"""That a million users may take."""


def decision(number: int) -> DecisionMade:
    """Return one decision of many."""
    return DecisionMade(f"{number:012x}", f"user-{number % 5000}", (f"arm-{number % 10}",), 0.1, "prucb-hp", 0.0)


def feedback(number: int) -> FeedbackGiven:
    """Return the feedback to it."""
    return FeedbackGiven(f"{number:012x}", REWARDS, 1.0, 0.5)


def with_arms(store: Store) -> Store:
    """Add ten arms."""
    store.append_many([ArmAdded(f"arm-{k}", f"Arm {k}", 0.0) for k in range(10)])
    return store


def median_microseconds(call: Callable[[int], object], count: int = 20_000, part: int = 500) -> float:
    """Return the microseconds a call takes: the median over parts of the calls, each timed as a whole."""
    times = []
    for start in range(0, count, part):
        started = time.perf_counter()
        for number in range(start, start + part):
            call(number)
        times.append((time.perf_counter() - started) / part * 1e6)
    return statistics.median(times)


def memory() -> None:
    """Print what appending to memory takes."""
    arms, users = ArmStatistics.zeros(arms=10, objectives=5), UserStatistics.zeros(users=5000, objectives=5)
    reward = [0.5] * 5

    def observe(number: int) -> None:
        arms.observe(number % 10, reward, 0.5)
        users.observe(number % 5000, reward, 0.5)

    store = with_arms(MemoryStore(SETUP))
    observe(0)
    store.append_many([decision(10**6), feedback(10**6)])  # the first call compiles
    decisions, feedbacks = [decision(n) for n in range(20_000)], [feedback(n) for n in range(20_000)]
    yardstick = median_microseconds(observe)
    made = median_microseconds(lambda n: store.append(decisions[n]))
    given = median_microseconds(lambda n: store.append(feedbacks[n]))
    read = median_microseconds(lambda n: store.user_rows([f"user-{n % 5000}"]))
    print("memory store, µs (median)")
    print(f"  observe, arm and user (yardstick)  {yardstick:8.2f}")
    print(f"  append a decision                  {made:8.2f}")
    print(f"  append a feedback, fold included   {given:8.2f}   {yardstick / given:.1f}× as fast as the yardstick")
    print(f"  read one user's sums               {read:8.2f}")


def sqlite(folder: Path) -> None:
    """Print how many events a second become durable."""
    bare = apsw.Connection(str(folder / "bare.db"))
    bare.pragma("journal_mode", "wal")
    bare.pragma("synchronous", "FULL")
    bare.execute("CREATE TABLE events (sequence INTEGER PRIMARY KEY, kind, decision, user, key, body)")
    bodies = [encode(decision(n)) for n in range(500)]
    started = time.perf_counter()
    for row in bodies:
        bare.execute("INSERT INTO events (kind, decision, user, key, body) VALUES (?, ?, ?, ?, ?)", row)
    yardstick = len(bodies) / (time.perf_counter() - started)
    bare.close()

    with with_arms(SqliteStore(folder / "threads.db", SETUP)) as store:
        each = 600

        def submit(first: int) -> None:
            for number in range(first, first + each):
                store.append(decision(number))
                store.append(feedback(number))

        threads = [threading.Thread(target=submit, args=(k * each,)) for k in range(SUBMITTERS)]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        threaded = 2 * each * SUBMITTERS / (time.perf_counter() - started)

    with with_arms(SqliteStore(folder / "batches.db", SETUP)) as store:
        batches: list[list[Event]] = [[decision(n + k) for k in range(16)] for n in range(0, 16_000, 16)]
        batches += [[feedback(n + k) for k in range(16)] for n in range(0, 16_000, 16)]
        started = time.perf_counter()
        for start in range(0, len(batches), 2):  # two batches on their way at a time, as from an event loop
            for future in [store.submit_many(batch) for batch in batches[start : start + 2]]:
                future.result()
        batched = 16 * len(batches) / (time.perf_counter() - started)
    print("SQLite store, durable events a second")
    print(f"  a bare transaction for each (yardstick)    {yardstick:8,.0f}")
    print(f"  {SUBMITTERS} threads, one event each at a time      {threaded:8,.0f}   {threaded / yardstick:.1f}×")
    print(f"  one caller, two batches of 16 on their way {batched:8,.0f}   {batched / yardstick:.1f}×")


def starting(events: int, folder: Path, setup: Setup, what: str) -> None:
    """Print what a start takes that has no snapshot: to read, to check and to fold the whole journal."""
    path, arms = folder / f"{what}.db", [ArmAdded(f"arm-{k}", f"Arm {k}", 0.0) for k in range(10)]

    def journal() -> Iterator[Event]:
        yield setup
        yield from arms
        for number in range((events - len(arms) - 1) // 2):
            made = decision(number)
            yield made
            yield replace(feedback(number), arm=made.arms[0], user=made.user)

    store = SqliteStore(path, setup)
    count = store.load(enumerate(journal(), start=1))
    store.close(snapshot=False)
    SqliteStore(folder / f"warm-{what}.db", setup).close()
    started = time.perf_counter()
    SqliteStore(path).close(snapshot=False)
    seconds = time.perf_counter() - started
    print(f"a start from {count:,} events without a snapshot, {what}")
    print(f"  read, check and fold them   {seconds:8.1f} s   ({seconds / count * 1e6:.1f} µs each)")


def million(users: int, folder: Path) -> None:
    """Print what many users take to hold, to save and to open."""
    path = folder / "users.npz"
    fold = Fold(SETUP)
    started = time.perf_counter()
    for n in range(users):
        fold.apply(FeedbackGiven("", REWARDS, 0.0, 0.5, None, "arm", f"{n:08x}-0000-4000-8000-{n:012x}"), n + 1)
    folded = time.perf_counter()
    snapshot.save(snapshot.Snapshot(fold), path, "benchmark")
    saved = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.store", "--open", str(path)]
    grown, opened = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    print(f"{users:,} users with five objectives, ids of 36 characters")
    print(f"  fold a feedback of each     {folded - started:8.1f} s   ({(folded - started) / users * 1e6:.1f} µs each)")
    print(f"  write the snapshot          {saved - folded:8.1f} s   ({path.stat().st_size / 1e6:,.0f} MB)")
    print(f"  open it in a new process    {float(opened):8.1f} s")
    print(f"  memory, the index included  {float(grown):8,.0f} MB   (at most {MOST_MEGABYTES} for a million)")


def open_one(path: Path) -> None:
    """Open a snapshot and print by how many megabytes the process has grown, and the seconds."""
    Fold(SETUP).apply(FeedbackGiven("", REWARDS, 0.0, 0.5, None, "arm", "user"))  # what the code itself takes
    before = peak()
    started = time.perf_counter()
    kept = snapshot.load(path, "benchmark")
    seconds = time.perf_counter() - started
    assert kept is not None
    print(peak() - before, seconds)


def peak() -> float:
    """Return the most megabytes of memory that this process has had, as Linux tells it."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=200_000, help="of the journal that a start folds")
    parser.add_argument("--open", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.open:
        open_one(options.open)
        return
    memory()
    with tempfile.TemporaryDirectory(prefix="pamo-bench-", dir=".") as folder:
        sqlite(Path(folder))
        starting(options.events, Path(folder), SETUP, "nothing forgotten")
        starting(options.events, Path(folder), replace(SETUP, half_life=half_lives("30 days")), "half-lives")
        million(options.users, Path(folder))


if __name__ == "__main__":
    main()
