"""What deploy/ names exists: settings, metrics, operations, files; and its numbers fit each other."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

import pamo
from benchmarks.servers import served
from pamo import Client, Engine
from pamo.contract.events import Outcome
from pamo.service import create_app
from pamo.service.operations import OPERATIONS
from pamo.service.settings import OPTIONS, Settings, load_settings
from scripts.containerfile import CONTAINERFILE, steps
from tests.documents import ROOT

DEPLOY = ROOT / "deploy"
NAME = re.compile(r"\bpamo_[a-z_]+")
VARIABLE = re.compile(r"\bPAMO_[A-Z_]+")


def _read(name: str) -> str:
    return (DEPLOY / name).read_text(encoding="utf-8")


def _rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(_read("prometheus/rules.yml"))["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def _asked() -> list[str]:
    """Return what the rules and the dashboard ask Prometheus for."""
    panels = json.loads(_read("grafana/pamo.json"))["panels"]
    return [rule["expr"] for rule in _rules()] + [one["expr"] for panel in panels for one in panel["targets"]]


def _manifests() -> dict[str, dict[str, Any]]:
    return {one["kind"]: one for one in yaml.safe_load_all(_read("kubernetes/pamo.yaml"))}


def test_rules_and_dashboard_ask_for_metrics_that_are_served() -> None:
    with Engine(["price", "taste"], seed=1) as engine, served(create_app(engine)) as url, Client(url) as client:
        engine.add_arm("A")
        client.feedback(engine.decide("ann"), overall=0.5)  # in process, nobody gives up on what is compiled first
        found = set(re.findall(r"^(pamo_\w+)", httpx.get(f"{url}/metrics").text, re.MULTILINE))
    asked = {name for text in _asked() for name in NAME.findall(text)}
    assert len(asked) >= 10
    assert asked <= found
    statuses = {word for text in _asked() for word in re.findall(r'pamo_feedback_total\{status\W+"([^"]+)"', text)}
    assert {one for words in statuses for one in words.split("|")} <= set(map(str, Outcome))
    operations = {word for text in _asked() for word in re.findall(r'operation=~?"([^"]+)"', text)}
    assert {one for words in operations for one in words.split("|")} <= {one.name for one in OPERATIONS}


def test_every_alert_says_what_is_wrong_and_the_page_what_to_do() -> None:
    page = (ROOT / "docs" / "deploying.md").read_text(encoding="utf-8")
    for rule in _rules():
        assert rule["labels"]["severity"] in ("page", "look")
        assert rule["annotations"]["summary"].endswith(".")
        assert f"`{rule['alert']}`" in page


def test_every_variable_is_a_setting() -> None:
    known = {row.variable for row in OPTIONS}
    files = [path for path in DEPLOY.rglob("*") if path.is_file() and path.suffix != ".py"]
    found = {name for path in files for name in VARIABLE.findall(path.read_text(encoding="utf-8"))}
    assert {"PAMO_STORE", "PAMO_KEYS", "PAMO_HOST"} <= found <= known


def test_probes_ask_for_what_needs_no_key_and_stops_have_their_time() -> None:
    pod = _manifests()["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    open_to_all = {one.path for one in OPERATIONS if one.roles is None}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["path"] in open_to_all
    assert container["image"].endswith(f":{pamo.__version__}")
    assert container["resources"]["limits"]["memory"]
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    stop = int(_manifests()["ConfigMap"]["data"]["PAMO_STOP_SECONDS"])
    assert pause + stop < pod["terminationGracePeriodSeconds"]
    compose = yaml.safe_load(_read("compose.yaml"))["services"]
    assert int(compose["pamo"]["stop_grace_period"].rstrip("s")) > Settings().stop_seconds
    seconds = re.search(r"^TimeoutStopSec=(\d+)$", _read("systemd/pamo.service"), re.MULTILINE)
    assert seconds is not None
    assert int(seconds[1]) > Settings().stop_seconds


def test_the_manifests_settings_are_ones_that_start() -> None:
    """All variables of the compose file and of the ConfigMap, with what their secrets would hold."""
    key = f"shop:decide+feedback:{'0' * 64}"
    stored = {"PAMO_STORE": "postgresql://pamo@db/pamo", "PAMO_KEYS": key, "PAMO_HOST": "0.0.0.0"}
    settings = load_settings(environ={**_manifests()["ConfigMap"]["data"], **stored})
    assert settings.objectives == ("price", "taste", "service")
    given = yaml.safe_load(_read("compose.yaml"))["services"]["pamo"]["environment"]
    filled = {name: re.sub(r"\$\{\w+(?::-([^}]*)|:\?[^}]*)?\}", r"\1", text) for name, text in given.items()}
    assert load_settings(environ={**filled, "PAMO_KEYS": key}).store == "postgresql://pamo@db/pamo"


def test_the_image_is_no_roots_and_copies_what_is_there() -> None:
    found = list(steps(CONTAINERFILE.read_text(encoding="utf-8")))
    last = dict(found)
    assert last["USER"].isdigit()
    assert (
        int(last["USER"]) == _manifests()["Deployment"]["spec"]["template"]["spec"]["securityContext"]["runAsUser"] > 0
    )
    assert "/readyz" in last["HEALTHCHECK"]
    copied = [given.split()[:-1] for word, given in found if word == "COPY" and "--from" not in given]
    assert len(copied) >= 3
    for source in (one for sources in copied for one in sources):
        assert (ROOT / source).exists(), source


def test_files_that_name_each_other_are_there() -> None:
    compose = yaml.safe_load(_read("compose.yaml"))["services"]
    for service in compose.values():
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert not source.startswith(".") or (DEPLOY / source).exists(), source
    prometheus = yaml.safe_load(_read("prometheus/prometheus.yml"))
    assert all((DEPLOY / "prometheus" / name).exists() for name in prometheus["rule_files"])
    source = yaml.safe_load(_read("grafana/provisioning/datasources/prometheus.yaml"))["datasources"][0]["uid"]
    assert {panel["datasource"]["uid"] for panel in json.loads(_read("grafana/pamo.json"))["panels"]} == {source}


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    systemd = shutil.which("systemd-analyze")
    if systemd is None:
        pytest.skip("systemd is not installed, and judges its own units")
    unit = tmp_path / "pamo.service"
    unit.write_text(_read("systemd/pamo.service").replace("/opt/pamo/venv/bin/pamo", "/bin/true"), encoding="utf-8")
    done = subprocess.run([systemd, "verify", str(unit)], check=False, capture_output=True, text=True)
    mine = [line for line in done.stderr.splitlines() if "pamo.service" in line]
    assert mine == []
