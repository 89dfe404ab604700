"""Two servers on one PostgreSQL, and one load over both: the sums are the journal's refold, and the clients' own."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

from campaigns.checking import check
from campaigns.ledger import Ledger
from campaigns.processes import Server
from campaigns.visitors import Visitor
from pamo.store.maintenance import verify
from pamo.store.postgres import PostgresStore


def test_two_workers_with_one_load(postgres_url: Callable[[], str], tmp_path: Path) -> None:
    url, ledger = postgres_url(), Ledger()

    async def run() -> None:
        servers = [Server(url, tmp_path, f"server-{number}") for number in range(2)]
        await asyncio.gather(*(server.start() for server in servers))  # one of them begins the store
        stop = asyncio.Event()
        clients = [asyncio.create_task(Visitor(n, 7, servers, ledger, stop).run()) for n in range(12)]
        while ledger.answers < 1500 and not ledger.wrong:
            await asyncio.sleep(0.01)
        stop.set()
        await asyncio.gather(*clients)
        assert await asyncio.gather(*(server.end(signal.SIGTERM) for server in servers)) == [0, 0]

    asyncio.run(run())
    assert (ledger.wrong, ledger.refused) == ([], 0)
    assert ledger.repeats > 20
    assert not any(visit.unanswered for visit in ledger.visits.values())
    assert sum(visit.recorded for visit in ledger.visits.values()) > len(ledger.visits) / 2
    with PostgresStore(url) as store:
        # Nobody was killed and no connection broke: what was answered as recorded is what there is, part by part.
        found = check(store, ledger)
        assert found.ok, found
        assert found.deviation < 1e-9
        report = verify(store)
        fed = {visit.user for visit in ledger.visits.values() if visit.acknowledged and not visit.erased}
        assert (report.differences, report.users) == ((), len(fed))
        assert len(fed) > 40
        assert store.pending() == sum(not visit.acknowledged for visit in ledger.visits.values())
        # Each worker adds to a shard of its own, and the sums are of both.
        shards = store._link.rows("SELECT shard, sum(feedbacks)::bigint FROM pamo_counts GROUP BY shard")
        busy = [count for _, count in shards if count > 0.1 * ledger.feedbacks]
        assert len(busy) == 2
        assert sum(count for _, count in shards) == ledger.feedbacks
