"""What the trial loop does beside the paper's rounds where an environment is `live`: `pamo.environments.live`.

The loop is handed a `World`, or None, and Numba drops all of this for a None before it looks at types. What is learned
at a round's end is what was *heard* then: where it comes late, the feedback of a round before. Where several workers
serve the users, the loop's own tiles are what all of them know together; each chooses by copies, which its own users'
feedback goes into at once, and which are made anew at each merge. Of scores that were not
told a user's regression is given the arm's mean of now; the arm's own numbers are read from its row, as in the engine.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from pamo.arrays import Floats, Ints
from pamo.compiling import count_of, kernel
from pamo.environments.live import LIVE_TYPE, Live, draw_offer, hide, write_features
from pamo.environments.utilities import worth
from pamo.pareto import margin
from pamo.policies.base import scratch_for
from pamo.priors import fit_arms, room_for_arms
from pamo.reading import (
    MEAN,
    OVERALL,
    PREFERENCE,
    PULLS,
    clear_arms,
    common_numbers,
    gather,
    padded,
    pending_at,
    read_arm,
    step_arm,
    tile_height,
)
from pamo.rows import arm_width, observe_arm
from pamo.simulation.learning import EVERYBODY, PLAN_TYPE, Spread, TrialPlan, Users
from pamo.streams import CHANGES, ENVIRONMENT, FEATURES, MISSING, key_of, start
from pamo.words import bare, lane_of, row_of, seat, zero


class World(NamedTuple):
    """What a live environment is played on; the first axis of most is the trials, or the users, that play abreast."""

    live: Live
    asked: TrialPlan
    """The plan as those who choose are told of it, whose blocks are the users' offers where these are subsets."""
    means: Floats
    """(trials, arms, D), and the users' likewise: truths drawn anew, or a drift's steps."""
    truth: Floats
    features: Floats
    """(trials, arms, F), and room to fit a prior with them."""
    fitting: Floats
    streams: Any
    """(trials, purposes, 4)."""
    order: Ints
    """(trials, arms): all arms, in the order that the last offer left."""
    offers: Ints
    """(users · offered,): the arms on offer, and the tiles of them."""
    tiles: Floats
    numbers: Ints
    """(users,): the numbers of those tiles; among several workers, of the tiles in `known`."""
    scores: Floats
    scratch: Floats
    rows: Floats
    """(tiles · arms of one, …): the arms' rows, where scores may be missing."""
    rewards: Floats
    """(delay + 1, chunks, D + 1, lanes): what the last rounds gave, what was stated and which arms were chosen."""
    statements: Floats
    chosen: Ints
    heard: Ints
    """(users,): the arms of the round that was heard of last."""
    known: Floats
    """(trials · workers · blocks, …): the arms' tiles as each worker knows them, their sums, and what was common to
    all arms by the last merge."""
    summed: Floats
    shared: Floats
    spare: Floats
    """What a worker's own pulls add to what is common: nobody reads it before the merge."""


def world_for(live: Live, plan: TrialPlan, objectives: int, tile: tuple[int, int], *, trials: int, lanes: int) -> World:
    """Return the tables for so many trials abreast and users in so many lanes; tile: the shape of the arms' tiles."""
    users, size = trials * plan.users, live.offered or 1
    tiles, chunks, slots = users if plan.per_user else trials, -(-users // lanes), live.delay + 1
    arms = plan.arms if live.missing or live.untold else 0
    copies = trials * live.workers * (plan.arms // plan.offer_size) if live.workers > 1 else 0
    common = common_numbers(objectives)
    return World(
        live=live,
        asked=plan._replace(arms=users * size, offer_size=size) if live.offered else plan,
        means=np.zeros((trials, plan.arms, objectives)),
        truth=np.zeros((trials, plan.users, objectives)),
        features=np.zeros((trials, plan.arms, live.features)),
        fitting=room_for_arms(live.features),
        streams=np.zeros((trials, 3, 4), dtype=np.uint64),
        order=np.zeros((trials, plan.arms), dtype=np.int64),
        offers=np.zeros(users * size, dtype=np.int64),
        tiles=np.zeros((users if live.offered else 1, tile_height(objectives), padded(size))),
        numbers=np.arange(users),
        scores=np.zeros(padded(size)),
        scratch=np.zeros(scratch_for(size, objectives)),
        rows=np.zeros((tiles * arms, arm_width(objectives))),
        rewards=np.zeros((slots, chunks, objectives + 1, lanes)),
        statements=np.zeros((slots, chunks, objectives, lanes)),
        chosen=np.zeros((slots, users), dtype=np.int64),
        heard=np.zeros(users, dtype=np.int64),
        known=np.zeros((copies, *tile)),
        summed=np.zeros((copies * plan.offer_size, objectives + 1)),
        shared=np.zeros((trials, common)),
        spare=np.zeros(common),
    )


def _floats(axes: int) -> Any:
    return types.Array(types.float64, axes, "C")


_INTS = types.Array(types.int64, 1, "C")
WORLD_TYPE = types.NamedTuple(
    (LIVE_TYPE, PLAN_TYPE)
    + (_floats(3),) * 3
    + (_floats(2), types.Array(types.uint64, 3, "C"), types.Array(types.int64, 2, "C"), _INTS, _floats(3), _INTS)
    + (_floats(1), _floats(2), _floats(2))
    + (_floats(4),) * 2
    + (types.Array(types.int64, 2, "C"), _INTS, _floats(3), _floats(2), _floats(2), _floats(1)),
    World,
)


@kernel
def begin_world(world: World, means: Floats, seed: int, first: int, trials: int) -> None:
    """Begin trials first … first + trials − 1: their streams, arms in order, and features that tell of their means."""
    for trial in range(trials):
        for place in range(3):
            start(world.streams[trial, place], key_of(seed, first + trial, CHANGES + place))
        for i in range(world.order.shape[1]):
            world.order[trial, i] = i
        stream = world.streams[trial, FEATURES - CHANGES]
        write_features(world.features[trial], means[trial], world.live.explained, stream)
    for n in range(len(world.tiles)):
        clear_arms(world.tiles[n])
    zero(world.rows)


@kernel
def tell_preferences(users: Users, trial: int, truth: Floats) -> None:
    """Have what is read of users be what they prefer now, for a policy that knows."""
    for n in range(len(truth)):
        user = row_of(users.read, trial * len(truth) + n)
        for d in range(truth.shape[1]):
            user[PREFERENCE + d] = truth[n, d]


@kernel
def offer_subsets(world: World, trial: int, plan: TrialPlan, arms: Floats, streams: Any) -> None:
    """Draw what each user of a trial is offered, and write the tile of it."""
    size = world.live.offered
    for n in range(trial * plan.users, (trial + 1) * plan.users):
        offer = world.offers[n * size : (n + 1) * size]
        draw_offer(offer, world.order[trial], streams[trial, ENVIRONMENT])
        tile, table = world.tiles[n], arms[n if plan.per_user else trial]
        if world.live.workers > 1:
            table = world.known[trial * world.live.workers + _worker(world, n, plan)]
        gather(tile[: len(table)], table, offer)


@kernel
def _worker(world: World, user: int, plan: TrialPlan) -> int:
    """Return who serves a user, of all trials' users."""
    return (user % plan.users) % world.live.workers


@kernel
def show_known(world: World, trial: int, plan: TrialPlan, tiles: Ints) -> None:
    """Have each user of a trial choose by the tiles that the user's worker knows."""
    blocks = plan.arms // plan.offer_size
    for n in range(trial * plan.users, (trial + 1) * plan.users):
        world.numbers[n] = (trial * world.live.workers + _worker(world, n, plan)) * blocks + tiles[n] % blocks


@kernel
def merge(world: World, arms: Floats, sums: Floats, common: Floats, plan: TrialPlan) -> None:
    """Have every worker know what all of them have learned of the arms, and of what these have in common."""
    blocks, size = plan.arms // plan.offer_size, plan.offer_size
    for number in range(len(world.known)):
        whose = number // (world.live.workers * blocks) * blocks + number % blocks
        world.known[number] = arms[whose]
        world.summed[number * size : (number + 1) * size] = sums[whose * size : (whose + 1) * size]
    world.shared[:] = common


@kernel
def end_decisions(
    world: World,
    trial: int,
    t: int,
    present: int,
    plan: TrialPlan,
    every: Ints,
    chosen: Ints,
    means: Floats,
    truth: Floats,
    regret: Floats,
    totals: Floats,
    pulls: Floats,
    lanes: int | None,
    dims: Any,
) -> None:
    """Count a round of a trial against its truth of now, put its pulls by, and hide what is not told of them."""
    objectives, live, slot = count_of(dims), world.live, t % len(world.rewards)
    pareto_regret, overall, optimal = 0.0, 0.0, 0.0
    for n in range(present):
        i = trial * plan.users + n
        arm, (chunk, lane) = chosen[i], seat(i, lanes)
        size = live.offered if live.offered > 0 else plan.offer_size
        first = i * size if live.offered > 0 else arm // size * size
        offer = world.offers if live.offered > 0 else every
        own, best, lacking = 0.0, -np.inf, 0.0
        for j in range(first, first + size):
            value = worth(truth[n], means[offer[j]], plan.utility, dims)
            best = max(best, value)
            own = value if offer[j] == arm else own
            lacking = max(lacking, margin(means, offer[j], arm, dims))
        regret[n] += best - own
        pareto_regret += lacking
        overall += world.rewards[slot, chunk, objectives, lane]
        optimal += 1.0 if best == own else 0.0
        pulls[arm] += 1.0
        world.chosen[slot, i] = arm
        if live.missing > 0.0 or live.untold > 0:
            values = lane_of(world.rewards[slot, chunk], lane, lanes)
            hide(values, live, world.streams[trial, MISSING - CHANGES], dims)
    totals[0] += pareto_regret
    totals[1] += overall
    totals[2] += optimal


@kernel
def hear(
    world: World,
    trials: int,
    heard: int,
    answered: int,
    plan: TrialPlan,
    arms: Floats,
    rewards: Floats,
    statements: Floats,
    lanes: int | None,
    dims: Any,
) -> None:
    """Write what comes of round `heard` of so many users of each trial, the arm's mean where a score was not told."""
    objectives, slot, blocks = count_of(dims), heard % len(world.rewards), plan.arms // plan.offer_size
    for trial in range(trials):
        for i in range(trial * plan.users, trial * plan.users + answered):
            chunk, lane = seat(i, lanes)
            arm = world.chosen[slot, i]
            world.heard[i] = arm
            tile = arms[(i if plan.per_user else trial) * blocks + arm // plan.offer_size]
            for d in range(objectives + 1):
                value = world.rewards[slot, chunk, d, lane]
                rewards[chunk, d, lane] = tile[MEAN + d, arm % plan.offer_size] if np.isnan(value) else value
            for d in range(objectives):
                statements[chunk, d, lane] = world.statements[slot, chunk, d, lane]


@kernel
def wait_for(world: World, trial: int, present: int, plan: TrialPlan, arms: Floats, chosen: Ints, dims: Any) -> None:
    """Count the pulls of a round as under way, where feedback comes late."""
    blocks = plan.arms // plan.offer_size
    for i in range(trial * plan.users, trial * plan.users + (present if world.live.delay > 0 else 0)):
        tile = arms[(i if plan.per_user else trial) * blocks + chosen[i] // plan.offer_size]
        tile[pending_at(count_of(dims)), chosen[i] % plan.offer_size] += 1.0


@kernel
def learn_arms(
    world: World,
    trial: int,
    heard: int,
    answered: int,
    plan: TrialPlan,
    arms: Floats,
    sums: Floats,
    common: Floats,
    rewards: Floats,
    spread: Any,
    lanes: int | None,
    dims: Any,
) -> None:
    """Take what was heard into what is known of the arms."""
    objectives, slot, size = count_of(dims), heard % len(world.rewards), plan.offer_size
    blocks, live = plan.arms // size, world.live
    for i in range(trial * plan.users, trial * plan.users + answered):
        arm, (chunk, lane) = world.heard[i], seat(i, lanes)
        number, place = (i if plan.per_user else trial) * blocks + arm // size, arm % size
        tile, own = bare(arms[number]), bare(sums[number * size + place])
        if live.missing > 0.0 or live.untold > 0:
            row = world.rows[number * size + place]
            observe_arm(row, lane_of(world.rewards[slot, chunk], lane, lanes), 1.0, objectives)
            read_arm(tile, place, row, common, dims)
            own[objectives] += rewards[chunk, objectives, lane]  # the overall score is always told
            tile[OVERALL, place] = own[objectives] / tile[PULLS, place]
        else:
            values = lane_of(rewards[chunk], lane, lanes)
            step_arm(tile, place, own, values, common, spread, dims)
            if live.workers > 1:
                mine = (trial * live.workers + _worker(world, i, plan)) * blocks + arm // size
                seen, added = bare(world.known[mine]), bare(world.summed[mine * size + place])
                step_arm(seen, place, added, values, bare(world.spare), spread, dims)
        if spread is not None and live.delay > 0:
            tile[pending_at(objectives), place] -= 1.0


@kernel
def fit_to_features(
    world: World, whose: int, trials: int, arms: Floats, common: Floats, spread: Spread, dims: Any
) -> None:
    """Fit what arms have in common to their features as well, whenever it was fitted without."""
    if whose == EVERYBODY and spread.arms and world.live.features > 0:
        for trial in range(trials):
            fit_arms(arms[trial : trial + 1], common[trial], world.features[trial], world.fitting, dims)
