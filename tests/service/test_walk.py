"""What docs/http.md says and shows is so."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from pamo.engine import Engine
from pamo.service.connections import LONGEST_HEADERS
from pamo.service.openapi import REASONS
from pamo.service.operations import OPERATIONS, Operation
from pamo.service.settings import Settings
from tests.service.calling import OBJECTIVES, Serve

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(GET|POST|PUT|DELETE) (\S+)` \|(.*)\|(.*)\|(.*)\|$", PAGE, re.MULTILINE)
LINES = [line for block in re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


def role_of(one: Operation) -> str:
    return "none" if one.roles is None else " or ".join(one.roles) or "any key"


def test_the_table_has_every_operation_with_its_role() -> None:
    expected = {(one.method, one.path): role_of(one) for one in OPERATIONS}
    assert {(method, path): role.strip() for method, path, _, _, role in ROWS} == expected


def test_the_table_names_the_fields() -> None:
    for method, path, takes, answers, _ in ROWS:
        (one,) = (one for one in OPERATIONS if (one.method, one.path) == (method, path))
        if one.body is not None:
            named = set(re.findall(r"`([a-z_]+)`", takes)) - {"key", "id", "name"}
            assert named == set(one.body.__struct_fields__) - {"name"}, path
        if path.endswith(("decisions", "feedback", "preference", "batch", "objectives")) and answers.count("`") > 1:
            assert set(re.findall(r"`([a-z_]+)`", answers)) == {field.name for field in fields(one.answer)}, path
        if one.status != 200:
            assert answers.strip().startswith(f"{one.status}:")


def test_the_errors_are_all_there() -> None:
    listed = {int(status) for row in re.findall(r"^\| ([\d, ]+) \|", PAGE, re.MULTILINE) for status in row.split(", ")}
    assert listed == set(REASONS) | {405}


def test_the_limits_are_those() -> None:
    assert (Settings().max_body_bytes, Settings().max_batch, Settings().timeout_seconds) == (2**20, 1000, 10.0)
    assert LONGEST_HEADERS == 64 * 1024
    assert Settings().rate == 0


def matches(shown: Any, found: Any) -> bool:
    """Tell whether what is shown is what came, as far as it is shown: … stands for anything."""
    if isinstance(shown, dict):
        rest = "…" in shown
        named = {name: part for name, part in shown.items() if name != "…"}
        return (rest or set(named) == set(found)) and all(matches(part, found[name]) for name, part in named.items())
    if isinstance(shown, list):
        return shown == ["…"] or (len(shown) == len(found) and all(map(matches, shown, found)))
    if isinstance(shown, str) and "…" in shown:
        return True
    return type(shown) is type(found) and (not isinstance(shown, str | bool) or shown == found)


def read(line: str) -> Any:
    """Return the JSON that a line shows."""
    line = line.replace("{…}", '{"…": 0}').replace("[…]", '["…"]').replace(",…}", ',"…": 0}')
    return json.loads(line)


def test_the_walk(serve: Serve) -> None:
    """Each curl of the page is sent in turn, and answered with what the page shows."""
    engine = Engine(OBJECTIVES, overall="overall: 1..5", seed=1)
    for arm, name in (("A", "Anchor Inn"), ("B", "Bristol")):
        engine.add_arm(arm, name)
    service = serve(engine)
    made, walked = "", 0
    for line, shown in zip(LINES, [*LINES[1:], ""], strict=True):
        if not line.startswith("curl "):
            continue
        words = shlex.split(line.replace("'$ID'", made).replace("$ID", made))
        body = json.loads(words[words.index("--json") + 1]) if "--json" in words else None
        method = words[words.index("-X") + 1] if "-X" in words else "GET" if body is None else "POST"
        (address,) = (word for word in words if word.startswith("localhost:8000"))
        response = service.ask(method, address.removeprefix("localhost:8000"), body)
        walked += 1
        if shown.startswith("{"):
            found, expected = response.json(), read(shown)
            # Which arm comes first is chance, and so is what follows from it.
            for one in (found, expected):
                one.pop("arm", None)
                one.pop("arms", None)
            assert matches(expected, found), (line, found)
            decisions = found.get("decisions", [found])
            made = decisions[0]["id"] if response.status_code in {200, 201} and "policy" in decisions[0] else made
        else:
            assert response.status_code == 204
    assert walked == 14


@pytest.mark.parametrize("wrong", ['{"a":1}', '{"a":"x","b":2.0}', '{"a":"y","b":1}', '{"a":"x","b":1,"c":[]}'])
def test_a_difference_would_be_seen(wrong: str) -> None:
    assert matches({"a": "x", "b": 1}, {"a": "x", "b": 7})
    assert not matches({"a": "x", "b": 1}, json.loads(wrong))
