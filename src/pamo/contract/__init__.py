"""What engine, service and client agree on: objectives, events, requests, answers, limits, and codes of problems.

Nothing here needs more than the standard library, so that a program that only asks a service loads nothing else.
"""
