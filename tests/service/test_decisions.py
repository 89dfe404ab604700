"""Decisions and feedback over HTTP: the names, the statuses, and what may be sent twice."""

from __future__ import annotations

from typing import Any

import pytest

from pamo.store import DecisionMade, FeedbackGiven
from tests.service.calling import OBJECTIVES, SCORES, WEIGHTS, Serve, Service, answer, check_problem, engine_of


def test_a_decision_has_the_names_that_others_rely_on(service: Service) -> None:
    made = service.decide("u1", arms=["A", "B"], k=1, preference=WEIGHTS)
    assert list(made) == ["id", "user", "arm", "arms", "propensity", "policy"]
    assert made["user"] == "u1"
    assert made["arm"] in {"A", "B"}
    assert made["arms"] == [made["arm"]]
    assert 0.0 < made["propensity"] <= 1.0
    assert made["policy"].startswith("prucb-kp")
    (event,) = [event for _, event in service.journal() if isinstance(event, DecisionMade)]
    assert (event.id, event.user, event.arms, event.offer, event.k) == (made["id"], "u1", (made["arm"],), ("A", "B"), 1)
    assert event.preference == WEIGHTS


def test_only_the_user_is_required(service: Service) -> None:
    assert service.decide("new")["arm"] in {"A", "B", "C"}
    made = service.decide("new", arms=None, k=1, preference=None)
    assert made["arm"] in {"A", "B", "C"}


def test_k_arms_are_ranked(service: Service) -> None:
    made = service.decide(k=2)
    assert len(made["arms"]) == len(set(made["arms"])) == 2
    assert made["arm"] == made["arms"][0]
    assert sorted(service.decide(k=50)["arms"]) == ["A", "B", "C"]
    assert len(service.decide(k=2.0)["arms"]) == 2  # to JSON it is the same number
    second = made["arms"][1]
    assert service.feedback(made["id"], rewards=SCORES, arm=second)["status"] == "recorded"
    assert service.get(f"/v1/arms/{second}")["pulls"] == 1
    assert service.get(f"/v1/arms/{made['arm']}")["pulls"] == 0


def test_feedback_has_the_names_that_others_rely_on(service: Service) -> None:
    made = service.decide()
    given = service.feedback(made["id"], rewards=SCORES, overall=0.5, preference=WEIGHTS)
    assert given == {
        "id": made["id"],
        "status": "recorded",
        "learned": ["arm: price", "arm: taste", "arm: overall", "preference"],
        "not_learned": [],
    }


def test_partial_feedback_says_what_was_not_learned(service: Service) -> None:
    given = service.feedback(service.decide()["id"], rewards={"taste": 2})
    assert given["learned"] == ["arm: taste"]
    assert given["not_learned"] == ["arm: price", "arm: overall", "preference"]


def test_the_three_modes_mix(service: Service) -> None:
    """Known with the decision, stated with the feedback, hidden behind an overall score: for the same user in turn."""
    policies = []
    for _ in range(2):
        hidden = service.decide("eve")
        service.feedback(hidden["id"], rewards=SCORES, overall=0.5)
        known = service.decide("eve", preference=WEIGHTS)
        service.feedback(known["id"], rewards=SCORES)
        stated = service.decide("eve")
        service.feedback(stated["id"], rewards=SCORES, preference=WEIGHTS)
        policies += [one["policy"].partition("@")[0] for one in (hidden, known, stated)]
    # Once the user has stated a preference, the policy for stated ones takes over where none is given.
    assert policies == ["prucb-hp-v", "prucb-kp-v", "prucb-hp-v", "prucb-up-v", "prucb-kp-v", "prucb-up-v"]
    found = service.get("/v1/users/eve/preference")
    assert (found["rounds"], found["source"]) == (6, "stated")
    assert found["objectives"]["taste"]["weight"] == pytest.approx(0.75)


def test_the_same_feedback_again_gets_the_first_answer(service: Service) -> None:
    made = service.decide()
    first = service.feedback(made["id"], rewards={"price": 120, "taste": 4}, overall=1)
    before = service.journal()
    again = service.feedback(made["id"], overall=1.0, rewards={"taste": 4.0, "price": 120.0}, arm=made["arm"])
    assert again == first | {"status": "duplicate"}
    assert service.journal() == before


def test_other_feedback_to_the_same_decision_is_refused(service: Service) -> None:
    made = service.decide()
    service.feedback(made["id"], rewards=SCORES)
    before = service.journal()
    for other in ({"rewards": {"taste": 3.0}}, {"rewards": SCORES | {"price": 1.0}, "overall": 0.5}):
        problem = service.feedback(made["id"], 409, **other)
        assert made["id"] in problem["detail"]
    assert service.journal() == before


def test_an_unknown_decision(service: Service) -> None:
    assert service.feedback("nothing", 404, overall=0.5)["field"] == "id"
    assert service.get("/v1/decisions/nothing", 404)["field"] == "id"


def test_a_decision_expires(serve: Serve) -> None:
    now = 1000.0
    service = serve(engine_of(clock=lambda: now))
    made, kept = service.decide(), service.decide()
    service.feedback(kept["id"], rewards=SCORES)
    now += 31 * 24 * 3600.0
    before = service.journal()
    assert service.feedback(made["id"], 410, rewards=SCORES)["field"] == "id"
    assert service.journal() == before
    assert service.feedback(kept["id"], rewards=SCORES)["status"] == "duplicate"  # it came in time
    results = answer(service.ask("POST", "/v1/feedback/batch", {"feedback": [{"id": made["id"], "overall": 1}]}), 200)
    assert results["results"][0]["status"] == "expired"


def test_feedback_for_an_arm_that_was_not_chosen(service: Service) -> None:
    made = service.decide(arms=["A"])
    before = service.journal()
    assert service.feedback(made["id"], 422, rewards=SCORES, arm="B")["field"] == "arm"
    assert service.journal() == before


def test_an_idempotency_key_makes_a_decision_repeatable(service: Service) -> None:
    first = service.decide("ann", key="order 17", k=2)
    before = service.journal()
    assert service.decide("ann", key="order 17", k=2) == first
    assert service.journal() == before
    assert service.decide("ann", key="order 18", k=2)["id"] != first["id"]
    before = service.journal()
    others: list[dict[str, Any]] = [
        {"user": "bob", "k": 2},
        {"user": "ann"},
        {"user": "ann", "k": 2, "arms": ["A", "B"]},
    ]
    for other in others:
        assert "order 17" in service.decide(**other, status=409, key="order 17")["detail"]
    assert service.journal() == before


@pytest.mark.parametrize("key", ["", "x" * 257, "caf\xe9", "tab\there"])
def test_a_wrong_idempotency_key(service: Service, key: str) -> None:
    before = service.journal()
    response = service.ask(
        "POST", "/v1/decisions", {"user": "ann"}, headers=[(b"idempotency-key", key.encode("latin-1"))]
    )
    assert response.status_code == 422
    check_problem(response, "idempotency-key")
    assert service.journal() == before


def test_a_repeated_request_is_answered_though_the_arm_has_gone(service: Service) -> None:
    """The first answer may have been lost on its way, whatever happened since."""
    first = service.decide("ann", key="order 17", arms=["A"])
    everything = service.decide("ann", key="order 18")
    for arm in "ABC":
        service.ask("DELETE", f"/v1/arms/{arm}")
    assert service.decide("ann", key="order 17", arms=["A"]) == first
    assert service.decide("ann", key="order 18") == everything
    service.decide("ann", 422, key="order 19", arms=["A"])
    service.decide("bob", 422, key="order 17", arms=["A"])
    before = service.journal()
    several: list[dict[str, Any]] = [
        {"user": "ann", "arms": ["A"], "key": "order 17"},
        {"user": "ann", "key": "order 18"},
    ]
    response = service.ask("POST", "/v1/decisions/batch", {"requests": several})
    assert answer(response, 200)["decisions"] == [first, everything]
    assert service.journal() == before
    service.ask("PUT", "/v1/arms/D")
    several.append({"user": "bob", "arms": ["D"]})
    made = answer(service.ask("POST", "/v1/decisions/batch", {"requests": several}), 200)["decisions"]
    assert made[:2] == [first, everything]
    assert made[2]["arm"] == "D"
    several.append({"user": "bob", "arms": ["A"]})
    response = service.ask("POST", "/v1/decisions/batch", {"requests": several})
    assert answer(response, 422)["field"] == "requests[3].arms"


def test_unknown_and_retired_arms_are_refused(service: Service) -> None:
    service.ask("DELETE", "/v1/arms/C")
    before = service.journal()
    for arms in (["A", "Z"], ["A", "C"]):
        problem = service.decide(status=422, arms=arms)
        assert problem["field"] == "arms"
        assert arms[1] in problem["detail"]
    assert service.journal() == before


def test_new_arms_are_accepted_where_they_may_be(serve: Serve) -> None:
    service = serve(engine_of("", accept_new_arms=True))
    assert service.decide(arms=["X", "Y"], k=2)["arms"]
    assert [one["id"] for one in service.get("/v1/arms")["arms"]] == ["X", "Y"]
    before = service.journal()
    service.decide(status=422, arms=["Z"], preference={"price": 1})  # none is added for a request that is wrong
    service.decide(status=422, arms=["Z", "Z"])
    service.decide(status=422, arms=["Z\0"])
    assert service.journal() == before
    batch = {"requests": [{"user": "a", "arms": ["P"]}, {"user": "b", "arms": ["Q", "X"]}]}
    assert answer(service.ask("POST", "/v1/decisions/batch", batch), 200)["decisions"][0]["arm"] == "P"
    service.ask("DELETE", "/v1/arms/X")
    assert "retired" in service.decide(status=422, arms=["X"])["detail"]


# Many at once


def test_many_decisions_in_order(service: Service) -> None:
    requests = [
        {"user": "u0"},
        {"user": "u1", "arms": ["B"]},
        {"user": "u2", "k": 3, "preference": WEIGHTS},
        {"user": "u3", "key": "mine"},
    ]
    made = answer(service.ask("POST", "/v1/decisions/batch", {"requests": requests}), 200)["decisions"]
    assert [one["user"] for one in made] == ["u0", "u1", "u2", "u3"]
    assert made[1]["arm"] == "B"
    assert sorted(made[2]["arms"]) == ["A", "B", "C"]
    assert list(made[0]) == ["id", "user", "arm", "arms", "propensity", "policy"]
    again = answer(service.ask("POST", "/v1/decisions/batch", {"requests": requests}), 200)["decisions"]
    assert again[3] == made[3]
    assert again[0]["id"] != made[0]["id"]
    assert service.decide("u3", key="mine") == made[3]  # the same keys


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"user": ""}, "user"),
        ({"user": "x", "arms": ["Z"]}, "arms"),
        ({"user": "x", "arms": []}, "arms"),
        ({"user": "x", "arms": ["A", 1]}, "arms[1]"),
        ({"user": "x", "k": 0}, "k"),
        ({"user": "x", "preference": {"price": 1, "taste": "a lot"}}, "preference.taste"),
        ({"user": "x", "preference": {"price": 1}}, "preference"),
        ({"user": "x", "key": ""}, "key"),
        ({"user": "x", "colour": "red"}, "colour"),
        ({}, "user"),
    ],
)
def test_the_place_of_a_wrong_request_is_named(service: Service, wrong: dict[str, object], field: str) -> None:
    before = service.journal()
    requests = [{"user": "a"}, {"user": "b"}, {"user": "c"}, wrong, {"user": "d"}]
    response = service.ask("POST", "/v1/decisions/batch", {"requests": requests})
    assert response.status_code == 422
    check_problem(response, f"requests[3].{field}")
    assert "requests[3]" in response.json()["detail"]
    assert service.journal() == before


def test_a_key_used_twice_in_a_batch(service: Service) -> None:
    same = [{"user": "a", "key": "x"}, {"user": "a", "key": "x"}]
    made = answer(service.ask("POST", "/v1/decisions/batch", {"requests": same}), 200)["decisions"]
    assert made[0] == made[1]
    other = [{"user": "b"}, {"user": "b", "key": "x"}]
    response = service.ask("POST", "/v1/decisions/batch", {"requests": other})
    assert response.status_code == 409
    check_problem(response)


def test_each_of_many_feedbacks_has_its_own_result(service: Service) -> None:
    made = [service.decide(f"u{n}") for n in range(4)]
    service.feedback(made[3]["id"], rewards=SCORES)
    feedback = [
        {"id": made[0]["id"], "rewards": SCORES, "overall": 0.5},
        {"id": made[1]["id"], "rewards": {"taste": 3}},
        {"id": "nothing", "rewards": SCORES},
        {"id": made[0]["id"], "rewards": SCORES, "overall": 0.5},
        {"id": made[3]["id"], "rewards": {"taste": 3}, "overall": 1},
        {"id": made[2]["id"], "preference": WEIGHTS, "arm": made[2]["arm"]},
    ]
    found = answer(service.ask("POST", "/v1/feedback/batch", {"feedback": feedback}), 200)["results"]
    assert [one["status"] for one in found] == ["recorded", "recorded", "unknown", "duplicate", "conflict", "recorded"]
    assert [one["id"] for one in found] == [one["id"] for one in feedback]
    assert all(list(one) == ["id", "status", "learned", "not_learned", "detail", "code"] for one in found)
    assert found[3] == found[0] | {"status": "duplicate", "code": "duplicate"}
    assert found[1]["not_learned"] == ["arm: price", "arm: overall", "preference"]
    assert [one["detail"] is None for one in found] == [True, True, False, True, False, True]
    again = answer(service.ask("POST", "/v1/feedback/batch", {"feedback": feedback}), 200)["results"]
    assert [one["status"] for one in again] == [
        "duplicate",
        "duplicate",
        "unknown",
        "duplicate",
        "conflict",
        "duplicate",
    ]
    assert len([1 for _, event in service.journal() if isinstance(event, FeedbackGiven)]) == 4


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"overall": 7}, "overall"),
        ({"rewards": {"taste": 6}}, "rewards.taste"),
        ({"rewards": {"colour": 1}}, "rewards"),
        ({"preference": {"taste": 1}}, "preference"),
        ({"overall": "good"}, "overall"),
        ({"overall": 1, "arm": ""}, "arm"),
        ({}, "rewards"),
    ],
)
def test_the_place_of_a_wrong_feedback_is_named(service: Service, wrong: dict[str, object], field: str) -> None:
    made = [service.decide()["id"] for _ in range(2)]
    before = service.journal()
    feedback = [{"id": made[0], "overall": 1}, {"id": made[1], **wrong}]
    response = service.ask("POST", "/v1/feedback/batch", {"feedback": feedback})
    assert response.status_code == 422
    check_problem(response, f"feedback[1].{field}")
    assert service.journal() == before


def test_batches_have_a_size(serve: Serve) -> None:
    service = serve(max_batch=3)
    for count, status in ((0, 422), (3, 200), (4, 422)):
        response = service.ask("POST", "/v1/decisions/batch", {"requests": [{"user": "a"}] * count})
        assert response.status_code == status
        if status == 422:
            check_problem(response, "requests")
        response = service.ask("POST", "/v1/feedback/batch", {"feedback": [{"id": "x", "overall": 1}] * count})
        assert response.status_code == status
        if status == 422:
            check_problem(response, "feedback")


# Reading them again


def test_a_decision_is_explained(service: Service) -> None:
    service.feedback(service.decide(arms=["A"])["id"], rewards=SCORES, overall=0.5)
    made = service.decide()
    found = service.get(f"/v1/decisions/{made['id']}")
    assert {name: found[name] for name in made} == made
    assert found["feedback"] is None
    explanation = found["explanation"]
    assert list(explanation) == [
        "decision",
        "policy",
        "preference",
        "chosen",
        "without_exploration",
        "sentence",
        "scores",
        "explored",
    ]
    assert explanation["chosen"]["arm"] == made["arm"]
    assert explanation["chosen"]["reward_bonus"] > 0.0
    assert explanation["explored"] is (made["arm"] != "A")
    assert explanation["without_exploration"]["arm"] == "A"
    assert set(explanation["preference"]) == set(explanation["chosen"]["values"]) == {"price", "taste"}
    service.feedback(made["id"], rewards={"taste": 4}, overall=0.25)
    given = service.get(f"/v1/decisions/{made['id']}")["feedback"]
    assert given.pop("at") >= found["at"]
    assert given == {"arm": made["arm"], "rewards": {"taste": 4.0}, "overall": 0.25, "preference": None}


def test_decisions_and_feedback_are_durable(serve: Serve, tmp_path: object) -> None:
    """On SQLite, through the writer's thread: the same service, and the same answers after a restart."""
    path = f"{tmp_path}/journal.db"
    first = serve(engine_of(store=path))
    made = first.decide(key="order 17")
    first.feedback(made["id"], rewards=SCORES, overall=0.5)
    first.close()
    service = serve(engine_of(store=path, objectives=OBJECTIVES))
    assert service.decide(key="order 17") == made
    assert service.feedback(made["id"], rewards=SCORES, overall=0.5)["status"] == "duplicate"
    service.feedback(made["id"], 409, rewards=SCORES | {"taste": 1.0})
    assert service.get("/v1/statistics")["complete_feedbacks"] == 1


def test_feedback_in_parts_and_scores_known_beforehand(service: Service) -> None:
    made = service.decide(arms={"A": {"price": 120}, "B": {"price": 480}, "C": None}, k=2)
    arm, second = made["arms"]
    told = service.get(f"/v1/decisions/{made['id']}")
    known = [] if arm == "C" else ["price"]
    assert told["awaited"] == [name for name in ("price", "taste", "overall") if name not in known]
    assert service.feedback(made["id"], rewards={"taste": 4})["learned"] == [f"arm: {one}" for one in [*known, "taste"]]
    assert service.feedback(made["id"], overall=0.5)["status"] == "recorded"
    assert service.feedback(made["id"], rewards={"taste": 4.0}, overall=0.5)["status"] == "duplicate"
    assert "taste of" in service.feedback(made["id"], 409, rewards={"taste": 3})["detail"]
    service.feedback(made["id"], rewards={"taste": 1}, arm=second)
    told = service.get(f"/v1/decisions/{made['id']}")
    assert told["feedback"]["rewards"]["taste"] == 4.0
    assert [one["arm"] for one in told["others"]] == [second]
    before = service.journal()
    problem = service.decide(status=422, arms={"A": {"price": 501}})
    assert problem["field"] == "arms.A.price"
    assert service.decide(status=422, arms={"A": [1]})["field"] == "arms"
    batch = {"requests": [{"user": "ann"}, {"user": "bob", "arms": {"A": {"taste": 9}}}]}
    assert answer(service.ask("POST", "/v1/decisions/batch", batch), 422)["field"] == "requests[1].arms.A.taste"
    assert service.journal() == before
