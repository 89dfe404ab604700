"""What a store holds, in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

from pamo.store.base import Objective, Setup
from pamo.store.encoding import DECISION, FEEDBACK
from pamo.store.reading import Reader


@dataclass(frozen=True)
class Overview:
    """The objectives of a store, and how much there is of everything else.

    kinds: events by kind. pending: decisions without feedback. sizes: bytes on the disk by part. last_at: the time of
    the last event, in seconds since 1970; None where there is none but the objectives.
    """

    format: int
    objectives: tuple[Objective, ...]
    overall: Objective
    active_arms: int
    retired_arms: int
    users: int
    kinds: dict[str, int]
    pending: int
    sizes: dict[str, int]
    last_at: float | None

    @property
    def events(self) -> int:
        """All events of the journal, the objectives among them."""
        return sum(self.kinds.values())

    @property
    def decisions(self) -> int:
        """The decisions that were made."""
        return self.kinds.get(DECISION, 0)

    @property
    def feedbacks(self) -> int:
        """The feedbacks that were given."""
        return self.kinds.get(FEEDBACK, 0)


def overview(store: Reader) -> Overview:
    """Return what there is."""
    arms, last = store.arms(), store.last()
    active = int(arms.active.sum())
    return Overview(
        format=store.setup.format,
        objectives=store.setup.objectives,
        overall=store.setup.overall,
        active_arms=active,
        retired_arms=len(arms.ids) - active,
        users=sum(1 for _ in store.user_ids()),
        kinds=store.kinds(),
        pending=store.pending(),
        sizes=store.sizes(),
        last_at=None if last is None or isinstance(last, Setup) else last.at,
    )
