"""The race and the growth of cost: what is asked can fail, a peer that is not there is named, fits are right."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import growth
from benchmarks.race import __main__ as race
from benchmarks.race import field

MEANS, PREFERENCES = np.array([[0.2], [0.9], [0.4], [0.5]]), np.array([[1.0], [2.0]])


class Always:
    """Takes the first or the last of an offer, and notes what it is told."""

    def __init__(self, place: int) -> None:
        self._place, self.told = place, []  # type: tuple[int, list[float]]

    def choose(self, context: np.ndarray, offer: Sequence[int]) -> int:
        return sorted(offer, key=lambda arm: MEANS[arm, 0])[self._place]

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        self.told.append(reward)


def test_the_field_counts_regret_as_the_paper_does() -> None:
    def regret(place: int) -> float:
        return field.regret(lambda arms, users, seed: Always(place), MEANS, PREFERENCES, 400, 1)

    assert regret(-1) == 0.0
    # A block of the two costs 0.7 and the other 0.1; each goes to each user about as often.
    assert regret(0) == pytest.approx(400 * (0.7 + 0.1) * 1.5, rel=0.1)


def test_policies_without_contexts_are_one_for_each_user() -> None:
    players = [Always(0), Always(0)]
    made = iter(players)
    both = field.PerUser(2, lambda: next(made))
    both.learn(np.array([0.0, 1.0]), 0, 0.5)
    assert (players[0].told, players[1].told) == ([], [0.5])


def found(ours: float) -> dict[str, Any]:
    regret = {
        name: {setting: {"policy": "UCB", "regret": [value, value + 1]} for setting in race.SETTINGS}
        for name, value in (("pamo: recommended", ours), ("river", 50.0))
    }
    cells = {f"{arms}, {dims}": 100.0 for arms in race.ARMS for dims in race.DIMS}
    return {
        "sizes": {"rounds": 100, "trials": 2, "count": 3},
        "simulation": {
            "pamo: ucb": {"what": "ucb", "microseconds": 0.1},
            "SMPyBandits": {"what": "UCB", "microseconds": 70},
        },
        "online": {
            "pamo": dict.fromkeys(cells, 50.0),
            "pamo's Player, recommended": dict.fromkeys(cells, 10.0),
            "MABWiser": cells,
            "Vowpal Wabbit": {"10, 5": 500, "10, 10": 400},
        },
        "regret": regret,
        "failed": {"coba": "no wheel for this machine"},
    }


def test_what_is_asked_may_fail_and_a_peer_that_is_not_there_is_named(tmp_path: Path) -> None:
    verdicts = {what: holds for what, _, _, holds in race.asked(found(5.0))}
    assert verdicts["times SMPyBandits's simulation, pamo's slowest line"]
    assert not verdicts["times MABWiser online, 10 arms, D=5 (the engine: 2 times)"]
    assert verdicts["times Vowpal Wabbit online, 10 arms, D=10 (the engine: 8 times)"]
    assert all(holds for what, holds in verdicts.items() if "regret" in what)
    assert not any(holds for what, _, _, holds in race.asked(found(60.0)) if "regret" in what)
    assert "not there: coba: no wheel for this machine" in race.text_of(found(5.0))
    assert len(race.draw(found(5.0)).axes) == 2 + len(race.SETTINGS)
    with pytest.raises(race.Failed, match="no such thing"):
        race._run([sys.executable, "-c", "raise SystemExit('no such thing')"])


def test_every_peer_is_pinned_and_has_its_file() -> None:
    folder = Path(race.__file__).parent / "peers"
    assert {f"{peer.module}.py" for peer in race.PEERS} | {"__init__.py"} == {one.name for one in folder.glob("*.py")}
    assert all("==" in peer.needs[0] for peer in race.PEERS)


def test_growth_is_fitted_and_shown() -> None:
    sizes = [10, 100, 1000, 10_000]
    assert growth.exponent(sizes, [9.0, 9.0, 4.0, 400.0]) == pytest.approx(2.0)
    rows = [{"size": size, "seconds": 1e-5 * size, "megabytes": 0.0} for size in sizes]
    line = {
        "axis": "users",
        "rows": rows,
        "time": 1.0,
        "time_expected": 1,
        "memory": np.nan,
        "memory_expected": 1,
        "why": "",
    }
    assert "1.00" in growth.text_of([line])
    assert growth.draw([line]).axes[0].get_xlabel() == "exponents: time 1.00, memory –"
    seen = growth.measure({**growth.BASE, "objectives": 3, "rounds": 5, "trials": 2})
    assert seen["seconds"] > 0
