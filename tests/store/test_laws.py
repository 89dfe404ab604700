"""Laws of the fold: any order, from any snapshot, live or replayed, the sums are the statistics' own."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pamo.contract.experiments import Variant, group_of
from pamo.store import (
    ArmAdded,
    ArmChanged,
    ArmRetired,
    DecisionMade,
    Event,
    ExperimentEnded,
    ExperimentStarted,
    FeedbackGiven,
    MemoryStore,
    Objective,
    Outcome,
    Setup,
    Store,
    TasteChanged,
    UserErased,
    checksums,
    snapshot,
)
from pamo.store import fold as folds
from pamo.store.encoding import encode
from pamo.store.fold import Fold
from pamo.store.folding import Folding
from pamo.store.names import Names
from tests.store.model import SETUP, Model, assert_same

ARMS, USERS = ("A", "B", "C"), ("ann", "bob", "cyd", "dan")


def scores(objective: Objective) -> st.SearchStrategy[float]:
    return st.floats(objective.low, objective.high)


def weights() -> st.SearchStrategy[dict[str, float]]:
    return st.fixed_dictionaries({objective.name: st.floats(-5.0, 5.0) for objective in SETUP.objectives})


def feedbacks(decision: st.SearchStrategy[str], at: st.SearchStrategy[float]) -> st.SearchStrategy[FeedbackGiven]:
    """Complete and partial, with and without overall score and preference, zero rewards among them."""
    rewards = st.fixed_dictionaries({}, optional={o.name: scores(o) for o in SETUP.objectives})
    whole = st.fixed_dictionaries({o.name: scores(o) for o in SETUP.objectives})
    worst = st.just({"taste": 1.0, "price": 500.0, "service": 0.0})  # all of them 0 once normalised
    return st.builds(
        FeedbackGiven,
        decision=decision,
        rewards=st.one_of(whole, rewards, worst),
        at=at,
        overall=st.none() | scores(SETUP.overall),
        preference=st.none() | weights(),
        arm=st.none() | st.sampled_from(ARMS),
    ).filter(lambda event: bool(event.rewards) or event.overall is not None or event.preference is not None)


@st.composite
def journals(draw: st.DrawFn, *, erasures: bool = True, changes: bool = False) -> MemoryStore:
    """A store that has taken a number of events. changes: whether tastes and arms may change, which is no sum."""
    store = MemoryStore(SETUP)
    store.append_many([ArmAdded(arm, arm, at=0.0) for arm in ARMS])
    group = None
    for number in range(draw(st.integers(0, 12))):
        chosen, user = draw(st.permutations(ARMS))[: draw(st.integers(1, 3))], draw(st.sampled_from(USERS))
        if changes and draw(st.integers(0, 4)) == 0:
            if store.running is None:
                variants = draw(st.sampled_from([(), (Variant("a", 0.2), Variant("b", 0.2, "random"))]))
                store.append(ExperimentStarted(f"e{number}", 0.0, 0.4, variants=variants))
            else:
                store.append(ExperimentEnded(store.running.name, 0.0))
        if store.running is not None:
            mine = group_of(user, store.running.name, store.running.groups())
            group = None if mine is None else (store.running.name, mine.name)
        store.append(DecisionMade(f"d{number}", user, tuple(chosen), 1.0, "p", at=0.0, group=group))
        if draw(st.booleans()):
            store.append(draw(feedbacks(st.just(f"d{number}"), st.just(1.0))))
        if changes and draw(st.integers(0, 4)) == 0:
            entry = store._ledger.entries[f"d{draw(st.integers(0, number))}"]
            told = [part for _, part in entry.parts if part.overall is not None]
            kept = tuple((str(part.arm), part.rewards, float(part.overall or 0.0)) for part in told)
            store.append(TasteChanged(entry.decision.id, entry.decision.user or "nobody", 2.0, kept))
        if changes and draw(st.integers(0, 4)) == 0:
            store.append(ArmChanged(draw(st.sampled_from(ARMS)), 2.0, {"price": (2.0, 300.0, 50_000.0)}))
        if erasures and draw(st.integers(0, 9)) == 0:
            store.append(UserErased(draw(st.sampled_from(USERS)), at=2.0))
        if draw(st.integers(0, 9)) == 0:
            store.append(ArmRetired(draw(st.sampled_from(ARMS)), at=2.0))
    return store


def folded(events: list[tuple[int, Event]]) -> Fold:
    fold = Fold(SETUP)
    for sequence, event in events:
        fold.apply(event, sequence)
    return fold


def assert_folds_agree(ours: Any, theirs: Any) -> None:
    """Compare folds or stores: arms by id, users by name."""
    left, right = ours.arms(), theirs.arms()
    assert set(left.ids) == set(right.ids)
    if left.ids:
        order = [right.rows[arm] for arm in left.ids]
        moved = right.statistics.part(order)
        assert_same(left.statistics, moved)
    assert groups_of(ours).keys() == groups_of(theirs).keys()
    for one, other in zip(groups_of(ours).values(), groups_of(theirs).values(), strict=True):
        assert one.users == other.users
        assert np.array(one.scores) == pytest.approx(np.array(other.scores), rel=1e-9, abs=1e-9)
    left_users, right_users = (each.users([*USERS, "nobody"]) for each in (ours, theirs))
    assert_same(left_users, right_users)
    left_pairs, right_pairs = pairs_of(ours), pairs_of(theirs)
    assert left_pairs.keys() == right_pairs.keys()
    for pair, row in left_pairs.items():
        assert row == pytest.approx(right_pairs[pair], rel=1e-9, abs=1e-9)


def groups_of(sums: Any) -> Any:
    return sums.compared() if isinstance(sums, Store) else sums.groups.compared()


def pairs_of(sums: Any) -> dict[Any, Any]:
    found, arms = sums.user_pairs(USERS), sums.arms().ids
    users = np.repeat(USERS, np.diff(found.starts))
    return {(user, arms[arm]): row for user, arm, row in zip(users, found.arms, found.rows, strict=True)}


@given(journals(), st.randoms(use_true_random=False))
def test_the_order_of_events_is_nothing(store: MemoryStore, random: Any) -> None:
    events = list(store.events())
    mixed = random.sample(events, len(events))
    ours, theirs = folded(events), folded(mixed)
    assert_folds_agree(ours, theirs)
    assert (ours.sequence, ours.decisions, ours.feedbacks) == (theirs.sequence, theirs.decisions, theirs.feedbacks)
    assert sorted(ours.user_names) == sorted(theirs.user_names)


@given(journals(changes=True))
def test_replay_equals_live(store: MemoryStore) -> None:
    fold = folded(list(store.events()))
    assert_folds_agree(fold, store)
    assert fold.arm_states == store._fold.arm_states
    assert sorted(fold.user_names) == sorted(store.user_ids())
    assert fold.decisions - fold.feedbacks == store.pending()


@given(journals(erasures=False))
def test_the_fold_is_what_the_statistics_observe(store: MemoryStore) -> None:
    model = Model(math.inf)
    for _, event in store.events():
        if not isinstance(event, Setup):
            assert model.append(event) is Outcome.RECORDED
    model.check(store)


@settings(max_examples=50)
@given(store=journals(changes=True), cut=st.integers(0, 40))
def test_snapshot_and_tail_are_the_whole_journal(
    store: MemoryStore, cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    events = list(store.events())
    path = tmp_path_factory.mktemp("snapshot") / "s.npz"
    before = folded(events[:cut])
    snapshot.save(snapshot.Snapshot(before), path, "journal")
    kept = snapshot.load(path, "journal")
    assert kept is not None
    fold = kept.fold
    assert fold.arm_states == before.arm_states
    for sequence, event in events[cut:]:
        fold.apply(event, sequence)
    whole = folded(events)
    assert_folds_agree(fold, whole)
    assert (fold.sequence, fold.decisions, fold.feedbacks) == (whole.sequence, whole.decisions, whole.feedbacks)
    assert (fold.groups.experiments, fold.groups.running) == (whole.groups.experiments, whole.groups.running)
    assert list(fold.user_names) == list(whole.user_names)


@given(journals(erasures=False), st.sampled_from(USERS))
def test_a_snapshot_after_an_erasure_does_not_know_the_user(store: MemoryStore, user: str) -> None:
    known = user in set(store.user_ids())
    others = [name for name in store.user_ids() if name != user]
    sums = store.users(others)
    fold = store._fold
    fold.erase(user)
    arrays = dict(snapshot._arrays(*snapshot._begin(snapshot.Snapshot(fold), "j"), lambda step: step()))
    text, lengths = arrays["user_names"], arrays["user_name_lengths"]
    assert sorted(Names.of(bytes(text), lengths)) == sorted(others)  # by name: two others' end to end may spell it
    assert len(lengths) == len(others) == len(fold.user_names)
    assert_same(store.users(others), sums)
    assert not known or not store.users([user]).rounds.any()


def test_snapshots_of_many_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With chunks of four users and every third of them erased, rows keep to their users through two snapshots."""
    rows = 10
    fold = Fold(Setup((Objective("a"),)))
    users, stated = fold.user_sums, fold.stated_sums
    for n in range(rows):
        fold.apply(FeedbackGiven(f"d{n}", {"a": n / 10}, 0.0, 0.5, {"a": float(n)} if n % 2 else None, "A", f"u{n}"))
    for n in range(0, rows, 3):
        fold.erase(f"u{n}")
    left = [f"u{n}" for n in range(rows) if n % 3]
    wanted = fold.users(left)
    for size in (4, 3):
        # The chunks are cut anew, as if they had been small from the start.
        for part in (users, stated):
            used = np.concatenate(list(part.used()))
            part.chunks = [np.vstack([used[k : k + size]]) for k in range(0, len(used), size)]
        monkeypatch.setattr(folds, "CHUNK", size)
        monkeypatch.setattr(snapshot, "CHUNK", size)
        snapshot.save(snapshot.Snapshot(fold), tmp_path / "s.npz", "j")
        monkeypatch.undo()
        kept = snapshot.load(tmp_path / "s.npz", "j")
        assert kept is not None
        again = kept.fold
        assert list(again.user_names) == left
        assert_same(again.users(left), wanted)
        fold, users, stated = again, again.user_sums, again.stated_sums


def rows_of(events: list[tuple[int, Event]]) -> list[tuple[Any, ...]]:
    """Events as rows of a journal with links and checksums."""
    rows, before = [], 7
    for sequence, event in events:
        row = encode(event)
        before = checksums.link(before, sequence, row.kind, row.decision)
        rows.append((sequence, *row, before, checksums.checksum(before, *row)))
    return rows


def test_rows_folded_many_at_a_time_give_the_sums_of_one_at_a_time_to_the_bit() -> None:
    numbers, plain = np.random.default_rng(3), [o.name for o in SETUP.objectives]
    events: list[Event] = [SETUP, ExperimentStarted("e", 0.0, 0.5)]
    for number in range(900):
        user = str(numbers.choice(["ann", "bob", "ünal", *map(str, range(60))]))
        given = {o.name: float(numbers.uniform(o.low, o.high)) for o in SETUP.objectives}
        feedback = FeedbackGiven(f"d{number}", given, 1.0, float(numbers.uniform(0, 10)), None, "AB"[number % 2], user)
        feedback.group = (("e", "control" if user < "b" else "treated"), ("before", "control"), None)[number % 3]
        rest: list[Event] = []
        match int(numbers.integers(0, 600 if number < 600 else 8)):  # runs of plain ones, then few
            case 0:
                feedback = replace(feedback, rewards={plain[0]: given[plain[0]]})
            case 1:
                feedback = replace(feedback, preference=dict.fromkeys(plain, 0.3))
            case 2:
                feedback = replace(feedback, user=None)
            case 3:
                feedback = replace(feedback, overall=None, rewards=dict(reversed(given.items())), arm="C")
            case 4:
                events.append(UserErased(user, 1.0))
            case 5:
                events.append(ArmAdded("AB"[number % 2], f"name {number}", 1.0))
            case 6:  # in two parts
                rest.append(replace(feedback, rewards={}, before=given, part=2))
                feedback = replace(feedback, overall=None)
        events += [DecisionMade(f"d{number}", user, ("A",), 1.0, "p", 0.0), feedback, *rest]
    journal = list(enumerate(events, start=1))
    expected = folded(journal)
    for size in (1, 7, 500, 5000):
        fold = Fold(SETUP)
        folding = Folding(fold)
        rows = rows_of(journal)
        for start in range(0, len(rows), size):
            folding.add(rows[start : start + size])
        assert (fold.sequence, fold.decisions, fold.feedbacks) == (len(events), 900, 900)
        assert fold.arm_states == expected.arm_states
        assert list(fold.user_names) == list(expected.user_names)
        assert fold.stated_rows == expected.stated_rows
        for ours, theirs in ((fold.user_sums, expected.user_sums), (fold.stated_sums, expected.stated_sums)):
            assert all(map(np.array_equal, ours.used(), theirs.used()))
        for mine, yours in zip(fold.groups.users(), expected.groups.users(), strict=True):
            np.testing.assert_array_equal(mine, yours)
        assert fold.pairs.heads == expected.pairs.heads
        np.testing.assert_array_equal(fold.pairs.lines, expected.pairs.lines)
        np.testing.assert_array_equal(fold.block, expected.block)


def test_whatever_is_changed_in_a_row_breaks_the_chain_of_many() -> None:
    events: list[Event] = [SETUP, ArmAdded("A", "A", 0.0)]
    for number in range(4):
        decision = DecisionMade(f"d{number}", "ann", ("A",), 1.0, "p", 0.0, key=f"k{number}")
        events += [decision, FeedbackGiven(f"d{number}", {"taste": 2.0}, 1.0, None, None, "A", "ann")]
    rows = rows_of(list(enumerate(events, start=1)))
    chain = checksums.Chain(7)
    assert chain.holds(rows[:3])
    assert chain.holds(rows[3:])
    assert chain.link == rows[-1][6]
    assert not chain.holds(rows[3:])
    for place, row in enumerate(rows):
        for column, value in enumerate(row):
            for other in (None, b"\xff", -1, 2**40, f"{value}x", value + 1 if isinstance(value, int) else "y"):
                changed = [*rows[:place], (*row[:column], other, *row[column + 1 :]), *rows[place + 1 :]]
                assert other == value or not checksums.Chain(7).holds(changed), (place, column, other)
        assert place == len(rows) - 1 or not checksums.Chain(7).holds([*rows[:place], *rows[place + 1 :]])


@given(st.lists(st.tuples(st.text(min_size=1, max_size=4), st.booleans()), max_size=150))
def test_the_index_of_names_is_a_dict(steps: list[tuple[str, bool]]) -> None:
    names, model = Names(), dict[str, int]()
    rows = itertools.count()
    for name, drop in steps:
        try:
            name.encode()
        except UnicodeEncodeError:
            continue
        if name in model and drop:
            names.drop(model.pop(name))
        elif name not in model:
            model[name] = next(rows)
            assert names.add(name) == model[name]
        assert names.find(name) == model.get(name, -1)
    assert list(names) == list(model)
    assert len(names) == len(model)
    assert all(names.find(name) == row for name, row in model.items())
    new = [name for name in ("a", "bb", "ä", "many", *map(str, range(100, 140))) if name not in model]
    names.add_many(new)
    model.update(zip(new, rows, strict=False))
    assert names.find_many([*model, "nobody", *new]).tolist() == [*model.values(), -1, *(model[name] for name in new)]
    starts = names.starts()
    again = Names.of(bytes(names.text(0, starts[-1])), np.diff(starts))
    assert [again.find(name) for name in model] == list(model.values())
    assert again.find("never there, and too long") == -1
