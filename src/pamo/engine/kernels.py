"""The compiled part of a decision: arms' and users' rows in, ranked arms and the parts of their scores out.

A call of compiled code costs some fifty nanoseconds for each array, and more for a tuple of them, so that what lasts
from decision to decision lies in one flat array, the `desk`: `state`, what is known of the arms, `work`, room for one
user and one offer, and `scores`. What kernels read is derived from the rows by `pamo.reading` and `pamo.priors`, as
everywhere.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pamo.arrays import Floats, Ints
from pamo.compiling import anywhere, count_of, entry, inlined, kernel
from pamo.estimators import Kind
from pamo.policies.base import UNSCORED, pick, scratch_for, value_of
from pamo.priors import NUMBERS, PAPER, Population, Room, fit_arms, read_user
from pamo.priors import PLAIN as PLAIN_WEIGHT
from pamo.reading import (
    MEAN,
    PREFERENCE,
    PULLS,
    WIDTH,
    between_at,
    common_numbers,
    complete_at,
    count_at,
    freedom_at,
    freedoms_at,
    gather,
    inverse_at,
    noise_at,
    padded,
    read_arm,
    scatter_at,
    tile_height,
    user_numbers,
)
from pamo.rows import LEAST_SQUARE, PLAIN, ROUNDS, STATED_COUNT, STATED_SUM, counts_at, pair, pulls_at, triangle
from pamo.streams import Stream, below

SCAN = 256
"""Arms that are looked at in each call whether or not they are on offer, so that what all arms have in common is up
to date: at once with so many arms, within a few decisions with more."""

CURSOR, STALE, TOTAL, BUDGET, GIVEN, DUE, COMMON = range(7)
"""Places in `state`: the next arm to look at, rows changed since the totals were last summed from scratch, feedbacks
with an overall score, how many decisions may explore now, scores given in all objectives together, at how many of these
the arms' prior is to be fitted anew; from COMMON on what all arms have in common, what was seen of each, hidden scores
that were found, the tile of all arms, and the users who are watched."""

KIND, NON_NEGATIVE, FIRST, HAS_FIRST, DRAWS, AT_MOST, WITHIN, PRIOR = range(8)
"""Places in `numbers`: how ĉ is formed; the share of decisions that may explore, and how much worse than the best known
an arm may look; from PRIOR on the prior's mean and numbers, then the hyperparameters."""

CERTAIN = 1e12
"""The pulls that an objective counts for whose score was given: as good as infinite, and safe to calculate with."""
SAVED = 10.0
"""How many decisions that could have explored, and did not, may do so later: else an idle hour would be made up for."""
HELD_BACK = 1e-6
"""By how much, or by what share of it, an arm that is not to be explored comes after the last that may be chosen."""

SCORES = 4
"""Rows of scores: see `write`."""

SLOTS = 1 << 14
"""Users who are watched at a time, each in the slot that a hash says: of two with the same, the one who came last."""
TAG, COUNT, HIGHER, LOWER, WIDER, OVERALLS = range(6)
"""Places in a slot: whose it is, how many rounds were seen, three sums of surprises, and Σg; then Σr, then ĉ."""
SHIFT, SPREAD, FURTHEST = 0.5, 2.0, 4.0
"""What is taken off each surprise: half a standard deviation where scores are higher, or lower, than foretold, and
twice the variance where they are only further off; one score counts for at most four deviations."""
LIMIT, WIDE_LIMIT = 7.0, 14.0
"""Sums of surprises from which on a user is suspect: without a change once in about a thousand rounds."""

PROPENSITY, GREEDY, SEEN, REWARD_BONUS, PREFERENCE_BONUS, GREEDY_REWARD, GREEDY_PREFERENCE, UNSEEN, WEIGHTS = range(9)
"""Places in a row of `out`; at UNSEEN the objectives of which no score of the chosen arm was seen, as bits; from
WEIGHTS on ĉ, then r̂ of the chosen arm, then that of the arm of the highest value."""

_RIDGE, _STATED, _KNOWN = int(Kind.RIDGE), int(Kind.STATED), int(Kind.KNOWN)


@anywhere
def hyperparameters_at(objectives: int) -> int:
    """Return where the hyperparameters begin in `numbers`."""
    return PRIOR + objectives + NUMBERS


@anywhere
def seen_at(objectives: int) -> int:
    """Return where in `state` the counts begin that were seen of each arm."""
    return COMMON + common_numbers(objectives)


@anywhere
def state_size(arms: int, objectives: int) -> int:
    """Return the length of `state`."""
    return watch_at(arms, objectives) + SLOTS * slot_width(objectives)


@anywhere
def watch_at(arms: int, objectives: int) -> int:
    """Return where in `state` the users begin who are watched."""
    return seen_at(objectives) + (2 + objectives) * arms + tile_height(objectives) * padded(arms)


@anywhere
def slot_width(objectives: int) -> int:
    """Return the numbers that are kept of a user who is watched."""
    return OVERALLS + 1 + 2 * objectives


@anywhere
def work_size(arms: int, objectives: int) -> int:
    """Return the length of `work`: a user, the same without doubt, room to estimate, room to score, a tile."""
    lines, length = scratch_for(arms, objectives)
    estimating = 2 * objectives**2 + 8 * objectives + user_numbers(objectives) + 6
    return 2 * user_numbers(objectives) + estimating + lines * length + tile_height(objectives) * padded(arms)


@anywhere
def desk_size(arms: int, objectives: int) -> int:
    """Return the length of a `desk`."""
    return state_size(arms, objectives) + work_size(arms, objectives) + SCORES * padded(max(arms, 1))


@anywhere
def desk_views(desk: Floats, arms: int, objectives: int) -> Any:
    """Return (state, work, scores) as views of a desk."""
    work = state_size(arms, objectives)
    scores = work + work_size(arms, objectives)
    return desk[:work], desk[work:scores], desk[scores:].reshape((SCORES, padded(max(arms, 1))))


@anywhere
def out_width(objectives: int) -> int:
    """Return the numbers in a row of `out`: before the last a number for the user, last whether that one is suspect."""
    return WEIGHTS + 3 * objectives + 2


@anywhere
def arm_views(state: Floats, arms: int, objectives: int) -> Any:
    """Return views of `state`: what arms have in common, what was seen of each, their tile, and hidden scores found.

    Seen are numbers that each feedback adds to, and overall scores. Hidden scores are NaN where none was found.
    """
    seen = seen_at(objectives)
    tile = seen + (2 + objectives) * arms
    return (
        state[COMMON:seen],
        state[seen : seen + arms],
        state[seen + arms : seen + 2 * arms],
        state[tile : watch_at(arms, objectives)].reshape((tile_height(objectives), padded(arms))),
        state[seen + 2 * arms : tile].reshape((arms, objectives)),
    )


@anywhere
def user_views(work: Floats, objectives: int) -> Any:
    """Return (the user, the same without doubt about ĉ, room to estimate) as views of `work`."""
    user, square = user_numbers(objectives), objectives**2
    root = 2 * user
    lines = root + square
    own = lines + 3 * objectives
    sites = own + user
    curve = sites + 4 * objectives
    sums = curve + square
    moments = sums + objectives
    return (
        work[:user],
        work[user:root],
        Room(
            work[root:lines].reshape((objectives, objectives)),
            work[lines:own].reshape((3, objectives)),
            work[own:sites],
            work[sites:curve].reshape((4, objectives)),
            work[curve:sums].reshape((objectives, objectives)),
            work[sums:moments],
            work[moments : moments + 6].reshape((2, 3)),
        ),
    )


@anywhere
def offer_views(work: Floats, arms: int, offered: int, objectives: int) -> Any:
    """Return (room to score, the tile of an offer) as views of `work`."""
    lines, length = scratch_for(arms, objectives)
    first = 3 * user_numbers(objectives) + 2 * objectives**2 + 8 * objectives + 6
    tile = first + lines * length
    height, width = tile_height(objectives), padded(offered)
    return (
        work[first:tile].reshape((lines, length)),
        work[tile : tile + height * width].reshape((height, width)),
    )


@inlined
def look_at(state: Floats, views: Any, i: int, row: Floats, dims: Any) -> None:
    """Work one arm out anew if its row has changed: each feedback adds to the counts."""
    objectives = count_of(dims)
    common, seen, scored, arms, hidden = views
    counts, pulls = counts_at(objectives), pulls_at(objectives)
    count = row[pulls] + row[pulls + 1]
    for d in range(objectives):
        count += row[counts + d]
    if count == seen[i]:
        return
    state[GIVEN] += count - max(seen[i], 0.0)
    seen[i] = count
    state[STALE] += 1.0
    state[TOTAL] += row[pulls + 1] - scored[i]
    scored[i] = row[pulls + 1]
    for d in range(objectives):
        if not np.isnan(hidden[i, d]):
            arms[count_at(objectives) + d, i] = min(arms[count_at(objectives) + d, i], row[counts + d])
    read_arm(arms, i, row, common, dims)
    for d in range(objectives):
        if not np.isnan(hidden[i, d]) and row[counts + d] == 0.0:  # every pull with an overall score told of it
            arms[MEAN + d, i] = hidden[i, d]
            arms[count_at(objectives) + d, i] = row[pulls + 1]


@inlined
def refresh(state: Floats, views: Any, rows: Floats, offers: Ints, dims: Any) -> None:
    """Bring `state` up to the arms' rows: the arms on offer, and up to SCAN of all in turn."""
    count = len(rows)
    if count > SCAN:
        for j in range(len(offers)):
            look_at(state, views, offers[j], rows[offers[j]], dims)
    i = int(state[CURSOR])
    for _ in range(min(count, SCAN)):
        look_at(state, views, i, rows[i], dims)
        i = i + 1 if i + 1 < count else 0
    state[CURSOR] = i
    if state[STALE] >= count:  # adding up differences drifts, so that the totals are summed anew now and then
        common, arms = views[0], views[3]
        objectives = count_of(dims)
        state[STALE] = 0.0
        common[: between_at(objectives)].fill(0.0)
        for arm in range(count):
            common[freedom_at(objectives)] += max(arms[complete_at(objectives), arm] - 1.0, 0.0)
            for d in range(objectives):
                common[freedoms_at(objectives) + d] += max(rows[arm, counts_at(objectives) + d] - 1.0, 0.0)
            for place in range(triangle(objectives)):
                common[place] += arms[scatter_at(objectives) + place, arm]


@entry
def learn_arms(state: Floats, rows: Floats, features: Floats, room: Floats, dims: Any) -> None:
    """Fit what arms have in common to all of them, and say when it is to be done again."""
    objectives, arms = count_of(dims), len(rows)
    views = arm_views(state, arms, objectives)
    for i in range(arms):
        look_at(state, views, i, rows[i], dims)
    tile = views[3]
    fit_arms(tile.reshape((1, *tile.shape)), views[0], features, room, dims)
    state[DUE] = state[GIVEN] + max(1.0, state[GIVEN] // 2.0)


@inlined
def look_up(row: Floats, told: Floats, numbers: Floats, work: Floats, dims: Any) -> int:
    """Write what is read of a user into `work`, and return the user's round t.

    row: the user's sums. told: where the preference is known, the weights; else the user's row of stated ones.
    """
    objectives, kind = count_of(dims), int(numbers[KIND])
    user, sure, room = user_views(work, objectives)
    for d in range(objectives):
        user[PREFERENCE + d] = np.nan
    if kind == _KNOWN:
        for d in range(objectives):
            user[PREFERENCE + d] = told[d]
    elif kind == _STATED:
        count = told[STATED_COUNT]
        for d in range(objectives):
            user[PREFERENCE + d] = told[STATED_SUM + d] / count if count > 0.0 else numbers[FIRST]
    elif kind == _RIDGE:
        numbers_at = PRIOR + objectives
        prior = Population(numbers[PRIOR:numbers_at], numbers[numbers_at : numbers_at + NUMBERS])
        read_user(user, row, prior, numbers[NON_NEGATIVE] > 0.0, room, dims)
        if numbers[HAS_FIRST] > 0.0 and row[ROUNDS] == 0.0:
            for d in range(objectives):
                user[PREFERENCE + d] = numbers[FIRST]
    for d in range(objectives):
        sure[PREFERENCE + d] = user[PREFERENCE + d]
    return int(row[ROUNDS]) + 1


@inlined
def watch(state: Floats, out: Floats, row: Floats, user: Floats, arms: int, numbers: Floats, dims: Any) -> None:
    """See how the overall scores since a user's last decision compare with what was foretold then (CUSUM).

    What came since is the difference of the sums, so that nothing is kept but sums and ĉ.
    """
    objectives = count_of(dims)
    last, width, tag = objectives + 1, slot_width(objectives), out[len(out) - 2]
    first = watch_at(arms, objectives) + (int(tag) % SLOTS) * width
    slot = state[first : first + width]
    rounds = row[PLAIN] - slot[COUNT]
    if slot[TAG] != tag or rounds < 0.0:
        slot[HIGHER], slot[LOWER], slot[WIDER] = 0.0, 0.0, 0.0
    elif rounds == 0.0:
        return
    elif slot[COUNT] > 0.0:
        away, square, doubt = row[PLAIN + pair(last, 0)] - slot[OVERALLS], 0.0, 0.0
        for d in range(objectives):
            change = row[PLAIN + pair(d + 1, 0)] - slot[OVERALLS + 1 + d]
            away -= slot[OVERALLS + 1 + objectives + d] * change
            square += change * change
            along = 0.5 * user[inverse_at(objectives) + pair(d, d)] * change
            for e in range(d):
                other = row[PLAIN + pair(e + 1, 0)] - slot[OVERALLS + 1 + e]
                along += user[inverse_at(objectives) + pair(d, e)] * other
            doubt += 2.0 * change * along
        prior = PRIOR + objectives
        weight = numbers[prior + PLAIN_WEIGHT] + numbers[prior + PAPER] * rounds * rounds / max(square, LEAST_SQUARE)
        variance = user[noise_at(objectives)] * (rounds / weight + doubt)
        if variance > 0.0:
            score = min(max(away / math.sqrt(variance), -FURTHEST), FURTHEST)
            slot[HIGHER] = max(slot[HIGHER] + score - SHIFT, 0.0)
            slot[LOWER] = max(slot[LOWER] - score - SHIFT, 0.0)
            slot[WIDER] = max(slot[WIDER] + score * score - SPREAD, 0.0)
            if max(slot[HIGHER], slot[LOWER]) > LIMIT or slot[WIDER] > WIDE_LIMIT:
                out[len(out) - 1] = 1.0
                for place in (HIGHER, LOWER, WIDER):
                    slot[place] *= 0.5
    slot[TAG], slot[COUNT], slot[OVERALLS] = tag, row[PLAIN], row[PLAIN + pair(last, 0)]
    for d in range(objectives):
        slot[OVERALLS + 1 + d] = row[PLAIN + pair(d + 1, 0)]
        slot[OVERALLS + 1 + objectives + d] = user[PREFERENCE + d]


@inlined
def offer_tile(views: Any, work: Floats, arms: int, offer: Ints, given: Floats, dims: Any) -> Any:
    """Return the tile of an offer: that of all arms where all are on offer, else gathered from it.

    given: scores that are known beforehand, a row for each arm, NaN for the others; no rows where there are none.
    """
    everything, whole = views[3], len(offer) == arms and len(given) == 0
    for j in range(len(offer)):
        whole = whole and offer[j] == j
    if whole:
        return everything
    _, tile = offer_views(work, arms, len(offer), count_of(dims))
    gather(tile, everything, offer)
    for number in range(len(tile)):
        for j in range(len(offer), tile.shape[1]):
            tile[number, j] = 1.0 if number == WIDTH else 0.0
    objectives = count_of(dims)
    for j in range(len(given)):
        for d in range(objectives):
            if not np.isnan(given[j, d]):  # exact: as if it had been seen any number of times, and never varied
                tile[MEAN + d, j] = given[j, d]
                tile[count_at(objectives) + d, j] = CERTAIN
                tile[complete_at(objectives), j] = -1.0  # its counts are not all those of its pulls
                for e in range(objectives):
                    tile[scatter_at(objectives) + pair(max(d, e), min(d, e)), j] = 0.0
    return tile


@inlined
def hold_back(
    scores: Floats, arms: Floats, user: Floats, state: Floats, numbers: Floats, count: int, dims: Any
) -> None:
    """Have arms that are not to be explored come last: all but the best known, or those that look much worse."""
    highest = -np.inf
    for j in range(count):
        if arms[PULLS, j] > 0.0:
            highest = max(highest, value_of(arms, j, user, dims))
    if highest == -np.inf:
        return  # nothing is known, and whatever is chosen explores
    least, free = highest - numbers[WITHIN] * abs(highest), may_explore(state, numbers)
    floor, top = np.inf, -np.inf  # of those who may be chosen the lowest score, of the others the highest value
    for j in range(count):
        value = value_of(arms, j, user, dims)
        if is_held(free, value < least, arms[PULLS, j], scores[j]):
            top = max(top, value)
            continue
        if not free:
            scores[j] = value
        if scores[j] > UNSCORED:
            floor = min(floor, scores[j])
    if floor == np.inf:
        floor = highest
    floor -= HELD_BACK * max(abs(floor), 1.0)
    for j in range(count):
        value = value_of(arms, j, user, dims)
        if is_held(free, value < least, arms[PULLS, j], scores[j]):
            scores[j] = floor - (top - value)


@inlined
def is_held(free: bool, worse: bool, pulls: float, score: float) -> bool:
    """Tell whether an arm may not be chosen; of one that a policy has to see first, no value is known."""
    return bool(worse and score < np.inf) if free else pulls == 0.0


@inlined
def is_limited(numbers: Floats) -> bool:
    """Tell whether anything limits which arms are explored."""
    return bool(numbers[AT_MOST] < 1.0 or numbers[WITHIN] < np.inf)


@inlined
def may_explore(state: Floats, numbers: Floats) -> bool:
    """Tell whether another arm than the best known may be chosen now."""
    return bool(numbers[AT_MOST] >= 1.0 or (numbers[AT_MOST] > 0.0 and state[BUDGET] >= 1.0))


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
def sift(heap: Floats, size: int, place: int, scores: Floats) -> None:
    """Let what stands at a place of a heap sink to where no child has a higher score."""
    own = heap[place]
    score = scores[int(own)]
    child = 2 * place + 1
    while child < size:
        if child + 1 < size and scores[int(heap[child + 1])] > scores[int(heap[child])]:
            child += 1
        if scores[int(heap[child])] <= score:
            break
        heap[place] = heap[child]
        place, child = child, 2 * child + 1
    heap[place] = own


@kernel
def rank(picks: Ints, offer: Ints, scores: Floats, first: int, heap: Floats, stream: Stream) -> None:
    """Write the picks after the first, by their scores, ties uniformly at random; heap: room for the offer.

    A heap, since as many arms may be asked for as there are: to pick them one by one would take that many passes.
    """
    size = 0
    for j in range(len(offer)):
        if j != first:
            heap[size] = j
            size += 1
    for place in range(size // 2 - 1, -1, -1):
        sift(heap, size, place, scores)
    ranked = 1
    while size > 0 and ranked < len(picks):
        end, best = size, scores[int(heap[0])]
        while size > 0 and scores[int(heap[0])] == best:  # those that tie gather behind the heap
            size -= 1
            heap[0], heap[size] = heap[size], heap[0]
            sift(heap, size, 0, scores)
        while end > size and ranked < len(picks):
            j = size if end - size == 1 else size + below(stream, end - size)
            picks[ranked] = offer[int(heap[j])]
            end -= 1
            heap[j] = heap[end]
            ranked += 1


@inlined
def write(
    out: Floats,
    picks: Ints,
    offer: Ints,
    arms: Floats,
    user: Floats,
    scores: Floats,
    state: Floats,
    numbers: Floats,
    stream: Stream,
    dims: Any,
) -> int:
    """Rank the offer by its scores, write what makes up those of the first and of the arm of the highest value.

    out, picks: of one decision. arms: the offer's tile. scores: a row with the scores, one with those without the
    preference bonus, and two to work in. Returns the place of the first.
    """
    objectives, count = count_of(dims), len(offer)
    for j in range(count):
        scores[2, j] = scores[0, j]
    if is_limited(numbers):
        hold_back(scores[2], arms, user, state, numbers, count, dims)
    first: int = pick(scores[2], count, stream)
    out[PROPENSITY] = chance(scores[2], count, first)
    picks[0] = offer[first]
    if len(picks) > 1:
        rank(picks, offer, scores[2], first, scores[3], stream)
    greedy, highest = -1, -np.inf
    for j in range(count):
        value = value_of(arms, j, user, dims)
        if arms[PULLS, j] > 0.0 and (value > highest or (value == highest and j == first)):
            greedy, highest = j, value
    out[SEEN], out[GREEDY], out[UNSEEN] = state[TOTAL], -1.0, 0.0
    for d in range(objectives):
        if d < 50 and arms[count_at(objectives) + d, first] == 0.0:  # bits that a float holds
            out[UNSEEN] += 1 << d
    out[len(out) - 1] = 0.0
    last = first if greedy < 0 else greedy
    if greedy >= 0:
        out[GREEDY] = offer[greedy]
        spent = 0.0 if greedy == first else 1.0
        state[BUDGET] = max(min(state[BUDGET] + numbers[AT_MOST] - spent, SAVED), 0.0)
    for side in range(2):
        j = first if side == 0 else last
        reward_bonus, preference_bonus = 0.0, 0.0
        if scores[0, j] == np.inf:  # it comes first
            reward_bonus = np.inf
        elif scores[0, j] > UNSCORED:
            reward_bonus = scores[1, j] - value_of(arms, j, user, dims)
            preference_bonus = scores[0, j] - scores[1, j]
        out[REWARD_BONUS + 2 * side], out[PREFERENCE_BONUS + 2 * side] = reward_bonus, preference_bonus
        for d in range(objectives):
            out[WEIGHTS + (1 + side) * objectives + d] = arms[MEAN + d, j]
            out[WEIGHTS + d] = user[PREFERENCE + d]
    return first


@entry
def prepare(
    sums: Floats,
    told: Floats,
    offer: Ints,
    state: Floats,
    rows: Floats,
    numbers: Floats,
    work: Floats,
    given: Floats,
    dims: Any,
) -> tuple[int, Floats]:
    """Do what comes before a policy's kernel, for one user: return the user's round t and the offer's tile."""
    views = arm_views(state, len(rows), count_of(dims))
    refresh(state, views, rows, offer, dims)
    t = look_up(sums, told, numbers, work, dims)
    return t, offer_tile(views, work, len(rows), offer, given, dims)


@entry
def finish(
    out: Floats,
    picks: Ints,
    offer: Ints,
    tile: Floats,
    user: Floats,
    scores: Floats,
    state: Floats,
    numbers: Floats,
    stream: Stream,
    dims: Any,
) -> int:
    """Do what comes after it: return the place of the first pick."""
    return int(write(out, picks, offer, tile, user, scores, state, numbers, stream, dims))


@entry
def chance_again(
    scores: Floats, place: int, tile: Floats, user: Floats, state: Floats, numbers: Floats, count: int, dims: Any
) -> float:
    """Return the chance of a place by scores that were drawn anew."""
    if is_limited(numbers):
        hold_back(scores, tile, user, state, numbers, count, dims)
    return float(chance(scores, count, place))
