"""The compiled trial loop: the paper's rounds, for any policy and environment, with nothing allocated on the way.

It is compiled once for each number of objectives, not for each policy: policy and environment come in as functions of
a fixed type, each called once a round for all users of the trials that are played abreast (`pamo.simulation.rounds`).
An observer may come in as well, and see what was known when the users of a trial chose. What is asked for beside where
an environment is live is in `pamo.simulation.worlds`. A GPU runs the same loop, a thread for each trial, compiled for
one policy and problem (`pamo.simulation.cuda`).
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from pamo.arrays import Floats, Ints
from pamo.compiling import count_of, dimensions, kernel
from pamo.environments.base import instance_signature
from pamo.environments.live import Live, begins, drift, turn
from pamo.environments.protocols import ALL, assign
from pamo.environments.utilities import LINEAR, worth
from pamo.handing import Handed
from pamo.pareto import shortfall
from pamo.policies.base import Keeps, Kept, scratch_for
from pamo.priors import Room, start_arms
from pamo.priors.user import shapes_of_room
from pamo.reading import (
    PREFERENCE,
    PULLS,
    clear_arms,
    common_numbers,
    scatter_at,
    step_arm,
    tile_height,
)
from pamo.simulation.learning import (
    EVERYBODY,
    FITTING_TYPE,
    KNOWN,
    NEWCOMERS,
    NOBODY,
    PLAN_TYPE,
    RIDGE,
    SPREAD_TYPE,
    USERS_TYPE,
    Fitting,
    Spread,
    TrialPlan,
    Users,
    arrive,
    following_fit,
    forget_users,
    learn_users,
    shapes_of_fitting,
    shapes_of_users,
)
from pamo.simulation.rounds import choosing_signature, drawing_signature
from pamo.simulation.worlds import (
    WORLD_TYPE,
    World,
    begin_world,
    end_decisions,
    fit_to_features,
    hear,
    learn_arms,
    merge,
    offer_subsets,
    show_known,
    tell_preferences,
    wait_for,
)
from pamo.streams import ENVIRONMENT, INSTANCE, POLICY, STATED, key_of, start
from pamo.words import LANES, bare, generally, lane_of, row_of, seat, zero

_NOTHING = Keeps()
ABREAST = 40
"""Users, of several trials, that are played abreast: enough to fill lanes and calls, few enough for the cache."""


class Records(NamedTuple):
    """Where the loop writes, a row a trial; all but the pulls are cumulative values at the checkpoints."""

    regret_by_user: Floats
    """(trials, checkpoints, users)."""
    pareto_regret: Floats
    """(trials, checkpoints)."""
    overall: Floats
    """(trials, checkpoints): the sum of the overall scores received."""
    optimal: Floats
    """(trials, checkpoints): the number of pulls without regret."""
    preference_error: Floats
    """(trials, checkpoints): the mean over users of ‖ĉ − c̄‖₂ then."""
    pulls: Floats
    """(trials, arms), at the end."""


class Desk(NamedTuple):
    """All that trials are played on, trial after trial; the first axis is the trials that are played abreast."""

    means: Floats
    truth: Floats
    gaps: Floats
    pareto: Floats
    arms: Floats
    """The tiles: a block of arms each, of a trial, or of each user alone."""
    sums: Floats
    common: Floats
    users: Users
    rewards: Floats
    """What the users were given this round, in lanes, and what they stated."""
    statements: Floats
    room: Floats
    working: Room
    fitting: Floats
    """Room to fit the arms' prior."""
    streams: Any
    scores: Floats
    scratch: Floats
    kept: Kept
    """What the policy keeps by itself, a trial each."""
    every: Ints
    """(arms,): the arms in their order, of which an offer is a part."""
    reward: Floats
    stated: Floats
    assigned: Ints
    """(trials, blocks): the block that each user is offered."""
    tiles: Ints
    """By user: the tile, the place in it, and the arm that was chosen."""
    places: Ints
    chosen: Ints
    regret: Floats
    totals: Floats
    together: Fitting | None
    """Room to fit the users' prior to eight of them at a time."""


def abreast(plan: TrialPlan, trials: int) -> int:
    """Return how many of so many trials are played abreast."""
    if plan.per_user:  # as many tiles as users and blocks
        return 1
    return max(1, min(-(-ABREAST // plan.users), trials))


def shapes_of_desk(
    plan: TrialPlan,
    spread: Spread | None,
    objectives: int,
    *,
    trials: int,
    lanes: int,
    keeps: Keeps = _NOTHING,
    live: Live | None = None,
) -> Any:
    """Return the shapes of the tables of a `Desk`, for so many trials abreast and users in so many lanes."""
    users, blocks = trials * plan.users, plan.arms // plan.offer_size
    tiles, chunks = (users if plan.per_user else trials) * blocks, -(-users // lanes)
    wide = -(-plan.offer_size // lanes) * lanes
    whole = spread is not None or (live is not None and (live.missing or live.untold))
    height = tile_height(objectives) if whole else scatter_at(objectives)
    shapes: Any = Desk
    rows: Any = Kept
    return shapes(
        means=(trials, plan.arms, objectives),
        truth=(trials, plan.users, objectives),
        gaps=(trials, plan.users, plan.arms) if live is None else (trials, 1, 1),
        pareto=(trials, plan.arms),
        arms=(tiles, height, wide),
        sums=(tiles * plan.offer_size, objectives + 1),
        common=(trials, common_numbers(objectives)),
        users=shapes_of_users(chunks, trials, lanes, plan, spread, objectives),
        rewards=(chunks, objectives + 1, lanes),
        statements=(chunks, objectives, lanes),
        room=(objectives, lanes),
        working=shapes_of_room(objectives),
        fitting=(1, 2),
        streams=(trials, 4, 4),
        scores=(wide,),
        scratch=scratch_for(plan.offer_size, objectives),
        kept=rows(
            (trials, plan.arms if any(keeps) else 1, max(keeps.by_arm, 1)),
            (trials, plan.users if any(keeps) else 1, max(keeps.by_user, 1)),
            (trials, max(keeps.shared, 1)),
        ),
        every=(plan.arms,),
        reward=(objectives + 1,),
        stated=(objectives,),
        assigned=(trials, blocks),
        tiles=(users,),
        places=(users,),
        chosen=(users,),
        regret=(trials, plan.users),
        totals=(trials, 3),
        together=None if lanes == 1 else shapes_of_fitting(1 if spread is None else plan.users, lanes, objectives),
    )


def filled(shapes: Any, make: Any) -> Any:
    """Return a `Desk`, or a part of it, with the table make(name, shape, kind) for each shape of it."""
    whole = dict.fromkeys(("every", "assigned", "tiles", "places", "chosen"), np.int64)
    kinds: dict[str, Any] = {"streams": np.uint64} | whole

    def fill(name: str, part: Any) -> Any:
        if hasattr(part, "_fields"):
            return filled(part, make)
        return None if part is None else make(name, part, kinds.get(name, np.float64))

    return shapes._make(map(fill, shapes._fields, shapes))


def zeros(name: str, shape: tuple[int, ...], kind: Any) -> Any:
    """Return a table for the processor to play on."""
    return np.zeros(shape, kind)


class Moment(NamedTuple):
    """What an observer sees of a trial in a round: all that was known when its users chose, and the truth."""

    t: int
    trial: int
    """The trial's row in the records and notes."""
    first: int
    """The trial's first user in `users`: user n of the trial is `row_of(users.read, first + n)`."""
    arms: Floats
    """The trial's tiles, (blocks, …); where each user has arms of their own, user after user."""
    users: Users
    common: Floats
    means: Floats
    """(arms, D): the true reward means."""
    truth: Floats
    """(users, D): the true mean preferences."""
    chosen: Ints
    """(users,): the arms that they chose."""
    rewards: Floats
    """What all users were given for it, in lanes, the overall score last; of this trial's from `first` on."""


class Watched(NamedTuple):
    """What an observer is given to go by and to write to, and room to work in."""

    numbers: Floats
    """Settings of its own."""
    notes: Floats
    """(trials, …): a row a trial, zeros at first."""
    room: Floats


@kernel
def write_gaps(gaps: Floats, pareto: Floats, means: Floats, preferences: Floats, plan: TrialPlan, dims: Any) -> None:
    """Write each user's regret for each arm, against the best of the arm's block, and each arm's Pareto regret."""
    size = plan.offer_size
    for first in range(0, len(means), size):
        last = first + size
        for i in range(first, last):
            pareto[i] = shortfall(means, i, first, last, dims)
        for n in range(len(preferences)):
            best = -np.inf
            for i in range(first, last):
                gaps[n, i] = worth(preferences[n], means[i], plan.utility, dims)
                best = max(best, gaps[n, i])
            for i in range(first, last):
                gaps[n, i] = best - gaps[n, i]


@kernel
def revalue(
    rewards: Floats, trials: int, present: int, plan: TrialPlan, truth: Floats, reward: Floats, lanes: Any, dims: Any
) -> None:
    """Have users score by their utility, with the noise of the sum that was drawn."""
    objectives = count_of(dims)
    for trial in range(trials):
        for n in range(present):
            chunk, lane = seat(trial * plan.users + n, lanes)
            for d in range(objectives):
                reward[d] = rewards[chunk, d, lane]
            weights = truth[trial, n]
            own, linear = worth(weights, reward, plan.utility, dims), worth(weights, reward, LINEAR, dims)
            rewards[chunk, objectives, lane] += own - linear


@kernel
def _preference_error(users: Floats, first: int, truth: Floats) -> float:
    total = 0.0
    for n in range(len(truth)):
        user, square = row_of(users, first + n), 0.0
        for d in range(truth.shape[1]):
            error = user[PREFERENCE + d] - truth[n, d]
            square += error * error
        total += math.sqrt(square)
    return total / len(truth)


def run_trials(
    plan: TrialPlan,
    choose: Any,
    instance: Any,
    draw: Any,
    observer: Any,
    relearn: Any,
    seed: int,
    first_trial: int,
    first_row: int,
    last_row: int,
    hyperparameters: Floats,
    numbers: Floats,
    checkpoints: Ints,
    records: Records,
    watched: Watched | None,
    progress: Ints,
    worker: int,
    stop: Ints,
    lanes: int | None,
    spread: Spread | None,
    world: World | None,
    desk: Desk,
    dims: Any,
) -> None:
    """Play the trials of these rows of the records."""
    objectives, size, each = count_of(dims), plan.offer_size, plan.users
    rarely = generally(dims, lanes)
    blocks, most = plan.arms // size, len(desk.means)
    means, truth, gaps, pareto = desk.means, desk.truth, desk.gaps, desk.pareto
    arms, sums, common, users = desk.arms, desk.sums, desk.common, desk.users
    rewards, statements, streams = desk.rewards, desk.statements, desk.streams
    assigned, tiles, places, chosen = desk.assigned, desk.tiles, desk.places, desk.chosen
    regret, totals = desk.regret, desk.totals
    for i in range(plan.arms):
        desk.every[i] = i
    # What those who choose are told: the arms in their blocks, or a tile of each user's own where offers are subsets.
    asked, shown, numbered, listed, scores, scratch = plan, arms, tiles, desk.every, desk.scores, desk.scratch
    pulled, late, told_of, merges = chosen, 0, common, 1
    if world is not None:
        pulled, late = world.heard, world.live.delay
        if world.live.workers > 1:
            shown, numbered, told_of, merges = world.known, world.numbers, world.shared, world.live.merge_every
        if world.live.offered > 0:
            asked, shown, numbered, listed = world.asked, world.tiles, world.numbers, world.offers
            scores, scratch = world.scores, world.scratch

    for base in range(first_row, last_row, most):
        trials = most if base + most < last_row else last_row - base
        for trial in range(trials):
            for purpose in (INSTANCE, ENVIRONMENT, POLICY, STATED):
                start(streams[trial, purpose], key_of(seed, first_trial + base + trial, purpose))
            instance(means[trial], truth[trial], numbers, streams[trial, INSTANCE], dims)
            if world is None:
                write_gaps(gaps[trial], pareto[trial], means[trial], truth[trial], plan, rarely)
            for block in range(blocks):
                assigned[trial, block] = block
        if world is not None:
            begin_world(world, means, seed, first_trial + base, trials)
        for tile in range(len(arms)):
            clear_arms(arms[tile])
        zero(sums)
        zero(common)
        zero(desk.kept.by_arm)
        zero(desk.kept.by_user)
        zero(desk.kept.shared)
        if spread is not None:
            for trial in range(trials if spread.arms else 0):
                start_arms(arms[trial * blocks : (trial + 1) * blocks], common[trial], rarely)
        zero(rewards)
        zero(statements)
        forget_users(users, truth, plan, spread, rarely)
        zero(regret)
        zero(totals)
        place, due, due_new = 0, 1, 1
        if world is not None:
            merge(world, arms, sums, common, plan)

        for t in range(1, plan.rounds + 1):
            present = each if t >= plan.arrival else each - plan.newcomers
            heard, answered, drawn, told = t, present, rewards, statements
            if world is not None:
                heard = t - late
                answered = 0 if heard < 1 else each if heard >= plan.arrival else each - plan.newcomers
                drawn, told = world.rewards[t % (late + 1)], world.statements[t % (late + 1)]
                for trial in range(trials):
                    drift(means[trial], world.means[trial], world.live, t)
                    drift(truth[trial], world.truth[trial], world.live, t)
                    if begins(world.live, t):
                        instance(world.means[trial], world.truth[trial], numbers, streams[trial, INSTANCE], dims)
                        stream = world.streams[trial, 0]
                        turn(means[trial], world.means[trial], world.live.changing_arms, world.live, stream)
                        turn(truth[trial], world.truth[trial], world.live.changing_users, world.live, stream)
                    if plan.kind == KNOWN and world.live.every > 0:
                        tell_preferences(users, trial, truth[trial])
            for trial in range(trials):
                assign(assigned[trial], plan.protocol, streams[trial, ENVIRONMENT])
                for n in range(trial * each, (trial + 1) * each):
                    block = 0 if plan.protocol >= ALL else assigned[trial, n - trial * each]
                    tiles[n] = (n if plan.per_user else trial) * blocks + block
                if world is not None:  # Numba drops it for a None only as it stands
                    if world.live.offered > 0:
                        offer_subsets(world, trial, plan, arms, streams)
                    elif world.live.workers > 1:
                        show_known(world, trial, plan, tiles)
            choose(
                places,
                numbered,
                trials,
                t,
                t - 1 - late,
                asked,
                shown,
                users.read,
                told_of,
                hyperparameters,
                streams,
                scores,
                scratch,
                desk.kept,
                listed,
                pulled,
                rewards,
                lanes,
                dims,
            )
            for trial in range(trials):
                for n in range(trial * each, trial * each + present):
                    chosen[n] = (tiles[n] % blocks) * size + places[n]
                    if world is not None:  # noqa: SIM102  # as above
                        if world.live.offered > 0:
                            chosen[n] = world.offers[n * world.live.offered + places[n]]
            draw(
                drawn,
                told,
                chosen,
                trials,
                present,
                plan,
                means,
                truth,
                numbers,
                streams,
                desk.reward,
                desk.stated,
                lanes,
                dims,
            )
            if plan.utility != LINEAR:
                revalue(drawn, trials, present, plan, truth, desk.reward, lanes, rarely)
            if observer is not None:
                for trial in range(trials):
                    first = trial * each
                    moment = Moment(
                        t,
                        base + trial,
                        first,
                        arms if plan.per_user else arms[trial * blocks : (trial + 1) * blocks],
                        users,
                        common[trial],
                        means[trial],
                        truth[trial],
                        chosen[first : first + each],
                        rewards,
                    )
                    observer(moment, watched, plan, dims)
            if world is not None:
                for trial in range(trials):
                    end_decisions(
                        world,
                        trial,
                        t,
                        present,
                        plan,
                        desk.every,
                        chosen,
                        means[trial],
                        truth[trial],
                        regret[trial],
                        totals[trial],
                        records.pulls[base + trial],
                        lanes,
                        dims,
                    )
                hear(world, trials, heard, answered, plan, arms, rewards, statements, lanes, dims)
            if heard == 1 or heard == plan.arrival:  # noqa: PLR1714  # Numba takes a set of two for a table
                first_new = 0 if heard == 1 else each - plan.newcomers
                last_new = each if heard == plan.arrival else each - plan.newcomers
                arrive(users, trials, first_new, last_new, plan, lanes, rarely)
            learn_users(users, trials, rewards, statements, plan, lanes, desk.room, spread, dims)
            # Every user chose from the arms as they stood at the round's start.
            if world is not None:
                for trial in range(trials):
                    shared = common[trial]
                    if spread is not None:
                        wait_for(world, trial, present, plan, arms, chosen, dims)
                    learn_arms(world, trial, heard, answered, plan, arms, sums, shared, rewards, spread, lanes, dims)
            if world is None:
                for trial in range(trials):
                    pareto_regret, overall, optimal = 0.0, 0.0, 0.0
                    for n in range(present):
                        i = trial * each + n
                        arm, (chunk, lane) = chosen[i], seat(i, lanes)
                        gap = gaps[trial, n, arm]
                        regret[trial, n] += gap
                        pareto_regret += pareto[trial, arm]
                        overall += rewards[chunk, objectives, lane]
                        optimal += 1.0 if gap == 0.0 else 0.0
                        tile, own = bare(arms[tiles[i]]), bare(sums[tiles[i] * size + places[i]])
                        values, shared = lane_of(rewards[chunk], lane, lanes), bare(common[trial])
                        step_arm(tile, places[i], own, values, shared, spread, dims)
                    totals[trial, 0] += pareto_regret
                    totals[trial, 1] += overall
                    totals[trial, 2] += optimal
            if spread is not None:
                whose, own = NOBODY, heard - plan.arrival + 1
                # What is fitted to all workers' arms and users is known to them by a merge, as all else.
                if spread.shared and spread.levels and plan.newcomers > 0 and own >= due_new and t % merges == 0:
                    due_new, whose = following_fit(own), NEWCOMERS
                if heard >= due and t % merges == 0:
                    due, whose = following_fit(heard), EVERYBODY
                reading = plan.kind == RIDGE and (spread.bias or spread.non_negative)
                if reading or whose != NOBODY:
                    relearn(
                        whose,
                        reading,
                        users,
                        arms,
                        common,
                        trials,
                        plan,
                        spread,
                        desk.working,
                        desk.together,
                        desk.fitting,
                        rarely,
                    )
                if world is not None:
                    fit_to_features(world, whose, trials, arms, common, spread, rarely)
            if world is not None:  # noqa: SIM102  # as above
                if t % merges == 0:
                    merge(world, arms, sums, common, plan)
            if t == checkpoints[place]:
                for trial in range(trials):
                    row = base + trial
                    for n in range(each):
                        records.regret_by_user[row, place, n] = regret[trial, n]
                    records.pareto_regret[row, place] = totals[trial, 0]
                    records.overall[row, place] = totals[trial, 1]
                    records.optimal[row, place] = totals[trial, 2]
                    error = _preference_error(users.read, trial * each, truth[trial])
                    records.preference_error[row, place] = error
                    progress[worker] += 1
                place += 1
                if stop[0] != 0:
                    return
        if world is None:
            for trial in range(trials):
                for i in range(plan.arms):
                    pulls = 0.0
                    for owner in range(each if plan.per_user else 1):
                        tile = ((trial * each + owner) if plan.per_user else trial) * blocks + i // size
                        pulls += arms[tile, PULLS, i % size]
                    records.pulls[base + trial, i] = pulls


def _array(axes: int, of: Any = types.float64) -> Any:
    return types.Array(of, axes, "C")


def _desk_type() -> Any:
    plan = TrialPlan(1, 1, 1, 1, 0, 0, 1, 0, 0, False, False, 0.0, 0.0, 1.0, 0.0, 0.0)
    return numba.typeof(filled(shapes_of_desk(plan, None, 1, trials=1, lanes=LANES), zeros))


@cache
def observer_signature(objectives: int) -> Any:
    """Return the Numba signature of every observer: observer(moment, watched, plan, dims)."""
    moment = types.NamedTuple(
        (types.int64,) * 3
        + (_array(3), USERS_TYPE, _array(1), _array(2), _array(2), _array(1, types.int64), _array(3)),
        Moment,
    )
    return types.void(moment, WATCHED_TYPE, PLAN_TYPE, numba.typeof(dimensions(objectives)))


@cache
def _relearning_signature() -> Any:
    """Return the Numba signature of `learn_anew`."""
    two, one = _array(2), _array(1)
    room, desk = types.NamedTuple((two, two, one, two, two, one, two), Room), (_array(3), two)
    return types.void(
        types.int64,
        types.boolean,
        USERS_TYPE,
        *desk,
        types.int64,
        PLAN_TYPE,
        SPREAD_TYPE,
        room,
        FITTING_TYPE,
        two,
        types.int64,
    )


WATCHED_TYPE = types.NamedTuple((_array(1), _array(2), _array(1)), Watched)


@cache
def trial_loop(objectives: int, reads_spread: bool = False, observed: bool = False, live: bool = False) -> Any:
    """Return the trial loop compiled for this number of objectives (one for all that are not `SPECIALISED`)."""
    whole, indices = types.int64, _array(1, types.int64)
    signature = types.void(
        PLAN_TYPE,
        types.FunctionType(choosing_signature(objectives)),
        types.FunctionType(instance_signature(objectives)),
        types.FunctionType(drawing_signature(objectives)),
        types.FunctionType(observer_signature(objectives)) if observed else types.none,
        types.FunctionType(_relearning_signature()) if reads_spread else types.none,
        types.uint64,
        whole,
        whole,
        whole,
        _array(1),
        _array(1),
        indices,
        types.NamedTuple((_array(3),) + (_array(2),) * 5, Records),
        WATCHED_TYPE,
        indices,
        whole,
        indices,
        whole,
        SPREAD_TYPE if reads_spread else types.none,
        WORLD_TYPE if live else types.none,
        _desk_type(),
        numba.typeof(dimensions(objectives)),
    )
    return Handed(run_trials, signature)
