"""What only the SQLite store promises: one owner, kills, damaged snapshots, full disks, old files."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from pamo.errors import DamagedError, InputError, StoreError
from pamo.store import (
    ArmAdded,
    DecisionMade,
    Event,
    FeedbackGiven,
    Objective,
    Outcome,
    Setup,
    UserErased,
    open_store,
    snapshot,
    sqlite_writing,
)
from pamo.store.addresses import open_reader
from pamo.store.fold import Fold
from pamo.store.maintenance import verify
from pamo.store.sqlite import SqliteStore
from pamo.store.sqlite_writing import FIND
from tests.documents import ROOT
from tests.store.model import SETUP, Model
from tests.store.test_conformance import WEIGHTS, decision, feedback

FIXTURES = ROOT / "tests" / "fixtures"

APPENDER = """
import sys
import threading
from pamo.store import ArmAdded, DecisionMade, FeedbackGiven, Objective, Setup, open_store
store = open_store(sys.argv[1], Setup((Objective("taste"),)))
store.append(ArmAdded("A", "A", 0.0))
for number in range(int(sys.argv[2]), 10**9):
    store.append(DecisionMade(f"d{number}", f"u{number % 5}", ("A",), 1.0, "p", 0.0))
    store.append(FeedbackGiven(f"d{number}", {"taste": 0.5}, 0.0))
    print(number, flush=True)
"""


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    next_number = 0
    for acknowledged_at_least in (1, 40, 15):
        process = subprocess.Popen(
            [sys.executable, "-c", APPENDER, str(path), str(next_number)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for _ in range(acknowledged_at_least):
            assert process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read().splitlines()
        process.stdout.close()
        assert process.wait() == -signal.SIGKILL
        acknowledged = next_number + acknowledged_at_least + len(rest)
        with open_store(path) as store:
            kept = [event.decision for _, event in store.events() if isinstance(event, FeedbackGiven)]
            assert kept[:acknowledged] == [f"d{number}" for number in range(acknowledged)]
            assert len(kept) <= acknowledged + 1  # one more may have been on its way
            assert store.arms().statistics.pulls.tolist() == [float(len(kept))]
            assert verify(store).ok
            decisions = [event.id for _, event in store.events() if isinstance(event, DecisionMade)]
            assert len(set(decisions)) == len(decisions)
            if len(decisions) > len(kept):
                store.append(FeedbackGiven(decisions[-1], {"taste": 0.5}, 0.0))
            next_number = len(decisions)


def test_small_and_large_batches_are_written_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    users = ['"quoted"', "tab\t\x1f", "naïve ☃", "0017", "null", "user-1"]
    events: list[Event] = [ArmAdded("A", "A", 0.0)]
    for number, user in enumerate(users):
        events.append(DecisionMade(f"d{number}", user, ("A",), 0.1 + 0.2, "p", 1e-9, key=user if number % 2 else None))
        events.append(
            FeedbackGiven(f"d{number}", {"taste": 1.0 + 1e-15}, 0.1, preference=WEIGHTS if number % 3 else None)
        )
    written = []
    for bound in (sqlite_writing.BOUND, 0):
        monkeypatch.setattr(sqlite_writing, "BOUND", bound)
        with SqliteStore(tmp_path / f"{bound}.db", SETUP) as store:
            assert {receipt.outcome for receipt in store.append_many(events)} == {Outcome.RECORDED}
            assert verify(store).ok
            columns = ("sequence", "kind", "decision", "user", "key", "body", "link", "checksum", "who", "request")
            typed = ", ".join(f"typeof({name})" for name in columns)
            written.append(store._rows(f"SELECT {', '.join(columns[:6])}, {typed} FROM events"))
    assert written[0] == written[1]
    assert len(written[0]) == len(events) + 1


def test_one_process_owns_the_file(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "journal.db", SETUP), pytest.raises(StoreError, match=r"in use.*Stop that one"):
        SqliteStore(tmp_path / "journal.db")
    SqliteStore(tmp_path / "journal.db").close()


def test_other_files_are_refused_with_a_sentence(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(StoreError, match="not pamo's"):
        SqliteStore(other, SETUP)
    (tmp_path / "text.db").write_text("not a database, but long enough to be looked at" * 50)
    with pytest.raises(StoreError, match="not a database"):
        SqliteStore(tmp_path / "text.db", SETUP)
    with pytest.raises(StoreError, match="could not open"):
        SqliteStore(tmp_path / "no" / "such" / "folder.db", SETUP)
    newer = tmp_path / "newer.db"
    SqliteStore(newer, SETUP).close()
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match=r"format 99.*update pamo"):
        SqliteStore(newer)


def filled(path: Path, **options: Any) -> tuple[SqliteStore, Model]:
    store, model = SqliteStore(path, SETUP, **options), Model(1e9)
    events: list[Event] = [ArmAdded(arm, arm, at=0.0) for arm in "AB"]
    for n in range(30):
        stated = WEIGHTS if n % 3 == 0 else None
        events += [decision(n, user=f"u{n % 7}"), feedback(n, overall=n / 10, preference=stated)]
    for event in events:
        model.append(event)
    store.append_many(events)
    return store, model


def test_a_damaged_snapshot_is_left_aside(tmp_path: Path) -> None:
    path, snapshot = tmp_path / "journal.db", tmp_path / "journal.db.snapshot.npz"
    store, model = filled(path)
    store.close()
    good = snapshot.read_bytes()
    rng = np.random.default_rng(1)
    damaged = [b"", good[: len(good) // 2], good[:-1], b"PK" + rng.bytes(200)]
    for place in rng.integers(len(good), size=60):
        flipped = bytearray(good)
        flipped[place] ^= 1 << int(rng.integers(8))
        damaged.append(bytes(flipped))
    for content in damaged:
        snapshot.write_bytes(content)
        store = SqliteStore(path)
        model.check(store)
        store.close(snapshot=False)


def test_a_snapshot_is_used_and_saves_the_folding(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    store, model = filled(path)
    store.snapshot()
    with store.lock:
        store._fold.block[0, 0] += 1.0  # wrong on purpose, so that it shows where the sums come from
    store.snapshot()
    store.close(snapshot=False)
    store = SqliteStore(path)
    assert not verify(store).ok
    store.rebuild()
    model.check(store)
    store.close()


def test_the_snapshot_of_another_journal_is_left_aside(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    first, model = filled(tmp_path / "one" / "journal.db")
    first.close()
    second = SqliteStore(tmp_path / "two" / "journal.db", SETUP)
    second.append_many([ArmAdded(arm, arm, at=0.0) for arm in "XY"])
    second.close()
    shutil.copy(tmp_path / "two" / "journal.db.snapshot.npz", tmp_path / "one")
    store = SqliteStore(tmp_path / "one" / "journal.db")
    model.check(store)
    store.close()


@pytest.mark.parametrize("kept", [None, 1, 99])
def test_a_snapshot_of_another_layout_is_left_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int | None
) -> None:
    """Even one whose rows are as wide: numbers at other places would be read as sums."""
    path = tmp_path / "journal.db"
    store, model = filled(path)
    store._fold.block[0, 0] += 1.0  # wrong on purpose, so that it shows where the sums come from
    with monkeypatch.context() as patched:
        patched.setattr(snapshot, "LAYOUT", kept)
        store.snapshot()
    store.close(snapshot=False)
    store = SqliteStore(path)
    model.check(store)
    store.close()
    with open_reader(path) as reader:
        assert reader.snapshot_at() == model.count  # type: ignore[attr-defined]


def test_a_store_without_objectives_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs its objectives"):
        open_store(tmp_path / "journal.db")
    assert list(tmp_path.iterdir()) == []


def test_a_snapshot_from_before_an_erasure_is_left_aside(tmp_path: Path) -> None:
    """As if the power went after the erasure was committed and before the snapshot was mended."""
    path, snapshot = tmp_path / "journal.db", tmp_path / "journal.db.snapshot.npz"
    store, _ = filled(path)
    store.snapshot()
    old = snapshot.read_bytes()
    store.append(UserErased("u3", at=1.0))
    store.close(snapshot=False)
    snapshot.write_bytes(old)
    store = SqliteStore(path)
    assert not snapshot.exists()
    assert "u3" not in set(store.user_ids())
    assert verify(store).ok
    store.close()


@pytest.mark.parametrize("user", ["u0", "u3", "u6", "u12"])
def test_an_erasure_mends_the_snapshot(tmp_path: Path, user: str) -> None:
    """Users who have stated preferences, the first and the last of the rows, and one who came after the snapshot."""
    path = tmp_path / "journal.db"
    store, model = filled(path)
    store.snapshot()
    later: list[Event] = [decision(50, user="u12"), feedback(50), decision(51, user="u3"), feedback(51)]
    for event in (*later, UserErased(user, at=1.0), decision(52, user=user), feedback(52)):
        assert store.append(event).outcome is model.append(event)
    store.close(snapshot=False)
    with open_reader(path) as reader:
        assert reader.snapshot_at() == 63  # type: ignore[attr-defined]
        assert verify(reader).ok
    store = SqliteStore(path)
    assert store._snapshot_at == 63
    model.check(store)
    store.close(snapshot=False)


@pytest.mark.parametrize("went_on", [False, True])
def test_a_snapshot_ahead_of_its_journal_is_an_alarm(tmp_path: Path, went_on: bool) -> None:
    """Even where the journal has gone on elsewhere since, and is as long again."""
    path = tmp_path / "journal.db"
    store, model = filled(path)
    store.close()
    shutil.copy(path, tmp_path / "backup.db")
    store = SqliteStore(path)
    store.append_many([decision(99, user="later"), feedback(99)])
    store.close()
    if went_on:
        with SqliteStore(tmp_path / "backup.db") as other:
            other.append_many([decision(n, user="elsewhere") for n in range(100, 110)])
    shutil.copy(tmp_path / "backup.db", path)  # an older copy is put back, and the snapshot beside it stays
    with pytest.raises(DamagedError, match=r"event 65, which the journal does not have.*events are missing"):
        SqliteStore(path)
    with open_reader(path) as reader:
        assert "65" in verify(reader).damage[0]
    store = SqliteStore(path, adopt_damage=True)
    if not went_on:
        model.check(store)
    assert verify(store).ok
    store.close()
    SqliteStore(path).close()


def test_an_erased_name_is_in_none_of_the_files(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "journal.db", SETUP)
    store.append(ArmAdded("A", "A", at=0.0))
    for n in range(50):
        user = "ann-of-cleves" if n % 2 else "bob-the-builder"
        store.append_many([decision(n, user=user, arms=("A",), explanation={"who": user}), feedback(n)])
    store.snapshot()
    store.append(UserErased("ann-of-cleves", at=1.0))
    for closed in (False, True):
        if closed:
            store.close()
        contents = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
        assert not [name for name, content in contents.items() if b"cleves" in content]
        assert [name for name, content in contents.items() if b"builder" in content]


class FullDisk(apsw.VFS):
    """A disk that has no room left, or fails to sync, when it is told to."""

    def __init__(self, name: str, error: type[apsw.Error], spared: str = "nothing") -> None:
        self.full = False
        self.spared = spared
        self.error = error
        self.syncs = 0
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        disk = self
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        spared = path.endswith(disk.spared)

        class File(apsw.VFSFile):
            def xWrite(self, data: bytes, offset: int) -> None:
                if disk.full and not spared and disk.error is apsw.FullError:
                    raise apsw.FullError("no room")
                super().xWrite(data, offset)

            def xSync(self, flags: int) -> None:
                disk.syncs += 1
                if disk.full and not spared:
                    raise apsw.IOError("the disk failed")
                super().xSync(flags)

        return File("", name, flags)


@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError])
def test_a_full_or_failing_disk_stops_the_store(
    tmp_path: Path, error: type[apsw.Error], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"full-{error.__name__}"
    disk = FullDisk(name, error)
    store = SqliteStore(tmp_path / "journal.db", SETUP, vfs=name)
    store.append_many([ArmAdded("A", "A", at=0.0), ArmAdded("B", "B", at=0.0), decision(1), decision(2), feedback(1)])
    disk.full = True
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # where apsw tells of errors in callbacks
    with pytest.raises(StoreError, match=r"has stopped.*look after the disk"):
        store.append(feedback(2))
    syncs = disk.syncs
    disk.full = False  # and nothing is tried again, however much room there is now
    with pytest.raises(StoreError, match="has stopped"):
        store.append(feedback(2))
    assert disk.syncs == syncs
    assert store.users(["ann"]).rounds.tolist() == [1.0]  # what was acknowledged can still be read
    assert store.feedback("d2") is None
    store.close()
    with SqliteStore(tmp_path / "journal.db") as again:
        assert again.feedback("d1") is not None
        assert again.append(feedback(2)).outcome in (Outcome.RECORDED, Outcome.DUPLICATE)
        assert verify(again).ok


def test_a_checkpoint_that_fails_stops_the_store_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite by itself would keep silent about it, and try again."""
    disk = FullDisk("full-checkpoint", apsw.IOError, spared="-wal")
    store = SqliteStore(tmp_path / "journal.db", SETUP, vfs="full-checkpoint", checkpoint_pages=1)
    store.append_many([ArmAdded("A", "A", at=0.0), ArmAdded("B", "B", at=0.0)])
    store._writer.call(lambda: None)  # until it has looked after its files
    disk.full = True
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    assert store.append(decision(1)).outcome is Outcome.RECORDED  # the log is on the disk, and that is enough
    store._writer.call(lambda: None)
    syncs = disk.syncs
    with pytest.raises(StoreError, match="has stopped"):
        store.append(decision(2))
    assert disk.syncs == syncs
    store.close()
    disk.full = False
    with SqliteStore(tmp_path / "journal.db") as again:
        assert again.decision("d1") is not None
        assert again.decision("d2") is None


def test_the_log_does_not_grow_for_ever(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "journal.db", SETUP, checkpoint_pages=20)
    sizes = []
    for n in range(400):
        store.append(ArmAdded(f"arm {n}", "x" * 200, at=0.0))
        sizes.append((tmp_path / "journal.db-wal").stat().st_size)
    assert max(sizes) < 60 * 4200
    assert max(sizes[200:]) == max(sizes[:200])
    store.close()


def test_users_and_keys_are_found_by_indexes_that_do_not_name_them(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "journal-1.db", tmp_path)  # its index is over feedback too
    with SqliteStore(tmp_path / "journal-1.db") as store:
        indexes = {name for (name,) in store._rows("SELECT name FROM sqlite_schema WHERE type = 'index'", ())}
        assert indexes == {"events_decision", "events_who", "events_request"}
        of_user = f"EXPLAIN QUERY PLAN {SqliteStore._ask.of_user}"
        plan = " ".join(row[-1] for row in store._rows(of_user, store._by("ann")))
        assert "USING INDEX events_who" in plan
        assert "SCAN" not in plan
        found = f"EXPLAIN QUERY PLAN {FIND}"
        plan = " ".join(row[-1] for row in store._rows(found, ('["d1"]', '[[1, "key"]]')))
        assert "USING INDEX events_decision" in plan
        assert "USING INDEX events_request" in plan


def settle(store: SqliteStore) -> None:
    """Wait until nothing is left to do for who handed nothing in."""
    store._writer.call(lambda: None)
    store._aside_of_others(lambda: None).result()


def test_snapshots_are_taken_on_the_way(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "journal.db", snapshot_every=20)
    store.append(decision(100))
    store.rebuild()  # waits for the writer, which has the snapshot taken after the batch
    store.append_many([decision(n) for n in range(200, 230)])
    settle(store)
    assert (tmp_path / "journal.db.snapshot.npz").exists()
    store.close(snapshot=False)


def test_others_are_served_while_a_snapshot_is_written_which_holds_what_was_when_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "SLICE", 2)  # seven users are four steps
    store, model = filled(tmp_path / "journal.db")
    slices = 0
    as_held = Fold.as_held

    def meanwhile(fold: Fold, rows: Any, first: int) -> Any:
        nonlocal slices
        slices += 1
        # From another thread than the writer's, whose turn this is: they are recorded before the next slice.
        given: list[Event] = [
            decision(1000 + slices, user="u1"),
            feedback(1000 + slices),
            decision(2000 + slices, user="u5"),
        ]
        given += [feedback(2000 + slices), decision(3000 + slices, user=f"new{slices}"), feedback(3000 + slices)]
        others.append(store.submit_many(given))
        for event in given:
            model.append(event)
        return as_held(fold, rows, first)

    others: list[Any] = []
    monkeypatch.setattr(Fold, "as_held", meanwhile)
    at, before = store._fold.sequence, store.users([f"u{n}" for n in range(7)]).rows.copy()
    store.snapshot()
    assert slices == 4
    assert all(receipt.outcome is Outcome.RECORDED for one in others for receipt in one.result())
    kept = snapshot.load(tmp_path / "journal.db.snapshot.npz", store._identity)
    assert kept is not None
    assert (kept.fold.sequence, len(kept.fold.user_names)) == (at, 7)
    np.testing.assert_array_equal(kept.fold.users([f"u{n}" for n in range(7)]).rows, before)
    monkeypatch.undo()
    model.check(store)
    store.close(snapshot=False)
    with SqliteStore(tmp_path / "journal.db") as again:
        model.check(again)


def test_an_erasure_does_not_wait_for_a_snapshot_and_leaves_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "SLICE", 1)
    store, _ = filled(tmp_path / "journal.db", snapshot_every=10)
    settle(store)
    begun, going_on = threading.Event(), threading.Event()
    as_held = Fold.as_held

    def slowly(fold: Fold, rows: Any, first: int) -> Any:
        begun.set()
        going_on.wait(0.5)
        return as_held(fold, rows, first)

    monkeypatch.setattr(Fold, "as_held", slowly)
    for n in range(1000, 1020):
        store.append_many([decision(n, user="zoe-of-old"), feedback(n)])
    assert begun.wait(10.0)
    erased = store.submit(UserErased("zoe-of-old", at=9.0))
    going_on.set()
    assert erased.result().outcome is Outcome.RECORDED
    settle(store)
    assert [file.name for file in tmp_path.iterdir() if b"zoe-of-old" in file.read_bytes()] == []
    assert (tmp_path / "journal.db.snapshot.npz").exists()
    store.close(snapshot=False)


def test_a_snapshot_that_cannot_be_written_costs_nothing_but_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, model = filled(tmp_path / "journal.db", snapshot_every=20)
    snapshot = tmp_path / "journal.db.snapshot.npz"
    settle(store)
    snapshot.unlink()
    snapshot.mkdir()  # in the way
    for n in range(1000, 1040):
        event = decision(n)
        assert store.append(event).outcome is model.append(event)
    settle(store)
    assert "could not be written" in caplog.text
    with pytest.raises(StoreError, match="could not be written"):
        store.snapshot()
    model.check(store)
    store.close()
    store = SqliteStore(tmp_path / "journal.db")
    model.check(store)
    store.close(snapshot=False)


def test_half_a_snapshot_of_an_erased_user_goes_too(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "journal.db")
    left = tmp_path / "journal.db.snapshot.npz.new"
    left.write_text("u3, as the process ended")
    store.append(UserErased("u3", at=1.0))
    assert not left.exists()
    store.close()


def test_events_can_be_taken_back_until_they_are_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store, model = filled(tmp_path / "journal.db")
    busy, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        busy.set()
        go_on.wait()

    holder = threading.Thread(target=store._writer.call, args=(wait,))
    holder.start()
    busy.wait()
    cancelled, kept = store.submit_many([decision(100)]), store.submit_many([decision(101)])
    given_up = store.submit(decision(102))  # its caller no longer listens, and it is recorded all the same
    assert cancelled.cancel()
    assert given_up.cancel()
    go_on.set()
    holder.join()
    assert kept.result()[0].outcome is Outcome.RECORDED
    assert not kept.cancel()
    store._writer.call(lambda: None)
    for event in (decision(101), decision(102)):
        model.append(event)
    model.check(store)
    assert caplog.text == ""
    store.close()


def test_a_journal_of_format_1_stays_readable(tmp_path: Path) -> None:
    """With its snapshot, which a newer pamo may leave aside."""
    shutil.copy(FIXTURES / "journal-1.db", tmp_path)
    shutil.copy(FIXTURES / "journal-1.db.snapshot.npz", tmp_path)
    with SqliteStore(tmp_path / "journal-1.db") as store:
        assert store.setup == Setup((Objective("taste", 1, 5), Objective("price", 0, 500, lower_is_better=True)))
        assert [type(event).__name__ for _, event in store.events()] == [
            "Setup",
            "ArmAdded",
            "ArmAdded",
            "DecisionMade",
            "FeedbackGiven",
            "DecisionMade",
            "FeedbackGiven",
            "ArmRetired",
            "UserErased",
            "DecisionMade",
        ]
        assert store.arms().statistics.pulls.tolist() == [1.0, 0.0]
        assert store.arms().statistics.reward_sum.tolist() == [[0.75, 0.759], [0.0, 0.0]]
        assert store.users(["ann"]).rounds.tolist() == [1.0]
        assert sorted(store.user_ids()) == ["ann"]
        assert store.pending() == 1
        assert verify(store).ok
