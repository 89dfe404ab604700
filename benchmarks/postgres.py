"""Durable feedback on PostgreSQL beside SQLite: `python -m benchmarks.postgres`.

Two services, one on each store, are asked in turns by wrk on the same processors, on which PostgreSQL's own processes
run as well. What counts is the ratio of the two in the same round. Each feedback is for a decision of its own and
answered once it is on the disk; afterwards both journals are checked against the answers.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.load import Tally, check, decide_ahead, measure
from benchmarks.servers import Server, processor_seconds, serving
from tests.store.servers import running_postgres

LEAST_RATIO = 0.6
"""Feedbacks a second on PostgreSQL, over those on SQLite."""
FASTEST = 12_000
"""Feedbacks a second for which decisions are made ahead."""


def database_seconds(postmaster: int) -> float:
    """Return the processor time that a PostgreSQL's processes have taken: those that run, and those that ended."""
    own = [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit() and parent(one) == postmaster]
    return sum(map(processor_seconds, [postmaster, *own])) + processor_seconds(postmaster, ended=True)


def parent(process: Path) -> int:
    """Return the process that started another, 0 where that has gone."""
    try:
        return int((process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    except OSError:
        return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and return 1 if the goal was missed or a journal is not what was answered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement (default 4)")
    parser.add_argument("--rounds", type=int, default=5, help="of both (default 5)")
    parser.add_argument("--connections", type=int, default=32, help="that are open at a time (default 32)")
    parser.add_argument("--users", type=int, default=5000, help="whom decisions are made for (default 5000)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="pamo-bench-", dir=".") as name, running_postgres() as database:
        folder = Path(name).absolute()
        stores = {"SQLite": str(folder / "load.db"), "PostgreSQL": database.get_uri()}
        postmaster = int(Path(database.pgdata, "postmaster.pid").read_text(encoding="utf-8").split()[0])
        tallies, spent = {store: Tally() for store in stores}, list[float]()
        with (
            Server(serving(stores["SQLite"], "--seed", "1", "--max-batch", "1000"), folder) as file,
            Server(serving(stores["PostgreSQL"], "--seed", "1", "--max-batch", "1000"), folder) as remote,
        ):
            for _ in range(options.rounds):
                for store, server in (("SQLite", file), ("PostgreSQL", remote)):
                    tally, ids = tallies[store], folder / "ids"
                    tally.decisions += decide_ahead(server, int(FASTEST * options.seconds), options.users, ids)
                    before = database_seconds(postmaster)
                    seen = measure("feedback", server, options.connections, options.seconds, ids)
                    if store == "PostgreSQL":
                        spent.append((database_seconds(postmaster) - before) / seen.answers * 1e6)
                    tally.feedbacks += seen.recorded
                    tally.rounds.append({"feedback": seen})
        wrong = [f"{store}: {one}" for store, tally in tallies.items() for one in check(stores[store], tally)]
    ratio = statistics.median(
        ours["feedback"].rate / theirs["feedback"].rate
        for theirs, ours in zip(*(tally.rounds for tally in tallies.values()), strict=True)
    )
    print(f"durable feedback over HTTP, {options.connections} connections, {os.cpu_count()} processors for all of it")
    print(f"{'':<12}{'a second':>10}{'p50 ms':>9}{'p99 ms':>9}{'service µs':>12}{'database µs':>13}")
    for store, tally in tallies.items():
        rate, *rest = (tally.median("feedback", one) for one in ("rate", "p50", "p99", "processor"))
        own = statistics.median(spent) if store == "PostgreSQL" else 0.0
        print(f"{store:<12}{rate:>10,.0f}{rest[0]:>9.2f}{rest[1]:>9.2f}{rest[2]:>12.0f}{own:>13.0f}")
    met = ratio >= LEAST_RATIO
    print(f"PostgreSQL over SQLite, at least {LEAST_RATIO:g}: {ratio:.2f}, {'met' if met else 'MISSED'}")
    print(f"journals: {'; '.join(wrong) if wrong else 'as many in them as were answered, and the sums are theirs'}")
    return int(bool(wrong) or not met)


if __name__ == "__main__":
    sys.exit(main())
