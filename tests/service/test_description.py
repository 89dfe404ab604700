"""What the service says of itself: its description, the page for it, and what Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from prometheus_client.parser import text_string_to_metric_families

from pamo.service.operations import OPERATIONS
from tests.browsing import chromium, watch
from tests.service.calling import KEYS, SCORES, SECRETS, WEIGHTS, Serve, Service, engine_of
from tests.service.serving import Server


def test_the_description_is_valid_openapi(serve: Serve) -> None:
    for settings in ({}, {"keys": KEYS}):
        named = {"authorization": f"Bearer {SECRETS['boss']}"}
        document = serve(**settings).ask("GET", "/openapi.json", headers=named).json()
        schema = schemathesis.openapi.from_dict(document)
        schema.validate()  # against the specification's own schema of a description
        assert document["openapi"].startswith("3.1")
        for one in document["components"]["schemas"].values():
            assert jsonschema_rs.meta.is_valid({"$schema": "https://json-schema.org/draft/2020-12/schema", **one})


def test_a_wrong_description_would_be_seen(service: Service) -> None:
    document = service.get("/openapi.json")
    del document["paths"]["/v1/arms/{id}"]["get"]["responses"]["200"]["description"]
    with pytest.raises(Exception, match="description"):
        schemathesis.openapi.from_dict(document).validate()


def test_every_operation_is_described_once(service: Service) -> None:
    document = service.get("/openapi.json")
    described = {
        (method.upper(), path): one for path, methods in document["paths"].items() for method, one in methods.items()
    }
    assert set(described) == {(one.method, one.path) for one in OPERATIONS}
    names = [one["operationId"] for one in described.values()]
    assert len(names) == len(set(names))
    for one in OPERATIONS:
        about = described[one.method, one.path]
        assert str(one.status) in about["responses"]
        assert about["summary"]
        assert ("requestBody" in about) == (one.body is not None)
        for status, answer in about["responses"].items():
            assert answer["description"]
            if int(status) >= 400:
                assert list(answer["content"]) == ["application/problem+json"]


def test_what_it_refers_to_is_there(service: Service) -> None:
    document = service.get("/openapi.json")

    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            for part in value.values():
                yield from references(part)
        elif isinstance(value, list):
            for part in value:
                yield from references(part)

    found = set(references(document))
    assert found
    assert found <= {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}


def test_the_description_knows_the_objectives_and_the_limits(serve: Serve) -> None:
    schemas = serve(max_batch=7).get("/openapi.json")["components"]["schemas"]
    rewards = schemas["FeedbackBody"]["properties"]["rewards"]["anyOf"][0]
    assert rewards["properties"]["price"] == {"type": "number", "minimum": 0.0, "maximum": 500.0}
    assert rewards["additionalProperties"] is False
    assert schemas["DecisionBatch"]["properties"]["requests"]["maxItems"] == 7


@pytest.mark.parametrize(("policy", "takes", "needs"), [("prucb-hp", False, False), ("prucb-kp", True, True)])
def test_the_description_knows_whether_the_policy_reads_a_preference(
    serve: Serve, policy: str, takes: bool, needs: bool
) -> None:
    service = serve(engine_of(policy=policy))
    schemas = service.get("/openapi.json")["components"]["schemas"]
    for body in (schemas["DecisionBody"], schemas["BatchDecision"]):
        assert ("preference" in body["required"]) is needs
        assert (body["properties"]["preference"].get("type") == "object") is takes
    service.decide(status=422 if needs else 201)
    service.decide(status=201 if takes else 422, preference=WEIGHTS)


def test_the_description_knows_the_keys(serve: Serve) -> None:
    service = serve(engine_of(objectives=["zing: 3..4"]), keys=KEYS)
    assert "zing" not in service.ask("GET", "/docs").text  # the objectives' names are for those who have a key
    assert "zing" not in service.ask("GET", "/openapi.json").text
    answer = service.ask("GET", "/openapi.json", headers={"authorization": f"Bearer {SECRETS['decider']}"})
    assert "zing" in answer.text
    document = answer.json()
    assert document["components"]["securitySchemes"] == {"key": {"type": "http", "scheme": "bearer"}}
    for one in OPERATIONS:
        about = document["paths"][one.path][one.method.lower()]
        assert ("security" in about) == (one.roles is not None)
        assert ("401" in about["responses"]) == (one.roles is not None)
        for role in one.roles or ():
            assert role in about["description"]


# Prometheus


def read(service: Service, **headers: str) -> dict[str, float]:
    """Return every number, by its name and labels, once Prometheus' own parser has read them."""
    response = service.ask("GET", "/metrics", headers=headers)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = {}
    for family in text_string_to_metric_families(response.text):
        assert family.documentation
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def test_what_is_counted_is_right(service: Service) -> None:
    made = [service.decide(f"u{n}") for n in range(3)]
    service.ask("POST", "/v1/decisions/batch", {"requests": [{"user": "a"}, {"user": "b"}]})
    service.feedback(made[0]["id"], rewards=SCORES, overall=0.5)
    service.feedback(made[0]["id"], rewards=SCORES, overall=0.5)
    service.feedback(made[0]["id"], 409, rewards=SCORES | {"taste": 1.0})
    service.feedback("nothing", 404, rewards=SCORES)
    service.feedback(made[1]["id"], 422, rewards={"taste": 99})
    service.ask(
        "POST", "/v1/feedback/batch", {"feedback": [{"id": made[1]["id"], "overall": 1}, {"id": "x", "overall": 1}]}
    )
    wrong = {"feedback": [{"id": made[2]["id"], "overall": 1}, {"id": made[2]["id"]}]}
    assert service.ask("POST", "/v1/feedback/batch", wrong).status_code == 422
    service.ask("DELETE", "/v1/arms/C")
    found = read(service)
    assert found["pamo_decisions_total"] == 5
    assert found["pamo_http_requests_total{operation=decide,status=201}"] == 3
    assert found["pamo_http_requests_total{operation=decideMany,status=200}"] == 1
    assert found["pamo_http_requests_total{operation=giveFeedback,status=200}"] == 2
    assert found["pamo_http_requests_total{operation=giveFeedback,status=409}"] == 1
    assert found["pamo_http_requests_total{operation=giveFeedback,status=404}"] == 1
    assert found["pamo_http_requests_total{operation=giveFeedback,status=422}"] == 1
    assert found["pamo_http_request_seconds_count{operation=giveFeedback}"] == 5
    assert found["pamo_http_request_seconds_bucket{le=+Inf,operation=decide}"] == 3
    by_status = {name: value for name, value in found.items() if name.startswith("pamo_feedback_total")}
    assert by_status == {
        "pamo_feedback_total{status=recorded}": 2,
        "pamo_feedback_total{status=duplicate}": 1,
        "pamo_feedback_total{status=conflict}": 1,
        "pamo_feedback_total{status=unknown}": 2,
        "pamo_feedback_total{status=invalid}": 3,
    }
    assert found["pamo_arms"] == 2
    assert found["pamo_retired_arms"] == 1
    assert found["pamo_users"] == 2
    assert found["pamo_pending_decisions"] == 3
    assert found["pamo_complete_feedbacks"] == 1
    assert found["pamo_ready"] == 1
    assert found["pamo_http_in_flight"] == 1  # this one
    assert [name for name in found if name.startswith("pamo_info{version=")]


def test_two_services_count_apart(serve: Serve) -> None:
    first, second = serve(), serve()
    first.decide()
    assert read(first)["pamo_decisions_total"] == 1
    assert read(second)["pamo_decisions_total"] == 0


def test_strangers_are_counted_but_not_told(serve: Serve) -> None:
    service = serve(keys=KEYS)
    assert service.ask("GET", "/metrics").status_code == 401
    found = read(service, authorization=f"Bearer {SECRETS['listener']}")
    assert found["pamo_http_requests_total{operation=getMetrics,status=401}"] == 1


def test_the_numbers_are_there_though_the_store_is_not(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """What watches the service needs them most when something is wrong."""
    from pamo.errors import StoreError

    service = serve()

    def unreachable() -> Any:
        raise StoreError("the database cannot be reached")

    monkeypatch.setattr(service.engine, "statistics", unreachable)
    monkeypatch.setattr(service.engine.store, "trouble", lambda: "the database cannot be reached")
    found = read(service)
    assert found["pamo_ready"] == 0
    assert "pamo_arms" not in found


# The page


def test_the_page_needs_nothing_else(service: Service) -> None:
    response = service.ask("GET", "/docs")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert "<script" not in response.text
    for one in OPERATIONS:
        assert f"{one.method} {one.path}" in response.text


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("--objectives", "price: 0..500, lower is better, <b>taste & co</b>: 1..5") as one:
        yield one


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_the_page_opens_in_a_browser(server: Server, scheme: Any, width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe

    problems: list[str] = []
    with chromium() as browser:
        page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
        watch(page, server.url, problems)
        page.goto(f"{server.url}/docs")
        parts = page.locator("details")
        assert parts.count() == len(OPERATIONS)
        for place in range(parts.count()):
            parts.nth(place).locator("summary").click()
        assert page.locator("h3:visible").count() == page.locator("h3").count() > len(OPERATIONS)
        assert "<b>taste & co</b>" in page.locator("pre").first.inner_text()
        assert page.locator("b").count() == 0
        # Long lines scroll in boxes of their own; the page itself does not.
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == ("rgb(20, 24, 30)" if scheme == "dark" else "rgb(255, 255, 255)")
        assert problems == []
        page.get_by_role("link", name="openapi.json").click()
        assert page.url == f"{server.url}/openapi.json"
        # The page's own policy forbids scripts, and what looks for barriers is one.
        opened = browser.new_context(color_scheme=scheme, bypass_csp=True).new_page()
        opened.goto(f"{server.url}/docs")
        opened.locator("summary").first.click()
        found: Any = Axe().run(opened)
        assert found.violations_count == 0, found.generate_report()
