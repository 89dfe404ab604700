"""Experiments with a control group, through the engine."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import numpy as np
import pytest

from pamo.contract.experiments import CONTROL, group_of, share
from pamo.engine import AsyncEngine, Engine, Request
from pamo.errors import ConflictError, InputError
from pamo.store import folded
from pamo.store.maintenance import verify

SCALES = ["taste: 1..5", "price: 0..500, lower is better"]
WORTH = {"A": (5.0, 100.0), "B": (3.0, 300.0), "C": (1.0, 500.0)}
USERS = [f"user {n}" for n in range(400)]


def begun() -> Engine:
    engine = Engine(SCALES, seed=1)
    engine.add_arms(list(WORTH))
    return engine


def rate(engine: Engine, decision: Any, rng: np.random.Generator, shift: float = 0.0) -> None:
    taste, price = WORTH[decision.arm]
    noise = rng.normal(0.0, 0.02, 2).tolist()
    given = {"taste": min(max(taste + 4 * noise[0], 1.0), 5.0), "price": min(max(price + 500 * noise[1], 0.0), 500.0)}
    engine.feedback(decision, given, overall=min(max((taste - 1.0) / 4.0 + noise[0] + shift, 0.0), 1.0))


def test_users_keep_to_their_group_and_groups_are_as_large_as_told() -> None:
    for experiment in ("autumn", "winter"):
        groups = [group_of(f"u{n}", experiment, 0.05) for n in range(20_000)]
        assert Counter(groups)[CONTROL] == pytest.approx(1000, abs=4 * 31)
    both = [group_of(f"u{n}", "autumn", 0.5) == group_of(f"u{n}", "winter", 0.5) for n in range(10_000)]
    assert np.mean(both) == pytest.approx(0.5, abs=0.02)  # who was in one control group is in the next by chance
    larger = [(group_of(f"u{n}", "e", 0.05), group_of(f"u{n}", "e", 0.2)) for n in range(2000)]
    assert not [one for one in larger if one[0] == CONTROL != one[1]]


def test_a_random_control_group_is_found_to_be_worse_off_and_the_journal_knows_who_was_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    with begun() as engine:
        assert engine.experiment() is None
        engine.start_experiment("autumn", "25%")
        told = engine.experiment()
        assert told is not None
        assert told.sentence.startswith("Too early to tell: about 1,2")
        for user in USERS:
            rate(engine, engine.decide(user), rng)
        made: list[Any] = [one for _, one in engine.store.events() if type(one).__name__ == "DecisionMade"]
        for one in made:
            group = group_of(one.user, "autumn", 0.25)
            assert one.group == ("autumn", group)
            assert one.policy.startswith("random@") == (group == CONTROL)
            assert group != CONTROL or one.propensity == pytest.approx(1 / 3)
        chosen = Counter(one.arms[0] for one in made if one.group[1] == CONTROL)
        assert min(chosen.values()) > 15
        why = engine.explain(next(one.id for one in made if one.group[1] == CONTROL)).sentence
        assert "control group of the experiment 'autumn': random" in why
        told = engine.experiment()
        assert told is not None
        assert (told.overall.better, told.objectives["price"].better) == (True, True)
        assert told.objectives["taste"].difference == pytest.approx(2.0, abs=0.7)
        price = told.objectives["price"]
        assert price.low < price.difference < price.high < 0.0  # type: ignore[operator]  # cheaper, which is better
        assert price.treated == pytest.approx(100.0, abs=30.0)
        assert price.control == pytest.approx(300.0, abs=60.0)
        assert told.treated_users + told.control_users == 400
        assert told.sentence.startswith("With pamo, overall is better than in control, by 0.")
        assert told.warning == ""
        whole = engine.store.compared()
        monkeypatch.setattr(folded, "AT_A_TIME", 7)
        for one, other in zip(engine.store.compared(), whole, strict=True):
            assert one.users == other.users
            np.testing.assert_allclose(one.scores, other.scores)
        gone = next(one.user for one in made if one.group[1] == CONTROL)
        engine.erase_user(gone)
        after = engine.experiment()
        assert after is not None
        assert after.control_users == told.control_users - 1
        engine.end_experiment()
        assert engine.made(engine.decide(gone).id).group is None
        told = engine.experiment()
        assert told is not None
        assert told.ended is not None
        assert verify(engine.store).ok


def test_without_a_difference_none_is_told_and_lopsided_feedback_is_warned_of() -> None:
    rng = np.random.default_rng(2)
    with begun() as engine:
        engine.retire_arm("B")
        engine.retire_arm("C")
        engine.start_experiment("nothing", 0.5, smallest=0.5)
        for user in USERS[:200]:
            if group_of(user, "nothing", 0.5) == CONTROL or rng.random() < 0.3:
                rate(engine, engine.decide(user), rng, shift=-0.5)
        told = engine.experiment()
        assert told is not None
        assert told.overall.better is None
        assert told.sentence.startswith("No difference")
        assert "50.0% were meant" in told.warning


@pytest.mark.parametrize("policy", ["arm:C", "caller"])
def test_control_may_get_one_arm_or_what_the_caller_would_give(policy: str) -> None:
    with begun() as engine:
        engine.start_experiment("one", "50%", policy)
        choice: Any = {"choice": "B"} if policy == "caller" else {}
        control = [user for user in USERS[:40] if group_of(user, "one", 0.5) == CONTROL]
        made = [engine.decide(user, **choice) for user in control]
        assert {one.arm for one in made} == {"B" if policy == "caller" else "C"}
        assert {(one.propensity, one.policy.split("@")[0]) for one in made} == {(1.0, policy)}
        together = engine.decide_many([Request(user, k=2, **choice) for user in USERS[:40]])
        assert [one.user for one in together] == USERS[:40]
        assert {one.arms[0] for one in together if one.user in control} == {made[0].arm}
        assert {engine.made(one.id).group for one in together} == {("one", "control"), ("one", "treated")}
        if policy == "caller":
            treated = next(user for user in USERS if group_of(user, "one", 0.5) != CONTROL)
            for user in (control[0], treated):  # whoever it is for
                for wrong in (None, "Z"):
                    with pytest.raises(InputError, match="choice to be an arm on offer") as raised:
                        engine.decide(user, choice=wrong)
                    assert raised.value.field == "choice"
            with pytest.raises(InputError, match="choice"):
                engine.decide_many([Request(treated, choice="A"), Request(control[0])])
        else:
            assert engine.decide(control[0], ["A", "B"]).propensity == 0.5  # where it is not on offer, any
            assert len(set(engine.decide(control[0], k=3).arms)) == 3


def test_what_is_wrong_with_an_experiment_is_said() -> None:
    with begun() as engine:
        with pytest.raises(InputError, match="no experiment to end"):
            engine.end_experiment()
        several: list[tuple[dict[str, Any], str]] = [
            ({"name": ""}, "experiment's name"),
            ({"control": "all"}, "such as 5%, got 'all'"),
            ({"control": "100%"}, "below 1"),
            ({"policy": "greedy"}, "expected control's policy"),
            ({"policy": "arm:Z"}, "there is no arm 'Z'"),
            ({"smallest": -1}, "smallest difference"),
        ]
        for wrong, match in several:
            with pytest.raises(InputError, match=match):
                engine.start_experiment(**{"name": "e", **wrong})
        engine.start_experiment("e", share("5%"))
        engine.start_experiment("e", "5 %")
        with pytest.raises(ConflictError, match="is running: end it first"):
            engine.start_experiment("f")
        asyncio.run(AsyncEngine(engine).end_experiment())
        engine.end_experiment()
        with pytest.raises(ConflictError, match="another name"):
            engine.start_experiment("e")
