"""Propensities against ties, integrals and counted choices; the recommended policies by name; their bad input."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import integrate, stats

from pamo import environments, policies, simulate
from pamo.cli import main
from pamo.errors import InputError
from pamo.estimators import Estimate, Kind, common_to, regress, reward_scatters
from pamo.policies import PULLS, Feedback, Policy, count_of, kernel, noise_at, scatter_at
from pamo.priors import arms_prior_of, sites_of
from pamo.statistics import ArmStatistics, UserStatistics
from pamo.streams import POLICY, stream_for
from tests.replica import play
from tests.witness import Question
from tests.witness_spread import fitted_after


def two_arms(objectives: int = 1) -> tuple[ArmStatistics, UserStatistics]:
    """Nine and five pulls of two arms that are nearly alike, by one user."""
    generator = np.random.default_rng(3)
    arms = ArmStatistics.zeros(arms=2, objectives=objectives)
    users = UserStatistics.zeros(users=1, objectives=objectives)
    arm = np.array([0] * 9 + [1] * 5)
    reward = 0.5 + 0.03 * arm[:, None] + 0.2 * generator.standard_normal((14, objectives))
    overall = reward.sum(axis=1) * (1.0 + 0.5 * generator.standard_normal(14))
    arms.observe(arm, reward, overall)
    users.observe(np.zeros(14, dtype=int), reward, overall)
    return arms, users


# ---- propensities


@pytest.mark.parametrize("name", ["prucb-hp", "prucb-hp-v", "greedy", "ucb"])
def test_a_policy_that_does_not_draw_is_certain(name: str) -> None:
    arms, users = two_arms(3)
    policy = policies.create(name)
    found = policies.propensities(policy, arms=arms, users=users)
    scores = policies.scores(policy, arms=arms, users=users)
    assert found.tolist() == (scores == scores.max()).astype(float).tolist()
    assert sorted(found.tolist()) == [0.0, 1.0]


def test_ties_are_shared_out() -> None:
    arms, users = ArmStatistics.zeros(arms=4, objectives=2), UserStatistics.zeros(users=1, objectives=2)
    arms.observe([0, 1, 2], [[0.5, 0.5], [0.5, 0.5], [0.1, 0.2]], overall=[0.5, 0.5, 0.1])
    users.observe([0, 0, 0], [[0.5, 0.5], [0.5, 0.5], [0.1, 0.2]], overall=[0.5, 0.5, 0.1])

    def found(name: str, offer: list[int]) -> list[float]:
        return list(policies.propensities(policies.create(name), arms=arms, users=users, offer=offer))

    assert found("greedy", [0, 1, 2]) == [0.5, 0.5, 0.0]
    assert found("prucb-hp-v", [2, 1, 0]) == [0.0, 0.5, 0.5]
    assert found("prucb-hp-v", [0, 1, 2, 3]) == [0.0, 0.0, 0.0, 1.0]  # never pulled, and so may be far better
    assert 0.1 < found("prts", [0, 3])[1] < 0.9  # or far worse


def test_epsilon_is_oful_s_propensity() -> None:
    """With probability ε a uniform pick: 1 − ε/2 for the better of two."""
    arms, users = two_arms(2)
    found = policies.propensities(policies.create("oful", epsilon=0.4), arms=arms, users=users, draws=20_000)
    assert max(found) == pytest.approx(0.8, abs=4.0 * math.sqrt(0.16 / 20_000))
    assert found.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("scales", [(0.5, 0.5), (1.0, 4.0), (1.0, 0.0)])
def test_the_propensities_of_prts_are_the_integral(scales: tuple[float, float]) -> None:
    """One objective: given c the two values are Student's t around c·r̂, as wide as |c|: its sign decides."""
    arms, users = two_arms()
    policy = policies.create("prts", reward_scale=scales[0], preference_scale=scales[1], prior_pulls=4.0)
    center, inverse, noise = regress(users, policy.estimate(1))
    mean = arms.reward_sum[:, 0] / arms.pulls
    scatter = arms.moments[:, 1, 1] - arms.pulls * mean**2
    common = scatter.sum() / (arms.pulls - 1.0).sum()
    freedom = arms.pulls - 1.0 + 4.0
    width = np.sqrt(scales[0] * (scatter + 4.0 * common) / freedom / arms.pulls)

    def first_is_better(sign: float) -> float:
        def density(x: float) -> float:
            below = stats.t.cdf((sign * (mean[0] - mean[1]) + width[0] * x) / width[1], freedom[1])
            return float(stats.t.pdf(x, freedom[0]) * below)

        return float(integrate.quad(density, -np.inf, np.inf)[0])

    spread = math.sqrt(scales[1] * float(noise[0]) * float(inverse[0, 0, 0]))
    positive = float(stats.norm.cdf(center[0, 0] / spread)) if spread > 0.0 else 1.0
    expected = positive * first_is_better(1.0) + (1.0 - positive) * first_is_better(-1.0)
    found = policies.propensities(policy, arms=arms, users=users, draws=20_000)
    assert found[0] == pytest.approx(expected, abs=4.0 * 0.5 / math.sqrt(20_000))
    assert 0.02 < expected < 0.98  # a case in which either may be pulled


def sums_of(q: Question, policy: Policy) -> dict[str, Any]:
    """Return what `propensities` is asked with at a question."""
    arms = ArmStatistics.zeros(arms=q.arms, objectives=q.objectives)
    users = UserStatistics.zeros(users=q.users, objectives=q.objectives)
    population, sites, arms_prior = common_to(users, policy.estimate(q.objectives)), None, arms_prior_of(arms)
    for k, pull in enumerate(q.earlier, start=1):
        arms.observe(pull.arm, pull.reward, pull.overall)
        users.observe(pull.user, pull.reward, pull.overall)
        if k == fitted_after(q.t) * q.users:
            population, arms_prior = common_to(users, policy.estimate(q.objectives)), arms_prior_of(arms)
            sites = sites_of(users, population)
    fitted = {"population": population, "sites": sites, "arms_prior": arms_prior}
    return {"arms": arms, "users": users, "user": q.user, "offer": q.offer} | fitted


def test_the_simulators_choices_come_with_the_propensities_of_prts() -> None:
    """Over many decisions, each arm is pulled as often as its propensities add up to, within four standard errors."""
    environment = environments.Gaussian(users=2, block_size=3, arms=6, objectives=2, reward_variance=0.25)
    policy = policies.create("prts")
    excess, variance, free = 0.0, 0.0, 0
    for trial in range(40):
        for decisions, _ in play(policy, environment, rounds=9, seed=6, trial=trial):
            for question, _, _, picked in decisions:
                if question.t < 5:
                    continue
                stream = stream_for(8, trial, POLICY)
                found = policies.propensities(policy, **sums_of(question, policy), stream=stream, draws=300)
                best = int(np.argmax(found))
                excess += float(picked == best) - found[best]
                variance += found[best] * (1.0 - found[best]) * (1.0 + 1.0 / 300)
                free += bool(found[best] < 0.95)
    assert free > 100
    assert abs(excess) < 4.0 * math.sqrt(variance)


def test_propensities_are_repeatable_and_follow_the_stream() -> None:
    arms, users = two_arms(2)
    given: dict[str, Any] = {"arms": arms, "users": users, "draws": 50}
    one, same = (policies.propensities(policies.create("prts"), **given) for _ in range(2))
    assert one.tolist() == same.tolist()
    streams = [stream_for(seed, 0, POLICY) for seed in range(4)]
    others = [policies.propensities(policies.create("prts"), **given, stream=stream).tolist() for stream in streams]
    assert len({tuple(other) for other in others}) > 1


# ---- what is recommended


@pytest.mark.parametrize(
    ("name", "mode", "expected"),
    [
        ("recommended", "hidden", "prucb-hp-v"),
        ("recommended-stated", "stated", "prucb-up-v"),
        ("recommended-known", "known", "prucb-kp-v"),
    ],
)
def test_the_recommended_policies_go_by_name(
    name: str, mode: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert policies.recommended(mode) == policies.create(name) == policies.parse(name) == policies.create(expected)
    assert policies.parse(f"{name}:few_pulls=2") == policies.create(expected, few_pulls=2)
    arguments = ["simulate", "--policy", f"{name}:few_pulls=2", "--rounds", "30", "--trials", "2", "--format", "json"]
    assert main(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document["policies"]) == [expected]
    assert document["policies"][expected]["hyperparameters"]["few_pulls"] == 2
    result = simulate([name], environments.Gaussian(), rounds=30, trials=2)
    assert list(result.policies) == [expected]


def test_the_recommended_policy_and_the_one_it_stands_for_are_one() -> None:
    with pytest.raises(InputError, match="expected each policy once, got 'prucb-hp-v' 2 times"):
        simulate(["recommended", "prucb-hp-v"], environments.Gaussian(), rounds=5, trials=1)


def test_the_recommended_policies_take_what_users_give() -> None:
    needed = {"hidden": "overall", "stated": "stated preference", "known": "true preference"}
    for mode, feedback in needed.items():
        assert [kind.value for kind in policies.recommended(mode).reads] == ["reward", feedback]
    assert set(policies.RECOMMENDED) == set(needed)


# ---- a policy of one's own that reads the spread


@kernel
def score_by_spread(scores, offered, t, arms, user, common, run, dims):
    noise = user[noise_at(count_of(dims))]
    for j in range(len(scores)):
        scores[j] = arms[scatter_at(count_of(dims)), j] - 1000.0 * (arms[PULLS, j] == 0.0) + 100.0 * noise


@dataclass(frozen=True, kw_only=True)
class Liveliest(Policy):
    """Pulls what varied most in the first objective, as CONTRIBUTING says a policy of variances may."""

    id: ClassVar[str] = "liveliest"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.OVERALL)
    kernel: ClassVar[Any] = score_by_spread
    reads_spread: ClassVar[bool] = True

    def estimate(self, objectives: int) -> Estimate:
        return Estimate(kind=Kind.RIDGE, weighted=True, centred=True, first=0.3, omega=5.0, non_negative=True)


def test_a_policy_of_ones_own_may_read_the_spread() -> None:
    arms, users = two_arms(2)
    scatter = reward_scatters(arms)[:2, 0, 0]
    noise = regress(users, Liveliest().estimate(2))[2][0]
    np.testing.assert_allclose(policies.scores(Liveliest(), arms=arms, users=users), scatter + 100.0 * noise)
    environment = environments.Gaussian(users=2, block_size=2, objectives=2)
    outcome = simulate([Liveliest()], environment, rounds=50, trials=2, checkpoints=50, seed=1)["liveliest"]
    totals = [totals for _, totals in play(Liveliest(), environment, rounds=50, seed=1, trial=1)]
    np.testing.assert_array_equal(outcome.pulls[1], totals[-1].pulls)
    np.testing.assert_allclose(outcome.preference_error[1], [total.preference_error for total in totals], rtol=1e-8)


# ---- bad input


class NotSpread(policies.Greedy):
    """Asks for a shared estimate without saying that it reads the spread."""

    def estimate(self, objectives: int) -> Estimate:
        return policies.PrucbHpV().estimate(objectives)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: policies.recommended("guessed"), "unknown mode 'guessed'.*hidden"),
        (lambda: policies.create("recomended"), "unknown policy 'recomended'; did you mean 'recommended"),
        (lambda: policies.create("prucb-hp-v", prior_pulls=0.0), "prucb-hp-v: expected prior_pulls > 0, got"),
        (lambda: policies.create("prucb-up-v", prior_pulls=-1.0), "prucb-up-v: expected prior_pulls > 0, got"),
        (lambda: policies.create("prucb-kp-v", few_pulls=-1.0), "prucb-kp-v: expected reward_scale and few_pulls ≥ 0"),
        (
            lambda: policies.create("prucb-hp-v", preference_scale=-0.1),
            "few_pulls and preference_scale ≥ 0",
        ),
        (lambda: policies.create("prts", preference_scale=-0.1), "prts: expected reward_scale ≥ 0 and preference_sc"),
        (lambda: policies.create("prts", ridge=0.0), "prts: expected ridge > 0, got"),
        (lambda: policies.create("prts", elasticity=1.5), "prts: expected elasticity from 0 to 1, or none to fit it"),
        (lambda: policies.create("prts", elasticity=math.nan), "expected elasticity to be a finite number or none"),
        (lambda: policies.create("prts", bias=1.0), "prts: expected bias to be true or false, got 1.0"),
        (
            lambda: policies.create("prucb-hp-v", non_negative="yes"),
            "non_negative to be true or false, got yes",
        ),
        (
            lambda: policies.create("prucb-hp-v", shared=False, bias=True),
            "bias only where shared is true",
        ),
        (
            lambda: policies.create("prts", shared=False, elasticity=0.5),
            "bias only where shared is true",
        ),
        (
            lambda: policies.create("prucb-kp-v", ridge=1.0),
            "has no hyperparameter 'ridge'; it takes: prior_p",
        ),
        (
            lambda: policies.propensities(policies.create("prts"), arms=two_arms()[0], users=two_arms()[1], draws=0),
            "expected at least one draw, got 0",
        ),
        (
            lambda: simulate([NotSpread()], environments.Gaussian(), rounds=5, trials=1),
            "greedy: a centred, shared or non-negative estimate needs the class attribute reads_spread",
        ),
    ],
)
def test_bad_input_meets_a_sentence(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call()
