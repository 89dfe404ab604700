"""Campaigns: many runs, many ways to hurt a store or a server, and a count of what went wrong.

Each is a command, and short in the tests; `docs/campaigns.md` says what each does, and what it found.

`python -m campaigns.power_loss --points 10000` cuts the power of a simulated disk at so many points.
`python -m campaigns.kills --kills 1000` ends servers by SIGKILL under load; with `--store postgresql` the database too.
`python -m campaigns.erasures --kills 500` ends processes that erase a user, and searches their files for the name.
`python -m campaigns.flips --flips 20000` flips bits of a store's snapshot, database and log.
`python -m campaigns.fuzz --cases 20000` asks the service whatever its description allows, and what it does not.
`python -m campaigns.regret` has simulated users ask over HTTP, and compares their regret with the simulator's.
`python -m campaigns.soak --minutes 10` keeps the service busy, and watches its memory.
`python -m campaigns.held` holds 2,000 connections in every way there is, while others are to be served.
`python -m campaigns.demo_visitor --runs 20` has scripted visitors try the demonstration.
"""
