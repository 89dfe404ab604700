"""The study `confidence`: its loop against plain sums, and its verdicts both ways."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from pamo import environments, policies, simulate
from pamo.environments import Environment
from pamo.errors import InputError
from pamo.estimators import confidence_set
from pamo.experiments.paper import statements
from pamo.experiments.paper.confidence import STUDY
from pamo.experiments.paper.coverage import Seen, watch
from pamo.experiments.paper.statements import BOUND, EXPERIMENTS, LEMMA, SMALL, THEORY
from pamo.experiments.paper.theorems import hidden_settings, prescribed, wilson
from pamo.experiments.runner import settings_of
from pamo.experiments.study import Verdict
from pamo.experiments.tables import Table, Tables
from pamo.policies import Policy
from pamo.statistics import ArmStatistics, UserStatistics
from tests.replica import instance_of, play

ENVIRONMENT = environments.Bounded(users=2, block_size=3, objectives=3)
NOISY = environments.Bounded(users=2, block_size=3, objectives=3, reward="bernoulli", preference_variance=0.25)
CLAIMS = {claim.id: claim for claim in STUDY.claims}
JUDGED = {
    "lemma-2": (LEMMA, THEORY, 1),
    "lemma-3": (BOUND, THEORY, 1),
    "experiments-radius": (SMALL, EXPERIMENTS, 2),
    "experiments-upper-bound": (BOUND, EXPERIMENTS, 2),
}


def settings_for(environment: Environment) -> list[Policy]:
    return [prescribed(hidden_settings(environment, 0.05)), policies.create("prucb-hp")]


def seen_of(policy: Policy, environment: Environment, rounds: int, trials: int, **options: Any) -> Seen:
    radii = np.array([np.full(rounds, 0.4), np.linspace(0.0, 0.5, rounds)])
    return watch(
        policy, environment, rounds=rounds, trials=trials, seed=3, radii=radii, marks=range(1, rounds + 1), **options
    )


@pytest.fixture(scope="module")
def measured() -> tuple[Tables, float]:
    shares: list[float] = []
    settings = settings_of(STUDY, quick=True, trials=200) | {"rounds": 100}
    return STUDY.measure(settings, 1, shares.append), sum(shares)


@pytest.fixture
def tables(measured: tuple[Tables, float]) -> Tables:
    return {name: Table(dict(table.columns)) for name, table in measured[0].items()}


@pytest.mark.parametrize("protocol", ["random", "rotate", "all"])
@pytest.mark.parametrize("environment", [ENVIRONMENT, NOISY], ids=["beta", "bernoulli"])
def test_the_loop_decides_as_the_simulator_does(environment: Environment, protocol: str) -> None:
    environment = dataclasses.replace(environment, protocol=protocol)
    for policy in settings_for(environment):
        seen = seen_of(policy, environment, 200, 60)
        (outcome,) = simulate([policy], environment, rounds=200, trials=60, seed=3).values()
        np.testing.assert_allclose(seen.regret_by_user, outcome.regret_by_user[:, -1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("environment", [ENVIRONMENT, NOISY], ids=["beta", "bernoulli"])
def test_distances_and_margins_are_those_of_the_plain_sums(environment: Environment) -> None:
    rounds, trials = 25, 2
    for policy in settings_for(environment):
        seen = seen_of(policy, environment, rounds, trials)
        for trial in range(trials):
            means, truth = instance_of(environment, 3, trial)
            for t, (decisions, _) in enumerate(play(policy, environment, rounds=rounds, seed=3, trial=trial), start=1):
                distance, margin = plain(policy, decisions[0].question.earlier, means, truth)
                assert seen.distance[trial, t - 1] == pytest.approx(distance, rel=1e-9)
                assert seen.margin[trial, t - 1] == pytest.approx(margin, rel=1e-7, abs=1e-9)


def plain(policy: Policy, history: Any, means: Any, truth: Any) -> tuple[float, float]:
    arms = ArmStatistics.zeros(arms=len(means), objectives=means.shape[1])
    users = UserStatistics.zeros(users=len(truth), objectives=means.shape[1])
    for pull in history:
        arms.observe(pull.arm, pull.reward, pull.overall)
        users.observe(pull.user, pull.reward, pull.overall)
    distance = confidence_set(users, policy.estimate(means.shape[1])).distance(truth).max()
    margins = [policies.scores(policy, arms=arms, users=users, user=n) - means @ truth[n] for n in range(len(truth))]
    return float(distance), float(np.min(margins))


def test_what_is_kept_of_a_trial_follows_from_its_rounds() -> None:
    rounds = 80
    radii = np.array([np.full(rounds, 0.4), np.linspace(0.0, 0.5, rounds)])
    for environment in (ENVIRONMENT, NOISY):
        seen = seen_of(policies.create("prucb-hp"), environment, rounds, 40)
        at = np.arange(1, rounds + 1)
        for place, radius in enumerate(radii):
            outside = seen.distance > radius
            assert (seen.last_outside[:, place] == np.where(outside, at, 0).max(axis=1)).all()
            ratios = seen.distance[:, radius > 0] / radius[radius > 0]
            np.testing.assert_allclose(seen.worst[:, place], ratios.max(axis=1))
        assert (seen.last_below == np.where(seen.margin < 0, at, 0).max(axis=1)).all()


def test_threads_and_chunks_change_nothing() -> None:
    policy = policies.create("prucb-hp")
    alone = seen_of(policy, NOISY, 60, 57, threads=1)
    shares: list[float] = []
    together = seen_of(policy, NOISY, 60, 57, threads=3, progress=shares.append)
    assert all(np.array_equal(one, other) for one, other in zip(alone, together, strict=True))
    assert sum(shares) == pytest.approx(1.0)
    part = seen_of(policy, NOISY, 60, 5, threads=2)
    assert np.array_equal(part.worst, alone.worst[:5])


@pytest.mark.parametrize("name", ["oful", "prucb-up", "ucb-per-user"])
def test_only_the_weighted_ridge_can_be_watched(name: str) -> None:
    with pytest.raises(InputError, match="weighted ridge"):
        seen_of(policies.create(name), ENVIRONMENT, 10, 2)


def test_radii_and_marks_have_to_fit_the_rounds() -> None:
    policy = policies.create("prucb-hp")
    sizes: dict[str, Any] = {"rounds": 10, "trials": 2, "seed": 1}
    with pytest.raises(InputError, match="a row of 10 rounds"):
        watch(policy, ENVIRONMENT, radii=np.ones((1, 9)), marks=[1], **sizes)
    for marks in ([], [0, 1], [2, 2], [11]):
        with pytest.raises(InputError, match="rising marks"):
            watch(policy, ENVIRONMENT, radii=np.ones((1, 10)), marks=marks, **sizes)


@pytest.mark.parametrize(("held", "total"), [(0, 10), (10, 10), (9_741, 10_000), (1, 3)])
def test_the_interval_of_a_share_is_wilsons(held: int, total: int) -> None:
    interval = binomtest(held, total).proportion_ci(method="wilson")
    assert wilson(held, total) == pytest.approx((interval.low, interval.high), abs=1e-12)


def test_the_quick_study_is_whole(measured: tuple[Tables, float]) -> None:
    tables, progress = measured
    assert progress == pytest.approx(1.0)
    verdicts = {claim.id: claim.judge(tables).verdict for claim in STUDY.claims}
    assert verdicts["lemma-2"] == verdicts["lemma-3"] == Verdict.CONFIRMED
    assert verdicts["experiments-radius"] == Verdict.NOT
    for drawing in STUDY.drawings:
        drawing.draw(tables).draw_without_rendering()
        assert "nan" not in drawing.describe(tables)
        assert 10 <= len(drawing.twin(tables)) <= 60


def test_the_same_seed_gives_the_same_tables(measured: tuple[Tables, float]) -> None:
    settings = settings_of(STUDY, quick=True, trials=200) | {"rounds": 100}
    again = STUDY.measure(settings, 1, lambda share: None)
    for name, table in measured[0].items():
        for column, values in table.columns.items():
            assert np.array_equal(values, again[name][column]), (name, column)


def doctor(tables: Tables, statement: str, settings: str, share: float, high: float, *, late: float) -> None:
    """Set the share of trials in which a statement holds, and what it comes to after the first tenth."""
    shares = tables["shares"]
    chosen = (shares["statement"] == statement) & (shares["settings"] == settings)
    last = chosen & (shares["since"] == shares["since"].max())
    for name, value in (("share", share), ("high", high)):
        shares.columns[name] = np.where(last, late, np.where(chosen, value, shares[name]))


@pytest.mark.parametrize("claim", JUDGED)
def test_a_share_of_what_is_stated_confirms(tables: Tables, claim: str) -> None:
    statement, settings, _ = JUDGED[claim]
    doctor(tables, statement, settings, 0.98, 0.985, late=0.99)
    assert CLAIMS[claim].judge(tables).verdict == Verdict.CONFIRMED


@pytest.mark.parametrize("claim", JUDGED)
def test_a_share_below_what_is_stated_does_not_confirm(tables: Tables, claim: str) -> None:
    statement, settings, _ = JUDGED[claim]
    doctor(tables, statement, settings, 0.9, 0.91, late=0.9)
    finding = CLAIMS[claim].judge(tables)
    assert finding.verdict == Verdict.NOT
    assert "90.0" in finding.seen


@pytest.mark.parametrize("claim", ["lemma-2", "lemma-3"])
def test_a_share_whose_interval_reaches_what_is_stated_confirms_partly(tables: Tables, claim: str) -> None:
    statement, settings, _ = JUDGED[claim]
    doctor(tables, statement, settings, 0.96, 0.98, late=1.0)
    assert CLAIMS[claim].judge(tables).verdict == Verdict.PARTLY


@pytest.mark.parametrize("claim", ["experiments-radius", "experiments-upper-bound"])
def test_what_holds_after_the_first_tenth_alone_confirms_partly(tables: Tables, claim: str) -> None:
    statement, settings, _ = JUDGED[claim]
    doctor(tables, statement, settings, 0.1, 0.11, late=0.99)
    assert CLAIMS[claim].judge(tables).verdict == Verdict.PARTLY


@pytest.mark.parametrize(
    ("claim", "place", "policy", "expected"),
    [
        ("lemma-2", "prescribed", {"ridge": 1e4}, Verdict.NOT),  # ĉ stays near 0, and V says that it is sure of it
        ("lemma-3", "prescribed", {"reward_bonus": 0.0, "beta": 0.0}, Verdict.NOT),
        ("experiments-radius", "PrucbHp", {"ridge": 1e-6}, Verdict.CONFIRMED),  # preferences do not vary here
        ("experiments-upper-bound", "PrucbHp", {"alpha": 1e-6}, Verdict.CONFIRMED),
    ],
)
def test_another_algorithm_turns_the_verdict(
    claim: str, place: str, policy: dict[str, float], expected: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, place, lambda *settings: policies.create("prucb-hp", **policy))
    settings = settings_of(STUDY, quick=True, trials=100) | {"rounds": 60}
    settings["environments"] = {
        name: dict(given) | {"preference_variance": 0.0} for name, given in settings["environments"].items()
    }
    assert CLAIMS[claim].judge(STUDY.measure(settings, 1, lambda share: None)).verdict == expected


def test_the_worst_environment_counts(tables: Tables) -> None:
    shares = tables["shares"]
    one = (shares["environment"] == "most noise") & (shares["statement"] == LEMMA) & (shares["since"] == 1)
    for name in ("share", "high"):
        shares.columns[name] = np.where(one, 0.5, shares[name])
    assert CLAIMS["lemma-2"].judge(tables).verdict == Verdict.NOT


def test_one_round_below_what_is_stated_for_it_confirms_lemma_3_only_partly(tables: Tables) -> None:
    column = f"share now, {BOUND}"
    rounds = tables["rounds"]
    rounds.columns[column] = np.where(rounds["round"] == 5, 0.9, rounds[column])
    assert CLAIMS["lemma-3"].judge(tables).verdict == Verdict.PARTLY
