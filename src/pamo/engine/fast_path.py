"""One compiled call for a decision, or for many, by the policies that are fast enough to ask for it.

Each is a function of the module around one body, since only such a function is compiled once and for all, and a kernel
handed in at run time takes a hundred microseconds to unpack. The policies that have none are served by `prepare`, their
own kernel and `finish`, with the same result.
"""

from __future__ import annotations

from typing import Any

from pamo.arrays import Floats, Ints
from pamo.compiling import count_of, entry, inlined
from pamo.engine.kernels import (
    DRAWS,
    KIND,
    PROPENSITY,
    arm_views,
    chance_again,
    desk_views,
    hyperparameters_at,
    look_up,
    may_explore,
    offer_tile,
    offer_views,
    refresh,
    user_views,
    watch,
    write,
)
from pamo.estimators import Kind
from pamo.policies.base import Run
from pamo.policies.variance import Prts, PrucbHpV, PrucbUpV
from pamo.reading import pending_at
from pamo.streams import Stream

_RIDGE = int(Kind.RIDGE)
_HIDDEN, _ESTIMATED, _POSTERIOR = PrucbHpV.kernel, PrucbUpV.kernel, Prts.kernel


@inlined
def _choose(
    score: Any,
    score_without: Any,
    drawing: Any,
    arguments: Any,
) -> None:
    """Decide for each row of `sums` by the kernel `score`.

    offers: where each one's arms begin and end in it, and then the arms' rows. told: see `look_up`.
    score_without: a kernel that leaves the preference bonus out, and reads as its own the first of the same
    hyperparameters; None where there is no such bonus. drawing: None for a kernel that does not draw; one that does is
    asked again and again for the propensity.
    """
    out, picks, offers, sums, told, desk, rows, numbers, stream, given, dims = arguments
    objectives, arms, first_row = count_of(dims), len(rows), len(out) + 1
    state, work, scores = desk_views(desk, arms, objectives)
    views = arm_views(state, arms, objectives)
    common = views[0]
    refresh(state, views, rows, offers[first_row:], dims)
    user, _, _ = user_views(work, objectives)
    scratch, _ = offer_views(work, arms, arms, objectives)
    run = Run(numbers[hyperparameters_at(objectives) :], stream, scratch)
    for n in range(len(out)):
        begin, end = offers[n], offers[n + 1]
        offer, count = offers[begin:end], end - begin
        t = look_up(sums[n], told[n], numbers, work, dims)
        tile = offer_tile(views, work, arms, offer, given[begin - first_row : end - first_row], dims)
        width = tile.shape[1]
        score(scores[0, :width], count, t, tile, user, common, run, dims)
        if score_without is not None:
            score_without(scores[1, :width], count, t, tile, user, common, run, dims)
        if score_without is None:
            for j in range(count):
                scores[1, j] = scores[0, j]
        free = may_explore(state, numbers)
        first = write(out[n], picks[n], offer, tile, user, scores, state, numbers, stream, dims)
        if numbers[KIND] == _RIDGE:
            watch(state, out[n], sums[n], user, arms, numbers, dims)
        if drawing is not None and free:
            total = out[n, PROPENSITY]
            for _ in range(int(numbers[DRAWS])):
                score(scores[1, :width], count, t, tile, user, common, run, dims)
                total += chance_again(scores[1], first, tile, user, state, numbers, count, dims)
            out[n, PROPENSITY] = total / (1.0 + numbers[DRAWS])
        if len(out) > 1:  # those who are decided for together know of each other
            views[3][pending_at(objectives), picks[n, 0]] += 1.0
    if len(out) > 1:
        for n in range(len(out)):
            views[3][pending_at(objectives), picks[n, 0]] -= 1.0


# Each argument by its name: packed by `*arguments`, the call itself would take twice as long.


@entry
def choose_hidden(
    out: Floats,
    picks: Ints,
    offers: Ints,
    sums: Floats,
    told: Floats,
    desk: Floats,
    rows: Floats,
    numbers: Floats,
    stream: Stream,
    given: Floats,
    dims: Any,
) -> None:
    """Decide by PRUCB-HP with estimated variances."""
    _choose(
        _HIDDEN,
        _ESTIMATED,
        None,
        (out, picks, offers, sums, told, desk, rows, numbers, stream, given, dims),
    )


@entry
def choose_estimated(
    out: Floats,
    picks: Ints,
    offers: Ints,
    sums: Floats,
    told: Floats,
    desk: Floats,
    rows: Floats,
    numbers: Floats,
    stream: Stream,
    given: Floats,
    dims: Any,
) -> None:
    """Decide by PRUCB-UP or PRUCB-KP with estimated variances."""
    _choose(
        _ESTIMATED,
        None,
        None,
        (out, picks, offers, sums, told, desk, rows, numbers, stream, given, dims),
    )


@entry
def choose_drawn(
    out: Floats,
    picks: Ints,
    offers: Ints,
    sums: Floats,
    told: Floats,
    desk: Floats,
    rows: Floats,
    numbers: Floats,
    stream: Stream,
    given: Floats,
    dims: Any,
) -> None:
    """Decide by posterior sampling."""
    _choose(
        _POSTERIOR,
        None,
        True,
        (out, picks, offers, sums, told, desk, rows, numbers, stream, given, dims),
    )


CHOOSERS: dict[Any, Any] = {_HIDDEN: choose_hidden, _ESTIMATED: choose_estimated, _POSTERIOR: choose_drawn}
"""From a policy's kernel to the call that does everything."""
