"""The policies that can be asked for by name. A new one is a file of its own and one row here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pamo.errors import InputError, unknown_name
from pamo.from_file import class_in, parts_of
from pamo.policies.base import Policy, with_hyperparameters
from pamo.policies.changing import DParetoUcb, DUcb, Exp3, SwParetoUcb, SwUcb
from pamo.policies.contextual import ParetoLinUcb
from pamo.policies.covariance import ParetoTsCov
from pamo.policies.fronts import ParetoTs, ParetoUcb
from pamo.policies.gini import MoOgde
from pamo.policies.indices import Moss, SMoss, SUcb, Ucb, UcbPerUser
from pamo.policies.interactive import Its
from pamo.policies.knowledge import ParetoKg
from pamo.policies.lexicographic import LexUcb
from pamo.policies.linear import Greedy, Oful
from pamo.policies.prucb import PrucbHp, PrucbKp, PrucbUp
from pamo.policies.variance import Prts, PrucbHpV, PrucbKpV, PrucbUpV

FAMILIES: dict[str, tuple[type[Policy], ...]] = {
    "paper": (
        PrucbHp,
        PrucbUp,
        PrucbKp,
    ),
    "ours": (
        PrucbHpV,
        PrucbUpV,
        PrucbKpV,
        Prts,
    ),
    "baselines": (
        SUcb,
        SMoss,
        ParetoUcb,
        ParetoTs,
        Oful,
        Ucb,
        Moss,
        UcbPerUser,
        Greedy,
    ),
    "changing": (
        SwUcb,
        DUcb,
        SwParetoUcb,
        DParetoUcb,
        Exp3,
    ),
    "fronts": (
        ParetoKg,
        MoOgde,
        LexUcb,
        ParetoTsCov,
    ),
    "contextual": (ParetoLinUcb,),
    "interactive": (Its,),
}
"""What there is, by what it is there for: a new policy is one row."""
REGISTRY: dict[str, type[Policy]] = {cls.id: cls for family in FAMILIES.values() for cls in family}

RECOMMENDED = {"hidden": "prucb-hp-v", "stated": "prucb-up-v", "known": "prucb-kp-v"}
"""What to use where the preference is hidden, stated after each round, or known; docs/which-policy.md says why."""
_ALIASES = {"recommended" if mode == "hidden" else f"recommended-{mode}": name for mode, name in RECOMMENDED.items()}


def available(family: str | None = None) -> tuple[str, ...]:
    """Return the ids of all policies, or of one family (a key of `FAMILIES`).

    >>> available("paper")
    ('prucb-hp', 'prucb-up', 'prucb-kp')
    """
    if family is None:
        return tuple(REGISTRY)
    if family not in FAMILIES:
        raise unknown_name("family", family, FAMILIES)
    return tuple(cls.id for cls in FAMILIES[family])


def create(name: str, **hyperparameters: Any) -> Policy:
    """Return the policy of this id with these hyperparameters, the others at their defaults (the paper's, if its).

    In place of an id, `FILE.py:NAME` is the class of that name in a file of one's own.

    >>> create("oful", epsilon=0.1)
    Oful(epsilon=0.1, ridge=1.0)
    """
    if parts_of(name):
        return with_hyperparameters(class_in(name, Policy, "policy"), hyperparameters)
    name = _ALIASES.get(name, name)
    if name not in REGISTRY:
        raise unknown_name("policy", name, (*REGISTRY, *_ALIASES))
    return with_hyperparameters(REGISTRY[name], hyperparameters)


def recommended(mode: str = "hidden") -> Policy:
    """Return the policy to use where preferences are `hidden`, `stated` after each round, or `known`.

    By name they are `recommended`, `recommended-stated` and `recommended-known`.

    >>> recommended().id, recommended("known").id, create("recommended-stated").id
    ('prucb-hp-v', 'prucb-kp-v', 'prucb-up-v')
    """
    if mode not in RECOMMENDED:
        raise unknown_name("mode", mode, RECOMMENDED)
    return create(RECOMMENDED[mode])


def parse(text: str) -> Policy:
    """Return the policy that a command line names: an id or `FILE.py:NAME`, with hyperparameters after a colon.

    >>> parse("oful:epsilon=0.1")
    Oful(epsilon=0.1, ridge=1.0)
    """
    name, rest = parts_of(text) or text.partition(":")[::2]
    values: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise InputError(f"expected hyperparameters as {name}:name=value,name=value, got {part!r} in {text!r}")
        values[key.strip()] = _value(value.strip())
    return create(name.strip(), **values)


def _value(text: str) -> float | int | bool | str | None:
    named = {"true": True, "false": False, "none": None}
    if text.lower() in named:
        return named[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def labels(policies: Iterable[Policy]) -> list[str]:
    """Return a distinct name for each policy of a run: its id, and with its changed hyperparameters where needed.

    >>> labels([create("oful", epsilon=0.1), create("ucb")])
    ['oful', 'ucb']
    >>> labels([create("oful", epsilon=0.1), create("oful")])
    ['oful:epsilon=0.1', 'oful']
    """
    several = list(policies)
    ids = [policy.id for policy in several]
    names = [policy.id if ids.count(policy.id) == 1 else policy.label for policy in several]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"expected each policy once, got {name!r} {names.count(name)} times; drop the repeats")
    return names
