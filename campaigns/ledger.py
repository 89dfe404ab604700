"""What the clients of a campaign know: all that they sent, and all that was acknowledged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Delivery:
    """One feedback, whole or a part, sent until it was answered. begun, done: moments by the ledger's count."""

    names: frozenset[str]
    """What it says: objectives, "overall" and "preference"."""
    begun: int
    done: int | None = None
    status: str = ""
    attempts: int = 0
    """How often it was sent; all but the last got no answer, or were turned away."""


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
    deliveries: list[Delivery] = field(default_factory=list)
    recorded: int = 0
    duplicates: int = 0
    """How often the whole feedback was answered with that status."""
    erasing: bool = False
    erased: bool = False
    """Whether the user was to be erased, and whether that was acknowledged."""

    @property
    def acknowledged(self) -> bool:
        """Whether the feedback was."""
        return self.recorded + self.duplicates > 0

    @property
    def unanswered(self) -> int:
        """How often something of the feedback was sent without an answer, so that it may have been recorded."""
        return sum(one.attempts - (one.done is not None) for one in self.deliveries)


@dataclass
class Ledger:
    """All visits, and what was wrong with the answers."""

    visits: dict[str, Visit] = field(default_factory=dict)
    arms: dict[str, bool | None] = field(default_factory=dict)
    """Arms that were added on the way: whether they are active, None while a change is not acknowledged."""
    features: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    """What was said of those arms, and of guests, None while it is not acknowledged."""
    answers: int = 0
    """Requests that were answered as they should be."""
    unanswered: int = 0
    """Requests whose connection broke before the answer was there."""
    refused: int = 0
    """Requests that were answered 503."""
    moment: int = 0
    """Counts what clients did, one thing after another."""
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

    def said(self, of: str, *several: dict[str, Any]) -> dict[str, Any]:
        """Return what will be known of an arm, or of a guest, once this is acknowledged; until then it may not be."""
        known = self.features.get(of) or {}
        for one in several:
            known = {name: value for name, value in {**known, **one}.items() if value is not None}
        self.features[of] = None
        return known

    def deliver(self, visit: Visit, body: dict[str, Any]) -> Delivery:
        """Note a feedback, or a part of one, that is about to be sent."""
        self.moment += 1
        delivery = Delivery(frozenset(body["rewards"]) | (body.keys() & {"overall", "preference"}), self.moment)
        visit.deliveries.append(delivery)
        return delivery

    def fed(self, visit: Visit, delivery: Delivery, answer: dict[str, Any], *, part: bool = False) -> None:
        """Note an acknowledged feedback, or a part of one."""
        self.moment += 1
        delivery.done, delivery.status = self.moment, str(answer.get("status"))
        before = [one.names for one in visit.deliveries if one.done is not None and one.done < delivery.begun]
        if not part:
            visit.recorded += delivery.status == "recorded"
            visit.duplicates += delivery.status == "duplicate"
        if delivery.status not in {"recorded", "duplicate"}:
            self.wrong.append(f"{visit.key}: the feedback to {answer.get('id')} was answered {answer}")
        elif delivery.status == "recorded" and delivery.names <= frozenset().union(*before):
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
