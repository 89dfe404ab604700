"""Decide and take feedback: `Engine`, and what it answers."""

from pamo.contract.answers import (
    Arm,
    ArmScore,
    Compared,
    ComparedVariant,
    Decision,
    Estimate,
    Experiment,
    ExplainedDecision,
    Explanation,
    Feedback,
    FrontArm,
    Leaderboard,
    Preference,
    PreferenceHistory,
    Ranking,
    UserDecisions,
    Weight,
)
from pamo.contract.experiments import Variant
from pamo.contract.objectives import Objective
from pamo.contract.requests import FeedbackRequest, Request
from pamo.engine.async_engine import AsyncEngine
from pamo.engine.engine import Engine
from pamo.engine.operator_views import Lookout

__all__ = [
    "Arm",
    "ArmScore",
    "AsyncEngine",
    "Compared",
    "ComparedVariant",
    "Decision",
    "Engine",
    "Estimate",
    "Experiment",
    "ExplainedDecision",
    "Explanation",
    "Feedback",
    "FeedbackRequest",
    "FrontArm",
    "Leaderboard",
    "Lookout",
    "Objective",
    "Preference",
    "PreferenceHistory",
    "Ranking",
    "Request",
    "UserDecisions",
    "Variant",
    "Weight",
]
