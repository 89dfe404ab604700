"""Run all benchmarks and print their tables: `python -m benchmarks`, or `make bench`."""

from benchmarks import policies, simulator

policies.main()
simulator.main()
