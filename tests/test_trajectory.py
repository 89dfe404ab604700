"""Trajectories: every decision of a simulation, as a log that can be evaluated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pamo import environments, simulate
from pamo.cli import main
from pamo.errors import InputError
from pamo.experiments.logs import Log, objectives_in, read_log

SMALL = environments.Gaussian(users=3, block_size=4, objectives=2, newcomers=1, arrival=5)


def log_of(path: Path) -> Log:
    return read_log(path, objectives_in(path))


def test_a_trajectory_is_the_run_itself(tmp_path: Path) -> None:
    for policy, environment in (("prucb-hp-v", SMALL), ("ucb-per-user", SMALL)):
        path = tmp_path / f"{policy}.parquet"
        plain = simulate([policy], environment, rounds=40, trials=3, seed=2, threads=1)[policy]
        noted = simulate([policy], environment, rounds=40, trials=3, seed=2, threads=2, trajectory=path)[policy]
        log = log_of(path)
        np.testing.assert_array_equal(noted.regret, plain.regret)
        assert len(log) == 3 * (2 * 40 + 36)
        pulls = np.zeros((3, environment.arm_count))
        for name, count in zip(log.arms, np.bincount(log.arm, minlength=len(log.arms)), strict=True):
            pulls[tuple(map(int, name.split(".")))] = count
        np.testing.assert_array_equal(pulls, noted.pulls)
        np.testing.assert_allclose(log.values[:, -1].sum(), noted.overall[:, -1].sum())
        assert set(np.unique(log.propensity)) <= {1.0, 0.5, 1.0 / 3.0, 0.25}  # of ties
        assert log.propensity.mean() > 0.8


def test_the_chances_of_a_policy_that_draws_are_those_by_which_it_drew(tmp_path: Path) -> None:
    path = tmp_path / "drawn.parquet"
    simulate(["prts"], environments.Gaussian(users=4, objectives=2), rounds=2, trials=100, seed=1, trajectory=path)
    log = log_of(path)
    weights = 1.0 / log.propensity / 5.0  # of a choice at random: one on average, as long as every arm has a chance
    error = weights.std() / np.sqrt(len(weights))
    assert 0.005 < error < 0.05
    assert abs(weights.mean() - 1.0) < 3.0 * error


def test_what_cannot_be_noted_gets_a_sentence(tmp_path: Path) -> None:
    for policies, name, said in (
        (["greedy", "ucb"], "log.parquet", "one policy"),
        (["greedy"], "log.csv", r"ends in \.parquet"),
        (["greedy"], "nowhere/log.parquet", "existing folder"),
    ):
        with pytest.raises(InputError, match=said):
            simulate(policies, SMALL, rounds=5, trials=1, trajectory=tmp_path / name)
    with pytest.raises(InputError, match="at most"):
        simulate(["greedy"], SMALL, rounds=10**9, trials=1, trajectory=tmp_path / "log.parquet")


def test_a_trajectory_can_be_evaluated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "log.parquet")
    size = ["--users", "3", "--objectives", "2", "--rounds", "60", "--trials", "2"]
    assert main(["simulate", "--policy", "prts", *size, "--trajectory", path]) == 0
    capsys.readouterr()
    assert main(["evaluate", path, "--random", "--weights", "objective 1=1"]) in (0, 1)
    assert "360 rounds of 6 users" in capsys.readouterr().out
