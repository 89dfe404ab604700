"""Back a store up while it is written to, bring the copies back, and compare: `python -m campaigns.backups`.

A store takes decisions and feedback, erases users and writes snapshots, all the while. `pamo store backup` copies it
again and again, and `pamo store restore` brings each copy back under another name. That has to be whole, to hold
everything that was acknowledged before the backup began and nothing that was not recorded like that, and to go on.
`--fault copy-the-file` copies the database's file instead, which leaves out what is in the log, and must be found.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tqdm import tqdm

from pamo.cli import main as pamo
from pamo.store import ArmAdded, DecisionMade, Event, FeedbackGiven, Objective, Outcome, Setup, UserErased
from pamo.store.maintenance import verify
from pamo.store.sqlite import SqliteStore

SETUP = Setup((Objective("taste", 1, 5), Objective("price", 0, 100, lower_is_better=True)))

PAUSE = 0.05
"""Seconds between two writes. A backup takes the longer the more there is, and all the while more is written: a store
that is written to as fast as it can be grows as compound interest does."""


@dataclass
class Tally:
    """What the campaign has seen."""

    backups: int = 0
    events: int = 0
    """That were written in all."""
    erased: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.backups:,} backups brought back, of a store that took {self.events:,} events meanwhile, "
            f"{self.erased:,} of them erasures: {len(self.wrong):,} wrong"
        )


class Load:
    """What is written meanwhile, by a thread of its own."""

    def __init__(self, path: Path, seed: int) -> None:
        self._random = Random(f"backups {seed}")
        self.store = SqliteStore(path, SETUP, snapshot_every=2000, checkpoint_pages=200)
        self.store.append_many([ArmAdded(arm, arm, 0.0) for arm in "ABC"])
        self.acknowledged, self.erased = 4, 0
        """The number of the last event that was acknowledged, and how many users were erased."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def end(self) -> None:
        """Write no more."""
        self._stop.set()
        self._thread.join()
        self.store.close()

    def _write(self) -> None:
        number = 0
        while not self._stop.is_set():
            events: list[Event] = []
            for _ in range(self._random.randint(1, 20)):
                number += 1
                user = f"user {self._random.randrange(200)}"
                events.append(DecisionMade(f"d{number}", user, ("A",), 1.0, "campaign", 1.0, key=f"key {number}"))
                rewards = {"taste": self._random.uniform(1, 5), "price": self._random.uniform(0, 100)}
                events.append(FeedbackGiven(f"d{number}", rewards, 2.0, self._random.random()))
            receipts = self.store.append_many(events)
            self.acknowledged = receipts[-1].sequence or self.acknowledged
            if self._random.random() < 0.1:
                receipt = self.store.append(UserErased(f"user {self._random.randrange(200)}", 3.0))
                if receipt.outcome is Outcome.RECORDED:
                    self.acknowledged, self.erased = receipt.sequence or self.acknowledged, self.erased + 1
            time.sleep(PAUSE)


def run(*arguments: str) -> str:
    """Run a command of pamo's; return what it said if it did not end well."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = pamo(list(arguments))
    return "" if code == 0 else f"`pamo {' '.join(arguments[:2])}` ended with {code}: {said.getvalue()[-500:]}"


def back_up(folder: Path, load: Load, number: int, fault: str | None) -> str:
    """Take one backup, bring it back, and say what is wrong with it."""
    source, copy, again = folder / "journal.db", folder / f"copy-{number}.db", folder / f"again-{number}.db"
    before = load.acknowledged
    if fault is None:
        wrong = run("store", "backup", str(source), str(copy))
    else:
        shutil.copy(source, copy)
        wrong = ""
    wrong = wrong or run("store", "restore", str(copy), str(again))
    if wrong:
        return wrong
    with SqliteStore(again) as store:
        last = max(sequence for sequence, _ in store.events())
        if last < before:
            return f"event {before:,} was acknowledged before the backup, which ends with {last:,}"
        if not (report := verify(store)).ok:
            return str((*report.damage, *report.differences)[0])
        # What is erased later is erased in the store and not in the copy; everything else has to be the same.
        for (ours, kept), (theirs, now) in zip(store.events(), load.store.events(), strict=False):
            same = kept == now or (getattr(kept, "user", None) is not None and getattr(now, "user", None) is None)
            if ours != theirs or not same:
                return f"event {ours} is {kept} in the copy, and {now} in the store"
        if store.append(ArmAdded("D", "D", 9.0)).outcome is not Outcome.RECORDED:
            return "what was brought back takes no events"
    for path in folder.glob(f"*-{number}.db*"):
        path.unlink()
    return ""


def campaign(backups: int, seed: int = 1, fault: str | None = None) -> Tally:
    """Take so many backups of one store."""
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="pamo-backups-") as name:
        load = Load(Path(name) / "journal.db", seed)
        try:
            with tqdm(total=backups, unit=" backups", disable=None) as bar:
                while tally.backups < backups and len(tally.wrong) < 10:
                    if wrong := back_up(Path(name), load, tally.backups, fault):
                        tally.wrong.append(wrong)
                    tally.backups += 1
                    bar.update()
        finally:
            load.end()
        tally.events, tally.erased = load.acknowledged, load.erased
    return tally


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign, print what it found, and return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description="Back a store up while it is written to, and bring the copies back.")
    parser.add_argument("--backups", type=int, default=50, help="default 50")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fault", choices=["copy-the-file"], help="a fault that must be found")
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    tally = campaign(options.backups, options.seed, options.fault)
    print(f"{tally}; {time.perf_counter() - started:.0f} s")
    for sentence in tally.wrong[:20]:
        print(f"  {sentence}")
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main())
