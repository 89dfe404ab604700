"""Decide and take feedback: `Engine`, and what it answers."""

from pamo.engine.answers import (
    Arm,
    ArmScore,
    Decision,
    Estimate,
    Explanation,
    Feedback,
    FrontArm,
    Preference,
    Weight,
)
from pamo.engine.awaiting import AsyncEngine
from pamo.engine.live import Engine
from pamo.engine.looking import Lookout
from pamo.engine.requests import Request
from pamo.store import Objective

__all__ = [
    "Arm",
    "ArmScore",
    "AsyncEngine",
    "Decision",
    "Engine",
    "Estimate",
    "Explanation",
    "Feedback",
    "FrontArm",
    "Lookout",
    "Objective",
    "Preference",
    "Request",
    "Weight",
]
