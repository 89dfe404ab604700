"""The Python clients and the TypeScript one against the real service: the engine's answers and errors over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

from benchmarks.servers import served
from pamo import AsyncClient, Client, Engine
from pamo.client import FeedbackResult
from pamo.errors import (
    ConflictError,
    ExpiredDecisionError,
    InputError,
    RefusedError,
    ServiceError,
    UnknownDecisionError,
)
from pamo.service import create_app
from pamo.service.keys import Key, digest_of
from pamo.service.settings import Settings
from tests.client.faces import AnyKind, Face
from tests.client.typescript import TypeScript

OBJECTIVES = ["price: 0..500, lower is better", "taste: 1..5"]
ODD_IDS = ["a/b", "a b", "100%", "%2F", "?q=1#f", "Zoë/№", "..", ".", "+&=", "a\nb", "/", "x" * 256]


class Clock:
    """Tells a time that only the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=[Client, AsyncClient, TypeScript], ids=["sync", "async", "typescript"])
def kind(request: pytest.FixtureRequest) -> AnyKind:
    found: AnyKind = request.param
    return found


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engine(clock: Clock) -> Iterator[Engine]:
    with Engine(OBJECTIVES, overall="overall: 1..5", seed=1, clock=clock) as engine:
        engine.add_arm("A", "Anchor Inn")
        engine.add_arm("B")
        yield engine


@pytest.fixture
def face(kind: AnyKind, engine: Engine) -> Iterator[Face]:
    with served(create_app(engine)) as url:
        yield Face(kind, url)


def test_decisions_are_the_engines(face: Face, engine: Engine) -> None:
    one = face.ask("decide", "ann")
    ranked = face.ask("decide", "ann", ["B", "A"], {"price": 2, "taste": 1}, k=2, key="request-17")
    many = face.ask("decide_many", ["ann", {"user": "bob", "arms": ["B"]}, {"user": "cyd", "k": 2}])
    for decision in (one, ranked, *many):
        assert decision == engine.decision(decision.id)
        assert decision.details is None
        assert face.ask("decision", decision.id) == decision
    assert sorted(ranked.arms) == ["A", "B"]
    assert face.ask("decide", "ann", ["B", "A"], {"price": 2, "taste": 1}, k=2, key="request-17") == ranked
    assert [decision.user for decision in many] == ["ann", "bob", "cyd"]
    assert many[1].arms == ("B",)
    assert engine.store.pending() == 5


def test_a_key_that_no_header_can_carry_is_the_same_key_in_process(face: Face, engine: Engine) -> None:
    for key in ("Zoë-№1", " spaced ", "two\nlines", "plain"):
        decision = face.ask("decide", "ann", k=2, key=key)
        assert engine.decide("ann", k=2, key=key).id == decision.id
    with pytest.raises(ConflictError, match="was used for another request"):
        face.ask("decide", "bob", key="Zoë-№1")
    with pytest.raises(ConflictError, match="was used for another request"):
        face.ask("decide", "bob", key="plain")


def test_feedback_is_taken_once(face: Face, engine: Engine) -> None:
    decision = face.ask("decide", "ann", k=2)
    whole = {"rewards": {"price": 120, "taste": 4.5}, "overall": 4, "preference": {"price": 0.7, "taste": 0.3}}
    first = face.ask("feedback", decision.id, **whole, arm="B")
    again = face.ask("feedback", decision.id, **whole, arm="B")
    assert (first.id, first.status, again.status) == (decision.id, "recorded", "duplicate")
    assert first.learned == again.learned == ("arm: price", "arm: taste", "arm: overall", "preference")
    with pytest.raises(ConflictError, match="another feedback was recorded"):
        face.ask("feedback", decision.id, {"taste": 1}, arm="B")
    assert {arm.id: arm.pulls for arm in engine.arms()} == {"A": 0, "B": 1}
    part = face.ask("feedback", face.ask("decide", "ann").id, {"taste": 2})
    assert part.learned == ("arm: taste",)
    assert part.not_learned == ("arm: price", "arm: overall", "preference")
    rest = face.ask("feedback", part.id, {"price": 95}, overall=3)
    assert (rest.status, rest.not_learned) == ("recorded", ())
    priced = face.ask("decide", "ann", {"A": {"price": 95}, "B": {"price": 95}})
    assert engine.made(priced.id).given == {"A": {"price": 95.0}, "B": {"price": 95.0}}
    assert face.ask("feedback", priced, {"taste": 3}, overall=3).not_learned == ()
    with pytest.raises(InputError, match="from 0 to 500, got 501") as refused:
        face.ask("decide", "ann", {"A": {"price": 501}})
    assert refused.value.field == "arms.A.price"


def test_features_are_declared_and_given(face: Face, engine: Engine) -> None:
    declared = face.ask("declare_features", ["stars", "style: word"])
    assert declared == engine.features == face.ask("features")
    of_users = face.ask("declare_features", ["age"], of="users")
    assert of_users == engine.user_features == face.ask("features", of="users")
    face.ask("decide", "ann", features={"age": 40})
    assert engine.store.known_of(["ann"]) == [{"age": 40.0}]
    assert face.ask("add_arm", "A", features={"stars": 4, "style": "old"}).features == {"stars": 4.0, "style": "old"}
    face.ask("add_arms", ["A", "B"], features={"A": {"style": None}, "B": {"stars": 2}})
    assert [one.features for one in face.ask("arms")] == [{"stars": 4.0}, {"stars": 2.0}]
    assert face.ask("arms") == engine.arms()
    for wrong in ({"view": "sea"}, {"stars": "four"}):
        with pytest.raises(InputError) as told:
            face.ask("add_arm", "A", features=wrong)
        with pytest.raises(InputError) as said:
            engine.add_arm("A", features=wrong)
        assert (str(told.value), told.value.field) == (str(said.value), said.value.field)


def test_an_experiment_is_started_looked_at_and_ended(face: Face, engine: Engine) -> None:
    assert face.ask("experiment") is None
    with pytest.raises(InputError, match="no experiment to end") as unknown:
        face.ask("end_experiment")
    assert unknown.value.code == "unknown_experiment"
    with pytest.raises(InputError) as small:
        face.ask("start_experiment", "autumn", smallest=-1.5)
    assert small.value.field == "smallest"
    unequal: dict[str, Any] = {"name": "cheap", "share": 0.1, "preference": {"price": 0.5}}
    for wrong in (
        {"control": "all"},
        {"policy": "arm:Z"},
        {"policy": "greedier"},
        {"policy": "live"},
        {"variants": [unequal]},
        {"variants": [{**unequal, "preference": {"price": "much", "taste": 0.5}}]},
        {"variants": [{"name": "a", "share": 0.1}, {"name": "a", "share": 0.1}]},
    ):
        with pytest.raises(InputError) as told:
            face.ask("start_experiment", "autumn", **wrong)
        with pytest.raises(InputError) as said:
            engine.start_experiment("autumn", **wrong)
        assert (str(told.value), told.value.field) == (str(said.value), said.value.field)
    begun = face.ask("start_experiment", "autumn", "50%", "caller", smallest=0.1)
    assert begun == engine.experiment()
    assert (begun.name, begun.control, begun.policy, begun.smallest) == ("autumn", 0.5, "caller", 0.1)
    assert face.ask("start_experiment", "autumn", 0.5, "caller", 0.1) == begun
    with pytest.raises(ConflictError, match="is running: end it first"):
        face.ask("start_experiment", "winter")
    with pytest.raises(InputError, match=r"choice to be an arm on offer, .* got None") as missing:
        face.ask("decide", "ann")
    assert missing.value.field == "choice"
    mine = face.ask("decide_many", [{"user": f"u{n}", "choice": "B"} for n in range(20)])
    given = [one for one in mine if one.policy.startswith("caller")]
    assert 0 < len(given) < 20
    assert {one.arm for one in given} == {"B"}
    for one in mine:
        face.ask("feedback", face.ask("decide", one.user, choice="B"), {"price": 100}, overall=3)
    told_now = face.ask("experiment")
    assert (told_now.control_users, told_now.variants[0].users) == (len(given), 20 - len(given))
    assert told_now == engine.experiment()
    ended = face.ask("end_experiment")
    assert ended.ended is not None
    assert face.ask("end_experiment") == face.ask("experiment") == ended
    assert face.ask("decide", "ann").policy != "caller"
    cheap = {"name": "cheap", "share": 0.3, "policy": "live", "preference": {"price": 1.0, "taste": 0.0}}
    dice = {"name": "dice", "share": 0.3, "policy": "random", "preference": None}
    begun = face.ask("start_experiment", "winter", 0.4, "live", 0.2, [cheap, dice])
    assert begun == engine.experiment()
    told_of = [
        {"name": one.name, "share": one.share, "policy": one.policy, "preference": one.preference}
        for one in begun.variants
    ]
    assert told_of == [cheap, dice]
    assert {one.policy.split("@")[0] for one in face.ask("decide_many", [f"u{n}" for n in range(20)])} == {
        "random",
        "prucb-hp-v",
        "prucb-kp-v",
    }


def test_many_feedbacks_have_a_result_each(face: Face, engine: Engine, clock: Clock) -> None:
    late = face.ask("decide", "ann").id
    clock.now += 40 * 86_400.0
    new, twice, other, wrong = (one.id for one in face.ask("decide_many", ["ann"] * 4))
    engine.feedback(twice, {"taste": 3})
    engine.feedback(other, {"taste": 3})
    items: list[dict[str, Any]] = [{"decision_id": one, "rewards": {"taste": 3}} for one in (new, twice, late, "d")]
    items += [{"decision_id": other, "rewards": {"taste": 4}}, {"decision_id": wrong, "overall": 3, "arm": "Z"}]
    results: list[FeedbackResult] = face.ask("feedback_many", items)
    assert [one.status for one in results] == ["recorded", "duplicate", "expired", "unknown", "conflict", "unknown"]
    assert [one.id for one in results] == [one["decision_id"] for one in items]
    assert results[0].learned == ("arm: taste",)
    for item, result in zip(items, results, strict=True):
        if result.error is None:
            continue
        with pytest.raises(type(result.error)) as raised:
            engine.feedback(**item)
        assert str(raised.value) == str(result.error)
    kinds = [ExpiredDecisionError, UnknownDecisionError, ConflictError, InputError]
    assert [type(one.error) for one in results[2:]] == kinds
    with pytest.raises(InputError, match=r"expected taste to be a number from 1 to 5, got 9.*feedback\[1\]") as refused:
        face.ask(
            "feedback_many", [{"decision_id": wrong, "overall": 3}, {"decision_id": wrong, "rewards": {"taste": 9}}]
        )
    assert refused.value.field == "feedback[1].rewards.taste"
    assert engine.store.feedback(wrong) is None


def test_what_was_learned_is_what_the_engine_tells(face: Face, engine: Engine) -> None:
    untried = face.ask("decide", "ann")
    assert face.ask("explain", untried) == engine.explain(untried.id)
    for visit in range(12):
        decision = face.ask("decide", "ann")
        price, taste = (100, 2) if decision.arm == "A" else (300, 4)
        engine.feedback(decision.id, {"price": price + visit, "taste": taste}, overall=3)
    told = face.ask("explain", decision.id)
    assert told == engine.explain(decision.id)
    assert told.chosen is not None
    assert face.ask("preference", "ann") == engine.preference("ann")
    assert face.ask("preference", "new") == engine.preference("new")
    assert face.ask("front") == engine.front()
    assert face.ask("arms") == engine.arms()
    assert face.ask("objectives") == engine.objectives
    assert face.ask("overall") == engine.store.setup.overall
    assert face.ask("statistics") == engine.statistics()
    assert face.ask("health") is True
    assert face.ask("ready") is True
    exported = face.ask("export_user", "ann")
    assert exported == json.loads(json.dumps(engine.export_user("ann")))
    assert len(exported["history"]) == 25
    assert face.ask("erase_user", "ann") is None
    assert engine.export_user("ann")["history"] == []
    assert face.ask("erase_user", "ann") is None


def test_many_arms_come_in_one_request(face: Face, engine: Engine) -> None:
    found = face.ask("add_arms", {"A": None, "X": "Extra"})
    assert [arm.name for arm in found] == ["Anchor Inn", "Extra"]
    assert found == [engine.arm("A"), engine.arm("X")]


def test_arms_come_and_go(face: Face, engine: Engine) -> None:
    added = face.ask("add_arm", "C", "Central")
    assert asdict(added) == {"id": "C", "name": "Central", "active": True, "pulls": 0, "features": {}}
    assert face.ask("add_arm", "C").name == "Central"
    assert face.ask("add_arm", "D").name == "D"
    assert face.ask("add_arm", "C", "Centre").name == "Centre"
    assert face.ask("retire_arm", "C").active is False
    assert face.ask("retire_arm", "C").active is False
    assert [arm.active for arm in engine.arms()] == [True, True, False, True]
    assert face.ask("arm", "C") == engine.arms()[2]
    with pytest.raises(InputError, match="arm 'C' is retired"):
        face.ask("decide", "ann", ["C"])
    assert face.ask("add_arm", "C").active is True
    for method in ("arm", "retire_arm"):
        with pytest.raises(InputError, match="there is no arm 'Z'"):
            face.ask(method, "Z")


@pytest.mark.parametrize("one", ODD_IDS)
def test_any_id_finds_its_way(face: Face, engine: Engine, one: str) -> None:
    if face.kind is TypeScript and one in (".", ".."):
        with pytest.raises(InputError, match="expected an id that a URL can carry"):
            face.ask("arm", one)
        return
    assert face.ask("add_arm", one).id == one
    assert face.ask("arm", one).id == one
    decision = face.ask("decide", one, [one])
    assert (decision.user, decision.arm) == (one, one)
    engine.feedback(decision.id, preference={"price": 1, "taste": 0})
    assert face.ask("preference", one).source == "stated"
    assert len(face.ask("export_user", one)["history"]) == 2
    face.ask("erase_user", one)
    assert engine.export_user(one)["history"] == []
    assert face.ask("retire_arm", one).active is False
    for method in ("decision", "explain", "feedback"):
        arguments = {"overall": 3} if method == "feedback" else {}
        with pytest.raises(UnknownDecisionError, match="there is no decision"):
            face.ask(method, one, **arguments)


def test_bad_values_are_the_engines_sentences(face: Face, engine: Engine) -> None:
    decision = engine.decide("ann")
    for method, arguments, field in (
        ("feedback", {"decision_id": decision.id, "rewards": {"taste": 9.0}}, "rewards.taste"),
        ("feedback", {"decision_id": decision.id, "rewards": {"smell": 1}}, "rewards"),
        ("feedback", {"decision_id": decision.id}, "rewards"),
        ("feedback", {"decision_id": decision.id, "overall": 0.5}, "overall"),
        ("feedback", {"decision_id": decision.id, "overall": 3, "arm": "Z"}, "arm"),
        ("decide", {"user": "ann", "arms": ["A", "Z"]}, "arms"),
        ("decide", {"user": "ann", "arms": []}, "arms"),
        ("decide", {"user": "ann", "preference": {"taste": 1}}, "preference"),
    ):
        with pytest.raises(InputError) as ours:
            face.ask(method, **arguments)
        with pytest.raises(InputError) as theirs:
            getattr(engine, method)(**arguments)
        assert str(ours.value) == str(theirs.value)
        assert ours.value.field == theirs.value.field == field
    wrong: list[dict[str, Any]] = [{"k": 0}, {"k": "two"}, {"arms": "A"}, {"preference": [1, 2]}]
    for one in wrong:
        with pytest.raises(InputError, match="expected "):
            face.ask("decide", "ann", **one)
    assert face.pauses == []


def test_limits_are_said(kind: AnyKind, engine: Engine) -> None:
    with served(create_app(engine, Settings(max_batch=2, max_body_bytes=500))) as url:
        face = Face(kind, url)
        with pytest.raises(InputError, match="expected 1 to 2 in requests, got 3"):
            face.ask("decide_many", ["ann", "bob", "cyd"])
        with pytest.raises(InputError, match="at most 500 bytes"):
            face.ask("decide", "ann", [f"arm {number}" for number in range(100)])


def test_keys_open_what_their_roles_allow(kind: AnyKind, engine: Engine) -> None:
    keys = tuple(Key(role, [role], digest_of(f"pamo_{role}")) for role in ("decide", "feedback", "admin"))
    with served(create_app(engine, Settings(keys=keys))) as url:
        decision = Face(kind, url, key="pamo_decide").ask("decide", "ann")
        assert Face(kind, url, key="pamo_feedback").ask("feedback", decision.id, {"taste": 4}).status == "recorded"
        Face(kind, url, key="pamo_admin").ask("erase_user", "ann")
        for key, method in (("pamo_decide", "erase_user"), ("pamo_feedback", "decide"), ("pamo_decide", "export_user")):
            with pytest.raises(RefusedError):
                Face(kind, url, key=key).ask(method, "ann")
        for wrong in (None, "pamo_wrong"):
            face = Face(kind, url, key=wrong)
            with pytest.raises(RefusedError) as raised:
                face.ask("decide", "ann")
            assert "pamo_wrong" not in str(raised.value)
            assert face.pauses == []
            assert face.ask("health") is True


def test_a_service_that_is_asked_too_often_is_given_its_pause(kind: AnyKind, engine: Engine) -> None:
    with served(create_app(engine, Settings(rate=0.05, burst=1))) as url:
        face = Face(kind, url, retries=2)
        face.ask("decide", "ann")
        with pytest.raises(ServiceError, match=r"answered 429 after 3 attempts: more than 0\.05 requests"):
            face.ask("decide", "ann")
        assert len(face.pauses) == 2
        assert min(face.pauses) > 10


def test_a_store_that_stopped_is_a_service_that_cannot(face: Face, engine: Engine) -> None:
    engine.store.close()
    assert face.ask("health") is True
    assert face.ask("ready") is False
    with pytest.raises(ServiceError, match="answered 503 after 5 attempts: "):
        face.ask("decide", "ann")
    assert len(face.pauses) == 4
    assert min(face.pauses) >= 1
