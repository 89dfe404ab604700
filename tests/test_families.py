"""What the cited families are for, each in its own setting."""

from __future__ import annotations

import numpy as np

from pamo import environments, simulate
from pamo.arrays import Ints


def pulls_of(policy: str, means: list[list[float]], preference: list[float], rounds: int = 3000) -> Ints:
    """Return how often each arm was pulled in four trials of one user, who is offered all arms."""
    environment = environments.Fixed.of(means=means, preferences=[preference])
    (outcome,) = simulate([policy], environment, rounds=rounds, trials=4, seed=1).values()
    return outcome.pulls


def test_lexicographic_lets_the_second_objective_decide_only_between_equals() -> None:
    """And the paper is right that weights which fall fast enough say the same."""
    means, weights = [[0.8, 0.1], [0.8, 0.7], [0.3, 1.5]], [1.0, 0.2]
    assert (pulls_of("lex", means, weights)[:, 1] > 2000).all()
    assert (pulls_of("prucb-kp", means, weights)[:, 1] > 1500).all()
    assert (pulls_of("s-ucb", means, weights)[:, 2] > 1500).all()  # the best sum


def test_the_gini_index_mixes_arms_where_a_mix_is_fairer_than_any_arm() -> None:
    means = [[1.0, 0.0], [0.0, 1.0], [0.4, 0.4]]
    shares = pulls_of("mo-ogde", means, [1.0, 1.0]) / 3000
    assert (np.abs(shares[:, :2] - 0.5) < 0.1).all()
    ordered = np.sort(shares @ np.array(means), axis=1)
    assert (ordered @ [1.0, 0.5] > 0.7).all()  # of 0.75; the best single arm has 0.6
    assert (np.sort(np.array(means), axis=1) @ [1.0, 0.5] < 0.61).all()


def test_the_knowledge_gradient_serves_the_whole_front_and_little_else() -> None:
    pulls = pulls_of("pareto-kg", [[0.9, 0.2], [0.2, 0.9], [0.1, 0.1]], [1.0, 1.0])
    assert (pulls[:, 2] < 60).all()
    assert (pulls[:, :2] > 1000).all()
