"""Decides: which policy for which request, which arms are on offer, and one compiled call for one user or for many."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from pamo._version import __version__
from pamo.arrays import Floats, Ints
from pamo.contract.events import ExperimentStarted
from pamo.contract.experiments import CALLER, LIVE, Variant, group_of
from pamo.contract.features import FeatureValue, checked_features
from pamo.contract.forgetting import ROUNDS, HalfLives
from pamo.contract.limits import MOST_ARMS, check_preference, check_text, check_user, is_number
from pamo.contract.requests import OfferLike, Request, given_scores
from pamo.engine.changing import SCAN, Watch
from pamo.engine.experiment import served
from pamo.engine.explaining import details
from pamo.engine.features import table_of
from pamo.engine.kernels import PROPENSITY, SEEN, out_width
from pamo.engine.plans import Chooser, ReadyPolicy, Room, blank, packed, room_for_one
from pamo.engine.prior import Prior
from pamo.engine.under_way import TAIL, UnderWay
from pamo.errors import InputError, unknown_name
from pamo.estimators import Kind
from pamo.policies import Policy, recommended
from pamo.policies.registry import parse
from pamo.priors import ArmsPrior, Population, offsets_of
from pamo.rows import partial_at, stated_width
from pamo.statistics import Pairs, UserStatistics
from pamo.store import Arms, DecisionMade, Store
from pamo.streams import POLICY, stream_for

REMEMBERED = 1_000_000
"""Arms in all the offers that are remembered, at 16 bytes each: an offer counts for at least a hundred."""

MOST_KEPT = 100
"""Arms to rank, at most, for which room is kept."""

FITTED_EVERY = 256
"""Decisions after which what is common is fitted anew where sums fade; with many users, four for each."""

Offer = tuple[tuple[str, ...] | None, Ints, Ints]
"""The ids as the journal keeps them, the arms' rows, and these packed."""


_ids: list[str] = []
os.register_at_fork(after_in_child=_ids.clear)  # two processes must not give out the same


def new_id() -> str:
    """Return the time, in milliseconds, and 52 random bits, in hexadecimal digits.

    A feedback is looked up and kept beside its decision: ids that go up have those that are asked for together lie on
    the same page. They are drawn many at a time, since each system call takes half a microsecond.
    """
    try:
        return _ids.pop()
    except IndexError:
        now, text = f"{int(time.time() * 1000):011x}", os.urandom(2 * 256 * 13 // 4).hex()
        _ids.extend(sorted((now + text[place : place + 13] for place in range(0, 256 * 13, 13)), reverse=True))
        return _ids.pop()


class Plans(NamedTuple):
    """What decides where the preference is hidden, stated, or known.

    weights: the preference by which all are served, in place of their own; None: each by theirs.
    """

    hidden: ReadyPolicy
    stated: ReadyPolicy
    known: ReadyPolicy
    weights: Floats | None = None


class Arranged(NamedTuple):
    """How the groups of an experiment are served: by name, the plans of those that a policy decides for."""

    started: ExperimentStarted
    groups: tuple[Variant, ...]
    plans: dict[str, Plans]
    asks_choice: bool


class Decider:
    """Makes decisions from a store's sums; one at a time, whichever thread asks."""

    def __init__(
        self,
        store: Store,
        policy: str | Policy,
        seed: int | None,
        draws: int,
        clock: Callable[[], float],
        explore_at_most: float = 1.0,
        explore_within: float | None = None,
    ) -> None:
        if seed is None:
            seed = int.from_bytes(os.urandom(7), "big")
        if type(seed) is not int or not 0 <= seed < 2**63:
            raise InputError(f"expected a seed from 0 to 2^63 − 1, or none, got {seed!r}")
        if type(draws) is not int or draws < 1:
            raise InputError(f"expected draws to be a whole number from 1 on, got {draws!r}")
        within = check_limits(explore_at_most, explore_within)
        self._store = store
        self._clock = clock
        self._lock = store.lock  # decisions read the sums, and hold them back meanwhile: one lock is enough
        self.names = tuple(one.name for one in store.setup.objectives)
        self._objectives = {one.name: one for one in store.setup.objectives}
        count = len(self.names)
        self._draws, self._limits = draws, (float(explore_at_most), within)
        self.fitted: dict[str, bool] = {}
        self.live = self._plans(policy)
        # What is reported of users, and shared by them, is the policy's own estimate where it has a shared one.
        hidden = self.live.hidden
        self.estimate = hidden.estimate if hidden.shared else recommended().estimate(count)
        self._arranged: Arranged | None = None
        self.prior = Prior(store, self.estimate)
        self.watch = Watch(store, self.prior, clock)
        self._chance = np.random.default_rng([seed, 1])  # control's own: with and without it, others choose alike
        self._chooser = Chooser(count, stream_for(seed, 0, POLICY))
        self._partial = partial_at(count)
        self._no_stated = np.zeros((1, stated_width(count)))
        self._no_pairs = Pairs.none(users=1, objectives=count)
        self._table: Arms | None = None
        self._offers: dict[tuple[str, ...] | None, Offer] = {}
        self._remembered = 0
        self._unpacked = Struct(f"{out_width(count)}d").unpack
        self._rooms: dict[int, Room] = {}
        self._ready: dict[int, tuple[Any, ...]] = {}
        self._foretelling = False
        lives = store.setup.half_life or HalfLives()
        self._by_rounds = ROUNDS in [one.unit for one in (lives.users, lives.arms) if one is not None]
        self._forgets, self._decided = lives != HalfLives(), 0
        self.forgotten = 0
        """How often what users and arms have in common was to be fitted anew because sums fade."""
        self._renamed = store.setup.objectives != store.began.objectives
        self.under_way = UnderWay(self._lock)
        """The decisions that wait for feedback."""
        tail = store.tail(TAIL)
        self.under_way.replay(tail)
        self.watch.replay(tail)
        self.refit()

    @property
    def arms_prior(self) -> ArmsPrior:
        """What arms have in common, as the last decision knew it."""
        return self._chooser.arms_prior

    def refit(self) -> None:
        """Fit what users have in common to their sums as they are now."""
        self.prior.fit()
        self._use(self.prior.population)

    def choose(
        self,
        user: str,
        arms: OfferLike | None = None,
        preference: Mapping[str, float] | None = None,
        k: int = 1,
        key: str | None = None,
        features: Mapping[str, FeatureValue | None] | None = None,
        choice: str | None = None,
    ) -> DecisionMade:
        """Decide for one user, and return the event to be recorded."""
        if features is not None:
            checked_features(features, self._store.user_features)
        given = self._given(arms) if arms is not None and isinstance(arms, Mapping) else None
        check_text(user, "a user", "user")
        if key is not None:
            check_text(key, "a key", "key")
        store, prior, under_way = self._store, self.prior, self.under_way
        running, group, plans = store.running, None, self.live
        if running is not None:
            arranged = self.arrange(running)
            variant = group_of(user, running.name, arranged.groups)
            request = Request(user, arms, preference, k, key, features, choice)
            if variant is not None and variant.apart:
                return self._decide_apart(request, arranged, variant)
            if arranged.asks_choice:  # a choice that is missing is told whoever it is for
                self._offered(request, arranged)
            if variant is not None:
                group, plans = (running.name, variant.name), arranged.plans[variant.name]
        sums, stated = store.user_row(user)
        known = None if preference is None else weights_in(preference, self.names)
        plan = _plan(plans, known is not None, stated.item(0) > 0.0)
        told: Any = stated if not plan.asks else known if plans.weights is None else plans.weights
        with self._lock:
            if under_way.ended:
                under_way.settle()
            table = store.arms()
            if table is not self._table:
                self._take(table)
            if self._forgets:
                self._forget(1)
            ready = self._ready.get(k) if arms is None and type(k) is int else None
            offered, rows, offer, out, picks, numbers, picked = ready or self._make_ready(table, arms, k)
            numbers[-2] = crc32(user.encode())
            scores = None if given is None else self._known_scores(given, offered or (), len(rows))
            while True:
                own = sums if prior.foretold is None else self._complete(user, sums, table)
                if prior.explained is not None and plan.shared:
                    plan.lean(prior.offset_of(user, features))
                self._chooser.choose(plan, out, picks, offer, own, told, table.statistics, scores)
                row = self._unpacked(numbers)
                if not (row[SEEN] >= prior.due and plan.shared and prior.renew(row[SEEN], self._use)):
                    break
            if row[-1] > 0.0:
                self.watch.suspect(user)
            ids = table.ids
            chosen = (ids[picked[0]],) if k == 1 else tuple([ids[i] for i in picked])
            why = details(row, chosen[0], ids, self.names, self._renamed)
            return self._made(user, chosen, row[PROPENSITY], plan.label, offered, k, preference, key, why, given, group)

    def check(self, request: Request) -> None:
        """Raise `InputError` for a request that no arms could make right."""
        check_user(request.user)
        check_k(request.k)
        if request.key is not None:
            check_text(request.key, "a key", "key")
        if request.arms is not None:
            for arm in checked(request.arms):
                check_text(arm, "an arm", "arms")
        if request.preference is not None:
            weights_in(request.preference, self.names)
        if isinstance(request.arms, Mapping):
            self._given(request.arms)
        if request.features is not None:
            checked_features(request.features, self._store.user_features)

    def choose_many(self, requests: Sequence[Request]) -> list[DecisionMade]:
        """Decide for many, with one compiled call for each policy and k among them."""
        for one in requests:
            check_user(one.user)
            if one.features is not None:
                checked_features(one.features, self._store.user_features)
        running = self._store.running
        if running is None:
            return self._choose_many(requests, None, self.live)
        arranged = self.arrange(running)
        mine = [group_of(one.user, running.name, arranged.groups) for one in requests]
        members: dict[str | None, list[int]] = {}
        for n, (one, variant) in enumerate(zip(requests, mine, strict=True)):
            if arranged.asks_choice or (variant is not None and variant.apart):
                self._offered(one, arranged)  # nothing is decided if one of them is wrong
            if variant is None or not variant.apart:
                members.setdefault(None if variant is None else variant.name, []).append(n)
        made: dict[int, DecisionMade] = {}
        try:
            for name, places in members.items():
                group, plans = (None, self.live) if name is None else ((running.name, name), arranged.plans[name])
                chosen = self._choose_many([requests[n] for n in places], group, plans)
                made.update(zip(places, chosen, strict=True))
        except InputError:
            for event in made.values():
                self.under_way.forget(event.id)
            raise
        for n, (one, variant) in enumerate(zip(requests, mine, strict=True)):
            if variant is not None and variant.apart:
                made[n] = self._decide_apart(one, arranged, variant)
        return [made[n] for n in range(len(requests))]

    # Experiments

    def arrange(self, started: ExperimentStarted) -> Arranged:
        """Return how an experiment's groups are served; raise `InputError` where one cannot be."""
        arranged = self._arranged
        if arranged is None or (arranged.started is not started and arranged.started != started):
            groups, plans = started.groups(), dict[str, Plans]()
            for place, one in enumerate(groups):
                if not one.apart:
                    try:
                        plans[one.name] = self._plans_of(one)
                    except InputError as error:
                        raise InputError(str(error), f"variants[{place - 1}].policy" if place else "policy") from None
            arranged = Arranged(started, groups, plans, CALLER in [one.policy for one in groups])
            for plan in {plan for several in plans.values() for plan in several[:3]} - {*self.live[:3]}:
                plan.rehearse()
            with self._lock:
                self._arranged = arranged
                self._share(self.prior.population)
        return arranged

    def _plans_of(self, one: Variant) -> Plans:
        """Return what decides for a group."""
        plans = self.live if one.policy == LIVE else self._plans(one.policy)
        for plan in plans[:3]:
            if plan.shared and plan.estimate != self.estimate:
                raise InputError(
                    f"{one.policy} learns preferences otherwise than the service does: what users have in common is "
                    "fitted once for all, so that ridge, bias, elasticity, levels and non_negative have to be as they "
                    "are there"
                )
        if one.preference is not None:
            known = plans.known
            if known.kind != Kind.KNOWN:
                if one.policy != LIVE:
                    raise _reads_none(known)
                known = self._plans("recommended").known
            # Where objectives were declared anew meanwhile, what is new has no weight.
            weights = np.array([[one.preference.get(name, 0.0) for name in self.names]])
            return Plans(known, known, known, weights)
        # A policy serves what it can read: those who bring a preference, or all others.
        if plans.hidden.kind == Kind.KNOWN:
            return Plans(self.live.hidden, self.live.stated, plans.known)
        return plans if plans.known.kind == Kind.KNOWN else plans._replace(known=self.live.known)

    def _plans(self, policy: str | Policy) -> Plans:
        """Return what decides by a policy, or by the recommended ones."""
        if isinstance(policy, str) and policy == "recommended":
            found = [
                ReadyPolicy(recommended(mode), len(self.names), self._draws) for mode in ("hidden", "stated", "known")
            ]
        else:
            if isinstance(policy, str):
                policy = parse(policy)
            if not isinstance(policy, Policy):
                raise InputError(f"expected a policy or the name of one, got {policy!r:.80}")
            found = 3 * [ReadyPolicy(policy, len(self.names), self._draws)]
        for plan in found:
            plan.limit(*self._limits)
            self.fitted[plan.label] = plan.kind == Kind.RIDGE
        return Plans(found[0], found[1], found[2])

    def _share(self, prior: Population) -> None:
        """Have all decide by what users have in common who read it."""
        arranged = () if self._arranged is None else self._arranged.plans.values()
        for plans in (self.live, *arranged):
            for plan in plans[:3]:
                if plan.shared:
                    plan.use(prior)

    def _offered(self, request: Request, arranged: Arranged) -> tuple[tuple[str, ...] | None, list[str]]:
        """Return the offer as it was given, and its arms; raise `InputError` where it cannot be chosen from so."""
        if request.preference is not None:
            weights_in(request.preference, self.names)
        if isinstance(request.arms, Mapping):
            self._given(request.arms)
        check_k(request.k)
        with self._lock:
            table = self._newest()
            offered, rows, _ = self._offer(table, request.arms)
            arms = [table.ids[row] for row in rows.tolist()]
        if arranged.asks_choice and request.choice not in arms:
            raise InputError(
                "expected choice to be an arm on offer, the one that you would give yourself, got "
                f"{request.choice!r:.80}: a group of the experiment {arranged.started.name!r} gets that",
                "choice",
            )
        return offered, arms

    def _decide_apart(self, request: Request, arranged: Arranged, variant: Variant) -> DecisionMade:
        """Decide for a user of a group that no policy decides for."""
        offered, arms = self._offered(request, arranged)
        group = arranged.started.name, variant.name
        given = self._given(request.arms) if isinstance(request.arms, Mapping) else None
        asked = request.k, request.preference, request.key
        with self._lock:
            self.under_way.settle()
            chosen, propensity, policy = served(variant.policy, arms, request.k, request.choice, self._chance)
            label = f"{policy}@{__version__}"
            return self._made(request.user, chosen, propensity, label, offered, *asked, None, given, group)

    def _choose_many(
        self, requests: Sequence[Request], group: tuple[str, str] | None, plans: Plans
    ) -> list[DecisionMade]:
        sums, stated = self._store.user_rows([one.user for one in requests])
        preferences = [one.preference for one in requests]
        given = [self._given(one.arms) if isinstance(one.arms, Mapping) else None for one in requests]
        known = np.empty((len(requests), len(self.names)))
        for n, preference in enumerate(preferences):
            known[n] = np.nan if preference is None else weights_in(preference, self.names)
        if plans.weights is not None:
            known[:] = plans.weights
        events: dict[int, DecisionMade] = {}
        with self._lock:
            self.under_way.settle()
            table = self._newest()
            if self._forgets:
                self._forget(len(requests))
            groups: dict[tuple[ReadyPolicy, int], list[int]] = {}
            offers = [self._offer(table, one.arms) for one in requests]
            for n, one in enumerate(requests):
                plan = _plan(plans, one.preference is not None, stated[n, 0] > 0.0)
                check_k(one.k)
                groups.setdefault((plan, min(one.k, len(offers[n][1]))), []).append(n)
            for (plan, k), members in groups.items():
                out, picks = blank(len(members), len(self.names), k)
                rows = [offers[n][1] for n in members]
                users = [requests[n].user for n in members]
                out[:, -2] = [crc32(user.encode()) for user in users]
                own = sums[members], (known if plan.asks else stated)[members]
                scores = None
                if any(given[n] for n in members):
                    scores = [
                        self._known_scores(given[n] or {}, offers[n][0] or (), len(offers[n][1])) for n in members
                    ]
                known_of = [requests[n].features for n in members]
                for _ in range(2):
                    self._choose_group(plan, out, picks, rows, users, own, table, scores, known_of)
                    if not (plan.shared and self.prior.renew(float(out[0, SEEN]), self._use)):
                        break
                for n, row, picked in zip(members, out.tolist(), picks.tolist(), strict=True):
                    if row[-1] > 0.0:
                        self.watch.suspect(requests[n].user)
                    one, chosen = requests[n], tuple(table.ids[i] for i in picked)
                    why = details(tuple(row), chosen[0], table.ids, self.names, self._renamed)
                    events[n] = self._made(
                        one.user,
                        chosen,
                        row[PROPENSITY],
                        plan.label,
                        offers[n][0],
                        one.k,
                        one.preference,
                        one.key,
                        why,
                        given[n],
                        group,
                    )
        return [events[n] for n in range(len(requests))]

    def _choose_group(
        self,
        plan: ReadyPolicy,
        out: Floats,
        picks: Ints,
        rows: Sequence[Ints],
        users: Sequence[str],
        own: tuple[Floats, Floats],
        table: Arms,
        scores: Sequence[Floats] | None,
        features: Sequence[Mapping[str, FeatureValue | None] | None],
    ) -> None:
        """Decide by one policy for these users, each among the arms of a row; own: sums, and what was told."""
        # What arms are worth beyond their scores, and what features tell, differs from user to user: they go in turn.
        leans = self.prior.explained is not None and plan.shared
        step = len(users) if self.prior.foretold is None and not leans else 1
        for first in range(0, len(users), step):
            part = slice(first, first + step)
            sums, told = (one[part] for one in own)
            if len(sums) == 1:
                sums = self._complete(users[first], sums, table)
            if leans:
                plan.lean(self.prior.offset_of(users[first], features[first]))
            self._chooser.choose(
                plan,
                out[part],
                picks[part],
                packed(rows[part]),
                sums,
                told,
                table.statistics,
                None if scores is None else np.concatenate(scores[part]),
            )

    def completed(self, user: str) -> UserStatistics:
        """Return a user's sums with what incomplete rounds say added."""
        sums = self._store.users([user])
        if self.prior.foretold is None:
            return sums
        return self.prior.complete(sums, self._store.user_pairs([user]), self._store.arms().statistics)[0]

    def _complete(self, user: str, sums: Floats, table: Arms) -> Floats:
        """Return a user's row with what incomplete rounds say added, and have offsets ready for a decision."""
        foretold = self.prior.foretold
        if foretold is None:
            return sums
        statistics, partial = table.statistics, sums.item(self._partial) > 0.0
        if not partial and not foretold.has_offsets:
            return sums
        users = UserStatistics(rows=sums, stated=self._no_stated)
        pairs = self._store.user_pairs([user]) if partial else self._no_pairs
        users, read = self.prior.complete(users, pairs, statistics)
        if foretold.has_offsets:
            self._chooser.offset(offsets_of(pairs, statistics, self.prior.foretold_of(statistics), read))
        return users.rows

    def cost(self, requests: Sequence[Request]) -> int:
        """Return how often an arm is looked at for these: once for each that is ranked, of all on offer."""
        table = self._table or self._store.arms()
        everything = int(np.count_nonzero(table.active))
        offers = [everything if one.arms is None else len(one.arms) for one in requests]
        return sum(arms * min(max(one.k, 1), arms) for arms, one in zip(offers, requests, strict=True))

    def _made(
        self,
        user: str,
        chosen: tuple[str, ...],
        propensity: float,
        policy: str,
        offered: tuple[str, ...] | None,
        k: int,
        preference: Mapping[str, float] | None,
        key: str | None,
        why: Mapping[str, Any] | None,
        given: Mapping[str, Mapping[str, float]] | None,
        group: tuple[str, str] | None,
    ) -> DecisionMade:
        """Return the event of a decision, whose pull is under way from now on; to be asked by who holds the lock."""
        decision, now, watch = new_id(), self._clock(), self.watch
        self.under_way.begin(decision, chosen[0], now)
        watch.turns += 1
        if watch.turns >= SCAN and self._table is not None:
            watch.look(self._table)  # and not the newest: others of its batch are decided among these, too
        rounds = tuple(count + 1 for count in self._store.clock(user, chosen)) if self._by_rounds else None
        # By place: names would take a quarter longer.
        return DecisionMade(
            decision,
            user,
            chosen,
            propensity,
            policy,
            now,
            offered,
            k,
            preference,
            key,
            why,
            given,
            None,
            rounds,
            group,
        )

    def _forget(self, decisions: int) -> None:
        """Have what is common fitted anew now and then: sums that fade do not grow by half for ever."""
        self._decided += decisions
        if self._decided >= max(FITTED_EVERY, 4 * len(self.prior)):
            self._decided = 0
            self.prior.due = 0.0
            self._chooser.expire()
            self.forgotten += 1

    def _given(self, arms: Mapping[str, Any]) -> dict[str, dict[str, float]] | None:
        """Return the scores that come with an offer, None where there are none."""
        return given_scores(arms, self._objectives) or None

    def _known_scores(self, given: Mapping[str, Mapping[str, float]], offer: Sequence[str], arms: int) -> Floats:
        """Return those scores as a kernel reads them: a row for each arm, NaN for what is not known."""
        scores = np.full((arms, len(self.names)), np.nan)
        for j, arm in enumerate(offer):
            for name, value in given.get(arm, {}).items():
                scores[j, self.names.index(name)] = self._objectives[name].normalised(value)
        return scores

    def _use(self, prior: Population) -> None:
        with self._lock:
            self._share(prior)
            if self.prior.foretold is not None or self._foretelling:
                self._foretell()

    def _foretell(self) -> None:
        """Have arms' scores on hidden objectives read as they were found last."""
        foretold = self.prior.foretold
        self._foretelling = foretold is not None
        self._chooser.foretell(None if foretold is None else np.where(foretold.hidden > 0.0, foretold.means, np.nan))

    def _newest(self) -> Arms:
        """Return the arms, and start over if they are others than before."""
        table = self._store.arms()
        if table is not self._table:
            self._take(table)
        return table

    def _take(self, table: Arms) -> None:
        """Decide among these arms from now on."""
        last = self._table
        if last is None or table.version != last.version:
            declared = self._store.features
            known = table_of(table.features, declared)[1] if declared else None
            self._chooser.take(len(table.ids), known)
            self._foretell()
            self.under_way.attach(self._chooser.under_way, table.rows)
            self._forget_offers()
        self._table = table

    def _offer(self, table: Arms, arms: OfferLike | None) -> Offer:
        """Return an offer; all active arms where none is given."""
        ids = None if arms is None else checked(arms)
        offer = self._offers.get(ids)
        if offer is None:
            if ids is None:
                rows = np.flatnonzero(table.active)
                if not len(rows):
                    raise InputError("there is no active arm to choose from: add one first", "arms")
            else:
                rows = np.array([_row(table, arm) for arm in ids])
            places: Ints = rows.astype(np.int64)
            size = max(len(places), 100)
            if self._remembered + size > REMEMBERED:
                self._forget_offers()
            self._remembered += size
            if ids is not None:
                ids = tuple([table.ids[row] for row in places.tolist()])  # so that the caller's text is let go
            alone = packed([places])
            offer = self._offers[ids] = (ids, alone[2:], alone)
        return offer

    def _make_ready(self, table: Arms, arms: OfferLike | None, k: int) -> tuple[Any, ...]:
        """Return an offer and room to rank so many of it; where all arms are on offer, both are kept."""
        offer = self._offer(table, arms)
        check_k(k)
        ranked = min(k, len(offer[1]))
        room = self._rooms.get(ranked) or room_for_one(len(self.names), ranked)
        if k <= MOST_KEPT:
            self._rooms[ranked] = room
            if arms is None:
                self._ready[k] = (*offer, *room)
        return (*offer, *room)

    def _forget_offers(self) -> None:
        self._ready.clear()
        self._offers.clear()
        self._remembered = 0


def _plan(plans: Plans, is_known: bool, has_stated: bool) -> ReadyPolicy:
    if plans.weights is not None:
        return plans.known
    plan = plans.known if is_known else plans.stated if has_stated else plans.hidden
    if plan.asks is is_known:
        return plan
    if is_known:
        raise _reads_none(plan)
    raise InputError(
        f"{plan.policy.id} needs the user's preference with each decision: pass preference=…", "preference"
    )


def _reads_none(plan: ReadyPolicy) -> InputError:
    return InputError(
        f"{plan.policy.id} does not read a preference given with a decision: leave it out, or use "
        "the policy 'recommended', which does",
        "preference",
    )


def check_limits(at_most: Any, within: Any) -> float:
    """Raise `InputError` unless exploring may be limited so; return how much worse an explored arm may look."""
    if not (is_number(at_most) and 0 <= at_most <= 1):
        raise InputError(
            f"expected explore_at_most to be a share of decisions, from 0 to 1, got {at_most!r:.80}", "explore_at_most"
        )
    if within is None:
        return math.inf
    if not (is_number(within) and within >= 0):
        raise InputError(
            "expected explore_within to be a share of what the best known arm is worth, such as 0.2, or none, got "
            f"{within!r:.80}",
            "explore_within",
        )
    return float(within)


def checked(arms: OfferLike) -> tuple[str, ...]:
    """Return an offer, or raise `InputError` if it could not be one whatever arms there are."""
    given: Any = list(arms) if isinstance(arms, Mapping) else arms  # callers may not have been type-checked
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(arm, str) for arm in given):
        raise InputError(f"expected the arms on offer as a list of ids, got {given!r:.80}", "arms")
    if not given:
        raise InputError(
            "expected at least one arm on offer, got none: leave arms out to offer all that are active", "arms"
        )
    if len(set(given)) < len(given):
        raise InputError(f"expected each arm once in an offer, got {', '.join(given):.120}", "arms")
    return tuple(given)


def _row(table: Arms, arm: str) -> int:
    row = table.rows.get(arm)
    if row is None:
        known = [one for one, on in zip(table.ids, table.active, strict=True) if on]
        raise unknown_name("arm", arm, known[:20], "arms")
    if not table.active[row]:
        raise InputError(f"arm {arm!r} is retired: leave it out of the offer, or add it again", "arms")
    return row


def check_k(k: int) -> None:
    """Raise `InputError` unless so many arms may be asked for."""
    if type(k) is not int or not 1 <= k <= MOST_ARMS:
        raise InputError(f"expected k to be a whole number from 1 to {MOST_ARMS}, got {k!r:.80}", "k")


def weights_in(preference: Mapping[str, float], names: Sequence[str]) -> Floats:
    """Return a known preference as a row of numbers in the objectives' order."""
    check_preference(preference, names)
    return np.array([[float(preference[name]) for name in names]])
