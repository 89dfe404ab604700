"""Requests and answers: what is sent, what is not, and what is made of answers that are none."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import subprocess
import sys
from fractions import Fraction
from typing import Any
from urllib.parse import unquote

import httpx
import numpy as np
import pytest

import pamo
from pamo import AsyncClient, Client, Engine
from pamo.client import FeedbackResult
from pamo.engine import Request
from pamo.errors import ConflictError, ExpiredDecisionError, InputError, PamoError, ServiceError, UnknownDecisionError
from tests.client.faces import Kind, Script, answered, heard, problem

DECISION = {"id": "d1", "user": "ann", "arm": "A", "arms": ["A"], "propensity": 1.0, "policy": "p"}
MADE = httpx.Response(201, json=DECISION)
TAKEN = httpx.Response(200, json={"id": "d1", "status": "recorded", "learned": ["arm: taste"], "not_learned": []})
ODD_IDS = ["a/b", "a b", "100%", "%2F", "?q=1#f", "Zoë/№", "..", ".", "...", "+&=", "a\nb", "/", "x" * 256]
PATHS = {
    "preference": "/v1/users/ID/preference",
    "export_user": "/v1/users/ID",
    "erase_user": "/v1/users/ID",
    "arm": "/v1/arms/ID",
    "add_arm": "/v1/arms/ID",
    "retire_arm": "/v1/arms/ID",
    "decision": "/v1/decisions/ID",
    "explain": "/v1/decisions/ID",
    "feedback": "/v1/decisions/ID/feedback",
}


def sent(request: httpx.Request) -> Any:
    return json.loads(request.content)


def test_both_clients_have_the_same_methods_with_the_same_arguments() -> None:
    ours, theirs = (
        {name: inspect.signature(member) for name, member in inspect.getmembers(one) if not name.startswith("_")}
        for one in (Client, AsyncClient)
    )
    assert ours == theirs
    assert len(ours) == 26
    assert str(ours["decide"]).endswith("-> 'Decision'")
    assert str(ours["health"]) == "(self) -> 'bool'"
    for name in ours:
        assert inspect.iscoroutinefunction(getattr(AsyncClient, name)), name
    settings = [list(inspect.signature(one).parameters) for one in (Client, AsyncClient)]
    assert settings[0] == settings[1]


def test_a_client_is_asked_as_an_engine_is() -> None:
    names = [
        name for name, _ in inspect.getmembers(Client, inspect.isfunction) if hasattr(Engine, name) and name[0] != "_"
    ]
    assert {"decide", "decide_many", "feedback", "feedback_many", "preference", "explain"} <= set(names)
    for name in names:
        member = getattr(Engine, name)
        if not isinstance(member, property):
            ours, theirs = inspect.signature(getattr(Client, name)), inspect.signature(member)
            assert list(ours.parameters.values()) == list(theirs.parameters.values()), name


def test_a_decision_is_asked_for_with_what_was_given(kind: Kind) -> None:
    script = Script(MADE)
    face = heard(kind, script)
    face.ask("decide", "ann")
    face.ask("decide", "ann", ("A", "B"), {"taste": np.float64(0.5), "price": np.int64(2)}, k=2, key="k7")
    bare, full = script.requests
    assert (bare.method, str(bare.url)) == ("POST", "http://pamo.test/v1/decisions")
    assert sent(bare) == {"user": "ann", "k": 1}
    assert sent(full) == {"user": "ann", "arms": ["A", "B"], "preference": {"taste": 0.5, "price": 2}, "k": 2}
    assert full.headers["Idempotency-Key"] == "k7"
    assert full.headers["Content-Type"] == "application/json"
    assert full.headers["Authorization"] == "Bearer k-1"
    assert full.headers["User-Agent"] == f"pamo/{pamo.__version__}"


def test_many_decisions_are_asked_for_as_users_mappings_or_requests(kind: Kind) -> None:
    script = Script(httpx.Response(200, json={"decisions": [DECISION] * 3}))
    face = heard(kind, script)
    face.ask("decide_many", ["ann", {"user": "bob", "arms": ["A"], "key": "b"}, Request("cyd", k=2, key="c")])
    requests = sent(script.requests[0])["requests"]
    requests[0].pop("key")
    assert requests == [
        {"user": "ann", "k": 1},
        {"user": "bob", "arms": ["A"], "k": 1, "key": "b"},
        {"user": "cyd", "k": 2, "key": "c"},
    ]


def test_feedback_is_sent_with_what_was_given(kind: Kind) -> None:
    script = Script(TAKEN)
    face = heard(kind, script)
    answer = face.ask("feedback", "d1", {"taste": np.float32(0.5)}, overall=Fraction(1, 4), preference={"taste": 1})
    face.ask("feedback", "d1", arm="B")
    assert answer.learned == ("arm: taste",)
    first, second = script.requests
    assert first.url.path == "/v1/decisions/d1/feedback"
    assert sent(first) == {"rewards": {"taste": 0.5}, "overall": 0.25, "preference": {"taste": 1}}
    assert sent(second) == {"arm": "B"}


def test_many_feedbacks_have_a_result_each(kind: Kind) -> None:
    results: list[dict[str, Any]] = [
        {"id": "d1", "status": "recorded", "learned": ["arm: taste"], "not_learned": [], "detail": None},
        {"id": "d2", "status": "duplicate", "learned": [], "not_learned": [], "detail": None},
        {
            "id": "d3",
            "status": "conflict",
            "learned": [],
            "not_learned": [],
            "detail": "another was recorded",
            "code": "feedback_conflict",
        },
        {
            "id": "d4",
            "status": "unknown",
            "learned": [],
            "not_learned": [],
            "detail": "so it was said",
            "code": "unknown_decision",
        },
        {
            "id": "d5",
            "status": "expired",
            "learned": [],
            "not_learned": [],
            "detail": "too late",
            "code": "expired_decision",
        },
        {"id": "d6", "status": "of tomorrow", "learned": [], "not_learned": [], "detail": None, "code": "new"},
    ]
    script = Script(httpx.Response(200, json={"results": results}))
    items = [{"decision_id": one["id"], "rewards": {"taste": 4}, "overall": None} for one in results]
    got: list[FeedbackResult] = heard(kind, script).ask("feedback_many", items)
    assert sent(script.requests[0])["feedback"][1] == {"id": "d2", "rewards": {"taste": 4}}
    assert [one.id for one in got] == ["d1", "d2", "d3", "d4", "d5", "d6"]
    assert got[0].learned == ("arm: taste",)
    errors = [one.error for one in got]
    assert errors[:2] == [None, None]
    assert [type(error) for error in errors[2:]] == [
        ConflictError,
        UnknownDecisionError,
        ExpiredDecisionError,
        PamoError,
    ]
    assert [str(error) for error in errors[2:5]] == ["another was recorded", "so it was said", "too late"]


def test_many_arms_are_one_request(kind: Kind) -> None:
    added = [{"id": "A", "name": "Anchor Inn", "active": True, "pulls": 0}, {**DECISION, "id": "B", "name": "B"}]
    added[1] |= {"active": True, "pulls": 0}
    script = Script(httpx.Response(200, json={"arms": added}))
    face = heard(kind, script)
    assert [one.name for one in face.ask("add_arms", {"A": "Anchor Inn", "B": None})] == ["Anchor Inn", "B"]
    assert sent(script.requests[0]) == {
        "arms": [{"id": "A", "name": "Anchor Inn", "features": None}, {"id": "B", "name": None, "features": None}]
    }
    assert face.ask("add_arms", ["A", "B"])[0].id == "A"
    assert face.ask("add_arms", []) == []
    assert len(script.requests) == 2
    for wrong in ("AB", [""], 5, [["A"]]):
        with pytest.raises(InputError):
            face.ask("add_arms", wrong)


def test_a_decision_may_stand_for_its_id(kind: Kind) -> None:
    script = Script(MADE, TAKEN, httpx.Response(200, json={"results": [{"id": "d1", "status": "recorded"}]}))
    face = heard(kind, script)
    decision = face.ask("decide", "ann")
    face.ask("feedback", decision, {"taste": 4})
    face.ask("feedback_many", [{"decision_id": decision, "rewards": {"taste": 4}}])
    assert script.requests[1].url.path == "/v1/decisions/d1/feedback"
    assert sent(script.requests[2])["feedback"][0]["id"] == "d1"


@pytest.mark.parametrize("one", ODD_IDS)
def test_ids_are_one_segment_of_a_path(kind: Kind, one: str) -> None:
    script = Script(problem(404, "there is none"))
    face = heard(kind, script)
    for method in PATHS:
        with pytest.raises(PamoError, match="there is none"):
            face.ask(method, one)
    assert len(script.requests) == len(PATHS)
    for request, form in zip(script.requests, PATHS.values(), strict=True):
        path = request.url.raw_path.decode("ascii")
        assert [unquote(part) for part in path.split("/")] == [
            one if part == "ID" else part for part in form.split("/")
        ]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan"), b"4", {4}, object()])
def test_what_json_has_no_word_for_is_said_before_anything_is_sent(kind: Kind, value: Any) -> None:
    script = Script(TAKEN)
    face = heard(kind, script)
    for method, arguments, field in (
        ("feedback", {"decision_id": "d1", "rewards": {"taste": value}}, "rewards.taste"),
        ("feedback", {"decision_id": "d1", "overall": value}, "overall"),
        ("decide", {"user": "ann", "preference": {"taste": value}}, "preference.taste"),
        ("decide", {"user": "ann", "key": "Zoë", "preference": {"taste": value}}, "requests[0].preference.taste"),
        ("decide_many", {"requests": ["ann", {"user": "bob", "k": value}]}, "requests[1].k"),
        ("feedback_many", {"items": [{"decision_id": "d1", "overall": value}]}, "feedback[0].overall"),
    ):
        with pytest.raises(InputError, match=r"expected .*, got ") as raised:
            face.ask(method, **arguments)
        assert raised.value.field == field
        assert field in str(raised.value)
    assert script.requests == []


def test_texts_that_cannot_travel_are_said_before_anything_is_sent(kind: Kind) -> None:
    script = Script(TAKEN)
    face = heard(kind, script)
    for method, arguments in (
        ("decide", ["half \ud800"]),
        ("decide", ["ann", ["half \ud800"]]),
        ("decide", ["ann", None, {"half \ud800": 1.0}]),
        ("decide", ["ann", None, {4: 1.0}]),
        ("decide", ["ann", None, None, 1, ""]),
        ("decide", ["ann", None, None, 1, 17]),
        ("decide", ["ann", None, None, 1, "x" * 257]),
        ("decide_many", [[{"arms": ["A"]}]]),
        ("feedback", [""]),
        ("feedback", [None]),
        ("feedback", ["half \ud800"]),
        ("feedback_many", [[{"rewards": {}}]]),
        ("feedback_many", [[{"decision_id": "d1", "reward": {}}]]),
        ("feedback_many", [["d1"]]),
        ("feedback_many", [[{"decision_id": 4}]]),
        ("preference", [""]),
        ("erase_user", [""]),
        ("arm", ["x\0y"]),
        ("add_arm", ["x" * 257]),
    ):
        with pytest.raises(InputError, match=r"expected .* got "):
            face.ask(method, *arguments)
    assert script.requests == []


def test_an_answer_that_is_none_is_a_sentence(kind: Kind) -> None:
    for answer, sentence in (
        (httpx.Response(200, text="<html>Welcome</html>"), "something else than expected"),
        (httpx.Response(200, json={"id": 4}), "something else than expected"),
        (httpx.Response(201, json=[]), "something else than expected"),
        (httpx.Response(404, text="<html>Not here</html>"), r"pamo's service at http://pamo\.test, got 404"),
        (httpx.Response(404, json={"detail": "Not Found"}), r"pamo's service at http://pamo\.test, got 404"),
        (httpx.Response(301, headers={"Location": "https://pamo.test/"}), "to https://pamo.test/: use that URL"),
        (httpx.Response(500, text="oops"), "got 500"),
    ):
        with pytest.raises(ServiceError, match=sentence):
            heard(kind, Script(answer)).ask("decide", "ann")
    with pytest.raises(InputError, match="answered 413 without saying why"):
        heard(kind, Script(httpx.Response(413, text="<html>"))).ask("decide", "ann")
    broken = httpx.Response(422, content=b"[", headers={"Content-Type": "application/problem+json"})
    with pytest.raises(InputError, match="answered 422 without saying why"):
        heard(kind, Script(broken)).ask("decide", "ann")


def test_an_answer_with_too_few_decisions_is_none(kind: Kind) -> None:
    short = Script(httpx.Response(200, json={"decisions": [DECISION]}))
    with pytest.raises(ServiceError, match="expected 2 answers in one, got 1"):
        heard(kind, short).ask("decide_many", ["ann", "bob"])
    short = Script(httpx.Response(200, json={"results": []}))
    with pytest.raises(ServiceError, match="expected 1 answers in one, got 0"):
        heard(kind, short).ask("feedback_many", [{"decision_id": "d1"}])


def test_where_there_is_nothing_to_ask_nothing_is_sent(kind: Kind) -> None:
    script = Script(problem(422, "expected 1 to 1000"))
    face = heard(kind, script)
    assert face.ask("decide_many", []) == []
    assert face.ask("feedback_many", iter([])) == []
    assert script.requests == []


def test_an_answer_may_say_more_than_this_client_knows(kind: Kind) -> None:
    more = httpx.Response(201, json={**DECISION, "of_tomorrow": {"deep": [1]}})
    assert heard(kind, Script(more)).ask("decide", "ann").arm == "A"


def test_settings_come_from_the_environment(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kind().url == "http://127.0.0.1:8000"
    monkeypatch.setenv("PAMO_URL", "https://pamo.test/prefix/")
    monkeypatch.setenv("PAMO_KEY", "secret-1")
    script = Script(MADE)
    heard(kind, script, url=None, key=None).ask("decide", "ann")
    heard(kind, script, url="http://other.test:81", key="secret-2").ask("decide", "ann")
    first, second = script.requests
    assert str(first.url) == "https://pamo.test/prefix/v1/decisions"
    assert first.headers["Authorization"] == "Bearer secret-1"
    assert str(second.url) == "http://other.test:81/v1/decisions"
    assert second.headers["Authorization"] == "Bearer secret-2"
    monkeypatch.setenv("PAMO_KEY", "")
    heard(kind, script, key=None).ask("decide", "ann")
    assert "Authorization" not in script.requests[-1].headers


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "127.0.0.1:8000"},
        {"url": "ftp://pamo.test"},
        {"url": "http://"},
        {"url": ""},
        {"url": "http://a b"},
        {"url": "http://pamo.test:port"},
        {"url": "http://pamo.test/?q=1"},
        {"url": 8000},
        {"url": "http://ann:secret@pamo.test"},
        {"key": ""},
        {"key": "secret with spaces"},
        {"key": "secret\n"},
        {"key": "secret-é"},
        {"key": b"secret"},
        {"timeout": 0},
        {"timeout": math.nan},
        {"timeout": "10"},
        {"timeout": None},
        {"retries": -1},
        {"retries": 1.5},
        {"retries": True},
        {"backoff": -0.1},
        {"backoff": math.inf},
        {"longest_pause": -1},
        {"longest_pause": math.nan},
    ],
    ids=repr,
)
def test_settings_that_cannot_be_are_said_at_once(kind: Kind, settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="expected ") as raised:
        kind(**settings)
    assert "secret" not in str(raised.value)


def test_no_key_is_told(kind: Kind) -> None:
    client = kind("http://pamo.test", key="secret-1")
    assert repr(client) == f"{kind.__name__}('http://pamo.test')"
    with pytest.raises(ServiceError) as raised:
        heard(kind, Script(httpx.ConnectError("refused")), key="secret-1", retries=0).ask("decide", "ann")
    assert "secret" not in str(raised.value)


def test_a_client_that_was_closed_says_so(kind: Kind) -> None:
    client: Any = kind("http://pamo.test", transport=httpx.MockTransport(Script(MADE)))

    async def use() -> None:
        assert (await answered(client.decide("ann"))).arm == "A"
        await answered(client.close())
        await answered(client.close())
        for method in ("decide", "preference"):
            with pytest.raises(ServiceError, match="was closed"):
                await answered(getattr(client, method)("ann"))

    asyncio.run(use())


BARE = """
import sys
import pamo
assert "httpx" not in sys.modules
assert "pamo.client" not in sys.modules
sys.modules["{absent}"] = None
from pamo import *  # noqa: F403
for kind in (pamo.Client, pamo.AsyncClient):
    try:
        kind()
    except pamo.errors.MissingExtraError as error:
        print(error)
"""


@pytest.mark.parametrize("absent", ["httpx", "msgspec"])
def test_the_core_alone_says_what_a_client_needs(absent: str) -> None:
    program = BARE.format(absent=absent)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    sentence = f"a client of the service needs {absent}, which is not installed: pip install 'pamo[client]'"
    assert run.stdout.splitlines() == [sentence] * 2


def test_nothing_else_is_made_up() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Clientele'"):
        pamo.Clientele  # noqa: B018
