"""Users, arms and the service itself over HTTP."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from pamo.service.operations import OPERATIONS, Operation
from tests.service.calling import SCORES, WEIGHTS, Service, answer

ODD = [
    "a/b",
    "100%",
    "%2F",
    "a b?c#d&e",
    "søren 🍓",
    "مرحبا",
    "two\nlines",
    "~user:@!$'()*,;=",
    "\u202eabc",
    "é",
    "x" * 256,
]


def test_a_preference_has_the_names_that_others_rely_on(service: Service) -> None:
    for user in ("bob", "ann", "ann"):
        service.feedback(service.decide(user)["id"], rewards=SCORES, overall=0.5)
    found = service.get("/v1/users/ann/preference")
    assert list(found) == ["user", "rounds", "source", "level", "objectives", "changed"]
    assert (found["user"], found["rounds"], found["source"]) == ("ann", 2, "overall")
    assert set(found["objectives"]) == {"price", "taste"}
    for weight in found["objectives"].values():
        assert weight["low"] <= weight["weight"] <= weight["high"]
    new = service.get("/v1/users/nobody/preference")
    assert (new["rounds"], new["source"]) == (0, "others")


def test_a_user_is_exported_and_erased(service: Service) -> None:
    made = service.decide("ann", preference=WEIGHTS, key="order 17")
    service.feedback(made["id"], rewards=SCORES, overall=0.5)
    other = service.decide("bob")
    kept = service.get("/v1/users/ann")
    assert list(kept) == ["user", "preference", "history", "features"]
    assert kept["preference"] == service.get("/v1/users/ann/preference")
    assert [one["event"] for one in kept["history"]] == ["DecisionMade", "FeedbackGiven"]
    assert kept["history"][0]["id"] == made["id"]
    assert kept["history"][1]["rewards"] == SCORES
    answer(service.ask("DELETE", "/v1/users/ann"), 204)
    gone = service.get("/v1/users/ann")
    assert gone["history"] == []
    assert gone["preference"]["rounds"] == 0
    # Nobody is named any more; what the arm learned stays.
    found = service.get(f"/v1/decisions/{made['id']}")
    assert found["user"] is None
    assert found["explanation"]["preference"] == {}
    assert service.get(f"/v1/arms/{made['arm']}")["pulls"] == 1
    assert service.get(f"/v1/decisions/{other['id']}")["user"] == "bob"
    assert "ann" not in str(service.journal())
    answer(service.ask("DELETE", "/v1/users/ann"), 204)  # there is nothing any more: fine
    assert service.decide("ann", key="order 17")["id"] != made["id"]


def test_late_feedback_for_an_erased_user_teaches_the_arm_only(service: Service) -> None:
    made = service.decide("ann")
    service.ask("DELETE", "/v1/users/ann")
    given = service.feedback(made["id"], rewards=SCORES, overall=0.5, preference=WEIGHTS)
    assert given["learned"] == ["arm: price", "arm: taste", "arm: overall"]
    assert service.get("/v1/users/ann/preference")["rounds"] == 0


def test_the_life_of_an_arm(service: Service) -> None:
    path = "/v1/arms/D"
    service.get(path, 404)
    new = answer(service.ask("PUT", path, {"name": "Dune"}), 200)
    assert new == {"id": "D", "name": "Dune", "active": True, "pulls": 0, "features": {}}
    assert service.get(path) == new
    assert answer(service.ask("PUT", path, {"name": "Dune Hotel"}), 200)["name"] == "Dune Hotel"
    made = service.decide(arms=["D"])
    assert answer(service.ask("DELETE", path), 200) == new | {"name": "Dune Hotel", "active": False}
    before = service.journal()
    assert answer(service.ask("DELETE", path), 200)["active"] is False  # again: nothing changes
    assert service.journal() == before
    assert "D" not in service.decide(k=9)["arms"]
    service.decide(status=422, arms=["D"])
    # Late feedback for a retired arm still counts.
    assert service.feedback(made["id"], rewards=SCORES)["status"] == "recorded"
    assert service.get(path)["pulls"] == 1
    # Offered again, it has its name and what was learned.
    for body in (None, {}, {"name": None}):
        service.ask("DELETE", path)
        revived = answer(service.ask("PUT", path, body), 200)
        assert revived == {"id": "D", "name": "Dune Hotel", "active": True, "pulls": 1, "features": {}}
    assert service.decide(arms=["D"])["arm"] == "D"
    assert answer(service.ask("DELETE", "/v1/arms/nothing"), 404)["field"] == "id"


def test_all_arms(service: Service) -> None:
    service.ask("DELETE", "/v1/arms/B")
    assert service.get("/v1/arms") == {
        "arms": [
            {"id": "A", "name": "Arm A", "active": True, "pulls": 0, "features": {}},
            {"id": "B", "name": "Arm B", "active": False, "pulls": 0, "features": {}},
            {"id": "C", "name": "Arm C", "active": True, "pulls": 0, "features": {}},
        ]
    }


def test_an_arm_is_named_by_its_id_unless_it_is_named(service: Service) -> None:
    assert answer(service.ask("PUT", "/v1/arms/D"), 200)["name"] == "D"


@pytest.mark.parametrize("name", ["", "x" * 257, 7, "nul\0"])
def test_a_wrong_name(service: Service, name: object) -> None:
    before = service.journal()
    assert answer(service.ask("PUT", "/v1/arms/D", {"name": name}), 422)["field"] == "name"
    assert service.journal() == before


def test_the_front(service: Service) -> None:
    scores = {"A": (100.0, 2.0), "B": (200.0, 4.0), "C": (300.0, 3.0)}
    for arm, (price, taste) in scores.items():
        for shift in (-1.0, 0.0, 1.0):
            made = service.decide(arms=[arm])
            service.feedback(made["id"], rewards={"price": price + shift, "taste": taste + shift / 10})
    found = service.get("/v1/front")["arms"]
    assert [one["arm"] for one in found if one["on_front"]] == ["A", "B"]
    worst = found[-1]
    assert list(worst) == ["arm", "name", "pulls", "on_front", "confidence", "objectives"]
    assert (worst["arm"], worst["name"], worst["pulls"]) == ("C", "Arm C", 3)
    assert worst["confidence"] < 0.5 < found[0]["confidence"]
    assert worst["objectives"]["price"]["mean"] == pytest.approx(0.4)  # 300 of 500, and lower is better


def test_objectives_and_statistics(service: Service) -> None:
    found = service.get("/v1/objectives")
    assert found["objectives"][0] == {"name": "price", "low": 0.0, "high": 500.0, "lower_is_better": True}
    assert found["overall"] == {"name": "overall", "low": 0.0, "high": 1.0, "lower_is_better": False}
    service.feedback(service.decide("ann")["id"], rewards=SCORES)
    service.decide("bob")
    service.ask("DELETE", "/v1/arms/C")
    assert service.get("/v1/statistics") == {
        "arms": 2,
        "retired_arms": 1,
        "users": 1,
        "pending_decisions": 1,
        "complete_feedbacks": 1,
        "overall_scores": 0,
        "rewards": 2,
    }


def test_many_arms_are_added_in_one_go(service: Service) -> None:
    before = service.journal()
    several = [{"id": "B", "name": "Bristol"}, {"id": "D", "name": "Dome"}, {"id": "batch"}]
    found = answer(service.ask("POST", "/v1/arms", {"arms": several}), 200)["arms"]
    assert [(one["id"], one["name"]) for one in found] == [("B", "Bristol"), ("D", "Dome"), ("batch", "batch")]
    assert service.get("/v1/arms/batch")["active"] is True
    assert len(service.journal()) == len(before) + 3
    again = answer(service.ask("POST", "/v1/arms", {"arms": [{"id": "D"}]}), 200)["arms"]
    assert again[0]["name"] == "Dome"  # it keeps its name
    twice = answer(service.ask("POST", "/v1/arms", {"arms": [{"id": "D"}, {"id": "D", "name": "Dom"}]}), 200)["arms"]
    assert [one["name"] for one in twice] == ["Dom"]  # the later counts
    before = service.journal()
    for body, field in (
        ({"arms": []}, "arms"),
        ({"arms": [{"id": "E"}, {"id": ""}]}, "arms[1].id"),
        ({"arms": [{"name": "E"}]}, "arms[0].id"),
        ({"arms": [{"id": str(n)} for n in range(1001)]}, "arms"),
    ):
        assert answer(service.ask("POST", "/v1/arms", body), 422)["field"] == field
    assert service.journal() == before


def test_users_have_features(service: Service) -> None:
    declared = {"features": [{"name": "age"}, {"name": "vip", "kind": "yes or no"}], "of": "users"}
    found = answer(service.ask("POST", "/v1/features", declared), 200)
    assert found == {"features": [{"name": "age", "kind": "number"}, {"name": "vip", "kind": "yes or no"}]}
    told = service.get("/v1/objectives")
    assert (told["features"], told["user_features"]) == ([], found["features"])
    answer(service.ask("POST", "/v1/decisions", {"user": "ann", "features": {"age": 40, "vip": True}}), 201)
    batch = {"requests": [{"user": "ann", "features": {"vip": None}}, {"user": "bob", "features": {"age": 7}}]}
    answer(service.ask("POST", "/v1/decisions/batch", batch), 200)
    assert service.get("/v1/users/ann")["features"] == {"age": 40.0}
    assert service.get("/v1/users/bob")["features"] == {"age": 7.0}
    for body, field in (
        ({"user": "ann", "features": {"age": "old"}}, "features.age"),
        ({"user": "ann", "features": {"stars": 4}}, "features"),
        ({"user": "ann", "features": 4}, "features"),
    ):
        assert answer(service.ask("POST", "/v1/decisions", body), 422)["field"] == field
    wrong = {"requests": [{"user": "ann"}, {"user": "bob", "features": {"vip": 1}}]}
    assert answer(service.ask("POST", "/v1/decisions/batch", wrong), 422)["field"] == "requests[1].features.vip"


def test_arms_have_features(service: Service) -> None:
    declared = {"features": [{"name": "stars"}, {"name": "pool", "kind": "yes or no"}]}
    found = answer(service.ask("POST", "/v1/features", declared), 200)
    assert found == {"features": [{"name": "stars", "kind": "number"}, {"name": "pool", "kind": "yes or no"}]}
    assert service.get("/v1/objectives")["features"] == found["features"]
    changed = answer(service.ask("PUT", "/v1/arms/A", {"features": {"stars": 4, "pool": True}}), 200)
    assert (changed["name"], changed["features"]) == ("Arm A", {"stars": 4.0, "pool": True})
    several = [{"id": "B", "features": {"pool": False}}, {"id": "C"}]
    answer(service.ask("POST", "/v1/arms", {"arms": several}), 200)
    assert [one["features"] for one in service.get("/v1/arms")["arms"]] == [changed["features"], {"pool": False}, {}]
    before = service.journal()
    for method, path, body, field in (
        ("PUT", "/v1/arms/A", {"features": {"stars": "four"}}, "features.stars"),
        ("PUT", "/v1/arms/A", {"features": {"view": 1}}, "features"),
        ("POST", "/v1/arms", {"arms": [{"id": "D"}, {"id": "B", "features": {"pool": 1}}]}, "features.B.pool"),
        ("POST", "/v1/features", {"features": [{"name": "pool", "kind": "word"}]}, "features"),
        ("POST", "/v1/features", {"features": [{"name": "view", "kind": "sea"}]}, "features[0].kind"),
    ):
        assert answer(service.ask(method, path, body), 422)["field"] == field
    assert service.journal() == before


@pytest.mark.parametrize("name", ODD)
def test_ids_are_any_text(service: Service, name: str) -> None:
    """Percent-encoded in a path, whatever they hold; the same text comes back."""
    path = quote(name, safe="")
    assert answer(service.ask("PUT", f"/v1/arms/{path}", {"name": name}), 200)["id"] == name
    made = service.decide(name, arms=[name], key="1")
    assert (made["user"], made["arm"]) == (name, name)
    service.feedback(made["id"], rewards=SCORES, arm=name)
    assert service.get(f"/v1/arms/{path}")["pulls"] == 1
    assert service.get(f"/v1/users/{path}/preference")["user"] == name
    assert len(service.get(f"/v1/users/{path}")["history"]) == 2
    assert service.get(f"/v1/decisions/{made['id']}")["explanation"]["chosen"]["arm"] == name
    answer(service.ask("DELETE", f"/v1/users/{path}"), 204)
    assert service.get(f"/v1/users/{path}")["history"] == []
    assert answer(service.ask("DELETE", f"/v1/arms/{path}"), 200)["active"] is False


@pytest.mark.parametrize("path", ["%00", "", "x" * 257, "%FF", "%ED%A0%80", "a%00b"])
@pytest.mark.parametrize("one", [one for one in OPERATIONS if "{id}" in one.path], ids=lambda one: one.name)
def test_ids_that_cannot_be(service: Service, one: Operation, path: str) -> None:
    before = service.journal()
    body = {"overall": 1} if one.name == "giveFeedback" else None
    problem = answer(service.ask(one.method, one.path.replace("{id}", path), body), 422)
    assert problem["field"] == "id"
    assert service.journal() == before


def test_health_needs_nothing(service: Service) -> None:
    assert service.get("/healthz") == {"status": "ok"}
    assert service.get("/readyz") == {"status": "ok"}


def test_unknown_paths_and_methods(service: Service) -> None:
    for path in (
        "/nowhere",
        "/v1",
        "/v2/arms",
        "/v1/arms/A/",
        "/v1/users/ann/secrets",
        "/v1//arms",
        "/v1/decisions/x/y/z",
    ):
        assert answer(service.ask("GET", path), 404)["title"] == "Not Found"
    for method, path, allowed in (
        ("GET", "/v1/decisions", "POST"),
        ("PUT", "/v1/decisions/x", "GET, HEAD"),
        ("PATCH", "/v1/arms/A", "GET, HEAD, PUT, DELETE"),
        ("OPTIONS", "/v1/arms", "GET, HEAD, POST"),
        ("TRACE", "/healthz", "GET, HEAD"),
        ("GET", "/v1/decisions/batch", "POST"),
    ):
        response = service.ask(method, path)
        answer(response, 405)
        assert response.headers["allow"] == allowed
