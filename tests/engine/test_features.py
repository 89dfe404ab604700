"""Features of arms: declared, given, changed, refused, and as numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pamo import Engine
from pamo.contract.features import Feature, feature
from pamo.engine.features import table_of
from pamo.errors import InputError

FEATURES = ["stars: number", "pool: yes or no", "style: word"]


def test_features_are_declared_given_and_kept_until_they_change(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with Engine(["taste"], store=path, features=FEATURES[:2]) as engine:
        engine.add_arm("A", "Anchor Inn", features={"stars": 4, "pool": True})
        engine.add_arms({"B": "Bristol", "C": None}, features={"C": {"stars": 2.5}})
        engine.add_arm("A", features={"stars": 5})
        engine.add_arm("A", features={"stars": 5})  # the same again
        engine.retire_arm("B")
    with Engine(store=path, features=[*FEATURES[:1], *FEATURES[2:]]) as engine:
        assert [(one.name, one.kind) for one in engine.features] == [
            ("stars", "number"),
            ("pool", "yes or no"),
            ("style", "word"),
        ]
        engine.add_arm("C", "Crown", features={"style": "modern", "stars": None})
        assert [(one.id, one.name, one.active, one.features) for one in engine.arms()] == [
            ("A", "Anchor Inn", True, {"stars": 5.0, "pool": True}),
            ("B", "Bristol", False, {}),
            ("C", "Crown", True, {"style": "modern"}),
        ]
        assert engine.decide("ann").arm in {"A", "C"}
        engine.store.rebuild()
        arm = engine.arm("A")
        assert arm is not None
        assert arm.features == {"stars": 5.0, "pool": True}
        assert len(list(engine.store.events())) == 10


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({"stars": "many"}, "features.stars", "expected stars to be a number, got 'many'"),
        ({"stars": True}, "features.stars", "expected stars to be a number, got True"),
        ({"pool": "yes"}, "features.pool", "true or false, got 'yes'"),
        ({"pool": 1}, "features.pool", "true or false, got 1"),
        ({"style": 3}, "features.style", "expected style to be a word"),
        ({"stars": 3, "view": "sea"}, "features", "unknown feature 'view'"),
        ([3], "features", "features by name"),
    ],
)
def test_a_feature_that_is_wrong_is_refused_and_changes_nothing(given: Any, field: str, said: str) -> None:
    with Engine(["taste"], features=FEATURES) as engine:
        engine.add_arm("A", features={"stars": 3})
        before = list(engine.store.events())
        with pytest.raises(InputError, match=said) as caught:
            engine.add_arm("A", features=given)
        assert caught.value.field == field
        with pytest.raises(InputError, match=said) as caught:
            engine.add_arms(["B", "A"], features={"A": given})
        assert caught.value.field == field.replace("features", "features.A", 1)
        with pytest.raises(InputError, match="by the ids of these arms"):
            engine.add_arms(["B"], features={"A": {"stars": 3}})
        assert list(engine.store.events()) == before


def test_a_declaration_that_is_wrong_is_refused() -> None:
    for wrong in ("stars: price", {"name": "stars", "size": 3}, 7, Feature("stars", "colour"), ""):
        with pytest.raises(InputError, match="expected a feature"):
            feature(wrong)  # type: ignore[arg-type]
    with Engine(["taste"], features=FEATURES) as engine:
        for again, said in ((["pool"], "'pool: yes or no', as it was declared"), (["x", "x: word"], "different names")):
            with pytest.raises(InputError, match=said) as caught:
                engine.declare_features(again)
            assert caught.value.field == "features"
        with pytest.raises(InputError, match="put it into a list"):
            engine.declare_features("view: word")
        assert len(engine.features) == 3


def test_features_as_numbers() -> None:
    declared = {one.name: one for one in map(feature, [*FEATURES, "never"])}
    arms: list[dict[str, Any]] = [{"stars": 4.0, "pool": True}, {"style": "old", "pool": False}, {}, {"style": "new"}]
    names, table = table_of(arms, declared)
    assert names == ["stars", "pool", "style: new", "style: old"]
    nan = np.nan
    expected = [[4.0, 1.0, nan, nan], [nan, 0.0, 0.0, 1.0], [nan] * 4, [nan, nan, 1.0, 0.0]]
    np.testing.assert_array_equal(table, expected)
    assert table_of([], declared)[1].shape == (0, 0)
    assert table_of([{}, {}], {})[1].shape == (2, 0)


def test_there_is_an_end_to_features_and_to_what_counts_of_them() -> None:
    """Arms are compared by each, so that what that costs grows with the square of how many there are."""
    with Engine(["taste"], seed=1) as engine:
        engine.declare_features([f"f{n}" for n in range(60)])
        with pytest.raises(InputError, match="at most 100 features in all"):
            engine.declare_features([f"g{n}" for n in range(41)])
        engine.declare_features([f"g{n}: word" for n in range(40)])
        engine.declare_features(["f1", "g1: word"])  # the same again is none more
        engine.add_arms(
            [f"arm {n}" for n in range(30)],
            {
                f"arm {n}": {"f0": n, "f1": 1, "g0": "often", **{f"g{k}": f"word {n}" for k in (1, 2)}}
                for n in range(30)
            },
        )
        names, table = table_of(engine.store.arms().features, engine.store.features)
        assert (names[:3], "g0: often" in names, table.shape) == (["f0", "f1", "g0: often"], True, (30, 2 + 40))
        assert engine.decide("ann").arm
