"""Ask a server for a long time, steadily, and see whether its memory stays flat: `python -m campaigns.soak`.

A fixed set of users and arms, all of them known before the first sample is taken, so that what the store has to keep in
memory does not grow: decisions and feedback, one by one and in batches, some feedback twice, some requests wrong in
every way, and reads of everything. Each answer must have the status that its request deserves. `--fault leak` runs a
server that leaks, which the campaign must find.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from benchmarks.servers import ARMS, Server, serving
from campaigns.memory import Verdict, judge
from campaigns.wire import GoneError, Line
from campaigns.world import feedback, weights

SAMPLE_EVERY = 0.5
BATCH = 100


@dataclass(frozen=True)
class Plan:
    """What a soak is to do. rate: requests a second, of all connections together."""

    minutes: float = 10.0
    rate: float = 500.0
    connections: int = 16
    users: int = 2000
    seed: int = 1
    fault: str | None = None
    row_seconds: float = 60.0


@dataclass
class Tally:
    """What the soak has seen."""

    samples: list[tuple[float, int]] = field(default_factory=list)
    """Seconds, and bytes of the server's memory."""
    latencies: list[float] = field(default_factory=list)
    """Milliseconds, since the last row of the table."""
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest: float = 0.0

    @property
    def answers(self) -> int:
        """All answers."""
        return sum(self.statuses.values())

    @property
    def verdict(self) -> Verdict:
        """Whether the memory stayed flat."""
        return judge(self.samples)

    @property
    def ok(self) -> bool:
        """Whether all is as it should be."""
        return not self.wrong and self.verdict.flat


class Guest:
    """One connection, on which something is asked whenever it is time to."""

    def __init__(self, number: int, plan: Plan, server: Server, tally: Tally) -> None:
        self._random = Random(f"soak {plan.seed} {number}")
        self._plan, self._tally = plan, tally
        self._address = server.address
        self._line = Line()
        self._interval = plan.connections / plan.rate
        self._next = time.perf_counter() + self._random.random() * self._interval
        self._number, self._count = number, 0
        self._last = ""

    async def run(self, until: float) -> None:
        """Ask until it is time to stop."""
        kinds = (self._visit, self._visit_many, self._repeat, self._mistake, self._look)
        while self._next < until and len(self._tally.wrong) < 20:
            (kind,) = self._random.choices(kinds, (30, 2, 4, 6, 12))
            await kind()
        self._line.close()

    async def _visit(self) -> None:
        decision = await self._ask("POST", "/v1/decisions", self._request(), 201)
        body = feedback(self._random)
        path = f"/v1/decisions/{decision['id']}/feedback"
        await self._ask("POST", path, body, 200)
        self._last = decision["id"]
        if self._random.random() < 0.1:  # the same again, and something else
            await self._ask("POST", path, body, 200)
            name, score = next(iter(body["rewards"].items()))
            mirrored = {"price": 500.0, "taste": 6.0, "service": 1.0}[name] - score
            await self._ask("POST", path, {"rewards": {name: mirrored}}, 409)

    async def _visit_many(self) -> None:
        count = self._random.randint(1, BATCH)
        asked = {"requests": [self._request() for _ in range(count)]}
        made = (await self._ask("POST", "/v1/decisions/batch", asked, 200))["decisions"]
        given = {"feedback": [{"id": one["id"], **feedback(self._random)} for one in made]}
        await self._ask("POST", "/v1/feedback/batch", given, 200)

    async def _repeat(self) -> None:
        self._count += 1
        key = {"idempotency-key": f"{self._number}-{self._count}"}
        request = self._request()
        first = await self._ask("POST", "/v1/decisions", request, 201, key)
        again = await self._ask("POST", "/v1/decisions", request, 201, key)
        if first != again:
            self._tally.wrong.append(f"{request} with {key} was answered {first}, and then {again}")
        await self._ask("POST", f"/v1/decisions/{first['id']}/feedback", feedback(self._random), 200)

    async def _mistake(self) -> None:
        user = self._user()
        mistakes: tuple[tuple[str, str, Any, int], ...] = (
            ("POST", "/v1/decisions/none/feedback", feedback(self._random), 404),
            ("POST", "/v1/decisions", {"user": math.nan}, 400),  # which is no JSON
            ("POST", "/v1/decisions", {"user": user, "arms": ["nobody's"]}, 422),
            ("POST", "/v1/decisions", {"user": user, "arms": []}, 422),
            ("POST", "/v1/decisions", {"user": "x" * 10_000}, 422),
            ("POST", "/v1/decisions", {"user": user, "colour": "red"}, 422),
            ("POST", "/v1/decisions/none/feedback", {"rewards": {"price": 1e9}}, 422),
            ("GET", f"/v1/nothing/{self._random.random()}", None, 404),
            ("GET", f"/v1/arms/{self._random.random()}", None, 404),
            ("PUT", "/v1/decisions", {}, 405),
        )
        method, path, body, status = self._random.choice(mistakes)
        await self._ask(method, path, body, status)

    async def _look(self) -> None:
        paths = ["/v1/arms", "/v1/front", "/v1/objectives", "/v1/statistics", "/metrics", "/healthz", "/readyz"]
        paths += ["/v1/activity", "/v1/leaderboard", "/v1/users?query=user-1", "/openapi.json"]
        paths += [f"/v1/users/{self._user()}/{what}" for what in ("preference", "preference/history", "decisions")]
        paths.append(f"/v1/arms/{self._random.choice(ARMS)}")
        if self._last:
            paths.append(f"/v1/decisions/{self._last}")
        await self._ask("GET", self._random.choice(paths), None, 200)

    async def _ask(
        self, method: str, path: str, body: Any, status: int, headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """Wait for one's turn, ask, and note how it went."""
        wait = self._next - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        # Who comes late does not hurry afterwards: the load is to be steady.
        self._next = max(self._next, time.perf_counter() - self._interval) + self._interval
        started = time.perf_counter()
        tally = self._tally
        try:
            got, answer = await self._line.ask(self._address, method, path, body, headers)
        except GoneError as error:
            tally.wrong.append(f"{method} {path} got no answer: {error}")
            raise
        taken = (time.perf_counter() - started) * 1e3
        tally.latencies.append(taken)
        tally.slowest = max(tally.slowest, taken)
        tally.statuses[got] += 1
        if got != status:
            tally.wrong.append(f"{method} {path} {str(body)[:200]} was answered {got}, not {status}: {answer!r:.300}")
        return answer if isinstance(answer, dict) else {}

    def _user(self) -> str:
        return f"user-{self._random.randrange(self._plan.users)}"

    def _request(self) -> dict[str, Any]:
        request: dict[str, Any] = {"user": self._user()}
        if self._random.random() < 0.2:
            first = self._random.randrange(len(ARMS) - 3)  # a handful of offers, since offers are remembered
            request["arms"] = list(ARMS[first : first + 4])
        if self._random.random() < 0.1:
            request["preference"] = weights(self._random)
        if self._random.random() < 0.1:
            request["k"] = 3
        return request


async def introduce(server: Server, plan: Plan) -> None:
    """Make every user known, with a stated preference each, so that what is kept of them grows no more."""
    line, address = Line(), server.address
    scores = {"price": 100.0, "taste": 3.0, "service": 0.5}
    for start in range(0, plan.users, BATCH):
        users = [f"user-{n}" for n in range(start, min(start + BATCH, plan.users))]
        body = {"requests": [{"user": user} for user in users]}
        _, answer = await line.ask(address, "POST", "/v1/decisions/batch", body)
        weights = dict.fromkeys(scores, 1.0)
        given = [
            {"id": one["id"], "rewards": scores, "overall": 3.0, "preference": weights} for one in answer["decisions"]
        ]
        await line.ask(address, "POST", "/v1/feedback/batch", {"feedback": given})
    line.close()


async def soak(plan: Plan, server: Server, tally: Tally, said: Any = sys.stdout) -> None:
    """Put load on a server, take samples, and print a row of the table now and then."""
    await introduce(server, plan)
    began = time.perf_counter()
    until = began + plan.minutes * 60
    guests = [asyncio.create_task(Guest(number, plan, server, tally).run(until)) for number in range(plan.connections)]
    print(
        f"{'minute':>7}{'answers/s':>11}{'p50 ms':>9}{'p99 ms':>9}{'p99.9 ms':>10}{'memory MB':>11}",
        file=said,
        flush=True,
    )
    last = began
    try:
        while not all(guest.done() for guest in guests):
            await asyncio.wait(guests, timeout=SAMPLE_EVERY)
            now = time.perf_counter()
            if server.running():
                tally.samples.append((now - began, server.memory()))
            if now >= last + plan.row_seconds or all(guest.done() for guest in guests):
                rate = len(tally.latencies) / (now - last)
                p50, p99, p999 = np.percentile(tally.latencies or [math.nan], [50, 99, 99.9])
                print(
                    f"{(now - began) / 60:>7.1f}{rate:>11,.0f}{p50:>9.2f}{p99:>9.2f}{p999:>10.2f}"
                    f"{tally.samples[-1][1] / 1e6:>11.1f}",
                    file=said,
                    flush=True,
                )
                tally.latencies.clear()
                last = now
    finally:
        for guest in guests:
            guest.cancel()
        await asyncio.gather(*guests, return_exceptions=True)


def campaign(plan: Plan, folder: Path, said: Any = sys.stdout) -> Tally:
    """Start a server, and soak it."""
    tally = Tally()
    command = serving(str(folder / "soak.db"), "--seed", str(plan.seed))
    if plan.fault == "leak":
        command[command.index("pamo")] = "campaigns.leaking"
    with Server(command, folder) as server:
        asyncio.run(soak(plan, server, tally, said))
    return tally


def main(arguments: list[str] | None = None) -> int:
    """Run the soak, print what it found, and return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description="Ask a server for a long time, and see whether its memory stays flat.")
    parser.add_argument("--minutes", type=float, default=Plan.minutes, help="of load (default 10)")
    parser.add_argument("--rate", type=float, default=Plan.rate, help="requests a second (default 500)")
    parser.add_argument("--connections", type=int, default=Plan.connections, help="open at a time (default 16)")
    parser.add_argument("--users", type=int, default=Plan.users, help="who are decided for (default 2000)")
    parser.add_argument("--seed", type=int, default=Plan.seed)
    parser.add_argument("--fault", choices=["leak"], help="put this fault into the server; it must be found")
    given = parser.parse_args(arguments)
    plan = Plan(given.minutes, given.rate, given.connections, given.users, given.seed, given.fault)
    with tempfile.TemporaryDirectory(prefix="pamo-soak-", dir=".") as folder:
        tally = campaign(plan, Path(folder).absolute())
    statuses = ", ".join(f"{count:,} × {status}" for status, count in sorted(tally.statuses.items()))
    print(f"{tally.answers:,} answers ({statuses}), the slowest after {tally.slowest:.0f} ms, seed {plan.seed}")
    for example in tally.wrong[:20]:
        print(f"  wrong: {example}")
    print(tally.verdict)
    print("As it should be." if tally.ok else "FAILED")
    return int(not tally.ok)


if __name__ == "__main__":
    sys.exit(main())
