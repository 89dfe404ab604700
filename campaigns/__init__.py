"""Campaigns: many ways to hurt a store or a server, and a count of what was lost.

Each is a command, and short in the tests; `docs/campaigns.md` says what each does, and what it found.

`python -m campaigns.power_loss --points 10000` cuts the power of a simulated disk at so many points.
`python -m campaigns.kills --kills 1000` ends servers by SIGKILL under load; with `--store postgresql` the database too.
"""
