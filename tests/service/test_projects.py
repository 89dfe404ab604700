"""Several projects in one server: nothing of one is another's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pamo import Client
from pamo.errors import InputError
from pamo.service.keys import Key, digest_of
from pamo.service.settings import Settings, load_settings
from pamo.service.settings_file import as_file, shown
from tests.service.calling import Service, answer, check_problem, engine_of
from tests.service.serving import Server

FILE = """
[engine]
objectives = ["price", "taste"]
store = "memory:"
arms = ["A"]

[limits]
timeout_seconds = 5
max_batch = 7

[projects.films]
objectives = ["story: 1..5", "acting"]
store = "memory:"
arms = ["X=Xanadu", "Y"]

[projects.rooms]
objectives = ["clean: 1..5"]
rate = 1
burst = 2
max_batch = 3

[[projects.rooms.keys]]
name = "shop"
roles = ["admin"]
sha256 = "%s"
""" % digest_of("pamo_rooms")  # noqa: UP031  # braces would have to be doubled


@pytest.fixture
def service() -> Iterator[Service]:
    """Return a service with three projects, of which one wants a key."""
    engines = {"films": engine_of("XY", objectives=["story: 1..5", "acting"]), "rooms": engine_of("R")}
    keys = (Key("shop", ["admin"], digest_of("pamo_rooms")),)
    rooms = Settings(rate=1, burst=2, keys=keys, store="rooms.db")
    made = Service(engine_of(), Settings(projects={"films": Settings(store="films.db"), "rooms": rooms}), engines)
    yield made
    made.close()


def test_a_file_may_have_projects(tmp_path: Path) -> None:
    (tmp_path / "shop.toml").write_text(FILE, encoding="utf-8")
    settings = load_settings({"port": "0"}, {}, tmp_path / "shop.toml")
    films, rooms = settings.projects["films"], settings.projects["rooms"]
    assert (films.arms, films.store, rooms.store) == (("X=Xanadu", "Y"), "memory:", "rooms.db")
    assert (films.timeout_seconds, films.max_batch, rooms.max_batch, rooms.rate) == (5.0, 7, 3, 1.0)
    assert [key.name for key in rooms.keys] == ["shop"]
    assert films.keys == settings.keys == ()
    (tmp_path / "again.toml").write_text(as_file(settings), encoding="utf-8")
    assert load_settings({}, {}, tmp_path / "again.toml") == settings
    assert digest_of("pamo_rooms") not in shown(settings)
    assert '[projects.rooms]\nstore = "rooms.db"' in shown(settings)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("[projects]\nfilms = 3", r"expected \[projects.films\] to be a section, got 3"),
        ("projects = 3", r"expected projects as sections \[projects.NAME\], got 3"),
        ("[projects.films]\nport = 3", r"expected port in \[server\], for all projects"),
        ("[projects.films]\nobjectivs = []", r"unknown setting of \[projects.films\] 'objectivs'"),
        ("[projects.films]\nrate = -1", r"expected rate of \[projects.films\] in .* to be a number"),
        ("[projects.films]\nstore = 'pamo.db'", "a store of its own for the project films, got that of the service"),
        ("[projects.a]\nstore = 'x'\n[projects.b]\nstore = 'x'", "for the project a, got that of the project b"),
        ("[projects.'a/b']", "expected a project's name"),
        ("[projects.films]\noverall = '1..5'", "project films: expected objectives beside overall"),
        (
            f"[server]\nhost = '0.0.0.0'\n[[keys]]\nname='a'\nroles=['admin']\nsha256='{'0' * 64}'\n[projects.films]",
            "project films: expected at least one key",
        ),
    ],
)
def test_what_is_wrong_with_a_project_is_said(tmp_path: Path, lines: str, said: str) -> None:
    (tmp_path / "shop.toml").write_text(lines, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        load_settings({}, {}, tmp_path / "shop.toml")


def test_nothing_of_one_is_anothers(service: Service) -> None:
    made = answer(service.ask("POST", "/v1/projects/films/decisions", {"user": "ann"}), 201)
    assert made["arm"] in ("X", "Y")
    path = f"decisions/{made['id']}/feedback"
    check_problem(service.ask("POST", f"/v1/{path}", {"rewards": {"taste": 4}}))  # it was not decided there
    body = {"rewards": {"story": 4, "acting": 0.5}, "overall": 0.5}
    assert answer(service.ask("POST", f"/projects/films/v1/{path}", body), 200)["status"] == "recorded"
    assert service.get("/v1/statistics")["users"] == 0
    assert service.get("/v1/projects/films/statistics")["users"] == 1
    assert [arm["id"] for arm in service.get("/v1/arms")["arms"]] == ["A", "B", "C"]
    assert service.ask("DELETE", "/v1/projects/films/users/ann").status_code == 204
    assert service.get("/v1/projects/films/statistics")["users"] == 0


def test_keys_and_limits_are_a_projects_own(service: Service) -> None:
    mine = {"authorization": "Bearer pamo_rooms"}
    check_problem(service.ask("GET", "/v1/projects/rooms/arms"))
    assert service.ask("GET", "/v1/projects/rooms/arms").status_code == 401
    statuses = [service.ask("GET", "/v1/projects/rooms/arms", headers=mine).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    assert [service.ask("GET", "/v1/projects/films/arms").status_code for _ in range(3)] == [200, 200, 200]


def test_what_is_not_there(service: Service) -> None:
    for path in ("/v1/projects/none/arms", "/projects/none/", "/projects/none/v1/arms", "/v1/projects/films/nothing"):
        found = service.ask("GET", path)
        check_problem(found)
        assert found.status_code == 404
    for path in ("/v1/projects", "/v1/projects/films", "/projects", "/projects/none"):
        assert service.ask("GET", path).status_code == 404


def test_a_projects_page_and_description_are_below_its_name(service: Service) -> None:
    moved = service.ask("GET", "/projects/films")
    assert (moved.status_code, moved.headers["location"]) == (308, "/projects/films/")
    page = service.ask("GET", "/projects/films/").text
    assert 'data-base="/projects/films"' in page
    assert 'href="/projects/films/users"' in page
    assert 'href="/docs"' not in page
    described = service.get("/projects/films/openapi.json")
    assert described["servers"] == [{"url": "/projects/films"}]
    assert (
        "story" in described["components"]["schemas"]["FeedbackBody"]["properties"]["rewards"]["anyOf"][0]["properties"]
    )


def test_measures_say_whose_they_are(service: Service) -> None:
    service.ask("POST", "/v1/projects/films/decisions", {"user": "ann"})
    text = service.ask("GET", "/metrics").text
    assert 'pamo_http_requests_total{operation="decide",project="films",status="201"} 1.0' in text
    assert 'pamo_arms_total{project="films"} 2.0' in text or 'pamo_arms{project="films"} 2.0' in text
    assert text.count("# TYPE pamo_http_requests_total") == 1
    assert service.ask("GET", "/readyz").status_code == 200
    service.projects["films"].store.close()
    assert service.ask("GET", "/readyz").status_code == 503  # one that cannot record is enough


def test_a_served_file_with_projects(tmp_path: Path) -> None:
    """Over a socket, by a client whose address is the project's."""
    rooms = f'objectives = ["clean: 1..5"]\narms = ["R"]\nstore = "{tmp_path}/rooms.db"'
    (tmp_path / "shop.toml").write_text(FILE.replace('objectives = ["clean: 1..5"]', rooms), encoding="utf-8")
    with Server("--config", str(tmp_path / "shop.toml")) as server:
        with Client(f"{server.url}/projects/films") as client:
            decision = client.decide("ann")
            assert decision.arm in ("X", "Y")
            assert client.feedback(decision, {"story": 5, "acting": 1}, overall=1.0).status == "recorded"
        with Client(f"{server.url}/projects/rooms", key="pamo_rooms", retries=0) as client:
            assert [arm.id for arm in client.arms()] == ["R"]
    assert (tmp_path / "rooms.db").exists()
