"""`pamo store`: what it prints and returns, and that nothing half-done remains where it fails."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow.parquet
import pytest

from pamo.cli import main
from pamo.errors import InputError, StoreError
from pamo.store import ArmRetired, FeedbackGiven, Objective, Setup, maintenance, open_store, sqlite_file
from pamo.store.addresses import open_existing, open_reader, scrubbed, shown
from pamo.store.maintenance import verify
from pamo.store.postgres_tables import USER_SUMS
from pamo.store.sqlite_file import Owner
from tests.store.model import SETUP
from tests.store.test_conformance import decision
from tests.store.test_sqlite import filled

EVENTS = 1 + 2 + 60 + 1 + 1
"""The objectives, two arms, thirty decisions with feedback, one without, and an arm that is retired."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def store(folder: Path) -> str:
    """The path of a store with a little of everything."""
    filled_store, _ = filled(folder / "pamo.db")
    filled_store.append_many([decision(99), ArmRetired("B", at=1_700_000_000.0)])
    filled_store.close()
    return "pamo.db"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return the exit code, stdout, and the last line of stderr, without the bars."""
    code = main(["store", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err.replace("\r", "\n").strip().splitlines()[-1] if printed.err.strip() else ""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def contents(address: str) -> list[Any]:
    with open_reader(address) as reader:
        return list(reader.events())


# Show


def test_show_says_what_a_store_holds(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "show", store, "--format", "json")
    document = json.loads(out)
    size = document.pop("bytes")
    assert code == 0
    assert document == {
        "store": "pamo.db",
        "kind": "sqlite",
        "format": 1,
        "objectives": [
            {"name": "taste", "low": 1.0, "high": 5.0, "lower_is_better": False},
            {"name": "price", "low": 0.0, "high": 500.0, "lower_is_better": True},
            {"name": "service", "low": 0.0, "high": 1.0, "lower_is_better": False},
        ],
        "overall": {"name": "overall", "low": 0.0, "high": 10.0, "lower_is_better": False},
        "arms": {"active": 1, "retired": 1},
        "users": 7,
        "events": {"total": EVENTS, "arm added": 2, "arm retired": 1, "decision": 31, "feedback": 30, "setup": 1},
        "decisions": 31,
        "feedbacks": 30,
        "pending": 1,
        "last_event": "2023-11-14T22:13:20Z",
    }
    assert size["journal"] == Path(store).stat().st_size
    assert size["snapshot"] == Path(f"{store}.snapshot.npz").stat().st_size
    assert size["total"] == size["journal"] + size["log"] + size["snapshot"]
    code, out, _ = run(capsys, "show", store)
    words = " ".join(out.split())
    assert code == 0
    for part in (
        "pamo.db (SQLite, format 1)",
        "price: 0..500, lower is better",
        "1 active, 1 retired",
        f"{EVENTS}: 31 decisions, 30 feedbacks",
        "pending 1",
        "last event 2023-11-14T22:13:20Z",
    ):
        assert part in words


def test_show_of_a_new_store_and_of_postgres(
    folder: Path, store: str, postgres_url: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    open_store("new.db", Setup((Objective("taste"),))).close()
    assert "none yet" in run(capsys, "show", "new.db")[1]
    assert json.loads(run(capsys, "show", "new.db", "--format", "json")[1])["last_event"] is None
    url = postgres_url()
    assert run(capsys, "migrate", store, url)[0] == 0
    ours, theirs = (json.loads(run(capsys, "show", where, "--format", "json")[1]) for where in (store, url))
    assert theirs["kind"] == "postgresql"
    assert theirs["bytes"]["journal"] > 0
    assert theirs["bytes"]["sums"] > 0
    same = set(ours) - {"store", "kind", "bytes"}
    assert {name: ours[name] for name in same} == {name: theirs[name] for name in same}


def test_a_store_in_use_can_be_shown_and_exported_alone(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    with open_store(store) as mine:
        mine.append(FeedbackGiven("d99", {"taste": 4.0}, at=200.0))
        code, out, _ = run(capsys, "show", store, "--format", "json")
        assert (code, json.loads(out)["pending"]) == (0, 0)
        assert run(capsys, "export", store, "x.parquet")[:2] == (0, f"x.parquet: {EVENTS + 1} events of pamo.db\n")
        said = "x.csv: 31 decisions in 62 rows of pamo.db\n"
        assert run(capsys, "export", store, "x.csv", "--decisions")[:2] == (0, said)
        for arguments in (["verify", store], ["rebuild", store]):
            code, out, error = run(capsys, *arguments)
            assert (code, out) == (2, "")
            assert "in use" in error
        code, _, error = run(capsys, "migrate", store, "other.db")
        assert code == 2
        assert "in use" in error
        assert mine.pending() == 0
    assert not Path("other.db").exists()


# Verify and rebuild


def test_verify_says_what_it_compared(
    store: str, postgres_url: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "verify", store)
    assert code == 0
    assert f"{EVENTS} events folded anew; compared 2 arms, 7 users and the pending decisions" in out
    assert "SQLite finds its file intact" in out
    url = postgres_url()
    assert run(capsys, "migrate", store, url)[0] == 0
    code, out, _ = run(capsys, "verify", url)
    assert code == 0
    assert f"{EVENTS} events" in out
    assert "SQLite" not in out


def test_verify_lists_what_differs_and_rebuild_sets_it_right(
    store: str, postgres_url: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    with open_store(store) as changed:  # a snapshot with other sums, as a bug would leave it
        changed._fold.block[1, 0] += 1.0  # type: ignore[attr-defined]
        changed.snapshot()
    url = postgres_url()
    assert run(capsys, "migrate", store, url)[0] == 0
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"UPDATE {USER_SUMS} SET sums[1] = 7 WHERE user_id = 'u3'")
    for address, part in ((store, "arm B: moments"), (url, "user u3: rounds is [")):
        code, out, _ = run(capsys, "verify", address)
        assert code == 1
        assert part in out
        assert "1 difference\n" in out
        assert f"pamo store rebuild {shown(address)}" in out
        before = contents(address)
        code, out, _ = run(capsys, "rebuild", address)
        assert code == 0
        assert "2 arms and 7 users" in out
        assert run(capsys, "verify", address)[0] == 0
        assert contents(address) == before
    with open_reader(store) as reader:
        assert reader.snapshot_at() == EVENTS  # type: ignore[attr-defined]  # the new sums are kept


def test_many_differences_are_counted(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    with open_store(store) as changed:
        for user in range(40):
            name = f"x{user}"
            changed._fold.user_names.add(name)  # type: ignore[attr-defined]
            changed._fold.user_sums.add()  # type: ignore[attr-defined]
            changed._fold.stated_rows.append(-1)  # type: ignore[attr-defined]
        changed.snapshot()
    code, out, _ = run(capsys, "verify", store)
    assert code == 1
    assert "40 differences" in out
    assert "… and 20 more" in out
    assert out.count("only the store knows of it") == 20


def damage(path: str) -> None:
    """Change a row so that the index no longer leads to it."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_schema SET sql = replace(sql, '(who)', '(sequence)') WHERE name = 'events_who'")
    connection.commit()
    connection.close()


def test_verify_of_a_damaged_file(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    damage(store)
    code, out, _ = run(capsys, "verify", store)
    assert code == 1
    assert "SQLite: " in out
    assert "the file is damaged" in out
    assert "sums right" not in out  # they are


def test_verify_of_a_file_whose_journal_cannot_be_read(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    connection = sqlite3.connect(store)
    connection.execute("UPDATE events SET body = '{' WHERE kind = 'decision'")  # the snapshot knows all it needs
    connection.commit()
    connection.close()
    code, out, _ = run(capsys, "verify", store)
    assert code == 1
    assert "event 4 is not what was recorded" in out
    assert "the journal is damaged" in out
    assert "rebuild pamo.db --adopt-damage" in out


def test_verify_of_postgres_stands_still_while_others_write(store: str, postgres_url: Callable[[], str]) -> None:
    url = postgres_url()
    with open_reader(store) as source:
        maintenance.migrate(source, url)
    with open_reader(url) as reader, open_store(url) as writer:
        writer.append(FeedbackGiven("d99", {"taste": 4.0}, at=200.0))
        assert writer.pending() == 0
        assert reader.pending() == 1
        report = verify(reader)
        assert report.ok, report.differences
        assert report.events == EVENTS


# Nothing is begun, changed or left behind


@pytest.mark.parametrize("command", ["show", "verify", "rebuild", "export", "migrate"])
def test_a_store_that_is_not_there_is_not_begun(
    command: str, folder: Path, postgres_url: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    more = {"export": ["x.parquet"], "migrate": ["x.db"]}.get(command, [])
    code, out, error = run(capsys, command, "no.db", *more)
    assert (code, out) == (2, "")
    assert error == "pamo: there is no store at no.db: give the path of one that was begun"
    url = postgres_url()
    code, _, error = run(capsys, command, url, *more)
    assert code == 2
    assert "there is no store at postgresql://" in error
    Path("empty.db").touch()
    Path("folder").mkdir()
    assert "the file is empty" in run(capsys, command, "empty.db", *more)[2]
    assert "got the folder folder" in run(capsys, command, "folder", *more)[2]
    assert "gone with its process" in run(capsys, command, "memory:", *more)[2]
    assert "got 'mysql://x'" in run(capsys, command, "mysql://x", *more)[2]
    assert set(names(folder)) <= {"empty.db", "empty.db.lock", "folder"}
    assert Path("empty.db").stat().st_size == 0
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT to_regclass('pamo_events')").fetchone() == (None,)


def test_looking_changes_nothing(store: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_store(store) as writer:  # its log is left, as by a killed process
        writer.append(FeedbackGiven("d99", {"taste": 4.0}, at=200.0))
        for name in ("pamo.db", "pamo.db-wal", "pamo.db.snapshot.npz"):
            shutil.copy(name, f"killed{name.removeprefix('pamo')}")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for address in (store, "killed.db"):
        assert run(capsys, "show", address)[0] == 0
        assert run(capsys, "verify", address)[0] == 0
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert after.keys() - before.keys() <= {"killed.db-shm", "killed.db.lock"}
    assert {name: after[name] for name in before} == before
    with open_store("killed.db") as opened:
        assert opened.pending() == 0


def test_a_reader_refuses_to_write(store: str) -> None:
    with open_reader(store) as reader:
        for call in (reader.snapshot, reader.rebuild, lambda: reader.load([]), lambda: reader.append(decision(5))):
            with pytest.raises(StoreError, match="read only"):
                call()
    with pytest.raises(StoreError, match="closed"):
        list(reader.events())
    open_existing(store).close()


# Export and import


def test_export_and_import(
    store: str, folder: Path, postgres_url: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("journal.parquet").write_text("an older one")
    code, out, _ = run(capsys, "export", store, "journal.parquet")
    assert (code, out) == (0, f"journal.parquet: {EVENTS} events of pamo.db\n")
    assert pyarrow.parquet.read_table("journal.parquet").num_rows == EVENTS
    for address in ("again.db", postgres_url()):
        code, out, _ = run(capsys, "import", "journal.parquet", address)
        assert (code, out) == (0, f"{shown(address)}: begun with {EVENTS} events of journal.parquet\n")
        assert contents(address) == contents(store)
        assert run(capsys, "verify", address)[0] == 0
        code, out, error = run(capsys, "import", "journal.parquet", address)
        assert (code, out) == (2, "")
        assert "expected an empty store" in error
        assert shown(address) in error
    assert not [name for name in names(folder) if ".new" in name]
    with open_reader("again.db") as reader:
        assert reader.snapshot_at() == EVENTS  # type: ignore[attr-defined]


def test_an_empty_store_takes_a_journal_over(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "export", store, "journal.parquet")
    open_store("new.db", SETUP).close()
    assert run(capsys, "import", "journal.parquet", "new.db")[0] == 0
    assert contents("new.db") == contents(store)
    open_store("other.db", Setup((Objective("taste"),))).close()
    code, _, error = run(capsys, "import", "journal.parquet", "other.db")
    assert code == 2
    assert "other objectives" in error


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["export", "pamo.db", "journal.csv"], "expected FILE to end in .parquet"),
        (["export", "pamo.db", "no/journal.parquet"], "make no first"),
        (["export", "pamo.db", "x.json", "--decisions"], "expected FILE to end in .parquet, .csv"),
        (["export", "pamo.db", "x.parquet", "--since", "2026-10-01"], "--since only with --decisions"),
        (["export", "pamo.db", "x.csv", "--decisions", "--since", "May"], "expected --since like 2026-10-01"),
        (
            ["export", "pamo.db", "x.csv", "--decisions", "--since", "2026-10-02", "--until", "2026-10-01T23:00-01:00"],
            "expected --since before --until",
        ),
        (["import", "pamo.db", "x.parquet"], "expected FILE to end in .parquet"),
        (["import", "no.parquet", "x.db"], "there is no file no.parquet"),
        (["import", "text.parquet", "x.db"], "cannot be read as a journal"),
        (["import", "text.parquet", "x.parquet"], "got another file"),
        (["import", "journal.parquet", "no/x.db"], "make no first"),
        (["import", "journal.parquet", "stale.db"], "move it away"),
        (["import", "journal.parquet", "memory:"], "gone with its process"),
        (["import", "journal.parquet", "mysql://x"], "postgresql://"),
        (["migrate", "pamo.db", "./pamo.db"], "expected two stores"),
        (["migrate", "pamo.db", "text.parquet"], "not a database"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    arguments: list[str], part: str, store: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("text.parquet").write_text("not a journal, and long enough to be looked at" * 50)
    Path("stale.db-wal").touch()
    run(capsys, "export", store, "journal.parquet")
    before = names(folder)
    code, out, error = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert error.startswith("pamo: ")
    assert part in error
    assert set(names(folder)) - set(before) <= {"text.parquet.lock"}


def broken_after(count: int, error: BaseException) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def events(source: Iterator[Any]) -> Iterator[Any]:
        for number, item in enumerate(source):
            if number == count:
                raise error
            yield item

    return events


@pytest.mark.parametrize("error", [StoreError("the source broke"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_failed_import_leaves_nothing(
    error: BaseException,
    store: str,
    folder: Path,
    postgres_url: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(capsys, "export", store, "journal.parquet")
    open_store("empty.db", SETUP).close()
    before = names(folder)
    url = postgres_url()
    exported = maintenance.exported
    with monkeypatch.context() as patched:
        patched.setattr(maintenance, "exported", lambda path: broken_after(40, error)(exported(path)))
        for address in ("new.db", "empty.db", url):
            code, out, sentence = run(capsys, "import", "journal.parquet", address)
            assert (code, out) == (130 if isinstance(error, KeyboardInterrupt) else 2, "")
            assert ("interrupted" if isinstance(error, KeyboardInterrupt) else "the source broke") in sentence
    assert names(folder) == before
    assert len(contents("empty.db")) == 1
    with psycopg.connect(url) as connection:
        left = (
            "SELECT count(*) FROM pg_class WHERE relname LIKE 'pamo%' AND relnamespace = current_schema()::regnamespace"
        )
        assert connection.execute(left).fetchone() == (0,)
        functions = "SELECT count(*) FROM pg_proc WHERE pronamespace = current_schema()::regnamespace"
        assert connection.execute(functions).fetchone() == (0,)
    for address in ("new.db", "empty.db", url):
        assert run(capsys, "import", "journal.parquet", address)[0] == 0


def test_an_interrupt_while_a_store_loads_stops_it(
    store: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The thread that writes is told to stop, rather than waited for until it has read all."""
    waiting, most, read = threading.Event(), 50_000, list[int]()

    def many() -> Iterator[Any]:
        with open_reader(store) as source:
            yield from source.events()
        waiting.set()
        for number in range(1000, most):
            read.append(number)
            yield number, decision(number)

    def interrupted(self: Any, task: Callable[[], None]) -> None:
        self._put(lambda: _ignoring(task))
        waiting.wait(10)
        raise KeyboardInterrupt

    monkeypatch.setattr("pamo.store.writer.Writer.call", interrupted)
    with pytest.raises(KeyboardInterrupt):
        maintenance.begin("new.db", many())
    assert waiting.is_set()
    assert len(read) < most - 1000
    assert not [name for name in names(folder) if name.startswith("new.db")]


def _ignoring(task: Callable[[], None]) -> None:
    with pytest.raises(StoreError, match="interrupted"):
        task()


KILLED = """
import os, signal, sys
from pamo.store import maintenance
exported = maintenance.exported
def events(path):
    for number, item in enumerate(exported(path)):
        if number == 40:
            os.kill(os.getpid(), signal.SIGKILL)
        yield item
maintenance.exported = events
maintenance.import_(sys.argv[1], sys.argv[2])
"""


def test_a_killed_import_leaves_no_store_and_is_done_again(
    store: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "export", store, "journal.parquet")
    before = names(folder)
    killed = subprocess.run([sys.executable, "-c", KILLED, "journal.parquet", "new.db"], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not Path("new.db").exists()
    assert run(capsys, "import", "journal.parquet", "new.db")[0] == 0
    assert len(contents("new.db")) == EVENTS
    assert set(names(folder)) - set(before) == {"new.db", "new.db.snapshot.npz", "new.db.lock"}


def test_a_store_that_somebody_else_begins_meanwhile_stays(
    store: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = sqlite_file._name

    def late(beside: Path, path: Path) -> None:
        path.write_text("somebody else's")
        name(beside, path)

    monkeypatch.setattr(sqlite_file, "_name", late)
    with open_reader(store) as source, pytest.raises(InputError, match="somebody else"):
        maintenance.migrate(source, "new.db")
    assert Path("new.db").read_text() == "somebody else's"
    assert [name for name in names(folder) if name.startswith("new.db")] == ["new.db"]


def test_without_links_a_finished_store_is_renamed(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    with open_reader(store) as source:
        maintenance.migrate(source, "new.db")
    assert contents("new.db") == contents(store)


def test_two_imports_into_one_store(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "export", store, "journal.parquet")
    owner = Owner(Path("new.db.new"))
    code, _, error = run(capsys, "import", "journal.parquet", "new.db")
    owner.close()
    assert code == 2
    assert "in use" in error
    assert Path("new.db.new.lock").exists()  # it is the other's


def test_a_failed_export_leaves_the_old_file(
    store: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("journal.parquet").write_text("an older one")
    before = names(folder)

    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    code, _, error = run(capsys, "export", store, "journal.parquet")
    assert code == 2
    assert "No space left" in error
    assert Path("journal.parquet").read_text() == "an older one"
    assert names(folder) == before


# Migrate, passwords, help


def test_migrate_from_any_to_any(
    store: str, postgres_url: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [store, postgres_url(), postgres_url(), "back.db", "copy.db"]
    for source, target in pairwise(steps):
        code, out, _ = run(capsys, "migrate", source, target)
        assert (code, out) == (0, f"{shown(target)}: begun with {EVENTS} events of {shown(source)}\n")
    assert contents("copy.db") == contents(store)
    with open_reader(store) as ours, open_reader("copy.db") as theirs:
        np.testing.assert_allclose(theirs.arms().statistics.moments, ours.arms().statistics.moments, rtol=1e-12)
    code, _, error = run(capsys, "migrate", store, steps[1])
    assert code == 2
    assert "expected an empty store" in error


@pytest.mark.parametrize(
    "password", ["hush-hush", "p%40ss%2Fword", "sesa@me", "sla/sh", "ques?tion", "ha#sh", "col:on"], ids=str
)
def test_no_password_is_printed(
    password: str, store: str, postgres_url: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither where all is well (the server asks for none) nor in what an error quotes, quoted or not."""
    quoted = password.replace("@", "%40").replace("/", "%2F").replace("?", "%3F").replace("#", "%23")
    url = postgres_url().replace("postgres:@", f"postgres:{quoted.replace('%25', '%')}@")
    assert f":{quoted}@" in url
    lost = f"postgresql://ann:{password}@localhost:1/x?connect_timeout=2"
    asked = f"postgresql://localhost:1/x?password={password}"
    lines = [["show", url], ["migrate", store, url], ["show", url], ["verify", url], ["rebuild", url]]
    lines += [["migrate", store, url], ["export", lost, "x.parquet"], ["verify", asked], ["migrate", store, lost]]
    codes = []
    for arguments in lines:
        code, out, error = run(capsys, *arguments)
        codes.append(code)
        for secret in (password, quoted, "p@ss", "ss/word", "me@", "sh@", "tion@", "on@"):
            assert secret not in out
            assert secret not in error
    assert codes == [2, 0, 0, 0, 0, 2, 2, 2, 2]
    with pytest.raises(StoreError, match="could not connect to") as raised:
        open_reader(lost)
    assert not any(secret in str(raised.value) for secret in (password, "me@", "sh@", "tion@", "on@"))


def test_addresses_are_shown_without_passwords() -> None:
    assert shown("pamo.db") == "pamo.db"
    assert shown("postgresql://ann@db/x") == "postgresql://ann@db/x"
    assert shown("postgres://ann:a@b:c@db:5/x?a=b") == "postgres://ann:…@db:5/x?a=b"
    assert shown("postgresql:///x?user=a&password=b&sslpassword=c") == "postgresql:///x?user=a&password=…&sslpassword=…"
    assert shown("postgresql:///x?PASSWORD=b&SslPassword=c") == "postgresql:///x?PASSWORD=…&SslPassword=…"
    assert scrubbed("no b1gsecret", "postgresql:///x?PassWord=b1gsecret") == "no …"
    assert shown("mysql://ann:secret@db/x") == "mysql://ann:…@db/x"
    assert scrubbed("database abc", "postgresql://ann:ab@db/x", "pamo.db") == "database abc"


def test_missing_extras_are_named(store: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for arguments in (["export", store, "x.parquet"], ["import", "x.parquet", "x.db"]):
        Path("x.parquet").touch()
        code, _, error = run(capsys, *arguments)
        assert code == 2
        assert "pip install 'pamo[results]'" in error


BARE = """
import sys
for name in ("apsw", "psycopg"):
    sys.modules[name] = None
from pamo.cli import main
print(main(["store", "show", sys.argv[1]]), main(["store", "show", "postgresql://nowhere/x"]))
"""


def test_without_the_stores_packages_there_is_a_sentence(store: str) -> None:
    done = subprocess.run([sys.executable, "-c", BARE, store], capture_output=True, text=True, check=True)
    assert done.stdout == "2 2\n"
    assert "pip install 'pamo[sqlite]'" in done.stderr
    assert "pip install 'pamo[postgres]'" in done.stderr


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store"]) == 0
    assert "examples:" in capsys.readouterr().out
    for command in ("show", "verify", "rebuild", "export", "import", "migrate"):
        with pytest.raises(SystemExit) as exit:
            main(["store", command, "--help"])
        assert exit.value.code == 0
        assert f"pamo store {command} " in capsys.readouterr().out.partition("examples:")[2]
