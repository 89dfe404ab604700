"""A scripted visitor of the demonstration's page, for its tests and its screenshots."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import httpx
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from pamo.service.demo.world import MEASURES, Guest

TITLES = {one.name: one.title for one in MEASURES}

HOSTILE = (
    "<script>document.title = 'caught'</script><img src=x onerror=alert(1)>",
    "W" * 256,
    "مطعم \u202eالبحر\u202c الكبير",
)

SEEDED = "let state = 1; Math.random = () => (state = (state * 48271) % 2147483647) / 2147483647;"
"""A script for the page, by which what it draws is the same each time."""


def somebody(first: str) -> Guest:
    """Return a visitor who cares about one thing so much that ten ratings tell."""
    return Guest({name: 0.6 if name == first else 0.1 for name in TITLES}, Random(1), noise=0.02)


def open_try(page: Page, address: str) -> None:
    """Open the page, and wait until it shows a restaurant and a guess."""
    page.add_init_script(SEEDED)
    page.goto(f"{address}/try")
    expect(page.locator("form.visit h2 bdi")).to_be_visible()
    expect(page.locator(".person").first.locator("svg .bar")).to_have_count(5)


def scores_of(page: Page) -> dict[str, float]:
    """Return what the visit is said to have been like."""
    inputs: Any = page.locator(".scores .row input")
    values: list[str] = inputs.evaluate_all("inputs => inputs.map(one => one.value)")
    return {name: float(value) for name, value in zip(TITLES, values, strict=True)}


def rated(page: Page, guest: Guest, times: int, keyboard: bool = False) -> None:
    """Rate so many restaurants as this guest would."""
    for _ in range(times):
        count = page.locator(".progress p").inner_text()
        mark = guest.overall(scores_of(page))
        if keyboard:
            page.keyboard.press(str(mark % 10))
            page.keyboard.press("Enter")
        else:
            page.locator(".mark").nth(mark - 1).click()
            page.get_by_role("button", name="Rate it").click()
        expect(page.locator(".progress p")).not_to_have_text(count)
        expect(page.locator("form.visit")).to_have_attribute("aria-busy", "false")
        expect(page.locator(".marks input:checked")).to_have_count(0)


def sent(page: Page) -> list[tuple[str, str, Any]]:
    """What the page asks of the API from now on: method, path, body."""
    found: list[tuple[str, str, Any]] = []
    page.on(
        "request",
        lambda request: found.append(
            (request.method, httpx.URL(request.url).raw_path.decode(), json.loads(request.post_data or "null"))
        ),
    )
    return found


def serious(page: Page) -> list[str]:
    """What axe-core finds that would keep somebody from using the page."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found if one["impact"] in {"serious", "critical"}]


def picture(browser: Browser, address: str, view: str, theme: str, width: int) -> bytes:
    """Return the page as a PNG: at the start ("try"), or when it has told what it thinks ("told")."""
    given: Any = {"color_scheme": theme, "viewport": {"width": width, "height": 780 if width < 600 else 900}}
    page = browser.new_page(**given, reduced_motion="reduce", locale="en-GB")
    open_try(page, address)
    if view == "told":
        rated(page, somebody("taste"), 11)
        expect(page.locator(".person.waiting")).to_have_count(0)
        expect(page.get_by_text("Meanwhile")).to_be_visible()
    page.evaluate("document.activeElement.blur()")
    page.mouse.move(0, 0)
    taken = page.screenshot(full_page=True, animations="disabled")
    page.close()
    return taken
