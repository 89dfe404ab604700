"""One progress bar for all long work: on stderr, gone when the work is done, with the time that is left."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator

from tqdm import tqdm

Progress = Callable[[float], None]
"""Called with the share of the work (0 to 1) that has been done since the last call."""

_TICKS = 10_000
"""Steps of every bar, whatever its work is counted in."""
_FORM = "{desc}: {percentage:3.0f} %|{bar}| {elapsed} gone, {remaining} left"


def unseen(share: float) -> None:
    """Let progress pass unseen: what a function that takes a `Progress` does by default."""


def scaled(progress: Progress, share: float) -> Progress:
    """Return the progress of a part that is this share of the whole.

    >>> scaled(print, 0.25)(0.5)
    0.125
    """
    return lambda part: progress(part * share)


class _Tqdm(tqdm):  # type: ignore[type-arg]  # it is no iterator here
    """tqdm, but what ends a refresh half-way, an interrupt or a stderr that is gone, does not keep its lock.

    With tqdm's own the thread that was interrupted keeps it, and the next bar that another thread moves waits for ever:
    a notebook's next cell. The lock is ours alone, and this process's.
    """

    def refresh(self, nolock: bool = False, lock_args: object = None) -> None:
        if not self.disable:
            with contextlib.nullcontext() if nolock else _LOCK:
                self.display()


_LOCK = threading.RLock()
_Tqdm.set_lock(_LOCK)


class Bar:
    """A bar over work of some size, as a context; `advance` is its `Progress`. It never goes beyond its end.

    total: the size of the work, in any unit. shown: whether there is anything to see. delay: seconds before it shows.

    >>> with Bar("counting", total=3, shown=False) as bar:
    ...     bar.advance(1)
    """

    def __init__(self, name: str, *, total: float = 1.0, shown: bool = True, delay: float = 0.0) -> None:
        self._bar = _Tqdm(
            desc=name,
            total=_TICKS,
            file=sys.stderr,
            leave=False,
            bar_format=_FORM,
            delay=delay,
            disable=not (shown and total > 0),
        )
        self._total = self._left = total

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def advance(self, amount: float) -> None:
        """Show that so much more has been done."""
        self._left = max(self._left - amount, 0.0)
        # In whole ticks: a sum of shares may end a little above the whole, of which tqdm warns.
        self._bar.update(max(int((1.0 - self._left / self._total) * _TICKS) - self._bar.n, 0) if self._total else 0)

    def rename(self, name: str) -> None:
        """Say what is being done from here on."""
        self._bar.set_description_str(name)

    def say(self, line: str) -> None:
        """Write a line above the bar, if it is shown."""
        if not self._bar.disable:
            self._bar.write(line, file=sys.stderr)


@contextlib.contextmanager
def waiting(name: str) -> Iterator[Callable[[str], object]]:
    """Show how long something takes that cannot tell how far it is; what is yielded changes the name of it."""
    done = threading.Event()
    form = "{desc}: {elapsed} gone"
    with _Tqdm(desc=name, file=sys.stderr, leave=False, bar_format=form, disable=None) as bar:  # None: not in a file

        def tick() -> None:
            while not done.wait(0.5):
                bar.refresh()

        ticking = threading.Thread(target=tick, daemon=True)
        ticking.start()
        try:
            yield bar.set_description_str
        finally:
            done.set()
            ticking.join()
