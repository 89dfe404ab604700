"""The policies that tests of the loop run one and all: those of the paper, ours, the baselines, and two with own rows.

Those of the other families are held to their witnesses, their goldens, and what their papers say of them.
"""

from pamo import policies

LOOPED = [name for family in ("paper", "ours", "baselines") for name in policies.available(family)]
LOOPED += ["exp3", "sw-pareto-ucb"]
EXTENDED = [name for name in policies.available() if name not in LOOPED[:-2]]
"""All that are neither the paper's, nor ours, nor what either is compared with."""
