"""Makes the documentation's screenshots of the page.

Usage: PAMO_BROWSER=$(python scripts/browser.py) python -m tests.screenshots [--all FOLDER]

A small town is played through for a while, and each view is looked at while more guests come; then a visitor tries the
demonstration. The pictures in the documentation go to docs/images; with --all, every view in both themes and at both
widths goes to FOLDER instead.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import httpx
import numpy as np
from PIL import Image
from playwright.sync_api import Browser, expect

from campaigns.demo_visitor import demonstration
from pamo import Engine
from tests.browsing import chromium
from tests.service import trying
from tests.service.town import INNS, LOWS, NAMES, SPANS, running_town

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
PATHS = {"overview": "/", "arms": "/arms", "users": "/users", "user": "", "what-if": "/what-if"}
HEIGHTS = {1280: 1000, 360: 760}
IN_DOCS = {
    "overview-light-1280",
    "overview-dark-360",
    "arms-light-1280",
    "arms-dark-360",
    "user-dark-1280",
    "user-light-360",
    "what-if-light-1280",
    "told-light-1280",
    "told-dark-360",
}


@contextlib.contextmanager
def guests(address: str) -> Iterator[None]:
    """Let guests come until the pictures are taken."""
    stop = threading.Event()

    def come() -> None:
        numbers = np.random.default_rng(9)
        with httpx.Client(base_url=address, timeout=30) as client:
            while not stop.wait(0.25):
                made = client.post("/v1/decisions", json={"user": f"guest-{numbers.integers(40):03d}"}).json()
                got = np.clip(np.array(INNS[made["arm"]][1]) + 0.1 * numbers.standard_normal(4), 0.0, 1.0)
                shown = (LOWS + SPANS * np.where(np.arange(4) == 0, 1.0 - got, got)).tolist()
                body = {"rewards": dict(zip(NAMES, shown, strict=True)), "overall": 1 + 4 * float(got.mean())}
                client.post(f"/v1/decisions/{made['id']}/feedback", json=body)

    thread = threading.Thread(target=come)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def picture(browser: Browser, address: str, path: str, view: str, theme: str, width: int) -> bytes:
    """Return a view as a PNG."""
    page = browser.new_page(
        color_scheme="dark" if theme == "dark" else "light",
        viewport={"width": width, "height": HEIGHTS[width]},
        locale="en-GB",
    )
    page.goto(address + path)
    expect(page.locator("#view")).not_to_be_empty(timeout=20_000)
    expect(page.get_by_text("Reading…")).to_have_count(0, timeout=20_000)
    if view == "user":
        entries = page.locator(".decisions li")
        expect(entries).not_to_have_count(0, timeout=20_000)
        explored = page.locator(".decisions li:has(.explored)")
        (explored if explored.count() else entries).first.locator("summary").click()
    if view == "what-if":
        for name, value in zip(NAMES, ("20", "90", "40", "60"), strict=True):
            page.get_by_label(name).fill(value)
    page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    page.wait_for_timeout(1200)  # the charts are redrawn
    taken = page.screenshot(full_page=view == "user" and width == 1280)
    page.close()
    return taken


def write(folder: Path, name: str, taken: bytes) -> None:
    """Write a picture, with a few colours: such pictures need no more."""
    file = io.BytesIO()
    picked = Image.open(io.BytesIO(taken)).convert("RGB").quantize(200, Image.Quantize.MAXCOVERAGE)
    picked.save(file, "PNG", optimize=True)
    (folder / f"{name}.png").write_bytes(file.getvalue())
    print(f"{folder.name}/{name}.png: {len(file.getvalue()) / 1000:.0f} kB")


def instructive(engine: Engine) -> str:
    """Return a user who was given an arm lately to learn more, and not because it was new."""
    for user, _ in engine.store.find_users("", 40):
        for made in engine.store.decisions_of(user, 8):
            why = engine.explain(made.decision.id)
            if why.explored and why.chosen is not None and why.chosen.reward_bonus < 10.0:
                return user
    return engine.store.find_users("", 1)[0][0]


def wanted(views: Iterable[str], everything: bool) -> Iterator[tuple[str, str, str, int]]:
    """Yield the pictures to take of some views: name, view, theme and width."""
    for view, theme, width in itertools.product(views, ("light", "dark"), (1280, 360)):
        name = f"{view}-{theme}-{width}"
        if everything or name in IN_DOCS:
            yield name, view, theme, width


def main() -> int:
    """Make the pictures."""
    parser = argparse.ArgumentParser(description="Make the screenshots of the page.")
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="every view, theme and width, into this folder")
    given = parser.parse_args()
    folder: Path = given.all or IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    with (
        running_town(rounds=650, seconds=0.9) as (address, engine, _),
        guests(address),
        chromium() as browser,
    ):
        paths = PATHS | {"user": f"/users/{instructive(engine)}"}
        for name, view, theme, width in wanted(PATHS, bool(given.all)):
            write(folder, name, picture(browser, address, paths[view], view, theme, width))
    with demonstration(1) as address, chromium() as browser:
        for name, view, theme, width in wanted(("try", "told"), bool(given.all)):
            write(folder, name, trying.picture(browser, address, view, theme, width))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
