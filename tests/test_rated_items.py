"""A world made of ratings: its arms' means are its items', scores are those that were given, offers as asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pamo import environments, simulate
from pamo.environments.ratings import NEAR
from pamo.errors import InputError

CRITERIA = "food,room,view"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty users who rated all of sixty items, on a scale of 1 to 5."""
    draw = np.random.default_rng(1)
    means = draw.uniform(1.5, 4.5, (60, 1)) + draw.uniform(-0.5, 0.5, (60, 3))
    weights = draw.dirichlet(np.full(3, 2.0), 30)
    path = tmp_path_factory.mktemp("ratings") / "stays.csv"
    lines = ["user,item,food,room,view,overall"]
    for user in range(30):
        for item in range(60):
            reward = np.clip(means[item] + 0.3 * draw.normal(size=3), 1.0, 5.0).round(2)
            overall = np.clip(weights[user] @ reward + 0.2 * draw.normal(), 1.0, 5.0)
            lines.append(f"{user},{item},{','.join(map(str, reward.tolist()))},{overall:.2f}")
    path.write_text("\n".join(lines))
    return path


def world(file: Path, **settings: object) -> environments.Environment:
    options = {"low": 1.0, "high": 5.0, "users": 4, "block_size": 5, **settings}
    return environments.create("ratings", file=str(file), criteria=CRITERIA, **options)


def test_pulls_give_what_the_item_was_given_and_the_users_own_scores(file: Path) -> None:
    table = np.genfromtxt(file, delimiter=",", skip_header=1)
    given = {item: (table[table[:, 1] == item][:, 2:5] - 1.0) / 4.0 for item in range(60)}
    episode = world(file).start(seed=3)
    of_arm = [min(given, key=lambda item: abs(given[item].mean(axis=0) - mean).sum()) for mean in episode.means]
    assert len(set(of_arm)) == len(of_arm) == 20
    for arm, item in enumerate(of_arm):
        assert episode.means[arm] == pytest.approx(given[item].mean(axis=0))
    errors = []
    for _ in range(400):
        pulled = episode.pull(int(episode.offer[0]))
        assert np.abs(given[of_arm[pulled.arm]] - pulled.reward).sum(axis=1).min() < 1e-9
        errors.append(pulled.overall - float(episode.preferences[pulled.user] @ pulled.reward))
    assert np.std(errors) == pytest.approx(0.05, rel=0.3)  # a fifth of a point
    assert episode.preferences.sum(axis=1) == pytest.approx(1.0, abs=0.15)


def test_near_offers_are_of_neighbours_in_everybodys_ranking(file: Path) -> None:
    spreads = {}
    for offers in ("random", "near"):
        episode = world(file, offers=offers).start(seed=1)
        blocks = episode.means.reshape(4, 5, 3).mean(axis=2)
        spreads[offers] = float((blocks.max(axis=1) - blocks.min(axis=1)).mean())
    assert NEAR == 2
    assert spreads["near"] < 0.5 * spreads["random"]


def test_it_runs_as_any_environment_and_says_what_it_lacks(file: Path) -> None:
    results = [simulate(["recommended"], world(file), rounds=30, trials=4, seed=1, threads=n) for n in (1, 2)]
    one, other = (next(iter(each.values())).regret for each in results)
    assert (one == other).all()
    assert 0.0 < one[:, -1].mean() < 60.0
    with pytest.raises(InputError, match="needs a file of ratings"):
        environments.create("ratings", criteria=CRITERIA)
    with pytest.raises(InputError, match="as many as the 3 criteria, got 2"):
        world(file, objectives=2)
    with pytest.raises(InputError, match="a file with 200 items that have ratings enough, got 60"):
        world(file, users=10, block_size=20).numbers()
