"""One compiled call for a decision, or for many, by the policies that are fast enough to ask for it.

Each is written out, since only a function of a module is compiled once and for all: one built around a kernel that it
is handed is compiled anew in every process, and a kernel handed in at run time takes a hundred microseconds to unpack.
The policies that have none are served by `prepare`, their own kernel and `finish`, with the same result.
"""

from __future__ import annotations

from typing import Any

from pamo.arrays import Floats, Ints
from pamo.compiling import count_of, kernel
from pamo.engine.kernels import DRAWS, MEAN, PROPENSITY, arm_views, chance, read_user, refresh, user_views, write
from pamo.policies.base import Run
from pamo.policies.variance import Prts, PrucbHpV, PrucbUpV
from pamo.streams import Stream

_HIDDEN, _ESTIMATED, _POSTERIOR = PrucbHpV.kernel, PrucbUpV.kernel, Prts.kernel


@kernel
def choose_hidden(
    out: Floats,
    picks: Ints,
    offers: Ints,
    starts: Ints,
    sums: Floats,
    stated: Floats,
    known: Floats,
    state: Floats,
    moments: Floats,
    overall_pulls: Floats,
    counts: Floats,
    rewards: Floats,
    numbers: Floats,
    stream: Stream,
    scores: Floats,
    work: Floats,
    scratch: Floats,
    dims: Any,
) -> None:
    """Decide for each row of `sums` by PRUCB-HP with estimated variances."""
    views = arm_views(state, len(counts), count_of(dims))
    refresh(state, views, moments, overall_pulls, counts, rewards, offers, dims)
    arms, user = views[3], user_views(work, count_of(dims))
    users = user[4]
    run = Run(numbers[MEAN + count_of(dims) + 8 :], stream, scratch)
    for n in range(len(out)):
        offer = offers[starts[n] : starts[n + 1]]
        t = read_user(sums, stated, known, n, numbers, user, dims)
        _HIDDEN(scores[0], offer, 0, t, arms, users, run, dims)
        # The same without the preference bonus, of which V⁻¹ = 0 would leave nothing: its first numbers are the same.
        _ESTIMATED(scores[1], offer, 0, t, arms, users, run, dims)
        write(out, picks, n, offer, arms, users, scores, state, stream, dims)


@kernel
def choose_estimated(
    out: Floats,
    picks: Ints,
    offers: Ints,
    starts: Ints,
    sums: Floats,
    stated: Floats,
    known: Floats,
    state: Floats,
    moments: Floats,
    overall_pulls: Floats,
    counts: Floats,
    rewards: Floats,
    numbers: Floats,
    stream: Stream,
    scores: Floats,
    work: Floats,
    scratch: Floats,
    dims: Any,
) -> None:
    """Decide for each row of `sums` by PRUCB-UP or PRUCB-KP with estimated variances."""
    views = arm_views(state, len(counts), count_of(dims))
    refresh(state, views, moments, overall_pulls, counts, rewards, offers, dims)
    arms, user = views[3], user_views(work, count_of(dims))
    users = user[4]
    run = Run(numbers[MEAN + count_of(dims) + 8 :], stream, scratch)
    for n in range(len(out)):
        offer = offers[starts[n] : starts[n + 1]]
        t = read_user(sums, stated, known, n, numbers, user, dims)
        _ESTIMATED(scores[0], offer, 0, t, arms, users, run, dims)
        for j in range(len(offer)):
            scores[1, j] = scores[0, j]
        write(out, picks, n, offer, arms, users, scores, state, stream, dims)


@kernel
def choose_drawn(
    out: Floats,
    picks: Ints,
    offers: Ints,
    starts: Ints,
    sums: Floats,
    stated: Floats,
    known: Floats,
    state: Floats,
    moments: Floats,
    overall_pulls: Floats,
    counts: Floats,
    rewards: Floats,
    numbers: Floats,
    stream: Stream,
    scores: Floats,
    work: Floats,
    scratch: Floats,
    dims: Any,
) -> None:
    """Decide for each row of `sums` by posterior sampling, asked again and again for the propensity."""
    views = arm_views(state, len(counts), count_of(dims))
    refresh(state, views, moments, overall_pulls, counts, rewards, offers, dims)
    arms, user = views[3], user_views(work, count_of(dims))
    users = user[4]
    run = Run(numbers[MEAN + count_of(dims) + 8 :], stream, scratch)
    for n in range(len(out)):
        offer = offers[starts[n] : starts[n + 1]]
        t = read_user(sums, stated, known, n, numbers, user, dims)
        _POSTERIOR(scores[0], offer, 0, t, arms, users, run, dims)
        for j in range(len(offer)):
            scores[1, j] = scores[0, j]
        write(out, picks, n, offer, arms, users, scores, state, stream, dims)
        place, total = 0, out[n, PROPENSITY]
        while offer[place] != picks[n, 0]:
            place += 1
        for _ in range(int(numbers[DRAWS])):
            _POSTERIOR(scores[1], offer, 0, t, arms, users, run, dims)
            total += chance(scores[1], len(offer), place)
        out[n, PROPENSITY] = total / (1.0 + numbers[DRAWS])


CHOOSERS: dict[Any, Any] = {_HIDDEN: choose_hidden, _ESTIMATED: choose_estimated, _POSTERIOR: choose_drawn}
"""From a policy's kernel to the call that does everything."""
