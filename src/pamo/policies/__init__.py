"""Policies: what picks an arm for a user. `create` makes one by name, `available` lists them."""

from pamo.compiling import count_of, kernel
from pamo.estimators import Estimate, Kind
from pamo.policies.base import Arms, Feedback, Policy, Run, Shape, SpreadArms, SpreadUsers, Users, mark_unpulled
from pamo.policies.deciding import propensities, scores
from pamo.policies.fronts import ParetoTs, ParetoUcb
from pamo.policies.indices import Moss, SMoss, SUcb, Ucb, UcbPerUser
from pamo.policies.linear import Greedy, Oful
from pamo.policies.prucb import PrucbHp, PrucbKp, PrucbUp
from pamo.policies.registry import RECOMMENDED, REGISTRY, available, create, labels, parse, recommended
from pamo.policies.variance import Prts, PrucbHpV, PrucbKpV, PrucbUpV

__all__ = [
    "RECOMMENDED",
    "REGISTRY",
    "Arms",
    "Estimate",
    "Feedback",
    "Greedy",
    "Kind",
    "Moss",
    "Oful",
    "ParetoTs",
    "ParetoUcb",
    "Policy",
    "Prts",
    "PrucbHp",
    "PrucbHpV",
    "PrucbKp",
    "PrucbKpV",
    "PrucbUp",
    "PrucbUpV",
    "Run",
    "SMoss",
    "SUcb",
    "Shape",
    "SpreadArms",
    "SpreadUsers",
    "Ucb",
    "UcbPerUser",
    "Users",
    "available",
    "count_of",
    "create",
    "kernel",
    "labels",
    "mark_unpulled",
    "parse",
    "propensities",
    "recommended",
    "scores",
]
