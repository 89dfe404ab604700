"""Holds a store against what a campaign's clients know: nothing lost, nothing counted twice, the sums right.

The sums are computed here from what the clients sent, by the formulas and not by pamo's own code.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from campaigns.ledger import Ledger, Visit
from pamo.arrays import Floats
from pamo.contract.events import scores_of, together
from pamo.statistics import ArmStatistics, UserStatistics
from pamo.store import ArmChanged, DecisionMade, FeedbackGiven, Setup, Store, TasteChanged
from pamo.store.maintenance import TOLERANCE, verify


@dataclass
class Findings:
    """What a check found; all is well if the first five numbers are 0 and nothing is named."""

    lost_decisions: int = 0
    lost_feedbacks: int = 0
    """Acknowledged, and not in the journal."""
    twice: int = 0
    """Feedbacks beyond the first one of a decision: in the journal, or in the users' sums."""
    changed: int = 0
    """In the journal otherwise than they were sent or acknowledged, or never sent at all."""
    differing: int = 0
    """Sums that are not the clients', or not the journal's refold."""
    events: int = 0
    begun_anew: set[str] = field(default_factory=set)
    """Users and arms that were found to have changed: their sums are compared with the journal's refold alone."""
    deviation: float = 0.0
    """The largest difference between the store's sums and the clients', relative to the size of their row."""
    examples: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether all is well."""
        return not (self.lost_decisions or self.lost_feedbacks or self.twice or self.changed or self.differing)

    def note(self, kind: str, sentence: str, count: int = 1) -> None:
        """Count something that is wrong."""
        setattr(self, kind, getattr(self, kind) + count)
        if len(self.examples) < 20:
            self.examples.append(f"{kind}: {sentence}")


def sums_of(setup: Setup, bodies: list[dict[str, Any]]) -> dict[str, Floats]:
    """Return what an arm, or a user, should have learned from these feedbacks, by the names of the statistics."""
    count = len(setup.objectives)
    rewards, stated = np.full((len(bodies), count), np.nan), np.full((len(bodies), count), np.nan)
    overall = np.array([np.nan if body.get("overall") is None else body["overall"] for body in bodies])
    overall = (overall - setup.overall.low) / (setup.overall.high - setup.overall.low)
    for d, objective in enumerate(setup.objectives):
        raw = np.array([body["rewards"].get(objective.name, np.nan) for body in bodies])
        share = (raw - objective.low) / (objective.high - objective.low)
        rewards[:, d] = 1.0 - share if objective.lower_is_better else share
        stated[:, d] = [body.get("preference", {}).get(objective.name, np.nan) for body in bodies]
    given, told = ~np.isnan(rewards), ~np.isnan(stated[:, 0])
    whole = given.all(axis=1)
    scored = whole & ~np.isnan(overall)
    known, weights = np.where(given, rewards, 0.0), np.where(told[:, None], stated, 0.0)
    z = np.column_stack([np.ones(len(bodies)), known, np.where(np.isnan(overall), 0.0, overall)])
    length = (known**2).sum(axis=1)
    return {
        "rounds": np.array(float(len(bodies))),
        "moments": z[whole].T @ z[whole],
        "plain": z[scored].T @ z[scored],
        "weighted": z[scored].T @ (z[scored] / length[scored, None]),
        "overall_pulls": scored.sum(dtype=float),
        "objective_count": given.sum(axis=0, dtype=float),
        "objective_sum": known.sum(axis=0),
        "objective_square": (known**2).sum(axis=0),
        "all_pulls": np.array(float(len(bodies))),
        "all_overalls": (~np.isnan(overall)).sum(dtype=float),
        "partial": (~whole & ~np.isnan(overall)).sum(dtype=float),
        "stated_count": told.sum(dtype=float),
        "stated_sum": weights.sum(axis=0),
        "stated_square": (weights**2).sum(axis=0),
    }


def check(store: Store, ledger: Ledger, *, exact: bool = True) -> Findings:
    """Compare a store that nobody writes to with what the clients know.

    exact: whether every event of which nobody was told that it was recorded is of a request without an answer. A worker
    on PostgreSQL whose connection broke tries again by itself, and finds what it has recorded already.
    """
    findings = Findings()
    decisions, parts = _journal(store, ledger, findings)
    feedbacks = {name: next(iter(together(several).values())) for name, several in parts.items()}
    for name, (decision, visit) in decisions.items():
        if name in feedbacks:
            _compare_feedback(feedbacks[name], decision, visit, findings)
        _compare_parts(parts.get(name, []), decision, visit, findings, exact)
    for visit in ledger.visits.values():
        if visit.decision is not None and visit.decision["id"] not in decisions:
            findings.note("lost_decisions", f"{visit.key}: {visit.decision['id']}")
        elif visit.acknowledged and visit.decision is not None and visit.decision["id"] not in feedbacks:
            findings.note("lost_feedbacks", f"{visit.key}: that to {visit.decision['id']}")
    _compare(store, decisions, feedbacks, findings)
    table = store.arms()
    for arm, active in ledger.arms.items():
        if active is not None and (arm not in table.rows or table.active[table.rows[arm]] != active):
            findings.note("changed", f"arm {arm} was {'added' if active else 'retired'}, and is not in the store")
    for name, known in ledger.features.items():
        kept = table.features[table.rows[name]] if name in table.rows else store.known_of([name])[0]
        if known is not None and dict(kept) != known:
            findings.note("changed", f"{name}: {known} was said, and the store holds {dict(kept)}")
    for difference in verify(store).differences:
        findings.note("differing", f"from the journal's refold: {difference}")
    return findings


def _journal(
    store: Store, ledger: Ledger, findings: Findings
) -> tuple[dict[str, tuple[DecisionMade, Visit]], dict[str, list[FeedbackGiven]]]:
    """Read the journal, and compare its every decision with what was sent and acknowledged."""
    decisions: dict[str, tuple[DecisionMade, Visit]] = {}
    parts: dict[str, list[FeedbackGiven]] = defaultdict(list)
    keys: set[str] = set()
    leaving = {visit.decision["id"]: visit for visit in ledger.visits.values() if visit.erasing and visit.decision}
    for _, event in store.events():
        findings.events += 1
        if isinstance(event, DecisionMade):
            visit = leaving.get(event.id) if event.key is None else ledger.visits.get(event.key)
            if visit is None:
                findings.note("changed", f"nobody asked for decision {event}")
                continue
            if event.id in decisions or visit.key in keys:
                findings.note("twice", f"{visit.key}: decision {event.id} stands twice in the journal")
            keys.add(visit.key)
            decisions[event.id] = (event, visit)
            _compare_decision(event, visit, findings)
        elif isinstance(event, TasteChanged | ArmChanged):
            findings.begun_anew.add(event.arm if isinstance(event, ArmChanged) else event.user or "")
        elif isinstance(event, FeedbackGiven):
            told = [name for part in parts[event.decision] for name in scores_of(part)]
            if any(name in told for name in scores_of(event)):
                findings.note("twice", f"a score of the feedback to {event.decision} stands twice in the journal")
            parts[event.decision].append(event)
            if event.decision not in decisions:
                findings.note("changed", f"a feedback to {event.decision}, which was not decided before")
    return decisions, parts


def _compare_decision(event: DecisionMade, visit: Visit, findings: Findings) -> None:
    request, answer = visit.request, visit.decision
    if visit.erased and event.user is not None:
        findings.note("changed", f"{visit.key}: erased, and the journal holds {event}")
    if visit.erasing and event.user is None:
        if answer is not None and (answer["arms"], event.preference) != (list(event.arms), None):
            findings.note("changed", f"{visit.key}: answered {answer}, and the journal holds {event}")
        return
    offer = request.get("arms")
    given = offer if isinstance(offer, dict) else None
    sent = (visit.user, None if offer is None else tuple(offer), request.get("k", 1), request.get("preference"), given)
    if sent != (event.user, event.offer, event.k, event.preference, event.given):
        findings.note("changed", f"{visit.key}: asked {request}, and the journal holds {event}")
    if answer is not None and answer["id"] == event.id:
        told = (answer["user"], answer["arm"], tuple(answer["arms"]), answer["propensity"], answer["policy"])
        if told != (event.user, event.arms[0], event.arms, event.propensity, event.policy):
            findings.note("changed", f"{visit.key}: answered {answer}, and the journal holds {event}")
    elif answer is not None:
        findings.note("changed", f"{visit.key}: answered {answer['id']}, and the journal holds {event.id}")


def _compare_feedback(event: FeedbackGiven, decision: DecisionMade, visit: Visit, findings: Findings) -> None:
    sent = visit.feedback
    # One that was sent in parts may have arrived in part, where nobody was told of the rest.
    if sent is not None and not visit.acknowledged and event.rewards.items() <= sent["rewards"].items():
        return
    kept = (event.rewards, event.overall, event.preference, event.arm, event.user)
    gone = visit.erasing and decision.user is None
    if sent is None or kept != (
        sent["rewards"],
        sent.get("overall"),
        None if gone else sent.get("preference"),
        decision.arms[0],
        None if gone else visit.user,
    ):
        findings.note("changed", f"{visit.key}: sent {sent}, and the journal holds {event}")


def _compare_parts(
    parts: list[FeedbackGiven], decision: DecisionMade, visit: Visit, findings: Findings, exact: bool
) -> None:
    """Compare the parts of a feedback with what was answered, one by one.

    What was acknowledged was in the journal by then: it is in a part that somebody had sent before. If it was lost, and
    came again with what was sent later, it shows in that: such a part says more than anything that was sent before.
    """
    if not parts and visit.acknowledged:  # which is told of the whole
        return
    known = set((decision.given or {}).get(decision.arms[0], ()))  # is recorded with the first part
    said = [scores_of(part).keys() | ({"preference"} if part.preference is not None else set()) for part in parts]
    for delivery in visit.deliveries:
        if delivery.done is None:
            continue
        before = [one.names | known for one in visit.deliveries if one.begun < delivery.done]
        for name in delivery.names - ({"preference"} if visit.erasing and decision.user is None else set()):
            if not any(name in names and any(names <= sent for sent in before) for names in said):
                findings.note("lost_feedbacks", f"{visit.key}: {name}, of {delivery}, in {parts}")
                break
    recorded = sum(one.status == "recorded" for one in visit.deliveries)
    if len(parts) < recorded or (exact and len(parts) > recorded + visit.unanswered):
        findings.note("changed", f"{visit.key}: {recorded} parts answered as recorded, and the journal holds {parts}")


def _compare(
    store: Store,
    decisions: dict[str, tuple[DecisionMade, Visit]],
    feedbacks: dict[str, FeedbackGiven],
    findings: Findings,
) -> None:
    """Compare the store's sums with those of what the clients sent, as far as the journal says that it arrived."""
    setup = store.setup
    arms: dict[str, list[dict[str, Any]]] = defaultdict(list)
    users: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for decision_id, told in feedbacks.items():
        if decision_id not in decisions:
            continue
        event, visit = decisions[decision_id]
        if visit.feedback is not None:
            body = visit.feedback
            if not visit.acknowledged:  # perhaps only a part of it has arrived
                body = {"rewards": told.rewards, "overall": told.overall, "preference": told.preference or {}}
            arms[event.arms[0]].append(body)
            if event.user is not None:
                users[visit.user].append(body)
    table = store.arms()
    with store.lock:
        _compare_rows("arm", setup, table.ids, table.statistics, arms, findings)
    known = sorted(users)
    kept = store.users(known)
    _compare_rows("user", setup, tuple(known), kept, users, findings)
    if set(store.user_ids()) != set(known):
        findings.note("differing", f"users: {sorted(set(store.user_ids()) ^ set(known))} only on one side")
    beyond = round(float(kept.rounds.sum())) - len(feedbacks)
    if beyond > 0:
        findings.note("twice", f"the users' sums hold {beyond} feedbacks more than there are", beyond)
    if store.pending() != len(decisions) - len(feedbacks):
        findings.note("differing", f"{store.pending()} pending, of {len(decisions)} less {len(feedbacks)}")


def _compare_rows(
    kind: str,
    setup: Setup,
    names: tuple[str, ...],
    statistics: ArmStatistics | UserStatistics,
    bodies: dict[str, list[dict[str, Any]]],
    findings: Findings,
) -> None:
    for row, name in enumerate(names):
        if name in findings.begun_anew:
            continue
        sums, wrong = sums_of(setup, bodies[name]), []
        for one in statistics.names:
            ours = sums[one]
            theirs = getattr(statistics, one)[row]
            deviation = float(np.abs(ours - theirs).max() / max(1.0, np.abs(ours).max()))
            findings.deviation = max(findings.deviation, deviation)
            if deviation > TOLERANCE:
                wrong.append(f"{one} is {theirs.tolist()}, and by the clients {ours.tolist()}")
        if wrong:
            findings.note("differing", f"{kind} {name}: {'; '.join(wrong)}")
