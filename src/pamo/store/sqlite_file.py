"""The SQLite store's file: how it is opened and owned, what its log lost, and how a new one gets its name."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pamo.errors import DamagedError, InputError, InUseError, StoreError, missing_extra

try:
    import apsw
except ImportError:
    raise missing_extra("the SQLite store", "apsw", "sqlite") from None
try:
    import fcntl
except ImportError:  # not on Windows, where the lock beside the store is the only one
    fcntl = None  # type: ignore[assignment]

__all__ = ["Owner", "apsw", "beside", "connect", "inode_of", "lost_header", "lost_tail", "sentences", "with_ending"]

LOG = "-wal"
LOCK = ".lock"
SNAPSHOT = ".snapshot.npz"
NEW = ".new"
"""Ends the name of a store that is being filled."""


def with_ending(path: Path, ending: str) -> Path:
    """Return the path of a file that belongs to the one at `path`."""
    return path.with_name(path.name + ending)


def traces(path: Path) -> list[str]:
    """Return the names of files that a store at `path` would have left beside its own."""
    return [name.name for ending in (LOG, SNAPSHOT, LOCK) if (name := with_ending(path, ending)).exists()]


def connect(path: Path, vfs: str | None = None, *, writing: bool) -> Any:
    """Return a connection to the journal."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE if writing else apsw.SQLITE_OPEN_READONLY
    connection = apsw.Connection(str(path), flags=flags, vfs=vfs)
    connection.set_busy_timeout(BUSY)
    return connection


BUSY = 10_000
"""Milliseconds for which SQLite waits for a lock."""


class Owner:
    """A lock that only one process can hold, on a file and not only on one of its names.

    One is a database beside the store, locked and never written to: SQLite knows how to lock files on every system, and
    the lock of a process that is killed is gone with it. The other is on the file itself, so that neither a link to it
    nor a lock file that was deleted lets a second one in.
    """

    _held: set[tuple[int, int]] = set()  # noqa: RUF012  # of this process, by all owners together
    _changing = threading.Lock()

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self.inode: tuple[int, int] | None = None
        with sentences(f"open {path}"):
            self._beside = apsw.Connection(str(with_ending(path, LOCK)))
            try:
                self._beside.execute("BEGIN EXCLUSIVE")
                if path.exists():
                    self.hold()
            except apsw.BusyError:
                self._beside.close()
                raise self._in_use() from None
            except BaseException:
                self._beside.close()
                raise

    def hold(self) -> None:
        """Lock the file itself, unless that was done."""
        if self.inode is not None:
            return
        with self._changing:
            inode = inode_of(self._path)
            # Asked before the file is opened: to close it again would undo all locks that SQLite has on it here.
            if inode is None or inode in self._held:
                raise self._in_use()
            if fcntl is not None:
                self._file = os.open(self._path, os.O_RDONLY)
                try:
                    fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(self._file)
                    raise self._in_use() from None
                except OSError:
                    pass  # a file system without such locks: the one beside is held
            self._held.add(inode)
            self.inode = inode

    def close(self) -> None:
        """Let go, when SQLite has."""
        with self._changing:
            if self._file is not None:
                os.close(self._file)
                self._file = None
            if self.inode is not None:
                self._held.discard(self.inode)
        self._beside.close()

    def _in_use(self) -> InUseError:
        return InUseError(
            f"{self._path} is in use: one process owns a SQLite store. Stop that one first, or use PostgreSQL for "
            "several"
        )


def inode_of(path: Path) -> tuple[int, int] | None:
    """Return what a file is, whatever its name; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


# What a log lost: SQLite takes of it what is whole, up to the first damage, and says nothing of the rest.

_HEADER, _FRAME = 32, 24  # bytes before the frames, and before each frame's page


def lost_header(path: Path) -> bool:
    """Tell whether SQLite would ignore a log that holds what the database does not, since its first bytes are wrong.

    To be asked before anything in this process has the database open. A power cut may leave such a header as well, just
    when a log that is all in the database begins anew.
    """
    try:
        log = with_ending(path, LOG).read_bytes()
        if len(log) < _HEADER + _FRAME or (log[:3] == b"\x37\x7f\x06" and _sums(log[:24]) == log[24:_HEADER]):
            return False
        database = path.read_bytes()
    except OSError:
        return False
    size = {1: 65536, 0: 4096}.get(number := int.from_bytes(database[16:18]), number)
    pages: dict[int, bytes] = {}
    for start in range(_HEADER, len(log) - size - _FRAME + 1, size + _FRAME):
        if log[start + 8 : start + 16] == log[_HEADER + 8 : _HEADER + 16]:
            pages[int.from_bytes(log[start : start + 4])] = log[start + _FRAME : start + _FRAME + size]
    return any(database[(page - 1) * size : page * size] != content for page, content in pages.items())


def _sums(data: bytes) -> bytes:
    """Return SQLite's checksum of a log's header."""
    order = "big" if data[3] & 1 else "little"
    first = second = 0
    for place in range(0, len(data), 8):
        first = (first + int.from_bytes(data[place : place + 4], order) + second) % (1 << 32)  # type: ignore[arg-type]
        second = (second + int.from_bytes(data[place + 4 : place + 8], order) + first) % (1 << 32)  # type: ignore[arg-type]
    return first.to_bytes(4) + second.to_bytes(4)


def lost_tail(path: Path, taken: int) -> bool | None:
    """Tell whether a log goes on after the frames that SQLite has taken.

    One transaction may, that a power cut tore and nobody was told of: None. A second shows that the first was whole.
    """
    with contextlib.suppress(OSError), open(with_ending(path, LOG), "rb") as log:
        header = log.read(_HEADER)
        size, ended, page = int.from_bytes(header[8:12]) + _FRAME, False, b""
        log.seek(_HEADER + taken * size)
        while len(frame := log.read(_FRAME)) == _FRAME:
            # Both are new with every new log: where one of them is still this log's, the other is what was damaged.
            if frame[8:12] == header[16:20] or frame[12:16] == header[20:24]:
                if ended and frame[:8] != page:
                    return True
                ended, page = ended or any(frame[4:8]), frame[:8]
            log.seek(size - _FRAME, os.SEEK_CUR)
        return None if ended else False
    return False


@contextlib.contextmanager
def sentences(doing: str) -> Iterator[None]:
    """Turn SQLite's errors into one of ours."""
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError, UnicodeDecodeError) as error:
        raise DamagedError(f"could not {doing}: {error}") from error
    except apsw.Error as error:
        raise StoreError(f"could not {doing}: {error}") from error


@contextlib.contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Yield the path of a file beside, which takes the name `path` when all is done, and is gone otherwise."""
    if not path.parent.is_dir():
        raise InputError(f"expected {path} to be in a folder that exists: make {path.parent} first")
    if (log := with_ending(path, LOG)).exists():
        raise InputError(f"there is the log {log} of a store that is not there: move it away, or bring the store back")
    new = with_ending(path, NEW)
    owner = Owner(new)  # nobody else is filling it: what is there was left by a process that was killed
    try:
        _remove(new)
    finally:
        owner.close()
        with_ending(new, LOCK).unlink(missing_ok=True)
    try:
        yield new
        _name(new, path)
    finally:
        _remove(new)
        with_ending(new, LOCK).unlink(missing_ok=True)


def _name(new: Path, path: Path) -> None:
    """Give a finished store its name, unless another has it by now."""
    try:
        try:
            os.link(new, path)  # unlike renaming, never takes the place of another file
        except FileExistsError:
            raise InputError(f"{path} was begun by somebody else meanwhile: give another path") from None
        except OSError:  # some file systems have no links
            os.rename(new, path)
        with_ending(path, SNAPSHOT).unlink(missing_ok=True)  # of a store that was there before
        with contextlib.suppress(FileNotFoundError):
            os.replace(with_ending(new, SNAPSHOT), with_ending(path, SNAPSHOT))
        _keep(path.parent)
    except OSError as error:
        raise StoreError(f"the new store could not be named {path}: {error}") from error


def _keep(folder: Path) -> None:
    """Have the folder's entries on the disk, where the system can be asked for that."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _remove(path: Path) -> None:
    for ending in ("", LOG, "-shm", SNAPSHOT, f"{SNAPSHOT}.new"):
        with_ending(path, ending).unlink(missing_ok=True)
