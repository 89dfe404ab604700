"""What every policy of the registry owes: its description, checked hyperparameters, scores from the sums."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pamo import policies
from pamo.errors import InputError
from pamo.estimators import Kind, common_to
from pamo.policies import Feedback, Shape
from pamo.statistics import ArmStatistics, UserStatistics
from tests.looped import LOOPED

ALL = list(policies.available())

# The design's table and our own. A policy that is added later is held to the tests below, and not to this list.
DESIGN = {
    "prucb-hp-v": (Feedback.REWARD, Feedback.OVERALL),
    "prucb-up-v": (Feedback.REWARD, Feedback.STATED),
    "prucb-kp-v": (Feedback.REWARD, Feedback.TRUE),
    "prts": (Feedback.REWARD, Feedback.OVERALL),
    "prucb-hp": (Feedback.REWARD, Feedback.OVERALL),
    "prucb-up": (Feedback.REWARD, Feedback.STATED),
    "prucb-kp": (Feedback.REWARD, Feedback.TRUE),
    "s-ucb": (Feedback.REWARD,),
    "s-moss": (Feedback.REWARD,),
    "pareto-ucb": (Feedback.REWARD,),
    "pareto-ts": (Feedback.REWARD,),
    "oful": (Feedback.REWARD, Feedback.OVERALL),
    "ucb": (Feedback.OVERALL,),
    "moss": (Feedback.OVERALL,),
    "ucb-per-user": (Feedback.OVERALL,),
    "greedy": (Feedback.REWARD, Feedback.OVERALL),
}


def test_the_designs_policies_are_there_and_read_what_they_may() -> None:
    assert {name: policies.REGISTRY[name].reads for name in DESIGN} == DESIGN


@pytest.mark.parametrize("name", ALL)
def test_a_policy_says_what_it_is(name: str) -> None:
    cls = policies.REGISTRY[name]
    assert cls.id == name
    for text in (cls.summary, cls.formula, cls.reference):
        assert text.strip()
        assert "\n" not in text
    assert "Reference:" in (cls.__doc__ or "")
    assert ">>>" in (cls.__doc__ or "")
    assert all(isinstance(kind, Feedback) for kind in cls.reads)
    estimate = cls().estimate(3)
    assert (Feedback.STATED in cls.reads) == (estimate.kind == Kind.STATED)
    assert (Feedback.TRUE in cls.reads) == (estimate.kind == Kind.KNOWN)
    if estimate.kind == Kind.RIDGE:
        assert {Feedback.REWARD, Feedback.OVERALL} <= set(cls.reads)


@pytest.mark.parametrize("name", ALL)
def test_a_policy_is_frozen_and_has_its_defaults(name: str) -> None:
    policy = policies.create(name)
    assert policy == policies.create(name)
    assert policy.changed == {}
    assert policy.label == name
    for field in dataclasses.fields(policy):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(policy, field.name, 1.0)


def test_the_defaults_are_the_papers() -> None:
    hidden = policies.PrucbHp()
    assert (hidden.alpha, hidden.beta, hidden.ridge, hidden.radius) == (1.0, 0.1, 1.0, "experiments")
    estimate = hidden.estimate(4)
    assert (estimate.weighted, estimate.omega, estimate.first) == (True, 4.0, 0.25)  # ω = D, ĉ₁ = 1/D
    assert policies.PrucbUp().estimate(4).first == 0.0
    assert policies.Oful().epsilon == 0.05
    assert not policies.Oful().estimate(4).weighted


@pytest.mark.parametrize("name", ALL)
def test_numbers_that_are_none_are_refused(name: str) -> None:
    for field, default in policies.create(name).settings.items():
        if isinstance(default, float):
            for value in (math.nan, math.inf, -1.0):
                with pytest.raises(InputError, match=f"{name}: expected .*{field}"):
                    policies.create(name, **{field: value})


# The first number drawn is for the first arm: what these three owe is left to the witness.
WITHOUT_DRAWS = [name for name in LOOPED[:-2] if name not in ("pareto-ts", "oful", "prts")]


@pytest.mark.parametrize("name", WITHOUT_DRAWS)
def test_scores_do_not_depend_on_the_order_of_the_offer_or_on_other_users(name: str) -> None:
    generator = np.random.default_rng(4)
    arms, users = ArmStatistics.zeros(arms=5, objectives=3), UserStatistics.zeros(users=3, objectives=3)
    own = ArmStatistics.zeros(arms=5, objectives=3)
    for k in range(60):
        arm, user, reward, c = k % 5, k % 3, generator.random(3), generator.random(3)
        arms.observe(arm, reward, float(c @ reward))
        users.observe(user, reward, float(c @ reward), c)
        if user == 1:
            own.observe(arm, reward, float(c @ reward))
    population = common_to(users, policies.create(name).estimate(3))  # all that one user may know of the others
    given: dict[str, Any] = {"arms": arms, "horizon": 100, "own": own, "population": population}
    policy, known = policies.create(name), np.full((3, 3), 0.4)
    forward = policies.scores(policy, users=users, user=1, offer=[4, 0, 2], known=known, **given)
    backward = policies.scores(policy, users=users, user=1, offer=[2, 0, 4], known=known, **given)
    np.testing.assert_array_equal(forward, backward[::-1])
    alone = UserStatistics.zeros(users=3, objectives=3)
    for field in dataclasses.fields(users):
        getattr(alone, field.name)[1] = getattr(users, field.name)[1]
    np.testing.assert_array_equal(
        policies.scores(policy, users=alone, user=1, offer=[4, 0, 2], known=known, **given), forward
    )
    assert np.isfinite(forward).all()


@pytest.mark.parametrize("name", WITHOUT_DRAWS)
@pytest.mark.parametrize("objectives", [1, 3, 9])
def test_arms_of_which_the_same_was_seen_score_the_same_to_the_last_bit(name: str, objectives: int) -> None:
    """However many are offered: vector lanes and what is left over must round alike, or ties would lean."""
    generator = np.random.default_rng(objectives)
    for count in (*range(1, 21), 33):
        arms = ArmStatistics.zeros(arms=count, objectives=objectives)
        users = UserStatistics.zeros(users=1, objectives=objectives)
        for _ in range(7):
            reward, c = generator.random(objectives), generator.random(objectives)
            arms.observe(range(count), np.tile(reward, (count, 1)), np.full(count, c @ reward))
            users.observe(0, reward, float(c @ reward), c)
        scores = policies.scores(
            policies.create(name), arms=arms, users=users, horizon=100, own=arms, known=np.full((1, objectives), 0.3)
        )
        assert (scores == scores[0]).all()


ARMS = ArmStatistics.zeros(arms=2, objectives=2)
USERS = UserStatistics.zeros(users=1, objectives=2)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: policies.create("prucb"), "unknown policy 'prucb'; did you mean 'prucb-"),
        (lambda: policies.create("oful", eps=0.1), "oful has no hyperparameter 'eps'; it takes: epsilon, ridge"),
        (lambda: policies.create("ucb", alpha=1.0), "ucb has no hyperparameter 'alpha'; it takes: none"),
        (lambda: policies.create("oful", epsilon="much"), "oful: expected .*epsilon.* got .*much"),
        (lambda: policies.create("oful", epsilon=1.5), "oful: expected epsilon between 0 and 1, got .*1.5"),
        (lambda: policies.create("prucb-hp", radius="small"), "expected radius to be experiments or theory"),
        (lambda: policies.create("prucb-hp", omega=0.0), "expected omega > 0, or none for D"),
        (lambda: policies.create("prucb-hp", failure=1.0), "expected 0 < failure < 1"),
        (lambda: policies.create("greedy", ridge=0.0), "greedy: expected ridge > 0"),
        (lambda: policies.parse("oful:0.1"), "expected hyperparameters as oful:name=value,name=value, got '0.1'"),
        (lambda: policies.labels([policies.create("ucb")] * 2), "expected each policy once, got 'ucb' 2 times"),
        (
            lambda: policies.create("moss").hyperparameters(Shape(users=1, arms=2, objectives=2, horizon=None)),
            "moss needs the horizon .* and none was given",
        ),
        (
            lambda: policies.scores(policies.create("s-moss"), arms=ARMS, users=USERS),
            "s-moss needs the horizon .* such as prucb-hp",
        ),
        (
            lambda: policies.scores(policies.create("ucb"), arms=ARMS, users=USERS, offer=[0, 2]),
            r"an offer of distinct arms from 0 to 1, got \[0, 2\]",
        ),
        (
            lambda: policies.scores(policies.create("ucb"), arms=ARMS, users=USERS, offer=[1, 1]),
            r"an offer of distinct arms from 0 to 1, got \[1, 1\]",
        ),
        (
            lambda: policies.scores(policies.create("ucb"), arms=ARMS, users=USERS, offer=[0.7]),
            r"an offer of distinct arms from 0 to 1, got \[0.7\]",
        ),
        (
            lambda: policies.scores(policies.create("ucb"), arms=ARMS, users=USERS, offer=[True, False]),
            r"an offer of distinct arms from 0 to 1, got \[True, False\]",
        ),
        (
            lambda: policies.scores(policies.create("ucb"), arms=ARMS, users=USERS, offer=[]),
            r"an offer of distinct arms from 0 to 1, got \[\]",
        ),
        (
            lambda: policies.scores(policies.create("ucb"), arms=ARMS, users=USERS, user=1),
            "expected user from 0 to 0, got 1",
        ),
        (
            lambda: policies.scores(
                policies.create("ucb"), arms=ARMS, users=UserStatistics.zeros(users=1, objectives=3)
            ),
            "of one number of objectives, got 2 and 3",
        ),
        (
            lambda: policies.scores(policies.create("ucb-per-user"), arms=ARMS, users=USERS),
            "ucb-per-user reads the user's own pulls of each arm: pass own=",
        ),
        (
            lambda: policies.scores(policies.create("prucb-kp"), arms=ARMS, users=USERS),
            r"expected the known preferences with shape \(1, 2\)",
        ),
    ],
)
def test_bad_input_meets_a_sentence(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call()
