"""A store that begins with ratings from before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pamo import Engine
from pamo.cli import main
from pamo.contract.events import HISTORY, DecisionMade
from pamo.store import open_store

HEAD = "guest,hotel,price,taste,stars\n"
SCALES = ["--objective", "price: 0..500, lower is better", "--objective", "taste: 1..5"]
COLUMNS = ["--overall", "stars: 1..5", "--user", "guest", "--item", "hotel"]


def written(path: Path, rows: list[str]) -> str:
    path.write_text(HEAD + "".join(f"{row}\n" for row in rows))
    return str(path)


def rated(draw: np.random.Generator, count: int = 300) -> list[str]:
    """Guests for whom taste is all; the hotel T has it, and P is cheap."""
    rows = []
    for n in range(count):
        hotel = "TPQ"[int(draw.integers(3))]
        taste = {"T": 4.5, "P": 1.5, "Q": 3.0}[hotel] + draw.uniform(-0.5, 0.5)
        price = {"T": 400.0, "P": 50.0, "Q": 200.0}[hotel] + draw.uniform(-40.0, 40.0)
        rows.append(f"g{n % 10},{hotel},{price:.0f},{taste:.2f},{min(max(taste + draw.normal() / 8, 1), 5):.2f}")
    return rows


def test_ratings_from_before_are_known_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [*rated(np.random.default_rng(1)), "g1,T,,4,", ",T,100,4,5", "g2,,100,4,5", "g3,Q,,,"]
    store = str(tmp_path / "pamo.db")
    assert main(["store", "import", "--ratings", written(tmp_path / "stays.csv", rows), store, *SCALES, *COLUMNS]) == 0
    said = capsys.readouterr().out
    assert "begun with 301 ratings of 3 items; 3 rows without a user, an item or a score left out" in said
    assert main(["store", "verify", store]) == 0
    with Engine(store=store) as engine:
        weights = engine.preference("g4").objectives
        assert weights["taste"].low > 0.3
        assert weights["taste"].weight > weights["price"].weight + 0.5
        assert [engine.decide(f"g{n}").arm for n in range(10)].count("T") >= 9
    with open_store(store) as opened:
        made = [event for _, event in opened.events() if isinstance(event, DecisionMade)]
    assert sum(one.policy == HISTORY for one in made) == 301
    assert len(made) == 311
    capsys.readouterr()
    assert main(["evaluate", store, "--random"]) == 2  # nobody has decided anything that had feedback
    assert "expected rounds with feedback" in capsys.readouterr().err


def test_ratings_that_are_wrong_begin_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = "ann,T,100,4,5"
    for rows, options, said in (
        ([good, "ann,T,cheap,4,5"], SCALES, "row 2, column 'price': expected a number, got 'cheap'"),
        ([good, "ann,T,100,7,5"], SCALES, "row 2, column 'taste': expected 1 to 5, got 7"),
        ([good], [], "expected --objective"),
        ([good], ["--objective", "smell: 1..5"], "smell"),
        ([good], ["--objective", "guest: 1..5"], "each column once"),
        (["ann,,,,"], SCALES, "expected rows with a user, an item and a score"),
        ([f"{'x' * 300},T,100,4,5"], SCALES, "256 characters"),
    ):
        store = tmp_path / "pamo.db"
        file = written(tmp_path / "stays.csv", rows)
        assert main(["store", "import", "--ratings", file, str(store), *options, *COLUMNS]) == 2
        assert said in capsys.readouterr().err
        assert not store.exists()
