"""A disk whose power can be cut: it notes what SQLite writes and syncs, and tells what may be left at any moment.

What was synced is there. What was written since may be there, or not, sector by sector and in any order, or be garbage:
nothing else is promised by a disk. A file that was made or deleted since may exist or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import apsw

SECTOR = 512


@dataclass(slots=True)
class Write:
    """Bytes that were handed to the disk."""

    file: str
    offset: int
    data: bytes


@dataclass(slots=True)
class Truncate:
    """A file was cut to a size."""

    file: str
    size: int


@dataclass(slots=True)
class Create:
    """A file was made."""

    file: str


@dataclass(slots=True)
class Delete:
    """A file was deleted, and perhaps the folder synced."""

    file: str
    synced: bool


@dataclass(slots=True)
class Sync:
    """All that was written to a file is on the disk from here on, and so is the file itself."""

    file: str


@dataclass(slots=True)
class Mark:
    """Not the disk's doing: what the caller noted at this moment."""

    note: Any


Step = Write | Truncate | Create | Delete | Sync | Mark
Image = dict[str, bytes]
"""The files of a disk after the power came back."""


class Recorder(apsw.VFS):
    """A file system that works like the usual one and notes every step."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.steps: list[Step] = []
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> RecordedFile:  # SQLite's names
        """Open a file, and note if it is new."""
        path = Path(name.filename() if isinstance(name, apsw.URIFilename) else name)
        new = not path.exists()
        file = RecordedFile(self, name, flags)
        if new:
            self.steps.append(Create(path.name))
        return file

    def xDelete(self, filename: str, syncdir: bool) -> None:
        """Delete a file."""
        super().xDelete(filename, syncdir)
        self.steps.append(Delete(Path(filename).name, syncdir))


class RecordedFile(apsw.VFSFile):
    """An open file that notes what is done to it."""

    def __init__(self, disk: Recorder, name: Any, flags: list[int]) -> None:
        self._disk = disk
        self._name = Path(name.filename() if isinstance(name, apsw.URIFilename) else name).name
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        """Write."""
        super().xWrite(data, offset)
        self._disk.steps.append(Write(self._name, offset, bytes(data)))

    def xTruncate(self, size: int) -> None:
        """Cut."""
        super().xTruncate(size)
        self._disk.steps.append(Truncate(self._name, size))

    def xSync(self, flags: int) -> None:
        """Sync."""
        super().xSync(flags)
        self._disk.steps.append(Sync(self._name))


@dataclass
class State:
    """What is on the disk for certain, and what is on its way."""

    durable: Image = field(default_factory=dict)
    waiting: dict[str, list[Write | Truncate]] = field(default_factory=dict)
    undecided: dict[str, bytes] = field(default_factory=dict)
    """Files that were deleted while the folder was not synced: they may come back."""
    made: set[str] = field(default_factory=set)
    """Files that were made and not synced since."""

    def take(self, step: Step) -> None:
        """Let one step happen."""
        match step:
            case Create(file):
                self.waiting[file] = []
                self.made.add(file)
            case Write(file) | Truncate(file):
                self.waiting.setdefault(file, []).append(step)
            case Sync(file):
                content = bytearray(self.durable.get(file, b""))
                for waiting in self.waiting.get(file, []):
                    _apply(content, waiting)
                self.durable[file] = bytes(content)
                self.waiting[file] = []
                if file in self.made:  # SQLite syncs the folder along with a new log
                    self.made.clear()
                    self.undecided.clear()
            case Delete(file, synced):
                kept = self.durable.pop(file, None)
                self.waiting.pop(file, None)
                if not synced and kept is not None:
                    self.undecided[file] = kept

    def crash(self, random: Random) -> Image:
        """Return what may be left if the power went now."""
        image = dict(self.durable)
        for file, kept in self.undecided.items():
            if file not in image and random.random() < 0.5:
                image[file] = kept
        manner = random.choice(["nothing", "everything", "sectors", "sectors", "few", "garbage", "prefix"])
        for file, steps in self.waiting.items():
            content = bytearray(image.get(file, b""))
            if file not in image and (manner == "nothing" or random.random() < 0.3):
                continue  # the file was never synced, and nor was its folder
            _survive(content, steps, manner, random)
            image[file] = bytes(content)
        return image


def _survive(content: bytearray, steps: Sequence[Write | Truncate], manner: str, random: Random) -> None:
    """Apply to a file's content what happens to survive of the steps that were on their way."""
    last = random.randint(0, len(steps)) if manner == "prefix" else len(steps)
    share = {"nothing": 0.0, "few": 0.1, "sectors": 0.5, "garbage": 0.5}.get(manner, 1.0)
    for number, step in enumerate(steps[:last]):
        if isinstance(step, Truncate):
            if random.random() < share:
                _apply(content, step)
            continue
        for start in range(0, len(step.data), SECTOR):
            sector = step.data[start : start + SECTOR]
            if manner == "prefix" and number == last - 1 and random.random() < 0.3:
                break  # torn: the rest of the last write is missing
            if random.random() < share:
                _apply(content, Write(step.file, step.offset + start, sector))
            elif manner == "garbage" and random.random() < 0.5:
                _apply(content, Write(step.file, step.offset + start, random.randbytes(len(sector))))


def _apply(content: bytearray, step: Write | Truncate) -> None:
    if isinstance(step, Truncate):
        del content[step.size :]
        return
    end = step.offset + len(step.data)
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    content[step.offset : end] = step.data
