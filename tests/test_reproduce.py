"""`pamo reproduce`: it runs, resumes, survives a kill, judges by its rules, and its page opens in a real browser."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pamo import simulate
from pamo.cli import main
from pamo.experiments import grid
from pamo.experiments.paper import EXTENDED, STUDIES, ablation, known
from pamo.experiments.report import html, markdown, summary
from pamo.experiments.runner import digest, finished, run_studies, settings_of
from pamo.experiments.study import Study, Verdict
from pamo.experiments.tables import Table, Tables
from pamo.policies import create
from pamo.simulation.stepping import Player
from tests import test_families, test_study_bounds, test_study_confidence


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A quick reproduction of all studies, made once."""
    output = tmp_path_factory.mktemp("reproduction") / "paper"
    assert main(["reproduce", "--quick", "--output", str(output)]) == 0
    return output


def _tables(folder: Path) -> Tables:
    return {path.stem: Table.load(path) for path in folder.glob("*.parquet")}


def test_all_studies_are_there() -> None:
    assert list(STUDIES) == [
        "lr-toy",
        "wls-vs-lr",
        "residual",
        "known",
        "hidden",
        "horizon",
        "stated",
        "lower-bound",
        "conflict",
        "confidence",
        "events",
        "bounds",
        "ablation",
    ]


def test_everything_is_kept(quick: Path) -> None:
    document = json.loads((quick / "summary.json").read_text(encoding="utf-8"))
    assert [study["name"] for study in document["studies"]] == list(STUDIES)
    for study in document["studies"]:
        folder = quick / study["name"]
        assert study["claims"]
        assert study["drawings"]
        assert {claim["verdict"] for claim in study["claims"]} <= {str(verdict) for verdict in Verdict}
        for drawing in study["drawings"]:
            assert (folder / f"{drawing['id']}.svg").stat().st_size > 1000
            assert (folder / f"{drawing['id']}.png").stat().st_size > 1000
        assert list(folder.glob("*.parquet"))
    text = (quick / "summary.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in STUDIES)


def test_a_second_run_finds_everything_done(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in quick.rglob("*.parquet")}
    started = time.monotonic()
    assert main(["reproduce", "--quick", "--output", str(quick)]) == 0
    assert time.monotonic() - started < 10
    captured = capsys.readouterr()
    assert captured.err.count("finished before, unchanged") == len(STUDIES)
    assert captured.out.splitlines()[-1] == f"report: {quick / 'report.html'}"
    assert before == {path: path.stat().st_mtime_ns for path in quick.rglob("*.parquet")}


def test_a_killed_run_loses_at_most_what_is_in_progress(tmp_path: Path) -> None:
    names = ["lr-toy", "wls-vs-lr", "lower-bound"]
    command = [sys.executable, "-m", "pamo", "reproduce", *names, "--quick", "--output", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while finished(tmp_path / names[0]) is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    kept = [name for name in names if finished(tmp_path / name)]
    assert kept != names  # it was killed half-way
    stamps = {name: (tmp_path / name / "study.json").stat().st_mtime_ns for name in kept}
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stderr.count("finished before, unchanged") == len(kept)
    assert stamps == {name: (tmp_path / name / "study.json").stat().st_mtime_ns for name in kept}
    assert all(finished(tmp_path / name) for name in names)
    assert not list(tmp_path.glob(".*.partial"))


def test_a_damaged_study_is_run_again(tmp_path: Path) -> None:
    study = STUDIES["lr-toy"]
    run_studies([study], tmp_path, quick=True, shown=False)
    (tmp_path / study.name / "estimates.parquet").unlink()
    said: list[str] = []
    run_studies([study], tmp_path, quick=True, shown=False, announce=said.append)
    assert said == []
    assert (tmp_path / study.name / "estimates.parquet").is_file()


def test_a_study_is_known_by_its_settings_and_seed() -> None:
    study = STUDIES["lr-toy"]
    settings = settings_of(study, quick=False, trials=None)
    same = digest(study, settings, 1)
    assert digest(study, settings, 1) == same
    assert digest(study, settings, 2) != same
    assert digest(study, settings_of(study, quick=True, trials=None), 1) != same


def test_trials_are_settable() -> None:
    assert settings_of(STUDIES["hidden"], quick=False, trials=7)["trials"] == 7
    assert settings_of(STUDIES["confidence"], quick=False, trials=None)["trials"] == 4000
    assert STUDIES["hidden"].settings["rounds"] == 5000


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["hiden"], "unknown study 'hiden'; did you mean 'hidden'?"),
        (["--trials", "1"], "expected at least 2 trials"),
        (["--seed", "-1"], "expected --seed to be at least 0"),
    ],
)
def test_bad_input_is_a_sentence(
    arguments: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *arguments, "--output", str(tmp_path / "out")]) == 2
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_output_that_is_a_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "file"
    target.write_text("mine", encoding="utf-8")
    assert main(["reproduce", "lr-toy", "--quick", "--output", str(target)]) == 2
    assert "to be a folder" in capsys.readouterr().err
    assert target.read_text(encoding="utf-8") == "mine"


def test_list_names_the_studies(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [*STUDIES, *EXTENDED]


# Verdicts follow from the results: results that should fail do.


def _verdicts(study: Study, tables: Tables) -> dict[str, Verdict]:
    return {claim.id: claim.judge(tables).verdict for claim in study.claims}


def _scaled(tables: Tables, policy: str, factor: float) -> Tables:
    """Multiply a policy's regret everywhere."""
    changed = {}
    for name, table in tables.items():
        columns = dict(table.columns)
        if "policy" in columns:
            rows = columns["policy"] == policy
            for column in ("regret", "half", "mean", "low", "high", "slope"):
                if column in columns:
                    columns[column] = np.where(rows, columns[column] * factor, columns[column])
        changed[name] = Table(columns)
    return changed


@pytest.mark.parametrize(
    ("study", "table", "claim", "linear"),
    [
        ("hidden", "curves", "sublinear", Verdict.NOT),
        ("known", "curves", "given-sublinear", Verdict.NOT),
        ("horizon", "long curves", "preference-free-linear", Verdict.CONFIRMED),
    ],
)
def test_growth_is_judged_by_the_curves(quick: Path, study: str, table: str, claim: str, linear: Verdict) -> None:
    tables = _tables(quick / study)

    def judged(power: float) -> Verdict:
        columns = dict(tables[table].columns)
        columns["mean"] = columns["round"].astype(float) ** power
        return _verdicts(STUDIES[study], tables | {table: Table(columns)})[claim]

    other = {Verdict.NOT: Verdict.CONFIRMED, Verdict.CONFIRMED: Verdict.NOT}[linear]
    assert (judged(1.0), judged(0.5)) == (linear, other)


def test_a_bound_on_known_preferences_is_judged_where_it_says_something(quick: Path) -> None:
    tables = _tables(quick / "known")
    assert _verdicts(STUDIES["known"], tables)["given-bound"] == Verdict.CANNOT
    columns = dict(tables["bounds"].columns)
    for factor, verdict in ((0.5, Verdict.NOT), (2.0, Verdict.CONFIRMED)):
        columns["bound"] = factor * columns["regret"]
        columns["trivial"] = 10.0 * columns["regret"]
        assert _verdicts(STUDIES["known"], tables | {"bounds": Table(columns)})["given-bound"] == verdict


@pytest.mark.parametrize(("claim", "stands_in"), [("given-is-better", "prucb-kp"), ("given-sublinear", "pareto-ucb")])
def test_who_does_not_use_the_rounds_preference_is_told_from_who_does(
    claim: str, stands_in: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Deaf(Player):
        def choose(self, user: int, offer: Any = None, preference: Any = None) -> int:
            return super().choose(user, offer)

    monkeypatch.setattr(known, "Player", Deaf)
    monkeypatch.setattr(known, "create", lambda name: create(stands_in))
    study = STUDIES["known"]
    tables = study.measure(settings_of(study, quick=True, trials=None), 1, lambda share: None)
    assert _verdicts(study, tables)[claim] == Verdict.NOT


def test_a_residual_that_grows_with_the_reward_is_seen(quick: Path) -> None:
    tables = _tables(quick / "residual")
    verdicts = _verdicts(STUDIES["residual"], tables)
    assert verdicts["lemma-1"] == Verdict.CONFIRMED
    assert verdicts["without-weights"] != Verdict.CONFIRMED
    columns = dict(tables["constants"].columns)
    columns["constant"] = columns["constant"] * (1.0 + columns["length"])
    assert _verdicts(STUDIES["residual"], {"constants": Table(columns)})["lemma-1"] == Verdict.NOT


Broken = dict[str, str]
"""Policies that stand in for others, under their names."""
STUCK = "prucb-hp:reward_bonus=0.0,beta=0.0"  # nothing makes it try an arm

SABOTAGES: list[tuple[str, str, Broken, Verdict, Broken, Verdict]] = [
    (
        "hidden",
        "superior",
        {"prucb-hp": STUCK},
        Verdict.NOT,
        {"prucb-hp": "prucb-kp-v", "moss": "s-moss"},  # in ten trials MOSS strays too far to be beaten for sure
        Verdict.CONFIRMED,
    ),
    ("hidden", "sublinear", {"prucb-hp": "pareto-ucb"}, Verdict.NOT, {}, Verdict.CONFIRMED),
    ("hidden", "left-out-baselines", {}, Verdict.NOT, {"greedy": STUCK, "ucb-per-user": STUCK}, Verdict.CONFIRMED),
    (
        "horizon",
        "ahead-in-the-long-run",
        {"prucb-hp": STUCK},
        Verdict.NOT,
        {"prucb-hp": "prucb-kp-v"},
        Verdict.CONFIRMED,
    ),
    (
        "horizon",
        "preference-free-linear",
        dict.fromkeys(("s-ucb", "s-moss", "pareto-ucb", "pareto-ts"), "prucb-hp"),
        Verdict.NOT,
        dict.fromkeys(("s-ucb", "s-moss"), "pareto-ts"),
        Verdict.CONFIRMED,
    ),
    ("stated", "superior", {"prucb-up": "pareto-ts"}, Verdict.NOT, {"prucb-up": "prucb-kp-v"}, Verdict.CONFIRMED),
    (
        "stated",
        "superior-to-preference-free",
        {"prucb-up": "pareto-ts"},
        Verdict.NOT,
        {"prucb-up": "prucb-kp-v"},
        Verdict.CONFIRMED,
    ),
    ("stated", "left-out-baselines", {}, Verdict.NOT, {"prucb-up": "prucb-kp-v", "greedy": STUCK}, Verdict.CONFIRMED),
    ("stated", "close-to-known", {"prucb-up": "s-ucb"}, Verdict.NOT, {}, Verdict.CONFIRMED),
    (
        "lower-bound",
        "preference-free-linear",
        dict.fromkeys(("s-ucb", "s-moss", "pareto-ucb", "pareto-ts"), "prucb-hp"),
        Verdict.NOT,
        {},
        Verdict.CONFIRMED,
    ),
    (
        "lower-bound",
        "preference-aware-sublinear",
        dict.fromkeys(("prucb-hp", "prucb-up", "prucb-kp"), "s-ucb"),
        Verdict.NOT,
        {},
        Verdict.CONFIRMED,
    ),
    (
        "conflict",
        "any-instance",
        dict.fromkeys(("s-ucb", "s-moss", "pareto-ucb", "pareto-ts"), "prucb-kp"),
        Verdict.NOT,
        {},
        Verdict.CONFIRMED,
    ),
    ("conflict", "looking-is-enough", {"prucb-kp": "s-ucb"}, Verdict.NOT, {}, Verdict.CONFIRMED),
    (
        "conflict",
        "a-front-of-two",
        {},
        Verdict.NOT,
        dict.fromkeys(("s-ucb", "s-moss", "pareto-ts"), "pareto-ucb"),
        Verdict.CONFIRMED,
    ),
]


@pytest.mark.parametrize(("name", "claim", "worse", "low", "better", "high"), SABOTAGES, ids=lambda one: str(one)[:30])
def test_another_algorithm_under_the_same_name_turns_the_verdict(
    name: str,
    claim: str,
    worse: Broken,
    low: Verdict,
    better: Broken,
    high: Verdict,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = STUDIES[name]
    settings = settings_of(study, quick=True, trials=None)
    monkeypatch.setattr(grid, "_regret", grid._regret.__wrapped__)  # which would give what was played before
    for broken, expected in ((worse, low), (better, high)):

        def other(policies: Any, *rest: Any, broken: Broken = broken, **more: Any) -> Any:
            runs = [simulate([broken.get(one, one)], *rest, **more) for one in policies]
            return {str(place): next(iter(run.values())) for place, run in enumerate(runs)}

        monkeypatch.setattr(grid, "simulate", other)
        tables = study.measure(settings, 1, lambda share: None)
        assert _verdicts(study, tables)[claim] == expected


def test_what_a_study_has_played_is_not_played_again_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[str] = []

    def counting(policies: Any, *rest: Any, **more: Any) -> Any:
        played.extend(policies)
        return simulate(policies, *rest, **more)

    monkeypatch.setattr(grid, "simulate", counting)
    monkeypatch.setattr(grid, "_regret", functools.lru_cache(grid._regret.__wrapped__))
    cell = dict(STUDIES["hidden"].settings["cells"][0])
    size = {"rounds": 20, "trials": 2}
    first = grid.run_grid({"cells": [cell]} | size, 1, lambda share: None)
    assert played == cell["policies"]
    more = dict(cell) | {"policies": [*cell["policies"], "prucb-kp"]}
    second = grid.run_grid({"cells": [more]} | size, 1, lambda share: None)
    assert played == more["policies"]
    for name in cell["policies"]:
        assert (grid.final(first, cell["cell"], name) == grid.final(second, cell["cell"], name)).all()
    grid.run_grid({"cells": [cell]} | size | {"trials": 3}, 1, lambda share: None)
    grid.run_grid({"cells": [cell]} | size, 2, lambda share: None)
    assert len(played) == len(more["policies"]) + 2 * len(cell["policies"])


@pytest.mark.parametrize(
    ("claim", "part"), [("preference-bonus", "beta"), ("reward-bonus", "reward_bonus"), ("weights", "weighted")]
)
def test_a_part_is_needed_only_if_nothing_is_better_without_it(quick: Path, claim: str, part: str) -> None:
    tables, place = _tables(quick / "ablation"), list(ablation.PARTS).index(part)

    def judged(*factors: float) -> Verdict:
        """Give each variant with the part a regret of 100 times one of the factors, and the others 100."""
        columns = dict(tables["finals"].columns)
        for number, parts in enumerate(ablation.CROSS):
            rows = columns["policy"] == ablation.variant(parts)
            regret = 100.0 * (factors[number % len(factors)] if parts[place] else 1.0)
            columns["regret"] = np.where(rows, regret + columns["trial"], columns["regret"])
        return _verdicts(STUDIES["ablation"], {"finals": Table(columns)})[claim]

    assert judged(0.5) == Verdict.CONFIRMED
    assert judged(1.0) == judged(0.99) == judged(1.5) == Verdict.NOT
    halves = [1.0] * len(ablation.CROSS)
    for number, parts in enumerate(ablation.CROSS):
        halves[number] = 0.5 if parts[0] else 1.0
    assert judged(*halves) == Verdict.PARTLY
    assert judged(*[1.5 if one < 1.0 else 0.5 for one in halves]) == Verdict.NOT


def _with(tables: Tables, name: str, **columns: Any) -> Tables:
    """Put other columns into a table, each what a function makes of the old ones."""
    old = tables[name].columns
    return tables | {name: Table(old | {column: make(old) for column, make in columns.items()})}


def _exchanged(tables: Tables) -> Tables:
    return _with(tables, "estimates", error=lambda old: old["error"][::-1])


def _errors(difference: float) -> Callable[[Tables], Tables]:
    """Have every estimator differ from linear regression by so much."""
    return lambda tables: _with(
        tables,
        "errors",
        **{name: lambda old: np.full(len(old["mean"]), difference) for name in ("above LR", "above LR, λ=1")},
    )


def _constants(share: float) -> Callable[[Tables], Tables]:
    return lambda tables: _with(tables, "constants", constant=lambda old: share * old["bound"])


def _theory(factor: float) -> Callable[[Tables], Tables]:
    """Give PRUCB-HP with the theory's radius a multiple of its regret with the experiments'."""

    def changed(tables: Tables) -> Tables:
        plain = tables["finals"].where(policy="prucb-hp")["regret"]
        rows = tables["finals"]["policy"] == "prucb-hp:beta=1.0,radius=theory"
        return _with(tables, "finals", regret=lambda old: np.where(rows, factor * plain.mean(), old["regret"]))

    return changed


def _strayed(ratio: float) -> Callable[[Tables], Tables]:
    return lambda tables: _with(tables, "trials", worst=lambda old: np.full(len(old["worst"]), ratio))


Change = Callable[[Tables], Tables]
TURNS: dict[tuple[str, str], tuple[Change, Change]] = {
    ("lr-toy", "dominated-arm-tells-more"): (_exchanged, lambda tables: tables),
    ("wls-vs-lr", "wls-beats-lr"): (_errors(0.1), _errors(-0.1)),
    ("wls-vs-lr", "weights-alone-beat-lr"): (_errors(0.1), _errors(-0.1)),
    ("wls-vs-lr", "wls-beats-lr-with-its-ridge"): (_errors(0.1), _errors(-0.1)),
    ("residual", "lemma-1"): (_constants(1.1), _constants(1.0)),
    ("residual", "without-weights"): (_constants(1.1), _constants(1.0)),
    ("events", "event-a"): (_strayed(1.1), _strayed(1.0)),
    ("events", "event-b"): (_strayed(1.1), _strayed(1.0)),
    ("events", "events-with-the-experiments-alpha"): (_strayed(1.1), _strayed(1.0)),
    ("ablation", "theory-radius"): (_theory(1.2), _theory(1.0)),
}
"""What results would not confirm a claim, and what would, where the claim is about numbers and not about a policy."""


@pytest.mark.parametrize(("study", "claim"), TURNS, ids=str)
def test_other_results_turn_the_verdict(study: str, claim: str, quick: Path) -> None:
    tables = _tables(quick / study)
    verdicts = [_verdicts(STUDIES[study], change(tables))[claim] for change in TURNS[study, claim]]
    assert verdicts == [Verdict.NOT, Verdict.CONFIRMED]


def test_for_each_claim_something_is_shown_that_turns_its_verdict() -> None:
    shown = set(TURNS) | {(study, claim) for study, claim, *_ in SABOTAGES}
    shown |= {("known", claim) for claim in ("given-sublinear", "given-is-better", "given-bound")}
    shown |= {("ablation", claim) for claim in ("preference-bonus", "reward-bonus", "weights")}
    shown |= {("confidence", claim) for claim in test_study_confidence.JUDGED}
    shown |= {("bounds", claim) for claim in (*test_study_bounds.RATES, *test_study_bounds.EXCEEDED)}
    shown |= {("bounds", claim) for claim in ("theorem-1", *test_study_bounds.SAYING)}
    shown |= {("families", claim) for claim in test_families.TURNS}
    studies = STUDIES | EXTENDED
    assert shown == {(study.name, claim.id) for study in studies.values() for claim in study.claims}
    for study in studies.values():
        for claim in study.claims:
            assert all((claim.paper, claim.source, claim.rule, claim.refuted_by)), claim.id


# The page.


def test_a_failed_claim_is_shown_as_such(quick: Path) -> None:
    records = [finished(quick / name) for name in STUDIES]
    shown: list[dict[str, Any]] = [record for record in records if record]
    shown[0]["claims"][0]["verdict"] = str(Verdict.NOT)
    shown[0]["claims"][0]["seen"] = "<b>nothing & nobody</b>"
    page = html(shown, quick)
    assert "&lt;b&gt;nothing &amp; nobody&lt;/b&gt;" in page
    assert "<b>nothing" not in page
    assert "not confirmed" in markdown(shown)
    assert summary(shown)["studies"][0]["claims"][0]["verdict"] == "not confirmed"


def test_the_page_says_what_becomes_of_the_headline(quick: Path) -> None:
    page = (quick / "report.html").read_text(encoding="utf-8")
    titles = [
        title for title in ("What holds", "What does not hold", "What cannot be told") if f"<h3>{title} (" in page
    ]
    assert titles == ["What holds", "What does not hold", "What cannot be told"]
    assert page.index("<h3>What holds") < page.index("<h3>What does not hold") < page.index("<h3>What cannot be told")
    assert page.index("<h3>What cannot be told") < page.index("<figure")
    assert page.index("<h3>What holds") < page.index("Every study of the paper, run again")
    summary_text = (quick / "summary.md").read_text(encoding="utf-8")
    assert f"Of {sum(len(study.claims) for study in STUDIES.values())} claims: " in page
    assert summary_text.index("## What holds") < summary_text.index("## What does not hold") < summary_text.index("![")
    assert "ucb-per-user has" in page
    assert "greedy has" in page
    assert page.count("Would have refuted it:") == sum(len(study.claims) for study in STUDIES.values())


def test_the_ten_trials_are_described_with_their_own_numbers() -> None:
    (drawing,) = (one for one in STUDIES["hidden"].drawings if one.id == "hidden-ten-trials")
    cell, several = STUDIES["hidden"].settings["cells"][3]["cell"], STUDIES["hidden"].settings["cells"][3]["policies"]
    curves, finals = [], []
    for policy in several:
        for count in (10, 30):
            here = {"cell": cell, "policy": policy, "trials": count, "round": [1, 2]}
            curves.append(Table(here | {"mean": 7.0 * count, "low": 1.0, "high": 9.0}))
        finals.append(
            Table({"cell": cell, "policy": policy, "trial": np.arange(30), "regret": [70.0] * 10 + [99.0] * 20})
        )
    tables = {"curves": Table.stack(curves), "finals": Table.stack(finals)}
    assert "prucb-hp 70" in drawing.describe(tables)
    twin = drawing.twin(tables)
    assert set(twin["final regret"].tolist()) == {70.0}
    assert set(twin["trials"].tolist()) == {10}


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_the_page_opens_in_a_browser(quick: Path, scheme: Any, width: int, tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    browser_path = os.environ.get("PAMO_BROWSER")
    assert browser_path, "PAMO_BROWSER names no Chromium: run the tests by `make test`, which finds one"
    problems: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: problems.append(request.url) if request.url.startswith("http") else None)
        page.goto((quick / "report.html").as_uri())
        figures = page.locator("figure")
        expected = sum(len(study.drawings) for study in STUDIES.values())
        assert figures.count() == expected
        for place in range(expected):
            figure = figures.nth(place)
            image = figure.locator("img")
            assert len(image.get_attribute("alt") or "") > 40
            assert image.evaluate("image => image.complete && image.naturalWidth > 0")
            assert figure.locator("details table tbody tr").count() > 0
        # Wide things scroll in boxes of their own; the page itself does not.
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == ("rgb(20, 23, 27)" if scheme == "dark" else "rgb(255, 255, 255)")
        browser.close()
    assert problems == []
