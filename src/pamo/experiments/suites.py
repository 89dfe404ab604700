"""What `pamo compare` runs by itself: settings that belong together, and what is asked of the recommended policies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pamo import environments
from pamo.environments import Environment
from pamo.errors import unknown_name
from pamo.experiments.compare import compare, text_of
from pamo.experiments.tables import Table
from pamo.experiments.tasks import Runner, local
from pamo.progress import Progress, scaled, unseen

ROUNDS = 5000
_SMALL = {"2 users, 5 arms, D=3, predefined": environments.Gaussian(users=2, block_size=5, objectives=3)}
_NOISY = {"reward variance 0.2": environments.Gaussian(reward_variance=0.2)}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One comparison of a suite. The first policy is the baseline; `rounds` stands where the horizon is the point."""

    name: str
    title: str
    settings: Mapping[str, Environment]
    policies: Sequence[str]
    rounds: int = ROUNDS
    fixed: bool = False
    """Whether its rounds are its own, whatever the caller asks for."""


def _newcomers(**settings: Any) -> Environment:
    return environments.Gaussian(users=60, block_size=5, newcomers=10, arrival=101, **settings)


def _shop(arms: int = 30, **settings: Any) -> Environment:
    sizes: dict[str, Any] = {"users": 40, "arms": arms, "block_size": arms, "objectives": 5, "protocol": "all"}
    return environments.Gaussian(**sizes | {"reward_variance": 0.005, "preference_variance": 0.05} | settings)


RANDOM = "oful:epsilon=1"
"""An arm of the offer at random: what the share of regret is of where worlds are live."""
_LIVE = (RANDOM, "recommended", "prts", "prucb-hp", "ucb-per-user", "greedy")


SUITES: Mapping[str, Sequence[Comparison]] = {
    "regret": (
        Comparison(
            name="hidden",
            title="hidden preference",
            settings={
                **_SMALL,
                "10 users, 3 arms, D=5, predefined": environments.Gaussian(users=10, block_size=3, objectives=5),
                "10 users, 5 arms, D=8, random": environments.Gaussian(
                    users=10, block_size=5, objectives=8, preference="random"
                ),
                "20 users, 3 arms, D=5, random": environments.Gaussian(
                    users=20, block_size=3, objectives=5, preference="random"
                ),
                **_NOISY,
                "preference variance 4": environments.Gaussian(preference_variance=4.0),
                "Bernoulli rewards, bounded": environments.Bounded(reward="bernoulli"),
            },
            policies=("prucb-hp", "recommended", "prts", "ucb-per-user", "oful", "greedy"),
        ),
        Comparison(
            name="stated",
            title="stated preference",
            settings=_SMALL,
            policies=("prucb-up", "recommended-stated"),
        ),
        Comparison(
            name="known",
            title="known preference",
            settings=_SMALL,
            policies=("prucb-kp", "recommended-known"),
        ),
        Comparison(
            name="long",
            title="ten times as long",
            settings=_SMALL | _NOISY,
            policies=("prucb-hp", "recommended", "prts", "greedy"),
            rounds=10 * ROUNDS,
        ),
        Comparison(
            name="newcomers",
            title="ten users who come after 50 others have been served for 100 rounds: each one's first 20 rounds",
            settings={
                "a taste in common, D=5": _newcomers(objectives=5, preference="common"),
                "predefined, D=5": _newcomers(objectives=5),
                "random, D=5": _newcomers(objectives=5, preference="random"),
            },
            policies=("recommended:shared=false", "recommended", "greedy"),
            rounds=120,
            fixed=True,
        ),
    ),
    "live": (
        Comparison(
            name="live",
            title=f"40 users of 60 rounds; {RANDOM} chooses at random",
            settings={
                "30 arms": _shop(),
                "every other score missing": _shop(missing=0.5),
                "one objective never told": _shop(untold=1),
                "overall scores alone": _shop(missing=1.0),
                "feedback 5 rounds late": _shop(delay=5),
                "offers of 20 from 1,000 arms": _shop(1000, protocol="subset", block_size=20),
                "1,000 arms": _shop(1000),
                "1,000 arms, feedback 5 rounds late": _shop(1000, delay=5),
                "1,000 arms, features that explain 80 %": _shop(1000, features=10),
                "1,000 arms, features that explain nothing": _shop(1000, features=10, explained=0.0),
            },
            policies=_LIVE,
            rounds=60,
            fixed=True,
        ),
        Comparison(
            name="changing",
            title="40 users of 120 rounds; changes after 60, and regret against what is true then",
            settings={
                "half the users change": _shop(changes_every=60, changing_users=0.5),
                "half the arms change": _shop(changes_every=60, changing_arms=0.5),
                "all users drift": _shop(changes_every=60, changing_users=1.0, changes="drift"),
            },
            policies=(*_LIVE, "sw-ucb", "d-ucb"),
            rounds=120,
            fixed=True,
        ),
    ),
}
"""`regret`: the paper's settings in four sizes and three with more noise, the other modes, long runs, and newcomers.
`live`: what a shop sends: large catalogues, offers of any subset, untold and late scores, features, changes."""


def run_suite(
    name: str,
    *,
    rounds: int | None = None,
    trials: int = 200,
    seed: int = 1,
    progress: Progress = unseen,
    runner: Runner = local,
) -> dict[str, Table]:
    """Run every part of a suite and return its tables by the parts' names. rounds: in place of 5000, others in kind."""
    if name not in SUITES:
        raise unknown_name("suite", name, SUITES)
    parts = SUITES[name]
    works = [len(part.policies) * part.rounds * sum(each.users for each in part.settings.values()) for part in parts]
    tables = {}
    for part, work in zip(parts, works, strict=True):
        tables[part.name] = compare(
            part.policies,
            part.settings,
            rounds=rounds_of(part, ROUNDS if rounds is None else rounds),
            trials=trials,
            seed=seed,
            progress=scaled(progress, work / sum(works)),
            runner=runner,
        )
    return tables


def rounds_of(part: Comparison, rounds: int) -> int:
    """Return the rounds of a part when `rounds` stands in place of 5000."""
    return part.rounds if part.fixed else max(1, part.rounds * rounds // ROUNDS)


def asked(name: str, tables: Mapping[str, Table]) -> list[tuple[str, float, float]]:
    """Return what a suite asks of the recommended policies, what was seen, and the most that it may be."""
    return _ASKED[name](tables)


def _asked_of_live(tables: Mapping[str, Table]) -> list[tuple[str, float, float]]:
    most = [0.08, 0.18, 0.25, 1.05, 0.15, 0.4, 0.3, 0.3, 0.1, math.nan, 0.1, 0.2, 0.12]
    seen = [
        (f"share of a random arm's regret: {row['setting']}", float(row["share"]))
        for table in tables.values()
        for row in table.where(policy="recommended").rows()
    ]
    lines = [(what, share, limit) for (what, share), limit in zip(seen, most, strict=True)]
    without, useless = lines[6][1], lines[9]
    lines[9] = (*useless[:2], without + 0.03)  # features that tell nothing may cost that much
    return lines


def _asked_of_regret(tables: Mapping[str, Table]) -> list[tuple[str, float, float]]:
    hidden = tables["hidden"]
    most = [0.08, 0.135, 0.045, 0.05, 0.35, 0.35, 1.0]
    lines = [
        (f"share of prucb-hp's regret: {setting}", _one(hidden, setting, "recommended", "share"), limit)
        for setting, limit in zip(hidden.distinct("setting"), most, strict=True)
    ]
    every = hidden.distinct("setting")
    tails = [_one(hidden, each, "recommended", "p99") / _one(hidden, each, "prucb-hp", "median") for each in every]
    lines.append(("its 99th percentile over prucb-hp's median, the most of all settings", max(tails), 1.0))
    for rival in ("ucb-per-user", "oful", "greedy"):
        shares = [_one(hidden, each, "recommended", "mean") / _one(hidden, each, rival, "mean") for each in every]
        lines.append((f"share of {rival}'s regret, the most of all settings", max(shares), 1.0))
    for mode, base in (("stated", "prucb-up"), ("known", "prucb-kp")):
        (share,) = tables[mode].where(policy=f"recommended-{mode}")["share"]
        lines.append((f"share of {base}'s regret, {mode} preference", float(share), 0.1))
    (long, *_) = tables["long"].where(policy="recommended").rows()
    lines.append((f"growth in the second half of a long run: {long['setting']}", long["growth"], 0.15))
    lines.append((f"trials of that run in which regret grows linearly: {long['setting']}", long["linear"], 0.0))
    (newcomer, *_) = tables["newcomers"].where(policy="recommended").rows()
    lines.append(
        (f"a newcomer's regret over that of one who starts at 1/D: {newcomer['setting']}", newcomer["share"], 0.5)
    )
    return lines


_ASKED: Mapping[str, Callable[[Mapping[str, Table]], list[tuple[str, float, float]]]] = {
    "regret": _asked_of_regret,
    "live": _asked_of_live,
}


def _one(table: Table, setting: str, policy: str, column: str) -> float:
    return float(table.where(setting=setting, policy=policy)[column][0])


def text_of_suite(name: str, tables: Mapping[str, Table], *, rounds: int, trials: int, seed: int) -> str:
    """Return every part of a suite as lines of text."""
    return "\n\n".join(
        f"# {part.title}; regret after {rounds_of(part, rounds)} rounds, {trials} trials, seed {seed}\n\n"
        + text_of(tables[part.name], part.policies[0])
        for part in SUITES[name]
    )


def text_of_asked(lines: Sequence[tuple[str, float, float]]) -> str:
    """Return them as lines of text, with yes or no."""
    wide = max(len(what) for what, _, _ in lines)
    rows = [f"{what:<{wide}}{seen:>9.3f}{most:>9.3f}   {'yes' if seen <= most else 'no'}" for what, seen, most in lines]
    return "\n".join([f"{'asked of the recommended policies':<{wide}}{'seen':>9}{'at most':>9}", *rows])
