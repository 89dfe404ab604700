"""The bounds against hand-computed cases, their own definitions, and a plain count of what they claim to sum."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from pamo.errors import InputError
from pamo.estimators import lemma2_radius
from pamo.theory import (
    ZETA_2,
    Bound,
    Gaps,
    HiddenSettings,
    gaps,
    lemma3_probability,
    lemma3_uniform_probability,
    preference_free_slope,
    prucb_hp_bound,
    prucb_kp_bound,
    prucb_up_bound,
    uniform_failure,
    warm_up_rounds,
)

SMALL = HiddenSettings(arms=2, objectives=2, failure=0.1)
# Two overlapping offers: arm 1 is short of arm 0 by 0.3 and of arm 2 by 0.1; arm 0 and arm 2 never meet.
CHAIN = gaps(means=[[0.8], [0.5], [0.6]], preferences=[[1.0]], offers=[[0, 1], [1, 2]])
HORIZONS = np.array([1.0, 2.0, 10.0, 5e3, 1e6, 1e10, 1e14])


def settled(t: float, settings: HiddenSettings, variance: float) -> bool:
    """Theorem 1's inequality, written out again."""
    noise = math.sqrt(settings.arms * t * math.log(t / settings.alpha))
    return t * variance + settings.ridge >= 2 * settings.objectives * settings.omega * noise


# ---- Theorem 1


def test_alpha_is_the_printed_one_for_one_user_and_shared_by_several() -> None:
    settings = HiddenSettings(arms=4, objectives=5, failure=0.02)
    assert settings.alpha == pytest.approx(math.sqrt(12 * 0.02 / (4 * 5 * 8 * math.pi**2)))
    shared = HiddenSettings(arms=4, objectives=5, failure=0.02, users=9)
    assert shared.alpha == pytest.approx(settings.alpha / 3)


def test_omega_is_the_number_of_objectives_unless_given() -> None:
    assert HiddenSettings(arms=4, objectives=5, failure=0.02).omega == 5.0
    assert HiddenSettings(arms=4, objectives=5, failure=0.02, omega=7.5).omega == 7.5


@pytest.mark.parametrize(("arms", "expected"), [(1, 0.001), (10_000, None)])
def test_beta_takes_the_smaller_of_alpha_and_failure(arms: int, expected: float | None) -> None:
    settings = HiddenSettings(arms=arms, objectives=2, failure=0.001, ridge=2.0, sub_gaussian=0.5)
    inside = settings.alpha if expected is None else expected
    assert (settings.alpha < 0.001) == (expected is None)
    assert settings.beta(50) == pytest.approx(
        0.5 * math.sqrt(2 * 2 * math.log((1 + 2 * 50 / 2.0) / inside)) + math.sqrt(2.0)
    )


@pytest.mark.parametrize("variance", [0.25, 0.01, 1e-4, 1e-7])
@pytest.mark.parametrize(("arms", "objectives", "ridge"), [(1, 2, 1.0), (10, 3, 1.0), (50, 10, 0.1), (5, 4, 1e3)])
def test_warm_up_satisfies_its_inequality_and_the_round_before_does_not(
    variance: float, arms: int, objectives: int, ridge: float
) -> None:
    settings = HiddenSettings(arms=arms, objectives=objectives, failure=0.05, ridge=ridge)
    rounds = warm_up_rounds(settings=settings, reward_variance=variance)
    assert rounds > 1
    assert settled(rounds, settings, variance)
    assert not settled(rounds - 1, settings, variance)
    assert all(settled(rounds * factor, settings, variance) for factor in (1.001, 1.5, 10, 1e6))


@pytest.mark.parametrize("ridge", [0.5, 30.0, 100.0, 300.0, 600.0, 1e3, 1e6])
def test_warm_up_is_the_last_crossing_found_by_looking_at_every_round(ridge: float) -> None:
    settings = HiddenSettings(arms=1, objectives=2, failure=0.5, ridge=ridge)
    looked_at = range(1, 60_000)
    failing = [t for t in looked_at if not settled(t, settings, 0.25)]
    expected = failing[-1] + 1 if failing else 1
    assert expected < looked_at[-1], "the search has to reach past the last crossing"
    assert warm_up_rounds(settings=settings, reward_variance=0.25) == expected


def test_a_ridge_between_leaves_a_first_crossing_that_is_not_taken() -> None:
    # The inequality holds at first, by λ alone, then fails, then holds for good: M is the second crossing.
    settings = HiddenSettings(arms=1, objectives=2, failure=0.5, ridge=100.0)
    assert settled(1, settings, 0.25)
    assert warm_up_rounds(settings=settings, reward_variance=0.25) > 1


def test_hidden_bound_by_hand() -> None:
    bound = prucb_hp_bound(100, settings=SMALL, reward_variance=0.25, warm_up=20)
    alpha = math.sqrt(12 * 0.1 / (2 * 2 * 5)) / math.pi
    beta = lemma2_radius(100, objectives=2, omega=2.0, ridge=1.0, failure=min(alpha, 0.1))
    log = math.log(100 / alpha)
    assert bound.terms == {
        "preference": pytest.approx(2 * beta * math.sqrt(2 / math.log(9 / 8) * 80 * math.log(161))),
        "combined": pytest.approx(12 * beta * math.sqrt(2 * 2 * 80 * log)),
        "reward": pytest.approx(4 * math.sqrt(2 * 80 * log)),
        "warm_up": 20.0,
    }


def test_hidden_bound_is_a_regret_of_one_a_round_and_user_until_the_warm_up_ends() -> None:
    settings = HiddenSettings(arms=10, objectives=3, failure=0.05, users=4)
    rounds = warm_up_rounds(settings=settings, reward_variance=0.01)
    horizons = np.array([1, 5000, rounds])
    np.testing.assert_allclose(prucb_hp_bound(horizons, settings=settings, reward_variance=0.01).total, 4.0 * horizons)


def test_hidden_bound_sums_over_users_at_the_same_share_of_failure() -> None:
    one = HiddenSettings(arms=10, objectives=3, failure=0.01)
    four = HiddenSettings(arms=10, objectives=3, failure=0.04, users=4)
    for name, term in prucb_hp_bound(1e12, settings=one, reward_variance=0.1).terms.items():
        assert prucb_hp_bound(1e12, settings=four, reward_variance=0.1).terms[name] == pytest.approx(4 * term)


def test_a_beta_below_one_counts_as_one_in_the_preference_term_only() -> None:
    settings = HiddenSettings(arms=2, objectives=2, failure=0.9, ridge=1e-4, sub_gaussian=1e-3)
    assert settings.beta(1000) < 1
    terms = prucb_hp_bound(1000, settings=settings, reward_variance=0.25, warm_up=0).terms
    information = 2 / math.log(9 / 8) * 1000 * math.log1p(2 * 1000 / 1e-4)
    assert terms["preference"] == pytest.approx(2 * math.sqrt(information))
    assert terms["combined"] == pytest.approx(3 * settings.beta(1000) * math.sqrt(2 / 1e-4) * terms["reward"])


# ---- Theorem 2 and the corollary


def test_gaps_run_over_the_offers_in_which_an_arm_is_short() -> None:
    np.testing.assert_allclose(CHAIN.low, [[np.inf, 0.1, np.inf]])
    np.testing.assert_allclose(CHAIN.high, [[0.0, 0.3, 0.0]])
    np.testing.assert_allclose(CHAIN.spread, [[0.0, 0.3, 0.0]])


def test_gaps_differ_between_users_and_the_spread_looks_at_all_of_the_offer() -> None:
    found = gaps(
        means=[[1.0, 0.0], [0.0, 1.0], [0.5, 0.6]],
        preferences=[[0.6, 0.2], [0.0, 1.0]],
        offers=np.array([[0, 1, 2]]),
    )
    np.testing.assert_allclose(found.low, [[np.inf, 0.4, 0.18], [1.0, np.inf, 0.4]])
    np.testing.assert_allclose(found.high, np.where(np.isinf(found.low), 0.0, found.low))
    # Arm 2's distance is to the farther arm 0, not to user 1's best, arm 1.
    assert found.spread[1, 2] == pytest.approx(math.hypot(0.5, 0.6))
    assert (found.objectives, found.norm) == (2, 1.0)


def test_an_arm_tied_with_the_best_is_not_short() -> None:
    found = gaps(means=[[0.1 + 0.2], [0.3], [0.2]], preferences=[[1.0]], offers=[[0, 1, 2]])
    assert np.isinf(found.low[0, :2]).all()
    assert found.high[0, :2].tolist() == [0.0, 0.0]
    assert np.isfinite(prucb_up_bound(10, gaps=found, delta=1.0).total)


def test_gaps_of_every_offer_agree_with_a_plain_loop() -> None:
    rng = np.random.default_rng(5)
    means, preferences = rng.random((7, 3)), rng.random((4, 3))
    offers = [rng.choice(7, size=3, replace=False).tolist() for _ in range(6)]
    found = gaps(means=means, preferences=preferences, offers=offers)
    for user in range(4):
        for arm in range(7):
            seen: list[float] = []
            apart: list[float] = []
            for offer in offers:
                best = max(preferences[user] @ means[other] for other in offer)
                if arm in offer and best > preferences[user] @ means[arm]:
                    seen.append(best - preferences[user] @ means[arm])
                    apart.extend(float(np.linalg.norm(means[arm] - means[other])) for other in offer)
            assert found.low[user, arm] == pytest.approx(min(seen, default=np.inf))
            assert found.high[user, arm] == pytest.approx(max(seen, default=0.0))
            assert found.spread[user, arm] == pytest.approx(max(apart, default=0.0))


def test_stated_bound_by_hand() -> None:
    terms = prucb_up_bound(50, gaps=CHAIN, delta=2.0, alpha=0.5).terms
    assert terms == {
        "reward": pytest.approx(0.3 * (16 * 4 * math.log(100) / 0.01 + math.pi**2 * 0.25 / 3)),
        "preference": pytest.approx(0.3 * 4 * 0.09 * 4 / 0.01),
        "corrections": pytest.approx(0.3 * (1 + 0.25 * (math.log(50) + ZETA_2 - 1 - 2 * ZETA_2))),
    }


def test_known_bound_by_hand_and_summed_over_users() -> None:
    literal = 0.3 * (4 * 4 * math.log(100) / 0.01 + math.pi**2 * 0.25 / 3)
    assert prucb_kp_bound(50, gaps=CHAIN, delta=2.0, alpha=0.5).terms["reward"] == pytest.approx(literal)
    twice = gaps(means=[[0.8], [0.5], [0.6]], preferences=[[1.0], [1.0]], offers=[[0, 1], [1, 2]])
    assert prucb_kp_bound(50, gaps=twice, delta=2.0, alpha=0.5).terms["reward"] == pytest.approx(2 * literal)


def test_not_knowing_the_preference_costs_more() -> None:
    known = prucb_kp_bound(HORIZONS, gaps=CHAIN, delta=1.0).total
    assert (np.asarray(prucb_up_bound(HORIZONS, gaps=CHAIN, delta=1.0).total) > known).all()


def test_nobody_is_short_and_nothing_is_lost() -> None:
    alone = gaps(means=[[0.8], [0.5]], preferences=[[1.0]], offers=[[0], [1]])
    assert prucb_up_bound(100, gaps=alone, delta=1.0).total == 0.0


@pytest.mark.parametrize("users", [1, 3])
def test_corrections_cover_the_sum_over_every_number_of_pulls(users: int) -> None:
    # What the corrections stand for: the arm's own mean at its s-th pull, once, and the best arm's in each
    # round t at each number of pulls that it can have by then.
    horizon = 200
    own = sum((1 + math.ceil(s / users)) ** -2.0 for s in range(1, users * horizon))
    best = sum(users * (t - 1) / t**2 for t in range(2, horizon + 1))
    found = gaps(means=[[0.8], [0.5]], preferences=[[1.0]] * users, offers=[[0, 1]])
    terms = prucb_kp_bound(horizon, gaps=found, delta=1.0).terms
    concentration = float(terms["reward"]) / (0.3 * users) - 4 * math.log(horizon) / 0.09
    assert float(terms["corrections"]) / (0.3 * users) + concentration >= 1 + own + best


# ---- All bounds


BOUNDS: dict[str, Callable[[object], Bound]] = {
    "prucb-hp": lambda rounds: prucb_hp_bound(rounds, settings=SMALL, reward_variance=0.25),  # type: ignore[arg-type]
    "prucb-up": lambda rounds: prucb_up_bound(rounds, gaps=CHAIN, delta=1.5),  # type: ignore[arg-type]
    "prucb-kp": lambda rounds: prucb_kp_bound(rounds, gaps=CHAIN, delta=1.5),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", BOUNDS)
def test_a_bound_is_the_sum_of_its_terms_and_never_falls(name: str) -> None:
    bound = BOUNDS[name](HORIZONS)
    np.testing.assert_allclose(bound.total, np.sum([np.asarray(term) for term in bound.terms.values()], axis=0))
    for term in bound.terms.values():
        assert np.shape(term) == HORIZONS.shape
        assert (np.diff(term) >= 0).all()
        assert (np.asarray(term) >= 0).all()
    assert (np.diff(bound.total) > 0).all()


@pytest.mark.parametrize("name", BOUNDS)
def test_a_number_gives_numbers_and_an_array_gives_the_same_ones(name: str) -> None:
    together = BOUNDS[name](HORIZONS.reshape(7, 1))
    assert np.shape(together.total) == (7, 1)
    for row, horizon in enumerate(HORIZONS):
        alone = BOUNDS[name](int(horizon))
        assert isinstance(alone.total, float)
        for term in alone.terms:
            assert isinstance(alone.terms[term], float)
            assert alone.terms[term] == np.asarray(together.terms[term])[row, 0]


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("rounds", [0, -1, [], [5, 0.5], math.nan, math.inf])
def test_bounds_need_rounds(name: str, rounds: object) -> None:
    with pytest.raises(InputError, match="rounds"):
        BOUNDS[name](rounds)


# ---- Proposition 1


def test_slope_of_the_conflicting_arms_is_one() -> None:
    assert preference_free_slope() == 1.0


def test_slope_is_the_least_that_any_one_law_over_arms_can_lose() -> None:
    rng = np.random.default_rng(3)
    means, preferences = rng.random((4, 3)), rng.random((5, 3))
    slope = preference_free_slope(means=means, preferences=preferences)
    scores = preferences @ means.T
    lost = (scores.max(axis=1, keepdims=True) - scores).sum(axis=0)
    laws = rng.dirichlet(np.ones(4), size=1000)
    assert slope > 0
    assert (laws @ lost >= slope).all()
    assert lost.min() == pytest.approx(slope)


def test_two_arms_on_the_papers_front_need_not_conflict() -> None:
    # Neither is better in every objective, so both are on the front, and Proposition 1 promises a linear regret;
    # but no preference likes the second better.
    rng = np.random.default_rng(4)
    assert preference_free_slope(means=[[1.0, 0.5], [0.5, 0.5]], preferences=rng.random((50, 2))) == 0.0


# ---- Lemma 3 and the uniform confidence section


def test_lemma3_by_hand_over_rounds() -> None:
    np.testing.assert_allclose(
        lemma3_probability([1, 2, 10], objectives=3, alpha=0.5, failure=0.1), [0.15, 0.7125, 0.8925]
    )
    assert lemma3_probability(1, objectives=3, alpha=1.0, failure=0.1) == 0.0


def test_lemma3_for_all_rounds_is_the_union_over_single_rounds() -> None:
    rounds = np.arange(1, 200_000)
    single = lemma3_probability(rounds, objectives=3, alpha=0.05, failure=0.1)
    union = 1 - 0.1 - 4 * np.sum(1 - 0.1 - np.asarray(single))
    everywhere = lemma3_uniform_probability(arms=4, objectives=3, alpha=0.05, failure=0.1)
    assert everywhere == pytest.approx(union, abs=1e-6)
    assert everywhere <= union


def test_lemma3_for_many_users_counts_pulls() -> None:
    users, alpha = 8, 0.01
    pulls = sum(alpha**2 / (1 + math.ceil(s / users)) ** 2 for s in range(1, 100_000))
    everywhere = lemma3_uniform_probability(arms=4, objectives=3, alpha=alpha, failure=0.01, users=users)
    assert everywhere == pytest.approx(1 - 8 * 0.01 - 4 * 3 * pulls, abs=1e-5)
    assert lemma3_uniform_probability(arms=4, objectives=3, alpha=0.9, failure=0.01) == 0.0


@pytest.mark.parametrize("objectives", [2, 3, 10])
@pytest.mark.parametrize("users", [1, 7])
def test_the_prescribed_alpha_keeps_the_uniform_failure_below_theta(objectives: int, users: int) -> None:
    settings = HiddenSettings(arms=6, objectives=objectives, failure=0.05, users=users)
    counted = uniform_failure(arms=6, objectives=objectives, alpha=settings.alpha, users=users)
    assert counted.total == pytest.approx(0.05 * (2 - 12 / math.pi**2))
    printed = uniform_failure(arms=6, objectives=objectives, alpha=settings.alpha, as_printed=True)
    assert printed.total == pytest.approx(0.05 / users)
    assert set(counted.terms) == set(printed.terms) == {"reward", "gram"}


# ---- Bad input


@pytest.mark.parametrize(
    "wrong",
    [
        {"arms": 0},
        {"objectives": 1},
        {"users": 0},
        {"failure": 0.0},
        {"failure": 1.0},
        {"failure": math.nan},
        {"omega": 2.9},
        {"omega": math.inf},
        {"ridge": 0.0},
        {"sub_gaussian": -1.0},
    ],
)
def test_settings_outside_the_theorem_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="expected arms"):
        HiddenSettings(**{"arms": 2, "objectives": 3, "failure": 0.1, **wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("variance", [0.0, -0.1, 0.3, math.nan])
def test_reward_variance_has_to_be_one_of_rewards_in_the_unit_interval(variance: float) -> None:
    with pytest.raises(InputError, match="reward_variance"):
        warm_up_rounds(settings=SMALL, reward_variance=variance)


def test_warm_up_cannot_be_negative() -> None:
    with pytest.raises(InputError, match="warm_up"):
        prucb_hp_bound(10, settings=SMALL, reward_variance=0.1, warm_up=-1)


@pytest.mark.parametrize(
    ("means", "preferences", "offers"),
    [
        ([0.1, 0.2], [[1.0]], [[0, 1]]),
        ([[0.1, 0.2]], [[1.0]], [[0]]),
        ([[0.1], [1.2]], [[1.0]], [[0, 1]]),
        ([[0.1], [math.nan]], [[1.0]], [[0, 1]]),
        ([[0.1], [0.2]], [[-1.0]], [[0, 1]]),
        ([[0.1], [0.2]], [[math.inf]], [[0, 1]]),
        ([[0.1], [0.2]], [[1.0]], []),
        ([[0.1], [0.2]], [[1.0]], [[]]),
        ([[0.1], [0.2]], [[1.0]], [[0, 2]]),
        ([[0.1], [0.2]], [[1.0]], [[-1, 0]]),
        ([[0.1], [0.2]], [[1.0]], [[0, 0]]),
        ([[0.1], [0.2]], [[1.0]], [[0.0, 1.0]]),
    ],
)
def test_instances_outside_the_theorem_are_refused(
    means: list[list[float]], preferences: list[list[float]], offers: list[list[int]]
) -> None:
    with pytest.raises(InputError, match="expected"):
        gaps(means=means, preferences=preferences, offers=offers)


@pytest.mark.parametrize("bound", [prucb_up_bound, prucb_kp_bound])
@pytest.mark.parametrize("wrong", [{"alpha": 0.0}, {"alpha": 1.5}, {"delta": 0.9}, {"delta": math.nan}])
def test_alpha_and_delta_are_checked(bound: Callable[..., Bound], wrong: dict[str, float]) -> None:
    found: Gaps = CHAIN
    with pytest.raises(InputError, match="alpha"):
        bound(10, gaps=found, **{"delta": 1.0, **wrong})


@pytest.mark.parametrize("wrong", [{"alpha": 0.0}, {"alpha": 2.0}, {"failure": 0.0}, {"objectives": 0}])
def test_confidence_is_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="expected arms"):
        lemma3_probability(1, **{"objectives": 2, "alpha": 0.5, "failure": 0.1, **wrong})  # type: ignore[arg-type]
