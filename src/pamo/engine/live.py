"""The engine: decides for users, takes their feedback, and is the only object with state."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pamo.engine.answers import Arm, Decision, Explanation, Feedback, FrontArm, Preference
from pamo.engine.deciding import Decider
from pamo.engine.declaring import ObjectiveLike, objective, objectives
from pamo.engine.explaining import explained, names_in
from pamo.engine.fronts import front_of, known_of
from pamo.engine.preferring import preference_of
from pamo.engine.requests import Request, as_feedback, as_request, asks_the_same, check_user, refusal, usable_key
from pamo.errors import InputError, UnknownDecisionError
from pamo.estimators import Estimate
from pamo.policies import Policy
from pamo.priors import Population
from pamo.store import (
    ArmAdded,
    ArmRetired,
    DecisionMade,
    FeedbackGiven,
    Objective,
    Outcome,
    Receipt,
    Setup,
    Store,
    UserErased,
    open_store,
)


class Engine:
    """Decides which arm to give a user, and learns from feedback what arms are worth and what users care about.

    objectives: what arms are scored on: names, `Objective`s, mappings, or text such as "price: 0..500, lower is
    better". A store that was begun before knows its own, and they may be left out. overall: the scale of the overall
    score, as text ("1..5"), a mapping or an `Objective`; by default from 0 to 1.

    policy: "recommended" is the recommended policy for each mode (see `decide`); another name, or a policy, is used
    for all. store: "memory:", the path of a SQLite file, "postgresql://…", or a store, which the engine then leaves
    open. seed: of the stream that ties and draws are taken from; None is another one each time.

    accept_new_arms: whether an unknown arm in an offer is added rather than refused. draws: how often a policy that
    draws is asked to find out its propensity. clock: tells the time, in seconds since 1970.

    An engine may be used by any number of threads. Feedback is known to every decision that is asked for after it.

    >>> with Engine(["price: 0..500, lower is better", "taste: 1..5"], seed=1) as engine:
    ...     engine.add_arm("A", "Anchor Inn")
    ...     decision = engine.decide("ann")
    ...     answer = engine.feedback(decision.id, {"price": 120, "taste": 4}, overall=0.8)
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
        seed: int | None = None,
        accept_new_arms: bool = False,
        draws: int = 1000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        setup = _setup(objectives, overall)
        self._owns_store = not isinstance(store, Store)
        self._store = store if isinstance(store, Store) else open_store(store, setup)
        self.clock = clock
        self.accepts_new_arms = accept_new_arms
        try:
            if setup is not None and setup != self._store.setup:
                raise InputError(
                    "this store was begun with other objectives or other scales: leave them out to use the store's "
                    "own, or begin another store"
                )
            self._decider = Decider(self._store, policy, seed, draws, clock)
            self.policy = policy
        except BaseException:
            if self._owns_store:
                self._store.close()
            raise
        names = self._decider.names
        self._lessons = (*(f"arm: {name}" for name in names), "arm: overall", "preference")

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """What arms are scored on."""
        return self._store.setup.objectives

    @property
    def population(self) -> Population:
        """What users have in common, as it was fitted last."""
        return self._decider.prior.population

    @property
    def estimate(self) -> Estimate:
        """How users' preferences are learned from their overall scores."""
        return self._decider.estimate

    def foretells_overall(self, policy: str) -> bool:
        """Tell whether a decision's weights are fitted to overall scores, so that weights times rewards foretell them.

        Otherwise they were given or stated, and only their proportions mean anything. policy: the decision's.
        """
        return self._decider.fitted.get(policy, False)

    @property
    def store(self) -> Store:
        """Where everything is kept."""
        return self._store

    def refit(self) -> None:
        """Fit what users have in common now; otherwise it is done whenever the overall scores have grown by half."""
        self._decider.refit()

    # Arms

    def add_arm(self, arm: str, name: str | None = None) -> None:
        """Offer an arm from now on. Added again it is revived; with another name it is renamed."""
        if name is None:
            table = self._store.arms()
            name = next((name for one, name in zip(table.ids, table.names, strict=True) if one == arm), arm)
        self._store.append(ArmAdded(arm, name, self.clock()))

    def retire_arm(self, arm: str) -> None:
        """Offer an arm no longer. What was learned of it stays, and late feedback still counts."""
        receipt = self._store.append(ArmRetired(arm, self.clock()))
        if receipt.outcome is Outcome.UNKNOWN:
            raise InputError(f"{receipt.reason}; known: {', '.join(self._store.arms().ids[:20]) or 'none'}")

    def new_arms(self, requests: Iterable[Request]) -> list[str]:
        """Return the arms on offer that are not known; the requests are checked, so that none is added for nothing."""
        table = self._store.arms()
        found: dict[str, None] = {}
        for one in requests:
            self._decider.check(one)
            for arm in one.arms or ():
                row = table.rows.get(arm)
                if row is None:
                    found[arm] = None
                elif not table.active[row]:
                    raise InputError(f"arm {arm!r} is retired: leave it out of the offer, or add it again", "arms")
        return list(found)

    def admit(self, requests: Iterable[Request]) -> None:
        """Add the arms on offer that are not known, where the engine accepts such."""
        if self.accepts_new_arms and (arms := self.new_arms(requests)):
            self._store.append_many([ArmAdded(arm, arm, self.clock()) for arm in arms])

    def arms(self) -> list[Arm]:
        """Return all arms, the retired ones among them."""
        with self._store.lock:
            table = self._store.arms()
            pulls = table.statistics.pulls.tolist()
        rows = zip(table.ids, table.names, table.active.tolist(), pulls, strict=True)
        return [Arm(arm, name, active, int(count)) for arm, name, active, count in rows]

    def arm(self, arm: str) -> Arm | None:
        """Return an arm, or None if there is none of that id."""
        with self._store.lock:
            table = self._store.arms()
            row = table.rows.get(arm)
            if row is None:
                return None
            return Arm(arm, table.names[row], bool(table.active[row]), int(table.statistics.pulls[row]))

    def front(self) -> list[FrontArm]:
        """Return the active arms, those on the Pareto front first, with how sure it is that they are on it."""
        with self._store.lock:
            table = self._store.arms()
            table = replace(table, statistics=copy.deepcopy(table.statistics))
        # Thousands of draws: nobody has to wait for them.
        return front_of(table, known_of(table.statistics), self._decider.names).arms()

    # Decisions and feedback

    def decide(
        self,
        user: str,
        arms: Sequence[str] | None = None,
        preference: Mapping[str, float] | None = None,
        k: int = 1,
        key: str | None = None,
    ) -> Decision:
        """Choose an arm for a user, or rank the best k (all of them, if there are fewer).

        arms: those to choose from, by default all active ones. preference: the user's weights where they are known;
        without them the mean of what the user has stated with feedback is used, and without any such statement what was
        learned from overall scores. key: makes the request repeatable: the same again gets the first decision.
        """
        try:
            if self.accepts_new_arms and arms is not None:
                self.admit([Request(user, arms, preference, k, key)])
            event = self._decider.choose(user, arms, preference, k, key)
        except InputError:
            first = self.repeated(Request(user, arms, preference, k, key))
            if first is None:
                raise
            return first
        return self.decided(self._store.append(event))

    def decide_many(self, requests: Iterable[str | Mapping[str, Any] | Request]) -> list[Decision]:
        """Choose for many users at once: each request a user, or a mapping of what `decide` takes.

        Nothing is recorded if one of them is wrong. A key that was used for another request raises `ConflictError`
        after the others were recorded.
        """
        several = [as_request(one) for one in requests]
        if not several:
            return []
        try:
            if self.accepts_new_arms:
                self.admit(several)
            events = self._decider.choose_many(several)
        except InputError:
            first = [self.repeated(one) for one in several]
            rest = [one for one, known in zip(several, first, strict=True) if known is None]
            if len(rest) == len(several):
                raise
            others = iter(self.decide_many(rest))
            return [next(others) if known is None else known for known in first]
        return [self.decided(receipt) for receipt in self._store.append_many(events)]

    def feedback(
        self,
        decision_id: str,
        rewards: Mapping[str, float] | None = None,
        overall: float | None = None,
        preference: Mapping[str, float] | None = None,
        arm: str | None = None,
    ) -> Feedback:
        """Take what came of a decision, once: the same again changes nothing, and something else is refused.

        rewards: scores by objective, on their own scales; some may be missing. overall: the user's one overall score.
        preference: the weights that the user stated. arm: the one that it is for, the first of the decision by default.
        """
        given = {} if rewards is None else rewards
        receipt = self._store.append(FeedbackGiven(decision_id, given, self.clock(), overall, preference, arm))
        return self.answered(decision_id, receipt)

    def feedback_many(self, items: Iterable[Mapping[str, Any]]) -> list[Feedback]:
        """Take many feedbacks at once: each a mapping of what `feedback` takes, `decision_id` among it.

        Nothing is recorded if one of them is wrong in itself. One that is refused for what was recorded before raises
        its error after the others were recorded.
        """
        events = [as_feedback(one, self.clock()) for one in items]
        receipts = self._store.append_many(events)
        return [self.answered(event.decision, receipt) for event, receipt in zip(events, receipts, strict=True)]

    # What was learned

    def preference(self, user: str) -> Preference:
        """Return what a user cares about, with intervals; for a new user, what users have in common."""
        check_user(user)
        decider = self._decider
        return preference_of(user, decider.names, self._store.users([user]), decider.estimate, self.population)

    def explain(self, decision: str | Decision) -> Explanation:
        """Say why an arm was chosen, and which would have been without exploration."""
        made = self._made(decision.id if isinstance(decision, Decision) else decision)
        return explained(made, self._decider.names, names_in(made, self._store.arms()))

    def decision(self, decision_id: str) -> Decision:
        """Return a decision that was made."""
        return _answer(self._made(decision_id))

    def statistics(self) -> dict[str, int]:
        """Count what there is: arms, users who gave feedback, feedbacks, and decisions that wait for one."""
        with self._store.lock:
            table = self._store.arms()
            active = int(table.active.sum())
            counts = table.statistics.objective_count
            complete, scored = table.statistics.pulls.sum(), table.statistics.overall_pulls.sum()
            rewards = counts.sum()
        return {
            "arms": active,
            "retired_arms": len(table.ids) - active,
            "users": self._store.count_users(),
            "pending_decisions": self._store.pending(),
            "complete_feedbacks": int(complete),
            "overall_scores": int(scored),
            "rewards": int(rewards),
        }

    # A user's own

    def export_user(self, user: str) -> dict[str, Any]:
        """Return everything that is kept of a user: what was learned, decisions and feedback, as plain values."""
        check_user(user)
        events = [(type(event).__name__, event) for _, event in self._store.history(user)]
        history = [
            {"event": kind, **asdict(event)}
            for kind, event in events
            if isinstance(event, DecisionMade | FeedbackGiven)
        ]
        return {"user": user, "preference": asdict(self.preference(user)), "history": history}

    def erase_user(self, user: str) -> bool:
        """Forget a user; the arms keep what they learned. Tell whether there was anything to forget."""
        check_user(user)
        receipt = self._store.append(UserErased(user, self.clock()))
        self.forget(user)
        return receipt.outcome is Outcome.RECORDED

    def forget(self, user: str) -> None:
        """Leave a user who was erased out of what users have in common."""
        self._decider.prior.forget(user)

    def close(self) -> None:
        """Let go of the store, if the engine opened it. Closing twice is fine."""
        self._decider.prior.wait()
        if self._owns_store:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _made(self, decision_id: str) -> DecisionMade:
        made = self._store.decision(decision_id)
        if made is None:
            raise UnknownDecisionError(
                f"there is no decision {decision_id!r:.80}: give the id of one that was made here"
            )
        return made

    # What those who wait for the store in their own way need: the event, and the answer that its receipt means.

    def choose(self, request: Request) -> DecisionMade:
        """Decide, and return what is to be recorded before it counts."""
        return self._decider.choose(request.user, request.arms, request.preference, request.k, request.key)

    def repeated(self, request: Request) -> Decision | None:
        """Return the decision that was made for the same request under the same key, though it could not be made now.

        The arms may have been retired meanwhile; who repeats a request has not seen its answer yet.
        """
        key = usable_key(request)
        first = None if key is None else self._store.decision_for(key)
        return _answer(first) if first is not None and asks_the_same(request, first) else None

    def choose_many(self, requests: Sequence[Request]) -> list[DecisionMade]:
        """Decide for many, and return what is to be recorded."""
        return self._decider.choose_many(requests)

    def decided(self, receipt: Receipt) -> Decision:
        """Return the decision that counts: where its key was used before, the first."""
        if receipt.decision is None:
            raise refusal(receipt)
        return _answer(receipt.decision)

    def answered(self, decision_id: str, receipt: Receipt) -> Feedback:
        """Return what became of a feedback."""
        outcome, made, learned = receipt.outcome, receipt.decision, receipt.learned
        if outcome is Outcome.RECORDED:
            status = "recorded"
            if made is not None and made.user is not None:
                self._decider.prior.note(made.user)
        elif outcome is Outcome.DUPLICATE:
            status = "duplicate"
        else:
            raise refusal(receipt)
        missing: tuple[str, ...] = ()
        if len(learned) < len(self._lessons):
            missing = tuple(one for one in self._lessons if one not in learned)
        return Feedback(decision_id, status, learned, missing)


def _answer(made: DecisionMade) -> Decision:
    return Decision(made.id, made.user, made.arms[0], made.arms, made.propensity, made.policy, made.explanation)


def _setup(given: Iterable[ObjectiveLike] | None, overall: ObjectiveLike | None) -> Setup | None:
    if given is None:
        if overall is not None:
            raise InputError("expected objectives beside the scale of the overall score, got none")
        return None
    if isinstance(overall, str) and overall.lstrip()[:1] in {*"+-0123456789"}:
        overall = f"overall: {overall}"  # a scale alone, which would otherwise pass for a name
    scale = Objective("overall") if overall is None else objective(overall)
    return Setup(objectives(given), scale)
