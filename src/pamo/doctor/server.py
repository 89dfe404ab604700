"""Looks at a PostgreSQL server: how far is it, and what do its acknowledgements mean?"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from pamo.doctor.checks import Announce, Check, Status
from pamo.doctor.disk import HONEST
from pamo.errors import PamoError
from pamo.store.addresses import scrubbed

GROUP = "server"
NAMES = {
    "fsync": "fsync",
    "full_page_writes": "page writes",
    "synchronous_commit": "waiting",
    "synchronous_standby_names": "standby",
}
SETTINGS = tuple(NAMES)
TIMES = 100

_COMMITS = {
    "off": "the server's commits do not wait for its disk; pamo switches that on for its own connections",
    "local": "commits wait for this server's disk, not for a standby's",
    "remote_write": "commits wait for this server's disk and until a synchronous standby, if there is one, has the "
    "event in memory",
    "on": "commits wait for this server's disk, and for that of a synchronous standby where there is one",
    "remote_apply": "commits wait for the disks of this server and of a synchronous standby, until it shows the event",
}


def look_at_server(url: str, *, seconds: float, announce: Announce) -> Iterator[Check]:
    """Yield how the server at an address is; nothing but a note in its log is written."""
    announce("connecting to PostgreSQL")
    try:
        from pamo.store.postgres_link import connect, psycopg

        with connect(url, autocommit=True) as connection:
            try:
                yield from _looked_at(connection, seconds)
            except psycopg.Error as error:
                yield Check(GROUP, "answers", Status.PROBLEM, f"PostgreSQL refused: {scrubbed(str(error), url)}")
    except PamoError as error:
        yield Check(GROUP, "answers", Status.PROBLEM, scrubbed(str(error), url))


def _looked_at(connection: Any, seconds: float) -> Iterator[Check]:
    def ask(question: str) -> Any:
        return connection.execute(question).fetchone()[0]

    version = ask("SHOW server_version")
    trip = _median(lambda: ask("SELECT 1"), seconds)
    yield Check(
        GROUP,
        "round trip",
        Status.OK,
        f"PostgreSQL {version} answers in {trip:,.0f} µs; each batch takes several of these",
        {"version": version, "round_trip_us": round(trip, 1)},
    )
    read_only = ask("SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean")
    if read_only:
        yield Check(
            GROUP,
            "writable",
            Status.PROBLEM,
            "this server takes no writes (a standby, or set to read only): give the address of the one that does, such "
            "as postgresql://a,b/pamo?target_session_attrs=read-write",
        )
    yield from judge_settings({name: ask(f"SHOW {name}") for name in SETTINGS})
    if not read_only:
        connection.execute("SET synchronous_commit = on")  # as pamo's own connections have it, at least
        commit = _median(lambda: ask("SELECT pg_logical_emit_message(true, 'pamo doctor', '')"), seconds)
        yield judge_commit(trip, commit)


def judge_settings(settings: dict[str, str]) -> Iterator[Check]:
    """Say what the server's settings mean for what is acknowledged."""
    fsync, pages, commit, standbys = (settings[name] for name in SETTINGS)

    def check(setting: str, status: Status, sentence: str) -> Check:
        return Check(GROUP, NAMES[setting], status, sentence, {setting: settings[setting]})

    if fsync == "on":
        yield check("fsync", Status.OK, "fsync = on: the server brings what it commits to its disk")
    else:
        yield check(
            "fsync",
            Status.PROBLEM,
            f"fsync = {fsync}: the server does not bring what it commits to its disk, and may lose all of it when its "
            "machine stops: switch it on",
        )
    if pages == "on":
        yield check("full_page_writes", Status.OK, "full_page_writes = on: pages half written can be mended")
    else:
        yield check(
            "full_page_writes",
            Status.WARNING,
            f"full_page_writes = {pages}: a power cut may leave pages half written; right only on a file system that "
            "never does that, such as ZFS",
        )
    yield check("synchronous_commit", Status.OK, f"synchronous_commit = {commit}: {_COMMITS.get(commit, 'not known')}")
    if not standbys:
        sentence = "no synchronous standby: what is acknowledged is on the disk of one machine"
        yield check("synchronous_standby_names", Status.OK, sentence)
    elif commit == "local":
        yield check(
            "synchronous_standby_names",
            Status.WARNING,
            f"synchronous_standby_names = {standbys}, but with synchronous_commit = local pamo does not wait for it: "
            "set that to on",
        )
    else:
        whose = "; pamo's own connections wait for it" if commit == "off" else ""
        sentence = f"synchronous_standby_names = {standbys}: what is acknowledged is on two machines{whose}"
        yield check("synchronous_standby_names", Status.OK, sentence)


def judge_commit(trip: float, commit: float) -> Check:
    """Say whether a commit can have reached a disk, from the microseconds of it and of a plain question."""
    figures = {"commit_us": round(commit, 1)}
    measured = f"a commit takes {commit:,.0f} µs, {commit - trip:,.0f} µs more than a plain question"
    if commit - trip < HONEST:
        return Check(
            GROUP,
            "commit",
            Status.WARNING,
            f"{measured}: no disk is that fast, so that the server's is not reached, and a power cut may lose what was "
            "acknowledged: look at the server's fsync setting and at its disk",
            figures,
        )
    return Check(GROUP, "commit", Status.OK, f"{measured}: long enough to have reached a disk", figures)


def _median(call: Callable[[], object], seconds: float) -> float:
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < TIMES and (len(times) < 5 or time.perf_counter() < end):
        started = time.perf_counter()
        call()
        times.append((time.perf_counter() - started) * 1e6)
    return statistics.median(times)
