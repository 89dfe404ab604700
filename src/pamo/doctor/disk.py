"""Looks at the disk that a store is on: is there room, is it a disk, and does it keep what it is told to?"""

from __future__ import annotations

import math
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pamo.doctor.checks import Check, Subject

FILESYSTEM, SPACE, SYNC = (Subject("disk", name) for name in ("filesystem", "space", "fsync"))

HONEST = 20.0
"""Microseconds below which no disk can have been written to."""

SLOW = 30_000.0
"""Microseconds above which a disk makes every caller wait."""

FEWEST = 5
"""Calls that a measurement takes, however long they take."""

MEMORY = ("tmpfs", "ramfs", "devtmpfs")
LAYERED = ("overlay", "overlayfs", "aufs")
DISTANT = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "vboxsf", "fuse.sshfs", "fuse.s3fs", "drvfs")

_PLACES = (
    (MEMORY, "in memory ({}), and gone when the machine stops: keep the store on a disk"),
    (LAYERED, "in a container's own layer ({}), and gone with the container: mount a volume"),
    (
        DISTANT,
        "on another machine or shared with one ({}), where locks cannot be relied on: keep a SQLite store on a disk of "
        "this machine, or use PostgreSQL",
    ),
)
"""Kinds of file systems that a store should not be on, and why."""

LITTLE, SCARCE = 100 * 10**6, 10**9
"""Free bytes below which there is a problem, or a warning."""


def look_at_disk(folder: Path, *, seconds: float) -> Iterator[Check]:
    """Yield how the folder's disk is; fsync is measured for at most so many seconds."""
    kind = mounted(folder)
    yield judge_filesystem(folder, kind)
    yield judge_space(shutil.disk_usage(folder).free)
    try:
        with tempfile.NamedTemporaryFile(prefix=".pamo-doctor-", dir=folder) as file:
            write, sync, count = measure_sync(file.fileno(), seconds)
    except OSError as error:
        yield SYNC.problem(f"nothing can be written to {folder} ({error}): a store has to be able to")
    else:
        yield judge_sync(write, sync, count, kind)


def mounted(folder: Path, table: str | None = None) -> str | None:
    """Return the kind of file system that a folder is on, or None where the system does not tell.

    table: as Linux has it in /proc/mounts.

    >>> mounted(Path("/data/a"), "/dev/vda / ext4 rw 0 0\\ntmpfs /data tmpfs rw 0 0")
    'tmpfs'
    """
    if table is None:
        try:
            table = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
    place, best, kind = folder.resolve(), -1, None
    for line in table.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[1]))
        # Of several on the same folder the last one hides the others.
        if place.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind


def judge_filesystem(folder: Path, kind: str | None) -> Check:
    """Say what a store on this kind of file system has to expect."""
    figures = {"folder": str(folder), "filesystem": kind}
    if kind is None:
        return FILESYSTEM.ok(f"{folder}: this system does not tell what kind of file system it is", **figures)
    for kinds, sentence in _PLACES:
        if kind in kinds:
            return FILESYSTEM.warning(f"{folder} is {sentence.format(kind)}", **figures)
    return FILESYSTEM.ok(f"{folder} is on {kind}", **figures)


def judge_space(free: int) -> Check:
    """Say whether there is room."""
    shown = f"{free / 1e9:,.1f} GB free" if free >= SCARCE else f"{free / 1e6:,.0f} MB free"
    if free < LITTLE:
        return SPACE.problem(f"only {shown}: a store stops when the disk is full; make room", free_bytes=free)
    if free < SCARCE:
        return SPACE.warning(f"{shown}: a store stops when the disk is full", free_bytes=free)
    return SPACE.ok(shown, free_bytes=free)


def microseconds(work: Callable[[], object], seconds: float, most: float = math.inf) -> list[float]:
    """Return how long each of some calls took: as many as there is time for, but not too few, and no more than this."""
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while len(taken) < most and (len(taken) < FEWEST or time.perf_counter() < end):
        started = time.perf_counter()
        work()
        taken.append((time.perf_counter() - started) * 1e6)
    return taken


def measure_sync(file: int, seconds: float, most: int = 300) -> tuple[float, float, int]:
    """Return the median microseconds of a small write, of one with fsync after it, and how many of the latter were."""
    block, sync = b"\0" * 4096, _sync()

    def write() -> None:
        os.write(file, block)

    def write_and_sync() -> None:
        write()
        sync(file)

    synced = microseconds(write_and_sync, seconds, most)
    return statistics.median(microseconds(write, seconds, most)), statistics.median(synced), len(synced)


def _sync() -> Callable[[int], object]:
    """Return what brings a file to the disk; on macOS fsync stops at the disk's own memory."""
    if sys.platform == "darwin":
        import fcntl

        return lambda file: fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    return os.fsync


def judge_sync(write: float, sync: float, count: int, kind: str | None) -> Check:
    """Say whether fsync can have reached a disk, from the microseconds that it took."""
    figures = {"write_us": round(write, 1), "write_and_fsync_us": round(sync, 1), "times": count}
    measured = f"a small write with fsync takes {sync:,.0f} µs (median of {count}; {write:,.0f} µs without)"
    if kind in MEMORY:
        return SYNC.warning(f"{measured}, in memory: nothing is kept here", **figures)
    if sync < HONEST:
        return SYNC.warning(
            f"{measured}: no disk is that fast, so that fsync does not reach it here, and a power cut or the end of "
            "the machine may lose what was acknowledged. Some virtual machines and containers are like that: ask for "
            "a disk that honours flushes, or use PostgreSQL on a server that has one",
            **figures,
        )
    if sync > SLOW:
        return SYNC.warning(
            f"{measured}: everything waits for this slow disk; hand events in together, or use a faster one", **figures
        )
    return SYNC.ok(f"{measured}: long enough to have reached a disk", **figures)
