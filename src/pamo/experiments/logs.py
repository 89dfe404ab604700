"""Logs of decisions: who was offered what, what was chosen and with which chance, and what came of it.

A log is read from a table, or from a journal's events, which are words of the contract: whoever has opened the journal
hands them over, and research needs no store.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pamo.arrays import Floats, Ints
from pamo.contract.events import HISTORY, ArmAdded, ArmRetired, DecisionMade, Event, FeedbackGiven, Setup, together
from pamo.contract.objectives import Objective
from pamo.errors import InputError
from pamo.tabular import OBJECTIVES, Columns, Problem, problems_text, readable

OVERALL = "overall"
_SEPARATOR = "|"


class Round(NamedTuple):
    """One decision and what came of it. rewards: raw scores by objective, of those that are known."""

    user: str
    offer: tuple[str, ...]
    arm: str
    propensity: float
    rewards: Mapping[str, float]
    overall: float | None = None
    group: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Log:
    """Rounds in the order in which they were decided.

    objectives: with their scales, the overall score not among them. arms, users: their names. user, arm: (n,), places
    among these. offers, starts: round t was offered `offers[starts[t]:starts[t + 1]]`. propensity: (n,), the chance
    with which the arm was chosen. values: (n, D+1), the scores as they came, the overall score last, NaN where there is
    none. group: of each round, "" where there is none. left_out: what was not taken over, and how often.
    """

    objectives: tuple[Objective, ...]
    arms: tuple[str, ...]
    users: tuple[str, ...]
    user: Ints
    arm: Ints
    offers: Ints
    starts: Ints
    propensity: Floats
    values: Floats
    group: tuple[str, ...]
    left_out: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.user)

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the columns of `values`."""
        return (*(one.name for one in self.objectives), OVERALL)

    @property
    def rewards(self) -> Floats:
        """The objectives' scores from 0 (worst) to 1 (best), (n, D)."""
        columns = [one.normalised(self.values[:, d]) for d, one in enumerate(self.objectives)]  # type: ignore[arg-type]  # it is arithmetic
        return np.stack(columns, axis=1)

    def offer(self, t: int) -> Ints:
        """Return the arms that were to be chosen from in a round."""
        return self.offers[self.starts[t] : self.starts[t + 1]]


def log_of(
    rounds: Iterable[Round],
    objectives: Sequence[Objective],
    *,
    groups: Mapping[str, str] | None = None,
    left_out: Mapping[str, int] | None = None,
) -> Log:
    """Return rounds as a log. groups: from users to their groups, where the rounds do not say it.

    >>> log = log_of([Round("ann", ("A", "B"), "B", 0.5, {"taste": 4.0})], [Objective("taste", 1, 5)])
    >>> log.arms, log.values.tolist(), log.rewards.tolist()
    (('A', 'B'), [[4.0, nan]], [[0.75]])
    """
    arms: dict[str, int] = {}
    users: dict[str, int] = {}
    offers: list[int] = []
    user, arm, starts, propensity, values, group = [], [], [0], [], [], []
    for place, one in enumerate(rounds, start=1):
        if one.arm not in one.offer or len(set(one.offer)) < len(one.offer):
            raise InputError(
                f"round {place:,}: expected an offer of distinct arms with the chosen one among them, got {one.arm!r} "
                f"of {_SEPARATOR.join(one.offer)!r:.80}"
            )
        if not 0.0 < one.propensity <= 1.0:
            raise InputError(f"round {place:,}: expected a propensity above 0 and up to 1, got {one.propensity:g}")
        user.append(users.setdefault(one.user, len(users)))
        offers.extend(arms.setdefault(each, len(arms)) for each in one.offer)
        arm.append(arms[one.arm])
        starts.append(len(offers))
        propensity.append(one.propensity)
        scores = [one.rewards.get(each.name, np.nan) for each in objectives]
        values.append([*scores, np.nan if one.overall is None else one.overall])
        group.append(one.group or (groups or {}).get(one.user, ""))
    if not user:
        raise InputError("expected rounds with feedback to evaluate from, got none")
    return Log(
        objectives=tuple(objectives),
        arms=tuple(arms),
        users=tuple(users),
        user=np.array(user),
        arm=np.array(arm),
        offers=np.array(offers),
        starts=np.array(starts),
        propensity=np.array(propensity),
        values=np.array(values, dtype=float),
        group=tuple(group),
        left_out=dict(left_out or {}),
    )


def log_of_events(events: Iterable[Event], *, groups: Mapping[str, str] | None = None) -> Log:
    """Return the decisions of a journal that have feedback, in the order in which they were made.

    Left out, and counted, are decisions without feedback; those of erased users; those whose feedback is for another
    arm than the first, since it is the first whose chance is known; and ratings from before, which nobody decided.
    """
    setup: Setup | None = None
    active: dict[str, None] = {}
    made: dict[str, tuple[DecisionMade, tuple[str, ...]]] = {}
    given: dict[str, list[FeedbackGiven]] = {}
    everyone: tuple[str, ...] = ()
    for event in events:
        if isinstance(event, FeedbackGiven):
            given.setdefault(event.decision, []).append(event)
        elif isinstance(event, DecisionMade):
            made[event.id] = event, event.offer if event.offer is not None else everyone
        elif isinstance(event, Setup):
            setup = event
        elif isinstance(event, ArmAdded | ArmRetired):
            if isinstance(event, ArmAdded):
                active[event.arm] = None
            else:
                active.pop(event.arm, None)
            everyone = tuple(active)
    if setup is None:
        raise InputError("expected a journal that begins with its objectives, got one that does not: was it cut?")
    rounds, unanswered, erased, other, history = [], 0, 0, 0, 0
    for name, (decision, offer) in made.items():
        first, chance = decision.arms[0], decision.propensity
        rated = together(given.get(name, ()))
        feedback = rated.get(first) or rated.get("")
        if decision.policy == HISTORY:
            history += 1
        elif not rated:
            unanswered += 1
        elif decision.user is None:
            erased += 1
        elif feedback is None:
            other += 1
        else:
            rounds.append(Round(decision.user, offer, first, chance, feedback.rewards, feedback.overall))
    left_out = {
        "decisions without feedback": unanswered,
        "decisions for erased users": erased,
        "decisions with feedback for another arm than the first": other,
        "ratings from before there were decisions": history,
    }
    return log_of(rounds, setup.objectives, groups=groups, left_out=left_out)


def read_log(
    path: str | Path,
    objectives: Sequence[Objective],
    *,
    overall: str = OVERALL,
    user: str = "user",
    arm: str = "arm",
    offer: str = "offer",
    propensity: str = "propensity",
    group: str = "group",
    groups: Mapping[str, str] | None = None,
) -> Log:
    """Return the log that a CSV or Parquet file holds, a row a round, in the order of its rows.

    overall, user, …: names of its columns; `offer` and `group` may be missing. An offer is a list of arms, in CSV with
    | between them; where there is none, all arms of the file were to be chosen from. A row without a user, an arm, a
    propensity or any score is left out, and counted; a cell that is not what it is to be is an error that names it.
    """
    names = [one.name for one in objectives]
    wanted = [user, arm, propensity, *names, overall]
    if not names or len(set(wanted)) < len(wanted):
        raise InputError(f"expected at least one objective and each column once, got {', '.join(wanted)}")
    columns = Columns(path, wanted, optional=(offer, group), what="a log, a row a round", feature="reading a log")
    problems: list[Problem] = []
    numbers = {}
    for name in (propensity, *names, overall):
        numbers[name], wrong = columns.numbers(name)
        problems += wrong
    chance = numbers.pop(propensity)
    outside = np.flatnonzero((chance <= 0.0) | (chance > 1.0)).tolist()
    problems += [
        Problem(t + 1, propensity, f"expected a chance above 0 and up to 1, got {chance[t]:g}") for t in outside
    ]
    whose, users = columns.codes(user)
    which, arms = columns.codes(arm)
    offered = columns.values(offer) if offer in columns.names else [None] * len(columns)
    everyone = tuple(arms[place] for place in np.unique(which[which >= 0]))
    several = columns.codes(group) if group in columns.names else (np.full(len(columns), -1), [])
    rounds, lacking = [], 0
    for t, cell in enumerate(offered):
        scores = {name: float(column[t]) for name, column in numbers.items() if not np.isnan(column[t])}
        if whose[t] < 0 or which[t] < 0 or np.isnan(chance[t]) or not scores:
            lacking += 1
            continue
        listed = cell.split(_SEPARATOR) if isinstance(cell, str) and cell else cell
        choices = tuple(str(each).strip() for each in listed) if listed else everyone
        if arms[which[t]] not in choices or len(set(choices)) < len(choices):
            problems.append(
                Problem(t + 1, offer, f"expected distinct arms, {arms[which[t]]!r} among them, got {cell!r:.60}")
            )
        score = scores.pop(overall, None)
        name = several[1][several[0][t]] if several[0][t] >= 0 else ""
        rounds.append(Round(users[whose[t]], choices, arms[which[t]], float(chance[t]), scores, score, name))
    if problems:
        raise InputError(f"{Path(path).name}: {problems_text(sorted(problems))}")
    return log_of(rounds, objectives, groups=groups, left_out={"rows that lack what is needed": lacking})


def objectives_in(path: str | Path) -> tuple[Objective, ...]:
    """Return the objectives that a trajectory of `pamo simulate` says it has; none for any other file."""
    source = Path(path)
    if source.suffix != ".parquet":
        return ()
    with readable(source, "a log, a row a round", "reading a log") as (_, parquet):
        said = (parquet.read_schema(source).metadata or {}).get(OBJECTIVES.encode())
    return tuple(Objective(**one) for one in json.loads(said)) if said else ()


def read_groups(path: str | Path) -> dict[str, str]:
    """Return from users to groups, as the columns `user` and `group` of a CSV or Parquet file have it."""
    columns = Columns(path, ["user", "group"], what="groups, a row a user", feature="reading groups")
    (whose, users), (which, groups) = columns.codes("user"), columns.codes("group")
    return {users[u]: groups[g] for u, g in zip(whose, which, strict=True) if u >= 0 and g >= 0}
