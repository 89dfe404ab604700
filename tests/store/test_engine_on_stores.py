"""The engine over every kind of store: the same decisions, and workers that learn from one another."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pamo import Engine
from pamo.store import Objective, Setup, fold, names, open_store
from pamo.store.maintenance import verify
from tests.engine.worlds import World
from tests.store.homes import Home


def test_an_engine_decides_alike_over_every_store(home: Home) -> None:
    world, same = World(seed=30), World(seed=30)
    with world.engine() as reference:
        expected = world.play(reference, 8)
        rounds = reference.preference("u0").rounds
    store = home.open(Setup(tuple(map(Objective, same.names))))
    with same.engine(store=store) as engine:
        assert same.play(engine, 8) == expected
        assert engine.preference("u0").rounds == rounds == 8
        assert engine.erase_user("u0")
        assert engine.preference("u0").rounds == 0
        assert verify(store).ok


def test_an_experiment_goes_alike_over_every_store_and_goes_on_after_a_restart(home: Home) -> None:
    world, same = World(users=40, seed=33), World(users=40, seed=33)
    weights = dict.fromkeys(world.names, 1.0)
    variants = [
        {"name": "fair", "share": 0.3, "preference": weights},
        {"name": "dice", "share": 0.2, "policy": "random"},
    ]
    with world.engine() as reference:
        reference.start_experiment("e", 0.3, "live", variants=variants)
        expected, told = world.play(reference, 4), reference.experiment()
    assert told is not None
    store = home.open(Setup(tuple(map(Objective, same.names))))
    with same.engine(store=store) as engine:
        engine.start_experiment("e", 0.3, "live", variants=variants)
        assert same.play(engine, 4) == expected
        found = engine.experiment()
        assert found is not None
        assert (found.sentence, found.control_users) == (told.sentence, told.control_users)
        assert [one.users for one in found.variants] == [one.users for one in told.variants]
        groups = [engine.made(engine.decide(user).id).group for user in same.users]
    store.close()
    if home.durable:
        with home.open() as again, Engine(store=again, seed=2) as engine:
            assert engine.experiment() == found
            assert [engine.made(engine.decide(user).id).group for user in same.users] == groups
            assert verify(again).ok


def test_workers_on_one_database_learn_from_one_another(postgres_url: Callable[[], str]) -> None:
    url, world = postgres_url(), World(seed=31)
    with world.engine(store=url) as one, Engine(world.names, store=url, seed=2) as two:
        for worker in (one, two) * 6:
            world.play(worker, 1)
        assert one.preference("u0").rounds == two.preference("u0").rounds == 12
        decision = one.decide("u1")
        world.answer(two, decision)  # decided by one, answered by the other
        assert one.preference("u1").rounds == 13
    with open_store(url) as store:  # the workers' own view of the arms may be half a second old
        assert verify(store).ok
        assert store.arms().statistics.pulls.sum() == 12 * len(world.users) + 1


@pytest.mark.parametrize("recent", [2, names.RECENT])
def test_one_users_row_is_the_same_as_among_many(home: Home, recent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever has become of the user since the row was last asked for."""
    monkeypatch.setattr(names, "RECENT", recent)
    monkeypatch.setattr(fold, "RECENT", recent)
    world = World(users=3, seed=32)
    store = home.open(Setup(tuple(map(Objective, world.names))))

    def check() -> None:
        for user in ("u0", "u1", "u2", "nobody"):
            with store.lock:
                one, many = store.user_row(user), store.user_rows([user])
                assert [rows.tolist() for rows in one] == [rows.tolist() for rows in many]

    with world.engine(store=store) as engine:
        world.play(engine, 1)
        check()
        world.play(engine, 1, "stated")
        check()
        engine.erase_user("u2")
        check()
        world.answer(engine, engine.decide("u2"))
        world.answer(engine, engine.decide("u1"))
        check()
        assert [store.user_row(user)[0][0, 0] for user in world.users] == [2, 3, 1]
