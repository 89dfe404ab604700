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

from pamo import environments, policies
from pamo._version import __version__
from pamo.engine import AsyncEngine, Engine
from pamo.errors import InputError, PamoError
from pamo.policies import recommended
from pamo.simulation import Result, simulate

__all__ = [
    "AsyncEngine",
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
