"""Final regrets of every policy for a fixed seed, as they are kept in goldens.json.

`python -m tests.goldens` writes the file anew. Do that when results are meant to change, and look at what changed.
"""

from __future__ import annotations

import json
from pathlib import Path

from pamo import environments, policies, simulate
from pamo.environments import Environment

PATH = Path(__file__).with_name("goldens.json")

ENVIRONMENTS: dict[str, Environment] = {
    "gaussian": environments.Gaussian(users=3, block_size=4, objectives=3),
    "bounded": environments.Bounded(users=2, block_size=3, objectives=2, preference="random", protocol="rotate"),
}


def golden(policy: str) -> dict[str, list[float]]:
    """Return a policy's final regret in each of three trials, in each environment."""
    return {
        name: simulate([policy], environment, rounds=300, trials=3, seed=2026)[policy].final_regret.tolist()
        for name, environment in ENVIRONMENTS.items()
    }


def kept() -> dict[str, dict[str, list[float]]]:
    """Return what the file holds, by policy and environment."""
    goldens: dict[str, dict[str, list[float]]] = json.loads(PATH.read_text(encoding="utf-8"))
    return goldens


def main() -> None:
    """Write the goldens of all registered policies, and say which of them changed."""
    before = kept() if PATH.exists() else {}
    goldens = {policy: golden(policy) for policy in policies.available()}
    PATH.write_text(json.dumps(goldens, indent=1) + "\n", encoding="utf-8")
    changed = [policy for policy, values in goldens.items() if before.get(policy) != values]
    dropped = [policy for policy in before if policy not in goldens]
    print(f"{PATH.name}: changed {', '.join(changed) or 'none'}; dropped {', '.join(dropped) or 'none'}")


if __name__ == "__main__":
    main()
