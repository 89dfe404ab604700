"""What goes wrong, as HTTP says it: a status, and a JSON problem (RFC 9457) with a code and one sentence."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import msgspec

from pamo.contract.codes import CODES, Code
from pamo.errors import PamoError, unknown_name

MEDIA_TYPE = "application/problem+json"

_FIELDS: dict[str, str] = {Code.UNKNOWN_DECISION: "id", Code.EXPIRED_DECISION: "id"}


class ProblemBody(msgspec.Struct, rename={"kind": "type"}):
    """What every error is answered with: its status, a code for programs, a sentence, and the field that it is about.

    The codes stay as they are; sentences may improve. field: only where the error is about one.
    """

    title: str
    status: int
    code: str
    detail: str
    field: str | msgspec.UnsetType = msgspec.UNSET
    kind: str = "about:blank"


class Problem(Exception):
    """Ends a request with a status and a sentence.

    headers: more of them, such as Retry-After. code: what went wrong, by default what the status says.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        field: str | None = None,
        headers: dict[str, str] | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.field = status, detail, field
        self.headers = headers or {}
        self.code = code or CODES.get(status, Code.FAILED)

    def body(self) -> ProblemBody:
        """Return what is answered."""
        title = HTTPStatus(self.status).phrase
        field = msgspec.UNSET if self.field is None else self.field
        return ProblemBody(title, self.status, self.code, self.detail, field)


def problem_of(error: PamoError) -> Problem:
    """Return the problem that an error of the engine is to a client."""
    status = Code(error.code).status  # type: ignore[call-arg]
    field = getattr(error, "field", None) or _FIELDS.get(error.code)
    return Problem(status, str(error), field, {"retry-after": "1"} if status == 503 else None, error.code)


_PLACE = re.compile(r" - at `(?:key in )?\$\.?(?P<place>[^`]*)`$")
_NAME = re.compile(r"field `(?P<name>[^`]*)`")


def misread(error: msgspec.DecodeError, kind: Any = None) -> Problem:
    """Return the problem with a body that is not JSON, or not what was expected: of this kind.

    >>> try:
    ...     msgspec.json.decode(b'{"k": "one"}', type=dict[str, int])
    ... except msgspec.DecodeError as error:
    ...     print(misread(error).status, misread(error).detail)
    422 expected int, got str
    """
    text = str(error)
    if not isinstance(error, msgspec.ValidationError):
        return Problem(400, f"expected a body in JSON: {text.removeprefix('JSON is malformed: ')}")
    found = _PLACE.search(text)
    place = found["place"] if found else ""
    text = _PLACE.sub("", text)
    named = _NAME.search(text)
    if named and not place and "unknown" in text and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return problem_of(unknown_name("field", named["name"], kind.__struct_encode_fields__, named["name"]))
    if named:
        place = f"{place}.{named['name']}" if place else named["name"]
    place = place.replace("[...]", "")
    detail = text.replace("`", "").replace("Object", "object")
    return Problem(422, f"{detail[:1].lower()}{detail[1:]}" + (f", at {place}" if place else ""), place or None)
