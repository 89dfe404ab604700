"""What those who look after the service can ask for: activity, the stream, users, decisions, arms and what if."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest

from pamo import Engine
from pamo.service.activity import Activity
from pamo.service.operations import OPERATIONS
from pamo.service.schemas import encode
from pamo.service.stream import LISTENERS, WAITING
from tests.service.calling import KEYS, OBJECTIVES, SCORES, SECRETS, WEIGHTS, Clock, Serve, Service
from tests.service.serving import Server

VIEWS = ("/v1/activity", "/v1/users", "/v1/leaderboard", "/v1/front", "/v1/users/ann/decisions",
         "/v1/users/ann/preference/history")  # fmt: skip


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(serve: Serve, clock: Clock) -> Service:
    """A service whose time is ours."""
    engine = Engine(OBJECTIVES, overall="overall: 1..5", seed=1, clock=clock)
    for arm in "AB":
        engine.add_arm(arm, f"Inn {arm}")
    return serve(engine)


def stay(service: Service, user: str = "ann", **scores: Any) -> dict[str, Any]:
    made = service.decide(user)
    given: dict[str, Any] = {"rewards": SCORES, "overall": 4.0}
    service.feedback(made["id"], **(given | scores))
    return made


# Activity


def test_activity_counts_by_the_second_and_by_the_day(timed: Service, clock: Clock) -> None:
    for seconds in (0, 0, 1, 59, 4000):
        clock.at = 1_000_000.0 + seconds
        stay(timed)
    timed.decide("bob")
    for resolution, expected in (
        ("second", {1_004_000: (2, 1)}),
        ("minute", {999_960: (3, 3), 1_000_020: (1, 1), 1_003_980: (2, 1)}),
        ("quarter-hour", {999_900: (4, 4), 1_003_500: (2, 1)}),
        ("hour", {997_200: (4, 4), 1_000_800: (2, 1)}),
        ("day", {950_400: (6, 5)}),
    ):
        found = timed.get(f"/v1/activity?resolution={resolution}&limit=600")["buckets"]
        assert {one["at"]: (one["decisions"], one["feedbacks"]) for one in found} == expected
    assert len(timed.get("/v1/activity?resolution=minute&limit=1")["buckets"]) == 1


def test_rates_are_of_the_last_ten_seconds(timed: Service, clock: Clock) -> None:
    clock.at += 100
    for _ in range(20):
        stay(timed)
        clock.at += 0.5
    found = timed.get("/v1/activity")
    assert (found["decisions_per_second"], found["feedbacks_per_second"]) == (2.0, 2.0)
    clock.at += 60
    assert timed.get("/v1/activity")["decisions_per_second"] == 0.0


def test_what_came_back_is_compared_with_what_was_expected(timed: Service, clock: Clock) -> None:
    """With one arm good and one bad: greed is expected to get the good one's, chance the mean of both."""
    rewards = {"A": {"price": 0.0, "taste": 5.0}, "B": {"price": 500.0, "taste": 1.0}}
    for turn in range(60):
        if turn == 30:
            clock.at += 120
            timed.app.state.api.activity.read_arms()
        made = timed.decide("ann")
        overall = 5.0 if made["arm"] == "A" else 1.0
        timed.feedback(made["id"], rewards=rewards[made["arm"]], overall=overall)
    last = timed.get("/v1/activity?limit=2")["buckets"][-1]
    assert (last["decisions"], last["scored"]) == (30, 30)
    assert 0.8 < last["got"] <= 1.0
    assert last["greedy"] == pytest.approx(1.0, abs=0.15)
    assert last["random"] == pytest.approx(last["greedy"] / 2, abs=0.1)
    assert 0 <= last["explored"] < 15


def test_weights_that_were_given_are_proportions_there(timed: Service, clock: Clock) -> None:
    """Tenfold weights are the same preference; without an overall score the weighed rewards stand for it."""
    got = []
    for factor in (1.0, 10.0):
        for _ in range(6):
            made = timed.decide("ann", preference={name: factor * weight for name, weight in WEIGHTS.items()})
            timed.feedback(made["id"], rewards=SCORES)
        clock.at += 60
        timed.app.state.api.activity.read_arms()
        for _ in range(3):
            made = timed.decide("ann", preference={name: factor * weight for name, weight in WEIGHTS.items()})
            timed.feedback(made["id"], rewards=SCORES)
        got.append(timed.get("/v1/activity?limit=1")["buckets"][-1])
        clock.at += 60
    expected = 0.25 * (1 - 120 / 500) + 0.75 * 3 / 4
    for one in got:
        assert (one["got"], one["greedy"], one["random"]) == pytest.approx((expected,) * 3)


def test_feedback_that_cannot_be_compared_is_only_counted(timed: Service) -> None:
    made = timed.decide("ann")
    timed.feedback(made["id"], overall=4.0)  # nothing had been tried
    (bucket,) = timed.get("/v1/activity")["buckets"]
    assert (bucket["feedbacks"], bucket["scored"], bucket["got"]) == (1, 0, None)


def test_a_repeated_feedback_counts_once_and_a_refused_one_not_at_all(timed: Service) -> None:
    made = stay(timed)
    timed.feedback(made["id"], rewards=SCORES, overall=4.0)
    timed.feedback(made["id"], 409, rewards=SCORES, overall=1.0)
    assert timed.get("/v1/activity")["buckets"][0]["feedbacks"] == 1


def test_a_repeated_decision_counts_once_and_is_shown_once(timed: Service) -> None:
    first = timed.decide("ann", key="once")
    assert timed.decide("ann", key="once") == first
    asked = {"requests": [{"user": "ann", "key": "once"}, {"user": "bob", "key": "other"}, {"user": "bob"}]}
    timed.ask("POST", "/v1/decisions/batch", asked)
    timed.ask("POST", "/v1/decisions/batch", asked)
    timed.engine.retire_arm("A")
    timed.engine.retire_arm("B")  # the first decision is found by its key alone: another could not be made now
    assert timed.decide("ann", key="once") == first
    (bucket,) = timed.get("/v1/activity")["buckets"]
    assert bucket["decisions"] == 4
    assert "pamo_decisions_total 4.0" in timed.ask("GET", "/metrics").text
    _, update = parsed(timed.ask("GET", "/v1/stream?seconds=1").content.partition(b"\n\n")[0] + b"\n\n")
    shown = [one["id"] for one in update["shown"]]
    assert len(shown) == len(set(shown)) == 4


def test_batches_count_as_well(timed: Service) -> None:
    made = timed.ask("POST", "/v1/decisions/batch", {"requests": [{"user": "ann"}, {"user": "bob"}]}).json()
    given = [{"id": one["id"], "rewards": SCORES} for one in made["decisions"]]
    timed.ask("POST", "/v1/feedback/batch", {"feedback": given})
    (bucket,) = timed.get("/v1/activity")["buckets"]
    assert (bucket["decisions"], bucket["feedbacks"]) == (2, 2)


def test_what_is_kept_does_not_grow(timed: Service, clock: Clock) -> None:
    activity: Activity = timed.app.state.api.activity
    before = sum(ring.rows.nbytes for ring in activity._rings.values())
    for _ in range(200):
        clock.at += 3600
        timed.decide("ann")
    assert sum(ring.rows.nbytes for ring in activity._rings.values()) == before
    assert len(activity.recent(0, 100)) == 50
    assert len(timed.get("/v1/activity?resolution=hour&limit=1440")["buckets"]) == 200


# The stream


def parsed(event: bytes) -> tuple[str, Any]:
    kind, data, *rest = event.decode().split("\n")
    assert rest == ["", ""]
    return kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def test_the_stream_begins_with_the_last_decisions_and_goes_on_with_new_ones(timed: Service) -> None:
    first = stay(timed)
    stream = timed.app.state.api.stream

    async def listen() -> list[tuple[str, Any]]:
        reader = stream.join()
        events = stream.events(reader, 60)
        found = [parsed(await anext(events))]
        answers = [await timed.client.post("/v1/decisions", json={"user": "bob"}) for _ in range(25)]
        await timed.client.post(f"/v1/decisions/{answers[0].json()['id']}/feedback", json={"overall": 3})
        while sum(update["feedbacks"] for _, update in found) < 1:  # on a busy machine they come in several updates
            found.append(parsed(await anext(events)))
        stream.leave(reader)
        return found

    (kind, before), *rest = timed.run(listen())
    assert kind == "update"
    assert before["decisions"] == 0
    assert [(one["id"], one["user"], one["arm"]) for one in before["shown"]] == [(first["id"], "ann", first["arm"])]
    assert sum(update["decisions"] for _, update in rest) == 25
    assert sum(update["feedbacks"] for _, update in rest) == 1
    assert all(len(update["shown"]) == min(update["decisions"], 10) for _, update in rest)
    assert len(stream) == 0
    assert stream._ticking is None  # nobody listens: nothing is told


def test_a_slow_reader_misses_updates_and_is_told(timed: Service) -> None:
    stream = timed.app.state.api.stream

    async def listen() -> list[tuple[str, Any]]:
        reader = stream.join()
        events = stream.events(reader, 60)
        await anext(events)
        for number in range(WAITING + 5):
            reader.push(b"event: update\ndata: %d\n\n" % number)
        found = [parsed(await anext(events)) for _ in range(WAITING + 1)]
        stream.leave(reader)
        return found

    missed, *updates = timed.run(listen())
    assert missed == ("missed", {"updates": 5})
    assert [number for _, number in updates] == list(range(5, WAITING + 5))


def test_the_stream_ends_when_its_time_is_over_or_the_service_stops(timed: Service) -> None:
    answer = timed.ask("GET", "/v1/stream?seconds=1")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.text.startswith("event: update\ndata: {")
    stream = timed.app.state.api.stream

    async def fill() -> list[Any]:
        readers = [stream.join() for _ in range(LISTENERS)]
        refused = await timed.client.get("/v1/stream")
        for reader in readers[1:]:
            stream.leave(reader)
        events = stream.events(readers[0], 60)
        await anext(events)
        stream.close()
        rest = [event async for event in events]
        stream.leave(readers[0])
        return [refused.status_code, refused.headers["retry-after"], rest]

    assert timed.run(fill()) == [503, "10", []]
    assert timed.ask("GET", "/v1/stream").status_code == 503


def test_head_does_not_listen(timed: Service) -> None:
    assert timed.ask("HEAD", "/v1/stream").status_code == 200
    assert len(timed.app.state.api.stream) == 0


def test_who_was_erased_is_not_shown_again(timed: Service) -> None:
    stay(timed, "ann")
    stay(timed, "bob")
    assert timed.ask("DELETE", "/v1/users/ann").status_code == 204
    assert "ann" not in timed.ask("GET", "/v1/stream?seconds=1").text
    assert [one["user"] for one in timed.get("/v1/users")["users"]] == ["bob"]


def test_who_was_erased_by_another_worker_is_not_shown_again(serve: Serve, postgres_url: Callable[[], str]) -> None:
    url = postgres_url()
    first, second = (serve(Engine(OBJECTIVES, store=url, seed=1)) for _ in range(2))
    first.engine.add_arm("A")
    for user in ("ann", "bob"):
        first.decide(user)
    assert second.ask("DELETE", "/v1/users/ann").status_code == 204
    shown = first.ask("GET", "/v1/stream?seconds=1").text
    assert "ann" not in shown
    assert "bob" in shown


def test_what_waits_for_a_slow_listener_is_not_sent_after_an_erasure(timed: Service) -> None:
    api = timed.app.state.api

    async def listen() -> Any:
        reader = api.stream.join()
        events = api.stream.events(reader, 60)
        await anext(events)
        reader.push(b"event: update\ndata: 1\n\n")
        await timed.client.delete("/v1/users/ann")
        found = parsed(await anext(events))
        api.stream.leave(reader)
        return found

    assert timed.run(listen()) == ("missed", {"updates": 1})


def test_a_listener_does_not_hold_up_a_stop() -> None:
    with (
        Server("--objectives", "price,taste,quiet", "--arms", "A,B", "--stop-seconds", "600") as server,
        server.connect() as listener,
    ):
        listener.sendall(b"GET /v1/stream HTTP/1.1\r\nhost: localhost\r\n\r\n")
        heard = b""
        while b"event: update" not in heard:
            heard += listener.recv(4096)
        assert server.stop(signal.SIGTERM) == 0
        while more := listener.recv(4096):
            heard += more
        assert heard.endswith(b"0\r\n\r\n")  # the answer was ended, and not torn off


# Users, decisions and preferences


def test_users_are_found_and_limited(timed: Service) -> None:
    for user in ("ann", "anna", "bob", "a/b %"):
        stay(timed, user)
    stay(timed, "anna")
    found = timed.get("/v1/users?query=an")
    assert [(one["user"], one["rounds"]) for one in found["users"]] == [("anna", 2), ("ann", 1)]
    assert found["more"] is False
    told = timed.get("/v1/users/anna/preference")["objectives"]
    assert found["users"][0]["weights"] == {name: pytest.approx(one["weight"]) for name, one in told.items()}
    assert timed.get("/v1/users?query=a&limit=2")["more"] is True
    assert [one["user"] for one in timed.get("/v1/users?query=a%2Fb%20%25")["users"]] == ["a/b %"]
    assert timed.get("/v1/users?query=zoe") == {"users": [], "more": False}


def test_decisions_of_a_user_come_in_pages_with_why_and_what_came(timed: Service, clock: Clock) -> None:
    made = []
    for _ in range(5):
        made.append(stay(timed)["id"])
        clock.at += 1
    waiting = timed.decide("ann")["id"]
    page = timed.get("/v1/users/ann/decisions?limit=4")
    assert [one["id"] for one in page["decisions"]] == [waiting, *reversed(made[2:])]
    assert page["decisions"][0]["feedback"] is None
    assert page["decisions"][1] == timed.get(f"/v1/decisions/{made[-1]}")
    assert set(page["names"].values()) <= {"Inn A", "Inn B"}
    rest = timed.get(f"/v1/users/ann/decisions?limit=4&before={page['next']}")
    assert [one["id"] for one in rest["decisions"]] == [made[1], made[0]]
    assert rest["next"] is None
    assert timed.get("/v1/users/nobody/decisions") == {"decisions": [], "names": {}, "next": None}


def test_a_preference_has_a_history(timed: Service, clock: Clock) -> None:
    for turn in range(8):
        stay(timed, overall=2.0 + turn % 3)
        clock.at += 10
    points = timed.get("/v1/users/ann/preference/history")["points"]
    assert [one["rounds"] for one in points] == list(range(1, 9))
    assert points[0]["at"] == 1_000_000.0
    now = timed.get("/v1/users/ann/preference")
    assert points[-1]["objectives"] == now["objectives"]
    assert len(timed.get("/v1/users/ann/preference/history?points=3")["points"]) == 3
    assert timed.get("/v1/users/nobody/preference/history") == {"user": "nobody", "points": []}


# Arms


def test_the_leaderboard_the_front_and_rankings_answer(timed: Service) -> None:
    for turn in range(6):
        made = timed.decide("ann", arms=["AB"[turn % 2]])
        timed.feedback(made["id"], rewards={"price": 100 + 200 * (turn % 2), "taste": 2 + 2 * (turn % 2)}, overall=3)
    board = timed.get("/v1/leaderboard?objective=taste")
    assert board["total"] == 2
    assert [(one["arm"], one["name"], one["pulls"]) for one in board["arms"]] == [("B", "Inn B", 3), ("A", "Inn A", 3)]
    assert [one["arm"] for one in timed.get("/v1/leaderboard?objective=price")["arms"]] == ["A", "B"]
    assert [one["arm"] for one in timed.get("/v1/leaderboard?search=inn%20b")["arms"]] == ["B"]
    assert {one["arm"]: one["on_front"] for one in timed.get("/v1/front")["arms"]} == {"A": True, "B": True}
    assert len(timed.get("/v1/front?x=price&y=taste&limit=1")["arms"]) == 1
    for query in ("x=price", "y=price", "x=price&y=price"):
        front = timed.get(f"/v1/front?{query}")["arms"]
        assert {one["arm"]: one["on_front"] for one in front} == {"A": True, "B": False}
    ranked = timed.ask("POST", "/v1/rankings", {"preference": {"price": 3, "taste": 1}}).json()
    assert [one["arm"] for one in ranked["arms"]] == ["A", "B"]
    assert ranked["arms"][0]["value"]["mean"] == pytest.approx(0.75 * 0.8 + 0.25 * 0.25)
    before = timed.get("/v1/statistics")
    assert before == timed.get("/v1/statistics")  # nothing was decided by any of this


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/activity?resolution=week", "resolution"),
        ("/v1/activity?limit=0", "limit"),
        ("/v1/activity?limit=x", "limit"),
        ("/v1/activity?more=1", "more"),
        ("/v1/stream?seconds=0", "seconds"),
        ("/v1/users?limit=501", "limit"),
        ("/v1/users?query=%00", "query"),
        ("/v1/users/ann/decisions?before=0", "before"),
        ("/v1/users/ann/decisions?limit=101", "limit"),
        ("/v1/users/ann/preference/history?points=1", "points"),
        ("/v1/leaderboard?objective=loud", "objective"),
        ("/v1/leaderboard?limit=0", "limit"),
        ("/v1/leaderboard?sort=best", "sort"),
        ("/v1/leaderboard?offset=-1", "offset"),
        ("/v1/front?x=price&y=loud", "y"),
    ],
)
def test_a_query_that_is_wrong_is_named(timed: Service, path: str, field: str) -> None:
    assert timed.get(path, 422)["field"] == field


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "preference"),
        ({"preference": {"price": 1}}, "preference"),
        ({"preference": {"price": 1, "taste": "much"}}, "preference.taste"),
        ({"preference": WEIGHTS, "more": 1}, "more"),
    ],
)
def test_a_ranking_that_is_wrong_is_named(timed: Service, body: dict[str, Any], field: str) -> None:
    answer = timed.ask("POST", "/v1/rankings", body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_every_view_takes_a_key_where_there_are_keys_and_any_will_do(serve: Serve) -> None:
    service = serve(keys=KEYS)
    stay_headers = {"authorization": f"Bearer {SECRETS['decider']}"}
    for path in (*VIEWS, "/v1/stream?seconds=1"):
        assert service.ask("GET", path).status_code == 401, path
    for secret in SECRETS.values():
        for path in VIEWS:
            assert service.ask("GET", path, headers={"authorization": f"Bearer {secret}"}).status_code == 200, path
    assert service.ask("POST", "/v1/rankings", {"preference": WEIGHTS}).status_code == 401
    assert service.ask("POST", "/v1/rankings", {"preference": WEIGHTS}, headers=stay_headers).status_code == 200


def test_answers_stay_small_however_much_there_is(serve: Serve) -> None:
    engine = Engine(OBJECTIVES, seed=1)
    for number in range(2000):
        engine.add_arm(f"arm-{number:04d}", "x" * 200)
    service = serve(engine)
    made = engine.decide_many([{"user": f"user-{number}"} for number in range(2000)])
    engine.feedback_many([{"decision_id": one.id, "rewards": SCORES, "overall": 0.5} for one in made])
    for path in VIEWS:
        limit = {"/v1/front": "?limit=200"}.get(path, "")
        assert len(encode(service.get(path + limit))) < 150_000, path
    ranked = service.ask("POST", "/v1/rankings", {"preference": WEIGHTS})
    assert len(ranked.json()["arms"]) == 20


def test_the_description_tells_of_every_view(timed: Service) -> None:
    paths = timed.get("/openapi.json")["paths"]
    for one in OPERATIONS:
        assert one.method.lower() in paths[one.path]
    named = {one["name"] for one in paths["/v1/leaderboard"]["get"]["parameters"]}
    assert named == {"objective", "sort", "order", "search", "offset", "limit"}
    assert "text/event-stream; charset=utf-8" in paths["/v1/stream"]["get"]["responses"]["200"]["content"]
