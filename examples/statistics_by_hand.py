"""The sums behind every decision, used without the simulator: observe, merge, decide.

    python examples/statistics_by_hand.py

Two shops rate the same three hotels on price, location and comfort. Each shop keeps its own sums. Added up, they are
what one shop that had seen everything would hold, and any policy can decide from them.
"""

from __future__ import annotations

from pamo import policies
from pamo.estimators import confidence_set, preferences, reward_means
from pamo.statistics import ArmStatistics, UserStatistics

HOTELS = ["Anchor", "Bristol", "Central"]
OBJECTIVES = ["price", "location", "comfort"]
GUESTS = ["Ada", "Ben"]

# (guest, hotel, the scores on the objectives, the one overall score)
SHOP_1 = [
    (0, 0, [0.9, 0.2, 0.3], 0.80),
    (0, 1, [0.3, 0.8, 0.5], 0.36),
    (1, 2, [0.2, 0.5, 0.9], 0.71),
]
SHOP_2 = [
    (0, 2, [0.3, 0.6, 0.8], 0.41),
    (1, 0, [0.8, 0.3, 0.2], 0.33),
    (1, 1, [0.4, 0.7, 0.6], 0.58),
]


def fold(feedback: list[tuple[int, int, list[float], float]]) -> tuple[ArmStatistics, UserStatistics]:
    """Return the sums of this feedback: the arms' over all users, and each user's own."""
    arms = ArmStatistics.zeros(arms=len(HOTELS), objectives=len(OBJECTIVES))
    users = UserStatistics.zeros(users=len(GUESTS), objectives=len(OBJECTIVES))
    for guest, hotel, reward, overall in feedback:
        arms.observe(hotel, reward, overall=overall)
        users.observe(guest, reward, overall=overall)
    return arms, users


def main() -> None:
    """Merge two shops' sums and choose a hotel for each guest."""
    (arms_1, users_1), (arms_2, users_2) = fold(SHOP_1), fold(SHOP_2)
    arms, users = arms_1 + arms_2, users_1 + users_2  # or arms_1.merge(arms_2)

    print("pulls:", {hotel: int(pulls) for hotel, pulls in zip(HOTELS, arms.pulls, strict=True)})
    for hotel, mean in zip(HOTELS, reward_means(arms), strict=True):
        print(f"{hotel:<8}", {name: round(float(value), 2) for name, value in zip(OBJECTIVES, mean, strict=True)})

    policy = policies.create("prucb-hp")
    estimate = policy.estimate(len(OBJECTIVES))
    weights = preferences(users, estimate)
    low, high = confidence_set(users, estimate, radius="experiments").interval()
    for guest, name in enumerate(GUESTS):
        scores = policies.scores(policy, arms=arms, users=users, user=guest)
        print(f"\n{name} cares about")
        for d, objective in enumerate(OBJECTIVES):
            print(f"  {objective:<9}{weights[guest, d]:6.2f}  ({low[guest, d]:.2f} … {high[guest, d]:.2f})")
        print("  scores:", {hotel: round(float(score), 2) for hotel, score in zip(HOTELS, scores, strict=True)})
        print("  next:", HOTELS[int(scores.argmax())])


if __name__ == "__main__":
    main()
