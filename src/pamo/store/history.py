"""A store begun with ratings that people gave before there was one: history without decisions.

A rating is recorded as a decision for its one item, by the policy `HISTORY`, and the feedback to it. So the journal's
format, its fold, erasures and exports stay as they are, and all that reads a journal can tell that nobody chose.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from pamo.arrays import Floats
from pamo.contract.events import HISTORY, ArmAdded, DecisionMade, Event, FeedbackGiven, Setup
from pamo.contract.objectives import Objective
from pamo.errors import InputError
from pamo.progress import Progress
from pamo.store.maintenance import begin
from pamo.store.rules import Checker, check_setup
from pamo.tabular import Columns, Problem, problems_text


def import_ratings(
    path: str | Path,
    address: str | Path,
    objectives: Sequence[Objective],
    *,
    overall: Objective,
    user: str = "user",
    item: str = "item",
    at: float,
    progress: Progress | None = None,
) -> tuple[int, int, int]:
    """Begin a store at the address with the ratings of a CSV or Parquet file, in the order of its rows.

    objectives, overall: each is the column of its name. user, item: names of columns. at: the time of all events. A
    cell may be missing; a row without a user, an item or any score is left out. Returns how many ratings were taken
    over, how many rows were left out, and how many items there are. A cell that is wrong is an error that names it.
    """
    setup = Setup(tuple(objectives), overall)
    check_setup(setup)
    names = [one.name for one in (*objectives, overall)]
    if len({*names, user, item}) < len(names) + 2:
        raise InputError(f"expected each column once, got {', '.join((user, item, *names))}")
    table = Columns(path, [user, item, *names], what="ratings, a row a rating", feature="reading ratings")
    problems: list[Problem] = []
    columns: list[Floats] = []
    for one in (*objectives, overall):
        values, wrong = table.numbers(one.name)
        outside = np.flatnonzero((values < one.low) | (values > one.high)).tolist()
        problems += wrong
        problems += [
            Problem(n + 1, one.name, f"expected {one.low:g} to {one.high:g}, got {values[n]:g}") for n in outside
        ]
        columns.append(values)
    if problems:
        raise InputError(f"{Path(path).name}: {problems_text(sorted(problems))}; are the scales right?")
    (whose, users), (which, items) = table.codes(user), table.codes(item)
    scores = np.stack(columns, axis=1)
    kept = np.flatnonzero((whose >= 0) & (which >= 0) & ~np.isnan(scores).all(axis=1))
    if not len(kept):
        raise InputError(f"expected rows with a user, an item and a score, got none in {Path(path).name}")
    check = Checker(setup, lambda _: {}).check

    def events() -> Iterator[Event]:
        yield setup
        for place in np.unique(which[kept]).tolist():
            yield check(ArmAdded(items[place], items[place], at))
        for n in kept.tolist():
            who, what, decision = users[whose[n]], items[which[n]], f"{HISTORY}-{n + 1}"
            given = {
                name: value for name, value in zip(names, scores[n].tolist(), strict=True) if not math.isnan(value)
            }
            score = given.pop(overall.name, None)
            yield check(DecisionMade(decision, who, (what,), 1.0, HISTORY, at, offer=(what,)))
            yield check(FeedbackGiven(decision, given, at, score, arm=what, user=who))

    begin(address, enumerate(events(), start=1), progress=progress)
    return len(kept), len(table) - len(kept), len(np.unique(which[kept]))
