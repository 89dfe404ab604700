"""Users who are served over HTTP have the regret that the simulator has; a short run of the campaign."""

from __future__ import annotations

import pytest

from campaigns import regret


@pytest.mark.parametrize(
    ("name", "mode"), [("bounded", "hidden"), ("bounded", "stated"), ("gaussian", "hidden"), ("gaussian", "known")]
)
def test_regret_is_the_simulators(name: str, mode: str) -> None:
    """Paired by trial, seeded, and strong enough that half as much again would nearly always be seen."""
    found = regret.compare(name, mode, rounds=60, trials=20, seed=1)
    # It may be better: who is decided for knows of pulls under way, which the simulator's rounds do not.
    assert found.standardised < 3.0, found
    assert found.served > 0.5 * found.simulated, found
    assert found.detectable < 0.5, found


def test_a_scale_the_wrong_way_round_is_seen() -> None:
    """Fewer euros are better: a service that took more for better would have far more regret."""
    wrong = ("euros: 0..500", *regret.DECLARED[1:])
    found = regret.compare("bounded", "known", rounds=60, trials=8, seed=1, objectives=wrong)
    assert found.standardised > 5.0, found


def test_another_policy_is_seen() -> None:
    found = regret.compare("bounded", "hidden", rounds=60, trials=8, seed=1, policy="ucb")
    assert found.standardised > 4.0, found


def test_the_command_says_what_it_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole campaign is run by hand; here only what it prints, and its exit code."""
    result = regret.Comparison("bounded", "hidden", 4.0, 4.1, 0.05)
    monkeypatch.setattr(regret, "compare", lambda *arguments: result)
    assert regret.main(["--trials", "2", "--rounds", "3", "--seed", "7"]) == 0
    printed = capsys.readouterr().out
    assert "+2.5%" in printed
    assert "2 trials of 3 rounds" in printed
    assert "seed 7" in printed
    result = regret.Comparison("bounded", "hidden", 4.0, 5.0, 0.05)
    assert regret.main(["--trials", "2"]) == 1
    assert "FAILED" in capsys.readouterr().out
