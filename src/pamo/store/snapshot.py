"""Snapshots: a fold in a file, so that a start need not fold the whole journal.

A snapshot is an `.npz` file, plain arrays that NumPy reads without pickle, each with a checksum. It holds nothing that
the journal does not: one that is damaged, of another journal, format or layout is left aside, and the journal is
folded.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from pamo.rows import LAYOUT
from pamo.store.base import Setup
from pamo.store.fold import CHUNK, Fold
from pamo.store.names import Names

FORMAT = 2


def save(fold: Fold, path: Path, journal: str) -> None:
    """Write the fold of the journal of that identity: to a file beside, which then takes the place of the old one."""
    alive = fold.user_names.living()
    renumbered = np.cumsum(alive) - 1
    text, lengths = fold.user_names.packed()
    stated = np.array(fold.stated_rows, dtype=np.int64)
    users = np.flatnonzero(stated >= 0)
    header = {
        "format": FORMAT,
        "layout": LAYOUT,
        "journal": journal,
        "sequence": fold.sequence,
        "decisions": fold.decisions,
        "feedbacks": fold.feedbacks,
        "arms": [[arm, name, active] for arm, (name, active) in fold.arm_states.items()],
    }
    arrays: dict[str, Any] = {
        "header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8),
        "arms": fold.block[: len(fold.arm_rows)],
        "user_names": text,
        "user_name_lengths": lengths,
        "stated_users": renumbered[users],
        "stated": _chosen(fold, stated[users]),
    }
    for index, rows in enumerate(fold.user_sums.used()):
        keep = alive[index * CHUNK : index * CHUNK + len(rows)]
        arrays[f"users_{index:06}"] = rows if keep.all() else rows[keep]
    beside = _beside(path)
    with open(beside, "wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def remove(path: Path) -> None:
    """Delete a snapshot, and what may be left of one that was being written when the process ended."""
    path.unlink(missing_ok=True)
    _beside(path).unlink(missing_ok=True)


def load(path: Path, setup: Setup, journal: str) -> Fold | None:
    """Return the fold that a snapshot holds, or None where it cannot be used, whatever the reason."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            return _read(arrays, setup, journal)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError):
        return None


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".new")


def _read(file: Any, setup: Setup, journal: str) -> Fold | None:
    header = json.loads(bytes(file["header"]))
    if (header["format"], header["layout"], header["journal"]) != (FORMAT, LAYOUT, journal):
        return None
    fold = Fold(setup)
    fold.sequence, fold.decisions, fold.feedbacks = header["sequence"], header["decisions"], header["feedbacks"]
    arms = file["arms"]
    if arms.shape != (len(header["arms"]), fold.block.shape[1]):
        return None
    fold.restore_arms(header["arms"], arms)
    fold.user_names = Names.of(bytes(file["user_names"]), file["user_name_lengths"])
    for name in sorted(name for name in file.files if name.startswith("users_")):
        fold.user_sums.extend(file[name])
    fold.stated_sums.extend(file["stated"])
    stated = np.full(fold.user_names.rows, -1, dtype=np.int32)
    stated[file["stated_users"]] = np.arange(fold.stated_sums.count)
    fold.stated_rows.frombytes(stated.tobytes())
    return fold if fold.user_sums.count == fold.user_names.rows else None


def _chosen(fold: Fold, rows: Any) -> Any:
    """Return these rows of the stated preferences, one after another."""
    used = list(fold.stated_sums.used())
    return np.concatenate(used)[rows] if used else np.zeros((0, fold.stated_sums.width))
