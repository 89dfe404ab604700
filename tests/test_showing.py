"""Results at a prompt, in a notebook and in frames."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pamo import InputError, Result, environments, simulate
from pamo.errors import ResultFileError
from pamo.simulation.showing import SCALARS, columns_of


@pytest.fixture(scope="module")
def result() -> Result:
    run: dict[str, Any] = {"rounds": 40, "trials": 3, "first_trial": 5, "seed": 2, "checkpoints": [20]}
    return simulate(["prucb-hp", "ucb"], environments.Gaussian(users=2), **run)


def test_a_result_is_one_line(result: Result) -> None:
    assert repr(result) == "Result(prucb-hp, ucb; gaussian: 2 users, 10 arms, D=3; 40 rounds, 3 trials, seed 2)"
    assert re.fullmatch(
        r"PolicyResult\(prucb-hp: regret [\d.,]+ \[[\d.,]+, [\d.,]+\] after 40 rounds, 3 trials, ‖ĉ − c̄‖ [\d.]+\)",
        repr(result["prucb-hp"]),
    )
    assert "‖" not in repr(result["ucb"])


def test_a_notebook_shows_a_table_and_a_chart(result: Result) -> None:
    shown = result._repr_html_()
    assert shown.count("<polyline") == shown.count('<tr style="background:#fff"><td') == 2
    assert shown.startswith('<div style="background:#fff;color:#222')  # readable in a dark notebook, too
    best = min(result, key=lambda name: float(result[name].final_regret.mean()))
    assert shown.index(best.upper()) < shown.index(next(name for name in result if name != best).upper())
    assert result.plot()._repr_png_().startswith(b"\x89PNG")


def test_the_long_form_has_a_row_for_each_policy_trial_and_round(result: Result) -> None:
    columns = columns_of(result)
    assert list(columns) == ["policy", "trial", "round", *SCALARS]
    row = int(np.flatnonzero((columns["policy"] == "ucb") & (columns["trial"] == 6) & (columns["round"] == 40))[0])
    assert columns["regret"][row] == result["ucb"].final_regret[1]
    by_user = columns_of(result, users=True)
    mask = (by_user["policy"] == "ucb") & (by_user["trial"] == 7) & (by_user["round"] == 20)
    np.testing.assert_array_equal(by_user["regret"][mask], result["ucb"].regret_by_user[2, 0])
    np.testing.assert_array_equal(by_user["user"][mask], [0, 1])


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_frames(result: Result, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = getattr(result, f"to_{package}")
    frame = ask()
    assert frame.shape == (2 * 3 * 2, 3 + len(SCALARS))
    assert next(iter(frame["policy"])) == "prucb-hp"
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=f"pip install {package}"):
        ask()


def test_a_flat_file_has_no_lists_and_says_that_it_cannot_be_loaded(result: Result, tmp_path: Path) -> None:
    from pyarrow import parquet

    path = result.save(tmp_path / "flat.parquet", flat=True)
    table = parquet.read_table(path)
    assert not any("list" in str(field.type) for field in table.schema)
    assert table.num_rows == 2 * 3 * 2
    with pytest.raises(ResultFileError, match="is flat, for other tools"):
        Result.load(path)
    with pytest.raises(InputError, match=r"expected a flat file to end in \.parquet"):
        result.save(tmp_path / "flat.csv", flat=True)
