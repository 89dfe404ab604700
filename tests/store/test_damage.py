"""What the SQLite store does when its files are not what it left: changed, cut, deleted, linked to, or of before."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from campaigns import backups, erasures, flips
from pamo.cli import main
from pamo.errors import DamagedError, InputError, InUseError, StoreError
from pamo.store import ArmAdded, FeedbackGiven, Outcome, UserErased, open_store
from pamo.store.addresses import open_existing, open_reader
from pamo.store.maintenance import backup, export, verify
from pamo.store.sqlite import SqliteReader, SqliteStore
from tests.documents import ROOT
from tests.store.model import SETUP
from tests.store.test_conformance import WEIGHTS, decision, feedback
from tests.store.test_sqlite import filled


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a store that was closed."""
    store, _ = filled(tmp_path / "journal.db")
    store.close()
    return tmp_path / "journal.db"


def changed(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


# The journal


DAMAGES: dict[str, tuple[str, str]] = {
    "a digit": ("UPDATE events SET body = replace(body, '4.0', '5.0') WHERE sequence = 9", "event 9 is not what was"),
    "a user": ("UPDATE events SET user = 'u5' WHERE sequence = 9", "event 9 is not what was"),
    "no event": ("DELETE FROM events WHERE sequence = 9", "event 10 does not follow"),
    "no feedback": ("DELETE FROM events WHERE sequence = 10", "event 11 does not follow"),
    "another place": ("UPDATE events SET sequence = 999 WHERE sequence = 10", "event 11 does not follow"),
    "no link": ("UPDATE events SET link = NULL WHERE sequence = 9", "event 9 is not what was"),
    "no checksum": ("UPDATE events SET checksum = NULL WHERE sequence = 9", "event 9 is not what was"),
    "no JSON": ("UPDATE events SET body = '{' WHERE sequence = 9", "event 9 is not what was"),
    "the objectives": (
        "UPDATE events SET body = replace(body, '500', '900') WHERE sequence = 1",
        "event 1 is not what",
    ),
    "the identity": ("UPDATE facts SET value = 'x' || value WHERE name = 'identity'", "event 1 does not follow"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_changed_journal_is_told_and_not_adopted(path: Path, damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    statement, sentence = DAMAGES[damage]
    changed(path, statement)
    assert main(["store", "verify", str(path)]) == 1
    assert sentence in capsys.readouterr().out
    assert main(["store", "rebuild", str(path)]) == 2
    assert "--adopt-damage" in capsys.readouterr().err
    with pytest.raises(DamagedError, match=sentence), open_reader(path) as reader:
        export(reader, path.with_name("journal.parquet"))
    assert sorted(file.name for file in path.parent.glob("*.parquet*")) == []
    path.with_name("journal.db.snapshot.npz").unlink()  # then a start folds all, and looks at all
    with pytest.raises(DamagedError, match=sentence):
        SqliteStore(path)
    assert main(["store", "rebuild", str(path), "--adopt-damage"]) == 0
    assert main(["store", "verify", str(path)]) == 0
    with open_existing(path) as store:
        assert store.append(decision(100)).outcome is Outcome.RECORDED
        assert verify(store).ok


def goes_back(path: Path) -> bool:
    """Tell whether a journal that is read page by page, from the last number on, is read again and again."""
    page = "SELECT sequence FROM events WHERE sequence > ? ORDER BY sequence LIMIT 1000"
    connection, after = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY), 0
    try:
        while rows := list(connection.execute(page, (after,))):
            if rows[-1][0] <= after:
                return True
            after = rows[-1][0]
    except apsw.Error:
        return False  # SQLite itself tells
    finally:
        connection.close()
    return False


def test_a_journal_whose_numbers_go_back_is_read_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flips.build(tmp_path, "database")
    path = tmp_path / "journal.db"
    whole, told, kept = path.read_bytes(), [], []
    connection = apsw.Connection(str(path))
    ((root,), (size,)) = connection.execute(
        "SELECT rootpage FROM sqlite_schema WHERE name = 'events' UNION ALL SELECT page_size FROM pragma_page_size"
    )
    connection.close()
    # The places in the tree's root that say where its other pages are, and up to which number each goes.
    for place in [(root - 1) * size, *range(root * size - 30, root * size)]:
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            if goes_back(path):
                assert main(["store", "verify", str(path)]) == 1
                told.append("the journal's order is lost there" in capsys.readouterr().out)
                assert main(["store", "rebuild", str(path), "--adopt-damage"]) == 2
                kept.append("bring back a backup" in capsys.readouterr().err)  # or SQLite says what it cannot read
    assert any(told)
    assert any(kept)


def test_a_start_looks_at_what_came_after_the_snapshot(path: Path) -> None:
    store = SqliteStore(path)
    store.append_many([decision(200), feedback(200)])
    store.close(snapshot=False)
    changed(path, "UPDATE events SET body = replace(body, '0.', '1.') WHERE decision = 'd200'")
    with pytest.raises(DamagedError, match="event 64 is not what was recorded"):
        SqliteStore(path)


def test_a_damaged_decision_is_not_credited(path: Path) -> None:
    """One from before the snapshot is looked at when its feedback comes."""
    with SqliteStore(path) as store:
        store.append(decision(200, arms=("A",)))
    changed(path, "UPDATE events SET body = replace(body, '[\"A\"]', '[\"B\"]') WHERE decision = 'd200'")
    store = SqliteStore(path)
    with pytest.raises(StoreError, match="event 64 is not what was recorded"):
        store.append(feedback(200))
    with pytest.raises(StoreError, match="is not what was recorded"):
        store.decision("d200")
    store.close()


def test_what_cannot_be_read_is_dropped_where_damage_is_adopted(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    changed(path, "UPDATE events SET body = CAST(x'ff' AS TEXT) WHERE sequence IN (9, 12)")
    assert main(["store", "verify", str(path)]) == 1
    with SqliteStore(path) as store, pytest.raises(DamagedError):
        store.rebuild()
    assert main(["store", "rebuild", str(path), "--adopt-damage"]) == 0
    assert "event 9 cannot be read, and is dropped" in caplog.text
    with SqliteStore(path) as store:
        assert len(list(store.events())) == 61
        assert verify(store).ok
        assert store.append(feedback(4)).outcome is Outcome.UNKNOWN  # its decision was event 12


@pytest.mark.parametrize("user", ["zoe", None])
def test_a_journal_of_before_gets_checksums_and_no_copies_of_names(tmp_path: Path, user: str | None) -> None:
    path = tmp_path / "journal-1.db"
    shutil.copy(ROOT / "tests" / "fixtures" / "journal-1.db", path)
    with open_reader(path) as reader:  # as it is
        assert verify(reader).ok
        assert [event for _, event in reader.history("ann")]
        before = list(reader.events())
    with SqliteStore(path) as store:
        assert list(store.events()) == before
        assert store.append(UserErased("ann", at=5.0)).outcome is Outcome.RECORDED
        assert [file.name for file in tmp_path.iterdir() if b"ann" in file.read_bytes()] == []
    changed(path, "UPDATE events SET body = body || ' ' WHERE sequence = 2")
    assert main(["store", "verify", str(path)]) == 1


def test_a_journal_of_format_2_opens_and_goes_on(tmp_path: Path) -> None:
    path, kept = tmp_path / "journal-2.db", "journal-2.db.snapshot.npz"
    for name in (path.name, kept):
        shutil.copy(ROOT / "tests" / "fixtures" / name, tmp_path)
    with open_reader(path) as reader:
        assert (verify(reader).ok, reader.lost) == (True, ())
        before = list(reader.events())
    assert len(before) == 1 + 3 + 13 + 10 + 2
    with SqliteStore(path) as store:
        assert (list(store.events()), store.pending()) == (before, 3)
        assert list(store.user_ids()) == ["ann", "bob", "ünal"]
        row = store.users(["bob"])
        assert (row.rounds.tolist(), store.arms().active.tolist()) == ([3.0], [True, True, False])
        given = FeedbackGiven("d12", {"taste": 2.0, "price": 10.0, "service": 0.5}, 23.0, 4.0)
        assert store.append(given).outcome is Outcome.RECORDED
        assert store.append(UserErased("ann", at=24.0)).outcome is Outcome.RECORDED
        assert [file.name for file in tmp_path.iterdir() if b"ann" in file.read_bytes()] == []
        assert [file.name for file in tmp_path.iterdir() if b"zoe" in file.read_bytes()] == []
    with SqliteStore(path) as store:
        assert verify(store).ok
        assert (list(store.user_ids()), store.pending()) == (["bob", "ünal"], 2)


def test_an_event_of_no_kind_is_told(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A flipped bit in the head of a row makes its first text no text."""
    connection = apsw.Connection(str(path))
    allow = "UPDATE sqlite_schema SET sql = replace(sql, 'kind TEXT NOT NULL', 'kind TEXT') WHERE name = 'events'"
    connection.execute(f"PRAGMA writable_schema = ON; {allow}")
    connection.close()
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE events SET kind = NULL WHERE sequence = 20")
    connection.close()
    assert main(["store", "verify", str(path)]) in (1, 2)
    assert "damaged" in capsys.readouterr().out.lower()


# The log


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The path of a store whose process was killed: all of it is in the log."""
    (tmp_path / "alive").mkdir()
    (tmp_path / "killed").mkdir()
    store, _ = filled(tmp_path / "alive" / "journal.db")
    for n in range(100, 110):
        store.append(decision(n))
    for file in (tmp_path / "alive").iterdir():
        shutil.copy(file, tmp_path / "killed")
    store.close()
    return tmp_path / "killed" / "journal.db"


@pytest.mark.parametrize("place", [0, 9, 17, 24, 32 + 4, 32 + 9, 32 + 1000, -13_000])
def test_a_flipped_bit_in_the_log_is_an_alarm(killed: Path, place: int, capsys: pytest.CaptureFixture[str]) -> None:
    log = killed.with_name("journal.db-wal")
    content = bytearray(log.read_bytes())
    content[place] ^= 4
    log.write_bytes(content)
    assert main(["store", "verify", str(killed)]) in (1, 2)
    with pytest.raises(StoreError):
        SqliteStore(killed)
    capsys.readouterr()


@pytest.mark.parametrize("place", [-1000, -4120 + 9, -4120 + 14], ids=["page", "first salt", "second salt"])
def test_a_torn_last_transaction_is_left_out_and_told(
    killed: Path, place: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It may never have been acknowledged: after a power cut it must not keep the store from starting."""
    log = killed.with_name("journal.db-wal")
    content = bytearray(log.read_bytes())
    content[place] ^= 4
    log.write_bytes(content)
    assert main(["store", "verify", str(killed)]) == 1
    with SqliteStore(killed) as store:
        assert store.decision("d108") is not None
        assert store.decision("d109") is None
    assert "is torn" in caplog.text


# The snapshot


def test_a_damaged_snapshot_is_left_aside_and_told(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    snapshot = path.with_name("journal.db.snapshot.npz")
    content = bytearray(snapshot.read_bytes())
    content[len(content) // 2] ^= 1
    snapshot.write_bytes(content)
    with SqliteStore(path) as store:
        assert store._snapshot_at == 0
    assert "is left aside, and the journal is folded: its checksum is not that of its content" in caplog.text


# Whose file it is


@pytest.mark.parametrize("way", ["symlink", "hard link", "no lock file", "the same folder by another name"])
def test_a_second_process_is_told_whatever_the_path(tmp_path: Path, path: Path, way: str) -> None:
    other = tmp_path / "other.db"
    with SqliteStore(path) as store:
        if way == "symlink":
            other.symlink_to(path)
        elif way == "hard link":
            os.link(path, other)
        elif way == "no lock file":
            path.with_name("journal.db.lock").unlink()
            other = path
        else:
            (tmp_path / "folder").symlink_to(tmp_path)
            other = tmp_path / "folder" / "journal.db"
        with pytest.raises(InUseError, match="in use"):
            SqliteStore(other)
        with pytest.raises(InUseError, match="in use"):
            open_reader(other)
        assert store.append(decision(100)).outcome is Outcome.RECORDED
    if way == "symlink":
        with SqliteStore(other) as store:  # its log and its snapshot are the file's own
            store.append(decision(101))
        assert not list(tmp_path.glob("other.db?*"))
        with SqliteStore(path) as store:
            assert store.decision("d101") is not None


# The file is gone


@pytest.mark.parametrize("what", ["deleted", "replaced", "log deleted"])
def test_a_file_that_is_gone_stops_the_store(tmp_path: Path, path: Path, what: str) -> None:
    store = SqliteStore(path)
    if what == "deleted":
        path.rename(tmp_path / "elsewhere")
    elif what == "replaced":
        shutil.copy(path, tmp_path / "copy")
        (tmp_path / "copy").replace(path)
    else:
        path.with_name("journal.db-wal").unlink()
    assert f"{what.rsplit(maxsplit=1)[-1]} while the store was open" in (store.trouble() or "")
    with pytest.raises(StoreError, match="has stopped"):
        store.append(decision(100))
    store.close()


def test_no_empty_store_is_begun_where_there_was_one(path: Path) -> None:
    path.unlink()
    for setup in (SETUP, None):
        with pytest.raises(DamagedError, match=r"there was a store.*journal.db.snapshot.npz, journal.db.lock"):
            open_store(path, setup)
    assert not path.exists()
    path.touch()
    with pytest.raises(DamagedError, match=r"gone or empty.*snapshot"):
        open_store(path, SETUP)
    for file in path.parent.glob("journal.db*"):
        file.unlink()
    open_store(path, SETUP).close()


def test_a_file_that_cannot_be_written_is_trouble(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SqliteStore(path) as store:
        assert store.trouble() is None
        monkeypatch.setattr(os, "access", lambda *_: False)  # as on a disk that was mounted again, read-only
        assert "cannot be written to" in (store.trouble() or "")


@pytest.mark.parametrize("address", [":memory:", "memory:x", "memory://"])
def test_what_only_looks_like_memory_is_no_address(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="expected memory:"):
        open_store(address, SETUP)
    assert list(tmp_path.iterdir()) == []


# Erasing


def test_an_erasure_goes_in_steps_and_others_are_served_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pamo.store.sqlite_erasing.AT_A_TIME", 200)
    store = SqliteStore(tmp_path / "journal.db", SETUP)
    many = [decision(n, user="ann", key=f"ann {n}") for n in range(1500)]
    store.append_many([*(ArmAdded(arm, arm, at=0.0) for arm in "AB"), *many])
    store.append_many([feedback(n, preference=WEIGHTS) for n in range(1000)])
    steps: list[Outcome] = []
    rewrite = store._rewrite

    def between(changed: list[Any]) -> None:
        """Have feedback come in the middle, for decisions that were redacted, that were not yet, and again."""
        if len(steps) == 6:
            for event in (feedback(1400), feedback(1001), feedback(3, preference=WEIGHTS)):
                steps.append(store._append([event])[0].outcome)
            again = store._append([decision(9999, user="ann", key="ann 1499")])[0]
            steps.append(again.outcome)  # the key of a decision that is still there
        steps.append(Outcome.RECORDED)
        rewrite(changed)

    store._rewrite = between  # type: ignore[method-assign]
    assert store.append(UserErased("ann", at=5.0)).outcome is Outcome.RECORDED
    assert len(steps) > 8
    assert steps[6:10] == [Outcome.RECORDED, Outcome.RECORDED, Outcome.DUPLICATE, Outcome.DUPLICATE]
    assert list(store.history("ann")) == []
    assert store.users(["ann"]).rounds.tolist() == [0.0]
    assert store.append(UserErased("ann", at=6.0)).outcome is Outcome.UNKNOWN
    assert verify(store).ok
    store.close()


@pytest.mark.parametrize("length", [1, 20])
def test_an_erased_event_takes_the_room_that_it_had(tmp_path: Path, length: int) -> None:
    """Where one needs more, SQLite moves others on its page, and now and then leaves copies of them in unused room."""
    random, path = Random(length), tmp_path / "journal.db"
    users = [f"{number:02}-{random.getrandbits(4 * length):0{length}x}" for number in range(12)]
    store = SqliteStore(path, SETUP, synchronous="OFF")
    store.append(ArmAdded("A", "A", at=0.0))
    for number in range(400):
        user = random.choice(users)
        why, key = {"why": "x" * random.randrange(90)}, random.choice([None, f"{user}, {number}"])
        store.append(decision(number, user=user, arms=("A",), explanation=why, key=key))
        if number % 3:
            store.append(feedback(number, {"taste": 2.0}, preference=random.choice([None, WEIGHTS])))

    def taken() -> int:
        connection = apsw.Connection(str(path))
        try:
            of_leaves = "FROM dbstat WHERE name = 'events' AND pagetype = 'leaf'"
            return int(next(connection.execute(f"SELECT sum(payload) {of_leaves}"))[0])
        finally:
            connection.close()

    for place, user in enumerate(users):
        store._empty_log()
        before = taken()
        assert store.append(UserErased(user, at=300.0)).outcome is Outcome.RECORDED
        grown = taken() - before
        assert grown < (60 if length > 1 else 90)  # which is the erasure's own event; a name may be a byte too short
        content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert not [gone for gone in users[: place + 1] if gone.encode() in content]
    assert verify(store).ok
    store.close()


def test_an_erasure_is_not_acknowledged_while_the_log_holds_the_name(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pamo.store.sqlite_erasing.PATIENCE", 0.1)
    store = SqliteStore(path)
    store.append(decision(100, user="ann-of-cleves"))
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM events").fetchall()
    for _ in range(2):  # neither the first time nor when it is asked again
        with pytest.raises(StoreError, match="not yet from the log"):
            store.append(UserErased("ann-of-cleves", at=1.0))
        assert store.append(decision(101)).outcome in (Outcome.RECORDED, Outcome.DUPLICATE)  # others go on
    reader.close()
    assert store.append(UserErased("ann-of-cleves", at=1.0)).outcome is Outcome.UNKNOWN
    assert [file.name for file in path.parent.iterdir() if b"cleves" in file.read_bytes()] == []
    store.close()


def test_kills_inside_erasures_leave_no_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert erasures.main(["--kills", "6"]) == 0
    assert "0 wrong" in capsys.readouterr().out


def test_backups_under_load_come_back_whole_and_a_copied_file_does_not() -> None:
    tally = backups.campaign(2)
    assert not tally.wrong, tally.wrong
    assert tally.events > 10
    assert backups.campaign(2, fault="copy-the-file").wrong


def test_the_campaign_finds_names_that_were_left() -> None:
    assert erasures.campaign(10, fault="keep-the-log").wrong


@pytest.mark.parametrize("part", flips.PARTS)
def test_flipped_bits_do_not_go_unnoticed(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert flips.main(["--flips", "25", "--part", part]) == 0
    assert "nothing wrong unnoticed" in capsys.readouterr().out


def test_the_campaign_finds_wrong_answers_without_checksums(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    found = (flips.campaign("database", 80, seed, "no-checksums") for seed in range(10))  # most find some
    assert any(tally["wrong answers that nobody noticed"] for tally in found)


# Backups


def test_a_backup_is_taken_while_the_store_is_used_and_brought_back(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy, again = tmp_path / "copy.db", tmp_path / "again.db"
    with SqliteStore(path) as store:
        store.append(decision(100))
        assert main(["store", "backup", str(path), str(copy)]) == 0
        assert "64 events" in capsys.readouterr().out
        expected = list(store.events())
        store.append(decision(101))
    assert sorted(file.name for file in tmp_path.iterdir() if file.name.startswith("copy")) == ["copy.db"]
    assert main(["store", "backup", str(path), str(copy)]) == 2
    assert "already" in capsys.readouterr().err
    assert main(["store", "restore", str(copy), str(again)]) == 0
    with SqliteReader(again) as reader:
        assert list(reader.events()) == expected
    for name in ("", ".snapshot.npz"):  # in the place of a store that was lost, whose snapshot is ahead
        path.with_name(path.name + name).rename(tmp_path / f"lost{name}")
    shutil.copy(tmp_path / "lost.snapshot.npz", path.with_name("journal.db.snapshot.npz"))
    assert main(["store", "restore", str(copy), str(path)]) == 0
    with SqliteStore(path) as store:
        assert list(store.events()) == expected
        assert store.append(decision(102)).outcome is Outcome.RECORDED


def test_a_damaged_store_is_not_backed_up(path: Path, postgres_url: Callable[[], str]) -> None:
    copy = path.with_name("copy.db")
    changed(path, DAMAGES["a digit"][0])
    with pytest.raises(DamagedError, match="event 9 is not what was recorded"):
        backup(path, copy)
    assert not list(path.parent.glob("copy.db*"))
    with pytest.raises(InputError, match="pg_dump"):
        backup(postgres_url(), copy)
    with pytest.raises(InputError, match="no store"):
        backup(path.with_name("no.db"), copy)
