"""What whoever looks after a service should know: each alert where it should be, and none where all is well."""

from __future__ import annotations

import numpy as np

from pamo.store import ArmChanged, TasteChanged
from tests.service.calling import Clock, Serve, Service, engine_of


def codes(service: Service) -> list[str]:
    """Return what there is to know, as the API and as Prometheus have it."""
    found = [one["code"] for one in service.get("/v1/alerts")["alerts"]]
    text = service.ask("GET", "/metrics").text
    for code in set(found) - {"store_trouble"}:
        assert f'pamo_alerts{{code="{code}"}} {found.count(code)}.0' in text
    return found


def rounds(service: Service, count: int, **scores: float) -> None:
    for n in range(count):
        made = service.decide(f"u{n % 5}")
        if scores:
            service.feedback(made["id"], rewards=scores, overall=0.5)


def test_where_all_is_well_there_is_nothing(serve: Serve) -> None:
    service = serve()
    assert codes(service) == []
    rounds(service, 30, price=100, taste=4)
    assert codes(service) == []


def test_no_arms(serve: Serve) -> None:
    service = serve(engine_of(""))
    assert codes(service) == ["no_arms"]
    service.engine.add_arm("A")
    assert codes(service) == []


def test_an_objective_that_nobody_reports(serve: Serve) -> None:
    service = serve()
    rounds(service, 19, taste=4)
    assert codes(service) == []  # too early to tell
    rounds(service, 1, taste=4)
    (alert,) = service.get("/v1/alerts")["alerts"]
    assert (alert["code"], alert["about"], alert["level"]) == ("objective_not_reported", "price", "look")
    assert alert["sentence"].startswith("price is hardly ever reported, in 0 of 20 feedbacks")
    rounds(service, 2, price=100, taste=4)
    assert codes(service) == []


def test_feedback_that_dries_up(serve: Serve) -> None:
    clock = Clock(1_000_000.0)
    service = serve(engine_of(clock=clock))
    history = service.app.state.api.history
    rounds(service, 60, price=100, taste=4)
    clock.at += 4 * 3600.0
    rounds(service, 40, price=100, taste=4)
    history.advance()
    assert codes(service) == []
    clock.at += 3 * 3600.0
    rounds(service, 40)
    history.advance()
    (alert,) = service.get("/v1/alerts")["alerts"]
    assert alert["code"] == "feedback_dries_up"
    assert "0 came for the 40 decisions of the last two hours" in alert["sentence"]
    clock.at += 3 * 86_400.0
    rounds(service, 40)  # there is nothing any more to compare it with
    history.advance()
    assert codes(service) == []


def test_what_has_changed_is_told_for_a_day_and_after_a_restart(serve: Serve) -> None:
    clock, draw = Clock(1_000_000.0), np.random.default_rng(1)
    engine = engine_of("AB", clock=clock)
    service = serve(engine)
    for n in range(300):
        taste = 1.5 if n >= 150 else 4.5
        score = {"price": 250 + 10 * draw.standard_normal(), "taste": taste + 0.1 * draw.standard_normal()}
        engine.feedback(engine.decide("ann"), score, 0.5)
    assert any(isinstance(event, ArmChanged) for _, event in engine.store.events())
    found = service.get("/v1/alerts")["alerts"]
    assert {one["code"] for one in found} == {"arm_changed"}
    assert all(one["sentence"].endswith("has changed within a day: taste.") for one in found)
    watch = engine.core.decider.watch
    made = engine.decide("ann")
    watch.replay([TasteChanged(made.id, f"u{n}", clock.at, ()) for n in range(2)])
    assert "tastes_change" not in codes(service)
    watch.replay([TasteChanged(made.id, "u2", clock.at, ())])
    assert "tastes_change" in codes(service)
    service.ask("DELETE", "/v1/users/u2")
    assert "tastes_change" not in codes(service)
    again = serve(engine_of("", store=engine.store, clock=clock, objectives=None))
    assert "arm_changed" in codes(again)
    clock.at += 86_401.0
    assert codes(again) == []


def test_a_store_in_trouble(serve: Serve) -> None:
    service = serve()
    service.engine.store.close()
    assert codes(service) == ["store_trouble"]
