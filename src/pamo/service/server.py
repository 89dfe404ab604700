"""Runs the service: opens the store, listens, and on a signal to stop finishes what it was asked before."""

from __future__ import annotations

import contextlib
import gc
import logging
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

import uvicorn

from pamo import interpreting
from pamo.engine import Engine
from pamo.errors import InputError, PamoError
from pamo.service.app import PLAIN, Edition, create_app
from pamo.service.connections import protocol_for
from pamo.service.dashboard.pages import VIEWS
from pamo.service.handshakes import count_handshakes
from pamo.service.operations import OPERATIONS
from pamo.service.settings import FILE, Settings
from pamo.service.warming import Warming, telling_of_compilation
from pamo.store import Store, open_store
from pamo.store.addresses import is_postgres, open_reader

log = logging.getLogger("pamo.service")

SWITCH_SECONDS = 0.0005
"""How long a thread may hold the interpreter while another waits: the default of 5 ms would show in every request."""

MUCH = 20_000
"""A store's events, times the square of its objectives, from which on a start waits for compiled code.

To fold them and to fit what their users have in common would take Python longer than it takes to compile.
"""


def open_engine(settings: Settings) -> Engine:
    """Open the store that the settings name, with its arms, and return the engine over it, which owns both."""
    store = _open_store(settings)
    try:
        setup = settings.setup if settings.redeclare else None
        engine = Engine(
            None if setup is None else setup.objectives,
            policy=settings.policy,
            store=store,
            overall=None if setup is None else setup.overall,
            features=settings.features,
            user_features=settings.user_features,
            half_life=settings.half_life,
            redeclare=settings.redeclare,
            seed=settings.seed,
            accept_new_arms=settings.accept_new_arms,
            max_new_arms=settings.max_new_arms,
            explore_at_most=settings.explore_at_most,
            explore_within=settings.explore_within,
        )
        known = {arm.id: arm for arm in engine.arms()}
        for arm, name in settings.named_arms.items():
            # An arm that was retired meanwhile stays so: what was done over the API outlives a restart.
            if arm not in known or (known[arm].active and name is not None):
                engine.add_arm(arm, name)
        _start_experiment(engine, settings)
    except BaseException:
        store.close()
        raise
    return engine


def _start_experiment(engine: Engine, settings: Settings) -> None:
    if settings.control is None:
        return
    known = {one.started.name: one for one in engine.store.experiments()}.get(settings.experiment)
    if known is None or known.ended is None:  # what was ended over the API stays so
        engine.start_experiment(settings.experiment, settings.control, settings.control_policy)
    else:
        log.warning("the experiment %r was ended: to start another, name it by --experiment", settings.experiment)


def _open_store(settings: Settings) -> Store:
    begun = settings.setup is not None or is_postgres(settings.store) or Path(settings.store).exists()
    try:
        if begun:
            return open_store(settings.store, settings.setup, expires_after=settings.expires_after)
    except InputError:
        if settings.redeclare:
            return open_store(settings.store, expires_after=settings.expires_after)
        if settings.setup is not None:
            raise
        # The settings have been checked: what is left to be wrong is that the store is new.
    raise InputError(
        f"there is no store at {settings.shown_store} yet, and a new one needs objectives, of which the settings have "
        f"none: give them by --objectives, such as --objectives price,taste, or in {FILE}, which `pamo init` writes"
    )


def serve(settings: Settings, edition: Edition = PLAIN) -> int:
    """Serve until told to stop; return the exit code."""
    _check_certificate(settings)
    listening = _listen(settings)
    engines: dict[str, Engine] = {}
    everything, warming = {"": settings, **settings.projects}, Warming()
    try:
        if not any(map(_holds_much, everything.values())):
            interpreting.stand_in()
        with telling_of_compilation():
            for name, own in everything.items():
                engines[name] = _opened(name, own)
    except BaseException:
        listening.close()
        warming.stop()
        _close(engines)
        raise
    engine = engines[""]
    try:
        warming.begin(engines.values())
        edition.prepare(engine)
        app = create_app(engine, settings, edition, {name: one for name, one in engines.items() if name})
        config = uvicorn.Config(
            app,
            http=protocol_for(settings),
            timeout_keep_alive=max(1, round(settings.idle_seconds)),
            loop="auto",
            ws="none",
            lifespan="on",
            log_level=settings.log_level,
            access_log=settings.access_log,
            server_header=False,
            date_header=True,
            proxy_headers=False,
            timeout_graceful_shutdown=max(1, round(settings.stop_seconds)),
            backlog=2048,
            ssl_certfile=settings.tls_certificate,
            ssl_keyfile=settings.tls_key,
        )

        def announce(address: str) -> None:
            for name, one in engines.items():
                where, own = (f"/projects/{name}", settings.projects[name]) if name else ("", settings)
                names = ", ".join(each.name for each in one.objectives)
                print(f"pamo serves {address}{where} ({names}; store: {own.shown_store})", flush=True)

        def started(address: str) -> None:
            warming.follow()
            (edition.started or announce)(address)

        def before_stop() -> None:
            for one in app.state.apis:
                one.stream.close()

        logging.getLogger("uvicorn.access").addFilter(_without_ids)
        server = _Server(config, started, before_stop)
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.collect()
        gc.freeze()  # what is there now stays: the collector need not look at it again and again
        with contextlib.suppress(KeyboardInterrupt):  # one that came before the server listened for it
            server.run(sockets=[listening])
    finally:
        stopped = any(one.store.stopped for one in engines.values())
        warming.stop()
        _close(engines)
    log.info("stopped; everything that was acknowledged is kept")
    return 4 if stopped else 0 if server.started else 3


def _holds_much(settings: Settings) -> bool:
    """Tell whether a store is there that holds too much for Python alone."""
    try:
        with open_reader(settings.store, alone=False, sums=False) as journal:
            return journal.end() * len(journal.setup.objectives) ** 2 > MUCH
    except PamoError:
        return False  # there is none, or to open it says what is wrong


def _opened(project: str, settings: Settings) -> Engine:
    try:
        return open_engine(settings)
    except PamoError as error:
        if project:
            error.args = (f"project {project}: {error}", *error.args[1:])
        raise


def _close(engines: Mapping[str, Engine]) -> None:
    for one in engines.values():
        one.close()
        one.store.close()


def _without_ids(record: logging.LogRecord) -> bool:
    """Have a line of the access log show what was asked for, and not of whom: only words of the API's own paths."""
    if isinstance(record.args, tuple) and len(record.args) == 5:
        client, method, path, version, status = record.args
        parts = str(path).partition("?")[0].split("/")
        shown = "/".join(part if part in _WORDS or "assets" in parts[1:2] else "{id}" for part in parts)
        record.args = (client, method, shown, version, status)
    return True


_PATHS = (*(one.path for one in OPERATIONS), *(one.path for one in VIEWS), "/openapi.json", "/docs", "/projects")
_WORDS = frozenset(part for path in _PATHS for part in path.split("/") if not part.startswith("{"))


class _Server(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, announce: Callable[[str], None], before_stop: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._announce, self._before_stop = announce, before_stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._before_stop()  # who listens to the stream would not leave by themselves
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Uvicorn would send itself the signal once more when it is done, and SIGTERM would end the process there and
        # then, before the store is closed.
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        count_handshakes(self.config)
        await super().startup(sockets)
        if self.started and sockets:
            host, port = sockets[0].getsockname()[:2]
            scheme = "https" if self.config.is_ssl else "http"
            self._announce(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}")


def _check_certificate(settings: Settings) -> None:
    """Read certificate and key once before anything else is begun."""
    if settings.tls_certificate is None:
        return
    try:
        # A password is never asked for: nobody may be there to type it.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_certificate, settings.tls_key, password="")
    except (ssl.SSLError, OSError) as error:
        raise InputError(
            f"cannot serve TLS with tls_certificate {settings.tls_certificate!r} and tls_key {settings.tls_key!r}: "
            f"{error}; give a certificate chain and its key in PEM form, without a password"
        ) from None


def _listen(settings: Settings) -> socket.socket:
    """Take the port before the store is opened, so that a port in use costs nothing."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
        except BaseException:
            listening.close()
            raise
    except OSError as error:
        raise InputError(
            f"cannot listen on {settings.host} port {settings.port}: {error}; give another with --host or --port"
        ) from None
    listening.setblocking(False)
    return listening
