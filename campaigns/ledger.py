"""What the clients of a campaign know: all that they sent, and all that was acknowledged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Visit:
    """One request for a decision and the feedback to it, as its client saw them."""

    key: str
    user: str
    request: dict[str, Any]
    decision: dict[str, Any] | None = None
    """The answer that was acknowledged."""
    feedback: dict[str, Any] | None = None
    """The body that was sent, acknowledged or not."""
    recorded: int = 0
    duplicates: int = 0
    """How often the feedback was answered with that status."""
    unsure: bool = False
    """Whether some delivery of the feedback got no answer, or was turned away."""
    erasing: bool = False
    erased: bool = False
    """Whether the user was to be erased, and whether that was acknowledged."""

    @property
    def acknowledged(self) -> bool:
        """Whether the feedback was."""
        return self.recorded + self.duplicates > 0


@dataclass
class Ledger:
    """All visits, and what was wrong with the answers."""

    visits: dict[str, Visit] = field(default_factory=dict)
    arms: dict[str, bool | None] = field(default_factory=dict)
    """Arms that were added on the way: whether they are active, None while a change is not acknowledged."""
    answers: int = 0
    """Requests that were answered as they should be."""
    unanswered: int = 0
    """Requests whose connection broke before the answer was there."""
    refused: int = 0
    """Requests that were answered 503."""
    wrong: list[str] = field(default_factory=list)
    """A sentence for each answer that should not have been given."""

    def decided(self, visit: Visit, answer: dict[str, Any]) -> None:
        """Note an acknowledged decision: the first one counts, and each later one must be the same."""
        if answer.get("user") != visit.user:
            self.wrong.append(f"{visit.key}: asked for {visit.user}, and was answered {answer}")
        if visit.decision is None:
            visit.decision = answer
        elif visit.decision != answer:
            self.wrong.append(f"{visit.key}: was first answered {visit.decision}, and then {answer}")

    def fed(self, visit: Visit, answer: dict[str, Any], *, again: bool) -> None:
        """Note an acknowledged feedback; `again` if it had been acknowledged before it was sent."""
        status = answer.get("status")
        visit.recorded += status == "recorded"
        visit.duplicates += status == "duplicate"
        if status not in {"recorded", "duplicate"}:
            self.wrong.append(f"{visit.key}: the feedback to {answer.get('id')} was answered {answer}")
        elif again and status == "recorded":
            self.wrong.append(f"{visit.key}: an acknowledged feedback was recorded again")
        elif visit.recorded > 1:
            self.wrong.append(f"{visit.key}: recorded {visit.recorded} times")

    @property
    def decisions(self) -> int:
        """How many decisions were acknowledged."""
        return sum(visit.decision is not None for visit in self.visits.values())

    @property
    def feedbacks(self) -> int:
        """How many feedbacks were acknowledged."""
        return sum(visit.acknowledged for visit in self.visits.values())

    @property
    def erasures(self) -> int:
        """How many users were erased."""
        return len({visit.user for visit in self.visits.values() if visit.erased})

    @property
    def repeats(self) -> int:
        """How many acknowledgements said that the feedback was there already."""
        return sum(visit.duplicates for visit in self.visits.values())
