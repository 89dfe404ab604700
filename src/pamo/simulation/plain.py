"""Policies in plain Python inside `simulate`: slow, and exactly on the trials of the compiled ones."""

from __future__ import annotations

import copy
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from pamo.arrays import Floats, Ints
from pamo.environments import Environment
from pamo.environments.episode import Episode, Pulled
from pamo.errors import InputError
from pamo.policies.base import Feedback, Policy
from pamo.progress import Progress, unseen
from pamo.simulation.loop import Records


@runtime_checkable
class PlainPolicy(Protocol):
    """An object that chooses and learns. Each trial begins with a copy of it as it was handed over."""

    def choose(self, user: int, offer: Ints) -> int:
        """Return one of the arms on offer, for this user."""

    def learn(self, user: int, arm: int, reward: Floats, overall: float, stated: Floats) -> None:
        """Take in what a pull gave, NaN being what is not told. A round's pulls come after all of its choices."""


@dataclass(frozen=True, kw_only=True)
class Plain(Policy):
    """A plain policy among the others: by its `id`, or by its class.

    >>> class Mine:
    ...     pass
    >>> Plain(plain=Mine()).label
    'Mine'
    """

    reads: ClassVar[tuple[Feedback, ...]] = tuple(Feedback)

    plain: Any

    @property
    def id(self) -> str:  # type: ignore[override]  # of the object, where others have one of the class
        """The name by which it is known."""
        return str(getattr(self.plain, "id", type(self.plain).__name__))

    @property
    def settings(self) -> dict[str, Any]:
        """Nothing that could be told of any object."""
        return {}

    @property
    def changed(self) -> dict[str, Any]:
        """Nothing, as there are no defaults."""
        return {}


def play_plainly(
    policy: Plain,
    environment: Environment,
    *,
    rounds: int,
    seed: int,
    first_trial: int,
    marks: Ints,
    records: Records,
    progress: Progress | None = None,
) -> float:
    """Play a trial for each row of the records, and return the seconds that it took."""
    started, told = time.perf_counter(), progress or unseen
    trials, places = len(records.pulls), {int(mark): place for place, mark in enumerate(marks)}
    for trial in range(trials):
        own = copy.deepcopy(policy.plain)
        episode = environment.start(seed, first_trial + trial)
        late: deque[list[Pulled]] = deque()
        regret, totals = np.zeros(environment.users), np.zeros(3)
        for t in range(1, rounds + 1):
            now: list[Pulled] = []
            while episode.round == t:
                now.append(episode.pull(_choose(own, policy.id, episode)))
            for one in now:
                regret[one.user] += one.regret
                totals += one.pareto_regret, one.overall, one.regret == 0.0
                records.pulls[trial, one.arm] += 1.0
            late.append(now)
            for one in late.popleft() if len(late) > environment.delay else ():
                own.learn(one.user, one.arm, one.reward, one.overall, one.stated)
            if t in places:
                records.regret_by_user[trial, places[t]] = regret
                for table, total in zip((records.pareto_regret, records.overall, records.optimal), totals, strict=True):
                    table[trial, places[t]] = total
                told(1.0 / trials / len(marks))
    return time.perf_counter() - started


def _choose(policy: PlainPolicy, name: str, episode: Episode) -> int:
    arm = policy.choose(episode.user, episode.offer.copy())
    if arm not in episode.offer:
        raise InputError(f"{name}: expected an arm of the offer, {episode.offer.tolist()}, got {arm!r}")
    return int(arm)
