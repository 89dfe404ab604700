"""A short run of the campaign that fuzzes the service, and proof that it would find a fault."""

from __future__ import annotations

import json
from collections.abc import Callable, MutableMapping
from typing import Any

import pytest

from campaigns import fuzz
from pamo.service.keys import Role
from pamo.service.operations import OPERATIONS

Change = Callable[[MutableMapping[str, Any], int, bytes], tuple[int, bytes]]


class Broken:
    """The application with a fault put in: what changes the status and the body of an answer."""

    def __init__(self, app: Any, change: Change) -> None:
        self._app, self._change = app, change

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer, wrongly."""
        started: dict[str, Any] = {}

        async def changed(message: Any) -> None:
            if scope["type"] != "http":
                await send(message)
            elif message["type"] == "http.response.start":
                started.update(message)
            else:
                status, body = self._change(scope, started["status"], message.get("body", b""))
                headers = [(name, value) for name, value in started["headers"] if name != b"content-length"]
                await send({**started, "status": status, "headers": headers})
                await send({**message, "body": body})

        await self._app(scope, receive, changed)


def crash(scope: Any, status: int, body: bytes) -> tuple[int, bytes]:
    """Fail for users whose ids are not ASCII."""
    return (500, b"{}") if "%C3" in scope["raw_path"].decode() and status == 200 else (status, body)


def forget(scope: Any, status: int, body: bytes) -> tuple[int, bytes]:
    """Leave a field out of a decision."""
    if status == 201:
        answer = json.loads(body)
        del answer["propensity"]
        return status, json.dumps(answer).encode()
    return status, body


def surprise(scope: Any, status: int, body: bytes) -> tuple[int, bytes]:
    """Answer with a status that nobody was told of."""
    return (418 if status == 404 else status), body


def accept(scope: Any, status: int, body: bytes) -> tuple[int, bytes]:
    """Say that all is well where it is not."""
    if status == 422 and scope["path"] == "/v1/decisions":
        return 201, b'{"id":"1","user":"a","arm":"A","arms":["A"],"propensity":1,"policy":"p"}'
    return status, body


def admit(scope: Any, status: int, body: bytes) -> tuple[int, bytes]:
    """Let strangers in."""
    return (200, b'{"arms":[]}') if status == 401 and scope["path"] == "/v1/arms" else (status, body)


def hesitate(scope: Any, status: int, body: bytes) -> tuple[int, bytes]:
    """Refuse what the description allows."""
    if status == 200 and scope["method"] == "PUT":
        return 422, b'{"type":"about:blank","title":"No","status":422,"detail":"not today","field":"name"}'
    return status, body


def run(
    phases: tuple[str, ...],
    examples: int,
    path: str | None = None,
    change: Change | None = None,
    role: Role | None = Role.ADMIN,
) -> fuzz.Tally:
    tally = fuzz.Tally()
    with fuzz.service(role) as (app, _):
        schema = fuzz.load(app if change is None else Broken(app, change), 1, examples, phases, role)
        fuzz.fuzz(schema if path is None else schema.include(path_regex=path), tally)
    return tally


@pytest.mark.parametrize("role", fuzz.WHO)
def test_a_service_is_asked_without_keys_and_by_every_role(role: Role | None) -> None:
    tally = run(("fuzzing",), 3, "^/v1/(decisions|feedback/batch|arms)$", role=role)
    assert tally.ok, (tally.failures, tally.troubles)
    refused = {name for name, row in tally.rows.items() if row.statuses[403]}
    assert ("POST /v1/decisions" in refused) == (role is Role.FEEDBACK)
    assert ("POST /v1/feedback/batch" in refused) == (role is Role.DECIDE)


def test_nothing_is_found() -> None:
    tally = run(("coverage", "fuzzing", "stateful"), 4)
    assert tally.ok, (tally.failures, tally.troubles)
    assert tally.cases > 500
    assert set(tally.rows) == {f"{one.method} {one.path}" for one in OPERATIONS}
    for name, row in tally.rows.items():
        assert any(200 <= status < 300 for status in row.statuses), name  # each was also asked rightly
    assert min(tally.checks.values()) > 300
    assert {"not_a_server_error", "response_schema_conformance", "ignored_auth", "unsupported_method"} <= set(
        tally.checks
    )
    assert f"{tally.cases:,}" in str(tally)


@pytest.mark.parametrize(
    ("change", "path", "check"),
    [
        (crash, "/v1/users/{id}/preference", "not_a_server_error"),
        (forget, "/v1/decisions$", "response_schema_conformance"),
        (surprise, "/v1/arms/{id}", "status_code_conformance"),
        (accept, "/v1/decisions$", "negative_data_rejection"),
        (admit, "/v1/arms$", "ignored_auth"),
        (hesitate, "/v1/arms/{id}", "positive_data_acceptance"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_fault_is_found(change: Change, path: str, check: str) -> None:
    tally = run(("coverage", "fuzzing"), 20, path.replace("{", r"\{"), change)
    assert not tally.ok
    assert check in {name for name, _ in tally.failures}, tally.failures


def test_the_command_says_what_it_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole campaign is run by hand; here only what it prints, and its exit code."""
    tally = fuzz.Tally({"GET /v1/arms": fuzz.Row(7)})
    monkeypatch.setattr(fuzz, "campaign", lambda *arguments: tally)
    assert fuzz.main(["--cases", "7", "--seed", "3"]) == 0
    assert "7 cases, seed 3" in capsys.readouterr().out
    assert fuzz.main(["--cases", "8"]) == 1  # fewer than were wanted
    tally.failures["not_a_server_error", "GET /v1/arms"] = "curl …"
    assert fuzz.main(["--cases", "7"]) == 1
    assert "not_a_server_error at GET /v1/arms\ncurl …" in capsys.readouterr().out
