"""Feedback in parts, and scores that are known beforehand."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from pamo import Engine
from pamo.engine import Lookout
from pamo.errors import ConflictError, ExpiredDecisionError, InputError
from tests.engine.test_under_way import Clock
from tests.engine.worlds import World

OBJECTIVES = ["price: 0..500, lower is better", "stars: 1..5", "quiet"]
WHOLE = {"price": 120.0, "stars": 4.0, "quiet": 0.3}


def engine_of(**options: Any) -> Engine:
    engine = Engine(OBJECTIVES, **{"overall": "1..10", "seed": 1, **options})
    engine.add_arms(["A", "B", "C"])
    return engine


def sums(engine: Engine) -> Any:
    users, stated = engine.store.user_rows(["ann"])
    pairs = engine.store.user_pairs(["ann"])
    return engine.store.arms().statistics.rows.copy(), users, stated, pairs.arms, pairs.rows


def test_each_score_is_given_once_whenever_it_is_known() -> None:
    clock = Clock()
    with engine_of(clock=clock) as engine:
        look = Lookout(engine)
        made = engine.decide("ann", arms=["A"])
        assert look.decision(made.id).awaited == ("price", "stars", "quiet", "overall")
        first = engine.feedback(made, {"price": 120})
        assert (first.status, first.learned) == ("recorded", ("arm: price",))
        before = look.decision(made.id)
        assert before.awaited == ("stars", "quiet", "overall")
        clock.now += 7 * 86400.0
        second = engine.feedback(made, {"stars": 4, "price": 120, "quiet": 0.3}, overall=8)
        assert (second.status, second.not_learned) == ("recorded", ())
        after = look.decision(made.id)
        assert after.awaited == ()
        assert after.feedback is not None
        assert (after.feedback.rewards, after.feedback.overall) == (WHOLE, 8.0)
        for again in ({"price": 120.0}, {"stars": 4}, dict(WHOLE)):
            assert engine.feedback(made, again).status == "duplicate"
        kept = sums(engine)
        with pytest.raises(ConflictError, match="stars of A is 4"):
            engine.feedback(made, {"price": 120, "stars": 5})
        with pytest.raises(ConflictError, match="overall of A is 8"):
            engine.feedback(made, overall=9)
        engine.feedback(made, preference={"price": 1, "stars": 2, "quiet": 3})
        with pytest.raises(ConflictError, match="the preference is"):
            engine.feedback(made, preference={"price": 1, "stars": 2, "quiet": 4})
        for one, other in zip(kept[:2], sums(engine)[:2], strict=True):
            np.testing.assert_array_equal(one, other)
        late = engine.decide("ann", arms=["A"])
        engine.feedback(late, {"price": 100})
        clock.now += 31 * 86400.0
        kept = sums(engine)
        with pytest.raises(ExpiredDecisionError):
            engine.feedback(late, {"stars": 3})
        assert engine.feedback(late, {"price": 100}).status == "duplicate"
        assert look.decision(late.id).awaited == ()
        np.testing.assert_equal(sums(engine), kept)


def test_arms_of_a_ranking_are_rated_separately() -> None:
    with engine_of() as engine:
        made = engine.decide("ann", k=3)
        for arm, stars in zip(made.arms[1:], (2.0, 5.0), strict=True):
            engine.feedback(made, {**WHOLE, "stars": stars}, overall=stars, arm=arm)
        assert engine.statistics()["pending_decisions"] == 0
        engine.feedback(made, {"stars": 1})
        told = Lookout(engine).decision(made.id)
        assert told.feedback is not None
        assert (told.feedback.arm, told.feedback.rewards) == (made.arm, {"stars": 1.0})
        assert [(one.arm, one.rewards["stars"]) for one in told.others] == [(made.arms[1], 2.0), (made.arms[2], 5.0)]
        assert told.awaited == ("price", "quiet", "overall")
        assert engine.preference("ann").rounds == 3


def test_parts_in_any_order_are_summed_as_one_feedback() -> None:
    parts: list[dict[str, Any]] = [{"rewards": {name: value}} for name, value in WHOLE.items()]
    parts += [{"overall": 8.0}, {"preference": {"price": 1.0, "stars": 2.0, "quiet": 3.0}}]
    whole = {"rewards": WHOLE, "overall": 8.0, "preference": parts[-1]["preference"]}
    with engine_of() as engine:
        for _ in range(2):
            engine.feedback(engine.decide("ann", arms=["A"]), **whole)
        expected = sums(engine)
    for order in itertools.islice(itertools.permutations(parts), 0, None, 7):
        with engine_of() as engine:
            engine.feedback(engine.decide("ann", arms=["A"]), **whole)
            made = engine.decide("ann", arms=["A"])
            for part in order:
                engine.feedback(made, **part)
            for one, other in zip(expected, sums(engine), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)


def test_a_score_that_is_given_with_the_offer_decides_and_is_recorded() -> None:
    with engine_of() as engine:
        for _ in range(5):
            for arm in "ABC":
                made = engine.decide("ann", arms=[arm])
                engine.feedback(made, {"price": 250, "stars": 3, "quiet": 0.5}, overall=5)
        weights = {"price": 1.0, "stars": 0.1, "quiet": 0.1}
        for cheap in "ABC":
            offer = {arm: {"price": 50.0 if arm == cheap else 450.0} for arm in "ABC"}
            for made in (
                engine.decide("ann", offer, preference=weights),
                engine.decide_many([{"user": "ann", "arms": offer, "preference": weights}, "bob"])[0],
            ):
                assert (made.arm, made.propensity) == (cheap, 1.0)
                why = engine.explain(made)
                assert why.chosen is not None
                assert why.chosen.values["price"] == pytest.approx(0.9)
                assert why.sentence.endswith("; known beforehand, and not foretold: price 50.")
                event = engine.made(made.id)
                assert (event.offer, event.given) == (("A", "B", "C"), offer)
        look = Lookout(engine)
        assert look.decision(made.id).awaited == ("stars", "quiet", "overall")
        with pytest.raises(ConflictError, match=r"recorded with decision .*: price of C is 50"):
            engine.feedback(made, {"price": 60, "stars": 3})
        answer = engine.feedback(made, {"stars": 3, "quiet": 0.5}, overall=9)
        assert answer.not_learned == ()
        told = look.decision(made.id).feedback
        assert told is not None
        assert told.rewards["price"] == 50.0
        # Only for this decision: the next one goes by what was seen.
        plain = engine.explain(engine.decide("ann", ["A"], preference=weights)).chosen
        assert plain is not None
        assert plain.values["price"] == pytest.approx(0.5)


def test_some_of_the_arms_may_have_given_scores_and_requests_may_be_repeated() -> None:
    world = World(arms=4, users=2)
    with world.engine() as engine:
        world.play(engine, 5)
        offer: Any = {"A0": {"o1": 0.9}, "A1": None, "A2": {}}
        first = engine.decide("u0", offer, k=2, key="k")
        assert engine.decide("u0", offer, k=2, key="k") == first
        with pytest.raises(ConflictError, match="used for another request"):
            engine.decide("u0", {**offer, "A0": {"o1": 0.8}}, k=2, key="k")
        assert engine.made(first.id).given == {"A0": {"o1": 0.9}}
        engine.retire_arm("A0")
        assert engine.decide("u0", offer, k=2, key="k") == first, "though it could not be made now"


@pytest.mark.parametrize(
    ("offer", "field", "said"),
    [
        ({"A": {"price": 501}}, "arms.A.price", "from 0 to 500, got 501"),
        ({"A": {"price": "cheap"}}, "arms.A.price", "got 'cheap'"),
        ({"A": {}, "B": {"cost": 3}}, "arms.B", "unknown objective 'cost'"),
        ({"A": 120}, "arms.A", "scores by objective, got 120"),
        ({"Z": {"price": 120}}, "arms", "unknown arm 'Z'"),
        ({}, "arms", "at least one arm"),
    ],
)
def test_a_given_score_that_is_wrong_is_refused_by_name(offer: Any, field: str, said: str) -> None:
    with engine_of() as engine:
        before = list(engine.store.events())
        for attempt in (
            lambda: engine.decide("ann", offer),
            lambda: engine.decide_many([{"user": "ann", "arms": offer}]),
        ):
            with pytest.raises(InputError, match=said) as caught:
                attempt()
            assert caught.value.field == field
        assert list(engine.store.events()) == before
