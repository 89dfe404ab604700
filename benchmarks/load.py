"""Load on the HTTP service: `python -m benchmarks.load`.

What counts is the ratio to a yardstick in the same run: a bare Starlette that decodes the same bodies and encodes the
same answers with msgspec (`yardsticks_http.py`). Both are run by uvicorn in processes of their own, and asked
in turns by wrk on the same processors. Each feedback is for a decision of its own and answered once it is on the disk;
afterwards the journal is checked against the answers that were counted.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.servers import ROOT, Caller, Server, serving
from pamo._version import __version__
from pamo.store import DecisionMade, FeedbackGiven, open_store
from pamo.store.maintenance import verify
from scripts import wrk

LEAST_RATIO = 0.5
"""Durable feedbacks a second, over the yardstick's answers."""
MOST_MILLISECONDS = 15.0
"""The 99th percentile of a feedback's latency."""
BATCH = 1000
TAIL = 0.5
"""Seconds that wrk is left to wait for the last answers."""
WHAT = {"echo": "bare echo (yardstick)", "feedback": "feedback", "decide": "decision", "mix": "decision, then feedback"}


@dataclass
class Measured:
    """What wrk saw of one server in one go; milliseconds, and the server's own microseconds of processor for each."""

    what: str
    answers: int
    seconds: float
    p50: float
    p99: float
    p999: float
    worst: float
    processor: float
    decided: int = 0
    recorded: int = 0

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.answers / self.seconds


@dataclass
class Tally:
    """All measurements, and what the journal should hold after them."""

    rounds: list[dict[str, Measured]] = field(default_factory=list)
    disk: list[float] = field(default_factory=list)
    """Milliseconds that a bare sync took, before each round."""
    decisions: int = 0
    feedbacks: int = 0

    def median(self, what: str, name: str) -> float:
        """Return the median of the rounds."""
        return float(statistics.median(getattr(one[what], name) for one in self.rounds))

    def ratio(self, what: str) -> float:
        """Return the median of the ratios to the yardstick in the same round."""
        return statistics.median(one[what].rate / one["echo"].rate for one in self.rounds)


def measure(what: str, server: Server, connections: int, seconds: float, ids: Path | None = None) -> Measured:
    """Have wrk ask a server for so many seconds, and return what it saw."""
    kind = "feedback" if what == "echo" else what
    command = [wrk.find(), "--threads", "1", "--connections", str(connections)]
    command += ["--duration", f"{int(seconds + TAIL) + 1}s", "--timeout", "30s"]
    command += ["--script", str(ROOT / "benchmarks" / "load.lua"), server.url, "--", kind, str(seconds)]
    before = server.cpu_seconds()
    done = subprocess.run([*command, *([str(ids)] if ids else [])], check=True, capture_output=True, text=True)
    processor = server.cpu_seconds() - before
    seen = json.loads(done.stdout.splitlines()[-1])
    if seen["missing"]:
        raise RuntimeError(f"the decisions made for {what} ran out: a server was much faster than in the round before")
    if seen["refused"] or seen["lost"] or not seen["answers"]:
        raise RuntimeError(f"{what}: {seen['refused']} refused and {seen['lost']} lost of {seen['answers']} answers")
    if what == "feedback":
        seen["recorded"] = seen["answers"]
    elif what == "decide":
        seen["decided"] = seen["answers"]
    elif what == "mix" and seen["decided"] + seen["recorded"] != seen["answers"]:
        raise RuntimeError(f"mix: {seen} are not all decisions and feedback")
    return Measured(
        what,
        seen["answers"],
        seen["seconds"],
        seen["p50"],
        seen["p99"],
        seen["p99.9"],
        seen["worst"],
        processor / seen["answers"] * 1e6,
        seen["decided"],
        seen["recorded"],
    )


def decide_ahead(server: Server, count: int, users: int, path: Path) -> int:
    """Make decisions to give feedback to, write their ids to a file, and return how many."""
    caller, made = Caller(server), 0
    names = itertools.cycle(f"user-{n}" for n in range(users))
    with path.open("w", encoding="utf-8") as file:
        while made < count:
            batch = caller.ask(
                "POST", "/v1/decisions/batch", {"requests": [{"user": next(names)} for _ in range(BATCH)]}
            )
            file.writelines(f"{one['id']}\n" for one in batch["decisions"])
            made += len(batch["decisions"])
    caller.close()
    return made


def sync_milliseconds(folder: Path) -> float:
    """Return what a bare sync of a page takes here: the median of some, and small beside everything else if idle."""
    times = []
    with (folder / "sync").open("wb", buffering=0) as file:
        for _ in range(40):
            file.write(os.urandom(4096))
            started = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e3


def rounds(
    echo: Server, service: Server, folder: Path, options: argparse.Namespace, progress: Any = sys.stderr
) -> Tally:
    """Measure the yardstick and the service in turns."""
    tally = Tally()
    made_up = folder / "made-up"
    made_up.write_text("".join(f"{n:024x}\n" for n in range(int(60_000 * options.seconds))), encoding="utf-8")
    fastest = 10_000.0
    for number in range(options.rounds):
        tally.disk.append(sync_milliseconds(folder))
        seen = {"echo": measure("echo", echo, options.connections, options.seconds, made_up)}
        fastest = max(fastest, seen["echo"].rate)
        tally.decisions += decide_ahead(service, int(1.2 * fastest * options.seconds), options.users, folder / "ids")
        for what in ("feedback", "decide", "mix"):
            ids = folder / "ids" if what == "feedback" else None
            seen[what] = measure(what, service, options.connections, options.seconds, ids)
            tally.decisions += seen[what].decided
            tally.feedbacks += seen[what].recorded
        tally.rounds.append(seen)
        told = ", ".join(f"{what} {one.rate:,.0f}/s" for what, one in seen.items())
        print(f"round {number + 1} of {options.rounds}: {told}", file=progress, flush=True)
    return tally


def check(store: str, tally: Tally) -> list[str]:
    """Return what is wrong with the journal, given what was answered; nothing if all is well."""
    with open_store(store) as opened:
        decisions = feedbacks = 0
        for _, event in opened.events():
            decisions += isinstance(event, DecisionMade)
            feedbacks += isinstance(event, FeedbackGiven)
        report = verify(opened)
    wrong = [] if report.ok else [f"the sums are not the journal's: {report.differences}"]
    if decisions != tally.decisions:
        wrong.append(f"{tally.decisions:,} decisions were answered, and {decisions:,} are in the journal")
    if feedbacks != tally.feedbacks:
        wrong.append(f"{tally.feedbacks:,} feedbacks were answered, and {feedbacks:,} are in the journal")
    return wrong


@contextmanager
def store_at(wanted: str | None, folder: Path) -> Iterator[str]:
    """Give the address of a store: a new SQLite file, the file or database that is wanted, or a new PostgreSQL."""
    if wanted != "postgresql":
        yield str(Path(wanted).absolute()) if wanted and "://" not in wanted else wanted or str(folder / "load.db")
        return
    from tests.store.servers import running_postgres

    with running_postgres() as server:
        yield server.get_uri()


def table(tally: Tally, options: argparse.Namespace, store: str, wrong: Sequence[str]) -> str:
    """Return what was found, for people."""
    kind = "PostgreSQL" if store.startswith("postgresql") else "SQLite"
    lines = [
        f"HTTP service, {kind}, {options.connections} connections, wrk with 1 thread, {os.cpu_count()} processors; "
        f"10 arms, 3 objectives, {options.users:,} users",
        f"medians of {options.rounds} rounds of {options.seconds:g} s, the yardstick and the service in turns; "
        f"a bare sync of the disk takes {statistics.median(tally.disk):.2f} ms",
        "",
        f"{'':<26}{'a second':>10}{'ratio':>8}{'p50 ms':>9}{'p99 ms':>9}{'p99.9 ms':>10}{'processor µs':>14}",
    ]
    for what, name in WHAT.items():
        rate, p50, p99, p999, processor = (
            tally.median(what, one) for one in ("rate", "p50", "p99", "p999", "processor")
        )
        lines.append(
            f"{name:<26}{rate:>10,.0f}{tally.ratio(what):>7.2f}×{p50:>9.2f}{p99:>9.2f}{p999:>10.2f}{processor:>14.0f}"
        )
    lines.append("")
    for name, reached, met in goals(tally, store):
        lines.append(f"{name}: {reached}, {'met' if met else 'MISSED'}")
    answered = f"{tally.feedbacks:,} feedbacks and {tally.decisions:,} decisions"
    lines.append(
        f"journal: {'; '.join(wrong) if wrong else f'{answered} answered, as many in it, and the sums are its'}"
    )
    return "\n".join(lines)


def goals(tally: Tally, store: str) -> list[tuple[str, str, bool]]:
    """Return each goal, what was reached, and whether that is enough. They are for SQLite; PostgreSQL has none."""
    if store.startswith("postgresql"):
        return []
    ratio, p99 = tally.ratio("feedback"), tally.median("feedback", "p99")
    return [
        (f"durable feedback, at least {LEAST_RATIO:g} of the yardstick", f"{ratio:.2f}", ratio >= LEAST_RATIO),
        (f"its p99, under {MOST_MILLISECONDS:g} ms", f"{p99:.1f} ms", p99 < MOST_MILLISECONDS),
    ]


def as_json(tally: Tally, options: argparse.Namespace, store: str, wrong: Sequence[str]) -> str:
    """Return all that was measured, for programs."""
    return json.dumps(
        {
            "version": __version__,
            "settings": {**vars(options), "processors": os.cpu_count()},
            "rounds": [
                {what: {**asdict(one), "rate": one.rate} for what, one in each.items()} for each in tally.rounds
            ],
            "disk_sync_milliseconds": tally.disk,
            "ratio": {what: tally.ratio(what) for what in WHAT},
            "goals": [{"goal": name, "reached": reached, "met": met} for name, reached, met in goals(tally, store)],
            "decisions": tally.decisions,
            "feedbacks": tally.feedbacks,
            "wrong": list(wrong),
        },
        indent=2,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and return 1 if a goal was missed or the journal is not what was answered."""
    parser = argparse.ArgumentParser(description="Put load on the HTTP service, and on a bare echo beside it.")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement (default 5)")
    parser.add_argument("--rounds", type=int, default=5, help="of all measurements (default 5)")
    parser.add_argument("--connections", type=int, default=32, help="that are open at a time (default 32)")
    parser.add_argument("--users", type=int, default=5000, help="whom decisions are made for (default 5000)")
    parser.add_argument("--store", metavar="ADDRESS", help="a new SQLite file, or postgresql for a server of its own")
    parser.add_argument("--seed", type=int, default=1, help="of the service's stream (default 1)")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="of stdout (default: table)")
    options = parser.parse_args(arguments)
    try:
        wrk.find()
    except LookupError as error:
        print(error, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="pamo-bench-", dir=".") as name:
        folder = Path(name).absolute()
        with store_at(options.store, folder) as store:
            service = serving(store, "--seed", str(options.seed), "--max-batch", str(BATCH))
            with (
                Server([sys.executable, "-m", "benchmarks.yardsticks_http"], folder) as echo,
                Server(service, folder) as server,
            ):
                tally = rounds(echo, server, folder, options)
            wrong = check(store, tally)
            print((table if options.format == "table" else as_json)(tally, options, store, wrong))
            met = all(met for _, _, met in goals(tally, store))
    return int(bool(wrong) or not met)


if __name__ == "__main__":
    sys.exit(main())
