"""`python -m campaigns.leaking serve …` is `pamo serve …` that forgets to let go of something with every request.

A soak that calls its memory flat would prove nothing about one without the fault.
"""

from __future__ import annotations

import sys
from typing import Any

LEAK = 65_536
"""Bytes that each request leaves behind."""


def main(arguments: list[str]) -> int:
    """Put the fault in, and run pamo's command line."""
    from pamo.cli import main as pamo
    from pamo.service.endpoint import Endpoint

    kept, answer = [], Endpoint.__call__

    async def leaking(self: Any, *arguments: Any) -> None:
        kept.append(bytes(range(256)) * (LEAK // 256))
        await answer(self, *arguments)

    Endpoint.__call__ = leaking  # type: ignore[method-assign, assignment]  # that is the fault
    return pamo(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
