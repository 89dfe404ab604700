"""Every step of the page *Start here* is taken: the demonstration, and the service with what is asked of it.

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


def _started(line: str, folder: Path, *more: str) -> Server:
    """Start what a line says, on a port that is free."""
    command, *arguments = shlex.split(line)
    assert command == "pamo"
    return Server([sys.executable, "-m", "pamo", *arguments, "--port", "0", *more], folder)


def test_the_demonstration_opens(tmp_path: Path) -> None:
    (line,) = _lines("pamo demo")
    with _started(line, tmp_path, "--no-browser") as server:
        page = httpx.get(server.url, timeout=60, follow_redirects=True)
    assert page.status_code == 200
    assert "pamo" in page.text


def test_the_service_answers_what_is_asked_of_it(tmp_path: Path) -> None:
    (line,) = _lines("pamo serve")
    asked = _lines("curl ")
    assert len(asked) == 3
    answers, decision = [], ""
    with _started(line, tmp_path) as server:
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
