"""What cannot be used is refused with the field's name, and nothing changes."""

from __future__ import annotations

import pytest

from tests.service.calling import Serve, Service, check_problem, engine_of

DEEP = 100_000

# A body of feedback, the status, and the field that the problem names.
FEEDBACK = [
    ('{"rewards": {"price": NaN}}', 400, None),
    ('{"rewards": {"price": Infinity}}', 400, None),
    ('{"rewards": {"price": 1e400}}', 422, "rewards"),
    ('{"rewards": {"price": -1e400}}', 422, "rewards"),
    ('{"rewards": {"price": 501}}', 422, "rewards.price"),
    ('{"rewards": {"price": -0.001}}', 422, "rewards.price"),
    ('{"rewards": {"taste": 0}}', 422, "rewards.taste"),
    ('{"rewards": {"price": true}}', 422, "rewards.price"),
    ('{"rewards": {"price": "120"}}', 422, "rewards.price"),
    ('{"rewards": {"price": null}}', 422, "rewards.price"),
    ('{"rewards": {"price": [120]}}', 422, "rewards.price"),
    ('{"rewards": {"price": {"low": 1}}}', 422, "rewards.price"),
    (f'{{"rewards": {{"price": {"9" * 400}}}}}', 422, "rewards.price"),
    (f'{{"rewards": {{"price": {"9" * 5000}}}}}', 422, "rewards"),
    ('{"rewards": {"colour": 1}}', 422, "rewards"),
    ('{"rewards": {"price": 1, "colour\\u0000": 1}}', 422, "rewards"),
    ('{"rewards": {"overall": 1}}', 422, "rewards"),
    ('{"rewards": [1, 2]}', 422, "rewards"),
    ('{"rewards": "price"}', 422, "rewards"),
    ('{"rewards": {}}', 422, "rewards"),
    ('{"rewards": null, "overall": null, "preference": null}', 422, "rewards"),
    ("{}", 422, "rewards"),
    ('{"overall": 1.5}', 422, "overall"),
    ('{"overall": -1}', 422, "overall"),
    ('{"overall": true}', 422, "overall"),
    ('{"overall": "0.5"}', 422, "overall"),
    ('{"overall": 1e400}', 422, "overall"),
    ('{"overall": NaN}', 400, None),
    (f'{{"overall": {"9" * 5000}}}', 422, "overall"),
    ('{"preference": {"price": 1}}', 422, "preference"),
    ('{"preference": {"price": 1, "taste": 1, "colour": 1}}', 422, "preference"),
    ('{"preference": {"price": 1, "taste": 1e7}}', 422, "preference.taste"),
    ('{"preference": {"price": 1, "taste": false}}', 422, "preference.taste"),
    ('{"preference": {"price": 1, "taste": "1"}}', 422, "preference.taste"),
    ('{"preference": {"price": 1, "taste": 1e400}}', 422, "preference"),
    ('{"preference": [1, 1]}', 422, "preference"),
    ('{"overall": 0.5, "arm": 1}', 422, "arm"),
    ('{"overall": 0.5, "arm": ""}', 422, "arm"),
    ('{"overall": 0.5, "arm": "Z"}', 422, "arm"),
    ('{"overall": 0.5, "arm": "A\\u0000"}', 422, "arm"),
    ('{"overall": 0.5, "arm": "\\ud800"}', 400, None),
    ('{"overall": 0.5, "id": "x"}', 422, "id"),
    ('{"overall": 0.5, "colour": "red"}', 422, "colour"),
    ("[]", 422, None),
    ("null", 422, None),
    ('"text"', 422, None),
    ("7", 422, None),
    ("", 400, None),
    ("{", 400, None),
    ('{"overall": 0.5', 400, None),
    ('{"overall": 0.5} {}', 400, None),
    ("{'overall': 0.5}", 400, None),
    ('{"overall": 0.5,}', 400, None),
    ('{"overall": .5}', 400, None),
    ("\ufeff{}", 400, None),
    (f'{{"rewards": {{"price": {"[" * DEEP}{"]" * DEEP}}}}}', 400, None),
    (f'{{"overall": {"[" * DEEP}{"]" * DEEP}}}', 422, "overall"),
]

DECISIONS = [
    ("{}", 422, "user"),
    ('{"user": null}', 422, "user"),
    ('{"user": 1}', 422, "user"),
    ('{"user": ""}', 422, "user"),
    ('{"user": ["ann"]}', 422, "user"),
    ('{"user": "ann\\u0000"}', 422, "user"),
    ('{"user": "\\udfff"}', 400, None),
    (f'{{"user": "{"x" * 257}"}}', 422, "user"),
    ('{"user": "ann", "arms": []}', 422, "arms"),
    ('{"user": "ann", "arms": "A"}', 422, "arms"),
    ('{"user": "ann", "arms": {"A": 1}}', 422, "arms"),
    ('{"user": "ann", "arms": ["A", "A"]}', 422, "arms"),
    ('{"user": "ann", "arms": ["A", "Z"]}', 422, "arms"),
    ('{"user": "ann", "arms": ["A", null]}', 422, "arms[1]"),
    ('{"user": "ann", "arms": [1]}', 422, "arms[0]"),
    ('{"user": "ann", "arms": [""]}', 422, "arms[0]"),
    ('{"user": "ann", "k": 0}', 422, "k"),
    ('{"user": "ann", "k": -1}', 422, "k"),
    ('{"user": "ann", "k": 1.5}', 422, "k"),
    ('{"user": "ann", "k": true}', 422, "k"),
    ('{"user": "ann", "k": "1"}', 422, "k"),
    ('{"user": "ann", "k": null}', 422, "k"),
    ('{"user": "ann", "k": 1000001}', 422, "k"),
    ('{"user": "ann", "k": 1e400}', 422, "k"),
    (f'{{"user": "ann", "k": {"9" * 5000}}}', 422, "k"),
    ('{"user": "ann", "preference": {}}', 422, "preference"),
    ('{"user": "ann", "preference": {"price": 1}}', 422, "preference"),
    ('{"user": "ann", "preference": {"price": 1, "taste": 1, "x": 1}}', 422, "preference"),
    ('{"user": "ann", "preference": {"price": 1, "taste": null}}', 422, "preference.taste"),
    ('{"user": "ann", "preference": {"price": 1, "taste": true}}', 422, "preference.taste"),
    ('{"user": "ann", "preference": {"price": 1, "taste": -1e7}}', 422, "preference.taste"),
    (f'{{"user": "ann", "preference": {{"price": 1, "taste": {"9" * 400}}}}}', 422, "preference.taste"),
    ('{"user": "ann", "preference": {"price": 1, "taste": NaN}}', 400, None),
    ('{"user": "ann", "key": "x"}', 422, "key"),
    ('{"user": "ann", "User": "x"}', 422, "User"),
    (f'{{"user": "ann", "preference": {"{"}"price": {"[" * DEEP}{"]" * DEEP}{"}"}}}', 400, None),
]


def named(cases: list[tuple[str, int, str | None]]) -> list[object]:
    return [pytest.param(*case, id=f"{case[0]:.60}") for case in cases]


@pytest.mark.parametrize(("body", "status", "field"), named(FEEDBACK))
def test_feedback(service: Service, body: str, status: int, field: str | None) -> None:
    made = service.decide()
    before = service.journal()
    response = service.send("POST", f"/v1/decisions/{made['id']}/feedback", body.encode())
    assert response.status_code == status, response.text
    check_problem(response, field)
    assert (field is None) == ("field" not in response.json())
    assert service.journal() == before
    service.feedback(made["id"], overall=0.5)  # the decision still takes its one feedback


@pytest.mark.parametrize(("body", "status", "field"), named(DECISIONS))
def test_decision(service: Service, body: str, status: int, field: str | None) -> None:
    before = service.journal()
    response = service.send("POST", "/v1/decisions", body.encode())
    assert response.status_code == status, response.text
    check_problem(response, field)
    assert (field is None) == ("field" not in response.json())
    assert service.journal() == before


def test_a_field_by_another_name_is_told_which_there_are(service: Service) -> None:
    made = service.decide()
    response = service.send("POST", f"/v1/decisions/{made['id']}/feedback", b'{"reward": {"price": 1}}')
    assert "unknown field 'reward'; did you mean 'rewards'? Known: " in response.json()["detail"]
    response = service.send("GET", "/v1/users/ann/decisions?most=1", b"")
    assert "unknown field 'most'. Known: before, limit" in response.json()["detail"]


def test_bodies_that_are_no_text(service: Service) -> None:
    before = service.journal()
    for body in (b"\xff\xfe", b'{"user": "\xff"}', '{"user": "ann"}'.encode("utf-16"), bytes(range(256)), b"\0"):
        assert service.send("POST", "/v1/decisions", body).status_code in {400, 422}
    assert service.journal() == before


def test_no_arm_to_choose_from(serve: Serve) -> None:
    service = serve(engine_of(""))
    assert service.decide(status=422)["field"] == "arms"
    response = service.ask("POST", "/v1/decisions/batch", {"requests": [{"user": "ann"}]})
    assert response.status_code == 422
    check_problem(response, "requests[0].arms")


def test_a_policy_that_needs_the_preference(serve: Serve) -> None:
    service = serve(engine_of(policy="prucb-kp"))
    assert service.decide(status=422)["field"] == "preference"
    service = serve(engine_of(policy="prucb-hp"))
    assert service.decide(status=422, preference={"price": 1, "taste": 1})["field"] == "preference"


def test_whole_numbers_beyond_64_bits_on_a_wide_scale(serve: Serve, tmp_path: object) -> None:
    """A journal keeps numbers as they came, and this one came as a whole number that JSON writers may refuse."""
    service = serve(engine_of(objectives=("wide: 0..1e300", "taste"), store=f"{tmp_path}/wide.db"))
    made = service.decide()
    assert service.feedback(made["id"], rewards={"wide": 10**200})["status"] == "recorded"
    assert service.feedback(made["id"], rewards={"wide": 10**200})["status"] == "duplicate"
    assert service.feedback(made["id"], rewards={"wide": 1e200})["status"] == "duplicate"
    service.get("/readyz")
    assert service.get(f"/v1/decisions/{made['id']}")["feedback"]["rewards"] == {"wide": 1e200}
