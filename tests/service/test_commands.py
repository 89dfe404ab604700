"""The commands `serve`, `init` and `key`, by what they print, write and refuse."""

import argparse
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pamo import cli, service
from pamo.cli import main
from pamo.service.keys import Key, Keyring, Role
from pamo.service.settings import OPTIONS, Settings, load_settings

ZEROS = 64 * "0"


def run(line: str) -> int:
    try:
        return main(shlex.split(line))
    except SystemExit as exit:  # argparse leaves this way
        return int(exit.code or 0)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for row in OPTIONS:
        monkeypatch.delenv(row.variable, raising=False)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Stand in for the server itself, and keep what it was handed."""
    handed: list[Settings] = []

    def serve(settings: Settings) -> int:
        handed.append(settings)
        return 7

    monkeypatch.setattr(service, "serve", serve, raising=False)
    return handed


# serve


def test_serve_hands_over_the_settings_and_returns_the_servers_code(served):
    assert run("serve --objectives price,taste,service --arms A,B,C") == 7
    assert served == [Settings(objectives=("price", "taste", "service"), arms=("A", "B", "C"))]


def test_every_option_has_a_flag_that_reaches_the_settings(served, tmp_path):
    (tmp_path / "c.pem").touch()
    (tmp_path / "k.pem").touch()
    line = (
        "serve --store x.db --objectives 'price: 0..9, lower is better, taste' --objectives quiet --overall 1..5 "
        "--arms 'A=Anchor Inn' --arms B,C --policy prts --accept-new-arms --seed 3 --expires-after-days 2 "
        "--features 'stars: number' --explore-at-most 0.5 --explore-within 0.2 "
        "--control 5% --control-policy caller --experiment autumn "
        "--user-features age --half-life '4 days' --redeclare "
        "--host ::1 --port 0 --tls-certificate c.pem --tls-key k.pem --stop-seconds 1 "
        "--max-body-bytes 9 --max-batch 8 --max-cost 4 --max-new-arms 3 --rate 0.5 --burst 7 "
        "--timeout-seconds 6 --max-waiting 5 --idle-seconds 2 --max-connections 11 --max-connections-per-address 10 "
        f"--log-level error --access-log --keys a:decide:{ZEROS}"
    )
    assert run(line) == 7
    (settings,) = served
    expected = Settings(
        store="x.db",
        objectives=("price: 0..9, lower is better", "taste", "quiet"),
        overall="1..5",
        arms=("A=Anchor Inn", "B", "C"),
        features=("stars: number",),
        user_features=("age: number",),
        half_life="users: 4 days, arms: 4 days",
        redeclare=True,
        policy="prts",
        explore_at_most=0.5,
        explore_within=0.2,
        control=0.05,
        control_policy="caller",
        experiment="autumn",
        accept_new_arms=True,
        seed=3,
        expires_after_days=2,
        host="::1",
        port=0,
        tls_certificate="c.pem",
        tls_key="k.pem",
        stop_seconds=1,
        max_body_bytes=9,
        max_batch=8,
        max_cost=4,
        max_new_arms=3,
        rate=0.5,
        burst=7,
        timeout_seconds=6,
        max_waiting=5,
        idle_seconds=2,
        max_connections=11,
        max_connections_per_address=10,
        log_level="error",
        access_log=True,
        keys=(Key("a", ["decide"], ZEROS),),
    )
    assert settings == expected
    assert all(getattr(expected, row.name) != row.default for row in OPTIONS)


def test_file_environment_and_flags_come_together(served, tmp_path, monkeypatch):
    (tmp_path / "pamo.toml").write_text("[server]\nport = 1\n[limits]\nburst = 1\nrate = 1\n[log]\naccess_log = true\n")
    monkeypatch.setenv("PAMO_BURST", "2")
    monkeypatch.setenv("PAMO_RATE", "2")
    assert run("serve --rate 3 --no-access-log") == 7
    assert served == [Settings(port=1, burst=2, rate=3, access_log=False)]
    (tmp_path / "other.toml").write_text("[server]\nport = 9\n")
    assert run("serve --config other.toml") == 7
    assert served[1] == Settings(port=9, burst=2, rate=2)


def test_check_prints_what_the_settings_come_to_and_starts_nothing(served, capsys, monkeypatch):
    monkeypatch.setenv("PAMO_STORE", "postgresql://ann:secret@db/pamo")
    monkeypatch.setenv("PAMO_KEYS", f"shop:decide:{ZEROS}")
    assert run("serve --check --port 9 --host 0.0.0.0") == 0
    assert served == []
    printed = capsys.readouterr().out
    document = tomllib.loads(printed)
    assert document["server"]["port"] == 9
    assert document["engine"]["store"] == "postgresql://ann:…@db/pamo"
    assert document["keys"] == [{"name": "shop", "roles": ["decide"]}]
    assert "secret" not in printed
    assert ZEROS not in printed


BAD: list[tuple[str, list[str]]] = [
    ("serve --port x", ["expected --port to be a whole number from 0 to 65535, got 'x'"]),
    ("serve --port 65536", ["--port", "65536"]),
    ("serve --host 0.0.0.0", ["at least one key to listen on 0.0.0.0", "`pamo key`"]),
    ("serve --prt 3", ["unrecognized arguments", "--prt"]),
    ("serve --objectives a,a", ["objectives of different names"]),
    ("serve --config none.toml", ["cannot read the settings in 'none.toml'", "`pamo init`"]),
    ("serve --tls-key key.pem", ["tls_certificate and tls_key together"]),
    ("serve --keys pamo_secret", ["--keys", "NAME:ROLE+ROLE:SHA256"]),
    ("serve --check --log-level loud", ["--log-level", "debug, info, warning or error", "'loud'"]),
    ("init no/such/folder.toml", ["cannot write 'no/such/folder.toml'"]),
    ("init .", ["'.'"]),
    ("key", ["NAME"]),
    ("key shop", ["at least one --role", "decide, feedback, admin"]),
    ("key shop --role decyde", ["unknown role 'decyde'", "did you mean 'decide'"]),
    ("key 'my shop' --role decide", ["key's name", "'my shop'"]),
]


@pytest.mark.parametrize(("line", "words"), BAD, ids=[line for line, _ in BAD])
def test_bad_input_is_one_sentence_and_exit_code_2(line, words, capsys, tmp_path, served):
    assert run(line) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("pamo: ")
    assert err.count("\n") == 1
    assert "secret" not in err
    for word in words:
        assert word in err
    assert served == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("there", [False, True])
def test_serve_without_objectives_says_what_to_do_and_leaves_nothing(there, capsys, tmp_path):
    if there:  # a file that was left empty is no store either
        (tmp_path / "pamo.db").touch()
    assert run("serve --port 0") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "there is no store at pamo.db yet" in err
    assert "--objectives" in err
    assert "`pamo init`" in err
    if not there:
        assert list(tmp_path.iterdir()) == []


def test_help_has_every_option_with_its_default_and_examples(capsys):
    assert run("serve --help") == 0
    text = " ".join(capsys.readouterr().out.split())
    for row in OPTIONS:
        assert row.flag in text
        assert row.help in text
    assert "Default: 8000." in text
    assert "Default: 127.0.0.1." in text


def test_the_examples_of_the_help_are_settings_that_load(capsys, served, tmp_path):
    (tmp_path / "shop.toml").write_text("")
    parser = cli._parser()
    (action,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    found = 0
    for command in ("serve", "init", "key"):
        epilog: Any = action.choices[command].epilog
        for line in re.findall(r"^  pamo (.+?)(?:   .*)?$", epilog, re.MULTILINE):
            found += 1
            assert run(f"{line} --force" if line.startswith("init") else line) in (0, 7), line
    assert found >= 9
    assert len(served) == 4
    assert served[2].named_arms == {"A": "Anchor Inn", "B": "Bristol"}
    capsys.readouterr()


# init


def test_init_writes_a_file_that_loads_as_the_defaults(tmp_path, capsys):
    assert run("init") == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "pamo.toml" in err
    assert load_settings() == Settings()
    text = (tmp_path / "pamo.toml").read_text(encoding="utf-8")
    for row in OPTIONS:
        assert row.help.split(".")[0] in " ".join(text.replace("\n# ", " ").split())


def test_init_writes_over_nothing_unless_told(tmp_path, capsys):
    target = tmp_path / "shop.toml"
    target.write_text("mine")
    assert run("init shop.toml") == 2
    assert "there is a 'shop.toml' already" in capsys.readouterr().err
    assert target.read_text() == "mine"
    assert run("init shop.toml --force") == 0
    assert load_settings(None, None, target) == Settings()


# key


def test_a_key_is_printed_once_and_its_lines_let_it_in(tmp_path, capsys, monkeypatch):
    assert run("key shop --role decide --role feedback") == 0
    out, err = capsys.readouterr()
    secret = out.strip()
    assert out == f"{secret}\n"
    assert re.fullmatch(r"pamo_[\w-]{43}", secret)
    assert secret not in err
    assert list(tmp_path.iterdir()) == [], "it is kept nowhere"

    expected = ("shop", frozenset({Role.DECIDE, Role.FEEDBACK}))
    lines = err[err.index("[[keys]]") : err.index("or to the environment")]
    (tmp_path / "pamo.toml").write_text(lines, encoding="utf-8")
    assert Keyring(load_settings().keys).roles_for(f"Bearer {secret}") == expected
    (tmp_path / "pamo.toml").unlink()
    variable, _, value = err.splitlines()[-1].partition("=")
    assert Keyring(load_settings(None, {variable: value}).keys).roles_for(f"Bearer {secret}") == expected


def test_each_key_is_another_one(capsys):
    assert run("key a --role admin") == run("key a --role admin") == 0
    first, second = capsys.readouterr().out.split()
    assert first != second
