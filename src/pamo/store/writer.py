"""Group commit: one thread takes what has been handed in meanwhile, and commits it together."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from pamo.errors import StoreError
from pamo.store.base import CLOSED, Event, Receipt

MOST = 2000
"""Events that are committed together at most, so that nobody waits for a very long batch."""

Result = TypeVar("Result")
Handed = tuple[Sequence[Event], "Future[list[Receipt]]"]


class Writer:
    """Calls `commit` with many events at a time, from one thread, and gives each caller the receipts for theirs.

    While one batch is on its way to the disk the next one gathers, so that a slow disk makes batches larger, not the
    queue longer. `between` is called after a batch.
    """

    def __init__(self, commit: Callable[[list[Event]], list[Receipt]], between: Callable[[], None]) -> None:
        self._commit = commit
        self._between = between
        self._queue: queue.SimpleQueue[Handed | Callable[[], None] | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="pamo-writer", daemon=True)
        self._thread.start()

    def submit(self, events: Sequence[Event]) -> Future[list[Receipt]]:
        """Hand in events."""
        done: Future[list[Receipt]] = Future()
        self._put((events, done))
        return done

    def call(self, task: Callable[[], Result]) -> Result:
        """Have the thread do something between two batches, and return what that gives."""
        done: Future[Result] = Future()

        def run() -> None:
            try:
                done.set_result(task())
            except BaseException as error:
                done.set_exception(error)

        self._put(run)
        return done.result()

    def close(self) -> None:
        """Finish what was handed in, and end the thread."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _put(self, item: Handed | Callable[[], None]) -> None:
        with self._closing:  # so that nothing is put behind the end
            if self._closed:
                raise StoreError(CLOSED)
            self._queue.put(item)

    def _run(self) -> None:
        while True:
            item = self._queue.get()
            while item is not None and not callable(item):
                batch, item = self._gather(item)
                self._write(batch)
            if item is None:
                return
            item()

    def _gather(self, first: Handed) -> tuple[list[Handed], Handed | Callable[[], None] | None]:
        """Return all that is waiting, up to what is not an event or is too much; and that, or a task for nothing."""
        batch, count = [first], len(first[0])
        while count < MOST:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                break
            if item is None or callable(item):
                return batch, item
            batch.append(item)
            count += len(item[0])
        return batch, self._between

    def _write(self, batch: list[Handed]) -> None:
        # From here on a caller can no longer take events back; those who did before are left out.
        batch = [(events, done) for events, done in batch if done.set_running_or_notify_cancel()]
        try:
            receipts = self._commit([event for events, _ in batch for event in events])
        except BaseException as error:
            for _, done in batch:
                done.set_exception(error)
            return
        start = 0
        for events, done in batch:
            done.set_result(receipts[start : start + len(events)])
            start += len(events)
