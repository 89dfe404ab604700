"""Each policy's kernel against its plain witness, decision by decision, and the compiled loop against its replica."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pamo import environments, policies, simulate
from pamo.environments import PROTOCOLS, Environment
from pamo.policies import Policy
from pamo.simulation import PolicyResult
from tests import witness, witness_spread
from tests.looped import EXTENDED
from tests.replica import Totals, play
from tests.witness import TOLERANCE, Verdict

OBJECTIVES = (1, 3, 9)  # 9: where kernels are no longer compiled for one number of objectives

WITNESSES = witness.WITNESSES | witness_spread.WITNESSES

ESTIMATED: dict[str, Any] = {
    "prior_pulls": st.sampled_from([0.5, 10.0]),
    "reward_scale": st.sampled_from([0.0, 0.3, 1.0]),
}
HIDDEN: dict[str, Any] = {
    "preference_scale": st.sampled_from([0.0, 0.1, 1.0]),
    "ridge": st.sampled_from([0.1, 1.0, 4.0]),
    "non_negative": st.booleans(),
    "levels": st.booleans(),
}

HYPERPARAMETERS: dict[str, dict[str, Any]] = {
    "prucb-hp": {
        "alpha": st.sampled_from([0.3, 1.0, 2.5]),
        "beta": st.sampled_from([0.0, 0.1, 1.0]),
        "ridge": st.sampled_from([0.1, 1.0, 4.0]),
        "omega": st.sampled_from([None, 0.5, 7.0]),
        "radius": st.sampled_from(["experiments", "theory"]),
        "failure": st.sampled_from([0.01, 0.2]),
        "sub_gaussian": st.sampled_from([0.5, 1.0]),
        "reward_bonus": st.sampled_from([0.0, 1.0]),
        "weighted": st.booleans(),
        "first_pulls": st.booleans(),
    },
    "prucb-up": {"alpha": st.sampled_from([0.3, 1.0, 2.5])},
    "prucb-kp": {"alpha": st.sampled_from([0.3, 1.0, 2.5])},
    "prucb-hp-v": ESTIMATED | HIDDEN | {"few_pulls": st.sampled_from([0.0, 6.0])},
    "prucb-up-v": ESTIMATED | {"few_pulls": st.sampled_from([0.0, 6.0])},
    "prucb-kp-v": ESTIMATED | {"few_pulls": st.sampled_from([0.0, 6.0])},
    "prts": ESTIMATED | HIDDEN,
    "oful": {"epsilon": st.sampled_from([0.0, 0.05, 0.5]), "ridge": st.sampled_from([0.1, 1.0])},
    "greedy": {"ridge": st.sampled_from([0.1, 1.0]), "omega": st.sampled_from([None, 0.5])},
    "sw-ucb": {"window": st.sampled_from([1, 4, 10])},
    "sw-pareto-ucb": {"window": st.sampled_from([1, 4, 10])},
    "d-ucb": {"discount": st.sampled_from([0.5, 0.9, 1.0])},
    "d-pareto-ucb": {"discount": st.sampled_from([0.5, 0.9, 1.0])},
    "exp3": {"mix": st.sampled_from([0.1, 1.0])},
    "pareto-kg": {"noise": st.sampled_from([0.1, 1.0])},
    "mo-ogde": {"step": st.sampled_from([0.1, 2.0])},
    "pareto-ts-cov": {"prior_pulls": st.sampled_from([0.5, 5.0]), "together": st.booleans()},
    "pareto-linucb": {"ridge": st.sampled_from([0.1, 2.0]), "width": st.sampled_from([0.0, 0.5])},
    "its": {
        "noise": st.sampled_from([0.0, 0.3]),
        "preference_noise": st.sampled_from([0.1, 1.0]),
        "ridge": st.sampled_from([0.5, 2.0]),
        "always": st.booleans(),
    },
    "lex": {"near": st.sampled_from([0.0, 0.2, 0.5]), "scale": st.sampled_from([0.01, 0.5])},
}

# The rest of how a hidden preference is estimated: only what is shared has weights of its own, or a bias.
SHARING = st.one_of(
    st.just({"shared": False}),
    st.fixed_dictionaries({"elasticity": st.sampled_from([None, 0.0, 0.5, 1.0]), "bias": st.booleans()}),
)


BLOCKS = [name for name in PROTOCOLS if name != "subset"]
"""Offers that are blocks of arms: any subset is one of the live worlds, whose twin is in test_live.py."""


@st.composite
def worlds(draw: st.DrawFn, protocol: str, several: tuple[int, ...] = OBJECTIVES) -> Environment:
    users = draw(st.integers(1, 4))
    block_size = draw(st.sampled_from([1, 2, 3, 3, 4, 13]))  # 13: large offers are scored in another way
    spare_blocks = draw(st.integers(0, 1))
    sizes: dict[str, Any] = {
        "users": users,
        "block_size": block_size,
        "arms": (users + spare_blocks) * block_size,
        "objectives": draw(st.sampled_from(several)),
        "protocol": protocol,
        "preference": draw(st.sampled_from(["predefined", "random"])),
    }
    sizes["reward_variance"] = draw(st.sampled_from([0.01, 0.25]))  # 0.25: betas down to 1e-300
    if draw(st.booleans()):
        return environments.Gaussian(**sizes)
    return environments.Bounded(**sizes, reward=draw(st.sampled_from(["beta", "bernoulli"])))


@st.composite
def variants(draw: st.DrawFn, name: str) -> Policy:
    if draw(st.booleans()):
        return policies.create(name)
    chosen = {key: draw(values) for key, values in HYPERPARAMETERS.get(name, {}).items()}
    if "non_negative" in chosen:
        chosen |= draw(SHARING)
    return policies.create(name, **chosen)


def check_decision(verdict: Verdict, scores: np.ndarray[Any, Any], picked: int) -> None:
    """The kernel's scores are the witness's, its highest arms are allowed, and one of them was picked."""
    if verdict.scores is not None:
        np.testing.assert_allclose(scores, verdict.scores, rtol=verdict.tolerance, atol=verdict.tolerance)
    chosen = scores == scores.max()
    assert (verdict.certain <= chosen).all()
    assert (chosen <= verdict.possible).all()
    assert chosen[picked]


def close(actual: object, expected: object, tolerance: float = TOLERANCE) -> None:
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=tolerance, atol=tolerance)


def check_totals(outcome: PolicyResult, place: int, totals: Totals, tolerance: float) -> None:
    """The loop's records after a round are what the replica comes to."""
    users = outcome.regret_by_user.shape[2]
    close(outcome.regret_by_user[0, place], totals.regret_by_user)
    close(outcome.pareto_regret[0, place], totals.pareto_regret)
    close(outcome.overall[0, place], totals.overall)
    close(outcome.preference_error[0, place], totals.preference_error, tolerance)
    close(outcome.optimal_share[0, place] * outcome.rounds[place] * users, totals.optimal)


def compare(policy: Policy, environment: Environment, rounds: int, seed: int, trial: int) -> tuple[int, int]:
    """Play a trial and check all of it; return how many of its rounds the loop could be held to, and of how many."""
    result = simulate(
        [policy], environment, rounds=rounds, trials=1, first_trial=trial, seed=seed, checkpoints=rounds, threads=1
    )
    outcome, settled = result[policy.id], 0
    alike = True  # until rounding decides: from there on the loop may have gone another way
    for place, (decisions, totals) in enumerate(play(policy, environment, rounds=rounds, seed=seed, trial=trial)):
        for question, scores, stream_after, picked in decisions:
            verdict = WITNESSES[policy.id](question)
            check_decision(verdict, scores, picked)
            assert np.array_equal(question.stream, stream_after), "the kernel and the witness drew differently"
            alike = alike and verdict.settled
        if alike:
            tolerance = TOLERANCE
            if policy.id in ("prucb-hp-v", "prts"):
                tolerance += max(witness_spread.rounding(question) for question in totals.questions)
            check_totals(outcome, place, totals, tolerance)
            settled += 1
    if alike:
        assert outcome.pulls[0].tolist() == totals.pulls.tolist()
    return settled, rounds


@pytest.mark.parametrize("protocol", BLOCKS)
@pytest.mark.parametrize("name", [name for name in WITNESSES if name not in EXTENDED])
@settings(max_examples=12)
@given(data=st.data())
def test_the_kernel_picks_what_the_witness_allows_and_the_loop_agrees(
    name: str, protocol: str, data: st.DataObject
) -> None:
    environment = data.draw(worlds(protocol))
    policy = data.draw(variants(name))
    rounds = data.draw(st.integers(5, 36))
    compare(policy, environment, rounds, data.draw(st.integers(0, 2**40)), data.draw(st.integers(0, 5)))


@pytest.mark.parametrize("name", EXTENDED)
@settings(max_examples=20)
@given(data=st.data())
def test_so_do_those_of_the_other_families(name: str, data: st.DataObject) -> None:
    """With three objectives alone: all that differs with their number is what the others' tests show."""
    environment = data.draw(worlds(data.draw(st.sampled_from(BLOCKS)), (3,)))
    rounds, seed, trial = data.draw(st.integers(5, 36)), data.draw(st.integers(0, 2**40)), data.draw(st.integers(0, 5))
    compare(data.draw(variants(name)), environment, rounds, seed, trial)


@pytest.mark.parametrize("protocol", BLOCKS)
@pytest.mark.parametrize("name", [name for name in WITNESSES if name not in EXTENDED])
def test_rounding_has_no_say_where_rewards_are_continuous(name: str, protocol: str) -> None:
    environment = environments.Gaussian(users=3, block_size=3, objectives=3, protocol=protocol)
    settled, rounds = compare(policies.create(name), environment, rounds=40, seed=20, trial=1)
    assert settled == rounds


@pytest.mark.parametrize("arms", [14, 24])
def test_so_it_is_among_many_arms(arms: int) -> None:
    environment = environments.Gaussian(users=2, arms=arms, objectives=3, protocol="all", reward_variance=0.2)
    settled, rounds = compare(policies.create("prucb-hp-v"), environment, rounds=30, seed=20, trial=1)
    assert settled == rounds


def test_every_policy_has_a_witness() -> None:
    assert set(policies.available()) == set(WITNESSES)
