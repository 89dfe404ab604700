"""Policies: what picks an arm for a user. `create` makes one by name, `available` lists them."""

from pamo.compiling import count_of, kernel
from pamo.estimators import Estimate, Kind
from pamo.policies.base import (
    Feedback,
    Keeping,
    Keeps,
    Kept,
    Policy,
    Run,
    Shape,
    kept_for,
    mark_unpulled,
    value_of,
)
from pamo.policies.changing import DParetoUcb, DUcb, Exp3, SwParetoUcb, SwUcb
from pamo.policies.contextual import ParetoLinUcb
from pamo.policies.covariance import ParetoTsCov
from pamo.policies.deciding import propensities, scores
from pamo.policies.fronts import ParetoTs, ParetoUcb
from pamo.policies.gini import MoOgde
from pamo.policies.indices import Moss, SMoss, SUcb, Ucb, UcbPerUser
from pamo.policies.interactive import Its
from pamo.policies.knowledge import ParetoKg
from pamo.policies.lexicographic import LexUcb
from pamo.policies.linear import Greedy, Oful
from pamo.policies.prucb import PrucbHp, PrucbKp, PrucbUp
from pamo.policies.registry import FAMILIES, RECOMMENDED, REGISTRY, available, create, labels, parse, recommended
from pamo.policies.variance import Prts, PrucbHpV, PrucbKpV, PrucbUpV
from pamo.reading import (
    MEAN,
    OVERALL,
    PREFERENCE,
    PULLS,
    WIDTH,
    count_at,
    freedom_at,
    inverse_at,
    noise_at,
    offset_at,
    offset_width_at,
    pending_at,
    scatter_at,
)
from pamo.rows import pair

__all__ = [
    "FAMILIES",
    "MEAN",
    "OVERALL",
    "PREFERENCE",
    "PULLS",
    "RECOMMENDED",
    "REGISTRY",
    "WIDTH",
    "DParetoUcb",
    "DUcb",
    "Estimate",
    "Exp3",
    "Feedback",
    "Greedy",
    "Its",
    "Keeping",
    "Keeps",
    "Kept",
    "Kind",
    "LexUcb",
    "MoOgde",
    "Moss",
    "Oful",
    "ParetoKg",
    "ParetoLinUcb",
    "ParetoTs",
    "ParetoTsCov",
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
    "SwParetoUcb",
    "SwUcb",
    "Ucb",
    "UcbPerUser",
    "available",
    "count_at",
    "count_of",
    "create",
    "freedom_at",
    "inverse_at",
    "kept_for",
    "kernel",
    "labels",
    "mark_unpulled",
    "noise_at",
    "offset_at",
    "offset_width_at",
    "pair",
    "parse",
    "pending_at",
    "propensities",
    "recommended",
    "scatter_at",
    "scores",
    "value_of",
]
