"""The engine learns as well as the simulator does, from many threads too, and its prior follows the users."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from pamo import Engine, environments, policies, simulate
from pamo.compiling import dimensions
from pamo.engine import prior as prior_module
from pamo.priors import COUNT, population_of
from pamo.store.maintenance import verify
from pamo.streams import ENVIRONMENT, INSTANCE, stream_for
from tests.engine.worlds import World

ROUNDS, TRIALS, SEED = 150, 32, 3
SETTING = environments.Bounded(users=3, arms=6, objectives=3, protocol="all", block_size=2)


def driven(mode: str, trial: int) -> float:
    """Return the regret of an engine in the world that the simulator has in this trial, as far as its means go."""
    dims, numbers = dimensions(SETTING.objectives), SETTING.numbers()
    means, weights = np.empty((6, 3)), np.empty((3, 3))
    type(SETTING).instance(means, weights, numbers, stream_for(SEED, trial, INSTANCE), dims)
    stream, spare = stream_for(SEED, trial, ENVIRONMENT), stream_for(0, 0, ENVIRONMENT)
    names, users = ["a", "b", "c"], ["u0", "u1", "u2"]
    regret = 0.0
    with Engine(names, seed=trial) as engine:
        for i in range(6):
            engine.add_arm(f"{i}")
        for _ in range(ROUNDS):
            known = [dict(zip(names, row, strict=True)) if mode == "known" else None for row in weights.tolist()]
            made = engine.decide_many({"user": user, "preference": c} for user, c in zip(users, known, strict=True))
            for n, decision in enumerate(made):
                arm, reward, stated = int(decision.arm), np.empty(3), np.empty(3)
                overall = type(SETTING).draw(reward, stated, arm, n, means, weights, numbers, True, stream, spare, dims)
                values = means @ weights[n]
                regret += values.max() - values[arm]
                engine.feedback(
                    decision.id,
                    dict(zip(names, reward.tolist(), strict=True)),
                    overall=overall if mode == "hidden" else None,
                    preference=dict(zip(names, stated.tolist(), strict=True)) if mode == "stated" else None,
                )
    return float(regret)


@pytest.mark.parametrize("mode", ["hidden", "stated", "known"])
def test_regret_is_the_simulators(mode: str) -> None:
    """Paired by trial, since the worlds are the same: it is no worse by more than three standard errors.

    It may be better: users who are decided for together know of each other's pulls, and the simulator's do not.
    """
    policy = policies.recommended(mode)
    simulated = simulate([policy], SETTING, rounds=ROUNDS, trials=TRIALS, seed=SEED)[policy.id].final_regret
    ours = np.array([driven(mode, trial) for trial in range(TRIALS)])
    difference = ours - simulated
    error = difference.std(ddof=1) / np.sqrt(TRIALS)
    assert -0.4 * simulated.mean() < difference.mean() < 3.0 * error + 0.02 * simulated.mean()
    assert error < 0.15 * simulated.mean()  # so that a policy that is twice as bad would be seen


@pytest.mark.parametrize("mode", ["hidden", "stated", "known"])
def test_regret_falls(mode: str) -> None:
    world = World(seed=20)
    with world.engine() as engine:
        regrets = world.play(engine, 120, mode)
    assert sum(regrets[-40:]) < 0.3 * sum(regrets[:40])


def test_the_prior_is_a_function_of_the_sums() -> None:
    world = World(users=8, seed=21)
    with world.engine() as engine:
        fits = []
        for _ in range(20):
            world.play(engine, 1)
            fits.append(engine.population.numbers[COUNT])  # how many overall scores it was fitted to
        assert len(set(fits)) < 12  # not every time
        assert fits[-1] >= 160 / 1.5 - 8
        engine.refit()
        expected = population_of(engine.store.users(sorted(world.users)), levels=True)
        np.testing.assert_array_equal(engine.population.mean, expected.mean)
        np.testing.assert_array_equal(engine.population.numbers, expected.numbers)


def test_a_newcomer_starts_from_what_others_have_in_common() -> None:
    world = World(users=12, seed=22)
    world.weights[:] = [0.9, 0.05, 0.05]
    with world.engine() as engine:
        world.play(engine, 30)
        best = world.arms[int(world.means[:, 0].argmax())]
        assert [engine.decide(f"new-{n}").arm for n in range(5)].count(best) >= 4


def test_a_large_prior_is_fitted_beside_the_caller_to_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prior_module, "AT_ONCE", 10)
    monkeypatch.setattr(prior_module, "SAMPLE", 40)
    world = World(users=100, seed=23)
    with world.engine() as engine:
        world.play(engine, 4)
        prior = engine._decider.prior
        prior.wait()
        assert 0 < engine.population.numbers[COUNT] < 400
        sample = set(prior.users)
        assert 10 < len(sample) <= 40
        with Engine(store=engine.store) as another:
            assert another._decider.prior.users == sample  # by a hash: every start has the same
            np.testing.assert_allclose(another.population.mean, world.weights.mean(axis=0), atol=0.2)
        (erased, *_) = sample
        engine.erase_user(erased)
        assert erased not in prior.users


@pytest.mark.parametrize("store", ["memory:", "threads.db"])
def test_many_threads(store: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    world = World(users=8, seed=24)
    each, errors, ids = 60, [], []

    with world.engine(store=store) as engine:
        reward = dict.fromkeys(world.names, 0.5)

        def work(n: int) -> None:
            try:
                for round_ in range(each):
                    user = world.users[n]
                    if round_ % 10 == 9:
                        engine.add_arm(f"new-{n}-{round_}")
                        engine.preference(user)
                        engine.front()
                        engine.arms()
                    decision = engine.decide(user, arms=world.arms if round_ % 2 else None, k=2)
                    ids.append(decision.id)
                    assert len(set(decision.arms)) == 2
                    for _ in range(2):
                        engine.feedback(decision.id, reward, overall=0.5)
                    # Feedback is known to the next decision.
                    assert engine.preference(user).rounds == round_ + 1
                    assert sum(engine.explain(decision).preference.values()) < 10
            except BaseException as error:
                errors.append(error)
                raise

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert len(set(ids)) == 8 * each
        assert engine.statistics()["complete_feedbacks"] == 8 * each
        assert engine.statistics()["pending_decisions"] == 0
        assert verify(engine.store).ok
