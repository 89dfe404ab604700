"""The compiled part of a decision: arms' and users' sums in, ranked arms and the parts of their scores out.

A call of compiled code costs some fifty nanoseconds for each array, and more for a tuple of them, so that what lasts
from decision to decision lies in two flat arrays: `state`, what is known of the arms, and `work`, room for one user.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pamo.arrays import Floats, Ints
from pamo.compiling import count_of, inlined, kernel
from pamo.estimators import Kind
from pamo.policies.base import Arms, SpreadArms, SpreadUsers, Users, pick
from pamo.sharing import Population, noise_of, solve_user, write_inverse
from pamo.streams import Stream

SCAN = 256
"""Arms that are looked at in each call whether or not they are on offer, so that what all arms have in common is up
to date: at once with so many arms, within a few decisions with more."""

CURSOR, STALE, TOTAL, FREEDOM, ARMS = range(5)
"""Places in `state`: the next arm to look at, rows changed since the totals were last summed from scratch, feedbacks
with an overall score, Σ(N_i − 1); from ARMS on the arms' own arrays, one after another."""

KIND, NON_NEGATIVE, FIRST, HAS_FIRST, DRAWS, MEAN = range(6)
"""Places in `numbers`: how ĉ is formed; from MEAN on the prior's mean and numbers, then the hyperparameters."""

PROPENSITY, GREEDY, SEEN, REWARD_BONUS, PREFERENCE_BONUS, GREEDY_REWARD, GREEDY_PREFERENCE, WEIGHTS = range(8)
"""Places in a row of `out`; from WEIGHTS on ĉ, then r̂ of the chosen arm, then that of the arm of the highest value."""

_RIDGE, _STATED, _KNOWN = int(Kind.RIDGE), int(Kind.STATED), int(Kind.KNOWN)


def state_size(arms: int, objectives: int) -> int:
    """Return the length of `state`."""
    return ARMS + 6 * arms + arms * objectives + (arms + 1) * objectives**2


def work_size(objectives: int) -> int:
    """Return the length of `work`."""
    return 2 * (objectives + 2) ** 2 + 3 * objectives**2 + 4 * objectives + 3


def out_width(objectives: int) -> int:
    """Return the numbers in a row of `out`."""
    return WEIGHTS + 3 * objectives


@inlined
def arm_views(state: Floats, arms: int, objectives: int) -> Any:
    """Return views of `state`: feedback counts seen, pulls with an overall score, overall means, and the arms."""
    at = ARMS
    means = at + 6 * arms
    scatter = means + arms * objectives
    return (
        state[at : at + arms],
        state[at + arms : at + 2 * arms],
        state[at + 2 * arms : at + 3 * arms],
        SpreadArms(
            state[at + 3 * arms : at + 4 * arms],
            state[at + 4 * arms : at + 5 * arms],
            state[at + 5 * arms : means],
            state[means:scatter].reshape((arms, objectives)),
            state[scatter:].reshape((arms + 1, objectives, objectives)),
            state[FREEDOM : FREEDOM + 1],
        ),
    )


@inlined
def user_views(work: Floats, objectives: int) -> Any:
    """Return (plain moments, weighted moments, R, room, the user, the same user without doubt) as views of `work`."""
    side, square = (objectives + 2) ** 2, objectives**2
    root = 2 * side
    room = root + square
    preference = room + 3 * objectives
    inverse = preference + objectives
    sure = inverse + square
    shape = (1, objectives, objectives)
    weights = work[preference:inverse].reshape((1, objectives))
    return (
        work[:side].reshape((1, objectives + 2, objectives + 2)),
        work[side:root].reshape((1, objectives + 2, objectives + 2)),
        work[root:room].reshape((objectives, objectives)),
        work[room:preference].reshape((3, objectives)),
        SpreadUsers(weights, work[inverse:sure].reshape(shape), work[sure + square : sure + square + 1]),
        SpreadUsers(weights, work[sure : sure + square].reshape(shape), work[sure + square + 1 : sure + square + 2]),
    )


@inlined
def look_at(
    state: Floats,
    views: Any,
    i: int,
    moments: Floats,
    overall_pulls: Floats,
    counts: Floats,
    sums: Floats,
    dims: Any,
) -> None:
    """Work one arm out anew if its sums have changed: each feedback with a reward adds to the counts."""
    objectives, arms = count_of(dims), len(counts)
    seen, scored, overall_mean, spread = views
    count = 0.0
    for d in range(objectives):
        count += counts[i, d]
    if count == seen[i]:
        return
    seen[i] = count
    state[STALE] += 1.0
    pulls = moments[i, 0, 0]
    state[FREEDOM] += max(pulls - 1.0, 0.0) - max(spread.pulls[i] - 1.0, 0.0)
    state[TOTAL] += overall_pulls[i] - scored[i]
    least = max(pulls, 1.0)
    scored[i] = overall_pulls[i]
    spread.pulls[i] = pulls
    spread.width[i] = 1.0 / math.sqrt(least)
    spread.log_pulls[i] = math.log(least)
    overall_mean[i] = moments[i, 0, objectives + 1] / max(overall_pulls[i], 1.0)
    for d in range(objectives):
        spread.reward_mean[i, d] = sums[i, d] / max(counts[i, d], 1.0)
        for e in range(d + 1):
            entry = moments[i, d + 1, e + 1] - moments[i, d + 1, 0] * moments[i, e + 1, 0] / least
            spread.scatter[arms, d, e] += entry - spread.scatter[i, d, e]
            spread.scatter[i, d, e] = entry


@inlined
def refresh(
    state: Floats,
    views: Any,
    moments: Floats,
    overall_pulls: Floats,
    counts: Floats,
    sums: Floats,
    offers: Ints,
    dims: Any,
) -> None:
    """Bring `state` up to the arms' sums: the arms on offer, and up to SCAN of all in turn."""
    objectives, arms = count_of(dims), len(counts)
    if arms > SCAN:
        for j in range(len(offers)):
            look_at(state, views, offers[j], moments, overall_pulls, counts, sums, dims)
    i = int(state[CURSOR])
    for _ in range(min(arms, SCAN)):
        look_at(state, views, i, moments, overall_pulls, counts, sums, dims)
        i = i + 1 if i + 1 < arms else 0
    state[CURSOR] = i
    if state[STALE] >= arms:  # adding up differences drifts, so that the totals are summed anew now and then
        spread = views[3]
        state[STALE], state[FREEDOM] = 0.0, 0.0
        for d in range(objectives):
            for e in range(d + 1):
                spread.scatter[arms, d, e] = 0.0
        for row in range(arms):
            state[FREEDOM] += max(spread.pulls[row] - 1.0, 0.0)
            for d in range(objectives):
                for e in range(d + 1):
                    spread.scatter[arms, d, e] += spread.scatter[row, d, e]


@inlined
def read_user(sums: Floats, stated: Floats, known: Floats, n: int, numbers: Floats, views: Any, dims: Any) -> int:
    """Write ĉ, V⁻¹ and σ̂² of row n into the views of `work`, and return the user's round t."""
    objectives = count_of(dims)
    plain, weighted, root, room, users, _ = views
    kind = int(numbers[KIND])
    for d in range(objectives):
        users.preference[0, d] = np.nan
    if kind == _KNOWN:
        for d in range(objectives):
            users.preference[0, d] = known[n, d]
    elif kind == _STATED:
        for d in range(objectives):
            users.preference[0, d] = stated[n, 1 + d] / stated[n, 0] if stated[n, 0] > 0.0 else numbers[FIRST]
    elif kind == _RIDGE:
        half = (objectives + 2) * (objectives + 3) // 2
        at = 1
        for i in range(objectives + 2):
            for j in range(i + 1):
                plain[0, i, j] = sums[n, at]
                weighted[0, i, j] = sums[n, at + half]
                at += 1
        prior = Population(numbers[MEAN : MEAN + objectives], numbers[MEAN + objectives : MEAN + objectives + 8])
        squares = solve_user(
            users.preference, 0, root, plain, weighted, 0, prior, numbers[NON_NEGATIVE] > 0.0, room, dims
        )
        write_inverse(users.inverse_gram, 0, root, dims)
        users.noise[0] = noise_of(squares, plain[0, 0, 0], prior)
        if numbers[HAS_FIRST] > 0.0 and sums[n, 0] == 0.0:
            for d in range(objectives):
                users.preference[0, d] = numbers[FIRST]
    return int(sums[n, 0]) + 1


@inlined
def _value(arms: SpreadArms, i: int, users: SpreadUsers, dims: Any) -> float:
    total = 0.0
    for d in range(count_of(dims)):
        total += users.preference[0, d] * arms.reward_mean[i, d]
    return total


@kernel
def chance(scores: Floats, count: int, place: int) -> float:
    """Return the chance of a place to be picked: that of a tie among the highest, or 0."""
    best, ties = scores[place], 0
    for j in range(count):
        if scores[j] > best:
            return 0.0
        if scores[j] == best:
            ties += 1
    return 1.0 / ties


@inlined
def write(
    out: Floats,
    picks: Ints,
    n: int,
    offer: Ints,
    arms: SpreadArms,
    users: SpreadUsers,
    scores: Floats,
    state: Floats,
    stream: Stream,
    dims: Any,
) -> None:
    """Rank the offer by its scores, and write what makes up those of the first and of the arm of the highest value.

    scores: a row with the scores, one with those without the preference bonus, and one to work in.
    """
    objectives, count = count_of(dims), len(offer)
    for j in range(count):
        scores[2, j] = scores[0, j]
    first = 0
    for place in range(picks.shape[1]):
        j = pick(scores[2], count, stream)
        if place == 0:
            first = j
            out[n, PROPENSITY] = chance(scores[0], count, j)
        picks[n, place] = offer[j]
        scores[2, j] = -np.inf
    greedy, highest = -1, -np.inf
    for j in range(count):
        value = _value(arms, offer[j], users, dims)
        if arms.pulls[offer[j]] > 0.0 and (value > highest or (value == highest and j == first)):
            greedy, highest = j, value
    out[n, SEEN], out[n, GREEDY] = state[TOTAL], -1.0
    last = first if greedy < 0 else greedy
    if greedy >= 0:
        out[n, GREEDY] = offer[greedy]
    for side in range(2):
        j = first if side == 0 else last
        i = offer[j]
        if arms.pulls[i] == 0.0 and np.isinf(scores[0, j]):
            out[n, REWARD_BONUS + 2 * side], out[n, PREFERENCE_BONUS + 2 * side] = np.inf, 0.0
        else:
            out[n, REWARD_BONUS + 2 * side] = scores[1, j] - _value(arms, i, users, dims)
            out[n, PREFERENCE_BONUS + 2 * side] = scores[0, j] - scores[1, j]
        for d in range(objectives):
            out[n, WEIGHTS + (1 + side) * objectives + d] = arms.reward_mean[i, d]
            out[n, WEIGHTS + d] = users.preference[0, d]


@kernel
def prepare(
    sums: Floats,
    stated: Floats,
    known: Floats,
    offers: Ints,
    state: Floats,
    moments: Floats,
    overall_pulls: Floats,
    counts: Floats,
    rewards: Floats,
    numbers: Floats,
    work: Floats,
    dims: Any,
) -> int:
    """Do what comes before a policy's kernel, for one user, and return the user's round t."""
    views = arm_views(state, len(counts), count_of(dims))
    refresh(state, views, moments, overall_pulls, counts, rewards, offers, dims)
    return int(read_user(sums, stated, known, 0, numbers, user_views(work, count_of(dims)), dims))


@kernel
def finish(
    out: Floats,
    picks: Ints,
    n: int,
    offer: Ints,
    state: Floats,
    stream: Stream,
    scores: Floats,
    work: Floats,
    arms: int,
    dims: Any,
) -> None:
    """Do what comes after it."""
    _, _, _, spread = arm_views(state, arms, count_of(dims))
    _, _, _, _, users, _ = user_views(work, count_of(dims))
    write(out, picks, n, offer, spread, users, scores, state, stream, dims)


def plain_views(state: Floats, work: Floats, arms: int, objectives: int) -> tuple[Arms, Users, Users]:
    """Return what a kernel that does not read the spread is given: the arms, the user, and the user without doubt."""
    _, _, overall_mean, spread = arm_views.py_func(state, arms, objectives)
    *_, users, sure = user_views.py_func(work, objectives)
    none = np.zeros((1, 1))
    return (
        Arms(spread.pulls, spread.width, spread.reward_mean, overall_mean),
        Users(users.preference, users.inverse_gram, none, none),
        Users(sure.preference, sure.inverse_gram, none, none),
    )


def spread_views(
    state: Floats, work: Floats, arms: int, objectives: int
) -> tuple[SpreadArms, SpreadUsers, SpreadUsers]:
    """Return the same for a kernel that does."""
    *_, users, sure = user_views.py_func(work, objectives)
    return arm_views.py_func(state, arms, objectives)[3], users, sure
