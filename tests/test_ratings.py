"""`pamo ratings`: reading, splitting and judging against plain witnesses, what is fitted, and the command."""

from __future__ import annotations

import itertools
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from campaigns import real_people
from pamo.cli import main
from pamo.errors import InputError, ResultFileError
from pamo.experiments import ratings as study
from pamo.experiments.ratings import (
    ACTING,
    BASELINE,
    EQUAL,
    EVERYBODY,
    OWN,
    POOLED,
    POOLED_BIAS,
    STYLES,
    measure,
    root_difference,
    share_in_order,
    text_of,
    ways,
)
from pamo.experiments.ratings_description import describe, verdict
from pamo.experiments.tables import Table
from pamo.priors import foretelling
from pamo.ratings import Ratings, ratings_of, read_ratings
from pamo.streams import ENVIRONMENT, stream_for

TASTE = np.array([0.6, 0.3, 0.1])
CRITERIA = ["food", "room", "view"]


def people(
    *, users: int = 60, each: int = 30, spread: float = 0.05, bias: float = 0.0, grows: bool = False, seed: int = 1
) -> Ratings:
    """Ratings of made-up users, whose noise is the same everywhere or grows with the reward."""
    draw = np.random.default_rng(seed)
    preference = TASTE + spread * draw.normal(size=(users, 3))
    reward = draw.uniform(0.1, 1.0, (users, each, 1)) * draw.uniform(0.2, 1.0, (users, each, 3))
    length = np.linalg.norm(reward, axis=2)
    noise = 0.15 * draw.normal(size=(users, each)) * (length / length.mean() if grows else 1.0)
    own = bias * draw.normal(size=(users, 1))
    overall = np.einsum("nd,ned->ne", preference, reward) + own + noise
    return ratings_of(np.repeat(np.arange(users), each), reward.reshape(-1, 3), overall.ravel())


def by_way(table: Table, column: str, training: int) -> dict[str, float]:
    return {row["way"]: row[column] for row in table.where(training=training).rows()}


# ---- reading


def write(path: Path, **columns: Any) -> Path:
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def test_scores_are_put_on_zero_to_one_and_sorted_by_user(tmp_path: Path) -> None:
    path = write(
        tmp_path / "few.parquet", user=["bo", "al", "bo"], food=[1, 3, 5], room=[2.0, 4.0, 3.0], overall=[1.0, 2.0, 5.0]
    )
    found = read_ratings(path, ["food", "room"])
    assert found.counts.tolist() == [2, 1]
    assert found.reward.tolist() == [[0.0, 0.0], [1.0, 0.5], [0.5, 1.0]]
    assert found.overall.tolist() == [0.0, 1.0, 0.25]
    assert (found.scale, found.objectives, found.dropped_text) == (4.0, ("food", "room"), "")


def test_a_declared_scale_stands_in_for_the_columns_own(tmp_path: Path) -> None:
    path = write(tmp_path / "few.parquet", who=[1, 1], food=[2.0, 3.0], score=[2.0, 4.0])
    found = read_ratings(path, ["food"], overall="score", user="who", low=0, high=5)
    assert found.reward.ravel() == pytest.approx([0.4, 0.6])
    assert found.overall == pytest.approx([0.4, 0.8])
    assert found.scale == 5.0


def test_incomplete_rows_are_left_out_and_counted_once_each(tmp_path: Path) -> None:
    nan = float("nan")
    path = write(
        tmp_path / "few.parquet",
        user=[1, 1, 2, None, 2, 3],
        food=[1.0, nan, nan, 2.0, 5.0, 4.0],
        overall=[1.0, 2.0, nan, 3.0, 5.0, None],
    )
    found = read_ratings(path, ["food"])
    assert found.dropped == {"overall": 2, "food": 1, "user": 1, "repeated": 0}
    assert found.overall.tolist() == [0.0, 1.0]
    assert found.dropped_text == ("2 rows without 'overall' and 1 row without 'food' and 1 row without 'user' left out")


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"food": [1.0, 2.0]}, {"objectives": ["foot"]}, "unknown column of few.parquet 'foot'; did you mean 'food'"),
        ({"food": [1.0, 2.0]}, {"overall": "score"}, "unknown column of few.parquet 'score'"),
        ({"food": [1.0, 2.0]}, {"user": "who"}, "unknown column of few.parquet 'who'"),
        ({"food": [1.0, 2.0]}, {"objectives": []}, "expected at least one objective"),
        ({"food": [1.0, 2.0]}, {"objectives": ["food", "food"]}, "each column once"),
        ({"food": [1.0, 2.0]}, {"objectives": ["food", "overall"]}, "each column once"),
        ({"food": ["a", "b"]}, {}, "expected a scale with low < high for 'food', got nan"),
        ({"food": [[1.0], [2.0]]}, {}, "expected numbers in the column 'food', got list"),
        ({"food": [1.0, math.inf]}, {"high": 2.0}, "row 2, column 'food': expected a number, got .*inf"),
        ({"food": [2.0, 2.0]}, {}, "expected a scale with low < high for 'food', got 2 … 2"),
        (
            {"food": [1.0, 2.0]},
            {"low": 1.5},
            "1 of 2 rows with wrong cells: row 1, column 'food': expected 1.5 to 2, got 1;",
        ),
        (
            {"food": [1.0, 2.0]},
            {"high": 1.5},
            "row 2, column 'food': expected 1 to 1.5, got 2; row 2, column 'overall'",
        ),
        ({"food": [math.nan, math.nan]}, {"low": 0, "high": 5}, "got none in few.parquet"),
        ({"food": [1.0, 2.0]}, {"scales": {"room": (1, 5)}}, "expected scales of food, overall, got one of room"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_read_is_said(
    columns: dict[str, Any], options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "few.parquet", user=[1, 1], overall=[1.0, 2.0], **columns)
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        read_ratings(path, **({"objectives": ["food"]} | options))


def test_a_file_that_is_no_parquet_is_said(tmp_path: Path) -> None:
    text = tmp_path / "ratings.parquet"
    text.write_text("user,food,overall\n1,2,3\n", encoding="utf-8")
    with pytest.raises(ResultFileError, match="cannot be read as Parquet"):
        read_ratings(text, ["food"])
    with pytest.raises(InputError, match=r"in a file that ends in \.csv or \.parquet, got 'ratings\.txt'"):
        read_ratings(tmp_path / "ratings.txt", ["food"])
    with pytest.raises(ResultFileError, match="is not a file"):
        read_ratings(tmp_path / "none.parquet", ["food"])
    whole = write(tmp_path / "whole.parquet", user=[1], food=[1.0], overall=[1.0]).read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ResultFileError, match="cut short"):
        read_ratings(tmp_path / "cut.parquet", ["food"])


# ---- judging


def test_pairs_in_order_are_what_counting_gives() -> None:
    draw = np.random.default_rng(3)
    starts = [0, 7, 7, 8, 20]
    scores, overall = draw.integers(0, 4, 20) / 4, draw.integers(0, 3, 20) / 2
    found = share_in_order(scores, overall, starts)
    for user, (first, last) in enumerate(itertools.pairwise(starts)):
        points = [
            0.5 if scores[i] == scores[j] else float((scores[i] > scores[j]) == (overall[i] > overall[j]))
            for i in range(first, last)
            for j in range(first, i)
            if overall[i] != overall[j]
        ]
        assert found[user] == pytest.approx(np.mean(points) if points else math.nan, nan_ok=True)
    assert np.isnan(found[1:3]).all()


def test_the_rows_are_what_a_plain_loop_gives() -> None:
    """Errors, pairs and means over users and splits, for the paper's own ridge, by loops over users."""
    ratings = people(users=6, each=12)
    size, scale = 4, ratings.scale
    squares, shares, count = np.zeros(6), np.zeros(6), 0
    order = np.arange(72)
    study._shuffle_within(order, ratings.starts, stream_for(9, 0, ENVIRONMENT))
    for split in range(2):
        for n in range(6):
            rows = order[12 * n : 12 * (n + 1)][:: -1 if split else 1]
            assert sorted(rows) == list(range(12 * n, 12 * (n + 1)))
            reward, overall = ratings.reward[rows], ratings.overall[rows]
            weight = 3.0 / (reward[:size] ** 2).sum(axis=1)
            gram = np.eye(3) + (weight[:, None] * reward[:size]).T @ reward[:size]
            preference = np.linalg.solve(gram, reward[:size].T @ (weight * overall[:size]))
            foretold = reward[size:] @ preference
            squares[n] += np.mean((foretold - overall[size:]) ** 2) / 2
            shares[n] += share_in_order(foretold, overall[size:], [0, 8])[0] / 2
            count += 8
    table = measure(ratings, training=[size], splits=2, seed=9)
    (row,) = table.where(way="own, paper's weights").rows()
    assert row["rmse"] == pytest.approx(scale * math.sqrt(squares.mean()))
    assert row["ordered"] == pytest.approx(shares.mean())
    assert row["ratings"] == count / 2
    (base,) = table.where(way=BASELINE).rows()
    assert row["difference"] == pytest.approx(row["rmse"] - base["rmse"])
    assert row["ordered_difference"] == pytest.approx(row["ordered"] - base["ordered"])
    assert row["difference_low"] < row["difference"] < row["difference_high"]


def test_of_a_pair_of_splits_one_judges_by_what_the_other_learned_from() -> None:
    """A user of ten ratings, five of them learned from: after any pair each was learned from once."""
    ratings = ratings_of(np.repeat([0, 1], [10, 13]), np.ones((23, 1)), np.ones(23))
    orders = [study._order_of(ratings, 3, split) for split in range(4)]
    for one, other in (orders[:2], orders[2:]):
        assert sorted([*one[:5], *other[:5]]) == list(range(10))
        assert one[10:].tolist() == other[10:][::-1].tolist()
    assert orders[0].tolist() != orders[2].tolist()


def test_what_judges_was_not_learned_from() -> None:
    """Every rating has an objective of its own: nothing can be known of those held out."""
    ratings = ratings_of(np.repeat([0, 1], 6), np.tile(np.eye(6), (2, 1)), np.ones(12), scale=4.0)
    table = measure(ratings, training=[2], held_out=4, splits=3)
    assert by_way(table, "rmse", 2)["own, plain weights"] == 4.0
    assert by_way(table, "ratings", 2)[BASELINE] == 8
    assert np.isnan(table["ordered"]).all()  # all overall scores are the same
    assert text_of(table).count("–") > 11


def test_every_user_counts_alike_and_pooled_every_rating() -> None:
    """Equal weights err by ½ for the user with many ratings, and not at all for the other."""
    reward = np.full((30, 1), 0.5)
    ratings = ratings_of([0] * 20 + [1] * 10, reward, [1.0] * 20 + [0.5] * 10)
    table = measure(ratings, training=[5])
    assert by_way(table, "rmse", 5)[EQUAL] == pytest.approx(0.5 * math.sqrt(1 / 2))
    assert by_way(table, "pooled", 5)[EQUAL] == pytest.approx(0.5 * math.sqrt(15 / 20))


def test_the_interval_is_that_of_a_bootstrap_over_users() -> None:
    draw = np.random.default_rng(5)
    common = draw.gamma(2.0, 1.0, 500)
    ours, theirs = common * draw.uniform(0.9, 1.3, 500), common * draw.uniform(0.8, 1.2, 500)
    low, difference, high = root_difference(ours, theirs)
    assert difference == pytest.approx(math.sqrt(ours.mean()) - math.sqrt(theirs.mean()))
    picks = draw.integers(0, 500, (4000, 500))
    again = np.sqrt(ours[picks].mean(axis=1)) - np.sqrt(theirs[picks].mean(axis=1))
    assert [low, high] == pytest.approx(np.quantile(again, [0.025, 0.975]), abs=0.1 * (high - low))
    apart = np.sqrt(ours[picks].mean(axis=1)).std() * 4
    assert high - low < apart / 2  # paired: what users have in common drops out


# ---- what the ways are good for


def test_the_ways_are_those_that_the_figure_draws() -> None:
    assert set(ways(3)) | {POOLED, POOLED_BIAS, OWN, BASELINE} == set(STYLES)
    assert len(set(STYLES.values())) == len(STYLES)
    assert ways(3)[ACTING].elasticity is None


def test_sharing_helps_where_users_are_alike_and_have_said_little() -> None:
    found = by_way(measure(people(spread=0.02), training=[4]), "rmse", 4)
    assert found[ACTING] < found["own, plain weights"]
    assert found[EVERYBODY] < found[EQUAL]


@pytest.mark.parametrize("grows", [False, True])
def test_fitted_weights_find_how_the_noise_goes(grows: bool) -> None:
    table = measure(people(users=150, spread=0.2, grows=grows), training=[20])
    right, wrong = ("paper's", "plain") if grows else ("plain", "paper's")
    found, phi = by_way(table, "rmse", 20), by_way(table, "elasticity", 20)
    assert found[f"shared, {right} weights"] < found[f"shared, {wrong} weights"]
    assert abs(found[ACTING] - found[f"shared, {right} weights"]) < abs(
        found[ACTING] - found[f"shared, {wrong} weights"]
    )
    assert (phi[ACTING] > 0.5) == grows
    assert (phi["shared, paper's weights"], phi["shared, plain weights"]) == pytest.approx((1.0, 0.0))
    assert math.isnan(phi["own, plain weights"])


def test_a_bias_helps_those_who_have_one_and_its_variance_is_found() -> None:
    table = measure(people(users=150, bias=0.3), training=[20])
    found, variance = by_way(table, "rmse", 20), by_way(table, "bias_variance", 20)
    assert found[f"{ACTING}, bias"] < 0.9 * found[ACTING]
    assert variance[f"{ACTING}, bias"] == pytest.approx(0.09, rel=0.3)
    assert by_way(table, "noise", 20)["shared, plain weights, bias"] == pytest.approx(0.0225, rel=0.15)
    assert math.isnan(variance[ACTING])
    (row,) = table.where(way=ACTING).rows()
    assert row["difference_low"] > 0.0


def test_the_error_is_on_the_overall_scores_own_scale() -> None:
    ratings = people(users=10)
    larger = ratings_of(np.repeat(np.arange(10), 30), ratings.reward, ratings.overall, scale=4.0)
    one, four = (measure(each, training=[5], splits=1) for each in (ratings, larger))
    for column in ("rmse", "pooled", "difference", "difference_low", "difference_high"):
        assert four[column] == pytest.approx(4.0 * one[column])
    assert four["ordered"].tolist() == one["ordered"].tolist()


# ---- who is measured


def uneven() -> Ratings:
    ratings = people(users=6, each=30)
    keep = np.concatenate([np.arange(30 * n, 30 * n + most) for n, most in enumerate((9, 10, 15, 20, 25, 30))])
    user = np.repeat(np.arange(6), 30)[keep]
    return ratings_of(user, ratings.reward[keep], ratings.overall[keep])


def test_users_with_enough_ratings_are_measured() -> None:
    table = measure(uneven(), training=[15, 5], splits=1)
    assert table.distinct("training") == [5, 15]
    assert (by_way(table, "users", 5)[BASELINE], by_way(table, "users", 15)[BASELINE]) == (5, 3)
    assert by_way(table, "ratings", 5)[BASELINE] == 5 + 10 + 15 + 20 + 25
    same = measure(uneven(), training=[15, 5], splits=1, same_users=True)
    assert (by_way(same, "users", 5)[BASELINE], by_way(same, "users", 15)[BASELINE]) == (3, 3)


def test_the_same_seed_gives_the_same_result_and_progress_comes_to_one() -> None:
    done: list[float] = []
    one = measure(uneven(), training=[5, 10], splits=2, seed=4, progress=done.append)
    again = measure(uneven(), training=[5, 10], splits=2, seed=4)
    other = measure(uneven(), training=[5, 10], splits=2, seed=5)
    assert one["rmse"].tolist() == again["rmse"].tolist()
    assert one.where(way=EVERYBODY)["rmse"].tolist() != other.where(way=EVERYBODY)["rmse"].tolist()
    assert sum(done) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"training": [26]}, "no user has enough ratings to learn from 26 and be judged by 5: the most .* is 30"),
        ({"training": [25]}, "only one user has the 30 ratings"),
        ({"training": []}, "training ≥ 1"),
        ({"training": [0]}, "training ≥ 1"),
        ({"held_out": 0}, "held_out ≥ 1"),
        ({"splits": 0}, "splits ≥ 1"),
        ({"seed": -1}, "seed ≥ 0"),
    ],
    ids=repr,
)
def test_what_cannot_be_measured_is_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        measure(uneven(), **({"training": [5]} | options))


# ---- the command


@pytest.fixture
def file(tmp_path: Path) -> Path:
    ratings = people(users=12, each=16)
    columns = {name: 1.0 + 4.0 * ratings.reward[:, d] for d, name in enumerate(CRITERIA)}
    overall = 1.0 + 4.0 * np.clip(ratings.overall, 0.0, 1.0)
    overall[3] = np.nan
    return write(tmp_path / "made.parquet", user=np.repeat(np.arange(12), 16), overall=overall, **columns)


def command(file: Path, *more: str) -> list[str]:
    return ["ratings", "learn", str(file), "--objectives", ",".join(CRITERIA), "--low", "1", "--high", "5", *more]


def test_the_command_prints_a_table_and_says_what_was_left_out(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(file, "--training", "4,8", "--splits", "2")) == 0
    printed = capsys.readouterr()
    assert "pamo: 1 row without 'overall' left out" in printed.err
    assert "191 ratings by 12 users, 3 objectives; 2 splits, seed 1" in printed.out
    assert "4 ratings to learn from: 12 users, judged by 143 other ratings" in printed.out
    for name in STYLES:
        assert printed.out.count(f"\n  {name} ") == 2


def test_the_command_prints_json_of_what_was_measured(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(file, "--training", "4", "--splits", "1", "--seed", "3", "--format", "json")) == 0

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    document = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert document["settings"]["left_out"]["overall"] == 1
    assert document["settings"]["file"] == "made.parquet"
    table = measure(read_ratings(file, CRITERIA, low=1, high=5), training=[4], splits=1, seed=3)
    assert document["default"] == BASELINE
    assert list(document["sizes"]) == ["4"]
    assert {name: row["rmse"] for name, row in document["sizes"]["4"].items()} == by_way(table, "rmse", 4)
    assert document["sizes"]["4"][BASELINE]["users"] == 12
    assert document["sizes"]["4"][EQUAL]["elasticity"] is None


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_command_draws_a_figure(file: Path, ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    target = file.parent / f"figure.{ending}"
    assert main(command(file, "--training", "4,8", "--splits", "1", "--plot", str(target))) == 0
    assert target.stat().st_size > 5000
    assert f"figure: {target}" in capsys.readouterr().err


def test_the_figure_draws_each_ways_errors_and_pairs() -> None:
    table = measure(uneven(), training=[5, 10], splits=1)
    figure = study.draw_ratings(table)
    for axes, column, factor in zip(figure.axes, ("rmse", "ordered"), (1.0, 100.0), strict=True):
        drawn = [line.get_ydata().tolist() for line in axes.lines]
        assert drawn == [(factor * table.where(way=name)[column]).tolist() for name in STYLES]
        assert [label.get_text() for label in axes.get_xticklabels()] == ["5\n5 users", "10\n4 users"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(STYLES)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--training", "a"], "expected --training as whole numbers"),
        (["--training", "12"], "no user has enough ratings"),
        (["--overall", "score"], "unknown column"),
        (["--high", "3"], "expected ratings in made.parquet, got"),
        (["--scale", "food"], "expected --scale such as taste=1..5"),
        (["--objectives", "food,food"], "expected each of --objectives once"),
        (["--plot", "figure.txt"], "expected --plot to end in"),
    ],
    ids=repr,
)
def test_bad_input_is_one_sentence(
    wrong: list[str], message: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(file, "--training", "4", *wrong)) == 2
    assert f"pamo: {message}" in capsys.readouterr().err.strip().splitlines()[-1]


def test_a_missing_extra_is_said(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(command(file)) == 2
    expected = "reading ratings needs pyarrow, which is not installed: pip install 'pamo[results]'"
    assert expected in capsys.readouterr().err


# ---- reading what others wrote


def test_csv_is_read_like_parquet_with_names_and_scales_of_ones_own(tmp_path: Path) -> None:
    text = tmp_path / "few.csv"
    text.write_text("who,f1,room,stars\nbo,1,2.0,1\nal, 3,4.0,2\nbo,5,3.0,5\n", encoding="utf-8")
    found = read_ratings(
        text, {"food": "f1", "room": "room"}, overall="stars", user="who", scales={"room": (0, 4), "stars": (0, 5)}
    )
    assert found.objectives == ("food", "room")
    assert found.reward.tolist() == [[0.0, 0.5], [1.0, 0.75], [0.5, 1.0]]
    assert found.overall.tolist() == pytest.approx([0.2, 1.0, 0.4])
    assert found.counts.tolist() == [2, 1]


def test_wrong_cells_are_said_by_row_and_column_and_their_rows_left_out(tmp_path: Path) -> None:
    lines = ["user,food,overall", *(f"{n % 5},{1 + n % 5},3" for n in range(50)), "1,good,3", "2,,4", "3,9,4"]
    text = tmp_path / "few.csv"
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = read_ratings(text, ["food"], low=1, high=5)
    assert len(found.overall) == 50
    assert [tuple(one) for one in found.problems] == [
        (51, "food", "expected a number, got 'good'"),
        (53, "food", "expected 1 to 5, got 9"),
    ]
    assert found.dropped["food"] == 1  # missing, which is not wrong
    assert "2 rows with wrong cells (row 51, column 'food': expected a number, got 'good'; row 53" in found.dropped_text


@pytest.mark.parametrize("time", [None, "when"])
def test_of_a_users_ratings_of_an_item_the_last_counts(time: str | None, tmp_path: Path) -> None:
    path = write(
        tmp_path / "few.parquet",
        user=["al", "al", "bo", "al", "al", "al"],
        item=["x", "y", "x", "x", None, None],
        food=[1.0, 2.0, 3.0, 4.0, 5.0, 5.0],
        overall=[1.0, 2.0, 3.0, 4.0, 5.0, 5.0],
        when=["2021", "2020", "2020", "2020", "2019", "2019"],
    )
    found = read_ratings(path, ["food"], time=time)
    assert found.dropped["repeated"] == 1  # what has no name may be anything
    assert "1 row of an item that the same user rated again left out" in found.dropped_text
    kept = sorted((found.overall * 4 + 1).tolist())
    assert kept == ([1, 2, 3, 5, 5] if time else [2, 3, 4, 5, 5])


# ---- the prior that is chosen by what foretells


def rounds_of(ratings: Ratings) -> foretelling.Rounds:
    return foretelling.Rounds(ratings.reward, ratings.overall, ratings.starts)


def test_what_is_left_out_is_foretold_as_if_it_had_never_been_seen() -> None:
    rounds, ridge = rounds_of(uneven()), np.array([2.0, 0.5, 0.5, 0.5])
    x = np.column_stack([np.ones(len(rounds.overall)), rounds.reward])
    factors = np.linspace(0.5, 2.0, len(x))
    found = np.empty(len(x))
    foretelling.left_out(found, x, rounds.overall, factors, rounds.starts, ridge)
    for first, last in itertools.pairwise(rounds.starts.tolist()):
        for i in range(first, last):
            others = [k for k in range(first, last) if k != i]
            gram = (x[others] * factors[others, None]).T @ x[others] + np.diag(ridge)
            beta = np.linalg.solve(gram, (x[others] * factors[others, None]).T @ rounds.overall[others])
            assert found[i] == pytest.approx(rounds.overall[i] - x[i] @ beta)


def test_users_who_do_not_differ_get_everybodys_weights_and_those_who_do_their_own() -> None:
    size, ratios = 8, {}
    for spread in (0.0, 0.3):
        table = measure(people(users=300, each=20, spread=spread, bias=spread), training=[size], splits=2)
        found = by_way(table, "rmse", size)
        ratios[spread] = found[BASELINE] / found[POOLED]
        assert found[BASELINE] < found[OWN]
    assert ratios[0.0] == pytest.approx(1.0, abs=0.001)
    assert ratios[0.3] < 0.8


@pytest.mark.parametrize("seed", range(5))
def test_noise_that_varies_with_the_reward_passes_for_no_difference_between_users(seed: int) -> None:
    draw = np.random.default_rng(seed)
    reward = draw.uniform(size=(1500, 3))
    noise = 0.3 * (1.0 - reward.mean(axis=1)) * draw.standard_t(4, size=1500)
    rounds = foretelling.Rounds(reward, reward @ TASTE + noise, np.arange(0, 1501, 5))
    beta = foretelling.regressions(foretelling.summed(rounds), foretelling.fit(rounds))
    assert beta[:, 1:].std(axis=0).max() < 0.01


@pytest.mark.parametrize(("spread", "mean", "most"), [(0.0, 0.0001, 0.0005), (0.06, -0.002, 0.0)])
def test_chance_costs_next_to_nothing_and_small_differences_are_found(spread: float, mean: float, most: float) -> None:
    users, each, above = 500, 5, []
    for seed in range(15, 27):
        draw = np.random.default_rng(seed)
        reward, own = draw.uniform(size=(users * each, 3)), TASTE + spread * draw.normal(size=(users, 3))
        noise = 0.4 * (1.0 - reward.mean(axis=1)) * draw.standard_t(5, size=users * each)
        overall = (reward * np.repeat(own, each, axis=0)).sum(axis=1) + noise
        rounds = foretelling.Rounds(reward, overall, np.arange(0, users * each + 1, each))
        errors = []
        for common in (foretelling.fit(rounds), foretelling.alike(rounds)):
            beta = foretelling.regressions(foretelling.summed(rounds), common)
            off = beta[:, 1:] - own
            level = beta[:, 0] - beta[:, 1:] @ common.center + off.sum(axis=1) / 2  # at the middle of all rewards
            # The mean over all rewards that there may be, and the noise, 0.4²·E[(1 − r̄)²]·5/3.
            errors.append((level**2 + (off**2).sum(axis=1) / 12).mean() + 0.16 * (1 / 4 + 1 / 36) * 5 / 3)
        above.append(math.sqrt(errors[0] / errors[1]) - 1.0)
    assert np.mean(above) < mean, above
    assert max(above) <= most, above


def usual_people(seed: int, differ: bool, stretch: float = 1.0) -> foretelling.Rounds:
    """Five rounds of 80 people, who are drawn to everybody's as strongly as people usually are, or do not differ."""
    draw, noise, apart = np.random.default_rng(seed), 0.15, float(differ)
    level, weight = (apart * noise / math.sqrt(rounds) for rounds in foretelling.USUAL)
    reward = draw.uniform(size=(400, 3))
    own = TASTE + weight * math.sqrt(12.0) * draw.normal(size=(80, 3))  # of a uniform reward the variance is 1/12
    overall = (reward * np.repeat(own, 5, axis=0)).sum(axis=1) + np.repeat(level * draw.normal(size=80), 5)
    overall += noise * draw.normal(size=400)
    return foretelling.Rounds(stretch * reward, overall, np.arange(0, 401, 5))


def test_of_few_rounds_differences_are_found_that_are_as_people_usually_have_them() -> None:
    found = {
        differ: sum(foretelling.fit(usual_people(seed, differ)).ridge[1] < 1e6 for seed in range(40))
        for differ in (False, True)
    }
    assert found[True] >= 28, found  # 23 without one strength that is named beforehand
    assert found[False] <= 6, found


def test_what_is_usual_is_on_no_scale() -> None:
    for stretch in (0.1, 10.0):
        common, moved = (foretelling.fit(usual_people(1, True, each)) for each in (1.0, stretch))
        assert moved.ridge[0] == pytest.approx(common.ridge[0], rel=1e-9)
        assert moved.ridge[1:] == pytest.approx(stretch**2 * common.ridge[1:], rel=0.5)


def test_one_round_of_each_of_many_tells_of_all_and_one_of_a_few_of_each() -> None:
    rounds = rounds_of(people(users=40, each=1, spread=0.3, bias=0.3))
    users, common = foretelling.summed(rounds), foretelling.fit(rounds)
    assert foretelling.regressions(users, common) == pytest.approx(np.tile(foretelling.alike(rounds).mean, (40, 1)))
    few = foretelling.Rounds(rounds.reward[:3], rounds.overall[:3], rounds.starts[:4])
    assert np.ptp(foretelling.regressions(foretelling.summed(few), foretelling.fit(few)), axis=0).min() > 0.01


def test_the_variances_that_made_the_users_are_found() -> None:
    ratings = people(users=600, each=20, spread=0.2, bias=0.1)
    common = foretelling.fit(rounds_of(ratings))
    level = math.sqrt(0.01 + 0.04 * (common.center**2).sum())  # where rewards are at their mean
    assert np.sqrt(common.spread) == pytest.approx([level, 0.2, 0.2, 0.2], rel=0.15)
    assert common.noise == pytest.approx(0.0225, rel=0.1)
    assert common.noise / common.ridge == pytest.approx(common.spread, rel=0.5)  # what foretells best is what is true
    assert common.mean[1:] == pytest.approx(TASTE, abs=0.05)
    assert common.errors[0] > common.errors[1] > common.errors[2]
    assert common.weights == (1.0, 0.0)


def test_the_papers_weights_are_taken_where_its_premise_holds() -> None:
    for grows in (False, True):
        fitted = foretelling.fit(rounds_of(people(users=200, each=20, spread=0.3, grows=grows)))
        assert (fitted.weights[0] < 1.0) == grows


def test_moving_the_zero_of_a_scale_changes_next_to_nothing() -> None:
    ratings = people(users=100, each=12, spread=0.1)
    moved = ratings_of(np.repeat(np.arange(100), 12), ratings.reward + 3.0, ratings.overall - 1.0)
    one, other = (by_way(measure(each, training=[6], splits=2), "rmse", 6) for each in (ratings, moved))
    for way in (POOLED, POOLED_BIAS, BASELINE):
        assert other[way] == pytest.approx(one[way], rel=0.005)


def test_everybodys_weights_are_found_wherever_the_zeros_of_the_scales_are() -> None:
    # On long scales what people give varies little, and what is guessed beforehand must count for no more than a user.
    draw = np.random.default_rng(4)
    weights = draw.uniform(0.0, 5.0, (10, 1, 3))
    reward = 0.01 * draw.uniform(size=(10, 40, 3))
    overall = (weights * reward).sum(axis=2) + 0.003 * draw.normal(size=(10, 40))
    for low in (0.0, 0.5, 3.0):
        rounds = foretelling.Rounds(reward.reshape(-1, 3) + low, overall.ravel() + low, np.arange(0, 401, 40))
        assert foretelling.fit(rounds).mean[1:] == pytest.approx(weights.mean(axis=(0, 1)), abs=0.25)


# ---- which numbers can be measured


def test_numbers_that_no_user_has_are_skipped_and_said() -> None:
    table = measure(uneven(), training=[5, 25, 40], splits=1)
    assert table.distinct("training") == [5]
    said = study.unmeasurable(uneven(), training=[5, 25, 40])
    assert list(said) == [25, 40]
    assert said[25].startswith("only one user has the 30 ratings")
    assert said[40].startswith("no user has enough ratings to learn from 40")


def test_the_command_skips_them_too(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(file, "--training", "4,50", "--splits", "1", "--format", "json")) == 0
    printed = capsys.readouterr()
    assert "pamo: 50 skipped: no user has enough ratings" in printed.err
    document = json.loads(printed.out)
    assert (list(document["sizes"]), list(document["skipped"])) == (["4"], ["50"])


# ---- describing


def with_items(ratings: Ratings, items: int) -> Ratings:
    item = np.arange(len(ratings.overall)) % items
    users = np.repeat(np.arange(len(ratings.counts)), ratings.counts)
    return ratings_of(users, ratings.reward, ratings.overall, item=item, scale=4.0)


def test_a_description_tells_people_who_differ_from_people_who_do_not() -> None:
    alike, apart = (
        describe(with_items(people(users=200, each=20, spread=spread, bias=spread), 60)) for spread in (0.0, 0.3)
    )
    assert alike["people"]["weights"] == pytest.approx(alike["people"]["alike"], rel=0.005)
    assert apart["people"]["weights"] < apart["people"]["bias"] < apart["people"]["alike"]
    assert apart["people"]["weights_spread"] == pytest.approx([0.3] * 3, rel=0.2)
    assert apart["people"]["bias_spread"] > 4 * 0.3
    assert apart["choices"]["near_equal"]["differ"] > 0.4 > alike["choices"]["near_equal"]["differ"]
    assert apart["choices"]["near_equal"]["worth"] > 0.0
    assert "enough" in verdict(alike)
    assert verdict(apart).startswith("People differ in their weights")


def test_a_description_counts_and_says_how_linear_it_is() -> None:
    draw = np.random.default_rng(2)
    reward = draw.uniform(0, 1, (600, 2))
    straight, curved = (
        describe(ratings_of(np.repeat(np.arange(30), 20), reward, overall))
        for overall in (0.2 + reward @ [0.5, 0.3], reward[:, 0] * reward[:, 1])
    )
    assert straight["linear"]["with_intercept"] == pytest.approx(1.0)
    assert straight["linear"]["without"] < 0.99
    assert curved["linear"]["curved"] - curved["linear"]["with_intercept"] > 0.05
    assert straight["sizes"]["items"] is None
    assert straight["sizes"]["users_with"] == {"2": 30, "5": 30, "10": 30, "20": 30, "50": 0, "100": 0}
    assert straight["sizes"]["history"]["median"] == 20


@pytest.mark.parametrize("form", ["table", "json"])
def test_the_command_describes(form: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--objectives", ",".join(CRITERIA), "--low", "1", "--high", "5", "--format", form]
    assert main(["ratings", "describe", str(file), *arguments]) == 0
    out = capsys.readouterr().out
    if form == "json":
        assert json.loads(out)["sizes"]["ratings"] == 191
    else:
        assert out.startswith("191 ratings by 12 users; items not known")
        assert "how linear" in out


# ---- the campaign


def test_the_campaign_finds_a_way_that_sees_differences_where_there_are_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = np.random.default_rng(5)
    criteria = real_people.SETS["hotels"].criteria
    scores = {name: draw.integers(1, 6, 4500).astype(float) for name in criteria}
    overall = np.clip(np.mean(list(scores.values()), axis=0) + draw.normal(0.0, 0.5, 4500), 1.0, 5.0)
    write(tmp_path / "tripadvisor.parquet", user=np.repeat(np.arange(300), 15), **scores, overall=overall)
    asked = [str(tmp_path), "--set", "hotels", "--part", "placebo", "--part", "zero", "--seeds", "1"]
    assert real_people.main(asked) == 0
    assert "As it should be: all 4 figures." in capsys.readouterr().out
    assert real_people.main([*asked, "--way", "own"]) == 1
    assert "4 of 4 figures above their limits" in capsys.readouterr().out
