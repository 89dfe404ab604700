"""The coverage study: its loop against the public sums, verdicts both ways, and the command."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from pamo import policies
from pamo.arrays import Floats
from pamo.cli import main
from pamo.compiling import dimensions
from pamo.environments import PROTOCOLS, Bounded
from pamo.environments.protocols import assign
from pamo.errors import InputError
from pamo.estimators import Estimate, Kind, confidence_set, regress, reward_means
from pamo.experiments import coverage as study
from pamo.experiments.coverage import CHOICES, KINDS, Coverage, coverage, kappa_of, text_of
from pamo.experiments.coverage_observer import Seen
from pamo.experiments.paper.theorems import prescribed
from pamo.policies.base import pick
from pamo.priors import arms_prior_of
from pamo.statistics import ArmStatistics, UserStatistics
from pamo.streams import ENVIRONMENT, POLICY, STATED, stream_for
from pamo.theory import HiddenSettings, variance_bound
from tests.replica import instance_of
from tests.witness_spread import fitted_after

BETA = Bounded(users=2, block_size=3, objectives=3)
SCORED = policies.PrucbHpV(shared=False)
COINS = Bounded(users=2, block_size=2, objectives=2, reward="bernoulli", preference_variance=0.002)


def seen_of(environment: Bounded, rounds: int, trials: int, choice: str, **options: Any) -> Seen:
    rules = study._rules(environment, 0.1, kappa_of(environment), options.pop("scale", 1.0))
    marks = np.arange(1, rounds + 1)
    return study._watch(
        environment, rounds, trials, 3, choice, marks, rules, options.pop("threads", 1), lambda share: None
    )


class Moment(NamedTuple):
    """A round's state before its pulls: values and bonuses, (5, users, arms), and the two parts' ratios."""

    value: Floats
    bonus: Floats
    pulls: Floats
    truth: Floats
    radius_ratio: float
    noise_ratio: float


def replay(environment: Bounded, rounds: int, trial: int, choice: str) -> Iterator[Moment]:
    """Play a trial in plain Python, with the public sums, the library's bound, and the policies' own scores."""
    users, arms, objectives = environment.users, environment.arm_count, environment.objectives
    means, truth = instance_of(environment, 3, trial)
    stream, policy_stream = stream_for(3, trial, ENVIRONMENT), stream_for(3, trial, POLICY)
    spare, blocks = stream_for(3, trial, STATED), np.arange(arms // environment.offer_size)
    arm_sums = ArmStatistics.zeros(arms=arms, objectives=objectives)
    user_sums = UserStatistics.zeros(users=users, objectives=objectives)
    ridge = Estimate(kind=Kind.RIDGE, weighted=True, ridge=1.0, omega=float(objectives))
    paper = prescribed(HiddenSettings(arms=arms, objectives=objectives, users=users, failure=0.05))
    settings: dict[str, Any] = {"failure": 0.1, "kappa": kappa_of(environment)}
    half = np.minimum(math.sqrt(3 * environment.preference_variance), truth).max(axis=1)
    sigma = math.sqrt(objectives / 3) * half

    held = arms_prior_of(arm_sums)
    for t in range(1, rounds + 1):
        assign(blocks, PROTOCOLS[environment.protocol], stream)
        # A user's sums change within the round, the arms' only after it, and nobody reads another user's.
        hidden = variance_bound(arm_sums, user_sums, estimate=ridge, **settings)
        value, bonus, chosen = np.empty((5, users, arms)), np.empty((5, users, arms)), np.empty((users, arms))
        asked = variance_bound(arm_sums, user_sums, estimate=Estimate(kind=Kind.STATED), failure=0.1)
        known = variance_bound(arm_sums, user_sums, estimate=Estimate(kind=Kind.KNOWN), failure=0.1, known=truth)
        for kind, bound in enumerate((hidden, asked, known)):
            value[kind], bonus[kind] = bound.value, bound.reward_bonus + bound.preference_bonus
        value[3] = hidden.value
        size = environment.offer_size
        means_now = np.where(arm_sums.pulls[:, None] > 0, reward_means(arm_sums), arms_prior_of(arm_sums).mean)
        value[4] = regress(user_sums, SCORED.estimate(objectives))[0] @ means_now.T
        for n in range(users):
            scored = policies.scores(paper, arms=arm_sums, users=user_sums, user=n)
            bonus[3, n] = scored - hidden.value[n] if t > 1 else math.nan  # ĉ₁ is 1/D to the policy and 0 to the bound
            for block in np.arange(arms).reshape(-1, size):
                total = policies.scores(SCORED, arms=arm_sums, users=user_sums, user=n, offer=block)
                bonus[4, n, block] = total - value[4, n, block]
                chosen[n, block] = policies.scores(
                    SCORED, arms=arm_sums, users=user_sums, user=n, offer=block, arms_prior=held
                )
        distance = confidence_set(user_sums, ridge).distance(truth) if t > 1 else np.linalg.norm(truth, axis=1)
        yield Moment(
            value,
            bonus,
            arm_sums.pulls.copy(),
            truth @ means.T,
            float((distance / hidden.radius).max()),
            float((sigma / hidden.noise).max()),
        )
        now = []
        for n in range(users):
            offer = np.arange(size) + (0 if environment.protocol == "all" else int(blocks[n]) * size)
            fresh = np.where(arm_sums.pulls >= 1, value[0, n], np.inf)
            scores = {
                "bound": value[0, n] + bonus[0, n],
                "greedy": fresh,
                "recommended": chosen[n],
                "random": np.zeros(arms),
            }[choice][offer]
            arm = int(offer[pick(np.ascontiguousarray(scores), size, policy_stream)])
            room, said = np.empty(objectives + 1), np.empty(objectives)
            overall = type(environment).draw(
                room, said, arm, n, means, truth, environment.numbers(), True, stream, spare, dimensions(objectives)
            )
            now.append((n, arm, room[:objectives], overall, said))
        for n, arm, reward, overall, said in now:
            user_sums.observe(n, reward, overall, said)
            arm_sums.observe(arm, reward, overall)
        if fitted_after(t + 1) == t:  # a policy fits what arms have in common ever more rarely
            held = arms_prior_of(arm_sums)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("environment", [BETA, COINS, Bounded(users=2, arms=5, protocol="all")], ids=lambda e: e.reward)
def test_the_loop_sees_what_the_sums_give(environment: Bounded, choice: str) -> None:
    rounds, trials = 40, 3
    seen = seen_of(environment, rounds, trials, choice)
    for trial in range(trials):
        worst, used, radius, noise = np.zeros(5), np.zeros(5), 0.0, 0.0
        for t, moment in enumerate(replay(environment, rounds, trial, choice), start=1):
            short = moment.truth - moment.value
            kinds = [0, 1, 2] if t <= 2 else [0, 1, 2, 3, 4]
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(moment.bonus > 1e-7, short / moment.bonus, 0.0)
            for kind in kinds:
                worst[kind] = max(worst[kind], np.max(ratio[kind]))
                twice = np.where(moment.pulls >= 2, ratio[kind], 0.0)
                used[kind] = max(used[kind], np.max(twice))
                assert seen.failed[trial, t - 1, kind] == (short[kind] > moment.bonus[kind]).sum()
                n, arm = trial % environment.users, (trial // environment.users) % environment.arm_count
                for which, i in enumerate((int(moment.truth[n].argmax()), arm)):
                    assert seen.bonus[trial, t - 1, which, kind] == pytest.approx(
                        moment.bonus[kind, n, i], rel=1e-6, abs=1e-6
                    )
                    assert seen.error[trial, t - 1, which, kind] == pytest.approx(abs(short[kind, n, i]), abs=1e-9)
            radius, noise = max(radius, moment.radius_ratio), max(noise, moment.noise_ratio)
        np.testing.assert_allclose(seen.worst[trial, :3], worst[:3], rtol=1e-7)
        np.testing.assert_allclose(seen.used[trial, :3], used[:3], rtol=1e-7)
        assert seen.worst_radius[trial] == pytest.approx(radius, rel=1e-7)
        assert seen.worst_noise[trial] == pytest.approx(noise, rel=1e-7)


def test_the_score_beside_the_bound_is_that_of_the_policy_as_it_stands() -> None:
    """The policy's fields and no copies of them; and the sums that it shares with the bound are formed its way."""
    rules = study._rules(BETA, 0.1, 1.0, 1.0)
    assert policies.PrucbHpV(shared=False) == study.POLICY
    estimate = study.POLICY.estimate(objectives=3)
    assert (rules.ridge, rules.omega, rules.level) == (estimate.ridge, estimate.omega, estimate.first)


def test_threads_and_chunks_change_nothing() -> None:
    alone = seen_of(COINS, 30, 27, "recommended")
    together = seen_of(COINS, 30, 27, "recommended", threads=3)
    assert all(np.array_equal(one, other) for one, other in zip(alone, together, strict=True))


# ---- what is found


@pytest.fixture(scope="module", params=["beta", "bernoulli"])
def found(request: pytest.FixtureRequest) -> Coverage:
    return coverage(Bounded(reward=request.param), rounds=300, trials=400, seed=1)


def test_a_short_run_holds_as_often_as_promised(found: Coverage) -> None:
    assert found.holds
    ours = found.statements.where(derived=True)
    assert len(ours) == 5
    assert (ours["held"] >= ours["stated"]).all()
    assert set(ours["stated"].tolist()) == {0.95, 0.975}
    assert (found.rounds.where(bound="hidden")["all"] == 1.0).all()


def test_the_smaller_constants_hold_mostly_and_not_always(found: Coverage) -> None:
    rounds = found.rounds.where(bound="smaller")
    assert (rounds["pairs"] > rounds["all"]).all()
    assert 0.8 < rounds["pairs"][-1] < 1.0
    assert rounds["all"][-1] < 0.95


def test_the_known_preferences_bound_is_the_tightest_and_the_papers_the_widest(found: Coverage) -> None:
    last = {row["bound"]: row for row in found.tightness.where(round=300, arm="best").rows()}
    assert last["smaller"]["width"] < last["known"]["width"] < last["hidden"]["width"] == 1.0 < last["paper"]["width"]
    for bound, row in last.items():  # but for prucb-hp-v's, which has next to none for the arm that is pulled most
        assert row["ratio"] > 1.0 or bound == "smaller"


@pytest.mark.parametrize("kind", KINDS[:3])
def test_a_bound_that_was_shrunk_fails(kind: str) -> None:
    shrunk = coverage(Bounded(reward="bernoulli"), rounds=300, trials=400, seed=1, scale=0.1)
    (row,) = shrunk.statements.where(statement=f"{kind}: every upper bound").rows()
    assert row["high"] < row["stated"]
    assert not shrunk.holds
    ellipsoids = shrunk.statements.where(statement="hidden: every ellipsoid holds c̄")
    assert ellipsoids["held"][0] == 1.0, "what was not shrunk holds"


def test_what_it_could_shrink_to_is_what_it_then_holds_at() -> None:
    environment = Bounded(reward="bernoulli", arms=10)
    whole = coverage(environment, rounds=100, trials=300, seed=2, choice="random")
    (used,) = whole.statements.where(statement="known: every upper bound")["shrink"].tolist()
    halved = coverage(environment, rounds=100, trials=300, seed=2, choice="random", scale=0.5)
    (again,) = halved.statements.where(statement="known: every upper bound")["shrink"].tolist()
    assert again == pytest.approx(used)
    assert 0.2 < used < 0.9


def test_a_kappa_that_is_too_small_is_caught() -> None:
    """Eight objectives, one of which varies sixteen times as much as the rest: κ = 16, and 1 is a false claim."""
    environment = Bounded(users=1, block_size=2, objectives=8, preference_variance=0.05)
    assert kappa_of(environment) == pytest.approx(16.0)
    false = coverage(environment, rounds=3000, trials=40, seed=1, kappa=1.0)
    (row,) = false.statements.where(statement="hidden: σ is within its bound").rows()
    assert row["held"] < 0.5
    assert not false.holds
    assert coverage(environment, rounds=3000, trials=40, seed=1).holds


@pytest.mark.parametrize("variance", [0.0, 0.0005, 0.004, 0.5])
@pytest.mark.parametrize("objectives", [1, 2, 5])
def test_kappa_is_that_of_the_preferences_drawn(objectives: int, variance: float) -> None:
    environment = Bounded(users=1, block_size=1, objectives=objectives, preference_variance=variance)
    means, truth = instance_of(environment, 1, 0)
    stream, spare, room = stream_for(1, 0, ENVIRONMENT), stream_for(1, 0, STATED), np.empty(objectives + 1)
    drawn = np.empty((4000, objectives))
    for row in drawn:
        numbers, dims = environment.numbers(), dimensions(objectives)
        type(environment).draw(room, row, 0, 0, means, truth, numbers, True, stream, spare, dims)
    variances = drawn.var(axis=0)
    expected = 1.0 if variance == 0.0 else variances.max() / variances.min()
    assert kappa_of(environment) == pytest.approx(expected, rel=0.12)


def test_random_preferences_have_no_kappa() -> None:
    assert kappa_of(Bounded(preference="random")) == math.inf
    assert coverage(Bounded(preference="random"), rounds=50, trials=50).holds


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": 0},
        {"trials": 0},
        {"seed": -1},
        {"failure": 1.0},
        {"choice": "clever"},
        {"marks": [0]},
        {"marks": [11]},
        {"marks": []},
        {"kappa": 0.5},
        {"scale": 0.0},
    ],
    ids=repr,
)
def test_bad_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        coverage(BETA, **({"rounds": 10, "trials": 2} | wrong))


def test_one_objective_is_refused() -> None:
    with pytest.raises(InputError, match="at least 2 objectives"):
        coverage(Bounded(objectives=1), rounds=10, trials=2)


# ---- the command

SMALL = ["coverage", "--trials", "60", "--rounds", "50"]


def test_the_command_prints_a_table_for_each_reward(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SMALL) == 0
    printed = capsys.readouterr().out
    assert "beta rewards" in printed
    assert "bernoulli rewards" in printed
    assert "κ = 4.32" in printed
    assert printed.count("hidden: every upper bound") == 2


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--reward", "beta", "--marks", "5,50", "--format", "json", "--preference", "random"]) == 0

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    (document,) = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert document["holds"] is True
    assert document["settings"]["kappa"] is None  # infinite
    assert document["settings"]["environment"]["reward"] == "beta"
    assert {row["round"] for row in document["rounds"]} == {5, 50}
    found = coverage(Bounded(preference="random"), rounds=50, trials=60, marks=[5, 50])
    assert document["statements"][0]["shrink"] == found.statements["shrink"][0]


def test_the_command_says_by_its_exit_code_that_a_bound_failed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--scale", "0.02", "--reward", "bernoulli"]) == 1
    assert "bonuses × 0.02" in capsys.readouterr().out


@pytest.mark.parametrize(
    "wrong",
    [["--marks", "a"], ["--marks", "51"], ["--choice", "best"], ["--reward", "gold"], ["--threads", "0"]],
    ids=repr,
)
def test_bad_input_is_one_sentence(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, *wrong]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert "pamo: " in error


def test_the_text_shows_what_was_found(found: Coverage) -> None:
    text = text_of(found)
    for kind in KINDS:
        assert text.count(f"\n{kind} ") == 3
    assert "100.00%" in text
