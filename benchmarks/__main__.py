"""Run all benchmarks and print their tables: `python -m benchmarks`, or `make bench`."""

import sys

from benchmarks import load, policies, simulator

policies.main()
simulator.main()
print()
sys.exit(load.main(["--seconds", "1", "--rounds", "3"]))  # half a minute; alone it takes longer, and is surer
