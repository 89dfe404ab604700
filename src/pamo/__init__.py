"""pamo learns what each person cares about and picks for them accordingly.

>>> from pamo import environments, policies, simulate
>>> result = simulate(
...     policies=["prucb-hp", policies.create("oful", epsilon=0.1)],
...     environment=environments.Gaussian(users=2, block_size=5, objectives=3, preference="predefined"),
...     rounds=200,
...     trials=4,
...     seed=1,
... )
>>> result["prucb-hp"].final_regret.shape
(4,)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pamo._version import __version__
from pamo.errors import InputError, PamoError

if TYPE_CHECKING:
    from pamo import environments, policies
    from pamo.client import AsyncClient, Client
    from pamo.engine import AsyncEngine, Engine
    from pamo.policies import recommended
    from pamo.simulation import Result, simulate
    from pamo.simulation.stepping import Player

__all__ = [
    "AsyncClient",
    "AsyncEngine",
    "Client",
    "Engine",
    "InputError",
    "PamoError",
    "Player",
    "Result",
    "__version__",
    "environments",
    "policies",
    "recommended",
    "simulate",
]

_HOMES = {
    "AsyncClient": "client",
    "AsyncEngine": "engine",
    "Client": "client",
    "Engine": "engine",
    "Player": "simulation.stepping",
    "Result": "simulation",
    "recommended": "policies",
    "simulate": "simulation",
}
"""What is loaded when it is asked for, and from where: a client needs no compiler, an engine no simulator."""


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"pamo.{_HOMES[name]}"), name)
    if name in __all__:
        return import_module(f"pamo.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
