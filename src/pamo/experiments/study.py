"""What a study is, as data: what the paper claims, what to run, by which rule to judge it, and what to draw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pamo.experiments.tables import Table, Tables
from pamo.progress import Progress
from pamo.simulation.preparing import Job


class Verdict(StrEnum):
    """What became of a claim. The last one is for a claim that nothing within reach could refute: it tells nothing."""

    CONFIRMED = "confirmed"
    PARTLY = "partly confirmed"
    NOT = "not confirmed"
    CANNOT = "cannot fail here"


@dataclass(frozen=True)
class Finding:
    """What was seen of a claim: the verdict by its rule, a sentence with the figures, and the figures themselves."""

    verdict: Verdict
    seen: str
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim and how it is judged. `judge` sees nothing but the study's tables.

    paper: what is claimed, in our words. source: where. rule: the rule that `judge` follows, for the reader.
    refuted_by: what would have to be seen for the claim to fail. ours: whether the claim is one that we test in
    addition, because the paper leaves it out.
    """

    id: str
    paper: str
    source: str
    rule: str
    refuted_by: str
    judge: Callable[[Tables], Finding]
    ours: bool = False


@dataclass(frozen=True)
class Drawing:
    """A figure: `draw` makes it from the tables, `describe` says in words what it shows, `twin` is it as a table."""

    id: str
    title: str
    draw: Callable[[Tables], Any]
    describe: Callable[[Tables], str]
    twin: Callable[[Tables], Table]


@dataclass(frozen=True, kw_only=True)
class Study:
    """One study of the paper.

    settings: everything that decides the result but the seed, as plain values. quick: what `--quick` changes.
    weight: about how many seconds it takes on two cores, for the time left that is shown.
    measure: (settings, seed, progress) → tables. prepare: what of it can be compiled ahead.
    """

    name: str
    title: str
    about: str
    source: str
    settings: Mapping[str, Any]
    quick: Mapping[str, Any]
    weight: float
    measure: Callable[[Mapping[str, Any], int, Progress], Tables]
    claims: tuple[Claim, ...]
    drawings: tuple[Drawing, ...]
    prepare: Callable[[Mapping[str, Any]], Iterable[Job]] = field(default=lambda settings: ())


def judge_share(good: int, total: int, *, partly: float = 0.5) -> Verdict:
    """Return confirmed if all cases are good, partly if more than the given share are, else not confirmed.

    >>> judge_share(3, 4)
    <Verdict.PARTLY: 'partly confirmed'>
    """
    if total and good == total:
        return Verdict.CONFIRMED
    return Verdict.PARTLY if total and good / total > partly else Verdict.NOT


def judge_stated(share: float, high: float, stated: float) -> Verdict:
    """Return confirmed if a share is at least what is stated, partly if only the upper end of its interval is.

    >>> judge_stated(0.94, 0.96, 0.95)
    <Verdict.PARTLY: 'partly confirmed'>
    """
    if share >= stated:
        return Verdict.CONFIRMED
    return Verdict.PARTLY if high >= stated else Verdict.NOT


def worst_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of several verdicts; one that could not be worse counts as the best.

    >>> worst_of([Verdict.CONFIRMED, Verdict.NOT, Verdict.PARTLY])
    <Verdict.NOT: 'not confirmed'>
    """
    return max(verdicts, key=(Verdict.CANNOT, Verdict.CONFIRMED, Verdict.PARTLY, Verdict.NOT).index)
