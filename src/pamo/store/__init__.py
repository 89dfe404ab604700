"""The durable journal, and the sums that are its fold. `open_store` opens one by its address."""

from pamo.store.addresses import open_store
from pamo.store.base import (
    ArmAdded,
    ArmChanged,
    ArmRetired,
    Arms,
    DecisionMade,
    Declared,
    Event,
    Feature,
    FeaturesDeclared,
    FeedbackGiven,
    Made,
    Objective,
    Outcome,
    Receipt,
    Setup,
    Store,
    TasteChanged,
    UserErased,
    UserKnown,
)
from pamo.store.memory import MemoryStore

__all__ = [
    "ArmAdded",
    "ArmChanged",
    "ArmRetired",
    "Arms",
    "DecisionMade",
    "Declared",
    "Event",
    "Feature",
    "FeaturesDeclared",
    "FeedbackGiven",
    "Made",
    "MemoryStore",
    "Objective",
    "Outcome",
    "Receipt",
    "Setup",
    "Store",
    "TasteChanged",
    "UserErased",
    "UserKnown",
    "open_store",
]
