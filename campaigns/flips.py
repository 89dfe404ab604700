"""Flip single bits of a store's snapshot, its database and its log, and see whether any goes unnoticed.

Each try takes a fresh copy of the files, flips one bit of one of them, runs `pamo store verify`, and opens the store.
What then reads as it did before was not hurt. Otherwise the start has to refuse, the answer to be an error, or `verify`
to tell; a traceback, work without an end, and an answer that is wrong while all say that all is well, is what this
looks for.

    python -m campaigns.flips --flips 20000

With `--fault no-checksums` the store looks at no checksum; the campaign must then find wrong answers.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from tqdm import tqdm

from pamo.cli import main as pamo
from pamo.errors import PamoError
from pamo.store import (
    ArmAdded,
    ArmChanged,
    DecisionMade,
    Event,
    FeedbackGiven,
    Objective,
    Setup,
    TasteChanged,
    UserErased,
    checksums,
    sqlite_reading,
)
from pamo.store.sqlite import SqliteStore

SETUP = Setup((Objective("taste", 1, 5), Objective("price", 0, 500, lower_is_better=True)))
USERS = [f"user {n}" for n in range(6)]
PARTS = {"snapshot": "journal.db.snapshot.npz", "database": "journal.db", "log": "journal.db-wal"}
FAULTS = ("no-checksums",)
CHUNK = 250
"""Flips that a process makes of one store."""
BAD = ("wrong answers that nobody noticed", "tracebacks", "without an end")
LONGEST = 60
"""Seconds that a store of some hundred events may take to be verified and asked."""


class StillAtItError(BaseException):
    """It took longer. No `Exception`, which what is tried may take for its own."""


def _gave_up(number: int, frame: object) -> None:
    raise StillAtItError


def batches(random: Random) -> Iterator[list[Event]]:
    """Yield the life of a small store."""
    yield [ArmAdded(arm, f"Arm {arm}", 0.0) for arm in "ABC"]
    for number in range(60):
        user, score = random.choice(USERS), random.uniform(1, 5)
        stated = {"taste": 0.7, "price": 0.3} if number % 4 == 0 else None
        made = DecisionMade(f"d{number}", user, (random.choice("ABC"),), 0.5, "campaign", 1.0, key=f"key {number}")
        yield [made]
        if number % 5:
            whole = {"taste": score, "price": 100 * score}
            if number % 7 == 0:
                yield [FeedbackGiven(f"d{number}", {"taste": score}, 2.0)]
            yield [FeedbackGiven(f"d{number}", whole, 2.0, score / 5, stated)]
        if number == 25:
            yield [ArmChanged("A", 2.0, {"taste": (2.0, 6.0, 20.0)})]
            yield [TasteChanged(f"d{number}", user, 2.0, (("A", {"taste": 3.0}, 0.5),))]


def build(folder: Path, part: str, seed: int = 1) -> None:
    """Fill a folder with the files of a store: one that was closed or, for its log, one that was killed."""
    with tempfile.TemporaryDirectory(prefix="pamo-flips-") as place:
        store = SqliteStore(Path(place) / "journal.db", SETUP, checkpoint_pages=10**6)
        for number, batch in enumerate(batches(Random(seed))):
            store.append_many(batch)
            if number == 20:
                store.append(UserErased(USERS[0], 3.0))  # the log is cut here, and grows again
            if number == 30:
                store.snapshot()
        if part != "log":
            store.close(snapshot=part == "snapshot")
        for file in Path(place).iterdir():
            if file.name in PARTS.values():
                shutil.copy(file, folder)
        if part == "log":
            store.close(snapshot=False)


def answers(store: SqliteStore) -> Any:
    """Return all that a store can be asked."""
    events = list(store.events())
    ids = [event.id for _, event in events if isinstance(event, DecisionMade)]
    return (
        events,
        store.arms().ids,
        store.arms().names,
        store.arms().statistics.rows.round(9).tolist(),
        sorted(store.user_ids()),
        [rows.round(9).tolist() for rows in store.user_rows(USERS)],
        store.pending(),
        [(store.decision(f"d{n}"), store.feedback(f"d{n}"), store.decision_for(f"key {n}")) for n in range(len(ids))],
        [list(store.history(user)) for user in USERS],
        [[receipt.outcome for receipt in store.append_many([_again(event)])] for _, event in events[4:]],
    )


def _again(event: Event) -> Event:
    """Return what a client would send again: the journal has to know it."""
    return event if isinstance(event, DecisionMade | FeedbackGiven | ArmAdded) and _named(event) else SETUP


def _named(event: Any) -> bool:
    return isinstance(event, ArmAdded) or event.user is not None


def asked(path: Path) -> Any:
    """Return what the store at a path answers, or the error that it refuses with."""
    try:
        store = SqliteStore(path, synchronous="OFF")
        try:
            return answers(store)
        finally:
            store.close(snapshot=False)
    except PamoError as error:
        return error


def verified(path: Path) -> int:
    """Return the exit code of `pamo store verify`."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return pamo(["store", "verify", str(path)])


def attempt(files: dict[str, bytes], expected: Any) -> str:
    """Put down files, one of which is damaged, and say what became of it."""
    with tempfile.TemporaryDirectory(prefix="pamo-flip-") as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        path = Path(folder) / "journal.db"
        signal.signal(signal.SIGALRM, _gave_up)
        signal.alarm(LONGEST)
        try:
            told = verified(path) != 0
            found = asked(path)
        except StillAtItError:
            return "without an end"
        except Exception as error:
            return f"tracebacks: {error!r}"
        finally:
            signal.alarm(0)
    if isinstance(found, PamoError):
        return "refused with a sentence"
    if found == expected:
        return "without effect on what is answered, and told by verify" if told else "without effect"
    return "told by verify" if told else "wrong answers that nobody noticed"


def campaign(part: str, flips: int, seed: int = 1, fault: str | None = None) -> Counter[str]:
    """Flip so many bits of one part; return how often what came of it."""
    random, tally = Random(seed), Counter[str]()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pamo-flips-")))
        if fault is not None:
            stack.enter_context(mock.patch.object(checksums, "is_whole", return_value=True))
            stack.enter_context(mock.patch.object(sqlite_reading, "is_whole", return_value=True))
            stack.enter_context(mock.patch.object(checksums.Chain, "wrong", return_value=""))
        build(folder, part)
        files = {file.name: file.read_bytes() for file in folder.iterdir()}
        with tempfile.TemporaryDirectory(prefix="pamo-flips-") as whole:
            for name, content in files.items():
                (Path(whole) / name).write_bytes(content)
            expected = asked(Path(whole) / "journal.db")
        assert not isinstance(expected, PamoError), expected
        target = PARTS[part]
        for _ in range(flips):
            damaged = bytearray(files[target])
            place, bit = random.randrange(len(damaged)), random.randrange(8)
            damaged[place] ^= 1 << bit
            outcome = attempt({**files, target: bytes(damaged)}, expected)
            if outcome.startswith(BAD):
                print(f"  {part}, byte {place}, bit {bit}: {outcome}", flush=True)
            tally[outcome.partition(":")[0]] += 1
    return tally


def shared(part: str, flips: int, seed: int, fault: str | None) -> Counter[str]:
    """Do the same on all cores, some hundred flips at a time, each with a seed of its own."""
    random, tally = Random(seed), Counter[str]()
    chunks = [(part, min(CHUNK, flips - begun), random.randrange(1 << 30), fault) for begun in range(0, flips, CHUNK)]
    if len(chunks) == 1:
        return campaign(*chunks[0])
    with ProcessPoolExecutor(initializer=logging.disable, initargs=(logging.WARNING,)) as pool:
        under_way = {pool.submit(campaign, *chunk): chunk[1] for chunk in chunks}
        with tqdm(total=flips, desc=part, unit=" flips", disable=None) as bar:
            for done in as_completed(under_way):
                tally.update(done.result())
                bar.update(under_way[done])
    return tally


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description="Flip bits of a store's files.")
    parser.add_argument("--flips", type=int, default=20_000, help="of each part (default 20,000)")
    parser.add_argument("--part", choices=PARTS, help="only of this one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fault", choices=FAULTS, help="a fault that must be found")
    options = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    bad = 0
    for part in PARTS if options.part is None else [options.part]:
        started = time.perf_counter()
        tally = shared(part, options.flips, options.seed, options.fault)
        told = ", ".join(f"{count:,} {outcome}" for outcome, count in tally.most_common())
        print(f"{part}: {options.flips:,} bits flipped: {told}; {time.perf_counter() - started:.0f} s", flush=True)
        bad += sum(tally[outcome] for outcome in BAD)
    logging.disable(logging.NOTSET)
    fine = "No traceback, nothing without an end, and nothing wrong unnoticed."
    print(f"FAILED: {bad:,} unnoticed, with a traceback, or without an end" if bad else fine)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
