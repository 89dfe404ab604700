"""The words of an experiment: how large its groups are, who is in which, and how each is served."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from pamo.contract.limits import check_preference, check_text, is_number
from pamo.errors import InputError

CONTROL, TREATED = "control", "treated"
"""The groups that are no variant of somebody's naming; the treated are served as everybody is without an experiment."""
LIVE, RANDOM, CALLER, ARM = "live", "random", "caller", "arm:"
"""How a group may be served: as everybody is, with any arm of the offer, with the one that the caller names, or with
one and the same arm; and by any other policy, by its name."""
MOST_VARIANTS = 20
"""Variants of one experiment: with each more, all of them take longer to tell."""

_POLICY = re.compile(r"[a-z][a-z0-9-]*(:[a-z_]+=[\w.+-]+(,[a-z_]+=[\w.+-]+)*)?")
_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*")


@dataclass(slots=True, frozen=True)
class Variant:
    """A group of an experiment: its share of the users, and how these are served.

    policy: as everybody is ("live"), "random", "arm:ID", "caller", or by a policy, such as "prts" or
    "prucb-hp-v:reward_scale=0.5". preference: weights by which all of the group are served, in place of their own.
    """

    name: str
    share: float
    policy: str = LIVE
    preference: Mapping[str, float] | None = None

    @property
    def apart(self) -> bool:
        """Whether no policy of the engine chooses for it."""
        return self.policy in (RANDOM, CALLER) or self.policy.startswith(ARM)


def share(given: Any, field: str = "control") -> float:
    """Return the share of users that is meant, or raise `InputError`.

    >>> share("5%"), share("0.05"), share(0.5)
    (0.05, 0.05, 0.5)
    """
    found = _PERCENT.fullmatch(given) if isinstance(given, str) else None
    value: Any = given if found is None else float(found[1]) / (100.0 if found[2] else 1.0)
    if not (is_number(value) and 0.0 < value < 1.0):
        raise InputError(
            f"expected a group's share of the users, above 0 and below 1, such as 5%, got {given!r:.80}", field
        )
    return float(value)


def check_policy(policy: Any, field: str = "policy") -> None:
    """Raise `InputError` unless a group may be served so, whatever policies and arms there are."""
    if isinstance(policy, str) and policy.startswith(ARM):
        check_text(policy.removeprefix(ARM), "an arm", field)
    elif not (isinstance(policy, str) and _POLICY.fullmatch(policy)):  # no file of somebody's own: it would be run
        raise InputError(
            f"expected a group's policy to be {LIVE!r}, {RANDOM!r}, {CALLER!r} (the choice that comes with each "
            f"decision), '{ARM}ID' or the name of a policy, got {policy!r:.80}",
            field,
        )


_FIELDS = tuple(field.name for field in fields(Variant))


def as_variants(
    given: Any, control: float, policy: str, objectives: Sequence[str] | None = None
) -> tuple[Variant, ...]:
    """Return the variants that there are to be beside control, or raise `InputError`; each may be a mapping.

    objectives: those that a preference has to weigh, where they are known.

    >>> as_variants([{"name": "cheap", "share": "5%", "preference": {"price": 1, "taste": 0}}], 0.05, "live")
    (Variant(name='cheap', share=0.05, policy='live', preference={'price': 1.0, 'taste': 0.0}),)
    """
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence) or len(given) > MOST_VARIANTS:
        raise InputError(f"expected variants as a list of up to {MOST_VARIANTS}, got {given!r:.80}", "variants")
    found: list[Variant] = []
    for place, told in enumerate(given):
        field, named = (
            f"variants[{place}]",
            isinstance(told, Mapping) and {"name", "share"} <= set(told) <= set(_FIELDS),
        )
        one = Variant(**told) if named else told
        if not isinstance(one, Variant):
            raise InputError(
                f"expected a variant with name, share, and any of {', '.join(_FIELDS[2:])}, got {one!r:.80}", field
            )
        check_text(one.name, "a variant's name", f"{field}.name")
        if one.name in (CONTROL, TREATED, *(other.name for other in found)):
            raise InputError(
                f"expected each variant to have a name of its own, other than {CONTROL!r} and {TREATED!r}, got "
                f"{one.name!r:.80}",
                f"{field}.name",
            )
        check_policy(one.policy, f"{field}.policy")
        weights = one.preference
        if weights is not None:
            if one.apart or not isinstance(weights, Mapping):
                raise InputError(
                    f"expected weights by objective, and for a policy that reads them, got {weights!r:.80} for "
                    f"{one.policy!r:.80}",
                    f"{field}.preference",
                )
            try:
                check_preference(weights, (list(weights) if objectives is None else objectives))
            except InputError as error:
                raise InputError(str(error), f"{field}.{error.field}") from None
            weights = {name: float(value) for name, value in weights.items()}
        found.append(replace(one, share=share(one.share, f"{field}.share"), preference=weights))
    total = control + sum(one.share for one in found)
    if total > 1.0 + 1e-9:
        raise InputError(
            f"expected control and all variants to be at most 100% of the users, got {total:.4g}", "variants"
        )
    if policy == LIVE and not found:
        raise InputError(
            "expected variants: control that is served as everybody is has nothing to compare with", "variants"
        )
    return tuple(found)


def check_smallest(value: Any, field: str = "smallest") -> None:
    """Raise `InputError` unless this may be the smallest difference worth finding."""
    if not (is_number(value) and 0.001 <= value <= 10.0):
        raise InputError(
            "expected the smallest difference worth finding in standard deviations, from 0.001 to 10, such as 0.2, "
            f"got {value!r:.80}",
            field,
        )


def group_of(user: str, experiment: str, groups: Sequence[Variant]) -> Variant | None:
    """Return a user's group: the same in all processes, for as long as the experiment's name and shares are.

    >>> half = [Variant("control", 0.5), Variant("treated", 0.5)]
    >>> [group_of(user, "autumn", half).name for user in ("ann", "bob", "cid")]
    ['control', 'control', 'treated']
    """
    digest = hashlib.blake2b(f"{experiment}\0{user}".encode(), digest_size=8).digest()
    point, edge = int.from_bytes(digest, "big"), 0.0
    for one in groups:
        edge += one.share
        if point < edge * 2.0**64 or one.name == TREATED:  # these are all others
            return one
    return None
