"""From an answer that is none to the error that it stands for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pamo.errors import (
    ConflictError,
    ExpiredDecisionError,
    InputError,
    PamoError,
    RefusedError,
    ServiceError,
)

if TYPE_CHECKING:
    import httpx

_ERRORS: dict[int, type[PamoError]] = {
    400: InputError,
    401: RefusedError,
    403: RefusedError,
    409: ConflictError,
    410: ExpiredDecisionError,
    413: InputError,
    415: InputError,
    422: InputError,
}


def failure(url: str, attempts: int, response: httpx.Response, missing: type[PamoError]) -> PamoError:
    """Return the error for an answer that is not a success. missing: the kind for something that is not there."""
    status, problem = response.status_code, _problem(response)
    detail, field = _text(problem, "detail") or _text(problem, "title"), _text(problem, "field")
    tried = f"{attempts} attempts" if attempts > 1 else "1 attempt"
    kind = missing if status == 404 and detail is not None else _ERRORS.get(status)
    if kind is not None:
        detail = detail or f"the service at {url} answered {status} without saying why"
        return InputError(detail, field) if kind is InputError else kind(detail)
    if detail is not None:
        return ServiceError(f"the service at {url} answered {status} after {tried}: {detail}")
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
