"""A real Chromium for tests and screenshots, and what must not happen in its pages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, expect, sync_playwright

PATIENCE = 30_000
"""Milliseconds that anything may take: a busy machine is no failure."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser that PAMO_BROWSER names."""
    path = os.environ.get("PAMO_BROWSER")
    assert path, "PAMO_BROWSER names no Chromium: `make test` finds one, and so does scripts/browser.py"
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def watch(page: Page, origin: str, problems: list[str], refused: tuple[str, ...] = ()) -> None:
    """Note what goes wrong in a page, and what it asks of anybody else. refused: statuses that are no problem here."""

    def note(kind: str, text: str) -> None:
        if kind in {"error", "warning"} and not any(status in text for status in refused):
            problems.append(text)

    page.set_default_timeout(PATIENCE)
    page.on("console", lambda message: note(message.type, message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
    page.on("request", lambda one: None if one.url.startswith((origin, "data:")) else problems.append(one.url))
