"""The page in a real Chromium: every view, both themes, phone and desktop, by keyboard, and with hostile names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from benchmarks.servers import served
from pamo import Engine
from pamo.service import create_app
from pamo.service.settings import Settings
from tests.browsing import PATIENCE, watch
from tests.service.calling import KEYS, SECRETS
from tests.service.town import INNS, running_town

PAGES = {"/": "Overview", "/arms": "Arms", "/users": "Users", "/users/guest-001": "guest-001", "/what-if": "What if"}
HOSTILE = (
    "<script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "long " + "W" * 251,
    "\u202eright to left\u202c \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "a/b?c#d%20e&f=\"'",
)


@pytest.fixture(scope="module")
def town() -> Iterator[tuple[str, Engine, Any]]:
    with running_town(rounds=250, seconds=2.0) as running:
        yield running


Open = Callable[..., Page]


@pytest.fixture
def show(browser: Browser) -> Iterator[Open]:
    """Opens pages, and in the end sees that nothing went wrong in them and nothing was asked of anybody else."""
    problems: list[str] = []
    contexts = []

    def open_page(url: str, *, theme: Any = "light", width: int = 1280, refused: tuple[str, ...] = ()) -> Page:
        context = browser.new_context(color_scheme=theme, viewport={"width": width, "height": 800}, locale="en-GB")
        contexts.append(context)
        page = context.new_page()
        watch(page, "/".join(url.split("/")[:3]), problems, refused)
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


def settled(page: Page) -> None:
    """Wait until everything that a view shows at first is there."""
    expect(page.locator("#view")).not_to_be_empty(timeout=PATIENCE)
    expect(page.get_by_text("Reading…")).to_have_count(0, timeout=PATIENCE)


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 360)])
def test_every_view_is_whole_fits_and_can_be_used_by_everybody(
    town: tuple[str, Engine, Any], show: Open, theme: str, width: int
) -> None:
    for path, title in PAGES.items():
        page = show(town[0] + path, theme=theme, width=width)
        settled(page)
        assert page.get_by_role("heading", level=1).inner_text() == title
        assert fits(page), path
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == ("rgb(14, 19, 25)" if theme == "dark" else "rgb(244, 246, 249)")
        assert page.locator("nav [aria-current=page]").count() == 1
        for figure in page.locator("figure").all():
            assert figure.locator("svg.drawing > *").count() > 1
            figure.locator("summary").click()
            expect(figure.locator("tbody tr")).not_to_have_count(0, timeout=PATIENCE)
        assert fits(page), path
        found = Axe().run(page).response["violations"]
        serious = [one for one in found if one["impact"] in {"serious", "critical"}]
        assert serious == [], [(one["id"], [node["html"] for node in one["nodes"]]) for one in serious]
        page.close()


def test_the_overview_says_whether_it_learns(town: tuple[str, Engine, Any], show: Open) -> None:
    page = show(town[0])
    settled(page)
    headline = page.locator(".headline")
    expect(headline).to_contain_text("people got", timeout=PATIENCE)
    numbers = [float(one) for one in re.findall(r"\d\.\d\d", headline.inner_text())]
    got, greedy, random = numbers
    assert random < got
    assert random < greedy
    chart = page.locator("figure").first
    assert chart.locator(".legend li").all_inner_texts() == ["what people got", "greedy, expected", "random, expected"]
    legend, drawing = chart.locator(".legend").bounding_box(), chart.locator("svg.drawing").bounding_box()
    assert legend is not None
    assert drawing is not None
    assert legend["y"] + legend["height"] <= drawing["y"]  # beside the data, never on it
    page.get_by_role("button", name="24 hours").click()
    expect(headline).to_contain_text("24 hours", timeout=PATIENCE)
    pending = page.locator(".tile", has_text="Feedback awaited").locator("dd > span").first
    assert pending.inner_text() == str(town[1].statistics()["pending_decisions"])


def test_decisions_stream_in(town: tuple[str, Engine, Any], show: Open) -> None:
    page = show(town[0])
    expect(page.locator(".badge", has_text="live")).to_be_visible(timeout=PATIENCE)
    before = page.locator(".live tbody tr").count()
    assert before > 0  # the last ones, from before
    for number in range(40):
        page.request.post(f"{town[0]}/v1/decisions", data={"user": f"stranger-{number}"})
    expect(page.locator(".live")).to_contain_text("stranger-39", timeout=PATIENCE)
    assert page.locator(".live tbody tr").count() <= 30
    page.get_by_role("button", name="Pause").click()
    page.request.post(f"{town[0]}/v1/decisions", data={"user": "unseen"})
    page.get_by_role("link", name="stranger-39").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("stranger-39", timeout=PATIENCE)
    expect(page.locator(".decisions")).to_contain_text("feedback awaited", timeout=PATIENCE)


def test_the_leaderboard_is_sorted_searched_and_plotted(town: tuple[str, Engine, Any], show: Open) -> None:
    page = show(f"{town[0]}/arms")
    settled(page)
    rows = page.locator(".table tbody tr")
    expect(rows).to_have_count(len(INNS), timeout=PATIENCE)
    page.get_by_role("button", name="quiet").click()
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("quiet", timeout=PATIENCE)
    expect(rows.first).to_contain_text("Dunes Lodge")
    page.get_by_role("button", name="quiet").click()
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("quiet", timeout=PATIENCE)
    page.get_by_label("Search").fill("kiNG")
    expect(rows).to_have_count(1, timeout=PATIENCE)
    expect(rows).to_contain_text("King's Arms")
    figure = page.locator("figure")
    assert figure.locator("g circle.spot.marked").count() >= 1
    page.get_by_label("Up", exact=True).select_option(label="quiet")
    expect(figure.locator("text.label").first).to_contain_text("quiet (higher is better)", timeout=PATIENCE)
    expect(figure.locator("text.label").nth(1)).to_contain_text("price (lower is better)")


def test_a_user_is_found_and_explained(town: tuple[str, Engine, Any], show: Open) -> None:
    address, engine, _ = town
    page = show(f"{address}/users")
    page.get_by_label("User", exact=True).fill("guest-00")
    expect(page.locator("tbody tr")).to_have_count(len(engine.store.find_users("guest-00", 50)), timeout=PATIENCE)
    busiest = engine.store.find_users("", 1)[0][0]
    page.get_by_label("User", exact=True).fill(busiest)
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(busiest, timeout=PATIENCE)
    settled(page)
    told = engine.preference(busiest)
    names = page.locator("figure").first.locator(".bar-name").all_text_contents()
    assert names == sorted(told.objectives, key=lambda name: -told.objectives[name].weight)
    assert page.locator("figure").first.locator(".whisker").count() >= 3 * len(names)
    zero = page.locator("figure").first.locator("line.axis")  # bars begin at 0, wherever their intervals go
    starts = (
        page.locator("figure")
        .first.locator(".drawing .bar")
        .evaluate_all("bars => bars.map(one => one.x.baseVal.value)")
    )
    assert starts == pytest.approx([float(zero.get_attribute("x1") or "nan")] * len(names), abs=1.0)
    made = engine.store.decisions_of(busiest, 10)
    expect(page.locator(".decisions li")).to_have_count(len(made), timeout=PATIENCE)
    explored = next((n for n, one in enumerate(made) if engine.explain(one.decision.id).explored), 0)
    entry = page.locator(".decisions li").nth(explored)
    entry.locator("summary").click()
    why = engine.explain(made[explored].decision.id)
    assert entry.locator(".sentence").inner_text() == why.sentence
    for label in ("Value", "Reward bonus", "Preference bonus", "Score"):
        assert entry.get_by_role("rowheader", name=label, exact=True).count() == 1
    if why.explored and why.without_exploration is not None:
        expect(entry).to_contain_text("Without exploration it would have been")
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(".decisions li")).not_to_have_count(10, timeout=PATIENCE)


def test_what_if_ranks_by_the_sliders(town: tuple[str, Engine, Any], show: Open) -> None:
    page = show(f"{town[0]}/what-if")
    settled(page)
    first = page.locator(".table tbody tr").first
    for name in ("taste", "service", "quiet"):
        page.get_by_label(name).fill("0")
    expect(first).to_contain_text(re.compile("Jolly Sailor|Anchor Inn"), timeout=PATIENCE)
    expect(page.locator("output").first).to_have_text("100 %")
    assert page.locator("figure .legend li").all_inner_texts()[:4] == ["price", "taste", "service", "quiet"]
    expect(page.locator("figure .seam")).to_have_count(0)  # price alone counts
    page.get_by_label("quiet").fill("100")
    page.get_by_label("price").fill("0")
    expect(first).to_contain_text("Dunes Lodge", timeout=PATIENCE)
    page.get_by_role("button", name="All the same").click()
    expect(page.locator("output").first).to_have_text("25 %", timeout=PATIENCE)
    expect(page.locator("figure .seam")).to_have_count(3 * 8, timeout=PATIENCE)  # eight arms, of four parts each


def test_the_keyboard_is_enough(town: tuple[str, Engine, Any], show: Open) -> None:
    page = show(f"{town[0]}/what-if")
    settled(page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    before = page.locator("output").first.inner_text()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    expect(page.locator("output").first).not_to_have_text(before, timeout=PATIENCE)
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('svg.drawing')"):
            break
    readout = page.locator("figure .readout")
    page.keyboard.press("ArrowDown")
    expect(readout).to_contain_text("1. ")
    page.keyboard.press("End")
    expect(readout).to_contain_text("8. ")
    page.keyboard.press("Escape")
    expect(readout).to_contain_text("arrow keys")
    page.goto(f"{town[0]}/arms")
    settled(page)
    page.get_by_role("button", name="Pulls").focus()
    page.keyboard.press("Enter")
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Pulls", timeout=PATIENCE)
    assert page.evaluate("document.activeElement.dataset.sort") == "pulls"  # the focus stays where it was


def test_a_theme_can_be_chosen_and_lasts(town: tuple[str, Engine, Any], show: Open) -> None:
    page = show(f"{town[0]}/users", theme="light")
    button = page.get_by_role("button", name="Theme: auto")
    button.click()
    page.get_by_role("button", name="Theme: light").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 19, 25)"
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 19, 25)"
    page.get_by_role("button", name="Theme: dark").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(244, 246, 249)"


def test_hostile_names_are_text(show: Open) -> None:
    with Engine(["<b>price</b>", "taste"], seed=1) as engine:
        for number, name in enumerate(HOSTILE):
            engine.add_arm(name, f"{name[:200]} {number}")
        app = create_app(engine)
        with served(app) as address:
            for user in HOSTILE * 3:
                made = engine.decide(user)
                engine.feedback(made.id, {"<b>price</b>": 0.5, "taste": 0.25}, overall=0.5)
            for path in ("/", "/arms", "/users", "/what-if"):
                page = show(address + path, width=360)
                settled(page)
                if path == "/":
                    page.request.post(f"{address}/v1/decisions", data={"user": HOSTILE[0]})
                    expect(page.locator(".live")).to_contain_text(HOSTILE[0], timeout=PATIENCE)
                elif path == "/users":
                    for user in HOSTILE:
                        expect(page.locator("tbody th").filter(has_text=user)).to_have_count(1, timeout=PATIENCE)
                else:
                    expect(page.locator("tbody").last).to_contain_text(HOSTILE[0], timeout=PATIENCE)
                assert fits(page), path
                assert "taken" not in page.title()
                assert page.locator("#view script, #view img, #view b").count() == 0
                page.close()
            for user in HOSTILE:
                page = show(f"{address}/users", width=360)
                page.get_by_label("User", exact=True).fill(user)
                page.get_by_role("button", name="Open").click()
                expect(page.get_by_role("heading", level=1)).to_have_text(user, timeout=PATIENCE)
                settled(page)
                asked = 4 if user == HOSTILE[0] else 3
                expect(page.locator(".decisions li")).to_have_count(asked, timeout=PATIENCE)
                page.locator(".decisions summary").first.click()
                assert fits(page), user
                assert page.locator("#view script, #view img, #view b").count() == 0
                page.close()


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 360)])
def test_an_experiment_is_told_in_a_sentence_and_in_intervals(show: Open, theme: str, width: int) -> None:
    worth, numbers = {"A": 5.0, "B": 3.0, "C": 1.0}, np.random.default_rng(1)
    with Engine(["taste: 1..5", "price: 0..500, lower is better"], overall="1..5", seed=1) as engine:
        engine.add_arms(list(worth))
        with served(create_app(engine)) as address:
            page = show(address, theme=theme, width=width)
            settled(page)
            assert page.locator("section[aria-label=Experiment]").is_hidden()
            page.close()
            engine.start_experiment("autumn <b>", "25%")
            for user in range(240):
                made = engine.decide(f"guest {user}")
                taste, price = np.clip(worth[made.arm] + numbers.normal(0, 1), 1, 5), numbers.uniform(0, 500)
                engine.feedback(made, {"taste": float(taste), "price": float(price)}, overall=float(taste))
            page = show(address, theme=theme, width=width)
            settled(page)
            card = page.locator("section[aria-label=Experiment]")
            told = engine.experiment()
            assert told is not None
            expect(card).to_contain_text(told.sentence, timeout=PATIENCE)
            expect(card).to_contain_text("autumn <b>")
            assert card.locator("tbody th").all_inner_texts() == ["overall", "taste", "price"]
            pictures = card.locator(".span")
            assert [one.get_attribute("class") for one in pictures.all()] == [
                *["span around better"] * 2,
                "span around",
            ]
            (pamo,) = told.variants
            for one, shown in zip((pamo.overall, pamo.objectives["price"]), (0, 2), strict=True):
                zero, range_ = pictures.nth(shown).bounding_box(), pictures.nth(shown).locator(".range").bounding_box()
                assert zero is not None
                assert range_ is not None
                middle = zero["x"] + zero["width"] / 2
                assert (range_["x"] > middle) == (one.better is True)  # what excludes 0 is drawn on one side of it
            assert fits(page)
            page.close()
            engine.end_experiment()
            variants = [
                {
                    "name": "cheap <i> by whatever means there are",
                    "share": 0.25,
                    "preference": {"taste": 0, "price": 1},
                },
                {"name": "best", "share": 0.25, "policy": "arm:A"},
            ]
            engine.start_experiment("winter", "25%", variants=variants)
            for user in range(160):
                made = engine.decide(f"guest {user}")
                engine.feedback(
                    made, {"taste": worth[made.arm], "price": numbers.uniform(0, 500)}, overall=worth[made.arm]
                )
            page = show(address, theme=theme, width=width)
            settled(page)
            card = page.locator("section[aria-label=Experiment]")
            expect(card).to_contain_text("Each of the 3 variants has its part of the 5 % of error", timeout=PATIENCE)
            assert card.locator("h3").all_inner_texts() == ["cheap <i> by whatever means there are", "best", "pamo"]
            assert card.locator(".badge").all_inner_texts()[1:] == [
                "25 %: live, by taste 0, price 1",
                "25 %: arm:A",
                "25 %: live",
            ]
            assert card.locator("table").count() == 3
            told = engine.experiment()
            assert told is not None
            for variant in told.variants:
                expect(card).to_contain_text(variant.sentence)
            assert told.variants[1].overall.better is True
            assert fits(page)
            found = Axe().run(page).response["violations"]
            assert [one["id"] for one in found if one["impact"] in {"serious", "critical"}] == []
            page.close()


def test_with_keys_the_page_asks_for_one_and_obeys_its_roles(show: Open) -> None:
    with Engine(["price", "taste"], seed=1) as engine:
        engine.add_arm("A", "secret-inn")
        app = create_app(engine, Settings(keys=KEYS))
        with served(app) as address:
            page = show(f"{address}/arms", refused=("401",))
            assert "secret-inn" not in page.content()
            page.get_by_label("Key").fill("wrong")
            page.get_by_role("button", name="Sign in").click()
            expect(page.get_by_text("This key is not known", exact=False)).to_be_visible(timeout=PATIENCE)
            page.get_by_label("Key").fill(SECRETS["decider"])
            page.get_by_label("Key").press("Enter")
            expect(page.locator(".table")).to_contain_text("secret-inn", timeout=PATIENCE)
            assert SECRETS["decider"] not in page.content()
            assert page.evaluate("document.cookie") == ""
            assert page.evaluate("localStorage.length") == 0
            page.get_by_role("link", name="What if").click()
            expect(page.get_by_role("heading", level=1)).to_have_text("What if", timeout=PATIENCE)
            expect(page.locator("input[type=range]")).to_have_count(2, timeout=PATIENCE)
            page.get_by_role("button", name="Sign out").click()
            expect(page.get_by_label("Key")).to_be_focused(timeout=PATIENCE)
            assert page.evaluate("sessionStorage.length") == 0
            page.close()


def test_without_arms_the_page_says_how_to_add_them(show: Open) -> None:
    with Engine(["taste"], seed=1) as engine, served(create_app(engine, Settings())) as url:
        page = show(url)
        expect(page.locator(".headline")).to_contain_text("no arms yet")
        page.get_by_role("link", name="add some").click()
        expect(page.locator(".notice", has_text="PUT /v1/arms/")).to_be_visible()
        page.get_by_label("Id").fill("inn-1")
        page.get_by_label("Name, if").fill("Anchor Inn")
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".notice", has_text="PUT /v1/arms/")).to_be_hidden()
        expect(page.get_by_role("status").filter(has_text="Anchor Inn is on offer.")).to_be_visible()
        assert [(one.id, one.name) for one in engine.arms()] == [("inn-1", "Anchor Inn")]
        page.get_by_role("button", name="Rename Anchor Inn").click()
        page.get_by_label("Name, if").fill("The Anchor")
        page.get_by_role("button", name="Save").click()
        retire = page.get_by_role("button", name="Retire The Anchor")
        retire.click()
        expect(page.get_by_role("button", name="Really retire The Anchor?")).to_be_focused()
        assert engine.arms()[0].active
        page.get_by_role("button", name="Really retire The Anchor?").click()
        expect(page.locator(".notice", has_text="PUT /v1/arms/")).to_be_visible()
        assert [(one.name, one.active) for one in engine.arms()] == [("The Anchor", False)]
        page.goto(url)
        settled(page)
        expect(page.locator(".alerts")).to_contain_text("There is no arm to choose")


def test_idle_time_is_drawn_at_nothing_a_second(town: tuple[str, Engine, Any], show: Open) -> None:
    """And not as a ramp from what was before to what came after."""
    page = show(town[0])
    at = [0, 60, 660]
    row = "({ at, decisions: 6, explored: 0, feedbacks: 6, scored: 0, got: null, greedy: null, random: null })"
    found = page.evaluate(
        """async (at) => {
            const { withZeros } = await import("/assets/now/overview.js");
            return withZeros(at.map((at) => ROW), 60, 1000).map((one) => [one.at, one.decisions]);
        }""".replace("ROW", row),
        at,
    )
    assert found == [[step, 6 if step in at else 0] for step in range(0, 961, 60)]


def test_a_restaurant_is_praised_for_what_it_is_better_at(town: tuple[str, Engine, Any], show: Open) -> None:
    """Not for short waits of 28 minutes, however much these count, nor for what was bad at this visit."""
    found = show(town[0]).evaluate(
        """async () => {
            const { strength } = await import("/assets/now/try-world.js");
            const measures = ["wait", "price"].map((name) => ({ name, low: 0, high: 60, lower_is_better: true }));
            const restaurants = [[28, 15], [5, 50], [10, 45]].map(([wait, price]) => ({ means: { wait, price } }));
            const told = (scores) => strength(measures, restaurants, restaurants[0], { wait: 0.5, price: 0.3 }, scores);
            return [told({ wait: 28, price: 15 }), told({ wait: 28, price: 55 })];
        }"""
    )
    assert found == ["price", None]


def test_means_that_differ_by_the_last_bit_do_not_hang_the_page(show: Open) -> None:
    engine = Engine(["taste", "service"], seed=1)
    for arm, score in (("A", 0.3), ("B", 0.1 + 0.2)):
        engine.add_arm(arm)
        for _ in range(3):
            engine.feedback(engine.decide("ann", [arm]), {"taste": score, "service": score}, overall=score)
    with engine, served(create_app(engine, Settings())) as url:
        for path in PAGES:
            page = show(url + path.replace("guest-001", "ann"))
            settled(page)
            if path != list(PAGES)[-1]:
                page.close()
        took = page.evaluate("""async () => {
            const { ticks, extent } = await import("/assets/now/scales.js");
            const began = performance.now(), ulp = 2 ** -52;
            for (const at of [0.3, 1, -7, 1e15, 1e300, 1e-300]) {
                for (const width of [ulp, 3 * ulp, 1e-13, 1e-12, 1e-9, 1]) {
                    const domain = [at, at + Math.abs(at) * width];
                    for (const one of [domain, extent(domain), domain.slice().reverse()]) {
                        const found = ticks(one, 5).length;
                        if (!(found <= 20)) throw new Error(`${found} ticks in ${one}`);
                    }
                }
            }
            return performance.now() - began;
        }""")
        page.close()
    assert took < 1000
