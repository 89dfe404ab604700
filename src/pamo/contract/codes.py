"""The codes of problems and outcomes. Programs go by them; sentences are for people, and may change."""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """What happened, in one stable word: of a problem, or of one of many. A newer service may have others."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Code:
        """Make a code that says what it means."""
        code = str.__new__(cls, value)
        code._value_ = value
        code.meaning = meaning
        return code

    RECORDED = "recorded", "It is recorded."
    DUPLICATE = "duplicate", "The same had been recorded before: harmless, and answered like the first time."

    UNKNOWN_DECISION = "unknown_decision", "There is no decision of that id, or none any more."
    UNKNOWN_ARM = "unknown_arm", "There is no arm of that id: add it first."
    ARM_NOT_CHOSEN = "arm_not_chosen", "The decision that the feedback is for did not choose that arm."
    FEEDBACK_CONFLICT = "feedback_conflict", "Another feedback was recorded for the decision, and it stays."
    DECISION_CONFLICT = "decision_conflict", "Another decision was recorded under that id."
    KEY_CONFLICT = "key_conflict", "The key was used for another request."
    EXPIRED_DECISION = "expired_decision", "The feedback came too late, and nothing was learned."
    INVALID = "invalid", "A value is not one that can be used; `field` names it."

    MALFORMED = "malformed", "The body is not JSON."
    UNAUTHORIZED = "unauthorized", "A key is needed, or this one is not known."
    FORBIDDEN = "forbidden", "The key has not the role that this takes."
    NOT_FOUND = "not_found", "There is nothing at that path."
    METHOD_NOT_ALLOWED = "method_not_allowed", "What is at that path does not take this method."
    BODY_TIMEOUT = "body_timeout", "The body did not arrive in time."
    TOO_LARGE = "too_large", "The body is too large."
    NOT_JSON = "not_json", "The body is not sent as application/json."
    RATE_LIMITED = "rate_limited", "Too many requests; Retry-After says how many seconds to wait."
    FAILED = "failed", "Something here failed; the service's log says what. Nothing was acknowledged."
    UNAVAILABLE = "unavailable", "It cannot be recorded or answered at the moment, and nothing was acknowledged."
