"""What only the client answers; the rest is what the engine answers."""

from __future__ import annotations

from dataclasses import dataclass

from pamo.engine.requests import refusal
from pamo.errors import PamoError
from pamo.store import Outcome, Receipt


@dataclass(slots=True, frozen=True)
class FeedbackResult:
    """What became of one feedback of many.

    status: "recorded", "duplicate" (the same was recorded before, which is as good), "conflict" (another one was),
    "unknown" (there is no such decision, or it did not choose that arm) or "expired" (it came too late). id: the
    decision's. learned and not_learned: as in `Feedback`. detail: why it was refused, None if it was not.

    >>> FeedbackResult("d1", "recorded", ("arm: taste",)).error
    >>> FeedbackResult("d2", "expired", detail="decision d2 took feedback for 60 s only").error
    ExpiredDecisionError('decision d2 took feedback for 60 s only: nothing was learned')
    """

    id: str
    status: str
    learned: tuple[str, ...] = ()
    not_learned: tuple[str, ...] = ()
    detail: str | None = None

    @property
    def error(self) -> PamoError | None:
        """What `feedback` would have raised, None if this feedback counts."""
        if self.status in ("recorded", "duplicate"):
            return None
        reason = self.detail or f"the feedback to decision {self.id} was refused: {self.status}"
        try:
            return refusal(Receipt(Outcome(self.status), reason=reason))
        except ValueError:
            return PamoError(reason)  # a newer service has more to say
