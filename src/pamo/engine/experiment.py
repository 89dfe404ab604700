"""Experiments: how a group is served that no policy decides for, and how groups compare, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pamo.comparing import ALPHA, Sums, difference, still_needed
from pamo.contract.answers import Compared, ComparedVariant, Experiment
from pamo.contract.events import ExperimentStarted
from pamo.contract.experiments import ARM, CALLER, CONTROL, RANDOM, TREATED, Variant
from pamo.contract.objectives import Objective
from pamo.store import Store

UNLIKELY = 4.0
"""Standard deviations that a group's size may be off before something must be wrong."""
MOST = 2.0**53
"""Users that are told to be needed at most: a program in JavaScript reads no larger number exactly."""


def served(
    policy: str, offer: Sequence[str], k: int, choice: str | None, chance: np.random.Generator
) -> tuple[tuple[str, ...], float, str]:
    """Return the arms for a user of such a group, the chance with which the first came first, and by what.

    Where one arm is to come first, others follow at random; where it is not on offer, all do. The caller names one arm.
    """
    if policy == CALLER and choice is not None:
        return (choice,), 1.0, CALLER
    arm = policy.removeprefix(ARM)
    if k == 1:
        mixed = [offer[int(chance.integers(len(offer)))]]
    else:
        mixed = [offer[place] for place in chance.permutation(len(offer)).tolist()]
    if arm == policy or arm not in offer:
        return tuple(mixed[:k]), 1.0 / len(offer), RANDOM
    return (arm, *(one for one in mixed if one != arm))[:k], 1.0, policy


def told_of_experiment(store: Store) -> Experiment | None:
    """Return how the groups of the newest experiment compare."""
    known = store.experiments()
    if not known:
        return None
    (started, ended), sums = known[-1], store.compared()
    control, *others = started.groups()
    scales = (*store.setup.objectives, store.setup.overall)
    variants, warnings = [], []
    for one in others:
        alpha = ALPHA / len(others)  # so that all are right together as often as one alone would be
        shares = one.share, control.share
        compared = [
            _compared(scale, treated, controlled, started.smallest, alpha, shares)
            for scale, treated, controlled in zip(scales, sums[one.name].scores, sums[CONTROL].scores, strict=True)
        ]
        objectives = {scale.name: found for scale, found in zip(store.setup.objectives, compared, strict=False)}
        sentence = _sentence(_called(one), compared[-1], objectives, started)
        told = one.name, one.share, one.policy, one.preference, sums[one.name].users
        variants.append(ComparedVariant(*told, compared[-1], objectives, sentence))
        warnings.append(_warning(one, sums[one.name].users, sums[CONTROL].users, control.share))
    return Experiment(
        started.name,
        started.at,
        ended,
        started.control,
        started.policy,
        started.smallest,
        sums[CONTROL].users,
        variants,
        " ".join(one.sentence for one in variants),
        " ".join(filter(None, warnings)),
    )


def _called(one: Variant) -> str:
    return "pamo" if one.name == TREATED else repr(one.name)


def _compared(
    scale: Objective, treated: Sums, control: Sums, least: float, alpha: float, shares: tuple[float, float]
) -> Compared:
    """Return a score's comparison on its own scale; sums are of scores from 0 (worst) to 1 (best)."""
    span = (scale.high - scale.low) * (-1.0 if scale.lower_is_better else 1.0)
    start = scale.high if scale.lower_is_better else scale.low
    found = difference(treated, control, least, alpha)
    low, high = (None, None) if found is None else sorted((found.low * span, found.high * span))
    shows = found is not None and found.excludes_zero
    means = [start + span * sums.mean if sums.number else None for sums in (treated, control)]
    needed = still_needed(treated, control, shares[1] / sum(shares), least, alpha)
    return Compared(
        means[0],
        means[1],
        None if found is None else found.estimate * span,
        low,
        high,
        found.low > 0.0 if found is not None and shows else None,
        int(treated.number),
        int(control.number),
        math.ceil(min(needed / sum(shares) - 1e-6, MOST)),  # of all who come, only these are in one of the two
    )


def _sentence(variant: str, overall: Compared, objectives: dict[str, Compared], started: ExperimentStarted) -> str:
    scored = {"overall": overall} if overall.treated_users + overall.control_users else objectives
    shown = [f"{name} {_words(one)}" for name, one in scored.items() if one.better is not None]
    if shown:
        return f"With {variant}, {'; '.join(shown)}."
    needed, which = max(one.still_needed for one in scored.values()), f" with {variant}" if started.variants else ""
    least = f"a difference of {started.smallest:g} standard deviations"
    if all(one.difference is None for one in scored.values()):
        return f"Too early to tell{which}: about {needed:,} more users until {least} would show."
    if needed:
        return f"No difference so far{which}: about {needed:,} more users until {least} would show."
    return f"No difference{which}: {least} would have shown by now."


def _words(one: Compared) -> str:
    assert one.difference is not None
    low, high = sorted(abs(end or 0.0) for end in (one.low, one.high))
    how = "better" if one.better else "worse"
    return f"is {how} than in control, by {abs(one.difference):.2g} ({low:.2g} to {high:.2g})"


def _warning(variant: Variant, treated: int, control: int, share: float) -> str:
    """Say so where the groups of those who gave feedback are not as large as they should be."""
    users, meant = treated + control, share / (share + variant.share)
    if abs(control - meant * users) <= UNLIKELY * math.sqrt(users * meant * (1.0 - meant)):
        return ""
    where = "" if share + variant.share > 1.0 - 1e-9 else f" in control or with {_called(variant)}"
    return (
        f"Of those who gave feedback{where} {control / users:.1%} are in control, and {meant:.1%} were meant to be: "
        "who gives feedback seems to hang on the group, and then the difference does too."
    )
