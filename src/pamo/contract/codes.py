"""The codes of problems and outcomes. Programs go by them; sentences are for people, and may change."""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """What happened, in one stable word: of a problem, or of one of many. A newer service may have others.

    status: of HTTP, for a problem of this code. An arm that is a path's own is 404 where it is not known.
    """

    status: int
    meaning: str

    def __new__(cls, value: str, status: int, meaning: str) -> Code:
        """Make a code that says what it means."""
        code = str.__new__(cls, value)
        code._value_, code.status, code.meaning = value, status, meaning
        return code

    RECORDED = "recorded", 200, "It is recorded."
    DUPLICATE = "duplicate", 200, "The same had been recorded before: harmless, and answered like the first time."

    UNKNOWN_DECISION = "unknown_decision", 404, "There is no decision of that id, or none any more."
    UNKNOWN_ARM = "unknown_arm", 422, "There is no arm of that id: add it first."
    UNKNOWN_EXPERIMENT = "unknown_experiment", 404, "There is no experiment, or none of that name."
    ARM_NOT_CHOSEN = "arm_not_chosen", 422, "The decision that the feedback is for did not choose that arm."
    FEEDBACK_CONFLICT = "feedback_conflict", 409, "Another feedback was recorded for the decision, and it stays."
    DECISION_CONFLICT = "decision_conflict", 409, "Another decision was recorded under that id."
    EXPERIMENT_CONFLICT = "experiment_conflict", 409, "Another experiment is running, or had that name."
    KEY_CONFLICT = "key_conflict", 409, "The key was used for another request."
    EXPIRED_DECISION = "expired_decision", 410, "The feedback came too late, and nothing was learned."
    INVALID = "invalid", 422, "A value is not one that can be used; `field` names it."

    MALFORMED = "malformed", 400, "The body is not JSON."
    UNAUTHORIZED = "unauthorized", 401, "A key is needed, or this one is not known."
    FORBIDDEN = "forbidden", 403, "The key has not the role that this takes."
    NOT_FOUND = "not_found", 404, "There is nothing at that path."
    METHOD_NOT_ALLOWED = "method_not_allowed", 405, "What is at that path does not take this method."
    BODY_TIMEOUT = "body_timeout", 408, "The body did not arrive in time."
    TOO_LARGE = "too_large", 413, "The body is too large."
    NOT_JSON = "not_json", 415, "The body is not sent as application/json."
    RATE_LIMITED = "rate_limited", 429, "Too many requests; Retry-After says how many seconds to wait."
    FAILED = "failed", 500, "Something here failed; the service's log says what. Nothing was acknowledged."
    UNAVAILABLE = "unavailable", 503, "It cannot be recorded or answered at the moment, and nothing was acknowledged."


CODES: dict[int, Code] = {code.status: code for code in Code}
"""What a status says where no code comes with it."""
