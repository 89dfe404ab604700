"""Settings: every way to set them, which one counts, and a sentence for each thing that is wrong."""

import dataclasses
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pamo.errors import ConflictError, InputError
from pamo.service.keys import Key
from pamo.service.server import open_engine
from pamo.service.settings import OPTIONS, Settings, is_loopback, load_settings
from pamo.service.settings_file import as_file, shown, table
from pamo.store import Objective, Setup
from pamo.store.addresses import shown as shown_address

ZEROS, ONES = 64 * "0", 64 * "1"
ROWS = {row.name: row for row in OPTIONS}

# For each option: as text (environment and flags), as TOML, and the value that both are.
WAYS: dict[str, tuple[str, str, Any]] = {
    "store": ("shop.db", '"shop.db"', "shop.db"),
    "objectives": (
        "price: 0..500, lower is better, taste: 1..5,quiet",
        '["price: 0..500, lower is better", "taste: 1..5", "quiet"]',
        ("price: 0..500, lower is better", "taste: 1..5", "quiet"),
    ),
    "overall": ("1..5", '"1..5"', "overall: 1..5"),
    "features": ("stars, pool: yes or no", '["stars", "pool: yes or no"]', ("stars: number", "pool: yes or no")),
    "user_features": ("age, vip: yes or no", '["age", "vip: yes or no"]', ("age: number", "vip: yes or no")),
    "half_life": (
        "users: 40 rounds,arms:90 days",
        '"users: 40 rounds, arms: 90 days"',
        "users: 40 rounds, arms: 90 days",
    ),
    "redeclare": ("yes", "true", True),
    "arms": ("A=Anchor Inn, B", '["A=Anchor Inn", "B"]', ("A=Anchor Inn", "B")),
    "policy": ("prts", '"prts"', "prts"),
    "accept_new_arms": ("yes", "true", True),
    "explore_at_most": ("0.1", "0.1", 0.1),
    "explore_within": ("0.25", "0.25", 0.25),
    "control": ("5%", '"5%"', 0.05),
    "control_policy": ("arm:A", '"arm:A"', "arm:A"),
    "experiment": ("autumn", '"autumn"', "autumn"),
    "seed": ("7", "7", 7),
    "expires_after_days": ("0.5", "0.5", 0.5),
    "host": ("localhost", '"localhost"', "localhost"),
    "port": ("0", "0", 0),
    "tls_certificate": ("cert.pem", '"cert.pem"', "cert.pem"),
    "tls_key": ("key.pem", '"key.pem"', "key.pem"),
    "stop_seconds": ("2", "2", 2.0),
    "max_body_bytes": ("1000", "1_000", 1000),
    "max_batch": ("5", "5", 5),
    "max_cost": ("1000", "1_000", 1000),
    "max_new_arms": ("10", "10", 10),
    "rate": ("12.5", "12.5", 12.5),
    "burst": ("3", "3", 3),
    "timeout_seconds": ("1", "1.0", 1.0),
    "max_waiting": ("9", "9", 9),
    "idle_seconds": ("60", "60.0", 60.0),
    "max_connections": ("100", "100", 100),
    "max_connections_per_address": ("20", "20", 20),
    "log_level": ("debug", '"debug"', "debug"),
    "access_log": ("1", "true", True),
    "keys": (
        f"shop:decide+feedback:{ZEROS},ops:admin:{ONES}",
        f'[{{name = "shop", roles = ["decide", "feedback"], sha256 = "{ZEROS}"}}, '
        f'{{name = "ops", roles = ["admin"], sha256 = "{ONES}"}}]',
        (Key("shop", ["feedback", "decide"], ZEROS), Key("ops", ["admin"], ONES)),
    ),
}
NEEDS = {"overall": "objectives", "redeclare": "objectives", "tls_certificate": "tls_key", "tls_key": "tls_certificate"}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cert.pem").write_text("certificate")
    (tmp_path / "key.pem").write_text("key")


def toml_of(*names: str) -> str:
    lines: list[str] = []
    for name in sorted(names, key=lambda name: name != "keys"):  # `keys` has no section, and stands first
        head = "" if name == "keys" else f"[{ROWS[name].section}]\n"
        if head in lines:
            lines.insert(lines.index(head) + 1, f"{name} = {WAYS[name][1]}\n")
        else:
            lines += [head, f"{name} = {WAYS[name][1]}\n"]
    return "".join(lines)


def refused(flags: dict[str, Any] | None = None, environ: dict[str, str] | None = None, file: str | None = None) -> str:
    path = None
    if file is not None:
        path = Path("given.toml")
        path.write_text(file, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_settings(flags, environ, path)
    return str(caught.value)


# Every option, every way


def test_this_file_knows_every_option():
    assert list(WAYS) == list(ROWS)
    assert all(value != ROWS[name].default for name, (_, _, value) in WAYS.items())


@pytest.mark.parametrize("name", WAYS)
def test_each_option_is_set_by_flag_variable_and_file(name):
    names = [name, *([NEEDS[name]] if name in NEEDS else [])]
    expected = Settings(**{one: WAYS[one][2] for one in names})
    assert getattr(expected, name) == WAYS[name][2]
    assert load_settings({one: WAYS[one][0] for one in names}) == expected
    assert load_settings(None, {ROWS[one].variable: WAYS[one][0] for one in names}) == expected
    Path("given.toml").write_text(toml_of(*names), encoding="utf-8")
    assert load_settings(None, None, Path("given.toml")) == expected
    for row in OPTIONS:
        assert row.name in names or getattr(expected, row.name) == row.default, "nothing else is changed"


@pytest.mark.parametrize("name", WAYS)
def test_flags_stand_above_the_environment_and_that_above_the_file(name):
    """The file has one value, the environment the default's, and so on: what is nearest counts."""
    others = {NEEDS[name]: WAYS[NEEDS[name]][0]} if name in NEEDS else {}
    Path("pamo.toml").write_text(toml_of(name), encoding="utf-8")
    second = {"store": "b.db", "host": "127.0.0.2", "policy": "greedy", "log_level": "error", "objectives": "x"}
    second |= {"overall": "1..9", "arms": "Z", "accept_new_arms": "no", "access_log": "off", "keys": f"z:admin:{ZEROS}"}
    second |= {"tls_certificate": "key.pem", "tls_key": "cert.pem", "explore_at_most": "0.5", "features": "x"}
    second |= {"half_life": "2 days", "redeclare": "no", "user_features": "x"}
    second |= {"control": "0.5", "control_policy": "caller"}
    text = second.get(name, "4")
    row = ROWS[name]
    from_file = getattr(load_settings(others), name)
    from_environment = getattr(load_settings(others, {row.variable: text}), name)
    assert from_file == WAYS[name][2]
    assert from_environment == row.read(text, "") != from_file
    assert getattr(load_settings(others | {name: WAYS[name][0]}, {row.variable: text}), name) == from_file
    assert getattr(load_settings(others | {name: None}, {row.variable: text}), name) == from_environment


def test_the_defaults_are_those_of_the_table():
    settings = load_settings()
    assert settings == Settings()
    assert {row.name: getattr(settings, row.name) for row in OPTIONS} == {row.name: row.default for row in OPTIONS}
    assert (settings.host, settings.port, settings.store, settings.keys) == ("127.0.0.1", 8000, "pamo.db", ())


def test_settings_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().port = 1  # type: ignore[misc]
    assert dataclasses.replace(Settings(), port=1).port == 1


# Files


def test_the_file_of_the_folder_is_read_unless_another_is_named():
    Path("pamo.toml").write_text("[server]\nport = 1\n")
    Path("other.toml").write_text("[server]\nport = 2\n")
    Path("third.toml").write_text("[server]\nport = 3\n")
    assert load_settings().port == 1
    assert load_settings(None, {"PAMO_CONFIG": ""}).port == 1
    assert load_settings(None, {"PAMO_CONFIG": "other.toml"}).port == 2
    assert load_settings(None, {"PAMO_CONFIG": "other.toml"}, "third.toml").port == 3


def test_keys_are_tables_of_the_file():
    Path("pamo.toml").write_text(f'[[keys]]\nname = "shop"\nroles = ["decide"]\nsha256 = "{ZEROS}"\n')
    assert load_settings().keys == (Key("shop", ["decide"], ZEROS),)


def test_objectives_may_be_tables():
    Path("pamo.toml").write_text(
        '[engine]\noverall = {low = 1, high = 5}\nobjectives = ["taste: 1..5", '
        '{name = "price", low = 0, high = 500, lower_is_better = true}]\n'
    )
    price = Objective("price", 0, 500, lower_is_better=True)
    assert load_settings().setup == Setup((Objective("taste", 1, 5), price), Objective("overall", 1, 5))


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("[server]\nprt = 1", ["given.toml: unknown setting of [server] 'prt'", "did you mean 'port'", "host"]),
        ("[servr]\nport = 1", ["given.toml: unknown section 'servr'", "did you mean 'server'"]),
        ("port = 1", ["given.toml: expected port in the section [server]", "outside"]),
        ("[limits]\nport = 1", ["given.toml: expected port in the section [server]", "got it in [limits]"]),
        ("server = 3", ["given.toml: expected [server] to be a section, got 3"]),
        ("[server]\nport = 'x'", ["expected port of [server] in given.toml", "whole number from 0 to 65535", "'x'"]),
        ("[server]\nport = 65536", ["port of [server]", "got 65536"]),
        ("[server]\nport = -1", ["got -1"]),
        ("[server]\nport = true", ["got True"]),
        ("[server]\nport = 80.0", ["got 80.0"]),
        ("[server]\nhost = ''", ["host of [server]", "an address", "got ''"]),
        ("[server]\nstop_seconds = -1", ["a number of at least 0", "got -1"]),
        ("[limits]\nrate = nan", ["rate of [limits]", "got nan"]),
        ("[limits]\nrate = inf", ["got inf"]),
        ("[limits]\nrate = 1979-05-27", ["rate of [limits]", "a number"]),
        ("[limits]\nburst = 0", ["a whole number of at least 1", "got 0"]),
        ("[limits]\ntimeout_seconds = 0", ["a number above 0", "got 0"]),
        ("[limits]\nmax_body_bytes = 0", ["max_body_bytes of [limits]", "at least 1"]),
        ("[log]\naccess_log = 1", ["access_log of [log]", "true or false", "got 1"]),
        ("[log]\nlog_level = 'loud'", ["debug, info, warning or error", "got 'loud'"]),
        ("[engine]\nseed = -1", ["seed of [engine]", "got -1"]),
        ("[engine]\nobjectives = 'price'", ["objectives of [engine]", "a list of objectives", "got 'price'"]),
        ("[engine]\nobjectives = [3]", ["objectives of [engine] in given.toml: expected an objective", "got 3"]),
        ("[engine]\nobjectives = [{nam = 'x'}]", ["expected an objective with name, low, high, lower_is_better"]),
        ("[engine]\nobjectives = [{name = 'x, y'}]", ["objectives of [engine]", "x, y"]),
        ("[engine]\nobjectives = [{name = 'x', low = 'a'}]", ["objectives of [engine]"]),
        ("[engine]\nobjectives = [{name = 'x', lower_is_better = 'no'}]", ["objectives of [engine]", "'no'"]),
        ("[engine]\narms = 'A'", ["arms of [engine]", "a list of arms", "got 'A'"]),
        ("[engine]\narms = ['A', '']", ["a list of arms"]),
        ("[engine]\narms = ['A=']", ["a list of arms"]),
        ("[engine]\narms = [1]", ["a list of arms"]),
        ("[engine]\narms = ['A', 'A=Anchor']", ["arms of [engine] in given.toml: expected each arm once", "'A'"]),
        ("[engine]\noverall = 'rating: 1..5'", ["overall of [engine]", "a scale such as 1..5", "rating"]),
        ("[engine]\noverall = 3", ["a scale such as 1..5", "got 3"]),
        ("[engine]\npolicy = 'prucb-ph'", ["policy of [engine] in given.toml: unknown policy", "'prucb-hp'"]),
        ("[engine]\nstore = 'mysql://ann:secret@db'", ["store of [engine]", "postgresql://…", "mysql://ann:…@db"]),
        ("[keys]\nname = 'x'", ["[[keys]] in given.toml", "a list of keys", "type dict"]),
        ("keys = [3]", ["[[keys]] in given.toml"]),
        ("keys = ['pamo_secret']", ["[[keys]] in given.toml", "NAME:ROLE+ROLE:SHA256"]),
        ("[[keys]]\nname = 'shop'\nroles = ['decide']\nsha256 = 'pamo_secret'", ["that is the key itself"]),
        ("[server]\nport = ?", ["expected TOML in 'given.toml'", "line 2"]),
    ],
)
def test_a_wrong_file_is_a_sentence_that_says_where(file, words):
    message = refused(file=file)
    for word in words:
        assert word in message
    assert "secret" not in message
    assert "\n" not in message


def test_files_that_cannot_be_read_are_sentences(tmp_path):
    with pytest.raises(InputError, match=r"cannot read the settings in 'none\.toml'.*`pamo init`"):
        load_settings(None, None, "none.toml")
    with pytest.raises(InputError, match="cannot read the settings in"):
        load_settings(None, None, tmp_path)
    Path("bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="expected UTF-8 text"):
        load_settings(None, None, "bytes.toml")


# The environment


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"PAMO_PROT": "1"}, ["unknown variable 'PAMO_PROT'", "did you mean 'PAMO_PORT'"]),
        ({"PAMO_CONFG": "x"}, ["did you mean 'PAMO_CONFIG'"]),
        ({"PAMO_PORT": "http"}, ["expected PAMO_PORT to be a whole number from 0 to 65535, got 'http'"]),
        ({"PAMO_RATE": "fast"}, ["expected PAMO_RATE to be a number of at least 0, got 'fast'"]),
        ({"PAMO_ACCESS_LOG": "maybe"}, ["expected PAMO_ACCESS_LOG to be true or false, got 'maybe'"]),
        ({"PAMO_OBJECTIVES": "a,,b"}, ["PAMO_OBJECTIVES: expected an objective", "got ''"]),
        ({"PAMO_ARMS": "A,,B"}, ["expected PAMO_ARMS to be a list of arms"]),
        ({"PAMO_KEYS": "pamo_secret"}, ["PAMO_KEYS: expected a key as NAME:ROLE+ROLE:SHA256"]),
        ({"PAMO_STORE": "redis://:secret@db"}, ["expected PAMO_STORE", "redis://:…@db"]),
    ],
)
def test_a_wrong_variable_is_a_sentence_that_names_it(environ, words):
    message = refused(None, environ)
    for word in words:
        assert word in message
    assert "secret" not in message


def test_other_variables_are_let_through():
    others = {
        "PATH": "x",
        "PAMO": "x",
        "PAMO_BROWSER": "x",
        "PAMO_URL": "http://x",
        "PAMO_KEY": "pamo_x",
        "PAMO_SEED": "",
    }
    assert load_settings(None, others) == Settings()


def test_what_kubernetes_sets_beside_a_service_named_pamo_is_let_through():
    links = {
        "PAMO_SERVICE_HOST": "10.0.0.1",
        "PAMO_SERVICE_PORT": "8000",
        "PAMO_SERVICE_PORT_HTTP": "8000",
        "PAMO_PORT": "tcp://10.0.0.1:8000",
        "PAMO_PORT_8000_TCP": "tcp://10.0.0.1:8000",
        "PAMO_PORT_8000_TCP_PROTO": "tcp",
        "PAMO_DB_SERVICE_HOST": "10.0.0.2",
        "PAMO_DB_PORT": "tcp://10.0.0.2:5432",
        "PAMO_DB_PORT_5432_TCP_ADDR": "10.0.0.2",
    }
    assert load_settings(None, links) == Settings()


@pytest.mark.parametrize(("text", "value"), [("TRUE", True), ("on", True), ("0", False), ("No", False), ("off", False)])
def test_yes_and_no_in_words(text, value):
    Path("pamo.toml").write_text(f"[log]\naccess_log = {str(not value).lower()}\n")
    assert load_settings(None, {"PAMO_ACCESS_LOG": text}).access_log is value


# Flags and values


def test_flags_may_be_values():
    keys = (Key("shop", ["decide"], ZEROS),)
    settings = load_settings({"port": 9, "keys": keys, "objectives": ["a", "b"], "store": Path("x.db"), "seed": None})
    assert (settings.port, settings.keys, settings.objectives, settings.store) == (9, keys, ("a", "b"), "x.db")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"prt": "1"}, "unknown setting 'prt'; did you mean 'port'"),
        ({"port": "x"}, "expected --port to be a whole number from 0 to 65535, got 'x'"),
        ({"port": 1.5}, "expected --port to be a whole number from 0 to 65535, got 1.5"),
        ({"accept_new_arms": "maybe"}, "expected --accept-new-arms to be true or false, got 'maybe'"),
        ({"overall": "1..5"}, "expected objectives beside overall"),
        ({"store": "memory:"}, "expected objectives for a store in memory"),
        ({"objectives": "a,a"}, "objectives of different names"),
        ({"objectives": "a,overall"}, "none of them 'overall'"),
        ({"objectives": "a: 5..1"}, "scale of 'a' to go from a lower to a higher"),
        ({"objectives": "a", "overall": "5..1"}, "scale of 'overall' to go from a lower to a higher"),
        ({"arms": 300 * "x"}, "an arm of 1 to 256 characters"),
        ({"arms": "A=" + 300 * "x"}, "an arm's name of 1 to 256 characters"),
        ({"tls_key": "key.pem"}, "tls_certificate and tls_key together, got tls_key without tls_certificate"),
        ({"tls_certificate": "cert.pem"}, "got tls_certificate without tls_key"),
        ({"tls_certificate": "cert.pem", "tls_key": "none.pem"}, "expected tls_key to be a file, got 'none.pem'"),
        ({"tls_certificate": ".", "tls_key": "key.pem"}, "expected tls_certificate to be a file, got '.'"),
    ],
)
def test_a_wrong_flag_or_combination_is_a_sentence(flags, message):
    assert message in refused(flags)


def test_a_wrong_value_in_python_is_a_sentence():
    wrong: Any = "80"
    with pytest.raises(InputError, match="expected port to be a whole number from 0 to 65535, got '80'"):
        Settings(port=wrong)
    wrong = None
    with pytest.raises(InputError, match="expected store to be memory:"):
        Settings(store=wrong)


def test_what_the_engine_gets():
    settings = load_settings(
        {"objectives": "price: 0..9, lower is better, taste", "arms": "A=Anchor Inn, B = Bristol,C"}
    )
    assert settings.setup == Setup((Objective("price", 0, 9, lower_is_better=True), Objective("taste")))
    assert settings.named_arms == {"A": "Anchor Inn", "B": "Bristol", "C": None}
    assert settings.expires_after == 30 * 24 * 60 * 60
    assert Settings().setup is None


# Who can reach it


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LOCALHOST"])
def test_loopback_needs_no_key(host):
    assert is_loopback(host)
    assert load_settings({"host": host}).host == host


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.0.1", "example.org", "localhost.example.org", "127.0.0.1.nip.io"]
)
def test_any_other_address_needs_a_key(host):
    assert not is_loopback(host)
    message = refused({"host": host})
    assert "at least one key" in message
    assert host in message
    assert "`pamo key`" in message
    with pytest.raises(InputError, match="at least one key"):
        Settings(host=host)
    assert load_settings({"host": host, "keys": f"shop:decide:{ZEROS}"}).host == host


# Secrets


@pytest.mark.parametrize(
    ("address", "hidden"),
    [
        ("postgresql://ann:secret@db/pamo", "postgresql://ann:…@db/pamo"),
        ("postgresql://ann:se:cr/et@secret@db:5432/pamo", "postgresql://ann:…@db:5432/pamo"),
        ("postgresql://:secret@db", "postgresql://:…@db"),
        ("postgresql://db/pamo?password=secret&a=1", "postgresql://db/pamo?password=…&a=1"),
        ("postgresql://db/pamo?a=1&sslpassword=secret", "postgresql://db/pamo?a=1&sslpassword=…"),
        ("postgresql://ann@db:5432/pamo", "postgresql://ann@db:5432/pamo"),
        ("postgresql://db:5432/pamo", "postgresql://db:5432/pamo"),
        ("a@b:c.db", "a@b:c.db"),
    ],
)
def test_passwords_are_not_shown(address, hidden):
    assert shown_address(address) == hidden
    settings = Settings(store=address)
    assert settings.store == address
    for text in (repr(settings), shown(settings)):
        assert "secret" not in text
        assert hidden in text


def test_what_is_shown_is_toml_of_the_effective_settings():
    keys = (Key("shop", ["decide"], ZEROS), Key("ops", ["admin"], ONES))
    settings = Settings(objectives=("a", "b"), port=0, keys=keys, host="0.0.0.0", seed=3)
    document = tomllib.loads(shown(settings))
    assert document["engine"]["objectives"] == ["a", "b"]
    assert document["engine"]["seed"] == 3
    assert "overall" not in document["engine"]
    assert document["server"] == {"host": "0.0.0.0", "port": 0, "stop_seconds": 30}
    assert document["keys"] == [{"name": "shop", "roles": ["decide"]}, {"name": "ops", "roles": ["admin"]}]
    assert ZEROS not in shown(settings)


# The file that `pamo init` writes

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
NAMES = TEXTS.filter(lambda text: text.strip() and "=" not in text).map(str.strip)
OBJECTIVE = st.sampled_from(
    ["price: 0..500, lower is better", "taste: 1..5", "a b", "ü: -1.5..2e3", "x, higher is better"]
)
POSITIVE = st.floats(min_value=1e-300, max_value=1e300)
COUNT = st.integers(1, 2**63 - 1)
KEYS = st.builds(
    Key,
    st.from_regex(r"[a-z0-9][a-z.-]{0,9}", fullmatch=True),
    st.sets(st.sampled_from(["decide", "feedback", "admin"]), min_size=1),
    st.integers(0, 2**256 - 1).map("{:064x}".format),
)


@st.composite
def any_settings(draw: st.DrawFn) -> Settings:
    objectives = tuple(draw(st.lists(OBJECTIVE, unique=True, max_size=4)))
    keys = tuple(draw(st.lists(KEYS, max_size=3, unique_by=(lambda key: key.name, lambda key: key.sha256))))
    arms = draw(st.dictionaries(NAMES, st.none() | NAMES, max_size=4))
    return Settings(
        store=draw(TEXTS.filter(lambda text: text.strip() and "://" not in text and text != "memory:")),
        objectives=objectives,
        overall=draw(st.none() | st.sampled_from(["1..5", "0..10, lower is better"])) if objectives else None,
        arms=tuple(arm if name is None else f"{arm}={name}" for arm, name in arms.items()),
        policy=draw(st.sampled_from(["recommended", "prts", "oful:epsilon=0.25"])),
        accept_new_arms=draw(st.booleans()),
        seed=draw(st.none() | st.integers(0, 2**63 - 1)),
        expires_after_days=draw(POSITIVE),
        host=draw(st.sampled_from(["127.0.0.1", "::1"] + ["0.0.0.0"] * bool(keys))),
        port=draw(st.integers(0, 65535)),
        stop_seconds=draw(st.just(0.0) | POSITIVE),
        max_body_bytes=draw(COUNT),
        max_batch=draw(COUNT),
        max_cost=draw(COUNT),
        max_new_arms=draw(COUNT),
        rate=draw(st.just(0.0) | POSITIVE),
        burst=draw(COUNT),
        timeout_seconds=draw(POSITIVE),
        max_waiting=draw(COUNT),
        idle_seconds=draw(POSITIVE),
        max_connections=draw(COUNT),
        max_connections_per_address=draw(COUNT),
        log_level=draw(st.sampled_from(["debug", "info", "warning", "error"])),
        access_log=draw(st.booleans()),
        keys=keys,
    )


def test_the_file_of_the_defaults_loads_as_the_defaults():
    text = as_file(Settings())
    Path("pamo.toml").write_text(text, encoding="utf-8")
    assert load_settings() == Settings()
    for row in OPTIONS:
        assert row.section == "keys" or re.search(rf"^(# )?{row.name} = ", text, re.MULTILINE), row.name
    assert all(len(line) <= 120 for line in text.splitlines())


def test_its_examples_load_when_their_comment_signs_are_taken_away():
    text = re.sub(r"^# (\w+ = |\[)", r"\1", as_file(Settings()), flags=re.MULTILINE)
    Path("pamo.toml").write_text(text.replace('"…"', f'"{ZEROS}"'), encoding="utf-8")
    settings = load_settings()
    assert settings.keys == (Key("shop", ["decide", "feedback"], ZEROS),)
    assert settings.projects["films"].objectives == ("story: 1..5", "acting: 1..5")
    for row in OPTIONS:
        if row.example is not None:
            assert getattr(settings, row.name) == row.take(row.example, "") != row.default


@given(any_settings())
def test_whatever_is_set_loads_back_from_its_file(settings):
    path = Path("written.toml")
    path.write_text(as_file(settings), encoding="utf-8")
    assert load_settings(None, None, path) == settings


def test_the_documentations_table_has_every_option():
    page = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")
    assert table() in page, "run: python -m tests.documents"
    assert table().count("\n") == len(OPTIONS) + 2


def test_a_control_group_starts_with_the_service_and_outlives_it(caplog):
    control = Settings(store="shop.db", objectives=("taste",), arms=("A",), control=0.05, control_policy="arm:A")
    for _ in range(2):
        engine = open_engine(control)
        running = engine.store.running
        assert running is not None
        assert (running.control, running.policy) == (0.05, "arm:A")
        assert len(engine.store.experiments()) == 1
        engine.store.close()
    with pytest.raises(ConflictError, match="the experiment 'control' is running, and stays as it is"):
        open_engine(dataclasses.replace(control, control=0.1))
    with pytest.raises(ConflictError, match="'control' is running: end it first"):
        open_engine(dataclasses.replace(control, experiment="autumn"))
    engine = open_engine(dataclasses.replace(control, control=None))
    engine.end_experiment()
    engine.store.close()
    engine = open_engine(control)
    assert engine.store.running is None
    assert "'control' was ended: to start another, name it by --experiment" in caplog.text
    engine.store.close()
