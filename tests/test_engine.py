"""The engine as an application uses it: modes, feedback of all kinds, arms, users, errors."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pamo import Engine, InputError, PamoError, policies
from pamo.engine import Objective, deciding
from pamo.errors import ConflictError, ExpiredDecisionError, UnknownDecisionError
from pamo.store import MemoryStore, Setup, open_store
from pamo.store.maintenance import verify
from tests.engine.worlds import World

HOTELS: list[Any] = ["price: 0..500, lower is better", {"name": "taste", "low": 1, "high": 5}, Objective("quiet")]
GOOD = {"price": 100.0, "taste": 4.0, "quiet": 0.5}
MOST_CALLS = 47
"""Functions of Python that a decision and its feedback may call, in all."""


@pytest.fixture
def engine() -> Any:
    with Engine(HOTELS, seed=1) as made:
        for arm, name in (("A", "Anchor Inn"), ("B", "Bristol"), ("C", "Central")):
            made.add_arm(arm, name)
        yield made


def state(engine: Engine) -> Any:
    """Return everything that a feedback could change, as text."""
    store = engine.store
    users = sorted(store.user_ids())
    arms = [array.tolist() for array in store.arms().statistics._arrays().values()]
    return repr((arms, [rows.tolist() for rows in store.user_rows(users)], users, store.pending()))


def test_objectives_are_declared_in_any_way_and_normalised(engine: Engine) -> None:
    assert engine.objectives == (Objective("price", 0, 500, True), Objective("taste", 1, 5), Objective("quiet"))
    decision = engine.decide("ann", arms=["A"])
    engine.feedback(decision.id, GOOD, overall=1)
    assert engine.store.arms().statistics.reward_sum[0].tolist() == pytest.approx([0.8, 0.75, 0.5])


@pytest.mark.parametrize("scale", ["stars: 1..5", "1..5", " 1 to 5", {"name": "overall", "low": 1, "high": 5}])
def test_the_overall_score_has_a_scale_too(scale: Any) -> None:
    with Engine(["taste"], overall=scale, seed=1) as engine:
        engine.add_arm("A")
        engine.feedback(engine.decide("ann").id, {"taste": 0.5}, overall=4)
        assert engine.store.arms().statistics.overall_sum[0] == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["price: cheap"], "such as 'taste'"),
        ([{"label": "price"}], "with name, low, high"),
        ("price", "put it into a list"),
        ([], "at least one objective"),
        (["a", "a"], "different names"),
        (["a: 5..1"], "lower to a higher"),
        ([3], "such as 'taste'"),
        (None, "needs its objectives"),
    ],
)
def test_wrong_objectives_are_refused_with_a_sentence(given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Engine(given)


def test_a_decision_says_what_and_how(engine: Engine) -> None:
    decision = engine.decide("ann", k=5)
    assert decision.user == "ann"
    assert decision.arm == decision.arms[0]
    assert sorted(decision.arms) == ["A", "B", "C"]
    assert decision.propensity == pytest.approx(1 / 3)  # none was tried: any might have come first
    assert decision.policy.startswith("prucb-hp-v@")
    assert engine.decision(decision.id) == decision
    seen = {engine.decide("ann").arm for _ in range(50)}
    assert seen == {"A", "B", "C"}


def test_the_same_seed_decides_alike() -> None:
    def arms(seed: int) -> list[str]:
        with World().engine(seed=seed) as engine:
            return [engine.decide("ann").arm for _ in range(30)]

    assert arms(1) == arms(1)
    assert arms(1) != arms(2)


def test_the_modes_mix_freely(engine: Engine) -> None:
    modes = []
    for _ in range(9):
        engine.feedback(engine.decide("hidden").id, GOOD, overall=0.5)
        told = engine.feedback(engine.decide("stated").id, GOOD, preference={"price": 1, "taste": 0, "quiet": 0})
        assert "preference" in told.learned
        known = engine.decide("hidden", preference={"price": 0, "taste": 2, "quiet": 0})
        modes.append([engine.decide("hidden").policy, engine.decide("stated").policy, known.policy])
    assert [policy.split("@")[0] for policy in modes[-1]] == ["prucb-hp-v", "prucb-up-v", "prucb-kp-v"]
    assert engine.explain(known).preference == {"price": 0, "taste": 2, "quiet": 0}
    assert engine.explain(engine.decide("stated")).preference == {"price": 1, "taste": 0, "quiet": 0}


def test_what_is_known_decides() -> None:
    world = World(arms=2, users=1, objectives=2, seed=2)
    world.means = np.array([[0.9, 0.1], [0.1, 0.9]])
    with world.engine() as engine:
        for arm in world.arms * 10:
            world.answer(engine, engine.decide("u0", arms=[arm]))
        assert engine.decide("x", preference={"o0": 1.0, "o1": 0.0}).arm == "A0"
        assert engine.decide("x", preference={"o0": 0.0, "o1": 1.0}).arm == "A1"
        assert engine.decide("x", preference={"o1": 1.0, "o0": 0.0}).arm == "A1"  # by name, not by order


def test_a_named_policy_is_used_for_all() -> None:
    with World().engine(policy=policies.create("greedy")) as engine:
        decision = engine.decide("ann")
        engine.feedback(decision.id, dict.fromkeys(["o0", "o1", "o2"], 0.5), preference={"o0": 1, "o1": 1, "o2": 1})
        assert engine.decide("ann").policy.startswith("greedy@")
        with pytest.raises(InputError, match="does not read a preference"):
            engine.decide("ann", preference={"o0": 1, "o1": 1, "o2": 1})
    with World().engine(policy="prucb-kp") as engine, pytest.raises(InputError, match="needs the user's preference"):
        engine.decide("ann")


@pytest.mark.parametrize(
    ("policy", "said"),
    [("ucb-per-user", "which no store keeps"), ("moss", "horizon"), ("prucb", "did you mean"), (3, "name of one")],
)
def test_policies_that_cannot_be_used_here_are_refused(policy: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Engine(["a"], policy=policy)


def test_feedback_comes_once(engine: Engine) -> None:
    decision = engine.decide("ann")
    first = engine.feedback(decision.id, GOOD, overall=0.5)
    assert (first.id, first.status, first.not_learned) == (decision.id, "recorded", ())
    before = state(engine)
    again = engine.feedback(decision.id, dict(GOOD), overall=0.5)
    assert (again.status, again.learned) == ("duplicate", first.learned)
    with pytest.raises(ConflictError, match="another feedback was recorded"):
        engine.feedback(decision.id, {**GOOD, "taste": 3.0}, overall=0.5)
    with pytest.raises(UnknownDecisionError, match="there is no decision"):
        engine.feedback("nothing", GOOD)
    assert state(engine) == before


def test_feedback_may_be_partial_and_says_what_it_did_not_teach(engine: Engine) -> None:
    answer = engine.feedback(engine.decide("ann", arms=["A"]).id, {"taste": 5})
    assert answer.learned == ("arm: taste",)
    assert answer.not_learned == ("arm: price", "arm: quiet", "arm: overall", "preference")
    assert engine.store.arms().statistics.objective_count[0].tolist() == [0, 1, 0]
    engine.feedback(engine.decide("ann", arms=["A"]).id, GOOD)
    chosen = engine.explain(engine.decide("ann", arms=["A"])).chosen
    assert chosen is not None
    assert chosen.values["taste"] == pytest.approx((1 + 0.75) / 2 / 3)


def test_feedback_may_be_for_another_arm_of_the_ranking(engine: Engine) -> None:
    decision = engine.decide("ann", k=2)
    with pytest.raises(InputError, match="chose"):
        engine.feedback(decision.id, GOOD, arm=({"A", "B", "C"} - set(decision.arms)).pop())
    engine.feedback(decision.id, GOOD, arm=decision.arms[1])
    table = engine.store.arms()
    assert table.statistics.pulls[table.rows[decision.arms[1]]] == 1


def test_late_feedback_counts_until_the_decision_expires() -> None:
    now = [0.0]
    with Engine(["a"], seed=1, clock=lambda: now[0]) as engine:
        engine.add_arm("A")
        first, second = engine.decide("ann"), engine.decide("ann")
        now[0] = 29 * 86400.0
        assert engine.feedback(first.id, {"a": 1}).status == "recorded"
        now[0] = 31 * 86400.0
        before = state(engine)
        with pytest.raises(ExpiredDecisionError, match="nothing was learned"):
            engine.feedback(second.id, {"a": 1})
        assert state(engine) == before


def test_arms_come_and_go(engine: Engine) -> None:
    late = engine.decide("ann", arms=["B"])
    engine.retire_arm("B")
    assert {engine.decide("ann").arm for _ in range(30)} == {"A", "C"}
    with pytest.raises(InputError, match="'B' is retired"):
        engine.decide("ann", arms=["A", "B"])
    engine.feedback(late.id, GOOD)
    arms = {arm.id: arm for arm in engine.arms()}
    assert (arms["B"].active, arms["B"].pulls, arms["B"].name) == (False, 1, "Bristol")
    engine.add_arm("B")  # it keeps its name
    engine.add_arm("A", "Anker")
    assert [(arm.name, arm.active) for arm in engine.arms()] == [("Anker", True), ("Bristol", True), ("Central", True)]
    engine.add_arm("D")
    decision = engine.decide("ann", k=4)
    assert sorted(decision.arms) == ["A", "B", "C", "D"]
    with pytest.raises(InputError, match="there is no arm 'Z'"):
        engine.retire_arm("Z")


def test_new_arms_in_an_offer_are_refused_unless_accepted(engine: Engine) -> None:
    with pytest.raises(InputError, match="unknown arm 'E'"):
        engine.decide("ann", arms=["A", "E"])
    with Engine(["a"], accept_new_arms=True, seed=1) as open_minded:
        assert open_minded.decide("ann", arms=["X"]).arm == "X"
        assert open_minded.decide_many([{"user": "bob", "arms": ["Y"]}])[0].arm == "Y"
        assert [arm.id for arm in open_minded.arms()] == ["X", "Y"]


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"user": 3}, "a user of 1 to 256 characters"),
        ({"user": "\ud800"}, "a user of 1 to 256 characters"),
        ({"user": "u" * 300}, "1 to 256 characters"),
        ({"user": "ann", "arms": []}, "at least one arm"),
        ({"user": "ann", "arms": "A"}, "a list of ids"),
        ({"user": "ann", "arms": ["A", 3]}, "a list of ids"),
        ({"user": "ann", "arms": ["A", "A"]}, "each arm once"),
        ({"user": "ann", "k": 0}, "k to be a whole number"),
        ({"user": "ann", "k": 1.5}, "k to be a whole number"),
        ({"user": "ann", "preference": {"price": 1}}, "for every objective"),
        ({"user": "ann", "preference": [1, 2, 3]}, "for every objective"),
        ({"user": "ann", "preference": {"price": math.nan, "taste": 1, "quiet": 1}}, "preference.price"),
        ({"user": "ann", "preference": {"price": "1", "taste": 1, "quiet": 1}}, "preference.price"),
        ({"user": "ann", "key": ""}, "a key"),
    ],
)
def test_wrong_requests_are_refused_and_change_nothing(engine: Engine, request_: Any, said: str) -> None:
    before = state(engine)
    with pytest.raises(InputError, match=said):
        engine.decide(**request_)
    with pytest.raises(InputError, match=said):
        engine.decide_many(["bob", request_])
    assert state(engine) == before


@pytest.mark.parametrize(
    ("feedback", "said"),
    [
        ({"rewards": {"price": 501}}, "from 0 to 500"),
        ({"rewards": {"taste": math.nan}}, "from 1 to 5"),
        ({"rewards": {"smell": 1}}, "unknown objective 'smell'"),
        ({"rewards": [1, 2, 3]}, "by objective"),
        ({"overall": 2}, "overall"),
        ({"preference": {"price": 1}}, "for every objective"),
        ({}, "got none of them"),
    ],
)
def test_wrong_feedback_is_refused_and_changes_nothing(engine: Engine, feedback: Any, said: str) -> None:
    decision = engine.decide("ann")
    before = state(engine)
    with pytest.raises(InputError, match=said):
        engine.feedback(decision.id, **feedback)
    with pytest.raises(InputError, match=said):
        engine.feedback_many([{"decision_id": decision.id, **feedback}])
    assert state(engine) == before


def test_an_engine_without_arms_says_so() -> None:
    with Engine(["a"]) as engine, pytest.raises(InputError, match="add one first"):
        engine.decide("ann")


def test_a_key_makes_a_request_repeatable(engine: Engine) -> None:
    first = engine.decide("ann", key="k1")
    assert all(engine.decide("ann", key="k1") == first for _ in range(10))
    with pytest.raises(ConflictError, match="used for another request"):
        engine.decide("bob", key="k1")
    with pytest.raises(ConflictError):
        engine.decide_many(["cyd", {"user": "bob", "key": "k1"}])


def test_a_repeated_request_is_answered_though_its_arms_have_gone() -> None:
    with Engine(["taste"], seed=1, accept_new_arms=True) as engine:
        first = engine.decide("ann", arms=["A"], key="k1")
        every = engine.decide("ann", key="k2")
        engine.retire_arm("A")
        assert engine.decide("ann", arms=["A"], key="k1") == first
        again = engine.decide_many([{"user": "bob", "arms": ["B"]}, {"user": "ann", "arms": ["A"], "key": "k1"}, "ann"])
        assert (again[0].arm, again[1], again[2].arm) == ("B", first, "B")
        engine.retire_arm("B")
        assert engine.decide("ann", key="k2") == every
        for key, arms in ((None, ["A"]), ("k3", ["A"]), ("k2", ["A"]), ("k\0", ["A"]), ("k1", None)):
            with pytest.raises(InputError):
                engine.decide("ann", arms=arms, key=key)
        with pytest.raises(InputError):
            engine.decide_many([{"user": "ann", "arms": ["A"], "key": "k1"}, {"user": "ann", "arms": ["A"]}])


def test_ids_are_all_different_and_go_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = []
    for now in (1e9, 1e9 + 0.001, 4e9):
        monkeypatch.setattr("pamo.engine.deciding.time.time", lambda now=now: now)
        deciding._ids.clear()
        ids += [deciding.new_id() for _ in range(200)]
    assert ids == sorted(ids)
    assert len(set(ids)) == 600
    assert {len(one) for one in ids} == {24}
    deciding._ids.clear()


def test_many_feedbacks_at_once(engine: Engine) -> None:
    decisions = engine.decide_many(["ann", "bob", "cyd"])
    answers = engine.feedback_many([{"decision_id": d.id, "rewards": GOOD, "overall": 0.5} for d in decisions])
    assert [answer.status for answer in answers] == ["recorded"] * 3
    assert engine.statistics()["complete_feedbacks"] == 3
    with pytest.raises(InputError, match="a feedback with"):
        engine.feedback_many([{"id": "x"}])


def test_what_users_have_in_common_is_found_from_their_whole_histories() -> None:
    world = World(users=3, seed=9)
    with world.engine() as engine:
        world.play(engine, 100)
        engine.refit()
        assert engine.foretelling is not None
        assert engine.foretelling.freedom[0] > 280.0  # of 300 rounds


def test_a_preference_is_reported_with_its_interval() -> None:
    world = World(users=3, seed=9)
    with world.engine() as engine:
        new = engine.preference("u0")
        assert (new.rounds, new.source, new.level) == (0, "nothing", 0.95)
        assert all(weight.low < weight.weight < weight.high for weight in new.objectives.values())
        world.play(engine, 150)
        for n, user in enumerate(world.users):
            told = engine.preference(user)
            assert (told.user, told.rounds, told.source) == (user, 150, "overall")
            for d, weight in enumerate(told.objectives.values()):
                assert weight.weight == pytest.approx(world.weights[n, d], abs=0.15)
                assert weight.low < weight.weight < weight.high
                assert weight.high - weight.low < 0.5
        stranger = engine.preference("stranger")
        assert stranger.source == "others"
        common = [weight.weight for weight in stranger.objectives.values()]
        assert engine.foretelling is not None
        assert common == pytest.approx(engine.foretelling.mean[1:].tolist())
        for count in (1, 2, 9):
            decision = engine.decide("speaker")
            engine.feedback(decision.id, preference={"o0": 1.0, "o1": 0.5, "o2": 0.0 if count < 9 else 0.1})
        spoken = engine.preference("speaker")
        assert spoken.source == "stated"
        assert spoken.objectives["o2"].weight == pytest.approx(0.1 / 3)
        assert spoken.objectives["o0"].low < 1.0 < spoken.objectives["o0"].high


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    inside = total = 0
    for seed in range(12):
        world = World(users=6, seed=seed)
        with world.engine() as engine:
            world.play(engine, 40)
            for n, user in enumerate(world.users):
                for d, weight in enumerate(engine.preference(user).objectives.values()):
                    inside += weight.low <= world.weights[n, d] <= weight.high
                    total += 1
    assert 0.92 < inside / total < 0.99


def test_many_arms_are_added_together_or_not_at_all(engine: Engine) -> None:
    engine.retire_arm("B")
    engine.add_arms({"B": None, "D": "Dome", "E": None})
    assert [(arm.id, arm.name, arm.active) for arm in engine.arms()[1:]] == [
        ("B", "Bristol", True),
        ("C", "Central", True),
        ("D", "Dome", True),
        ("E", "E", True),
    ]
    engine.add_arms(f"X{n}" for n in range(1000))
    assert len(engine.arms()) == 1005
    engine.add_arms([])
    for wrong, said in ((["F", ""], "an arm"), ("FG", "list of ids"), (5, "list of ids"), ([["F"]], "list of ids")):
        with pytest.raises(InputError, match=said):
            engine.add_arms(wrong)  # type: ignore[arg-type]
    assert len(engine.arms()) == 1005


def test_feedback_takes_what_explain_takes(engine: Engine) -> None:
    decision, other = engine.decide("ann"), engine.decide("ann")
    assert engine.explain(decision).decision == decision.id
    assert engine.feedback(decision, GOOD).id == decision.id
    assert engine.feedback(decision.id, GOOD).status == "duplicate"
    assert engine.feedback_many([{"decision_id": other, "rewards": GOOD}])[0].id == other.id


def test_an_explanation_adds_up_and_reads_well() -> None:
    world = World(users=2, seed=10)
    sentences = set()
    with world.engine() as engine:
        for _ in range(60):
            for user in world.users:
                decision = engine.decide(user)
                told = engine.explain(decision.id)
                assert told == engine.explain(decision)
                assert told.chosen is not None
                assert told.chosen.arm == decision.arm
                assert told.sentence.startswith(decision.arm)
                best = told.without_exploration
                if best is None:
                    sentences.add("untried")
                    assert "no complete feedback" in told.sentence
                else:
                    assert told.explored == (best.arm != decision.arm)
                    sentences.add("explored" if told.explored else "best")
                    assert best.value >= told.chosen.value - 1e-12
                    assert told.chosen.score >= best.score - 1e-12
                    means = dict(zip(told.preference, told.chosen.values.values(), strict=True))
                    assert told.chosen.value == pytest.approx(sum(means.values()))
                json.dumps(decision.details, allow_nan=False)
                world.answer(engine, decision)
    assert sentences == {"untried", "explored", "best"}
    with World().engine(policy="s-ucb") as plain:
        assert plain.explain(plain.decide("ann")).chosen is None
    with pytest.raises(UnknownDecisionError):
        engine.explain("nothing")


def test_the_front_is_the_undominated_arms() -> None:
    world = World(arms=4, users=1, objectives=2, seed=11)
    world.means = np.array([[0.8, 0.2], [0.2, 0.8], [0.15, 0.15], [0.5, 0.5]])
    with world.engine() as engine:
        assert [arm.confidence for arm in engine.front()] == [None] * 4
        for arm in world.arms[:3] * 40:
            world.answer(engine, engine.decide("u0", arms=[arm]))
        front = {arm.arm: arm for arm in engine.front()}
        assert [front[arm].on_front for arm in world.arms] == [True, True, False, False]
        assert (front["A0"].confidence or 0) > 0.99
        assert front["A2"].confidence == 0.0
        assert front["A3"].confidence is None
        mean = front["A0"].objectives["o0"]
        assert mean.low < mean.mean < mean.high
        assert mean.mean == pytest.approx(0.8, abs=0.05)
        assert next(iter(engine.front())).on_front
        engine.retire_arm("A0")
        assert "A0" not in {arm.arm for arm in engine.front()}


def test_a_user_is_exported_and_erased(engine: Engine) -> None:
    decision = engine.decide("ann", key="secret")
    engine.feedback(decision.id, GOOD, overall=0.5, preference={"price": 1, "taste": 1, "quiet": 1})
    engine.decide("ann")
    exported = engine.export_user("ann")
    assert [event["event"] for event in exported["history"]] == ["DecisionMade", "FeedbackGiven", "DecisionMade"]
    assert exported["history"][1]["rewards"] == GOOD
    assert exported["preference"]["objectives"]["price"]["weight"] == 1
    json.dumps(exported)
    pulls = engine.store.arms().statistics.pulls.copy()
    assert engine.erase_user("ann")
    assert not engine.erase_user("ann")
    assert engine.export_user("ann")["history"] == []
    assert engine.preference("ann").rounds == 0
    assert engine.store.arms().statistics.pulls.tolist() == pulls.tolist()
    assert "ann" not in repr(list(engine.store.events()))
    assert "erased" in engine.explain(decision.id).sentence
    engine.refit()
    assert engine.population.numbers[-1] == 0.0
    assert verify(engine.store).ok


def test_counts(engine: Engine) -> None:
    engine.retire_arm("C")
    engine.feedback(engine.decide("ann").id, GOOD, overall=0.5)
    engine.feedback(engine.decide("bob").id, {"taste": 1})
    engine.decide("ann")
    assert engine.statistics() == {
        "arms": 2,
        "retired_arms": 1,
        "users": 2,
        "pending_decisions": 1,
        "complete_feedbacks": 1,
        "overall_scores": 1,
        "rewards": 4,
    }


def test_a_decision_and_its_feedback_go_through_few_layers() -> None:
    """What a pair takes is what its calls take, each a third of a microsecond: one more layer slows everybody down."""
    world, made, counts = World(seed=9), [0], []

    def count(_: Any, event: str, __: Any) -> None:
        made[0] += event == "call"

    with world.engine() as engine:
        world.play(engine, 4)
        rewards = dict.fromkeys(world.names, 0.5)
        for _ in range(5):  # now and then there is more to do
            made[0] = 0
            sys.setprofile(count)
            try:
                engine.feedback(engine.decide("u0").id, rewards, 0.5)
            finally:
                sys.setprofile(None)
            counts.append(made[0])
    assert min(counts) <= MOST_CALLS, counts


def test_a_restart_goes_on_where_it_was(tmp_path: Path) -> None:
    world = World(seed=12)
    with world.engine(store=tmp_path / "a.db") as first:
        world.play(first, 30)
        waiting = first.decide("u0")
        first.refit()
        population = first.population
        going_on = [first.decide(user, k=3) for user in world.users * 3]
    with Engine(store=tmp_path / "a.db", seed=5) as second:
        assert second.objectives == first.objectives
        assert second.population.mean.tolist() == population.mean.tolist()
        for one in going_on:  # which wait for feedback now, as they did not when they were made
            second.core.decider.under_way.forget(one.id)
        assert [second.decide(user, k=3).arms for user in world.users * 3] == [one.arms for one in going_on]
        assert second.decision(waiting.id).arms == waiting.arms
        assert second.explain(waiting.id).chosen == second.explain(second.decision(waiting.id)).chosen
        world.answer(second, waiting)
        assert verify(second.store).ok
    with pytest.raises(InputError, match=r"declared once|other objectives"):
        Engine(["other"], store=tmp_path / "a.db")
    with Engine(world.names, store=tmp_path / "a.db"):
        pass


def test_a_store_that_was_given_stays_open() -> None:
    store = MemoryStore(Setup((Objective("a"),)))
    with Engine(store=store, seed=1) as engine:
        engine.add_arm("A")
    with Engine(store=store, seed=1) as engine:
        assert engine.decide("ann").arm == "A"
    store.close()
    with pytest.raises(PamoError, match="closed"):
        engine.decide("ann")
    with pytest.raises(InputError, match="other objectives"):
        Engine(["b"], store=MemoryStore(Setup((Objective("a"),))))


def test_what_is_recorded_beside_the_engine_is_known_to_the_next_decision() -> None:
    with open_store("memory:", Setup((Objective("a"),))) as store:
        one, two = Engine(store=store, seed=1), Engine(store=store, seed=2)
        one.add_arm("A")
        one.add_arm("B")
        for arm, value in (("A", 0.2), ("B", 0.9)) * 5:
            one.feedback(one.decide("ann", arms=[arm]).id, {"a": value}, overall=value)
        assert two.decide("ann").arm == "B"


@pytest.mark.parametrize(
    "options", [{"seed": -1}, {"seed": 1.5}, {"draws": 0}, {"overall": "x: 1..5", "objectives": None}]
)
def test_wrong_options_are_refused(options: Any) -> None:
    with pytest.raises(InputError):
        Engine(**{"objectives": ["a"], **options})
