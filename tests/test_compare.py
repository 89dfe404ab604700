"""`pamo compare`: the table says what the simulator says, paired trial by trial."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pamo import environments, simulate
from pamo.cli import main
from pamo.experiments.compare import compare, linear_trials, parse_setting, text_of
from pamo.experiments.instances import mean_lower_bound
from pamo.experiments.suites import RANDOM, SUITES, asked, rounds_of, run_suite, text_of_asked
from pamo.experiments.tables import Table

SMALL = {"two users": environments.Gaussian(users=2), "bounded": environments.Bounded(users=2, reward="bernoulli")}


@pytest.fixture(scope="module")
def table() -> Table:
    return compare(["prucb-hp", "prucb-kp", "greedy"], SMALL, rounds=200, trials=12, seed=5)


def test_the_rows_are_what_simulate_gives(table: Table) -> None:
    for setting, environment in SMALL.items():
        result = simulate(["prucb-hp", "prucb-kp", "greedy"], environment, rounds=200, trials=12, seed=5)
        base = result["prucb-hp"].final_regret
        for policy, outcome in result.items():
            (row,) = table.where(setting=setting, policy=policy).rows()
            final = outcome.final_regret
            assert row["mean"] == pytest.approx(final.mean())
            assert row["median"] == pytest.approx(np.median(final))
            assert row["p99"] == pytest.approx(np.quantile(final, 0.99))
            assert row["share"] == pytest.approx(final.mean() / base.mean())
            assert row["difference"] == pytest.approx((final - base).mean())
            assert row["difference_low"] <= row["difference"] <= row["difference_high"]


def test_the_interval_is_that_of_the_paired_difference(table: Table) -> None:
    (row,) = table.where(setting="two users", policy="prucb-kp").rows()
    apart = (row["high"] - row["low"]) + np.ptp([table["low"][0], table["high"][0]])
    assert row["difference_high"] - row["difference_low"] < apart


def test_over_bound_is_the_mean_over_the_trials_bound_and_nan_without_one(table: Table) -> None:
    bound = mean_lower_bound(SMALL["two users"], rounds=200, trials=12, seed=5)
    for row in table.where(setting="two users").rows():
        assert row["over_bound"] == pytest.approx(row["mean"] / bound)
    assert np.isnan(table.where(setting="bounded")["over_bound"]).all()
    text = text_of(table, "prucb-hp")
    assert text.splitlines()[-1].startswith("over bound: ")
    assert "under it here" not in text
    assert sum(line.split()[6:7] == ["–"] for line in text.splitlines()) == 3  # a dash for each policy of the second
    assert "over bound:" not in text_of(table.where(setting="bounded"), "prucb-hp")


def test_who_is_under_the_bound_is_named(table: Table) -> None:
    rows = [row | {"over_bound": 0.5} if row["policy"] == "greedy" else row for row in table.rows()]
    last = text_of(Table.from_rows(rows), "prucb-hp").splitlines()[-1]
    assert last.endswith("; under it here: greedy (two users), greedy (bounded)")


def test_nothing_to_lose_is_nan_and_not_a_division_by_nothing() -> None:
    alone = compare(["greedy"], {"one arm": environments.Gaussian(users=1, block_size=1)}, rounds=20, trials=2)
    assert np.isnan(alone["over_bound"]).all()


def test_json_has_null_where_nothing_is_defined(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--policy", "greedy", "--setting", "environment=bounded", "--rounds", "20", "--trials", "2"]
    assert main(["compare", *arguments, "--format", "json"]) == 0
    out = capsys.readouterr().out
    assert "NaN" not in out
    assert json.loads(out)["rows"][0]["over_bound"] is None


def test_the_baseline_can_be_chosen() -> None:
    table = compare(["prucb-hp", "greedy"], {"one": SMALL["two users"]}, baseline="greedy", rounds=50, trials=3)
    assert table.where(policy="greedy")["share"].tolist() == [1.0]


def test_the_text_names_every_setting_and_policy_lowest_first(table: Table) -> None:
    text = text_of(table, "prucb-hp")
    assert all(setting in text for setting in SMALL)
    first = [line.split()[0] for line in text.splitlines() if line.startswith("  ")][1:4]
    means = [float(table.where(setting="two users", policy=policy)["mean"][0]) for policy in first]
    assert means == sorted(means)


def test_the_suite_holds_the_settings_that_it_is_for() -> None:
    sizes = {(e.users, e.block_size, e.objectives) for e in SUITES["regret"][0].settings.values()}
    assert {(2, 5, 3), (10, 3, 5), (10, 5, 8), (20, 3, 5)} <= sizes


def test_a_short_suite_answers_everything_that_is_asked() -> None:
    tables = run_suite("regret", rounds=50, trials=3, seed=2)
    assert list(tables) == [part.name for part in SUITES["regret"]]
    lines = asked("regret", tables)
    assert all(np.isfinite(seen) for _, seen, _ in lines)
    table = tables["hidden"].where(setting="preference variance 4")
    (row,) = table.where(policy="recommended").rows()
    seen = {what: value for what, value, _ in lines}
    assert seen["share of prucb-hp's regret: preference variance 4"] == row["share"]
    text = text_of_asked([("kept", 0.1, 0.2), ("missed", 0.3, 0.2)]).splitlines()
    assert text[1].endswith("yes")
    assert text[2].endswith("no")


def test_the_live_suite_asks_something_of_every_world() -> None:
    tables = {
        part.name: Table.from_rows(
            [
                {"setting": name, "policy": policy, "share": 0.5 if policy == "recommended" else 1.0}
                for name in part.settings
                for policy in part.policies
            ]
        )
        for part in SUITES["live"]
    }
    lines = asked("live", tables)
    assert len(lines) == sum(len(part.settings) for part in SUITES["live"])
    assert all(part.policies[0] == RANDOM and rounds_of(part, 7) == part.rounds for part in SUITES["live"])
    assert [most for what, _, most in lines if "explain nothing" in what] == [0.53]  # .03 above what it is without
    assert all(environment.live for name, environment in SUITES["live"][1].settings.items())


def test_the_parts_of_a_suite_keep_their_proportions() -> None:
    rounds = {part.name: rounds_of(part, 500) for part in SUITES["regret"]}
    assert rounds["long"] == 10 * rounds["hidden"] == 5000
    assert rounds["newcomers"] == 120  # 100 before they come, and 20


def test_newcomers_are_counted_alone() -> None:
    environment = environments.Gaussian(users=4, newcomers=1, arrival=31)
    table = compare(["greedy"], {"late": environment}, rounds=50, trials=3, seed=4)
    late = simulate(["greedy"], environment, rounds=50, trials=3, seed=4)["greedy"].regret_by_user
    assert (late[:, -1, :] > 0).any(axis=0).all()
    assert table["mean"][0] == pytest.approx(late[:, -1, -1].mean())
    before = simulate(["greedy"], environment, rounds=30, trials=3, seed=4)["greedy"].regret_by_user
    assert (before[:, -1, -1] == 0).all()


def test_linear_growth_is_told_from_a_logarithm_and_from_a_tie() -> None:
    rounds = np.array([12500, 25000, 50000, 100000])
    linear, logarithm = 0.05 * rounds, 100 * np.log(rounds)
    tie = 0.002 * rounds  # nearer than 100,000 rounds can tell
    late = np.array([100.0, 100.0, 100.0, 5000.0])  # once is not yet a line
    assert linear_trials(np.array([linear, logarithm, tie, late]), 100000) == 1
    assert linear_trials(np.array([[0.0, 0.0, 0.0, 0.0]]), 100000) == 0


def test_a_setting_is_read_from_its_words() -> None:
    _, environment = parse_setting("users=3,block-size=2,reward-variance=0.2,preference=random")
    assert environment == environments.Gaussian(users=3, block_size=2, reward_variance=0.2, preference="random")
    assert isinstance(parse_setting("environment=bounded")[1], environments.Bounded)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--suite", "regrets"], "unknown suite 'regrets'; did you mean 'regret'?"),
        (["--setting", "users"], "expected a setting as name=value"),
        (["--setting", "usrs=2"], "has no setting 'usrs'"),
        (["--setting", "users=2", "--trials", "1"], "expected at least 2 trials"),
        (["--setting", "users=2", "--baseline", "ucb"], "unknown baseline"),
        (["--setting", "users=2", "--policy", "prucb-ph"], "unknown policy 'prucb-ph'"),
        (["--setting", "users=2", "--output", "x.csv"], "expected --output to end in .parquet"),
        (["--setting", "users=2", "--plot", "x.gif"], "expected --plot to end in .svg, .png"),
    ],
)
def test_bad_input_is_a_sentence(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--rounds", "20", *arguments]) == 2
    assert expected in capsys.readouterr().err


def test_the_command_keeps_and_draws_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept, drawn = tmp_path / "table.parquet", tmp_path / "compare.svg"
    arguments = ["--policy", "prucb-hp", "--policy", "greedy", "--setting", "users=2", "--rounds", "50"]
    targets = ["--output", str(kept), "--plot", str(drawn), "--format", "json"]
    assert main(["compare", *arguments, "--trials", "4", *targets]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["settings"] == {"rounds": 50, "trials": 4, "seed": 1, "baseline": "prucb-hp"}
    assert [row["policy"] for row in document["rows"]] == ["prucb-hp", "greedy"]
    assert list(Table.load(kept).rows()) == document["rows"]
    assert drawn.stat().st_size > 1000
