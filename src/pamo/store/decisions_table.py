"""Decisions as a table for other tools, CSV or Parquet: a row each, with what came of it."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pamo.collecting import uncollected
from pamo.contract.events import HISTORY, OVERALL, DecisionMade, Made, together
from pamo.contract.objectives import Objective
from pamo.store.base import Store
from pamo.store.maintenance import Progress, written_whole
from pamo.tabular import OBJECTIVES, require_pyarrow

BEFORE = ("time", "decision", "user", "place", "arm", "offer", "propensity", "policy")
AFTER = (OVERALL, "feedback_time")
"""Columns before and after those of the objectives."""
GROUP = 50_000
"""Rows that are written together: a group of rows of a Parquet file."""

_FIRST, _LAST = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (1, 9999))

Write = Callable[[Sequence[Sequence[Any]]], object]


def export_decisions(
    store: Store,
    path: str | Path,
    *,
    since: float = -math.inf,
    until: float = math.inf,
    progress: Progress | None = None,
) -> tuple[int, int]:
    """Write the decisions of a time to a .csv or .parquet file, a row each; return how many, and how many rows.

    since, until: seconds since 1970, the first included and the last not. A decision for several arms has a row for
    each, the best first (`place`). Its feedback is what has come up to now, the parts of it put together. The offer is
    empty where that was all active arms, and so is the propensity where it is not known: of the arms after the first,
    and of ratings from before there were decisions. progress: is told how many more of the journal's events were done.

    The file is written under another name first, as `pamo.store.maintenance.export` does it.
    """
    objectives = list({one.name: one for setup in store.setups() for one in setup.objectives}.values())
    names = [one.name for one in objectives]
    opened = _csv if Path(path).suffix == ".csv" else _parquet
    found: list[tuple[Any, ...]] = []
    decisions = rows = done = 0
    with uncollected(), written_whole(path, "the decisions") as beside, opened(beside, objectives) as write:
        for sequence, page in store.decided(since, until):
            found += [row for made in page for row in _rows(made, names)]
            decisions += len(page)
            if len(found) >= GROUP:
                rows += len(found)
                write(found)
                found.clear()
            if progress is not None:
                progress(sequence - done)
            done = sequence
        if found:
            write(found)
    return decisions, rows + len(found)


def columns_of(objectives: Sequence[Objective]) -> list[str]:
    """Return the names of the columns: an objective's is its own, unless another column has that."""
    own = [f"{one.name} score" if one.name in (*BEFORE, *AFTER) else one.name for one in objectives]
    return [*BEFORE, *own, *AFTER]


def _rows(made: Made, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    decision, parts = made.decision, made.parts
    whole = together(parts)
    for place, arm in enumerate(decision.arms, start=1):
        given = whole.get(arm)
        scores = {} if given is None else given.rewards
        yield (
            decision.at,
            decision.id,
            decision.user,
            place,
            arm,
            decision.offer,
            _chance(decision, place),
            decision.policy,
            *map(scores.get, names),
            None if given is None else given.overall,
            None if given is None else given.at,
        )


def _chance(decision: DecisionMade, place: int) -> float | None:
    return decision.propensity if place == 1 and decision.policy != HISTORY else None


@contextmanager
def _csv(path: Path, objectives: Sequence[Objective]) -> Iterator[Write]:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns_of(objectives))
        offer = BEFORE.index("offer")

        def write(rows: Sequence[Sequence[Any]]) -> None:
            writer.writerows(
                (
                    _written(row[0]),
                    *row[1:offer],
                    None if row[offer] is None else "|".join(row[offer]),
                    *row[offer + 1 : -1],
                    _written(row[-1]),
                )
                for row in rows
            )

        yield write


@contextmanager
def _parquet(path: Path, objectives: Sequence[Objective]) -> Iterator[Write]:
    arrow, parquet = require_pyarrow("decisions as Parquet")
    text, number, time = arrow.string(), arrow.float64(), arrow.timestamp("us", "UTC")
    kinds = [time, text, text, arrow.int32(), text, arrow.list_(text), number, text]
    kinds += [*(number for _ in objectives), number, time]
    about = {OBJECTIVES: json.dumps([asdict(one) for one in objectives])}
    schema = arrow.schema(list(zip(columns_of(objectives), kinds, strict=True)), metadata=about)
    with parquet.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:

        def write(rows: Sequence[Sequence[Any]]) -> None:
            first, *columns, last = map(list, zip(*rows, strict=True))
            columns = [list(map(_microseconds, first)), *columns, list(map(_microseconds, last))]
            writer.write_table(arrow.table(columns, schema=schema))

        yield write


def _microseconds(at: float | None) -> int | None:
    return round(at * 1e6) if _told(at) else None  # type: ignore[operator]


def _written(at: float | None) -> str | None:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds") if _told(at) else None  # type: ignore[arg-type]


def _told(at: float | None) -> bool:
    """Tell whether a time is one that calendars have: whoever wrote another had a clock of their own."""
    return at is not None and _FIRST <= at < _LAST
