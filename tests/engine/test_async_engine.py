"""The engine for asyncio: what is asked together is recorded together, and who is wrong or gone hurts nobody else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import pytest

from pamo import Engine
from pamo.arrays import Floats
from pamo.contract.objectives import objectives
from pamo.engine import AsyncEngine, Request
from pamo.errors import ConflictError, InputError, StoreError, UnknownDecisionError
from pamo.store import ArmAdded, Event, MemoryStore, Receipt, Setup

Result = TypeVar("Result")
SCORES = {"price": 0.5, "taste": 0.5}


class WatchedStore(MemoryStore):
    """Notes what is handed in together, and holds it while it is told to."""

    def __init__(self) -> None:
        super().__init__(Setup(objectives(["price", "taste"])))
        self.batches: list[int] = []
        self.holding = False
        self.held: list[tuple[Sequence[Event], Future[list[Receipt]]]] = []
        self.broken: BaseException | None = None

    def submit_many(self, events: Sequence[Event]) -> Future[list[Receipt]]:
        for event in events:
            self.check(event)
        self.batches.append(len(events))
        if self.broken is not None:
            done: Future[list[Receipt]] = Future()
            done.set_exception(self.broken)
            return done
        if not self.holding:
            return super().submit_many(events)
        self.held.append((events, Future()))
        return self.held[-1][1]

    def let_go(self) -> None:
        """Record what was held; from another thread, as a store with a writer would."""

        def work() -> None:
            for events, done in self.held:
                if done.set_running_or_notify_cancel():
                    done.set_result(MemoryStore.submit_many(self, events).result())
            self.held.clear()

        self.holding = False
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()


class RemoteStore(WatchedStore):
    """Has users' sums behind a network: notes how many are asked for at once, and may be slow or fail."""

    remote = True

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[int] = []
        self.gate = threading.Event()
        self.gate.set()
        self.unreachable = False

    def user_rows(self, ids: Sequence[str]) -> tuple[Floats, Floats]:
        self.reads.append(len(ids))
        self.gate.wait()
        if self.unreachable:
            raise StoreError("the database cannot be reached")
        return super().user_rows(ids)

    def user_row(self, user: str) -> tuple[Floats, Floats]:
        return self.user_rows((user,))


def run(work: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(work)


@pytest.fixture(params=[WatchedStore, RemoteStore])
def store(request: pytest.FixtureRequest) -> WatchedStore:
    made: WatchedStore = request.param()
    return made


def live_on(store: WatchedStore, timeout: float = 10.0, **options: Any) -> AsyncEngine:
    engine = Engine(store=store, seed=1, **options)
    for arm in "AB":
        engine.add_arm(arm)
    store.batches.clear()
    if isinstance(store, RemoteStore):
        store.reads.clear()
    return AsyncEngine(engine, timeout)


def test_what_is_asked_in_one_turn_is_recorded_together(store: WatchedStore) -> None:
    async def work() -> None:
        live = live_on(store)
        made = await asyncio.gather(*(live.decide(f"u{n}", k=2) for n in range(50)))
        assert [one.user for one in made] == [f"u{n}" for n in range(50)]
        assert store.batches == [50]
        given = await asyncio.gather(*(live.feedback(one.id, SCORES, overall=0.5) for one in made))
        assert store.batches == [50, 50]
        assert {one.status for one in given} == {"recorded"}
        again = await asyncio.gather(*(live.feedback(one.id, SCORES, overall=0.5) for one in made))
        assert {one.status for one in again} == {"duplicate"}
        assert [one.learned for one in again] == [one.learned for one in given]
        live.close()

    run(work())


def test_an_erasure_is_handed_in_by_itself(store: WatchedStore) -> None:
    """What was handed in together with it would be answered only when a long history is gone."""

    async def work() -> None:
        live = live_on(store)
        made = [await live.decide(user) for user in ("ann", "bob", "cem")]
        store.batches.clear()
        bob, cem = (live.feedback(one.id, SCORES, overall=0.5) for one in made[1:])
        await asyncio.gather(bob, live.erase_user("ann"), cem)
        assert sorted(store.batches) == [1, 2]
        live.close()

    run(work())


def test_a_wrong_event_does_not_hurt_others(store: WatchedStore) -> None:
    async def work() -> None:
        live = live_on(store)
        made = await asyncio.gather(*(live.decide("ann") for _ in range(5)))
        results = await asyncio.gather(
            live.feedback(made[0].id, SCORES),
            live.feedback(made[1].id, {"price": float("nan")}),
            live.feedback(made[2].id, {"colour": 1.0}),
            live.feedback("nothing", SCORES),
            live.feedback(made[3].id, SCORES),
            live.feedback(made[3].id, {"price": 0.1}),
            return_exceptions=True,
        )
        kinds = [type(one).__name__ for one in results]
        assert kinds == ["Feedback", "InputError", "InputError", "UnknownDecisionError", "Feedback", "ConflictError"]
        errors: Any = results
        assert errors[1].field == "rewards.price"
        assert live.engine.statistics()["complete_feedbacks"] == 2
        with pytest.raises(InputError):  # alone as well
            await live.feedback(made[4].id, {"price": 7.0})
        live.close()

    run(work())


def test_a_wrong_request_does_not_hurt_others(store: WatchedStore) -> None:
    """Over a network as well, where those who asked meanwhile are decided for together."""

    async def work() -> None:
        live = live_on(store)
        results = await asyncio.gather(
            live.decide("ann"),
            live.decide("bob", arms=["Z"]),
            live.decide("eve", preference={"price": 1.0}),
            live.decide("joe", k=0),
            live.decide("zoe", k=2),
            return_exceptions=True,
        )
        kinds = [type(one).__name__ for one in results]
        assert kinds == ["Decision", "InputError", "InputError", "InputError", "Decision"]
        errors: Any = results
        assert [errors[n].field for n in (1, 2, 3)] == ["arms", "preference", "k"]
        assert live.engine.statistics()["pending_decisions"] == 2
        live.close()

    run(work())


def test_many_belong_together(store: WatchedStore) -> None:
    async def work() -> None:
        live = live_on(store)
        made = await live.decide_many([Request("ann"), Request("bob", k=2)])
        assert [(one.user, len(one.arms)) for one in made] == [("ann", 1), ("bob", 2)]
        assert store.batches == [2]
        with pytest.raises(InputError):
            await live.decide_many([Request("ann"), Request("")])
        assert store.batches == [2]
        live.close()

    run(work())


def test_keys(store: WatchedStore) -> None:
    async def work() -> None:
        live = live_on(store)
        first, again = await asyncio.gather(live.decide("ann", key="x"), live.decide("ann", key="x"))
        assert first.id == again.id
        with pytest.raises(ConflictError):
            await live.decide("bob", key="x")
        live.close()

    run(work())


def test_new_arms_are_added_once(store: WatchedStore) -> None:
    async def work() -> None:
        live = live_on(store, accept_new_arms=True)
        made = await asyncio.gather(*(live.decide("ann", arms=["C", "D"]) for _ in range(5)), return_exceptions=True)
        assert [type(one).__name__ for one in made] == ["Decision"] * 5
        await live.decide_many([Request("ann", ["E"])])
        assert [arm.id for arm in live.engine.arms()] == list("ABCDE")
        with pytest.raises(InputError):
            await live.decide("ann", arms=["F"], k=0)
        assert live.engine.arm("F") is None
        live.close()

    run(work())


def test_a_store_that_does_not_answer(store: WatchedStore) -> None:
    """Everybody is told after a while that nothing is acknowledged, and may send the same again."""

    async def work() -> None:
        live = live_on(store, timeout=0.05)
        made = await live.decide("ann")
        store.holding = True
        waiting = [live.decide("ann", key="x"), live.feedback(made.id, SCORES), live.decide_many([Request("bob")])]
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(one) for one in results] == [StoreError] * 3
        assert all("0.05 s" in str(one) for one in results)
        store.let_go()  # what was handed in may still be recorded, and nobody waits any more
        await asyncio.sleep(0)
        assert (await live.feedback(made.id, SCORES)).status == "duplicate"
        assert (await live.decide("ann", key="x")).user == "ann"
        live.close()

    run(work())


def test_an_answer_in_time_is_not_late(store: WatchedStore) -> None:
    """From the store's own thread, as with SQLite."""

    async def work() -> None:
        live = live_on(store, timeout=60.0)
        made = await live.decide("ann")
        store.holding = True
        task = asyncio.ensure_future(live.feedback(made.id, SCORES))
        while not store.held:
            await asyncio.sleep(0)
        assert not task.done()
        store.let_go()
        assert (await task).status == "recorded"
        live.close()

    run(work())


def test_a_store_that_fails(store: WatchedStore) -> None:
    async def work() -> None:
        live = live_on(store)
        made = await live.decide("ann")
        store.broken = StoreError("the disk is full")
        results = await asyncio.gather(
            *(live.feedback(made.id, SCORES) for _ in range(3)), live.decide("ann"), return_exceptions=True
        )
        assert [str(one) for one in results] == ["the disk is full"] * 4
        store.broken = None
        assert (await live.feedback(made.id, SCORES)).status == "recorded"
        store.close()
        with pytest.raises(StoreError):
            await live.decide("ann")
        live.close()

    run(work())


def test_a_caller_who_has_gone(store: WatchedStore) -> None:
    async def work() -> None:
        live = live_on(store)
        made = await asyncio.gather(*(live.decide("ann") for _ in range(3)))
        store.holding = True
        tasks = [asyncio.ensure_future(live.feedback(one.id, SCORES)) for one in made]
        while not store.held:
            await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0)
        store.let_go()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(one).__name__ for one in results] == ["Feedback", "CancelledError", "Feedback"]
        # It had been handed in, and so it is recorded.
        assert (await live.feedback(made[1].id, SCORES)).status == "duplicate"
        live.close()

    run(work())


def test_a_loop_that_has_ended_is_left_alone(store: WatchedStore, caplog: pytest.LogCaptureFixture) -> None:
    live = live_on(store)
    made = run(live.decide("ann"))
    store.holding = True

    async def leave() -> None:
        asyncio.ensure_future(live.feedback(made.id, SCORES))  # noqa: RUF006  # its loop ends first
        while not store.held:
            await asyncio.sleep(0)

    run(leave())
    store.let_go()
    assert caplog.records == []  # where futures report what goes wrong in those who wait for them
    assert run(live.feedback(made.id, SCORES)).status == "duplicate"  # and another loop may go on
    live.close()


def test_any_event_can_be_recorded(store: WatchedStore) -> None:
    async def work() -> None:
        live = live_on(store)
        receipts = await asyncio.gather(*(live.record(ArmAdded(arm, arm, 0.0)) for arm in "CD"))
        assert store.batches == [2]
        assert [one.outcome.value for one in receipts] == ["recorded", "recorded"]
        with pytest.raises(InputError):
            await live.record(ArmAdded("", "", 0.0))
        live.close()

    run(work())


# Over a network


def test_those_who_ask_meanwhile_are_read_together() -> None:
    store = RemoteStore()

    async def work() -> None:
        live = live_on(store)
        store.gate.clear()
        first = asyncio.ensure_future(live.decide("u0"))
        while not store.reads:
            await asyncio.sleep(0.001)
        others = [asyncio.ensure_future(live.decide(f"u{n}")) for n in range(1, 20)]
        await asyncio.sleep(0)
        store.gate.set()
        made = await asyncio.gather(first, *others)
        assert [one.user for one in made] == [f"u{n}" for n in range(20)]
        assert store.reads == [1, 19]
        live.close()

    run(work())


def test_a_network_that_fails() -> None:
    store = RemoteStore()

    async def work() -> None:
        live = live_on(store)
        store.unreachable = True
        results = await asyncio.gather(*(live.decide("ann") for _ in range(3)), return_exceptions=True)
        assert [type(one) for one in results] == [StoreError] * 3
        with pytest.raises(StoreError):
            await live.decide_many([Request("ann")])
        store.unreachable = False
        assert (await live.decide("ann")).user == "ann"
        live.close()

    run(work())


def test_a_network_that_hangs() -> None:
    """To read users' sums has the same time limit as to record."""
    store = RemoteStore()

    async def work() -> None:
        live = live_on(store, timeout=0.05)
        store.gate.clear()
        results = await asyncio.gather(
            live.decide("ann"), live.decide_many([Request("bob")]), live.decide("eve"), return_exceptions=True
        )
        assert [type(one) for one in results] == [StoreError] * 3
        store.gate.set()
        assert (await live.decide("ann")).user == "ann"
        live.close()

    run(work())


def test_who_gives_up_before_the_decision() -> None:
    store = RemoteStore()

    async def work() -> None:
        live = live_on(store)
        store.gate.clear()
        tasks = [asyncio.ensure_future(live.decide("ann")) for _ in range(3)]
        while not store.reads:
            await asyncio.sleep(0.001)
        tasks[0].cancel()
        await asyncio.sleep(0)
        store.gate.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(one).__name__ for one in results] == ["CancelledError", "Decision", "Decision"]
        assert live.engine.statistics()["pending_decisions"] == 2
        live.close()

    run(work())


def test_unknown_decisions_are_told_apart(store: WatchedStore) -> None:
    async def work() -> None:
        live = live_on(store)
        with pytest.raises(UnknownDecisionError):
            await live.feedback("nothing", SCORES)
        live.close()

    run(work())
