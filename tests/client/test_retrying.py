"""Attempts: what is tried again, with what pauses, and that nothing is decided or counted twice for it."""

from __future__ import annotations

import json
import math
import random
import time
from dataclasses import asdict
from email.utils import formatdate
from typing import Any

import httpx
import pytest

from pamo import Engine
from pamo.client.retrying import Patience, asked_pause
from pamo.contract.codes import Code
from pamo.errors import (
    ConflictError,
    ExpiredDecisionError,
    InputError,
    PamoError,
    RefusedError,
    ServiceError,
    error_of,
)
from pamo.errors import UnknownDecisionError as Unknown
from tests.client.faces import Handler, Kind, Script, heard, problem

PROBLEMS = [code for code in Code if code.status >= 400]
DECISION = {"id": "d1", "user": "ann", "arm": "A", "arms": ["A"], "propensity": 1.0, "policy": "p"}
MADE = httpx.Response(201, json=DECISION)
BUSY = problem(503, "the store has stopped")
SILENCES = [
    httpx.ConnectError("refused"),
    httpx.ConnectTimeout("slow"),
    httpx.ReadTimeout("slow"),
    httpx.ReadError("reset"),
    httpx.RemoteProtocolError("gone"),
    httpx.PoolTimeout("full"),
]


@pytest.fixture
def engine() -> Any:
    with Engine(["taste: 1..5"], seed=1) as engine:
        engine.add_arm("A")
        engine.add_arm("B")
        yield engine


def lost(answer: Handler) -> Handler:
    """Do what was asked, and lose the answer."""

    def handler(request: httpx.Request) -> httpx.Response:
        answer(request)
        raise httpx.ReadError("connection reset", request=request)

    return handler


def deciding(engine: Engine) -> Handler:
    def decide(request: httpx.Request) -> httpx.Response:
        asked = json.loads(request.content)
        decision = engine.decide(**asked, key=request.headers["Idempotency-Key"])
        return httpx.Response(201, json=asdict(decision))

    return decide


def deciding_many(engine: Engine) -> Handler:
    def decide(request: httpx.Request) -> httpx.Response:
        decisions = engine.decide_many(json.loads(request.content)["requests"])
        return httpx.Response(200, json={"decisions": [asdict(one) for one in decisions]})

    return decide


def taking(engine: Engine) -> Handler:
    def take(request: httpx.Request) -> httpx.Response:
        decision_id = request.url.path.split("/")[3]
        return httpx.Response(200, json=asdict(engine.feedback(decision_id, **json.loads(request.content))))

    return take


@pytest.mark.parametrize("key", [None, "request-17"])
def test_a_decision_whose_answer_was_lost_is_made_once(kind: Kind, engine: Engine, key: str | None) -> None:
    decide = deciding(engine)
    script = Script(lost(decide), lost(decide), decide)
    decision = heard(kind, script).ask("decide", "ann", ["A", "B"], k=2, key=key)
    keys = {request.headers["Idempotency-Key"] for request in script.requests}
    assert len(script.requests) == 3
    assert len(keys) == 1
    assert key is None or keys == {key}
    assert engine.store.pending() == 1
    assert engine.decision(decision.id).arms == decision.arms


def test_many_decisions_whose_answer_was_lost_are_made_once(kind: Kind, engine: Engine) -> None:
    decide = deciding_many(engine)
    script = Script(lost(decide), decide)
    decisions = heard(kind, script).ask("decide_many", ["ann", {"user": "bob", "k": 2}, {"user": "cyd", "key": "c"}])
    assert [one.user for one in decisions] == ["ann", "bob", "cyd"]
    assert len(script.requests) == 2
    assert engine.store.pending() == 3
    keys = [one["key"] for one in json.loads(script.requests[0].content)["requests"]]
    assert len(set(keys)) == 3
    assert keys[2] == "c"


def test_each_call_has_a_key_of_its_own(kind: Kind) -> None:
    script = Script(MADE)
    face = heard(kind, script)
    face.ask("decide", "ann")
    face.ask("decide", "ann")
    first, second = (request.headers["Idempotency-Key"] for request in script.requests)
    assert first != second
    assert len(first) >= 32


def test_a_key_that_no_header_can_carry_travels_in_a_body(kind: Kind, engine: Engine) -> None:
    decide = deciding_many(engine)
    for key in ("Zoë-№1", " spaced ", "two\nlines"):
        script = Script(lost(decide), decide)
        decision = heard(kind, script).ask("decide", "ann", k=2, key=key)
        assert engine.decide("ann", k=2, key=key) == engine.decision(decision.id)
        assert {request.url.path for request in script.requests} == {"/v1/decisions/batch"}
    assert engine.store.pending() == 3


def test_a_feedback_whose_answer_was_lost_counts_once(kind: Kind, engine: Engine) -> None:
    decision = engine.decide("ann")
    take = taking(engine)
    script = Script(lost(take), take)
    answer = heard(kind, script).ask("feedback", decision.id, {"taste": 4}, overall=0.5)
    assert answer.status == "duplicate"
    assert answer.id == decision.id
    assert len(script.requests) == 2
    assert sum(arm.pulls for arm in engine.arms()) == 1


@pytest.mark.parametrize("silence", SILENCES, ids=lambda error: type(error).__name__)
def test_silence_is_asked_again(kind: Kind, silence: Exception) -> None:
    script = Script(silence, silence, MADE)
    face = heard(kind, script)
    assert face.ask("decide", "ann").id == "d1"
    assert len(script.requests) == 3
    assert len(face.pauses) == 2


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_service_is_asked_again(kind: Kind, status: int) -> None:
    script = Script(problem(status, "busy"), MADE)
    assert heard(kind, script).ask("decide", "ann").id == "d1"
    assert len(script.requests) == 2


def code_of(error: type[PamoError]) -> list[str]:
    return [code.value for code in PROBLEMS if type(error_of(code, "")) is error]


@pytest.mark.parametrize("code", [code.value for code in PROBLEMS])
def test_a_refusal_is_final_and_is_the_error_that_its_code_stands_for(kind: Kind, code: str) -> None:
    script = Script(problem(400, "what was expected, and what came", field="rewards.taste", code=code))
    face = heard(kind, script)
    with pytest.raises(PamoError, match="what was expected, and what came") as raised:
        face.ask("feedback", "d1", {"taste": 4})
    assert type(raised.value) is type(error_of(code, "") or ServiceError())
    assert raised.value.code == code
    assert len(script.requests) == 1
    assert face.pauses == []
    if isinstance(raised.value, InputError):
        assert str(raised.value) == "what was expected, and what came"
        assert raised.value.field == "rewards.taste"


def test_the_error_is_chosen_by_the_code_alone(kind: Kind) -> None:
    expected = {
        Unknown: ["unknown_decision"],
        ConflictError: ["feedback_conflict", "decision_conflict", "experiment_conflict", "key_conflict"],
        ExpiredDecisionError: ["expired_decision"],
        RefusedError: ["unauthorized", "forbidden"],
    }
    for error, codes in expected.items():
        assert code_of(error) == codes
        for code in codes:
            face = heard(kind, Script(problem(418, "Whatever the sentence says.", code=code)))
            with pytest.raises(error, match="Whatever"):
                face.ask("decide", "ann")


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, InputError), (401, RefusedError), (404, ServiceError), (405, ServiceError), (409, ConflictError)],
)
def test_without_a_code_the_status_tells(kind: Kind, status: int, error: type[PamoError]) -> None:
    with pytest.raises(error, match="a proxy") as raised:
        heard(kind, Script(problem(status, "a proxy has its own rules"))).ask("feedback", "d1", {"taste": 4})
    assert type(raised.value) is error


@pytest.mark.parametrize("retries", [0, 1, 4])
def test_the_last_attempt_raises_what_it_found(kind: Kind, retries: int) -> None:
    script = Script(BUSY)
    face = heard(kind, script, retries=retries)
    with pytest.raises(ServiceError, match=r"http://pamo\.test answered 503 .*: the store has stopped"):
        face.ask("decide", "ann")
    assert len(script.requests) == retries + 1
    assert len(face.pauses) == retries

    refused = httpx.ConnectError("connection refused")
    script = Script(refused)
    with pytest.raises(
        ServiceError, match=r"http://pamo\.test did not answer.*ConnectError: connection refused"
    ) as got:
        heard(kind, script, retries=retries).ask("decide", "ann")
    assert len(script.requests) == retries + 1
    assert got.value.__cause__ is refused
    assert f"{retries + 1} attempt" in str(got.value)


def test_pauses_double_and_vary_by_chance(kind: Kind) -> None:
    chance = random.Random(3)
    face = heard(kind, Script(BUSY), backoff=0.1, longest_pause=0.3, chance=random.Random(3))
    with pytest.raises(ServiceError):
        face.ask("decide", "ann")
    assert face.pauses == pytest.approx([chance.uniform(longest / 2, longest) for longest in (0.1, 0.2, 0.3, 0.3)])
    assert len(set(face.pauses)) == 4


@pytest.mark.parametrize("status", [429, 503])
def test_a_service_that_asks_for_a_pause_gets_it(kind: Kind, status: int) -> None:
    script = Script(problem(status, "too much", headers={"Retry-After": "3"}), MADE)
    face = heard(kind, script, backoff=0.1)
    face.ask("decide", "ann")
    (pause,) = face.pauses
    assert 3.0 <= pause <= 3.05


def test_a_service_that_asks_for_too_long_a_pause_is_not_waited_for(kind: Kind) -> None:
    script = Script(problem(429, "too much", headers={"Retry-After": "31"}))
    face = heard(kind, script)
    with pytest.raises(ServiceError, match=r"answered 429 after 1 attempt: too much"):
        face.ask("decide", "ann")
    assert face.pauses == []
    assert len(script.requests) == 1


def test_a_pause_may_be_asked_for_as_a_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_000_000.0)
    assert asked_pause(formatdate(1_000_012, usegmt=True)) == 12.0
    assert asked_pause(formatdate(0, usegmt=True)) == 0.0
    for nonsense in ("nan", "inf", "-inf", "", "soon", "Thu, 99 Jan 2020"):
        assert asked_pause(nonsense) is None
    assert asked_pause("-5") == 0.0


def test_pauses_never_exceed_the_longest() -> None:
    patience = Patience(2000, 0.1, 5.0, random.Random(1))
    for attempts in (1, 10, 1500):
        for asked in (None, 0.0, 5.0):
            pause = patience.pause(attempts, asked)
            assert pause is not None
            assert math.isfinite(pause)
            assert pause <= 5.0
    assert patience.pause(2001, None) is None
    assert patience.pause(1, 5.1) is None


def test_probes_ask_once_and_never_raise(kind: Kind) -> None:
    for outcome, expected in (
        (httpx.Response(200, json={"status": "ok"}), True),
        (problem(503, "the store has stopped"), False),
        (httpx.ConnectError("refused"), False),
        (httpx.ReadTimeout("slow"), False),
        (httpx.Response(404, text="nothing here"), False),
    ):
        script = Script(outcome)
        face = heard(kind, script)
        assert face.ask("health") is expected
        assert face.ask("ready") is expected
        assert [request.url.path for request in script.requests] == ["/healthz", "/readyz"]
        assert face.pauses == []
