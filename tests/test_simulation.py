"""The simulator: the same numbers however it is run, records that add up, and sentences for bad input."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pamo import Result, environments, policies, simulate
from pamo.environments import Environment
from pamo.errors import InputError
from pamo.estimators import Kind
from pamo.simulation import PolicyResult, cpu
from tests.looped import LOOPED
from tests.replica import instance_of

ALL = LOOPED
SMALL = environments.Gaussian(users=2, block_size=3, objectives=3)
ARRAYS = ("rounds", "regret_by_user", "pareto_regret", "overall", "optimal_share", "preference_error", "pulls")


def assert_identical(left: Result, right: Result) -> None:
    """Bit for bit, all but the time it took."""
    assert list(left) == list(right)
    assert left.settings == right.settings
    for name in left:
        assert left[name].hyperparameters == right[name].hyperparameters
        for array in ARRAYS:
            ours, theirs = getattr(left[name], array), getattr(right[name], array)
            assert ours.dtype == theirs.dtype
            assert ours.tobytes() == theirs.tobytes(), f"{name}: {array}"


# ---- the same, however it is run


@pytest.mark.parametrize("environment", [SMALL, environments.Bounded(users=3, block_size=2, protocol="all")])
def test_one_thread_and_two_give_the_same_bits(environment: Environment) -> None:
    one, two = (simulate(ALL, environment, rounds=120, trials=7, seed=5, threads=threads) for threads in (1, 2))
    assert_identical(one, two)


@pytest.mark.parametrize("trials", [1, 7, 10, 20, 100, 4000])
@pytest.mark.parametrize("workers", [1, 2, 3, 16])
@pytest.mark.parametrize("together", [1, 4, 20])
def test_workers_end_at_about_the_same_time(trials: int, workers: int, together: int) -> None:
    workers = min(workers, trials)
    pieces = cpu._pieces(trials, workers, together)
    assert [number for first, last in pieces for number in range(first, last)] == list(range(trials))
    busy = [0] * workers
    for first, last in pieces:  # whoever is free takes the next
        busy[busy.index(min(busy))] += last - first
    assert max(busy) <= -(-trials // workers) + together // 2


def test_ten_trials_at_once_are_four_and_six() -> None:
    whole = simulate(ALL, SMALL, rounds=90, trials=10, seed=6)
    first = simulate(ALL, SMALL, rounds=90, trials=4, seed=6)
    rest = simulate(ALL, SMALL, rounds=90, trials=6, seed=6, first_trial=4)
    assert_identical(Result.join([rest, first]), whole)


def test_a_policy_does_not_depend_on_its_company() -> None:
    together = simulate(ALL, SMALL, rounds=60, trials=3, seed=9)
    for name in ALL:
        alone = simulate([name], SMALL, rounds=60, trials=3, seed=9)
        assert_identical(alone, Result(settings=together.settings, policies={name: together[name]}))


def test_seeds_and_trials_differ() -> None:
    regrets = [
        simulate(["prucb-hp"], SMALL, rounds=50, trials=3, seed=seed)["prucb-hp"].final_regret for seed in (0, 1, 2)
    ]
    assert len(set(np.concatenate(regrets))) == 9


# ---- the same instances and draws for all policies


def test_all_policies_meet_the_same_instances() -> None:
    """One user who is offered everything: the regret is the pulls times the gaps of the trial's instance."""
    environment = environments.Gaussian(users=1, block_size=5, protocol="all")
    result = simulate(ALL, environment, rounds=80, trials=4, seed=3)
    for trial in range(4):
        means, truth = instance_of(environment, seed=3, trial=trial)
        values = means @ truth[0]
        gaps = values.max() - values
        pareto = [max(float(np.min(other - mean)) for other in means) for mean in means]
        for name in ALL:
            assert result[name].final_regret[trial] == pytest.approx(result[name].pulls[trial] @ gaps, rel=1e-9)
            expected = result[name].pulls[trial] @ np.maximum(pareto, 0.0)
            assert result[name].pareto_regret[trial, -1] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    "environment",
    [environments.Gaussian(users=3, block_size=1), environments.Bounded(users=3, block_size=1, protocol="rotate")],
)
def test_policies_that_choose_alike_meet_the_same_draws(environment: Environment) -> None:
    """With one arm in an offer there is nothing to choose: policies that draw, and those that are told c, included."""
    result = simulate(ALL, environment, rounds=70, trials=3, seed=4)
    for name in ALL[1:]:
        np.testing.assert_array_equal(result[name].overall, result[ALL[0]].overall)
        np.testing.assert_array_equal(result[name].pulls, result[ALL[0]].pulls)
    assert np.abs(result[ALL[0]].overall).min() > 0.0


# ---- records


@pytest.fixture(scope="module")
def recorded() -> Result:
    return simulate(ALL, environments.Gaussian(users=3, block_size=4), rounds=200, trials=5, seed=7, checkpoints=20)


@pytest.mark.parametrize("name", ALL)
def test_records_add_up(recorded: Result, name: str) -> None:
    outcome = recorded[name]
    np.testing.assert_allclose(outcome.regret, outcome.regret_by_user.sum(axis=2))
    np.testing.assert_array_equal(outcome.final_regret, outcome.regret[:, -1])
    assert outcome.pulls.sum(axis=1).tolist() == [200 * 3] * 5
    assert (np.diff(outcome.regret_by_user, axis=1) >= 0.0).all()
    assert (np.diff(outcome.pareto_regret, axis=1) >= 0.0).all()
    assert ((outcome.optimal_share >= 0.0) & (outcome.optimal_share <= 1.0)).all()
    # Where another arm is better by Δ in every objective it is better by ‖c̄‖₁·Δ, and ‖c̄‖₁ = 2 + ½ + ½.
    assert (outcome.regret >= 3.0 * outcome.pareto_regret - 1e-9).all()
    assert (outcome.regret > 0.0).all()
    assert outcome.decisions_per_second > 0.0


def test_the_share_of_optimal_pulls_is_that_of_pulls_without_regret() -> None:
    """Two arms apart by 1: what is not optimal costs exactly 1."""
    environment = environments.Fixed.of(means=[[0.0], [1.0]], preferences=[[1.0]] * 2)
    result = simulate(ALL, environment, rounds=50, trials=4, seed=2, checkpoints=[10, 50])
    for outcome in result.values():
        np.testing.assert_allclose(outcome.optimal_share, 1.0 - outcome.regret / (outcome.rounds * 2), atol=1e-12)
        np.testing.assert_allclose(outcome.regret[:, -1], outcome.pulls[:, 0])


def test_newcomers_who_are_not_there_yet_are_not_counted_as_pulls() -> None:
    environment = environments.Gaussian(users=3, block_size=1, objectives=2, newcomers=2, arrival=41)
    outcome = simulate(["prucb-kp"], environment, rounds=50, trials=2, checkpoints=[40, 50], seed=1)["prucb-kp"]
    # With one arm on offer every pull is optimal: 40 of one user, and then 10 of all three.
    np.testing.assert_array_equal(outcome.optimal_share, 1.0)
    assert outcome.pulls.sum(axis=1).tolist() == [70, 70]
    timed = dataclasses.replace(outcome, seconds=2.0)
    assert timed.decisions_per_second == pytest.approx(70.0)


def test_the_preference_error_is_recorded_where_there_is_an_estimate() -> None:
    environment = environments.Gaussian(users=2, block_size=5, preference_variance=0.05)
    result = simulate(ALL, environment, rounds=500, trials=5, seed=8, checkpoints=[1, 500])
    for name, outcome in result.items():
        kind = policies.create(name).estimate(3).kind
        if kind == Kind.NONE:
            assert np.isnan(outcome.preference_error).all()
        elif kind == Kind.KNOWN:
            assert not outcome.preference_error.any()
        else:
            assert (outcome.preference_error > 0.0).all()
            assert (outcome.preference_error[:, -1] < outcome.preference_error[:, 0]).mean() > 0.5
            assert outcome.preference_error[:, -1].mean() < 0.35


def test_checkpoints_are_when_values_are_noted_and_change_nothing() -> None:
    every = simulate(["prucb-hp"], SMALL, rounds=100, trials=3, seed=1, checkpoints=100)["prucb-hp"]
    assert every.rounds.tolist() == list(range(1, 101))
    some = simulate(["prucb-hp"], SMALL, rounds=100, trials=3, seed=1, checkpoints=[40, 7, 40])["prucb-hp"]
    assert some.rounds.tolist() == [7, 40, 100]  # in order, once, and the last round always
    for array in ARRAYS[1:-1]:
        np.testing.assert_array_equal(getattr(some, array), getattr(every, array)[:, [6, 39, 99]])
    np.testing.assert_array_equal(some.pulls, every.pulls)


@pytest.mark.parametrize(
    ("checkpoints", "rounds", "expected"),
    [(1, 50, [50]), (5, 50, [10, 20, 30, 40, 50]), (3, 10, [3, 7, 10]), (100, 4, [1, 2, 3, 4]), (7, 1, [1])],
)
def test_a_number_of_checkpoints_is_spread_evenly(checkpoints: int, rounds: int, expected: list[int]) -> None:
    result = simulate(["ucb"], SMALL, rounds=rounds, trials=1, checkpoints=checkpoints)
    assert result["ucb"].rounds.tolist() == expected


def test_a_horizon_of_its_own_is_what_moss_reads() -> None:
    """MOSS explores by the rounds still to come, so a longer run is not a continued one; UCB's is."""
    short, long = (
        simulate(["moss", "ucb"], SMALL, rounds=rounds, trials=5, seed=1, checkpoints=[100]) for rounds in (100, 4000)
    )
    np.testing.assert_array_equal(short["ucb"].regret[:, 0], long["ucb"].regret[:, 0])
    assert not np.array_equal(short["moss"].regret[:, 0], long["moss"].regret[:, 0])


# ---- memory


def test_what_is_kept_does_not_grow_with_the_rounds() -> None:
    sizes, peaks = [], []
    for rounds in (100, 10_000):
        tracemalloc.start()
        result = simulate(["prucb-hp"], SMALL, rounds=rounds, trials=6, seed=1, checkpoints=10, threads=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        sizes.append(sum(getattr(result["prucb-hp"], array).nbytes for array in ARRAYS))
    assert sizes[0] == sizes[1]
    assert peaks[1] < peaks[0] + 50_000
    twice = simulate(["prucb-hp"], SMALL, rounds=100, trials=6, seed=1, checkpoints=20)["prucb-hp"]
    assert twice.regret_by_user.nbytes == 6 * 20 * 2 * 8


def test_a_long_run_needs_no_more_memory_than_a_short_one() -> None:
    """The compiled loop's own allocations too: a number a decision would be 48 MB here."""
    program = """
import resource
from pamo import environments, simulate
from tests.looped import LOOPED
def peak(rounds):
    simulate(["ucb"], environments.Gaussian(users=2), rounds=rounds, trials=1, checkpoints=10, threads=1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
short = peak(1000)
print((peak(3_000_000) - short) / short)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=120)
    assert float(done.stdout) < 0.03


# ---- joining


def part(**changes: Any) -> Result:
    options: dict[str, Any] = {"rounds": 20, "trials": 2, "seed": 1, "first_trial": 0, "checkpoints": 4} | changes
    names = options.pop("names", ["ucb"])
    return simulate(names, options.pop("environment", SMALL), **options)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (list, "expected at least one result to join, got none"),
        (lambda: [part(), part(first_trial=3)], "expected a part that starts at trial 2, got one that starts at 3"),
        (lambda: [part(), part()], "expected a part that starts at trial 2, got one that starts at 0"),
        (lambda: [part(), part(first_trial=2, seed=2)], "expected parts of one run, got seed 1 and 2"),
        (lambda: [part(), part(first_trial=2, rounds=30)], "expected parts of one run, got rounds 20 and 30"),
        (lambda: [part(), part(first_trial=2, environment=environments.Gaussian())], "of one run, got environment"),
        (lambda: [part(), part(first_trial=2, names=["moss"])], "the same policies, got .'ucb'. and .'moss'."),
        (lambda: [part(), part(first_trial=2, checkpoints=5)], "the same checkpoints"),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts: Callable[[], list[Result]], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Result.join(parts())


def test_parts_of_one_policy_with_other_hyperparameters_are_refused() -> None:
    first, second = (part(names=[policies.create("oful", epsilon=e)], first_trial=f) for e, f in ((0.1, 0), (0.2, 2)))
    with pytest.raises(InputError, match=r"one policy under a name, got oful .*0.1.* and oful .*0.2"):
        Result.join([first, second])


# ---- bad input


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoKernel(policies.Policy):
    """A policy that somebody forgot to finish."""

    id = "no-kernel"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"policies": ["prucb-ph"]}, "unknown policy 'prucb-ph'; did you mean .*'prucb-hp'"),
        ({"policies": []}, "expected at least one policy, got none"),
        ({"policies": [3]}, "expected policies as ids, as Policy objects, or as objects that choose and learn, got 3"),
        ({"policies": ["ucb", "ucb"]}, "expected each policy once, got 'ucb' 2 times"),
        ({"policies": [NoKernel()]}, "NoKernel: expected a class attribute `kernel`"),
        ({"environment": "gaussian"}, "expected an environment such as .*, got 'gaussian'"),
        ({"rounds": 0}, "expected rounds to be at least 1, got 0"),
        ({"rounds": 10.5}, "expected rounds as a whole number, got 10.5"),
        ({"trials": -3}, "expected trials to be at least 1, got -3"),
        ({"trials": True}, "expected trials as a whole number, got True"),
        ({"seed": -1}, "expected seed to be from 0 to 9223372036854775807, got -1"),
        ({"seed": 2**63}, "expected seed to be from 0 to"),
        ({"first_trial": -1}, "expected first_trial to be at least 0, got -1"),
        ({"threads": 0}, "expected threads to be at least 1, got 0"),
        ({"checkpoints": 0}, "expected checkpoints to be at least 1, got 0"),
        ({"checkpoints": [0, 5]}, "expected checkpoints from 1 to 10, got 0 … 5"),
        ({"checkpoints": [5, 11]}, "expected checkpoints from 1 to 10, got 5 … 11"),
        ({"checkpoints": []}, "expected checkpoints as a number of them or as a list of rounds"),
        ({"checkpoints": [1.5]}, "expected checkpoints as a number of them or as a list of rounds"),
    ],
)
def test_bad_input_meets_a_sentence(options: dict[str, Any], sentence: str) -> None:
    arguments: dict[str, Any] = {"policies": ["ucb"], "environment": SMALL, "rounds": 10, "trials": 1} | options
    with pytest.raises(InputError, match=sentence):
        simulate(**arguments)


def test_an_unknown_name_in_a_result_meets_the_nearest(recorded: Result) -> None:
    with pytest.raises(InputError, match="unknown policy in this result 'mos'; did you mean 'moss'"):
        recorded["mos"]
    assert isinstance(recorded["moss"], PolicyResult)
    assert "mos" not in recorded
