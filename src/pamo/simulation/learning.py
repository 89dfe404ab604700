"""What the trial loop keeps and learns: of the arms in tiles, of the users in chunks of lanes.

Of a policy that does not read the spread the loop keeps ĉ and V⁻¹ alone, by rank-one steps. For one that does it keeps
the users' rows as well (`pamo.rows`), which priors are fitted to. The loop is written once and compiled for each of the
two: Numba drops what stands under `if spread is not None` for a None before it looks at types.

Eight users stand abreast, `users[chunk, number, lane]`, so that what every user learns in a round is learned by eight
at a time; a user who is not there yet, and a lane that nobody has, learns with weight 0. Priors are fitted to eight at
a time as well, a trial's users being put together for that (`Fitting`). On a GPU, where a thread plays a trial alone,
each user is a chunk of one lane.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types

from pamo.arrays import Floats
from pamo.compiling import apart, count_of, inlined, kernel, written
from pamo.eights import above, abreast, summed
from pamo.estimators import Kind
from pamo.priors import (
    NOISE,
    NUMBERS,
    PAPER,
    PLAIN,
    PRIOR_ROUNDS,
    Population,
    Room,
    fit_arms,
    fit_population,
    noise_of,
    start_population,
)
from pamo.priors.user import (
    PULL,
    SHARE,
    STRENGTH,
    find_sites,
    hold_alike,
    read_with_sites,
    shapes_of_room,
    use_sites,
)
from pamo.reading import PREFERENCE, directed_at, inverse_at, noise_at, squares_at, step_user, user_numbers
from pamo.rows import (
    LEAST_SQUARE,
    STATED_COUNT,
    STATED_SUM,
    observe_round,
    pair,
    square_of,
    state,
    stated_width,
    user_width,
)
from pamo.rows import PLAIN as PLAIN_ROW
from pamo.words import LANES, bare, lane_of, row_of, seat, zero

RIDGE, STATED, KNOWN = int(Kind.RIDGE), int(Kind.STATED), int(Kind.KNOWN)


class TrialPlan(NamedTuple):
    """What a run is, in numbers: sizes, protocol, and how the policy forms its preference estimate."""

    rounds: int
    users: int
    arms: int
    offer_size: int
    protocol: int
    newcomers: int
    """How many users, the last ones, come later."""
    arrival: int
    """The round in which they do."""
    kind: int
    utility: int
    """What a reward is worth: a number of `pamo.environments.utilities`."""
    per_user: bool
    wants_stated: bool
    first: float
    """Each entry of ĉ before a user's first round."""
    level: float
    """What the ridge draws it to before anything is shared."""
    ridge: float
    plain: float
    paper: float
    """How the ridge weighs a round, plain + paper/‖r‖²."""


class Spread(NamedTuple):
    """How preferences are estimated for a policy that reads the spread; `pamo.priors` says what the words mean."""

    shared: bool
    bias: bool
    elasticity: float
    """φ, or -1 to fit it."""
    non_negative: bool
    levels: bool
    arms: bool
    """Whether arms have a prior: not where somebody watches a policy that reads no spread itself."""


class Users(NamedTuple):
    """What is learned of the users, in lanes (chunks, numbers, lanes), but for the priors."""

    read: Floats
    """What kernels read."""
    rows: Floats
    """Their rows, where the spread is read."""
    stated: Floats
    """Their rows of stated preferences, where they are read."""
    told: Floats
    """What the step of a user has to know of the prior, where the spread is read."""
    sites: Floats
    """What two levels make of their rows, as of the last fit, where the spread is read."""
    here: Floats
    """(chunks, lanes): 1 for who takes part in this round, and 0."""
    priors: Floats
    """(trials, …): each trial's prior, its mean and then its numbers."""


class Fitting(NamedTuple):
    """Where a prior is fitted to eight users at a time: room to work in, in lanes, and the users of one trial."""

    root: Floats
    lines: Floats
    own: Floats
    """The lanes of a `Room`'s sites."""
    rows: Floats
    sites: Floats
    read: Floats
    here: Floats


_WEIGHT_PLAIN, _WEIGHT_PAPER, _ROUNDS, _NOISE = range(4)
"""Places in `told`."""

PLAN_TYPE = types.NamedTuple(
    (types.int64,) * 9 + (types.boolean,) * 2 + (types.float64,) * 5,
    TrialPlan,
)
SPREAD_TYPE = types.NamedTuple((types.boolean,) * 2 + (types.float64,) + (types.boolean,) * 3, Spread)
_FLOATS_2, _FLOATS_3 = (types.Array(types.float64, axes, "C") for axes in (2, 3))
FITTING_TYPE = types.NamedTuple((_FLOATS_3,) * 6 + (_FLOATS_2,), Fitting)
USERS_TYPE = types.NamedTuple((_FLOATS_3,) * 5 + (_FLOATS_2,) * 2, Users)


def shapes_of_users(
    chunks: int, trials: int, lanes: int, plan: TrialPlan, spread: Spread | None, objectives: int
) -> Any:
    """Return the shapes of the tables of `Users`, for so many chunks of so many lanes."""
    kept = 1 if spread is None else chunks
    shapes: Any = Users
    return shapes(
        read=(chunks, user_numbers(objectives), lanes),
        rows=(kept, user_width(objectives), lanes),
        stated=(chunks if plan.wants_stated else 1, stated_width(objectives), lanes),
        told=(kept, 4, lanes),
        sites=(kept, 2 * objectives, lanes),
        here=(chunks, lanes),
        priors=(trials, objectives + NUMBERS),
    )


def shapes_of_fitting(users: int, lanes: int, objectives: int) -> Any:
    """Return the shapes of the tables of `Fitting`, for so many users."""
    shapes: Any = Fitting
    chunks = -(-users // lanes)
    room, widths = shapes_of_room(objectives), (user_width(objectives), 2 * objectives, user_numbers(objectives))
    tables = (room.root, room.lines, room.sites, *((chunks, width) for width in widths), (chunks,))
    return shapes._make((*table, lanes) for table in tables)


@inlined
def _prior(users: Users, trial: int, dims: Any) -> Population:
    objectives = count_of(dims)
    return Population(users.priors[trial, :objectives], users.priors[trial, objectives:])


@inlined
def _tell(users: Users, n: int, prior: Population) -> None:
    told = row_of(users.told, n)
    told[_WEIGHT_PLAIN], told[_WEIGHT_PAPER] = prior.numbers[PLAIN], prior.numbers[PAPER]
    told[_ROUNDS], told[_NOISE] = prior.numbers[PRIOR_ROUNDS], prior.numbers[NOISE]


@kernel
def forget_users(users: Users, truth: Floats, plan: TrialPlan, spread: Any, dims: Any) -> None:
    """Set all that is learned of the users to the state before the first round (Alg. 1, initialization)."""
    objectives = count_of(dims)
    zero(users.read)
    zero(users.rows)
    zero(users.stated)
    zero(users.told)
    zero(users.sites)
    zero(users.here)
    for trial in range(len(truth)):
        prior = _prior(users, trial, dims)
        start_population(prior, plan.level, plan.ridge, plan.plain, plan.paper)
        for n in range(plan.users):
            user = row_of(users.read, trial * plan.users + n)
            for d in range(objectives):
                user[inverse_at(objectives) + pair(d, d)] = 1.0 / plan.ridge
                user[PREFERENCE + d] = truth[trial, n, d] if plan.kind == KNOWN else plan.first
            if spread is not None:
                _tell(users, trial * plan.users + n, prior)


@kernel
def arrive(users: Users, trials: int, first: int, last: int, plan: TrialPlan, lanes: int | None, dims: Any) -> None:
    """Have users first … last − 1 of each trial take part from now on, after they have chosen for the first time."""
    for trial in range(trials):
        for n in range(trial * plan.users + first, trial * plan.users + last):
            chunk, lane = seat(n, lanes)
            users.here[chunk, lane] = 1.0
            if plan.kind == RIDGE and plan.first != plan.level:  # ĉ₁ was no estimate: from here on ĉ = V⁻¹b
                user = row_of(users.read, n)
                for d in range(count_of(dims)):
                    user[PREFERENCE + d] = plan.level


# ---- what a round says of its users


@apart
def _step_lanes(read: Floats, values: Floats, here: Any, room: Floats, one: float, two: float, dims: Any) -> None:
    """Take a round into ĉ and V⁻¹ of a chunk of users."""
    square = here * square_of(values, count_of(dims))
    step_user(read, values, square, LEAST_SQUARE, one, two, room, dims)


@apart
def _step_rows(
    read: Floats, rows: Floats, told: Floats, values: Floats, here: Any, room: Floats, stepping: bool, dims: Any
) -> None:
    """Take a round into the rows of a chunk of users and, where `stepping`, into what is read of them."""
    objectives = count_of(dims)
    observe_round(rows, values, here, objectives)
    if stepping:  # while the prior stays as it is
        square = here * square_of(values, objectives)
        left = here * step_user(
            read, values, square, LEAST_SQUARE, told[_WEIGHT_PLAIN], told[_WEIGHT_PAPER], room, dims
        )
        squares = read[squares_at(objectives)] + left
        read[squares_at(objectives)] = squares
        read[directed_at(objectives)] += above(square, LEAST_SQUARE, 1.0, 0.0)
        read[noise_at(objectives)] = noise_of(squares, rows[PLAIN_ROW], told[_ROUNDS], told[_NOISE])


@inlined
def learn_stated(users: Users, n: int, statements: Floats, plan: TrialPlan, lanes: int | None, dims: Any) -> None:
    """Take what a user stated into what is known of the user."""
    objectives, (chunk, lane) = count_of(dims), seat(n, lanes)
    row, user = lane_of(users.stated[chunk], lane, lanes), lane_of(users.read[chunk], lane, lanes)
    state(row, lane_of(statements[chunk], lane, lanes), users.here[chunk, lane], objectives)
    if plan.kind == STATED and row[STATED_COUNT] > 0.0:
        for d in range(objectives):
            user[PREFERENCE + d] = row[STATED_SUM + d] / row[STATED_COUNT]


@inlined
def learn_chunk(
    users: Users, chunk: int, rewards: Floats, plan: TrialPlan, lanes: int | None, room: Floats, spread: Any, dims: Any
) -> None:
    """Take a round into the ridges of a chunk of users."""
    read, values = bare(abreast(users.read, lanes)[chunk]), bare(abreast(rewards, lanes)[chunk])
    here, own = abreast(users.here, lanes)[chunk], abreast(room, lanes)
    if spread is None:
        _step_lanes(read, values, here, own, plan.plain, plan.paper, dims)
    if spread is not None:
        stepping = not (spread.bias or spread.non_negative)
        rows, told = bare(abreast(users.rows, lanes)[chunk]), bare(abreast(users.told, lanes)[chunk])
        _step_rows(read, rows, told, values, here, own, stepping, dims)


@inlined
def learn_users(
    users: Users,
    trials: int,
    rewards: Floats,
    statements: Floats,
    plan: TrialPlan,
    lanes: int | None,
    room: Floats,
    spread: Any,
    dims: Any,
) -> None:
    """Take a round into what is known of its users (Alg. 1 and 2, the updating lines of the inner loop)."""
    if plan.wants_stated:
        for n in range(trials * plan.users):
            learn_stated(users, n, statements, plan, lanes, dims)
    if plan.kind == RIDGE:
        for chunk in range(seat(trials * plan.users - 1, lanes)[0] + 1):
            learn_chunk(users, chunk, rewards, plan, lanes, room, spread, dims)


# ---- what a round says of everybody


def next_fit(t: int) -> int:
    """Return the round after which the prior is fitted again, when it was after round t: ever more rarely.

    >>> [next_fit(t) for t in (1, 2, 3, 4, 100)]
    [2, 4, 5, 7, 151]
    """
    return t + 1 + t // 2


following_fit = inlined(next_fit)


NOBODY, NEWCOMERS, EVERYBODY = range(3)
"""Whose estimates are worked out anew."""


@inlined
def _work_out(
    whose: int,
    rows: Floats,
    sites: Floats,
    read: Floats,
    here: Floats,
    prior: Population,
    spread: Spread,
    room: Room,
    dims: Any,
) -> None:
    """Work out what is read of users, or of eight each.

    whose: of EVERYBODY by a prior that is fitted to them, of NEWCOMERS by sites that are found anew, of NOBODY, which
    is to say of those who are here, by the sites of before.
    """
    objectives, numbers = count_of(dims), prior.numbers
    if whose == EVERYBODY:
        fit_population(prior, rows, sites, spread.bias, spread.elasticity, spread.levels, room, dims)
    for n in range(len(rows)):
        row, own, user = bare(rows[n]), bare(sites[n]), bare(read[n])
        if whose == NOBODY:
            if summed(here[n]) == 0.0:
                continue
            for d in range(objectives):
                room.sites[PULL, d], room.sites[STRENGTH, d] = own[d], own[objectives + d]
            if numbers[SHARE] > 0.0:
                use_sites(room, numbers[NOISE], dims)
            else:
                hold_alike(prior, room, dims)
        else:
            find_sites(user, row, prior, room, dims)
            for d in range(objectives):
                own[d], own[objectives + d] = room.sites[PULL, d], room.sites[STRENGTH, d]
        read_with_sites(user, row, prior, spread.non_negative, room, dims)


@inlined
def _copy(to: Floats, n: int, of: Floats, m: int) -> None:
    """Write user m's row over user n's."""
    row, own = row_of(of, m), row_of(to, n)
    for place in range(len(own)):
        own[place] = row[place]


@kernel
def _learn_one_by_one(
    whose: int, users: Users, trial: int, first: int, last: int, spread: Spread, room: Room, fitting: None, dims: Any
) -> None:
    prior, rows, sites = _prior(users, trial, dims), users.rows[first:last, :, 0], users.sites[first:last, :, 0]
    read, here = users.read[first:last, :, 0], users.here[first:last, 0]
    _work_out(whose, rows, sites, read, here, prior, spread, room, dims)
    for n in range(first, last):
        _tell(users, n, prior)


@kernel
def _learn_by_eights(
    whose: int, users: Users, trial: int, first: int, last: int, spread: Spread, room: Room, fitting: Fitting, dims: Any
) -> None:
    prior, chunks = _prior(users, trial, dims), (last - first + LANES - 1) // LANES
    zero(fitting.rows)
    zero(fitting.here)
    for n in range(first, last):
        (chunk, lane), (to_chunk, to_lane) = seat(n, LANES), seat(n - first, LANES)
        fitting.here[to_chunk, to_lane] = users.here[chunk, lane]
        _copy(fitting.rows, n - first, users.rows, n)
        _copy(fitting.sites, n - first, users.sites, n)
    rows, sites = abreast(fitting.rows, LANES)[:chunks], abreast(fitting.sites, LANES)[:chunks]
    read, here = abreast(fitting.read, LANES), abreast(fitting.here, LANES)
    root, lines, own = abreast(fitting.root, LANES), abreast(fitting.lines, LANES), abreast(fitting.own, LANES)
    work = Room(root, lines, bare(read[0]), own, room.curve, room.sums, room.moments)
    _work_out(whose, rows, sites, read, here, prior, spread, work, dims)
    for n in range(first, last):
        chunk, lane = seat(n - first, LANES)
        if whose != NOBODY or fitting.here[chunk, lane] > 0.0:
            _copy(users.read, n, fitting.read, n - first)
            _copy(users.sites, n, fitting.sites, n - first)
        _tell(users, n, prior)


def _learn_together(
    whose: int, users: Users, trial: int, first: int, last: int, spread: Spread, room: Room, fitting: Any, dims: Any
) -> None:
    """Do so for users first … last − 1 of a trial, eight at a time where there is room for it.

    Chosen by type: of an `if` about None Numba drops but one side, and would compile everything for both.
    """
    _learn_one_by_one(whose, users, trial, first, last, spread, room, fitting, dims)


@written(_learn_together)
def _together(whose, users, trial, first, last, spread, room, fitting, dims):  # type: ignore[no-untyped-def]  # as Numba has it
    chosen = _learn_one_by_one if isinstance(fitting, types.NoneType) else _learn_by_eights

    def learn(whose, users, trial, first, last, spread, room, fitting, dims):  # type: ignore[no-untyped-def]  # as above
        chosen(whose, users, trial, first, last, spread, room, fitting, dims)

    return learn


@kernel
def learn_anew(
    whose: int,
    reading: bool,
    users: Users,
    arms: Floats,
    common: Floats,
    trials: int,
    plan: TrialPlan,
    spread: Spread,
    room: Room,
    fitting: Fitting | None,
    working: Floats,
    dims: Any,
) -> None:
    """Fit what each trial's users, and its arms, have in common to what was seen of them, and everybody's estimate.

    whose: of newcomers the estimate alone, which by two levels depends on their rounds and not on steps. reading:
    whether all users are read from their rows, as they are after each round where steps are not enough. fitting: room
    to fit to eight users at a time; None where they go one by one. working: room to fit the arms' prior.

    The trial loop is handed this as it is a policy: rarely called, and large, it is compiled by itself, and once.
    """
    blocks = plan.arms // plan.offer_size
    fits = whose == EVERYBODY and spread.shared and plan.kind == RIDGE
    for trial in range(trials):
        first, last = trial * plan.users, (trial + 1) * plan.users
        if whose == EVERYBODY and spread.arms:
            fit_arms(arms[trial * blocks : (trial + 1) * blocks], common[trial], None, working, dims)
        for part in range(2):  # one call: all of it is compiled into each
            asked, wanted = NOBODY, reading and not fits
            if part == 1:
                asked, wanted = whose, whose == NEWCOMERS or fits
            if asked == NEWCOMERS:
                first = last - plan.newcomers
            if wanted:
                _learn_together(asked, users, trial, first, last, spread, room, fitting, dims)
