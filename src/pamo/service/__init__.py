"""The HTTP service: decisions and feedback over the network, for applications in any language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pamo.errors import missing_extra

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from pamo.engine import Engine
    from pamo.service.settings import Settings

__all__ = ["create_app", "require", "serve"]


def create_app(
    engine: Engine, settings: Settings | None = None, projects: Mapping[str, Engine] | None = None
) -> Starlette:
    """Return the service as an ASGI application, to be run by any server. The engines are the caller's to close.

    projects: the engines of the projects that the settings name.
    """
    require()
    from pamo.service import app

    return app.create_app(engine, settings, projects=projects)


def serve(settings: Settings) -> int:
    """Open the store, serve until told to stop, and return the exit code."""
    require()
    from pamo.service import server

    return server.serve(settings)


def require() -> None:
    """Raise an error that says what to install, where something is missing."""
    for package in ("starlette", "uvicorn", "httptools", "prometheus_client", "msgspec"):
        try:
            __import__(package)
        except ImportError:
            raise missing_extra("the service", package, "server") from None
