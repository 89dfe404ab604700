"""From an answer that is none to the error that it stands for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pamo.contract.codes import CODES
from pamo.errors import PamoError, ServiceError, error_of

if TYPE_CHECKING:
    import httpx


def failure(url: str, attempts: int, response: httpx.Response) -> PamoError:
    """Return the error for an answer that is not a success."""
    status, problem = response.status_code, _problem(response)
    detail, field = _text(problem, "detail") or _text(problem, "title"), _text(problem, "field")
    code = _text(problem, "code") or (None if status == 404 else CODES.get(status))  # somebody on the way may answer
    error = error_of(code, detail or f"the service at {url} answered {status} without saying why", field)
    if error is not None:
        return error
    tried = f"{attempts} attempts" if attempts > 1 else "1 attempt"
    if detail is not None:
        return ServiceError(f"the service at {url} answered {status} after {tried}: {detail}", code=code)
    if "Location" in response.headers:
        return ServiceError(f"the service at {url} sends elsewhere, to {response.headers['Location']}: use that URL")
    return ServiceError(
        f"expected an answer of pamo's service at {url}, got {status} after {tried}: "
        "check the URL, and that the service runs there"
    )


def silence(url: str, attempts: int, error: Exception | None) -> ServiceError:
    """Return the error for a service that did not answer."""
    tried = f"{attempts} attempts" if attempts > 1 else "1 attempt"
    why = f"{type(error).__name__}: {error}".rstrip(": ")
    return ServiceError(
        f"the service at {url} did not answer in {tried} ({why}): check the URL, and that the service runs there"
    )


def unreadable(url: str, path: str, error: Exception) -> ServiceError:
    """Return the error for an answer that says something else than it should."""
    return ServiceError(
        f"the service at {url} answered {path} with something else than expected ({error}): "
        "check the URL, and that client and service are of the same version"
    )


def _problem(response: httpx.Response) -> dict[str, Any]:
    """Return a problem+json, empty if the answer is none: what others say is not meant for pamo's users."""
    if not response.headers.get("Content-Type", "").startswith("application/problem+json"):
        return {}
    try:
        problem = json.loads(response.content)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _text(problem: dict[str, Any], name: str) -> str | None:
    value = problem.get(name)
    return value if isinstance(value, str) and value else None
