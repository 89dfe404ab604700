"""The notebooks run, cell by cell, as `make docs` runs them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def cells() -> Any:
    """The module that runs them, which is Sphinx's and no package's."""
    spec = importlib.util.spec_from_file_location("code_cells", DOCS / "code_cells.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_policy_in_one_file_is_seen_in_a_chart_and_in_a_frame(cells: Any) -> None:
    _, result, plain, rows = (value for _, value in cells.run_page(DOCS / "notebooks" / "own-policy.md"))
    assert "follow" in cells.shown(result)
    assert cells.shown(result).count("<polyline") == 3
    assert list(plain) == ["Stick", "prucb-hp"]
    assert rows[0]["policy"] == "follow"
    assert set(rows[0]) >= {"trial", "round", "regret"}


def test_the_paper_in_one_notebook(cells: Any) -> None:
    result, difference, figure, _ = run = [value for _, value in cells.run_page(DOCS / "notebooks" / "paper.md")]
    assert len(run) == 4
    assert difference.high < 0  # PRUCB-HP has less regret than who treats all alike
    assert cells.shown(figure).startswith("<img")
    assert "PRUCB-HP" in cells.shown(result)


def test_ones_own_ratings(cells: Any) -> None:
    _, (printed, _), (_, result) = cells.run_page(DOCS / "notebooks" / "own-ratings.md")
    assert "everybody's weights" in printed
    assert len(result) == 3


def test_a_cell_that_fails_fails(cells: Any, tmp_path: Path) -> None:
    page = tmp_path / "broken.md"
    page.write_text("```{code-cell}\n1 / 0\n```\n", encoding="utf-8")
    with pytest.raises(ZeroDivisionError):
        cells.run_page(page)


def test_a_restaurant_recommender_from_zero(cells: Any) -> None:
    *_, (weeks, _), (told, _), (new, _), (_, counts) = cells.run_page(DOCS / "notebooks" / "restaurants.md")
    shares = [float(line.rpartition(":")[2]) for line in weeks.splitlines()[1:]]
    assert shares[-1] > 0.8
    assert shares[-1] > shares[0] + 0.3
    assert "truly cares" in told
    assert len(new.splitlines()) == 2
    assert counts["users"] == 60
