"""Folds a journal's rows many at a time, as a start does: what is alike is decoded and added together.

Most events are decisions, of which only the number matters to the sums, and feedback with all its scores and nothing
else. Rows of the latter are decoded in one call and added in one; whatever else comes goes through `Fold.apply`, in its
turn, so that every row is added to in the journal's order and the sums are to the bit those of one event at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, groupby
from typing import Any

import numpy as np
from msgspec import MsgspecError, defstruct, field
from msgspec.json import Decoder
from msgspec.structs import astuple

from pamo.store.encoding import DECISION, FEEDBACK, decode
from pamo.store.fold import Fold

MANY = 50
"""Rows from which on it pays to add them together."""

Stored = Sequence[Any]
"""A row of the journal: sequence, kind, decision, user, key, body, and what its store keeps besides."""


class Folding:
    """Adds rows to a fold."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        # Every field has to be there and no other may be, so that what is not as plain as that is not decoded at all.
        names = [(f"r{place}", float, field(name=name)) for place, name in enumerate(fold.scales.names)]
        rewards = defstruct("Rewards", names, forbid_unknown_fields=True, gc=False)
        fields: Any = [("rewards", rewards), ("at", float), ("overall", float), ("arm", str)]
        fields.append(("group", tuple[str, str] | None, None))
        plain: Any = defstruct("Plain", fields, forbid_unknown_fields=True, gc=False)
        self._decode, self._decode_all = Decoder(plain).decode, Decoder(list[plain]).decode

    def add(self, rows: Sequence[Stored]) -> None:
        """Add rows, in their order."""
        told = [row for row in rows if row[1] != DECISION]
        if all(row[1] == FEEDBACK for row in told):
            self._add_feedback(told)
        else:
            for kind, run in groupby(told, key=lambda row: row[1] == FEEDBACK):
                if kind:
                    self._add_feedback(list(run))
                else:
                    for row in run:
                        self._fold.apply(decode(*row[1:6]), row[0])
        self._fold.decisions += len(rows) - len(told)
        self._fold.sequence = rows[-1][0]

    def _add_feedback(self, rows: list[Stored]) -> None:
        if self._fold.setup.half_life is not None:  # rounds of different ages weigh differently
            for row in rows:
                self._fold.apply(decode(*row[1:6]), row[0])
            return
        try:
            plain = self._decode_all(f"[{','.join([row[5] for row in rows])}]")
        except (MsgspecError, TypeError):
            plain = []
        if len(plain) != len(rows):  # some are not plain, or one of them is damaged
            plain = [self._plain(row[5]) for row in rows]
        if len(rows) >= MANY and None not in plain:
            self._add_plain(rows, plain)
            return
        start = 0
        for whole, run in groupby(plain, key=lambda one: one is not None):
            some = list(run)
            if whole and len(some) >= MANY:
                self._add_plain(rows[start : start + len(some)], some)
            else:
                for row in rows[start : start + len(some)]:
                    self._fold.apply(decode(*row[1:6]), row[0])
            start += len(some)

    def _add_plain(self, rows: Sequence[Stored], plain: list[Any]) -> None:
        scores = np.empty((len(plain), self._fold.objectives + 1))
        rewards = chain.from_iterable([astuple(one.rewards) for one in plain])
        scores[:, :-1] = np.fromiter(rewards, float, scores[:, :-1].size).reshape(len(plain), -1)
        scores[:, -1] = [one.overall for one in plain]
        self._fold.observe_many(
            [one.arm for one in plain], [row[3] for row in rows], scores, [one.group for one in plain]
        )

    def _plain(self, body: Any) -> Any:
        try:
            return self._decode(body)
        except (MsgspecError, TypeError):
            return None
