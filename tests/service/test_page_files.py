"""The page's shells and files: strict headers, nothing inline, nothing secret."""

from __future__ import annotations

import re

from pamo.service.dashboard.assets import assets
from pamo.service.dashboard.pages import POLICY, VIEWS
from tests.service.calling import KEYS, SECRETS, Serve, Service


def test_pages_and_files_have_strict_headers(service: Service) -> None:
    for view in VIEWS:
        answer = service.ask("GET", view.path.replace("{id}", "a%2Fb"))
        assert answer.status_code == 200
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not re.search(r"<script(?! (?:type=\"module\" )?src=)|<style|style=|\son\w+=", answer.text)
        for source in re.findall(r'(?:src|href)="([^"]+)"', answer.text):
            assert source.startswith(("/", "#"))
            if source.startswith("/assets"):
                file = service.ask("GET", source)
                assert file.status_code == 200
                assert "immutable" in file.headers["cache-control"]
    assert service.ask("GET", "/assets/old/style.css").headers["cache-control"] == "no-store"
    assert service.ask("GET", "/assets/x/../pages.py").status_code == 404
    assert service.ask("GET", "/assets/x/none.js").status_code == 404
    assert service.ask("POST", "/arms").status_code == 405
    assert service.ask("GET", "/users/").status_code == 404
    assert "unsafe" not in POLICY


def test_no_module_parses_markup_or_asks_elsewhere() -> None:
    for name, (content, _) in assets().files.items():
        text = content.decode()
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert word not in text, (name, word)
        for address in re.findall(r"https?://[^\s\"'`]+", text):
            assert address.startswith("http://www.w3.org/"), (name, address)


def test_keys_are_never_in_a_page(serve: Serve) -> None:
    service = serve(keys=KEYS)
    for view in VIEWS:
        text = service.ask("GET", view.path).text
        assert 'data-keys="needed"' in text
        assert not any(secret in text for secret in SECRETS.values())
        assert "decider" not in text
