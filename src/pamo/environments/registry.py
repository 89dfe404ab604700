"""The environments that can be asked for by name. A new one is a file of its own and one row here."""

from __future__ import annotations

import dataclasses
from typing import Any

from pamo.environments.base import Environment
from pamo.environments.bounded import Bounded
from pamo.environments.gaussian import Fixed, Gaussian
from pamo.environments.ratings import RatedItems
from pamo.errors import InputError, unknown_name
from pamo.from_file import class_in, parts_of

REGISTRY: dict[str, type[Environment]] = {cls.id: cls for cls in (Gaussian, Bounded, Fixed, RatedItems)}


def create(name: str, **settings: Any) -> Environment:
    """Return the environment of this id with these settings.

    In place of an id, `FILE.py:NAME` is the class of that name in a file of one's own.

    >>> create("gaussian", users=3, block_size=2).arm_count
    6
    """
    if parts_of(name):
        cls = class_in(name, Environment, "environment")
    elif name in REGISTRY:
        cls = REGISTRY[name]
    else:
        raise unknown_name("environment", name, REGISTRY)
    known = [field.name for field in dataclasses.fields(cls)]
    for setting in settings:
        if setting not in known:
            raise InputError(f"the {name} environment has no setting {setting!r}; it takes: {', '.join(known)}")
    missing = [needed for needed in _needed(cls) if needed not in settings]
    if missing:
        raise InputError(f"the {name} environment needs {' and '.join(missing)}: give them from Python")
    return cls(**settings)


def playable() -> dict[str, type[Environment]]:
    """Return the environments, by id, whose settings all have defaults: those that a command line can name.

    >>> list(playable())
    ['gaussian', 'bounded', 'ratings']
    """
    return {name: cls for name, cls in REGISTRY.items() if not _needed(cls)}


def _needed(cls: type[Environment]) -> list[str]:
    return [field.name for field in dataclasses.fields(cls) if field.default is dataclasses.MISSING]


def from_settings(settings: dict[str, Any]) -> Environment:
    """Return the environment whose `settings` these are, as a result file holds them."""
    values = {name: value for name, value in settings.items() if name != "id"}
    for name in ("means", "preferences"):
        if name in values:
            values[name] = tuple(map(tuple, values[name]))
    return create(settings["id"], **values)
