"""The client for browsers and Node beyond what it shares with the others: its types, its package, and a real page."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import pamo
from benchmarks.servers import served
from pamo import Client, Engine
from pamo.service import create_app
from scripts import typescript_api
from tests.browsing import chromium, watch
from tests.client.service import Process
from tests.client.typescript import PACKAGE, node
from tests.documents import blocks

# The methods that JavaScript's names make look different.
CAMEL = re.compile(r"_([a-z])")


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([node(), *arguments], check=False, capture_output=True, text=True, timeout=120)


def test_what_it_knows_of_the_service_is_what_the_service_says() -> None:
    for name, text in typescript_api.files().items():
        shown = (PACKAGE / name).read_text(encoding="utf-8")
        assert shown == text, f"{name} is out of step: python scripts/typescript_api.py"


def test_types_and_code_have_the_same_methods_and_they_are_the_python_clients() -> None:
    declared = (PACKAGE / "index.d.ts").read_text(encoding="utf-8")
    typed = set(re.findall(r"^  (\w+)[(<]", declared.partition("export class Client")[2], re.MULTILINE))
    script = f"""
      import * as all from {json.dumps((PACKAGE / "index.js").as_uri())};
      console.log(JSON.stringify([Object.getOwnPropertyNames(all.Client.prototype), Object.keys(all)]));
    """
    methods, exported = json.loads(_run("--input-type=module", "--eval", script).stdout)
    assert set(methods) == typed
    python = {name for name in vars(Client) if not name.startswith("_")} - {"close"}
    assert set(methods) - {"constructor", "call"} == {CAMEL.sub(lambda one: one[1].upper(), name) for name in python}
    assert set(exported) == set(re.findall(r"^export class (\w+)", declared, re.MULTILINE))


def test_the_package_is_of_this_version_and_holds_what_it_needs() -> None:
    package = json.loads((PACKAGE / "package.json").read_text(encoding="utf-8"))
    assert package["version"] == pamo.__version__
    assert "dependencies" not in package
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed, and packs the client for browsers and Node")
    command = [npm, "pack", "--dry-run", "--json", "--offline"]
    (packed,) = json.loads(subprocess.run(command, cwd=PACKAGE, capture_output=True, check=True, text=True).stdout)
    expected = {"LICENSE", "README.md", "api.d.ts", "api.js", "index.d.ts", "index.js", "package.json"}
    assert {one["path"] for one in packed["files"]} == expected


def test_what_its_page_shows_works_against_pamo_serve(tmp_path: Path) -> None:
    (example,) = blocks(PACKAGE / "README.md", "js")
    installed = tmp_path / "node_modules" / "pamo-client"
    shutil.copytree(PACKAGE, installed)
    process = Process(tmp_path / "pamo.db", objectives="price: 0..500, lower is better,taste: 1..5", arms="A,B,C")
    process.start()
    try:
        script = tmp_path / "example.mjs"
        script.write_text(example.text.replace("http://127.0.0.1:8000", process.url), encoding="utf-8")
        done = _run(str(script))
    finally:
        process.kill()
    assert done.stderr == ""
    sentence, *rest = done.stdout.splitlines()
    assert sentence
    assert rest == ["feedback_conflict", "true", "true"]


def test_it_gives_up_with_a_sentence_and_refuses_what_json_has_no_word_for() -> None:
    script = f"""
      import {{ Client }} from {json.dumps((PACKAGE / "index.js").as_uri())};
      const told = async (ask) => {{
        const error = await ask().then(() => null, (one) => one);
        console.log(`${{error?.name}}: ${{error?.message}}`);
      }};
      const away = new Client("http://127.0.0.1:9", {{ retries: 1, backoff: 1, key: null }});
      await told(() => away.decide("ann"));
      await told(async () => away.feedback("d1", {{ rewards: {{ taste: NaN }} }}));
      await told(() => away.feedbackMany([{{ id: "d1", overall: 1 }}, {{ id: "d2", overall: 1 / 0 }}]));
      await told(async () => new Client("ftp://example.org"));
      await told(async () => new Client(null, {{ key: "two words" }}));
      console.log(await away.health());
      const slow = new Client("http://pamo.test", {{
        retries: 0, timeout: 20, fetch: (_, {{ signal }}) => new Promise((_, fail) =>
          signal.addEventListener("abort", () => fail(signal.reason))),
      }});
      await told(() => slow.arms());
      const asked = [];
      const answers = [[503, {{ "Retry-After": "2" }}], [429, {{}}], [201, {{}}]];
      const fetch = async (url, {{ headers }}) => {{
        asked.push(headers["Idempotency-Key"]);
        const [status, more] = answers.shift();
        return new Response('{{"arm": "A"}}', {{ status, headers: more }});
      }};
      const pauses = [];
      const sleep = async (milliseconds) => pauses.push(milliseconds);
      const patient = new Client("http://pamo.test", {{ fetch, random: () => 1, sleep }});
      console.log((await patient.decide("ann")).arm, new Set(asked).size, asked.length, pauses.join(" "));
    """
    done = _run("--input-type=module", "--eval", script)
    assert done.stderr == ""
    silent, not_a_number, infinite, url, key, health, slow, patient = done.stdout.splitlines()
    assert silent.startswith("ServiceError: the service at http://127.0.0.1:9 did not answer in 2 attempts (")
    assert not_a_number.startswith("InputError: expected rewards.taste to be a finite number, got NaN")
    assert infinite.startswith("InputError: expected feedback[1].overall to be a finite number, got Infinity")
    assert url.startswith("InputError: expected the service's URL")
    assert key == "InputError: expected the API key to be text without spaces"
    assert health == "false"
    assert "did not answer in 1 attempt (no answer in 20 ms)" in slow
    assert patient == "A 1 3 2050 200"


def test_a_page_asks_the_server_that_it_came_from() -> None:
    """In a real browser, from modules as they are: no bundler, no address, no key."""
    with Engine(["price: 0..500, lower is better", "taste: 1..5"], overall="overall: 1..5", seed=1) as engine:
        engine.add_arms(["A", "B"])
        with served(create_app(engine)) as url, chromium() as browser:
            page, problems = browser.new_page(), list[str]()
            watch(page, url, problems)
            page.route(f"{url}/client/*", lambda route: route.fulfill(path=PACKAGE / Path(route.request.url).name))
            page.route(f"{url}/shop", lambda route: route.fulfill(body="<!doctype html>", content_type="text/html"))
            page.goto(f"{url}/shop")
            told = page.evaluate("""async () => {
                const { Client, InputError } = await import("/client/index.js");
                const client = new Client();
                const decision = await client.decide("Zoë/№", { k: 2 });
                await client.feedback(decision, { rewards: { taste: 4 }, overall: 4 });
                const refused = await client.arm("nowhere").catch((error) => error instanceof InputError);
                return [client.url, decision.arms.length, (await client.statistics()).users, refused];
            }""")
            assert told == [url, 2, 1, True]
            assert [one for one in problems if "404" not in one] == []
