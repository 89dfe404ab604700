"""pamo beside other libraries, each in an environment of its own: `make race`, or `python -m benchmarks.race`."""
