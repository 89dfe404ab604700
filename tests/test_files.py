"""Result files: what is saved comes back bit for bit, and what cannot be read or written is said in a sentence."""

import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pamo import Result, environments, policies, simulate
from pamo.errors import InputError, PamoError, ResultFileError
from pamo.simulation import PolicyResult, files

FIXTURES = Path(__file__).parent / "fixtures"
ARRAYS = ("rounds", "regret_by_user", "pareto_regret", "overall", "optimal_share", "preference_error", "pulls")


@pytest.fixture(scope="module")
def result() -> Result:
    return simulate(
        ["prucb-hp", policies.create("oful", epsilon=0.1), policies.create("oful"), "ucb"],
        environments.Gaussian(users=3, block_size=2),
        rounds=40,
        trials=3,
        first_trial=5,
        seed=7,
        checkpoints=4,
    )


@pytest.fixture(scope="module")
def saved(result: Result, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return result.save(tmp_path_factory.mktemp("saved") / "result.parquet").read_bytes()


def assert_same(left: Result, right: Result) -> None:
    assert left.settings == right.settings
    assert list(left) == list(right)
    for name in left:
        ours, theirs = left[name], right[name]
        assert (ours.id, ours.hyperparameters, ours.seconds) == (theirs.id, theirs.hyperparameters, theirs.seconds)
        for array in ARRAYS:
            mine, yours = getattr(ours, array), getattr(theirs, array)
            assert mine.shape == yours.shape
            assert mine.dtype == yours.dtype
            assert mine.tobytes() == yours.tobytes(), f"{array} of {name} is not the same bit for bit"


def write_with_metadata(path: Path, metadata: dict[str, str] | None, source: bytes | None = None) -> Path:
    """Write a small Parquet file, or one that was read, with other metadata."""
    if source is None:
        table = pyarrow.table({"policy": ["ucb"], "value": [1.0]})
    else:
        path.write_bytes(source)
        table = pyarrow.parquet.read_table(path)
    pyarrow.parquet.write_table(table.replace_schema_metadata(metadata), path)
    return path


# The round trip


def test_parquet_gives_back_every_bit(result, tmp_path):
    path = tmp_path / "result.parquet"
    assert result.save(path) == path
    assert_same(Result.load(path), result)


def test_a_path_may_be_text(result, tmp_path):
    assert_same(Result.load(str(result.save(str(tmp_path / "result.parquet")))), result)


def test_odd_numbers_survive(tmp_path):
    odd = np.array([[-0.0, 5e-324], [math.nextafter(0.1, 1.0), 1.7e308]])
    outcome = PolicyResult(
        id="mine",
        hyperparameters={"label": "naïve", "scale": 0.1 + 0.2, "limit": None, "on": True},
        rounds=np.array([1, 10**12]),
        regret_by_user=odd[:, :, None],
        pareto_regret=odd,
        overall=-odd,
        optimal_share=odd,
        preference_error=np.full((2, 2), np.nan),
        pulls=np.array([[0, 2**62], [1, 2]]),
        seconds=0.1 + 0.7,
    )
    given = Result(settings={"trials": 2, "first_trial": 0, "seed": 2**63 - 1, "é": [1, "ü"]}, policies={"ü": outcome})
    assert_same(Result.load(given.save(tmp_path / "odd.parquet")), given)


@settings(max_examples=20)
@given(trials=st.integers(1, 3), marks=st.integers(1, 4), users=st.integers(1, 3), arms=st.integers(1, 4))
def test_any_shape_survives(tmp_path_factory, trials, marks, users, arms):
    numbers = np.random.default_rng(1)
    outcome = PolicyResult(
        id="mine",
        hyperparameters={},
        rounds=np.arange(1, marks + 1),
        regret_by_user=numbers.normal(size=(trials, marks, users)),
        **{
            name: numbers.normal(size=(trials, marks))
            for name in ("pareto_regret", "overall", "optimal_share", "preference_error")
        },
        pulls=numbers.integers(0, 9, size=(trials, arms)),
        seconds=1.0,
    )
    given = Result(settings={"trials": trials, "first_trial": 0}, policies={"a": outcome, "b": outcome})
    path = tmp_path_factory.mktemp("shape") / "result.parquet"
    assert_same(Result.load(given.save(path)), given)


def test_the_file_says_by_itself_what_it_is(result, tmp_path):
    schema = pyarrow.parquet.read_schema(result.save(tmp_path / "result.parquet"))
    spec = json.loads(schema.metadata[b"pamo"])
    assert spec["format"] == files.FORMAT
    assert spec["settings"] == result.settings
    assert spec["settings"]["seed"] == 7
    assert spec["policies"]["oful:epsilon=0.1"]["hyperparameters"] == {"epsilon": 0.1, "ridge": 1.0}
    rebuilt = environments.from_settings(spec["settings"]["environment"])
    assert rebuilt == environments.Gaussian(users=3, block_size=2, arms=6)


def test_the_table_can_be_read_without_pamo(result, tmp_path):
    table = pyarrow.parquet.read_table(result.save(tmp_path / "result.parquet"))
    assert table.num_rows == 4 * 3 * 4
    assert set(table["trial"].to_pylist()) == {5, 6, 7}
    last = table.filter(pyarrow.compute.equal(table["round"], 40))
    mine = last.filter(pyarrow.compute.equal(last["policy"], "ucb"))
    assert mine["regret"].to_pylist() == result["ucb"].final_regret.tolist()
    assert mine["pulls"].to_pylist() == result["ucb"].pulls.tolist()


def test_format_1_stays_readable():
    result = Result.load(FIXTURES / "result-v1.parquet")
    expected = json.loads((FIXTURES / "result-v1.json").read_text(encoding="utf-8"))
    assert json.loads(json.dumps(result.summary())) == expected
    assert result.settings["version"] == "0.1.0"
    assert result["prucb-hp"].regret_by_user.shape == (2, 3, 2)
    assert result["prucb-hp"].pulls.sum(axis=1).tolist() == [60, 60]
    assert np.isnan(result["ucb"].preference_error).all()


# Exports


def test_csv_has_a_row_for_each_policy_trial_and_round(result, tmp_path):
    with result.save(tmp_path / "result.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 4 * 3 * 4
    first = rows[0]
    assert (first["policy"], first["trial"], first["round"]) == ("prucb-hp", "5", "10")
    for name, outcome in result.items():
        mine = [row for row in rows if row["policy"] == name]
        for column in ("regret", "pareto_regret", "overall", "optimal_share"):
            read = np.array([float(row[column]) for row in mine]).reshape(3, 4)
            assert read.tolist() == getattr(outcome, column).tolist()
    assert {row["preference_error"] for row in rows if row["policy"] == "ucb"} == {""}


def test_json_is_the_summary(result, tmp_path):
    text = result.save(tmp_path / "result.json").read_text(encoding="utf-8")
    assert json.loads(text) == json.loads(json.dumps(result.summary()))
    assert "NaN" not in text


# What cannot be read


def test_cut_short_at_any_length_is_said(saved, tmp_path):
    path = tmp_path / "cut.parquet"
    for length in {0, 1, 3, 4, 5, 11, 12, len(saved) - 1, len(saved) - 4, len(saved) - 8, *range(0, len(saved), 97)}:
        path.write_bytes(saved[:length])
        with pytest.raises(ResultFileError, match=r"cut\.parquet cannot be read as Parquet: it was cut short"):
            Result.load(path)


@settings(max_examples=300)
@given(st.data())
def test_a_changed_byte_is_said_or_changes_nothing(saved, result, tmp_path_factory, data):
    place = data.draw(st.integers(0, len(saved) - 1))
    value = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("changed") / "result.parquet"
    path.write_bytes(saved[:place] + bytes([value]) + saved[place + 1 :])
    try:
        read = Result.load(path)
    except ResultFileError as error:
        assert str(path) in str(error)  # noqa: PT017  # either outcome is right, an unhandled error is not
    else:
        for name in set(read) & set(result):
            assert read[name].regret_by_user.tobytes() == result[name].regret_by_user.tobytes()
            assert read[name].pulls.tobytes() == result[name].pulls.tobytes()


@pytest.mark.parametrize("content", [b"", b"PAR1", b"policy,trial\n", b'{"settings": {}}', bytes(5000)])
def test_not_parquet_is_said(content, tmp_path):
    path = tmp_path / "other.parquet"
    path.write_bytes(content)
    with pytest.raises(ResultFileError, match="cannot be read as Parquet"):
        Result.load(path)


def test_another_tools_parquet_is_said(tmp_path):
    for metadata in (None, {"pandas": "{}"}):
        path = write_with_metadata(tmp_path / "other.parquet", metadata)
        with pytest.raises(ResultFileError, match="is a Parquet file, but not one that pamo wrote"):
            Result.load(path)


def test_a_newer_format_is_said_with_what_to_do(saved, tmp_path):
    spec = {"format": files.FORMAT + 1, "version": "9.8.7", "layout": "unheard of"}
    path = write_with_metadata(tmp_path / "newer.parquet", {"pamo": json.dumps(spec)}, saved)
    with pytest.raises(ResultFileError, match=r"written by pamo 9\.8\.7 in format 2; .* up to 1: upgrade pamo"):
        Result.load(path)


@pytest.mark.parametrize(
    "spec",
    ["", "{", "null", "[]", "{}", '{"format": "one"}', '{"format": 1}', '{"format": 1, "settings": {}, "policies": 3}'],
)
def test_damaged_metadata_is_said(spec, saved, tmp_path):
    path = write_with_metadata(tmp_path / "damaged.parquet", {"pamo": spec}, saved)
    with pytest.raises(ResultFileError, match=r"damaged\.parquet is damaged"):
        Result.load(path)


def test_missing_rows_are_said(saved, tmp_path):
    path = tmp_path / "fewer.parquet"
    path.write_bytes(saved)
    table = pyarrow.parquet.read_table(path)
    pyarrow.parquet.write_table(table.slice(0, table.num_rows - 1), path)
    with pytest.raises(ResultFileError, match="holds 11 rows of ucb; expected 3 trials × 4 checkpoints"):
        Result.load(path)


def test_a_missing_column_is_said(saved, tmp_path):
    path = tmp_path / "narrow.parquet"
    path.write_bytes(saved)
    table = pyarrow.parquet.read_table(path)
    pyarrow.parquet.write_table(table.drop_columns(["pareto_regret"]), path)
    with pytest.raises(ResultFileError, match="pareto_regret"):
        Result.load(path)


def test_no_file_is_said(tmp_path):
    for path in (tmp_path / "none.parquet", tmp_path):
        with pytest.raises(ResultFileError, match="is not a file"):
            Result.load(path)


# What cannot be written


def test_another_ending_is_said(result, tmp_path):
    for name in ("result.txt", "result", "result.parquet.gz"):
        with pytest.raises(InputError, match=r"ends in \.parquet, \.csv, \.json"):
            result.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_said_and_not_made(result, tmp_path):
    with pytest.raises(InputError, match="existing folder"):
        result.save(tmp_path / "no" / "result.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".json"])
def test_a_target_that_cannot_be_replaced_leaves_nothing_behind(result, tmp_path, ending):
    target = tmp_path / f"result{ending}"
    target.mkdir()
    with pytest.raises(ResultFileError, match="could not be written"):
        result.save(target)
    assert list(tmp_path.iterdir()) == [target]
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_an_interrupted_write_keeps_the_old_file(result, tmp_path, monkeypatch, error):
    target = tmp_path / "result.csv"
    target.write_text("old")

    def rows_then_stop(given: Result) -> Iterator[list[object]]:
        yield ["prucb-hp", 0, 1, 0.0, 0.0, 0.0, 0.0, 0.0]
        raise error

    monkeypatch.setattr(files, "_rows", rows_then_stop)
    with pytest.raises((KeyboardInterrupt, PamoError)) as caught:
        result.save(target)
    if isinstance(error, OSError):
        assert str(caught.value) == f"{target} could not be written: No space left on device"
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
