"""What only the PostgreSQL store promises: many workers, broken connections, a server that dies."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from benchmarks.servers import Caller, Server, serving
from pamo.errors import DamagedError, StoreError
from pamo.store import (
    ArmAdded,
    ArmRetired,
    DecisionMade,
    Event,
    ExperimentEnded,
    ExperimentStarted,
    FeedbackGiven,
    Objective,
    Outcome,
    Setup,
    UserErased,
    postgres,
)
from pamo.store.addresses import open_reader
from pamo.store.maintenance import export, verify
from pamo.store.postgres import PostgresStore
from pamo.store.postgres_tables import ARM_SUMS, PAIR_SUMS, USER_SUMS
from tests.store.model import SETUP, Model
from tests.store.servers import running_postgres
from tests.store.test_conformance import WEIGHTS, decision, feedback

WORKER = """
import random, sys
from pamo.store import DecisionMade, FeedbackGiven, open_store
url, seed, shared, own = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
rng = random.Random(seed)
store = open_store(url)
print("ready", flush=True)
sys.stdin.readline()  # until all workers are
recorded = 0
names = [f"shared-{n}" for n in range(shared)] + [f"own-{seed}-{n}" for n in range(own)]
rng.shuffle(names)
def decision(name):
    number = int(name.rpartition("-")[2])
    return DecisionMade(name, f"user {number % 11}", ("AB"[number % 5 == 0],), 1.0, "p", 0.0, key=f"key {name}")
def feedback(name):
    number = int(name.rpartition("-")[2])
    rewards = {"taste": 1.0 + number % 4, "price": 7.0 * (number % 40), "service": 0.3}
    return FeedbackGiven(name, rewards, 0.0, 0.5 + number % 9)
for start in range(0, len(names), 20):
    batch = names[start : start + 20]
    events = [decision(name) for name in batch]
    rng.shuffle(events)
    futures = [store.submit_many(events)]
    for _ in range(2):  # every feedback twice, in any order
        again = [feedback(name) for name in batch]
        rng.shuffle(again)
        futures += [store.submit(event) for event in again]
    futures[0].result()
    outcomes = [future.result().outcome for future in futures[1:]]
    assert set(outcomes) <= {"recorded", "duplicate"}, set(outcomes)
    recorded += outcomes.count("recorded")
store.close()
print(recorded)
"""


def test_workers_that_append_the_same_and_other_feedback(postgres_url: Callable[[], str], postgres_server: str) -> None:
    url = postgres_url()
    shared, own, workers = 200, 60, 2
    with PostgresStore(url, SETUP) as store:
        store.append_many([ArmAdded(arm, arm, at=0.0) for arm in "AB"])
        before = deadlocks(postgres_server)
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", WORKER, url, str(seed), str(shared), str(own)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for seed in range(workers)
        ]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        printed = [process.communicate()[0] for process in processes]
        assert [process.returncode for process in processes] == [0] * workers
        assert sum(map(int, printed)) == shared + workers * own
        store._arms.forget()
        assert verify(store).differences == ()
        assert store.pending() == 0
        assert store.arms().statistics.pulls.sum() == shared + workers * own
        assert deadlocks(postgres_server) == before


def deadlocks(server: str) -> Any:
    with psycopg.connect(server) as connection:
        return connection.execute("SELECT sum(deadlocks) FROM pg_stat_database").fetchone()


def test_erasing_while_others_append(postgres_url: Callable[[], str]) -> None:
    """Nobody comes back half: after each erasure a user has what came since, and nothing of before."""
    url = postgres_url()
    with PostgresStore(url, SETUP) as one, PostgresStore(url, SETUP) as two:
        one.append_many([ArmAdded(arm, arm, at=0.0) for arm in "AB"])

        def append(store: PostgresStore, offset: int) -> None:
            for n in range(offset, offset + 60, 3):
                batch: list[Event] = [decision(k, user=f"u{k % 3}") for k in range(n, n + 3)]
                store.append_many(batch)
                store.append_many([feedback(k, overall=1.0) for k in range(n, n + 3)])

        threads = [threading.Thread(target=append, args=(store, k)) for store, k in ((one, 0), (two, 1000))]
        for thread in threads:
            thread.start()
        for n in range(20):
            one.append(UserErased(f"u{n % 3}", at=1.0))
        for thread in threads:
            thread.join()
        one._arms.forget()
        assert verify(one).differences == ()
        assert one.arms().statistics.pulls.sum() == 120.0


def test_an_erasure_waits_for_a_feedback_on_its_way(
    postgres_url: Callable[[], str], postgres_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The feedback's worker has read the user's name and not written it yet: the erasure must not slip in between."""
    url = postgres_url()
    with PostgresStore(url, SETUP) as one, PostgresStore(url, SETUP) as two:
        one.append_many([ArmAdded("A", "A", at=0.0), ArmAdded("B", "B", at=0.0), decision(1, user="ann-of-cleves")])
        insert, read, write = one._inserting, threading.Event(), threading.Event()

        def insert_later(*given: Any) -> Any:
            read.set()
            write.wait()
            return insert(*given)

        monkeypatch.setattr(one, "_inserting", insert_later)
        given = one.submit(feedback(1))
        read.wait()
        erased = two.submit(UserErased("ann-of-cleves", at=1.0))
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            while not erased.done():
                waiting = connection.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
                if waiting != (0,):
                    break
        write.set()
        assert (given.result().outcome, erased.result().outcome) == (Outcome.RECORDED, Outcome.RECORDED)
        assert "cleves" not in repr(list(two.events()))
        assert list(two.user_ids()) == []


def test_rows_are_locked_in_one_order(postgres_url: Callable[[], str]) -> None:
    """Whatever order the events come in: otherwise two workers might wait for each other for ever."""
    url = postgres_url()
    with PostgresStore(url, SETUP) as store, psycopg.connect(url, autocommit=True) as watching:
        names = ["B", "C", "A"]
        store.append_many([ArmAdded(arm, arm, at=0.0) for arm in names])
        watching.execute("CREATE TABLE seen (n integer GENERATED ALWAYS AS IDENTITY, at text, what text)")
        watching.execute(
            "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "INSERT INTO seen (at, what) VALUES (TG_TABLE_NAME, to_jsonb(NEW) ->> TG_ARGV[0]); RETURN NEW; END $$"
        )
        for table, column in (
            ("pamo_events", "decision"),
            (USER_SUMS, "user_id"),
            (ARM_SUMS, "arm"),
            ("pamo_counts", "shard"),
        ):
            each = f"BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION see('{column}')"
            watching.execute(f"CREATE TRIGGER see {each}".encode())
        store.append_many([decision(n, user=f"u{n}", arms=(names[n - 1],)) for n in (3, 1, 2)])
        receipts = store.append_many([feedback(n) for n in (2, 3, 1)])
        events, counts = [("pamo_events", f"d{n}") for n in (1, 2, 3)], ("pamo_counts", str(store._shard))
        sums = [*((USER_SUMS, f"u{n}") for n in (1, 2, 3)), *((ARM_SUMS, arm) for arm in "ABC")]
        locked = watching.execute("SELECT at, what FROM seen ORDER BY n").fetchall()
        assert locked == [*events, counts, *events, *sums, counts]
        kept = {event.decision: number for number, event in store.events() if isinstance(event, FeedbackGiven)}
        assert [receipt.sequence for receipt in receipts] == [kept["d2"], kept["d3"], kept["d1"]]


def test_an_acknowledgement_that_got_lost_is_not_counted_twice(
    postgres_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks after the commit, before the worker hears of it: the worker tries again."""
    with PostgresStore(postgres_url(), SETUP) as store:
        store.append_many([ArmAdded("A", "A", at=0.0), ArmAdded("B", "B", at=0.0), decision(1), decision(2)])
        whole = store._link.transaction
        breaks = [True, True]

        @contextlib.contextmanager
        def breaking(*, alone: bool = False) -> Iterator[Any]:
            with whole(alone=alone) as connection:
                yield connection
            if breaks:
                breaks.pop()
                store._link._write.close()
                raise psycopg.OperationalError("the connection broke")

        monkeypatch.setattr(store._link, "transaction", breaking)
        receipts = store.append_many([feedback(1, overall=2.0), feedback(2, overall=3.0)])
        assert [receipt.outcome for receipt in receipts] == [Outcome.DUPLICATE] * 2
        assert receipts[0].learned
        assert not breaks
        store._arms.forget()
        assert store.users(["ann"]).rounds.tolist() == [2.0]
        assert verify(store).differences == ()


def test_a_connection_that_breaks_on_the_way_is_made_again(
    postgres_url: Callable[[], str], postgres_server: str
) -> None:
    with PostgresStore(postgres_url(), SETUP) as store, psycopg.connect(postgres_server, autocommit=True) as killer:
        store.append_many([ArmAdded("A", "A", at=0.0), ArmAdded("B", "B", at=0.0)])
        assert store.arms().ids == ("A", "B")
        for n in range(6):
            for link in (store._link._write, store._link._read):
                killer.execute("SELECT pg_terminate_backend(%s, 5000)", (link.info.backend_pid,))
            assert store.append(decision(n)).outcome is Outcome.RECORDED
            assert store.append(feedback(n)).outcome is Outcome.RECORDED
            assert store.users(["ann"]).rounds.tolist() == [n + 1.0]
        assert verify(store).differences == ()


def test_a_server_that_dies_under_load_loses_nothing() -> None:
    acknowledged: list[str] = []
    with running_postgres() as server, PostgresStore(server.get_uri(), SETUP, patience=60.0) as store:
        store.append_many([ArmAdded("A", "A", at=0.0), ArmAdded("B", "B", at=0.0)])
        enough, stop = threading.Event(), threading.Event()

        def load(seed: int) -> None:
            for n in range(seed, 10**6, 4):
                if stop.is_set():
                    return
                store.append(decision(n, user=f"u{n % 5}"))
                assert store.append(feedback(n)).outcome in (Outcome.RECORDED, Outcome.DUPLICATE)
                acknowledged.append(f"d{n}")
                if len(acknowledged) % 40 == 0:
                    enough.set()

        threads = [threading.Thread(target=load, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(2):
            enough.wait()
            enough.clear()
            process = server.get_postmaster_info().process
            os.kill(server.get_pid(), signal.SIGQUIT)  # at once, without writing anything back
            process.wait(30)
            server.ensure_postgres_running()
        enough.wait()
        stop.set()
        for thread in threads:
            thread.join()
        store._arms.forget()
        kept = [event.decision for _, event in store.events() if isinstance(event, FeedbackGiven)]
        assert len(kept) == len(set(kept))
        assert set(acknowledged) <= set(kept)
        assert verify(store).differences == ()


def test_a_database_out_of_reach_is_told(tmp_path: Path, postgres_url: Callable[[], str]) -> None:
    with pytest.raises(StoreError, match="cannot be reached"):
        PostgresStore(f"postgresql://nobody@/none?host={tmp_path}", SETUP, patience=0.05)
    with PostgresStore(postgres_url(), SETUP, patience=0.05) as store:
        store.append_many([ArmAdded("A", "A", at=0.0), ArmAdded("B", "B", at=0.0)])
        address, store._link._url = store._link._url, f"postgresql://nobody@/none?host={tmp_path}"
        store._link._write.close()
        with pytest.raises(StoreError, match="nothing is acknowledged"):
            store.append(decision(1))
        store._link._url = address  # and it goes on once the database is back
        assert store.append(decision(1)).outcome is Outcome.RECORDED


def test_another_workers_feedback_is_seen(postgres_url: Callable[[], str]) -> None:
    url = postgres_url()
    model = Model(1e9)
    with PostgresStore(url, SETUP) as one, PostgresStore(url, SETUP, refresh=0.0) as two:
        assert two.arms().ids == ()
        for event in (ArmAdded("A", "A", at=0.0), ArmAdded("B", "B", at=0.0), decision(1), feedback(1, overall=1.0)):
            assert one.append(event).outcome is model.append(event)
        model.check(two)
        assert two.append(feedback(1, overall=1.0)).outcome is Outcome.DUPLICATE
        assert two.append(feedback(1, overall=2.0)).outcome is Outcome.CONFLICT
        version = two.arms().version
        assert two.arms().version == version


def test_a_worker_learns_of_an_arm_that_another_has_just_added(postgres_url: Callable[[], str]) -> None:
    url = postgres_url()
    with PostgresStore(url, SETUP, refresh=1e9) as one, PostgresStore(url, SETUP, refresh=1e9) as two:
        assert two.arms().ids == ()
        one.append(ArmAdded("Z", "Z", at=0.0))
        assert two.append(decision(1, arms=("Z",))).outcome is Outcome.RECORDED
        assert two.arms().ids == ("Z",)


def test_workers_agree_on_arms_within_a_request(postgres_url: Callable[[], str]) -> None:
    """Added, renamed, retired or revived by one process, an arm is at once so in the other."""
    command = serving(postgres_url())
    with Server(command) as first, Server(command) as second:
        one, other = Caller(first), Caller(second)
        other.ask("POST", "/v1/decisions", {"user": "ann"})
        for n in range(10):
            arm = f"new-{n}"
            one.ask("PUT", f"/v1/arms/{arm}", {})
            assert other.ask("POST", "/v1/decisions", {"user": "ann", "arms": [arm]})["arm"] == arm
            one.ask("PUT", f"/v1/arms/{arm}", {"name": "renamed"})
            assert other.ask("GET", f"/v1/arms/{arm}")["name"] == "renamed"
            one.ask("DELETE", f"/v1/arms/{arm}")
            with pytest.raises(RuntimeError, match="is retired"):
                other.ask("POST", "/v1/decisions", {"user": "ann", "arms": [arm]})
            one, other = other, one
        one.close()
        other.close()


def test_a_worker_counts_what_belongs_to_an_experiment_that_another_has_just_started(
    postgres_url: Callable[[], str],
) -> None:
    url = postgres_url()
    with PostgresStore(url, SETUP, refresh=1e9) as one, PostgresStore(url, SETUP, refresh=1e9) as two:
        one.append(ArmAdded("A", "A", at=0.0))
        for number, name in enumerate(("autumn", "winter")):
            assert two.running is None  # as it was at first
            one.append(ExperimentStarted(name, 1.0, 0.5))
            assert one.running is not None
            one.append_many([decision(n, arms=("A",), group=(name, "control")) for n in (number, number + 10)])
            two.append(feedback(number))
            assert two.append(ExperimentStarted("spring", 2.0, 0.5)).code == "experiment_conflict"
            two.append(ExperimentEnded(name, 3.0))
        two.append_many([feedback(10), feedback(11)])  # of the experiment before, and of this one
        assert {name: group.users for name, group in one.compared().items()} == {"control": 1, "treated": 0}
        assert one.compared()["control"].scores[0].number == 1.0
        with open_reader(url) as reader:
            assert reader.compared() == one.compared()
            assert verify(reader).ok


def test_hot_arms_are_spread_over_shards(postgres_url: Callable[[], str]) -> None:
    url = postgres_url()
    with PostgresStore(url, SETUP) as one, PostgresStore(url, SETUP) as two:
        one.append_many([ArmAdded("A", "A", at=0.0), ArmAdded("B", "B", at=0.0)])
        for n, store in enumerate((one, two, one, two)):
            store.append_many([decision(n), feedback(n)])
        shards = one._link.rows(f"SELECT shard, sums[1] FROM {ARM_SUMS} WHERE arm = 'A' ORDER BY shard")
        assert [pulls for _, pulls in shards] == [2.0, 2.0]
        one._arms.forget()
        assert one.arms().statistics.pulls.tolist() == [4.0, 0.0]


def test_acknowledged_means_on_the_disk_whatever_the_server_is_set_to(
    postgres_url: Callable[[], str], postgres_server: str
) -> None:
    url = postgres_url()
    with PostgresStore(f"{url}%20-csynchronous_commit%3Doff", SETUP) as store:
        store.append(ArmAdded("A", "A", at=0.0))
        assert store._link._write.execute("SHOW synchronous_commit").fetchone() == ("on",)
    with PostgresStore(f"{url}%20-csynchronous_commit%3Dremote_apply", SETUP) as store:
        store.append(ArmAdded("B", "B", at=0.0))
        assert store._link._write.execute("SHOW synchronous_commit").fetchone() == ("remote_apply",)


def test_the_same_key_at_two_workers(postgres_url: Callable[[], str]) -> None:
    url = postgres_url()
    with PostgresStore(url, SETUP) as one, PostgresStore(url, SETUP) as two:
        one.append_many([ArmAdded("A", "A", at=0.0), ArmAdded("B", "B", at=0.0)])
        futures = []
        for n in range(40):
            for offset, store in ((0, one), (1000, two)):
                made = DecisionMade(f"d{n + offset}", "ann", ("AB"[offset > 0],), 1.0, "p", 0.0, key=f"key {n}")
                futures.append(store.submit(made))
        receipts = [future.result() for future in futures]
        for n in range(40):
            first, second = receipts[2 * n : 2 * n + 2]
            assert {str(first.outcome), str(second.outcome)} == {"recorded", "duplicate"}
            assert first.decision == second.decision
        assert one.pending() == 40


@pytest.mark.parametrize("ending", ["", "_1", "_99"])
def test_sums_of_another_layout_are_folded_anew(postgres_url: Callable[[], str], ending: str) -> None:
    """By whoever opens the store to write; who reads it folds for itself. Workers of before find no table any more."""
    url, model = postgres_url(), Model(1e9)
    events: list[Event] = [ArmAdded(arm, arm, at=0.0) for arm in "AB"]
    events += [step for n in range(5) for step in (decision(n, user=f"u{n % 2}"), feedback(n, preference=WEIGHTS))]
    events += [decision(9, user="u0"), feedback(9, {"taste": 2.0}, overall=3.0)]
    with PostgresStore(url, SETUP, expires_after=1e9) as store:
        store.append_many(events)
    for event in events:
        model.append(event)
    with psycopg.connect(url, autocommit=True) as connection:
        for table, of in ((ARM_SUMS, "arm"), (USER_SUMS, "user"), (PAIR_SUMS, "pair")):
            name = f"pamo_{of}_sums{ending}"
            connection.execute(f"ALTER TABLE {table} RENAME TO {name}".encode())
            connection.execute(f"UPDATE {name} SET sums = ARRAY[7.0]".encode())
        with open_reader(url) as reader:
            assert verify(reader).ok
            assert reader.users(["u0", "u1"]).rounds.tolist() == [4.0, 2.0]
            assert reader.find_users("u", 9) == [("u0", 4), ("u1", 2)]
            assert reader.sizes()["sums"] > 0
        with PostgresStore(url) as store:
            model.check(store)
            assert verify(store).ok
        tables = "SELECT tablename FROM pg_tables WHERE tablename ~ '^pamo_.*_sums' AND schemaname = current_schema()"
        assert {name for (name,) in connection.execute(tables)} == {ARM_SUMS, USER_SUMS, PAIR_SUMS}
        with open_reader(url) as reader:
            assert verify(reader).ok


def test_many_arms_are_added_and_looked_up_among_workers(postgres_url: Callable[[], str]) -> None:
    url = postgres_url()
    with PostgresStore(url, SETUP, refresh=60.0) as one, PostgresStore(url, refresh=60.0) as two:
        assert (one.arms().ids, two.arms().ids) == ((), ())
        one.append_many([ArmAdded(f"{n}", f"Arm {n}", at=0.0) for n in range(100)])
        assert two.append(decision(1, arms=("7",))).outcome is Outcome.RECORDED
        two.append_many([ArmAdded("7", "other", at=1.0), ArmAdded("new", "New", at=1.0), ArmRetired("new", at=1.0)])
        assert two.append(feedback(1)).outcome is Outcome.RECORDED
        for store in (one, two):
            store._arms.forget()
            arms = store.arms()
            assert arms.ids == (*(f"{n}" for n in range(100)), "new")
            assert (arms.names[7], arms.names[100], bool(arms.active[100])) == ("other", "New", False)
            assert arms.statistics.pulls[7] == 1.0
            assert verify(store).ok


def test_the_planner_knows_a_journal_that_was_taken_over(postgres_url: Callable[[], str]) -> None:
    """Otherwise it reads whole tables until it happens to look: with two million events every decision took seconds."""
    url = postgres_url()
    events: list[Event] = [SETUP, ArmAdded("A", "A", 0.0), *map(decision, range(300))]
    with PostgresStore(url, SETUP) as store:
        store.load(enumerate(events, start=1))
    with psycopg.connect(url) as connection:
        known = connection.execute("SELECT reltuples FROM pg_class WHERE oid = 'pamo_events'::regclass").fetchone()
    assert known == (len(events),)


def test_rows_that_do_not_fit_into_a_page_are_added_up_as_well(postgres_url: Callable[[], str]) -> None:
    setup = Setup(tuple(Objective(f"o{n}") for n in range(20)))
    with PostgresStore(postgres_url(), setup) as store:
        store.append(ArmAdded("A", "A", at=0.0))
        for n in range(3):
            rewards = {one.name: (n + place) / 30.0 for place, one in enumerate(setup.objectives)}
            store.append_many([decision(n, arms=("A",)), FeedbackGiven(f"d{n}", rewards, 0.0, 0.5, preference=rewards)])
        assert store.users(["ann"]).rounds.tolist() == [3.0]
        assert verify(store).differences == ()


def test_a_changed_missing_or_added_row_is_found(postgres_url: Callable[[], str], tmp_path: Path) -> None:
    """By `verify`, exports, rebuilding and whoever meets it; an erasure is no change, and what is adopted stays."""
    url = postgres_url()
    with PostgresStore(url, SETUP) as one, PostgresStore(url) as two:
        one.append_many([ArmAdded(arm, arm, at=0.0) for arm in "AB"])
        for n in range(8):
            (one, two)[n % 2].append_many([decision(n, user=f"u{n}", key=f"key {n}"), feedback(n, {"taste": 2.0})])
        one.append_many([feedback(n, {"taste": 2.0}, overall=3.0) for n in range(4)])
        assert two.append(UserErased("u1", at=300.0)).outcome is Outcome.RECORDED
        assert verify(one).ok
    of = "WHERE decision = 'd3' AND kind ="
    damages = {
        f"UPDATE pamo_events SET body = replace(body, '2.0', '3.0') {of} 'feedback'": "event ",
        f"UPDATE pamo_events SET user_id = 'u7' {of} 'feedback'": "event ",
        f"DELETE FROM pamo_events {of} 'feedback 2'": "23 events with a checksum, and 24 were recorded",
        f"UPDATE pamo_events SET sequence = 999 {of} 'decision'": "but not those",
        f"UPDATE pamo_events SET checksum = NULL {of} 'feedback'": "23 events with a checksum, and 24",
        "UPDATE pamo_seals SET events = 0, places = 0": "and 0 were recorded",
        "INSERT INTO pamo_events (kind, decision, body, checksum) VALUES ('x', 'y', '{}', 7)": "event ",
    }
    for damage, said in damages.items():
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE before_events AS TABLE pamo_events")
            connection.execute("CREATE TABLE before_seals AS TABLE pamo_seals")
            connection.execute(damage.encode())
        with open_reader(url) as reader:
            assert any(said in sentence for sentence in verify(reader).damage), damage
            with pytest.raises(DamagedError, match=re.escape(said)):
                export(reader, tmp_path / "journal.parquet")
        with PostgresStore(url) as store:
            with pytest.raises(DamagedError, match="rebuild --adopt-damage"):
                store.rebuild()
            if "d3" in damage and said == "event ":
                with pytest.raises(DamagedError, match="not what was recorded"):
                    store.append(feedback(3, {"service": 1.0}))
        with psycopg.connect(url) as connection:
            connection.execute("TRUNCATE pamo_events, pamo_seals")
            connection.execute("INSERT INTO pamo_events SELECT * FROM before_events")
            connection.execute("INSERT INTO pamo_seals SELECT * FROM before_seals")
            connection.execute("DROP TABLE before_events, before_seals")
    with open_reader(url) as reader:
        assert verify(reader).ok
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE pamo_events SET body = 'x' WHERE decision = 'd3' AND kind = 'feedback 2'")
        connection.execute("UPDATE pamo_events SET body = replace(body, '2.0', '3.0') WHERE decision = 'd7'")
    with PostgresStore.adopting(url) as store:
        assert store.feedback("d7") == dataclasses.replace(feedback(7, {"taste": 3.0}), arm="A", user="u7")
        assert len(store.parts("d3")) == 1
    with open_reader(url) as reader:
        assert verify(reader).ok


def test_a_store_from_before_there_were_checksums_goes_on(postgres_url: Callable[[], str]) -> None:
    url = postgres_url()
    with PostgresStore(url, SETUP) as store:
        store.append_many([ArmAdded("A", "A", at=0.0), decision(1, arms=("A",)), feedback(1)])
    with psycopg.connect(url) as connection:
        connection.execute("ALTER TABLE pamo_events DROP COLUMN checksum")
        connection.execute("DROP TABLE pamo_seals")
        connection.execute("DROP INDEX pamo_events_tastes, pamo_events_changes, pamo_events_made, pamo_events_arms")
        connection.execute("CREATE INDEX pamo_events_user ON pamo_events (user_id) WHERE user_id IS NOT NULL")
    with open_reader(url) as reader:
        assert (verify(reader).ok, verify(reader).unsealed) == (True, 4)
    with PostgresStore(url) as store:
        store.append_many([decision(2, user="bob", arms=("A",)), feedback(2)])
    with psycopg.connect(url) as connection:
        indexes = connection.execute("SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()").fetchall()
        assert {"pamo_events_made", "pamo_events_arms", "pamo_events_user"}.intersection(
            name for (name,) in indexes
        ) == {"pamo_events_made", "pamo_events_arms"}
    with open_reader(url) as reader:
        assert (verify(reader).ok, verify(reader).unsealed) == (True, 4)
        with PostgresStore(url) as store:  # which does not wait for who reads, once it has been brought up to date
            assert store.append(UserErased("ann", at=300.0)).outcome is Outcome.RECORDED
    with open_reader(url) as reader:
        assert (verify(reader).ok, verify(reader).unsealed, verify(reader).events) == (True, 2, 7)


def test_an_erasure_goes_in_steps(postgres_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "ERASED_AT_A_TIME", 3)
    url = postgres_url()
    with PostgresStore(url, SETUP) as store:
        store.append_many([ArmAdded("A", "A", at=0.0), *(decision(n, arms=("A",)) for n in range(9))])
        store.append_many([feedback(n, preference=WEIGHTS) for n in range(5)])
        steps: list[bool] = []
        transaction = store._link.transaction

        def counted(*, alone: bool = False) -> Any:
            steps.append(alone)
            return transaction(alone=alone)

        monkeypatch.setattr(store._link, "transaction", counted)
        assert store.append(UserErased("ann", at=300.0)).outcome is Outcome.RECORDED
        assert steps == [True] * 4
        assert not [event for _, event in store.events() if "ann" in str(event)]
        assert store.append(UserErased("ann", at=300.0)).outcome is Outcome.UNKNOWN
        assert list(store.user_ids()) == []
        assert verify(store).ok
