"""The steps of the page *Start here* are taken: the service is started, and asked what the page asks of it.

What it shows in Python is run with all documents' blocks, in tests/test_docs.py.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import httpx

from benchmarks.servers import Server
from tests.documents import ROOT, blocks

PAGE = ROOT / "docs" / "start.md"
HERE = "http://127.0.0.1:8000"


def _lines(beginning: str) -> list[str]:
    shown = [line for block in blocks(PAGE, "text") for line in block.text.splitlines()]
    return [line for line in shown if line.startswith(beginning)]


def test_every_command_of_the_page_is_taken_somewhere() -> None:
    """`pamo demo` is started by tests/service/test_demo.py, with nothing but the browser left out."""
    (serve,) = _lines("pamo serve")
    assert _lines("pamo ") == ["pamo demo", serve]
    shown = [line for block in blocks(PAGE, "text") for line in block.text.splitlines()]
    assert shown == [*_lines("pip install"), *_lines("pamo "), *_lines("curl ")]


def test_the_service_answers_what_is_asked_of_it(tmp_path: Path) -> None:
    (line,) = _lines("pamo serve")
    asked = _lines("curl ")
    assert len(asked) == 3
    answers, decision = [], ""
    command = [sys.executable, "-m", *shlex.split(line), "--port", "0"]  # on one that is free
    with Server(command, tmp_path) as server:
        for one in asked:
            words = shlex.split(one)
            url = words[-1].replace(HERE, server.url).replace("/ID/", f"/{decision}/")
            if words[1] == "--json":
                headers = {"Content-Type": "application/json", "Accept": "application/json"}  # as curl sends it
                answer = httpx.post(url, content=words[2].encode(), headers=headers, timeout=60)
            else:
                answer = httpx.get(url, timeout=60)
            assert answer.is_success, answer.text
            answers.append(answer.json())
            decision = decision or answers[0]["id"]
    made, given, learned = answers
    assert made["arm"] in re.search(r"--arms (\S+)", line)[1].split(",")  # type: ignore[index]
    assert given["status"] == "recorded"
    assert learned["rounds"] == 1
    assert (tmp_path / "pamo.db").exists()
