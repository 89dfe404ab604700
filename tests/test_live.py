"""Environments that are live: the loop against a trial played in plain Python, and what each setting promises."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import stats

from pamo import InputError, environments, simulate
from pamo.arrays import Floats, Ints
from pamo.compiling import kernel
from pamo.environments.live import draw_offer
from pamo.policies.base import Feedback, Policy, Run
from pamo.reading import MEAN, OVERALL, PULLS, count_at, pending_at, scatter_at
from pamo.rows import pair
from pamo.streams import ENVIRONMENT, stream_for

SMALL: dict[str, Any] = {"users": 3, "objectives": 2, "block_size": 4}
CHANGING: dict[str, Any] = {"changes_every": 6, "changing_users": 0.6, "changing_arms": 0.4}
WORLDS: dict[str, dict[str, Any]] = {
    "everything": SMALL
    | CHANGING
    | {"protocol": "subset", "arms": 9, "newcomers": 1, "arrival": 5, "missing": 0.4, "delay": 3},
    "late and drifting": SMALL | CHANGING | {"protocol": "rotate", "changes": "drift", "delay": 2},
    "one untold": SMALL | {"protocol": "all", "arms": 6, "untold": 1, "newcomers": 1, "arrival": 5},
}


@kernel
def _probe(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    for j in range(offered):
        known = arms[MEAN, j] + 2.0 * arms[MEAN + 1, j] + 0.5 * arms[OVERALL, j]
        scores[j] = known - 0.03 * arms[PULLS, j] - 1e-9 * j


@kernel
def _probe_spread(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    for j in range(offered):
        spread = arms[scatter_at(2), j] + arms[scatter_at(2) + pair(1, 1), j]
        counted = 0.3 * arms[count_at(2), j] + 0.2 * arms[count_at(2) + 1, j] + 0.1 * arms[PULLS, j]
        scores[j] = 50.0 * spread - counted - 0.7 * arms[pending_at(2), j] - 1e-9 * j


@dataclass(frozen=True, kw_only=True)
class Probe(Policy):
    """Chooses by what is known of the arms, so that whatever is amiss there shows."""

    id: ClassVar[str] = "probe"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD,)
    kernel: ClassVar[Any] = _probe


@dataclass(frozen=True, kw_only=True)
class SpreadProbe(Probe):
    """The same by counts, scatters and pulls under way."""

    reads_spread: ClassVar[bool] = True
    kernel: ClassVar[Any] = _probe_spread


class Twin:
    """Either probe in plain Python, from all that was told."""

    id = "twin"

    def __init__(self, *, spread: bool) -> None:
        self.spread, self.under_way = spread, np.zeros(20)
        self.told: dict[int, list[tuple[Floats, float]]] = {}

    def _score(self, arm: int) -> float:
        seen = self.told.get(arm, [])
        rewards = np.array([reward for reward, _ in seen]).reshape(-1, 2)
        columns = [column[~np.isnan(column)] for column in rewards.T]
        if self.spread:
            scatter = sum(float(((column - column.mean()) ** 2).sum()) for column in columns if len(column))
            counted = 0.3 * len(columns[0]) + 0.2 * len(columns[1]) + 0.1 * len(seen)
            return 50.0 * scatter - counted - 0.7 * float(self.under_way[arm])
        first, second = (float(column.mean()) if len(column) else 0.0 for column in columns)
        overall = float(np.mean([overall for _, overall in seen])) if seen else 0.0
        return first + 2.0 * second + 0.5 * overall - 0.03 * len(seen)

    def choose(self, user: int, offer: Ints) -> int:
        return int(offer[np.argmax([self._score(arm) - 1e-9 * j for j, arm in enumerate(offer.tolist())])])

    def learn(self, user: int, arm: int, reward: Floats, overall: float, stated: Floats) -> None:
        self.told.setdefault(arm, []).append((reward, overall))


class WaitingTwin(Twin):
    """One that counts what it chose as under way from the next round on: all choose by what was known at its start."""

    def __init__(self) -> None:
        super().__init__(spread=True)
        self.now: list[int] = []
        self.last = -1

    def choose(self, user: int, offer: Ints) -> int:
        if user <= self.last:
            for arm in self.now:
                self.under_way[arm] += 1
            self.now.clear()
        self.last = user
        self.now.append(super().choose(user, offer))
        return self.now[-1]

    def learn(self, user: int, arm: int, reward: Floats, overall: float, stated: Floats) -> None:
        super().learn(user, arm, reward, overall, stated)
        self.under_way[arm] -= 1


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("spread", [False, True])
def test_the_loop_plays_what_a_policy_in_plain_python_plays_step_by_step(name: str, spread: bool) -> None:
    environment = environments.Gaussian(**WORLDS[name], reward_variance=0.03)
    run: dict[str, Any] = {"rounds": 40, "trials": 4, "first_trial": 1, "seed": 5, "checkpoints": [7, 40]}
    twin = WaitingTwin() if spread else Twin(spread=False)
    result = simulate([SpreadProbe() if spread else Probe(), twin], environment, **run)
    ours, plain = result["probe"], result["twin"]
    assert ours.final_regret.min() > 0.0
    for field in ("pulls", "regret_by_user", "pareto_regret", "overall", "optimal_share"):
        np.testing.assert_allclose(getattr(ours, field), getattr(plain, field), rtol=1e-9, err_msg=field)


class Parted(Twin):
    """A twin at each of several workers: those of the others hear of what it was told at the next merge."""

    def __init__(self, *, spread: bool, users: int, workers: int, every: int) -> None:
        super().__init__(spread=spread)
        self.users, self.workers, self.every, self.rounds = users, workers, every, 0
        self.by_worker: list[dict[int, list[tuple[Floats, float]]]] = [{} for _ in range(workers)]
        self.waiting: list[tuple[int, int, tuple[Floats, float]]] = []

    def choose(self, user: int, offer: Ints) -> int:
        self.told = self.by_worker[user % self.workers]
        return super().choose(user, offer)

    def learn(self, user: int, arm: int, reward: Floats, overall: float, stated: Floats) -> None:
        for worker, told in enumerate(self.by_worker):
            if worker == user % self.workers:
                told.setdefault(arm, []).append((reward, overall))
            else:
                self.waiting.append((worker, arm, (reward, overall)))
        self.rounds += user == self.users - 1
        if user == self.users - 1 and self.rounds % self.every == 0:
            for worker, arm_of, one in self.waiting:
                self.by_worker[worker].setdefault(arm_of, []).append(one)
            self.waiting.clear()


@pytest.mark.parametrize("spread", [False, True])
def test_workers_know_their_own_users_feedback_at_once_and_the_others_by_the_next_merge(spread: bool) -> None:
    settings, run = SMALL | {"reward_variance": 0.03}, {"rounds": 40, "trials": 4, "seed": 5, "checkpoints": [7, 40]}
    for more in ({"protocol": "random"}, {"protocol": "subset", "arms": 9}):
        twin = Parted(spread=spread, users=3, workers=2, every=6)
        probe = SpreadProbe() if spread else Probe()
        environment = environments.Gaussian(**settings, **more, workers=2, merge_every=6)
        ours = simulate([probe], environment, **run)["probe"]  # type: ignore[arg-type]
        together = environments.Gaussian(**settings, **more)
        plain = simulate([twin], together, **run)["twin"]  # type: ignore[arg-type]
        for field in ("pulls", "regret_by_user", "overall"):
            np.testing.assert_allclose(getattr(ours, field), getattr(plain, field), rtol=1e-9, err_msg=field)
        assert (ours.pulls != simulate([probe], together, **run)["probe"].pulls).any()  # type: ignore[arg-type]
    with pytest.raises(InputError, match="step by step"):
        environment.start(seed=1)
    with pytest.raises(InputError, match="from all users"):
        simulate(["ucb-per-user"], environment)


@pytest.mark.parametrize("policy", ["recommended", "prucb-up"])
def test_a_live_world_in_which_nothing_happens_is_the_plain_one_bit_for_bit(policy: str) -> None:
    settings = SMALL | {"newcomers": 1, "arrival": 7}
    run: dict[str, Any] = {"rounds": 60, "trials": 7, "seed": 2, "checkpoints": [9, 60]}
    idle: dict[str, Any] = {"changes_every": 1000, "changing_users": 1.0}
    merged: dict[str, Any] = {"workers": 2, "merge_every": 1}
    still, *others = (
        next(iter(simulate([policy], environments.Gaussian(**each), **run).values()))
        for each in (settings, settings | idle, settings | merged)
    )
    for live in others:
        for field in ("regret_by_user", "pareto_regret", "overall", "optimal_share", "preference_error", "pulls"):
            np.testing.assert_array_equal(getattr(live, field), getattr(still, field), err_msg=field)


def test_every_subset_of_the_arms_is_offered_as_often() -> None:
    stream, order, offer = stream_for(1, 0, ENVIRONMENT), np.arange(5), np.empty(2, dtype=np.int64)
    seen = np.zeros((5, 5))
    for _ in range(20_000):
        draw_offer(offer, order, stream)
        seen[tuple(offer)] += 1
    assert not seen.diagonal().any()
    assert stats.chisquare(seen[~np.eye(5, dtype=bool)]).pvalue > 1e-3


def test_changes_come_when_and_to_whom_they_are_said_to() -> None:
    jump, steps = (
        environments.Bounded(users=400, block_size=1, preference="random", changes=kind, **CHANGING).start(seed=3)
        for kind in ("jump", "drift")
    )
    seen: dict[str, list[tuple[Floats, Floats]]] = {"jump": [], "drift": []}
    for name, episode in (("jump", jump), ("drift", steps)):
        for t in range(1, 15):
            seen[name].append((episode.means.copy(), episode.preferences.copy()))
            while episode.round == t:
                episode.pull(episode.offer[0])
    for table, share in ((0, 0.4), (1, 0.6)):
        jumped = [one[table] for one in seen["jump"]]
        drifted = [one[table] for one in seen["drift"]]
        assert all((jumped[t] == jumped[0]).all() for t in range(6))
        assert (jumped[6] != jumped[0]).any(axis=1).mean() == pytest.approx(share, abs=4.5 * math.sqrt(share / 400))
        assert all((jumped[t] == jumped[6]).all() for t in range(6, 12))
        assert (jumped[12] != jumped[6]).any()
        np.testing.assert_array_equal(drifted[0], jumped[0])
        np.testing.assert_allclose(drifted[6], jumped[6])  # what was drawn for it, reached by even steps
        np.testing.assert_allclose(drifted[3], (drifted[0] + drifted[6]) / 2)
        assert (np.array(drifted) >= 0.0).all()


def test_who_knows_the_preference_knows_that_of_now() -> None:
    """Where arms give the same every time, one pull of each is all there is to learn: changes of taste cost no more."""
    settings = SMALL | {"protocol": "all", "arms": 5, "reward_variance": 0.0, "preference": "random"}
    environment = environments.Gaussian(**settings, changes_every=20, changing_users=1.0)
    result = simulate(["recommended-known"], environment, rounds=200, trials=10, checkpoints=[20, 200])
    ((first, last),) = result["prucb-kp-v"].regret.mean(axis=0)[None]
    assert last - first < first


def test_features_explain_what_they_are_said_to() -> None:
    for count in (3, 8):
        episode = environments.Gaussian(
            users=1, arms=4000, block_size=1, protocol="subset", features=count, explained=0.7
        ).start(seed=1)
        table = np.column_stack([np.ones(4000), episode.features])
        left = episode.means - table @ np.linalg.lstsq(table, episode.means, rcond=None)[0]
        np.testing.assert_allclose(1.0 - left.var(axis=0) / episode.means.var(axis=0), 0.7, atol=0.03)


def regret_of(policy: str, rounds: int, trials: int, **settings: Any) -> float:
    (outcome,) = simulate([policy], environments.Gaussian(**settings), rounds=rounds, trials=trials).values()
    return float(outcome.final_regret.mean())


def test_features_make_a_catalogue_small() -> None:
    shop: dict[str, Any] = {"users": 10, "objectives": 2, "arms": 300, "block_size": 300, "protocol": "all"}
    random = regret_of("oful:epsilon=1", 60, 8, **shop)
    told, untold, useless = (
        1.0 - regret_of("recommended", 60, 8, **shop, **more) / random
        for more in ({"features": 4}, {}, {"features": 4, "explained": 0.0})
    )
    assert told > untold + 0.1
    assert useless > untold - 0.03


def test_a_missing_score_costs_little_and_one_that_never_comes_more() -> None:
    shop: dict[str, Any] = SMALL | {"protocol": "all", "users": 8, "arms": 10, "preference_variance": 0.05}
    random = regret_of("oful:epsilon=1", 80, 20, **shop)
    never, half, whole = (
        regret_of("recommended", 80, 20, **shop, **more) for more in ({"untold": 1}, {"missing": 0.5}, {})
    )
    assert whole < half < 0.2 * random
    assert half < never < 0.8 * random


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"missing": 1.5}, "missing to be from 0 to 1, got 1.5"),
        ({"changing_users": 0.5}, "changes_every together with"),
        ({"changes_every": 5}, "changes_every together with"),
        ({"untold": 4}, "at most the 3 objectives untold, got 4"),
        ({"features": 2}, "protocol='all' or 'subset' for arms with features, got 'random'"),
        ({"delay": -1}, "delay to be at least 0"),
        ({"changes": "slowly"}, "changes 'jump' or 'drift', got 'slowly'"),
        ({"protocol": "subset", "arms": 4}, "an offer of 5 arms is larger than the 4"),
    ],
)
def test_a_world_that_cannot_be_gets_a_sentence(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        environments.Gaussian(**settings)


def test_where_live_worlds_are_not_known_a_sentence_says_so(tmp_path: Any) -> None:
    for more in ({"device": "cuda"}, {"trajectory": tmp_path / "log.parquet"}):
        with pytest.raises(InputError, match="expected an environment with its arms in blocks, one truth"):
            simulate(["greedy"], environments.Gaussian(delay=1), rounds=5, trials=1, **more)


def test_a_result_says_what_world_it_is_of() -> None:
    plain = environments.Gaussian()
    assert not {"delay", "missing", "changes", "explained"} & set(plain.settings)
    environment = environments.Gaussian(**WORLDS["everything"], features=2)
    assert environments.from_settings(environment.settings) == environment
