"""What whoever looks after a service should know of: each in a sentence, with a code that Prometheus sees as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pamo.contract.answers import Alert
from pamo.contract.events import TasteChanged
from pamo.priors.incomplete import FEWEST_PULLS, RARE
from pamo.service.activity import DECISIONS, FEEDBACKS

if TYPE_CHECKING:
    from pamo.service.api import Api

LATELY, BEFORE, CHANGES = 7200.0, 86_400.0, 86_400.0
"""Seconds of which the feedback is compared with what came before, how long that is, and for how long a change is
told."""
ENOUGH = 20.0
"""Decisions lately, and feedbacks before, from which on they are compared."""
DRIED_UP = 0.2
"""The share of the usual feedback below which it has dried up."""
TASTES = 3
"""Users whose taste has changed that are worth a look: one now and then is life."""

CODES = ("store_trouble", "no_arms", "feedback_dries_up", "objective_not_reported", "arm_changed", "tastes_change")
"""All there are, the worst first."""


def alerts(api: Api) -> list[Alert]:
    """Return what there is to know now."""
    now, trouble = api.engine.clock(), api.engine.store.trouble()
    if trouble is not None:
        why = trouble if api.keyring.empty else "the log here says why"
        return [Alert("store_trouble", "act", f"Nothing can be recorded: {why}.")]  # nor read
    found = [*_arms(api), *_feedback(api, now), *_objectives(api), *_changes(api, now)]
    return sorted(found, key=lambda one: CODES.index(one.code))


def _arms(api: Api) -> list[Alert]:
    if api.engine.store.arms().active.any():
        return []
    return [Alert("no_arms", "act", "There is no arm to choose, so that nothing can be decided: add some.")]


def _feedback(api: Api, now: float) -> list[Alert]:
    """Tell whether much less feedback comes for the decisions than on the day before."""
    lately, before = [0.0, 0.0], [0.0, 0.0]
    for at, row in api.engine.store.activity(int(now - LATELY - BEFORE)).items():
        counts = lately if at >= now - LATELY else before
        counts[0] += row[DECISIONS]
        counts[1] += row[FEEDBACKS]
    if lately[0] < ENOUGH or before[1] < ENOUGH:
        return []
    usual = lately[0] * before[1] / max(before[0], 1.0)
    if lately[1] >= DRIED_UP * usual or usual < ENOUGH / 2.0:
        return []
    return [
        Alert(
            "feedback_dries_up",
            "look",
            f"Feedback dries up: {lately[1]:,.0f} came for the {lately[0]:,.0f} decisions of the last two hours, where "
            f"by the day before {usual:,.0f} would have come. Nothing is learned from what is not told.",
        )
    ]


def _objectives(api: Api) -> list[Alert]:
    """Tell of objectives that hardly anybody reports."""
    with api.engine.store.lock:
        arms = api.engine.store.arms().statistics
        pulls, counts = float(arms.all_pulls.sum()), arms.objective_count.sum(axis=0).tolist()
        overall = float(arms.all_overalls.sum()) > 0.0
    if pulls < FEWEST_PULLS:
        return []
    instead = (
        "it is guessed from the overall scores" if overall else "nothing is known of it, and it counts for nothing"
    )
    return [
        Alert(
            "objective_not_reported",
            "look",
            f"{one.name} is hardly ever reported, in {count:,.0f} of {pulls:,.0f} feedbacks: {instead}.",
            one.name,
        )
        for one, count in zip(api.engine.objectives, counts, strict=True)
        if count < RARE * pulls
    ]


def _changes(api: Api, now: float) -> list[Alert]:
    """Tell of arms and tastes that were found to have changed."""
    lately = [one for one in api.engine.core.decider.watch.lately if one.at >= now - CHANGES]
    arms: dict[str, dict[str, None]] = {}
    users = set()
    for one in lately:
        if isinstance(one, TasteChanged):
            users.add(one.user)
        else:
            arms.setdefault(one.arm, {}).update(dict.fromkeys(one.kept))
    table = api.engine.store.arms()
    names = {arm: table.names[table.rows[arm]] for arm in arms if arm in table.rows}
    found = [
        Alert("arm_changed", "look", f"{names.get(arm, arm)} has changed within a day: {', '.join(kept)}.", arm)
        for arm, kept in arms.items()
    ]
    if len(users) >= TASTES:
        found.append(
            Alert(
                "tastes_change",
                "look",
                f"{len(users):,} users were found within a day to care about other things than before.",
            )
        )
    return found
