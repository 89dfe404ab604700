"""What may be recorded: every event is checked before it is judged, and judged before it is written.

`check` looks at the event alone and raises `InputError`. `judge_…` compares it with what the journal holds already and
returns the receipt for an event that is not to be recorded, or None for one that is. All stores share these rules.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Protocol

from pamo.contract.codes import Code
from pamo.contract.events import (
    ARMS,
    FORMAT,
    USERS,
    ArmAdded,
    ArmChanged,
    ArmRetired,
    DecisionMade,
    Event,
    ExperimentEnded,
    ExperimentStarted,
    FeaturesDeclared,
    FeedbackGiven,
    Outcome,
    Receipt,
    Setup,
    TasteChanged,
    UserErased,
    UserKnown,
    refused,
    same_request,
    scores_of,
    together,
    with_scores,
)
from pamo.contract.experiments import ARM, as_variants, check_policy, check_smallest, share
from pamo.contract.features import MOST_FEATURES, Feature, checked_features, features, written
from pamo.contract.limits import LARGEST, check_preference, check_score, check_text, is_number
from pamo.contract.requests import given_scores
from pamo.errors import InputError

if TYPE_CHECKING:
    from pamo.store.ages import Ages
    from pamo.store.base import ArmState
    from pamo.store.groups import Experiment

MOST_PARTS = 1000
"""Feedbacks that one decision takes: with each that comes all before it are read."""

NOT_EMPTY = "expected an empty store to load a journal into, got one with events: open a new one"


@dataclass(slots=True)
class Entry:
    """What the journal holds of one decision."""

    decision: DecisionMade
    sequence: int
    parts: tuple[tuple[int, FeedbackGiven], ...] = ()
    """The parts of its feedback with their places in the journal, in order."""
    changed: int = 0
    """The number of the event by which the user's taste has changed with this decision."""
    known: int = 0
    """The number of the event with the features that came with it."""

    def whole(self, arm: str) -> FeedbackGiven:
        """Return what all parts say of an arm that has one; a preference is the decision's, whoever it came with."""
        if len(self.parts) == 1:
            return self.parts[0][1]
        told = together(part for _, part in self.parts if part.arm == arm)[arm]
        stated = self.stated()
        return told if told.preference == stated else replace(told, preference=stated)

    def stated(self) -> Mapping[str, float] | None:
        """Return the preference that the user stated with any part."""
        return next((part.preference for _, part in self.parts if part.preference is not None), None)


def check_setup(setup: Setup) -> None:
    """Raise `InputError` unless these objectives can be learned."""
    if setup.format > FORMAT:
        raise InputError(f"this journal has format {setup.format}, and this pamo reads up to {FORMAT}: update pamo")
    if not setup.objectives:
        raise InputError("expected at least one objective, got none: name what arms are scored on")
    names = [objective.name for objective in setup.objectives]
    for objective in (*setup.objectives, setup.overall):
        check_text(objective.name, "an objective's name", "objectives")
        low, high = objective.low, objective.high
        if not (is_number(low) and is_number(high) and 0 < high - low <= LARGEST):
            raise InputError(
                f"expected the scale of {objective.name!r} to go from a lower to a higher finite number, "
                f"got {low!r:.40} to {high!r:.40}"
            )
    if len(set(names)) < len(names) or "overall" in names:
        raise InputError(f"expected objectives of different names, none of them 'overall', got {', '.join(names)}")


class Checker:
    """Checks events against the objectives, and the features that are declared by now, by whose they are."""

    def __init__(self, setup: Setup, features: Callable[[str], Mapping[str, Feature]]) -> None:
        self._setup = setup
        self._features = features
        self._objectives = {objective.name: objective for objective in setup.objectives}
        self._bounds = {objective.name: (objective.low, objective.high) for objective in setup.objectives}
        self._overall = setup.overall.low, setup.overall.high

    def check(self, event: Event) -> Event:
        """Return the event, its numbers plain floats; raise `InputError` unless it could be recorded."""
        if type(event) is not FeedbackGiven:
            return self._check_other(event)
        check_text(event.decision, "a decision's id", "id")
        at, bounds = event.at, self._bounds
        if not (exact := type(at) is float and at - at == 0.0):
            _check_time(at)
        exact = exact and type(event.rewards) is dict
        try:
            for name, value in event.rewards.items():
                low, high = bounds[name]
                if type(value) is not float or not low <= value <= high:  # the usual number is done with; NaN is not
                    check_score(self._objectives[name], value, f"rewards.{name}")
                    exact = False
        except KeyError as error:
            known = ", ".join(bounds)
            raise InputError(f"unknown objective {error!s:.80} in rewards; known: {known}", "rewards") from None
        except AttributeError:
            raise InputError(f"expected rewards by objective, got {event.rewards!r:.80}", "rewards") from None
        if (overall := event.overall) is not None:
            low, high = self._overall
            if type(overall) is not float or not low <= overall <= high:
                check_score(self._setup.overall, overall, "overall")
                exact = False
        if event.arm is not None:
            check_text(event.arm, "an arm", "arm")
        if event.preference is not None:
            check_preference(event.preference, self._objectives)
            exact = exact and _is_plain(event.preference)
        elif event.overall is None and not event.rewards:
            raise InputError(
                "expected feedback with a reward, an overall score or a preference, got none of them: "
                "each score is given once, and this feedback gives none",
                "rewards",
            )
        if exact:
            return event
        return replace(
            event,
            rewards=_floats(event.rewards),
            at=float(event.at),
            overall=plain(event.overall),
            preference=_floats(event.preference),
        )

    def _check_other(self, event: Event) -> Event:
        if type(event) is DecisionMade:
            return self._check_decision(event)
        if isinstance(event, Setup):
            if event != self._setup:
                raise InputError("the objectives of a journal are declared anew by `Store.declare`, or not at all")
            return event
        if isinstance(event, FeaturesDeclared):
            return self._check_declared(event)
        if isinstance(event, ExperimentStarted | ExperimentEnded):
            return self._check_experiment(event)
        if not isinstance(event, ArmAdded | ArmRetired | UserErased | UserKnown | TasteChanged | ArmChanged):
            raise InputError(f"expected an event of the journal, got {event!r}")
        _check_time(event.at)
        if isinstance(event, TasteChanged):
            return self._check_taste(event)
        if isinstance(event, ArmChanged):
            return self._check_changed(event)
        if isinstance(event, UserKnown):
            check_text(event.decision, "a decision's id", "decision")
            check_text(event.user, "a user", "user")
            event = replace(event, features=checked_features(event.features, self._features(USERS)))
        elif isinstance(event, UserErased):
            check_text(event.user, "a user", "user")
        else:
            check_text(event.arm, "an arm", "arm")
        if isinstance(event, ArmAdded):
            check_text(event.name, "an arm's name", "name")
            if event.features is not None:
                known = checked_features(event.features, self._features(ARMS))
                event = replace(event, features=known or None)
        return event if type(event.at) is float else replace(event, at=float(event.at))

    @staticmethod
    def _check_experiment(event: ExperimentStarted | ExperimentEnded) -> ExperimentStarted | ExperimentEnded:
        check_text(event.name, "an experiment's name", "name")
        _check_time(event.at)
        if isinstance(event, ExperimentEnded):
            return replace(event, at=float(event.at))
        check_policy(event.policy)
        check_smallest(event.smallest)
        control = share(event.control)
        return replace(
            event,
            at=float(event.at),
            control=control,
            smallest=float(event.smallest),
            variants=as_variants(event.variants, control, event.policy),
        )

    def _check_declared(self, event: FeaturesDeclared) -> FeaturesDeclared:
        _check_time(event.at)
        if event.of not in (ARMS, USERS):
            raise InputError(f"expected features of arms or of users, got {event.of!r:.80}", "of")
        known = self._features(event.of)
        for one in features(event.features):
            if known.get(one.name, one) != one:
                raise InputError(
                    f"expected the feature {written(known[one.name])!r}, as it was declared before, got "
                    f"{written(one)!r}: give it another name",
                    "features",
                )
        if len(known.keys() | {one.name for one in event.features}) > MOST_FEATURES:
            raise InputError(f"expected at most {MOST_FEATURES} features in all: arms are compared by each", "features")
        return replace(event, features=tuple(event.features), at=float(event.at))

    def _check_decision(self, event: DecisionMade) -> DecisionMade:
        check_text(event.id, "a decision's id", "id")
        check_text(event.user, "a user", "user")
        _check_time(event.at)
        if event.key is not None:
            check_text(event.key, "a key", "key")
        if not event.arms:
            raise InputError(f"expected at least one chosen arm in decision {event.id}, got none")
        for arm in event.arms:
            check_text(arm, "an arm", "arms")
        if not (is_number(event.propensity) and 0.0 < event.propensity <= 1.0):
            raise InputError(
                f"expected a propensity above 0 and up to 1 in decision {event.id}, got {event.propensity!r:.80}",
                "propensity",
            )
        exact = type(event.at) is float and type(event.propensity) is float and type(event.k) is int
        given = event.given
        if given is not None:
            given = given_scores(given, self._objectives) or None
            if unknown := [arm for arm in given or () if event.offer is None or arm not in event.offer]:
                raise InputError(f"expected given scores of arms on offer, got some of {unknown[0]!r:.80}", "given")
            exact = exact and given == event.given
        if event.preference is not None:
            check_preference(event.preference, self._objectives)
            exact = exact and _is_plain(event.preference)
        if exact:
            return event
        k: Any = event.k
        return replace(
            event,
            at=float(event.at),
            propensity=plain(event.propensity),
            k=int(k) if isinstance(k, Integral) else k,
            preference=_floats(event.preference),
            given=given,
        )

    def _check_taste(self, event: TasteChanged) -> TasteChanged:
        check_text(event.decision, "a decision's id", "decision")
        check_text(event.user, "a user", "user")
        kept = []
        for arm, rewards, overall in event.kept:
            given = self.check(FeedbackGiven(event.decision, rewards, event.at, overall, None, arm))
            assert isinstance(given, FeedbackGiven)
            kept.append((arm, given.rewards, float(overall)))
        return replace(event, at=float(event.at), kept=tuple(kept))

    def _check_changed(self, event: ArmChanged) -> ArmChanged:
        check_text(event.arm, "an arm", "arm")
        kept = {}
        for name, sums in event.kept.items():
            if name not in self._objectives or not all(map(is_number, sums)) or sums[0] <= 0:
                raise InputError(f"expected by objective how many scores, their sum and squares, got {sums!r:.80}")
            kept[name] = (float(sums[0]), float(sums[1]), float(sums[2]))
        return replace(event, at=float(event.at), kept=kept)


def judge_decision(
    event: DecisionMade, same_id: Entry | None, same_key: Entry | None, arms: Container[str]
) -> Receipt | None:
    """Say what becomes of a decision, given what has its id and its key; None: it is to be recorded."""
    if same_id is not None:
        first = same_id.decision
        # An explanation comes back from a journal otherwise than it went in: infinities and tuples are not JSON's.
        if replace(first, at=event.at, explanation=event.explanation, since=event.since) == event:
            return Receipt(Outcome.DUPLICATE, same_id.sequence, decision=first)
        return refused(Code.DECISION_CONFLICT, f"another decision was recorded as {event.id}, and it stays as it was")
    if same_key is not None:
        first = same_key.decision
        if same_request(first, event.user, event.offer, event.k, event.preference, event.given):
            return Receipt(Outcome.DUPLICATE, same_key.sequence, decision=first)
        return refused(
            Code.KEY_CONFLICT, f"the key {event.key} was used for another request, and its decision stays as it was"
        )
    for arm in event.arms:
        if arm not in arms:
            return refused(Code.UNKNOWN_ARM, f"there is no arm {arm!r}: add it first")
    return None


class Changes(Protocol):
    """Knows when tastes and arms were last found to have changed, by the numbers of those events; 0 is never."""

    def taste_changed(self, user: str) -> tuple[int, int]:
        """Return the number of the event for a user, and that of the first decision that counts to the new taste."""

    def arm_changed(self, arm: str) -> int:
        """Return the number of the event for an arm."""


def judge_feedback(event: FeedbackGiven, entry: Entry | None, ages: Ages, changes: Changes) -> Receipt | FeedbackGiven:
    """Say what becomes of a feedback, given its decision: its receipt, or the event as it is to be recorded."""
    if entry is None:
        return refused(
            Code.UNKNOWN_DECISION, f"there is no decision {event.decision}: give the id of one that was made here"
        )
    decision = entry.decision
    arm = event.arm or decision.arms[0]
    if arm not in decision.arms:
        chosen = ", ".join(decision.arms)
        return refused(Code.ARM_NOT_CHOSEN, f"decision {event.decision} chose {chosen}, and not {event.arm}")
    # What is known of a user who was erased is forgotten: nothing more is learned of them.
    preference = None if decision.user is None else event.preference
    before: dict[str, float] | None = None
    rewards, overall = event.rewards, event.overall
    given = None if decision.given is None else decision.given.get(arm)
    mine = [place for place, part in entry.parts if part.arm == arm] if entry.parts else ()
    if mine or given:
        known = scores_of(entry.whole(arm)) if mine else dict(given or ())
        scores = scores_of(event)
        for name, value in scores.items():
            if name in known and known[name] != value:
                how = "with" if given and name in given else "for"
                return _other(event, f"{name} of {arm}", how, known[name])
        if mine:
            before = known
            scores = {name: value for name, value in scores.items() if name not in known}
        else:
            scores = {**known, **scores}
        rest = with_scores(event, scores)
        rewards, overall = rest.rewards, rest.overall
    if preference is not None and entry.parts:
        stated = entry.stated()
        if stated is not None:
            if stated != preference:
                return _other(event, "the preference", "for", dict(stated))
            preference = None
    if mine and not rewards and overall is None and preference is None:
        return Receipt(Outcome.DUPLICATE, mine[-1])
    if len(entry.parts) >= MOST_PARTS:
        return refused(
            Code.FEEDBACK_CONFLICT,
            f"decision {event.decision} has {MOST_PARTS} feedbacks, and takes no more: give several scores at a time",
        )
    if ages.expired(decision, event.at):
        return refused(
            Code.EXPIRED_DECISION,
            f"decision {event.decision} took feedback for {ages.expires_after:g} s only: nothing was learned",
        )
    user_changed, arm_changed = _changed_since(entry, arm, changes) if mine else (False, False)
    return FeedbackGiven(
        event.decision,
        rewards,
        event.at,
        overall,
        preference,
        arm,
        decision.user,
        before,
        len(entry.parts) + 1,
        user_changed,
        arm_changed,
        _age(event, entry, arm) if mine or decision.rounds is not None else None,
        decision.group,
    )


def _age(event: FeedbackGiven, entry: Entry, arm: str) -> tuple[float, int, int]:
    """Return how old a feedback's round is: when its first part came, and the rounds of its decision."""
    at = next((part.at for _, part in entry.parts if part.arm == arm), event.at)
    rounds = entry.decision.rounds
    return (at, 0, 0) if rounds is None else (at, rounds[0], rounds[1 + entry.decision.arms.index(arm)])


def _changed_since(entry: Entry, arm: str, changes: Changes) -> tuple[bool, bool]:
    """Tell whether the user's taste, and whether an arm, has changed since the last part of the feedback to the arm."""
    number, last = next((number, part) for number, part in reversed(entry.parts) if part.arm == arm)
    if number < 0:  # it is of the same batch, and stands after whatever has changed
        return last.user_changed, last.arm_changed
    user, user_changed = entry.decision.user, last.user_changed
    if user is not None and not user_changed:
        changed, first = changes.taste_changed(user)
        # What is kept of the rounds since then is what was said of the arm that was rated first.
        user_changed = number < changed and not (0 < first <= entry.sequence and entry.parts[0][1].arm == arm)
    return user_changed, last.arm_changed or number < changes.arm_changed(arm)


def _other(event: FeedbackGiven, what: str, how: str, known: object) -> Receipt:
    return refused(
        Code.FEEDBACK_CONFLICT,
        f"another feedback was recorded {how} decision {event.decision}: {what} is {known}, and stays as it was",
    )


def judge_arm(event: ArmAdded | ArmRetired, state: ArmState | None) -> Receipt | None:
    """Say what becomes of a change to an arm, given how it stands; None: there is no such arm."""
    if isinstance(event, ArmRetired):
        if state is None:
            return refused(Code.UNKNOWN_ARM, f"there is no arm {event.arm!r}")
        return None if state.active else Receipt(Outcome.DUPLICATE)
    return Receipt(Outcome.DUPLICATE) if state is not None and state.after(event) == state else None


def judge_change(event: TasteChanged | UserKnown, entry: Entry | None) -> Receipt | None:
    """Say what becomes of what is found, or known, of a user with a decision, given that; None: to be recorded."""
    if entry is None or entry.decision.user != event.user:
        return refused(Code.UNKNOWN_DECISION, f"there is no decision {event.decision} for {event.user!r}")
    place = entry.changed if isinstance(event, TasteChanged) else entry.known
    return Receipt(Outcome.DUPLICATE, place) if place else None


def judge_experiment(
    event: ExperimentStarted | ExperimentEnded, experiments: Mapping[str, Experiment], arms: Container[str]
) -> Receipt | None:
    """Say what becomes of an experiment that is to start or to end, given those there were; None: to be recorded."""
    known = experiments.get(event.name)
    if isinstance(event, ExperimentEnded):
        if known is None:
            return refused(Code.UNKNOWN_EXPERIMENT, f"there is no experiment {event.name!r}")
        return None if known.ended is None else Receipt(Outcome.DUPLICATE)
    if known is not None:
        if known.ended is None and replace(known.started, at=event.at) == event:
            return Receipt(Outcome.DUPLICATE)
        was = "is running, and stays as it is" if known.ended is None else "was ended"
        return refused(Code.EXPERIMENT_CONFLICT, f"the experiment {event.name!r} {was}: give this one another name")
    for one in experiments.values():
        if one.ended is None:
            name = one.started.name
            return refused(Code.EXPERIMENT_CONFLICT, f"the experiment {name!r} is running: end it first")
    for group in event.groups():
        arm = group.policy.removeprefix(ARM)
        if arm != group.policy and arm not in arms:
            return refused(Code.UNKNOWN_ARM, f"there is no arm {arm!r}: add it first")
    return None


OfUser = DecisionMade | FeedbackGiven | TasteChanged | UserKnown
"""An event that names a user."""


def redacted(event: OfUser) -> OfUser:
    """Return the event without anything of its user but what the arms learned."""
    if isinstance(event, TasteChanged):
        return replace(event, user=None, kept=())
    if isinstance(event, UserKnown):
        return replace(event, user=None, features={})
    if isinstance(event, DecisionMade):
        rounds = None if event.rounds is None else (0, *event.rounds[1:])
        return replace(event, user=None, key=None, preference=None, explanation=None, rounds=rounds, group=None)
    return replace(event, user=None, preference=None, group=None)


def plain(value: Any) -> Any:
    """Return a number as a plain float, and anything else as it is."""
    return float(value) if is_number(value) else value


def _is_plain(values: Mapping[str, float]) -> bool:
    return type(values) is dict and all(type(value) is float for value in values.values())


def _floats(values: Mapping[str, float] | None) -> Any:
    return None if values is None else {name: float(value) for name, value in values.items()}


def _check_time(value: Any) -> None:
    if not is_number(value):
        raise InputError(f"expected a time in seconds since 1970, got {value!r}")
