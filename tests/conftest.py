"""What every test stands on: Hypothesis draws the same examples in every run, and takes the time it takes."""

from hypothesis import settings

settings.register_profile("pamo", derandomize=True, deadline=None, database=None)
settings.load_profile("pamo")
