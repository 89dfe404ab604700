"""Looks at a PostgreSQL server: how far is it, and what do its acknowledgements mean?"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any

from pamo.doctor.checks import Announce, Check, Subject
from pamo.doctor.disk import HONEST, microseconds
from pamo.errors import PamoError
from pamo.store.addresses import scrubbed

ANSWERS, ROUND_TRIP, WRITABLE, SYNC, PAGES, WAITING, STANDBY, COMMIT = (
    Subject("server", name)
    for name in ("answers", "round trip", "writable", "fsync", "page writes", "waiting", "standby", "commit")
)
SETTINGS = ("fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names")
TIMES = 100
"""Calls that a measurement takes at most."""

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
                yield ANSWERS.problem(f"PostgreSQL refused: {scrubbed(str(error), url)}")
    except PamoError as error:
        yield ANSWERS.problem(scrubbed(str(error), url))


def _looked_at(connection: Any, seconds: float) -> Iterator[Check]:
    def ask(question: str) -> Any:
        return connection.execute(question).fetchone()[0]

    version = ask("SHOW server_version")
    trip = _median(lambda: ask("SELECT 1"), seconds)
    yield ROUND_TRIP.ok(
        f"PostgreSQL {version} answers in {trip:,.0f} µs; each batch takes several of these",
        version=version,
        round_trip_us=round(trip, 1),
    )
    read_only = ask("SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean")
    if read_only:
        yield WRITABLE.problem(
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
    if fsync == "on":
        yield SYNC.ok("fsync = on: the server brings what it commits to its disk", fsync=fsync)
    else:
        yield SYNC.problem(
            f"fsync = {fsync}: the server does not bring what it commits to its disk, and may lose all of it when its "
            "machine stops: switch it on",
            fsync=fsync,
        )
    if pages == "on":
        yield PAGES.ok("full_page_writes = on: pages half written can be mended", full_page_writes=pages)
    else:
        yield PAGES.warning(
            f"full_page_writes = {pages}: a power cut may leave pages half written; right only on a file system that "
            "never does that, such as ZFS",
            full_page_writes=pages,
        )
    meaning = _COMMITS.get(commit, "not known")
    yield WAITING.ok(f"synchronous_commit = {commit}: {meaning}", synchronous_commit=commit)
    shown = f"synchronous_standby_names = {standbys}"
    if standbys and commit == "local":
        yield STANDBY.warning(
            f"{shown}, but with synchronous_commit = local pamo does not wait for it: set that to on",
            synchronous_standby_names=standbys,
        )
        return
    whose = "; pamo's own connections wait for it" if commit == "off" else ""
    sentence = "no synchronous standby: what is acknowledged is on the disk of one machine"
    if standbys:
        sentence = f"{shown}: what is acknowledged is on two machines{whose}"
    yield STANDBY.ok(sentence, synchronous_standby_names=standbys)


def judge_commit(trip: float, commit: float) -> Check:
    """Say whether a commit can have reached a disk, from the microseconds of it and of a plain question."""
    measured = f"a commit takes {commit:,.0f} µs, {commit - trip:,.0f} µs more than a plain question"
    if commit - trip < HONEST:
        return COMMIT.warning(
            f"{measured}: no disk is that fast, so that the server's is not reached, and a power cut may lose what was "
            "acknowledged: look at the server's fsync setting and at its disk",
            commit_us=round(commit, 1),
        )
    return COMMIT.ok(f"{measured}: long enough to have reached a disk", commit_us=round(commit, 1))


def _median(work: Callable[[], object], seconds: float) -> float:
    return statistics.median(microseconds(work, seconds, TIMES))
