"""Explanations say what is so: which bonus spoke for an arm, and what is known of it."""

from __future__ import annotations

import numpy as np

from pamo import Engine
from tests.engine.worlds import World


def test_less_is_known_of_an_arm_only_where_that_is_so() -> None:
    """An arm may be tried for the preference bonus alone, although more is known of it than of the best."""
    said = {True: 0, False: 0}
    for seed in (1, 2):
        world, numbers = World(arms=8, users=5, seed=seed, noise=0.15), np.random.default_rng(seed)
        with world.engine() as engine:
            for turn in range(300):
                offer = [world.arms[i] for i in numbers.choice(8, 3, replace=False)]
                decision = engine.decide(world.users[turn % 5], arms=offer)
                told = engine.explain(decision)
                chosen, best = told.chosen, told.without_exploration
                if told.explored and chosen is not None and best is not None and chosen.reward_bonus < 100.0:
                    less = chosen.reward_bonus > best.reward_bonus
                    said[less] += 1
                    assert ("less is known of it" in told.sentence) == less, told.sentence
                    more = chosen.preference_bonus > best.preference_bonus
                    assert ("tell more of what this user cares about" in told.sentence) == more, told.sentence
                world.answer(engine, decision)
    assert min(said.values()) > 0  # both are to be seen here


def test_a_new_arm_is_said_to_be_like_others_and_where_scores_are_from() -> None:
    numbers = np.random.default_rng(1)
    with Engine(["central", "cheap"], features=["stars", "pool: yes or no"], seed=1) as engine:
        for arm in range(12):
            engine.add_arm(str(arm), features={"stars": float(arm % 4), "pool": arm % 2 == 0})
        for _ in range(150):
            decision = engine.decide("ann")
            stars = int(decision.arm) % 4
            scores = np.clip([0.1 + 0.25 * stars, 0.5], 0, 1) + 0.02 * numbers.random(2)
            engine.feedback(
                decision, dict(zip(("central", "cheap"), scores.tolist(), strict=True)), float(scores.mean())
            )
        assert set(engine.explain(decision).scores.values()) == {"seen"}
        engine.add_arm("new", features={"stars": 3.0})
        told = engine.explain(engine.decide("ann", arms=["new", "0"]))
        assert told.chosen is not None
        assert told.chosen.arm == "new"
        assert told.sentence.endswith("; it is new, but like others with stars 3."), told.sentence
        assert told.scores == {"central": "foretold", "cheap": "foretold"}
        told = engine.explain(engine.decide("ann", arms={"new": {"cheap": 0.9}}))
        assert told.scores == {"central": "foretold", "cheap": "given"}
        decision = engine.decide("ann", arms=["new"])
        engine.feedback(decision, {"central": 0.8}, 0.7)
        told = engine.explain(engine.decide("ann", arms=["new"]))
        assert told.sentence.endswith("; never seen of it, and foretold: cheap."), told.sentence


def test_an_arm_that_is_tried_by_chance_is_said_to_be() -> None:
    world = World(arms=5, users=2, seed=3)
    with world.engine(policy="oful:epsilon=0.5") as engine:
        world.play(engine, 40)
        sentences = [engine.explain(engine.decide("u0")).sentence for _ in range(40)]
    assert any("by chance" in one for one in sentences)
    assert not any("less is known" in one for one in sentences)


def test_an_arm_that_was_rated_in_part_is_not_called_untried() -> None:
    with Engine(["price", "taste"], seed=1) as engine:
        engine.add_arm("A", "Anchor Inn")
        for _ in range(300):
            engine.feedback(engine.decide("ann"), {"taste": 0.5})
        told = engine.explain(engine.decide("ann"))
        assert "tried" not in told.sentence
        assert told.sentence.startswith("A (Anchor Inn) was chosen because it is worth most to this user: 0.")
