"""The engine: decides for users, takes their feedback, and is the only object with state."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np

from pamo.contract.answers import (
    Arm,
    Decision,
    Experiment,
    Explanation,
    Feedback,
    FrontArm,
    Preference,
    Statistics,
    UserExport,
)
from pamo.contract.events import (
    ARMS,
    USERS,
    DecisionMade,
    Event,
    FeedbackGiven,
    Receipt,
    Setup,
    TasteChanged,
    UserKnown,
)
from pamo.contract.features import Feature, FeatureLike
from pamo.contract.features import features as features_of
from pamo.contract.forgetting import HalfLivesLike, half_lives
from pamo.contract.limits import check_user
from pamo.contract.methods import like
from pamo.contract.objectives import Objective, ObjectiveLike, objective, objectives
from pamo.contract.requests import Request, id_of
from pamo.engine.core import Core, Face, answer
from pamo.engine.deciding import Decider
from pamo.engine.estimates import known_of, preference_of
from pamo.engine.experiment import told_of_experiment
from pamo.engine.explaining import explained, names_in
from pamo.engine.features import speaking_for
from pamo.engine.foretelling import Foreteller
from pamo.engine.front import front_of
from pamo.errors import InputError, UnknownDecisionError
from pamo.estimators import Estimate
from pamo.policies import Policy
from pamo.priors import Population
from pamo.priors.foretelling import Foretelling
from pamo.statistics import UserStatistics
from pamo.store import Store, open_store
from pamo.store.setups import plain_setup, same_objectives

P = ParamSpec("P")
T = TypeVar("T")


class _AtOnce:
    """Waits for the store by blocking."""

    def __init__(self, store: Store, decider: Decider) -> None:
        self._store, self._decider = store, decider

    async def choose(self, one: Request) -> DecisionMade:
        return self._decider.choose(one.user, one.arms, one.preference, one.k, one.key, one.features, one.choice)

    async def choose_many(self, requests: Sequence[Request]) -> list[DecisionMade]:
        return self._decider.choose_many(requests)

    async def record(self, event: Event) -> Receipt:
        return self._store.append(event)

    async def record_many(self, events: Sequence[Event]) -> list[Receipt]:
        return self._store.append_many(events)

    async def read(self, work: Callable[[], T], *, journal: bool = False) -> T:
        return work()


def _at_once(
    flow: Callable[Concatenate[Core, Face, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Engine, P], T]:
    """Return an operation of the core as a method that blocks: with this face, a coroutine never waits."""

    def method(engine: Engine, /, *arguments: P.args, **named: P.kwargs) -> T:
        try:
            flow(engine.core, engine._face, *arguments, **named).send(None)
        except StopIteration as done:
            answer: T = done.value
            return answer
        raise AssertionError("an operation of a face that blocks has waited")

    return like(flow, method, without="face")


# A decision and its feedback take some twenty microseconds together: these two go the short way where all is as usual.


def _decide(
    engine: Engine,
    user: str,
    arms: Any = None,
    preference: Any = None,
    k: int = 1,
    key: str | None = None,
    features: Any = None,
    choice: Any = None,
) -> Decision:
    if features is not None or choice is not None:
        return _whole_decide(engine, user, arms, preference, k, key, features, choice)
    decider = engine._decider
    try:
        event = decider.choose(user, arms, preference, k, key)
    except InputError:
        return _whole_decide(engine, user, arms, preference, k, key)  # a repeated request, a new arm, or an error
    if decider.watch.due and _notice(engine):
        decider.under_way.forget(event.id)
        event = decider.choose(user, arms, preference, k, key)
    receipt = engine.store.append(event, checked=preference is None)
    return answer(event) if receipt.decision is event else engine.core.decided(event, receipt)


def _feedback(
    engine: Engine, decision_id: Any, rewards: Any = None, overall: Any = None, preference: Any = None, arm: Any = None
) -> Feedback:
    core = engine.core
    event = core.given(decision_id, rewards, overall, preference, arm)
    return core.answered(event, engine.store.append(event))


def _short(
    flow: Callable[Concatenate[Core, Face, P], Coroutine[Any, Any, T]], method: Callable[..., T]
) -> Callable[Concatenate[Engine, P], T]:
    return like(flow, method, without="face")


_whole_decide = _at_once(Core.decide)
_notice = _at_once(Core.notice)


class Engine:
    """Decides which arm to give a user, and learns from feedback what arms are worth and what users care about.

    objectives: what arms are scored on: names, `Objective`s, mappings, or text such as "price: 0..500, lower is
    better". A store that was begun before knows its own, and they may be left out. overall: the scale of the overall
    score, as text ("1..5"), a mapping or an `Objective`; by default from 0 to 1. features: what may be known of arms
    before anything is seen of them: names, or text such as "stars: number", "pool: yes or no", "style: word";
    user_features: the same of users.
    half_life: after how long what was learned counts half, of users and of arms: text such as "users: 40 rounds, arms:
    90 days", or a mapping; "none" is never, and by default it is as the store was told last. redeclare: whether a store
    that has other objectives or scales than these takes them on, for all that its journal holds.

    policy: "recommended" is the recommended policy for each mode (see `decide`); another name, or a policy, is used
    for all. store: "memory:", the path of a SQLite file, "postgresql://…", or a store, which the engine then leaves
    open. seed: of the stream that ties and draws are taken from; None is another one each time.

    accept_new_arms: whether an unknown arm in an offer is added rather than refused; max_new_arms: how many in one
    request. explore_at_most: the share of decisions that may explore, that is choose another arm than the best known.
    explore_within: how much worse than the best known such an arm may look, as a share of what that one is worth: 0.2
    is a fifth less. draws: how often a policy that draws is asked to find out its propensity. clock: tells the time, in
    seconds since 1970.

    An engine may be used by any number of threads. Feedback is known to every decision that is asked for after it.

    >>> with Engine(["price: 0..500, lower is better", "taste: 1..5"], seed=1) as engine:
    ...     engine.add_arm("A", "Anchor Inn")
    ...     decision = engine.decide("ann")
    ...     answer = engine.feedback(decision, {"price": 120, "taste": 4}, overall=0.8)
    >>> decision.arm, answer.status, answer.learned
    ('A', 'recorded', ('arm: price', 'arm: taste', 'arm: overall', 'preference'))
    """

    def __init__(
        self,
        objectives: Iterable[ObjectiveLike] | None = None,
        policy: str | Policy = "recommended",
        store: str | Path | Store = "memory:",
        *,
        overall: ObjectiveLike | None = None,
        features: Iterable[FeatureLike] = (),
        user_features: Iterable[FeatureLike] = (),
        half_life: HalfLivesLike | None = None,
        redeclare: bool = False,
        seed: int | None = None,
        accept_new_arms: bool = False,
        max_new_arms: int = 1000,
        explore_at_most: float = 1.0,
        explore_within: float | None = None,
        draws: int = 1000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        setup = _setup(objectives, overall)
        lives = None if half_life is None else half_lives(half_life)
        self._owns_store = not isinstance(store, Store)
        self.store = store if isinstance(store, Store) else _opened(store, setup, redeclare)
        """Where everything is kept."""
        self.clock = clock
        try:
            own = self.store.setup
            if setup is not None and not same_objectives(setup, own) and not redeclare:
                raise InputError(
                    "this store was begun with other objectives or other scales: leave them out to use the store's "
                    "own, declare them anew by redeclare=True, or begin another store"
                )
            wanted = plain_setup(replace(setup or own, half_life=own.half_life if half_life is None else lives))
            if wanted != own:
                self.store.declare(wanted, clock())
            self._decider = Decider(
                self.store, policy, seed, draws, clock, explore_at_most=explore_at_most, explore_within=explore_within
            )
            self._foreteller = Foreteller(self.store, self._decider.prior)
            self._forgotten = 0
            self.policy = policy
        except BaseException:
            if self._owns_store:
                self.store.close()
            raise
        self.core = Core(self.store, self._decider, clock, max_new_arms if accept_new_arms else 0)
        """What makes events and reads receipts, for those who wait for the store in their own way."""
        self._face = _AtOnce(self.store, self._decider)
        try:
            for of, declared in ((ARMS, features_of(features)), (USERS, features_of(user_features))):
                if declared:
                    self.declare_features(declared, of)
        except BaseException:
            self.close()
            raise

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """What arms are scored on."""
        return self.store.setup.objectives

    @property
    def population(self) -> Population:
        """What users have in common as policies act by it, as it was fitted last."""
        return self._decider.prior.population

    @property
    def foretelling(self) -> Foretelling | None:
        """What users have in common as their preferences are told by it; None while nobody gave an overall score."""
        if self._decider.forgotten != self._forgotten:
            self._forgotten = self._decider.forgotten
            self._foreteller.expire()
        return self._foreteller.common()

    @property
    def estimate(self) -> Estimate:
        """How users' preferences are learned from their overall scores."""
        return self._decider.estimate

    def foretells_overall(self, policy: str) -> bool:
        """Tell whether a decision's weights are fitted to overall scores, so that weights times rewards foretell them.

        Otherwise they were given or stated, and only their proportions mean anything. policy: the decision's.
        """
        return self._decider.fitted.get(policy, False)

    def refit(self) -> None:
        """Fit what users have in common now; otherwise it is done whenever the overall scores have grown by half."""
        self._decider.refit()
        self._foreteller.fit()

    # Decisions and feedback

    decide = _short(Core.decide, _decide)
    decide_many = _at_once(Core.decide_many)
    feedback = _short(Core.feedback, _feedback)
    feedback_many = _at_once(Core.feedback_many)

    # Arms

    add_arm = _at_once(Core.add_arm)
    add_arms = _at_once(Core.add_arms)
    retire_arm = _at_once(Core.retire_arm)
    declare_features = _at_once(Core.declare_features)

    @property
    def features(self) -> tuple[Feature, ...]:
        """What may be known of arms beforehand."""
        return tuple(self.store.features.values())

    @property
    def user_features(self) -> tuple[Feature, ...]:
        """What may be known of users beforehand."""
        return tuple(self.store.user_features.values())

    def arms(self) -> list[Arm]:
        """Return all arms, the retired ones among them."""
        with self.store.lock:
            table = self.store.arms()
            pulls = table.statistics.all_pulls.tolist()
        rows = zip(table.ids, table.names, table.active.tolist(), pulls, table.features, strict=True)
        return [Arm(arm, name, active, int(count), dict(known)) for arm, name, active, count, known in rows]

    def arm(self, arm: str) -> Arm | None:
        """Return an arm, or None if there is none of that id."""
        with self.store.lock:
            table = self.store.arms()
            row = table.rows.get(arm)
            if row is None:
                return None
            pulls, known = int(table.statistics.all_pulls[row]), dict(table.features[row])
            return Arm(arm, table.names[row], bool(table.active[row]), pulls, known)

    def front(self) -> list[FrontArm]:
        """Return the active arms, those on the Pareto front first, with how sure it is that they are on it."""
        with self.store.lock:
            table = self.store.arms()
            table = replace(table, statistics=copy.deepcopy(table.statistics))
        # Thousands of draws: nobody has to wait for them.
        return front_of(table, known_of(table.statistics), self._decider.names).arms()

    # What was learned

    def preference(self, user: str) -> Preference:
        """Return what a user cares about, with intervals; for a new user, what users have in common."""
        check_user(user)
        changes = self.store.changes_of(user)
        return replace(self.told_of(user, self._decider.completed(user)), changed=changes[-1] if changes else None)

    def told_of(self, user: str, sums: UserStatistics) -> Preference:
        """Return what such sums of a user tell of what the user cares about."""
        decider, common = self._decider, self.foretelling
        population, offset = decider.prior.population_for(user), decider.prior.offset_of(user)
        return preference_of(user, decider.names, sums, decider.estimate, common, population, offset)

    def explain(self, decision: str | Decision) -> Explanation:
        """Say why an arm was chosen, and which would have been without exploration."""
        made = self.made(id_of(decision))
        began = tuple(one.name for one in self.store.began.objectives)
        return explained(made, began, names_in(made, self.store.arms()), self.like)

    def like(self, arm: str, weights: Mapping[str, float]) -> list[str]:
        """Return in words what of an arm's features speaks for it to somebody with these weights."""
        table, prior = self.store.arms(), self._decider.arms_prior
        row, names = table.rows.get(arm), self._decider.names
        if row is None or not self.store.features or len(prior.mean) != len(table.ids):
            return []
        worth = prior.mean @ np.array([weights.get(name, 0.0) for name in names])
        return speaking_for(table.features, self.store.features, worth, row)

    def decision(self, decision_id: str) -> Decision:
        """Return a decision that was made."""
        return answer(self.made(decision_id))

    def made(self, decision_id: str) -> DecisionMade:
        """Return a decision as the journal has it."""
        made = self.store.decision(decision_id)
        if made is None:
            raise UnknownDecisionError(
                f"there is no decision {decision_id!r:.80}: give the id of one that was made here"
            )
        return made

    def statistics(self) -> dict[str, int]:
        """Count what there is: arms, users who gave feedback, feedbacks, and decisions that wait for one."""
        with self.store.lock:
            table = self.store.arms()
            active = int(table.active.sum())
            counts = table.statistics.objective_count
            complete, scored = table.statistics.pulls.sum(), table.statistics.overall_pulls.sum()
            rewards = counts.sum()
        counted = Statistics(
            arms=active,
            retired_arms=len(table.ids) - active,
            users=self.store.count_users(),
            pending_decisions=self.store.pending(),
            complete_feedbacks=int(complete),
            overall_scores=int(scored),
            rewards=int(rewards),
        )
        return asdict(counted)

    # Experiments

    start_experiment = _at_once(Core.start_experiment)
    end_experiment = _at_once(Core.end_experiment)

    def experiment(self) -> Experiment | None:
        """Return how the groups of the newest experiment compare, however often; None where there was none."""
        return told_of_experiment(self.store)

    # A user's own

    def export_user(self, user: str) -> dict[str, Any]:
        """Return everything that is kept of a user: what was learned, decisions and feedback, as plain values."""
        check_user(user)
        history = [
            {"event": type(event).__name__, **asdict(event)}
            for _, event in self.store.history(user)
            if isinstance(event, DecisionMade | FeedbackGiven | TasteChanged | UserKnown)
        ]
        return asdict(UserExport(user, self.preference(user), history, dict(self.store.known_of([user])[0])))

    erase_user = _at_once(Core.erase_user)

    def close(self) -> None:
        """Let go of the store, if the engine opened it. Closing twice is fine."""
        self._decider.prior.wait()
        self._foreteller.wait()
        if self._owns_store:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _opened(address: str | Path, setup: Setup | None, redeclare: bool) -> Store:
    """Open a store; redeclare: even where its objectives are others than these."""
    try:
        return open_store(address, setup)
    except InputError:
        if setup is None or not redeclare:
            raise
        plain_setup(setup)
        return open_store(address)


def _setup(given: Iterable[ObjectiveLike] | None, overall: ObjectiveLike | None) -> Setup | None:
    if given is None:
        if overall is not None:
            raise InputError("expected objectives beside the scale of the overall score, got none")
        return None
    if isinstance(overall, str) and overall.lstrip()[:1] in {*"+-0123456789"}:
        overall = f"overall: {overall}"  # a scale alone, which would otherwise pass for a name
    scale = Objective("overall") if overall is None else objective(overall)
    return Setup(objectives(given), scale)
