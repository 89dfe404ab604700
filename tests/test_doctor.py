"""`pamo doctor`: what each check says of what it finds, and that it leaves everything as it was."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from pamo import doctor
from pamo.cli import main
from pamo.cli.doctor import as_text
from pamo.doctor import Check, Status, disk, environment, examine, server, speed
from pamo.errors import InputError
from pamo.store import open_store
from tests.store.test_sqlite import filled
from tests.test_cli_store import damage

SECONDS = 0.01


def look(address: str | Path | None = None, **options: Any) -> dict[str, Check]:
    """Return the checks by group and name."""
    checks = list(examine(address, **{"seconds": SECONDS, **options}))
    found = {f"{check.group}: {check.name}": check for check in checks}
    assert len(found) == len(checks)
    json.dumps([check.figures for check in checks], allow_nan=False)
    return found


def problems(checks: dict[str, Check]) -> list[str]:
    return [name for name, check in checks.items() if check.status is Status.PROBLEM]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    made, _ = filled(tmp_path / "pamo.db")
    made.close()
    return tmp_path / "pamo.db"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# Stores in SQLite


def test_a_healthy_store(store: Path) -> None:
    before = contents(store.parent)
    told: list[str] = []
    checks = look(store, announce=told.append)
    assert problems(checks) == []
    assert list(checks) == [
        "environment: python",
        "environment: packages",
        "environment: extras",
        "environment: compiled",
        "store: opens",
        "store: file",
        "store: snapshot",
        "store: sums",
        "disk: filesystem",
        "disk: space",
        "disk: fsync",
        "speed: in memory",
        "speed: durable",
    ]
    assert checks["store: opens"].figures == {
        "events": 63,
        "bytes": sum(len(before[name]) for name in ("pamo.db", "pamo.db.snapshot.npz")),
        "in_use": False,
    }
    assert checks["store: snapshot"].figures == {"up_to": 63}
    assert "63 events, 2 arms and 7 users" in checks["store: sums"].sentence
    assert checks["disk: filesystem"].figures["folder"] == str(store.parent)
    assert checks["disk: fsync"].figures["times"] >= 5
    assert checks["speed: durable"].figures["threads"] == 32
    assert min(checks["speed: durable"].figures.values()) > 0
    assert checks["speed: in memory"].figures["decide_and_feedback_us"] > 0
    assert "folding the journal" in told
    assert contents(store.parent) == before


def test_quick_does_not_fold(store: Path) -> None:
    told: list[str] = []
    checks = look(store, quick=True, announce=told.append)
    assert checks["store: sums"].figures == {"compared": False}
    assert "indexes were not compared" in checks["store: file"].sentence
    assert "folding the journal" not in told


def test_a_store_that_is_not_there_is_a_problem_and_is_not_begun(tmp_path: Path) -> None:
    checks = look(tmp_path / "no.db")
    assert problems(checks) == ["store: opens"]
    assert "there is no store at" in checks["store: opens"].sentence
    assert "disk: fsync" in checks
    checks = look(tmp_path / "no" / "no.db")
    assert problems(checks) == ["store: opens", "disk: folder"]
    assert "speed: in memory" in checks
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_use_is_looked_at_shortly(store: Path) -> None:
    with open_store(store):
        checks = look(store)
    assert problems(checks) == []
    assert checks["store: opens"].figures["in_use"] is True
    assert "another process has it open" in checks["store: opens"].sentence
    assert checks["store: sums"].figures == {"compared": False}


def test_sums_that_are_not_the_journals_are_a_problem(store: Path) -> None:
    with open_store(store) as changed:
        changed._fold.block[1, 0] += 1.0  # type: ignore[attr-defined]
        changed.snapshot()
    checks = look(store)
    assert problems(checks) == ["store: sums"]
    assert "arm B: moments" in checks["store: sums"].sentence
    assert "pamo store rebuild" in checks["store: sums"].sentence
    assert problems(look(store, quick=True)) == []


def test_a_damaged_file_is_a_problem(store: Path) -> None:
    damage(str(store))
    checks = look(store)
    assert problems(checks) == ["store: file"]
    assert checks["store: file"].figures["damage"]


def test_a_journal_that_cannot_be_read_is_a_problem(store: Path) -> None:
    connection = sqlite3.connect(store)
    connection.execute("UPDATE events SET body = '{' WHERE kind = 'decision'")
    connection.commit()
    connection.close()
    checks = look(store)
    assert problems(checks) == ["store: sums"]
    assert "is not what was recorded" in checks["store: sums"].sentence


def test_a_damaged_snapshot_is_a_warning(store: Path) -> None:
    snapshot = Path(f"{store}.snapshot.npz")
    snapshot.write_bytes(snapshot.read_bytes()[:100])
    checks = look(store)
    assert problems(checks) == []
    assert checks["store: snapshot"].status is Status.WARNING
    snapshot.unlink()
    checks = look(store)
    assert checks["store: snapshot"].status is Status.OK
    assert "lacks 63 events" in checks["store: snapshot"].sentence


def test_a_folder_and_no_address_are_looked_at_for_their_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for checks in (look(), look(tmp_path)):
        assert problems(checks) == []
        assert not [name for name in checks if name.startswith("store")]
        assert checks["disk: filesystem"].figures["folder"] == str(tmp_path)
    assert list(tmp_path.iterdir()) == []
    for address in ("memory:", "mysql://x"):
        with pytest.raises(InputError):
            look(address)


# The disk


TABLE = r"""
/dev/vda / ext4 rw 0 0
overlay /var overlay rw 0 0
/dev/vdb /var/lib xfs rw 0 0
tmpfs /var/lib tmpfs rw 0 0
server:/x /mnt/my\040files nfs4 rw 0 0
broken
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home", "ext4"),
        ("/var/log", "overlay"),
        ("/variable", "ext4"),
        ("/var/lib/pamo", "tmpfs"),
        ("/mnt/my files/x", "nfs4"),
    ],
)
def test_the_file_system_of_a_folder(folder: str, kind: str) -> None:
    assert disk.mounted(Path(folder), TABLE) == kind
    assert disk.mounted(Path(folder), "") is None


@pytest.mark.parametrize(
    ("kind", "status", "part"),
    [
        ("ext4", Status.OK, "on ext4"),
        (None, Status.OK, "does not tell"),
        ("tmpfs", Status.WARNING, "in memory"),
        ("overlay", Status.WARNING, "mount a volume"),
        ("nfs4", Status.WARNING, "use PostgreSQL"),
    ],
)
def test_what_is_said_of_file_systems(kind: str | None, status: Status, part: str) -> None:
    check = disk.judge_filesystem(Path("/x"), kind)
    assert (check.status, check.figures["filesystem"]) == (status, kind)
    assert part in check.sentence


@pytest.mark.parametrize(
    ("sync", "kind", "status", "part"),
    [
        (250.0, "ext4", Status.OK, "takes 250 µs (median of 300; 3 µs without): long enough"),
        (8.0, "ext4", Status.WARNING, "takes 8 µs"),
        (8.0, "ext4", Status.WARNING, "does not reach it here"),
        (8.0, None, Status.WARNING, "does not reach it here"),
        (8.0, "tmpfs", Status.WARNING, "in memory"),
        (80_000.0, "ext4", Status.WARNING, "80,000 µs"),
    ],
)
def test_an_fsync_that_is_too_fast_to_be_true(sync: float, kind: str | None, status: Status, part: str) -> None:
    check = disk.judge_sync(3.0, sync, 300, kind)
    assert check.status is status
    assert part in check.sentence
    assert check.figures == {"write_us": 3.0, "write_and_fsync_us": sync, "times": 300}


def test_fsync_is_called_and_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    clock = iter(float(number) for number in range(10**6))
    monkeypatch.setattr(disk, "_sync", lambda: calls.append)
    monkeypatch.setattr("pamo.doctor.disk.time", SimpleNamespace(perf_counter=lambda: next(clock)))
    with open(tmp_path / "file", "wb") as file:
        write, sync, count = disk.measure_sync(file.fileno(), seconds=40.0, most=10)
    assert (count, len(calls)) == (10, 10)
    assert write == sync == 1e6
    assert (tmp_path / "file").stat().st_size == 20 * 4096


@pytest.mark.parametrize(
    ("free", "status", "part"),
    [
        (50 * 10**6, Status.PROBLEM, "only 50 MB free"),
        (500 * 10**6, Status.WARNING, "500 MB free"),
        (5 * 10**9, Status.OK, "5.0 GB free"),
    ],
)
def test_room_on_the_disk(free: int, status: Status, part: str) -> None:
    check = disk.judge_space(free)
    assert (check.status, check.figures) == (status, {"free_bytes": free})
    assert part in check.sentence


def test_a_disk_that_cannot_be_written_to_is_a_problem(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise OSError(30, "Read-only file system")

    refusing = SimpleNamespace(NamedTemporaryFile=refuse, TemporaryDirectory=refuse)
    monkeypatch.setattr("pamo.doctor.disk.tempfile", refusing)
    monkeypatch.setattr("pamo.doctor.speed.tempfile", refusing)
    checks = look(store)
    assert problems(checks) == ["disk: fsync", "speed: durable"]
    assert "Read-only file system" in checks["disk: fsync"].sentence


def test_a_store_that_fails_while_it_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: Any, events: Any) -> Any:
        if len(events) == 1:
            raise OSError("gone")
        return original(self, events)

    from pamo.store.sqlite import SqliteStore

    original = SqliteStore._append
    monkeypatch.setattr(SqliteStore, "_append", stop)
    (check,) = [
        check for check in speed.look_at_speed(tmp_path, seconds=SECONDS, announce=print) if check.figures == {}
    ]
    assert check.status is Status.PROBLEM
    assert "gone" in check.sentence
    assert list(tmp_path.iterdir()) == []


# The environment


def test_the_environment() -> None:
    checks = {check.name: check for check in environment.look_at_environment()}
    assert checks["python"].figures["python"] == ".".join(map(str, sys.version_info[:3]))
    assert set(checks["packages"].figures) == {"pamo", "numpy", "numba", "apsw", "sqlite"}
    assert re.search(r"SQLite 3\.\d+\.\d+ \(apsw ", checks["packages"].sentence)
    assert {"sqlite", "postgres", "results", "plot"} <= set(checks["extras"].figures["installed"])
    assert checks["compiled"].status is Status.OK
    assert environment._python((3, 10)).status is Status.PROBLEM


def test_extras_that_are_missing_are_named() -> None:
    check = environment.extras_of(
        [
            "numpy>=2.0",
            "numpy>=2.0; extra == 'plot'",
            "surely-not-installed>=1; extra == 'other'",
            'nor-this[binary]>=1; sys_platform != "nowhere" and extra == "other"',
            "nor-that; extra == 'docs'",
        ]
    )
    assert check.status is Status.OK
    assert check.figures == {"installed": ["plot"], "missing": {"other": ["surely-not-installed", "nor-this"]}}
    assert "pip install 'pamo[other]'" in check.sentence


def test_code_that_cannot_be_kept_is_a_warning() -> None:
    class Compiled:
        _cache: Any = None

    one = Compiled()
    assert environment.kept_code(one).status is Status.OK
    one._cache = object()
    assert environment.kept_code(one).status is Status.WARNING
    assert "NUMBA_CACHE_DIR" in environment.kept_code(one).sentence


BARE = """
import sys
sys.modules["apsw"] = None
from pamo.doctor import examine, Status
for check in examine(sys.argv[1], seconds=0.01):
    if check.status is Status.PROBLEM or check.name == "packages":
        print(check.name, check.sentence)
"""


def test_without_apsw_the_other_checks_go_on(store: Path) -> None:
    done = subprocess.run([sys.executable, "-c", BARE, str(store)], capture_output=True, text=True, check=True)
    packages, opens, durable = done.stdout.splitlines()
    assert "SQLite" not in packages
    assert opens.startswith("opens the SQLite store needs apsw")
    assert durable.startswith("durable")
    assert "pamo[sqlite]" in durable


# PostgreSQL


def test_a_store_in_postgres(store: Path, postgres_url: Callable[[], str]) -> None:
    url = postgres_url()
    checks = look(url)
    assert problems(checks) == ["store: opens"]
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT to_regclass('pamo_events')").fetchone() == (None,)
    assert main(["store", "migrate", str(store), url]) == 0
    checks = look(url)
    assert problems(checks) == []
    assert [name for name in checks if name.startswith("server")] == [
        "server: round trip",
        "server: fsync",
        "server: page writes",
        "server: waiting",
        "server: standby",
        "server: commit",
    ]
    assert not [name for name in checks if name.startswith("disk")]
    assert checks["server: round trip"].figures["round_trip_us"] > 0
    assert checks["server: fsync"].figures == {"fsync": "on"}
    assert checks["store: opens"].figures["events"] == 63
    assert "63 events, 2 arms and 7 users" in checks["store: sums"].sentence
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE pamo_counts SET decisions = decisions + 1")
    checks = look(url)
    assert problems(checks) == ["store: sums"]
    assert "pending" in checks["store: sums"].sentence
    read_only = url.replace("search_path", "default_transaction_read_only%3Don%20-csearch_path")
    checks = look(read_only)
    assert problems(checks) == ["server: writable", "store: sums"]
    assert "server: commit" not in checks


def test_a_server_out_of_reach_is_told_of_once_and_without_the_password() -> None:
    checks = look("postgresql://ann:hush-hush@localhost:1/x")
    assert problems(checks) == ["server: answers"]
    assert "postgresql://ann:…@localhost:1/x" in checks["server: answers"].sentence
    assert "hush" not in repr(checks)


@pytest.mark.parametrize(
    ("changed", "name", "status", "part"),
    [
        ({}, "fsync", Status.OK, "brings what it commits"),
        ({"fsync": "off"}, "fsync", Status.PROBLEM, "switch it on"),
        ({"full_page_writes": "off"}, "page writes", Status.WARNING, "half written"),
        ({"synchronous_commit": "off"}, "waiting", Status.OK, "pamo switches that on"),
        ({"synchronous_commit": "local"}, "waiting", Status.OK, "not for a standby's"),
        ({}, "standby", Status.OK, "one machine"),
        ({"synchronous_standby_names": "b"}, "standby", Status.OK, "on two machines"),
        ({"synchronous_standby_names": "b", "synchronous_commit": "local"}, "standby", Status.WARNING, "does not wait"),
        ({"synchronous_standby_names": "b", "synchronous_commit": "off"}, "standby", Status.OK, "connections wait"),
    ],
)
def test_what_the_servers_settings_mean(changed: dict[str, str], name: str, status: Status, part: str) -> None:
    settings = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "synchronous_standby_names": ""}
    checks = {check.name: check for check in server.judge_settings(settings | changed)}
    assert checks[name].status is status
    assert part in checks[name].sentence


def test_a_commit_that_is_too_fast_to_be_true() -> None:
    assert server.judge_commit(60.0, 200.0).status is Status.OK
    check = server.judge_commit(60.0, 70.0)
    assert check.status is Status.WARNING
    assert "10 µs more than a plain question" in check.sentence


# The command


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Check]:
    """Checks that `pamo doctor` is given instead of those that it would make."""
    checks = [
        Check("disk", "space", Status.OK, "79.0 GB free", {"free_bytes": 79}),
        Check("disk", "fsync", Status.WARNING, "a sentence that is " + "longer than a line " * 10),
        Check("speed", "in memory", Status.OK, "fast"),
    ]
    monkeypatch.setattr(doctor, "examine", lambda *arguments, **options: iter(checks))
    return checks


def test_the_exit_code_is_1_where_there_is_a_problem(found: list[Check], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out.endswith("\n1 warning\n")
    found += [Check("store", name, Status.PROBLEM, "no") for name in ("a", "b")]
    assert main(["doctor", "postgresql://ann:secret@db/x", "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["store"] == "postgresql://ann:…@db/x"
    assert document["ok"] is False
    assert document["checks"][0] == {
        "group": "disk",
        "name": "space",
        "status": "ok",
        "sentence": "79.0 GB free",
        "figures": {"free_bytes": 79},
    }
    assert main(["doctor"]) == 1
    assert capsys.readouterr().out.endswith("\n2 problems, 1 warning\n")


def test_the_table_fits_a_terminal(found: list[Check]) -> None:
    for columns in (60, 80, 200):
        lines = as_text(found, columns).splitlines()
        assert max(map(len, lines)) < columns
        assert lines[:2] == ["disk", "  ok       space      79.0 GB free"]
        assert "  warning  fsync      a sentence" in "\n".join(lines)
        assert [line for line in lines if line and not line.startswith(" ")] == ["disk", "speed", "1 warning"]
    assert max(map(len, as_text(found, 5).splitlines())) <= 60
    assert as_text(found[:1], 80).endswith("all is well")


def test_the_command_on_a_store(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "examine", partial(examine, seconds=SECONDS))
    assert main(["doctor", str(store), "--quick"]) == 0
    out = capsys.readouterr().out
    for part in ("environment\n", "store\n", "disk\n", "speed\n", "--quick", "durable feedbacks a second"):
        assert part in out
    assert main(["doctor", "memory:"]) == 2
    assert "gone with its process" in capsys.readouterr().err
