"""Policies: what picks an arm for a user. `create` makes one by name, `available` lists them."""

from pamo.compiling import count_of, kernel
from pamo.estimators import Estimate, Kind
from pamo.policies.base import Arms, Feedback, Policy, Run, Shape, Users, mark_unpulled
from pamo.policies.deciding import scores
from pamo.policies.fronts import ParetoTs, ParetoUcb
from pamo.policies.indices import Moss, SMoss, SUcb, Ucb, UcbPerUser
from pamo.policies.linear import Greedy, Oful
from pamo.policies.prucb import PrucbHp, PrucbKp, PrucbUp
from pamo.policies.registry import REGISTRY, available, create, labels, parse

__all__ = [
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
    "PrucbHp",
    "PrucbKp",
    "PrucbUp",
    "Run",
    "SMoss",
    "SUcb",
    "Shape",
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
    "scores",
]
