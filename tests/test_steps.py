"""Trials step by step: the draws of the compiled loop, for policies in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pamo import InputError, environments, simulate
from pamo.arrays import Floats, Ints

ENVIRONMENTS = {
    "random": environments.Gaussian(users=3, block_size=4, objectives=2),
    "late": environments.Gaussian(users=3, block_size=2, newcomers=1, arrival=7, protocol="rotate"),
    "bounded": environments.Bounded(users=2, block_size=3, protocol="all", reward="bernoulli"),
}


class Ucb:
    """S-UCB in plain Python."""

    id = "mine"

    def __init__(self) -> None:
        self.pulls: dict[int, int] = {}
        self.sums: dict[int, float] = {}
        self.rounds: dict[int, int] = {}

    def choose(self, user: int, offer: Ints) -> int:
        t = self.rounds[user] = self.rounds.get(user, 0) + 1
        scores = [
            self.sums[arm] / self.pulls[arm] + np.sqrt(2 * np.log(t) / self.pulls[arm]) if arm in self.pulls else 9e9
            for arm in offer.tolist()
        ]
        return int(offer[int(np.argmax(scores))])

    def learn(self, user: int, arm: int, reward: Floats, overall: float, stated: Floats) -> None:
        self.pulls[arm] = self.pulls.get(arm, 0) + 1
        self.sums[arm] = self.sums.get(arm, 0.0) + float(reward.mean())


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_policy_in_plain_python_plays_the_compiled_trials(name: str) -> None:
    """Where each offer has one arm nothing is chosen, so that all that is drawn must be the same."""
    environment = ENVIRONMENTS[name]
    alone: dict[str, Any] = {"users": 3, "block_size": 1, "arms": 3, "newcomers": environment.newcomers, "arrival": 7}
    for each in (environment, environments.Gaussian(**alone)):
        run: dict[str, Any] = {"rounds": 40, "trials": 3, "first_trial": 2, "seed": 5, "checkpoints": [10, 40]}
        result = simulate([Ucb(), "s-ucb"], each, **run)
        mine, theirs = result["mine"], result["s-ucb"]
        assert mine.pulls.sum() == theirs.pulls.sum()
        if each is not environment:
            for field in ("regret_by_user", "pareto_regret", "overall", "optimal_share", "pulls"):
                np.testing.assert_allclose(getattr(mine, field), getattr(theirs, field), rtol=1e-12)
        else:  # ties are settled by other coins
            assert mine.final_regret.mean() == pytest.approx(theirs.final_regret.mean(), rel=0.35)
            assert np.isnan(mine.preference_error).all()


def test_an_episode_is_the_trial_of_the_simulator() -> None:
    """Every arm is pulled as the simulator's policy pulled it, and gives what it gave."""
    environment = environments.Gaussian(users=2, block_size=3)

    class Told:
        """Pulls the arms of a list."""

        def __init__(self, arms: list[int]) -> None:
            self.arms, self.overall = arms, 0.0

        def choose(self, user: int, offer: Ints) -> int:
            return self.arms.pop(0)

        def learn(self, user: int, arm: int, reward: Floats, overall: float, stated: Floats) -> None:
            assert np.isfinite(stated).all()

    episode = environment.start(seed=3, trial=1)
    arms, regret, overall = [], 0.0, 0.0
    while episode.round <= 20:
        best = max(episode.offer, key=lambda arm: episode.preferences[episode.user] @ episode.means[arm])
        pulled = episode.pull(best)
        arms.append(int(best))
        regret, overall = regret + pulled.regret, overall + pulled.overall
    assert regret == 0.0
    (result,) = simulate([Told(arms)], environment, rounds=20, trials=1, first_trial=1, seed=3).values()
    assert result.final_regret[0] == 0.0
    assert result.overall[0, -1] == pytest.approx(overall)
    assert result.optimal_share[0, -1] == 1.0


def test_what_is_not_on_offer_gets_a_sentence() -> None:
    episode = environments.Gaussian().start(seed=1)
    with pytest.raises(InputError, match="expected an arm of the offer"):
        episode.pull(99)
    assert episode.round == 1
    assert episode.user == 0

    class Wrong(Ucb):
        def choose(self, user: int, offer: Ints) -> int:
            return -1

    with pytest.raises(InputError, match="mine: expected an arm of the offer"):
        simulate([Wrong()], environments.Gaussian(), rounds=2, trials=1)
    with pytest.raises(InputError, match="objects that choose and learn"):
        simulate([object()], environments.Gaussian(), rounds=2, trials=1)  # type: ignore[list-item]
