"""`pamo evaluate`: against Open Bandit Pipeline's figures, against the truth, and what a log cannot say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from campaigns.intervals import main as campaign
from pamo import Engine, policies
from pamo.arrays import Floats, Ints
from pamo.cli import main
from pamo.contract.events import ArmAdded, ArmRetired, DecisionMade, FeedbackGiven, Setup
from pamo.contract.objectives import Objective
from pamo.errors import InputError
from pamo.experiments.evaluation import (
    METHODS,
    Learner,
    by_chance,
    by_policy,
    by_weights,
    chances_of,
    estimates,
    evaluate,
    judged,
    text_of,
)
from pamo.experiments.logs import Log, Round, log_of, log_of_events, read_log
from pamo.store.addresses import open_reader
from pamo.store.maintenance import export
from tests.open_bandit import ARMS, FIGURES, MEASURES, Case, case

TASTE, PRICE = Objective("taste", 1, 5), Objective("price", 0, 100, lower_is_better=True)


class Given:
    """A target whose chances are a table, round by round."""

    def __init__(self, table: Floats) -> None:
        self._rows = iter(table)

    def chances(self, user: int, offer: Ints) -> Floats:
        return np.asarray(next(self._rows)[offer])

    def observe(self, user: int, arm: int, reward: Floats, overall: float) -> None:
        pass


def log_of_case(given: Case) -> Log:
    names = tuple(str(arm) for arm in range(ARMS))
    return log_of(
        (
            Round("ann", names, names[arm], float(chance), {"a": values[0], "b": values[1]}, values[2])
            for arm, chance, values in zip(given.arm, given.propensity, given.values.tolist(), strict=True)
        ),
        [Objective("a"), Objective("b")],
    )


# ---- the estimators


@pytest.mark.parametrize("method", ["ips", "snips", "dr", "replay"])
def test_ten_thousand_rounds_give_what_open_bandit_pipeline_gives(method: str) -> None:
    given = case(uniform=method == "replay")
    log, rounds = log_of_case(given), np.arange(len(given.arm))
    chances = chances_of(log, lambda _: Given(given.target))
    chances = chances._replace(
        expected=np.einsum("na,nam->nm", given.target, given.model), predicted=given.model[rounds, given.arm]
    )
    found = judged(log, chances).rows.where(method=method)
    assert found["value"].tolist() == pytest.approx(json.loads(FIGURES.read_text())[method], abs=1e-6)
    assert len(found) == MEASURES


def test_intervals_and_differences_are_those_of_the_plain_formulas() -> None:
    draw = np.random.default_rng(3)
    weight, value = draw.exponential(size=500), draw.normal(1.0, 1.0, 500)
    kept, expected, predicted = draw.random(500) < 0.2, draw.normal(size=500), draw.normal(size=500)
    found = estimates(weight, value, kept, expected, predicted)
    assert tuple(found) == METHODS
    assert found["replay"].rounds == kept.sum()
    terms = expected + weight * (value - predicted)
    half = 1.9647 * terms.std(ddof=1) / np.sqrt(500)  # Student's t of 499
    assert (found["dr"].value, found["dr"].low, found["dr"].high) == pytest.approx(
        (terms.mean(), terms.mean() - half, terms.mean() + half), rel=1e-3
    )
    assert found["ips"].difference == pytest.approx((weight * value - value).mean())
    some = value[kept]
    assert found["replay"].high - some.mean() == pytest.approx(
        1.985 * some.std(ddof=1) / np.sqrt(len(some)), rel=0.01
    )  # as if these rounds were all there is
    assert (found["logged"].difference, found["logged"].difference_high) == (0.0, 0.0)


def test_intervals_hold_the_truth_as_often_as_they_say_and_narrower_ones_are_found(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert campaign(["--logs", "60", "--rounds", "200"]) == 0
    assert capsys.readouterr().out.endswith("as it should be\n")
    assert campaign(["--logs", "30", "--rounds", "100", "--narrow", "0.5"]) == 1


# ---- targets


def few(count: int = 40) -> list[Round]:
    draw, rounds = np.random.default_rng(5), []
    for t in range(count):
        arm = int(draw.integers(3))
        taste, price = 1.0 + arm + draw.random(), 20.0 + 30.0 * arm + draw.random()
        rounds.append(
            Round(f"u{t % 4}", ("A", "B", "C"), "ABC"[arm], 1 / 3, {"taste": taste, "price": price}, taste / 5.0)
        )
    return rounds


def test_weights_choose_the_arm_whose_mean_so_far_weighs_most_and_a_low_price_is_a_good_one() -> None:
    log = log_of(few(), [TASTE, PRICE])
    for weights, best in (({"taste": 1.0}, "C"), ({"price": 1.0}, "A")):
        learner = by_weights(weights)(log)
        assert learner.chances(0, np.arange(3)).tolist() == pytest.approx([1 / 3] * 3)  # it knows nothing yet
        for t in range(len(log)):
            learner.observe(int(log.user[t]), int(log.arm[t]), log.rewards[t], log.values[t, -1])
        chances = learner.chances(0, np.arange(3))
        assert log.arms[int(chances.argmax())] == best
        assert chances.max() == 1.0
        row = next(evaluate(log, by_weights(weights)).rows.where(method="snips", measure="price").rows())
        assert row["value"] == pytest.approx(20.5 if best == "A" else 80.5, abs=6.0)  # on its own scale


@pytest.mark.parametrize("target", [by_weights({"taste": 1.0}), by_policy(policies.create("recommended"))])
def test_a_round_has_no_part_in_what_is_foretold_of_it_nor_of_those_before(target: object) -> None:
    rounds = few()
    changed = [*rounds[:-1], rounds[-1]._replace(rewards={"taste": 5.0, "price": 0.0}, overall=0.0)]
    one, other = (chances_of(log_of(each, [TASTE, PRICE]), target) for each in (rounds, changed))  # type: ignore[arg-type]
    for ours, theirs in zip(one[:3], other[:3], strict=True):
        assert ours.tolist() == theirs.tolist()


def test_replay_learns_from_the_rounds_that_it_keeps_alone() -> None:
    log, seen = log_of(few(), [TASTE, PRICE]), []

    class Watching:
        def __init__(self) -> None:
            self.learned: list[int] = []
            seen.append(self)

        def chances(self, user: int, offer: Ints) -> Floats:
            return np.asarray(offer == log.arms.index("B"), dtype=float)

        def observe(self, user: int, arm: int, reward: Floats, overall: float) -> None:
            self.learned.append(arm)

    def target(_: Log) -> Learner:
        return Watching()

    kept = chances_of(log, target).kept
    assert kept.tolist() == (log.arm == log.arms.index("B")).tolist()  # at random logged, surely chosen: all that match
    assert seen[0].learned == log.arm.tolist()
    assert seen[1].learned == log.arm[kept].tolist()


def test_a_policy_is_evaluated_and_finds_what_the_log_shows() -> None:
    log = log_of(few(200), [TASTE, PRICE])
    rows = {
        name: next(evaluate(log, target).rows.where(measure="overall", method="dr").rows())
        for name, target in (("policy", by_policy(policies.create("recommended"))), ("random", by_chance))
    }
    assert rows["policy"]["difference_low"] > 0.05  # C tastes best, and the overall score is its taste
    assert rows["random"]["difference_low"] < 0.0 < rows["random"]["difference_high"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (by_weights({"tatse": 1.0}), "unknown objective 'tatse'; did you mean 'taste'"),
        (by_weights({}), "expected finite weights"),
        (by_weights({"taste": float("nan")}), "expected finite weights"),
        (by_policy(policies.create("ucb-per-user")), "reads each user's own pulls of each arm"),
        (by_policy(policies.create("prucb-kp")), "reads preferences that users say"),
    ],
)
def test_targets_that_a_log_knows_nothing_of_are_said(target: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate(log_of(few(), [TASTE, PRICE]), target)  # type: ignore[arg-type]


def test_scores_that_are_missing_are_left_out_of_their_own_measure_alone() -> None:
    rounds = few(60)
    rounds[3] = rounds[3]._replace(rewards={"taste": 2.0})
    rounds[4] = rounds[4]._replace(overall=None)
    table = evaluate(log_of(rounds, [TASTE, PRICE]), by_chance).rows.where(method="ips")
    assert table["rounds"].tolist() == [60, 59, 59]


# ---- what a log cannot say


def test_propensities_of_one_answer_nothing_but_about_the_same_choices() -> None:
    sure = [each._replace(propensity=1.0) for each in few()]
    log = log_of(sure, [TASTE, PRICE])
    found = evaluate(log, by_weights({"taste": 1.0}))
    assert len(found.rows) == 0
    assert "in 100% of its rounds nothing else could have been chosen (propensity 1)" in found.reason
    assert "prts" in text_of(found)
    chosen = np.eye(3)[log.arm]
    same = evaluate(log, lambda _: Given(np.vstack([chosen, chosen])))
    assert (same.reason, same.unsupported) == ("", 0.0)
    some = log_of([*few(400), *sure[:10]], [TASTE, PRICE])
    part = evaluate(some, by_weights({"taste": 1.0}))
    assert not part.reason
    assert 0.0 < part.unsupported < 0.05


def test_groups_are_evaluated_by_themselves() -> None:
    rounds = [each._replace(group="early" if t < 100 else "late") for t, each in enumerate(few(240))]
    table = evaluate(log_of(rounds, [TASTE, PRICE]), by_weights({"taste": 1.0})).rows
    assert table.distinct("group") == ["all", "early", "late"]
    late = table.where(group="late", method="logged")
    assert late["rounds"].tolist() == [140] * 3
    assert late["value"][0] == pytest.approx(np.mean([each.rewards["taste"] for each in rounds[100:]]))


# ---- reading


def test_a_journal_gives_its_rounds_with_the_arms_of_their_time() -> None:
    log = log_of_events(
        [
            Setup((TASTE,)),
            ArmAdded("A", "A", 0.0),
            ArmAdded("B", "B", 0.0),
            DecisionMade("1", "ann", ("B",), 0.5, "p", 1.0),
            ArmRetired("A", 2.0),
            ArmAdded("C", "C", 2.0),
            DecisionMade("2", "ann", ("C", "B"), 0.25, "p", 3.0, k=2),
            DecisionMade("3", "bob", ("B",), 0.5, "p", 3.0, offer=("B", "A")),
            DecisionMade("4", "bob", ("B",), 0.5, "p", 3.0),
            DecisionMade("5", None, ("B",), 0.5, "p", 3.0),
            DecisionMade("6", "bob", ("C", "B"), 0.5, "p", 3.0, k=2),
            FeedbackGiven("3", {"taste": 5.0}, 4.0, arm="B", user="bob"),
            FeedbackGiven("1", {"taste": 4.0}, 5.0, overall=0.5, arm="B", user="ann"),
            FeedbackGiven("2", {}, 5.0, overall=1.0, arm="C", user="ann"),
            FeedbackGiven("5", {"taste": 5.0}, 5.0, arm="B"),
            FeedbackGiven("6", {"taste": 5.0}, 5.0, arm="B", user="bob"),
        ],
        groups={"bob": "new"},
    )
    assert [[log.arms[i] for i in log.offer(t)] for t in range(3)] == [["A", "B"], ["B", "C"], ["B", "A"]]
    assert [log.arms[i] for i in log.arm] == ["B", "C", "B"]
    assert log.propensity.tolist() == [0.5, 0.25, 0.5]
    assert np.array_equal(log.values, [[4.0, 0.5], [np.nan, 1.0], [5.0, np.nan]], equal_nan=True)
    assert log.group == ("", "", "new")
    assert list(log.left_out.values()) == [1, 1, 1, 0]  # none is history from before the store


def table_of(path: Path, **changes: object) -> Path:
    columns: dict[str, object] = {
        "user": ["ann", "bob", "bob", None],
        "offer": [["A", "B"], ["B", "C"], None, ["A"]],
        "arm": ["A", "C", "B", "A"],
        "propensity": [0.5, 0.25, 1.0, 1.0],
        "taste": [4.0, None, 2.0, 1.0],
        "overall": [0.5, 0.75, 1.0, 1.0],
        "group": ["x", "y", "y", "y"],
    } | changes
    if path.suffix == ".csv":
        cells = {
            name: ["|".join(cell) if isinstance(cell, list) else "" if cell is None else str(cell) for cell in column]  # type: ignore[attr-defined]
            for name, column in columns.items()
        }
        lines = [",".join(cells), *(",".join(row) for row in zip(*cells.values(), strict=True))]
        path.write_text("\n".join(lines) + "\n")
    else:
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_is_read_as_csv_or_parquet(ending: str, tmp_path: Path) -> None:
    log = read_log(table_of(tmp_path / f"log.{ending}"), [TASTE])
    assert [[log.arms[i] for i in log.offer(t)] for t in range(3)] == [["A", "B"], ["B", "C"], ["A", "C", "B"]]
    assert log.users == ("ann", "bob")
    assert log.group == ("x", "y", "y")
    assert log.values[:, 0].tolist() == pytest.approx([4.0, np.nan, 2.0], nan_ok=True)
    assert dict(log.left_out) == {"rows that lack what is needed": 1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"propensity": ["0.5", "0", "1.5", "1"]}, "row 2, column 'propensity': expected a chance .* got 0; row 3"),
        ({"taste": ["4", "good", "inf", ""]}, "row 2, column 'taste': expected a number, got 'good'; row 3"),
        ({"arm": ["A", "A", "B", "A"]}, r"row 2, column 'offer': expected distinct arms, 'A' among them, got 'B\|C'"),
    ],
)
def test_wrong_cells_of_a_table_are_named(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_log(table_of(tmp_path / "log.csv", **changes), [TASTE])


# ---- the command


def live(path: Path, policy: str) -> Path:
    draw = np.random.default_rng(7)
    with Engine([TASTE, PRICE], store=str(path), policy=policy, seed=1) as engine:
        for arm in "ABC":
            engine.add_arm(arm)
        for t in range(150):
            decision = engine.decide(f"user {t % 5}")
            rewards = {"taste": 1.5 + 3.0 * draw.random(), "price": 90.0 * draw.random()}
            engine.feedback(decision, rewards, overall=float(draw.random()))
        engine.decide("user 0")
    return path


def test_the_command_answers_from_a_store_and_from_its_export_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = live(tmp_path / "pamo.db", "prts")
    with open_reader(store) as reader:
        export(reader, tmp_path / "journal.parquet")
    (tmp_path / "groups.csv").write_text("user,group\nuser 0,odd\nuser 1,even\n")
    printed = []
    for source in (store, tmp_path / "journal.parquet"):
        asked = ["--weights", "taste=1", "--groups", str(tmp_path / "groups.csv"), "--format", "json"]
        assert main(["evaluate", str(source), *asked]) == 0
        out, err = capsys.readouterr()
        assert "pamo: left out: 1 decisions without feedback" in err
        printed.append(json.loads(out))
    assert printed[0]["targets"] == printed[1]["targets"]
    target = printed[0]["targets"]["weights taste=1"]
    assert target["answerable"]
    assert {row["group"] for row in target["rows"]} == {"all", "odd", "even"}
    assert {row["measure"] for row in target["rows"]} == {"taste", "price", "overall"}


def test_the_command_says_when_a_log_cannot_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = live(tmp_path / "pamo.db", "recommended")
    assert main(["evaluate", str(store), "--weights", "price=1", "--random"]) == 1
    out = capsys.readouterr().out
    assert "this log cannot say" in out
    assert "pamo serve --policy prts" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["log.csv"], "expected --weights, --policy or --random"),
        (["log.csv", "--random"], "expected --objective for each column"),
        (["log.csv", "--random", "--objective", "tastes"], "unknown column of log.csv 'tastes'; did you mean 'taste'"),
        (["log.csv", "--weights", "taste", "--objective", "taste"], "expected --weights such as price=0.7"),
        (["none.csv", "--random", "--objective", "taste"], "is not a file; expected a log, a row a round"),
        (["none.db", "--random"], "none.db"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    table_of(tmp_path / "log.csv")
    assert main(["evaluate", *arguments]) == 2
    assert message in capsys.readouterr().err.strip().splitlines()[-1]


def test_the_table_shows_every_method_for_every_measure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["user,arm,propensity,taste,overall"]
    lines += [f"{one.user},{one.arm},{one.propensity},{one.rewards['taste']},{one.overall}" for one in few(100)]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    asked = ["--objective", "taste: 1..5", "--weights", "taste=1", "--policy", "greedy"]
    assert main(["evaluate", str(tmp_path / "log.csv"), *asked]) == 0
    out = capsys.readouterr().out
    assert "100 rounds of 4 users, 3 arms" in out
    for method in METHODS:
        assert len(re.findall(rf"\b{method} +[0-9]+\.[0-9]+ ", out)) == 2 * 2, method
