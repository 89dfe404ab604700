"""The steps of the page *Start here* are taken: the service is started, and asked what the page asks of it.

What it shows in Python is run with all documents' blocks, in tests/test_docs.py; `scripts/first_steps.py` takes all of
its steps in an empty environment.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from benchmarks.servers import Server
from scripts.first_steps import asked, from_clone, shown, variables_in
from tests.documents import ROOT

PAGE = ROOT / "docs" / "start.md"


def test_every_command_of_the_page_is_taken_somewhere() -> None:
    """`pamo demo` is started by tests/service/test_demo.py, with nothing but the browser left out."""
    (serve,) = shown(PAGE, "pamo serve")
    assert shown(PAGE, "pamo ") == ["pamo demo", serve]
    assert shown(PAGE, "") == [*shown(PAGE, "pip install"), *shown(PAGE, "pamo "), *shown(PAGE, "curl ")]
    made_by, command = from_clone(PAGE)
    assert made_by.startswith("make ")
    assert command == ".venv/bin/pamo"


def test_the_service_answers_what_is_asked_of_it(tmp_path: Path) -> None:
    (line,) = shown(PAGE, "pamo serve")
    command = [sys.executable, "-m", *shlex.split(line), "--port", "0"]  # on one that is free
    with Server(command, tmp_path) as server:
        made, given, learned = asked(PAGE, server.url)
    assert made["arm"] in re.search(r"--arms (\S+)", line)[1].split(",")  # type: ignore[index]
    assert given["status"] == "recorded"
    assert learned["rounds"] == 1
    assert (tmp_path / "pamo.db").exists()


def test_who_takes_the_steps_has_an_empty_home_and_no_cache(tmp_path: Path) -> None:
    variables = variables_in(tmp_path)
    assert variables["HOME"] == str(tmp_path / "home")
    assert not any(name.startswith(("PAMO_", "NUMBA_", "PYTHON", "XDG_", "VIRTUAL_")) for name in variables)
