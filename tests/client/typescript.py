"""The TypeScript client by the name that the others have: Node runs it, and is asked over pipes.

What it answers is read as what the Python clients return, so that the same tests are of all of them.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from pamo import errors
from pamo.client import calls
from pamo.contract.answers import Decision
from pamo.contract.experiments import share
from pamo.contract.features import features

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "clients" / "typescript"


def node() -> str:
    """Return where Node is, or skip the test."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node is not installed, and the client for browsers and Node needs it")
    return found


class TypeScript:
    """The kind of client that Node runs."""

    @staticmethod
    def ask(
        url: str | None, options: dict[str, Any], pauses: list[float], method: str, given: Mapping[str, Any]
    ) -> Any:
        """Call a method by its name in Python, with its arguments by name."""
        settings = {name: value for name, value in options.items() if name != "chance"}
        line = {"url": url, "settings": settings, "method": method, "given": _plain(method, dict(given))}
        process = _process()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(line) + "\n")
        process.stdin.flush()
        reply = json.loads(process.stdout.readline())
        pauses.extend(reply["pauses"])
        if (error := reply.get("error")) is not None:
            kind = getattr(errors, error["name"])
            if kind is errors.InputError:
                raise kind(error["message"], error["field"], code=error["code"])
            raise kind(error["message"], code=error["code"])
        if method in ("health", "ready"):
            return reply["answer"]
        (answer,) = get_args(get_type_hints(getattr(calls, method))["return"])
        return msgspec.convert(reply.get("answer"), answer)


def named(method: str, arguments: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by their names."""
    return dict(inspect.signature(getattr(calls, method)).bind(*arguments, **given).arguments)


def _plain(method: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as a program in JavaScript would give them."""
    if isinstance(given.get("decision_id"), Decision):
        given["decision_id"] = {"id": given["decision_id"].id}
    if method == "explain" and isinstance(given["decision"], Decision):
        given["decision"] = {"id": given["decision"].id}
    if method == "start_experiment":
        given["control"] = share(given.get("control", "5%"))
    if method == "feedback_many":
        items = [dict(one) for one in given["items"]]
        given["items"] = [{"id": one.pop("decision_id"), **one} for one in items]
    if method == "declare_features":
        given["features"] = [{"name": one.name, "kind": one.kind} for one in features(given["features"])]
    if method == "add_arms":
        names = given["arms"] if isinstance(given["arms"], dict) else dict.fromkeys(given["arms"])
        known = given.pop("features", None) or {}
        given["arms"] = [{"id": arm, "name": name, "features": known.get(arm)} for arm, name in names.items()]
    return given


@functools.cache
def _process() -> subprocess.Popen[str]:
    """Start Node once for all tests of this process."""
    command = [node(), str(Path(__file__).with_name("typescript.mjs")), PACKAGE.joinpath("index.js").as_uri()]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    atexit.register(_end, process)
    return process


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()
