"""Run the recommended policy where it was promised how much regret it has at most, and hold it to that.

    python -m campaigns.limits --seeds 5

Parts, each for every seed:

- `listed`: mean and 99 % of the trials in four of the paper's settings, 5,000 rounds, 400 trials;
- `paired`: with noisy rewards and with Bernoulli ones, over the policy that was recommended before arms had a prior and
  preferences two levels (`Earlier`), on the same 1,000 trials;
- `long`: 50,000 rounds, 400 trials: over the earlier policy, and how many trials go on growing linearly;
- `newcomers`: a newcomer's first 20 rounds, among 50 who have been served for 100;
- `others`: settings that nobody has tuned anything to, over the earlier policy.

`--policy greedy` has to be found. Exit code 1 if anything is above its limit. A seed takes some three minutes on two
cores, and less on a GPU (`--device cuda`); `--short` runs a tenth of the trials and of the rounds.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pamo import environments, policies, simulate
from pamo.arrays import Floats
from pamo.compiling import count_of, kernel
from pamo.environments import Environment
from pamo.experiments.compare import linear_trials
from pamo.experiments.suites import SUITES
from pamo.experiments.tasks import counted
from pamo.policies import Policy, Run
from pamo.policies.base import value_of
from pamo.policies.variance import PrucbHpV, _all_pulls, _common_variance, _preference_bonus, _squares
from pamo.reading import PULLS, noise_at
from pamo.simulation.cpu import DEVICES
from pamo.words import log

PARTS = {part.name: part for part in SUITES["regret"]}
HIDDEN: Mapping[str, Environment] = PARTS["hidden"].settings
LISTED = ((36.0, 165.0), (100.0, 185.0), (525.0, 830.0), (360.0, 480.0))
"""The most that mean and 99 % may be, in the first settings of the suite."""
PAIRED = (1.06, 1.3)
"""The most that both may be over the earlier policy's."""
LINEAR = 2.0
"""Trials of 400 whose growth may double twice."""
NEWCOMERS = (1.41, 2.45)
OTHERS: Mapping[str, Environment] = {
    "5 users, 8 arms, D=2, predefined": environments.Gaussian(users=5, block_size=8, objectives=2),
    "3 users, 4 arms, D=6, random": environments.Gaussian(users=3, block_size=4, objectives=6, preference="random"),
    "20 users, 10 arms, D=4, predefined": environments.Gaussian(users=20, block_size=10, objectives=4),
    "4 users, 5 arms, D=3, reward variance 0.05": environments.Gaussian(users=4, reward_variance=0.05),
    "preference variance 4": HIDDEN["preference variance 4"],
    "6 users, 5 arms, D=4, bounded": environments.Bounded(users=6, objectives=4),
}


@kernel
def _score_earlier(
    scores: Floats, offered: int, t: int, arms: Floats, user: Floats, common: Floats, run: Run, dims: Any
) -> None:
    scale, prior, few = run.hyperparameters[0], run.hyperparameters[1], run.hyperparameters[2]
    shared, log_pulls = prior * _common_variance(common, user, dims), log(_all_pulls(arms, dims))
    noise = run.hyperparameters[3] * math.sqrt(user[noise_at(count_of(dims))])
    for j in range(len(scores)):
        pulls = max(arms[PULLS, j], 1.0)
        variance = _squares(arms, j, user, shared, dims) / (pulls - 1.0 + prior)
        bonus = scale * (log_pulls - log(pulls)) * math.sqrt((1.0 + few / pulls) * variance / pulls)
        score = value_of(arms, j, user, dims) + bonus + _preference_bonus(arms, j, user, noise, t, dims)
        scores[j] = score if arms[PULLS, j] > 0.0 else np.inf


@dataclass(frozen=True, kw_only=True)
class Earlier(PrucbHpV):
    """What was recommended before: ζ·log(N/N_i) standard errors, unpulled arms first, one level of preferences."""

    id: ClassVar[str] = "earlier"
    kernel: ClassVar[Any] = _score_earlier

    reward_scale: float = 0.45
    few_pulls: float = 1.0
    levels: bool = False


class Figure(NamedTuple):
    """One number, and the most that it may be."""

    what: str
    seen: float
    most: float

    @property
    def good(self) -> bool:
        """Whether it is within its limit."""
        return self.seen <= self.most

    def __str__(self) -> str:
        return f"  {self.what:<70}{self.seen:>10.4f}{self.most:>10.4f}   {'ok' if self.good else 'NOT OK'}"


class Runs(NamedTuple):
    """How to run: which policy, the share of rounds and trials, and the seed."""

    policy: Policy
    short: bool
    seed: int
    device: str = "cpu"

    def regrets(self, environment: Environment, rounds: int, trials: int, *, earlier: bool = True) -> list[Floats]:
        """Return the regret of the policy, and of the earlier one, (trials, 4), at an eighth to all of the rounds."""
        if self.short:
            rounds, trials = (rounds if environment.newcomers else rounds // 10), trials // 10
        result = simulate(
            [self.policy, *([Earlier()] if earlier else [])],
            environment,
            rounds=rounds,
            trials=trials,
            seed=self.seed,
            checkpoints=[rounds // part for part in (8, 4, 2, 1)],
            device=self.device,
        )
        return [counted(outcome, environment) for outcome in result.values()]


def _tail(regret: Floats) -> tuple[float, float]:
    return float(regret[:, -1].mean()), float(np.quantile(regret[:, -1], 0.99))


def _over(runs: Runs, settings: Mapping[str, Environment], trials: int) -> Iterator[Figure]:
    for setting, environment in settings.items():
        ours, earlier = (_tail(each) for each in runs.regrets(environment, 5000, trials))
        for name, one, other, most in zip(("mean", "99 %"), ours, earlier, PAIRED, strict=True):
            yield Figure(f"{setting}: {name} over the earlier policy's", one / other, most)


def listed(runs: Runs) -> Iterator[Figure]:
    """Yield the figures of the paper's settings."""
    for (setting, environment), most in zip(HIDDEN.items(), LISTED, strict=False):
        (regret,) = runs.regrets(environment, 5000, 400, earlier=False)
        for name, seen, limit in zip(("mean", "99 %"), _tail(regret), most, strict=True):
            yield Figure(f"{setting}: {name}", seen, limit)


def paired(runs: Runs) -> Iterator[Figure]:
    """Yield the figures of the settings with more noise."""
    names = ("reward variance 0.2", "Bernoulli rewards, bounded")
    yield from _over(runs, {name: HIDDEN[name] for name in names}, 1000)


def long(runs: Runs) -> Iterator[Figure]:
    """Yield the figures of runs of ten times as many rounds."""
    for setting, environment in PARTS["long"].settings.items():
        ours, earlier = runs.regrets(environment, 50_000, 400)
        ratio = float(ours[:, -1].mean() / earlier[:, -1].mean())
        yield Figure(f"{setting}, 50,000: mean over the earlier policy's", ratio, 1.0)
        linear = linear_trials(ours, 5_000 if runs.short else 50_000)
        yield Figure(f"{setting}, 50,000: trials whose growth doubles twice", linear, LINEAR)


def newcomers(runs: Runs) -> Iterator[Figure]:
    """Yield the figures of newcomers."""
    part = PARTS["newcomers"]
    for (setting, environment), most in zip(part.settings.items(), NEWCOMERS, strict=False):
        (regret,) = runs.regrets(environment, part.rounds, 400, earlier=False)
        yield Figure(f"newcomers, {setting}", float(regret[:, -1].mean()), most)


def others(runs: Runs) -> Iterator[Figure]:
    """Yield the figures of settings that are not listed."""
    yield from _over(runs, OTHERS, 400)


ALL: Mapping[str, Callable[[Runs], Iterator[Figure]]] = {
    each.__name__: each for each in (listed, paired, long, newcomers, others)
}


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign, and say what was found."""
    parser = argparse.ArgumentParser(description="Hold the recommended policy's regret against its limits.")
    parser.add_argument("--seeds", type=int, default=3, help="how many, from --seed on")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", action="append", choices=list(ALL), help="only these (default: all)")
    parser.add_argument("--policy", default="recommended", help="another one, as a fault to be found")
    parser.add_argument("--short", action="store_true", help="a tenth of the trials and of the rounds")
    parser.add_argument("--device", choices=DEVICES, default="cpu", help="where trials are played (default cpu)")
    options = parser.parse_args(arguments)
    wrong = several = 0
    for seed in range(options.seed, options.seed + options.seeds):
        print(f"seed {seed}{'':<67}{'seen':>10}{'at most':>10}")
        for name in options.part or ALL:
            for figure in ALL[name](Runs(policies.create(options.policy), options.short, seed, options.device)):
                print(figure, flush=True)
                several += 1
                wrong += not figure.good
    print(f"{wrong} of {several} figures above their limits" if wrong else f"As it should be: all {several} figures.")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
