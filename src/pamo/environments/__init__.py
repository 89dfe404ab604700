"""Environments: the ground truth that policies are measured against, and who is offered what."""

from pamo.environments.base import Environment
from pamo.environments.bounded import Bounded
from pamo.environments.gaussian import Fixed, Gaussian, conflict, toy
from pamo.environments.protocols import PROTOCOLS
from pamo.environments.registry import REGISTRY, create, from_settings, playable

__all__ = [
    "PROTOCOLS",
    "REGISTRY",
    "Bounded",
    "Environment",
    "Fixed",
    "Gaussian",
    "conflict",
    "create",
    "from_settings",
    "playable",
    "toy",
]
