"""Objectives as a journal keeps them, and as people write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pamo.contract.forgetting import HalfLife, HalfLives, half_lives
from pamo.contract.forgetting import written as forgotten
from pamo.store.base import Objective, Setup
from pamo.store.rules import check_setup, plain


def plain_setup(setup: Setup) -> Setup:
    """Return the objectives with plain floats for their scales; raise `InputError` unless they can be learned."""
    overall, *objectives = (
        replace(one, low=plain(one.low), high=plain(one.high)) for one in (setup.overall, *setup.objectives)
    )
    half_life = None if setup.half_life is None else half_lives(setup.half_life)
    kept = replace(setup, objectives=tuple(objectives), overall=overall, half_life=half_life)
    check_setup(kept)
    return kept


def same_objectives(one: Setup, other: Setup) -> bool:
    """Tell whether two declare the same objectives and scales, whatever their half-lives."""
    return replace(one, half_life=None) == replace(other, half_life=None)


def setup_of(plain: Mapping[str, Any]) -> Setup:
    """Return the objectives of what `dataclasses.asdict` made of them."""
    lives = plain["half_life"]
    if lives is not None:
        lives = HalfLives(**{name: one and HalfLife(**one) for name, one in lives.items()})
    objectives = tuple(Objective(**one) for one in plain["objectives"])
    return Setup(objectives, Objective(**plain["overall"]), plain["format"], lives)


def described(setup: Setup) -> str:
    """Return the objectives as people write them.

    >>> described(Setup((Objective("price", 0, 500, lower_is_better=True), Objective("taste", 1, 5))))
    'price: 0..500, lower is better; taste: 1..5; overall: 0..1'
    """
    told = [scale(one) for one in (*setup.objectives, setup.overall)]
    return "; ".join(told if setup.half_life is None else [*told, f"half-life of {forgotten(setup.half_life)}"])


def scale(one: Objective) -> str:
    """Return an objective as people write it."""
    low, high = (f"{end:g}" if float(f"{end:g}") == end else repr(end) for end in (one.low, one.high))
    return f"{one.name}: {low}..{high}{', lower is better' if one.lower_is_better else ''}"
