"""Kill the server under load, again and again, and see whether anything acknowledged is lost or counted twice.

Clients ask for decisions and give feedback over HTTP, now and then twice, late or in parts; some add and retire arms,
some say what is known of them, or of these arms, and some have themselves erased. Now and then the server is started
with another scale. The server is ended by SIGKILL at a random moment and started again, and whatever was
not acknowledged is sent once more. The clients keep a ledger of all that was acknowledged. In the end, and with SQLite
on the way as well, the store is held against it.

    python -m campaigns.kills --store sqlite --kills 1000
    python -m campaigns.kills --store postgresql --kills 50 --workers 2

With PostgreSQL the database is killed too. Some more kills, which are not counted among these, hit a server that is
just starting or stopping. `--fault acknowledge-early` puts a fault into the server, which the campaign must find. The
seed fixes what is asked and how long it is waited for a kill; what the kill meets is different each time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import numpy as np
from tqdm import tqdm

from campaigns.checking import Findings, check
from campaigns.faults import FAULTS
from campaigns.ledger import Ledger
from campaigns.processes import Database, Server, StartError
from campaigns.visitors import Visitor
from campaigns.wire import Line
from campaigns.world import objectives
from pamo.errors import DamagedError
from pamo.store import open_store
from pamo.store.sqlite import SqliteStore

CHECK_EVERY = 50
"""Kills between two looks into a SQLite store."""

KINDS = ("worker", "database", "workers", "both")
"""What is killed with PostgreSQL. A short campaign has the first two, in this order."""

LONGEST_LOAD = 0.3
"""Seconds of load at most from the first answer after a start to the kill."""


STUCK = 300.0
"""Seconds that a kill and a restart may take before something must be wrong."""

LONG_OUTAGE = 12.0
"""Seconds for which the database sometimes stays away: servers wait for ten, and then answer 503."""


@dataclass
class Plan:
    """What a campaign is to do."""

    store: str = "sqlite"
    kills: int = 1000
    seed: int = 1
    workers: int = 1
    clients: int = 16
    minutes: float | None = None
    fault: str | None = None
    check_every: int = CHECK_EVERY
    whole: int = 10
    """Every so many starts the server is an entirely new process, and else a fork of one that has got ready."""


@dataclass
class Tally:
    """What the campaign has seen."""

    plan: Plan
    ledger: Ledger
    kills: int = 0
    """Of servers under load, and of the database."""
    database_kills: int = 0
    outages: int = 0
    """Kills of the database after which it stayed away for longer than servers wait for it."""
    early: int = 0
    late: int = 0
    """Of servers that were starting, or stopping."""
    stops: int = 0
    checks: int = 0
    declared: int = 0
    """How often the scale of prices was another from then on."""
    starts: list[float] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether all is as it should be."""
        return self.findings.ok and not self.wrong and not self.ledger.wrong

    def __str__(self) -> str:
        ledger, found = self.ledger, self.findings
        rows = [
            ("store", self.plan.store),
            ("fault", self.plan.fault or "none"),
            ("seed", self.plan.seed),
            ("kills under load", self.kills),
            ("  of them of the database", self.database_kills),
            ("  away for long", self.outages),
            ("kills while starting", self.early),
            ("kills while stopping", self.late),
            ("orderly stops", self.stops),
            ("checks of the store", self.checks),
            ("starts, every so many whole", self.plan.whole),
            ("median start (s)", f"{float(np.median(self.starts or [0.0])):.2f}"),
            ("decisions acknowledged", ledger.decisions),
            ("feedbacks acknowledged", ledger.feedbacks),
            ("  acknowledged as there already", ledger.repeats),
            ("users erased", ledger.erasures),
            ("arms added, retired or revived", len(ledger.arms)),
            ("users and arms with features", sum(bool(known) for known in ledger.features.values())),
            ("scales declared anew", self.declared),
            ("requests without an answer", ledger.unanswered),
            ("requests answered 503", ledger.refused),
            ("events in the journal", found.events),
            ("users and arms found to have changed", len(found.begun_anew)),
            ("acknowledged decisions lost", found.lost_decisions),
            ("acknowledged feedbacks lost", found.lost_feedbacks),
            ("counted twice", found.twice),
            ("other than was sent", found.changed),
            ("sums that differ", found.differing),
            ("largest difference of sums", f"{found.deviation:.1e}"),
            ("wrong answers", len(ledger.wrong)),
            ("other faults", len(self.wrong)),
            ("minutes", f"{self.seconds / 60:.1f}"),
        ]
        return "\n".join(f"{name:<34}{f'{value:,}' if isinstance(value, int) else value:>16}" for name, value in rows)


class Campaign:
    """One run: servers, clients, and what kills the servers."""

    def __init__(self, plan: Plan, folder: Path, bar: tqdm[NoReturn]) -> None:
        self.plan = plan
        self.folder = folder
        self.random = Random(f"kills {plan.seed}")
        self.ledger = Ledger()
        self.tally = Tally(plan, self.ledger)
        self.database: Database | None = None
        self._bar = bar
        if plan.store == "postgresql":
            self.database = Database(folder)
            self.address = self.database.url
        else:
            self.address = str(folder / "journal.db")
        self.servers = [
            Server(self.address, folder, f"server-{number}", plan.fault, plan.whole) for number in range(plan.workers)
        ]
        self._counts: list[tuple[dict[str, Any], dict[str, int]]] = []
        self._stop = asyncio.Event()
        self._deadline = None if plan.minutes is None else time.monotonic() + 60.0 * plan.minutes

    async def run(self) -> Tally:
        """Start, kill until it is enough, let the clients finish, and look at what is left."""
        began = time.monotonic()
        clients: list[asyncio.Task[None]] = []
        try:
            for server in self.servers:
                await server.start()
            erasing = self.plan.fault != "acknowledge-early"  # which holds transactions open, where nobody is erased
            clients = [
                asyncio.create_task(
                    Visitor(number, self.plan.seed, self.servers, self.ledger, self._stop, erasing=erasing).run()
                )
                for number in range(self.plan.clients)
            ]
            killing = asyncio.create_task(self._kill_all())
            await asyncio.wait([killing, *clients], return_when=asyncio.FIRST_COMPLETED)
            self._stop.set()
            await killing
            async with asyncio.timeout(STUCK):
                await asyncio.gather(*clients)
            await self._ask_the_servers()
            await self._end()
        except StartError as error:
            self.tally.wrong.append(str(error))
        except TimeoutError:
            self.tally.wrong.append(f"nobody was served for {STUCK:g} s")
        finally:
            for client in clients:
                client.cancel()
            await asyncio.gather(*clients, return_exceptions=True)
            for server in self.servers:
                await server.close()
                self.tally.starts += server.starts
            if self.database is not None:
                await asyncio.to_thread(self.database.stop)
        self.tally.seconds = time.monotonic() - began
        return self.tally

    @property
    def _enough(self) -> bool:
        late = self._deadline is not None and time.monotonic() > self._deadline
        return late or self._stop.is_set() or self.tally.kills >= self.plan.kills or not self.tally.ok

    async def _kill_all(self) -> None:
        while not self._enough:
            async with asyncio.timeout(STUCK):
                if self.database is not None:
                    await self._kill_something(self.database)
                else:
                    await self._kill_a_server(self.servers[0])
                    if self.tally.kills % self.plan.check_every == 0 and not self._enough:
                        await self._look()
        # The last server gets its share of the load too.
        enough = self.ledger.answers + 20 * self.plan.clients
        async with asyncio.timeout(STUCK):
            while self.ledger.answers < enough and not self._stop.is_set() and self.tally.ok:
                await asyncio.sleep(0.01)

    async def _load(self) -> None:
        """Wait until the clients are served, and a random moment longer."""
        before = self.ledger.answers
        while self.ledger.answers == before and not self._stop.is_set():
            await asyncio.sleep(0.002)
        await asyncio.sleep(self.random.uniform(0.0, LONGEST_LOAD))

    def _count(self) -> None:
        self.tally.kills += 1
        self._bar.update()
        self._bar.set_postfix_str(f"{self.ledger.answers:,} answers", refresh=False)

    async def _kill_a_server(self, server: Server) -> None:
        """Kill it under load; sometimes once more while it starts, or while it stops."""
        await self._load()
        await server.kill()
        self._count()
        await self._restart(server)
        if self.random.random() < 0.05:
            await self._load()
            stopping = asyncio.create_task(server.end(signal.SIGTERM))
            await asyncio.sleep(self.random.uniform(0.0, 0.2))
            await server.kill()
            await stopping
            self.tally.late += 1
            await self._restart(server)

    async def _restart(self, server: Server) -> None:
        while self.random.random() < 0.1:
            await server.begin()
            usual = float(np.median(server.starts[-20:]))
            await asyncio.sleep(self.random.uniform(0.3, 1.1) * usual)  # the store is opened towards the end
            await server.kill()
            self.tally.early += 1
        await server.start()

    async def _kill_something(self, database: Database) -> None:
        """Kill one worker, all of them, the database, or the database and a worker."""
        kills = self.tally.kills
        kind = KINDS[kills] if kills < 2 else self.random.choices(KINDS, (50, 25, 10, 15))[0]
        one = self.random.choice(self.servers)
        killed = {"worker": [one], "database": [], "workers": self.servers, "both": [one]}[kind]
        await self._load()
        for server in killed:
            await server.kill()
        if kind in {"database", "both"}:
            await asyncio.to_thread(database.kill)
            self.tally.database_kills += 1
            if kills >= 2 and self.random.random() < 0.15:
                await asyncio.sleep(LONG_OUTAGE)
                self.tally.outages += 1
            await asyncio.to_thread(database.start)
        self._count()
        if killed == self.servers:
            self._declare()
        await asyncio.gather(*(self._restart(server) for server in killed))

    async def _look(self) -> None:
        """End the server, in good order every other time, and check the store while it is down."""
        server = self.servers[0]
        await self._load()
        if self.tally.checks % 2 == 0:
            await self._stop_in_order(server)  # what the server had in memory is in its snapshot, and is checked too
        else:
            await server.kill()
        self._check()
        self._declare()
        await server.start()

    def _declare(self) -> None:
        """Have all servers, none of which is running, start with another scale."""
        self.tally.declared += 1
        for server in self.servers:
            server.declare(objectives(500 + 100 * (self.tally.declared % 5)))

    async def _stop_in_order(self, server: Server) -> None:
        code = await server.end(signal.SIGTERM)
        self.tally.stops += 1
        if code != 0:
            self.tally.wrong.append(f"a server that was told to stop ended with {code}")

    def _check(self) -> None:
        try:
            store = open_store(self.address)
        except DamagedError as error:  # what was acknowledged is missing, and the store says so itself
            self.tally.wrong.append(str(error))
            store = SqliteStore.adopting(self.address)
        with store:
            found = check(store, self.ledger, exact=self.database is None)
        self.tally.checks += 1
        self.tally.findings = found

    async def _end(self) -> None:
        for server in self.servers:
            await self._stop_in_order(server)
        self._check()
        for counts, wanted in self._counts:
            # What an arm that was found to have changed forgets is counted no more.
            if not self.tally.findings.begun_anew and {name: counts.get(name) for name in wanted} != wanted:
                self.tally.wrong.append(f"a server counts {counts}, and the clients {wanted}")

    async def _ask_the_servers(self) -> None:
        """Note what each server says that it knows, and what the clients know, now that all are done."""
        await asyncio.sleep(0.6)  # a worker reads the arms' sums twice a second
        fed = [visit for visit in self.ledger.visits.values() if visit.acknowledged and visit.feedback is not None]
        bodies = [visit.feedback for visit in fed if visit.feedback is not None]
        whole = [body for body in bodies if len(body["rewards"]) == 3]
        wanted = {
            "users": len({visit.user for visit in fed if not visit.erased}),
            "pending_decisions": self.ledger.decisions - len(fed),
            "complete_feedbacks": len(whole),
            "overall_scores": sum("overall" in body for body in whole),
            "rewards": sum(len(body["rewards"]) for body in bodies),
        }
        for server in self.servers:
            assert server.address is not None
            line = Line()
            try:
                _, counts = await line.ask(server.address, "GET", "/v1/statistics")
            finally:
                line.close()
            self._counts.append((counts, wanted))


def campaign(plan: Plan, folder: Path, *, silent: bool = False) -> Tally:
    """Run a campaign in a folder, which keeps the store and the servers' logs."""
    with tqdm(total=plan.kills, unit="kill", smoothing=0.05, file=sys.stderr, disable=silent) as bar:
        return asyncio.run(_run(plan, folder, bar))


async def _run(plan: Plan, folder: Path, bar: tqdm[NoReturn]) -> Tally:
    return await Campaign(plan, folder, bar).run()


@contextlib.contextmanager
def _folder(kept: str | None) -> Iterator[Path]:
    if kept is None:
        with tempfile.TemporaryDirectory(prefix="pamo-kills-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    else:
        Path(kept).mkdir(parents=True)
        yield Path(kept).resolve()


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign, print what it found, and return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description="Kill the server under load, and see whether anything is lost.")
    parser.add_argument("--store", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--kills", type=int, default=1000, help="kills under load (default 1,000)")
    parser.add_argument("--workers", type=int, help="servers on one PostgreSQL (default 2; 1 with SQLite)")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--whole", type=int, default=10, metavar="N", help="fork all starts but every N-th (10)")
    parser.add_argument("--minutes", type=float, help="stop after so long, however many kills there were")
    parser.add_argument("--fault", choices=sorted(FAULTS), help="put this fault into the server; it must be found")
    parser.add_argument("--keep", metavar="FOLDER", help="a new folder for the store and the logs, which stays")
    given = parser.parse_args(arguments)
    workers = given.workers or (1 if given.store == "sqlite" else 2)
    if workers > 1 and given.store == "sqlite":
        parser.error("one process owns a SQLite store: --workers is for postgresql")
    plan = Plan(given.store, given.kills, given.seed, workers, given.clients, given.minutes, given.fault)
    plan.whole = given.whole
    with _folder(given.keep) as folder:
        tally = campaign(plan, folder)
    print(tally, flush=True)
    for example in (*tally.findings.examples, *tally.ledger.wrong[:20], *tally.wrong[:20]):
        print(f"  {example[:2000]}")
    if not tally.ok:
        print("FAILED")
        return 1
    short = "" if tally.kills >= plan.kills else f", though only {tally.kills:,} of {plan.kills:,} kills were made"
    print(f"As it should be: nothing acknowledged was lost, and nothing was counted twice{short}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
