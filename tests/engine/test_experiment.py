"""Experiments with a control group, through the engine."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pamo.comparing import difference
from pamo.contract.events import ExperimentStarted
from pamo.contract.experiments import CONTROL, Variant, group_of, share
from pamo.engine import AsyncEngine, Engine, Request
from pamo.engine.experiment import told_of_experiment
from pamo.errors import ConflictError, InputError
from pamo.store import MemoryStore, folded
from pamo.store.maintenance import verify

SCALES = ["taste: 1..5", "price: 0..500, lower is better"]
WORTH = {"A": (5.0, 100.0), "B": (3.0, 300.0), "C": (1.0, 500.0)}
USERS = [f"user {n}" for n in range(400)]
CHEAP = {"taste": 0.0, "price": 1.0}
A = {"name": "a", "share": 0.1}


def group(user: str, experiment: str, control: float, *variants: Variant, policy: str = "random") -> str | None:
    found = group_of(user, experiment, ExperimentStarted(experiment, 0.0, control, policy, 0.2, variants).groups())
    return None if found is None else found.name


def begun(policy: str = "recommended") -> Engine:
    engine = Engine(SCALES, policy, seed=1)
    engine.add_arms(list(WORTH))
    return engine


def rate(engine: Engine, decision: Any, rng: np.random.Generator, shift: float = 0.0) -> None:
    taste, price = WORTH[decision.arm]
    noise = rng.normal(0.0, 0.02, 2).tolist()
    given = {"taste": min(max(taste + 4 * noise[0], 1.0), 5.0), "price": min(max(price + 500 * noise[1], 0.0), 500.0)}
    engine.feedback(decision, given, overall=min(max((taste - 1.0) / 4.0 + noise[0] + shift, 0.0), 1.0))


def test_users_keep_to_their_group_and_groups_are_as_large_as_told() -> None:
    for experiment in ("autumn", "winter"):
        groups = [group(f"u{n}", experiment, 0.05) for n in range(20_000)]
        assert Counter(groups)[CONTROL] == pytest.approx(1000, abs=4 * 31)
    both = [group(f"u{n}", "autumn", 0.5) == group(f"u{n}", "winter", 0.5) for n in range(10_000)]
    assert np.mean(both) == pytest.approx(0.5, abs=0.02)  # who was in one control group is in the next by chance
    larger = [(group(f"u{n}", "e", 0.05), group(f"u{n}", "e", 0.2)) for n in range(2000)]
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
            mine = group(one.user, "autumn", 0.25)
            assert one.group == ("autumn", mine)
            assert one.policy.startswith("random@") == (mine == CONTROL)
            assert mine != CONTROL or one.propensity == pytest.approx(1 / 3)
        chosen = Counter(one.arms[0] for one in made if one.group[1] == CONTROL)
        assert min(chosen.values()) > 15
        why = engine.explain(next(one.id for one in made if one.group[1] == CONTROL)).sentence
        assert "in the group 'control' of the experiment 'autumn': random" in why
        told = engine.experiment()
        assert told is not None
        (pamo,) = told.variants
        assert (pamo.name, pamo.share, pamo.policy, pamo.preference) == ("treated", 0.75, "live", None)
        assert (pamo.overall.better, pamo.objectives["price"].better) == (True, True)
        assert pamo.objectives["taste"].difference == pytest.approx(2.0, abs=0.7)
        price = pamo.objectives["price"]
        assert price.low < price.difference < price.high < 0.0  # type: ignore[operator]  # cheaper, which is better
        assert price.treated == pytest.approx(100.0, abs=30.0)
        assert price.control == pytest.approx(300.0, abs=60.0)
        assert pamo.users + told.control_users == 400
        assert told.sentence.startswith("With pamo, overall is better than in control, by 0.")
        assert told.warning == ""
        whole = engine.store.compared()
        monkeypatch.setattr(folded, "AT_A_TIME", 7)
        for name, one in engine.store.compared().items():
            assert one.users == whole[name].users
            np.testing.assert_allclose(one.scores, whole[name].scores)
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
            if group(user, "nothing", 0.5) == CONTROL or rng.random() < 0.3:
                rate(engine, engine.decide(user), rng, shift=-0.5)
        told = engine.experiment()
        assert told is not None
        assert told.variants[0].overall.better is None
        assert told.sentence.startswith("No difference")
        assert "50.0% were meant" in told.warning


@pytest.mark.parametrize("policy", ["arm:C", "caller"])
def test_control_may_get_one_arm_or_what_the_caller_would_give(policy: str) -> None:
    with begun() as engine:
        engine.start_experiment("one", "50%", policy)
        choice: Any = {"choice": "B"} if policy == "caller" else {}
        control = [user for user in USERS[:40] if group(user, "one", 0.5) == CONTROL]
        made = [engine.decide(user, **choice) for user in control]
        assert {one.arm for one in made} == {"B" if policy == "caller" else "C"}
        assert {(one.propensity, one.policy.split("@")[0]) for one in made} == {(1.0, policy)}
        together = engine.decide_many([Request(user, k=2, **choice) for user in USERS[:40]])
        assert [one.user for one in together] == USERS[:40]
        assert {one.arms[0] for one in together if one.user in control} == {made[0].arm}
        assert {engine.made(one.id).group for one in together} == {("one", "control"), ("one", "treated")}
        if policy == "caller":
            treated = next(user for user in USERS if group(user, "one", 0.5) != CONTROL)
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
            ({"policy": "mine.py:Mine"}, "expected a group's policy to be 'live'"),
            ({"policy": "greedier"}, "unknown policy 'greedier'"),
            ({"policy": "ucb-per-user"}, "which no store keeps"),
            ({"policy": "prucb-hp-v:ridge=2"}, "otherwise than the service does"),
            ({"policy": "live"}, "nothing to compare with"),
            ({"variants": "abc"}, "expected variants as a list"),
            ({"variants": [{"name": "a"}]}, "a variant with name, share"),
            ({"variants": [A, A]}, "a name of its own"),
            ({"variants": [{**A, "name": "treated"}]}, "a name of its own"),
            ({"variants": [{**A, "share": 0.96}]}, "at most 100% of the users, got 1.01"),
            ({"variants": [{**A, "policy": "arm:Z"}]}, "there is no arm 'Z'"),
            ({"variants": [{**A, "policy": "random", "preference": CHEAP}]}, "for a policy that reads them"),
            ({"variants": [{**A, "policy": "greedy", "preference": CHEAP}]}, "greedy does not read a preference"),
            ({"variants": [{**A, "preference": {"price": 1}}]}, "a weight for every objective"),
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


def test_several_variants_are_served_each_in_its_way_and_compared_with_control_all_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told_of: list[Any] = [
        {"name": "cheap", "share": 0.2, "preference": CHEAP},
        {"name": "dice", "share": "20%", "policy": "random"},
        Variant("bold", 0.2, "prucb-hp-v:reward_scale=3"),
        Variant("greedy", 0.1, "greedy"),
    ]
    worth = {"tasty": (5.0, 400.0), "fair": (3.0, 100.0)}
    rng = np.random.default_rng(1)

    def rated(engine: Engine, user: str) -> None:
        made = engine.decide(user)
        taste, price = worth[made.arm]
        engine.feedback(
            made,
            {"taste": float(np.clip(taste + rng.normal(0, 0.2), 1, 5)), "price": price + float(rng.normal(0, 10))},
            overall=float(np.clip((taste - 1) / 4 + rng.normal(0, 0.05), 0, 1)),
        )

    with Engine(SCALES, store=tmp_path / "shop.db", seed=1) as engine:
        engine.add_arms(list(worth))
        for n in range(20):  # before it, so that what is learned is there when it begins
            rated(engine, f"early {n}")
        engine.start_experiment("many", "20%", "live", variants=told_of)
        for user in USERS[:300]:
            rated(engine, user)
        told = engine.experiment()
    with Engine(store=tmp_path / "shop.db", seed=2) as engine:  # a restart goes on
        assert engine.experiment() == told
        assert not caplog.text  # of a snapshot that is left aside
        running = engine.store.running
        assert running is not None
        asdicts = [(one.name, one.share, one.policy, one.preference) for one in running.variants]
        assert asdicts[0] == ("cheap", 0.2, "live", CHEAP)
        assert asdicts[3] == ("greedy", 0.1, "greedy", None)
        engine.start_experiment("many", 0.2, "live", variants=told_of)  # the same again
        for user in USERS[300:]:
            rated(engine, user)
        made: list[Any] = [one for _, one in engine.store.events() if type(one).__name__ == "DecisionMade"]
        by_group: dict[str | None, list[Any]] = {}
        for one in made[20:]:
            wanted = group(one.user, "many", 0.2, *running.variants, policy="live")
            assert one.group == (None if wanted is None else ("many", wanted))
            by_group.setdefault(wanted, []).append(one)
        assert {name: len(several) / 400 for name, several in by_group.items()} == pytest.approx(
            {"control": 0.2, "cheap": 0.2, "dice": 0.2, "bold": 0.2, "greedy": 0.1, None: 0.1}, abs=0.06
        )
        labels = {name: {one.policy.split("@")[0] for one in several} for name, several in by_group.items()}
        assert labels == {
            "control": {"prucb-hp-v"},
            None: {"prucb-hp-v"},
            "cheap": {"prucb-kp-v"},
            "dice": {"random"},
            "bold": {"prucb-hp-v:reward_scale=3"},
            "greedy": {"greedy"},
        }
        served = {name: Counter(one.arms[0] for one in several) for name, several in by_group.items()}
        assert served["cheap"]["fair"] > 10 * served["cheap"]["tasty"]
        assert served["control"]["tasty"] > served["control"]["fair"]
        explained = engine.explain(by_group["cheap"][-1].id)
        assert explained.preference == CHEAP
        assert "in the group 'cheap' of the experiment 'many'" in explained.sentence
        told = engine.experiment()
        assert told is not None
        assert [one.name for one in told.variants] == ["cheap", "dice", "bold", "greedy"]
        cheap, dice = told.variants[:2]
        assert (cheap.overall.better, cheap.objectives["taste"].better, cheap.objectives["price"].better) == (
            False,
            False,
            True,
        )
        assert dice.overall.better is False
        assert "With 'cheap', overall is worse than in control" in told.sentence
        assert "with 'bold'" in told.sentence
        # Four intervals at once are as wide as such that err in 5 % / 4 of experiments.
        sums = engine.store.compared()
        at_once = difference(sums["dice"].scores[-1], sums[CONTROL].scores[-1], alpha=0.05 / 4)
        alone = difference(sums["dice"].scores[-1], sums[CONTROL].scores[-1])
        assert at_once is not None
        assert alone is not None
        assert (dice.overall.low, dice.overall.high) == pytest.approx((at_once.low, at_once.high))
        assert at_once.high - at_once.low > 1.05 * (alone.high - alone.low)
        assert verify(engine.store).ok
        copy = MemoryStore(engine.store.setup)
        copy.load(engine.store.events())
        assert told_of_experiment(copy) == told
        many = engine.decide_many(USERS[:50])
        assert [engine.made(one.id).group for one in many] == [one.group for one in made[20:70]]
        engine.end_experiment()
        assert engine.made(engine.decide(USERS[0]).id).group is None


@pytest.mark.parametrize(
    ("live", "other"),
    [("recommended", "greedy"), ("greedy", "prucb-hp-v"), ("recommended", "prucb-hp-v:reward_scale=3")],
)
def test_a_variant_chooses_as_an_engine_with_its_policy_alone_would(live: str, other: str) -> None:
    """What is known of arms and users is the same for all policies, whichever of them asked first."""
    rng = np.random.default_rng(3)
    engines = [begun(live), begun(other)]
    engines[0].start_experiment("e", 0.8, other)
    compared = 0
    for turn in range(150):
        user = f"u{turn % 5}"
        mine = group(user, "e", 0.8, policy=other) == CONTROL
        offer = None if mine else [str(rng.choice(list(WORTH)))]  # of the others both are to see the same
        for engine in engines:  # when that is done by itself hangs on who decides
            engine.core.decider.refit()
            engine.core.decider._chooser.expire()
        made = [engine.decide(user, offer) for engine in engines]
        if mine:
            assert (made[0].arm, made[0].policy) == (made[1].arm, made[1].policy), turn
            compared += 1
        noise = rng.normal(0.0, 0.3, 3).tolist()
        scores = {"taste": min(max(3.0 + noise[0], 1.0), 5.0), "price": min(max(250.0 + 200 * noise[1], 0.0), 500.0)}
        for engine, one in zip(engines, made, strict=True):
            engine.feedback(one, scores, overall=min(max(0.5 + noise[2], 0.0), 1.0))
    assert compared >= 60
    for engine in engines:
        engine.close()
