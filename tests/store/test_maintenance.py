"""Carrying journals from store to store, and what the reports say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from pamo.errors import InputError, StoreError
from pamo.store import MemoryStore, UserErased, open_store
from pamo.store.maintenance import export, import_, migrate, verify
from tests.documents import ROOT
from tests.store.model import SETUP, Model
from tests.store.test_sqlite import filled


def same(store: Any, other: Any) -> None:
    assert list(store.events()) == list(other.events())
    assert verify(store).ok


def test_export_and_import(tmp_path: Path, postgres_url: Callable[[], str]) -> None:
    source, model = filled(tmp_path / "journal.db")
    source.append(UserErased("u3", at=1.0))
    model.append(UserErased("u3", at=1.0))
    count = export(source, tmp_path / "journal.parquet")
    assert count == model.count
    for address in (str(tmp_path / "again.db"), postgres_url()):
        assert import_(tmp_path / "journal.parquet", address) == count
        with open_store(address) as again:
            same(again, source)
            model.check(again)
    with pytest.raises(InputError, match="empty store"):
        import_(tmp_path / "journal.parquet", tmp_path / "again.db")
    source.close()


def test_migrating_from_sqlite_to_postgres_and_back(tmp_path: Path, postgres_url: Callable[[], str]) -> None:
    source, model = filled(tmp_path / "journal.db")
    url = postgres_url()
    assert migrate(source, url) == model.count
    with open_store(url) as moved:
        model.check(moved)
        same(moved, source)
        assert migrate(moved, tmp_path / "back.db") == model.count
    with open_store(tmp_path / "back.db") as back:
        model.check(back)
    source.close()


def test_the_export_is_plain_parquet(tmp_path: Path) -> None:
    source, _ = filled(tmp_path / "journal.db")
    export(source, tmp_path / "journal.parquet")
    source.close()
    table = pyarrow.parquet.read_table(tmp_path / "journal.parquet")
    assert table.column_names == ["sequence", "kind", "decision", "user", "key", "body"]
    assert set(table["kind"].to_pylist()) == {"setup", "arm added", "decision", "feedback"}
    assert sorted(path.name for path in tmp_path.iterdir() if "new" in path.name) == []


def test_an_export_of_format_1_stays_readable(tmp_path: Path) -> None:
    import_(ROOT / "tests" / "fixtures" / "journal-1.parquet", tmp_path / "journal.db")
    with open_store(tmp_path / "journal.db") as store:
        assert len(list(store.events())) == 10
        assert store.arms().names == ("Anchor Inn", "Bell")


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a journal"):
        import_(ROOT / "tests" / "fixtures" / "result-v1.parquet", tmp_path / "journal.db")
    (tmp_path / "text.parquet").write_text("no")
    with pytest.raises(StoreError, match="cannot be read"):
        import_(tmp_path / "text.parquet", tmp_path / "journal.db")
    with pytest.raises(StoreError, match="cannot be read"):
        import_(tmp_path / "missing.parquet", tmp_path / "journal.db")
    with pytest.raises(StoreError, match="could not be written"):
        export(MemoryStore(SETUP), tmp_path / "no" / "folder.parquet")


def test_a_report_names_what_differs(tmp_path: Path) -> None:
    source, _ = filled(tmp_path / "journal.db")
    source._fold.block[1, 0] += 1.0
    source._fold.apply(UserErased("u3", at=1.0))
    source._fold._set_arm("A", source._fold.arm_states["A"]._replace(name="other"))
    source._fold.decisions += 1
    source._fold.table = None
    words = " ".join(verify(source).differences)
    for part in ("arm B: moments", "user u3: only the journal", "states or features", "pending: 0 by the journal, 1"):
        assert part in words
    source.close(snapshot=False)


@pytest.mark.parametrize("address", ["mysql://x", "", "http://x"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(InputError, match="postgresql://"):
        open_store(address, SETUP)


def test_a_store_in_memory_is_always_new() -> None:
    with pytest.raises(InputError, match="pass a setup"):
        open_store("memory:")
    assert Model(1.0).setup == open_store("memory:", SETUP).setup


BARE = """
import sys
for name in ("apsw", "msgspec", "psycopg", "pyarrow"):
    sys.modules[name] = None
from pamo.errors import MissingExtraError
from pamo.store import ArmAdded, Objective, Setup, open_store
setup = Setup((Objective("taste"),))
with open_store("memory:", setup) as store:
    print(store.append(ArmAdded("A", "A", 0.0)).outcome)
for address in ("file.db", "postgresql://nowhere"):
    try:
        open_store(address, setup)
    except MissingExtraError as error:
        print(error)
"""


def test_the_core_alone_has_the_memory_store(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, check=True, cwd=tmp_path)
    recorded, *sentences = run.stdout.splitlines()
    assert recorded == "recorded"
    assert len(sentences) == 2
    assert all("pip install 'pamo[" in sentence for sentence in sentences)
    assert list(tmp_path.iterdir()) == []
