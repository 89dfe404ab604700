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

from typing import TYPE_CHECKING, Any

from pamo import environments, policies
from pamo._version import __version__
from pamo.engine import AsyncEngine, Engine
from pamo.errors import InputError, PamoError
from pamo.policies import recommended
from pamo.simulation import Result, simulate

if TYPE_CHECKING:
    from pamo.client import AsyncClient, Client

__all__ = [
    "AsyncClient",
    "AsyncEngine",
    "Client",
    "Engine",
    "InputError",
    "PamoError",
    "Result",
    "__version__",
    "environments",
    "policies",
    "recommended",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Load the clients when they are asked for: most programs that import pamo talk to no service."""
    if name in ("AsyncClient", "Client"):
        from pamo import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
