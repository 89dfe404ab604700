"""Who may ask for what: keys and their roles for every operation, the Host header without keys, and the rate."""

from __future__ import annotations

from typing import Any

import pytest

from pamo.service.keys import Role
from pamo.service.operations import OPERATIONS, Operation
from tests.service.calling import KEYS, SECRETS, Serve, Service, check_problem

ROLES = {
    "giveFeedback": Role.FEEDBACK,
    "declareFeatures": Role.ADMIN,
    "decide": Role.DECIDE,
    "decideMany": Role.DECIDE,
    "giveFeedbackToMany": Role.FEEDBACK,
    "getDecision": "any",
    "getPreference": "any",
    "getPreferenceHistory": "any",
    "getDecisions": "any",
    "findUsers": "any",
    "getLeaderboard": "any",
    "rankArms": "any",
    "getActivity": "any",
    "getAlerts": "any",
    "getStream": "any",
    "exportUser": Role.ADMIN,
    "eraseUser": Role.ADMIN,
    "getArms": "any",
    "getArm": "any",
    "putArm": Role.ADMIN,
    "putArms": Role.ADMIN,
    "retireArm": Role.ADMIN,
    "getFront": "any",
    "getExperiment": "any",
    "startExperiment": Role.ADMIN,
    "endExperiment": Role.ADMIN,
    "getObjectives": "any",
    "getStatistics": "any",
    "getHealth": None,
    "getReadiness": None,
    "getMetrics": "any",
    "getOpenApi": "any",
    "getReference": None,
}
"""What each operation takes, written down a second time: a new one, or a slip in the table, fails here."""

MAY = {"decider": {Role.DECIDE}, "listener": {Role.FEEDBACK}, "boss": set(Role)}
ABOUT = [
    Operation("GET", "/openapi.json", "getOpenApi", "", None),  # type: ignore[arg-type]
    Operation("GET", "/docs", "getReference", "", None, roles=None),  # type: ignore[arg-type]
]
ALL = [*OPERATIONS, *ABOUT]


def call(service: Service, one: Operation, authorization: str | None, **headers: str) -> Any:
    """Ask for an operation in a way that would do something."""
    bodies = {
        "decide": {"user": "ann"},
        "decideMany": {"requests": [{"user": "ann"}]},
        "giveFeedback": {"overall": 0.5},
        "giveFeedbackToMany": {"feedback": [{"id": "x", "overall": 0.5}]},
        "putArm": {"name": "New"},
        "putArms": {"arms": [{"id": "N"}]},
        "startExperiment": {"name": "autumn"},
        "rankArms": {"preference": {"price": 1, "taste": 1}},
    }
    named = headers if authorization is None else {"authorization": authorization, **headers}
    if one.name == "getStream":  # it has no end: who is let in sees its headers only
        head = service.ask("HEAD", one.path, headers=named)
        if head.status_code < 400:
            return head
    return service.ask(one.method, one.path.replace("{id}", "A"), bodies.get(one.name), headers=named)


def test_no_operation_is_forgotten() -> None:
    assert {one.name for one in ALL} == set(ROLES)
    assert len(ALL) == len(ROLES)


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_each_operation_takes_its_role(serve: Serve, one: Operation) -> None:
    service = serve(keys=KEYS)
    needed = ROLES[one.name]
    for authorization in (None, "Bearer pamo_unknown", f"Basic {SECRETS['boss']}", "Bearer", "", SECRETS["boss"]):
        before = service.journal()
        response = call(service, one, authorization)
        if needed is None:
            assert response.status_code < 400
            continue
        assert response.status_code == 401
        check_problem(response)
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert service.journal() == before
    for name, secret in SECRETS.items():
        before = service.journal()
        response = call(service, one, f"Bearer {secret}")
        if needed in {None, "any"} or needed in MAY[name]:
            assert response.status_code not in {401, 403, 405, 500}
        else:
            assert response.status_code == 403
            check_problem(response)
            assert needed is not None
            assert needed in response.json()["detail"]
            assert service.journal() == before
        assert secret not in response.text


def test_the_scheme_is_read_as_it_comes(serve: Serve) -> None:
    service = serve(keys=KEYS)
    for scheme in ("bearer", "BEARER", "Bearer "):
        assert (
            service.ask("GET", "/v1/arms", headers={"authorization": f"{scheme} {SECRETS['boss']}"}).status_code == 200
        )


def test_a_key_with_several_roles(serve: Serve) -> None:
    from pamo.service.keys import Key, digest_of

    service = serve(keys=(Key("both", ["decide", "feedback"], digest_of("pamo_both")),))
    headers = {"authorization": "Bearer pamo_both"}
    made = service.ask("POST", "/v1/decisions", {"user": "ann"}, headers=headers).json()
    path = f"/v1/decisions/{made['id']}/feedback"
    assert service.ask("POST", path, {"overall": 1}, headers=headers).status_code == 200
    assert service.ask("DELETE", "/v1/users/ann", headers=headers).status_code == 403


def test_a_body_is_not_read_for_strangers(serve: Serve) -> None:
    service = serve(keys=KEYS, max_body_bytes=10)

    async def endless() -> Any:
        raise AssertionError("the body was read")
        yield b""

    response = service.send("POST", "/v1/decisions", endless())
    assert response.status_code == 401


HOSTS = {
    "localhost": True,
    "localhost:8000": True,
    "LOCALHOST": True,
    "app.localhost:8000": True,
    "127.0.0.1": True,
    "127.0.0.1:8000": True,
    "127.8.8.8": True,
    "[::1]": True,
    "[::1]:8000": True,
    "evil.example": False,
    "evil.example:8000": False,
    "localhost.evil.example": False,
    "127.0.0.1.evil.example": False,
    "evillocalhost": False,
    "testserver": False,
    "192.168.0.1": False,
    "[2001:db8::1]:8000": False,
    "": False,
    "127.0.0.1@evil.example": False,
}


@pytest.mark.parametrize(("host", "served"), HOSTS.items())
def test_without_keys_only_this_machine_is_served(serve: Serve, host: str, served: bool) -> None:
    """A page from elsewhere may have had its name point here (DNS rebinding): its Host header gives it away."""
    service = serve()
    for one in ALL:
        if one.roles is None and one.name != "getReference":  # without keys it names the objectives
            assert call(service, one, None, host=host).status_code == 200  # nothing there is anybody's own
            continue
        before = service.journal()
        response = call(service, one, None, host=host)
        if served:
            assert response.status_code != 403
            continue
        assert response.status_code == 403
        check_problem(response)
        assert service.journal() == before


def test_with_keys_any_name_is_served(serve: Serve) -> None:
    service = serve(keys=KEYS)
    headers = {"authorization": f"Bearer {SECRETS['boss']}", "host": "pamo.example"}
    assert service.ask("GET", "/v1/arms", headers=headers).status_code == 200


def test_no_page_from_elsewhere_may_read_or_write(service: Service) -> None:
    """A browser asks first for anything but a plain form, and is not told that it may; a plain form is refused."""
    preflight = {"origin": "https://evil.example", "access-control-request-method": "PUT"}
    response = service.ask("OPTIONS", "/v1/arms/A", headers=preflight)
    assert response.status_code == 405
    assert not [name for name in response.headers if name.startswith("access-control")]
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        assert service.send("POST", "/v1/decisions", b'{"user": "ann"}', content_type=kind).status_code == 415


def test_the_rate(serve: Serve) -> None:
    service = serve(rate=0.01, burst=3, keys=KEYS)
    boss, decider = ({"authorization": f"Bearer {SECRETS[name]}"} for name in ("boss", "decider"))
    for _ in range(3):
        assert service.ask("GET", "/v1/arms", headers=boss).status_code == 200
    before = service.journal()
    for method, path in (("GET", "/v1/arms"), ("POST", "/v1/decisions"), ("DELETE", "/v1/users/ann")):
        response = service.ask(method, path, {"user": "ann"} if method == "POST" else None, headers=boss)
        assert response.status_code == 429
        check_problem(response)
        assert 98 <= int(response.headers["retry-after"]) <= 101
    assert service.journal() == before
    assert service.ask("GET", "/v1/arms", headers=decider).status_code == 200  # each key has its own
    for _ in range(10):
        assert service.ask("GET", "/healthz").status_code == 200  # and the watch is not held up


def test_the_rate_without_keys_is_by_address(serve: Serve) -> None:
    service = serve(rate=0.01, burst=1)
    assert service.ask("GET", "/v1/arms").status_code == 200
    assert service.ask("GET", "/v1/arms").status_code == 429
