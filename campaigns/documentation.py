"""Look at the documentation that `make docs` built as a reader does, in a real browser.

    PAMO_BROWSER=$(python scripts/browser.py) python -m campaigns.documentation

Every page is opened in both themes, at 1280 and at 360 pixels: nothing is asked of another machine, nothing goes wrong
in it, nothing is wider than the window, no link within it leads nowhere, and axe finds nothing serious. Then words are
searched for, and the page that explains each has to be among the first results. Exit code 1 if anything is found.
"""

from __future__ import annotations

import argparse
import functools
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urldefrag, urljoin

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browsing import chromium, watch

BUILT = Path(__file__).parents[1] / "docs" / "_build" / "html"
WORDS = {"trajectory": "simulate", "control group": "experiments", "half-life": "engine", "kills": "campaigns"}
"""What is searched for, and a part of the address that one of the first results has."""
RESULTS = 10
WIDTHS = (1280, 360)
APART = {"report.html"}
"""Pages that are looked at where they are made."""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of each file."""


def look(page: Page, address: str, theme: str) -> list[str]:
    """Return what is wrong with a page as it is shown."""
    page.goto(address)
    page.evaluate("theme => { document.body.dataset.theme = theme }", theme)
    wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    wrong = [f"{wider} pixels wider than the window"] if wider > 0 else []
    wrong += [
        f"{one['impact']}: {one['help']} ({len(one['nodes'])} times, {one['nodes'][0]['target']})"
        for one in Axe().run(page).response["violations"]
        if one["impact"] in {"serious", "critical"}
    ]
    return wrong


def dead_links(page: Page, root: str, built: Path) -> list[str]:
    """Return the links of a page to files, or to places in files, that are not there."""
    wrong = []
    for link in set(page.eval_on_selector_all("a[href]", "all => all.map(one => one.getAttribute('href'))")):
        whole, place = urldefrag(urljoin(page.url, link))
        if whole.startswith(root):
            target = built / (whole[len(root) :] or "index.html").partition("?")[0]
            if not target.is_file():
                wrong.append(f"a link to {link}, which is no file")
            elif place and f'id="{place}"' not in target.read_text(encoding="utf-8"):
                wrong.append(f"a link to {link}, which is no place in that file")
    return wrong


def search(page: Page, root: str) -> list[str]:
    """Return the words that a reader would search for in vain."""
    wrong = []
    for word, wanted in WORDS.items():
        page.goto(f"{root}search.html?q={word.replace(' ', '+')}")
        page.wait_for_selector("#search-results li a, #search-results p.search-summary:not(:empty)")
        page.wait_for_timeout(500)
        found = page.eval_on_selector_all("#search-results li a", "all => all.map(one => one.getAttribute('href'))")
        print(f"{word}: {len(found)} pages, first {', '.join(found[:3])}")
        if not any(wanted in one for one in found[:RESULTS]):
            wrong.append(f"searching for {word!r} does not find a page named *{wanted}* among the first {RESULTS}")
    return wrong


def main(arguments: list[str] | None = None) -> int:
    """Look at all of it; return the exit code."""
    parser = argparse.ArgumentParser(description="Look at the built documentation in a real browser.")
    parser.add_argument("folder", nargs="?", type=Path, default=BUILT, help="where it was built")
    built = parser.parse_args(arguments).folder
    if not (built / "index.html").is_file():
        print(f"expected documentation in {built}, found none: make docs", file=sys.stderr)
        return 2
    pages = sorted(one.relative_to(built).as_posix() for one in built.rglob("*.html"))
    pages = [one for one in pages if one not in APART and not one.startswith("_")]
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(built)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root, found = f"http://127.0.0.1:{server.server_port}/", 0
    with chromium() as browser:
        for width in WIDTHS:
            for theme in ("light", "dark"):
                page, problems = browser.new_page(viewport={"width": width, "height": 900}), list[str]()
                watch(page, root, problems)
                for name in pages:
                    wrong = look(page, root + name, theme)
                    wrong += dead_links(page, root, built) if (width, theme) == (WIDTHS[0], "light") else []
                    for one in wrong + problems:
                        print(f"{name}, {theme}, {width}: {one}")
                    found += len(wrong) + len(problems)
                    problems.clear()
                page.close()
        page = browser.new_page()
        for one in search(page, root):
            print(one)
            found += 1
    server.shutdown()
    print(f"{len(pages)} pages, {found} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
