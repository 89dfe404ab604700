"""Looks at a store without changing it: does it open, is its file intact, are its sums its journal's?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pamo.doctor.checks import Announce, Check, Subject
from pamo.errors import InUseError, PamoError, StoreError
from pamo.store.addresses import scrubbed, shown

if TYPE_CHECKING:
    from pamo.store.base import Reader
    from pamo.store.sqlite import SqliteReader

OPENS, READS, FILE, SNAPSHOT, SUMS = (Subject("store", name) for name in ("opens", "reads", "file", "snapshot", "sums"))
SHOWN = 20
"""Damages and differences that the figures hold at most."""


def look_at_store(address: str | Path, *, quick: bool, announce: Announce) -> Iterator[Check]:
    """Yield how a store is; quick: without folding its journal, and with SQLite's shorter check."""
    announce("opening the store")
    reader, in_use = None, False
    try:
        # Imported here: without the extra that the store needs there is a sentence, and the other checks go on.
        from pamo.store.addresses import open_reader

        try:
            reader = open_reader(address)
        except InUseError:
            reader, in_use = open_reader(address, alone=False), True
    except PamoError as error:
        yield OPENS.problem(scrubbed(str(error), address))
        return
    with reader:
        yield from _looked_at(reader, shown(address), in_use=in_use, quick=quick, announce=announce)


def _looked_at(reader: Reader, name: str, *, in_use: bool, quick: bool, announce: Announce) -> Iterator[Check]:
    from pamo.store.sqlite import SqliteReader

    try:
        kinds = reader.kinds()
        total, size = sum(kinds.values()), sum(reader.sizes().values())
        sentence = f"{name} holds {total:,} events and {len(reader.arms().ids):,} arms in {size / 1e6:,.1f} MB"
        note = "; another process has it open, which is well if that is your service" if in_use else ""
        yield OPENS.ok(sentence + note, events=total, bytes=size, in_use=in_use)
        if isinstance(reader, SqliteReader):
            yield from _file(reader, in_use=in_use, quick=quick, announce=announce)
        yield _sums(reader, name, in_use=in_use, quick=quick, announce=announce)
    except StoreError as error:
        advice = "bring back a copy of it, or import an export into a new one"
        yield READS.problem(f"the store cannot be read to its end ({error}): {advice}")


def _file(reader: SqliteReader, *, in_use: bool, quick: bool, announce: Announce) -> Iterator[Check]:
    announce("checking the file")
    how = "its pages (the indexes were not compared)" if quick or in_use else "its pages and indexes"
    wrong = reader.damage(quick=quick or in_use)
    if wrong:
        lines = [line for text in wrong for line in text.splitlines()]
        yield FILE.problem(
            f"SQLite finds its file damaged ({lines[0]}; {len(lines)} in all): keep a copy of it, then export what can "
            "be read and import that into a new store, or bring back a copy of before",
            damage=lines[:SHOWN],
        )
    else:
        yield FILE.ok(f"SQLite finds the file intact: {how}")
    announce("reading the snapshot")
    kept, last = reader.snapshot_at(), reader.sequence
    if kept is None:
        sentence = "the snapshot cannot be used, and the next start folds the journal; `pamo store rebuild` writes one"
        yield SNAPSHOT.warning(sentence, up_to=None)
    else:
        yield SNAPSHOT.ok(f"the snapshot lacks {last - kept:,} events, which a start folds", up_to=kept)


def _sums(reader: Reader, name: str, *, in_use: bool, quick: bool, announce: Announce) -> Check:
    from pamo.store.maintenance import verify

    if quick:
        return SUMS.ok("not compared with the journal (--quick)", compared=False)
    if in_use:
        return SUMS.ok(
            "not compared with the journal, since that would hold up the process that uses the store: stop it first",
            compared=False,
        )
    announce("folding the journal")
    report = verify(reader)
    compared = f"{report.events:,} events, {report.arms:,} arms and {report.users:,} users"
    figures = {"compared": True, "differences": list(report.differences[:SHOWN])}
    if report.ok:
        return SUMS.ok(f"the sums are the journal's: {compared} compared", **figures)
    if report.damage:
        return SUMS.problem(
            f"the journal is damaged, {report.damage[0]} ({len(report.damage):,} in all): keep a copy of the files, "
            "then bring back a backup by `pamo store restore`, or go on with what is left by "
            f"`pamo store rebuild {name} --adopt-damage`",
            damage=list(report.damage[:SHOWN]),
            **figures,
        )
    return SUMS.problem(
        f"{len(report.differences):,} sums are not the journal's, first {report.differences[0]}; the journal is the "
        f"truth: `pamo store rebuild {name}` sets them right",
        **figures,
    )
