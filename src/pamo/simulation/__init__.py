"""Simulation: policies against environments, compiled, parallel over trials, the same for any number of threads."""

from pamo.simulation.cpu import simulate
from pamo.simulation.result import PolicyResult, Result, Summary, summarize

__all__ = ["PolicyResult", "Result", "Summary", "simulate", "summarize"]
