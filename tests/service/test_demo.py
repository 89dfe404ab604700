"""The demonstration: its world, its command, and its page in a real browser."""

from __future__ import annotations

import signal
import subprocess
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.servers import served
from campaigns.demo_visitor import Tally, chance_of_first, demonstration, run
from pamo import Engine
from pamo.cli import demo, main
from pamo.service import create_app
from pamo.service.demo.world import RESTAURANTS, SETUP
from tests.browsing import watch
from tests.service.trying import HOSTILE, TITLES, open_try, rated, sent, serious, somebody

# The world and its visitors


def test_no_restaurant_is_good_at_everything() -> None:
    table = np.array([[one.normalised(r.means[one.name]) for one in SETUP.objectives] for r in RESTAURANTS])
    assert len({one.id for one in RESTAURANTS}) == len({one.name for one in RESTAURANTS}) == 24
    assert ((table > 0) & (table < 1)).all()
    assert table.sum(axis=1).std() < 0.2
    together = np.corrcoef(table.T)[np.triu_indices(len(SETUP.objectives), 1)]
    assert np.abs(together).max() < 0.3
    assert all(best > 0.9 for best in table.max(axis=0))


@pytest.mark.parametrize("seed", range(5))
def test_a_visitor_is_told_what_comes_first(seed: int) -> None:
    tally = Tally()
    run(tally, seed)
    assert (tally.runs, tally.right, tally.wrong) == (1, 1, [])
    assert tally.late > tally.early - 0.05


def test_a_visitor_who_likes_nothing_in_particular_is_not_told_that_it_is_sure() -> None:
    told = {name: {"weight": 0.2, "low": 0.1, "high": 0.3} for name in TITLES}
    assert chance_of_first(told, "price") == pytest.approx(0.2, abs=1e-3)


def test_only_the_demonstration_has_the_world_and_its_page() -> None:
    with Engine(["taste"]) as engine, served(create_app(engine)) as address:
        for path in ("/try", "/v1/demo/world"):
            assert httpx.get(address + path, trust_env=False).status_code == 404
    with demonstration(1) as address, httpx.Client(base_url=address, trust_env=False) as api:
        page = api.get("/try")
        assert page.status_code == 200
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert "/v1/demo/world" in api.get("/openapi.json").json()["paths"]
        assert api.delete("/v1/arms/spoon").status_code == 200
        assert "spoon" not in [one["id"] for one in api.get("/v1/demo/world").json()["restaurants"]]


# The command


@contextmanager
def started(*options: str) -> Iterator[str]:
    command = [sys.executable, "-m", "pamo", "demo", "--no-browser", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
        assert first.startswith("Try it at http://127.0.0.1:"), first
        assert process.stdout.readline().startswith("Ctrl+C ends it; what is learned is kept in ")
        yield first.split()[-1].removesuffix("/try")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        said = errors.splitlines()  # that it compiles, or serves uncompiled code, where it does, and no more
        assert (
            process.returncode,
            [line for line in said if not line.startswith(("pamo compiles", "pamo serves"))],
        ) == (0, []), errors
    finally:
        process.kill()
        process.communicate()


def test_the_command_serves_and_goes_on_from_its_store(tmp_path: Path) -> None:
    counts = []
    for _ in range(2):
        with (
            started("--store", str(tmp_path / "demo.db")) as address,
            httpx.Client(base_url=address, trust_env=False) as api,
        ):
            assert "Try it on yourself" in api.get("/try").text
            counts.append(api.get("/v1/statistics").json()["complete_feedbacks"])
            made = api.post("/v1/decisions", json={"user": "ann"}).json()
            scores = dict(zip(TITLES, (20, 4, 4, 10, 4), strict=True))
            assert (
                api.post(f"/v1/decisions/{made['id']}/feedback", json={"rewards": scores, "overall": 7}).status_code
                == 200
            )
    assert counts == [320, 321]


def test_the_command_refuses_what_is_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--no-browser", "--store", "postgresql://db/x"]) == 2
    assert "expected --store to be the path of a file" in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "opened"), [(webbrowser.BackgroundBrowser, True), (webbrowser.GenericBrowser, False)])
def test_a_browser_in_the_terminal_is_left_alone(kind: Any, opened: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(kind, "open", lambda self, url: asked.append(url))
    monkeypatch.setattr(webbrowser, "get", lambda: kind("true"))
    demo._open("http://127.0.0.1:1/try")
    assert asked == (["http://127.0.0.1:1/try"] if opened else [])


# The page


@pytest.fixture
def address() -> Iterator[str]:
    with demonstration(1) as found:
        yield found


Open = Callable[..., Page]


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Open]:
    """Opens the page, and sees to it that nothing goes wrong in it and nothing leaves the machine."""
    problems: list[str] = []
    pages: list[Page] = []

    def opened(scheme: Any = "light", width: int = 1280, height: int = 900) -> Page:
        page = browser.new_page(
            color_scheme=scheme, viewport={"width": width, "height": height}, reduced_motion="reduce"
        )
        watch(page, f"{address}/", problems)
        open_try(page, address)
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.close()
    assert problems == []


@pytest.mark.parametrize(("scheme", "width"), [("dark", 1280), ("light", 360)])
def test_ten_ratings_and_it_tells(visit: Open, address: str, scheme: str, width: int) -> None:
    page = visit(scheme, width)
    asked = sent(page)
    first = {1280: "price", 360: "taste"}[width]
    sentence = page.get_by_role("status")
    expect(sentence).to_have_text("Rate ten restaurants, and it tells you what you care about.")
    expect(page.locator(".person.waiting")).to_have_count(1)
    rated(page, somebody(first), 9)
    expect(sentence).to_have_text("Rate one more, and it tells you what it thinks.")
    rated(page, somebody(first), 1)
    expect(sentence).to_contain_text("After 10 ratings, going by your scores, pamo thinks that you care most about")
    assert sentence.locator("strong").inner_text() == TITLES[first]
    expect(page.get_by_text("Meanwhile the guest of the opposite taste was sent to")).to_be_visible()
    # The guest lives through the same API, and cares about something else.
    users = {body["user"] for method, path, body in asked if path == "/v1/decisions"}
    told = {user: httpx.get(f"{address}/v1/users/{user}/preference", trust_env=False).json() for user in users}
    mine = next(one for user, one in told.items() if user.startswith("visitor "))
    other = max((one for user, one in told.items() if user.startswith("opposite ")), key=lambda one: one["rounds"])
    tops = [max(one["objectives"], key=lambda name: one["objectives"][name]["weight"]) for one in (mine, other)]
    assert (mine["rounds"], other["rounds"], tops[0]) == (10, 10, first)
    assert tops[1] != first
    for place in (0, 1):
        expect(page.locator(".person").nth(place).locator(".recent li")).to_have_count(5)
        expect(page.locator(".person").nth(place).locator("svg .bar")).to_have_count(5)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 19, 25)"
    assert dark == (scheme == "dark")
    page.get_by_text("As a table").first.click()
    expect(page.locator(".person").first.locator("tbody tr")).to_have_count(5)
    page.get_by_text("Why this one?").click()
    expect(page.locator(".why p")).to_contain_text("suit you")
    assert serious(page) == []


def test_by_keyboard_alone(visit: Open) -> None:
    page = visit()
    asked = sent(page)
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('.scores') !== null"):
            break
    expect(page.get_by_label("Price", exact=True)).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").get_by_text("is missing")).to_be_visible()
    rated(page, somebody("price"), 10, keyboard=True)
    expect(page.get_by_role("status")).to_contain_text("After 10 ratings")
    feedback = [body for method, path, body in asked if path.endswith("/feedback")]
    assert feedback[0]["rewards"]["price"] == 9  # one step above the least
    assert page.evaluate("document.activeElement.matches('form.visit h2')")
    # Another mode asks first; Escape is no.
    for _ in range(60):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.textContent") == "Up front":
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.get_by_role("button", name="Nothing")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("status")).to_contain_text("After 10 ratings")


def test_the_three_modes(visit: Open, address: str) -> None:
    page = visit()
    asked = sent(page)
    guest = somebody("taste")

    def mine(ending: str) -> list[Any]:
        return [body for _, path, body in asked if path.endswith(ending)]

    rated(page, guest, 3)
    expect(page.locator(".person.waiting")).to_have_count(0)
    assert all("preference" not in body for body in (*mine("/decisions"), *mine("/feedback")))
    first = next(body["user"] for body in mine("/decisions") if body["user"].startswith("visitor "))

    page.get_by_role("button", name="Up front").click()
    page.get_by_role("dialog").get_by_role("button", name="Start over").click()
    expect(page.locator("form.visit")).to_be_hidden()
    assert httpx.get(f"{address}/v1/users/{first}", trust_env=False).json()["history"] == []  # forgotten
    asked.clear()
    page.locator(".saying").get_by_label("Good food").fill("10")
    page.locator(".saying").get_by_label("Low prices").fill("0")
    assert serious(page) == []
    page.get_by_role("button", name="Show me a restaurant").click()
    expect(page.locator("form.visit")).to_be_visible()
    rated(page, guest, 10)
    said = {"price": 0, "taste": 10, "service": 5, "waiting": 5, "atmosphere": 5}
    decisions = [body for body in mine("/decisions") if body["user"].startswith("visitor ")]
    assert [body["preference"] for body in decisions] == [said] * 11
    assert all("preference" not in body for body in mine("/feedback"))
    expect(page.get_by_role("status")).to_contain_text("That is what you said, too.")
    expect(page.locator(".person").nth(1)).to_contain_text("Simulated: cares most about low prices")

    page.get_by_role("button", name="Afterwards").click()
    page.get_by_role("dialog").get_by_role("button", name="Start over").click()
    expect(page.locator(".progress p")).to_have_text("0 of 10 ratings")
    asked.clear()
    page.locator("form.visit").get_by_label("Good service").fill("9")
    rated(page, guest, 10)
    stated = {body["preference"]["service"] for body in mine("/feedback") if body["preference"]["taste"] == 5}
    assert stated == {9}
    assert all("preference" not in body for body in mine("/decisions"))
    expect(page.get_by_role("status")).to_contain_text("going by what you said, you care most about good service")
    assert serious(page) == []

    page.get_by_role("button", name="Start over").click()
    expect(page.locator(".progress p")).to_have_text("0 of 10 ratings")


def test_a_service_that_fails_for_a_while_loses_nothing(browser: Browser, address: str) -> None:
    page = browser.new_page()
    open_try(page, address)
    asked = sent(page)
    failing = True
    page.route("**/v1/decisions", lambda route: route.abort() if failing else route.continue_())
    page.locator(".mark").nth(6).click()
    page.get_by_role("button", name="Rate it").click()
    expect(page.locator("#trouble")).to_contain_text("The service cannot be reached at the moment.")
    failing = False
    page.get_by_role("button", name="Rate it").click()
    expect(page.locator(".progress p")).to_have_text("1 of 10 ratings")
    expect(page.locator("#trouble")).to_be_empty()
    assert len([path for _, path, _ in asked if path.endswith("/feedback")]) == 1
    page.close()


def test_the_guest_keeps_up_with_a_quick_visitor(visit: Open, address: str) -> None:
    page = visit()
    asked = sent(page)
    held: list[Any] = []
    holding = True

    def hold(route: Any) -> None:
        if holding and "opposite" in route.request.post_data:
            held.append(route)
        else:
            route.continue_()

    page.route("**/v1/decisions", hold)
    rated(page, somebody("price"), 9)
    expect(page.locator(".person.waiting")).to_have_count(1)
    holding = False
    for route in held:
        route.continue_()
    rated(page, somebody("price"), 1)
    expect(page.get_by_text("Meanwhile the guest of the opposite taste was sent to")).to_be_visible()
    decided = [body["user"] for _, path, body in asked if path == "/v1/decisions"]
    last = next(user for user in reversed(decided) if user.startswith("opposite "))
    assert decided.count(last) == 10
    assert httpx.get(f"{address}/v1/users/{last}/preference", trust_env=False).json()["rounds"] == 10


def test_hostile_names_are_text(visit: Open, address: str) -> None:
    with httpx.Client(base_url=address, trust_env=False) as api:
        for place, one in enumerate(RESTAURANTS):
            api.put(f"/v1/arms/{one.id}", json={"name": HOSTILE[place % 3]}).raise_for_status()
        try:
            for width in (1280, 360):
                page = visit(width=width)
                rated(page, somebody("price"), 5)
                expect(page.locator(".person").nth(1).locator(".recent li")).to_have_count(5)
                shown = page.locator(".recent bdi").all_inner_texts()
                assert len(shown) == 10
                assert set(shown) <= set(HOSTILE)
                assert page.locator("form.visit h2").inner_text() in HOSTILE
                assert page.locator("main script, main img").count() == 0
                assert page.title() == "Try it on yourself · pamo"
                assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
                assert page.locator("form.visit h2").bounding_box()["height"] < 130  # type: ignore[index]
                assert serious(page) == []
        finally:
            for one in RESTAURANTS:
                api.put(f"/v1/arms/{one.id}", json={"name": one.name}).raise_for_status()


def test_the_words_say_how_sure_it_is(visit: Open) -> None:
    page = visit()
    module = page.evaluate(
        "performance.getEntriesByType('resource').map(one => one.name).find(one => one.endsWith('/try-words.js'))"
    )
    random = Random(4)

    def tell(weights: list[float], width: float, mode: str = "never", said: Any = None) -> Any:
        answer = {
            "rounds": 12,
            "objectives": {
                name: {"weight": weight, "low": weight - width, "high": weight + width}
                for name, weight in zip(TITLES, weights, strict=True)
            },
        }
        told = page.evaluate(
            "async ([module, given]) => (await import(module)).verdict(given)",
            [module, {"titles": TITLES, "answer": answer, "mode": mode, "said": said}],
        )
        expected = chance_of_first(answer["objectives"], told["first"])  # type: ignore[arg-type]
        assert told["chance"] == pytest.approx(expected, abs=1e-5)
        return "".join(part if isinstance(part, str) else part[0] for part in told["parts"])

    for _ in range(20):
        tell([random.random() for _ in TITLES], random.uniform(0.01, 0.5))
    sure = tell([0.1, 0.5, 0.2, 0.2, 0.02], 0.05)
    assert sure == (
        "After 12 ratings, going by your scores, pamo thinks that you care most about good food (about 49 of 100), "
        "then about good service (about 20 of 100). Nice atmosphere hardly counts for you. It is very sure of the "
        "first: 99 in 100."
    )
    assert "fairly sure of the first" in tell([0.1, 0.5, 0.2, 0.2, 0.02], 0.26)
    assert "not so sure of the first" in tell([0.1, 0.5, 0.2, 0.2, 0.02], 0.39)
    unsure = tell([0.3, 0.31, 0.2, 0.2, -0.1], 0.2)
    assert unsure.startswith(
        "After 12 ratings pamo is not sure yet. Going by your scores you care most about good food ("
    )
    assert "but it may well be low prices." in unsure
    said = dict.fromkeys(TITLES, 5)
    assert tell([0.1, 0.5, 0.2, 0.2, 0.1], 0.05, "before", said).endswith("You yourself named no favourite.")
    assert tell([0.1, 0.5, 0.2, 0.2, 0.1], 0.05, "before", {**said, "price": 8}).endswith(
        "You yourself said low prices."
    )
    assert (
        tell([1, 1, 1, 1, 1], 0.05, "afterwards") == "After 12 ratings, going by what you said, you have no favourite."
    )
