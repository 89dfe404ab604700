"""Work in tasks, and who runs them: this process (`local`) or a cluster. The same tasks, so the same results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pamo.arrays import Floats
from pamo.environments import Environment
from pamo.policies import Policy
from pamo.progress import Progress, scaled
from pamo.simulation import PolicyResult, simulate


@dataclass(frozen=True)
class Task:
    """One piece of work: `run(*given, progress)`, a function that another process can import, and what it is given.

    name: for who waits. weight: how much of the work it is, in any unit.
    """

    name: str
    run: Callable[..., Any]
    given: tuple[Any, ...]
    weight: float = 1.0


Began = Callable[[str], object]
"""Called with what is to be shown of the work under way: the name of a task that begins, or how many are done."""
Runner = Callable[[Sequence[Task], Progress, Began], Iterator[tuple[int, Any]]]
"""Runs tasks and yields each one's place and result when it is done, in whatever order that is."""


def local(tasks: Sequence[Task], progress: Progress, began: Began) -> Iterator[tuple[int, Any]]:
    """Run tasks in this process, one after the other, each on all threads."""
    total = sum(task.weight for task in tasks)
    for place, task in enumerate(tasks):
        began(task.name)
        yield place, task.run(*task.given, scaled(progress, task.weight / total))


def unnamed(name: str) -> None:
    """Let what is under way pass unseen: what a function that takes a `Began` does by default."""


def in_order(runner: Runner, tasks: Sequence[Task], progress: Progress) -> list[Any]:
    """Run tasks and return their results in the order of the tasks."""
    found = dict(runner(tasks, progress, unnamed))
    return [found[place] for place in range(len(tasks))]


def regrets(
    policy: Policy,
    environment: Environment,
    rounds: int,
    first_trial: int,
    trials: int,
    seed: int,
    marks: Sequence[int],
    progress: Progress,
) -> Floats:
    """Play some trials and return the regret that is compared, (trials, marks)."""
    sizes: Any = {"rounds": rounds, "first_trial": first_trial, "trials": trials, "seed": seed}
    (outcome,) = simulate([policy], environment, checkpoints=marks, **sizes).values()
    progress(1.0)
    return counted(outcome, environment)


def counted(outcome: PolicyResult, environment: Environment) -> Floats:
    """Return the regret that is compared, (trials, marks): everybody's, or where there are newcomers a newcomer's."""
    if environment.newcomers:
        newcomers: Floats = outcome.regret_by_user[:, :, -environment.newcomers :].mean(axis=2)
        return newcomers
    return outcome.regret
