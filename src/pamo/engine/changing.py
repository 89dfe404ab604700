"""Tastes change, and so do arms: how that is noticed, from sums and journal alone.

Noticing goes in two steps, since almost always nothing has changed. What is cheap is looked at all the time: of a user,
whether overall scores keep being higher, lower or further off than was foretold; of an arm, its recent scores (its row
less what that was a few pulls ago). Only who looks suspicious is tested, users with their last rounds from the journal.

The test is a Bayes factor: how much better the last rounds are foretold by somebody new, of whom only the prior is
known, than by the one who was there before. Under "nothing has changed" it is a martingale, so that by Ville's
inequality it ever exceeds e^x with probability e^{−x} at most; with x = 7 + log(1 + t), t the rounds before the
change, all changes in 5,000 rounds together are falsely found with a chance below .01. No round counts for more than
e³, so that one wild score is not taken for another taste.

What is found becomes an event of its own, with what is known since: the fold needs no estimates.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.compiling import count_of, inlined, kernel
from pamo.contract.events import ArmChanged, Event, FeedbackGiven, TasteChanged
from pamo.contract.forgetting import HalfLives
from pamo.engine.prior import Prior
from pamo.errors import InputError
from pamo.priors import PAPER, PLAIN, Population, Room, read_user, room_for
from pamo.reading import PREFERENCE, inverse_at, noise_at, step_user, user_numbers
from pamo.rows import LEAST_SQUARE, observe_round, pair, square_of
from pamo.statistics import ArmStatistics
from pamo.store import Arms, Store
from pamo.store.scales import Scales

WINDOW, FEWEST = 24, 4
"""Rounds that are tested for being another's, at most and at least."""
THRESHOLD, CAP = 7.0, 3.0
"""The logarithm of the Bayes factor that is a change, before log(1 + t), and how much one round may add to it."""
BLOCK, FEWEST_PULLS, PRIOR_PULLS = 8.0, 3.0, 10.0
"""Pulls between two states of an arm that are kept to compare with, pulls from which on recent scores are tested, and
how many pulls' worth the variance that arms have in common counts for one of them."""
COMPLETE = 3
"""Place in an arm's state, after its counts, sums and squares, of the pulls of which all scores are known."""
REMEMBERED = 1000
"""Changes that are remembered for whoever looks."""
AT_ONCE = 20
"""Users who are tested in one go, while somebody waits for a decision; the others have their turn with the next."""
SCAN = 64
"""Decisions between two looks at the arms: with thousands of them as many as an eighth of the arms."""


@inlined
def _foretell(user: Floats, values: Floats, noise: float, weight: float, dims: Any) -> tuple[float, float]:
    """Return how far an overall score is from what was expected, and the variance that was expected of that."""
    objectives, inverse = count_of(dims), inverse_at(count_of(dims))
    away, doubt = values[objectives], 0.0
    for d in range(objectives):
        away -= user[PREFERENCE + d] * values[d]
        for e in range(objectives):
            doubt += values[d] * values[e] * user[inverse + (pair(d, e) if e <= d else pair(e, d))]
    return away, noise * (1.0 / weight + doubt)


@kernel
def evidence(
    out: Floats,
    values: Floats,
    shares: Floats,
    row: Floats,
    population: Population,
    users: Floats,
    nobody: Floats,
    room: Room,
    dims: Any,
) -> None:
    """Write for each of a user's last rounds the log-evidence that another's begin with it.

    values: (rounds, D + 1), the oldest first; all of them are taken out of the row, one by one. shares: how much each
    weighs, below 1 where scores were foretold. users: two to work on. nobody: an empty row.
    """
    objectives = count_of(dims)
    one, two = population.numbers[PLAIN], population.numbers[PAPER]
    for first in range(len(values) - 1, -1, -1):
        observe_round(row, values[first], -shares[first], objectives)
        read_user(users[0], row, population, False, room, dims)
        read_user(users[1], nobody, population, False, room, dims)
        noise, total = users[0, noise_at(objectives)], 0.0
        for k in range(first, len(values)):
            square = square_of(values[k], objectives)
            if square <= LEAST_SQUARE:
                continue
            weight = shares[k] * (one + two / square)
            old, old_variance = _foretell(users[0], values[k], noise, weight, dims)
            new, new_variance = _foretell(users[1], values[k], noise, weight, dims)
            gain = old * old / old_variance - new * new / new_variance + math.log(old_variance / new_variance)
            total += min(0.5 * gain, CAP)
            for side in range(2):
                plain, paper = shares[k] * one, shares[k] * two
                step_user(users[side], values[k], square, LEAST_SQUARE, plain, paper, room.lines[0], dims)
        out[first] = total


class Watch:
    """Watches users and arms, and says what has changed."""

    def __init__(self, store: Store, prior: Prior, clock: Callable[[], float]) -> None:
        self._store = store
        self._prior = prior
        self._clock = clock
        self._scales = Scales(store.setup)
        self._objectives = len(store.setup.objectives)
        # Who forgets by a half-life is not watched: sums that fade tell nothing of what was added to them.
        lives = store.setup.half_life or HalfLives()
        self._watches_users, self._watches_arms = lives.users is None, lives.arms is None
        self._suspects: dict[str, None] = {}
        self.turns = 0
        """Decisions since arms were looked at last."""
        self._states: Floats | None = None  # two earlier ones of all arms, the older first
        self._changed: list[ArmChanged] = []
        self.due = False
        """Whether there is anything to be tested or told."""
        self.lately: deque[TasteChanged | ArmChanged] = deque(maxlen=REMEMBERED)
        """What was found to have changed, by this process or before it began, the newest last."""

    def replay(self, events: Iterable[Event]) -> None:
        """Take in what the journal says has changed."""
        self.lately.extend(event for event in events if isinstance(event, TasteChanged | ArmChanged))

    def forget(self, user: str) -> None:
        """Say nothing of a user any more."""
        kept = [one for one in self.lately if not (isinstance(one, TasteChanged) and one.user == user)]
        self.lately.clear()
        self.lately.extend(kept)

    # Looking, which has to be cheap

    def suspect(self, user: str) -> None:
        """Have a user tested whose overall scores were not as foretold, as `pamo.engine.kernels.watch` saw."""
        if self._watches_users:
            self._suspects[user] = None
            self.due = True

    def look(self, table: Arms) -> None:
        """Look at the arms after SCAN turns: at their scores since one of two earlier states, whichever tells more."""
        if 8 * self.turns < len(table.ids):
            return
        self.turns = 0
        if not self._watches_arms:
            return
        with self._store.lock:
            now = _sums_of(table.statistics)
        if self._states is None:
            self._states = np.stack([now, now])
            return
        states = _grown(self._states, now)
        since = now - states
        first, second = _compare(since, states)
        found = np.maximum(first, second) > 0.0
        for i in np.flatnonzero(found.any(axis=1)).tolist():
            kept, after = {}, now[i].copy()
            after[COMPLETE] = 0.0
            for d in np.flatnonzero(found[i]).tolist():
                sums = since[0 if first[i, d] > second[i, d] else 1, i, :COMPLETE, d]
                kept[self._scales.names[d]] = self._scales.raw_sums(self._scales.names[d], *sums.tolist())
                after[:COMPLETE, d] = sums
            self._changed.append(ArmChanged(table.ids[i], self._clock(), kept))
            self.due = True
            # As the row will be: pulls since then must not be told from what is taken out of it.
            states[:, i] = after
        moved = now[:, 0].max(axis=1) - states[1, :, 0].max(axis=1) >= BLOCK
        states[0, moved], states[1, moved] = states[1, moved], now[moved]
        self._states = states

    # Testing, which may take its time

    def found(self) -> list[Event]:
        """Return what has changed, as it is to be recorded."""
        suspects, self._suspects = list(self._suspects), {}
        changed, self._changed = self._changed, []
        self.due = False
        for user in suspects[AT_ONCE:]:
            self.suspect(user)
        events: list[Event] = [*changed]
        for user in suspects[:AT_ONCE]:
            event = self._test(user)
            if event is not None:
                events.append(event)
        self.replay(events)
        return events

    def _test(self, user: str) -> TasteChanged | None:
        store, prior = self._store, self._prior
        made = [
            (one.decision.id, one.feedback)
            for one in store.decisions_of(user, 2 * WINDOW)
            if one.feedback is not None and one.feedback.overall is not None and self._fits(one.feedback)
        ]
        with store.lock:
            sums, arms = store.users([user]), store.arms()
            held = int(sums.plain[0, 0, 0] + sums.partial[0])  # of rounds before the last change nothing is left
            rounds = made[: min(WINDOW, held)][::-1]
            if len(rounds) < FEWEST:
                return None
            given = np.array([self._scales.values(feedback)[: self._objectives + 1].copy() for _, feedback in rounds])
            places = np.array([arms.rows[str(feedback.arm)] for _, feedback in rounds])
            pairs = store.user_pairs([user])
            values, shares, whole = prior.rounds(given, places, sums, pairs, arms.statistics)
        out, room, dims = np.empty(len(values)), room_for(self._objectives), self._objectives
        row, nobody = whole.rows[0].copy(), np.zeros_like(whole.rows[0])
        users = np.empty((2, user_numbers(self._objectives)))
        evidence(out, values, shares, row, prior.population_for(user), users, nobody, room, dims)
        out -= THRESHOLD + np.log(1.0 + held - np.arange(len(values), 0, -1))
        first = int(np.argmax(out[: len(out) - FEWEST + 1]))
        if out[first] <= 0.0:
            return None
        kept = tuple((str(one.arm), one.rewards, float(one.overall or 0.0)) for _, one in rounds[first:])
        return TasteChanged(rounds[first][0], user, self._clock(), kept)

    def _fits(self, feedback: FeedbackGiven) -> bool:
        """Tell whether a feedback could be given now: scales may have been others then."""
        try:
            self._store.check(feedback)
        except InputError:
            return False
        return True


def _sums_of(arms: ArmStatistics) -> Floats:
    """Return counts, sums and squares by objective, and complete pulls, (arms, 4, D). A copy."""
    complete = np.broadcast_to(arms.pulls[:, None], arms.objective_count.shape)
    return np.stack([arms.objective_count, arms.objective_sum, arms.objective_square, complete], axis=1)


def _grown(states: Floats, now: Floats) -> Floats:
    """Return earlier states with the arms that were added since; one that began anew was never otherwise."""
    new = now[states.shape[1] :]
    states = np.concatenate([states, np.stack([new, new])], axis=1)
    anew = (states > now)[:, :, [0, COMPLETE]].any(axis=(2, 3))
    states[anew] = np.broadcast_to(now, states.shape)[anew]
    return states


def _compare(recent: Floats, before: Floats) -> Floats:
    """Return by how much the evidence that recent scores are another arm's is above its threshold, (…, arms, D)."""
    count, total, squares = (before[..., place, :] for place in range(COMPLETE))
    number = np.maximum(recent[..., 0, :], 1.0)
    tested = (count >= FEWEST_PULLS) & (recent[..., 0, :] >= FEWEST_PULLS)
    if not tested.any():
        return np.full(tested.shape, -np.inf)
    count = np.maximum(count, 1.0)
    mean, new = total / count, recent[..., 1, :] / number
    scatter = np.maximum(squares - count * mean**2, 0.0)
    scatter += np.maximum(recent[..., 2, :] - number * new**2, 0.0)
    freedom = np.maximum(count - 1.0, 0.0) + np.maximum(number - 1.0, 0.0)
    common = (_over_arms(scatter) + 1e-9) / np.maximum(_over_arms(freedom), 1.0)
    variance = np.maximum((scatter + PRIOR_PULLS * common) / (freedom + PRIOR_PULLS), common)
    seen = before[..., 0, :] > 0.0
    arms = np.maximum(_over_arms(seen), 1.0)
    level = _over_arms(np.where(seen, mean, 0.0)) / arms
    between = np.maximum(_over_arms(np.where(seen, (mean - level) ** 2, 0.0)) / arms, 1e-3)
    old_variance, new_variance = variance * (1.0 / count + 1.0 / number), between + variance / number
    gain = (new - mean) ** 2 / old_variance - (new - level) ** 2 / new_variance + np.log(old_variance / new_variance)
    found = np.minimum(0.5 * gain, CAP * number) - THRESHOLD - np.log1p(count)
    return np.where(tested, found, -np.inf)


def _over_arms(numbers: Any) -> Any:
    return numbers.sum(axis=-2, keepdims=True)
