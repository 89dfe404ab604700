"""Checksums of the journal: one over each event, and a chain over their places.

A link of the chain is made of the link before it, the event's number, kind and decision: of what stays when its user is
erased. So an event that is missing, added or moved shows, and an erasure neither breaks the chain nor leaves anything
behind that a name could be tried against. The checksum covers the link and the whole row; an erasure writes it anew.

CRC-32, since it is damage that has to be found, and not forgery: it finds every flipped bit, takes a fifth of a
microsecond, and is not the only one to look (see docs/decisions/0022-checksums.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

Stored = Sequence[Any]
"""A row of the journal: sequence, kind, decision, user, key, body, link and checksum."""


def link(before: int, sequence: int, kind: str, decision: str | None) -> int:
    """Return the link of an event that follows the one with the link `before`; the first follows 0."""
    return crc32(f"{sequence}\x1f{kind}\x1f{decision}".encode(), before)


def checksum(link: int, kind: str, decision: str | None, user: str | None, key: str | None, body: str) -> int:
    """Return the checksum of an event's row."""
    return crc32(f"{kind}\x1f{decision}\x1f{user}\x1f{key}\x1f{body}".encode(), link)


def is_whole(row: Stored) -> bool:
    """Tell whether one row is what was written; its place is the chain's to tell."""
    _, kind, decision, user, key, body, link, kept = row
    return type(link) is int and 0 <= link < 1 << 32 and checksum(link, kind, decision, user, key, body) == kept


class Chain:
    """Follows the rows of a journal from one to the next. link: the last one's."""

    def __init__(self, link: int = 0) -> None:
        self.link = link

    def holds(self, rows: Sequence[Stored]) -> bool:
        """Tell whether the next rows are all what was recorded, and follow each other; `wrong` says which is not.

        Links are followed from the first to the last in one go: one between them that is wrong is wrong for its
        checksum as well, which begins with it.
        """
        sequences, kinds, decisions, users, keys, bodies, links, sums = zip(*rows, strict=True)
        named = zip(sequences, kinds, decisions, strict=True)
        whole = zip(kinds, decisions, users, keys, bodies, strict=True)
        try:
            last = crc32(
                "".join([f"{sequence}\x1f{kind}\x1f{decision}" for sequence, kind, decision in named]).encode(),
                self.link,
            )
            texts = [f"{kind}\x1f{decision}\x1f{user}\x1f{key}\x1f{body}" for kind, decision, user, key, body in whole]
            found = tuple(map(crc32, map(str.encode, texts), links))
        except (TypeError, OverflowError):  # what is damaged may be of any type
            return False
        if found != sums or last != links[-1]:
            return False
        self.link = last
        return True

    def wrong(self, row: Stored) -> str:
        """Say what is wrong with the next row, "" where nothing is."""
        sequence, kind, decision, user, key, body, kept, summed = row
        # The two functions above, written out: a start does this for every event since the snapshot.
        expected = crc32(f"{sequence}\x1f{kind}\x1f{decision}".encode(), self.link)
        if kept == expected and summed == crc32(f"{kind}\x1f{decision}\x1f{user}\x1f{key}\x1f{body}".encode(), kept):
            self.link = kept
            return ""
        self.link = kept if type(kept) is int and 0 <= kept < 1 << 32 else expected  # each damage is told once
        if is_whole(row):
            return f"event {sequence} does not follow the one before: events are missing there"
        return f"event {sequence} is not what was recorded"


def hidden(text: str | None, salt: int) -> int | None:
    """Return a number to find a text by in an index: SQLite leaves copies of what was in an index on its pages."""
    return None if text is None else crc32(text.encode(), salt)
