"""Everything that can be set of the service, and where it is set: defaults, a TOML file, the environment, flags."""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from pamo.contract.limits import check_text
from pamo.contract.objectives import objective, objectives
from pamo.errors import InputError, unknown_name
from pamo.service.keys import Key
from pamo.service.options import (
    ADDRESS,
    ARMS,
    CONTROL_POLICY,
    FEATURES,
    HALF_LIFE,
    KEYS,
    OBJECTIVES,
    POLICY,
    SCALE,
    SHARE,
    YES_OR_NO,
    Option,
    number,
    option,
    option_of,
    text,
    whole,
)
from pamo.store import Objective, Setup
from pamo.store.addresses import shown
from pamo.store.rules import check_setup

FILE = "pamo.toml"
"""The file that is read if it is in the working folder."""

_OTHERS = frozenset({"PAMO_BROWSER", "PAMO_WRK", "PAMO_URL", "PAMO_KEY", "PAMO_SPECIALISED", "PAMO_THREADS"})
"""Variables of the client, the simulator and the tests, not of the service."""

# Kubernetes sets such variables in every container beside a service whose name begins with pamo.
_KUBERNETES = re.compile(r"PAMO_(.+_)?(SERVICE_(HOST|PORT)(_.+)?|PORT_\d+_(TCP|UDP|SCTP)(_.+)?)")
_KUBERNETES_PORT = re.compile(r"(tcp|udp|sctp)://.*", re.IGNORECASE)


PROJECT_LIMITS = ("max_batch", "max_cost", "max_new_arms", "rate", "burst", "max_waiting")
"""The limits that a project may have of its own; the others are of connections, which know of no project."""
_PROJECT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the service is to do. Each field is a row of the table from which all ways to set it are made.

    >>> Settings(objectives=("price: 0..500, lower is better", "taste"), port=8080).host
    '127.0.0.1'
    """

    store: str = option(
        "pamo.db",
        ADDRESS,
        "engine",
        "Where everything is kept: the path of a SQLite file, postgresql://…, or memory:, which keeps nothing.",
    )
    objectives: tuple[str, ...] = option(
        (),
        OBJECTIVES,
        "engine",
        "What arms are scored on: a name, with a scale and a direction where wanted. A new store needs them; one that "
        "was begun before has its own.",
        ("price: 0..500, lower is better", "taste: 1..5", "service"),
    )
    overall: str | None = option(
        None,
        SCALE,
        "engine",
        "The scale of the overall score that users give, beside objectives; 0..1 if not set.",
        "1..5",
    )
    features: tuple[str, ...] = option(
        (),
        FEATURES,
        "engine",
        "What may be known of arms before anything is seen of them: each a number, a yes or no, or a word. More can be "
        "declared while it runs.",
        ("stars: number", "pool: yes or no", "style: word"),
    )
    user_features: tuple[str, ...] = option(
        (),
        FEATURES,
        "engine",
        "What may be known of users before anything is seen of them, in the same way.",
        ("age: number", "business: yes or no"),
    )
    half_life: str | None = option(
        None,
        HALF_LIFE,
        "engine",
        "After how long what was learned counts half: rounds of a user and pulls of an arm, or days; none is never. As "
        "the store was told last, if it is not set.",
        "users: 40 rounds, arms: 90 days",
    )
    redeclare: bool = option(
        False,
        YES_OR_NO,
        "engine",
        "Whether a store that has other objectives or scales takes on those set here, for all that its journal holds.",
    )
    arms: tuple[str, ...] = option(
        (),
        ARMS,
        "engine",
        "Arms to offer from the start, each an id or ID=NAME. More can be added while it runs.",
        ("A=Anchor Inn", "B=Bristol", "C"),
    )
    policy: str = option(
        "recommended",
        POLICY,
        "engine",
        "What chooses the arms: recommended, or a policy that `pamo policies` lists.",
    )
    accept_new_arms: bool = option(
        False, YES_OR_NO, "engine", "Whether an unknown arm in a request is added rather than refused."
    )
    explore_at_most: float = option(
        1.0,
        number(most=1.0),
        "engine",
        "The share of decisions that may explore: choose another arm than the best known.",
    )
    explore_within: float | None = option(
        None,
        number(),
        "engine",
        "How much worse than the best known an explored arm may look, as a share of what that one is worth; any if not "
        "set.",
        0.2,
    )
    control: float | None = option(
        None,
        SHARE,
        "engine",
        "The share of users in the control group of an experiment, which is started with the service where there was "
        "none of its name.",
        0.05,
    )
    control_policy: str = option(
        "random",
        CONTROL_POLICY,
        "engine",
        "How control is served: random, caller (the choice that comes with each decision), arm:ID, or by a policy.",
    )
    experiment: str = option(
        "control",
        text("a name", "NAME"),
        "engine",
        "What the experiment is called. One that was ended stays so: another takes another name.",
    )
    seed: int | None = option(
        None,
        whole(),
        "engine",
        "Of the stream that ties and draws are taken from; another each time if not set.",
        1,
    )
    expires_after_days: float = option(
        30.0, number(above=True), "engine", "For how many days a decision takes feedback."
    )
    host: str = option(
        "127.0.0.1",
        text("an address or a name of this machine", "ADDRESS"),
        "server",
        "The address to listen on. Any but this machine's own (127.0.0.1, ::1, localhost) needs at least one key.",
    )
    port: int = option(8000, whole(0, 65535), "server", "The port to listen on; 0 is any that is free.")
    tls_certificate: str | None = option(
        None,
        text("the path of a file", "FILE"),
        "server",
        "A certificate chain as PEM, to serve HTTPS.",
        "cert.pem",
    )
    tls_key: str | None = option(
        None, text("the path of a file", "FILE"), "server", "The certificate's private key as PEM.", "key.pem"
    )
    stop_seconds: float = option(
        30.0, number(), "server", "For how many seconds a stop waits for the requests that are under way."
    )
    max_body_bytes: int = option(1_048_576, whole(1), "limits", "The largest body of a request, in bytes.")
    max_batch: int = option(1000, whole(1), "limits", "The most decisions or feedbacks in one request.")
    max_cost: int = option(
        20_000_000,
        whole(1),
        "limits",
        "The most that the decisions of one request may cost: arms on offer × k, added up.",
    )
    max_new_arms: int = option(
        1000, whole(1), "limits", "The most arms that one request may add, where it may add any (accept_new_arms)."
    )
    rate: float = option(
        0.0,
        number(),
        "limits",
        "Requests a second of each key, or of each address where there are no keys; 0 is as many as come.",
    )
    burst: int = option(100, whole(1), "limits", "How many requests may come at once before the rate holds.")
    timeout_seconds: float = option(10.0, number(above=True), "limits", "After how many seconds a request is given up.")
    max_waiting: int = option(
        10_000, whole(1), "limits", "How many requests may be under way before more are turned away."
    )
    idle_seconds: float = option(
        30.0, number(above=True), "limits", "After how many seconds a connection is closed on which nothing is asked."
    )
    max_connections: int = option(
        10_000, whole(1), "limits", "How many connections there may be, as far as the system has files for them."
    )
    max_connections_per_address: int = option(
        1000,
        whole(1),
        "limits",
        "How many of them may come from one address, or one IPv6 network (/64). Behind a proxy all come from one.",
    )
    log_level: str = option(
        "info",
        text("debug, info, warning or error", "LEVEL", ("debug", "info", "warning", "error")),
        "log",
        "The least important lines to log: debug, info, warning or error.",
    )
    access_log: bool = option(False, YES_OR_NO, "log", "Whether every request is a line of the log.")
    keys: tuple[Key, ...] = option(
        (),
        KEYS,
        "keys",
        "Who may ask for what. Without any, whoever reaches the service may do all. `pamo key` makes one.",
    )

    projects: Mapping[str, Settings] = field(default_factory=dict)
    """Others that are served beside this one, by name: each with a store, arms, keys and limits of its own."""

    def __post_init__(self) -> None:
        for row in OPTIONS:
            object.__setattr__(self, row.name, row.take(getattr(self, row.name), row.name))
        self._check_engine()
        self._check_server()
        self._check_projects()

    def __repr__(self) -> str:
        shown = {row.name: getattr(self, row.name) for row in OPTIONS} | {"store": self.shown_store}
        if self.projects:
            shown["projects"] = self.projects
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @property
    def setup(self) -> Setup | None:
        """The objectives and the overall scale for a new store; None where the store's own are used."""
        if not self.objectives:
            return None
        overall = Objective("overall") if self.overall is None else objective(self.overall)
        return Setup(objectives(self.objectives), overall)

    @property
    def named_arms(self) -> dict[str, str | None]:
        """The arms to add at the start, with their names where they have any."""
        parts = [one.partition("=") for one in self.arms]
        return {arm.strip(): name.strip() or None for arm, _, name in parts}

    @property
    def shown_store(self) -> str:
        """The store's address without its password."""
        return shown(self.store)

    @property
    def expires_after(self) -> float:
        """For how many seconds a decision takes feedback."""
        return self.expires_after_days * 86_400.0

    def _check_engine(self) -> None:
        if self.overall is not None and not self.objectives:
            raise InputError("expected objectives beside overall, the scale of the overall score, got none")
        if self.redeclare and not self.objectives:
            raise InputError("expected objectives to declare anew (redeclare), got none")
        if self.store == "memory:" and not self.objectives:
            raise InputError("expected objectives for a store in memory, which is always new, got none")
        if self.setup is not None:
            check_setup(self.setup)
        for arm, name in self.named_arms.items():
            check_text(arm, "an arm", "arms")
            check_text(name or arm, "an arm's name", "arms")

    def _check_server(self) -> None:
        if not self.keys and not is_loopback(self.host):
            raise InputError(
                f"expected at least one key to listen on {self.host}, which other machines may reach, got none: make "
                "one with `pamo key`, or listen on 127.0.0.1"
            )
        if (self.tls_certificate is None) != (self.tls_key is None):
            given, missing = ("tls_certificate", "tls_key") if self.tls_key is None else ("tls_key", "tls_certificate")
            raise InputError(f"expected tls_certificate and tls_key together, got {given} without {missing}")
        for name, path in (("tls_certificate", self.tls_certificate), ("tls_key", self.tls_key)):
            if path is not None and not Path(path).is_file():
                raise InputError(f"expected {name} to be a file, got {path!r}, which is none")

    def _check_projects(self) -> None:
        stores = {"": self.store} | {name: one.store for name, one in self.projects.items()}
        for name, one in self.projects.items():
            if not _PROJECT.fullmatch(name):
                wanted = "a project's name of up to 64 small letters, digits, dashes and underscores"
                raise InputError(f"expected {wanted}, got {name!r:.80}")
            if one.projects:
                raise InputError(f"expected no projects within the project {name}")
            for other, store in stores.items():
                if other != name and store == one.store != "memory:":
                    whose = f"the project {other}" if other else "the service itself"
                    raise InputError(f"expected a store of its own for the project {name}, got that of {whose}")


OPTIONS: tuple[Option, ...] = tuple(option_of(declared) for declared in fields(Settings) if declared.metadata)
"""Every setting, in the order in which they are shown."""

_BY_NAME = {row.name: row for row in OPTIONS}
_BY_VARIABLE = {row.variable: row for row in OPTIONS}
_SECTIONS = tuple(dict.fromkeys(row.section for row in OPTIONS))


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches that address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("pamo.example")
    (True, True, False, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def load_settings(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    path: str | Path | None = None,
) -> Settings:
    """Return the settings: those of a file stand above the defaults, the environment's above these, flags above all.

    flags: by name, as text or as values; None is a flag that was not given. environ: variables such as `PAMO_PORT`, an
    empty one as if it were not there. path: a TOML file; by default what `PAMO_CONFIG` names, or else pamo.toml in the
    working folder, if it is there.

    >>> settings = load_settings({"port": "9000"}, {"PAMO_PORT": "8001", "PAMO_ARMS": "A,B"})
    >>> settings.port, settings.arms
    (9000, ('A', 'B'))
    """
    variables = {} if environ is None else environ
    values, projects = _from_file(path, variables)
    values |= _from_environment(variables)
    for name, value in ({} if flags is None else flags).items():
        row = _BY_NAME.get(name)
        if row is None:
            raise unknown_name("setting", name, _BY_NAME)
        if value is not None:
            values[name] = row.read(value, row.flag) if isinstance(value, str) else row.take(value, row.flag)
    # What is not said of a project is as for the service, but for what makes it a project of its own.
    common = {name: value for name, value in values.items() if _BY_NAME[name].section not in ("engine", "keys")}
    return Settings(
        **values,
        projects={name: _project(name, {"store": f"{name}.db"} | common | own) for name, own in projects.items()},
    )


def _project(name: str, values: Mapping[str, Any]) -> Settings:
    try:
        return Settings(**values)
    except InputError as error:
        raise InputError(f"project {name}: {error}") from None


Read = tuple[dict[str, Any], dict[str, dict[str, Any]]]
"""What a file sets: of the service, and by project."""


def _from_file(path: str | Path | None, environ: Mapping[str, str]) -> Read:
    named = path or environ.get("PAMO_CONFIG")
    if named is None or named == "":
        if not Path(FILE).is_file():
            return {}, {}
        named = FILE
    try:
        document = tomllib.loads(Path(named).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"cannot read the settings in {str(named)!r}: {error.strerror}; `pamo init` writes such a file"
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"expected UTF-8 text in {str(named)!r}, got other bytes") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"expected TOML in {str(named)!r}, got something else: {error}") from None
    return _from_document(document, str(named))


def _from_document(document: Mapping[str, Any], file: str) -> Read:
    values: dict[str, Any] = {}

    def take(row: Option, value: Any) -> None:
        values[row.name] = row.take(value, row.place(file))

    def check(name: str, known: Iterable[str], what: str, where: str) -> None:
        if name not in known:
            if name in _BY_NAME:
                home = _BY_NAME[name].section
                raise InputError(f"{file}: expected {name} in the section [{home}], got it {where}")
            raise InputError(f"{file}: {unknown_name(what, name, known)}")

    for section, content in document.items():
        if section == "projects":
            continue
        check(section, (*_SECTIONS, "projects"), "section", "outside")
        if section == "keys":
            take(_BY_NAME["keys"], content)
            continue
        if not isinstance(content, Mapping):
            raise InputError(f"{file}: expected [{section}] to be a section, got {content!r:.80}")
        here = [row.name for row in OPTIONS if row.section == section]
        for name, value in content.items():
            check(name, here, f"setting of [{section}]", f"in [{section}]")
            take(_BY_NAME[name], value)
    return values, _projects_in(document.get("projects", {}), file)


def _projects_in(tables: Any, file: str) -> dict[str, dict[str, Any]]:
    if not isinstance(tables, Mapping):
        raise InputError(f"{file}: expected projects as sections [projects.NAME], got {tables!r:.80}")
    allowed = [row.name for row in OPTIONS if row.section in ("engine", "keys") or row.name in PROJECT_LIMITS]
    found: dict[str, dict[str, Any]] = {}
    for project, content in tables.items():
        place = f"[projects.{project}]"
        if not isinstance(content, Mapping):
            raise InputError(f"{file}: expected {place} to be a section, got {content!r:.80}")
        for name, value in content.items():
            if name in _BY_NAME and name not in allowed:
                raise InputError(
                    f"{file}: expected {name} in [{_BY_NAME[name].section}], for all projects, got it in {place}"
                )
            if name not in allowed:
                raise InputError(f"{file}: {unknown_name(f'setting of {place}', name, allowed)}")
            row = _BY_NAME[name]
            found.setdefault(project, {})[name] = row.take(value, f"{name} of {place} in {file}")
        found.setdefault(project, {})
    return found


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    values = {}
    for variable, given in environ.items():
        if not variable.startswith("PAMO_") or variable in _OTHERS or variable == "PAMO_CONFIG" or not given:
            continue
        if _KUBERNETES.fullmatch(variable) or (variable.endswith("PORT") and _KUBERNETES_PORT.fullmatch(given)):
            continue
        row = _BY_VARIABLE.get(variable)
        if row is None:
            raise unknown_name("variable", variable, [*_BY_VARIABLE, "PAMO_CONFIG"])
        values[row.name] = row.read(given, variable)
    return values
