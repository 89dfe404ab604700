"""The words of an experiment: how large its control group is, who is in it, and how it is served."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from pamo.contract.limits import check_text, is_number
from pamo.errors import InputError

CONTROL, TREATED = "control", "treated"
"""The two groups; the treated are served as everybody is without an experiment."""
RANDOM, CALLER, ARM = "random", "caller", "arm:"
"""How control may be served: any arm of the offer, the one that the caller names, or one and the same arm."""

_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*")


def share(given: Any, field: str = "control") -> float:
    """Return the share of users that is meant, or raise `InputError`.

    >>> share("5%"), share("0.05"), share(0.5)
    (0.05, 0.05, 0.5)
    """
    found = _PERCENT.fullmatch(given) if isinstance(given, str) else None
    value: Any = given if found is None else float(found[1]) / (100.0 if found[2] else 1.0)
    if not (is_number(value) and 0.0 < value < 1.0):
        raise InputError(
            f"expected the control group's share of users, above 0 and below 1, such as 5%, got {given!r:.80}", field
        )
    return float(value)


def check_control(policy: Any, field: str = "policy") -> None:
    """Raise `InputError` unless control may be served so."""
    if isinstance(policy, str) and policy.startswith(ARM):
        check_text(policy.removeprefix(ARM), "an arm", field)
    elif policy not in (RANDOM, CALLER):
        raise InputError(
            f"expected control's policy to be {RANDOM!r}, {CALLER!r} (the choice that comes with each decision) or "
            f"'{ARM}ID', got {policy!r:.80}",
            field,
        )


def check_smallest(value: Any, field: str = "smallest") -> None:
    """Raise `InputError` unless this may be the smallest difference worth finding."""
    if not (is_number(value) and 0.001 <= value <= 10.0):
        raise InputError(
            "expected the smallest difference worth finding in standard deviations, from 0.001 to 10, such as 0.2, "
            f"got {value!r:.80}",
            field,
        )


def group_of(user: str, experiment: str, control: float) -> str:
    """Return a user's group: the same in all processes, for as long as the experiment's name and share are.

    >>> [group_of(user, "autumn", 0.5) for user in ("ann", "bob", "cid")]
    ['control', 'control', 'treated']
    """
    digest = hashlib.blake2b(f"{experiment}\0{user}".encode(), digest_size=8).digest()
    return CONTROL if int.from_bytes(digest, "big") < control * 2.0**64 else TREATED
