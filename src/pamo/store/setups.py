"""Objectives as a journal keeps them, and as people write them."""

from __future__ import annotations

from dataclasses import replace

from pamo.store.base import Objective, Setup
from pamo.store.rules import check_setup, plain


def plain_setup(setup: Setup) -> Setup:
    """Return the objectives with plain floats for their scales; raise `InputError` unless they can be learned."""
    overall, *objectives = (
        replace(one, low=plain(one.low), high=plain(one.high)) for one in (setup.overall, *setup.objectives)
    )
    kept = replace(setup, objectives=tuple(objectives), overall=overall)
    check_setup(kept)
    return kept


def described(setup: Setup) -> str:
    """Return the objectives as people write them.

    >>> described(Setup((Objective("price", 0, 500, lower_is_better=True), Objective("taste", 1, 5))))
    'price: 0..500, lower is better; taste: 1..5; overall: 0..1'
    """
    return "; ".join(scale(one) for one in (*setup.objectives, setup.overall))


def scale(one: Objective) -> str:
    """Return an objective as people write it."""
    low, high = (f"{end:g}" if float(f"{end:g}") == end else repr(end) for end in (one.low, one.high))
    return f"{one.name}: {low}..{high}{', lower is better' if one.lower_is_better else ''}"
