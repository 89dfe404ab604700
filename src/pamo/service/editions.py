"""What an edition of the service has beyond the plain one: `pamo demo` is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pamo.engine import Engine
from pamo.service.dashboard.pages import View
from pamo.service.operations import Operation


def _nothing(engine: Engine) -> None:
    """Leave the engine as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """Operations and views beyond the plain ones, and what is done at the start.

    views: they come first in the menu. prepare: is handed the engine before anybody is served. started: is handed the
    address where it serves; without it the address is printed.
    """

    operations: tuple[Operation, ...] = ()
    views: tuple[View, ...] = ()
    prepare: Callable[[Engine], None] = _nothing
    started: Callable[[str], None] | None = None


PLAIN = Edition()
"""The service as `pamo serve` runs it."""
