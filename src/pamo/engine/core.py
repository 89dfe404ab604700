"""The engine without I/O: what is to be recorded, and what a store's receipt means.

Each operation is written once, as a coroutine that awaits a `Face` wherever the store may take its time. A face that
blocks runs it in one go, one for asyncio awaits it: see `pamo.engine.engine` and `pamo.engine.async_engine`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from pamo.comparing import SMALLEST
from pamo.contract.answers import Decision, Feedback, FeedbackResult
from pamo.contract.codes import Code
from pamo.contract.events import (
    ARMS,
    RECORDED,
    ArmAdded,
    ArmRetired,
    DecisionMade,
    Event,
    ExperimentEnded,
    ExperimentStarted,
    FeaturesDeclared,
    FeedbackGiven,
    Receipt,
    UserErased,
    UserKnown,
)
from pamo.contract.experiments import RANDOM, Variant, as_variants, share
from pamo.contract.features import FeatureLike, FeatureValue, checked_features
from pamo.contract.features import features as features_of
from pamo.contract.limits import check_text, check_user
from pamo.contract.requests import (
    ArmsLike,
    FeedbackRequest,
    OfferLike,
    Request,
    as_arms,
    as_feedback,
    as_request,
    asks_the_same,
    features_by_arm,
    id_of,
)
from pamo.engine.deciding import Decider
from pamo.errors import InputError, PamoError, error_of
from pamo.store import Store

T = TypeVar("T")


class Face(Protocol):
    """How those who ask wait for the store."""

    def choose(self, request: Request) -> Awaitable[DecisionMade]:
        """Decide; users' sums may have to come over a network."""

    def choose_many(self, requests: Sequence[Request]) -> Awaitable[list[DecisionMade]]:
        """Decide for many."""

    def record(self, event: Event) -> Awaitable[Receipt]:
        """Have one event recorded."""

    def record_many(self, events: Sequence[Event]) -> Awaitable[list[Receipt]]:
        """Have events recorded together: all of them, or none if one could not be recorded in any journal."""

    def read(self, work: Callable[[], T], *, journal: bool = False) -> Awaitable[T]:
        """Have something read: from the sums, or from the journal, which may lie on a disk."""


class Core:
    """Makes events from what is asked, and answers from receipts."""

    def __init__(self, store: Store, decider: Decider, clock: Callable[[], float], new_arms: int) -> None:
        self.store = store
        self.decider = decider
        self.clock = clock
        self._most_new_arms = new_arms
        self._lessons = (*(f"arm: {name}" for name in decider.names), "arm: overall", "preference")

    # Decisions

    async def decide(
        self,
        face: Face,
        user: str,
        arms: OfferLike | None = None,
        preference: Mapping[str, float] | None = None,
        k: int = 1,
        key: str | None = None,
        features: Mapping[str, FeatureValue | None] | None = None,
        choice: str | None = None,
    ) -> Decision:
        """Choose an arm for a user, or rank the best k (all of them, if there are fewer).

        The arguments are those of `pamo.engine.Request`.
        """
        request = Request(user, arms, preference, k, key, features, choice)
        try:
            event = await face.choose(request)
        except InputError:
            (first,) = await self._repeated(face, [request])
            if first is not None:
                return first
            if not self._most_new_arms:
                raise
            await self._admit(face, [request])
            event = await face.choose(request)  # even if there was none to add: somebody else may have, meanwhile
        if self.decider.watch.due and await self.notice(face):
            self.decider.under_way.forget(event.id)
            event = await face.choose(request)
        if features is None or (known := await self._new_of(face, event, request, {})) is None:
            return self.decided(event, await face.record(event))
        return self.decided(event, (await face.record_many([event, known]))[0])

    async def _new_of(
        self, face: Face, made: DecisionMade, request: Request, said: dict[str, dict[str, Any]]
    ) -> UserKnown | None:
        """Return what a request says of its user that was not known, as it is to be recorded; None: nothing.

        said: what requests before it, that are recorded together with it, say of their users; this one's is added.
        """
        (stored,), given = await face.read(lambda: self.store.known_of([request.user])), request.features or {}
        before = said.setdefault(request.user, {})
        known = {**stored, **before}
        before.update(given)
        new = {name: value for name, value in given.items() if known.get(name) != value}
        return UserKnown(made.id, request.user, made.at, new) if new else None

    async def notice(self, face: Face) -> bool:
        """Test and record what may have changed; tell whether anything did."""
        found = await face.read(self.decider.watch.found, journal=True)
        if found:
            await face.record_many(found)
        return bool(found)

    async def decide_many(self, face: Face, requests: Iterable[str | Mapping[str, Any] | Request]) -> list[Decision]:
        """Choose for many users at once: each request a user, or a mapping of what `decide` takes.

        Nothing is recorded if one of them is wrong. A key that was used for another request raises `ConflictError`
        after the others were recorded.
        """
        several = [as_request(one) for one in requests]
        if not several:
            return []
        try:
            events = await face.choose_many(several)
        except InputError:
            first = await self._repeated(face, several)
            rest = [one for one, known in zip(several, first, strict=True) if known is None]
            if len(rest) < len(several) or (self._most_new_arms and await self._admit(face, several)):
                others = iter(await self.decide_many(face, rest))
                return [next(others) if known is None else known for known in first]
            if not self._most_new_arms:
                raise
            events = await face.choose_many(several)  # somebody else may have added them, meanwhile
        if self.decider.watch.due:
            await self.notice(face)
        said: dict[str, dict[str, Any]] = {}
        found = [
            await self._new_of(face, event, one, said) if one.features is not None else None
            for event, one in zip(events, several, strict=True)
        ]
        receipts = (await face.record_many([*events, *(one for one in found if one is not None)]))[: len(events)]
        return [self.decided(event, receipt) for event, receipt in zip(events, receipts, strict=True)]

    def decided(self, event: DecisionMade, receipt: Receipt) -> Decision:
        """Return the decision that counts: where its key was used before, the first."""
        made, repeated = receipt.decision, receipt.outcome is not RECORDED
        if repeated:
            self.decider.under_way.forget(event.id)
        if made is None:
            raise refusal(receipt)
        return answer(made, repeated)

    def repeated(self, request: Request) -> Decision | None:
        """Return the decision that was made for the same request under the same key, though it could not be made now.

        The arms may have been retired meanwhile; who repeats a request has not seen its answer yet.
        """
        try:
            check_text(request.key, "a key", "key")
        except InputError:
            return None  # no key, or none that could have been used before
        first = self.store.decision_for(str(request.key))
        return answer(first, True) if first is not None and asks_the_same(request, first) else None

    async def _repeated(self, face: Face, requests: Sequence[Request]) -> list[Decision | None]:
        if all(one.key is None for one in requests):
            return [None] * len(requests)
        return await face.read(lambda: [self.repeated(one) for one in requests], journal=True)

    # Feedback

    async def feedback(
        self,
        face: Face,
        decision_id: str | Decision,
        rewards: Mapping[str, float] | None = None,
        overall: float | None = None,
        preference: Mapping[str, float] | None = None,
        arm: str | None = None,
    ) -> Feedback:
        """Take what came of a decision, at once or in parts: each score of each arm whenever it is known.

        The same again changes nothing, and another value for something that was given is refused. The arguments are
        those of `pamo.engine.FeedbackRequest`; the decision may be given in place of its id.
        """
        event = self.given(decision_id, rewards, overall, preference, arm)
        return self.answered(event, await face.record(event))

    async def feedback_many(self, face: Face, items: Iterable[Mapping[str, Any] | FeedbackRequest]) -> list[Feedback]:
        """Take many feedbacks at once: each a mapping of what `feedback` takes, `decision_id` among it.

        Nothing is recorded if one of them is wrong in itself. One that is refused for what was recorded before raises
        its error after the others were recorded.
        """
        several = [as_feedback(one) for one in items]
        events = [self.given(one.decision_id, one.rewards, one.overall, one.preference, one.arm) for one in several]
        results = self.results(events, await face.record_many(events))
        for one in results:
            if (error := one.error) is not None:
                raise error
        return [Feedback(one.id, one.status, one.learned, one.not_learned) for one in results]  # type: ignore[arg-type]

    def given(
        self,
        decision: str | Decision,
        rewards: Mapping[str, float] | None = None,
        overall: float | None = None,
        preference: Mapping[str, float] | None = None,
        arm: str | None = None,
    ) -> FeedbackGiven:
        """Return a feedback as it is to be recorded."""
        decision_id = decision if type(decision) is str else id_of(decision)
        return FeedbackGiven(decision_id, {} if rewards is None else rewards, self.clock(), overall, preference, arm)

    def answered(self, event: FeedbackGiven, receipt: Receipt) -> Feedback:
        """Return what became of a feedback."""
        recorded, made, learned = receipt.outcome is RECORDED, receipt.decision, receipt.learned
        if recorded and made is not None:
            decider, user = self.decider, made.user
            decider.under_way.end(event.decision, event.at)
            if user is not None and user not in decider.prior.users:
                decider.prior.note(user)
        if receipt.code is not None:
            raise refusal(receipt)
        missing: tuple[str, ...] = ()
        if len(learned) < len(self._lessons):
            missing = tuple(one for one in self._lessons if one not in learned)
        return Feedback(event.decision, "recorded" if recorded else "duplicate", learned, missing)

    def results(self, events: Sequence[FeedbackGiven], receipts: Sequence[Receipt]) -> list[FeedbackResult]:
        """Return what became of each of many feedbacks."""
        found = []
        for event, receipt in zip(events, receipts, strict=True):
            code = receipt.code
            if code is None:
                one = self.answered(event, receipt)
                found.append(FeedbackResult(one.id, one.status, one.learned, one.not_learned, code=one.status))
            else:
                status = receipt.outcome.value
                found.append(FeedbackResult(event.decision, status, detail=receipt.reason, code=code.value))
        return found

    # Arms

    async def add_arm(
        self,
        face: Face,
        arm: str,
        name: str | None = None,
        features: Mapping[str, FeatureValue | None] | None = None,
    ) -> None:
        """Offer an arm from now on. Added again it is revived; with another name it is renamed.

        features: what is known of it, of those that are declared; some may be missing. The ones that it has stay as
        they are until they are given anew; None is one that is not known any more.
        """
        check_text(arm, "an arm", "arm")
        await self._add_arms(face, {arm: name}, {} if features is None else {arm: features}, "features")

    async def add_arms(
        self,
        face: Face,
        arms: ArmsLike,
        features: Mapping[str, Mapping[str, FeatureValue | None]] | None = None,
    ) -> None:
        """Offer many arms from now on, recorded together: a list of ids, or a mapping from ids to names.

        Nothing is recorded if one of them is wrong. An arm without a name keeps the one that it has, or is called by
        its id. features: by id, as for `add_arm`.
        """
        names = as_arms(arms)
        await self._add_arms(face, names, features_by_arm(features, names), "features.{}")

    async def _add_arms(
        self, face: Face, names: dict[str, str | None], features: Mapping[str, Any], field: str
    ) -> None:
        if not names:
            return
        if None in names.values():
            table = await face.read(self.store.arms)
            rows = table.rows
            for arm, name in names.items():
                if name is None:
                    names[arm] = table.names[rows[arm]] if arm in rows else arm
        now, declared = self.clock(), self.store.features
        for arm, given in features.items():
            checked_features(given, declared, field.format(arm))
        events = [ArmAdded(arm, name, now, features.get(arm)) for arm, name in names.items()]  # type: ignore[arg-type]
        await face.record_many(events)

    async def declare_features(self, face: Face, features: Iterable[FeatureLike], of: str = ARMS) -> None:
        """Let arms, or users, have these features from now on: names, or text such as "pool: yes or no".

        of: "arms" or "users". The same again changes nothing.
        """
        await face.record(FeaturesDeclared(features_of(features), self.clock(), of))

    async def retire_arm(self, face: Face, arm: str) -> None:
        """Offer an arm no longer. What was learned of it stays, and late feedback still counts."""
        receipt = await face.record(ArmRetired(arm, self.clock()))
        if receipt.code is not None:
            table = await face.read(self.store.arms)
            known = ", ".join(table.ids[:20]) or "none"
            raise InputError(f"{receipt.reason}; known: {known}", code=receipt.code)

    def new_arms(self, requests: Iterable[Request]) -> list[str]:
        """Return the arms on offer that are not known; the requests are checked, so that none is added for nothing."""
        table = self.store.arms()
        found: dict[str, None] = {}
        for one in requests:
            self.decider.check(one)
            for arm in one.arms or ():
                row = table.rows.get(arm)
                if row is None:
                    found[arm] = None
                elif not table.active[row]:
                    raise InputError(f"arm {arm!r} is retired: leave it out of the offer, or add it again", "arms")
        return list(found)

    async def _admit(self, face: Face, requests: Sequence[Request]) -> bool:
        """Add the arms on offer that are not known yet, where such are accepted; tell whether there were any."""
        arms = await face.read(lambda: self.new_arms(requests)) if self._most_new_arms else []
        if len(arms) > self._most_new_arms:
            most = self._most_new_arms
            raise InputError(f"expected at most {most} new arms in a request, got {len(arms)}: add them first", "arms")
        if arms:
            await face.record_many([ArmAdded(arm, arm, self.clock()) for arm in arms])
        return bool(arms)

    # Experiments

    async def start_experiment(
        self,
        face: Face,
        name: str,
        control: float | str = "5%",
        policy: str = RANDOM,
        smallest: float = SMALLEST,
        variants: Sequence[Variant | Mapping[str, Any]] = (),
    ) -> None:
        """Serve some of the users, the control group and any variants, otherwise from now on, so as to compare them.

        control: the share, such as "5%" or 0.05; who is in it hangs on the name and the user alone. policy: how control
        is served: "random", any arm of the offer; "arm:ID", that arm, or any where it is not on offer; "caller", the
        `choice` that then comes with every decision; "live", as everybody is; or the name of another policy. smallest:
        the smallest difference worth finding, in standard deviations. variants: more groups, each with name, share,
        policy ("live" unless it is said) and, where all of it are to be served by the same weights, preference.
        One experiment runs at a time, and a name is used once; the same again changes nothing.
        """
        part, names = share(control), self.decider.names
        several = as_variants(variants, part, policy, names)
        event = ExperimentStarted(name, self.clock(), part, policy, smallest, several)
        self.store.check(event)
        await face.read(lambda: self.decider.arrange(event), journal=True)  # what compiles takes its time
        receipt = await face.record(event)
        if receipt.code is not None:
            raise refusal(receipt, "policy")

    async def end_experiment(self, face: Face) -> None:
        """Serve everybody alike again; late feedback to the experiment's decisions still counts.

        Ended again it stays as it is.
        """
        known = await face.read(self.store.experiments)
        if not known:
            raise InputError("there is no experiment to end: start one first", code=Code.UNKNOWN_EXPERIMENT)
        await face.record(ExperimentEnded(known[-1].started.name, self.clock()))

    # A user's own

    async def erase_user(self, face: Face, user: str) -> bool:
        """Forget a user; the arms keep what they learned. Tell whether there was anything to forget."""
        check_user(user)
        # By itself: whatever was handed in together with it would be answered only when a long history is gone.
        (receipt,) = await face.record_many([UserErased(user, self.clock())])
        self.decider.prior.forget(user)
        self.decider.watch.forget(user)
        return receipt.outcome is RECORDED


def answer(made: DecisionMade, repeated: bool = False) -> Decision:
    """Return a decision as it is answered."""
    decision = Decision(made.id, made.user, made.arms[0], made.arms, made.propensity, made.policy)
    decision.details = made.explanation
    if repeated:
        decision.repeated = True
    return decision


_FIELDS = {Code.ARM_NOT_CHOSEN: "arm", Code.UNKNOWN_ARM: "arms"}


def refusal(receipt: Receipt, field: str | None = None) -> PamoError:
    """Return the error that a receipt stands for, of an event that was not recorded; field: where it was given."""
    code = receipt.code or Code.FAILED
    return error_of(code, receipt.reason, field or _FIELDS.get(code)) or PamoError(receipt.reason)
