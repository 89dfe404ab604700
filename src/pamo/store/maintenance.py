"""Looking after a store: what it holds, whether its sums are its journal's, and journals carried to other stores."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pamo._version import __version__
from pamo.errors import DamagedError, InputError, StoreError
from pamo.statistics import ArmStatistics, Pairs, UserStatistics
from pamo.store.addresses import begun, kind_of, shown
from pamo.store.base import FORMAT, Event, Objective, Reader, Setup, Store
from pamo.store.fold import Fold
from pamo.tabular import require_pyarrow

TOLERANCE = 1e-9
"""How far apart sums may be, relatively: the order of additions shows in the last digits."""

PAGE = 10_000
_CARRYING = "carrying a journal as Parquet"

Progress = Callable[[int], object]
"""Is told now and then how many more events were done."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class Overview:
    """The objectives of a store, and how much there is of everything else.

    kinds: events by kind. pending: decisions without feedback. sizes: bytes on the disk by part. last_at: the time of
    the last event, in seconds since 1970; None where there is none but the objectives.
    """

    format: int
    objectives: tuple[Objective, ...]
    overall: Objective
    active_arms: int
    retired_arms: int
    users: int
    kinds: dict[str, int]
    pending: int
    sizes: dict[str, int]
    last_at: float | None

    @property
    def events(self) -> int:
        """All events of the journal, the objectives among them."""
        return sum(self.kinds.values())

    @property
    def decisions(self) -> int:
        """The decisions that were made."""
        return self.kinds.get("decision", 0)

    @property
    def feedbacks(self) -> int:
        """The feedbacks that were given."""
        return self.kinds.get("feedback", 0)


def overview(store: Reader) -> Overview:
    """Return what there is."""
    if store.lost:
        raise DamagedError(store.lost[0])
    arms, last = store.arms(), store.last()
    active = int(arms.active.sum())
    return Overview(
        format=store.setup.format,
        objectives=store.setup.objectives,
        overall=store.setup.overall,
        active_arms=active,
        retired_arms=len(arms.ids) - active,
        users=store.count_users(),
        kinds=store.kinds(),
        pending=store.pending(),
        sizes=store.sizes(),
        last_at=None if last is None or isinstance(last, Setup) else last.at,
    )


@dataclass(frozen=True)
class Report:
    """What `verify` found: how much was compared, and a sentence for each difference."""

    events: int
    arms: int
    users: int
    differences: tuple[str, ...]
    damage: tuple[str, ...] = ()
    """A sentence for each event that is not what was recorded: sums are then not compared."""
    unsealed: int = 0
    """Events from before there were checksums: of these it cannot be told whether they are what was recorded."""

    @property
    def ok(self) -> bool:
        """Whether the journal is what was recorded, and the sums are the journal's."""
        return not self.differences and not self.damage


def verify(store: Store, *, progress: Progress | None = None) -> Report:
    """Fold the journal and compare the sums with the store's; to be run while nothing is recorded.

    A store that was opened by `open_reader` stands still whoever writes to it.

    >>> from pamo.store import MemoryStore, Objective, Setup
    >>> verify(MemoryStore(Setup((Objective("taste"),)))).ok
    True
    """
    fold, count, damage = Fold(store.setup), 0, list(store.lost) if isinstance(store, Reader) else []
    for sequence, event, wrong in _told(store.examined(), progress):
        count += 1
        if wrong:
            damage.append(wrong)
        elif event is not None:
            try:
                fold.apply(event, sequence)
            except Exception as error:  # of an event that may hold anything, anything may be wrong
                damage.append(f"event {sequence} cannot be folded: {error!r}")
    unsealed = store.unsealed()
    if damage:
        return Report(count, 0, 0, (), tuple(damage), unsealed)
    differences: list[str] = []
    ours, theirs = fold.arms(), store.arms()
    if set(ours.ids) != set(theirs.ids):
        differences.append(f"arms: the journal has {sorted(ours.ids)}, the store {sorted(theirs.ids)}")
    else:
        order = [theirs.rows[arm] for arm in ours.ids]
        states = {arm: (theirs.names[r], bool(theirs.active[r]), theirs.features[r]) for arm, r in theirs.rows.items()}
        if fold.arm_states != states:
            differences.append("arms: names, states or features are not the journal's")
        with store.lock:
            differences += _differences("arm", list(ours.ids), ours.statistics, theirs.statistics, order)
    features = store.known_of(list(fold.known))
    if list(fold.known.values()) != features:
        differences.append("users: features are not the journal's")
    known = set(fold.user_names)
    kept = set(store.user_ids())
    for user in sorted(known ^ kept):
        differences.append(f"user {user}: only {'the journal' if user in known else 'the store'} knows of it")
    names = iter(sorted(known & kept))
    while page := list(islice(names, PAGE)):
        order = list(range(len(page)))
        differences += _differences("user", page, fold.users(page), store.users(page), order)
        mine, yours = (_by_name(sums.user_pairs(page), page, sums.arms().ids) for sums in (fold, store))
        for user, arm in sorted(mine.keys() | yours.keys()):
            one, other = mine.get((user, arm)), yours.get((user, arm))
            if one is None or other is None or not np.allclose(one, other, TOLERANCE, TOLERANCE):
                differences.append(f"user {user} with arm {arm}: {one} by the journal, and {other} in the store")
    if list(store.experiments()) != list(fold.groups.experiments.values()):
        differences.append("experiments: they are not the journal's")
    ours_by_group, standing_by_group = fold.groups.compared(), store.compared()
    for group, folded in ours_by_group.items():
        standing = standing_by_group[group]
        if folded.users != standing.users or not np.allclose(folded.scores, standing.scores, TOLERANCE, TOLERANCE):
            differences.append(f"experiment, {group}: {folded} by the journal, and {standing} in the store")
    if store.pending() != fold.decisions - fold.feedbacks:
        differences.append(f"pending: {fold.decisions - fold.feedbacks} by the journal, {store.pending()} by the store")
    return Report(count, len(ours.ids), len(known), tuple(differences), unsealed=unsealed)


def _by_name(pairs: Pairs, users: Sequence[str], arms: Sequence[str]) -> dict[tuple[str, str], list[float]]:
    """Return the rows of users' pairs under the names of both."""
    return {
        (user, arms[pairs.arms[line]]): pairs.rows[line].tolist()
        for place, user in enumerate(users)
        for line in range(pairs.starts[place], pairs.starts[place + 1])
    }


def _differences(
    kind: str,
    names: list[str],
    ours: ArmStatistics | UserStatistics,
    theirs: ArmStatistics | UserStatistics,
    order: list[int],
) -> Iterator[str]:
    """Yield a sentence for each row whose sums differ; row n of ours is row `order[n]` of theirs."""
    for sums in ours.names if names else ():
        mine = getattr(ours, sums).reshape(len(names), -1)
        yours = getattr(theirs, sums)[order].reshape(len(names), -1)
        # Sums of values that cancel are compared with their own row's size, not with the little that is left.
        scale = np.abs(mine).max(axis=1, keepdims=True, initial=1.0)
        for row in np.flatnonzero((np.abs(mine - yours) > TOLERANCE * scale).any(axis=1)):
            kept, folded = yours[row].tolist(), mine[row].tolist()
            yield f"{kind} {names[row]}: {sums} is {folded} by the journal, and {kept} in the store"


def backup(address: str | Path, path: str | Path) -> int:
    """Copy the store at an address to a file, whoever writes to it meanwhile; return the number of events.

    The copy is a store of its own, and was verified before it gets its name. To bring it back, copy it likewise.
    """
    kind = kind_of(address, lasting=True)
    reader: type[Reader] = kind.load(kind.reader or "")
    with reader.copied(str(address), Path(path)) as copy:
        report = verify(copy)
        if wrong := [*report.damage, *report.differences, *copy.damage()]:
            raise DamagedError(f"the copy of {shown(address)} is not sound, and was not kept: {wrong[0]}")
    return report.events


def export(store: Store, path: str | Path, *, progress: Progress | None = None) -> int:
    """Write the journal to a Parquet file, a row an event; return the number of events.

    The file is written under another name first: there is a whole one or, if that fails, the one that was there before.
    """
    from pamo.store.encoding import encode

    arrow, parquet = require_pyarrow(_CARRYING)
    text = arrow.string()
    schema = arrow.schema(
        [("sequence", arrow.int64()), *((name, text) for name in ("kind", "decision", "user", "key", "body"))],
        metadata={"pamo.format": f"journal {FORMAT}", "pamo.version": __version__},
    )
    count, events = 0, _told(store.events(), progress)
    with (
        written_whole(path, "the journal") as beside,
        parquet.ParquetWriter(beside, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        while page := list(islice(events, PAGE)):
            rows = [(sequence, *encode(event)) for sequence, event in page]
            columns = [list(column) for column in zip(*rows, strict=True)]
            writer.write_table(arrow.table(columns, schema=schema))
            count += len(page)
    return count


@contextlib.contextmanager
def written_whole(path: str | Path, what: str) -> Iterator[Path]:
    """Yield the path of a file beside, which takes the name `path` once it is written, and is gone otherwise."""
    target = Path(path)
    beside = target.with_name(target.name + ".new")
    try:
        yield beside
        with open(beside, "rb") as file:
            os.fsync(file.fileno())
        os.replace(beside, target)
    except OSError as error:
        raise StoreError(f"{what} could not be written to {target}: {error}") from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


def exported_events(path: str | Path) -> int:
    """Return how many events a file holds that `export` wrote."""
    with _opened(Path(path)) as file:
        return int(file.metadata.num_rows)


def import_(path: str | Path, address: str | Path, *, progress: Progress | None = None) -> int:
    """Begin a store at the address with the journal that `export` wrote; return the number of events.

    If that fails there is no store afterwards, or the empty one that was there before.
    """
    return begin(address, exported(Path(path)), progress=progress)


def migrate(source: Store, address: str | Path, *, progress: Progress | None = None) -> int:
    """Begin a store at the address with the journal of another; return the number of events.

    What is recorded in the source after this has begun is not taken along. If it fails there is no store at the address
    afterwards, or the empty one that was there before.
    """
    return begin(address, source.events(), progress=progress)


def _told(events: Iterator[Item], progress: Progress | None) -> Iterator[Item]:
    """Yield the events, and tell of them by the thousand."""
    if progress is None:
        yield from events
        return
    count = 0
    for item in events:
        yield item
        count += 1
        if count == 1000:
            progress(count)
            count = 0
    progress(count)


def begin(address: str | Path, journal: Iterator[tuple[int, Event]], *, progress: Progress | None = None) -> int:
    """Fill the store at an address, which is begun where there is none, with a journal; return the number of events."""
    events = _told(journal, progress)
    sequence, setup = next(events, (0, None))
    if not isinstance(setup, Setup):
        raise InputError("expected a journal that begins with its objectives, got one that does not: was it cut?")
    stopped = threading.Event()

    def whole() -> Iterator[tuple[int, Event]]:
        yield sequence, setup
        for item in events:
            if stopped.is_set():
                raise StoreError("interrupted")
            yield item

    with begun(address, setup) as store:
        if next(islice(store.events(), 1, None), None) is not None:
            raise InputError(
                f"expected an empty store, or none, to take a journal over into, got one with events at "
                f"{shown(address)}: give another address"
            )
        try:
            return store.load(whole())
        except BaseException:
            stopped.set()  # the store's own thread may be at it still, when this one was interrupted
            raise


def exported(path: Path) -> Iterator[tuple[int, Event]]:
    """Yield the events of a file that `export` wrote, with their sequence numbers."""
    from pamo.store.encoding import decode

    with _opened(path) as file:
        for batch in file.iter_batches(PAGE):
            for sequence, *row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield sequence, decode(*row)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    arrow, parquet = require_pyarrow(_CARRYING)
    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            kind = (file.schema_arrow.metadata or {}).get(b"pamo.format", b"").decode()
            if kind != f"journal {FORMAT}":
                raise InputError(
                    f"expected a journal of format {FORMAT} in {path}, got {kind or 'some other Parquet file'}"
                )
            yield file
    except (OSError, arrow.ArrowException) as error:
        raise StoreError(f"{path} cannot be read as a journal: {error}") from error
