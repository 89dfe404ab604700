"""The compiled call and the slow way, `policies.scores` on the same sums, agree decision by decision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pamo import Engine, policies
from pamo.arrays import Floats
from pamo.engine.kernels import SCAN, rank
from pamo.engine.plans import Chooser
from pamo.streams import POLICY, stream_for
from tests.engine.worlds import World
from tests.looped import LOOPED

NAMES = [name for name in LOOPED[:-2] if name not in ("moss", "s-moss", "ucb-per-user")]
DRAWN = ("prts", "pareto-ts", "oful")


def slow(engine: Engine, policy: policies.Policy, user: str, offer: list[str], preference: Any, pending: Floats) -> Any:
    """Return the scores of an offer, worked out from the store's sums; pending: pulls that were under way."""
    table = engine.store.arms()
    known = None if preference is None else [list(preference.values())]
    return policies.scores(
        policy,
        arms=table.statistics.copy(),
        users=engine.store.users([user]),
        offer=[table.rows[arm] for arm in offer],
        known=known,
        population=engine.population,
        arms_prior=engine.core.decider.arms_prior,
        pending=pending,
    )


def check(engine: Engine, policy: policies.Policy, user: str, offer: list[str], preference: Any = None) -> None:
    """Decide, and compare the ranking, the propensity and the parts of the score with the slow way."""
    k = min(3, len(offer))
    pending = engine.core.decider.under_way.line.copy() if len(engine.core.decider.under_way.line) else np.zeros(1)
    decision = engine.decide(user, arms=offer, preference=preference, k=k)
    scores = slow(engine, policy, user, offer, preference, pending)
    ranked = [scores[offer.index(arm)] for arm in decision.arms]
    np.testing.assert_allclose(ranked, np.sort(scores)[::-1][:k], rtol=1e-9, atol=1e-12)
    assert decision.propensity == pytest.approx(1.0 / np.sum(scores >= scores.max() - 1e-12))
    chosen = engine.explain(decision).chosen
    if chosen is not None:
        assert chosen.score == pytest.approx(ranked[0], rel=1e-9, abs=1e-12)
    else:
        assert policy.estimate(engine.population.mean.size).kind == 0


@pytest.mark.parametrize("objectives", [1, 3, 10])
@pytest.mark.parametrize("mode", ["hidden", "stated", "known"])
def test_the_recommended_policies_score_as_the_slow_way_does(mode: str, objectives: int) -> None:
    world = World(objectives=objectives, arms=5, seed=objectives)
    with world.engine() as engine:
        for _ in range(12):
            for user in world.users:
                offer = world.numbers.permutation(world.arms)[: world.numbers.integers(1, 6)].tolist()
                known = world.preference(user) if mode == "known" else None
                hidden = mode == "hidden" or not engine.store.users([user]).stated_count[0]
                policy = policies.recommended("hidden" if mode != "known" and hidden else mode)
                check(engine, policy, user, offer, known)
                world.answer(engine, engine.decide(user, arms=offer, preference=known), stated=mode == "stated")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in (*DRAWN, "prucb-kp", "prucb-kp-v")])
def test_every_policy_that_does_not_draw_scores_as_the_slow_way_does(name: str) -> None:
    world, policy = World(seed=3), policies.create(name)
    with world.engine(policy=name) as engine:
        for _ in range(8):
            for user in world.users:
                offer = world.numbers.permutation(world.arms)[:4].tolist()
                check(engine, policy, user, offer)
                world.answer(engine, engine.decide(user, arms=offer), stated=True)


@pytest.mark.parametrize("options", ["prucb-hp-v:bias=true", "prucb-hp-v:non_negative=true", "prucb-hp-v:shared=false"])
def test_the_options_of_the_estimate_hold(options: str) -> None:
    world = World(seed=4)
    with world.engine(policy=options) as engine:
        world.play(engine, 10)
        for user in [*world.users, "new"]:
            check(engine, policies.registry.parse(options), user, world.arms)


@pytest.mark.parametrize("name", DRAWN)
def test_a_policy_that_draws_says_how_likely_its_choice_was(name: str) -> None:
    world = World(arms=3, seed=5, noise=0.2)
    with world.engine(policy=name, draws=2000) as engine:
        world.play(engine, 5)
        arms, users = engine.store.arms().statistics.copy(), engine.store.users(["u1"])
        expected = policies.propensities(
            policies.create(name), arms=arms, users=users, population=engine.population, draws=4000
        )
        shares = np.zeros(3)
        for _ in range(600):
            decision = engine.decide("u1")
            row = engine.store.arms().rows[decision.arm]
            shares[row] += 1 / 600
            assert decision.propensity == pytest.approx(expected[row], abs=0.06)
        np.testing.assert_allclose(shares, expected, atol=0.08)


def test_more_arms_than_are_looked_at_in_one_call() -> None:
    world = World(arms=SCAN + 50, users=1, seed=6)
    with world.engine() as engine:
        for arm in [*world.arms[-30:], *world.arms[-30:]]:
            world.answer(engine, engine.decide("u0", arms=[arm]))
        engine.decide("u0")
        engine.decide("u0")  # by now each arm was looked at
        for start in range(SCAN + 20, SCAN + 45, 5):
            check(engine, policies.recommended(), "u0", world.arms[start : start + 5])


def test_an_arm_that_was_not_on_offer_changes_what_all_have_in_common() -> None:
    world = World(arms=4, users=1, seed=7, noise=0.3)
    with world.engine() as engine:
        for n in range(30):
            for arm in world.arms:  # after each one: the totals are summed from scratch only now and then
                world.answer(engine, engine.decide("u0", arms=[arm]))
                if n > 0:  # after the very first feedback the noise is what rounding has left of 0
                    check(engine, policies.recommended(), "u0", ["A0", "A1"])


@pytest.mark.parametrize("policy", ["recommended", "greedy"])
def test_many_at_once_are_as_one_by_one(policy: str) -> None:
    world = World(users=20, seed=8)
    with world.engine(policy=policy) as engine:
        world.play(engine, 6)
        known = world.preference("u3") if policy == "recommended" else None
        requests = [
            {"user": user, "arms": world.arms[n % 3 :], "k": 1 + n % 3, "preference": known if n == 3 else None}
            for n, user in enumerate(world.users)
        ]
        # Together are decided those of one policy and k; and each knows of the pulls before it.
        order = sorted(range(20), key=lambda n: (n % 3, n) if n != 3 else (3, n))
        made = {n: engine.decide(**requests[n]) for n in order}  # type: ignore[arg-type]
        one_by_one = [made[n] for n in range(20)]
        for one in one_by_one:
            engine.core.decider.under_way.forget(one.id)
        at_once = engine.decide_many(requests)
        assert [(d.user, d.arms, d.policy) for d in at_once] == [(d.user, d.arms, d.policy) for d in one_by_one]
        assert [d.details for d in at_once] == [d.details for d in one_by_one]
        assert len({d.id for d in at_once}) == 20
        assert engine.decide_many([]) == []
        assert [d.user for d in engine.decide_many(["u1", "nobody"])] == ["u1", "nobody"]


def test_the_estimated_kernel_reads_the_first_of_the_hidden_ones_hyperparameters() -> None:
    """The fast path hands the one the numbers of the other, to score without the preference bonus."""
    shape = policies.Shape(users=1, arms=1, objectives=3, horizon=None)
    settings: Any = {"reward_scale": 0.7, "prior_pulls": 3.0, "few_pulls": 2.0}
    hidden = policies.PrucbHpV(**settings, preference_scale=0.9).hyperparameters(shape)
    assert hidden[:3] == policies.PrucbUpV(**settings).hyperparameters(shape) == (0.7, 3.0, 2.0)


def test_arms_that_come_first_lend_the_others_no_bonus() -> None:
    """Greed has no bonus but for an arm that nobody has pulled."""
    world = World(arms=3, users=1, seed=9)
    with world.engine(policy="greedy") as engine:
        world.answer(engine, engine.decide("u0", arms=["A0"]))
        explanation = engine.explain(engine.decide("u0"))
        assert explanation.chosen is not None
        assert explanation.chosen.arm != "A0"
        assert (explanation.chosen.reward_bonus, explanation.chosen.preference_bonus) == (np.inf, 0.0)
        other = explanation.without_exploration
        assert other is not None
        assert other.arm == "A0"
        assert (other.reward_bonus, other.preference_bonus) == (0.0, 0.0)


def test_there_is_room_for_every_arm_that_a_kernel_may_write_of() -> None:
    chooser = Chooser(3, stream_for(0, 0, POLICY))
    for arms in (0, 2, 50):
        chooser.take(arms)
        rows, columns = chooser._scratch.shape
        assert rows >= 4
        assert columns >= max(arms, 4)


def test_all_arms_are_ranked_by_a_sort_and_ties_come_in_every_order_alike() -> None:
    numbers = np.random.default_rng(5)
    stream = stream_for(0, 0, POLICY)
    for count in (2, 3, 7, 64, 500):
        scores, heap = np.floor(numbers.normal(size=count) * 3.0), np.empty(count)
        offer = numbers.permutation(1000)[:count]
        for k in {1, 2, count // 2, count} - {0}:
            first = int(numbers.choice(np.flatnonzero(scores == scores.max())))
            picks = np.full(k, -1)
            picks[0] = offer[first]
            rank(picks, offer, scores, first, heap, stream)
            ranked = [scores[offer.tolist().index(arm)] for arm in picks]
            assert ranked == sorted(scores, reverse=True)[:k]
            assert len(set(picks)) == k
    # Of five arms the last four tie, and three are asked for: each of the 12 orders of the other two is as likely.
    tally: dict[tuple[int, ...], int] = {}
    for _ in range(12_000):
        picks = np.full(3, 4)
        rank(picks, np.arange(5), np.array([1.0, 1.0, 1.0, 1.0, 2.0]), 4, np.empty(5), stream)
        tally[tuple(picks[1:])] = tally.get(tuple(picks[1:]), 0) + 1
    assert len(tally) == 12
    assert sum((count - 1000) ** 2 / 1000 for count in tally.values()) < 31.3  # χ² of 11 degrees, once in a thousand
