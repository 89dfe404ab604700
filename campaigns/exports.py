"""See that nobody waits while decisions are exported: `python -m campaigns.exports`.

A store with a month behind it is served and asked steadily, for decisions and with feedback, while `pamo store export
--decisions` writes a table of all of them. What each request waits is counted from when it was due. The table has to
hold every decision that there was when the export began, and the command must not grow with the journal. `--fault lock`
holds SQLite's lock for writing meanwhile, as a reader must not; the campaign must find it.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow.parquet

from benchmarks.month import fill
from benchmarks.servers import Server, environment, serving
from campaigns import pauses
from pamo.store.sqlite_file import apsw
from tests.store.servers import running_postgres

USERS = 20_000


@dataclass(frozen=True)
class Plan:
    """What to do. before: seconds of load before the export begins.

    seconds, slowest, most_bytes: what the export, the milliseconds of p99 meanwhile and the command's memory have to be
    under.
    """

    events: int = 2_000_000
    rate: float = 500.0
    ending: str = ".parquet"
    seconds: float = 60.0
    slowest: float = 50.0
    most_bytes: float = 400e6
    before: float = 4.0
    fault: str | None = None


@dataclass
class Tally:
    """What was seen: what requests waited before and during the export, in milliseconds, and what it took."""

    before: list[float] = field(default_factory=list)
    during: list[float] = field(default_factory=list)
    seconds: float = 0.0
    rows: int = 0
    bytes: int = 0
    """The most memory that the command took."""
    wrong: list[str] = field(default_factory=list)


async def attack(plan: Plan, server: Server, address: str, target: Path, tally: Tally) -> None:
    """Ask for a while, then go on while the export runs."""
    asked = pauses.Plan(users=USERS, rate=plan.rate)
    seen, ended = pauses.Tally(), float("inf")
    asking = [
        asyncio.create_task(pauses.ask(asked, server, seen, number, lambda due: due < ended))
        for number in range(asked.connections)
    ]
    await asyncio.sleep(plan.before)
    began = time.perf_counter()
    with _lock(address) if plan.fault == "lock" else nullcontext(), tempfile.TemporaryFile() as said:
        command = ["nice", sys.executable, "-m", "pamo", "store", "export", address, str(target), "--decisions"]
        with subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=said) as process:
            while process.poll() is None:
                tally.bytes = max(tally.bytes, _memory(process.pid))
                await asyncio.sleep(0.05)
        if process.returncode:
            said.seek(0)
            tally.wrong.append(f"the export ended with {process.returncode}: {said.read().decode()[-300:]}")
    ended = time.perf_counter()
    tally.seconds = ended - began
    await asyncio.gather(*asking)
    tally.before = [wait for due, wait in seen.waited if due + wait / 1e3 < began]
    tally.during = [wait for due, wait in seen.waited if due + wait / 1e3 >= began]
    tally.wrong += seen.wrong


def _memory(process: int) -> int:
    """Return the most bytes that a process has had so far, as Linux tells it; 0 once it has ended."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0) * 1024


@contextmanager
def _lock(address: str) -> Iterator[None]:
    connection = apsw.Connection(address)
    connection.set_busy_timeout(10_000)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def campaign(plan: Plan, address: str, folder: Path) -> Tally:
    """Fill a store, serve it, and export it."""
    tally, target = Tally(), folder / f"decisions{plan.ending}"
    if not (address.endswith(".db") and Path(address).exists()):
        fill(address, plan.events, USERS, time.time())
    with Server(serving(address, "--seed", "1"), folder) as server:
        asyncio.run(attack(plan, server, address, target, tally))
    if not tally.wrong:
        tally.rows = _rows(target)
    if tally.rows < plan.events // 2:
        tally.wrong.append(f"{tally.rows:,} decisions were exported of {plan.events // 2:,}")
    if tally.seconds >= plan.seconds:
        tally.wrong.append(f"the export took {tally.seconds:.1f} s")
    if (p99 := float(np.percentile(tally.during or [np.inf], 99))) >= plan.slowest:
        tally.wrong.append(f"p99 of what was waited meanwhile is {p99:.0f} ms")
    if tally.bytes > plan.most_bytes:
        tally.wrong.append(f"the export took {tally.bytes / 1e6:.0f} MB of memory")
    return tally


def _rows(path: Path) -> int:
    if path.suffix == ".parquet":
        return int(pyarrow.parquet.read_metadata(path).num_rows)
    with path.open("rb") as file:
        return sum(1 for _ in file) - 1


def main(arguments: list[str]) -> int:
    """Run the campaign, print what it found, and return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description="See that nobody waits while decisions are exported.")
    parser.add_argument("--events", type=int, default=Plan.events, help="of the store (default 2,000,000)")
    parser.add_argument("--rate", type=float, default=Plan.rate, help="requests a second (default 500)")
    parser.add_argument("--csv", action="store_true", help="export to CSV rather than to Parquet")
    parser.add_argument("--store", help="a SQLite file to begin, or go on with; `postgresql` starts a server")
    parser.add_argument("--fault", choices=["lock"], help="put this fault into the export; it must be found")
    given = parser.parse_args(arguments)
    plan = Plan(given.events, given.rate, ".csv" if given.csv else ".parquet", fault=given.fault)
    with tempfile.TemporaryDirectory(prefix="pamo-exports-", dir=".") as folder:
        place = Path(folder).absolute()
        if given.store == "postgresql":
            with running_postgres() as server:
                tally = campaign(plan, server.get_uri(), place)
        else:
            tally = campaign(plan, str(Path(given.store).absolute() if given.store else place / "month.db"), place)
    print(f"{tally.rows:,} decisions exported in {tally.seconds:.1f} s with {tally.bytes / 1e6:.0f} MB of memory")
    for name, waited in (("before", tally.before), ("meanwhile", tally.during)):
        p50, p99, most = np.percentile(waited or [np.nan], [50, 99, 100])
        print(f"{name:<10}{len(waited):>8,} answers   p50 {p50:.1f}, p99 {p99:.1f}, most {most:.1f} ms")
    for example in tally.wrong[:20]:
        print(f"  wrong: {example}")
    print("FAILED" if tally.wrong else "As it should be.")
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
