"""What one of each costs on PostgreSQL, an event, a user and an arm: `python -m benchmarks.units`.

`docs/scale.md` makes its plan of these. A PostgreSQL of its own is filled with a month of decisions and feedback as the
service records them, and with arms; three objectives.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.month import SETUP, fill
from pamo import Engine
from pamo.rows import arm_width, user_width
from pamo.store import ArmAdded, DecisionMade, FeedbackGiven
from pamo.store.postgres import PostgresStore
from pamo.store.postgres_tables import ARM_SUMS, USER_SUMS
from tests.store.servers import running_postgres


def size(store: PostgresStore, table: str) -> int:
    """Return the bytes of a table with its indexes."""
    return int(store._rows("SELECT pg_total_relation_size(%s::regclass)", (table,))[0][0])


def written(store: PostgresStore) -> int:
    """Return the bytes of write-ahead log so far."""
    return int(store._rows("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")[0][0])


def seconds(work: Callable[[], Any], times: int = 5) -> float:
    """Return what something takes: the median of some times."""
    found = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        found.append(time.perf_counter() - started)
    return statistics.median(found)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--arms", type=int, default=10_000)
    options = parser.parse_args(arguments)
    lines: dict[str, str] = {}
    with running_postgres() as server:
        address = server.get_uri()
        fill(address, options.events, options.users, time.time())
        with PostgresStore(address, SETUP, refresh=0.0) as store:
            users, events = store.count_users(), store.end()
            lines["an event, with its indexes"] = f"{size(store, 'pamo_events') / events:,.0f} bytes"
            lines["a user's sums, with their index"] = f"{size(store, USER_SUMS) / users:,.0f} bytes"
            ids = list(store.user_ids())[:500]
            lines["to read a user's sums, 500 at a time"] = (
                f"{seconds(lambda: store.user_rows(ids)) / 500 * 1e6:.0f} µs"
            )
            lines["the same, one alone"] = f"{seconds(lambda: store.user_rows(ids[:1]), 50) * 1e6:.0f} µs"
            names = [f"{n:08x}-0000-4000-8000-{n:012x}" for n in range(options.arms)]
            before = size(store, "pamo_arms"), size(store, ARM_SUMS)
            for start in range(0, len(names), 1000):
                store.append_many([ArmAdded(arm, arm, 0.0) for arm in names[start : start + 1000]])
            rewards = {"price": 250.0, "taste": 3.0, "service": 0.5}
            made = [
                DecisionMade(f"z{n:023x}", f"user-{n % options.users}", (arm,), 0.1, "prucb-hp-v@0.1.0", 0.0)
                for n, arm in enumerate(names)
            ]
            for start in range(0, len(made), 500):
                store.append_many(made[start : start + 500])
            log = written(store)
            for start in range(0, len(made), 32):
                told = [FeedbackGiven(one.id, rewards, 0.0, 3.0) for one in made[start : start + 32]]
                store.append_many(told)
            lines["write-ahead log of a feedback, 32 in a batch"] = f"{(written(store) - log) / len(made):,.0f} bytes"
            lines["an arm, with its index"] = f"{(size(store, 'pamo_arms') - before[0]) / len(names):,.0f} bytes"
            lines["its sums, with their index, for each shard that has fed it"] = (
                f"{(size(store, ARM_SUMS) - before[1]) / len(names):,.0f} bytes"
            )
            count, before_reading = len(store.arms().ids), time.thread_time()
            wall = seconds(store.arms, 5) / count
            own = (time.thread_time() - before_reading) / 5 / count
            lines["to read the sums of all arms, for each"] = f"{wall * 1e6:.1f} µs"
            lines["of which the worker's own"] = f"{own * 1e6:.1f} µs"
            lines["an arm's row in a merge, and a user's row"] = f"{8 * arm_width(3)} and {8 * user_width(3)} bytes"
    with Engine(["price", "taste", "service"], seed=1) as engine:
        engine.add_arms([f"arm-{n}" for n in range(10_000)])
        offer = [f"arm-{n}" for n in range(1000)]
        engine.decide("ann", offer)
        each = seconds(lambda: engine.decide("ann", offer), 50) / len(offer)
        lines["to decide among 1,000 arms of 10,000, for each of them"] = f"{each * 1e9:.0f} ns"
    for what, found in lines.items():
        print(f"{what:<62}{found:>20}")


if __name__ == "__main__":
    main()
