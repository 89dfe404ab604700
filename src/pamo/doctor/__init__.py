"""Looks at the environment, a store, its disk or its server, and says what is well and what is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pamo.doctor.checks import Announce, Check, Status, Subject
from pamo.store.addresses import file_of, is_postgres

__all__ = ["Check", "Status", "examine"]


def examine(
    address: str | Path | None = None,
    *,
    quick: bool = False,
    seconds: float = 0.5,
    announce: Announce = lambda name: None,
) -> Iterator[Check]:
    """Yield one check after another; a store is read and not changed.

    address: of the store to look at, or a folder; without one, the current folder. quick: do not fold the
    journal. seconds: that each measurement may take. announce: is told what comes next.
    """
    from pamo.doctor.disk import look_at_disk
    from pamo.doctor.environment import look_at_environment
    from pamo.doctor.server import look_at_server
    from pamo.doctor.speed import look_at_speed
    from pamo.doctor.stores import look_at_store

    server = address is not None and is_postgres(address)
    path = None if address is None or server else file_of(address)
    announce("environment")
    yield from look_at_environment()
    if server:
        checks = list(look_at_server(str(address), seconds=seconds, announce=announce))
        yield from checks
        if [check.name for check in checks] != ["answers"]:  # a server that cannot be reached is told of once
            yield from look_at_store(str(address), quick=quick, announce=announce)
        yield from look_at_speed(None, seconds=seconds, announce=announce)
        return
    folder = Path.cwd() if path is None else path.absolute()
    if path is not None and not path.is_dir():
        yield from look_at_store(path, quick=quick, announce=announce)
        folder = folder.parent
    if not folder.is_dir():
        yield Subject("disk", "folder").problem(f"there is no folder {folder}: make it first")
        yield from look_at_speed(None, seconds=seconds, announce=announce)
        return
    announce("disk")
    yield from look_at_disk(folder, seconds=seconds)
    yield from look_at_speed(folder, seconds=seconds, announce=announce)
