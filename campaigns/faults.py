"""Faults for campaigns to find: `python -m campaigns.faults FAULT serve …` is `pamo serve …` with one put in.

A campaign that finds nothing in a server with a fault would prove nothing about one without.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pamo.store import Event, FeedbackGiven, Outcome, Receipt


def acknowledge_early() -> None:
    """Acknowledge before COMMIT, which comes with a later batch; with PostgreSQL, before the log is on the disk."""
    from pamo.store.sqlite import SqliteStore

    append, batches = SqliteStore._append, 0

    def append_early(self: Any, events: list[Event]) -> list[Receipt]:
        nonlocal batches
        if not self._write.in_transaction:
            self._write.execute("BEGIN IMMEDIATE")
        receipts = append(self, events)
        batches += 1
        if batches % 8 == 0:
            self._write.execute("COMMIT")
        return receipts

    SqliteStore._append = append_early  # type: ignore[method-assign]  # that is the fault
    SqliteStore.count = lambda *_: False  # type: ignore[method-assign]  # which has a transaction of its own
    with contextlib.suppress(ImportError):
        from pamo.store.postgres_link import Link

        connect = Link._connect

        def hasty(self: Any) -> Any:
            connection = connect(self)
            connection.execute("SET synchronous_commit = off")
            return connection

        Link._connect = hasty  # type: ignore[method-assign]  # that is the fault


def count_twice() -> None:
    """Add a feedback to the sums again whenever it is delivered again."""
    from pamo.store.sqlite import SqliteStore

    append = SqliteStore._append

    def append_again(self: Any, events: list[Event]) -> list[Receipt]:
        receipts = append(self, events)
        for event in _repeated(self, events, receipts):
            self._fold.apply(event)
        return receipts

    SqliteStore._append = append_again  # type: ignore[method-assign]  # that is the fault
    with contextlib.suppress(ImportError):
        from pamo.store.fold import Fold
        from pamo.store.postgres import PostgresStore

        append_in = PostgresStore._append_in

        def append_in_again(self: Any, connection: Any, events: list[Event], changes: bool) -> list[Receipt]:
            receipts = append_in(self, connection, events, changes)
            fold = Fold(self.setup)
            for event in _repeated(self, events, receipts):
                fold.apply(event)
            fold.feedbacks = 0
            self._add(connection, fold)
            return receipts

        PostgresStore._append_in = append_in_again  # type: ignore[method-assign]  # that is the fault


def _repeated(store: Any, events: Sequence[Event], receipts: Sequence[Receipt]) -> Iterator[FeedbackGiven]:
    for event, receipt in zip(events, receipts, strict=True):
        if isinstance(event, FeedbackGiven) and receipt.outcome is Outcome.DUPLICATE:
            kept = store.feedback(event.decision)
            if kept is not None:  # with PostgreSQL it may be of this very batch, and not to be read yet
                yield kept


def wait_for_ever() -> None:
    """Never hang up on who does not go on."""
    from pamo.service.connections import Protocol

    Protocol.look = lambda self, now: None  # type: ignore[method-assign]  # that is the fault


FAULTS: dict[str, Callable[[], None]] = {
    "acknowledge-early": acknowledge_early,
    "count-twice": count_twice,
    "wait-for-ever": wait_for_ever,
}


def main(arguments: list[str]) -> int:
    """Put the fault in, and run pamo's command line."""
    from pamo.cli import main as pamo

    FAULTS[arguments[0]]()
    return pamo(arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
