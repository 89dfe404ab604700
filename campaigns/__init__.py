"""Campaigns: many ways to hurt a store, and a count of what was lost. Each is a command, and short in the tests.

`python -m campaigns.power_loss --points 10000` cuts the power of a simulated disk at so many points.
"""
