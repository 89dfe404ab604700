"""Snapshots: a fold in a file, so that a start need not fold the whole journal.

A snapshot is an `.npz` file, plain arrays that NumPy reads without pickle. The last bytes of the file, which are the
archive's comment, are a checksum over all others. It holds nothing that the journal does not: one that is damaged, of
another journal, format or layout is left aside, and the journal is folded.
"""

from __future__ import annotations

import io
import json
import logging
import math
import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple
from zlib import crc32

import numpy as np

from pamo.rows import LAYOUT
from pamo.store.base import ExperimentEnded, Feature
from pamo.store.encoding import experiments_of
from pamo.store.fold import CHUNK, Fold
from pamo.store.names import Names
from pamo.store.setups import setup_of

FORMAT = 7
CHECKSUM = 4
"""Bytes of the checksum."""
SLICE = 1 << 13
"""Users' rows that are copied in one step."""
SYNCED = 16_000_000
"""Bytes after which the disk is waited for."""


class Snapshot(NamedTuple):
    """What a snapshot holds: a fold, the journal's link at its last event, and the last erasure that it knows of."""

    fold: Fold
    link: int = 0
    erased: int = 0


def save(kept: Snapshot, path: Path, journal: str) -> None:
    """Write the fold of the journal of that identity: to a file beside, which then takes the place of the old one."""
    save_in_steps(lambda: kept, path, journal, lambda step: step())


Doing = Callable[[Callable[[], Any]], Any]
"""What does a step, and returns what that gives."""


def save_in_steps(take: Callable[[], Snapshot], path: Path, journal: str, do: Doing) -> None:
    """Write what `take` returns, while the fold goes on to change.

    do: has one step done while nobody changes the fold. The first copies all but the users' rows, which are far more
    than the rest; those that change from then on are kept as they were.
    """
    begun: tuple[Fold, dict[str, Any], Any, Any] = do(lambda: _begin(take(), journal))
    fold = begun[0]
    try:
        _write(path, _arrays(*begun, do))
    finally:
        fold.let_go()


def _begin(kept: Snapshot, journal: str) -> tuple[Fold, dict[str, Any], Any, Any]:
    fold = kept.fold
    alive = fold.user_names.living()
    renumbered = np.cumsum(alive) - 1
    stated = np.array(fold.stated_rows, dtype=np.int64)
    users = np.flatnonzero(stated >= 0)
    header = {
        "format": FORMAT,
        "layout": LAYOUT,
        "journal": journal,
        "sequence": fold.sequence,
        "link": kept.link,
        "erased": kept.erased,
        "decisions": fold.decisions,
        "feedbacks": fold.feedbacks,
        "newest": fold.newest,
        "declared": fold.declared if math.isfinite(fold.declared) else None,
        "setup": asdict(fold.setup),
        "arms": [[arm, *state[:2], dict(state.features)] for arm, state in fold.arm_states.items()],
        "features": {one.name: one.kind for one in fold.features.values()},
        "user_features": {one.name: one.kind for one in fold.user_features.values()},
    }
    arrays: dict[str, Any] = {
        "header": _packed(header),
        "known": _packed(fold.known),
        "arms": fold.block[: len(fold.arm_rows)].copy(),
        "stated_users": renumbered[users],
        "stated": _chosen(fold, stated[users]),
    }
    held = np.flatnonzero(np.array(fold.pairs.heads, dtype=np.int64) >= 0)
    pairs = fold.pairs.of(held.tolist())
    arrays["pair_users"] = np.repeat(renumbered[held], np.diff(pairs.starts))
    arrays["pair_arms"], arrays["pairs"] = pairs.arms, pairs.rows
    changes = {row: one for row, one in fold.taste_changes.items() if alive[row]}
    arrays["changed_users"] = renumbered[list(changes)] if changes else np.zeros(0, dtype=np.int64)
    arrays["taste_changes"] = np.array(list(changes.values()), dtype=np.int64).reshape(-1, 2)
    arrays["arm_changes"] = np.array(list(fold.arm_changes.items()), dtype=np.int64).reshape(-1, 2)
    if fold.groups.experiments:  # a snapshot without these is one of a journal without experiments
        told = [[asdict(one.started), one.ended] for one in fold.groups.experiments.values()]
        users, rows = fold.groups.users()
        arrays |= {"experiments": _packed(told), "grouped_users": renumbered[users], "grouped": rows}
    fold.hold()
    return fold, arrays, alive, fold.user_names.starts()


def _arrays(fold: Fold, arrays: dict[str, Any], alive: Any, starts: Any, do: Doing) -> Iterator[tuple[str, Any]]:
    yield from arrays.items()
    lengths = np.diff(starts)
    yield "user_name_lengths", lengths[alive]
    yield "user_names", _names(fold, alive, starts, lengths, do)
    first, part = 0, 0
    while first < len(alive):
        chunk = fold.user_sums.chunks[first // CHUNK]
        start = first % CHUNK
        rows = chunk[start : start + min(SLICE, CHUNK - start, len(alive) - first)]
        copied = do(partial(fold.as_held, rows, first))
        keep = alive[first : first + len(rows)]
        yield f"users_{part:06}", copied if keep.all() else copied[keep]
        first, part = first + len(rows), part + 1


def _names(fold: Fold, alive: Any, starts: Any, lengths: Any, do: Doing) -> Any:
    """Return the names of the living rows one after another: copied in parts, since they are many megabytes."""
    text, place = np.empty(int(lengths[alive].sum()), dtype=np.uint8), 0
    for first in range(0, len(alive), CHUNK):
        keep = alive[first : first + CHUNK]
        part = do(partial(fold.user_names.text, starts[first], starts[first + len(keep)]))
        if not keep.all():
            part = part[np.repeat(keep, lengths[first : first + len(keep)])]
        text[place : place + len(part)] = part
        place += len(part)
    return text


def without(path: Path, user: str, erased: int, before: int) -> bool:
    """Take a user out of a snapshot, array by array, since it may be large; tell whether that could be done.

    erased: the number of this erasure. before: that of the one before, which the snapshot has to know of.
    """
    try:
        with open(path, "rb") as file:
            _check(file)
            with np.load(file, allow_pickle=False) as arrays:
                known = json.loads(bytes(arrays["header"]))["erased"]
                if known == before:
                    _write(path, _mended(arrays, user, erased))
                return known in (before, erased)  # it may have been written since this one began
    except FileNotFoundError:
        return not _beside(path).exists()  # which a process that ended may have left
    except Exception as error:
        _say_why(path, error)
        return False


def remove(path: Path) -> None:
    """Delete a snapshot, and what may be left of one that was being written when the process ended."""
    for left in (path, _beside(path)):
        if not left.is_dir():  # which is nobody's snapshot
            left.unlink(missing_ok=True)


def load(path: Path, journal: str) -> Snapshot | None:
    """Return what a snapshot holds, or None where it cannot be used, whatever the reason."""
    try:
        with open(path, "rb") as file:
            _check(file)
            with np.load(file, allow_pickle=False) as arrays:
                return _read(arrays, journal)
    except FileNotFoundError:
        return None
    except Exception as error:  # of a file that may hold anything, anything may be wrong
        _say_why(path, error)
        return None


def _say_why(path: Path, error: Exception) -> None:
    logging.getLogger(__name__).warning("the snapshot %s is left aside, and the journal is folded: %s", path, error)


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".new")


def _packed(values: Any) -> Any:
    return np.frombuffer(json.dumps(values).encode(), dtype=np.uint8)


def _write(path: Path, arrays: Iterator[tuple[str, Any]]) -> None:
    """Write arrays and their checksum to a file beside, which then takes the place of the old one."""
    beside, synced = _beside(path), 0
    try:
        with open(beside, "w+b") as file:
            with zipfile.ZipFile(file, "w") as archive:
                for name, array in arrays:
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
                    if file.tell() - synced > SYNCED:  # a disk with all of it to write at once keeps others waiting
                        synced = file.tell()
                        _sync(file)
                archive.comment = bytes(CHECKSUM)
            found = _checksum(file)
            file.seek(-CHECKSUM, io.SEEK_END)
            file.write(found)
            _sync(file)
        os.replace(beside, path)
    except BaseException:
        if not beside.is_dir():
            beside.unlink(missing_ok=True)  # it names users, and nobody would look for them there
        raise


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _checksum(file: IO[bytes]) -> bytes:
    """Return the checksum of all of a file but its last bytes."""
    left, value = file.seek(0, io.SEEK_END) - CHECKSUM, 0
    file.seek(0)
    while left > 0:
        part = file.read(min(left, 1 << 20))
        value = crc32(part, value)
        left -= len(part)
    return value.to_bytes(CHECKSUM, "big")


def _check(file: IO[bytes]) -> None:
    expected = _checksum(file)
    if file.read() != expected:
        raise ValueError("its checksum is not that of its content")
    file.seek(0)


def _read(file: Any, journal: str) -> Snapshot | None:
    header = json.loads(bytes(file["header"]))
    if (header["format"], header["layout"], header["journal"]) != (FORMAT, LAYOUT, journal):
        raise ValueError("it is of another journal, format or layout")
    declared = header["declared"]
    fold = Fold(setup_of(header["setup"]), math.inf if declared is None else declared)
    fold.sequence, fold.decisions, fold.feedbacks = header["sequence"], header["decisions"], header["feedbacks"]
    fold.newest = header["newest"]
    arms = file["arms"]
    if arms.shape != (len(header["arms"]), fold.block.shape[1]):
        raise ValueError("its arms are not the journal's")
    fold.restore_arms(header["arms"], arms)
    fold.features.update((name, Feature(name, kind)) for name, kind in header["features"].items())
    fold.user_features.update((name, Feature(name, kind)) for name, kind in header["user_features"].items())
    fold.known = json.loads(bytes(file["known"]))
    fold.user_names = Names.of(bytes(file["user_names"]), file["user_name_lengths"])
    for name in sorted(name for name in file.files if name.startswith("users_")):
        fold.user_sums.extend(file[name])
    fold.stated_sums.extend(file["stated"])
    stated = np.full(fold.user_names.rows, -1, dtype=np.int32)
    stated[file["stated_users"]] = np.arange(fold.stated_sums.count)
    fold.stated_rows.frombytes(stated.tobytes())
    fold.pairs.restore(fold.user_names.rows, file["pair_users"], file["pair_arms"], file["pairs"])
    changed, changes = file["changed_users"].tolist(), file["taste_changes"].tolist()
    fold.taste_changes.update((row, (number, first)) for row, (number, first) in zip(changed, changes, strict=True))
    fold.arm_changes.update(file["arm_changes"].tolist())
    if "experiments" in file.files:
        for event, ended in experiments_of(bytes(file["experiments"])):
            fold.groups.start(event)
            if ended is not None:
                fold.groups.end(ExperimentEnded(event.name, ended))
        if len(users := file["grouped_users"]):
            fold.groups.restore(users, file["grouped"])
    return Snapshot(fold, header["link"], header["erased"])


def _mended(file: Any, user: str, erased: int) -> Iterator[tuple[str, Any]]:
    """Yield the arrays of a snapshot without a user."""
    header = json.loads(bytes(file["header"]))
    lengths = file["user_name_lengths"]
    row, start = _place_of(user.encode(), bytes(file["user_names"]), lengths)
    first = 0  # of the rows of users
    for name in sorted(file.files):
        array = file[name]
        if name == "header":
            array = _packed({**header, "erased": erased})
        elif name == "known":
            known = json.loads(bytes(array))
            known.pop(user, None)
            array = _packed(known)
        elif row < 0:
            pass
        elif name == "user_names":
            array = np.delete(array, slice(start, start + int(lengths[row])))
        elif name == "user_name_lengths":
            array = np.delete(array, row)
        elif name in ("stated_users", "pair_users", "changed_users", "grouped_users"):
            array = array[array != row]
            array -= array > row
        elif name == "stated":
            array = array[file["stated_users"] != row]
        elif name == "grouped":
            array = array[file["grouped_users"] != row]
        elif name == "taste_changes":
            array = array[file["changed_users"] != row]
        elif name in ("pair_arms", "pairs"):
            array = array[file["pair_users"] != row]
        elif name.startswith("users_"):
            first, before = first + len(array), first
            if before <= row < first:
                array = np.delete(array, row - before, axis=0)
        yield name, array


def _place_of(name: bytes, text: bytes, lengths: Any) -> tuple[int, int]:
    """Return the row of a name among those that lie one after another, and where it begins; −1 where it is not."""
    ends = np.cumsum(lengths)
    start = text.find(name)
    while start >= 0:
        row = int(np.searchsorted(ends, start, side="right"))
        if lengths[row] == len(name) and ends[row] - len(name) == start:
            return row, start
        start = text.find(name, start + 1)
    return -1, -1


def _chosen(fold: Fold, rows: Any) -> Any:
    """Return these rows of the stated preferences, one after another."""
    used = list(fold.stated_sums.used())
    return np.concatenate(used)[rows] if used else np.zeros((0, fold.stated_sums.width))
