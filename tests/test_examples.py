"""The examples run, small, and show what they say."""

import asyncio
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest

from examples import client_in_a_web_app, compare, engine_in_a_shop, own_policy, statistics_by_hand
from pamo import AsyncClient, environments, policies, simulate
from pamo.errors import InputError
from pamo.statistics import ArmStatistics, UserStatistics

EXAMPLES = Path(own_policy.__file__).parent


def test_every_example_is_tested():
    text = Path(__file__).read_text(encoding="utf-8")
    for path in EXAMPLES.glob("*.py"):
        assert path.stem == "__init__" or f"{path.stem}.main(" in text


def test_own_policy_runs_as_a_script(tmp_path):
    # Compiled code names its module, which is another one here than where the example was imported.
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / "own_policy.py"), "--rounds", "100", "--trials", "2"],
        capture_output=True,
        check=True,
        encoding="utf-8",
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        timeout=300,
    )
    names = {line.split()[0] for line in done.stdout.splitlines()[3:]}
    assert names == {"prucb-hp", "greedy", "falling-epsilon", "falling-epsilon:scale=100.0"}


def test_own_policy_prints_the_table(capsys):
    own_policy.main(["--rounds", "50", "--trials", "2"])
    assert "falling-epsilon" in capsys.readouterr().out


def test_own_policy_is_a_policy_like_any_other():
    mine = own_policy.FallingEpsilon(scale=5.0)
    assert mine.label == "falling-epsilon:scale=5.0"
    several = [mine, policies.create("prucb-hp")]
    at_once, split = (
        simulate(several, environments.Gaussian(), rounds=60, trials=4, threads=threads) for threads in (1, 2)
    )
    assert np.array_equal(at_once["falling-epsilon"].regret, split["falling-epsilon"].regret)
    assert at_once["falling-epsilon"].preference_error[:, -1].mean() < 2.0
    with pytest.raises(InputError, match="scale ≥ 0"):
        own_policy.FallingEpsilon(scale=-1.0)


def test_own_policy_without_exploration_scores_as_greedy_does():
    arms, users = ArmStatistics.zeros(arms=4, objectives=3), UserStatistics.zeros(users=1, objectives=3)
    numbers = np.random.default_rng(1)
    for pull in range(20):
        reward = numbers.uniform(size=3)
        arms.observe(pull % 4, reward, overall=reward.sum())
        users.observe(0, reward, overall=reward.sum())
    mine, greedy = (
        policies.scores(policy, arms=arms, users=users)
        for policy in (own_policy.FallingEpsilon(scale=0.0), policies.create("greedy"))
    )
    np.testing.assert_allclose(mine, greedy, rtol=1e-12)
    always = policies.scores(own_policy.FallingEpsilon(scale=1e9), arms=arms, users=users)
    assert always.tolist() == [0.0] * 4


def test_compare_prints_and_draws(tmp_path, capsys):
    figure = tmp_path / "regret.svg"
    compare.main([str(figure), "--rounds", "100", "--trials", "3"])
    out = capsys.readouterr().out
    assert re.search(r"^ucb-per-user +\d+ +[+-]\d+ … [+-]\d+$", out, re.MULTILINE)
    assert f"figure: {figure}" in out
    assert figure.read_bytes().startswith(b"<?xml")


def test_statistics_by_hand_merges_and_decides(capsys):
    statistics_by_hand.main()
    out = capsys.readouterr().out
    assert "pulls: {'Anchor': 2, 'Bristol': 2, 'Central': 2}" in out
    assert re.search(r"Ada cares about\n  price .*\n.*\n.*\n.*\n  next: Anchor", out)
    assert re.search(r"Ben cares about\n.*\n.*\n  comfort .*\n.*\n  next: Central", out)


def test_engine_in_a_shop_learns_who_likes_what(capsys):
    engine_in_a_shop.main(["--visits", "40"])
    out = capsys.readouterr().out
    assert re.search(r"^Ada .*gets Anchor Inn \d+ times of the last 10", out, re.MULTILINE)
    assert re.search(r"^Ben .*gets Central \d+ times of the last 10", out, re.MULTILINE)
    assert "front: " in out


def test_client_in_a_web_app_learns_who_likes_what(capsys):
    client_in_a_web_app.main(["--visits", "40"])
    ada, ben, feedbacks = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"Ada is shown anchor (\d|10) times of the last 10", ada)
    assert re.fullmatch(r"Ben is shown central (\d|10) times of the last 10", ben)
    assert feedbacks == "feedbacks: 80"


def test_client_in_a_web_app_goes_on_without_the_service():
    async def shown() -> str:
        gone = httpx.MockTransport(lambda request: httpx.Response(500))
        async with AsyncClient(transport=gone) as client:
            transport = httpx.ASGITransport(app=client_in_a_web_app.create_shop(client))
            async with httpx.AsyncClient(transport=transport, base_url="http://shop") as shop:
                return await client_in_a_web_app.visit(shop, "Ada", 0.1, random.Random(1))

    assert asyncio.run(shown()) == client_in_a_web_app.FALLBACK


def test_the_two_shops_sums_add_up_to_one_shops():
    one_arms, one_users = statistics_by_hand.fold(statistics_by_hand.SHOP_1)
    two_arms, two_users = statistics_by_hand.fold(statistics_by_hand.SHOP_2)
    arms, users = statistics_by_hand.fold(statistics_by_hand.SHOP_1 + statistics_by_hand.SHOP_2)
    np.testing.assert_allclose((one_arms + two_arms).moments, arms.moments, rtol=1e-12)
    np.testing.assert_allclose((one_users + two_users).weighted, users.weighted, rtol=1e-12)
