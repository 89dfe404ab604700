"""Decisions as a table: what the rows say, in every store for the tools that read it, whoever writes meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow.parquet
import pytest

from campaigns import exports
from pamo.contract.events import HISTORY
from pamo.errors import DamagedError
from pamo.experiments.logs import objectives_in, read_log
from pamo.store import Event, Store, UserErased, open_store
from pamo.store.addresses import open_reader
from pamo.store.decisions_table import columns_of, export_decisions
from pamo.store.sqlite import SqliteStore
from pamo.store.sqlite_file import apsw
from tests.store.homes import HOMES
from tests.store.model import SETUP
from tests.store.test_conformance import begun, decision, feedback

PART_1, PART_2 = {"taste": 4.0, "price": 120.0}, {"service": 0.5}
NOON = 1_760_000_000.0


def events() -> list[Event]:
    """One of each: feedback in parts, to the second arm, none at all, an offer, an erased user, and history."""
    found: list[Event] = [
        replace(decision(1), at=NOON, offer=("A", "B", "C"), k=2),
        feedback(1, PART_1, at=NOON + 1.5, overall=7.0, arm="A"),
        feedback(1, PART_1, at=NOON + 2.0, overall=3.0, arm="B"),
        replace(decision(2, user='b|ob, "x"', arms=("C",)), at=NOON + 3600.0),
        replace(decision(3, user="eve", arms=("B",)), at=NOON + 3600.25),
        replace(decision(4, user="ann", arms=("A",)), at=-1e300, policy=HISTORY),
        feedback(1, PART_2, at=NOON + 9.0, arm="A"),
        feedback(3, PART_2, at=NOON + 3601.0),
    ]
    return found


NONE = (None,) * 4
OFFER, CHANCE, HP = ["A", "B", "C"], 0.5, "prucb-hp"
ROWS = [
    (NOON, "d1", "ann", 1, "A", OFFER, CHANCE, HP, 4.0, 120.0, 0.5, 7.0, NOON + 9.0),
    (NOON, "d1", "ann", 2, "B", OFFER, None, HP, 4.0, 120.0, None, 3.0, NOON + 2.0),
    (NOON + 3600.0, "d2", 'b|ob, "x"', 1, "C", None, CHANCE, HP, *NONE, None),
    (NOON + 3600.25, "d3", None, 1, "B", None, CHANCE, HP, None, None, 0.5, None, NOON + 3601.0),
    (None, "d4", "ann", 1, "A", None, None, HISTORY, *NONE, None),
]


def told(path: Path) -> list[Any]:
    """What a Parquet file holds, with times in seconds."""
    table = pyarrow.parquet.read_table(path)
    columns = [
        [one and one.timestamp() for one in column.to_pylist()] if name.endswith("time") else column.to_pylist()
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return list(zip(*columns, strict=True))


def filled(home: str, path: Path, url: Callable[[], str]) -> Store:
    store = begun(HOMES[home](path, url))
    store.append_many(events())
    store.append(UserErased("eve", at=NOON + 7200.0))
    return store


@pytest.mark.parametrize("home", HOMES)
def test_a_row_a_decision(home: str, tmp_path: Path, postgres_url: Callable[[], str]) -> None:
    done: list[int] = []
    with filled(home, tmp_path, postgres_url) as store:
        file = tmp_path / "all.parquet"
        assert export_decisions(store, file, progress=done.append) == (4, 5)
        assert told(file) == ROWS
        assert pyarrow.parquet.read_schema(file).names == columns_of(SETUP.objectives)
        assert sum(done) == store.end() == sum(1 for _ in store.events())
        assert export_decisions(store, file, since=NOON, until=NOON + 3600.25) == (2, 3)
        assert told(file) == ROWS[:3]
        assert export_decisions(store, file, since=1e10) == (0, 0)
        assert told(file) == []
        assert export_decisions(store, tmp_path / "all.csv") == (4, 5)
    noon = "2025-10-09T08:53"
    assert (tmp_path / "all.csv").read_text(encoding="utf-8").splitlines()[:4] == [
        "time,decision,user,place,arm,offer,propensity,policy,taste,price,service,overall,feedback_time",
        f"{noon}:20.000000+00:00,d1,ann,1,A,A|B|C,0.5,prucb-hp,4.0,120.0,0.5,7.0,{noon}:29.000000+00:00",
        f"{noon}:20.000000+00:00,d1,ann,2,B,A|B|C,,prucb-hp,4.0,120.0,,3.0,{noon}:22.000000+00:00",
        '2025-10-09T09:53:20.000000+00:00,d2,"b|ob, ""x""",1,C,,0.5,prucb-hp,,,,,',
    ]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_tools_for_tables_read_it(ending: str, tmp_path: Path, postgres_url: Callable[[], str]) -> None:
    """Each by its shortest call, to the same answer; and `pamo evaluate`, which leaves out what it cannot use."""
    file = tmp_path / f"decisions{ending}"
    with filled("sqlite", tmp_path, postgres_url) as store:
        export_decisions(store, file)
    csv = ending == ".csv"
    pandas = pd.read_csv(file) if csv else pd.read_parquet(file)
    polars = pl.read_csv(file) if csv else pl.read_parquet(file)
    asked = f"SELECT count(*), sum(overall), max(place), epoch(min(\"time\")) FROM '{file}'"
    (duck,) = duckdb.execute(asked).fetchall()
    for found in (
        (len(pandas), pandas["overall"].sum(), pandas["place"].max()),
        (len(polars), polars["overall"].sum(), polars["place"].max()),
        duck[:3],
    ):
        assert found == (5, 10.0, 2)
    assert duck[3] == pd.to_datetime(pandas["time"]).min().timestamp() == NOON
    log = read_log(file, objectives_in(file) or SETUP.objectives)
    assert len(log) == 1
    assert log.offer(0).tolist() == [0, 1, 2]
    assert log.left_out == {"rows that lack what is needed": 4}


def test_an_objective_may_have_any_name(tmp_path: Path) -> None:
    named = replace(SETUP, objectives=(replace(SETUP.objectives[0], name="user"), *SETUP.objectives[1:]))
    with open_store("memory:", named) as store:
        export_decisions(store, tmp_path / "x.parquet")
    assert pyarrow.parquet.read_schema(tmp_path / "x.parquet").names.count("user score") == 1


def test_others_write_and_shorten_the_log_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteStore, "_page", 2)
    with begun(HOMES["sqlite"](tmp_path, str)) as store:
        store.append_many([decision(number, user="ann") for number in range(10)])
        with open_reader(tmp_path / "journal.db", alone=False, sums=False) as reader:
            monkeypatch.setattr(reader, "_page", 2)
            pages = reader.decided()
            seen = len(next(pages)[1])
            store.append_many([decision(number, user="bob") for number in range(10, 20)])
            store.append(feedback(0))
            busy, *_ = store._write.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()  # type: ignore[attr-defined]
            assert not busy
            assert (tmp_path / "journal.db-wal").stat().st_size == 0
            found = [made for _, page in pages for made in page]
            assert seen + len(found) == 10
            assert not any(made.parts for made in found)
            assert len(list(reader.events())) == reader.end() == store.end() - 11


def test_the_campaign_finds_who_holds_up_the_service(tmp_path: Path) -> None:
    plan = exports.Plan(events=2000, rate=100.0, slowest=250.0, before=0.3, fault="lock")
    tally = exports.campaign(plan, str(tmp_path / "month.db"), tmp_path)
    (wrong,) = tally.wrong
    assert "p99 of what was waited meanwhile" in wrong
    assert tally.rows >= 1000


def test_a_damaged_journal_is_told_and_nothing_remains(tmp_path: Path, postgres_url: Callable[[], str]) -> None:
    filled("sqlite", tmp_path, postgres_url).close()
    with apsw.Connection(str(tmp_path / "journal.db")) as connection:
        connection.execute("UPDATE events SET body = replace(body, '4.0', '5.0') WHERE kind = 'feedback'")
    (tmp_path / "x.csv").write_text("an older one")
    with (
        open_reader(tmp_path / "journal.db", alone=False, sums=False) as reader,
        pytest.raises(DamagedError, match="is not what was recorded"),
    ):
        export_decisions(reader, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == "an older one"
    assert not list(tmp_path.glob("*.new"))
