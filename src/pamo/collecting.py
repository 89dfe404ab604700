"""Times at which Python does not look for cycles of objects."""

from __future__ import annotations

import atexit
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Times:
    """How many of them there are now, in any thread, and whether Python collects when there are none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count, self._usual = 0, True

    def begin(self) -> None:
        with self._lock:
            if self._count == 0:
                self._usual = gc.isenabled()
                gc.disable()
            self._count += 1

    def end(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0 and self._usual:
                gc.enable()


_times = _Times()


@contextmanager
def uncollected() -> Iterator[None]:
    """Collect nothing meanwhile: for what makes objects by the million that stay, or go without being in a cycle.

    >>> with uncollected():
    ...     gc.isenabled()
    False
    """
    _times.begin()
    try:
        yield
    finally:
        _times.end()


RARELY = 1_000_000
"""So many objects more than before, and Python looks for cycles: compiling makes a fifth of them."""


def collect_rarely() -> None:
    """Have this process look for cycles rarely, and not once more when it ends: for one that ends soon.

    Whatever was compiled would be looked over as soon as it is there, and again at the end: a tenth of a first run.
    """
    gc.set_threshold(RARELY)
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
