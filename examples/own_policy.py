"""A policy of your own, in one file: ε-greedy whose ε falls with time, run beside PRUCB-HP.

    python examples/own_policy.py [--rounds 5000] [--trials 20]

The kernel is the formula: it writes a score for each arm of the offer, and the arm of the highest score is pulled. It
is compiled into the same loop as pamo's own policies, and runs as fast as they do.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any, ClassVar

from pamo import environments, simulate
from pamo.cli import table
from pamo.policies import Estimate, Feedback, Kind, Policy, Shape, kernel, mark_unpulled, value_of
from pamo.streams import uniform


@kernel
def score(scores, offered, t, arms, user, common, run, dims):
    """Write the score of each of the arms offered to a user in that user's round t."""
    if mark_unpulled(scores, offered, arms):  # an arm that nobody has pulled comes first
        return
    explore = uniform(run.stream) < run.hyperparameters[0] / t  # ε = scale/t
    for j in range(len(scores)):
        scores[j] = 0.0 if explore else value_of(arms, j, user, dims)  # all alike is a uniform pick; else ĉ·r̂


@dataclass(frozen=True, kw_only=True)
class FallingEpsilon(Policy):
    """ε-greedy on the paper's preference estimate, exploring with probability scale/t."""

    id: ClassVar[str] = "falling-epsilon"
    summary: ClassVar[str] = "greedy on the weighted ridge estimate, with a uniform pick at rate scale/t"
    formula: ClassVar[str] = "ĉ·r̂ᵢ with ĉ by weighted ridge; with probability scale/t a uniform pick"
    reads: ClassVar[tuple[Feedback, ...]] = (Feedback.REWARD, Feedback.OVERALL)
    reference: ClassVar[str] = "Auer, Cesa-Bianchi & Fischer (2002), its ε_t-greedy"
    kernel: ClassVar[Any] = score

    scale: float = 20.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.scale >= 0, "scale ≥ 0")

    def estimate(self, objectives: int) -> Estimate:
        """ĉ as PRUCB-HP forms it."""
        return Estimate(kind=Kind.RIDGE, weighted=True, omega=float(objectives), first=1.0 / objectives)

    def hyperparameters(self, shape: Shape) -> tuple[float, ...]:
        """The numbers that the kernel reads from `run.hyperparameters`."""
        return (self.scale,)


def main(arguments: list[str] | None = None) -> None:
    """Run the policy beside two of pamo's and print the table."""
    parser = argparse.ArgumentParser(description="Run a policy of your own beside PRUCB-HP.")
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--trials", type=int, default=20)
    options = parser.parse_args(arguments)
    result = simulate(
        policies=["prucb-hp", "greedy", FallingEpsilon(), FallingEpsilon(scale=100.0)],
        environment=environments.Gaussian(users=2, block_size=5, objectives=3, preference="predefined"),
        rounds=options.rounds,
        trials=options.trials,
        seed=1,
    )
    print(table(result))


if __name__ == "__main__":
    main()
