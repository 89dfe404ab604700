"""Clients of a campaign: they decide, give feedback, and send again whatever was not acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from random import Random
from typing import Any
from urllib.parse import quote

from benchmarks.servers import ARMS
from campaigns.ledger import Delivery, Ledger, Visit
from campaigns.processes import Server
from campaigns.wire import GoneError, Line
from campaigns.world import ARM_FEATURES, USER_FEATURES, features, feedback, weights

USERS = 40


class WrongAnswerError(Exception):
    """An answer that should not have been given; it is in the ledger."""


class Visitor:
    """One client: makes visits until it is told to stop, and then finishes those that it has begun."""

    def __init__(
        self,
        number: int,
        seed: int,
        servers: Sequence[Server],
        ledger: Ledger,
        stop: asyncio.Event,
        *,
        erasing: bool = True,
    ) -> None:
        self._name = f"{seed}-{number}"
        self._random = Random(f"visitor {self._name}")
        self._servers = servers
        self._ledger = ledger
        self._stop = stop
        self._erasing = erasing
        self._count = 0
        self._lines = [Line() for _ in servers]
        self._spare = [Line() for _ in servers]  # for what is sent at the same time
        self._late: list[Visit] = []

    async def run(self) -> None:
        """Make visits."""
        try:
            while not self._stop.is_set():
                await self._round()
            while self._late:
                with contextlib.suppress(WrongAnswerError):
                    await self._feed([self._late.pop()])
        finally:
            for line in (*self._lines, *self._spare):
                line.close()

    async def _round(self) -> None:
        random = self._random
        visits = [self._new() for _ in range(random.choice([1, 1, 1, 1, 2, 5]))]
        try:
            if random.random() < 0.05 and self._erasing:
                await self._come_and_be_erased()
            if random.random() < 0.05:
                await self._change_an_arm()
            await self._decide(visits)
            if random.random() < 0.1:
                await self._decide(visits[:1])  # the same request again gets the same decision
            self._late += visits
            if random.random() < 0.7:
                random.shuffle(self._late)
                now, self._late = self._late[: len(visits) + 1], self._late[len(visits) + 1 :]
                await self._feed(now)
                if random.random() < 0.2:
                    await self._feed(now[:1])
        except WrongAnswerError:
            return

    async def _come_and_be_erased(self) -> None:
        """Be somebody who comes once, gives feedback, and wants to be forgotten."""
        self._count += 1
        user = f"passer-by {self._name}-{self._count}"
        visits = [self._new(user) for _ in range(self._random.randint(1, 3))]
        await self._decide(visits)
        await self._feed(visits[:2])
        for visit in visits:
            visit.erasing = True
        self._ledger.features[user] = None
        await self._ask(self._lines, f"/v1/users/{quote(user)}", None, 204, method="DELETE")
        self._ledger.features[user] = {}
        for visit in visits:
            visit.erased = True

    async def _change_an_arm(self) -> None:
        """Add an arm of one's own, retire it, or revive it."""
        arm = f"extra {self._name}-{self._random.randrange(3)}"
        active = not self._ledger.arms.get(arm, False)
        self._ledger.arms[arm] = None
        if active:
            own = features(self._random, ARM_FEATURES)
            known, body = self._ledger.said(arm, own), {"name": f"Extra, {self._count}", "features": own}
            await self._ask(self._lines, f"/v1/arms/{quote(arm)}", body, 200, method="PUT")
            self._ledger.features[arm] = known
        else:
            await self._ask(self._lines, f"/v1/arms/{quote(arm)}", None, 200, method="DELETE")
        self._ledger.arms[arm] = active

    def _new(self, user: str | None = None) -> Visit:
        random = self._random
        self._count += 1
        guest = f"guest {self._name}-{random.randrange(2)}"  # of whom no other client says anything
        if user is None and random.random() < 0.15:
            user = guest
        request: dict[str, Any] = {"user": user or f"user {random.randrange(USERS)}"}
        if user is not None:
            request["features"] = features(random, USER_FEATURES)
        if random.random() < 0.4:
            request["arms"] = random.sample(ARMS, random.randint(1, 4))
            if random.random() < 0.5:  # tonight's prices
                request["arms"] = {arm: {"price": random.uniform(0, 500)} for arm in request["arms"]}
        if random.random() < 0.2:
            request["k"] = random.randint(1, 3)
        if random.random() < 0.2:
            request["preference"] = weights(random)
        visit = Visit(f"{self._name}-{self._count}", request["user"], request)
        self._ledger.visits[visit.key] = visit
        return visit

    async def _decide(self, visits: list[Visit]) -> None:
        told: dict[str, list[dict[str, Any]]] = {}
        for visit in visits:
            if "features" in visit.request and visit.decision is None:  # what is said again is not learned again
                told.setdefault(visit.user, []).append(visit.request["features"])
        known = {user: self._ledger.said(user, *said) for user, said in told.items()}
        if len(visits) == 1:
            keyed = {"idempotency-key": visits[0].key}
            answers = [await self._ask(self._lines, "/v1/decisions", visits[0].request, 201, keyed)]
        else:
            body = {"requests": [{**visit.request, "key": visit.key} for visit in visits]}
            answers = (await self._ask(self._lines, "/v1/decisions/batch", body, 200))["decisions"]
        for visit, one in zip(visits, answers, strict=True):
            self._ledger.decided(visit, one)
        self._ledger.features.update(known)

    async def _feed(self, visits: list[Visit]) -> None:
        for visit in visits:
            if visit.feedback is None:
                visit.feedback = feedback(self._random)
                assert visit.decision is not None
                offer = visit.request.get("arms")
                if isinstance(offer, dict):
                    visit.feedback["rewards"]["price"] = offer[visit.decision["arm"]]["price"]
        if len(visits) > 1 and self._random.random() < 0.5:
            await self._feed_together(visits)
            return
        for visit in visits:
            deliveries = [self._feed_one(self._lines, visit)]
            if self._random.random() < 0.15:
                deliveries.append(self._feed_one(self._spare, visit))
            # All are waited for, even if one is wrong: what goes on by itself would share its line with the next visit.
            for outcome in await asyncio.gather(*deliveries, return_exceptions=True):
                if outcome is not None:
                    raise outcome

    async def _feed_one(self, lines: list[Line], visit: Visit) -> None:
        assert visit.decision is not None
        path = f"/v1/decisions/{visit.decision['id']}/feedback"
        if not visit.acknowledged and visit.feedback is not None and self._random.random() < 0.3:  # a part beforehand
            name, score = self._random.choice(list(visit.feedback["rewards"].items()))
            await self._deliver(lines, path, visit, {"rewards": {name: score}}, part=True)
        assert visit.feedback is not None
        await self._deliver(lines, path, visit, visit.feedback)

    async def _deliver(
        self, lines: list[Line], path: str, visit: Visit, body: dict[str, Any], *, part: bool = False
    ) -> None:
        delivery = self._ledger.deliver(visit, body)
        self._ledger.fed(visit, delivery, await self._ask(lines, path, body, 200, sent=[delivery]), part=part)

    async def _feed_together(self, visits: list[Visit]) -> None:
        bodies, sent = [], []
        for visit in visits:
            assert visit.decision is not None
            assert visit.feedback is not None
            bodies.append({"id": visit.decision["id"], **visit.feedback})
            sent.append(self._ledger.deliver(visit, visit.feedback))
        answer = await self._ask(self._lines, "/v1/feedback/batch", {"feedback": bodies}, 200, sent=sent)
        for visit, delivery, one in zip(visits, sent, answer["results"], strict=True):
            self._ledger.fed(visit, delivery, one)

    async def _ask(
        self,
        lines: list[Line],
        path: str,
        body: Any,
        wanted: int,
        headers: dict[str, str] | None = None,
        sent: Sequence[Delivery] = (),
        method: str = "POST",
    ) -> Any:
        """Send until it is acknowledged, to whichever server is there."""
        while True:
            number, address = await self._somewhere()
            for delivery in sent:
                delivery.attempts += 1
            try:
                status, answer = await lines[number].ask(address, method, path, body, headers)
            except GoneError:
                self._ledger.unanswered += 1
            else:
                if status == wanted:
                    self._ledger.answers += 1
                    return answer
                if status != 503:
                    self._ledger.wrong.append(f"{path}: {body} was answered {status} {answer}")
                    raise WrongAnswerError
                self._ledger.refused += 1
            await asyncio.sleep(0.02)

    async def _somewhere(self) -> tuple[int, tuple[str, int]]:
        while True:
            there = [(number, server.address) for number, server in enumerate(self._servers)]
            up = [(number, address) for number, address in there if address is not None]
            if up:
                return self._random.choice(up)
            await asyncio.sleep(0.02)
